/* pool2d.c: max and average pooling. */
#include "../check/check.h"
#include "../grad/grad.h"
#include "ops.h"
#include "../result.h"

#include <string.h>

static dt_status
check_input(const char *op, const dt_array *input, dt_error *err)
{
    const dt_operand in[] = {{"input", input, -1}};
    DT_TRY(dt_check_float(op, in, 1, err));
    return input->ndim == 3 || input->ndim == 4 ? DT_OK : dt_fail_conv_rank(op, in, 1, 0, err);
}

static dt_status
check_parameters(const char *op, const dt_pool2d_params *p, dt_error *err)
{
    for (int i = 0; i < 2; i++) {
        if (p->kernel[i] <= 0 || p->stride[i] <= 0 || p->dilation[i] <= 0) {
            return dt_fail(err, DT_EVALUE, "invalid-parameter", op,
                           "kernel size, stride and dilation should be greater than zero: got kernel_size=(%lld, "
                           "%lld), stride=(%lld, %lld), "
                           "dilation=(%lld, %lld)",
                           (long long)p->kernel[0], (long long)p->kernel[1], (long long)p->stride[0],
                           (long long)p->stride[1], (long long)p->dilation[0], (long long)p->dilation[1]);
        }
        if (p->padding[i] < 0 || p->padding[i] > p->kernel[i] / 2) {
            return dt_fail(err, DT_EVALUE, "invalid-parameter", op,
                           "pad should be at least 0 and at most half of effective kernel size: got padding=(%lld, "
                           "%lld), kernel_size=(%lld, %lld)",
                           (long long)p->padding[0], (long long)p->padding[1], (long long)p->kernel[0],
                           (long long)p->kernel[1]);
        }
    }
    return DT_OK;
}

/* PyTorch's size: with ceil_mode a last window is added unless it would start in the padding behind the image. The sum
 * of image, padding and window fits in 64 bits, so that no backend overflows. */
static dt_status
output_size(const char *op, int64_t size, dt_pool2d_params *p, int i, bool ceil_mode, int64_t *padded, int64_t *reach,
            int64_t *out, dt_error *err)
{
    int64_t sum;
    if (__builtin_mul_overflow(p->kernel[i] - 1, p->dilation[i], reach) || __builtin_add_overflow(*reach, 1, reach) ||
        __builtin_add_overflow(size, 2 * p->padding[i], padded) || __builtin_add_overflow(*padded, *reach, &sum)) {
        return dt_fail(err, DT_EVALUE, "invalid-parameter", op, "kernel_size=%lld with dilation=%lld is too large",
                       (long long)p->kernel[i], (long long)p->dilation[i]);
    }
    int64_t room = *padded - *reach, stride = p->stride[i];
    if (size == 0) { /* padding alone has no mean and no largest element */
        *padded = 0;
        *out = -1;
    } else if (room < 0) {
        *out = ceil_mode && room > -stride ? 1 : -1;
    } else {
        *out = room / stride + 1;
        /* the next window starts at *out * stride, which may not fit */
        *out += ceil_mode && room % stride != 0 && *out <= (size + p->padding[i] - 1) / stride;
    }
    /* steps that are never taken */
    p->stride[i] = *out == 1 ? 1 : stride;
    p->dilation[i] = p->kernel[i] == 1 ? 1 : p->dilation[i];
    return DT_OK;
}

/* Allocates results like x with a new image size, channels last where x is, and calls the slot. */
static dt_status
pool(const char *op, const dt_array *input, const dt_pool2d_params *params, int64_t height, int64_t width,
     dt_array *out, dt_array *indices, dt_error *err)
{
    DT_RECORD(params->mode == DT_POOL_MAX ? DT_GRAD_max_pool2d : DT_GRAD_avg_pool2d, params, out,
              pool(op, input, params, height, width, out, indices, err), input);
    int64_t shape[DT_MAX_NDIM];
    memcpy(shape, input->shape, sizeof(shape));
    shape[input->ndim - 2] = height;
    shape[input->ndim - 1] = width;
    DT_TRY(dt_shape_check(op, input->ndim, shape, DT_INT64, err));
    const dt_form form = {op,
                          dt_array_device(input),
                          (dt_dtype)input->dtype,
                          input->ndim,
                          shape,
                          .channels_last = dt_is_channels_last(input),
                          .fills = DT_BESIDE_OPERANDS};
    dt_result r;
    DT_TRY(dt_result_open(&r, &form, &input, 1, out, err));
    dt_array none = DT_ARRAY_EMPTY, *positions = indices ? indices : &none;
    dt_status rc = indices ? dt_empty_beside(r.target, DT_INT64, positions, err) : DT_OK;
    if (rc == DT_OK) {
        dt_array x = dt_as_batch(input), y = dt_as_batch(r.target), i = dt_as_batch(positions);
        rc = dt_call_pool2d(&x, params, &y, indices ? &i : NULL, err);
    }
    rc = dt_result_made(rc, positions);
    return dt_result_close(&r, rc, err);
}

dt_status
dt_pool2d(const char *op, const dt_array *input, const dt_pool2d_params *params, bool ceil_mode, dt_array *out,
          dt_array *indices, dt_error *err)
{
    const dt_operand in[] = {{"input", input, -1}};
    DT_TRY(check_input(op, input, err));
    DT_TRY(check_parameters(op, params, err));
    dt_pool2d_params p = *params;
    int64_t padded[2], reach[2], size[2];
    for (int i = 0; i < 2; i++) {
        DT_TRY(
            output_size(op, input->shape[input->ndim - 2 + i], &p, i, ceil_mode, &padded[i], &reach[i], &size[i], err));
    }
    if (size[0] < 0 || size[1] < 0) {
        return dt_fail_window(op, in, 1, padded, reach, err);
    }
    return pool(op, input, &p, size[0], size[1], out, indices, err);
}

dt_status
dt_adaptive_avg_pool2d(const dt_array *input, const int64_t output_size_[2], dt_array *out, dt_error *err)
{
    const char *op = "adaptive_avg_pool2d";
    const dt_operand in[] = {{"input", input, -1}};
    DT_TRY(check_input(op, input, err));
    int64_t size[2];
    for (int i = 0; i < 2; i++) {
        int64_t own = input->shape[input->ndim - 2 + i];
        size[i] = output_size_[i] == -1 ? own : output_size_[i];
        if (size[i] < 0) {
            return dt_fail(err, DT_EVALUE, "invalid-parameter", op,
                           "elements of output_size must be greater than or equal to 0: got (%lld, %lld)",
                           (long long)output_size_[0], (long long)output_size_[1]);
        }
        if (own == 0 && size[i] > 0) {
            const int64_t none[2] = {0, 0}, one[2] = {1, 1};
            return dt_fail_window(op, in, 1, none, one, err);
        }
    }
    const dt_pool2d_params params = {
        .mode = DT_POOL_ADAPTIVE_AVG, .kernel = {1, 1}, .stride = {1, 1}, .dilation = {1, 1}};
    return pool(op, input, &params, size[0], size[1], out, NULL, err);
}
