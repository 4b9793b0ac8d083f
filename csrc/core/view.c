/* view.c: other shapes over the same storage. */
#include "check.h"
#include "sentence.h"

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

/* Replaces a -1 in shape by the size that is left; checks the number of elements and, where it is 0, the sizes. */
static dt_status
resolve_shape(const char *op, const dt_array *x, int ndim, const int64_t *shape, int64_t *resolved, dt_error *err)
{
    if (ndim > DT_MAX_NDIM) {
        return dt_fail_too_many_dims(op, ndim, err);
    }
    int unknown = -1;
    uint64_t known = 1, numel = (uint64_t)dt_array_numel(x);
    bool overflow = false;
    for (int d = 0; d < ndim; d++) {
        resolved[d] = shape[d];
        if (shape[d] == -1 && unknown < 0) {
            unknown = d;
        } else if (shape[d] == -1) {
            return dt_fail_reshape_unknown(op, "only one dimension can be inferred", ndim, shape, err);
        } else if (shape[d] < 0) {
            return dt_fail_reshape_unknown(op, "invalid shape dimension", ndim, shape, err);
        } else if (__builtin_mul_overflow(known, (uint64_t)shape[d], &known)) {
            overflow = true;
        }
    }
    if (unknown >= 0) {
        if (known == 0 && numel == 0) {
            return dt_fail_reshape_unknown(op, "the unspecified dimension -1 can be any value where another size is 0",
                                           ndim, shape, err);
        }
        if (overflow || known == 0 || numel % known != 0) {
            return dt_fail_reshape(op, x, ndim, shape, err);
        }
        resolved[unknown] = (int64_t)(numel / known);
    } else if (overflow || known != numel) {
        return dt_fail_reshape(op, x, ndim, shape, err);
    }
    return numel == 0 ? dt_shape_check(op, ndim, resolved, (dt_dtype)x->dtype, err) : DT_OK;
}

/* Strides of the new shape over x's memory; false where a copy would be needed. Old and new dimensions are matched in
 * groups of equal size, from the front; inside a group the old dimensions must follow one another. */
static bool
view_strides(const dt_array *x, int ndim, const int64_t *shape, int64_t *strides)
{
    int old[DT_MAX_NDIM], nold = 0, i = 0, j = 0;
    for (int d = 0; d < x->ndim; d++) {
        if (x->shape[d] != 1) {
            old[nold++] = d;
        }
    }
    while (i < nold || j < ndim) {
        int first_old = i, first_new = j;
        int64_t size_old = i < nold ? x->shape[old[i++]] : 1, size_new = 1;
        while (size_new < size_old && j < ndim) {
            size_new *= shape[j++];
            while (size_new > size_old && i < nold) {
                size_old *= x->shape[old[i++]];
            }
        }
        while (j < ndim && shape[j] == 1) {
            j++;
        }
        for (int k = first_old; k + 1 < i; k++) {
            if (x->strides[old[k]] != x->strides[old[k + 1]] * x->shape[old[k + 1]]) {
                return false;
            }
        }
        int64_t stride = i > first_old ? x->strides[old[i - 1]] : 1;
        for (int d = j - 1; d >= first_new; d--) {
            strides[d] = stride;
            stride *= shape[d];
        }
        if (i == first_old && j == first_new) {
            return false;
        }
    }
    return true;
}

dt_status
dt_view_reshape(const char *op, const dt_array *x, int ndim, const int64_t *shape, dt_array *out, dt_error *err)
{
    int64_t resolved[DT_MAX_NDIM] = {0}, strides[DT_MAX_NDIM];
    DT_TRY(resolve_shape(op, x, ndim, shape, resolved, err));
    dt_array view;
    view_begin(x, &view);
    bool empty = dt_array_numel(x) == 0;
    if (!empty && !view_strides(x, ndim, resolved, strides)) {
        dt_array_clear(&view);
        return dt_fail_view(op, x, ndim, shape, err);
    }
    for (int d = 0; d < ndim; d++) {
        view_add(&view, resolved[d], empty ? 1 : strides[d]);
    }
    if (empty) {
        dt_array_set_contiguous(&view);
    }
    *out = view;
    return DT_OK;
}

dt_status
dt_reshape(const char *op, const dt_array *x, int ndim, const int64_t *shape, dt_array *out, dt_error *err)
{
    int64_t resolved[DT_MAX_NDIM] = {0}, strides[DT_MAX_NDIM];
    DT_TRY(resolve_shape(op, x, ndim, shape, resolved, err));
    if (dt_array_numel(x) == 0 || view_strides(x, ndim, resolved, strides)) {
        return dt_view_reshape(op, x, ndim, resolved, out, err);
    }
    dt_array copy;
    DT_TRY(dt_contiguous(x, &copy, err));
    dt_status rc = dt_view_reshape(op, &copy, ndim, resolved, out, err);
    dt_array_clear(&copy);
    return rc;
}

