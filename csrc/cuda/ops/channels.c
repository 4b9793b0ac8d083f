/* channels.c: batch norm, by the numbers of the batch and by those that are known. */
#include "../launch/launch.h"
#include "../memory/memory.h"
#include "ops.h"

#define MOST_SPLITS CUDA_THREADS
#define LONG_CHUNK 8192 /* elements: what puts parts together is little beside it */
#define SHORT_CHUNK 1024
#define MANY_CHANNELS 64 /* that keep half of a large device busy: one launch for them is less than two for parts */

static bool
is_aligned(const k_operand *x)
{
    return x->address % K_VECTOR_BYTES == 0; /* of none it is 0 */
}

/* Long chunks, or shorter ones where these are too few for the device. */
static void
cut(k_channels_args *args, int64_t width)
{
    int64_t splits = (args->n - 1) / LONG_CHUNK + 1;
    if (splits * args->channels < CUDA_WANTED_BLOCKS && (splits > 1 || args->channels < MANY_CHANNELS)) {
        splits = cuda_fewer((CUDA_WANTED_BLOCKS - 1) / args->channels + 1, (args->n - 1) / SHORT_CHUNK + 1);
    }
    splits = cuda_fewer(splits, MOST_SPLITS);
    const int64_t share = (args->n - 1) / splits + 1;
    args->chunk = ((share - 1) / width + 1) * width;
    args->splits = (args->n - 1) / args->chunk + 1;
}

static k_channels_args
args_of(const dt_array *x, const dt_array *weight, double eps, const dt_array *out, const dt_array *stats)
{
    const int64_t width = K_VECTOR_BYTES / (int64_t)dt_itemsize((dt_dtype)x->dtype);
    k_channels_args args = {.x = cuda_operand(x), .out = cuda_operand(out), .channels = x->shape[1], .eps = eps};
    args.n = dt_array_numel(x) / args.channels;
    args.pixels = args.n / x->shape[0];
    args.by_pixels = cuda_divisor(args.pixels);
    if (weight != NULL) {
        args.weight = cuda_operand(weight);
    }
    if (stats != NULL) {
        args.stats = cuda_operand(stats);
    }
    args.narrow = args.n <= cuda_settings.index_limit;
    args.vector = args.pixels % width == 0 && is_aligned(&args.x) && is_aligned(&args.out);
    args.stage = K_STAGE_WHOLE;
    cut(&args, width);
    return args;
}

static dt_status
run(cuda_device *d, CUfunction function, const k_channels_args *channels, const void *args, dt_error *err)
{
    return cuda_launch_blocks(d, function, channels->channels * channels->splits, args, err);
}

/* Scratch memory for nbytes of each chunk. */
static dt_status
allocate_parts(cuda_device *d, const k_channels_args *args, size_t nbytes, k_operand *parts, dt_error *err)
{
    CUdeviceptr address;
    const size_t all = (size_t)(args->channels * args->splits) * nbytes;
    DT_TRY(cuda_allocate(d, all, &address, err));
    parts->address = address;
    parts->nbytes = all;
    return DT_OK;
}

static void
release_parts(cuda_device *d, const k_operand *parts)
{
    cuda_release(d, parts->address, parts->nbytes);
}

dt_status
cuda_channels(const dt_array *x, const dt_array *weight, const dt_array *bias, double eps, dt_array *out,
              dt_array *stats, dt_error *err)
{
    cuda_device *d;
    CUfunction function;
    k_channels_args args = args_of(x, weight, eps, out, stats);
    if (bias != NULL) {
        args.bias = cuda_operand(bias);
    }
    DT_TRY(cuda_enter(out->storage->device.index, &d, err));
    DT_TRY(cuda_function(d, CUDA_FAMILY_OTHER, CUDA_KERNEL_channels, (dt_dtype)x->dtype, &function, err));
    if (args.splits == 1) {
        return run(d, function, &args, &args, err);
    }
    DT_TRY(allocate_parts(d, &args, K_MOMENTS_BYTES, &args.parts, err));
    args.stage = K_STAGE_PARTIAL;
    dt_status rc = run(d, function, &args, &args, err);
    args.stage = K_STAGE_COMBINE;
    rc = rc == DT_OK ? run(d, function, &args, &args, err) : rc;
    release_parts(d, &args.parts);
    return rc;
}

