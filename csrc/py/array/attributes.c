/* attributes.c: methods that tell about an array, or take its values to Python. */
#include "../../core/grad/grad.h"
#include "../py.h"

#define NO_ARGUMENTS(name) static PyObject *py_##name(PyObject *self, PyObject *Py_UNUSED(ignored))

static PyObject *
py_numel(PY_PARAMS)
{
    PY_PARSE(numel)
    const dt_array *x = py_arg_array(&a, 0);
    return x == NULL ? NULL : PyLong_FromLongLong(dt_array_numel(x));
}

NO_ARGUMENTS(dim)
{
    return PyLong_FromLong(py_array_of(self)->ndim);
}

NO_ARGUMENTS(element_size)
{
    return PyLong_FromSize_t(dt_itemsize((dt_dtype)py_array_of(self)->dtype));
}

NO_ARGUMENTS(storage_offset)
{
    const dt_array *x = py_array_of(self);
    return PyLong_FromLongLong(x->offset / (int64_t)dt_itemsize((dt_dtype)x->dtype));
}

NO_ARGUMENTS(data_ptr)
{
    const dt_array *x = py_array_of(self);
    bool ours = py_on_device(x) || (x->storage->flags & DT_STORAGE_PINNED); /* device and streams keep their books */
    if ((ours ? py_settle(self, DT_WRITE) : py_hand_out(self)) < 0) {
        return NULL;
    }
    return dt_array_numel(x) == 0 ? PyLong_FromLong(0) : PyLong_FromVoidPtr(dt_array_data(x));
}

NO_ARGUMENTS(is_pinned)
{
    return PyBool_FromLong((py_array_of(self)->storage->flags & DT_STORAGE_PINNED) != 0);
}

/* All numbers, or that of one dimension. */
static PyObject *
tuple_or_entry(const py_args *a, const int64_t *numbers)
{
    const dt_array *x = py_array_of(a->v[0]);
    if (!py_given(a->v[1])) {
        return numbers == x->shape ? py_size_object(a->state, x->ndim, numbers) : py_shape_tuple(x->ndim, numbers);
    }
    int64_t dim = 0;
    if (py_arg_int(a, 1, &dim) < 0) {
        return NULL;
    }
    if (dim < -x->ndim || dim >= x->ndim) {
        return py_refuse_args(a, DT_EINDEX, "dimension-out-of-range",
                              "Dimension out of range (expected to be in range of [%d, %d], but got %lld)", -x->ndim,
                              x->ndim - 1, (long long)dim);
    }
    return PyLong_FromLongLong(numbers[dim < 0 ? dim + x->ndim : dim]);
}

static PyObject *
py_size(PY_PARAMS)
{
    PY_PARSE(size)
    return tuple_or_entry(&a, py_array_of(self)->shape);
}

static PyObject *
py_stride(PY_PARAMS)
{
    PY_PARSE(stride)
    return tuple_or_entry(&a, py_array_of(self)->strides);
}

/* ---------------------------------------------------------------- values */

NO_ARGUMENTS(item)
{
    return py_item_object(py_state_of(self), "item", self);
}

static PyObject *
nested_list(const dt_array *x, int dim, const char *data)
{
    if (dim == x->ndim) {
        dt_scalar value = dt_scalar_load((dt_dtype)x->dtype, data);
        return py_scalar_object(&value);
    }
    int64_t step = x->strides[dim] * (int64_t)dt_itemsize((dt_dtype)x->dtype);
    PyObject *list = PyList_New((Py_ssize_t)x->shape[dim]);
    for (int64_t i = 0; list != NULL && i < x->shape[dim]; i++) {
        PyObject *entry = nested_list(x, dim + 1, data + i * step);
        if (entry == NULL) {
            Py_CLEAR(list);
        } else {
            PyList_SET_ITEM(list, (Py_ssize_t)i, entry);
        }
    }
    return list;
}

NO_ARGUMENTS(tolist)
{
    const dt_array *x = py_array_of(self);
    dt_array host = DT_ARRAY_EMPTY;
    dt_error err;
    dt_status status;
    if (py_settle(self, DT_READ) < 0) {
        return NULL;
    }
    PY_MOVE("tolist", self, py_on_device(x), status,
            dt_to(x, (dt_device){DT_CPU, 0}, (dt_dtype)x->dtype, false, false, &host, &err));
    if (status != DT_OK) {
        return py_raise(py_state_of(self), &err, &self, 1);
    }
    PyObject *list = nested_list(&host, 0, dt_array_data(&host));
    dt_array_clear(&host);
    return list;
}

