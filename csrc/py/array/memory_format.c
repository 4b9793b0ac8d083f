/* memory_format.c: the order of the elements in memory: contiguous, clone, to(memory_format=). */
#include "format.h"

static const struct {
    const char *name;
    int ndim; /* 0: any */
} formats[] = {
    [PY_PRESERVE] = {"preserve_format", 0},
    [PY_ROW_MAJOR] = {"contiguous_format", 0},
    [PY_CHANNELS_LAST] = {"channels_last", 4},
    [PY_CHANNELS_LAST_3D] = {"channels_last_3d", 5},
};

/* Reads parameter i, a memory_format of _memory_formats.py, which is a str. Not given: *out stays. */
int
py_arg_format(const py_args *a, int i, py_format *out)
{
    if (!py_given(a->v[i])) {
        return 0;
    }
    for (int k = PY_PRESERVE; PyUnicode_Check(a->v[i]) && k <= PY_CHANNELS_LAST_3D; k++) {
        if (PyUnicode_CompareWithASCIIString(a->v[i], formats[k].name) == 0) {
            *out = (py_format)k;
            return 0;
        }
    }
    return py_arg_wrong(a, i, "a memory_format");
}

/* The view of x whose row-major order is that of the format; the caller clears it. */
static dt_status
channels_at_the_end(const char *op, const dt_array *x, dt_array *out, dt_error *err)
{
    int64_t dims[DT_MAX_NDIM] = {0};
    for (int d = 2; d < x->ndim; d++) {
        dims[d - 1] = d;
    }
    dims[x->ndim - 1] = 1;
    return dt_permute(op, x, x->ndim, dims, out, err);
}

static dt_status
channels_second(const char *op, const dt_array *x, dt_array *out, dt_error *err)
{
    int64_t dims[DT_MAX_NDIM] = {0};
    dims[1] = x->ndim - 1;
    for (int d = 2; d < x->ndim; d++) {
        dims[d] = d - 1;
    }
    return dt_permute(op, x, x->ndim, dims, out, err);
}

/* A copy of x in another order of memory, which has been checked to fit. */
static dt_status
reordered(const char *op, const dt_array *x, dt_array *out, dt_error *err)
{
    dt_array last = DT_ARRAY_EMPTY, dense = DT_ARRAY_EMPTY;
    dt_status rc = channels_at_the_end(op, x, &last, err);
    rc = rc == DT_OK ? dt_contiguous(&last, &dense, err) : rc;
    rc = rc == DT_OK ? channels_second(op, &dense, out, err) : rc;
    dt_array_clear(&last);
    dt_array_clear(&dense);
    return rc;
}

/* Whether the elements lie so. */
static bool
lies(const dt_array *x, py_format format)
{
    if (format <= PY_ROW_MAJOR) {
        return format == PY_PRESERVE || dt_array_is_contiguous(x);
    }
    if (x->ndim != formats[format].ndim) {
        return false;
    }
    int64_t step = 1;
    for (int k = 0; k < x->ndim; k++) { /* channels, then the others from the end */
        const int d = k == 0 ? 1 : k == x->ndim - 1 ? 0 : x->ndim - k;
        if (x->shape[d] != 1 && x->strides[d] != step) {
            return dt_array_numel(x) == 0;
        }
        step *= x->shape[d];
    }
    return true;
}

/* Whether the strides are those of channels last, perhaps with gaps. Those that are also row-major are not. */
static bool
has_channels_last(const dt_array *x)
{
    if (x->ndim != 4 && x->ndim != 5) {
        return false;
    }
    int64_t least = 0;
    for (int k = 0; k < x->ndim; k++) { /* channels, then the others from the end */
        const int d = k == 0 ? 1 : k == x->ndim - 1 ? 0 : x->ndim - k;
        if (x->shape[d] == 0 || x->strides[d] < least || x->strides[1] == 0 || (d == 0 && x->strides[1] == least)) {
            return false;
        }
        least = x->strides[d] * (x->shape[d] > 1 ? x->shape[d] : 1);
    }
    return true;
}

static int
check_rank(const char *op, const dt_array *x, py_format format)
{
    const int ndim = formats[format].ndim;
    if (ndim != 0 && x->ndim != ndim) {
        PyErr_Format(PyExc_RuntimeError, "required rank %d tensor to use %s format (%s: %d dimensions)", ndim,
                     formats[format].name, op, x->ndim);
        return -1;
    }
    return 0;
}

/* x, a new reference that this takes over, or a copy of it that lies as the format says. */
PyObject *
py_in_format(PyObject *x, const char *op, py_format format)
{
    const dt_array *array = x == NULL ? NULL : py_operand(x);
    if (array == NULL) {
        Py_XDECREF(x);
        return NULL;
    }
    if (format <= PY_ROW_MAJOR && lies(array, format)) {
        return x;
    }
    PyObject *result = NULL;
    if (check_rank(op, array, format) < 0) {
        (void)py_explain(x, "shape-mismatch", op);
    } else if (lies(array, format)) {
        return x;
    } else if ((result = py_array_new(Py_TYPE(x), op)) != NULL) {
        dt_error err;
        dt_status status;
        PY_CALL(py_is_large(array), status,
                format == PY_ROW_MAJOR ? dt_contiguous(array, py_array_of(result), &err)
                                       : reordered(op, array, py_array_of(result), &err));
        result = py_finish(result, status, &err, &x, 1);
    }
    Py_DECREF(x);
    return result;
}

