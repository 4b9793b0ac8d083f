/* from_dlpack.c: arrays over the memory of other libraries, given by DLPack. */
#include "../../cuda/front.h"
#include "../cuda/device.h"
#include "dlpack.h"

#define OP "from_dlpack"

/* What a capsule holds. */
typedef struct {
    const DLTensor *tensor;
    void *managed;
    uint64_t flags;
    bool versioned;
    void (*release)(void *managed, void *data);
} dlpack_import;

/* Runs end, which is a producer's code and may run Python's: an exception that is on its way stays what it is. */
#define KEEPING_EXCEPTION(end)                                                                                         \
    do {                                                                                                               \
        PyObject *type_ = NULL, *exception_ = NULL, *traceback_ = NULL;                                                \
        bool has_gil_ = py_holds_gil();                                                                                \
        if (has_gil_) {                                                                                                \
            PyErr_Fetch(&type_, &exception_, &traceback_);                                                             \
        }                                                                                                              \
        end;                                                                                                           \
        if (has_gil_) {                                                                                                \
            PyErr_Restore(type_, exception_, traceback_);                                                              \
        }                                                                                                              \
    } while (0)

static void
release_old(void *managed, void *data)
{
    DLManagedTensor *m = managed;
    (void)data;
    if (m->deleter != NULL) {
        KEEPING_EXCEPTION(m->deleter(m));
    }
}

static void
release_versioned(void *managed, void *data)
{
    struct DLManagedTensorVersioned *m = managed;
    (void)data;
    if (m->deleter != NULL) {
        KEEPING_EXCEPTION(m->deleter(m));
    }
}

static int
open_capsule(PyObject *capsule, dlpack_import *in)
{
    *in = (dlpack_import){0};
    if (PyCapsule_IsValid(capsule, DLPACK_VERSIONED)) {
        struct DLManagedTensorVersioned *m = PyCapsule_GetPointer(capsule, DLPACK_VERSIONED);
        if (m->version.major != DLPACK_MAJOR_VERSION) {
            PyErr_Format(PyExc_BufferError, OP "(): DLPack %u.%u was given, but version 1 is the one that is known",
                         m->version.major, m->version.minor);
            return -1;
        }
        *in = (dlpack_import){&m->dl_tensor, m, m->flags, true, release_versioned};
        return 0;
    }
    if (PyCapsule_IsValid(capsule, DLPACK_OLD)) {
        DLManagedTensor *m = PyCapsule_GetPointer(capsule, DLPACK_OLD);
        *in = (dlpack_import){&m->dl_tensor, m, 0, false, release_old};
        return 0;
    }
    const char *name = PyCapsule_GetName(capsule);
    if (name != NULL && (strcmp(name, DLPACK_OLD_USED) == 0 || strcmp(name, DLPACK_VERSIONED_USED) == 0)) {
        PyErr_SetString(PyExc_ValueError, OP "(): this capsule was consumed already, which it can be only once");
    } else {
        PyErr_Format(PyExc_TypeError, OP "(): a capsule named \"%s\" is not one of DLPack", name ? name : "");
    }
    return -1;
}

/* ---------------------------------------------------------------- checks */

static int
find_dtype(const DLTensor *t)
{
    for (int d = 0; d < DT_NDTYPES; d++) {
        if (t->dtype.lanes == 1 && t->dtype.code == dt_dtypes[d].dlpack_code &&
            t->dtype.bits == 8 * dt_dtypes[d].itemsize) {
            return d;
        }
    }
    PyErr_Format(PyExc_BufferError,
                 OP "(): elements of DLPack code %d, %d bits and %d lanes are of no supported dtype: float64, float32, "
                    "float16, bfloat16, int64, int32, int16, int8, uint8 and bool.",
                 t->dtype.code, t->dtype.bits, t->dtype.lanes);
    return -1;
}

