/* normalize.cu: layer norm, RMS norm and group norm, over rows that lie one after the other. */
#include "index.h"

#undef DT_ROOM
#define DT_ROOM , 4
#define DT_EACH "../kernels/normalize.inc"
#include "../core/each_dtype.inc"
#undef DT_EACH
#undef DT_ROOM
#define DT_ROOM
