/* conv.h: what the gradients of convolutions read besides arrays. */
#ifndef DT_GRAD_CONV_H
#define DT_GRAD_CONV_H

#include "index.h"

typedef struct {
    int64_t stride[2], before[2], after[2], dilation[2], groups; /* before: the padding above and to the left */
    bool relu;
} dt_conv_record;

/* The formula of the gradient of the input, for a device without a way of its own: out = what grad gives it. */
dt_status dt_conv2d_spread(const dt_array *grad, const dt_array *weight, const dt_conv_record *r, dt_array *out,
                           dt_error *err) DT_MUST_CHECK;

#endif
