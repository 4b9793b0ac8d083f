/* sequence.c: len, iteration, in. */
#include "../py.h"
#include "../subclass.h"

static Py_ssize_t
length(PyObject *self)
{
    const dt_array *x = py_array_of(self);
    if (x->ndim == 0) {
        PyErr_SetString(PyExc_TypeError, "len() of a 0-d DeviceArray");
        (void)py_explain(self, "not-a-sequence", "len");
        return -1;
    }
    return (Py_ssize_t)x->shape[0];
}

static PyObject *
item(PyObject *self, Py_ssize_t i)
{
    const dt_array *x = py_array_of(self);
    if (DT_UNLIKELY(py_overrides) && py_asks(self, NULL) && x->ndim > 0 && i >= 0 && i < x->shape[0]) {
        PyObject *index = PyLong_FromSsize_t(i);
        PyObject *entry = index == NULL ? NULL : py_ask("method", "__getitem__", self, index);
        Py_XDECREF(index);
        return entry;
    }
    if (x->ndim == 0) {
        PyErr_SetString(PyExc_IndexError, "too many indices for array of dimension 0");
        return py_explain(self, "invalid-index", "getitem");
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
        return py_explain(self, "not-a-sequence", "iter");
    }
    /* asked once for all entries: answers entry by entry need not end */
    if (DT_UNLIKELY(py_overrides) && py_asks(self, NULL)) {
        PyObject *entries = py_ask("method", "unbind", self, NULL);
        PyObject *result = entries == NULL ? NULL : PyObject_GetIter(entries);
        Py_XDECREF(entries);
        return result;
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
        (void)py_explain(self, "invalid-argument", "contains");
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

PyType_Slot py_sequence_slots[] = {
    {Py_mp_length, length},     {Py_sq_length, length}, {Py_sq_item, item},
    {Py_sq_contains, contains}, {Py_tp_iter, iterate},  {0, NULL},
};
