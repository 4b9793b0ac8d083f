/* plans.c: cuBLASLt's and cuDNN's versions and settings, and what was found by tuning; for python/devtensor/cuda.py. */
#include "../../cuda/front.h"
#include "../py.h"

/* library_versions() */
static int
set_version(PyObject *dict, const char *name, dt_library library)
{
    dt_error err;
    dt_status status;
    PyObject *version;
    PY_CALL(true, status, cuda_api_need(library, &err));
    if (status != DT_OK) {
        version = Py_NewRef(Py_None);
    } else {
        version = PyLong_FromLong(cuda_api_version(library));
    }
    int rc = version == NULL ? -1 : PyDict_SetItemString(dict, name, version);
    Py_XDECREF(version);
    return rc;
}

static PyObject *
py__cuda_library_versions(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    (void)self;
    PyObject *dict = PyDict_New();
    if (dict != NULL &&
        (set_version(dict, "cublasLt", DT_LIBRARY_CUBLASLT) < 0 || set_version(dict, "cudnn", DT_LIBRARY_CUDNN) < 0)) {
        Py_CLEAR(dict);
    }
    return dict;
}

static PyObject *
py__cuda_workspace_limit(PY_PARAMS)
{
    PY_PARSE("set_workspace_limit", 0, 1, "nbytes")
    int64_t before = cuda_workspace_limit(), nbytes = before;
    if (py_arg_int(&a, 0, &nbytes) < 0) {
        return NULL;
    }
    if (nbytes < 0) {
        return py_refuse(a.state, DT_EVALUE, "invalid-argument", a.op, "%s expects a number of bytes, not %lld", a.op,
                         (long long)nbytes);
    }
    cuda_set_workspace_limit(nbytes);
    return PyLong_FromLongLong(before);
}

/* ---------------------------------------------------------------- tuning */

static PyObject *
py__cuda_tuning(PY_PARAMS)
{
    PY_PARSE("tune", 0, 1, "enabled")
    bool before = cuda_tuning(), enabled = before;
    if (py_arg_bool(&a, 0, &enabled) < 0) {
        return NULL;
    }
    cuda_set_tuning(enabled);
    return PyBool_FromLong(before);
}

static PyObject *
row_tuple(const int64_t *row, size_t width)
{
    PyObject *tuple = PyTuple_New((Py_ssize_t)width);
    for (size_t i = 0; tuple != NULL && i < width; i++) {
        PyObject *number = PyLong_FromLongLong(row[i]);
        if (number == NULL) {
            Py_CLEAR(tuple);
        } else {
            PyTuple_SET_ITEM(tuple, (Py_ssize_t)i, number);
        }
    }
    return tuple;
}

static PyObject *
py__cuda_tuned_export(PY_PARAMS)
{
    PY_PARSE("tune", 1, 1, "device")
    int64_t device = 0, *rows = NULL;
    size_t nrows = 0;
    if (py_arg_int(&a, 0, &device) < 0) {
        return NULL;
    }
    dt_error err;
    dt_status status;
    PY_CALL(true, status, cuda_tuned_export((int)device, &rows, &nrows, &err));
    if (status != DT_OK) {
        return py_raise_args(&a, &err);
    }
    PyObject *list = PyList_New((Py_ssize_t)nrows);
    for (size_t i = 0; list != NULL && i < nrows; i++) {
        PyObject *row = row_tuple(rows + i * cuda_tuned_width(), cuda_tuned_width());
        if (row == NULL) {
            Py_CLEAR(list);
        } else {
            PyList_SET_ITEM(list, (Py_ssize_t)i, row);
        }
    }
    dt_free(rows);
    return list;
}

/* How many of a row's ints are its key. */
static PyObject *
py__cuda_tuned_key(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    (void)self;
    return PyLong_FromSize_t(cuda_tuned_key());
}

/* One row; whether it has the right form. */
static PyObject *
py__cuda_tuned_import(PY_PARAMS)
{
    PY_PARSE("tune", 2, 2, "device", "row")
    int64_t device = 0, words[128];
    if (py_arg_int(&a, 0, &device) < 0) {
        return NULL;
    }
    size_t width = cuda_tuned_width();
    PyObject *row = PySequence_Fast(a.v[1], "a row is a sequence of ints");
    if (row == NULL) {
        return NULL;
    }
    bool fits = width <= sizeof(words) / sizeof(words[0]) && (size_t)PySequence_Fast_GET_SIZE(row) == width;
    for (size_t i = 0; fits && i < width; i++) {
        PyObject *item = PySequence_Fast_GET_ITEM(row, (Py_ssize_t)i);
        fits = PyLong_CheckExact(item);
        words[i] = fits ? PyLong_AsLongLong(item) : 0;
        if (PyErr_Occurred()) {
            PyErr_Clear();
            fits = false;
        }
    }
    Py_DECREF(row);
    dt_error err;
    dt_status status = DT_OK;
    if (fits) {
        PY_CALL(true, status, cuda_tuned_import((int)device, words, &err));
    }
    return status == DT_OK ? PyBool_FromLong(fits) : py_raise_args(&a, &err);
}

/* ---------------------------------------------------------------- plans with no device */