int
py_check_format(const py_args *a, const dt_array *x, py_format format)
{
    return check_rank(a->op, x, format) < 0 ? py_explain_args(a, 0) : 0;
}

dt_status
py_empty_in(const char *op, const dt_array *x, py_format format, dt_device device, dt_dtype dtype, dt_array *out,
            dt_error *err)
{
    if (format == PY_PRESERVE) {
        return dt_empty_like(x, device, dtype, out, err);
    }
    if (format == PY_ROW_MAJOR) {
        return dt_empty(device, dtype, x->ndim, x->shape, out, err);
    }
    int64_t shape[DT_MAX_NDIM] = {x->shape[0]};
    for (int d = 2; d < x->ndim; d++) {
        shape[d - 1] = x->shape[d];
    }
    shape[x->ndim - 1] = x->shape[1];
    dt_array dense = DT_ARRAY_EMPTY;
    dt_status rc = dt_empty(device, dtype, x->ndim, shape, &dense, err);
    rc = rc == DT_OK ? channels_second(op, &dense, out, err) : rc;
    dt_array_clear(&dense);
    return rc;
}

PyObject *
py_in_order_of(const char *op, PyObject *made, const dt_array *x, py_format format)
{
    const bool plain = format == PY_PRESERVE && (dt_array_is_contiguous(x) || !dt_array_is_dense(x));
    if (made == NULL || plain || format == PY_ROW_MAJOR) {
        return made;
    }
    const dt_array *from = py_array_of(made);
    PyObject *result = py_array_new(Py_TYPE(made), op);
    if (result != NULL) {
        dt_error err;
        dt_array *out = py_array_of(result);
        dt_status status = py_empty_in(op, x, format, dt_array_device(from), (dt_dtype)from->dtype, out, &err);
        if (status == DT_OK) {
            PY_CALL(py_is_large(out), status, dt_copy_into(op, out, "src", from, false, false, &err));
        }
        result = py_finish(result, status, &err, NULL, 0);
    }
    Py_DECREF(made);
    return result;
}

/* The same for to(), which has made x of self. Strides of another order than channels last, such as those of a
 * transposed array, count as contiguous_format in PyTorch: they stay. */
PyObject *
py_to_format(PyObject *self, PyObject *x, py_format format)
{
    if (x == self && format == PY_ROW_MAJOR && !has_channels_last(py_array_of(x))) {
        return x;
    }
    return py_in_format(x, "to", format);
}

/* ---------------------------------------------------------------- what Python calls */

static PyObject *
py_contiguous(PY_PARAMS)
{
    if (nargs == 0 && kwnames == NULL) {
        return py_in_format(Py_NewRef(self), "contiguous", PY_ROW_MAJOR);
    }
    PY_PARSE(contiguous)
    py_format format = PY_ROW_MAJOR;
    if (py_arg_format(&a, 1, &format) < 0) {
        return NULL;
    }
    if (format == PY_PRESERVE) {
        return py_refuse_args(&a, DT_EVALUE, "invalid-argument",
                              "preserve memory format is unsupported by the contiguous operator");
    }
    return py_in_format(Py_NewRef(self), "contiguous", format);
}

static PyObject *
py_is_contiguous(PY_PARAMS)
{
    PY_PARSE(is_contiguous)
    py_format format = PY_ROW_MAJOR;
    if (py_arg_format(&a, 1, &format) < 0) {
        return NULL;
    }
    if (format == PY_PRESERVE) {
        return py_refuse_args(&a, DT_EVALUE, "invalid-argument",
                              "preserve memory format is unsupported by the is_contiguous operator");
    }
    return PyBool_FromLong(lies(py_array_of(self), format));
}

static PyObject *
py_clone(PY_PARAMS)
{
    PY_PARSE(clone)
    py_format format = PY_PRESERVE;
    const dt_array *x = py_arg_array(&a, 0);
    if (x == NULL || py_arg_format(&a, 1, &format) < 0) {
        return NULL;
    }
    if (!lies(x, format)) {
        return py_in_format(Py_NewRef(a.v[0]), "clone", format);
    }
    PY_RETURN_OF(a.v[0], py_array_new(a.type, "clone"), py_is_large(x), dt_clone(x, out, &err));
}

#define FORMAT "memory_format: contiguous_format, channels_last of 4 dimensions, or channels_last_3d of 5"
#define CLONE_DOC                                                                                                      \
    "A copy with memory of its own, of the same dtype, device and (for dense arrays) strides.\n\n" FORMAT              \
    ", for another order in memory.\nRaises MemoryError or OutOfMemoryError, RuntimeError for another number of "      \
    "dimensions."

PyMethodDef py_memory_format_functions[] = {PY_OP(clone, CLONE_DOC), PY_END};

PyMethodDef py_memory_format_methods[] = {
    PY_METHOD(clone, CLONE_DOC),
    PY_METHOD(contiguous, "The elements in row-major order without gaps, or in another order.\n\n" FORMAT
                          ". Returns self when nothing changes.\nRaises RuntimeError for another number of "
                          "dimensions."),
    PY_METHOD(is_contiguous,
              "Whether the elements lie in row-major order without gaps, or in another order.\n\n" FORMAT "."),
    PY_END,
};
