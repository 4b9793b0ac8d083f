/* attention.cu: attention in one pass over blocks of keys, and the weights of attention in products (weigh.inc), for
 * dtypes that are computed in float32. */
#include "../index.h"

#define K_ATTENDS_FLOAT16 1
#define K_ATTENDS_BFLOAT16 1
#define K_ATTENDS_FLOAT32 1

#undef DT_ROOM
#define DT_ROOM , 2
#define DT_EACH "../kernels/layers/attention.inc"
#include "../../core/each_dtype.inc"
#undef DT_EACH
#define DT_EACH "../kernels/layers/weigh.inc"
#include "../../core/each_dtype.inc"
#undef DT_EACH
#undef DT_ROOM
#define DT_ROOM
