/* reduce.c: reductions and softmax. The reduced dimensions go last; the backend sees rows. */
#include "../check/check.h"
#include "../grad/params.h"
#include "ops.h"
#include "../result.h"

#include <string.h>

const char *const dt_reduce_names[DT_NREDUCE] = {
#define DT_REDUCE(name, ...) #name,
#include "../reductions.def"
#undef DT_REDUCE
};

const uint8_t dt_reduce_kinds[DT_NREDUCE] = {
#define DT_REDUCE(name, kind, ...) DT_REDUCE_KIND_##kind,
#include "../reductions.def"
#undef DT_REDUCE
};

/* What the op answers in, and the dtype that the input is cast to first. */
static dt_status
reduce_dtypes(dt_reduce_kind kind, const char *name, const dt_operand in[2], int wanted, dt_dtype *input,
              dt_dtype *result, dt_error *err)
{
    dt_dtype dtype = (dt_dtype)in[0].array->dtype;
    *input = *result = dtype;
    switch (kind) {
    case DT_REDUCE_KIND_SUM:
        *result = wanted >= 0 ? (dt_dtype)wanted : dt_is_float(dtype) ? dtype : DT_INT64;
        /* a wider or other category is cast first, so that nothing is lost on the way */
        *input = dt_dtypes[*result].category == dt_dtypes[dtype].category || !dt_is_float(*result) ? dtype : *result;
        if (dt_is_float(dtype) && !dt_is_float(*result)) {
            *input = *result;
        }
        return DT_OK;
    case DT_REDUCE_KIND_FLOAT:
    case DT_REDUCE_KIND_SQUARES:
        if (wanted >= 0) {
            *result = (dt_dtype)wanted;
            *input = dt_is_float(dtype) ? dtype : *result;
        }
        if (!dt_is_float(*input) || !dt_is_float(*result)) {
            return dt_fail_kind(name, in, 2, 0, DT_FLOATS " (or dtype= one of those)", err);
        }
        return DT_OK;
    case DT_REDUCE_KIND_ARG:
        *result = DT_INT64;
        return DT_OK;
    case DT_REDUCE_KIND_TEST:
        *result = dtype == DT_UINT8 ? DT_UINT8 : DT_BOOL;
        return DT_OK;
    default:
        return DT_OK;
    }
}

/* x with the dimensions in `reduced` last, borrowed, and the shape of the result. */
__attribute__((always_inline)) static inline dt_array
rows_of(const dt_array *x, int n, const int *reduced, bool keepdim, int *ndim, int64_t *shape)
{
    bool is_reduced[DT_MAX_NDIM] = {false};
    for (int i = 0; i < n; i++) {
        is_reduced[reduced[i]] = true;
    }
    dt_array rows;
    rows.storage = x->storage;
    rows.node = NULL;
    rows.offset = x->offset;
    rows.dtype = x->dtype;
    rows.ndim = x->ndim;
    int kept = 0, last = x->ndim - n;
    *ndim = 0;
    for (int d = 0; d < x->ndim; d++) {
        int at = is_reduced[d] ? last++ : kept++;
        rows.shape[at] = x->shape[d];
        rows.strides[at] = x->strides[d];
        if (!is_reduced[d] || keepdim) {
            shape[(*ndim)++] = is_reduced[d] ? 1 : x->shape[d];
        }
    }
    return rows;
}

static dt_status
check_not_empty(const char *name, const dt_array *x, bool all, int n, const int *reduced, dt_error *err)
{
    for (int i = 0; i < n; i++) {
        if (x->shape[reduced[i]] == 0) {
            return dt_fail_empty_reduction(name, x, all ? -1 : reduced[i], err);
        }
    }
    return DT_OK;
}

/* A reduction of nothing: the identity of the op, NaN for a mean. */
static dt_status
fill_identity(dt_reduce_op op, dt_array *out, dt_error *err)
{
    static const uint8_t identities[DT_NREDUCE] = {
#define DT_REDUCE(name, kind, identity, ...) identity,
#include "../reductions.def"
#undef DT_REDUCE
    };
    dt_scalar value =
        dt_reduce_kinds[op] == DT_REDUCE_KIND_FLOAT ? dt_scalar_float((double)NAN) : dt_scalar_int(identities[op]);
    return dt_call_fill(out, &value, err);
}

