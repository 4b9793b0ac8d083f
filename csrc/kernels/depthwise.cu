/* depthwise.cu: conv2d with one filter for each channel, its bias and activation in the same pass. */
#include "activation.h"
#include "index.h"

#undef DT_ROOM
#define DT_ROOM , 2
#define DT_EACH "../kernels/each_depthwise.h"
#include "../core/each_dtype.h"
#undef DT_EACH
#undef DT_ROOM
#define DT_ROOM
