/* array_interface.c: the CUDA array interface, version 3, both ways. */
#include "../../cuda/front.h"
#include "../py.h"

#define ATTRIBUTE "__cuda_array_interface__"
#define OP "from_cuda_array_interface"

/* NumPy's name of a dtype, or NULL: there is none for bfloat16. */
static const char *
typestr_of(dt_dtype dtype)
{
    static const char *const names[DT_NDTYPES] = {
        [DT_BOOL] = "|b1",  [DT_UINT8] = "|u1",   [DT_INT8] = "|i1",    [DT_INT16] = "<i2",   [DT_INT32] = "<i4",
        [DT_INT64] = "<i8", [DT_FLOAT16] = "<f2", [DT_FLOAT32] = "<f4", [DT_FLOAT64] = "<f8",
    };
    return names[dtype];
}

/* ---------------------------------------------------------------- ours, for others */

static PyObject *
refuse(const char *text)
{
    PyErr_SetString(PyExc_AttributeError, text);
    return NULL;
}

static PyObject *
strides_of(const dt_array *x)
{
    int64_t bytes[DT_MAX_NDIM];
    if (dt_array_is_contiguous(x)) {
        return Py_NewRef(Py_None);
    }
    for (int d = 0; d < x->ndim; d++) {
        bytes[d] = x->strides[d] * (int64_t)dt_itemsize((dt_dtype)x->dtype);
    }
    return py_shape_tuple(x->ndim, bytes);
}

/* An AttributeError, so that hasattr tells who has it. */
PyObject *
py_get_cuda_interface(PyObject *self, void *Py_UNUSED(closure))
{
    const dt_array *x = py_array_of(self);
    cuda_device *device;
    dt_error err;
    dt_status status;
    if (!py_on_device(x)) {
        return refuse("an array on the cpu has no " ATTRIBUTE "; it has the buffer protocol and __dlpack__");
    }
    if (!cuda_can_lend()) {
        return refuse("an array on a simulated GPU has no " ATTRIBUTE ", as no other library can reach its memory. Use "
                      ".cpu() to copy it to host memory first.");
    }
    if (typestr_of((dt_dtype)x->dtype) == NULL) {
        return refuse(ATTRIBUTE " has no name for bfloat16; __dlpack__ has one");
    }
    PY_CALL(true, status, cuda_lend(x, NULL, &err));
    if (status == DT_OK) {
        PY_CALL(true, status, cuda_enter(dt_array_device(x).index, &device, &err));
    }
    if (status != DT_OK) {
        return py_raise(py_state_of(self), &err, &self, 1);
    }
    /* whoever reads this may keep the address, and never says that it is done with it */
    atomic_store_explicit(&x->storage->exported, true, memory_order_relaxed);
    bool readonly = dt_array_readonly(x) || dt_array_overlaps_itself(x);
    return Py_BuildValue("{s:N,s:s,s:(NO),s:i,s:N,s:N}", "shape", py_shape_tuple(x->ndim, x->shape), "typestr",
                         typestr_of((dt_dtype)x->dtype), "data",
                         PyLong_FromVoidPtr(dt_array_numel(x) == 0 ? NULL : dt_array_data(x)),
                         readonly ? Py_True : Py_False, "version", 3, "strides", strides_of(x), "stream",
                         PyLong_FromVoidPtr(cuda_queue_read(cuda_current(device)).stream));
}

/* ---------------------------------------------------------------- others', for us */

static PyObject *
wrong(const char *text)
{
    return PyErr_Format(PyExc_ValueError, OP "(): " ATTRIBUTE " %s", text);
}

static int
read_ints(PyObject *tuple, const char *name, int *n, int64_t *out)
{
    if (tuple == NULL || !PyTuple_Check(tuple)) {
        wrong("needs a shape, and strides that are a tuple of ints or None");
        return -1;
    }
    if (PyTuple_GET_SIZE(tuple) > DT_MAX_NDIM) {
        PyErr_Format(PyExc_ValueError, OP "(): arrays have at most %d dimensions, but got %zd", DT_MAX_NDIM,
                     PyTuple_GET_SIZE(tuple));
        return -1;
    }
    *n = (int)PyTuple_GET_SIZE(tuple);
    for (int d = 0; d < *n; d++) {
        if (py_int(OP, name, PyTuple_GET_ITEM(tuple, d), &out[d]) < 0) {
            return -1;
        }
    }
    return 0;
}

