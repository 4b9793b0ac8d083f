/* cell.cu: a step of an LSTM or GRU after its products, and its gradient. */
#include "../index.h"

#define DT_EACH "../kernels/layers/cell.inc"
#include "../../core/each_dtype.inc"
#undef DT_EACH
