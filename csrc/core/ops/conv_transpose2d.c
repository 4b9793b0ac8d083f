/* conv_transpose2d.c: what the gradient of a convolution gives its input, as an op of its own. The front has checked
 * shapes and parameters, and that all sizes fit in 64 bits. */
#include "../grad/conv.h"
#include "../grad/grad.h"
#include "ops.h"
#include "../result.h"

#define OP "conv_transpose2d"

/* The convolution that this is the transpose of, and the size of its input. What output_padding adds beyond a step is
 * taken from the padding behind, so that that convolution has as many results as x has elements. */
static void
transposed(const dt_array *x, const dt_array *weight, const dt_conv_transpose2d_params *p, dt_conv_record *r,
           int64_t size[2])
{
    r->groups = p->groups;
    for (int i = 0; i < 2; i++) {
        const int64_t n = x->shape[2 + i], reach = p->dilation[i] * (weight->shape[2 + i] - 1);
        const int64_t more = n == 1 ? 0 : p->output_padding[i] - p->output_padding[i] % p->stride[i];
        r->stride[i] = p->stride[i];
        r->dilation[i] = weight->shape[2 + i] == 1 ? 1 : p->dilation[i];
        r->before[i] = p->padding[i];
        r->after[i] = p->padding[i] - more;
        size[i] = (n - 1) * p->stride[i] - 2 * p->padding[i] + reach + p->output_padding[i] + 1;
    }
}

static dt_status
add_bias(const dt_array *bias, dt_array *y, dt_error *err)
{
    dt_array column = *bias;
    column.ndim = 3;
    column.shape[1] = column.shape[2] = 1;
    column.strides[1] = column.strides[2] = 0;
    return dt_binary(DT_BINARY_add, OP, y, &column, NULL, NULL, true, y, err);
}

/* By the device's own way, where it has one. */
static dt_status
fill(const dt_array *x, const dt_array *weight, const dt_conv_record *r, dt_array *y, bool *made, dt_error *err)
{
    dt_conv2d_params p = {.groups = r->groups};
    *made = r->after[0] >= 0 && r->after[1] >= 0;
    if (!*made) {
        return DT_OK;
    }
    for (int i = 0; i < 2; i++) {
        const int64_t reach = (weight->shape[2 + i] - 1) * r->dilation[i] + 1;
        p.dilation[i] = r->dilation[i];
        p.pad_before[i] = r->before[i];
        p.pad_after[i] = r->after[i];
        p.stride[i] = x->shape[2 + i] == 1 ? y->shape[2 + i] + 2 * r->before[i] - reach + 1 /* never taken */
                                           : r->stride[i];
    }
    return dt_call_conv2d_input_grad(x, weight, &p, y, made, err);
}

dt_status
dt_conv_transpose2d(const dt_array *input, const dt_array *weight, const dt_array *bias,
                    const dt_conv_transpose2d_params *params, dt_array *out, dt_error *err)
{
    dt_conv_record r = {0};
    int64_t size[2];
    dt_array x = dt_as_batch(input);
    transposed(&x, weight, params, &r, size);
    DT_RECORD(DT_GRAD_conv_transpose2d, &r, out, dt_conv_transpose2d(input, weight, bias, params, out, err), input,
              weight, bias);
    const int64_t shape[4] = {x.shape[0], weight->shape[1] * params->groups, size[0], size[1]};
    const int ndim = input->ndim;
    DT_TRY(dt_shape_check(OP, 4, shape, (dt_dtype)x.dtype, err));
    const dt_form form = {
        OP,   dt_array_device(&x), (dt_dtype)x.dtype,
        ndim, shape + (4 - ndim),  .channels_last = dt_is_channels_last(&x) || dt_is_channels_last(weight),
    };
    bool made;
    DT_TRY(dt_result_new(&form, out, err));
    dt_array y = dt_as_batch(out);
    dt_status rc = fill(&x, weight, &r, &y, &made, err);
    if (rc == DT_OK && !made) {
        rc = dt_conv2d_spread(&x, weight, &r, &y, err);
    }
    if (rc == DT_OK && bias != NULL) {
        rc = add_bias(bias, out, err);
    }
    return dt_result_made(rc, out);
}
