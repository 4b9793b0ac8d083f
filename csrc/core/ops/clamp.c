/* clamp.c: limits that are numbers, arrays or none: one pass where both are numbers, else maximum, then minimum. */
#include "clamp.h"
#include "../check/check.h"
#include "elementwise.h"
#include "../grad/grad.h"

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

/* The bound, a number within the range of x's dtype. */
static dt_bound
within(const dt_array *x, const dt_bound *bound)
{
    dt_bound found = *bound;
    if (found.given && found.array == NULL && found.scalar.kind == DT_CATEGORY_INT) {
        found.scalar = dt_scalar_int(dt_saturate((dt_dtype)x->dtype, found.scalar.i));
    }
    return found;
}

typedef struct {
    dt_dtype dtype;
    int ndim;
    int64_t shape[DT_MAX_NDIM];
} outcome;

/* What maximum gives, and minimum after it; all checks. */
static dt_status
check(const dt_operand in[4], const dt_bound *low, const dt_bound *high, bool in_place, outcome *raised,
      outcome *result, dt_error *err)
{
    DT_TRY(dt_check_same_device(OP, in, 4, err));
    const dt_array *x = in[0].array;
    raised->dtype = low->given ? dt_promoted(x, low->array, number(low)) : (dt_dtype)x->dtype;
    const dt_array between = {.dtype = (uint8_t)raised->dtype,
                              .ndim = low->array != NULL && low->array->ndim > x->ndim ? low->array->ndim : x->ndim};
    result->dtype = high->given ? dt_promoted(&between, high->array, number(high)) : raised->dtype;
    if (result->dtype == DT_BOOL) {
        return dt_fail_kind(OP, in, 4, 0, "numbers; for bool use logical_and or logical_or", err);
    }
    DT_TRY(dt_broadcast_shapes(OP, in, 4, &result->ndim, result->shape, err));
    DT_TRY(dt_broadcast_shapes(OP, in, 2, &raised->ndim, raised->shape, err));
    return in_place ? dt_check_in_place(OP, in, 4, result->dtype, result->ndim, result->shape, err)
                    : dt_check_out(OP, in, 4, result->dtype, result->ndim, result->shape, err);
}

static dt_status
apply(dt_binary_op op, const dt_array *x, const dt_bound *bound, const outcome *result, dt_array *out, dt_error *err)
{
    if (result->dtype == DT_BOOL) { /* which minimum makes numbers of */
        op = DT_BINARY_logical_or;
    }
    return dt_binary_checked(op, OP, x, bound->array, number(bound), NULL, result->dtype, result->dtype, result->ndim,
                             result->shape, out, err);
}

dt_status
dt_clamp(const dt_array *input, const dt_bound *min, const dt_bound *max, bool in_place, dt_array *out, dt_error *err)
{
    const struct {
        dt_bound min, max;
    } bounds = {*min, *max};
    DT_RECORD(DT_GRAD_clamp, &bounds, out, dt_clamp(input, min, max, in_place, out, err), input, min->array,
              max->array);
    const dt_operand in[] = {{"input", input, -1},
                             {"min", min->array, -1},
                             {"max", max->array, -1},
                             {"out", out->storage && !in_place ? out : NULL, DT_WRITTEN}};
    const dt_bound low = within(input, min), high = within(input, max);
    outcome between, result;
    DT_TRY(check(in, &low, &high, in_place, &between, &result, err));
    if (is_range((dt_dtype)input->dtype, &low, &high)) {
        const dt_params params = {{low.scalar.f, high.scalar.f}, {low.scalar.i, high.scalar.i}};
        return dt_unary_checked(DT_UNARY_hardtanh, OP, input, &params, result.dtype, out, err);
    }
    if (!low.given) {
        return apply(DT_BINARY_minimum, input, &high, &result, out, err);
    }
    if (!high.given) {
        return apply(DT_BINARY_maximum, input, &low, &result, out, err);
    }
    dt_array raised = DT_ARRAY_EMPTY;
    DT_TRY(apply(DT_BINARY_maximum, input, &low, &between, &raised, err));
    dt_status status = apply(DT_BINARY_minimum, &raised, &high, &result, out, err);
    dt_array_clear(&raised);
    return status;
}
