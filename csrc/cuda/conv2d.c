/* conv2d.c: convolution by cuDNN. Operands are brought to one layout, that of the result, and a plan is taken from the
 * cache (conv_plan.c). */
#include <string.h>

#include "conv_plan.h"

/* Strides of a dense array of this shape, channels last or not; sizes of 1 do not matter. */
static void
layout_strides(const int64_t *shape, bool channels_last, int64_t *strides)
{
    strides[3] = channels_last ? shape[1] : 1;
    strides[2] = shape[3] * strides[3];
    strides[1] = channels_last ? 1 : shape[2] * strides[2];
    strides[0] = shape[1] * shape[2] * shape[3];
}

static bool
has_layout(const dt_array *x, bool channels_last)
{
    int64_t strides[4];
    layout_strides(x->shape, channels_last, strides);
    for (int i = 0; i < 4; i++) {
        if (x->shape[i] != 1 && x->strides[i] != strides[i]) {
            return false;
        }
    }
    return true;
}

/* An operand in the layout of the graph: the array itself, or a copy. */
typedef struct {
    dt_array array;
    cuda_temporary copy;
} operand;

static dt_status
operand_new(cuda_device *d, const dt_array *like, bool channels_last, operand *out, dt_error *err)
{
    DT_TRY(cuda_temporary_init(&out->copy, d, like, (dt_dtype)like->dtype, err));
    out->array = out->copy.array;
    layout_strides(like->shape, channels_last, out->array.strides);
    return DT_OK;
}

static dt_status
operand_open(cuda_device *d, const dt_array *x, bool channels_last, operand *out, dt_error *err)
{
    out->array = *x;
    if (has_layout(x, channels_last)) {
        return DT_OK;
    }
    DT_TRY(operand_new(d, x, channels_last, out, err));
    return cuda_copy_within(d, x, &out->array, err);
}

/* cuDNN pads both sides alike: other paddings are written out. */
static dt_status
operand_pad(cuda_device *d, const dt_array *x, const int64_t *before, const int64_t *after, bool channels_last,
            operand *out, dt_error *err)
{
    dt_array padded = *x;
    dt_scalar zero = dt_scalar_float(0);
    padded.shape[2] += before[0] + after[0];
    padded.shape[3] += before[1] + after[1];
    DT_TRY(operand_new(d, &padded, channels_last, out, err));
    DT_TRY(cuda_fill(&out->array, &zero, err));
    dt_array inside = out->array;
    memcpy(inside.shape, x->shape, sizeof(inside.shape));
    inside.offset +=
        (before[0] * inside.strides[2] + before[1] * inside.strides[3]) * (int64_t)dt_itemsize((dt_dtype)x->dtype);
    return cuda_copy_within(d, x, &inside, err);
}

/* bias (K), to be added to out (N, K, P, Q) */
static dt_array
bias_over(const dt_array *bias, const dt_array *out)
{
    dt_array view = *out;
    memset(view.strides, 0, sizeof(view.strides));
    view.storage = bias->storage;
    view.offset = bias->offset;
    view.strides[1] = bias->strides[0];
    return view;
}

/* A convolution over nothing: the bias alone. */
static dt_status
bias_only(cuda_device *d, const dt_array *bias, dt_array *out, dt_error *err)
{
    dt_scalar zero = dt_scalar_float(0);
    if (bias == NULL) {
        return cuda_fill(out, &zero, err);
    }
    dt_array view = bias_over(bias, out);
    return cuda_copy_within(d, &view, out, err);
}

static int64_t
alignment(const dt_array *a)
{
    uint64_t bits = cuda_address(a) | 16;
    return (int64_t)(bits & (0 - bits));
}

typedef struct {
    operand x, weight, out;
    cuda_temporary bias;
} operands;

static dt_status
convolve(cuda_device *d, const dt_array *x, const dt_array *weight, const dt_array *bias,
         const dt_conv2d_params *params, bool channels_last, dt_array *out, operands *o, dt_error *err)
{
    conv_key key = {.dtype = out->dtype, .channels_last = channels_last, .has_bias = bias != NULL};
    bool symmetric = memcmp(params->pad_before, params->pad_after, sizeof(params->pad_before)) == 0;
    if (symmetric) {
        DT_TRY(operand_open(d, x, channels_last, &o->x, err));
        memcpy(key.padding, params->pad_before, sizeof(key.padding));
    } else {
        DT_TRY(operand_pad(d, x, params->pad_before, params->pad_after, channels_last, &o->x, err));
    }
    DT_TRY(operand_open(d, weight, channels_last, &o->weight, err));
    o->out.array = *out;
    if (!has_layout(out, channels_last)) {
        DT_TRY(operand_new(d, out, channels_last, &o->out, err));
    }
    if (bias != NULL) {
        DT_TRY(cuda_contiguous(d, bias, &o->bias, &bias, err));
    }
    const dt_array *arrays[] = {&o->x.array, &o->weight.array, &o->out.array};
    int64_t *shapes[] = {key.x, key.weight, key.out}, *strides[] = {key.x_strides, key.weight_strides, key.out_strides};
    key.alignment = bias ? alignment(bias) : 16;
    for (int i = 0; i < 3; i++) {
        int64_t bytes = alignment(arrays[i]);
        memcpy(shapes[i], arrays[i]->shape, sizeof(key.x));
        layout_strides(arrays[i]->shape, channels_last, strides[i]);
        key.alignment = bytes < key.alignment ? bytes : key.alignment;
    }
    memcpy(key.stride, params->stride, sizeof(key.stride));
    memcpy(key.dilation, params->dilation, sizeof(key.dilation));
    conv_pointers pointers = {cuda_address(arrays[0]), cuda_address(arrays[1]), bias ? cuda_address(bias) : 0,
                              cuda_address(arrays[2])};
    bool bias_apart = false;
    DT_TRY(cuda_conv_run(d, &key, &pointers, &bias_apart, err));
    if (bias_apart) {
        dt_array view = bias_over(bias, &o->out.array);
        DT_TRY(cuda_binary(DT_BINARY_add, NULL, &o->out.array, &view, &o->out.array, err));
    }
    return o->out.copy.array.storage != NULL ? cuda_copy_within(d, &o->out.array, out, err) : DT_OK;
}

dt_status
cuda_conv2d(const dt_array *x, const dt_array *weight, const dt_array *bias, const dt_conv2d_params *params,
            dt_array *out, dt_error *err)
{
    cuda_device *d;
    operands o = {0};
    DT_TRY(cuda_enter(out->storage->device.index, &d, err));
    if (weight->shape[1] == 0) {
        return bias_only(d, bias, out, err);
    }
    bool channels_last = !has_layout(out, false) && has_layout(out, true);
    dt_status rc = convolve(d, x, weight, bias, params, channels_last, out, &o, err);
    cuda_temporary_clear(&o.x.copy);
    cuda_temporary_clear(&o.weight.copy);
    cuda_temporary_clear(&o.out.copy);
    cuda_temporary_clear(&o.bias);
    return rc;
}
