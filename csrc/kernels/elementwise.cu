/* elementwise.cu: every op of elementwise.def, and where, for every dtype. */
#include "stream.h"

/* x < 0 for unsigned dtypes */
#ifdef __CUDACC__
#pragma nv_diag_suppress 186
#else
#pragma GCC diagnostic ignored "-Wtype-limits"
#endif

#define DT_EACH "../kernels/elementwise.inc"
#include "../core/each_dtype.inc"
#undef DT_EACH
