/* kernel.c: what devtensor.cuda._raw_kernel is made of. A kernel is a capsule; Python has read its parameters. */
#include "../../cuda/front.h"
#include "../py.h"

#define CAPSULE "devtensor.kernel"
#define MAX_TEXTS 64

/* ---------------------------------------------------------------- making one */

static void
destroy(PyObject *capsule)
{
    cuda_raw_release(PyCapsule_GetPointer(capsule, CAPSULE));
}

static cuda_raw *
arg_kernel(const py_args *a)
{
    return PyCapsule_GetPointer(a->v[0], CAPSULE);
}

/* The texts of a tuple, borrowed; -1 with an exception. */
static int
read_texts(const py_args *a, int i, const char *texts[MAX_TEXTS])
{
    PyObject *tuple = a->v[i];
    if (!PyTuple_Check(tuple) || PyTuple_GET_SIZE(tuple) > MAX_TEXTS) {
        return py_arg_wrong(a, i, "a tuple of str"), -1;
    }
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(tuple); k++) {
        texts[k] = PyUnicode_AsUTF8(PyTuple_GET_ITEM(tuple, k));
        if (texts[k] == NULL) {
            return -1;
        }
    }
    return (int)PyTuple_GET_SIZE(tuple);
}

/* (name, declaration, kind, dtype or "", size, lanes, is_signed, constant) */
static int
read_param(PyObject *entry, dt_param *out)
{
    const char *dtype;
    int kind, is_signed, constant;
    *out = (dt_param){.name = NULL};
    if (!PyTuple_Check(entry)) {
        PyErr_Format(PyExc_TypeError, "_kernel_new(): a parameter is a tuple, not %s", Py_TYPE(entry)->tp_name);
        return -1;
    }
    if (!PyArg_ParseTuple(entry, "ssisiipp", &out->name, &out->declaration, &kind, &dtype, &out->size, &out->lanes,
                          &is_signed, &constant)) {
        return -1;
    }
    out->kind = (dt_param_kind)kind;
    out->dtype = dt_dtype_find(dtype);
    out->is_signed = is_signed;
    out->constant = constant;
    bool sized = out->size == 1 || out->size == 2 || out->size == 4 || out->size == 8;
    bool known = kind >= DT_PARAM_ARRAY && kind <= DT_PARAM_FLOAT && out->lanes >= 1 && out->lanes <= 4;
    if (!known || (kind != DT_PARAM_ARRAY && !sized) ||
        (kind == DT_PARAM_FLOAT && (out->dtype < 0 || (int)dt_itemsize((dt_dtype)out->dtype) != out->size))) {
        PyErr_Format(PyExc_ValueError, "_kernel_new(): no such parameter: %s", out->declaration);
        return -1;
    }
    return 0;
}

static PyObject *
py__kernel_new(PY_PARAMS)
{
    PY_PARSE(_kernel_new)
    const char *names[MAX_TEXTS], *headers[MAX_TEXTS], *options[MAX_TEXTS];
    const char *name = PyUnicode_AsUTF8(a.v[0]), *source = name != NULL ? PyUnicode_AsUTF8(a.v[1]) : NULL;
    dt_param params[DT_KERNEL_PARAMS];
    bool kept = false;
    if (source == NULL || py_arg_bool(&a, 6, &kept) < 0) {
        return NULL;
    }
    if (!PyTuple_Check(a.v[2]) || PyTuple_GET_SIZE(a.v[2]) > DT_KERNEL_PARAMS) {
        return py_arg_wrong(&a, 2, "a tuple of at most 128 parameters"), NULL;
    }
    int noptions = read_texts(&a, 3, options), nnames = noptions < 0 ? -1 : read_texts(&a, 4, names);
    int nheaders = nnames < 0 ? -1 : read_texts(&a, 5, headers);
    if (nheaders < 0 || nheaders != nnames) {
        return nheaders < 0 ? NULL : (py_arg_wrong(&a, 5, "as many strings as names"), NULL);
    }
    dt_kernel kernel = {.name = name, .params = params, .nparams = (int)PyTuple_GET_SIZE(a.v[2])};
    for (int i = 0; i < kernel.nparams; i++) {
        if (read_param(PyTuple_GET_ITEM(a.v[2], i), &params[i]) < 0) {
            return NULL;
        }
    }
    cuda_raw *raw;
    dt_error err;
    if (cuda_raw_new(&kernel, source, nheaders, headers, names, noptions, options, kept, &raw, &err) != DT_OK) {
        return py_raise(a.state, &err, NULL, 0);
    }
    PyObject *capsule = PyCapsule_New(raw, CAPSULE, destroy);
    if (capsule == NULL) {
        cuda_raw_release(raw);
    }
    return capsule;
}

