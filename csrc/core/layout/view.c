/* view.c: other shapes over the same storage. */
#include "../check/check.h"
#include "../grad/params.h"

#include <string.h>

/* out: x without dimensions, sharing its storage. */
static void
view_begin(const dt_array *x, dt_array *out)
{
    *out = (dt_array){.storage = x->storage, .offset = x->offset, .dtype = x->dtype};
    dt_storage_retain(x->storage);
}

static void
view_add(dt_array *out, int64_t size, int64_t stride)
{
    out->shape[out->ndim] = size;
    out->strides[out->ndim] = stride;
    out->ndim++;
}

dt_status
dt_permute(const char *op, const dt_array *x, int ndims, const int64_t *dims, dt_array *out, dt_error *err)
{
    int indices[DT_MAX_NDIM];
    if (ndims != x->ndim) {
        return dt_fail_permute(op, x, ndims, err);
    }
    DT_TRY(dt_check_dims(op, ndims, dims, x->ndim, indices, err));
    if (DT_UNLIKELY(dt_is_tracked(x)) && dt_notes_views()) {
        dt_dims_record order = {.n = ndims};
        for (int d = 0; d < ndims; d++) {
            order.dims[d] = indices[d];
        }
        DT_RECORD_NEW(DT_GRAD_permute, &order, out, dt_permute(op, x, ndims, dims, out, err), x);
    }
    dt_array view;
    view_begin(x, &view);
    for (int d = 0; d < ndims; d++) {
        view_add(&view, x->shape[indices[d]], x->strides[indices[d]]);
    }
    *out = view;
    return DT_OK;
}

dt_status
dt_transpose(const char *op, const dt_array *x, int64_t dim0, int64_t dim1, dt_array *out, dt_error *err)
{
    const dt_pair_record both = {dim0, dim1};
    DT_RECORD_NEW(DT_GRAD_transpose, &both, out, dt_transpose(op, x, dim0, dim1, out, err), x);
    int a, b;
    DT_TRY(dt_check_dim(op, dim0, x->ndim, &a, err));
    DT_TRY(dt_check_dim(op, dim1, x->ndim, &b, err));
    dt_array view;
    dt_array_copy_handle(x, &view);
    if (x->ndim > 0) {
        view.shape[a] = x->shape[b];
        view.shape[b] = x->shape[a];
        view.strides[a] = x->strides[b];
        view.strides[b] = x->strides[a];
    }
    *out = view;
    return DT_OK;
}

dt_status
dt_movedim(const char *op, const dt_array *x, int n, const int64_t *source, const int64_t *destination, dt_array *out,
           dt_error *err)
{
    int from[DT_MAX_NDIM], to[DT_MAX_NDIM];
    if (n > DT_MAX_NDIM) {
        return dt_fail_too_many_dims(op, n, err);
    }
    DT_TRY(dt_check_dims(op, n, source, x->ndim, from, err));
    DT_TRY(dt_check_dims(op, n, destination, x->ndim, to, err));
    int64_t order[DT_MAX_NDIM];
    bool used[DT_MAX_NDIM] = {false};
    memset(order, -1, sizeof(order));
    for (int i = 0; i < n && x->ndim > 0; i++) {
        order[to[i]] = from[i];
        used[from[i]] = true;
    }
    for (int d = 0, next = 0; d < x->ndim; d++) {
        if (order[d] >= 0) {
            continue;
        }
        while (used[next]) {
            next++;
        }
        order[d] = next++;
    }
    return dt_permute(op, x, x->ndim, order, out, err);
}

dt_status
dt_squeeze(const char *op, const dt_array *x, int ndims, const int64_t *dims, dt_array *out, dt_error *err)
{
    DT_RECORD_NEW(DT_GRAD_reshape, DT_NO_PARAMS, out, dt_squeeze(op, x, ndims, dims, out, err), x);
    int indices[DT_MAX_NDIM];
    if (ndims > DT_MAX_NDIM) {
        return dt_fail_too_many_dims(op, ndims, err);
    }
    DT_TRY(dt_check_dims(op, ndims, dims, x->ndim, indices, err));
    dt_array view;
    view_begin(x, &view);
    for (int d = 0; d < x->ndim; d++) {
        bool listed = ndims == 0;
        for (int i = 0; i < ndims; i++) {
            listed = listed || indices[i] == d;
        }
        if (!listed || x->shape[d] != 1) {
            view_add(&view, x->shape[d], x->strides[d]);
        }
    }
    *out = view;
    return DT_OK;
}

dt_status
dt_unsqueeze(const char *op, const dt_array *x, int64_t dim, dt_array *out, dt_error *err)
{
    DT_RECORD_NEW(DT_GRAD_reshape, DT_NO_PARAMS, out, dt_unsqueeze(op, x, dim, out, err), x);
    int at;
    if (x->ndim == DT_MAX_NDIM) {
        return dt_fail_too_many_dims(op, DT_MAX_NDIM + 1, err);
    }
    DT_TRY(dt_check_dim(op, dim, x->ndim + 1, &at, err));
    dt_array view;
    view_begin(x, &view);
    for (int d = 0; d <= x->ndim; d++) {
        if (d == at) {
            view_add(&view, 1, d < x->ndim ? x->strides[d] * x->shape[d] : 1);
        }
        if (d < x->ndim) {
            view_add(&view, x->shape[d], x->strides[d]);
        }
    }
    *out = view;
    return DT_OK;
}

