/* product.c: convolutions whose windows do not overlap, as products of matrices: those of one pixel (1x1), patches
 * (ViT) and windows as large as the image. A row of the one matrix is a window, a row of the other is a filter.
 *
 * Which of them are products:
 *   strict float32, float64   all: cuDNN has no tensor cores for them, and fused graphs only from the fallback list
 *   half types, TF32          windows as large as the image: cuDNN has no tensor cores for them
 *                             patches of channels that do not fill 16 bytes: cuDNN pads them, or has no tensor cores
 *                             one pixel, channels last, without a ReLU (cuDNN has that in its graph, cuBLASLt has not)
 * All others of the half types and TF32 are cuDNN's, which does not need the copy that makes rows of windows. */
#include <string.h>

#include "plan.h"
#include "../memory/memory.h"
#include "../ops/ops.h"
#include "../memory/transfer.h"
#include "weights.h"

#define CHANNEL_BYTES 16 /* that engines with tensor cores read at once */

/* ---------------------------------------------------------------- which */

static bool
is_disjoint(const dt_array *weight, const dt_conv2d_params *p, const dt_array *out)
{
    for (int i = 0; i < 2; i++) {
        int64_t kernel = weight->shape[2 + i];
        if (p->pad_before[i] != 0 || p->pad_after[i] != 0 || (kernel > 1 && p->dilation[i] != 1) ||
            (out->shape[2 + i] > 1 && p->stride[i] < kernel)) {
            return false;
        }
    }
    return p->groups == 1;
}

bool
cuda_conv_is_product(const dt_array *x, const dt_array *weight, const dt_conv2d_params *p, const dt_array *out)
{
    bool last = cuda_conv_has_layout(out, true);
    if (!is_disjoint(weight, p, out) || !(last || cuda_conv_has_layout(out, false))) {
        return false;
    }
    if (x->dtype == DT_FLOAT64 || (x->dtype == DT_FLOAT32 && !dt_allow_tf32())) {
        return true;
    }
    int64_t pixels = out->shape[2] * out->shape[3], itemsize = (int64_t)dt_itemsize((dt_dtype)x->dtype);
    if (weight->shape[2] * weight->shape[3] == 1) {
        return last && cuda_conv_has_layout(x, true) && pixels == x->shape[2] * x->shape[3] &&
               p->activation != DT_ACTIVATION_RELU;
    }
    return pixels == 1 || x->shape[1] * itemsize % CHANNEL_BYTES != 0;
}

/* ---------------------------------------------------------------- matrices */

/* Joins dimensions [first, end) of x to one; false where they have no common stride. */
static bool
join(dt_array *x, int first, int end)
{
    int64_t size = 1, stride = 1;
    for (int d = end - 1; d >= first; d--) {
        if (x->shape[d] == 1) {
            continue;
        }
        if (size > 1 && x->strides[d] != size * stride) {
            return false;
        }
        stride = size > 1 ? stride : x->strides[d];
        size *= x->shape[d];
    }
    x->shape[first] = size;
    x->strides[first] = stride;
    for (int d = end; d < x->ndim; d++) {
        x->shape[first + 1 + d - end] = x->shape[d];
        x->strides[first + 1 + d - end] = x->strides[d];
    }
    x->ndim = (uint8_t)(x->ndim - (end - first - 1));
    return true;
}

/* (filters, elements) of weight (filters, C, R, S); elements with the channels last, or first. */
static bool
rows_of_filters(const dt_array *weight, bool channels_last, dt_array *rows)
{
    static const int orders[2][4] = {{0, 1, 2, 3}, {0, 2, 3, 1}};
    *rows = *weight;
    for (int i = 0; i < 4; i++) {
        rows->shape[i] = weight->shape[orders[channels_last][i]];
        rows->strides[i] = weight->strides[orders[channels_last][i]];
    }
    return join(rows, 1, 4);
}

/* (N, P, Q, elements of a window), the elements in the order of the filters' (three dimensions). */
static dt_array
windows_of(const dt_array *x, const dt_array *weight, const dt_conv2d_params *p, const dt_array *out,
           bool channels_last)
{
    const int64_t *s = x->strides, *kernel = weight->shape;
    const int64_t shapes[2][3] = {{kernel[1], kernel[2], kernel[3]}, {kernel[2], kernel[3], kernel[1]}};
    const int64_t strides[2][3] = {{s[1], s[2], s[3]}, {s[2], s[3], s[1]}};
    dt_array windows = *x;
    windows.ndim = 6;
    windows.shape[1] = out->shape[2];
    windows.shape[2] = out->shape[3];
    windows.strides[1] = p->stride[0] * s[2];
    windows.strides[2] = p->stride[1] * s[3];
    memcpy(windows.shape + 3, shapes[channels_last], sizeof(shapes[0]));
    memcpy(windows.strides + 3, strides[channels_last], sizeof(strides[0]));
    return windows;
}

