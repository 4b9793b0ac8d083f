/* dot.cu: the product of two long vectors, which is a reduction: each block adds up a part of it. */
#include "../index.h"

#undef DT_ROOM
#define DT_ROOM , 4
#define DT_EACH "../kernels/reduce/dot.inc"
#include "../../core/each_dtype.inc"
#undef DT_EACH
#undef DT_ROOM
#define DT_ROOM
