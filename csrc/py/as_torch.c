/* as_torch.c: the operands that PyTorch moves by itself. An index on the cpu is taken for an array on a GPU, and a
 * number may be an array of no dimension. Elsewhere that is an error; a program that runs --as-torch gets the copy, by
 * .to(), which is reported like every other. */
#include "as_torch.h"

bool py_as_torch;

static bool
is_number(PyObject *object)
{
    return object != NULL && py_is_array(object) && py_array_of(object)->storage != NULL &&
           py_array_of(object)->ndim == 0 && !py_on_device(py_array_of(object));
}

static bool
is_on_device(PyObject *object)
{
    return object != NULL && py_is_array(object) && py_array_of(object)->storage != NULL &&
           py_on_device(py_array_of(object));
}

static PyObject *
moved(PyObject *array, PyObject *other)
{
    PyObject *device = py_device_object(py_state_of(other), dt_array_device(py_array_of(other)));
    PyObject *result = device == NULL ? NULL : PyObject_CallMethod(array, "to", "O", device);
    Py_XDECREF(device);
    return result;
}

PyObject *
py_followed(PyObject *array, PyObject *other)
{
    return is_number(array) && is_on_device(other) ? moved(array, other) : Py_NewRef(array);
}

PyObject *
py_followed_value(PyObject *self, PyObject *value, bool whole)
{
    const dt_array *x = py_is_array(value) ? py_array_of(value) : NULL;
    const bool differs = x != NULL && x->storage != NULL && py_array_of(self)->storage != NULL &&
                         !dt_device_equal(dt_array_device(x), dt_array_device(py_array_of(self)));
    return whole && differs ? moved(value, self) : py_followed(value, self);
}

/* ---------------------------------------------------------------- indices */

enum { MOST_ENTRIES = 32 };

static bool
is_left_behind(PyObject *item)
{
    return py_is_array(item) && py_array_of(item)->storage != NULL && !py_on_device(py_array_of(item));
}

/* What stands in an index of self for an item: a mask of uint8 is one of bools, and self has others on its device. */
static PyObject *
taken_index(PyObject *self, PyObject *item)
{
    const bool mask = py_is_array(item) && py_array_of(item)->dtype == DT_UINT8;
    if (mask &&
        PyErr_WarnEx(PyExc_UserWarning,
                     "indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead.",
                     1) < 0) {
        return NULL;
    }
    item = mask ? PyObject_CallMethod(item, "bool", NULL) : Py_NewRef(item);
    if (item != NULL && is_on_device(self) && is_left_behind(item)) {
        PyObject *left = item;
        item = moved(left, self);
        Py_DECREF(left);
    }
    return item;
}

/* Whether PyTorch takes a list for the tuple of its entries: a short one with anything but numbers in it. */
static bool
stands_for_a_tuple(PyObject *index)
{
    const Py_ssize_t n = PyList_Check(index) ? PyList_GET_SIZE(index) : MOST_ENTRIES;
    for (Py_ssize_t i = 0; n < MOST_ENTRIES && i < n; i++) {
        PyObject *item = PyList_GET_ITEM(index, i);
        if (PySequence_Check(item) || py_is_array(item) || PySlice_Check(item) || item == Py_Ellipsis ||
            item == Py_None) {
            return true;
        }
    }
    return false;
}

PyObject *
py_without_list(PyObject *index)
{
    if (!stands_for_a_tuple(index)) {
        return Py_NewRef(index);
    }
    const int rc = PyErr_WarnEx(PyExc_UserWarning,
                                "Using a non-tuple sequence for multidimensional indexing is deprecated; use "
                                "x[tuple(seq)] instead of x[seq].",
                                1);
    return rc < 0 ? NULL : PyList_AsTuple(index);
}

PyObject *
py_followed_index(PyObject *self, PyObject *index)
{
    if (index == NULL) {
        return NULL;
    }
    PyObject *result = NULL;
    if (!PyTuple_Check(index)) {
        result = taken_index(self, index);
    } else {
        Py_ssize_t n = PyTuple_GET_SIZE(index);
        result = PyTuple_New(n);
        for (Py_ssize_t i = 0; result != NULL && i < n; i++) {
            PyObject *item = taken_index(self, PyTuple_GET_ITEM(index, i));
            if (item == NULL) {
                Py_CLEAR(result);
            } else {
                PyTuple_SET_ITEM(result, i, item);
            }
        }
    }
    Py_DECREF(index);
    return result;
}

/* ---------------------------------------------------------------- elementwise ops */

