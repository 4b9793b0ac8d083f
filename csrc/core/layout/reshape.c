/* reshape.c: the same elements in another shape: a view where strides can say it, else of a copy. */
#include "../check/check.h"
#include "../grad/params.h"
#include "../ops/ops.h"
#include "../check/sentence.h"

#include <string.h>

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
    DT_RECORD_NEW(DT_GRAD_reshape, DT_NO_PARAMS, out, dt_view_reshape(op, x, ndim, shape, out, err), x);
    int64_t resolved[DT_MAX_NDIM] = {0}, strides[DT_MAX_NDIM];
    DT_TRY(resolve_shape(op, x, ndim, shape, resolved, err));
    bool empty = dt_array_numel(x) == 0;
    if (!empty && !view_strides(x, ndim, resolved, strides)) {
        return dt_fail_view(op, x, ndim, shape, err);
    }
    dt_array view = {.storage = dt_storage_retain(x->storage), .offset = x->offset, .dtype = x->dtype};
    view.ndim = (uint8_t)ndim;
    for (int d = 0; d < ndim; d++) {
        view.shape[d] = resolved[d];
        view.strides[d] = empty ? 1 : strides[d];
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
    DT_RECORD_NEW(DT_GRAD_reshape, DT_NO_PARAMS, out, dt_reshape(op, x, ndim, shape, out, err), x);
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
        return dt_fail_dim_order(op, err);
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
