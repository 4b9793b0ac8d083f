/* nested.c: numbers and nested sequences of numbers become an array. */
#include "../../core/check/check.h"
#include "../../core/grad/grad.h"
#include "../as_torch.h"
#include "../py.h"

typedef struct {
    const char *action;
    int ndim;
    int64_t shape[DT_MAX_NDIM];
    int64_t at[DT_MAX_NDIM]; /* where the walk is, for messages */
    bool given, any;         /* the caller names the dtype; something was seen that has one */
    bool cut;                /* something was seen to which gradients flow */
    dt_dtype dtype;
    char *data; /* the next element */
} nest;

/* object as a list or tuple, a new reference; NULL without an exception when it is none. */
static PyObject *
as_sequence(PyObject *object)
{
    if (PyList_Check(object) || PyTuple_Check(object)) {
        return Py_NewRef(object);
    }
    if (!PySequence_Check(object) || PyUnicode_Check(object) || PyBytes_Check(object) || PyByteArray_Check(object) ||
        py_is_array(object) || py_is_ndarray(object)) {
        return NULL;
    }
    return PySequence_Tuple(object);
}

/* "[1][2]" */
static const char *
place(const nest *n, int depth, char text[DT_MAX_NDIM * 24])
{
    size_t used = 0;
    text[0] = '\0';
    for (int d = 0; d < depth; d++) {
        used += (size_t)PyOS_snprintf(text + used, DT_MAX_NDIM * 24 - used, "[%lld]", (long long)n->at[d]);
    }
    return text;
}

/* The shape is that of the first entries all the way down. */
static int
find_shape(nest *n, PyObject *object)
{
    PyObject *level = Py_NewRef(object);
    for (;;) {
        PyObject *sequence = as_sequence(level);
        Py_DECREF(level);
        if (sequence == NULL) {
            return PyErr_Occurred() ? -1 : 0;
        }
        if (n->ndim == DT_MAX_NDIM) {
            Py_DECREF(sequence);
            PyErr_Format(PyExc_ValueError, "%s(): too many nested sequences: arrays have at most %d dimensions",
                         n->action, DT_MAX_NDIM);
            return -1;
        }
        n->shape[n->ndim++] = PySequence_Fast_GET_SIZE(sequence);
        if (PySequence_Fast_GET_SIZE(sequence) == 0) {
            Py_DECREF(sequence);
            return 0;
        }
        level = Py_NewRef(PySequence_Fast_GET_ITEM(sequence, 0));
        Py_DECREF(sequence);
    }
}

static int
fail_length(const nest *n, int depth, Py_ssize_t length)
{
    char text[DT_MAX_NDIM * 24];
    PyErr_Format(PyExc_ValueError, "%s(): expected sequence of length %lld at dim %d (got %zd at %s)", n->action,
                 (long long)n->shape[depth], depth, length, place(n, depth, text));
    return -1;
}

static int
fail_leaf(const nest *n, int depth, PyObject *object)
{
    char text[DT_MAX_NDIM * 24];
    if (py_is_array(object)) {
        PyErr_Format(PyExc_TypeError,
                     "%s(): a sequence of DeviceArrays is joined by devtensor.stack, or by devtensor.cat", n->action);
        (void)py_explain(object, "invalid-argument", n->action);
    } else if (depth < n->ndim) {
        PyErr_Format(PyExc_ValueError, "%s(): expected sequence of length %lld at dim %d (got %s at %s)", n->action,
                     (long long)n->shape[depth], depth, Py_TYPE(object)->tp_name, place(n, depth, text));
    } else {
        PyErr_Format(PyExc_TypeError, "%s(): expected a number at %s, but got %s", n->action,
                     depth == 0 ? "'data'" : place(n, depth, text), Py_TYPE(object)->tp_name);
    }
    return -1;
}

static int
store(nest *n, const dt_scalar *value)
{
    if (!dt_fits(value, n->dtype)) {
        char text[DT_NUMBER_TEXT];
        PyErr_Format(PyExc_OverflowError, "%s(): %s does not fit in %s", n->action, dt_number_text(value, text),
                     dt_dtypes[n->dtype].name);
        return -1;
    }
    dt_scalar_store(value, n->dtype, n->data);
    n->data += dt_itemsize(n->dtype);
    return 0;
}

/* A number, or an array of one element, which a program written for PyTorch may have on a GPU. No gradient flows. */
static int
scalar_of(nest *n, PyObject *object, dt_scalar *value)
{
    if (!py_is_array(object)) {
        return py_scalar(object, value);
    }
    const dt_array *x = py_array_of(object);
    if (dt_array_numel(x) != 1 || (dt_array_device(x).type != DT_CPU && !py_as_torch)) {
        return 0;
    }
    n->cut = n->cut || (dt_wants_grad(x) && !dt_grad_off);
    dt_error err;
    PyObject *operands[] = {object};
    dt_status status = dt_item(n->action, x, value, &err);
    return status == DT_OK ? 1 : (py_raise(py_state_of(object), &err, operands, 1), -1);
}

