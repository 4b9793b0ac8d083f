/* reduce_set.h: the reductions of reductions.def. */
#define LANES 32
#define ARG_BLOCK 512

#define DT_EACH "../cpu/reduce_each.h"
#include "../core/each_dtype.h"
#undef DT_EACH

static const cpu_reduction *const reductions[DT_NDTYPES] = {
#define DT_DTYPE(NAME, name, ...) [DT_##NAME] = reductions_##NAME,
#include "../core/dtypes.def"
#undef DT_DTYPE
};
