/* pickle.c: copy, deepcopy and pickle. */
#include "../../core/grad/grad.h"
#include "../../core/ops/ops.h"
#include "../py.h"
#include "../subclass.h"

/* ---------------------------------------------------------------- copies */

static bool
wants_grad(PyObject *self)
{
    return dt_wants_grad(py_array_of(self));
}

static PyObject *
py___copy__(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    if (py_is_subclassed(self)) {
        return py_of_subclass("copied", self, NULL);
    }
    PyObject *result = py_array_handle(self, "copy");
    return wants_grad(self) ? py_want_grad(result) : result;
}

/* x is self, or its bytes. */
static PyObject *
clone_of(PyObject *self, const dt_array *x)
{
    PY_RETURN_OF(self, py_array_new(Py_TYPE(self), "deepcopy"), py_is_large(x), dt_clone(x, out, &err));
}

/* The copy of storage in an entry of a memo, borrowed; NULL: the entry is not of this file's making. */
static PyObject *
remembered(PyObject *entry, const dt_storage *storage)
{
    PyObject *copy = PyTuple_CheckExact(entry) && PyTuple_GET_SIZE(entry) == 2 ? PyTuple_GET_ITEM(entry, 0) : NULL;
    if (copy == NULL || !py_is_array(copy)) {
        return NULL;
    }
    const dt_storage *other = py_array_of(copy)->storage;
    return dt_device_equal(other->device, storage->device) && other->nbytes == storage->nbytes ? copy : NULL;
}

/* A copy of all bytes of self's storage, made once for each memo, which keeps it and self. A new reference. */
static PyObject *
copy_of_storage(PyObject *self, PyObject *memo)
{
    dt_storage *storage = py_array_of(self)->storage;
    int64_t nbytes = (int64_t)storage->nbytes, stride = 1;
    PyObject *key = Py_BuildValue("(sN)", "devtensor storage", PyLong_FromVoidPtr(storage));
    PyObject *entry = key == NULL ? NULL : PyDict_GetItemWithError(memo, key);
    PyObject *copy = entry == NULL ? NULL : Py_XNewRef(remembered(entry, storage));
    if (copy == NULL && key != NULL && !PyErr_Occurred()) {
        dt_array bytes = {.storage = storage, .dtype = DT_UINT8, .ndim = 1, .shape = {nbytes}, .strides = {stride}};
        copy = clone_of(self, &bytes);
        entry = copy == NULL ? NULL : PyTuple_Pack(2, copy, self);
        if (entry == NULL || PyDict_SetItem(memo, key, entry) < 0) {
            Py_CLEAR(copy);
        }
        Py_XDECREF(entry);
    }
    Py_XDECREF(key);
    return copy;
}

PyObject *
py_deep_copy(PyObject *self, PyObject *memo)
{
    const dt_array *x = py_array_of(self);
    if (!PyDict_Check(memo)) {
        return clone_of(self, x);
    }
    dt_error err;
    PyObject *copy = copy_of_storage(self, memo);
    PyObject *result = copy == NULL ? NULL : py_array_new(Py_TYPE(self), "deepcopy");
    if (result != NULL) {
        dt_status status = dt_as_strided(py_array_of(copy)->storage, x->offset, (dt_dtype)x->dtype, x->ndim, x->shape,
                                         x->strides, py_array_of(result), &err);
        result = py_finish(result, status, &err, &self, 1);
    }
    Py_XDECREF(copy);
    return result;
}

/* A leaf is copied with its gradient. */
static PyObject *
py___deepcopy__(PyObject *self, PyObject *memo)
{
    if (py_is_subclassed(self)) {
        return py_of_subclass("deeply_copied", self, memo);
    }
    const dt_array *x = py_array_of(self);
    if (!wants_grad(self)) {
        return py_deep_copy(self, memo);
    }
    if (!(x->node->flags & DT_NODE_LEAF)) {
        return py_refuse_grad(self, "grad-deepcopy", "deepcopy",
                              "Only Tensors created explicitly by the user (graph leaves) support the deepcopy "
                              "protocol at the moment: use detach() or clone()");
    }
    PyObject *result = py_want_grad(py_deep_copy(self, memo));
    PyObject *grad = result == NULL ? NULL : PyObject_GetAttrString(self, "grad");
    PyObject *copy = grad == NULL || grad == Py_None ? Py_XNewRef(grad) : py_deep_copy(grad, memo);
    if (copy == NULL || PyObject_SetAttrString(result, "grad", copy) < 0) {
        Py_CLEAR(result);
    }
    Py_XDECREF(copy);
    Py_XDECREF(grad);
    return result;
}

