/* array.c: arrays as values over storage. */
#include "check/check.h"
#include "devtensor.h"
#include "grad/grad.h"
#include "layout/layout.h"
#include "memory/storage.h"

#include <string.h>

bool
dt_array_is_contiguous(const dt_array *a)
{
    int64_t expected = 1;
    for (int d = a->ndim - 1; d >= 0; d--) {
        if (a->shape[d] == 0) {
            return true;
        }
        if (a->shape[d] != 1 && a->strides[d] != expected) {
            return false;
        }
        expected *= a->shape[d];
    }
    return true;
}

/* Dimensions of more than one element, innermost first. */
static int
dims_by_stride(const dt_array *a, int order[DT_MAX_NDIM])
{
    int n = 0;
    for (int d = a->ndim - 1; d >= 0; d--) {
        if (a->shape[d] == 1) {
            continue;
        }
        int at = n++;
        for (; at > 0 && a->strides[order[at - 1]] > a->strides[d]; at--) {
            order[at] = order[at - 1];
        }
        order[at] = d;
    }
    return n;
}

bool
dt_array_is_dense(const dt_array *a)
{
    int order[DT_MAX_NDIM], n = dims_by_stride(a, order);
    int64_t expected = 1;
    for (int i = 0; i < n; i++) {
        if (a->shape[order[i]] == 0) {
            return true;
        }
        if (a->strides[order[i]] != expected) {
            return false;
        }
        expected *= a->shape[order[i]];
    }
    return true;
}

bool
dt_array_overlaps_itself(const dt_array *a)
{
    for (int d = 0; d < a->ndim; d++) {
        if (a->shape[d] > 1 && a->strides[d] == 0) {
            return dt_array_numel(a) > 0;
        }
    }
    return false;
}

void
dt_array_extent(const dt_array *a, int64_t *first, int64_t *last)
{
    int64_t low = 0, high = 0;
    for (int d = 0; d < a->ndim; d++) {
        if (a->shape[d] == 0) {
            *first = *last = a->offset;
            return;
        }
        int64_t span = (a->shape[d] - 1) * a->strides[d];
        low += span < 0 ? span : 0;
        high += span > 0 ? span : 0;
    }
    int64_t itemsize = (int64_t)dt_itemsize((dt_dtype)a->dtype);
    *first = a->offset + low * itemsize;
    *last = a->offset + (high + 1) * itemsize;
}

bool
dt_array_is_same_view(const dt_array *a, const dt_array *b)
{
    return a->storage == b->storage && a->offset == b->offset && a->dtype == b->dtype &&
           dt_array_has_shape(a, b->ndim, b->shape) &&
           memcmp(a->strides, b->strides, a->ndim * sizeof(a->strides[0])) == 0;
}

bool
dt_array_overlaps(const dt_array *a, const dt_array *b)
{
    if (b->storage != a->storage || b->storage == NULL) {
        return false;
    }
    int64_t a0, a1, b0, b1;
    dt_array_extent(a, &a0, &a1);
    dt_array_extent(b, &b0, &b1);
    return a0 < b1 && b0 < a1;
}

void
dt_array_clear(dt_array *a)
{
    if (a->storage != NULL) {
        dt_storage_release(a->storage);
        a->storage = NULL;
        if (DT_UNLIKELY(a->node != NULL)) {
            dt_node_release(a->node);
        }
    }
}

void
dt_array_copy_handle(const dt_array *a, dt_array *out)
{
    *out = *a;
    out->node = NULL;
    if (out->storage != NULL) {
        dt_storage_retain(out->storage);
    }
}

void
dt_array_set_contiguous(dt_array *a)
{
    int64_t stride = 1;
    for (int d = a->ndim - 1; d >= 0; d--) {
        a->strides[d] = stride;
        stride *= a->shape[d] > 1 ? a->shape[d] : 1;
    }
}

dt_status
dt_shape_check(const char *op, int ndim, const int64_t *shape, dt_dtype dtype, dt_error *err)
{
    if (ndim > DT_MAX_NDIM) {
        return dt_fail_too_many_dims(op, ndim, err);
    }
    /* sizes of 0 do not hide an overflow in the others */
    uint64_t nbytes = dt_itemsize(dtype);
    for (int d = 0; d < ndim; d++) {
        if (shape[d] < 0) {
            return dt_fail_negative_dim(op, ndim, shape, shape[d], err);
        }
        if (shape[d] > 0 && __builtin_mul_overflow(nbytes, (uint64_t)shape[d], &nbytes)) {
            nbytes = UINT64_MAX;
        }
        if (nbytes > INT64_MAX) {
            return dt_fail_too_large(op, ndim, shape, err);
        }
    }
    return DT_OK;
}

static inline void
array_init(dt_array *a, dt_dtype dtype, int ndim, const int64_t *shape)
{
    a->storage = NULL;
    a->node = NULL;
    a->offset = 0;
    a->dtype = (uint8_t)dtype;
    a->ndim = (uint8_t)ndim;
    DT_SHORT_LOOP for (int d = 0; d < ndim; d++)
    {
        a->shape[d] = shape[d];
    }
}

dt_status
dt_empty(dt_device device, dt_dtype dtype, int ndim, const int64_t *shape, dt_array *out, dt_error *err)
{
    DT_TRY(dt_shape_check("empty", ndim, shape, dtype, err));
    array_init(out, dtype, ndim, shape);
    dt_array_set_contiguous(out);
    return dt_storage_new(device, dt_array_nbytes(out), &out->storage, err);
}

