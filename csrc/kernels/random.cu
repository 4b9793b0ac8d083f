/* random.cu: philox.h over an array, arange, and the triangles of a matrix. */
#include "../core/philox.h"

#include "index.h"

/* A multiple of 2**-24 is exact in float32; only float64 has room for more. */
#define k_unit_float16 dt_random_unit24
#define k_unit_bfloat16 dt_random_unit24
#define k_unit_float32 dt_random_unit24
#define k_unit_float64 dt_random_unit

#define DT_EACH "../kernels/each_random.h"
#include "../core/each_dtype.h"
#undef DT_EACH
