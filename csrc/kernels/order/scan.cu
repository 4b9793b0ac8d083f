/* scan.cu: running sums, products, logarithms of sums, and extrema along rows. Integers accumulate in int64, floats in
 * double; sums of float64 in two, so that a sum of numbers that are not negative does not fall where parts meet. */
#include "../index.h"
#include "scan.h"
#include "scan_move.h"

#define K_IS_float64 1 /* of NAME */

#undef DT_ROOM
#define DT_ROOM , 3
#define DT_EACH "../kernels/order/scan.inc"
#include "../../core/each_dtype.inc"
#undef DT_EACH
#undef DT_ROOM
#define DT_ROOM
