/* depthwise.cu: conv2d with one filter for each channel, its bias and activation in the same pass. */
#include "activation.h"
#include "../index.h"

#define DT_EACH "../kernels/layers/depthwise.inc"
#include "../../core/each_dtype.inc"
#undef DT_EACH