static int
visit_leaf(nest *n, int depth, PyObject *object)
{
    dt_scalar value;
    int rc = depth < n->ndim ? 0 : scalar_of(n, object, &value);
    if (rc <= 0) {
        return rc < 0 ? -1 : fail_leaf(n, depth, object);
    }
    if (n->data != NULL) {
        if (value.kind == DT_CATEGORY_FLOAT && dt_dtypes[n->dtype].category == DT_CATEGORY_INT && py_is_array(object)) {
            PyErr_Format(PyExc_TypeError, "%s(): an array of %s is not cast to %s: write .to(devtensor.%s)", n->action,
                         dt_dtypes[py_array_of(object)->dtype].name, dt_dtypes[n->dtype].name,
                         dt_dtypes[n->dtype].name);
            return -1;
        }
        return store(n, &value);
    }
    const dt_dtype dtype = py_is_array(object)              ? (dt_dtype)py_array_of(object)->dtype
                           : value.kind == DT_CATEGORY_BOOL ? DT_BOOL
                           : value.kind == DT_CATEGORY_INT  ? DT_INT64
                                                            : dt_default_dtype();
    if (!n->given) {
        n->dtype = n->any ? dt_promote(n->dtype, dtype) : dtype;
        n->any = true;
    }
    return 0;
}

/* Whether object is an array of the host that stands where others have a sequence. */
static bool
is_row(PyObject *object)
{
    return py_is_array(object) && py_array_of(object)->ndim > 0 && dt_array_device(py_array_of(object)).type == DT_CPU;
}

/* Without data: checks the lengths and finds the dtype. With data: stores the numbers. */
static int
visit(nest *n, int depth, PyObject *object)
{
    PyObject *sequence = as_sequence(object);
    if (sequence == NULL && !PyErr_Occurred() && depth < n->ndim && is_row(object)) {
        sequence = PySequence_Tuple(object);
    }
    if (sequence == NULL) {
        return PyErr_Occurred() ? -1 : visit_leaf(n, depth, object);
    }
    int rc = 0;
    if (depth == n->ndim) {
        char text[DT_MAX_NDIM * 24];
        PyErr_Format(PyExc_ValueError, "%s(): expected a number at %s, but got a sequence", n->action,
                     place(n, depth, text));
        rc = -1;
    } else if (PySequence_Fast_GET_SIZE(sequence) != n->shape[depth]) {
        rc = fail_length(n, depth, PySequence_Fast_GET_SIZE(sequence));
    }
    /* numbers may run code that changes the list */
    for (Py_ssize_t i = 0; rc == 0 && i < n->shape[depth]; i++) {
        if (i >= PySequence_Fast_GET_SIZE(sequence)) {
            rc = fail_length(n, depth, i);
            break;
        }
        PyObject *entry = Py_NewRef(PySequence_Fast_GET_ITEM(sequence, i));
        n->at[depth] = i;
        rc = visit(n, depth + 1, entry);
        Py_DECREF(entry);
    }
    Py_DECREF(sequence);
    return rc;
}

PyObject *
py_array_from_nested(py_state *state, const char *action, PyObject *object, int dtype)
{
    nest n = {.action = action, .given = dtype >= 0};
    if (find_shape(&n, object) < 0 || visit(&n, 0, object) < 0) {
        return NULL;
    }
    if (n.cut && PyErr_WarnFormat(PyExc_UserWarning, 1,
                                  "%s(): arrays became numbers, so that no gradient flows back to them. "
                                  "devtensor.stack joins arrays and keeps the gradient.",
                                  action) < 0) {
        return NULL;
    }
    bool empty = false;
    for (int d = 0; d < n.ndim; d++) {
        empty = empty || n.shape[d] == 0;
    }
    n.dtype = n.given ? (dt_dtype)dtype : empty ? dt_default_dtype() : n.dtype;
    PyObject *result = py_array_new(state->array_type, action);
    if (result == NULL) {
        return NULL;
    }
    dt_error err;
    dt_status status = dt_empty((dt_device){DT_CPU, 0}, n.dtype, n.ndim, n.shape, py_array_of(result), &err);
    if (status != DT_OK) {
        return py_finish(result, status, &err, NULL, 0);
    }
    n.data = dt_array_data(py_array_of(result));
    if (!empty && visit(&n, 0, object) < 0) {
        Py_CLEAR(result);
    }
    return result;
}