/* ---------------------------------------------------------------- to a pickle */

/* x on the host with its elements side by side: in its own order where it is dense. */
static int
gather(PyObject *self, dt_array *out)
{
    const dt_array *x = py_array_of(self);
    dt_array host = DT_ARRAY_EMPTY;
    dt_error err;
    dt_status status;
    if (py_settle(self, DT_READ) < 0) {
        return -1;
    }
    PY_MOVE("pickle", self, py_on_device(x), status,
            dt_to(x, (dt_device){DT_CPU, 0}, (dt_dtype)x->dtype, false, false, &host, &err));
    if (status == DT_OK && !dt_array_is_dense(&host)) {
        status = dt_contiguous(&host, out, &err);
        dt_array_clear(&host);
    } else if (status == DT_OK) {
        *out = host;
    }
    if (status != DT_OK) {
        py_raise(py_state_of(self), &err, &self, 1);
        return -1;
    }
    return 0;
}

/* The bytes of x, which is dense: bytes, or for protocol 5 a PickleBuffer that shares them. */
static PyObject *
pack(PyTypeObject *type, dt_array *x, int protocol)
{
    const int64_t nbytes = (int64_t)dt_array_nbytes(x), stride = 1;
    dt_error err;
    if (protocol < 5) {
        return PyBytes_FromStringAndSize(nbytes > 0 ? dt_array_data(x) : NULL, (Py_ssize_t)nbytes);
    }
    PyObject *flat = py_array_new(type, "pickle");
    if (flat == NULL) {
        return NULL;
    }
    dt_status status = dt_as_strided(x->storage, x->offset, DT_UINT8, 1, &nbytes, &stride, py_array_of(flat), &err);
    flat = py_finish(flat, status, &err, NULL, 0);
    PyObject *buffer = flat == NULL ? NULL : PyPickleBuffer_FromObject(flat);
    Py_XDECREF(flat);
    return buffer;
}

/* (_rebuild, (shape, dtype, data, device, strides, share, requires_grad)) */
static PyObject *
reduce(PyObject *self, int protocol)
{
    char text[DT_DEVICE_TEXT];
    py_state *state = py_state_of(self);
    dt_array x = DT_ARRAY_EMPTY;
    PyObject *module = PyImport_ImportModule("devtensor._C");
    PyObject *rebuild = module == NULL ? NULL : py_attribute(module, "_rebuild"), *result = NULL;
    Py_XDECREF(module);
    if (rebuild == NULL || gather(self, &x) < 0) {
        Py_XDECREF(rebuild);
        return NULL;
    }
    PyObject *data = pack(Py_TYPE(self), &x, protocol);
    if (data != NULL) {
        result = Py_BuildValue(
            "O(NNOsNOO)", rebuild, py_shape_tuple(x.ndim, x.shape), py_dtype_object(state, (dt_dtype)x.dtype), data,
            dt_device_text(dt_array_device(py_array_of(self)), text), py_shape_tuple(x.ndim, x.strides),
            protocol < 5 ? Py_False : Py_True, wants_grad(self) ? Py_True : Py_False);
    }
    dt_array_clear(&x);
    Py_XDECREF(data);
    Py_DECREF(rebuild);
    return result;
}

static PyObject *
py___reduce__(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    return py_is_subclassed(self) ? py_of_subclass("reduced", self, NULL) : reduce(self, 2);
}

/* A Parameter and a Buffer have a __reduce__ of their own, which holds a plain array. */
static PyObject *
py___reduce_ex__(PyObject *self, PyObject *protocol)
{
    int64_t number = 0;
    if (py_int("__reduce_ex__", "protocol", protocol, &number) < 0) {
        return NULL;
    }
    return Py_TYPE(self) == py_state_of(self)->array_type ? reduce(self, number < 5 ? 2 : 5)
                                                          : PyObject_CallMethod(self, "__reduce__", NULL);
}

/* ---------------------------------------------------------------- from a pickle; nothing in it is trusted */

typedef struct {
    dt_array array; /* without its storage */
    dt_device device;
    bool share, wants_grad;
} pickled;

