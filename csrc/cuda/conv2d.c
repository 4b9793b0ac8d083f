/* conv2d.c: convolution by cuDNN. Operands are brought to one layout, that of the result, and a plan is taken from the
 * cache (conv_plan.c). */
#include <string.h>

#include "conv_plan.h"

#define DEFAULT_WORKSPACE_LIMIT ((int64_t)256 << 20)

static atomic_int_fast64_t workspace_limit = DEFAULT_WORKSPACE_LIMIT;

int64_t
cuda_workspace_limit(void)
{
    return atomic_load_explicit(&workspace_limit, memory_order_relaxed);
}

void
cuda_set_workspace_limit(int64_t nbytes)
{
    atomic_store(&workspace_limit, nbytes);
}

void
cuda_conv_strides(const int64_t *shape, bool channels_last, int64_t *strides)
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
    cuda_conv_strides(x->shape, channels_last, strides);
    for (int i = 0; i < 4; i++) {
        if (x->shape[i] != 1 && x->strides[i] != strides[i]) {
            return false;
        }
    }
    return true;
}

void
cuda_conv_key(const dt_array *x, const dt_array *weight, bool has_bias, const dt_conv2d_params *params,
              const dt_array *out, bool channels_last, int64_t alignment, conv_key *key)
{
    const dt_array *arrays[] = {x, weight, out};
    int64_t *shapes[] = {key->x, key->weight, key->out};
    int64_t *strides[] = {key->x_strides, key->weight_strides, key->out_strides};
    bool relu = params->activation == DT_ACTIVATION_RELU;
    memset(key, 0, sizeof(*key));
    key->dtype = x->dtype;
    key->tf32 = x->dtype == DT_FLOAT32 && dt_allow_tf32();
    key->channels_last = channels_last;
    key->alignment = alignment;
    key->workspace_limit = cuda_workspace_limit();
    key->has_bias = has_bias;
    key->activation = relu ? DT_ACTIVATION_RELU : DT_ACTIVATION_NONE;
    for (int i = 0; i < 3; i++) {
        memcpy(shapes[i], arrays[i]->shape, sizeof(key->x));
        cuda_conv_strides(arrays[i]->shape, channels_last, strides[i]);
    }
    memcpy(key->before, params->pad_before, sizeof(key->before));
    memcpy(key->after, params->pad_after, sizeof(key->after));
    memcpy(key->stride, params->stride, sizeof(key->stride));
    memcpy(key->dilation, params->dilation, sizeof(key->dilation));
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
    cuda_conv_strides(like->shape, channels_last, out->array.strides);
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

/* x with its zeros written out. */
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

/* A convolution over nothing: activation(bias). */
static dt_status
bias_only(const dt_array *bias, dt_activation activation, dt_array *out, dt_error *err)
{
    dt_scalar zero = dt_scalar_float(0);
    DT_TRY(cuda_fill(out, &zero, err));
    return cuda_epilogue(bias, 1, activation, out, err);
}

/* ---------------------------------------------------------------- one call of the library */

static int64_t
fewer(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t
alignment(const dt_array *a)
{
    uint64_t bits = cuda_address(a) | CONV_MAX_ALIGNMENT;
    return (int64_t)(bits & (0 - bits));
}

/* Arrays that all have the layout; bias is contiguous. */
static dt_status
convolve(cuda_device *d, const dt_array *x, const dt_array *weight, const dt_array *bias,
         const dt_conv2d_params *params, bool channels_last, dt_array *out, dt_error *err)
{
    conv_key key;
    int fused = 0;
    int64_t aligned = fewer(fewer(alignment(x), alignment(weight)), alignment(out));
    aligned = bias ? fewer(aligned, alignment(bias)) : aligned;
    cuda_conv_key(x, weight, bias != NULL, params, out, channels_last, aligned, &key);
    const conv_pointers pointers = {cuda_address(x), cuda_address(weight), bias ? cuda_address(bias) : 0,
                                    cuda_address(out)};
    DT_TRY(cuda_conv_run(d, &key, &pointers, &fused, err));
    return cuda_epilogue(fused & CONV_BIAS ? NULL : bias, 1,
                         fused & CONV_RELU ? DT_ACTIVATION_NONE : params->activation, out, err);
}

/* Images [first, first + count) of a batch; borrowed. */
static dt_array
images(const dt_array *x, int64_t first, int64_t count)
{
    dt_array part = *x;
    part.shape[0] = count;
    part.offset += first * x->strides[0] * (int64_t)dt_itemsize((dt_dtype)x->dtype);
    return part;
}

/* cuDNN counts elements in 32 bits: a larger batch is convolved in parts. */
static dt_status
convolve_batch(cuda_device *d, const dt_array *x, const dt_array *weight, const dt_array *bias,
               const dt_conv2d_params *params, bool channels_last, dt_array *out, dt_error *err)
{
    int64_t n = x->shape[0], of_x = dt_array_numel(x) / n, of_out = dt_array_numel(out) / n;
    int64_t most = cuda_size_limit() / (of_x > of_out ? of_x : of_out);
    most = most > 0 ? most : 1;
    for (int64_t i = 0; i < n; i += most) {
        dt_array part_x = images(x, i, fewer(most, n - i)), part_out = images(out, i, fewer(most, n - i));
        DT_TRY(convolve(d, &part_x, weight, bias, params, channels_last, &part_out, err));
    }
    return DT_OK;
}

/* ---------------------------------------------------------------- the slot */

typedef struct {
    operand x, padded, weight, out;
    cuda_temporary bias;
} operands;

/* All but x is laid out already. */
static dt_status
run(cuda_device *d, const dt_array *x, const dt_array *bias, const dt_conv2d_params *params, bool channels_last,
    dt_array *out, operands *o, dt_error *err)
{
    if (o->out.array.storage == NULL) {
        return convolve_batch(d, x, &o->weight.array, bias, params, channels_last, out, err);
    }
    DT_TRY(convolve_batch(d, x, &o->weight.array, bias, params, channels_last, &o->out.array, err));
    return cuda_copy_within(d, &o->out.array, out, err);
}

static dt_status
lay_out(cuda_device *d, const dt_array *x, const dt_array *weight, const dt_array *bias, const dt_conv2d_params *params,
        dt_array *out, operands *o, dt_error *err)
{
    bool channels_last = !has_layout(out, false) && has_layout(out, true);
    bool lopsided = memcmp(params->pad_before, params->pad_after, sizeof(params->pad_before)) != 0;
    DT_TRY(operand_open(d, x, channels_last, &o->x, err));
    DT_TRY(operand_open(d, weight, channels_last, &o->weight, err));
    if (bias != NULL) {
        DT_TRY(cuda_contiguous(d, bias, &o->bias, &bias, err));
    }
    if (!has_layout(out, channels_last)) {
        DT_TRY(operand_new(d, out, channels_last, &o->out, err));
    }
    dt_status rc = run(d, &o->x.array, bias, params, channels_last, out, o, err);
    if (rc != DT_ECUDA || !lopsided || !cuda_conv_refused(err->library_status)) {
        return rc;
    }
    /* no engine pads the two sides differently: the zeros are written out */
    dt_conv2d_params bare = *params;
    memset(bare.pad_before, 0, sizeof(bare.pad_before));
    memset(bare.pad_after, 0, sizeof(bare.pad_after));
    DT_TRY(operand_pad(d, x, params->pad_before, params->pad_after, channels_last, &o->padded, err));
    return run(d, &o->padded.array, bias, &bare, channels_last, out, o, err);
}

dt_status
cuda_conv2d(const dt_array *x, const dt_array *weight, const dt_array *bias, const dt_conv2d_params *params,
            dt_array *out, dt_error *err)
{
    cuda_device *d;
    operands o = {0};
    if (dt_array_numel(x) == 0) { /* no channels, or an image of padding alone */
        return bias_only(bias, params->activation, out, err);
    }
    if (cuda_depthwise_applies(x, weight, params)) {
        return cuda_depthwise(x, weight, bias, params, out, err);
    }
    DT_TRY(cuda_enter(out->storage->device.index, &d, err));
    dt_status rc = lay_out(d, x, weight, bias, params, out, &o, err);
    cuda_temporary_clear(&o.x.copy);
    cuda_temporary_clear(&o.padded.copy);
    cuda_temporary_clear(&o.weight.copy);
    cuda_temporary_clear(&o.out.copy);
    cuda_temporary_clear(&o.bias);
    return rc;
}
