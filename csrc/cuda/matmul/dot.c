/* dot.c: the product of two long vectors as a reduction, by two launches. The library would give a matrix of one result
 * to few blocks. */
#include "../memory/memory.h"
#include "../ops/ops.h"

#define LONG (INT64_C(1) << 16) /* shorter ones take no longer than a launch */
#define MAX_SPLITS 1024
#define PACKS_WORTH_A_SPLIT 8 /* of each thread */

bool
cuda_dot_applies(const dt_array *a, const dt_array *bias, const dt_matmul_params *params, const dt_array *out)
{
    return a->shape[a->ndim - 1] >= LONG && dt_array_numel(out) == 1 && bias == NULL && params->alpha == 1 &&
           params->beta == 0 && params->activation == DT_ACTIVATION_NONE;
}

static bool
is_vector(const k_operand *x, int64_t stride)
{
    return stride == 1 && x->address % K_VECTOR_BYTES == 0;
}

/* Sums of parts, as wide as they are added. */
static dt_status
add_parts(cuda_device *d, const dt_array *a, const dt_array *b, cuda_temporary *sums, dt_error *err)
{
    CUfunction function;
    dt_dtype dtype = (dt_dtype)a->dtype, compute = dtype == DT_FLOAT64 ? DT_FLOAT64 : DT_FLOAT32;
    k_dot_args args = {.x = cuda_operand(a), .y = cuda_operand(b), .k = a->shape[a->ndim - 1]};
    args.x_stride = a->strides[a->ndim - 1];
    args.y_stride = b->strides[b->ndim - 2];
    args.vector = is_vector(&args.x, args.x_stride) && is_vector(&args.y, args.y_stride);
    int64_t step = CUDA_THREADS * K_VECTOR_BYTES / (int64_t)dt_itemsize(dtype);
    int64_t worth = args.k / (step * PACKS_WORTH_A_SPLIT), splits = worth < MAX_SPLITS ? worth : MAX_SPLITS;
    splits = splits > 0 ? splits : 1;
    args.chunk = (((args.k - 1) / splits + 1 - 1) / step + 1) * step;
    args.splits = (args.k - 1) / args.chunk + 1;
    dt_array like = {.ndim = 1, .shape = {args.splits}};
    DT_TRY(cuda_function(d, CUDA_FAMILY_OTHER, CUDA_KERNEL_dot, dtype, &function, err));
    DT_TRY(cuda_temporary_init(sums, d, &like, compute, err));
    args.sums = cuda_operand(&sums->array);
    return cuda_launch_blocks(d, function, args.splits, &args, err);
}

dt_status
cuda_dot(const dt_array *a, const dt_array *b, dt_array *out, dt_error *err)
{
    cuda_device *d;
    cuda_temporary sums = CUDA_TEMPORARY_EMPTY;
    dt_array sum = *out;
    sum.ndim = 0;
    DT_TRY(cuda_enter(out->storage->device.index, &d, err));
    dt_status rc = add_parts(d, a, b, &sums, err);
    if (rc == DT_OK) {
        rc = cuda_reduce(DT_REDUCE_sum, NULL, &sums.array, 1, &sum, err);
    }
    cuda_temporary_clear(&sums);
    return rc;
}