static int
fail(const char *text)
{
    PyErr_Format(PyExc_ValueError, "_rebuild(): %s", text);
    return -1;
}

static int
read_layout(const py_args *a, pickled *p)
{
    int n = 0, nstrides = 0;
    dt_dtype dtype = DT_FLOAT32;
    dt_error err;
    dt_array *x = &p->array;
    *p = (pickled){.device = {DT_CPU, 0}};
    if (!PyTuple_Check(a->v[0]) || py_arg_dims(a, 0, &n, x->shape) < 0 || py_arg_dtype(a, 1, &dtype) < 0 ||
        py_arg_device(a, 3, &p->device) < 0 || py_arg_bool(a, 5, &p->share) < 0 ||
        py_arg_bool(a, 6, &p->wants_grad) < 0) {
        return PyErr_Occurred() ? -1 : py_arg_wrong(a, 0, "a tuple");
    }
    if (dt_shape_check("_rebuild", n, x->shape, dtype, &err) != DT_OK) {
        py_raise_args(a, &err);
        return -1;
    }
    x->dtype = (uint8_t)dtype;
    x->ndim = (uint8_t)n;
    dt_array_set_contiguous(x);
    if (!py_given(a->v[4]) || dt_array_numel(x) == 0) {
        return 0;
    }
    if (py_arg_dims(a, 4, &nstrides, x->strides) < 0) {
        return -1;
    }
    bool fits = nstrides == n;
    for (int d = 0; d < n && fits; d++) {
        fits = x->strides[d] >= 0 && x->strides[d] <= dt_array_numel(x);
    }
    return fits && dt_array_is_dense(x) ? 0 : fail("the strides do not fit the shape");
}

/* The bytes are as many as the array has, and bools are 0 or 1. */
static int
check_bytes(const dt_array *x, const Py_buffer *bytes)
{
    const unsigned char *data = bytes->buf;
    if (bytes->len != (Py_ssize_t)dt_array_nbytes(x)) {
        PyErr_Format(PyExc_ValueError, "_rebuild(): %zd bytes do not make this shape, which has %zu", bytes->len,
                     dt_array_nbytes(x));
        return -1;
    }
    for (Py_ssize_t i = 0; x->dtype == DT_BOOL && i < bytes->len; i++) {
        if (data[i] > 1) {
            return fail("a bool is 0 or 1");
        }
    }
    return 0;
}

/* The array on the host: over memory itself where it may share that, else in a copy. */
static dt_status
make_host(const pickled *p, PyObject *memory, dt_array *out, dt_error *err)
{
    const dt_array *x = &p->array;
    const Py_buffer *bytes = PyMemoryView_GET_BUFFER(memory);
    bool aligned = (uintptr_t)bytes->buf % dt_itemsize((dt_dtype)x->dtype) == 0;
    dt_storage *storage = NULL;
    if (p->share && aligned) {
        DT_TRY(py_wrap_memory(memory, &storage, err));
    } else {
        DT_TRY(dt_storage_new((dt_device){DT_CPU, 0}, (size_t)bytes->len, &storage, err));
        if (bytes->len > 0) {
            memcpy(storage->data, bytes->buf, (size_t)bytes->len);
        }
    }
    dt_status status = dt_as_strided(storage, 0, (dt_dtype)x->dtype, x->ndim, x->shape, x->strides, out, err);
    dt_storage_release(storage);
    return status;
}

static PyObject *
rebuild(const py_args *a, const pickled *p, PyObject *memory)
{
    dt_array host = DT_ARRAY_EMPTY;
    dt_error err;
    PyObject *result = py_array_new(a->type, "unpickle");
    if (result == NULL) {
        return NULL;
    }
    dt_status status = make_host(p, memory, &host, &err);
    if (status == DT_OK) {
        PY_MOVE("unpickle", NULL, p->device.type != DT_CPU, status,
                dt_to(&host, p->device, (dt_dtype)host.dtype, false, false, py_array_of(result), &err));
        dt_array_clear(&host);
    }
    return py_finish(result, status, &err, NULL, 0);
}

