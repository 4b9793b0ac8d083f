/* check_shape.c: the sentences of check.c that are about views and about shapes that do not go together. */
#include "check.h"
#include "sentence.h"

#include <stdio.h>
#include <string.h>

/* ---------------------------------------------------------------- views */

dt_status
dt_fail_dim_order(const char *op, dt_error *err)
{
    return dt_fail(err, DT_EVALUE, "dimension-order", op,
                   "flatten() has invalid args: start_dim cannot come after end_dim");
}

dt_status
dt_fail_reshape(const char *op, const dt_array *x, int ndim, const int64_t *shape, dt_error *err)
{
    const dt_operand in = {"input", x, -1};
    char text[DT_SHAPE_TEXT];
    return dt_sentence_shapes("shape-mismatch", op, &in, 1, &in, err, "shape '%s' is invalid for input of size %lld",
                              dt_shape_text(ndim, shape, text), (long long)dt_array_numel(x));
}

dt_status
dt_fail_reshape_unknown(const char *op, const char *reason, int ndim, const int64_t *shape, dt_error *err)
{
    char text[DT_SHAPE_TEXT];
    return dt_fail(err, DT_ESHAPE, "shape-mismatch", op, "%s: %s, but got %s", op, reason,
                   dt_shape_text(ndim, shape, text));
}

dt_status
dt_fail_view(const char *op, const dt_array *x, int ndim, const int64_t *shape, dt_error *err)
{
    const dt_operand in = {"input", x, -1};
    char text[DT_SHAPE_TEXT];
    return dt_sentence_shapes(
        "view-needs-copy", op, &in, 1, &in, err,
        "view size %s is not compatible with input tensor's size and stride (at least one dimension "
        "spans across two contiguous subspaces). Use .reshape(...) instead.",
        dt_shape_text(ndim, shape, text));
}

/* Neighbours in the last dimension are joined or divided, so they must be neighbours in memory. */
dt_status
dt_check_view_dtype(const char *op, const dt_array *x, dt_dtype dtype, dt_error *err)
{
    const dt_operand in = {"input", x, -1};
    const int64_t size = (int64_t)dt_itemsize((dt_dtype)x->dtype), wanted = (int64_t)dt_itemsize(dtype);
    const int64_t factor = wanted / size;
    const int last = x->ndim - 1;
    const char *from = dt_dtypes[x->dtype].name, *to = dt_dtypes[dtype].name;
    if (size == wanted) {
        return DT_OK;
    }
    if (last < 0) {
        return dt_sentence_shapes("shape-mismatch", op, &in, 1, &in, err,
                                  "self.dim() cannot be 0 to view %s as %s (different element sizes)", from, to);
    }
    if (x->strides[last] != 1) {
        return dt_sentence_shapes("view-needs-copy", op, &in, 1, &in, err,
                                  "self.stride(-1) must be 1 to view %s as %s (different element sizes), but got %lld",
                                  from, to, (long long)x->strides[last]);
    }
    if (factor > 1 && x->shape[last] % factor != 0) {
        return dt_sentence_shapes(
            "shape-mismatch", op, &in, 1, &in, err,
            "self.size(-1) must be divisible by %lld to view %s as %s (different element sizes), but got %lld",
            (long long)factor, from, to, (long long)x->shape[last]);
    }
    for (int d = 0; d < last; d++) {
        if (factor > 1 && x->strides[d] % factor != 0) {
            return dt_sentence_shapes(
                "view-needs-copy", op, &in, 1, &in, err,
                "self.stride(%d) must be divisible by %lld to view %s as %s (different element sizes), but got %lld", d,
                (long long)factor, from, to, (long long)x->strides[d]);
        }
    }
    if (x->offset % wanted != 0) {
        return dt_sentence_shapes(
            "view-needs-copy", op, &in, 1, &in, err,
            "self.storage_offset() must be divisible by %lld to view %s as %s (different element sizes), but got %lld",
            (long long)factor, from, to, (long long)(x->offset / size));
    }
    if ((uintptr_t)dt_array_data(x) % (uintptr_t)wanted != 0) { /* memory of others may begin anywhere */
        return dt_sentence_shapes("view-needs-copy", op, &in, 1, &in, err,
                                  "the memory must begin at a multiple of %lld bytes to view %s as %s",
                                  (long long)wanted, from, to);
    }
    return DT_OK;
}

dt_status
dt_fail_permute(const char *op, const dt_array *x, int ndims, dt_error *err)
{
    const dt_operand in = {"input", x, -1};
    return dt_sentence_shapes("shape-mismatch", op, &in, 1, &in, err,
                              "number of dimensions in the tensor input (%d) does not match the length of the desired "
                              "ordering of dimensions (%d)",
                              x->ndim, ndims);
}