static int
find_device(const DLTensor *t, dt_device *device)
{
    if (t->device.device_type == kDLCPU || t->device.device_type == kDLCUDAHost) {
        *device = (dt_device){DT_CPU, 0};
        return 0;
    }
    if (t->device.device_type != kDLCUDA || t->device.device_id < 0) {
        PyErr_Format(PyExc_BufferError, OP "(): an array on DLPack device (%d, %d) is neither on the cpu nor on CUDA",
                     (int)t->device.device_type, t->device.device_id);
        return -1;
    }
    *device = (dt_device){DT_CUDA, t->device.device_id};
    return 0;
}

/* x's strides, and the bytes from its first element to the end of its last. */
static int
read_strides(const DLTensor *t, dt_array *x, size_t *nbytes)
{
    int64_t itemsize = (int64_t)dt_itemsize((dt_dtype)x->dtype), last = 0;
    dt_array_set_contiguous(x);
    *nbytes = 0;
    if (dt_array_numel(x) == 0) {
        return 0;
    }
    for (int d = 0; d < x->ndim; d++) {
        int64_t way;
        if (t->strides == NULL || x->shape[d] == 1) {
            way = (x->shape[d] - 1) * x->strides[d];
        } else {
            x->strides[d] = t->strides[d];
            if (t->strides[d] < 0) {
                PyErr_Format(PyExc_BufferError,
                             OP "(): stride %lld of dimension %d is negative, which is not supported. Copy the array "
                                "first.",
                             (long long)t->strides[d], d);
                return -1;
            }
            if (__builtin_mul_overflow(x->shape[d] - 1, t->strides[d], &way)) {
                way = INT64_MAX;
            }
        }
        if (__builtin_add_overflow(last, way, &last) || last > INT64_MAX / itemsize - 1) {
            PyErr_SetString(PyExc_BufferError, OP "(): the strides reach beyond what 64 bits address");
            return -1;
        }
    }
    *nbytes = (size_t)((last + 1) * itemsize);
    return 0;
}

static uintptr_t
address_of(const DLTensor *t)
{
    return (uintptr_t)t->data + (uintptr_t)t->byte_offset;
}

/* Everything about x but its storage. */
static int
read_tensor(const py_args *a, const DLTensor *t, dt_array *x, size_t *nbytes)
{
    dt_error err;
    int dtype = find_dtype(t);
    if (dtype < 0) {
        return -1;
    }
    if (t->ndim < 0 || t->ndim > DT_MAX_NDIM || (t->ndim > 0 && t->shape == NULL)) {
        PyErr_Format(PyExc_BufferError, OP "(): arrays have at most %d dimensions, but got %d", DT_MAX_NDIM, t->ndim);
        return -1;
    }
    if (dt_shape_check(OP, t->ndim, t->shape, (dt_dtype)dtype, &err) != DT_OK) {
        py_raise_args(a, &err);
        return -1;
    }
    x->dtype = (uint8_t)dtype;
    x->ndim = (uint8_t)t->ndim;
    for (int d = 0; d < t->ndim; d++) {
        x->shape[d] = t->shape[d];
    }
    if (read_strides(t, x, nbytes) < 0) {
        return -1;
    }
    uintptr_t address = address_of(t);
    if (*nbytes > 0 && (t->data == NULL || address < t->byte_offset)) {
        PyErr_SetString(PyExc_BufferError, OP "(): the address and the byte offset lead to no memory.");
        return -1;
    }
    if (*nbytes > 0 && address % dt_itemsize((dt_dtype)dtype) != 0) {
        PyErr_SetString(PyExc_BufferError,
                        OP "(): the memory is not aligned to the element size. Copy the array first.");
        return -1;
    }
    return 0;
}

/* ---------------------------------------------------------------- the import */

