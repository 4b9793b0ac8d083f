/* index.c: x[...], x[...] = y, len, iteration, in. */
#include "py.h"

static int
fail_unsupported(const char *what)
{
    PyErr_Format(PyExc_NotImplementedError,
                 "devtensor cannot index with %s yet, only with ints, slices, ... and None (dt.where and x.select "
                 "cover many uses)",
                 what);
    return -1;
}

/* The number of dimensions that the entries of index use up; -1 with an exception. */
static int
count_used(PyObject *const *items, Py_ssize_t n, int ndim)
{
    int used = 0, ellipses = 0;
    for (Py_ssize_t i = 0; i < n; i++) {
        used += items[i] != Py_None && items[i] != Py_Ellipsis;
        ellipses += items[i] == Py_Ellipsis;
    }
    if (ellipses > 1) {
        PyErr_SetString(PyExc_IndexError, "an index can only have a single ellipsis ('...')");
        return -1;
    }
    if (used > ndim) {
        PyErr_Format(PyExc_IndexError, "too many indices for array of dimension %d", ndim);
        return -1;
    }
    return used;
}

/* Applies one entry of an index of self to dimension *dim of x, what the entries before it left. */
static int
apply(PyObject *self, const char *op, const dt_array *x, PyObject *item, int *dim, dt_array *out)
{
    dt_error err;
    dt_status status;
    if (item == Py_None) {
        status = dt_unsqueeze(op, x, (*dim)++, out, &err);
    } else if (PySlice_Check(item)) {
        Py_ssize_t start, stop, step;
        if (PySlice_Unpack(item, &start, &stop, &step) < 0) {
            return -1;
        }
        if (step < 0) {
            PyErr_SetString(PyExc_ValueError, "step must be greater than zero");
            return -1;
        }
        Py_ssize_t length = PySlice_AdjustIndices((Py_ssize_t)x->shape[*dim], &start, &stop, step);
        status = dt_slice(op, x, *dim, start, step, length, out, &err);
        (*dim)++;
    } else if (PyBool_Check(item)) {
        return fail_unsupported("a bool");
    } else if (py_is_array(item)) {
        return fail_unsupported(py_array_of(item)->dtype == DT_BOOL ? "a bool mask" : "an array");
    } else if (PyList_Check(item) || PyTuple_Check(item)) {
        return fail_unsupported("a list");
    } else if (py_is_ndarray(item)) {
        py_refuse_numpy(py_state_of(self), op, "input", self, item);
        return -1;
    } else if (PyIndex_Check(item)) {
        Py_ssize_t index = PyNumber_AsSsize_t(item, PyExc_IndexError);
        if (index == -1 && PyErr_Occurred()) {
            return -1;
        }
        status = dt_select(op, x, *dim, index, out, &err);
    } else {
        PyErr_Format(PyExc_IndexError, "only ints, slices (`:`), ellipsis (`...`) and None are valid indices (got %s)",
                     Py_TYPE(item)->tp_name);
        return -1;
    }
    if (status != DT_OK) {
        py_raise(py_state_of(self), &err, &self, 1);
        return -1;
    }
    return 0;
}

/* out = self[index], a view */
static int
resolve(PyObject *self, const char *op, PyObject *index, dt_array *out)
{
    const dt_array *x = py_array_of(self);
    bool is_tuple = PyTuple_CheckExact(index);
    PyObject *const *items = is_tuple ? ((PyTupleObject *)index)->ob_item : &index;
    Py_ssize_t n = is_tuple ? PyTuple_GET_SIZE(index) : 1;
    int dim = 0, used = count_used(items, n, x->ndim);
    if (used < 0) {
        return -1;
    }
    dt_array view;
    dt_array_copy_handle(x, &view);
    for (Py_ssize_t i = 0; i < n; i++) {
        if (items[i] == Py_Ellipsis) {
            dim += x->ndim - used;
            continue;
        }
        dt_array next = DT_ARRAY_EMPTY;
        int rc = apply(self, op, &view, items[i], &dim, &next);
        dt_array_clear(&view);
        if (rc < 0) {
            return -1;
        }
        view = next;
    }
    *out = view;
    return 0;
}

static PyObject *
subscript(PyObject *self, PyObject *index)
{
    PyObject *result = py_array_new(Py_TYPE(self), "getitem");
    if (result != NULL && resolve(self, "getitem", index, py_array_of(result)) < 0) {
        Py_CLEAR(result);
    }
    if (result != NULL) {
        py_step_link(result, &self, 1);
    }
    return result;
}

