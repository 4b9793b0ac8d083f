/* remap.c: places of the input along two neighbouring dimensions. */
#include "../../core/ops/remap.h"
#include "../launch/launch.h"
#include "ops.h"

_Static_assert((int)K_REMAP_SAME == DT_REMAP_SAME && (int)K_REMAP_FLIP == DT_REMAP_FLIP &&
                   (int)K_REMAP_REFLECT == DT_REMAP_REFLECT && (int)K_REMAP_REPLICATE == DT_REMAP_REPLICATE &&
                   (int)K_REMAP_CIRCULAR == DT_REMAP_CIRCULAR && (int)K_REMAP_NEAREST == DT_REMAP_NEAREST &&
                   (int)K_REMAP_LINEAR == DT_REMAP_LINEAR,
               "kernels are given the core's numbers");

static k_remap_dim
dim_of(const dt_remap_dim *along, int64_t n)
{
    const int64_t after = along->size - n - along->before;
    const int64_t first = along->before < 0 ? -along->before : 0; /* what is taken away does not come round */
    return (k_remap_dim){.kind = (int32_t)along->kind,
                         .shift = (float)along->shift,
                         .n = n,
                         .before = along->before,
                         .first = first,
                         .period = n - first + (after < 0 ? after : 0),
                         .step = along->step};
}

dt_status
cuda_remap(const dt_array *x, const dt_remap_params *params, dt_array *out, bool *made, dt_error *err)
{
    (void)made;
    cuda_device *d;
    CUfunction function;
    const int dim = params->dim;
    const bool linear = params->along[0].kind == DT_REMAP_LINEAR || params->along[1].kind == DT_REMAP_LINEAR;
    const int64_t width = K_VECTOR_BYTES / (int64_t)dt_itemsize((dt_dtype)x->dtype);
    k_remap_args args = {
        .x = cuda_operand(x),
        .out = cuda_operand(out),
        .numel = dt_array_numel(out),
        .sizes = {1, out->shape[dim], out->shape[dim + 1], 1},
        .dim = {dim_of(&params->along[0], x->shape[dim]), dim_of(&params->along[1], x->shape[dim + 1])},
        .columns_first = params->columns_first};
    for (int i = 0; i < out->ndim; i++) {
        args.sizes[0] *= i < dim ? out->shape[i] : 1;
        args.sizes[3] *= i > dim + 1 ? out->shape[i] : 1;
    }
    for (int i = 0; i < 4; i++) {
        args.divisor[i] = cuda_divisor(args.sizes[i]);
    }
    args.wide = args.numel > cuda_settings.index_limit;
    args.vector = args.numel % width == 0 && args.out.address % K_VECTOR_BYTES == 0;
    DT_TRY(cuda_enter(out->storage->device.index, &d, err));
    DT_TRY(cuda_function(d, CUDA_FAMILY_OTHER, linear ? CUDA_KERNEL_remap_linear : CUDA_KERNEL_remap,
                         (dt_dtype)x->dtype, &function, err));
    return cuda_launch(d, function, (args.numel - 1) / width + 1, &args, err);
}