dt_status
dt_fail_expand(const char *op, const dt_array *x, int ndim, const int64_t *shape, int dim, dt_error *err)
{
    const dt_operand in = {"input", x, -1};
    char text[DT_SHAPE_TEXT];
    int own = dim - (ndim - x->ndim);
    dt_shape_text(ndim, shape, text);
    if (dim < 0 || own < 0) {
        return dt_sentence_shapes(
            "shape-mismatch", op, &in, 1, &in, err,
            "the sizes given %s must be at least as many as the dimensions of the tensor (%d), and -1 "
            "only stands for one of those",
            text, x->ndim);
    }
    return dt_sentence_shapes(
        "shape-mismatch", op, &in, 1, &in, err,
        "The expanded size of the tensor (%lld) must match the existing size (%lld) at non-singleton "
        "dimension %d. Target sizes: %s",
        (long long)shape[dim], (long long)x->shape[own], dim, text);
}

/* ---------------------------------------------------------------- shapes of operands */

dt_status
dt_check_rank(const char *op, const dt_operand *in, int n, int which, int rank, dt_error *err)
{
    static const char *const wanted[] = {"", "a vector (1D)", "a matrix (2D)", "a batch of matrices (3D)"};
    char name[DT_NAME_TEXT];
    int ndim = in[which].array->ndim;
    return ndim == rank
               ? DT_OK
               : dt_sentence_shapes("rank-mismatch", op, in, n, &in[which], err, "%s must be %s, but got a %dD tensor",
                                    dt_operand_name(&in[which], name), wanted[rank], ndim);
}

dt_status
dt_check_min_rank(const char *op, const dt_operand *in, int n, int which, int rank, dt_error *err)
{
    char name[DT_NAME_TEXT];
    int ndim = in[which].array->ndim;
    return ndim >= rank ? DT_OK
                        : dt_sentence_shapes("rank-mismatch", op, in, n, &in[which], err,
                                             "both arguments to %s need to be at least %dD, but %s is %dD", op, rank,
                                             dt_operand_name(&in[which], name), ndim);
}

/* Whether all operands but in[left_out] broadcast together. */
static bool
broadcasts_without(const dt_operand *in, int n, int left_out, int ndim)
{
    for (int d = 1; d <= ndim; d++) { /* from the last dimension */
        int64_t size = 1;
        for (int i = 0; i < n; i++) {
            const dt_array *x = in[i].array;
            if (i == left_out || !dt_operand_takes_part(&in[i]) || x->ndim < d || x->shape[x->ndim - d] == 1) {
                continue;
            }
            if (size != 1 && x->shape[x->ndim - d] != size) {
                return false;
            }
            size = x->shape[x->ndim - d];
        }
    }
    return true;
}

/* The one operand without which the others go together; where that is not one, the odder of a and b. */
static const dt_operand *
odd_shape(const dt_operand *in, int n, int a, int b, int ndim)
{
    const dt_operand *odd = NULL;
    for (int i = 0; i < n; i++) {
        if (dt_operand_takes_part(&in[i]) && broadcasts_without(in, n, i, ndim)) {
            if (odd != NULL) {
                return dt_odder(&in[a], &in[b]);
            }
            odd = &in[i];
        }
    }
    return odd != NULL ? odd : dt_odder(&in[a], &in[b]);
}

dt_status
dt_fail_broadcast(const char *op, const dt_operand *in, int n, int a, int b, int dim, dt_error *err)
{
    const dt_array *x = in[a].array, *y = in[b].array;
    int ndim = 0; /* dim counts in the broadcast shape */
    for (int i = 0; i < n; i++) {
        ndim = dt_operand_takes_part(&in[i]) && in[i].array->ndim > ndim ? in[i].array->ndim : ndim;
    }
    return dt_sentence_shapes(
        "shape-mismatch", op, in, n, odd_shape(in, n, a, b, ndim), err,
        "The size of tensor a (%lld) must match the size of tensor b (%lld) at non-singleton dimension %d",
        (long long)x->shape[x->ndim - (ndim - dim)], (long long)y->shape[y->ndim - (ndim - dim)], dim);
}

/* Whether two entries of a list have one shape, the size at dim aside (-1: no dim). */
static bool
same_but_at(const dt_array *a, const dt_array *b, int dim)
{
    bool same = a->ndim == b->ndim;
    for (int d = 0; same && d < a->ndim; d++) {
        same = d == dim || a->shape[d] == b->shape[d];
    }
    return same;
}

/* A vector of nothing, which cat (dim is not -1) passes over. */
static bool
is_passed_over(const dt_array *entry, int dim)
{
    return dim >= 0 && entry->ndim == 1 && entry->shape[0] == 0;
}

/* The entry that goes with the fewest others; of a tie, the later one. */
static const dt_operand *
odd_entry(const dt_operand *in, int n, int dim)
{
    int odd = 0, fewest = n + 1;
    for (int i = 0; i < n; i++) {
        int votes = 0;
        for (int k = 0; k < n; k++) {
            votes += same_but_at(in[i].array, in[k].array, dim);
        }
        if (votes <= fewest && !is_passed_over(in[i].array, dim)) {
            odd = i;
            fewest = votes;
        }
    }
    return &in[odd];
}

dt_status
dt_fail_stack(const dt_operand *in, int n, dt_error *err)
{
    return dt_sentence_shapes("shape-mismatch", "stack", in, n, odd_entry(in, n, -1), err,
                              "stack expects each tensor to be equal size");
}

