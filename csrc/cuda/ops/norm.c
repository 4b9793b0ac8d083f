/* norm.c: layer norm and group norm by kernels of their own, batch norm by those of channels.c; the gradient of group
 * norm is made of other ops. */
#include "../launch/launch.h"
#include "../memory/memory.h"
#include "ops.h"

#define MOST_LANES 8 /* a block */
#define COLUMNS 32   /* of a block that adds rows */
#define LEAST_ROWS 32

static bool
is_aligned(const k_operand *x)
{
    return x->address % K_VECTOR_BYTES == 0; /* of none it is 0 */
}

/* Where rows of x stand, and how the threads of a block are laid over them; x is not empty. */
static k_normalize_args
args_of(const dt_array *x, const dt_array *weight, const dt_array *bias, const dt_normalize_params *params,
        const dt_array *out)
{
    k_normalize_args args = {.n = 1, .eps = params->eps, .centred = params->centred};
    const dt_dtype dtype = (dt_dtype)x->dtype;
    const int64_t each = K_NORMALIZE_KEEP / (dtype == DT_FLOAT64 ? 8 : 4);
    const int64_t width = K_VECTOR_BYTES / (int64_t)dt_itemsize(dtype);
    for (int i = params->lead; i < x->ndim; i++) {
        args.n *= x->shape[i];
    }
    if (params->kind == DT_NORM_GROUPS) {
        args.groups = x->shape[1];
        args.each = x->shape[2];
        args.pixels = args.n / args.each;
    }
    args.x = cuda_operand(x);
    args.out = cuda_operand(out);
    if (weight != NULL) {
        args.weight = cuda_operand(weight);
    }
    if (bias != NULL) {
        args.bias = cuda_operand(bias);
    }
    args.rows = dt_array_numel(x) / args.n;
    args.lanes = cuda_log2((args.n - 1) / each + 1, MOST_LANES);
    args.kept = args.n <= each << args.lanes;
    args.narrow = args.n <= INT32_MAX;
    args.vector = args.n % width == 0 && is_aligned(&args.x) && is_aligned(&args.out) &&
                  (args.pixels > 0 || (is_aligned(&args.weight) && is_aligned(&args.bias)));
    return args;
}

static int64_t
blocks_of(const k_normalize_args *args)
{
    return ((args->rows - 1) >> (MOST_LANES - args->lanes)) + 1;
}

dt_status
cuda_normalize(const dt_array *x, const dt_array *weight, const dt_array *bias, const dt_normalize_params *params,
               dt_array *out, dt_array *stats, bool *made, dt_error *err)
{
    (void)made;
    cuda_device *d;
    CUfunction function;
    if (dt_array_numel(x) == 0) {
        return DT_OK;
    }
    if (params->kind == DT_NORM_CHANNELS) {
        return cuda_channels(x, weight, bias, params->eps, out, stats, err);
    }
    const k_normalize_args args = args_of(x, weight, bias, params, out);
    DT_TRY(cuda_enter(out->storage->device.index, &d, err));
    DT_TRY(cuda_function(d, CUDA_FAMILY_OTHER, CUDA_KERNEL_normalize, (dt_dtype)x->dtype, &function, err));
    return cuda_launch_blocks(d, function, blocks_of(&args), &args, err);
}

/* ---------------------------------------------------------------- the gradient */

/* A matrix of its own. */
static dt_status
make_matrix(cuda_temporary *t, cuda_device *d, const dt_array *like, dt_dtype dtype, int64_t rows, int64_t columns,
            dt_error *err)
{
    dt_array shape = *like;
    shape.ndim = 2;
    shape.shape[0] = rows;
    shape.shape[1] = columns;
    return cuda_temporary_init(t, d, &shape, dtype, err);
}

/* sums (2, n) from the sums of chunks (chunks, 2 * n). */
static dt_status
add_chunks(const dt_array *chunks, const dt_array *sums, dt_error *err)
{
    dt_array columns = *chunks, flat = *sums;
    columns.shape[0] = chunks->shape[1];
    columns.shape[1] = chunks->shape[0];
    columns.strides[0] = 1;
    columns.strides[1] = chunks->shape[1];
    flat.ndim = 1;
    flat.shape[0] = chunks->shape[1];
    flat.strides[0] = 1;
    return cuda_reduce(DT_REDUCE_sum, NULL, &columns, 1, &flat, err);
}

/* The gradients of weight and bias. */
static dt_status
add_rows(cuda_device *d, const k_normalize_grad_args *g, const dt_array *x, dt_array *sums, dt_error *err)
{
    CUfunction function;
    const int64_t tiles = (g->normalize.n - 1) / COLUMNS + 1, wanted = (CUDA_WANTED_BLOCKS - 1) / tiles + 1;
    const int64_t share = (g->normalize.rows - 1) / wanted + 1;
    k_normalize_sums_args args = {.x = g->normalize.x,
                                  .grad = g->grad,
                                  .stats = g->stats,
                                  .rows = g->normalize.rows,
                                  .n = g->normalize.n,
                                  .chunk = share < LEAST_ROWS ? LEAST_ROWS : share};
    const int64_t chunks = (args.rows - 1) / args.chunk + 1;
    cuda_temporary parts = CUDA_TEMPORARY_EMPTY;
    DT_TRY(cuda_function(d, CUDA_FAMILY_OTHER, CUDA_KERNEL_normalize_sums, (dt_dtype)x->dtype, &function, err));
    DT_TRY(make_matrix(&parts, d, x, DT_FLOAT64, chunks, 2 * args.n, err));
    args.out = cuda_operand(&parts.array);
    dt_status rc = cuda_launch_blocks(d, function, tiles * chunks, &args, err);
    rc = rc == DT_OK ? add_chunks(&parts.array, sums, err) : rc;
    cuda_temporary_clear(&parts);
    return rc;
}

dt_status
cuda_normalize_grad(const dt_array *grad, const dt_array *x, const dt_array *weight, const dt_normalize_params *params,
                    dt_array *out, dt_array *sums, bool *made, dt_error *err)
{
    cuda_device *d;
    CUfunction function;
    cuda_temporary stats = CUDA_TEMPORARY_EMPTY;
    *made = params->kind != DT_NORM_GROUPS && dt_array_numel(x) > 0;
    if (!*made) {
        return DT_OK;
    }
    if (params->kind == DT_NORM_CHANNELS) {
        return cuda_channels_grad(grad, x, weight, params->eps, out, sums, err);
    }
    k_normalize_grad_args args = {.normalize = args_of(x, weight, NULL, params, out), .grad = cuda_operand(grad)};
    args.normalize.vector = args.normalize.vector && is_aligned(&args.grad);
    DT_TRY(cuda_enter(out->storage->device.index, &d, err));
    DT_TRY(cuda_function(d, CUDA_FAMILY_OTHER, CUDA_KERNEL_normalize_grad, (dt_dtype)x->dtype, &function, err));
    if (sums != NULL) {
        const dt_dtype wide = x->dtype == DT_FLOAT64 ? DT_FLOAT64 : DT_FLOAT32;
        DT_TRY(make_matrix(&stats, d, x, wide, args.normalize.rows, 2, err));
        args.stats = cuda_operand(&stats.array);
    }
    dt_status rc = cuda_launch_blocks(d, function, blocks_of(&args.normalize), &args, err);
    if (rc == DT_OK && sums != NULL) {
        rc = add_rows(d, &args, x, sums, err);
    }
    cuda_temporary_clear(&stats);
    return rc;
}
