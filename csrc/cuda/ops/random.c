/* random.c: random numbers, dropout, arange, and the triangles of a matrix. */
#include <string.h>

#include "../launch/launch.h"
#include "ops.h"

static int64_t
width_of(const dt_array *out)
{
    return K_RANDOM_WIDTH(dt_itemsize((dt_dtype)out->dtype));
}

/* Elements that a thread writes at once. */
static int64_t
unit_of(const dt_walk *walk, const dt_array *out)
{
    int64_t width = width_of(out), nbytes = width * (int64_t)dt_itemsize((dt_dtype)out->dtype);
    bool flat = walk->ndim == 1 && walk->strides[0][0] == 1;
    return flat && cuda_address(out) % (uint64_t)nbytes == 0 ? width : 1;
}

dt_status
cuda_random(dt_array *out, const dt_random_params *params, dt_error *err)
{
    static const cuda_kernel kernels[] = {
        [DT_RANDOM_UNIFORM] = CUDA_KERNEL_uniform,
        [DT_RANDOM_NORMAL] = CUDA_KERNEL_normal,
        [DT_RANDOM_INTEGERS] = CUDA_KERNEL_integers,
        [DT_RANDOM_PERMUTATION] = CUDA_KERNEL_permutation,
    };
    cuda_device *d;
    CUfunction function;
    k_random_args args = {.seed = params->seed,
                          .offset = params->offset,
                          .a = params->a,
                          .b = params->b,
                          .low = params->low,
                          .high = params->high};
    const dt_array *arrays[] = {out};
    dt_walk walk;
    DT_TRY(cuda_enter(out->storage->device.index, &d, err));
    DT_TRY(cuda_function(d, CUDA_FAMILY_OTHER, (int)kernels[params->kind], (dt_dtype)out->dtype, &function, err));
    cuda_walk_logical(&walk, 0, out->ndim, 1, arrays);
    cuda_index(&args.index, &walk);
    args.out = cuda_operand(out);
    args.unit = unit_of(&walk, out);
    int64_t each = params->kind == DT_RANDOM_PERMUTATION ? 1 : width_of(out);
    return cuda_launch(d, function, (walk.numel - 1) / each + 1, &args, err);
}

dt_status
cuda_dropout(const dt_array *x, dt_array *out, const dt_random_params *params, dt_error *err)
{
    cuda_device *d;
    CUfunction function;
    k_dropout_args args = {
        .seed = params->seed, .offset = params->offset, .factor = params->b, .least = (float)params->a};
    const dt_array *arrays[] = {out, x};
    const int64_t itemsize = (int64_t)dt_itemsize((dt_dtype)out->dtype), width = K_DROPOUT_WIDTH(itemsize);
    dt_walk walk;
    DT_TRY(cuda_enter(out->storage->device.index, &d, err));
    DT_TRY(cuda_function(d, CUDA_FAMILY_OTHER, CUDA_KERNEL_dropout, (dt_dtype)out->dtype, &function, err));
    cuda_walk_logical(&walk, 0, out->ndim, 2, arrays);
    cuda_index(&args.index, &walk);
    args.out = cuda_operand(out);
    args.x = cuda_operand(x);
    const bool flat = walk.ndim == 1 && walk.strides[0][0] == 1 && walk.strides[1][0] == 1;
    args.unit = flat && (cuda_address(out) | cuda_address(x)) % (uint64_t)(width * itemsize) == 0 ? width : 1;
    return cuda_launch(d, function, (walk.numel - 1) / width + 1, &args, err);
}

dt_status
cuda_arange(dt_array *out, const dt_scalar *start, const dt_scalar *step, dt_error *err)
{
    cuda_device *d;
    CUfunction function;
    k_arange_args args = {.start = start->f, .step = step->f, .first = start->i, .increment = step->i};
    const dt_array *arrays[] = {out};
    dt_walk walk;
    DT_TRY(cuda_enter(out->storage->device.index, &d, err));
    DT_TRY(cuda_function(d, CUDA_FAMILY_OTHER, CUDA_KERNEL_arange, (dt_dtype)out->dtype, &function, err));
    cuda_walk_logical(&walk, 0, out->ndim, 1, arrays);
    cuda_index(&args.index, &walk);
    args.out = cuda_operand(out);
    args.unit = unit_of(&walk, out);
    return cuda_launch(d, function, (walk.numel - 1) / width_of(out) + 1, &args, err);
}

dt_status
cuda_tri(const dt_array *x, dt_array *out, int64_t diagonal, bool upper, dt_error *err)
{
    cuda_device *d;
    CUfunction function;
    k_tri_args args = {.upper = upper};
    DT_TRY(cuda_enter(out->storage->device.index, &d, err));
    DT_TRY(cuda_function(d, CUDA_FAMILY_OTHER, CUDA_KERNEL_tri, (dt_dtype)out->dtype, &function, err));
    int64_t rows = out->shape[out->ndim - 2], columns = out->shape[out->ndim - 1]; /* far diagonals must not overflow */
    args.diagonal = diagonal > columns ? columns : diagonal < -rows ? -rows : diagonal;
    dt_walk walk = {.ndim = out->ndim, .narrays = 2, .numel = dt_array_numel(out)}; /* the matrix must stay */
    memcpy(walk.shape, out->shape, sizeof(out->shape));
    memcpy(walk.strides[0], out->strides, sizeof(out->strides));
    memcpy(walk.strides[1], x->strides, sizeof(x->strides));
    cuda_index(&args.index, &walk);
    args.out = cuda_operand(out);
    args.x = cuda_operand(x);
    return cuda_launch(d, function, walk.numel, &args, err);
}
