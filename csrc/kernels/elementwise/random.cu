/* random.cu: philox.h over an array, dropout, arange, and the triangles of a matrix. */
#include "../../core/numbers/philox.h"

#include "../index.h"

#define DT_EACH "../kernels/elementwise/random.inc"
#include "../../core/each_dtype.inc"
#undef DT_EACH
