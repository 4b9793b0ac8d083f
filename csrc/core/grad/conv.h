/* conv.h: what the gradients of convolutions read besides arrays. */
#ifndef DT_GRAD_CONV_H
#define DT_GRAD_CONV_H

#include "index.h"

typedef struct {
    int64_t stride[2], before[2], after[2], dilation[2], groups; /* before: the padding above and to the left */
    bool relu;
} dt_conv_record;

#endif