dt_status
dt_fail_cat(const dt_operand *in, int n, const dt_array *model, const dt_array *other, int dim, dt_error *err)
{
    if (model->ndim != other->ndim) {
        return dt_sentence_shapes("rank-mismatch", "cat", in, n, odd_entry(in, n, dim), err,
                                  "Tensors must have same number of dimensions: got %d and %d", model->ndim,
                                  other->ndim);
    }
    return dt_sentence_shapes("shape-mismatch", "cat", in, n, odd_entry(in, n, dim), err,
                              "Sizes of tensors must match except in dimension %d", dim);
}

dt_status
dt_fail_cat_scalar(const dt_operand *in, int n, int which, dt_error *err)
{
    return dt_sentence_shapes("rank-mismatch", "cat", in, n, &in[which], err,
                              "zero-dimensional tensor (at position %d) cannot be concatenated", in[which].index);
}

dt_status
dt_fail_empty_list(const char *op, dt_error *err)
{
    return dt_fail(err, DT_EVALUE, "empty-list", op, "%s expects a non-empty list of tensors", op);
}

dt_status
dt_fail_empty_reduction(const char *op, const dt_array *x, int dim, dt_error *err)
{
    const dt_operand in = {"input", x, -1};
    if (dim < 0) {
        return dt_sentence_shapes(
            "empty-reduction", op, &in, 1, &in, err,
            "%s(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction "
            "dim with the 'dim' argument.",
            op);
    }
    return dt_sentence_shapes("empty-reduction", op, &in, 1, &in, err,
                              "%s(): Expected reduction dim %d to have non-zero size.", op, dim);
}

dt_status
dt_check_selected(const char *op, const dt_array *x, int64_t dim, int64_t k, int64_t least, dt_error *err)
{
    const dt_operand in = {"input", x, -1};
    int at;
    DT_TRY(dt_check_dim(op, dim, x->ndim, &at, err));
    const int64_t size = x->ndim == 0 ? 1 : x->shape[at];
    if (k >= least && k <= size) {
        return DT_OK;
    }
    return dt_sentence_shapes("selected-out-of-range", op, &in, 1, &in, err,
                              "%s(): selected index k out of range: k=%lld of %lld elements", op, (long long)k,
                              (long long)size);
}

/* A shape of which any size may be -1: PyTorch writes a star for it. */
static const char *
pattern_text(int ndim, const int64_t *shape, char text[DT_SHAPE_TEXT])
{
    (void)dt_shape_text(ndim, shape, text);
    for (char *at = text; (at = strstr(at, "-1")) != NULL;) {
        *at = '*';
        memmove(at + 1, at + 2, strlen(at + 2) + 1);
    }
    return text;
}

dt_status
dt_check_shape(const char *op, const dt_operand *in, int n, int which, int ndim, const int64_t *shape, dt_error *err)
{
    const dt_array *x = in[which].array;
    char name[DT_NAME_TEXT], wanted[DT_SHAPE_TEXT], got[DT_SHAPE_TEXT];
    bool same = x->ndim == ndim;
    for (int d = 0; same && d < ndim; d++) {
        same = shape[d] < 0 || x->shape[d] == shape[d];
    }
    return same ? DT_OK
                : dt_sentence_shapes(x->ndim == ndim ? "shape-mismatch" : "rank-mismatch", op, in, n, &in[which], err,
                                     "Expected %s to have shape %s, but got %s instead",
                                     dt_operand_name(&in[which], name), pattern_text(ndim, shape, wanted),
                                     dt_array_shape_text(x, got));
}

dt_status
dt_check_rank_between(const char *op, const dt_operand *in, int n, int which, int low, int high, dt_error *err)
{
    char name[DT_NAME_TEXT], range[DT_NAME_TEXT];
    int ndim = in[which].array->ndim;
    if (ndim >= low && ndim <= high) {
        return DT_OK;
    }
    snprintf(range, sizeof(range),
             low == high           ? "%dD"
             : high >= DT_MAX_NDIM ? "at least %dD"
                                   : "%dD to %dD",
             low, high);
    return dt_sentence_shapes("rank-mismatch", op, in, n, &in[which], err, "Expected %s to be %s, but got %dD instead",
                              dt_operand_name(&in[which], name), range, ndim);
}

dt_status
dt_check_channels(const char *op, const dt_operand *in, int n, dt_error *err)
{
    DT_TRY(dt_check_rank_between(op, in, n, 0, 2, DT_MAX_NDIM, err));
    int wrong = 0, right = 0, first = 0;
    for (int i = 1; i < n; i++) {
        if (dt_operand_present(&in[i])) {
            const dt_array *x = in[i].array;
            const bool fits = x->ndim == 1 && x->shape[0] == in[0].array->shape[1];
            right += fits;
            wrong += !fits;
            first = fits || first != 0 ? first : i;
        }
    }
    if (wrong == 0) {
        return DT_OK;
    }
    dt_status status = dt_check_shape(op, in, n, first, 1, &in[0].array->shape[1], err);
    if (right == 0) { /* the data rather than all the parameters */
        dt_sentence_culprit(err, &in[0]);
    }
    return status;
}
