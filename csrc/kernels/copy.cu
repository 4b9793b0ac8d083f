/* copy.cu: casts and strided copies, one kernel for every pair of dtypes, and transposes. A fill is a copy of an
 * immediate. */
#include "stream.h"

#define DT_EACH "../kernels/each_copy.h"
#include "../core/each_dtype.h"
#undef DT_EACH
