/* conv2d.c: two-dimensional cross-correlation, checked and laid out for the backend. */
#include "../check/check.h"
#include "../grad/conv.h"
#include "ops.h"
#include "../result.h"

#define OP "conv2d"

static dt_status
check_parameters(const int64_t stride[2], dt_padding_mode mode, const int64_t padding[2], const int64_t dilation[2],
                 dt_error *err)
{
    for (int i = 0; i < 2; i++) {
        if (stride[i] <= 0) {
            return dt_fail(err, DT_EVALUE, "invalid-parameter", OP,
                           "non-positive stride is not supported: got stride=(%lld, %lld)", (long long)stride[0],
                           (long long)stride[1]);
        }
        if (mode == DT_PADDING_NUMBERS && padding[i] < 0) {
            return dt_fail(err, DT_EVALUE, "invalid-parameter", OP,
                           "negative padding is not supported: got padding=(%lld, %lld)", (long long)padding[0],
                           (long long)padding[1]);
        }
        if (dilation[i] <= 0) {
            return dt_fail(err, DT_EVALUE, "invalid-parameter", OP,
                           "dilation should be greater than zero: got dilation=(%lld, %lld)", (long long)dilation[0],
                           (long long)dilation[1]);
        }
    }
    if (mode == DT_PADDING_SAME && (stride[0] != 1 || stride[1] != 1)) {
        return dt_fail(err, DT_EVALUE, "invalid-parameter", OP,
                       "padding='same' is not supported for strided convolutions: got stride=(%lld, %lld)",
                       (long long)stride[0], (long long)stride[1]);
    }
    return DT_OK;
}

static dt_status
fail_overflow(const char *name, int64_t value, dt_error *err)
{
    return dt_fail(err, DT_EVALUE, "invalid-parameter", OP,
                   "%s=%lld is too large: sizes of the padded input must fit in 64 bits", name, (long long)value);
}

/* Padding on both sides and the size of the result, for one spatial dimension; no overflow whatever is given. */
static dt_status
output_size(int64_t size, int64_t kernel, dt_padding_mode mode, int64_t padding, int i, dt_conv2d_params *p,
            int64_t *padded, int64_t *reach, int64_t *out, dt_error *err)
{
    if (__builtin_mul_overflow(kernel > 0 ? kernel - 1 : 0, p->dilation[i], reach) ||
        __builtin_add_overflow(*reach, 1, reach)) {
        return fail_overflow("dilation", p->dilation[i], err);
    }
    *reach = kernel == 0 ? 0 : *reach;
    switch (mode) {
    case DT_PADDING_NUMBERS:
        p->pad_before[i] = p->pad_after[i] = padding;
        break;
    case DT_PADDING_SAME: /* an odd total goes after, as in PyTorch */
        p->pad_before[i] = *reach > 0 ? (*reach - 1) / 2 : 0;
        p->pad_after[i] = *reach > 0 ? *reach - 1 - p->pad_before[i] : 0;
        break;
    case DT_PADDING_VALID:
        p->pad_before[i] = p->pad_after[i] = 0;
        break;
    }
    int64_t total;
    if (__builtin_add_overflow(p->pad_before[i], p->pad_after[i], &total) ||
        __builtin_add_overflow(size, total, padded)) {
        return fail_overflow("padding", padding, err);
    }
    *out = *padded < *reach ? -1 : (*padded - *reach) / p->stride[i] + 1;
    if (*out ==
        1) { /* a step that is never taken: the shortest one that leaves the image, so that no backend overflows */
        p->stride[i] = *padded - *reach + 1;
    }
    p->dilation[i] = kernel == 1 ? 1 : p->dilation[i];
    return DT_OK;
}

static dt_status
check_channels(const dt_operand *in, const dt_array *x, const dt_array *weight, const dt_array *bias, int64_t groups,
               dt_error *err)
{
    if (groups <= 0) {
        return dt_fail(err, DT_EVALUE, "invalid-parameter", OP,
                       "expected groups to be greater than 0, but got groups=%lld", (long long)groups);
    }
    if (weight->shape[0] % groups != 0 || weight->shape[0] < groups) {
        return dt_fail_conv_groups(OP, in, 4, groups, err);
    }
    int64_t expected;
    if (__builtin_mul_overflow(weight->shape[1], groups, &expected) || x->shape[1] != expected) {
        return dt_fail_conv_channels(OP, in, 4, groups, expected, x->shape[1], err);
    }
    if (bias != NULL && (bias->ndim != 1 || bias->shape[0] != weight->shape[0])) {
        return dt_fail_bias(OP, in, 4, 2, weight->shape[0], err);
    }
    return DT_OK;
}