static int
read_dtype(PyObject *typestr)
{
    const char *text = typestr == NULL || !PyUnicode_Check(typestr) ? NULL : PyUnicode_AsUTF8(typestr);
    for (int d = 0; text != NULL && d < DT_NDTYPES; d++) {
        const char *name = typestr_of((dt_dtype)d);
        bool same = name != NULL && strcmp(text + (text[0] != '\0'), name + 1) == 0 &&
                    (text[0] == name[0] || (name[0] == '|' && strchr("<=>", text[0]) != NULL));
        if (same) {
            return d;
        }
    }
    PyObject *shown = PyErr_Occurred() ? NULL : py_shown(typestr == NULL ? Py_None : typestr);
    if (shown != NULL) {
        PyErr_Format(PyExc_TypeError,
                     OP "(): elements of type %U are not supported: float64, float32, float16, int64, int32, int16, "
                        "int8, uint8 and bool are.",
                     shown);
        Py_DECREF(shown);
    }
    return -1;
}

/* Strides in elements, and the bytes from the first element to the end of the last. */
static int
read_strides(PyObject *strides, dt_array *x, size_t *nbytes)
{
    int64_t itemsize = (int64_t)dt_itemsize((dt_dtype)x->dtype), last = 0, bytes[DT_MAX_NDIM];
    int n = x->ndim;
    dt_array_set_contiguous(x);
    *nbytes = dt_array_nbytes(x);
    if (strides == NULL || strides == Py_None) {
        return 0;
    }
    if (read_ints(strides, "strides", &n, bytes) < 0 || n != x->ndim) {
        if (!PyErr_Occurred()) {
            wrong("has another number of strides than dimensions");
        }
        return -1;
    }
    for (int d = 0; d<n && * nbytes> 0; d++) {
        int64_t way;
        if (x->shape[d] == 1) {
            continue;
        }
        if (bytes[d] < 0 || bytes[d] % itemsize != 0) {
            wrong("has a stride that is negative or no multiple of the element size");
            return -1;
        }
        x->strides[d] = bytes[d] / itemsize;
        if (__builtin_mul_overflow(x->shape[d] - 1, bytes[d], &way) || __builtin_add_overflow(last, way, &last) ||
            last > INT64_MAX - itemsize) {
            wrong("has strides that reach beyond what 64 bits address");
            return -1;
        }
    }
    *nbytes = *nbytes > 0 ? (size_t)(last + itemsize) : 0;
    return 0;
}

typedef struct {
    dt_array array; /* without its storage */
    size_t nbytes;
    CUdeviceptr address;
    CUstream producer;
    bool readonly;
} interface;

static int
read_place(PyObject *dict, interface *in)
{
    PyObject *data = PyDict_GetItemString(dict, "data"), *stream = PyDict_GetItemString(dict, "stream");
    int64_t number = -1;
    if (data == NULL || !PyTuple_Check(data) || PyTuple_GET_SIZE(data) != 2 ||
        !PyLong_Check(PyTuple_GET_ITEM(data, 0))) {
        wrong("needs data, a tuple of an address and whether it is read-only");
        return -1;
    }
    in->address = PyLong_AsUnsignedLongLong(PyTuple_GET_ITEM(data, 0));
    int readonly = PyErr_Occurred() ? -1 : PyObject_IsTrue(PyTuple_GET_ITEM(data, 1));
    if (readonly < 0) {
        return -1;
    }
    in->readonly = readonly > 0;
    if (in->address % dt_itemsize((dt_dtype)in->array.dtype) != 0) {
        wrong("has an address that is not aligned to the element size");
        return -1;
    }
    if (py_given(stream)) {
        if (py_int(OP, "stream", stream, &number) < 0) {
            return -1;
        }
        if (number <= 0) {
            wrong("has a stream that is none: 1, 2 and addresses are");
            return -1;
        }
        in->producer = (CUstream)(uintptr_t)number;
    }
    return 0;
}