/* What the compiler says against it, or None. */
static PyObject *
py__kernel_compile(PY_PARAMS)
{
    PY_PARSE(_kernel_compile)
    cuda_raw *raw = arg_kernel(&a);
    int64_t index = 0;
    if (raw == NULL || py_arg_int(&a, 1, &index) < 0) {
        return NULL;
    }
    const dt_backend *backend;
    char *log = NULL;
    dt_error err;
    dt_status status;
    PY_CALL(true, status, dt_backend_for((dt_device){DT_CUDA, (int32_t)index}, &backend, &err));
    if (status == DT_OK) {
        PY_CALL(true, status, cuda_raw_compile(raw, (int)index, &log, &err));
    }
    if (status != DT_OK) {
        return py_raise_args(&a, &err);
    }
    PyObject *result = log == NULL ? Py_NewRef(Py_None) : PyUnicode_DecodeUTF8(log, (Py_ssize_t)strlen(log), "replace");
    dt_free(log);
    return result;
}

static PyObject *
py__kernel_attributes(PY_PARAMS)
{
    PY_PARSE(_kernel_attributes)
    cuda_raw *raw = arg_kernel(&a);
    int64_t index = 0;
    cuda_raw_attributes at;
    dt_error err;
    if (raw == NULL || py_arg_int(&a, 1, &index) < 0) {
        return NULL;
    }
    if (cuda_raw_describe(raw, (int)index, &at, &err) != DT_OK) {
        return py_raise_args(&a, &err);
    }
    return Py_BuildValue("{s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i}", "max_threads_per_block", at.max_threads,
                         "shared_size_bytes", at.shared_bytes, "const_size_bytes", at.const_bytes, "local_size_bytes",
                         at.local_bytes, "num_regs", at.registers, "ptx_version", at.ptx_version, "binary_version",
                         at.binary_version, "max_dynamic_shared_size_bytes", at.max_dynamic_shared_bytes);
}

/* ---------------------------------------------------------------- calling it */

/* One to three sizes; a missing one is 1. */
static int
read_sizes(const py_args *a, int i, unsigned out[3])
{
    int n = 0;
    int64_t sizes[DT_MAX_NDIM] = {1, 1, 1};
    if (a->v[i] == Py_None || py_arg_dims(a, i, &n, sizes) < 0) {
        return a->v[i] == Py_None ? py_arg_wrong(a, i, "an int or a tuple of one to three ints") : -1;
    }
    bool fits = n >= 1 && n <= 3;
    for (int k = 0; k < 3; k++) {
        int64_t size = k < n ? sizes[k] : 1;
        fits = fits && size >= 0 && size <= UINT32_MAX;
        out[k] = (unsigned)size;
    }
    if (!fits) {
        py_refuse(a->state, DT_EKERNEL, "kernel-argument", a->op,
                  "%s must have one to three sizes that are not negative", a->spec->names[i]);
        return -1;
    }
    return 0;
}

static void
read_long(PyObject *number, dt_kernel_arg *out)
{
    int overflow = 0;
    long long value = PyLong_AsLongLongAndOverflow(number, &overflow);
    out->kind = DT_CATEGORY_INT;
    out->negative = overflow < 0 || (overflow == 0 && value < 0);
    out->u = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    out->f = PyLong_AsDouble(number);
    if (overflow > 0) {
        out->u = PyLong_AsUnsignedLongLong(number);
    }
    out->huge = overflow < 0 || PyErr_Occurred() != NULL;
    PyErr_Clear();
}

