/* cell.cu: a step of an LSTM or GRU after its products, all steps of a layer, and their gradients. */
#include "../index.h"

#define DT_EACH "../kernels/layers/cell.inc"
#include "../../core/each_dtype.inc"
#undef DT_EACH

#define DT_EACH "../kernels/layers/cell_steps.inc"
#include "../../core/each_dtype.inc"
#undef DT_EACH