/* told: the producer knows which stream is ours. Else its work is taken to be before the legacy default stream's. */
static PyObject *
wrap_capsule(const py_args *a, PyObject *capsule, bool told, bool *copied)
{
    dlpack_import in;
    dt_array x = DT_ARRAY_EMPTY;
    dt_device device;
    size_t nbytes;
    if (open_capsule(capsule, &in) < 0 || find_device(in.tensor, &device) < 0 ||
        read_tensor(a, in.tensor, &x, &nbytes) < 0) {
        return NULL;
    }
    PyObject *result = py_array_new(a->state->array_type, OP);
    if (result == NULL) {
        return NULL;
    }
    dt_error err;
    dt_status status;
    dt_storage *storage;
    unsigned flags =
        DT_STORAGE_FOREIGN | (in.flags & DLPACK_FLAG_BITMASK_READ_ONLY ? (unsigned)DT_STORAGE_READONLY : 0u);
    char *data = (char *)address_of(in.tensor); /* that of an array without elements may be anything */
    const char *name = PyCapsule_GetName(capsule);
    (void)PyCapsule_SetName(capsule, in.versioned ? DLPACK_VERSIONED_USED : DLPACK_OLD_USED); /* no other thread's */
    if (device.type == DT_CPU) {
        status = dt_storage_wrap(device, data, nbytes, flags, in.managed, in.release, &storage, &err);
    } else {
        PY_CALL(true, status,
                cuda_borrow(device.index, (CUdeviceptr)(uintptr_t)data, nbytes, flags, told ? NULL : CU_STREAM_LEGACY,
                            in.managed, in.release, &storage, &err));
    }
    if (status == DT_OK) {
        *copied = (in.flags & DLPACK_FLAG_BITMASK_IS_COPIED) != 0;
        status = dt_as_strided(storage, 0, (dt_dtype)x.dtype, x.ndim, x.shape, x.strides, py_array_of(result), &err);
        dt_storage_release(storage);
    } else {
        (void)PyCapsule_SetName(capsule, name);
    }
    return py_finish(result, status, &err, a->v, 1);
}

/* The stream that a producer on CUDA makes wait for the array: our default one, as an int. */
static PyObject *
stream_for(const py_args *a, int index)
{
    cuda_device *device;
    return py_enter_device(a->state, index, &device) == DT_OK
               ? PyLong_FromVoidPtr(cuda_queue_read(cuda_default_queue(device)).stream)
               : NULL;
}

/* Calls object.__dlpack__ with what stands in keywords; producers before 1.0 take no more than a stream. */
static PyObject *
call_producer(PyObject *object, PyObject *keywords)
{
    PyObject *none = PyTuple_New(0), *method = none == NULL ? NULL : py_attribute(object, "__dlpack__");
    PyObject *capsule = method == NULL ? NULL : PyObject_Call(method, none, keywords);
    if (method != NULL && capsule == NULL && PyErr_ExceptionMatches(PyExc_TypeError)) {
        PyErr_Clear();
        PyObject *stream = PyDict_GetItemString(keywords, "stream");
        PyObject *fewer = stream == NULL ? PyDict_New() : Py_BuildValue("{s:O}", "stream", stream);
        capsule = fewer == NULL ? NULL : PyObject_Call(method, none, fewer);
        Py_XDECREF(fewer);
    }
    Py_XDECREF(method);
    Py_XDECREF(none);
    if (capsule != NULL && !PyCapsule_CheckExact(capsule)) {
        PyErr_Format(PyExc_TypeError, OP "(): __dlpack__ of %s gave %s, not a capsule", Py_TYPE(object)->tp_name,
                     Py_TYPE(capsule)->tp_name);
        Py_CLEAR(capsule);
    }
    return capsule;
}

static int
add_keyword(PyObject *keywords, const char *name, PyObject *value)
{
    int rc = value == NULL ? -1 : PyDict_SetItemString(keywords, name, value);
    Py_XDECREF(value);
    return rc;
}

