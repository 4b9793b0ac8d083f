/* softmax.cu: softmax and log_softmax over the last dimension, and their gradients. */
#include "../index.h"

#undef DT_ROOM
#define DT_ROOM , sizeof(T) == 2 ? 4 : 2
#define DT_EACH "../kernels/layers/softmax.inc"
#include "../../core/each_dtype.inc"
#undef DT_EACH
#undef DT_ROOM
#define DT_ROOM
