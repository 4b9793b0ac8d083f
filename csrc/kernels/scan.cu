/* scan.cu: running sums, products, logarithms of sums, and extrema along rows. Integers accumulate in int64, floats in
 * double. */
#include "index.h"

#undef DT_ROOM
#define DT_ROOM , 2 /* registers for the addresses of three arrays */
#define DT_EACH "../kernels/scan.inc"
#include "../core/each_dtype.inc"
#undef DT_EACH
#undef DT_ROOM
#define DT_ROOM
