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

/* Values of four dimensions: x with a batch; x in the shape of operand i, which may be one image; x (N, C, H, W) inside
 * of zeros, element i of a spatial dimension at first + i * step, as far as that is inside. */
struct dt_tape;
const dt_array *dt_tape_batched(struct dt_tape *t, const dt_array *x);
void dt_tape_give_image(struct dt_tape *t, int i, const dt_array *x);
const dt_array *dt_tape_placed(struct dt_tape *t, const dt_array *x, const int64_t first[2], const int64_t step[2],
                               const int64_t size[2]);

#endif
