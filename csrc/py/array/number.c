/* number.c: the operators. */
#include "../py.h"
#include "../as_torch.h"
#include "../subclass.h"

/* The same with operands that followed each other to a device; NULL without an exception: none did. */
static PyObject *
with_followers(dt_binary_op op, const char *name, PyObject *a, PyObject *b)
{
    PyObject *x = py_followed(a, b), *y = x == NULL ? NULL : py_followed(b, a), *result = NULL;
    if (y != NULL && (x != a || y != b)) {
        result = py_binary_object(op, name, x, y);
    }
    Py_XDECREF(x);
    Py_XDECREF(y);
    return result;
}

/* a op b, where one of them is a DeviceArray; NotImplemented when the other is nothing we know. */
PyObject *
py_binary_object(dt_binary_op op, const char *name, PyObject *a, PyObject *b)
{
    PY_ASK_OPERATOR(name, a, b)
    if (DT_UNLIKELY(py_as_torch)) {
        PyObject *result = with_followers(op, name, a, b);
        if (result != NULL || PyErr_Occurred()) {
            return result;
        }
    }
    dt_scalar scalar;
    const dt_array *x = py_is_array(a) ? py_operand(a) : NULL, *y = py_is_array(b) ? py_operand(b) : NULL;
    if (DT_UNLIKELY((x == NULL && py_is_array(a)) || (y == NULL && py_is_array(b)))) {
        return NULL;
    }
    if (x == NULL || y == NULL) {
        PyObject *other = x == NULL ? a : b;
        int rc = py_scalar(other, &scalar);
        if (rc < 0) {
            return NULL;
        }
        if (rc == 0) {
            return x == NULL ? py_refuse_foreign(name, "other", b, a) : py_refuse_foreign(name, "input", a, b);
        }
    }
    if (DT_UNLIKELY(py_autocast_on) && op == DT_BINARY_pow) {
        return py_autocast_operator("pow", a, b);
    }
    PyObject *result = py_array_new(Py_TYPE(x == NULL ? b : a), name);
    if (result == NULL) {
        return NULL;
    }
    dt_error err;
    dt_status status;
    dt_array *out = py_array_of(result);
    const dt_scalar *number = x == NULL || y == NULL ? &scalar : NULL;
    bool release = (x != NULL && py_is_large(x)) || (y != NULL && py_is_large(y));
    PY_CALL(release, status, dt_binary(op, name, x, y, number, NULL, false, out, &err));
    PyObject *operands[] = {a, b};
    return py_finish(result, status, &err, operands, 2);
}

/* a op= b */
static PyObject *
in_place(dt_binary_op op, const char *name, PyObject *self, PyObject *other)
{
    if (DT_UNLIKELY(py_overrides) && py_asks(self, other)) {
        char method[32];
        PyOS_snprintf(method, sizeof(method), "%s_", name);
        return py_ask("method", method, self, other);
    }
    if (DT_UNLIKELY(py_as_torch)) {
        PyObject *follower = py_followed(other, self);
        if (follower != other) {
            PyObject *result = follower == NULL ? NULL : in_place(op, name, self, follower);
            Py_XDECREF(follower);
            return result;
        }
        Py_DECREF(follower);
    }
    dt_scalar scalar;
    dt_array *x = py_operand(self);
    const dt_array *y = py_is_array(other) ? py_operand(other) : NULL;
    if (DT_UNLIKELY(x == NULL || (y == NULL && py_is_array(other)))) {
        return NULL;
    }
    if (y == NULL) {
        int rc = py_scalar(other, &scalar);
        if (rc < 0) {
            return NULL;
        }
        if (rc == 0) {
            return py_refuse_foreign(name, "input", self, other);
        }
    }
    dt_error err;
    dt_status status;
    PY_CALL(py_is_large(x), status, dt_binary(op, name, x, y, y == NULL ? &scalar : NULL, NULL, true, x, &err));
    if (status != DT_OK) {
        PyObject *operands[] = {self, other};
        return py_raise(py_state_of(self), &err, operands, 2);
    }
    if (DT_UNLIKELY(x->node != NULL)) {
        py_step_place(self);
    }
    return Py_NewRef(self);
}

#define OPERATORS(X)                                                                                                   \
    X(add, add)                                                                                                        \
    X(subtract, sub)                                                                                                   \
    X(multiply, mul)                                                                                                   \
    X(true_divide, div)                                                                                                \
    X(floor_divide, floor_divide)                                                                                      \
    X(remainder, remainder)                                                                                            \
    X(and, bitwise_and)                                                                                                \
    X(or, bitwise_or)                                                                                                  \
    X(xor, bitwise_xor)