dt_status
dt_flatten(const char *op, const dt_array *x, int64_t start_dim, int64_t end_dim, dt_array *out, dt_error *err)
{
    int start, end;
    DT_TRY(dt_check_dim(op, start_dim, x->ndim, &start, err));
    DT_TRY(dt_check_dim(op, end_dim, x->ndim, &end, err));
    if (start > end) {
        return dt_fail(err, DT_EVALUE, "dimension-order", op,
                       "flatten() has invalid args: start_dim cannot come after end_dim");
    }
    if (x->ndim == 0) {
        const int64_t one = 1;
        return dt_reshape(op, x, 1, &one, out, err);
    }
    int64_t shape[DT_MAX_NDIM], merged = 1;
    int n = 0;
    for (int d = 0; d < x->ndim; d++) {
        if (d < start || d > end) {
            shape[n++] = x->shape[d];
            continue;
        }
        merged *= x->shape[d];
        if (d == end) {
            shape[n++] = merged;
        }
    }
    return dt_reshape(op, x, n, shape, out, err);
}

dt_status
dt_unflatten(const char *op, const dt_array *x, int64_t dim, int ndim, const int64_t *sizes, dt_array *out,
             dt_error *err)
{
    int at;
    DT_TRY(dt_check_dim(op, dim, x->ndim, &at, err));
    int total = (x->ndim ? x->ndim : 1) - 1 + ndim;
    if (total > DT_MAX_NDIM) {
        return dt_fail_too_many_dims(op, total, err);
    }
    /* the sizes must make up the dimension by themselves */
    dt_array one = {
        .dtype = x->dtype, .ndim = 1, .storage = x->storage, .shape = {x->ndim ? x->shape[at] : 1}, .strides = {1}};
    int64_t resolved[DT_MAX_NDIM] = {0}, shape[DT_MAX_NDIM];
    dt_status status = resolve_shape(op, &one, ndim, sizes, resolved, err);
    if (status != DT_OK) {
        if (err->noperands == 1) {
            err->operands[0] = dt_describe_operand(&(dt_operand){"input", x, -1}); /* not one */
        }
        return status;
    }
    int n = 0;
    for (int d = 0; d < (x->ndim ? x->ndim : 1); d++) {
        if (d != at) {
            shape[n++] = x->shape[d];
            continue;
        }
        for (int k = 0; k < ndim; k++) {
            shape[n++] = resolved[k];
        }
    }
    return dt_reshape(op, x, n, shape, out, err);
}

dt_status
dt_permute(const char *op, const dt_array *x, int ndims, const int64_t *dims, dt_array *out, dt_error *err)
{
    int indices[DT_MAX_NDIM];
    if (ndims != x->ndim) {
        return dt_fail_permute(op, x, ndims, err);
    }
    DT_TRY(dt_check_dims(op, ndims, dims, x->ndim, indices, err));
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

/* rc: how the view of input in the shape of other ended; errors name both. */
static dt_status
beside(dt_status rc, const dt_array *other, dt_error *err)
{
    if (rc != DT_OK) {
        const bool is_shape = err->code != NULL && strcmp(err->code, "shape-mismatch") == 0;
        const dt_operand more = {"other", other, -1};
        dt_sentence_join(err, &more);
        err->culprit = is_shape ? err->noperands - 1 : err->culprit;
    }
    return rc;
}

dt_status
dt_expand_as(const dt_array *input, const dt_array *other, dt_array *out, dt_error *err)
{
    return beside(dt_expand("expand_as", input, other->ndim, other->shape, out, err), other, err);
}

dt_status
dt_view_as(const dt_array *input, const dt_array *other, dt_array *out, dt_error *err)
{
    return beside(dt_view_reshape("view_as", input, other->ndim, other->shape, out, err), other, err);
}

dt_status
dt_slice(const char *op, const dt_array *x, int64_t dim, int64_t start, int64_t step, int64_t length, dt_array *out,
         dt_error *err)
{
    int d;
    DT_TRY(dt_check_dim(op, dim, x->ndim, &d, err));
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
        return dt_fail(err, DT_EINDEX, "index-out-of-range", op, "%s cannot be applied to a 0-dim tensor", op);
    }
    DT_TRY(dt_check_dim(op, dim, x->ndim, &at, err));
    int64_t size = x->shape[at], i = index < 0 ? index + size : index;
    if (i < 0 || i >= size) {
        return dt_fail_index(op, index, at, size, err);
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

dt_status
dt_diagonal(const char *op, const dt_array *x, dt_array *out, dt_error *err)
{
    const dt_operand in[] = {{"input", x, -1}};
    DT_TRY(dt_check_rank(op, in, 1, 0, 2, err));
    dt_array view;
    view_begin(x, &view);
    view_add(&view, x->shape[0] < x->shape[1] ? x->shape[0] : x->shape[1], x->strides[0] + x->strides[1]);
    *out = view;
    return DT_OK;
}