dt_status
dt_expand(const char *op, const dt_array *x, int ndim, const int64_t *shape, dt_array *out, dt_error *err)
{
    DT_RECORD_NEW(DT_GRAD_expand, DT_NO_PARAMS, out, dt_expand(op, x, ndim, shape, out, err), x);
    if (ndim > DT_MAX_NDIM) {
        return dt_fail_too_many_dims(op, ndim, err);
    }
    if (ndim < x->ndim) {
        return dt_fail_expand(op, x, ndim, shape, -1, err);
    }
    int lead = ndim - x->ndim;
    int64_t sizes[DT_MAX_NDIM] = {0}, strides[DT_MAX_NDIM] = {0};
    for (int d = 0; d < ndim; d++) {
        int64_t existing = d < lead ? 1 : x->shape[d - lead];
        sizes[d] = shape[d] == -1 && d >= lead ? existing : shape[d];
        if (sizes[d] < 0 || (sizes[d] != existing && existing != 1)) {
            return dt_fail_expand(op, x, ndim, shape, d, err);
        }
        strides[d] = d >= lead && existing == sizes[d] ? x->strides[d - lead] : 0;
    }
    DT_TRY(dt_shape_check(op, ndim, sizes, (dt_dtype)x->dtype, err));
    dt_array view;
    view_begin(x, &view);
    for (int d = 0; d < ndim; d++) {
        view_add(&view, sizes[d], strides[d]);
    }
    *out = view;
    return DT_OK;
}

/* All of a dense array of the shape of x. */
static dt_region
whole_of(const dt_array *x)
{
    dt_region whole = {.ndim = x->ndim};
    int64_t stride = 1;
    for (int d = x->ndim - 1; d >= 0; d--) {
        whole.shape[d] = x->shape[d];
        whole.strides[d] = stride;
        stride *= x->shape[d] > 1 ? x->shape[d] : 1;
    }
    return whole;
}

dt_status
dt_slice(const char *op, const dt_array *x, int64_t dim, int64_t start, int64_t step, int64_t length, dt_array *out,
         dt_error *err)
{
    int d;
    DT_TRY(dt_check_dim(op, dim, x->ndim, &d, err));
    if (DT_UNLIKELY(dt_is_tracked(x)) && dt_notes_views()) {
        dt_region part = whole_of(x);
        part.offset = length > 0 ? start * part.strides[d] : 0;
        part.shape[d] = length;
        part.strides[d] *= length > 1 ? step : 1;
        DT_RECORD_NEW(DT_GRAD_subset, &part, out, dt_slice(op, x, dim, start, step, length, out, err), x);
    }
    dt_array view;
    dt_array_copy_handle(x, &view);
    if (length > 0) {
        view.offset += start * x->strides[d] * (int64_t)dt_itemsize((dt_dtype)x->dtype);
    }
    view.shape[d] = length;
    view.strides[d] = length > 1 ? x->strides[d] * step : x->strides[d];
    *out = view;
    return DT_OK;
}

dt_status
dt_narrow(const char *op, const dt_array *x, int64_t dim, int64_t start, int64_t length, dt_array *out, dt_error *err)
{
    int d;
    DT_TRY(dt_check_dim(op, dim, x->ndim, &d, err));
    int64_t size = x->ndim ? x->shape[d] : 0, from = start < 0 ? start + size : start;
    if (from < 0 || from > size || length < 0 || length > size - from) {
        return dt_fail_length(op, start, length, size, err);
    }
    return dt_slice(op, x, d, from, 1, length, out, err);
}

dt_status
dt_select(const char *op, const dt_array *x, int64_t dim, int64_t index, dt_array *out, dt_error *err)
{
    int at;
    if (x->ndim == 0) {
        return dt_fail_no_dims(op, err);
    }
    DT_TRY(dt_check_dim(op, dim, x->ndim, &at, err));
    int64_t size = x->shape[at], i = index < 0 ? index + size : index;
    if (i < 0 || i >= size) {
        return dt_fail_index(op, index, at, size, err);
    }
    if (DT_UNLIKELY(dt_is_tracked(x)) && dt_notes_views()) {
        dt_region part = whole_of(x);
        part.offset = i * part.strides[at];
        part.ndim--;
        for (int d = at; d < part.ndim; d++) {
            part.shape[d] = part.shape[d + 1];
            part.strides[d] = part.strides[d + 1];
        }
        DT_RECORD_NEW(DT_GRAD_subset, &part, out, dt_select(op, x, dim, index, out, err), x);
    }
    dt_array view;
    view_begin(x, &view);
    view.offset += i * x->strides[at] * (int64_t)dt_itemsize((dt_dtype)x->dtype);
    for (int d = 0; d < x->ndim; d++) {
        if (d != at) {
            view_add(&view, x->shape[d], x->strides[d]);
        }
    }
    *out = view;
    return DT_OK;
}

