/* dlpack.c: arrays handed to other libraries by DLPack. A capsule holds the storage itself and no Python object, so
 * that its deleter may run on any thread, without the GIL and after the interpreter. */
#include "dlpack.h"

#include "../../cuda/front.h"
#include "../py.h"

/* What was asked for, checked. */
typedef struct {
    bool versioned;
    bool copies, must_not_copy;
    dt_device device;  /* of what is handed over */
    CUstream consumer; /* NULL: nobody has to wait */
} request;

/* One block: what the consumer is given, what it points to, and what keeps that alive. */
typedef struct {
    union {
        DLManagedTensor old;
        struct DLManagedTensorVersioned versioned;
    } managed;
    dt_array array;
} export;

static PyObject *
fail(const char *text)
{
    PyErr_Format(PyExc_BufferError, "__dlpack__(): %s", text);
    return NULL;
}

/* ---------------------------------------------------------------- what is asked for */

static int
parse_version(const py_args *a, int i, bool *versioned)
{
    PyObject *pair = a->v[i];
    int64_t major = 0;
    if (!py_given(pair)) {
        return 0;
    }
    if (!PyTuple_Check(pair) || PyTuple_GET_SIZE(pair) != 2) {
        return py_arg_wrong(a, i, "a tuple of two ints");
    }
    if (py_int(a->op, a->spec->names[i], PyTuple_GET_ITEM(pair, 0), &major) < 0) {
        return -1;
    }
    *versioned = major >= DLPACK_MAJOR_VERSION;
    return 0;
}

static int
parse_device(const py_args *a, int i, dt_device *device)
{
    PyObject *pair = a->v[i];
    int64_t type = 0, index = 0;
    if (!py_given(pair)) {
        return 0;
    }
    if (!PyTuple_Check(pair) || PyTuple_GET_SIZE(pair) != 2) {
        return py_arg_wrong(a, i, "a tuple of two ints");
    }
    if (py_int(a->op, a->spec->names[i], PyTuple_GET_ITEM(pair, 0), &type) < 0 ||
        py_int(a->op, a->spec->names[i], PyTuple_GET_ITEM(pair, 1), &index) < 0) {
        return -1;
    }
    bool same_extension = type == kDLExtDev && device->type == DT_CUDA && index == device->index;
    if (same_extension) {
        return 0;
    }
    if ((type != kDLCPU && type != kDLCUDA) || index < 0 || index > INT_MAX) {
        PyErr_Format(PyExc_BufferError, "__dlpack__(): no array can be given to dl_device (%lld, %lld)",
                     (long long)type, (long long)index);
        return -1;
    }
    *device = (dt_device){type == kDLCPU ? DT_CPU : DT_CUDA, type == kDLCPU ? 0 : (int32_t)index};
    return 0;
}

/* None is the legacy default stream, -1 nobody; 1 and 2 are the driver's own names of the two default streams. */
static int
parse_stream(const py_args *a, int i, bool on_cuda, CUstream *consumer)
{
    int64_t stream = on_cuda ? 1 : -1;
    if (py_given(a->v[i]) && py_int(a->op, a->spec->names[i], a->v[i], &stream) < 0) {
        return -1;
    }
    if (!on_cuda && stream != -1) {
        PyErr_Format(PyExc_ValueError, "__dlpack__(): stream must be None for an array on the cpu, got %lld",
                     (long long)stream);
        return -1;
    }
    if (stream < -1 || stream == 0) {
        PyErr_Format(PyExc_ValueError,
                     "__dlpack__(): stream must be None, -1 (no waiting), 1 (the legacy default stream), 2 (the "
                     "thread's default stream) or the address of a stream, got %lld",
                     (long long)stream);
        return -1;
    }
    *consumer = stream == -1 ? NULL : (CUstream)(uintptr_t)stream;
    return 0;
}

static int
parse_request(const py_args *a, request *r)
{
    const dt_array *x = py_array_of(a->v[0]);
    dt_device own = dt_array_device(x);
    bool copy = false;
    r->device = own;
    if (parse_version(a, 2, &r->versioned) < 0 || parse_device(a, 3, &r->device) < 0 ||
        parse_stream(a, 1, own.type == DT_CUDA || r->device.type == DT_CUDA, &r->consumer) < 0 ||
        (py_given(a->v[4]) && py_arg_bool(a, 4, &copy) < 0)) {
        return -1;
    }
    r->must_not_copy = py_given(a->v[4]) && !copy;
    r->copies = copy || !dt_device_equal(own, r->device);
    return 0;
}

/* 0, or -1 with the reason why the array cannot be handed over. */
static int
check_request(const dt_array *x, const request *r)
{
    char text[DT_DEVICE_TEXT];
    if (r->device.type == DT_CUDA && !cuda_can_lend()) {
        PyErr_Format(PyExc_BufferError,
                     "__dlpack__(): %s is a simulated GPU, whose memory no other library can reach. Use .cpu() to copy "
                     "the array to host memory first, or ask for dl_device=(1, 0).",
                     dt_device_text(r->device, text));
        return -1;
    }
    if (r->copies && r->must_not_copy) {
        PyErr_Format(PyExc_BufferError,
                     "__dlpack__(): an array on %s cannot be given to another device with copy=False",
                     dt_device_text(dt_array_device(x), text));
        return -1;
    }
    if (!r->copies && !r->versioned && (dt_array_readonly(x) || dt_array_overlaps_itself(x))) {
        fail("the array is read-only, which only consumers that know DLPack 1.0 (max_version=(1, 0)) can be told. Use "
             ".clone() to make a copy first.");
        return -1;
    }
    return 0;
}