/* -1 with an exception. What is neither an array nor a number is left to the check. */
static int
read_argument(PyObject *object, dt_kernel_arg *out)
{
    *out = (dt_kernel_arg){.array = NULL};
    if (py_is_array(object)) {
        out->array = py_array_of(object);
        return 0;
    }
    if (PyLong_Check(object) && !PyBool_Check(object)) {
        read_long(object, out);
        return 0;
    }
    dt_scalar number;
    int found = py_is_ndarray(object) ? 0 : py_scalar(object, &number);
    if (found < 0 && PyErr_ExceptionMatches(PyExc_OverflowError)) { /* such as numpy.uint64(2**63) */
        PyErr_Clear();
        PyObject *index = PyNumber_Index(object);
        if (index == NULL) {
            return -1;
        }
        read_long(index, out);
        Py_DECREF(index);
        return 0;
    }
    if (found < 0) {
        return -1;
    }
    if (found == 0) {
        out->given = py_is_ndarray(object) ? "numpy.ndarray" : Py_TYPE(object)->tp_name;
        return 0;
    }
    out->kind = number.kind;
    out->f = number.f;
    out->negative = number.kind != DT_CATEGORY_FLOAT && number.i < 0;
    out->u = number.i < 0 ? 0 - (uint64_t)number.i : (uint64_t)number.i;
    return 0;
}

/* None, or the index of the device on which the kernel has to be compiled first. */
static PyObject *
py__kernel_launch(PY_PARAMS)
{
    PY_PARSE(_kernel_launch)
    cuda_raw *raw = arg_kernel(&a);
    cuda_raw_launch launch = {.shared_bytes = 0};
    dt_kernel_arg given[DT_KERNEL_PARAMS];
    if (raw == NULL || read_sizes(&a, 1, launch.grid) < 0 || read_sizes(&a, 2, launch.block) < 0 ||
        py_arg_int(&a, 4, &launch.shared_bytes) < 0) {
        return NULL;
    }
    if (!PyTuple_Check(a.v[3])) {
        return py_arg_wrong(&a, 3, "a tuple"), NULL;
    }
    if (py_given(a.v[5]) && (launch.queue = py_stream_queue(a.state, a.v[5])) == NULL) {
        return py_arg_wrong(&a, 5, "a Stream"), NULL;
    }
    PyObject *const *objects = ((PyTupleObject *)a.v[3])->ob_item;
    Py_ssize_t n = PyTuple_GET_SIZE(a.v[3]);
    for (Py_ssize_t i = 0; i < n && i < DT_KERNEL_PARAMS; i++) {
        if (read_argument(objects[i], &given[i]) < 0) {
            return NULL;
        }
    }
    bool missing = false;
    int device = 0;
    dt_error err;
    dt_status status;
    PY_CALL(true, status, cuda_raw_call(raw, &launch, given, n > INT_MAX ? INT_MAX : (int)n, &device, &missing, &err));
    if (status != DT_OK) {
        err.op = "RawKernel"; /* the kernel may have the name of an op */
        return py_raise(a.state, &err, objects, n);
    }
    if (missing) {
        return PyLong_FromLong(device);
    }
    Py_RETURN_NONE;
}

PyMethodDef py_kernel_functions[] = {
    PY_HIDDEN(_kernel_new, "A kernel from CUDA C++."),
    PY_HIDDEN(_kernel_compile, "Makes a kernel ready on a device; what the compiler says against it."),
    PY_HIDDEN(_kernel_attributes, "What is known about a kernel that is ready on a device, a dict."),
    PY_HIDDEN(_kernel_launch, "Launches a kernel; the device on which it is not ready, if it is not."),
    PY_END,
};

PyMethodDef py_kernel_methods[] = {PY_END};