/* The diagonal over the dimensions a and b, as the last of part: offset places above the main one. */
static dt_region
diagonal_of(const dt_region *all, int64_t offset, int a, int b)
{
    dt_region part = {.offset = all->offset};
    offset = offset < -all->shape[a] ? -all->shape[a] : offset > all->shape[b] ? all->shape[b] : offset;
    const int64_t rows = all->shape[a] - (offset < 0 ? -offset : 0),
                  columns = all->shape[b] - (offset > 0 ? offset : 0);
    const int64_t size = rows < columns ? rows : columns;
    for (int d = 0; d < all->ndim; d++) {
        if (d != a && d != b) {
            part.shape[part.ndim] = all->shape[d];
            part.strides[part.ndim++] = all->strides[d];
        }
    }
    part.shape[part.ndim] = size > 0 ? size : 0;
    part.strides[part.ndim++] = all->strides[a] + all->strides[b];
    if (size > 0) {
        part.offset += offset < 0 ? -offset * all->strides[a] : offset * all->strides[b];
    }
    return part;
}

dt_status
dt_diagonal(const char *op, const dt_array *x, int64_t offset, int64_t dim1, int64_t dim2, dt_array *out, dt_error *err)
{
    const int64_t dims[2] = {dim1, dim2};
    int at[2];
    const dt_operand in[] = {{"input", x, -1}};
    DT_TRY(dt_check_rank_between(op, in, 1, 0, 2, DT_MAX_NDIM, err));
    DT_TRY(dt_check_dims(op, 2, dims, x->ndim, at, err));
    if (DT_UNLIKELY(dt_is_tracked(x)) && dt_notes_views()) {
        const dt_region all = whole_of(x), part = diagonal_of(&all, offset, at[0], at[1]);
        DT_RECORD_NEW(DT_GRAD_subset, &part, out, dt_diagonal(op, x, offset, dim1, dim2, out, err), x);
    }
    dt_region all = {.ndim = x->ndim};
    memcpy(all.shape, x->shape, sizeof(all.shape));
    memcpy(all.strides, x->strides, sizeof(all.strides));
    const dt_region part = diagonal_of(&all, offset, at[0], at[1]);
    dt_array view;
    view_begin(x, &view);
    view.offset += part.offset * (int64_t)dt_itemsize((dt_dtype)x->dtype);
    for (int d = 0; d < part.ndim; d++) {
        view_add(&view, part.shape[d], part.strides[d]);
    }
    *out = view;
    return DT_OK;
}

dt_status
dt_view_strided(const dt_array *x, int64_t offset, int ndim, const int64_t *shape, const int64_t *strides,
                dt_array *out, dt_error *err)
{
    const int64_t itemsize = (int64_t)dt_itemsize((dt_dtype)x->dtype);
    if (DT_UNLIKELY(dt_is_tracked(x)) && dt_notes_views()) {
        dt_strided_record record = {.part = {.offset = offset, .ndim = ndim},
                                    .own = {.offset = x->offset / itemsize, .ndim = x->ndim},
                                    .n = (int64_t)x->storage->nbytes / itemsize};
        memcpy(record.part.shape, shape, (size_t)ndim * sizeof(*shape));
        memcpy(record.part.strides, strides, (size_t)ndim * sizeof(*strides));
        memcpy(record.own.shape, x->shape, x->ndim * sizeof(*shape));
        memcpy(record.own.strides, x->strides, x->ndim * sizeof(*strides));
        DT_RECORD_NEW(DT_GRAD_strided, &record, out, dt_view_strided(x, offset, ndim, shape, strides, out, err), x);
    }
    return dt_as_strided(x->storage, offset * itemsize, (dt_dtype)x->dtype, ndim, shape, strides, out, err);
}

dt_status
dt_view_dtype(const char *op, const dt_array *x, dt_dtype dtype, dt_array *out, dt_error *err)
{
    const int64_t size = (int64_t)dt_itemsize((dt_dtype)x->dtype), wanted = (int64_t)dt_itemsize(dtype);
    const int64_t more = wanted < size ? size / wanted : 1, fewer = size < wanted ? wanted / size : 1;
    DT_TRY(dt_check_view_dtype(op, x, dtype, err));
    dt_array view;
    view_begin(x, &view);
    view.dtype = (uint8_t)dtype;
    for (int d = 0; d < x->ndim; d++) {
        const bool last = d == x->ndim - 1;
        /* as_strided may have chosen any stride for a dimension of size 1 */
        const int64_t stride = (int64_t)((uint64_t)x->strides[d] * (uint64_t)more) / fewer;
        view_add(&view, last ? x->shape[d] * more / fewer : x->shape[d], last ? x->strides[d] : stride);
    }
    *out = view;
    return DT_OK;
}
