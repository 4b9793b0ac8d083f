/* index.c: gather, scatter, and the places of the True elements of a mask. */
#include <string.h>

#include "../launch/index_errors.h"
#include "ops.h"
#include "selection.h"
#include "../streams/stream.h"

/* ---------------------------------------------------------------- describing a selection to a kernel */

/* Whether `elements` of both arrays can be moved as one: rows that no index cuts, aligned wherever they begin. */
static bool
is_movable(const cuda_layout *l, const dt_array *a, const dt_array *b, const dt_index *index, int64_t elements)
{
    int last = l->ndim - 1;
    CUdeviceptr bytes = (CUdeviceptr)elements * dt_itemsize((dt_dtype)a->dtype);
    if (b->storage == NULL || last < 0 || l->shape[last] % elements != 0 || l->strides[0][last] != 1 ||
        l->strides[1][last] != 1 || cuda_address(a) % bytes != 0 || cuda_address(b) % bytes != 0) {
        return false;
    }
    for (int k = 0; k < index->n; k++) {
        if (l->strides[2 + k][last] != 0 || index->stride[k] % elements != 0) {
            return false;
        }
    }
    for (int d = 0; d < last; d++) {
        if (l->strides[0][d] % elements != 0 || l->strides[1][d] % elements != 0) {
            return false;
        }
    }
    return true;
}

static int64_t
movable(const cuda_layout *l, const dt_array *a, const dt_array *b, const dt_index *index)
{
    int64_t elements = K_VECTOR_BYTES / (int64_t)dt_itemsize((dt_dtype)a->dtype);
    while (elements > 1 && !is_movable(l, a, b, index, elements)) {
        elements /= 2;
    }
    return elements;
}

/* ---------------------------------------------------------------- gather */

static dt_status
launch_gather(cuda_device *d, dt_dtype dtype, int64_t elements, const k_gather_args *args, dt_error *err)
{
    static const dt_dtype words[] = {[1] = DT_UINT8, [2] = DT_INT16, [4] = DT_INT32, [8] = DT_INT64};
    size_t bytes = (size_t)elements * dt_itemsize(dtype);
    bool wide = bytes == K_VECTOR_BYTES;
    CUfunction function;
    DT_TRY(cuda_function(d, CUDA_FAMILY_OTHER, wide ? CUDA_KERNEL_gather_wide : CUDA_KERNEL_gather,
                         wide ? DT_INT64 : words[bytes], &function, err));
    return cuda_launch_blocks(d, function, (args->by.index.numel - 1) / (K_GATHER_DEPTH * CUDA_THREADS) + 1, args, err);
}

dt_status
cuda_gather(const dt_array *x, const dt_index *index, dt_array *out, dt_error *err)
{
    cuda_device *d;
    cuda_layout l;
    k_gather_args args = {0};
    DT_TRY(cuda_enter(out->storage->device.index, &d, err));
    cuda_layout_init(&l, out, x, index, 0, out->ndim);
    int64_t elements = movable(&l, out, x, index);
    cuda_describe_selection(&l, index, elements, &args.by);
    args.out = cuda_operand(out);
    args.x = cuda_whole_operand(x, index);
    DT_TRY(cuda_late_begin(d, index, &args.by, err));
    return launch_gather(d, (dt_dtype)x->dtype, elements, &args, err);
}

/* ---------------------------------------------------------------- scatter */

/* kept: for each position of the indices its place in x, in units of some elements, or -1 where a later one means the
 * same place, or an index is out of range. */
static dt_status
keep_last(cuda_device *d, const dt_array *x, const dt_index *index, int64_t elements, cuda_temporary *kept,
          dt_error *err)
{
    cuda_layout l;
    CUfunction function;
    k_places_args args = {0};
    cuda_temporary places = CUDA_TEMPORARY_EMPTY, table = CUDA_TEMPORARY_EMPTY;
    int64_t entries = 64;
    DT_TRY(cuda_function(d, CUDA_FAMILY_OTHER, CUDA_KERNEL_places, DT_INT64, &function, err));
    cuda_layout_init(&l, x, x, index, index->first, index->first + index->ndim);
    cuda_describe_selection(&l, index, 1, &args.by);
    for (int k = 0; k < index->n; k++) {
        args.by.selector[k].stride /= elements;
    }
    while (entries < 2 * l.numel) {
        entries *= 2;
    }
    dt_status rc = cuda_vector_init(&places, d, l.numel, err);
    rc = rc == DT_OK ? cuda_vector_init(&table, d, entries, err) : rc;
    rc = rc == DT_OK ? cuda_vector_init(kept, d, l.numel, err) : rc;
    rc = rc == DT_OK ? cuda_late_begin(d, index, &args.by, err) : rc;
    if (rc == DT_OK) {
        DT_COUNT(launches, 1);
        rc = CUDA_CALL(d, cuMemsetD8Async,
                       (cuda_address(&table.array), 0, dt_array_nbytes(&table.array), cuda_stream(d)));
    }
    if (rc == DT_OK) {
        args.places = cuda_operand(&places.array);
        args.table = cuda_operand(&table.array);
        args.kept = cuda_operand(&kept->array);
        args.mask = (uint64_t)entries - 1;
    }
    for (args.stage = K_PLACES_FIND; rc == DT_OK && args.stage <= K_PLACES_KEEP; args.stage++) {
        rc = cuda_launch(d, function, l.numel, &args, err);
    }
    cuda_temporary_clear(&places);
    cuda_temporary_clear(&table);
    if (rc != DT_OK) {
        cuda_temporary_clear(kept);
    }
    return rc;
}