/* dims, which need not be right, as the formulas want them. */
static dt_reduce_record
reduced_of(const char *name, const dt_array *x, int ndims, const int64_t *dims)
{
    dt_reduce_record r = {ndims > 0 ? 0 : (1u << x->ndim) - 1, strcmp(name, "max") == 0 || strcmp(name, "min") == 0};
    for (int i = 0; i < ndims && i < DT_MAX_NDIM; i++) {
        const int64_t d = dims[i] < 0 ? dims[i] + x->ndim : dims[i];
        r.reduced |= d >= 0 && d < x->ndim ? 1u << d : 0;
    }
    return r;
}

dt_status
dt_reduce(dt_reduce_op op, const char *name, const dt_array *x, int ndims, const int64_t *dims, bool keepdim, int dtype,
          dt_array *out, dt_error *err)
{
    if (DT_UNLIKELY(dt_is_tracked(x)) && !dt_grad_off) {
        const dt_reduce_record reduced = reduced_of(name, x, ndims, dims);
        DT_RECORD(dt_reduce_derivatives[op], &reduced, out,
                  dt_reduce(op, name, x, ndims, dims, keepdim, dtype, out, err), x);
    }
    dt_reduce_kind kind = (dt_reduce_kind)dt_reduce_kinds[op];
    const dt_operand in[] = {{"input", x, -1}, DT_OUT(out)};
    dt_dtype input, result;
    if (DT_UNLIKELY(out->storage != NULL)) {
        DT_TRY(dt_check_same_device(name, in, 2, err));
    }
    if (ndims == 0 && kind != DT_REDUCE_KIND_TEST) {
        ndims = -1; /* an empty list means all, but for any and all nothing: as in PyTorch */
    }
    int reduced[DT_MAX_NDIM], n = ndims < 0 ? x->ndim : ndims, ndim;
    int64_t shape[DT_MAX_NDIM];
    DT_TRY(reduce_dtypes(kind, name, in, dtype, &input, &result, err));
    if (n > DT_MAX_NDIM) {
        return dt_fail_too_many_dims(name, n, err);
    }
    if (ndims < 0) {
        for (int d = 0; d < n; d++) {
            reduced[d] = d;
        }
    } else {
        DT_TRY(dt_check_dims(name, n, dims, x->ndim, reduced, err));
        n = x->ndim == 0 ? 0 : n;
    }
    if (kind == DT_REDUCE_KIND_SAME || kind == DT_REDUCE_KIND_ARG) {
        DT_TRY(check_not_empty(name, x, ndims < 0, n, reduced, err));
    }
    dt_array cast = {.storage = NULL};
    const dt_array view = rows_of(x, n, reduced, keepdim, &ndim, shape), *read = &view;
    if (DT_UNLIKELY(out->storage != NULL)) {
        DT_TRY(dt_check_out(name, in, 2, result, ndim, shape, err));
    }
    if (x->dtype != input) {
        DT_TRY(dt_cast(&view, input, &cast, err));
        read = &cast;
    }
    const dt_form form = {name, dt_array_device(x), result, ndim, shape, .fills = DT_BLOCK};
    dt_result r;
    dt_status rc = dt_result_open(&r, &form, &read, 1, out, err);
    if (rc == DT_OK) {
        dt_array rows = *r.target; /* the backend's out has the kept dimensions only */
        rows.ndim = (uint8_t)(view.ndim - n);
        memcpy(rows.shape, view.shape, sizeof(rows.shape));
        dt_array_set_contiguous(&rows);
        rows.dtype = kind == DT_REDUCE_KIND_TEST ? DT_BOOL : rows.dtype; /* a uint8 of 0 or 1 is a bool */
        rc = dt_array_numel(read) == 0 ? fill_identity(op, &rows, err) : dt_call_reduce(op, NULL, read, n, &rows, err);
        rc = dt_result_close(&r, rc, err);
    }
    dt_array_clear(&cast);
    return rc;
}