/* copy: 1, 0, or -1 for None. */
static PyObject *
ask_producer(const py_args *a, PyObject *object, const dt_device *device, int copy, bool *told)
{
    PyObject *method = py_attribute(object, "__dlpack_device__");
    PyObject *pair = method == NULL ? NULL : PyObject_CallNoArgs(method);
    int type = 0, index = 0;
    bool known = pair != NULL && PyTuple_Check(pair) && PyArg_ParseTuple(pair, "ii", &type, &index);
    Py_XDECREF(method);
    Py_XDECREF(pair);
    if (!known) {
        if (method == NULL ? PyErr_ExceptionMatches(PyExc_AttributeError) : !PyErr_Occurred()) {
            PyErr_Format(PyExc_TypeError, OP "(): an array with __dlpack__ and __dlpack_device__ is needed, not %s",
                         Py_TYPE(object)->tp_name);
        }
        return NULL;
    }
    PyObject *keywords = Py_BuildValue("{s:(ii)}", "max_version", DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION),
             *capsule = NULL;
    bool to_host = device != NULL && device->type == DT_CPU && type != kDLCPU && type != kDLCUDAHost;
    bool ready = keywords != NULL;
    if (ready && to_host) {
        ready = add_keyword(keywords, "dl_device", Py_BuildValue("(ii)", kDLCPU, 0)) == 0;
    } else if (ready && type == kDLCUDA) {
        ready = *told = add_keyword(keywords, "stream", stream_for(a, index)) == 0;
    }
    if (ready && copy == 0) {
        ready = add_keyword(keywords, "copy", Py_NewRef(Py_False)) == 0;
    }
    if (ready) {
        capsule = call_producer(object, keywords);
    }
    Py_XDECREF(keywords);
    return capsule;
}

PyObject *
py_import_dlpack(const py_args *a, PyObject *object, const dt_device *device, int copy)
{
    bool copied = false, told = false;
    PyObject *array;
    if (py_is_array(object)) {
        array = py_array_handle(object, OP);
    } else {
        PyObject *capsule =
            PyCapsule_CheckExact(object) ? Py_NewRef(object) : ask_producer(a, object, device, copy, &told);
        array = capsule == NULL ? NULL : wrap_capsule(a, capsule, told, &copied);
        KEEPING_EXCEPTION(Py_XDECREF(capsule));
    }
    if (array == NULL) {
        return NULL;
    }
    dt_device from = dt_array_device(py_array_of(array)), to = device != NULL ? *device : from;
    PyObject *result = NULL;
    if (copy == 0 && !dt_device_equal(from, to)) {
        char here[DT_DEVICE_TEXT], there[DT_DEVICE_TEXT];
        PyErr_Format(PyExc_ValueError, OP "(): the array is on %s and cannot be on %s with copy=False",
                     dt_device_text(from, here), dt_device_text(to, there));
    } else {
        result = py_convert(array, OP, to, (dt_dtype)py_array_of(array)->dtype, false, copy == 1 && !copied);
    }
    Py_DECREF(array);
    return result;
}

static PyObject *
py_from_dlpack(PY_PARAMS)
{
    PY_PARSE(from_dlpack)
    dt_device device;
    bool copy = false;
    if (py_arg_device(&a, 1, &device) < 0 || (py_given(a.v[2]) && py_arg_bool(&a, 2, &copy) < 0)) {
        return NULL;
    }
    return py_import_dlpack(&a, a.v[0], py_given(a.v[1]) ? &device : NULL, py_given(a.v[2]) ? copy : -1);
}

PyMethodDef py_dlpack_functions[] = {
    PY_OP(
        from_dlpack,
        "A DeviceArray that shares the memory of another library's array, which stays alive; read-only if that is.\n\n"
        "x: an array with __dlpack__ (NumPy's, PyTorch's, CuPy's, ...) or a DLPack capsule. On the device of x, or "
        "on device,\nby a copy where that is another. copy=True always copies, copy=False never. Raises BufferError "
        "where the memory\ncannot be shared (dtype, device, negative strides), ValueError for copy=False where a copy "
        "is needed and for a\ncapsule that was consumed."),
    PY_END,
};