/* The numbers of the channels, then the sums of products, then the result: each launch over all chunks. */
static dt_status
grad_by_parts(cuda_device *d, CUfunction measure, CUfunction function, k_channels_grad_args *args, dt_error *err)
{
    k_channels_args *channels = &args->channels;
    channels->stage = K_STAGE_PARTIAL;
    DT_TRY(run(d, measure, channels, channels, err));
    DT_TRY(run(d, function, channels, args, err));
    channels->stage = K_STAGE_COMBINE;
    return run(d, function, channels, args, err);
}

dt_status
cuda_channels_grad(const dt_array *grad, const dt_array *x, const dt_array *weight, double eps, dt_array *out,
                   dt_array *sums, dt_error *err)
{
    cuda_device *d;
    CUfunction measure, function;
    k_channels_grad_args args = {.channels = args_of(x, weight, eps, out, sums), .grad = cuda_operand(grad)};
    args.channels.vector = args.channels.vector && is_aligned(&args.grad);
    DT_TRY(cuda_enter(out->storage->device.index, &d, err));
    DT_TRY(cuda_function(d, CUDA_FAMILY_OTHER, CUDA_KERNEL_channels, (dt_dtype)x->dtype, &measure, err));
    DT_TRY(cuda_function(d, CUDA_FAMILY_OTHER, CUDA_KERNEL_channels_grad, (dt_dtype)x->dtype, &function, err));
    if (args.channels.splits == 1) {
        return run(d, function, &args.channels, &args, err);
    }
    DT_TRY(allocate_parts(d, &args.channels, K_MOMENTS_BYTES, &args.channels.parts, err));
    dt_status rc = allocate_parts(d, &args.channels, 2 * sizeof(double), &args.products, err);
    if (rc == DT_OK) {
        rc = grad_by_parts(d, measure, function, &args, err);
        release_parts(d, &args.products);
    }
    release_parts(d, &args.channels.parts);
    return rc;
}

dt_status
cuda_batch_norm(const dt_array *x, const dt_array *mean, const dt_array *var, const dt_array *weight,
                const dt_array *bias, double eps, dt_array *out, bool *made, dt_error *err)
{
    (void)made;
    cuda_device *d;
    CUfunction function;
    const int64_t width = K_VECTOR_BYTES / (int64_t)dt_itemsize((dt_dtype)x->dtype);
    k_batch_norm_args args = {.x = cuda_operand(x),
                              .mean = cuda_operand(mean),
                              .var = cuda_operand(var),
                              .out = cuda_operand(out),
                              .numel = dt_array_numel(x),
                              .channels = x->shape[1],
                              .inner = 1,
                              .eps = eps};
    for (int i = 2; i < x->ndim && dt_array_is_contiguous(x); i++) {
        args.inner *= x->shape[i];
    }
    args.by_inner = cuda_divisor(args.inner);
    args.by_channels = cuda_divisor(args.channels);
    args.weight = weight == NULL ? (k_operand){0} : cuda_operand(weight);
    args.bias = bias == NULL ? (k_operand){0} : cuda_operand(bias);
    args.narrow = args.numel <= cuda_settings.index_limit;
    args.vector = args.numel % width == 0 && is_aligned(&args.x) && is_aligned(&args.out);
    DT_TRY(cuda_enter(out->storage->device.index, &d, err));
    DT_TRY(cuda_function(d, CUDA_FAMILY_OTHER, CUDA_KERNEL_batch_norm, (dt_dtype)x->dtype, &function, err));
    return cuda_launch(d, function, (args.numel - 1) / width + 1, &args, err);
}
