/* buffer.c: the buffer protocol, for arrays on the cpu, and arrays over the buffers of others. */
#include "../py.h"

static const char *
format_of(dt_dtype dtype)
{
    switch (dtype) {
    case DT_BOOL:
        return "?";
    case DT_UINT8:
        return "B";
    case DT_INT8:
        return "b";
    case DT_INT16:
        return "h";
    case DT_INT32:
        return "i";
    case DT_INT64:
        return "q";
    case DT_FLOAT16:
        return "e";
    case DT_FLOAT32:
        return "f";
    case DT_FLOAT64:
        return "d";
    default:
        return NULL;
    }
}

static bool
is_column_major(const dt_array *x)
{
    dt_array reversed = *x;
    for (int d = 0; d < x->ndim; d++) {
        reversed.shape[d] = x->shape[x->ndim - 1 - d];
        reversed.strides[d] = x->strides[x->ndim - 1 - d];
    }
    return dt_array_is_contiguous(&reversed);
}

/* Whether a view with these flags can hold x: NULL, or what is in the way. */
static const char *
obstacle(const dt_array *x, int flags)
{
    bool readonly = dt_array_readonly(x) || dt_array_overlaps_itself(x);
    if (format_of((dt_dtype)x->dtype) == NULL) {
        return "bfloat16 has no buffer format; .float() converts exactly";
    }
    if ((flags & PyBUF_WRITABLE) && readonly) {
        return "the DeviceArray is read-only";
    }
    bool rows = dt_array_is_contiguous(x), columns = is_column_major(x);
    if ((flags & PyBUF_ANY_CONTIGUOUS) == PyBUF_ANY_CONTIGUOUS) {
        return rows || columns ? NULL : "the DeviceArray is not contiguous; .contiguous() makes a copy that is";
    }
    if ((flags & PyBUF_F_CONTIGUOUS) == PyBUF_F_CONTIGUOUS) {
        return columns ? NULL : "the DeviceArray is not in column-major order; .T.contiguous().T makes a copy that is";
    }
    bool needs_rows = (flags & PyBUF_STRIDES) != PyBUF_STRIDES || (flags & PyBUF_C_CONTIGUOUS) == PyBUF_C_CONTIGUOUS;
    return !needs_rows || rows ? NULL : "the DeviceArray is not contiguous; .contiguous() makes a copy that is";
}

/* What a view needs: the memory stays also when self gets other data. */
typedef struct {
    dt_storage *storage;
    Py_ssize_t sizes[2 * DT_MAX_NDIM]; /* shape, strides */
} lent;

