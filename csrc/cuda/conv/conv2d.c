/* conv2d.c: convolution by cuDNN, where it is no product of matrices (product.c). Operands are brought to one
 * layout, that of the result, and a plan is taken from the cache (plan.c). */
#include <string.h>

#include "plan.h"
#include "../launch/launch.h"
#include "../memory/memory.h"
#include "../ops/ops.h"
#include "../plans.h"
#include "../memory/transfer.h"
#include "weights.h"

void
cuda_conv_strides(const int64_t *shape, bool channels_last, int64_t *strides)
{
    strides[3] = channels_last ? shape[1] : 1;
    strides[2] = shape[3] * strides[3];
    strides[1] = channels_last ? 1 : shape[2] * strides[2];
    strides[0] = shape[1] * shape[2] * shape[3];
}

bool
cuda_conv_has_layout(const dt_array *x, bool channels_last)
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
              const dt_array *out, bool channels_last, conv_key *key)
{
    const dt_array *arrays[] = {x, weight, out};
    int64_t *shapes[] = {key->x, key->weight, key->out};
    int64_t *strides[] = {key->x_strides, key->weight_strides, key->out_strides};
    bool relu = params->activation == DT_ACTIVATION_RELU;
    memset(key, 0, sizeof(*key));
    key->dtype = x->dtype;
    key->tf32 = x->dtype == DT_FLOAT32 && dt_allow_tf32();
    key->channels_last = channels_last;
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

/* An operand as the library takes it: the array itself, or a copy. */
typedef struct {
    dt_array array;
    cuda_temporary copy;
    dt_array kept; /* a weight's copy in its place */
} operand;

static bool
is_aligned(const dt_array *x)
{
    return cuda_address(x) % CONV_ALIGNMENT == 0;
}

/* Whether the library may be given x: it has the layout, and the alignment that plans promise. */
static bool
is_ready(const dt_array *x, bool channels_last)
{
    return cuda_conv_has_layout(x, channels_last) && is_aligned(x);
}

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
    if (is_ready(x, channels_last)) {
        return DT_OK;
    }
    DT_TRY(operand_new(d, x, channels_last, out, err));
    return cuda_copy_within(d, x, &out->array, err);
}

static dt_status
weight_open(cuda_device *d, const dt_array *weight, bool channels_last, operand *out, dt_error *err)
{
    int64_t strides[4];
    if (!is_ready(weight, channels_last)) {
        cuda_conv_strides(weight->shape, channels_last, strides);
        DT_TRY(cuda_weight_get(d, weight, strides, &out->kept, err));
        if (out->kept.storage != NULL) {
            out->array = out->kept;
            return DT_OK;
        }
    }
    return operand_open(d, weight, channels_last, out, err);
}

