/* skinny.c: matrix products that wait for memory and not for arithmetic: few rows, or many small matrices. The library
 * has tiles of at least 32 rows there, most of them empty. */
#include <string.h>

#include "../launch/launch.h"
#include "../ops/ops.h"

#define FULL_BLOCKS 528 /* four for each multiprocessor of a large device; fixed, so that bits do not depend on it */
#define FEWEST_BLOCKS 128
#define FEWEST_DEEP 64  /* so that every thread of a group has some of k */
#define SMALL 32        /* rows, columns and depth of a small product */
#define MANY 64         /* of them */
#define ALONG_COLUMNS 4 /* that a group of threads shares where b is contiguous along k */

static void
shape_of(k_skinny_args *args, const dt_array *a, const dt_array *b, const dt_array *out)
{
    int rows = out->ndim - 2, columns = out->ndim - 1;
    const dt_array *arrays[] = {out, a, b};
    dt_walk walk;
    memset(args, 0, sizeof(*args));
    args->m = out->shape[rows];
    args->n = out->shape[columns];
    args->k = a->shape[columns];
    args->a_strides[0] = a->strides[rows];
    args->a_strides[1] = a->strides[columns];
    args->b_strides[0] = b->strides[rows];
    args->b_strides[1] = b->strides[columns];
    args->out_strides[0] = out->strides[rows];
    args->out_strides[1] = out->strides[columns];
    args->bias_strides[1] = 1;
    cuda_walk_logical(&walk, 0, rows, 3, arrays);
    cuda_index(&args->batch, &walk);
}

static void
swap(int64_t *pair)
{
    int64_t first = pair[0];
    pair[0] = pair[1];
    pair[1] = first;
}

/* out.T = b.T @ a.T */
static void
transpose_product(k_skinny_args *args)
{
    int64_t a_strides[2];
    memcpy(a_strides, args->a_strides, sizeof(a_strides));
    memcpy(args->a_strides, args->b_strides, sizeof(a_strides));
    memcpy(args->b_strides, a_strides, sizeof(a_strides));
    swap(args->a_strides);
    swap(args->b_strides);
    swap(args->out_strides);
    swap(args->bias_strides);
    int64_t m = args->m;
    args->m = args->n;
    args->n = m;
    for (int d = 0; d < DT_MAX_NDIM; d++) {
        int64_t stride = args->batch.strides[1][d];
        args->batch.strides[1][d] = args->batch.strides[2][d];
        args->batch.strides[2][d] = stride;
    }
}

/* Rows of a batch that shares b become rows of one product; false where b is shared otherwise, as it would be read once
 * for each. */
static bool
fold_batch(k_skinny_args *args, int64_t most)
{
    k_index *batch = &args->batch;
    bool shared = batch->numel > 1;
    for (int d = 0; d < batch->ndim; d++) {
        shared = shared && batch->strides[2][d] == 0;
    }
    if (!shared) {
        return true;
    }
    if (args->m > 1 || batch->ndim > 1 || batch->numel > most || args->bias_strides[0] != 0) {
        return false;
    }
    args->m = batch->numel;
    args->a_strides[0] = batch->strides[1][0];
    args->out_strides[0] = batch->strides[0][0];
    memset(batch, 0, sizeof(*batch));
    batch->numel = 1;
    return true;
}

static bool
aligned(uint64_t address, int64_t stride, const int64_t *batch_strides, int64_t width)
{
    bool whole = address % K_VECTOR_BYTES == 0 && stride % width == 0;
    for (int d = 0; d < DT_MAX_NDIM && whole; d++) {
        whole = batch_strides[d] % width == 0;
    }
    return whole;
}

