/* clamp.c: limits that are numbers, arrays or none: one pass where both are numbers, else maximum, then minimum. */
#include "clamp.h"
#include "check.h"

#define OP "clamp"

/* Whether both are numbers, in order, that x's dtype holds. */
static bool
is_range(dt_dtype dtype, const dt_bound *low, const dt_bound *high)
{
    if (!low->given || !high->given || low->array != NULL || high->array != NULL) {
        return false;
    }
    if (dt_is_float(dtype)) {
        return low->scalar.f <= high->scalar.f;
    }
    return dtype != DT_BOOL && low->scalar.kind == DT_CATEGORY_INT && high->scalar.kind == DT_CATEGORY_INT &&
           low->scalar.i <= high->scalar.i;
}

static const dt_scalar *
number(const dt_bound *bound)
{
    return bound->array == NULL ? &bound->scalar : NULL;
}

/* What maximum, then minimum give. */
static dt_dtype
result_dtype(const dt_array *x, const dt_bound *low, const dt_bound *high)
{
    dt_array limited = {.dtype = x->dtype, .ndim = x->ndim};
    if (low->given) {
        limited.dtype = (uint8_t)dt_promoted(x, low->array, number(low));
        limited.ndim = low->array != NULL && low->array->ndim > x->ndim ? low->array->ndim : x->ndim;
    }
    return high->given ? dt_promoted(&limited, high->array, number(high)) : (dt_dtype)limited.dtype;
}

static dt_status
check(const dt_operand in[4], const dt_bound *low, const dt_bound *high, bool in_place, dt_error *err)
{
    int ndim;
    int64_t shape[DT_MAX_NDIM];
    DT_TRY(dt_check_same_device(OP, in, 4, err));
    const dt_dtype dtype = result_dtype(in[0].array, low, high);
    if (dtype == DT_BOOL) {
        return dt_fail_kind(OP, in, 4, 0, "numbers; for bool use logical_and or logical_or", err);
    }
    DT_TRY(dt_broadcast_shapes(OP, in, 4, &ndim, shape, err));
    return in_place ? dt_check_in_place(OP, in, 4, dtype, ndim, shape, err)
                    : dt_check_out(OP, in, 4, dtype, ndim, shape, err);
}

static dt_status
apply(dt_binary_op op, const dt_array *x, const dt_bound *bound, bool in_place, dt_array *out, dt_error *err)
{
    return dt_binary(op, OP, x, bound->array, number(bound), NULL, in_place, out, err);
}

dt_status
dt_clamp(const dt_array *input, const dt_bound *low, const dt_bound *high, bool in_place, dt_array *out, dt_error *err)
{
    const dt_operand in[] = {{"input", input, -1},
                             {"min", low->array, -1},
                             {"max", high->array, -1},
                             {"out", out->storage && !in_place ? out : NULL, DT_WRITTEN}};
    DT_TRY(check(in, low, high, in_place, err));
    if (is_range((dt_dtype)input->dtype, low, high)) {
        const dt_params params = {{low->scalar.f, high->scalar.f}, {low->scalar.i, high->scalar.i}};
        return dt_unary(DT_UNARY_hardtanh, OP, input, &params, in_place, out, err);
    }
    if (!low->given) {
        return apply(DT_BINARY_minimum, input, high, in_place, out, err);
    }
    if (!high->given) {
        return apply(DT_BINARY_maximum, input, low, in_place, out, err);
    }
    dt_array raised = DT_ARRAY_EMPTY;
    DT_TRY(apply(DT_BINARY_maximum, input, low, false, &raised, err));
    dt_status status;
    if (in_place) {
        dt_array limited = DT_ARRAY_EMPTY;
        status = apply(DT_BINARY_minimum, &raised, high, false, &limited, err);
        status = status == DT_OK ? dt_copy_into(OP, out, &limited, false, false, err) : status;
        dt_array_clear(&limited);
    } else {
        status = apply(DT_BINARY_minimum, &raised, high, false, out, err);
    }
    dt_array_clear(&raised);
    return status;
}