#define DEFINE(slot, op)                                                                                               \
    static PyObject *nb_##slot(PyObject *a, PyObject *b)                                                               \
    {                                                                                                                  \
        return py_binary_object(DT_BINARY_##op, #op, a, b);                                                            \
    }                                                                                                                  \
    static PyObject *nb_inplace_##slot(PyObject *a, PyObject *b)                                                       \
    {                                                                                                                  \
        return in_place(DT_BINARY_##op, #op, a, b);                                                                    \
    }
OPERATORS(DEFINE)
#undef DEFINE

/* a << b and a >> b, which are composed of other ops. */
static PyObject *
shift(const char *op, PyObject *a, PyObject *b)
{
    dt_scalar scalar;
    PyObject *array = py_is_array(a) ? a : b, *other = array == a ? b : a;
    int rc = py_is_array(other) ? 1 : py_scalar(other, &scalar);
    if (rc < 0) {
        return NULL;
    }
    if (rc == 0) {
        return py_refuse_foreign(op, array == a ? "input" : "other", array, other);
    }
    PyObject *module = PyImport_ImportModule("devtensor");
    PyObject *result = module == NULL ? NULL : PyObject_CallMethod(module, op, "OO", a, b);
    Py_XDECREF(module);
    return result;
}

static PyObject *
nb_lshift(PyObject *a, PyObject *b)
{
    return shift("bitwise_left_shift", a, b);
}

static PyObject *
nb_rshift(PyObject *a, PyObject *b)
{
    return shift("bitwise_right_shift", a, b);
}

/* The same into a, whose dtype stays. */
static PyObject *
shift_in_place(const char *op, PyObject *a, PyObject *b)
{
    PyObject *result = shift(op, a, b);
    if (result == NULL || result == Py_NotImplemented) {
        return result;
    }
    PyObject *same = PyObject_CallMethod(a, "copy_", "O", result);
    Py_DECREF(result);
    return same;
}

static PyObject *
nb_inplace_lshift(PyObject *a, PyObject *b)
{
    return shift_in_place("bitwise_left_shift", a, b);
}

static PyObject *
nb_inplace_rshift(PyObject *a, PyObject *b)
{
    return shift_in_place("bitwise_right_shift", a, b);
}

static PyObject *
nb_power(PyObject *a, PyObject *b, PyObject *modulus)
{
    if (modulus != Py_None) {
        PyErr_SetString(PyExc_TypeError, "pow() of a DeviceArray takes no third argument");
        return NULL;
    }
    return py_binary_object(DT_BINARY_pow, "pow", a, b);
}

static PyObject *
nb_inplace_power(PyObject *a, PyObject *b, PyObject *modulus)
{
    (void)modulus;
    return in_place(DT_BINARY_pow, "pow", a, b);
}

static PyObject *
nb_matrix_multiply(PyObject *a, PyObject *b)
{
    PY_ASK_OPERATOR("matmul", a, b)
    PyObject *array = py_is_array(a) ? a : b, *other = array == a ? b : a;
    if (!py_is_array(other)) {
        return py_refuse_foreign("matmul", array == a ? "input" : "other", array, other);
    }
    dt_error err;
    dt_status status;
    if (DT_UNLIKELY(py_autocast_on)) {
        return py_autocast_operator("matmul", a, b);
    }
    PyObject *result = py_array_new(Py_TYPE(array), "matmul");
    if (result == NULL) {
        return NULL;
    }
    const dt_array *x = py_operand(a), *y = py_operand(b);
    if (DT_UNLIKELY(x == NULL || y == NULL)) {
        Py_DECREF(result);
        return NULL;
    }
    PY_CALL(py_matmul_is_large(x, y), status, dt_matmul(x, y, py_array_of(result), &err));
    PyObject *operands[] = {a, b};
    return py_finish(result, status, &err, operands, 2);
}

static PyObject *
compare(PyObject *a, PyObject *b, int op)
{
    static const struct {
        dt_binary_op op;
        const char *name;
    } ops[] = {
        [Py_LT] = {DT_BINARY_lt, "lt"}, [Py_LE] = {DT_BINARY_le, "le"}, [Py_EQ] = {DT_BINARY_eq, "eq"},
        [Py_NE] = {DT_BINARY_ne, "ne"}, [Py_GT] = {DT_BINARY_gt, "gt"}, [Py_GE] = {DT_BINARY_ge, "ge"},
    };
    return py_binary_object(ops[op].op, ops[op].name, a, b);
}

static PyObject *
unary(dt_unary_op op, const char *name, PyObject *self)
{
    PY_ASK("method", name, self, NULL)
    const dt_array *x = py_operand(self);
    if (DT_UNLIKELY(x == NULL)) {
        return NULL;
    }
    PY_RETURN_OF(self, py_array_new(Py_TYPE(self), name), py_is_large(x),
                 dt_unary(op, name, x, NULL, false, out, &err));
}

static PyObject *
nb_negative(PyObject *self)
{
    return unary(DT_UNARY_neg, "neg", self);
}

static PyObject *
nb_absolute(PyObject *self)
{
    return unary(DT_UNARY_abs, "abs", self);
}

static PyObject *
nb_invert(PyObject *self)
{
    return unary(DT_UNARY_bitwise_not, "bitwise_not", self);
}

static PyObject *
nb_positive(PyObject *self)
{
    return Py_NewRef(self);
}

/* ---------------------------------------------------------------- to Python numbers */

PyObject *
py_item_object(py_state *state, const char *op, PyObject *array)
{
    dt_error err;
    dt_status status;
    dt_scalar value;
    const dt_array *x = py_array_of(array);
    PY_MOVE(op, array, py_on_device(x), status, dt_item(op, x, &value, &err));
    if (status != DT_OK) {
        return py_raise(state, &err, &array, 1);
    }
    py_number_read(op, array, &value);
    return py_scalar_object(&value);
}

static int
nb_bool(PyObject *self)
{
    int64_t n = dt_array_numel(py_array_of(self));
    if (n != 1) {
        dt_error err;
        dt_fail(&err, DT_EVALUE, "ambiguous-bool", "bool", "Boolean value of DeviceArray with %s is ambiguous",
                n == 0 ? "no values" : "more than one value");
        py_raise(py_state_of(self), &err, &self, 1);
        return -1;
    }
    PyObject *item = py_item_object(py_state_of(self), "bool", self);
    int rc = item == NULL ? -1 : PyObject_IsTrue(item);
    Py_XDECREF(item);
    return rc;
}

static PyObject *
number_of(PyObject *self, const char *op, PyObject *(*convert)(PyObject *))
{
    if (dt_array_numel(py_array_of(self)) != 1) {
        PyErr_Format(PyExc_ValueError, "only one element DeviceArrays can be converted to Python scalars (%s)", op);
        return py_explain(self, "not-a-scalar", op);
    }
    PyObject *item = py_item_object(py_state_of(self), op, self);
    PyObject *number = item == NULL ? NULL : convert(item);
    Py_XDECREF(item);
    return number;
}

static PyObject *
nb_int(PyObject *self)
{
    return number_of(self, "int", PyNumber_Long);
}

static PyObject *
nb_float(PyObject *self)
{
    return number_of(self, "float", PyNumber_Float);
}

static PyObject *
nb_index(PyObject *self)
{
    const dt_array *x = py_array_of(self);
    if (dt_array_numel(x) != 1 || dt_dtypes[x->dtype].category != DT_CATEGORY_INT) {
        PyErr_SetString(PyExc_TypeError, "only integer DeviceArrays of a single element can be converted to an index");
        return py_explain(self, "not-a-scalar", "index");
    }
    return py_item_object(py_state_of(self), "index", self);
}

PyType_Slot py_number_slots[] = {
#define SLOT(slot, op) {Py_nb_##slot, nb_##slot}, {Py_nb_inplace_##slot, nb_inplace_##slot},
    OPERATORS(SLOT)
#undef SLOT
        {Py_nb_power, nb_power},
    {Py_nb_inplace_power, nb_inplace_power},
    {Py_nb_lshift, nb_lshift},
    {Py_nb_rshift, nb_rshift},
    {Py_nb_inplace_lshift, nb_inplace_lshift},
    {Py_nb_inplace_rshift, nb_inplace_rshift},
    {Py_nb_matrix_multiply, nb_matrix_multiply},
    {Py_nb_negative, nb_negative},
    {Py_nb_positive, nb_positive},
    {Py_nb_absolute, nb_absolute},
    {Py_nb_invert, nb_invert},
    {Py_nb_bool, nb_bool},
    {Py_nb_int, nb_int},
    {Py_nb_float, nb_float},
    {Py_nb_index, nb_index},
    {Py_tp_richcompare, compare},
    {0, NULL},
};