static PyObject *
py___format__(PyObject *self, PyObject *spec)
{
    if (!PyUnicode_Check(spec)) {
        return PyErr_Format(PyExc_TypeError, "__format__() argument must be str, not %s", Py_TYPE(spec)->tp_name);
    }
    if (py_array_of(self)->ndim == 0) {
        PyObject *number = py_item_object(py_state_of(self), "format", self);
        PyObject *text = number == NULL ? NULL : PyObject_Format(number, spec);
        Py_XDECREF(number);
        return text;
    }
    if (PyUnicode_GET_LENGTH(spec) == 0) {
        return PyObject_Str(self);
    }
    PyErr_Format(PyExc_TypeError,
                 "only 0-dimensional DeviceArrays take a format specification, this one has %d dimensions",
                 py_array_of(self)->ndim);
    return py_explain(self, "not-a-scalar", "format");
}

/* Notebooks: the values, and a line with the shape and the origin. */
NO_ARGUMENTS(_repr_html_)
{
    const dt_array *x = py_array_of(self);
    PyObject *html = NULL, *values = py_repr(self);
    PyObject *shape = values == NULL ? NULL : py_shape_tuple(x->ndim, x->shape);
    PyObject *steps = shape == NULL ? NULL : py_step_list(py_state_of(self), self);
    PyObject *module = steps == NULL ? NULL : PyImport_ImportModule("devtensor._diagnosis.origins");
    if (module != NULL) {
        html = PyObject_CallMethod(module, "html", "OOO", values, shape, steps);
    }
    Py_XDECREF(values);
    Py_XDECREF(shape);
    Py_XDECREF(steps);
    Py_XDECREF(module);
    return html;
}

/* ---------------------------------------------------------------- other arrays of the same values */

PyObject *
py_array_handle(PyObject *self, const char *action)
{
    PyObject *result = py_array_new(Py_TYPE(self), action);
    if (result != NULL) {
        dt_error err;
        const dt_status rc = dt_detach(py_array_of(self), py_array_of(result), &err);
        result = py_finish(result, rc, &err, &self, 1);
    }
    return result;
}

static PyObject *
py_detach(PY_PARAMS)
{
    PY_PARSE(detach)
    return py_arg_array(&a, 0) == NULL ? NULL : py_array_handle(a.v[0], "detach");
}

static PyObject *
py__loaded(PY_PARAMS)
{
    PY_PARSE(_loaded)
    const dt_array *x = py_arg_array(&a, 0);
    PyObject *result = x == NULL ? NULL : py_array_new(a.type, "load");
    if (result != NULL) {
        dt_array_copy_handle(x, py_array_of(result));
    }
    return result; /* how the bytes were read is no step of the caller's */
}

#define DETACH_DOC                                                                                                     \
    "A view of the whole array without its history: no gradient flows back through it.\n\nAny shape, dtype and "       \
    "device."
#define NUMEL_DOC "The number of elements, an int.\n\nAny shape, dtype and device."

PyMethodDef py_attributes_functions[] = {
    PY_OP(numel, NUMEL_DOC),
    PY_OP(detach, DETACH_DOC),
    PY_HIDDEN(_loaded, "The same array, made by load."),
    PY_END,
};

PyMethodDef py_attributes_methods[] = {
    PY_METHOD(numel, NUMEL_DOC),
    PY_METHOD(detach, DETACH_DOC),
    PY_NOARGS(dim, "The number of dimensions, an int."),
    PY_METHOD(size, "The shape, or the size of one dimension.\n\nRaises IndexError for a dim out of range."),
    PY_METHOD(stride,
              "The strides in elements, or that of one dimension.\n\nRaises IndexError for a dim out of range."),
    PY_NOARGS(element_size, "Bytes of one element, an int."),
    PY_NOARGS(storage_offset, "The place of the first element in its memory, in elements."),
    PY_NOARGS(data_ptr,
              "The address of the first element, an int: of the device for a device array; 0 for an empty array."),
    PY_NOARGS(is_pinned, "Whether the memory is page-locked, so that copies to a device can be asynchronous."),
    PY_NOARGS(item,
              "The one element as a Python number; on a device it is copied to the host.\n\nRaises RuntimeError for "
              "another number of elements."),
    PY_NOARGS(tolist, "The elements as Python numbers in nested lists; 0-dimensional: the number. On a device they are "
                      "copied to the host."),
    {"_repr_html_", py__repr_html_, METH_NOARGS, "_repr_html_($self)\n--\n\nThe values for a notebook."},
    {"__format__", py___format__, METH_O, NULL},
    PY_END,
};
