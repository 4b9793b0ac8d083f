/* copy.c: which way a copy goes; copies and fills on one device. */
#include <string.h>

#include "cuda.h"

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

dt_status
cuda_copy_within(cuda_device *device, const dt_array *src, dt_array *dst, dt_error *err)
{
    if (src->storage != NULL && src->dtype == dst->dtype && same_layout(dst, src)) {
        DT_COUNT(launches, 1);
        CUDA_TRY(device, cuMemcpyDtoDAsync_v2,
                 (cuda_address(dst), cuda_address(src), dt_array_nbytes(dst), cuda_stream(device)));
        return DT_OK;
    }
    CUfunction function;
    k_elementwise_args args = {0};
    const dt_array *arrays[] = {dst, src};
    DT_TRY(cuda_function(device, CUDA_FAMILY_CAST, src->dtype, (dt_dtype)dst->dtype, &function, err));
    dt_walk_init(&args.walk, 2, arrays);
    args.array[0] = cuda_operand(dst);
    args.array[1] = cuda_operand(src);
    return cuda_launch(device, function, args.walk.numel, &args, err);
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