static int
parse_sizes(const py_args *a, int i, int wanted, int64_t *sizes)
{
    int64_t dims[DT_MAX_NDIM];
    int n = -1;
    if (py_arg_dims(a, i, &n, dims) < 0) {
        return -1;
    }
    if (n != wanted) {
        return py_arg_wrong(a, i, wanted == 2 ? "a pair of ints" : "four ints");
    }
    memcpy(sizes, dims, (size_t)wanted * sizeof(int64_t));
    return 0;
}

static PyObject *
py__cuda_describe_conv2d(PY_PARAMS)
{
    PY_PARSE("_cuda_describe_conv2d", 10, 11, "properties", "dtype", "input", "weight", "stride", "before", "after",
             "dilation", "channels_last", "bias", "activation")
    dt_dtype dtype = DT_FLOAT32;
    int64_t x[4], weight[4];
    bool channels_last = false, bias = false;
    dt_conv2d_params params = {.groups = 1};
    Py_ssize_t length = 0;
    const char *json = PyUnicode_AsUTF8AndSize(a.v[0], &length);
    if (json == NULL || py_arg_dtype(&a, 1, &dtype) < 0 || parse_sizes(&a, 2, 4, x) < 0 ||
        parse_sizes(&a, 3, 4, weight) < 0 || parse_sizes(&a, 4, 2, params.stride) < 0 ||
        parse_sizes(&a, 5, 2, params.pad_before) < 0 || parse_sizes(&a, 6, 2, params.pad_after) < 0 ||
        parse_sizes(&a, 7, 2, params.dilation) < 0 || py_arg_bool(&a, 8, &channels_last) < 0 ||
        py_arg_bool(&a, 9, &bias) < 0 || py_arg_activation(&a, 10, &params.activation) < 0) {
        return NULL;
    }
    if (params.stride[0] < 1 || params.stride[1] < 1 || !dt_is_float(dtype)) {
        return PyErr_Format(PyExc_ValueError, "%s(): no such convolution", a.op);
    }
    cuda_conv_description d = {0};
    dt_error err;
    dt_status status;
    PY_CALL(true, status,
            cuda_conv_describe(json, (size_t)length, dtype, x, weight, bias, &params, channels_last, &d, &err));
    if (status != DT_OK) {
        return py_raise_args(&a, &err);
    }
    return Py_BuildValue("{s:L,s:L,s:I,s:I,s:i,s:O,s:O,s:O,s:N}", "engine", (long long)d.engine, "workspace",
                         (long long)d.workspace, "notes", (unsigned)d.notes, "behaviors", (unsigned)d.behaviors,
                         "candidate", d.candidate, "bias", d.bias ? Py_True : Py_False, "activation",
                         d.activation ? Py_True : Py_False, "unloadable", d.unloadable ? Py_True : Py_False, "out",
                         py_shape_tuple(4, d.out));
}

/* ---------------------------------------------------------------- for tests */

static PyObject *
py__cuda_set_size_limit(PY_PARAMS)
{
    PY_PARSE("_cuda_set_size_limit", 1, 1, "n")
    int64_t n = 0;
    if (py_arg_int(&a, 0, &n) < 0) {
        return NULL;
    }
    cuda_set_size_limit(n);
    sim_set_size_limit(n);
    Py_RETURN_NONE;
}

static PyObject *
py__cuda_set_plan_limit(PY_PARAMS)
{
    PY_PARSE("_cuda_set_plan_limit", 1, 1, "n")
    int64_t n = 0;
    if (py_arg_int(&a, 0, &n) < 0) {
        return NULL;
    }
    cuda_set_plan_limit(n > 0 ? (size_t)n : 0);
    Py_RETURN_NONE;
}

PyMethodDef py_plans_functions[] = {
    {"_cuda_library_versions", py__cuda_library_versions, METH_NOARGS,
     "_cuda_library_versions()\n--\n\nVersion numbers of cuBLASLt and cuDNN; None where they cannot be loaded."},
    PY_HIDDEN(_cuda_workspace_limit, "nbytes=None", "Sets the limit of scratch memory if given; returns that before."),
    PY_HIDDEN(_cuda_tuning, "enabled=None", "Switches tuning if given; returns whether it was on."),
    PY_HIDDEN(_cuda_tuned_export, "device", "What tuning has found on a device, as rows of ints."),
    {"_cuda_tuned_key", py__cuda_tuned_key, METH_NOARGS,
     "_cuda_tuned_key()\n--\n\nHow many of a row's ints are its key; the next is -1 where nothing holds any more."},
    PY_HIDDEN(_cuda_tuned_import, "device, row", "Takes such a row; False where it has not the form of one."),
    PY_HIDDEN(
        _cuda_describe_conv2d,
        "properties, dtype, input, weight, stride, before, after, dilation, channels_last, bias, activation=None",
        "The plan of a convolution on a device described in cuDNN's JSON, a dict. Raises CudaError where there is "
        "none."),
    PY_HIDDEN(_cuda_set_plan_limit, "n", "Plans that a device keeps of products, and of convolutions; 0: 4096."),
    PY_HIDDEN(_cuda_set_size_limit, "n", "Elements that one call of a library may have to count; 0: 2**31 - 1."),
    PY_END,
};

PyMethodDef py_plans_methods[] = {PY_END};
