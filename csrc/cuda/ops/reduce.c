/* reduce.c: reductions, softmax and scans. A reduction with few results over many elements is cut into splits, so that
 * the whole device works on it, and finished by a second launch. */
#include <string.h>

#include "../launch/launch.h"
#include "../memory/memory.h"
#include "ops.h"
#include "../memory/transfer.h"

#define MAX_SPLITS 1024
#define PACKS_WORTH_A_SPLIT 8 /* of each thread */
#define SPLITS_WORTH_READING_TWICE 4
#define ROWS_WORTH_FEW_LANES 4096 /* long ones, which then meet in short trees */

int
cuda_log2(int64_t n, int most)
{
    int bits = 0;
    while (bits < most && (INT64_C(1) << bits) < n) {
        bits++;
    }
    return bits;
}

/* Whether neighbouring results are nearer to each other than neighbouring elements of a row. */
static bool
is_across(const dt_walk *outer, const dt_walk *inner)
{
    if (outer->ndim == 0 || inner->ndim == 0) {
        return false;
    }
    int64_t step = inner->strides[0][inner->ndim - 1], next = outer->strides[0][outer->ndim - 1];
    return (next < 0 ? -next : next) < (step < 0 ? -step : step);
}

/* width: elements of a pack */
static k_rows
lay_out_rows(const dt_walk *outer, const dt_walk *inner, int width, const k_operand *x)
{
    k_rows rows = {.across = is_across(outer, inner)};
    int64_t packs = (inner->numel - 1) / width + 1;
    if (rows.across) { /* at least 32 neighbours, as far as there are results */
        rows.lanes = 8 - cuda_log2(outer->numel, packs < 16 ? 8 : 5);
    } else if (packs < 16) {
        rows.lanes = cuda_log2(packs, 2);
    } else {
        rows.lanes = outer->numel >= (packs < 1024 ? CUDA_WANTED_BLOCKS : ROWS_WORTH_FEW_LANES) && packs < 8192 ? 5 : 8;
    }
    int last = inner->ndim - 1;
    rows.vector = last >= 0 && inner->strides[0][last] == 1 && x->address % K_VECTOR_BYTES == 0 &&
                  (last == 0 || (inner->shape[last] % width == 0 && cuda_fits_narrow(inner)));
    for (int d = 0; d < last && rows.vector; d++) {
        rows.vector = inner->strides[0][d] % width == 0;
    }
    for (int d = 0; d < outer->ndim && rows.vector; d++) {
        rows.vector = outer->strides[0][d] % width == 0;
    }
    return rows;
}

static dt_status
launch_rows(cuda_device *d, CUfunction function, const k_reduce_args *args, dt_error *err)
{
    int64_t slots = CUDA_THREADS >> args->rows.lanes, splits = args->stage == K_STAGE_PARTIAL ? args->splits : 1;
    return cuda_launch_blocks(d, function, ((args->outer.numel - 1) / slots + 1) * splits, args, err);
}

static dt_status
launch_split(cuda_device *d, CUfunction function, k_reduce_args *args, dt_error *err)
{
    CUdeviceptr scratch;
    size_t nbytes = (size_t)args->outer.numel * (size_t)args->splits * K_REDUCE_PART_BYTES;
    DT_TRY(cuda_allocate(d, nbytes, &scratch, err));
    args->scratch.address = scratch;
    args->scratch.nbytes = nbytes;
    args->stage = K_STAGE_PARTIAL;
    dt_status rc = launch_rows(d, function, args, err);
    if (rc == DT_OK) {
        args->stage = K_STAGE_COMBINE;
        args->rows = (k_rows){.lanes = cuda_log2(args->splits, 8)};
        rc = launch_rows(d, function, args, err);
    }
    cuda_release(d, scratch, nbytes);
    return rc;
}

