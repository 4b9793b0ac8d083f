/* product_grad.c: the gradients of convolutions of one pixel (1x1) as products of matrices.
 *
 * Which of them are products:
 *   strict float32, float64   the input's: all. The weight's: all with the channels last; of planes, where an image has
 *                             so many pixels that its products are less than its planes: cuDNN is good at the others
 *   half types, TF32          channels last, a stride of 1
 * A stride takes the pixels that it meets out of the image, or puts them back among zeros. */
#include <string.h>

#include "plan.h"
#include "../memory/memory.h"
#include "../ops/ops.h"
#include "../memory/transfer.h"

/* ---------------------------------------------------------------- which */

static int64_t
pixels_of(const dt_array *x)
{
    return x->shape[2] * x->shape[3];
}

/* Pixels of all images are rows of one matrix. */
static bool
is_one_matrix(const dt_array *x, const dt_array *grad)
{
    return cuda_conv_has_layout(x, true) && cuda_conv_has_layout(grad, true);
}

bool
cuda_conv_grad_is_product(int kind, const dt_array *x, const dt_array *weight, const dt_conv2d_params *p,
                          const dt_array *grad)
{
    const int64_t filters = weight->shape[0], channels = weight->shape[1];
    if (pixels_of(weight) != 1 || p->groups != 1 || p->pad_before[0] != 0 || p->pad_before[1] != 0 ||
        p->pad_after[0] != 0 || p->pad_after[1] != 0) {
        return false;
    }
    if (x->dtype != DT_FLOAT64 && (x->dtype != DT_FLOAT32 || dt_allow_tf32())) {
        return is_one_matrix(x, grad) && pixels_of(x) == pixels_of(grad);
    }
    return kind == CONV_INPUT_GRAD || x->shape[0] == 1 || is_one_matrix(x, grad) ||
           filters * channels <= pixels_of(grad) * (filters + channels);
}

/* ---------------------------------------------------------------- matrices */

/* The pixels of x that the convolution meets. */
static dt_array
met_pixels(const dt_array *x, const dt_conv2d_params *p, const dt_array *grad)
{
    dt_array met = *x;
    for (int i = 0; i < 2; i++) {
        met.shape[2 + i] = grad->shape[2 + i];
        met.strides[2 + i] = p->stride[i] * x->strides[2 + i];
    }
    return met;
}

/* A dense array of images as (N * P * Q, C), or (N, C, P * Q). */
static dt_array
as_matrices(const dt_array *x, bool one)
{
    dt_array m = *x;
    m.ndim = one ? 2 : 3;
    m.shape[0] = one ? x->shape[0] * pixels_of(x) : x->shape[0];
    m.shape[1] = x->shape[1];
    m.shape[2] = pixels_of(x);
    dt_array_set_contiguous(&m);
    return m;
}

/* ---------------------------------------------------------------- products */

static dt_status
multiply(const dt_array *a, const dt_array *b, dt_array *out, dt_error *err)
{
    static const dt_matmul_params params = {1.0, 0.0, DT_ACTIVATION_NONE};
    return cuda_matmul(a, b, NULL, &params, out, err);
}

/* filters (K, C), into the dense x */
static dt_status
multiply_filters(const dt_array *filters, const dt_array *grad, const dt_array *x, dt_error *err)
{
    const bool one = is_one_matrix(x, grad);
    const dt_array g = as_matrices(grad, one), turned = cuda_transposed(filters);
    dt_array result = as_matrices(x, one);
    if (one) {
        return multiply(&g, filters, &result, err);
    }
    const dt_array weights = cuda_conv_for_each(&turned, x->shape[0], 0);
    return multiply(&weights, &g, &result, err);
}

/* out[i, j] = the sum over n of parts[n, i, j] */
static dt_status
add_up(const dt_array *parts, dt_array *out, dt_error *err)
{
    dt_array rows = *parts;
    for (int d = 0; d < 3; d++) {
        rows.shape[d] = parts->shape[(d + 1) % 3];
        rows.strides[d] = parts->strides[(d + 1) % 3];
    }
    return cuda_reduce(DT_REDUCE_sum, NULL, &rows, 1, out, err);
}

/* Of the dense x, into filters (K, C): one product, or one for each image and their sum. */
static dt_status
multiply_pixels(cuda_device *d, const dt_array *x, const dt_array *grad, dt_array *filters, dt_error *err)
{
    const bool one = is_one_matrix(x, grad);
    const dt_array g = as_matrices(grad, one), pixels = as_matrices(x, one);
    if (one) {
        const dt_array rows = cuda_transposed(&g);
        return multiply(&rows, &pixels, filters, err);
    }
    const dt_array columns = cuda_transposed(&pixels);
    dt_array products = cuda_conv_for_each(filters, x->shape[0], dt_array_numel(filters));
    if (x->shape[0] == 1) {
        return multiply(&g, &columns, &products, err);
    }
    cuda_temporary parts = CUDA_TEMPORARY_EMPTY;
    DT_TRY(cuda_temporary_try(&parts, d, &products, (dt_dtype)filters->dtype, err));
    dt_status rc = multiply(&g, &columns, &parts.array, err);
    if (rc == DT_OK) {
        rc = add_up(&parts.array, filters, err);
    }
    cuda_temporary_clear(&parts);
    return rc;
}

/* ---------------------------------------------------------------- the gradients */

/* The product, between filters and the dense pixels of met: those of x, or a copy. */
static dt_status
multiply_met(cuda_device *d, int kind, const dt_array *x, const dt_array *met, const dt_array *dense,
             const dt_array *weight, const dt_array *grad, dt_error *err)
{
    const dt_scalar zero = dt_scalar_float(0);
    const bool copied = dense != x;
    dt_array filters = *weight, image = *x, some = *met, copy = *dense;
    filters.ndim = 2;
    dt_array_set_contiguous(&filters);
    if (kind == CONV_WEIGHT_GRAD) {
        DT_TRY(copied ? cuda_copy_within(d, met, &copy, err) : DT_OK);
        return multiply_pixels(d, dense, grad, &filters, err);
    }
    DT_TRY(multiply_filters(&filters, grad, dense, err));
    if (!copied) {
        return DT_OK;
    }
    DT_TRY(cuda_fill(&image, &zero, err));
    return cuda_copy_within(d, dense, &some, err);
}

dt_status
cuda_conv_grad_product(cuda_device *d, int kind, const dt_array *x, const dt_array *weight,
                       const dt_conv2d_params *params, const dt_array *grad, bool *done, dt_error *err)
{
    const dt_array met = met_pixels(x, params, grad), *dense = x;
    cuda_temporary copy = CUDA_TEMPORARY_EMPTY;
    dt_status rc = DT_OK;
    if (pixels_of(&met) != pixels_of(x)) {
        rc = cuda_temporary_try(&copy, d, &met, (dt_dtype)x->dtype, err);
        cuda_conv_strides(met.shape, !cuda_conv_has_layout(x, false), copy.array.strides);
        dense = &copy.array;
    }
    if (rc == DT_OK) {
        rc = multiply_met(d, kind, x, &met, dense, weight, grad, err);
    }
    cuda_temporary_clear(&copy);
    *done = rc != DT_EOUTOFMEMORY; /* cuDNN may need less, and writes all of the result */
    return *done ? rc : DT_OK;
}
