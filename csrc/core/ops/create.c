/* create.c: arrays made on their device, without a host buffer. */
#include "../check/check.h"
#include "../grad/params.h"
#include "ops.h"
#include "../result.h"

#include <math.h>

dt_status
dt_full(const char *op, dt_device device, dt_dtype dtype, int ndim, const int64_t *shape, const dt_scalar *value,
        dt_array *out, dt_error *err)
{
    DT_TRY(dt_shape_check(op, ndim, shape, dtype, err));
    DT_TRY(dt_empty(device, dtype, ndim, shape, out, err));
    return dt_result_made(dt_fill(op, out, value, err), out);
}

dt_status
dt_arange(dt_device device, dt_dtype dtype, const dt_scalar *start, const dt_scalar *end, const dt_scalar *step,
          dt_array *out, dt_error *err)
{
    const char *op = "arange";
    if (dtype == DT_BOOL) {
        return dt_fail_dtype(op, dtype, "integers and floats", err);
    }
    if (!isfinite(start->f) || !isfinite(end->f) || !isfinite(step->f)) {
        return dt_fail(err, DT_EVALUE, "invalid-parameter", op, "unsupported range: %g -> %g by %g", start->f, end->f,
                       step->f);
    }
    if (step->f == 0 || (!dt_is_float(dtype) && step->i == 0)) {
        return dt_fail(err, DT_EVALUE, "invalid-parameter", op, "step must be nonzero: got %g for dtype %s", step->f,
                       dt_dtypes[dtype].name);
    }
    bool integers =
        start->kind != DT_CATEGORY_FLOAT && end->kind != DT_CATEGORY_FLOAT && step->kind != DT_CATEGORY_FLOAT;
    if (integers ? (step->i > 0 ? start->i > end->i : start->i < end->i)
                 : (step->f > 0 ? start->f > end->f : start->f < end->f)) {
        return dt_fail(err, DT_EVALUE, "invalid-parameter", op,
                       "upper bound and lower bound inconsistent with step sign: %g -> %g by %g", start->f, end->f,
                       step->f);
    }
    int64_t n;
    if (integers || dtype == DT_INT64) { /* exact, of what int64 makes of them: unsigned span and step */
        bool up = step->i > 0;
        uint64_t span = up ? (uint64_t)end->i - (uint64_t)start->i : (uint64_t)start->i - (uint64_t)end->i;
        uint64_t stride = up ? (uint64_t)step->i : 0u - (uint64_t)step->i;
        uint64_t count = span / stride + (span % stride != 0);
        n = count > INT64_MAX ? INT64_MAX : (int64_t)count;
    } else {
        double count = ceil((end->f - start->f) / step->f);
        n = count >= 9.2e18 ? INT64_MAX : (int64_t)count;
    }
    DT_TRY(dt_shape_check(op, 1, &n, dtype, err));
    DT_TRY(dt_empty(device, dtype, 1, &n, out, err));
    return dt_result_made(dt_call_new_arange(out, start, step, err), out);
}

/* An end of a sequence of integers is an integer first. */
static dt_status
truncate_end(dt_scalar *end, dt_dtype dtype, dt_error *err)
{
    if (dtype != DT_BOOL) {
        DT_TRY(dt_check_whole("linspace", end, dtype, err));
        *end = dt_scalar_int(end->i);
        DT_TRY(dt_check_value("linspace", end, dtype, err));
    }
    return DT_OK;
}

/* Both halves are counted from their own end, so that the last element is end exactly (as PyTorch does). Integers are
 * the truncated floats between truncated ends. */
dt_status
dt_linspace(dt_device device, dt_dtype dtype, const dt_scalar *start, const dt_scalar *end, int64_t steps,
            dt_array *out, dt_error *err)
{
    const char *op = "linspace";
    if (steps < 0) {
        return dt_fail(err, DT_EVALUE, "invalid-parameter", op, "number of steps must be non-negative, but got %lld",
                       (long long)steps);
    }
    if (!dt_is_float(dtype)) {
        dt_array a;
        dt_scalar first = *start, last = *end;
        DT_TRY(truncate_end(&first, dtype, err));
        DT_TRY(truncate_end(&last, dtype, err));
        DT_TRY(dt_linspace(device, DT_FLOAT64, &first, &last, steps, &a, err));
        dt_status cast = dt_to(&a, device, dtype, false, false, out, err);
        dt_array_clear(&a);
        return cast;
    }
    DT_TRY(dt_shape_check(op, 1, &steps, dtype, err));
    DT_TRY(dt_empty(device, dtype, 1, &steps, out, err));
    double step = steps > 1 ? (end->f - start->f) / (double)(steps - 1) : 0.0;
    int64_t half = (steps + 1) / 2;
    dt_array first = *out, last = *out; /* borrowed */
    first.shape[0] = half;
    last.shape[0] = steps - half;
    last.offset += (steps - 1) * (int64_t)dt_itemsize(dtype);
    last.strides[0] = -1;
    const dt_scalar from = dt_scalar_float(start->f), to = dt_scalar_float(end->f), up = dt_scalar_float(step),
                    down = dt_scalar_float(-step);
    dt_status rc = dt_call_arange(&first, &from, &up, err);
    if (rc == DT_OK) {
        rc = dt_call_arange(&last, &to, &down, err);
    }
    return dt_result_made(rc, out);
}

dt_status
dt_eye(dt_device device, dt_dtype dtype, int64_t rows, int64_t columns, dt_array *out, dt_error *err)
{
    const int64_t shape[2] = {rows, columns};
    const dt_scalar zero = dt_scalar_int(0), one = dt_scalar_int(1);
    dt_array diagonal;
    DT_TRY(dt_full("eye", device, dtype, 2, shape, &zero, out, err));
    dt_status rc = dt_diagonal("eye", out, 0, 0, 1, &diagonal, err);
    if (rc == DT_OK) {
        rc = dt_fill("eye", &diagonal, &one, err);
        dt_array_clear(&diagonal);
    }
    return dt_result_made(rc, out);
}

dt_status
dt_tri(const char *op, const dt_array *x, int64_t diagonal, bool upper, dt_array *out, dt_error *err)
{
    const dt_pair_record which = {diagonal, upper};
    DT_RECORD(DT_GRAD_tri, &which, out, dt_tri(op, x, diagonal, upper, out, err), x);
    const dt_operand in[] = {{"input", x, -1}};
    if (x->ndim < 2) {
        return dt_check_rank(op, in, 1, 0, 2, err);
    }
    DT_TRY(dt_empty(dt_array_device(x), (dt_dtype)x->dtype, x->ndim, x->shape, out, err));
    return dt_result_made(dt_call_new_tri(x, out, diagonal, upper, err), out);
}
