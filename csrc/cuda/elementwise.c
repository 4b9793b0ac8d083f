/* elementwise.c: unary, binary and ternary ops. */
#include "cuda.h"

#define MAX_ARRAYS 4

static dt_status
launch_elementwise(cuda_family family, int op, dt_dtype dtype, const dt_params *params, int narrays,
                   const dt_array *const *arrays, dt_error *err)
{
    cuda_device *d;
    CUfunction function;
    k_elementwise_args args = {0};
    DT_TRY(cuda_enter(arrays[0]->storage->device.index, &d, err));
    DT_TRY(cuda_function(d, family, op, dtype, &function, err));
    dt_walk_init(&args.walk, narrays, arrays);
    for (int i = 0; i < narrays; i++) {
        args.array[i] = cuda_operand(arrays[i]);
    }
    for (int i = 0; params != NULL && i < 2; i++) {
        args.f[i] = params->f[i];
        args.i[i] = params->i[i];
    }
    return cuda_launch(d, function, args.walk.numel, &args, err);
}

dt_status
cuda_unary(dt_unary_op op, const dt_params *params, const dt_array *x, dt_array *out, dt_error *err)
{
    const dt_array *arrays[] = {out, x};
    return launch_elementwise(CUDA_FAMILY_UNARY, (int)op, (dt_dtype)x->dtype, params, 2, arrays, err);
}

dt_status
cuda_binary(dt_binary_op op, const dt_params *params, const dt_array *a, const dt_array *b, dt_array *out,
            dt_error *err)
{
    const dt_array *arrays[] = {out, a, b};
    return launch_elementwise(CUDA_FAMILY_BINARY, (int)op, (dt_dtype)a->dtype, params, 3, arrays, err);
}

dt_status
cuda_ternary(dt_ternary_op op, const dt_array *a, const dt_array *b, const dt_array *c, dt_array *out, dt_error *err)
{
    const dt_array *arrays[MAX_ARRAYS] = {out, a, b, c};
    cuda_kernel kernel = op == DT_TERNARY_where ? CUDA_KERNEL_where : CUDA_KERNEL_lerp;
    return launch_elementwise(CUDA_FAMILY_OTHER, (int)kernel, (dt_dtype)out->dtype, NULL, MAX_ARRAYS, arrays, err);
}
