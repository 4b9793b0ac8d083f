/* random.cu: philox.h over an array, arange, and the triangles of a matrix. */
#include "../core/numbers/philox.h"

#include "index.h"

#define DT_EACH "../kernels/random.inc"
#include "../core/each_dtype.inc"
#undef DT_EACH
