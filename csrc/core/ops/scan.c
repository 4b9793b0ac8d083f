/* scan.c: running sums, products and extrema. The dimension goes last; the backend sees rows. */
#include "../check/check.h"
#include "../grad/params.h"
#include "ops.h"
#include "../result.h"

static const uint8_t derivatives[DT_NSCANS] = {
    [DT_SCAN_SUM] = DT_GRAD_cumsum,
    [DT_SCAN_PROD] = DT_GRAD_cumprod,
    [DT_SCAN_LOGSUMEXP] = DT_GRAD_logcumsumexp,
};

/* What the op answers in. */
static dt_status
scan_dtype(dt_scan_op op, const char *name, const dt_operand in[2], int wanted, bool in_place, dt_dtype *result,
           dt_error *err)
{
    const dt_dtype dtype = (dt_dtype)in[0].array->dtype;
    *result = wanted >= 0 ? (dt_dtype)wanted : in_place || dt_is_float(dtype) ? dtype : DT_INT64;
    return op == DT_SCAN_LOGSUMEXP && !dt_is_float(*result) ? dt_fail_kind(name, in, 2, 0, DT_FLOATS, err) : DT_OK;
}

dt_status
dt_scan(dt_scan_op op, const char *name, const dt_array *x, int64_t dim, bool reverse, int dtype, bool in_place,
        dt_array *out, dt_error *err)
{
    const dt_pair_record along = {dim, reverse};
    DT_RECORD(derivatives[op], &along, out, dt_scan(op, name, x, dim, reverse, dtype, in_place, out, err), x);
    const dt_operand in[] = {{"input", x, -1}, DT_OUT(out)};
    dt_dtype result, compute;
    int last;
    DT_TRY(dt_check_same_device(name, in, 2, err));
    DT_TRY(scan_dtype(op, name, in, dtype, in_place, &result, err));
    DT_TRY(dt_check_dim(name, dim, x->ndim, &last, err));
    DT_TRY(dt_check_out(name, in, 2, result, x->ndim, x->shape, err));
    compute = dt_is_float(result) ? result : DT_INT64; /* integers wrap, so that it may be cast at the end */
    dt_array cast;
    DT_TRY(dt_to(x, dt_array_device(x), dt_is_float(result) || dtype >= 0 ? result : (dt_dtype)x->dtype, false, false,
                 &cast, err));
    const dt_array *reads[] = {&cast};
    const dt_form form = {name,          dt_array_device(x),         compute, x->ndim, x->shape,
                          .like = &cast, .fills = DT_BESIDE_OPERANDS};
    dt_array wide = DT_ARRAY_EMPTY, *into = result == compute ? out : &wide;
    dt_result r;
    dt_status rc = dt_result_open(&r, &form, reads, 1, into, err);
    if (rc == DT_OK) {
        const dt_array rows = dt_with_last(&cast, last);
        dt_array place = dt_with_last(r.target, last);
        rc = dt_result_close(&r, dt_call_scan(op, &rows, reverse, &place, NULL, err), err);
    }
    if (rc == DT_OK && into == &wide) {
        rc = out->storage == NULL ? dt_cast(&wide, result, out, err)
                                  : dt_copy_into(name, out, "input", &wide, false, false, err);
        dt_array_clear(&wide);
    }
    dt_array_clear(&cast);
    return rc;
}

dt_status
dt_scan_extremum(dt_scan_op op, const char *name, const dt_array *x, int64_t dim, dt_array *values, dt_array *indices,
                 dt_error *err)
{
    int last;
    DT_TRY(dt_check_dim(name, dim, x->ndim, &last, err));
    DT_TRY(dt_empty_beside(x, (dt_dtype)x->dtype, values, err));
    dt_status rc = dt_empty_beside(x, DT_INT64, indices, err);
    if (rc == DT_OK) {
        const dt_array rows = dt_with_last(x, last);
        dt_array place = dt_with_last(values, last), places = dt_with_last(indices, last);
        rc = dt_result_made(dt_call_new_scan(op, &rows, false, &place, &places, err), indices);
    }
    return dt_result_made(rc, values);
}