int
py_buffer_get(PyObject *self, Py_buffer *view, int flags)
{
    const dt_array *x = py_array_of(self);
    view->obj = NULL;
    if (py_refuse_tracked(self, "buffer") < 0) {
        return -1;
    }
    if (py_on_device(x)) {
        py_refuse_host_access(py_state_of(self), "buffer", self);
        return -1;
    }
    const char *problem = obstacle(x, flags);
    if (problem != NULL) {
        PyErr_SetString(PyExc_BufferError, problem);
        return -1;
    }
    if (py_hand_out(self) < 0) {
        return -1;
    }
    lent *internal = PyMem_Calloc(1, sizeof(*internal));
    if (internal == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    internal->storage = dt_storage_retain(x->storage);
    Py_ssize_t *sizes = internal->sizes;
    Py_ssize_t itemsize = (Py_ssize_t)dt_itemsize((dt_dtype)x->dtype);
    for (int d = 0; d < x->ndim; d++) {
        sizes[d] = (Py_ssize_t)x->shape[d];
        sizes[DT_MAX_NDIM + d] = (Py_ssize_t)x->strides[d] * itemsize;
    }
    *view = (Py_buffer){
        .buf = dt_array_data(x),
        .obj = Py_NewRef(self),
        .len = (Py_ssize_t)dt_array_nbytes(x),
        .itemsize = itemsize,
        .readonly = dt_array_readonly(x) || dt_array_overlaps_itself(x),
        .ndim = x->ndim,
        .format = (flags & PyBUF_FORMAT) ? (char *)(uintptr_t)format_of((dt_dtype)x->dtype) : NULL,
        .shape = (flags & PyBUF_ND) && x->ndim > 0 ? sizes : NULL,
        .strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES && x->ndim > 0 ? sizes + DT_MAX_NDIM : NULL,
        .internal = internal,
    };
    return 0;
}

void
py_buffer_release(PyObject *self, Py_buffer *view)
{
    (void)self;
    lent *internal = view->internal;
    dt_storage_release(internal->storage);
    PyMem_Free(internal);
}

/* ---------------------------------------------------------------- frombuffer */

void
py_release_owner(void *owner, void *data)
{
    (void)data;
    if (Py_IsInitialized()) {
        PyGILState_STATE gil = PyGILState_Ensure();
        Py_DECREF((PyObject *)owner);
        PyGILState_Release(gil);
    }
}

dt_status
py_wrap_memory(PyObject *memory, dt_storage **out, dt_error *err)
{
    const Py_buffer *buffer = PyMemoryView_GET_BUFFER(memory);
    unsigned flags = DT_STORAGE_FOREIGN | (buffer->readonly ? (unsigned)DT_STORAGE_READONLY : 0u);
    dt_status status = dt_storage_wrap((dt_device){DT_CPU, 0}, buffer->buf, (size_t)buffer->len, flags, memory,
                                       py_release_owner, out, err);
    if (status == DT_OK) {
        Py_INCREF(memory);
    }
    return status;
}

/* How many elements the buffer gives; -1 with an exception. */
static int64_t
count_elements(const Py_buffer *buffer, int64_t count, int64_t offset, int64_t itemsize)
{
    int64_t length = buffer->len;
    if (offset < 0 || offset > length) {
        PyErr_Format(
            PyExc_ValueError,
            "frombuffer(): offset (%lld bytes) must be non-negative and no greater than buffer length (%lld bytes)",
            (long long)offset, (long long)length);
    } else if (count < 0 && (length - offset) % itemsize != 0) {
        PyErr_Format(PyExc_ValueError,
                     "frombuffer(): buffer length (%lld bytes) after offset (%lld bytes) must be a multiple of element "
                     "size (%lld)",
                     (long long)length, (long long)offset, (long long)itemsize);
    } else if (count > (length - offset) / itemsize) {
        PyErr_Format(PyExc_ValueError,
                     "frombuffer(): %lld elements of size %lld at offset %lld do not fit in a buffer of %lld bytes",
                     (long long)count, (long long)itemsize, (long long)offset, (long long)length);
    } else if (((uintptr_t)buffer->buf + (uintptr_t)offset) % (uintptr_t)itemsize != 0) {
        PyErr_SetString(PyExc_ValueError, "frombuffer(): the memory is not aligned to the element size");
    } else {
        return count < 0 ? (length - offset) / itemsize : count;
    }
    return -1;
}

PyObject *
py_frombuffer(PY_PARAMS)
{
    PY_PARSE(frombuffer)
    dt_dtype dtype = DT_FLOAT32;
    int64_t count = -1, offset = 0;
    if (py_arg_dtype(&a, 1, &dtype) < 0 || py_arg_int(&a, 2, &count) < 0 || py_arg_int(&a, 3, &offset) < 0 ||
        py_arg_grad(&a, 4) < 0) {
        return NULL;
    }
    PyObject *memory = PyMemoryView_FromObject(a.v[0]), *result = NULL;
    if (memory == NULL) {
        return NULL;
    }
    const Py_buffer *buffer = PyMemoryView_GET_BUFFER(memory);
    if (!PyBuffer_IsContiguous(buffer, 'C')) {
        PyErr_SetString(PyExc_ValueError, "frombuffer(): the buffer is not contiguous");
    } else if ((count = count_elements(buffer, count, offset, (int64_t)dt_itemsize(dtype))) >= 0) {
        result = py_array_new(a.type, "frombuffer");
    }
    if (result != NULL) {
        const int64_t stride = 1;
        dt_error err;
        dt_storage *storage;
        dt_status status = py_wrap_memory(memory, &storage, &err);
        if (status == DT_OK) {
            status = dt_as_strided(storage, offset, dtype, 1, &count, &stride, py_array_of(result), &err);
            dt_storage_release(storage);
        }
        result = py_done(&a, result, status, &err);
    }
    Py_DECREF(memory);
    return py_created(&a, 4, result);
}
