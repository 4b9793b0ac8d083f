/* softmax.cu: softmax and log_softmax over the last dimension. */
#include "index.h"

#define DT_EACH "../kernels/each_softmax.h"
#include "../core/each_dtype.h"
#undef DT_EACH
