/* depthwise.cu: conv2d with one filter for each channel, its bias and activation in the same pass. */
#include "activation.h"
#include "index.h"

#undef DT_ROOM
#define DT_ROOM , 2
#define DT_EACH "../kernels/depthwise.inc"
#include "../core/each_dtype.inc"
#undef DT_EACH
#undef DT_ROOM
#define DT_ROOM