/* ---------------------------------------------------------------- the capsule */

static void
export_free(export *e)
{
    dt_array_clear(&e->array);
    dt_free(e);
}

/* The consumer is done with it, though its streams may not be. */
static void
export_ends(export *e)
{
    if (dt_array_device(&e->array).type == DT_CUDA) {
        cuda_follow_others(e->array.storage);
    }
    export_free(e);
}

static void
delete_old(DLManagedTensor *self)
{
    export_ends(self->manager_ctx);
}

static void
delete_versioned(struct DLManagedTensorVersioned *self)
{
    export_ends(self->manager_ctx);
}

/* Nobody took what a capsule with its first name holds. */
static void
capsule_ends(PyObject *capsule)
{
    DLManagedTensor *old = PyCapsule_IsValid(capsule, DLPACK_OLD) ? PyCapsule_GetPointer(capsule, DLPACK_OLD) : NULL;
    struct DLManagedTensorVersioned *versioned =
        PyCapsule_IsValid(capsule, DLPACK_VERSIONED) ? PyCapsule_GetPointer(capsule, DLPACK_VERSIONED) : NULL;
    if (old != NULL) {
        export_free(old->manager_ctx);
    }
    if (versioned != NULL) {
        export_free(versioned->manager_ctx);
    }
}

static DLTensor
describe_tensor(dt_array *x)
{
    dt_device device = dt_array_device(x);
    dt_dtype dtype = (dt_dtype)x->dtype;
    return (DLTensor){
        .data = dt_array_numel(x) == 0 ? NULL : dt_array_data(x),
        .device = {device.type == DT_CPU ? kDLCPU : kDLCUDA, device.type == DT_CPU ? 0 : device.index},
        .ndim = x->ndim,
        .dtype = {dt_dtypes[dtype].dlpack_code, (uint8_t)(8 * dt_itemsize(dtype)), 1},
        .shape = x->shape,
        .strides = x->strides,
    };
}

/* Takes array over. */
static PyObject *
make_capsule(dt_array *array, const request *r)
{
    export *e = dt_malloc(sizeof(*e));
    if (e == NULL) {
        dt_array_clear(array);
        return PyErr_NoMemory();
    }
    e->array = *array;
    bool readonly = dt_array_readonly(array) || dt_array_overlaps_itself(array);
    if (r->versioned) {
        e->managed.versioned = (struct DLManagedTensorVersioned){
            .version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION},
            .manager_ctx = e,
            .deleter = delete_versioned,
            .flags = (readonly ? DLPACK_FLAG_BITMASK_READ_ONLY : 0) | (r->copies ? DLPACK_FLAG_BITMASK_IS_COPIED : 0),
            .dl_tensor = describe_tensor(&e->array),
        };
    } else {
        e->managed.old =
            (DLManagedTensor){.dl_tensor = describe_tensor(&e->array), .manager_ctx = e, .deleter = delete_old};
    }
    PyObject *capsule = PyCapsule_New(&e->managed, r->versioned ? DLPACK_VERSIONED : DLPACK_OLD, capsule_ends);
    if (capsule == NULL) {
        export_free(e);
    }
    return capsule;
}

/* ---------------------------------------------------------------- the protocol */

static PyObject *
py___dlpack__(PY_PARAMS)
{
    PY_PARSE(__dlpack__)
    const dt_array *x = py_array_of(self);
    request r = {0};
    dt_array given = DT_ARRAY_EMPTY;
    dt_error err;
    dt_status status = DT_OK;
    if (parse_request(&a, &r) < 0 || check_request(x, &r) < 0 || py_refuse_tracked(self, "__dlpack__") < 0 ||
        py_settle(self, DT_WRITE) < 0) {
        return NULL;
    }
    if (r.copies) {
        PY_MOVE("__dlpack__", self, true, status, dt_to(x, r.device, (dt_dtype)x->dtype, false, true, &given, &err));
    } else {
        dt_array_copy_handle(x, &given);
    }
    if (status == DT_OK && r.device.type == DT_CUDA) {
        PY_CALL(true, status, cuda_lend(&given, r.consumer, &err));
    } else if (status == DT_OK) {
        atomic_store_explicit(&given.storage->exported, true, memory_order_relaxed);
    }
    if (status != DT_OK) {
        dt_array_clear(&given);
        return py_raise_args(&a, &err);
    }
    return make_capsule(&given, &r);
}

/* What a simulated GPU holds is of a kind that nobody else knows: consumers go on to ask __dlpack__, which says why. */
static PyObject *
py___dlpack_device__(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    dt_device device = dt_array_device(py_array_of(self));
    bool known = device.type == DT_CPU || cuda_can_lend();
    return Py_BuildValue("ii", known ? (int)device.type : kDLExtDev, device.type == DT_CPU ? 0 : device.index);
}

PyMethodDef py_dlpack_methods[] = {
    PY_HIDDEN_METHOD(
        __dlpack__,
        "A capsule by which another library shares the memory; what from_dlpack of any library calls.\n\n"
        "Raises BufferError where it cannot be shared: on a simulated GPU, read-only without DLPack 1.0, another "
        "device\nwith copy=False. stream is the consumer's, which waits for the array: see DLPack."),
    {"__dlpack_device__", py___dlpack_device__, METH_NOARGS,
     "__dlpack_device__($self)\n--\n\nThe device by DLPack's numbers, (type, index): 1 cpu, 2 CUDA, 12 simulated "
     "CUDA."},
    PY_END,
};