static dt_status
bias_open(cuda_device *d, const dt_array *bias, operand *out, dt_error *err)
{
    out->array = *bias;
    if (dt_array_is_contiguous(bias) && is_aligned(bias)) {
        return DT_OK;
    }
    DT_TRY(cuda_temporary_init(&out->copy, d, bias, (dt_dtype)bias->dtype, err));
    out->array = out->copy.array;
    return cuda_copy_within(d, bias, &out->array, err);
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

/* What all parts of a batch share; weight and bias are ready, bias may be NULL. */
typedef struct {
    cuda_device *device;
    const dt_array *weight, *bias;
    const dt_conv2d_params *params;
    bool channels_last;
} convolution;

/* x and out are ready; params differ from c's where x has been padded. *images not 0: nothing was done, it is better
 * done so many images at a time. */
static dt_status
call_library(const convolution *c, const dt_array *x, const dt_conv2d_params *params, dt_array *out, int64_t *images,
             dt_error *err)
{
    conv_key key;
    int fused = 0;
    const dt_array *bias = c->bias;
    cuda_conv_key(x, c->weight, bias != NULL, params, out, c->channels_last, &key);
    const conv_pointers pointers = {cuda_address(x), cuda_address(c->weight), bias ? cuda_address(bias) : 0,
                                    cuda_address(out)};
    DT_TRY(cuda_conv_run(c->device, &key, &pointers, &fused, images, err));
    if (*images > 0) {
        return DT_OK;
    }
    return cuda_epilogue(fused & CONV_BIAS ? NULL : bias, 1,
                         fused & CONV_RELU ? DT_ACTIVATION_NONE : params->activation, out, err);
}

/* Where no engine pads the two sides differently: the zeros are written out. */
static dt_status
call_padded(const convolution *c, const dt_array *x, dt_array *out, int64_t *images, dt_error *err)
{
    dt_conv2d_params bare = *c->params;
    operand padded = {0};
    memset(bare.pad_before, 0, sizeof(bare.pad_before));
    memset(bare.pad_after, 0, sizeof(bare.pad_after));
    dt_status rc =
        operand_pad(c->device, x, c->params->pad_before, c->params->pad_after, c->channels_last, &padded, err);
    if (rc == DT_OK) {
        rc = call_library(c, &padded.array, &bare, out, images, err);
    }
    cuda_temporary_clear(&padded.copy);
    return rc;
}

static dt_status
convolve_any_layout(const convolution *c, const dt_array *x, dt_array *out, int64_t *images, dt_error *err)
{
    const dt_conv2d_params *p = c->params;
    bool lopsided = memcmp(p->pad_before, p->pad_after, sizeof(p->pad_before)) != 0;
    operand in = {0}, result = {0};
    dt_array *into = out;
    dt_status rc = operand_open(c->device, x, c->channels_last, &in, err);
    if (rc == DT_OK && !is_ready(out, c->channels_last)) {
        rc = operand_new(c->device, out, c->channels_last, &result, err);
        into = &result.array;
    }
    if (rc == DT_OK) {
        rc = call_library(c, &in.array, p, into, images, err);
        if (rc == DT_ECUDA && lopsided && cuda_conv_refused(err->library_status)) {
            rc = call_padded(c, &in.array, into, images, err);
        }
    }
    if (rc == DT_OK && *images == 0 && into != out) {
        rc = cuda_copy_within(c->device, into, out, err);
    }
    cuda_temporary_clear(&in.copy);
    cuda_temporary_clear(&result.copy);
    return rc;
}

/* ---------------------------------------------------------------- batches */

/* Images [first, first + count) of a batch; borrowed. */
static dt_array
images(const dt_array *x, int64_t first, int64_t count)
{
    dt_array part = *x;
    part.shape[0] = count;
    part.offset += first * x->strides[0] * (int64_t)dt_itemsize((dt_dtype)x->dtype);
    return part;
}

/* cuDNN counts elements in 32 bits: so many images of a batch it takes at once. */
static int64_t
most_images(const dt_array *x, const dt_array *out)
{
    int64_t n = x->shape[0], of_x = dt_array_numel(x) / n, of_out = dt_array_numel(out) / n;
    int64_t most = cuda_size_limit() / (of_x > of_out ? of_x : of_out);
    return most > 0 ? most : 1;
}

/* In parts where the batch is larger, and where there is no room for all of it. */
static dt_status
convolve_batch(const convolution *c, const dt_array *x, dt_array *out, dt_error *err)
{
    int64_t n = x->shape[0], most = most_images(x, out), done = 0;
    while (done < n) {
        int64_t count = cuda_fewer(most, n - done), fewer_images = 0;
        dt_array part_x = images(x, done, count), part_out = images(out, done, count);
        DT_TRY(convolve_any_layout(c, &part_x, &part_out, &fewer_images, err));
        if (fewer_images > 0) {
            most = fewer_images;
        } else {
            done += count;
        }
    }
    return DT_OK;
}

/* ---------------------------------------------------------------- the slot */

dt_status
cuda_conv2d(const dt_array *x, const dt_array *weight, const dt_array *bias, const dt_conv2d_params *params,
            dt_array *out, dt_error *err)
{
    cuda_device *d;
    operand laid_weight = {0}, laid_bias = {0};
    if (dt_array_numel(x) == 0) { /* no channels, or an image of padding alone */
        return bias_only(bias, params->activation, out, err);
    }
    if (cuda_depthwise_applies(x, weight, params)) {
        return cuda_depthwise(x, weight, bias, params, out, err);
    }
    DT_TRY(cuda_enter(out->storage->device.index, &d, err));
    if (cuda_conv_is_product(x, weight, params, out)) {
        bool done;
        DT_TRY(cuda_conv_product(d, x, weight, bias, params, out, &done, err));
        if (done) {
            return DT_OK;
        }
    }
    const convolution c = {d, &laid_weight.array, bias ? &laid_bias.array : NULL, params,
                           !cuda_conv_has_layout(out, false) && cuda_conv_has_layout(out, true)};
    dt_status rc = weight_open(d, weight, c.channels_last, &laid_weight, err);
    if (rc == DT_OK && bias != NULL) {
        rc = bias_open(d, bias, &laid_bias, err);
    }
    if (rc == DT_OK) {
        rc = convolve_batch(&c, x, out, err);
    }
    cuda_weight_release(&laid_weight.kept);
    cuda_temporary_clear(&laid_weight.copy);
    cuda_temporary_clear(&laid_bias.copy);
    return rc;
}

/* ---------------------------------------------------------------- gradients */

/* One gradient: arrays are ready, x or weight is written. *made false: the library has no engine. */
static dt_status
call_gradient(cuda_device *d, int kind, const dt_conv2d_params *params, const dt_array *x, const dt_array *weight,
              const dt_array *grad, bool channels_last, int64_t *images, bool *made, dt_error *err)
{
    conv_key key;
    int fused = 0;
    if (cuda_conv_grad_is_product(kind, x, weight, params, grad)) {
        bool done;
        DT_TRY(cuda_conv_grad_product(d, kind, x, weight, params, grad, &done, err));
        if (done) {
            return DT_OK;
        }
    }
    cuda_conv_key(x, weight, false, params, grad, channels_last, &key);
    key.kind = kind;
    const conv_pointers pointers = {cuda_address(x), cuda_address(weight), 0, cuda_address(grad)};
    dt_status rc = cuda_conv_run(d, &key, &pointers, &fused, images, err);
    *made = !(rc == DT_ECUDA && cuda_conv_refused(err->library_status));
    return *made ? rc : DT_OK;
}

/* A result as the library takes it, and from there to where it belongs. */
static dt_status
result_open(cuda_device *d, dt_array *out, bool channels_last, operand *laid, dt_error *err)
{
    laid->array = *out;
    return is_ready(out, channels_last) ? DT_OK : operand_new(d, out, channels_last, laid, err);
}

static dt_status
result_close(cuda_device *d, dt_status rc, bool wanted, operand *laid, dt_array *out, dt_error *err)
{
    if (rc == DT_OK && wanted && laid->copy.array.storage != NULL) {
        rc = cuda_copy_within(d, &laid->array, out, err);
    }
    cuda_temporary_clear(&laid->copy);
    return rc;
}

/* Nothing came: zeros. */
static dt_status
clear(dt_array *out, dt_error *err)
{
    const dt_scalar zero = dt_scalar_float(0);
    return cuda_fill(out, &zero, err);
}

/* Some images of the gradient of the input, or all. */
static dt_status
input_grad_of_images(cuda_device *d, const dt_array *grad, const dt_array *weight, const dt_conv2d_params *params,
                     bool channels_last, dt_array *out, int64_t *images, bool *made, dt_error *err)
{
    operand laid_grad = {0}, result = {0};
    dt_status rc = operand_open(d, grad, channels_last, &laid_grad, err);
    if (rc == DT_OK) {
        rc = result_open(d, out, channels_last, &result, err);
    }
    if (rc == DT_OK) {
        rc = call_gradient(d, CONV_INPUT_GRAD, params, &result.array, weight, &laid_grad.array, channels_last, images,
                           made, err);
    }
    cuda_temporary_clear(&laid_grad.copy);
    return result_close(d, rc, *made && *images == 0, &result, out, err);
}

dt_status
cuda_conv2d_input_grad(const dt_array *grad, const dt_array *weight, const dt_conv2d_params *params, dt_array *out,
                       bool *made, dt_error *err)
{
    cuda_device *d;
    operand laid = {0};
    const int64_t n = out->shape[0];
    if (dt_array_numel(grad) == 0) {
        return clear(out, err);
    }
    const bool channels_last = !cuda_conv_has_layout(out, false) && cuda_conv_has_layout(out, true);
    DT_TRY(cuda_enter(out->storage->device.index, &d, err));
    dt_status rc = weight_open(d, weight, channels_last, &laid, err);
    int64_t most = most_images(grad, out);
    for (int64_t done = 0; done < n && rc == DT_OK && *made;) {
        int64_t count = cuda_fewer(most, n - done), fewer_images = 0;
        dt_array part_grad = images(grad, done, count), part = images(out, done, count);
        rc = input_grad_of_images(d, &part_grad, &laid.array, params, channels_last, &part, &fewer_images, made, err);
        most = fewer_images > 0 ? fewer_images : most;
        done += fewer_images > 0 ? 0 : count;
    }
    cuda_weight_release(&laid.kept);
    cuda_temporary_clear(&laid.copy);
    return rc;
}

/* The gradient of the weight from some images, or all. */
static dt_status
weight_grad_of_images(cuda_device *d, const dt_array *x, const dt_array *grad, const dt_conv2d_params *params,
                      bool channels_last, dt_array *out, int64_t *images, bool *made, dt_error *err)
{
    operand laid_x = {0}, laid_grad = {0}, result = {0};
    dt_status rc = operand_open(d, x, channels_last, &laid_x, err);
    if (rc == DT_OK) {
        rc = operand_open(d, grad, channels_last, &laid_grad, err);
    }
    if (rc == DT_OK) {
        rc = result_open(d, out, channels_last, &result, err);
    }
    if (rc == DT_OK) {
        rc = call_gradient(d, CONV_WEIGHT_GRAD, params, &laid_x.array, &result.array, &laid_grad.array, channels_last,
                           images, made, err);
    }
    cuda_temporary_clear(&laid_x.copy);
    cuda_temporary_clear(&laid_grad.copy);
    return result_close(d, rc, *made && *images == 0, &result, out, err);
}

/* Parts are added up in their order. */
dt_status
cuda_conv2d_weight_grad(const dt_array *x, const dt_array *grad, const dt_conv2d_params *params, dt_array *out,
                        bool *made, dt_error *err)
{
    cuda_device *d;
    cuda_temporary part_out = {0};
    if (dt_array_numel(grad) == 0 || dt_array_numel(x) == 0) {
        return clear(out, err);
    }
    const int64_t n = x->shape[0];
    const bool channels_last = !cuda_conv_has_layout(x, false) && cuda_conv_has_layout(x, true);
    DT_TRY(cuda_enter(out->storage->device.index, &d, err));
    dt_status rc = DT_OK;
    int64_t most = most_images(x, grad);
    for (int64_t done = 0; done < n && rc == DT_OK && *made;) {
        int64_t count = cuda_fewer(most, n - done), fewer_images = 0;
        const dt_array part_x = images(x, done, count), part_grad = images(grad, done, count);
        if (done > 0 && part_out.array.storage == NULL) {
            rc = cuda_temporary_init(&part_out, d, out, (dt_dtype)out->dtype, err);
        }
        if (rc == DT_OK) {
            rc = weight_grad_of_images(d, &part_x, &part_grad, params, channels_last, done > 0 ? &part_out.array : out,
                                       &fewer_images, made, err);
        }
        if (rc == DT_OK && *made && fewer_images == 0 && done > 0) {
            rc = cuda_binary(DT_BINARY_add, NULL, out, &part_out.array, out, err);
        }
        most = fewer_images > 0 ? fewer_images : most;
        done += fewer_images > 0 ? 0 : count;
    }
    cuda_temporary_clear(&part_out);
    return rc;
}
