/* copy.c: which way a copy goes; copies and fills on one device. */
#include <string.h>

#include "../launch/launch.h"
#include "../ops/ops.h"
#include "../streams/stream.h"
#include "transfer.h"

/* Whether both place every element alike in memory of their own. */
static bool
same_layout(const dt_array *a, const dt_array *b)
{
    for (int i = 0; i < a->ndim; i++) {
        if (a->shape[i] != 1 && a->strides[i] != b->strides[i]) {
            return false;
        }
    }
    return dt_array_is_dense(a);
}

/* Fills args where dst and src have different fast dimensions, both long enough for tiles. */
static bool
is_transpose(const dt_walk *walk, k_transpose_args *args)
{
    dt_walk outer = {.narrays = 2, .numel = 1};
    int last = walk->ndim - 1, fast = -1;
    for (int d = 0; d < last; d++) {
        fast = walk->strides[1][d] == 1 ? d : fast;
    }
    if (fast < 0 || walk->strides[0][last] != 1 || walk->strides[1][last] == 1 || walk->shape[last] < K_TILE_LEAST ||
        walk->shape[fast] < K_TILE_LEAST) {
        return false;
    }
    for (int d = 0; d < last; d++) {
        if (d != fast) {
            outer.shape[outer.ndim] = walk->shape[d];
            outer.strides[0][outer.ndim] = walk->strides[0][d];
            outer.strides[1][outer.ndim++] = walk->strides[1][d];
            outer.numel *= walk->shape[d];
        }
    }
    cuda_index(&args->outer, &outer);
    args->rows = walk->shape[fast];
    args->columns = walk->shape[last];
    args->x_stride = walk->strides[1][last];
    args->out_stride = walk->strides[0][fast];
    args->across = (args->columns - 1) / K_TILE_COLUMNS + 1;
    args->tiles = ((args->rows - 1) / K_TILE_ROWS + 1) * args->across;
    args->by_tiles = cuda_divisor(args->tiles);
    args->by_across = cuda_divisor(args->across);
    return true;
}

static dt_status
copy_transposed(cuda_device *device, const dt_array *src, const dt_array *dst, k_transpose_args *args, dt_error *err)
{
    CUfunction function;
    DT_TRY(cuda_function(device, CUDA_FAMILY_OTHER, CUDA_KERNEL_transpose, (dt_dtype)dst->dtype, &function, err));
    args->x = cuda_operand(src);
    args->out = cuda_operand(dst);
    return cuda_launch_blocks(device, function, args->tiles * args->outer.numel, args, err);
}

dt_status
cuda_copy_within(cuda_device *device, const dt_array *src, dt_array *dst, dt_error *err)
{
    if (dt_array_numel(dst) == 0) {
        return DT_OK;
    }
    if (src->storage != NULL && src->dtype == dst->dtype && same_layout(dst, src)) {
        DT_COUNT(launches, 1);
        CUDA_TRY(device, cuMemcpyDtoDAsync_v2,
                 (cuda_address(dst), cuda_address(src), dt_array_nbytes(dst), cuda_stream(device)));
        return DT_OK;
    }
    CUfunction function;
    dt_walk walk;
    k_transpose_args tiles = {0};
    const dt_array *arrays[] = {dst, src};
    dt_walk_init(&walk, 2, arrays);
    if (src->dtype == dst->dtype && is_transpose(&walk, &tiles)) {
        return copy_transposed(device, src, dst, &tiles, err);
    }
    k_elementwise_args args = {.array = {cuda_operand(dst), cuda_operand(src)}};
    const dt_dtype dtypes[] = {(dt_dtype)dst->dtype, (dt_dtype)src->dtype};
    DT_TRY(cuda_function(device, CUDA_FAMILY_CAST, src->dtype, (dt_dtype)dst->dtype, &function, err));
    return cuda_launch_stream(device, function, false, &walk, dtypes, &args, err);
}

dt_status
cuda_copy(const dt_array *src, dt_array *dst, bool non_blocking, dt_error *err)
{
    dt_device from = dt_array_device(src), to = dt_array_device(dst);
    if (dt_array_numel(dst) == 0) {
        return DT_OK;
    }
    if (!dt_device_equal(from, to)) {
        return cuda_transfer(src, dst, non_blocking, err);
    }
    cuda_device *d;
    DT_TRY(cuda_enter(to.index, &d, err));
    return cuda_copy_within(d, src, dst, err);
}

/* Whether every byte of an element is the same, as in a zero. */
static bool
one_byte(const unsigned char *element, size_t itemsize)
{
    for (size_t i = 1; i < itemsize; i++) {
        if (element[i] != element[0]) {
            return false;
        }
    }
    return true;
}

dt_status
cuda_fill(dt_array *out, const dt_scalar *value, dt_error *err)
{
    cuda_device *d;
    dt_array element;
    DT_TRY(cuda_enter(out->storage->device.index, &d, err));
    dt_immediate(value, (dt_dtype)out->dtype, &element);
    if (one_byte(element.immediate, dt_itemsize((dt_dtype)out->dtype)) && dt_array_is_dense(out)) {
        DT_COUNT(launches, 1);
        CUDA_TRY(d, cuMemsetD8Async, (cuda_address(out), element.immediate[0], dt_array_nbytes(out), cuda_stream(d)));
        return DT_OK;
    }
    return cuda_copy_within(d, &element, out, err);
}