/* Sets how the threads share the work; false where b cannot be read by vectors or would not fill the device. */
static bool
lay_out_lanes(k_skinny_args *args, uint64_t a, uint64_t b, int64_t width, int64_t along_columns)
{
    const k_index *batch = &args->batch;
    int64_t tiles;
    bool along = args->b_strides[0] == 1 && aligned(b, args->b_strides[1], batch->strides[2], width);
    args->across = !along;
    if (args->k < FEWEST_DEEP) {
        return false;
    }
    if (along) {
        args->lanes = 5;
        tiles = (args->n - 1) / (8 * along_columns) + 1;
        while (args->lanes < 8 && tiles * batch->numel < FULL_BLOCKS && args->k >= (2 * width) << args->lanes) {
            args->lanes++;
            tiles = (args->n - 1) / ((CUDA_THREADS >> args->lanes) * along_columns) + 1;
        }
        args->a_vector = args->a_strides[1] == 1 && aligned(a, args->a_strides[0], batch->strides[1], width);
    } else {
        if (args->b_strides[1] != 1 || args->n % width != 0 ||
            !aligned(b, args->b_strides[0], batch->strides[2], width)) {
            return false;
        }
        args->lanes = args->n / (8 * width) * batch->numel >= FULL_BLOCKS ? 5 : 6;
        tiles = (args->n - 1) / ((CUDA_THREADS >> args->lanes) * width) + 1;
    }
    return tiles * batch->numel >= FEWEST_BLOCKS;
}

bool
cuda_skinny_applies(const dt_array *a, const dt_array *b, const dt_array *out, cuda_skinny_plan *plan)
{
    k_skinny_args *args = &plan->args;
    int64_t itemsize = (int64_t)dt_itemsize((dt_dtype)out->dtype), width = K_VECTOR_BYTES / itemsize;
    if (!cuda_settings.skinny || a->dtype != out->dtype) {
        return false;
    }
    shape_of(args, a, b, out);
    if (args->m <= SMALL && args->n <= SMALL && args->k <= SMALL && args->batch.numel >= MANY) {
        int64_t bytes = (args->m + args->n) * args->k * (itemsize == 8 ? 8 : 4);
        args->together = (int32_t)(K_SMALL_SHARED / bytes);
        args->together = args->together < 16 ? args->together : 16;
        args->by_pair = cuda_divisor((args->m + args->n) * args->k);
        args->by_result = cuda_divisor(args->m * args->n);
        args->by_k = cuda_divisor(args->k);
        args->by_n = cuda_divisor(args->n);
        plan->kernel = CUDA_KERNEL_small_matmul;
        return true;
    }
    int64_t few = itemsize == 2 ? 4 : 8; /* more rows of the half types are work for the tensor cores */
    plan->kernel = CUDA_KERNEL_skinny;
    uint64_t left = cuda_address(a), right = cuda_address(b);
    if (args->m > few && args->n <= few) {
        transpose_product(args);
        left = cuda_address(b);
        right = cuda_address(a);
    }
    return args->m <= few && fold_batch(args, few) &&
           lay_out_lanes(args, left, right, width, itemsize == 8 ? ALONG_COLUMNS / 2 : ALONG_COLUMNS);
}

dt_status
cuda_skinny(const dt_array *a, const dt_array *b, const dt_array *bias, const dt_matmul_params *params,
            cuda_skinny_plan *plan, dt_array *out, dt_error *err)
{
    cuda_device *d;
    CUfunction function;
    k_skinny_args *args = &plan->args;
    DT_TRY(cuda_enter(out->storage->device.index, &d, err));
    DT_TRY(cuda_function(d, CUDA_FAMILY_OTHER, (int)plan->kernel, (dt_dtype)out->dtype, &function, err));
    bool transposed = args->bias_strides[0] != 0;
    args->a = cuda_operand(transposed ? b : a);
    args->b = cuda_operand(transposed ? a : b);
    args->out = cuda_operand(out);
    if (bias != NULL) {
        args->bias = cuda_operand(bias);
        args->bias_strides[transposed ? 0 : 1] = bias->strides[0];
    }
    args->alpha = params->alpha;
    args->beta = params->beta;
    args->activation = (int32_t)params->activation;
    int64_t columns = args->across               ? K_VECTOR_BYTES / (int64_t)dt_itemsize((dt_dtype)out->dtype)
                      : out->dtype == DT_FLOAT64 ? ALONG_COLUMNS / 2
                                                 : ALONG_COLUMNS;
    int64_t tiles = (args->n - 1) / ((CUDA_THREADS >> args->lanes) * columns) + 1;
    int64_t blocks =
        plan->kernel == CUDA_KERNEL_skinny ? tiles * args->batch.numel : (args->batch.numel - 1) / args->together + 1;
    return cuda_launch_blocks(d, function, blocks, args, err);
}
