/* index_lists.c: lists, ranges and NumPy arrays in an index become arrays. */
#include "../as_torch.h"

static bool
is_list(PyObject *item)
{
    return PyList_Check(item) || PyTuple_Check(item);
}

/* Whether a list, or the lists in it, have no items. */
static bool
is_empty(PyObject *list)
{
    for (int d = 0; d < DT_MAX_NDIM && is_list(list); d++) {
        if (PySequence_Fast_GET_SIZE(list) == 0) {
            return true;
        }
        list = PySequence_Fast_GET_ITEM(list, 0);
    }
    return false;
}

/* The items of a list, or of a range as one. A range of more than twice the largest size is out of bounds somewhere,
 * and may be too long for a list. */
static PyObject *
items_of(PyObject *self, PyObject *list)
{
    if (!PyRange_Check(list)) {
        return Py_NewRef(list);
    }
    const dt_array *x = py_array_of(self);
    int64_t largest = 1;
    for (int d = 0; d < x->ndim; d++) {
        largest = x->shape[d] > largest ? x->shape[d] : largest;
    }
    const Py_ssize_t n = PyObject_Size(list);
    if (n < 0 || n / 2 > largest) {
        PyErr_Clear();
        PyErr_Format(PyExc_IndexError, "index %R is out of bounds", list);
        return NULL;
    }
    return PySequence_List(list);
}

bool
py_becomes_array(PyObject *self, PyObject *item)
{
    if (PyLong_CheckExact(item) || PySlice_Check(item) || py_is_array(item)) {
        return false;
    }
    return is_list(item) || PyRange_Check(item) ||
           ((!py_on_device(py_array_of(self)) || py_as_torch) && py_is_ndarray(item));
}

/* A list of ints or bools, or a range, on the device of self. One without items holds ints. Of a NumPy array a copy, as
 * gradients may read it later. */
static PyObject *
array_from_list(PyObject *self, const char *op, PyObject *list)
{
    py_state *state = py_state_of(self);
    if (py_is_ndarray(list)) {
        return py_copy_ndarray(state, op, list);
    }
    PyObject *items = items_of(self, list);
    PyObject *array = items == NULL ? NULL : py_array_from_nested(state, op, items, is_empty(items) ? DT_INT64 : -1);
    Py_XDECREF(items);
    if (array == NULL || !py_on_device(py_array_of(self))) {
        return array;
    }
    PyObject *moved = py_array_new(state->array_type, op);
    if (moved != NULL) {
        dt_error err;
        dt_status status;
        const dt_array *x = py_array_of(array);
        PY_MOVE(
            op, self, true, status,
            dt_to(x, dt_array_device(py_array_of(self)), (dt_dtype)x->dtype, false, false, py_array_of(moved), &err));
        moved = py_finish(moved, status, &err, &array, 1);
    }
    Py_DECREF(array);
    return moved;
}

PyObject *
py_index_without_lists(PyObject *self, const char *op, PyObject *index)
{
    if (!PyTuple_Check(index)) {
        return py_becomes_array(self, index) ? array_from_list(self, op, index) : Py_NewRef(index);
    }
    Py_ssize_t n = PyTuple_GET_SIZE(index), lists = 0;
    for (Py_ssize_t i = 0; i < n; i++) {
        lists += py_becomes_array(self, PyTuple_GET_ITEM(index, i));
    }
    if (lists == 0) {
        return Py_NewRef(index);
    }
    PyObject *result = PyTuple_New(n);
    for (Py_ssize_t i = 0; result != NULL && i < n; i++) {
        PyObject *item = PyTuple_GET_ITEM(index, i);
        item = py_becomes_array(self, item) ? array_from_list(self, op, item) : Py_NewRef(item);
        if (item == NULL) {
            Py_CLEAR(result);
        } else {
            PyTuple_SET_ITEM(result, i, item);
        }
    }
    return result;
}
