/* reduce.c: reductions and softmax. A reduction with few results over many elements is cut into splits, so that the
 * whole device works on it, and finished by a second launch. */
#include <string.h>

#include "cuda.h"

#define SMALL 32          /* a thread a result below this many elements */
#define SPLIT_CHUNK 16384 /* elements that are worth a block of their own */
#define MAX_SPLITS 1024

static dt_status
launch_reduce(cuda_device *d, CUfunction function, const k_reduce_args *args, dt_error *err)
{
    int64_t results = args->outer.numel * (args->stage == K_STAGE_PARTIAL ? args->splits : 1);
    return args->by_thread ? cuda_launch(d, function, results, args, err)
                           : cuda_launch_blocks(d, function, results, CUDA_THREADS, args, err);
}

static dt_status
launch_split(cuda_device *d, CUfunction function, k_reduce_args *args, dt_error *err)
{
    CUdeviceptr scratch;
    size_t nbytes = (size_t)args->outer.numel * (size_t)args->splits * 16;
    DT_TRY(cuda_allocate(d, nbytes, &scratch, err));
    args->scratch.address = scratch;
    args->scratch.nbytes = nbytes;
    args->stage = K_STAGE_PARTIAL;
    dt_status rc = launch_reduce(d, function, args, err);
    if (rc == DT_OK) {
        args->stage = K_STAGE_COMBINE;
        rc = launch_reduce(d, function, args, err);
    }
    cuda_release(d, scratch, nbytes);
    return rc;
}

static dt_status
reduce_into(cuda_device *d, dt_reduce_op op, const dt_array *x, int nreduce, bool wide, const dt_array *out,
            dt_error *err)
{
    CUfunction function;
    k_reduce_args args = {0};
    DT_TRY(cuda_function(d, CUDA_FAMILY_REDUCE, (int)op, (dt_dtype)x->dtype, &function, err));
    cuda_walk_logical(&args.outer, 0, x->ndim - nreduce, 1, &x);
    cuda_walk_logical(&args.inner, x->ndim - nreduce, x->ndim, 1, &x);
    args.x = cuda_operand(x);
    args.out = cuda_operand(out);
    args.wide = wide;
    int64_t splits = args.inner.numel / SPLIT_CHUNK, room = d->multiprocessors * 8 / args.outer.numel;
    args.splits = splits < room ? splits : room;
    args.splits = args.splits < MAX_SPLITS ? args.splits : MAX_SPLITS;
    args.by_thread = args.inner.numel <= SMALL;
    return args.splits > 1 ? launch_split(d, function, &args, err) : launch_reduce(d, function, &args, err);
}

dt_status
cuda_reduce(dt_reduce_op op, const dt_params *params, const dt_array *x, int nreduce, dt_array *out, dt_error *err)
{
    (void)params;
    cuda_device *d;
    DT_TRY(cuda_enter(out->storage->device.index, &d, err));
    bool sums = op == DT_REDUCE_sum || op == DT_REDUCE_prod || op == DT_REDUCE_mean;
    dt_dtype own = dt_is_float((dt_dtype)x->dtype) ? (dt_dtype)x->dtype : DT_INT64;
    if (!sums || out->dtype == own) {
        return reduce_into(d, op, x, nreduce, false, out, err);
    }
    cuda_temporary wide; /* another dtype was asked for: it is cast from the accumulators */
    DT_TRY(cuda_temporary_init(&wide, d, out, dt_is_float((dt_dtype)x->dtype) ? DT_FLOAT64 : DT_INT64, err));
    dt_status rc = reduce_into(d, op, x, nreduce, true, &wide.array, err);
    if (rc == DT_OK) {
        rc = cuda_copy_within(d, &wide.array, out, err);
    }
    cuda_temporary_clear(&wide);
    return rc;
}

dt_status
cuda_softmax(const dt_array *x, bool log, dt_array *out, dt_error *err)
{
    cuda_device *d;
    CUfunction function;
    k_softmax_args args = {0};
    cuda_kernel kernel = log ? CUDA_KERNEL_log_softmax : CUDA_KERNEL_softmax;
    DT_TRY(cuda_enter(out->storage->device.index, &d, err));
    DT_TRY(cuda_function(d, CUDA_FAMILY_OTHER, (int)kernel, (dt_dtype)x->dtype, &function, err));
    const dt_array *arrays[] = {x, out};
    int last = x->ndim - 1;
    cuda_walk_logical(&args.outer, 0, last < 0 ? 0 : last, 2, arrays);
    args.n = last < 0 ? 1 : x->shape[last];
    args.x_stride = last < 0 ? 1 : x->strides[last];
    args.out_stride = last < 0 ? 1 : out->strides[last];
    args.x = cuda_operand(x);
    args.out = cuda_operand(out);
    int threads = 32;
    while (threads < args.n && threads < CUDA_THREADS) {
        threads *= 2;
    }
    return cuda_launch_blocks(d, function, args.outer.numel, threads, &args, err);
}
