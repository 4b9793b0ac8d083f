/* pool2d.c: max and average pooling. */
#include <string.h>

#include "../launch/launch.h"
#include "ops.h"

#define LEAST_ROWS 8 /* of an image, of a block that finds largest entries */

/* Whether windows are few entries in 32 bits; no sum overflows, as the core has seen to. */
static bool
windows_are_few(const dt_array *x, const dt_pool2d_params *params, const dt_array *results)
{
    for (int d = 0; d < 2; d++) {
        const int64_t reach = (params->kernel[d] - 1) * params->dilation[d] + 1;
        if (params->kernel[d] > K_POOL_FEW || params->stride[d] > cuda_settings.index_limit / 4 ||
            reach > cuda_settings.index_limit / 4 ||
            results->shape[2 + d] * params->stride[d] + reach + x->shape[2 + d] > cuda_settings.index_limit) {
            return false;
        }
    }
    return params->mode != DT_POOL_ADAPTIVE_AVG;
}

/* Whether 32 bits hold every offset in a, and the place after an entry of a window. */
static bool
windows_fit_narrow(const dt_array *a, const dt_pool2d_params *params)
{
    for (int d = 0; d < 2; d++) {
        if (a->shape[2 + d] + params->dilation[d] > cuda_settings.index_limit) {
            return false;
        }
    }
    return cuda_array_fits_narrow(a);
}

/* What both kernels are given: a thread an element of out. */
static k_pool2d_args
pool_args(const dt_array *x, const dt_pool2d_params *params, const dt_array *out)
{
    k_pool2d_args args = {.x = cuda_operand(x), .out = cuda_operand(out), .numel = dt_array_numel(out)};
    args.height = x->shape[2];
    args.width = x->shape[3];
    args.channels_last = out->shape[1] > 1 && out->strides[1] == 1;
    static const int orders[2][4] = {{0, 1, 2, 3}, {0, 2, 3, 1}};
    for (int i = 0; i < 4; i++) {
        args.sizes[i] = out->shape[orders[args.channels_last][i]];
        args.divisor[i] = cuda_divisor(args.sizes[i]);
    }
    args.wide = !windows_fit_narrow(x, params) || !windows_fit_narrow(out, params);
    memcpy(args.x_strides, x->strides, sizeof(args.x_strides));
    memcpy(args.out_strides, out->strides, sizeof(args.out_strides));
    memcpy(args.kernel, params->kernel, sizeof(args.kernel));
    memcpy(args.stride, params->stride, sizeof(args.stride));
    memcpy(args.padding, params->padding, sizeof(args.padding));
    memcpy(args.dilation, params->dilation, sizeof(args.dilation));
    args.divide_by = params->divisor;
    args.count_include_pad = params->count_include_pad;
    args.adaptive = params->mode == DT_POOL_ADAPTIVE_AVG;
    return args;
}

/* Whether the one window of each image is all of it, and its divisor the number of pixels. out lies as reductions write
 * it. */
static bool
is_mean(const dt_array *x, const dt_pool2d_params *p, const dt_array *out)
{
    const int64_t channels = out->shape[1];
    if (p->mode == DT_POOL_MAX || p->divisor != 0 || out->shape[2] != 1 || out->shape[3] != 1 ||
        dt_array_numel(x) == 0 || (channels > 1 && out->strides[1] != 1) ||
        (out->shape[0] > 1 && out->strides[0] != channels)) {
        return false;
    }
    return p->mode == DT_POOL_ADAPTIVE_AVG ||
           (p->padding[0] == 0 && p->padding[1] == 0 && p->kernel[0] >= x->shape[2] && p->kernel[1] >= x->shape[3]);
}

dt_status
cuda_pool2d(const dt_array *x, const dt_pool2d_params *params, dt_array *out, dt_array *indices, dt_error *err)
{
    cuda_device *d;
    CUfunction function;
    cuda_kernel kernel = params->mode == DT_POOL_MAX ? CUDA_KERNEL_max_pool2d : CUDA_KERNEL_avg_pool2d;
    if (is_mean(x, params, out)) { /* a row to a block, not to a thread */
        return cuda_reduce(DT_REDUCE_mean, NULL, x, 2, out, err);
    }
    DT_TRY(cuda_enter(out->storage->device.index, &d, err));
    DT_TRY(cuda_function(d, CUDA_FAMILY_OTHER, (int)kernel, (dt_dtype)x->dtype, &function, err));
    k_pool2d_args args = pool_args(x, params, out);
    args.few = !args.wide && windows_are_few(x, params, out);
    if (indices != NULL) {
        args.indices = cuda_operand(indices);
        memcpy(args.indices_strides, indices->strides, sizeof(args.indices_strides));
    }
    return cuda_launch(d, function, args.numel, &args, err);
}

/* How many rows of an image a block takes: as few as give the device work, but for what they share with others. 0: the
 * windows over one are too many. */
static int64_t
rows_of_block(const dt_array *x, const dt_pool2d_params *p, const dt_array *grad)
{
    const int64_t images = x->shape[0] * x->shape[1], height = x->shape[2];
    for (int64_t rows = height;; rows = (rows + 1) / 2) {
        const int64_t windows = (rows + (p->kernel[0] - 1) * p->dilation[0] - 1) / p->stride[0] + 1;
        if (windows <= K_POOL_WINDOWS / grad->shape[3] &&
            (rows <= LEAST_ROWS || images * ((height - 1) / rows + 1) >= 4 * CUDA_WANTED_BLOCKS)) {
            return rows;
        }
        if (rows == 1) {
            return 0;
        }
    }
}

dt_status
cuda_max_pool2d_grad(const dt_array *x, const dt_array *grad, const dt_pool2d_params *params, dt_array *out,
                     dt_error *err)
{
    cuda_device *d;
    CUfunction function;
    DT_TRY(cuda_enter(out->storage->device.index, &d, err));
    k_max_pool2d_grad_args args = {
        .pool = pool_args(x, params, out),
        .grad = cuda_operand(grad),
        .results = {grad->shape[2], grad->shape[3]},
    };
    memcpy(args.grad_strides, grad->strides, sizeof(args.grad_strides));
    if (!args.pool.wide && !args.pool.channels_last && windows_are_few(x, params, grad)) {
        args.rows = rows_of_block(x, params, grad);
    }
    const cuda_kernel kernel = args.rows > 0 ? CUDA_KERNEL_max_pool2d_grad_rows : CUDA_KERNEL_max_pool2d_grad;
    DT_TRY(cuda_function(d, CUDA_FAMILY_OTHER, (int)kernel, (dt_dtype)x->dtype, &function, err));
    if (args.rows > 0) {
        args.by_columns = cuda_divisor(args.results[1]);
        args.by_stride[0] = cuda_divisor(params->stride[0]);
        args.by_stride[1] = cuda_divisor(params->stride[1]);
        const int64_t images = x->shape[0] * x->shape[1];
        return cuda_launch_blocks(d, function, images * ((x->shape[2] - 1) / args.rows + 1), &args, err);
    }
    return cuda_launch(d, function, args.pool.numel, &args, err);
}
