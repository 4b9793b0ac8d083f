/* elementwise.cu: every op of elementwise.def, and where, for every dtype. */
#include "stream.h"

/* x < 0 for unsigned dtypes */
#ifdef __CUDACC__
#pragma nv_diag_suppress 186
#else
#pragma GCC diagnostic ignored "-Wtype-limits"
#endif

/* CUDA's hypot says infinity where one number is the largest of float64, whatever the other is (seen on an H100). */
DT_DEVICE double
k_hypot(double a, double b)
{
    const double most = fmax(fabs(a), fabs(b)), least = fmin(fabs(a), fabs(b));
    if (most < 1e+300) {
        return hypot(a, b);
    }
    return least <= most * 1e-9 ? most : 4 * hypot(a / 4, b / 4);
}
#define hypot(a, b) k_hypot(a, b)

#define DT_EACH "../kernels/elementwise/elementwise.inc"
#include "../../core/each_dtype.inc"
#undef DT_EACH
#undef hypot
