/* pool2d.c: max and average pooling. */
#include <string.h>

#include "launch.h"
#include "ops.h"

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

dt_status
cuda_pool2d(const dt_array *x, const dt_pool2d_params *params, dt_array *out, dt_array *indices, dt_error *err)
{
    cuda_device *d;
    CUfunction function;
    k_pool2d_args args = {0};
    cuda_kernel kernel = params->mode == DT_POOL_MAX ? CUDA_KERNEL_max_pool2d : CUDA_KERNEL_avg_pool2d;
    DT_TRY(cuda_enter(out->storage->device.index, &d, err));
    DT_TRY(cuda_function(d, CUDA_FAMILY_OTHER, (int)kernel, (dt_dtype)x->dtype, &function, err));
    args.x = cuda_operand(x);
    args.out = cuda_operand(out);
    args.height = x->shape[2];
    args.width = x->shape[3];
    args.channels_last = out->shape[1] > 1 && out->strides[1] == 1;
    static const int orders[2][4] = {{0, 1, 2, 3}, {0, 2, 3, 1}};
    for (int i = 0; i < 4; i++) {
        args.sizes[i] = out->shape[orders[args.channels_last][i]];
        args.divisor[i] = cuda_divisor(args.sizes[i]);
    }
    args.numel = dt_array_numel(out);
    args.wide = !windows_fit_narrow(x, params) || !windows_fit_narrow(out, params);
    memcpy(args.x_strides, x->strides, sizeof(args.x_strides));
    memcpy(args.out_strides, out->strides, sizeof(args.out_strides));
    if (indices != NULL) {
        args.indices = cuda_operand(indices);
        memcpy(args.indices_strides, indices->strides, sizeof(args.indices_strides));
    }
    memcpy(args.kernel, params->kernel, sizeof(args.kernel));
    memcpy(args.stride, params->stride, sizeof(args.stride));
    memcpy(args.padding, params->padding, sizeof(args.padding));
    memcpy(args.dilation, params->dilation, sizeof(args.dilation));
    args.divide_by = params->divisor;
    args.count_include_pad = params->count_include_pad;
    args.adaptive = params->mode == DT_POOL_ADAPTIVE_AVG;
    return cuda_launch(d, function, args.numel, &args, err);
}