static const char *const elementwise[] = {
    "add",        "sub",         "mul",         "div",  "floor_divide", "remainder",  "fmod",        "pow",
    "maximum",    "minimum",     "fmax",        "fmin", "atan2",        "hypot",      "eq",          "ne",
    "lt",         "le",          "gt",          "ge",   "logical_and",  "logical_or", "logical_xor", "bitwise_and",
    "bitwise_or", "bitwise_xor", "where",       "lerp", "clamp",        "addcmul",    "addcdiv",     "copysign",
    "logaddexp",  "xlogy",       "masked_fill", "fill", "isclose",
};

bool
py_follows_in(const char *op)
{
    for (size_t i = 0; i < Py_ARRAY_LENGTH(elementwise); i++) {
        const size_t n = strlen(elementwise[i]);
        if (strncmp(op, elementwise[i], n) == 0 && (op[n] == '\0' || strcmp(op + n, "_") == 0)) {
            return true;
        }
    }
    return false;
}

/* The operands of a py_args are borrowed: the last that followed stay here, in each thread, for more ops than run one
 * inside another. */
enum { KEPT = 16 };
static _Thread_local PyObject *kept[KEPT];
static _Thread_local unsigned nkept;

static PyObject *
keep(PyObject *array)
{
    PyObject *before = kept[nkept % KEPT];
    kept[nkept++ % KEPT] = array;
    Py_XDECREF(before);
    return array;
}

int
py_follow(py_args *a, bool method)
{
    PyObject *other = NULL;
    const char *const *names = a->spec->names;
    for (int i = 0; names[i] != NULL && other == NULL; i++) {
        other = is_on_device(a->v[i]) ? a->v[i] : NULL;
    }
    if (other == NULL || !py_follows_in(a->op)) {
        return 0;
    }
    for (int i = method; names[i] != NULL; i++) { /* a method may write to its array, which stays where it is */
        if (is_number(a->v[i]) && strcmp(names[i], "out") != 0) {
            PyObject *array = moved(a->v[i], other);
            if (array == NULL) {
                return -1;
            }
            a->v[i] = keep(array);
        }
    }
    return 0;
}

/* ---------------------------------------------------------------- the switch */

static PyObject *
py__as_torch(PY_PARAMS)
{
    PY_PARSE(_as_torch)
    bool on = py_as_torch, before = on;
    py_none_is_default(&a, 0);
    if (py_arg_bool(&a, 0, &on) < 0) {
        return NULL;
    }
    py_as_torch = on;
    return PyBool_FromLong(before);
}

/* ---------------------------------------------------------------- attributes of plain arrays */

static PyObject *read_mark, *write_mark;

/* What a function that keeps marks says after an AttributeError, which stays where it says NotImplemented. */
static PyObject *
ask(PyObject *function, PyObject *const *args, size_t n)
{
    if (function == NULL || !PyErr_ExceptionMatches(PyExc_AttributeError)) {
        return NULL;
    }
    PyObject *type, *error, *traceback;
    PyErr_Fetch(&type, &error, &traceback);
    PyObject *answer = PyObject_Vectorcall(function, args, n, NULL);
    if (answer == Py_NotImplemented) {
        Py_CLEAR(answer);
        PyErr_Restore(type, error, traceback);
        return NULL;
    }
    Py_XDECREF(type);
    Py_XDECREF(error);
    Py_XDECREF(traceback);
    return answer;
}

static PyObject *
get_attribute(PyObject *self, PyObject *name)
{
    PyObject *found = PyObject_GenericGetAttr(self, name), *const args[] = {self, name};
    return found != NULL ? found : ask(read_mark, args, 2);
}

static int
set_attribute(PyObject *self, PyObject *name, PyObject *value)
{
    if (PyObject_GenericSetAttr(self, name, value) == 0) {
        return 0;
    }
    PyObject *const args[] = {self, name, value}, *answer = ask(write_mark, args, value == NULL ? 2 : 3);
    Py_XDECREF(answer);
    return answer == NULL ? -1 : 0;
}

/* Parameters, buffers and classes of the user's have room for attributes. */
static PyObject *
py__keep_marks(PY_PARAMS)
{
    PY_PARSE(_keep_marks)
    Py_XSETREF(read_mark, Py_NewRef(a.v[0]));
    Py_XSETREF(write_mark, Py_NewRef(a.v[1]));
    a.state->array_type->tp_getattro = get_attribute;
    a.state->array_type->tp_setattro = set_attribute;
    PyType_Modified(a.state->array_type);
    Py_RETURN_NONE;
}

PyMethodDef py_as_torch_functions[] = {
    PY_HIDDEN(_keep_marks,
              "Plain arrays have the attributes that read(array, name) gives, and write(array, name, value) "
              "keeps."),
    PY_HIDDEN(_as_torch, "Whether it runs as torch: numbers and indices on the cpu follow arrays to a GPU, dtypes are "
                         "shown as torch.float32. Sets it where on is given; gives "
                         "what it was."),
    PY_END,
};

PyMethodDef py_as_torch_methods[] = {PY_END};