/* dict is nobody else's: what stands in it stays, whatever code the reading runs. */
static int
read_entries(const py_args *a, PyObject *dict, interface *in)
{
    dt_error err;
    int n = 0;
    *in = (interface){0};
    PyObject *mask = PyDict_GetItemString(dict, "mask");
    if (py_given(mask)) {
        wrong("has a mask, which a DeviceArray would lose");
        return -1;
    }
    int dtype = read_dtype(PyDict_GetItemString(dict, "typestr"));
    if (dtype < 0 || read_ints(PyDict_GetItemString(dict, "shape"), "shape", &n, in->array.shape) < 0) {
        return -1;
    }
    if (dt_shape_check(OP, n, in->array.shape, (dt_dtype)dtype, &err) != DT_OK) {
        py_raise_args(a, &err);
        return -1;
    }
    in->array.dtype = (uint8_t)dtype;
    in->array.ndim = (uint8_t)n;
    if (read_strides(PyDict_GetItemString(dict, "strides"), &in->array, &in->nbytes) < 0) {
        return -1;
    }
    return read_place(dict, in);
}

static int
read_interface(const py_args *a, PyObject *dict, interface *in)
{
    if (!PyDict_Check(dict)) {
        wrong("must be a dict");
        return -1;
    }
    PyObject *own = PyDict_Copy(dict);
    int rc = own == NULL ? -1 : read_entries(a, own, in);
    Py_XDECREF(own);
    return rc;
}

static dt_status
borrow(const interface *in, PyObject *owner, dt_storage **storage, dt_error *err)
{
    const dt_backend *backend;
    int index = dt_current_device();
    unsigned flags = DT_STORAGE_FOREIGN | (in->readonly ? (unsigned)DT_STORAGE_READONLY : 0u);
    DT_TRY(dt_backend_for((dt_device){DT_CUDA, index}, &backend, err));
    if (in->nbytes > 0) {
        DT_TRY(cuda_find_address(in->address, &index, err));
    }
    return cuda_borrow(index, in->address, in->nbytes, flags, in->producer, owner, py_release_owner, storage, err);
}

PyObject *
py_import_cuda_interface(const py_args *a, PyObject *object, PyObject *dict)
{
    interface in;
    dt_storage *storage;
    dt_error err;
    dt_status status;
    if (read_interface(a, dict, &in) < 0) {
        return NULL;
    }
    PyObject *result = py_array_new(a->state->array_type, a->op);
    if (result == NULL) {
        return NULL;
    }
    PY_CALL(true, status, borrow(&in, object, &storage, &err));
    if (status == DT_OK) {
        Py_INCREF(object);
        status = dt_as_strided(storage, 0, (dt_dtype)in.array.dtype, in.array.ndim, in.array.shape, in.array.strides,
                               py_array_of(result), &err);
        dt_storage_release(storage);
    }
    return py_finish(result, status, &err, a->v, 1);
}

static PyObject *
py_from_cuda_array_interface(PY_PARAMS)
{
    PY_PARSE(from_cuda_array_interface)
    if (py_is_array(a.v[0])) {
        return py_array_handle(a.v[0], OP);
    }
    PyObject *dict = py_attribute(a.v[0], ATTRIBUTE);
    PyObject *result = dict == NULL ? NULL : py_import_cuda_interface(&a, a.v[0], dict);
    Py_XDECREF(dict);
    return result;
}

PyMethodDef py_cuda_interface_functions[] = {
    PY_OP(from_cuda_array_interface,
          "A DeviceArray that shares the memory of an object with " ATTRIBUTE ", and keeps it alive; read-only if that "
          "is.\n\n"
          "Versions 1 to 3. Later work waits for the stream that it names. Raises ValueError for a mask, negative "
          "strides and\nwhat is malformed, TypeError for another dtype, RuntimeError for an address that is not of a "
          "device,\nDeviceNotAvailableError without CUDA."),
    PY_END,
};

PyMethodDef py_cuda_interface_methods[] = {PY_END};