bool
dt_is_channels_last(const dt_array *a)
{
    if (a->ndim != 4 || dt_array_is_contiguous(a)) {
        return false;
    }
    int64_t c = a->shape[1], h = a->shape[2], w = a->shape[3];
    return a->strides[1] == 1 && (c > 1 || (a->strides[3] == c && h * w > 1)) && (w == 1 || a->strides[3] == c) &&
           (h == 1 || a->strides[2] == c * w) && (a->shape[0] == 1 || a->strides[0] == c * h * w);
}

void
dt_set_channels_last(dt_array *a)
{
    int channels = a->ndim - 3;
    int64_t stride = 1, *shape = a->shape + channels, *strides = a->strides + channels;
    for (int i = 0; i < 3; i++) {
        int d = (3 - i) % 3; /* channels, columns, rows */
        strides[d] = stride;
        stride *= shape[d];
    }
    if (channels > 0) {
        a->strides[0] = stride;
    }
}

/* Gives out like's shape and contiguous strides, and the number of bytes. False: like is not contiguous, or so large
 * that a wider dtype might be too much. */
static inline bool
take_shape(const dt_array *like, dt_dtype dtype, dt_array *out, size_t *nbytes)
{
    int64_t numel = 1, stride = 1;
    bool contiguous = true;
    out->storage = NULL;
    out->node = NULL;
    out->offset = 0;
    out->dtype = (uint8_t)dtype;
    out->ndim = like->ndim;
    DT_SHORT_LOOP for (size_t d = like->ndim; d > 0; d--)
    {
        int64_t size = like->shape[d - 1];
        numel *= size;
        if (DT_UNLIKELY(like->strides[d - 1] != stride) && size != 1 && numel != 0) {
            contiguous = false;
        }
        out->shape[d - 1] = size;
        out->strides[d - 1] = stride;
        stride *= size > 1 ? size : 1;
    }
    *nbytes = (size_t)numel * dt_itemsize(dtype);
    return contiguous && stride <= INT64_MAX / 8;
}

/* Gives out like's shape, and its strides where they fill a block, else contiguous ones; and the number of bytes. */
static dt_status
take_layout(const dt_array *like, dt_dtype dtype, dt_array *out, size_t *nbytes, dt_error *err)
{
    if (take_shape(like, dtype, out, nbytes)) {
        return DT_OK;
    }
    if (!dt_array_is_contiguous(like) && dt_array_is_dense(like)) {
        memcpy(out->strides, like->strides, sizeof(out->strides));
    }
    return dt_shape_check("empty_like", like->ndim, like->shape, dtype, err);
}

static DT_NOINLINE dt_status
empty_beside(const dt_array *like, dt_dtype dtype, dt_array *out, dt_error *err)
{
    size_t nbytes;
    DT_TRY(take_layout(like, dtype, out, &nbytes, err));
    return dt_storage_new_beside(like->storage, nbytes, &out->storage, err);
}

dt_status
dt_empty_beside(const dt_array *like, dt_dtype dtype, dt_array *out, dt_error *err)
{
    size_t nbytes;
    return take_shape(like, dtype, out, &nbytes) ? dt_storage_new_beside(like->storage, nbytes, &out->storage, err)
                                                 : empty_beside(like, dtype, out, err);
}

dt_status
dt_empty_like(const dt_array *like, dt_device device, dt_dtype dtype, dt_array *out, dt_error *err)
{
    size_t nbytes;
    DT_TRY(take_layout(like, dtype, out, &nbytes, err));
    return dt_storage_new(device, nbytes, &out->storage, err);
}

dt_status
dt_empty_pinned(const dt_array *like, dt_dtype dtype, dt_array *out, dt_error *err)
{
    dt_array a;
    size_t nbytes;
    DT_TRY(take_layout(like, dtype, &a, &nbytes, err));
    DT_TRY(dt_storage_new_pinned(nbytes, &a.storage, err));
    *out = a;
    return DT_OK;
}

dt_status
dt_as_strided(dt_storage *storage, int64_t offset, dt_dtype dtype, int ndim, const int64_t *shape,
              const int64_t *strides, dt_array *out, dt_error *err)
{
    DT_TRY(dt_shape_check("as_strided", ndim, shape, dtype, err));
    array_init(out, dtype, ndim, shape);
    out->storage = dt_storage_retain(storage);
    out->offset = offset;
    for (int d = 0; d < ndim; d++) {
        out->strides[d] = strides[d];
    }
    return DT_OK;
}

void
dt_immediate(const dt_scalar *value, dt_dtype dtype, dt_array *out)
{
    memset(out, 0, sizeof(*out));
    out->dtype = (uint8_t)dtype;
    dt_scalar_store(value, dtype, out->immediate);
}

dt_array
dt_as_batch(const dt_array *image)
{
    dt_array batch = *image;
    if (batch.ndim == 3) {
        batch.ndim = 4;
        memmove(batch.shape + 1, batch.shape, 3 * sizeof(int64_t));
        memmove(batch.strides + 1, batch.strides, 3 * sizeof(int64_t));
        batch.shape[0] = 1;
        batch.strides[0] = batch.strides[1] * batch.shape[1];
    }
    return batch;
}
