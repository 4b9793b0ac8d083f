/* convert.c: Python and NumPy numbers become C ones, and C ones Python's. */
#include "../py.h"

PyObject *
py_attribute(PyObject *object, const char *name)
{
    PyObject *key = PyUnicode_InternFromString(name);
    PyObject *value = key == NULL ? NULL : PyObject_GetAttr(object, key);
    Py_XDECREF(key);
    return value;
}

/* An integer array without dimensions is an int, as in range() and in slices: of a GPU a transfer that is recorded. */
static bool
is_index(PyObject *object)
{
    if (!py_is_array(object)) {
        return PyIndex_Check(object);
    }
    const dt_array *x = py_array_of(object);
    return x->ndim == 0 && dt_dtypes[x->dtype].category == DT_CATEGORY_INT;
}

int
py_int(const char *op, const char *name, PyObject *object, int64_t *out)
{
    if (!is_index(object)) {
        PyErr_Format(PyExc_TypeError, "%s(): argument '%s' must be int, not %s", op, name, Py_TYPE(object)->tp_name);
        return -1;
    }
    PyObject *index = PyNumber_Index(object);
    if (index == NULL) {
        return -1;
    }
    int overflow;
    long long value = PyLong_AsLongLongAndOverflow(index, &overflow);
    Py_DECREF(index);
    if (overflow) {
        PyErr_Format(PyExc_OverflowError, "%s(): argument '%s' does not fit in 64 bits", op, name);
        return -1;
    }
    if (value == -1 && PyErr_Occurred()) {
        return -1;
    }
    *out = value;
    return 0;
}

static int
scalar_from_int(PyObject *object, dt_scalar *out)
{
    int overflow;
    long long value = PyLong_AsLongLongAndOverflow(object, &overflow);
    if (overflow) {
        PyErr_SetString(PyExc_OverflowError, "Python int too large to convert to int64");
        return -1;
    }
    if (value == -1 && PyErr_Occurred()) {
        return -1;
    }
    *out = dt_scalar_int(value);
    return 1;
}

static bool
is_numpy_type(const PyTypeObject *type)
{
    return strncmp(type->tp_name, "numpy.", 6) == 0;
}

bool
py_is_ndarray(PyObject *object)
{
    for (PyTypeObject *type = Py_TYPE(object); type != NULL; type = type->tp_base) {
        if (strcmp(type->tp_name, "numpy.ndarray") == 0) {
            return true;
        }
    }
    return false;
}

PyObject *
py_shown(PyObject *object)
{
    if (strcmp(Py_TYPE(object)->tp_name, "Refused") == 0) { /* devtensor.complex64: its sentence says why */
        PyObject *sentence = PyObject_Repr(object);
        if (sentence != NULL) {
            return sentence;
        }
        PyErr_Clear();
    }
    bool plain = object == Py_None || PyUnicode_CheckExact(object) || PyLong_CheckExact(object) ||
                 PyFloat_CheckExact(object) || PyBool_Check(object);
    if (!plain) {
        return PyUnicode_FromFormat("a %s", Py_TYPE(object)->tp_name);
    }
    PyObject *text = PyObject_Repr(object);
    if (text == NULL && PyLong_CheckExact(object) && PyErr_ExceptionMatches(PyExc_ValueError)) { /* too many digits */
        PyErr_Clear();
        PyObject *bits = PyObject_CallMethod(object, "bit_length", NULL);
        text = bits == NULL ? NULL : PyUnicode_FromFormat("an int of %S bits", bits);
        Py_XDECREF(bits);
    }
    return text;
}

/* NumPy's and ml_dtypes' scalars, through their own .item(). */
static int
scalar_from_numpy(PyObject *object, dt_scalar *out)
{
    PyObject *number, *item;
    if (is_numpy_type(Py_TYPE(object))) {
        item = py_attribute(object, "item");
        number = item == NULL ? NULL : PyObject_CallNoArgs(item);
        Py_XDECREF(item);
    } else {
        number = PyNumber_Float(object);
    }
    if (number == NULL) {
        return -1;
    }
    bool number_now = PyBool_Check(number) || PyLong_Check(number) || PyFloat_Check(number);
    int rc = number_now ? py_scalar(number, out) : 0;
    Py_DECREF(number);
    return rc;
}

int
py_scalar(PyObject *object, dt_scalar *out)
{
    if (PyFloat_CheckExact(object)) {
        *out = dt_scalar_float(PyFloat_AS_DOUBLE(object));
        return 1;
    }
    if (PyBool_Check(object)) {
        *out = dt_scalar_bool(object == Py_True);
        return 1;
    }
    if (PyLong_Check(object)) {
        return scalar_from_int(object, out);
    }
    if (PyFloat_Check(object)) {
        *out = dt_scalar_float(PyFloat_AS_DOUBLE(object));
        return 1;
    }
    if (py_is_array(object) || py_is_ndarray(object)) {
        return 0;
    }
    if (is_numpy_type(Py_TYPE(object)) || strcmp(Py_TYPE(object)->tp_name, "ml_dtypes.bfloat16") == 0) {
        return scalar_from_numpy(object, out);
    }
    /* An array of another library is no number, also where it has one element: to read it could be a transfer. */
    if (PyIndex_Check(object) && !PyObject_HasAttrString((PyObject *)Py_TYPE(object), "__dlpack__")) {
        PyObject *index = PyNumber_Index(object);
        if (index == NULL) {
            return -1;
        }
        int rc = scalar_from_int(index, out);
        Py_DECREF(index);
        return rc;
    }
    return 0;
}

PyObject *
py_scalar_object(const dt_scalar *value)
{
    switch (value->kind) {
    case DT_CATEGORY_BOOL:
        return PyBool_FromLong(value->i != 0);
    case DT_CATEGORY_INT:
        return PyLong_FromLongLong(value->i);
    default:
        return PyFloat_FromDouble(value->f);
    }
}

PyObject *
py_shape_tuple(int ndim, const int64_t *shape)
{
    PyObject *tuple = PyTuple_New(ndim);
    for (int d = 0; tuple != NULL && d < ndim; d++) {
        PyObject *size = PyLong_FromLongLong(shape[d]);
        if (size == NULL) {
            Py_CLEAR(tuple);
        } else {
            PyTuple_SET_ITEM(tuple, d, size);
        }
    }
    return tuple;
}
