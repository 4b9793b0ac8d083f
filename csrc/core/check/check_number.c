/* check_number.c: the sentences of check.c that are about Python numbers among the elements of an array. */
#include "check.h"
#include "sentence.h"

#include <math.h>
#include <stdio.h>

dt_status
dt_check_limits(const char *op, const dt_operand *in, int n, const dt_params *limits, dt_error *err)
{
    if (limits->f[0] <= limits->f[1]) {
        return DT_OK;
    }
    const bool ordered = limits->f[0] > limits->f[1];
    dt_sentence_begin(err, DT_EARGUMENT, "invalid-argument", op, in, n);
    dt_sentence_add(err, "min_val %s, but got %g and %g (%s)",
                    ordered ? "cannot be greater than max_val" : "and max_val cannot be NaN", limits->f[0],
                    limits->f[1], op);
    return DT_EARGUMENT;
}

const char *
dt_number_text(const dt_scalar *value, char text[DT_NUMBER_TEXT])
{
    if (value->kind == DT_CATEGORY_FLOAT) {
        snprintf(text, DT_NUMBER_TEXT, "%g", value->f);
    } else {
        snprintf(text, DT_NUMBER_TEXT, "%lld", (long long)value->i);
    }
    return text;
}

dt_status
dt_check_whole(const char *op, const dt_scalar *value, dt_dtype dtype, dt_error *err)
{
    if (value->kind != DT_CATEGORY_FLOAT || (value->f >= -0x1p63 && value->f < 0x1p63)) {
        return DT_OK;
    }
    return dt_fail(err, DT_EVALUE, "value-overflow", op,
                   "value cannot be converted to type %s without overflow: %g (%s)", dt_dtypes[dtype].name, value->f,
                   op);
}

/* As an element of dtype an integer is itself, and a float its whole part. */
bool
dt_fits(const dt_scalar *value, dt_dtype dtype)
{
    if (dt_dtypes[dtype].category != DT_CATEGORY_INT || value->kind == DT_CATEGORY_BOOL) {
        return true;
    }
    if (value->kind == DT_CATEGORY_FLOAT) {
        const double size = ldexp(1, 8 * (int)dt_itemsize(dtype)), least = dtype == DT_UINT8 ? 0 : -size / 2;
        return value->f >= least && value->f <= least + size - 1 && value->f < 0x1p63; /* no NaN does */
    }
    unsigned char element[8];
    dt_scalar_store(value, dtype, element);
    return dt_scalar_load(dtype, element).i == value->i;
}

dt_status
dt_check_value(const char *op, const dt_scalar *value, dt_dtype dtype, dt_error *err)
{
    if (dt_fits(value, dtype)) {
        return DT_OK;
    }
    char text[DT_NUMBER_TEXT];
    return dt_fail(err, DT_EVALUE, "value-overflow", op,
                   "value cannot be converted to type %s without overflow: %s (%s)", dt_dtypes[dtype].name,
                   dt_number_text(value, text), op);
}

dt_status
dt_check_bound(const char *op, int64_t bound, dt_dtype dtype, dt_error *err)
{
    const dt_scalar value = dt_scalar_int(bound);
    const bool fits = dtype == DT_BOOL ? bound == 0 || bound == 1 : dt_fits(&value, dtype);
    return fits ? DT_OK
                : dt_fail(err, DT_EVALUE, "value-overflow", op, "%lld is out of bounds for %s (%s)", (long long)bound,
                          dt_dtypes[dtype].name, op);
}

dt_status
dt_check_permutation(const char *op, int64_t n, dt_dtype dtype, dt_error *err)
{
    const int digits = dtype == DT_FLOAT16 ? 11 : dtype == DT_BFLOAT16 ? 8 : dtype == DT_FLOAT32 ? 24 : 53;
    if (!dt_is_float(dtype)) {
        return n > 0 ? dt_check_bound(op, n - 1, dtype, err) : DT_OK;
    }
    const int64_t most = (INT64_C(1) << digits) + 1;
    return n <= most
               ? DT_OK
               : dt_fail(err, DT_EVALUE, "value-overflow", op, "n cannot be greater than %lld for %s, not %lld (%s)",
                         (long long)most, dt_dtypes[dtype].name, (long long)n, op);
}

dt_status
dt_fail_negative_power(const char *op, dt_error *err)
{
    return dt_fail(err, DT_EVALUE, "invalid-parameter", op, "Integers to negative integer powers are not allowed.");
}
