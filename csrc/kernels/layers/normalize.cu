/* normalize.cu: layer norm, RMS norm and group norm, and the gradients of the first two, over rows that lie one after
 * the other. */
#include "../index.h"

#define DT_EACH "../kernels/layers/normalize.inc"
#include "../../core/each_dtype.inc"
#undef DT_EACH