/* The one array of indices that kept is, over the shape of x. */
static void
index_of_kept(const cuda_temporary *kept, const dt_array *x, const dt_index *index, int64_t elements, dt_index *out)
{
    *out = (dt_index){.op = index->op, .n = 1, .first = index->first, .ndim = index->ndim};
    int64_t reach = 0, step = 1;
    for (int k = 0; k < index->n; k++) {
        reach += (index->size[k] - 1) * index->stride[k];
    }
    out->stride[0] = elements;
    out->size[0] = reach / elements + 1;
    out->array[0] = kept->array;
    out->array[0].ndim = x->ndim;
    memcpy(out->array[0].shape, x->shape, sizeof(x->shape));
    memset(out->array[0].strides, 0, sizeof(x->strides));
    for (int d = index->first + index->ndim - 1; d >= index->first; d--) {
        out->array[0].strides[d] = step;
        step *= x->shape[d];
    }
}

/* reported: indices have been looked at before. */
static dt_status
scatter_by(cuda_device *d, const dt_array *value, const dt_index *index, bool reported, dt_array *x, dt_error *err)
{
    cuda_layout l;
    k_gather_args args = {.put = true};
    cuda_layout_init(&l, x, value, index, 0, x->ndim);
    int64_t elements = movable(&l, x, value, index);
    cuda_describe_selection(&l, index, elements, &args.by);
    args.out = cuda_whole_operand(x, index);
    args.x = cuda_operand(value);
    if (!reported) {
        DT_TRY(cuda_late_begin(d, index, &args.by, err));
    }
    return launch_gather(d, (dt_dtype)x->dtype, elements, &args, err);
}

dt_status
cuda_scatter(const dt_array *value, const dt_index *index, dt_array *x, dt_error *err)
{
    cuda_device *d;
    cuda_layout l;
    dt_index last;
    cuda_temporary kept = CUDA_TEMPORARY_EMPTY; /* keep_last clears it whatever failed */
    DT_TRY(cuda_enter(x->storage->device.index, &d, err));
    if (index->any_order) {
        return scatter_by(d, value, index, false, x, err);
    }
    cuda_layout_init(&l, x, value, index, 0, x->ndim);
    int64_t elements = movable(&l, x, value, index);
    DT_TRY(keep_last(d, x, index, elements, &kept, err));
    index_of_kept(&kept, x, index, elements, &last);
    dt_status rc = scatter_by(d, value, &last, true, x, err);
    cuda_temporary_clear(&kept);
    return rc;
}

/* ---------------------------------------------------------------- masks */

_Static_assert(K_TRUE_LANES *K_TRUE_EACH == DT_TRUE_CHUNK && K_TRUE_LANES == CUDA_THREADS, "a block takes a chunk");

static void
describe_mask(const dt_array *mask, const dt_array *before, const int64_t *weights, k_true_args *args)
{
    dt_walk walk = {.ndim = mask->ndim, .narrays = 1, .numel = dt_array_numel(mask)};
    memcpy(walk.shape, mask->shape, sizeof(walk.shape));
    memcpy(walk.strides[0], weights != NULL ? weights : mask->strides, sizeof(walk.strides[0]));
    cuda_index(&args->index, &walk);
    args->mask = cuda_operand(mask);
    args->before = cuda_operand(before);
    args->aligned = args->mask.address % K_TRUE_EACH == 0;
    args->numel = walk.numel;
    args->chunks = before->shape[0] - 1;
}

dt_status
cuda_count_true(const dt_array *mask, dt_array *before, dt_error *err)
{
    cuda_device *d;
    CUfunction function;
    k_true_args args = {.stage = K_TRUE_COUNT};
    DT_TRY(cuda_enter(before->storage->device.index, &d, err));
    DT_TRY(cuda_function(d, CUDA_FAMILY_OTHER, CUDA_KERNEL_nonzero, DT_BOOL, &function, err));
    describe_mask(mask, before, NULL, &args);
    DT_TRY(cuda_launch_blocks(d, function, (args.chunks - 1) / K_TRUE_CHUNKS + 1, &args, err));
    args.stage = K_TRUE_SUM;
    return cuda_launch_blocks(d, function, 1, &args, err);
}

dt_status
cuda_find_true(const dt_array *mask, const dt_array *before, const int64_t *weights, dt_array *out, dt_error *err)
{
    cuda_device *d;
    CUfunction function;
    k_true_args args = {.stage = K_TRUE_FIND};
    DT_TRY(cuda_enter(out->storage->device.index, &d, err));
    DT_TRY(cuda_function(d, CUDA_FAMILY_OTHER, CUDA_KERNEL_nonzero, DT_BOOL, &function, err));
    describe_mask(mask, before, weights, &args);
    args.out = cuda_operand(out);
    args.rows = out->shape[0];
    args.columns = weights == NULL ? mask->ndim : 0;
    return cuda_launch_blocks(d, function, args.chunks, &args, err);
}
