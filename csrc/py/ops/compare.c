/* compare.c: isclose, allclose, equal, array_equal: made of other ops; only the answer goes to the host. */
#include "../py.h"

/* Intermediate arrays of one comparison. */
typedef struct {
    dt_array arrays[8];
    int count;
} temporaries;

static dt_array *
next(temporaries *t)
{
    t->arrays[t->count] = DT_ARRAY_EMPTY;
    return &t->arrays[t->count++];
}

static void
clear(temporaries *t)
{
    for (int i = 0; i < t->count; i++) {
        dt_array_clear(&t->arrays[i]);
    }
}

typedef struct {
    const char *op;
    double rtol, atol;
    bool equal_nan;
} tolerance;

static dt_status
check_pair(const char *op, const dt_array *input, const dt_array *other, bool same_dtype, dt_error *err)
{
    const dt_operand in[] = {{"input", input, -1}, {"other", other, -1}};
    DT_TRY(dt_check_same_device(op, in, 2, err));
    return same_dtype ? dt_check_same_dtype(op, in, 2, err) : DT_OK;
}

/* limits = atol + |rtol * other| */
static dt_status
limits(const tolerance *how, const dt_array *other, temporaries *t, const dt_array **out, dt_error *err)
{
    dt_array *scaled = next(t), *size = next(t), *limit = next(t);
    const dt_scalar rtol = dt_scalar_float(how->rtol), atol = dt_scalar_float(how->atol);
    DT_TRY(dt_binary(DT_BINARY_mul, how->op, other, NULL, &rtol, NULL, false, scaled, err));
    DT_TRY(dt_unary(DT_UNARY_abs, how->op, scaled, NULL, false, size, err));
    DT_TRY(dt_binary(DT_BINARY_add, how->op, size, NULL, &atol, NULL, false, limit, err));
    *out = limit;
    return DT_OK;
}

/* out |= isfinite(|input - other|) && |input - other| <= limits; of floats */
static dt_status
add_close_floats(const tolerance *how, const dt_array *input, const dt_array *other, dt_array *out, dt_error *err)
{
    temporaries t = {.count = 0};
    const dt_array *limit;
    dt_array *difference = next(&t), *distance = next(&t), *finite = next(&t), *within = next(&t);
    dt_status status = dt_binary(DT_BINARY_sub, how->op, input, other, NULL, NULL, false, difference, err);
    if (status == DT_OK) {
        status = dt_unary(DT_UNARY_abs, how->op, difference, NULL, false, distance, err);
    }
    if (status == DT_OK) {
        status = dt_unary(DT_UNARY_isfinite, how->op, distance, NULL, false, finite, err);
    }
    if (status == DT_OK) {
        status = limits(how, other, &t, &limit, err);
    }
    if (status == DT_OK) {
        status = dt_binary(DT_BINARY_le, how->op, distance, limit, NULL, NULL, false, within, err);
    }
    if (status == DT_OK) {
        status = dt_binary(DT_BINARY_logical_and, how->op, within, finite, NULL, NULL, true, within, err);
    }
    if (status == DT_OK) {
        status = dt_binary(DT_BINARY_logical_or, how->op, out, within, NULL, NULL, true, out, err);
    }
    clear(&t);
    return status;
}

/* The distance of integers and bools is that of floats, as in PyTorch: it neither wraps nor is cut to an integer, but
 * integers beyond 2**24 are rounded to the default dtype first. */
static dt_status
add_close(const tolerance *how, const dt_array *input, const dt_array *other, dt_array *out, dt_error *err)
{
    if (dt_is_float((dt_dtype)input->dtype)) {
        return add_close_floats(how, input, other, out, err);
    }
    temporaries t = {.count = 0};
    dt_array *a = next(&t), *b = next(&t);
    dt_status status = dt_to(input, dt_array_device(input), dt_default_dtype(), false, false, a, err);
    if (status == DT_OK) {
        status = dt_to(other, dt_array_device(other), dt_default_dtype(), false, false, b, err);
    }
    if (status == DT_OK) {
        status = add_close_floats(how, a, b, out, err);
    }
    clear(&t);
    return status;
}

/* out |= isnan(input) && isnan(other) */
static dt_status
add_nans(const tolerance *how, const dt_array *input, const dt_array *other, dt_array *out, dt_error *err)
{
    temporaries t = {.count = 0};
    dt_array *a = next(&t), *b = next(&t), *both = next(&t);
    dt_status status = dt_unary(DT_UNARY_isnan, how->op, input, NULL, false, a, err);
    if (status == DT_OK) {
        status = dt_unary(DT_UNARY_isnan, how->op, other, NULL, false, b, err);
    }
    if (status == DT_OK) {
        status = dt_binary(DT_BINARY_logical_and, how->op, a, b, NULL, NULL, false, both, err);
    }
    if (status == DT_OK) {
        status = dt_binary(DT_BINARY_logical_or, how->op, out, both, NULL, NULL, true, out, err);
    }
    clear(&t);
    return status;
}

static dt_status
isclose(const tolerance *how, const dt_array *input, const dt_array *other, dt_array *out, dt_error *err)
{
    DT_TRY(check_pair(how->op, input, other, true, err));
    if (!(how->rtol >= 0) || !(how->atol >= 0)) {
        return dt_fail(err, DT_EVALUE, "invalid-argument", how->op,
                       "rtol and atol must be greater than or equal to zero, but got %g and %g", how->rtol, how->atol);
    }
    dt_array close = DT_ARRAY_EMPTY;
    DT_TRY(dt_binary(DT_BINARY_eq, how->op, input, other, NULL, NULL, false, &close, err));
    dt_status status = DT_OK;
    if (how->equal_nan && dt_is_float((dt_dtype)input->dtype)) {
        status = add_nans(how, input, other, &close, err);
    }
    if (status == DT_OK && (how->rtol > 0 || how->atol > 0)) {
        status = add_close(how, input, other, &close, err);
    }
    if (status == DT_OK) {
        *out = close;
    } else {
        dt_array_clear(&close);
    }
    return status;
}