/* (N, P * Q, elements) */
static bool
rows_of_windows(const dt_array *windows, dt_array *rows)
{
    *rows = *windows;
    return join(rows, 3, 6) && join(rows, 1, 3);
}

dt_array
cuda_conv_for_each(const dt_array *x, int64_t n, int64_t step)
{
    dt_array all = *x;
    all.ndim = 3;
    all.shape[0] = n;
    all.strides[0] = step;
    memcpy(all.shape + 1, x->shape, 2 * sizeof(int64_t));
    memcpy(all.strides + 1, x->strides, 2 * sizeof(int64_t));
    return all;
}

/* ---------------------------------------------------------------- the product */

/* filters (K, elements), windows (N, P * Q, elements) */
static dt_status
multiply_windows(cuda_device *d, const dt_array *filters, const dt_array *windows, const dt_array *bias,
                 dt_activation activation, dt_array *out, dt_error *err)
{
    dt_matmul_params params = {1.0, 0.0, activation};
    dt_array result = *out, weights = cuda_conv_for_each(filters, windows->shape[0], 0);
    result.ndim = 3;
    result.shape[1] = filters->shape[0];
    result.shape[2] = windows->shape[1];
    dt_array_set_contiguous(&result);
    if (cuda_conv_has_layout(out, true)) {
        int64_t channels = result.shape[1];
        result.shape[1] = result.shape[2];
        result.shape[2] = channels;
        dt_array_set_contiguous(&result);
        weights = cuda_transposed(&weights);
        return cuda_matmul(windows, &weights, bias, &params, &result, err);
    }
    const dt_array columns = cuda_transposed(windows);
    params.activation = DT_ACTIVATION_NONE;
    if (bias != NULL) { /* cuBLASLt adds one along rows only */
        dt_array planes;
        cuda_along(bias, 1, out, &planes);
        params.beta = 1.0;
        DT_TRY(cuda_copy_within(d, &planes, out, err));
    }
    DT_TRY(cuda_matmul(&weights, &columns, NULL, &params, &result, err));
    return cuda_epilogue(NULL, 1, activation, out, err);
}

/* The weight as a contiguous array: one that is kept, or for this call. */
typedef struct {
    dt_array kept;
    cuda_temporary copy;
} contiguous_weight;

static dt_status
weight_open(cuda_device *d, contiguous_weight *w, const dt_array **weight, dt_error *err)
{
    int64_t strides[4];
    cuda_conv_strides((*weight)->shape, false, strides);
    DT_TRY(cuda_weight_get(d, *weight, strides, &w->kept, err));
    if (w->kept.storage != NULL) {
        *weight = &w->kept;
        return DT_OK;
    }
    return cuda_contiguous(d, *weight, &w->copy, weight, err);
}

static void
weight_close(contiguous_weight *w)
{
    cuda_weight_release(&w->kept);
    cuda_temporary_clear(&w->copy);
}

dt_status
cuda_conv_product(cuda_device *d, const dt_array *x, const dt_array *weight, const dt_array *bias,
                  const dt_conv2d_params *params, dt_array *out, bool *done, dt_error *err)
{
    contiguous_weight laid_weight = {0};
    cuda_temporary windows_copy = CUDA_TEMPORARY_EMPTY;
    dt_array filters, rows;
    dt_status rc = DT_OK;
    bool last = !rows_of_filters(weight, false, &filters);
    if (last && !rows_of_filters(weight, true, &filters)) {
        last = false;
        rc = weight_open(d, &laid_weight, &weight, err);
        (void)rows_of_filters(weight, false, &filters);
    }
    const dt_array windows = windows_of(x, weight, params, out, last);
    if (rc == DT_OK && !rows_of_windows(&windows, &rows)) {
        rc = cuda_temporary_try(&windows_copy, d, &windows, (dt_dtype)x->dtype, err);
        if (rc == DT_OK) {
            rc = cuda_copy_within(d, &windows, &windows_copy.array, err);
            (void)rows_of_windows(&windows_copy.array, &rows);
        }
    }
    if (rc == DT_OK) {
        rc = multiply_windows(d, &filters, &rows, bias, params->activation, out, err);
    }
    *done = rc != DT_EOUTOFMEMORY; /* cuDNN may need less, and writes all of out */
    weight_close(&laid_weight);
    cuda_temporary_clear(&windows_copy);
    return *done ? rc : DT_OK;
}