static int
ass_subscript(PyObject *self, PyObject *index, PyObject *value)
{
    py_state *state = py_state_of(self);
    dt_scalar scalar;
    if (value == NULL) {
        PyErr_SetString(PyExc_TypeError, "elements of a DeviceArray cannot be deleted");
        return -1;
    }
    if (!py_is_array(value)) {
        int rc = py_scalar(value, &scalar);
        if (rc == 0 && py_is_ndarray(value)) {
            py_refuse_numpy(state, "setitem", "input", self, value);
        } else if (rc == 0) {
            PyErr_Format(PyExc_TypeError, "setitem(): argument 'value' must be DeviceArray or a number, not %s",
                         Py_TYPE(value)->tp_name);
        }
        if (rc <= 0) {
            return -1;
        }
    }
    dt_array view = DT_ARRAY_EMPTY;
    if (resolve(self, "setitem", index, &view) < 0) {
        return -1;
    }
    dt_error err;
    dt_status status;
    const dt_array *source = py_is_array(value) ? py_array_of(value) : NULL;
    PY_CALL(py_is_large(&view), status,
            source != NULL ? dt_copy_into("setitem", &view, source, false, false, &err)
                           : dt_fill("setitem", &view, &scalar, &err));
    if (status != DT_OK) {
        PyObject *operands[] = {self, value};
        py_raise(state, &err, operands, 2);
    }
    dt_array_clear(&view);
    return status == DT_OK ? 0 : -1;
}

static Py_ssize_t
length(PyObject *self)
{
    const dt_array *x = py_array_of(self);
    if (x->ndim == 0) {
        PyErr_SetString(PyExc_TypeError, "len() of a 0-d DeviceArray");
        return -1;
    }
    return (Py_ssize_t)x->shape[0];
}

static PyObject *
item(PyObject *self, Py_ssize_t i)
{
    const dt_array *x = py_array_of(self);
    if (x->ndim == 0) {
        PyErr_SetString(PyExc_IndexError, "too many indices for array of dimension 0");
        return NULL;
    }
    dt_error err;
    if (i < 0 || i >= x->shape[0]) { /* how an iteration ends: no need for a full report */
        PyErr_Format(PyExc_IndexError, "index %zd is out of bounds for dimension 0 with size %lld", i,
                     (long long)x->shape[0]);
        return NULL;
    }
    PyObject *result = py_array_new(Py_TYPE(self), "getitem");
    return result == NULL ? NULL
                          : py_finish(result, dt_select("getitem", x, 0, i, py_array_of(result), &err), &err, &self, 1);
}

static PyObject *
iterate(PyObject *self)
{
    if (py_array_of(self)->ndim == 0) {
        PyErr_SetString(PyExc_TypeError, "iteration over a 0-d DeviceArray");
        return NULL;
    }
    return PySeqIter_New(self);
}

static int
contains(PyObject *self, PyObject *value)
{
    PyObject *equal = py_binary_object(DT_BINARY_eq, "eq", self, value);
    if (equal == NULL) {
        return -1;
    }
    if (!py_is_array(equal)) {
        Py_DECREF(equal);
        PyErr_Format(PyExc_TypeError, "a DeviceArray holds numbers, not %s", Py_TYPE(value)->tp_name);
        return -1;
    }
    dt_error err;
    dt_status status;
    dt_array any = DT_ARRAY_EMPTY;
    dt_scalar answer = {0};
    status = dt_reduce(DT_REDUCE_any, "any", py_array_of(equal), -1, NULL, false, -1, &any, &err);
    if (status == DT_OK) {
        PY_MOVE("contains", self, py_on_device(&any), status, dt_item("contains", &any, &answer, &err));
        dt_array_clear(&any);
    }
    if (status != DT_OK) {
        py_raise(py_state_of(self), &err, &self, 1);
    }
    Py_DECREF(equal);
    return status == DT_OK ? answer.i != 0 : -1;
}

PyType_Slot py_index_slots[] = {
    {Py_mp_subscript, subscript}, {Py_mp_ass_subscript, ass_subscript}, {Py_mp_length, length}, {Py_sq_length, length},
    {Py_sq_item, item},           {Py_sq_contains, contains},           {Py_tp_iter, iterate},  {0, NULL},
};