/* Whether all of x are true; one element goes to the host. */
static dt_status
all_true(const char *op, const dt_array *x, bool *answer, dt_error *err)
{
    dt_array all = DT_ARRAY_EMPTY;
    dt_scalar value = {0};
    DT_TRY(dt_reduce(DT_REDUCE_all, op, x, -1, NULL, false, -1, &all, err));
    dt_status status = dt_item(op, &all, &value, err);
    *answer = value.i != 0;
    dt_array_clear(&all);
    return status;
}

static dt_status
allclose(const tolerance *how, const dt_array *input, const dt_array *other, bool *answer, dt_error *err)
{
    dt_array close = DT_ARRAY_EMPTY;
    DT_TRY(isclose(how, input, other, &close, err));
    dt_status status = all_true(how->op, &close, answer, err);
    dt_array_clear(&close);
    return status;
}

static dt_status
equal(const char *op, const dt_array *input, const dt_array *other, bool same_dtype, bool *answer, dt_error *err)
{
    DT_TRY(check_pair(op, input, other, same_dtype, err));
    *answer = false;
    if (input->ndim != other->ndim ||
        memcmp(input->shape, other->shape, (size_t)input->ndim * sizeof(input->shape[0])) != 0) {
        return DT_OK;
    }
    dt_array same = DT_ARRAY_EMPTY;
    DT_TRY(dt_binary(DT_BINARY_eq, op, input, other, NULL, NULL, false, &same, err));
    dt_status status = all_true(op, &same, answer, err);
    dt_array_clear(&same);
    return status;
}

static int
parse_close(const py_args *a, tolerance *how, const dt_array **input, const dt_array **other)
{
    *how = (tolerance){a->op, 1e-05, 1e-08, false};
    *input = py_arg_array(a, 0);
    *other = *input == NULL ? NULL : py_arg_array(a, 1);
    if (*other == NULL || py_arg_float(a, 2, &how->rtol) < 0 || py_arg_float(a, 3, &how->atol) < 0 ||
        py_arg_bool(a, 4, &how->equal_nan) < 0) {
        return -1;
    }
    return 0;
}

static PyObject *
py_isclose(PY_PARAMS)
{
    PY_PARSE(isclose)
    tolerance how;
    const dt_array *input, *other;
    if (parse_close(&a, &how, &input, &other) < 0) {
        return NULL;
    }
    PY_RETURN(&a, py_array_new(a.type, "isclose"), py_is_large(input), isclose(&how, input, other, out, &err));
}

static PyObject *
py_allclose(PY_PARAMS)
{
    PY_PARSE(allclose)
    tolerance how;
    const dt_array *input, *other;
    if (parse_close(&a, &how, &input, &other) < 0) {
        return NULL;
    }
    bool answer = false;
    dt_error err;
    dt_status status;
    PY_MOVE("allclose", a.v[0], py_is_large(input) || py_on_device(input), status,
            allclose(&how, input, other, &answer, &err));
    return status == DT_OK ? PyBool_FromLong(answer) : py_raise_args(&a, &err);
}

static PyObject *
call_equal(const py_args *a, bool same_dtype)
{
    const dt_array *input = py_arg_array(a, 0), *other = input == NULL ? NULL : py_arg_array(a, 1);
    if (other == NULL) {
        return NULL;
    }
    bool answer = false;
    dt_error err;
    dt_status status;
    PY_MOVE(a->op, a->v[0], py_is_large(input) || py_on_device(input), status,
            equal(a->op, input, other, same_dtype, &answer, &err));
    return status == DT_OK ? PyBool_FromLong(answer) : py_raise_args(a, &err);
}

static PyObject *
py_equal(PY_PARAMS)
{
    PY_PARSE(equal)
    return call_equal(&a, true);
}

static PyObject *
py_array_equal(PY_PARAMS)
{
    PY_PARSE(array_equal)
    return call_equal(&a, false);
}

#define RAISES "Raises DeviceMismatchError for arrays on different devices, DTypeMismatchError for different dtypes"
#define OPS(X)                                                                                                         \
    X(isclose, "Whether |input - other| <= atol + rtol * |other|, element by element; bool, shapes broadcast "         \
               "together.\n\n" RAISES ",\n"                                                                            \
               "ShapeMismatchError for shapes that do not broadcast."),                                                \
        X(allclose, "Whether all elements are close, see isclose: a Python bool. On a device one byte goes to the "    \
                    "host.\n\n" RAISES ",\n"                                                                           \
                    "ShapeMismatchError for shapes that do not broadcast."),                                           \
        X(equal, "Whether shape and all elements are equal: a Python bool. NaN is not equal to NaN.\n\n" RAISES "."),

PyMethodDef py_compare_functions[] = {
    OPS(PY_OP) PY_OP(array_equal, "Whether shape and all elements are equal, whatever the dtypes: a Python bool.\n\n"
                                  "Raises DeviceMismatchError for arrays on different devices."),
    PY_END,
};

PyMethodDef py_compare_methods[] = {OPS(PY_METHOD) PY_END};
