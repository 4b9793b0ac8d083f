/* random.cu: philox.h over an array, arange, and the triangles of a matrix. */
#include "../core/philox.h"

#include "index.h"

#define DT_EACH "../kernels/each_random.h"
#include "../core/each_dtype.h"
#undef DT_EACH