/* args has what is the op's own. */
static dt_status
reduce_by(cuda_device *d, CUfunction function, k_reduce_args args, const dt_array *x, int nreduce, const dt_array *out,
          dt_error *err)
{
    dt_walk outer, inner;
    int width = K_VECTOR_BYTES / (int)dt_itemsize((dt_dtype)x->dtype);
    cuda_walk_logical(&outer, 0, x->ndim - nreduce, 1, &x);
    cuda_walk_logical(&inner, x->ndim - nreduce, x->ndim, 1, &x);
    cuda_index(&args.outer, &outer);
    cuda_index(&args.inner, &inner);
    args.x = cuda_operand(x);
    args.out = cuda_operand(out);
    args.rows = lay_out_rows(&outer, &inner, width, &args.x);
    int64_t tiles = ((outer.numel - 1) >> (8 - args.rows.lanes)) + 1, step = (int64_t)width << args.rows.lanes;
    int64_t wanted = (CUDA_WANTED_BLOCKS + tiles / 2) / tiles, worth = inner.numel / (step * PACKS_WORTH_A_SPLIT);
    int64_t splits = wanted < worth ? wanted : worth;
    splits = splits < MAX_SPLITS ? splits : MAX_SPLITS;
    if (splits <= 1) {
        return launch_rows(d, function, &args, err);
    }
    int64_t share = (inner.numel - 1) / splits + 1;
    args.chunk = ((share - 1) / step + 1) * step;
    args.splits = (inner.numel - 1) / args.chunk + 1;
    return launch_split(d, function, &args, err);
}

static dt_status
reduce_into(cuda_device *d, dt_reduce_op op, const dt_array *x, int nreduce, bool wide, const dt_array *out,
            dt_error *err)
{
    CUfunction function;
    DT_TRY(cuda_function(d, CUDA_FAMILY_REDUCE, (int)op, (dt_dtype)x->dtype, &function, err));
    return reduce_by(d, function, (k_reduce_args){.wide = wide}, x, nreduce, out, err);
}

dt_status
cuda_variance(const dt_array *x, int nreduce, double count, bool root, dt_array *out, bool *made, dt_error *err)
{
    (void)made;
    cuda_device *d;
    CUfunction function;
    DT_TRY(cuda_enter(out->storage->device.index, &d, err));
    DT_TRY(cuda_function(d, CUDA_FAMILY_OTHER, CUDA_KERNEL_variance, (dt_dtype)x->dtype, &function, err));
    return reduce_by(d, function, (k_reduce_args){.count = count, .root = root}, x, nreduce, out, err);
}

