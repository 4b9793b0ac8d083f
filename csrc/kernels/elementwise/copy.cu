/* copy.cu: casts and strided copies, one kernel for every pair of dtypes, and transposes. A fill is a copy of an
 * immediate. */
#include "stream.h"

#define DT_EACH "../kernels/elementwise/copy.inc"
#include "../../core/each_dtype.inc"
#undef DT_EACH
