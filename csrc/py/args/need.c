/* need.c: parameters that are no arrays, of the ops that Python composes of others: checked like those of a compiled
 * op, in the same words. Each function takes the op, the parameter's name and what was given for it. */
#include "../py.h"

/* The arguments of such a function become the one argument `value` of op; named holds its name. */
static int
parse(py_args *a, py_spec *named)
{
    if (!PyUnicode_Check(a->v[0]) || !PyUnicode_Check(a->v[1])) {
        PyErr_Format(PyExc_TypeError, "%s() takes the names of an op and of a parameter first", a->op);
        return -1;
    }
    *named = *a->spec;
    named->op = a->op = PyUnicode_AsUTF8(a->v[0]);
    named->names[2] = PyUnicode_AsUTF8(a->v[1]);
    a->spec = named;
    return named->op == NULL || named->names[2] == NULL ? -1 : 0;
}

#define PARSE(function)                                                                                                \
    py_spec named;                                                                                                     \
    PY_PARSE(function)                                                                                                 \
    if (parse(&a, &named) < 0) {                                                                                       \
        return NULL;                                                                                                   \
    }

static PyObject *
py__need_int(PY_PARAMS)
{
    PARSE(_need_int)
    int64_t value = 0;
    return py_arg_int(&a, 2, &value) < 0 ? NULL : PyLong_FromLongLong(value);
}

/* The value, an int or a sequence of them, as a tuple. */
static PyObject *
ints_of(const py_args *a)
{
    PyObject *items = py_arg_sequence(a, 2);
    PyObject *result = items == NULL ? NULL : PyTuple_New(PyTuple_GET_SIZE(items));
    for (Py_ssize_t i = 0; result != NULL && i < PyTuple_GET_SIZE(items); i++) {
        int64_t value;
        int rc = py_int(a->op, a->spec->names[2], PyTuple_GET_ITEM(items, i), &value);
        PyObject *item = rc < 0 ? NULL : PyLong_FromLongLong(value);
        if (item == NULL) {
            Py_CLEAR(result);
            py_explain_args(a, 2);
        } else {
            PyTuple_SET_ITEM(result, i, item);
        }
    }
    Py_XDECREF(items);
    return result;
}

static PyObject *
py__need_ints(PY_PARAMS)
{
    PARSE(_need_ints)
    return ints_of(&a);
}

/* An int stays one: for a size that may be meant for each dimension. */
static PyObject *
py__need_size(PY_PARAMS)
{
    PARSE(_need_size)
    const int single = py_is_int(a.v[2]);
    PyObject *items = single < 0 ? NULL : ints_of(&a);
    if (items == NULL || !single || PyTuple_GET_SIZE(items) != 1) { /* which a class of the user's may change */
        return items;
    }
    PyObject *size = Py_NewRef(PyTuple_GET_ITEM(items, 0));
    Py_DECREF(items);
    return size;
}

/* A number of Python, of which an int may be larger than an element. */
static PyObject *
py__need_number(PY_PARAMS)
{
    PARSE(_need_number)
    dt_scalar value = {0};
    if (PyLong_Check(a.v[2]) || PyFloat_CheckExact(a.v[2])) {
        return Py_NewRef(a.v[2]);
    }
    return py_arg_scalar(&a, 2, &value) < 0 ? NULL : py_scalar_object(&value);
}

static PyObject *
py__need_bool(PY_PARAMS)
{
    PARSE(_need_bool)
    bool value = false;
    return py_arg_bool(&a, 2, &value) < 0 ? NULL : PyBool_FromLong(value);
}

static PyObject *
py__need_str(PY_PARAMS)
{
    PARSE(_need_str)
    return PyUnicode_Check(a.v[2]) ? Py_NewRef(a.v[2]) : (py_arg_wrong(&a, 2, "str"), NULL);
}

static PyObject *
py__need_generator(PY_PARAMS)
{
    PARSE(_need_generator)
    return a.v[2] == Py_None || Py_TYPE(a.v[2]) == a.state->generator_type ? Py_NewRef(a.v[2])
                                                                           : (py_arg_wrong(&a, 2, "Generator"), NULL);
}

static PyObject *
py__need_dtype(PY_PARAMS)
{
    PARSE(_need_dtype)
    dt_dtype value;
    if (a.v[2] == Py_None) {
        return py_arg_wrong(&a, 2, "a dtype"), NULL;
    }
    return py_arg_dtype(&a, 2, &value) < 0 ? NULL : py_dtype_object(a.state, value);
}

static PyObject *
py__need_device(PY_PARAMS)
{
    PARSE(_need_device)
    dt_device value;
    if (a.v[2] == Py_None) {
        return py_arg_wrong(&a, 2, "a device"), NULL;
    }
    return py_arg_device(&a, 2, &value) < 0 ? NULL : py_device_object(a.state, value);
}

PyMethodDef py_need_functions[] = {
    PY_HIDDEN(_need_int, "value as an int."),
    PY_HIDDEN(_need_ints, "value, an int or a sequence of them, as a tuple."),
    PY_HIDDEN(_need_size, "value as an int, or a sequence of ints as a tuple."),
    PY_HIDDEN(_need_number, "value as an int or a float."),
    PY_HIDDEN(_need_bool, "value as a bool."),
    PY_HIDDEN(_need_str, "value, a str."),
    PY_HIDDEN(_need_generator, "value, a Generator or None."),
    PY_HIDDEN(_need_dtype, "The dtype that value names."),
    PY_HIDDEN(_need_device, "The device that value names."),
    PY_END,
};

PyMethodDef py_need_methods[] = {PY_END};
