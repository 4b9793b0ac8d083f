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
    PY_PARSE(_cuda_workspace_limit)
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
    PY_PARSE(_cuda_tuning)
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
    PY_PARSE(_cuda_tuned_export)
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

static PyObject *
py__cuda_cache_directory(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    (void)self;
    char path[CUDA_PATH_BYTES];
    return cuda_disk_path(path) == NULL ? PyUnicode_DecodeFSDefault(path) : Py_NewRef(Py_None);
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
    PY_PARSE(_cuda_tuned_import)
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

PyMethodDef py_plans_functions[] = {
    {"_cuda_library_versions", py__cuda_library_versions, METH_NOARGS,
     "_cuda_library_versions()\n--\n\nVersion numbers of cuBLASLt and cuDNN; None where they cannot be loaded."},
    PY_HIDDEN(_cuda_workspace_limit, "Sets the limit of scratch memory if given; returns that before."),
    PY_HIDDEN(_cuda_tuning, "Switches tuning if given; returns whether it was on."),
    PY_HIDDEN(_cuda_tuned_export, "What tuning has found on a device, as rows of ints."),
    {"_cuda_cache_directory", py__cuda_cache_directory, METH_NOARGS,
     "_cuda_cache_directory()\n--\n\nWhere files are kept between processes; None where no variable says so."},
    {"_cuda_tuned_key", py__cuda_tuned_key, METH_NOARGS,
     "_cuda_tuned_key()\n--\n\nHow many of a row's ints are its key; the next is -1 where nothing holds any more."},
    PY_HIDDEN(_cuda_tuned_import, "Takes such a row; False where it has not the form of one."),
    PY_END,
};

PyMethodDef py_plans_methods[] = {PY_END};
