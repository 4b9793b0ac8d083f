/* channels.cu: batch norm, in training (channels.inc) and in use (batch_norm.inc). */
#include "../index.h"
#include "../moments.h"

/* In training others are computed wider. */
#define K_CHANNELS_FLOAT32 1
#define K_CHANNELS_FLOAT64 1

#undef DT_ROOM
#define DT_ROOM , 2
#define DT_EACH "../kernels/layers/channels.inc"
#include "../../core/each_dtype.inc"
#undef DT_EACH
#define DT_EACH "../kernels/layers/batch_norm.inc"
#include "../../core/each_dtype.inc"
#undef DT_EACH
#undef DT_ROOM
#define DT_ROOM
