/* skinny.cu: matrix products with few rows, which take as long as reading the other matrix takes, and batches of small
 * ones. */
#include "activation.h"
#include "../index.h"

#undef DT_ROOM
#define DT_ROOM , 2
#define DT_EACH "../kernels/layers/skinny.inc"
#include "../../core/each_dtype.inc"
#undef DT_EACH
#undef DT_ROOM
#define DT_ROOM