static PyObject *
py__rebuild(PY_PARAMS)
{
    PY_PARSE(_rebuild)
    pickled p;
    if (read_layout(&a, &p) < 0) {
        return NULL;
    }
    PyObject *memory = PyMemoryView_FromObject(a.v[2]), *result = NULL;
    if (memory == NULL) {
        return NULL;
    }
    if (!PyBuffer_IsContiguous(PyMemoryView_GET_BUFFER(memory), 'C')) {
        fail("the buffer is not contiguous");
    } else if (check_bytes(&p.array, PyMemoryView_GET_BUFFER(memory)) == 0) {
        result = rebuild(&a, &p, memory);
        result = p.wants_grad ? py_want_grad(result) : result;
    }
    Py_DECREF(memory);
    return result;
}

/* ---------------------------------------------------------------- memory that several arrays share, for files */

static PyObject *
py__storage(PY_PARAMS)
{
    PY_PARSE(_storage)
    const dt_array *x = py_arg_array(&a, 0);
    if (x == NULL) {
        return NULL;
    }
    return Py_BuildValue("(NnL)", PyLong_FromVoidPtr(x->storage), (Py_ssize_t)x->storage->nbytes, (long long)x->offset);
}

/* Whether all elements of x lie in its memory, each where one of its dtype may. */
static bool
lies_within(const dt_array *x, size_t nbytes)
{
    const int64_t itemsize = (int64_t)dt_itemsize((dt_dtype)x->dtype);
    const bool empty = dt_array_numel(x) == 0;
    int64_t end = empty ? 0 : 1, bytes;
    for (int d = 0; d < x->ndim; d++) {
        int64_t reach;
        if (x->strides[d] < 0 || (!empty && (__builtin_mul_overflow(x->shape[d] - 1, x->strides[d], &reach) ||
                                             __builtin_add_overflow(end, reach, &end)))) {
            return false;
        }
    }
    return x->offset >= 0 && x->offset % itemsize == 0 && !__builtin_mul_overflow(end, itemsize, &bytes) &&
           !__builtin_add_overflow(bytes, x->offset, &bytes) && bytes <= (int64_t)nbytes;
}

static PyObject *
py__strided(PY_PARAMS)
{
    PY_PARSE(_strided)
    const dt_array *memory = py_arg_array(&a, 0);
    dt_array x = DT_ARRAY_EMPTY;
    dt_dtype dtype = DT_FLOAT32;
    int n = 0, nstrides = 0;
    dt_error err;
    if (memory == NULL || py_arg_dtype(&a, 1, &dtype) < 0 || py_arg_dims(&a, 2, &n, x.shape) < 0 ||
        py_arg_dims(&a, 3, &nstrides, x.strides) < 0 || py_arg_int(&a, 4, &x.offset) < 0) {
        return NULL;
    }
    if (dt_shape_check("_strided", n, x.shape, dtype, &err) != DT_OK) {
        return py_raise_args(&a, &err);
    }
    x.dtype = (uint8_t)dtype;
    x.ndim = (uint8_t)n;
    if (nstrides != n || !lies_within(&x, memory->storage->nbytes)) {
        PyErr_SetString(PyExc_ValueError, "the elements do not lie in the memory");
        return NULL;
    }
    PyObject *result = py_array_new(a.type, "load");
    if (result == NULL) {
        return NULL;
    }
    if (dtype == (dt_dtype)memory->dtype) { /* gradients may flow */
        const int64_t offset = x.offset / (int64_t)dt_itemsize(dtype);
        const dt_status status = dt_view_strided(memory, offset, n, x.shape, x.strides, py_array_of(result), &err);
        return py_finish(result, status, &err, a.v, 1);
    }
    const dt_status status =
        dt_as_strided(memory->storage, x.offset, dtype, n, x.shape, x.strides, py_array_of(result), &err);
    return py_finish(result, status, &err, NULL, 0);
}

PyMethodDef py_pickle_functions[] = {
    PY_HIDDEN(_rebuild, "What a pickled DeviceArray calls. Raises ValueError where the bytes do not fit."),
    PY_HIDDEN(_storage,
              "Of the memory behind an array: what tells it from others, its bytes, and where the array begins."),
    PY_HIDDEN(_strided, "The memory behind an array, from offset bytes on, as another one. Raises ValueError."),
    PY_END,
};

PyMethodDef py_pickle_methods[] = {
    {"__copy__", py___copy__, METH_NOARGS, NULL},
    {"__deepcopy__", py___deepcopy__, METH_O, NULL},
    {"__reduce__", py___reduce__, METH_NOARGS, NULL},
    {"__reduce_ex__", py___reduce_ex__, METH_O, NULL},
    PY_END,
};