dt_status
cuda_reduce(dt_reduce_op op, const dt_params *params, const dt_array *x, int nreduce, dt_array *out, dt_error *err)
{
    (void)params;
    cuda_device *d;
    DT_TRY(cuda_enter(out->storage->device.index, &d, err));
    bool sums = dt_reduce_kinds[op] == DT_REDUCE_KIND_SUM || dt_reduce_kinds[op] == DT_REDUCE_KIND_FLOAT;
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

/* As few lanes as can keep the row among them, as a tree costs time; 32 neighbouring rows where those are columns. */
static k_rows
lay_softmax(const dt_walk *outer, const dt_walk *row, int width, const k_softmax_args *args)
{
    k_rows rows = {.across = is_across(outer, row)};
    int64_t packs = (args->n - 1) / width + 1;
    rows.lanes = packs <= 2 ? 0 : packs <= 32 ? 3 : packs <= 128 ? 5 : 8;
    if (rows.across) {
        rows.lanes = 8 - cuda_log2(outer->numel, packs <= 2 ? 8 : 5);
    }
    rows.vector = args->n > 1 && args->x_stride == 1 && args->out_stride == 1 &&
                  args->x.address % K_VECTOR_BYTES == 0 && args->out.address % K_VECTOR_BYTES == 0;
    for (int d = 0; d < outer->ndim && rows.vector; d++) {
        rows.vector = outer->strides[0][d] % width == 0 && outer->strides[1][d] % width == 0;
    }
    return rows;
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
    int last = x->ndim - 1, width = K_VECTOR_BYTES / (int)dt_itemsize((dt_dtype)x->dtype);
    dt_walk outer, row;
    cuda_walk_logical(&outer, 0, last, 2, arrays);
    cuda_walk_logical(&row, last, x->ndim, 2, arrays);
    cuda_index(&args.outer, &outer);
    args.n = x->shape[last];
    args.x_stride = x->strides[last];
    args.out_stride = out->strides[last];
    args.x = cuda_operand(x);
    args.out = cuda_operand(out);
    args.rows = lay_softmax(&outer, &row, width, &args);
    int64_t packs = (args.n - 1) / ((int64_t)width << args.rows.lanes) + 1;
    int64_t compute = x->dtype == DT_FLOAT64 ? 8 : 4;
    args.kept = packs * width * compute <= K_SOFTMAX_KEEP;
    return cuda_launch_blocks(d, function, ((outer.numel - 1) >> (8 - args.rows.lanes)) + 1, &args, err);
}

dt_status
cuda_softmax_grad(const dt_array *grad, const dt_array *result, bool log, dt_array *out, dt_error *err)
{
    cuda_device *d;
    CUfunction function;
    dt_walk outer, row;
    k_softmax_grad_args args = {.log = log, .grad = cuda_operand(grad), .grad_stride = grad->strides[grad->ndim - 1]};
    k_softmax_args *softmax = &args.softmax;
    const dt_array *arrays[] = {out, result, grad};
    const int last = out->ndim - 1, width = K_VECTOR_BYTES / (int)dt_itemsize((dt_dtype)out->dtype);
    DT_TRY(cuda_enter(out->storage->device.index, &d, err));
    DT_TRY(cuda_function(d, CUDA_FAMILY_OTHER, CUDA_KERNEL_softmax_grad, (dt_dtype)out->dtype, &function, err));
    cuda_walk_logical(&outer, 0, last, 3, arrays);
    cuda_walk_logical(&row, last, out->ndim, 3, arrays);
    cuda_index(&softmax->outer, &outer);
    softmax->n = out->shape[last];
    softmax->x_stride = result->strides[last];
    softmax->out_stride = out->strides[last];
    softmax->x = cuda_operand(result);
    softmax->out = cuda_operand(out);
    softmax->rows = lay_softmax(&outer, &row, width, softmax);
    softmax->rows.vector = softmax->rows.vector && args.grad_stride == 1 && args.grad.address % K_VECTOR_BYTES == 0;
    for (int i = 0; i < outer.ndim && softmax->rows.vector; i++) {
        softmax->rows.vector = outer.strides[2][i] % width == 0;
    }
    return cuda_launch_blocks(d, function, ((outer.numel - 1) >> (8 - softmax->rows.lanes)) + 1, &args, err);
}

/* ---------------------------------------------------------------- scans */

/* Whether the steps of all rows, of array k of outer, are whole vectors. */
static bool
is_scanned_in_vectors(const dt_walk *outer, int k, const k_operand *operand, size_t itemsize)
{
    const int64_t width = K_VECTOR_BYTES / (int64_t)itemsize;
    bool whole = operand->address % K_VECTOR_BYTES == 0;
    for (int d = 0; d < outer->ndim && whole; d++) {
        whole = outer->strides[k][d] % width == 0;
    }
    return whole;
}

/* Lanes as rows have elements for them; 32 neighbouring rows where those are columns. Few long rows are split, which
 * reads them twice. */
static void
lay_scan(const dt_walk *outer, const dt_walk *row, size_t itemsize, size_t result_itemsize, k_scan_args *args)
{
    const int64_t shares = (args->n - 1) / K_SCAN_EACH + 1;
    args->rows.across = is_across(outer, row);
    args->rows.lanes = args->rows.across ? 8 - cuda_log2(outer->numel, shares < 16 ? 8 : 5)
                                         : cuda_log2(shares, outer->numel >= CUDA_WANTED_BLOCKS ? 5 : 8);
    const int64_t tiles = ((outer->numel - 1) >> (8 - args->rows.lanes)) + 1,
                  wanted = (CUDA_WANTED_BLOCKS - 1) / tiles + 1;
    const int64_t step = (int64_t)K_SCAN_EACH << args->rows.lanes, steps = (args->n - 1) / step + 1;
    args->splits = 1;
    args->chunk = args->n;
    args->rows.vector = !args->rows.across && !args->reverse && args->x_stride == 1 && args->out_stride == 1 &&
                        step * (int64_t)itemsize >= K_VECTOR_BYTES &&
                        is_scanned_in_vectors(outer, 0, &args->x, itemsize) &&
                        is_scanned_in_vectors(outer, 1, &args->out, result_itemsize);
    if (wanted >= SPLITS_WORTH_READING_TWICE && steps > 2) {
        const int64_t splits = wanted < steps ? wanted : steps;
        args->chunk = ((steps - 1) / splits + 1) * step;
        args->splits = (args->n - 1) / args->chunk + 1;
    }
}

dt_status
cuda_scan(dt_scan_op op, const dt_array *x, bool reverse, dt_array *out, dt_array *indices, dt_error *err)
{
    static const cuda_kernel kernels[DT_NSCANS] = {[DT_SCAN_SUM] = CUDA_KERNEL_cumsum,
                                                   [DT_SCAN_PROD] = CUDA_KERNEL_cumprod,
                                                   [DT_SCAN_LOGSUMEXP] = CUDA_KERNEL_logcumsumexp,
                                                   [DT_SCAN_MAX] = CUDA_KERNEL_cummax,
                                                   [DT_SCAN_MIN] = CUDA_KERNEL_cummin};
    cuda_device *d;
    CUfunction function;
    dt_walk outer, row;
    const int last = x->ndim - 1, n = indices == NULL ? 2 : 3;
    const dt_array *arrays[] = {x, out, indices};
    k_scan_args args = {.n = x->shape[last],
                        .x_stride = x->strides[last],
                        .out_stride = out->strides[last],
                        .x = cuda_operand(x),
                        .out = cuda_operand(out),
                        .reverse = reverse,
                        .stage = K_STAGE_WHOLE};
    if (indices != NULL) {
        args.indices = cuda_operand(indices);
        args.indices_stride = indices->strides[last];
    }
    DT_TRY(cuda_enter(out->storage->device.index, &d, err));
    DT_TRY(cuda_function(d, CUDA_FAMILY_OTHER, (int)kernels[op], (dt_dtype)x->dtype, &function, err));
    cuda_walk_logical(&outer, 0, last, n, arrays);
    cuda_walk_logical(&row, last, x->ndim, n, arrays);
    cuda_index(&args.outer, &outer);
    lay_scan(&outer, &row, dt_itemsize((dt_dtype)x->dtype), dt_itemsize((dt_dtype)out->dtype), &args);
    const int64_t blocks = (((outer.numel - 1) >> (8 - args.rows.lanes)) + 1) * args.splits;
    if (args.splits == 1) {
        return cuda_launch_blocks(d, function, blocks, &args, err);
    }
    CUdeviceptr scratch;
    const size_t nbytes = (size_t)outer.numel * (size_t)args.splits * K_SCAN_PART_BYTES;
    DT_TRY(cuda_allocate(d, nbytes, &scratch, err));
    args.scratch.address = scratch;
    args.scratch.nbytes = nbytes;
    args.stage = K_STAGE_PARTIAL;
    dt_status rc = cuda_launch_blocks(d, function, blocks, &args, err);
    if (rc == DT_OK) {
        args.stage = K_STAGE_WHOLE;
        rc = cuda_launch_blocks(d, function, blocks, &args, err);
    }
    cuda_release(d, scratch, nbytes);
    return rc;
}