dt_status
dt_variance(const char *name, const dt_array *x, int ndims, const int64_t *dims, bool keepdim, double count, bool root,
            dt_array *out, dt_error *err)
{
    const dt_operand in[] = {{"input", x, -1}};
    int reduced[DT_MAX_NDIM], ndim;
    int64_t shape[DT_MAX_NDIM];
    DT_TRY(dt_check_float(name, in, 1, err));
    if (ndims > DT_MAX_NDIM) {
        return dt_fail_too_many_dims(name, ndims, err);
    }
    DT_TRY(dt_check_dims(name, ndims, dims, x->ndim, reduced, err));
    const dt_array view = rows_of(x, ndims, reduced, keepdim, &ndim, shape);
    DT_TRY(dt_empty(dt_array_device(x), (dt_dtype)x->dtype, ndim, shape, out, err));
    dt_array rows = *out; /* as in dt_reduce */
    rows.ndim = (uint8_t)(view.ndim - ndims);
    memcpy(rows.shape, view.shape, sizeof(rows.shape));
    dt_array_set_contiguous(&rows);
    bool made = true;
    const dt_status rc = dt_call_new_variance(&view, ndims, count, root, &rows, &made, err);
    return dt_result_made_here(rc, made, name, out, err);
}

dt_status
dt_softmax(const char *name, const dt_array *x, int64_t dim, bool log, int dtype, dt_array *out, dt_error *err)
{
    const dt_pair_record along = {dim, 0};
    DT_RECORD(log ? DT_GRAD_log_softmax : DT_GRAD_softmax, &along, out, dt_softmax(name, x, dim, log, dtype, out, err),
              x);
    const dt_operand in[] = {{"input", x, -1}};
    int last;
    dt_dtype compute = dtype >= 0 ? (dt_dtype)dtype : (dt_dtype)x->dtype;
    if (!dt_is_float(compute)) {
        return dt_fail_kind(name, in, 1, 0, DT_FLOATS " (or dtype= one of those)", err);
    }
    DT_TRY(dt_check_dim(name, dim, x->ndim, &last, err));
    dt_array cast;
    DT_TRY(dt_to(x, dt_array_device(x), compute, false, false, &cast, err));
    const dt_array *reads[] = {&cast};
    const dt_form form = {name,          dt_array_device(x),         compute, x->ndim, x->shape,
                          .like = &cast, .fills = DT_BESIDE_OPERANDS};
    dt_result r;
    dt_status rc = dt_result_open(&r, &form, reads, 1, out, err);
    if (rc == DT_OK) {
        const dt_array rows = dt_with_last(&cast, last);
        dt_array place = dt_with_last(r.target, last);
        rc = dt_result_close(&r, dt_call_softmax(&rows, log, &place, err), err);
    }
    dt_array_clear(&cast);
    return rc;
}

dt_status
dt_softmax_grad(const char *name, const dt_array *grad, const dt_array *result, int64_t dim, bool log, dt_array *out,
                dt_error *err)
{
    const dt_operand in[] = {{"grad", grad, -1}, {"result", result, -1}, DT_OUT(out)};
    const dt_array *reads[] = {grad, result};
    int last;
    DT_TRY(dt_check_same_device(name, in, 3, err));
    DT_TRY(dt_check_float(name, in, 2, err));
    DT_TRY(dt_check_same_dtype(name, in, 2, err));
    DT_TRY(dt_check_dim(name, dim, result->ndim, &last, err));
    DT_TRY(dt_check_shape(name, in, 2, 0, result->ndim, result->shape, err));
    DT_TRY(dt_check_out(name, in, 3, (dt_dtype)result->dtype, result->ndim, result->shape, err));
    const dt_form form = {name,         dt_array_device(result), (dt_dtype)result->dtype,
                          result->ndim, result->shape,           .like = result};
    dt_result r;
    DT_TRY(dt_result_open(&r, &form, reads, 2, out, err));
    const dt_array grads = dt_with_last(grad, last), results = dt_with_last(result, last);
    dt_array place = dt_with_last(r.target, last);
    return dt_result_close(&r, dt_call_softmax_grad(&grads, &results, log, &place, err), err);
}
