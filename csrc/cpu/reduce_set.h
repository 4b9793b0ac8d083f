/* reduce_set.h: the reductions of reductions.def. */
#define LANES 32
#define ARG_BLOCK 2048
#include "reduce_rows.h"

#define IS_INT64_INT64 1
#define IS_INT32_INT32 1

#define DT_EACH "../cpu/reduce_each.h"
#include "../core/each_dtype.h"
#undef DT_EACH

#define reductions_FLOAT16 NULL
#define reductions_BFLOAT16 NULL
static const cpu_reduction *const reductions[DT_NDTYPES] = {
#define DT_DTYPE(NAME, name, ...) [DT_##NAME] = reductions_##NAME,
#include "../core/dtypes.def"
#undef DT_DTYPE
};