/* dt_conv2d, on record: gelu runs apart, as its gradient reads the sums. */
static dt_status
recorded(const dt_array *input, const dt_array *weight, const dt_array *bias, const int64_t stride[2],
         dt_padding_mode mode, const int64_t padding[2], const int64_t dilation[2], int64_t groups,
         dt_activation activation, dt_array *out, dt_error *err)
{
    if (activation > DT_ACTIVATION_RELU) {
        dt_array sums = DT_ARRAY_EMPTY;
        DT_TRY(dt_conv2d(input, weight, bias, stride, mode, padding, dilation, groups, DT_ACTIVATION_NONE, &sums, err));
        dt_status rc = dt_unary(dt_activation_op(activation), OP, &sums, NULL, false, out, err);
        dt_array_clear(&sums);
        return rc;
    }
    const dt_array *const inputs[] = {input, weight, bias};
    dt_conv_record r = {.groups = groups, .relu = activation == DT_ACTIVATION_RELU};
    for (int i = 0; i < 2 && weight->ndim == 4; i++) {
        const bool taken = weight->shape[2 + i] > 1; /* a step from tap to tap */
        const bool same = mode == DT_PADDING_SAME && taken;
        const int64_t total = same ? dilation[i] * (weight->shape[2 + i] - 1) : 0;
        r.stride[i] = stride[i];
        r.dilation[i] = taken ? dilation[i] : 1;
        r.before[i] = mode == DT_PADDING_NUMBERS ? padding[i] : total / 2;
        r.after[i] = same ? total - total / 2 : r.before[i];
    }
    DT_RECORD_LIST(r.relu ? DT_GRAD_conv2d_relu : DT_GRAD_conv2d, &r, out,
                   dt_conv2d(input, weight, bias, stride, mode, padding, dilation, groups, activation, out, err),
                   inputs, 3);
}

dt_status
dt_conv2d(const dt_array *input, const dt_array *weight, const dt_array *bias, const int64_t stride[2],
          dt_padding_mode mode, const int64_t padding[2], const int64_t dilation[2], int64_t groups,
          dt_activation activation, dt_array *out, dt_error *err)
{
    if (DT_UNLIKELY(dt_is_tracked(input) || dt_is_tracked(weight) || dt_is_tracked(bias)) && !dt_grad_off) {
        return recorded(input, weight, bias, stride, mode, padding, dilation, groups, activation, out, err);
    }
    const dt_operand in[] = {{"input", input, -1}, {"weight", weight, -1}, {"bias", bias, -1}, DT_OUT(out)};
    DT_TRY(dt_check_same_device(OP, in, 4, err));
    DT_TRY(dt_check_dtypes(OP, in, 4, DT_ALL, DT_CONVOLUTION, err));
    DT_TRY(dt_check_float(OP, in, 4, err));
    if (input->ndim != 3 && input->ndim != 4) {
        return dt_fail_conv_rank(OP, in, 4, 0, err);
    }
    if (weight->ndim != 4) {
        return dt_fail_conv_rank(OP, in, 4, 1, err);
    }
    dt_array x = dt_as_batch(input);
    DT_TRY(check_channels(in, &x, weight, bias, groups, err));
    DT_TRY(check_parameters(stride, mode, padding, dilation, err));
    dt_conv2d_params p = {.stride = {stride[0], stride[1]},
                          .dilation = {dilation[0], dilation[1]},
                          .groups = groups,
                          .activation = activation};
    int64_t padded[2], reach[2], shape[4] = {x.shape[0], weight->shape[0], 0, 0};
    for (int i = 0; i < 2; i++) {
        DT_TRY(output_size(x.shape[2 + i], weight->shape[2 + i], mode, padding ? padding[i] : 0, i, &p, &padded[i],
                           &reach[i], &shape[2 + i], err));
    }
    if (shape[2] < 0 || shape[3] < 0 || weight->shape[2] == 0 || weight->shape[3] == 0) {
        return dt_fail_window(OP, in, 4, padded, reach, err);
    }
    DT_TRY(dt_shape_check(OP, 4, shape, (dt_dtype)x.dtype, err));
    int ndim = input->ndim;
    const int64_t *result_shape = shape + (4 - ndim);
    DT_TRY(dt_check_out(OP, in, 4, (dt_dtype)x.dtype, ndim, result_shape, err));
    const dt_form form = {OP,
                          dt_array_device(&x),
                          (dt_dtype)x.dtype,
                          ndim,
                          result_shape,
                          .channels_last = dt_is_channels_last(&x) || dt_is_channels_last(weight),
                          .fills = DT_BESIDE_OPERANDS};
    dt_result r;
    DT_TRY(dt_result_open(&r, &form, (const dt_array *[]){input, weight, bias}, 3, out, err));
    dt_array y = dt_as_batch(r.target);
    return dt_result_close(&r, dt_call_conv2d(&x, weight, bias, &p, &y, err), err);
}
