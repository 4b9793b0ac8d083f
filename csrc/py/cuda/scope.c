/* scope.c: what `with dt.cuda.device(...)` and `with dt.cuda.stream(...)` do at their ends. A signal's exception comes
 * between two steps of the interpreter; each end is one step, so that it is done whole or was never begun. */
#include "device.h"

/* How it was for a thread before a block; one object may be entered again within itself, and by several threads. */
typedef struct frame {
    struct frame *outer;
    unsigned long thread;
    cuda_queue *queue; /* the current one of the block's device; NULL: not touched */
    int device;
} frame;

typedef struct {
    PyObject_HEAD frame *frames;
    cuda_queue *queue; /* for the block; NULL: only the device changes */
    int device;        /* for the block; -1: nothing changes */
} scope_object;

/* Methods of a type that others extend: its own state comes with the class that defines them. */
#define SCOPE_PARAMS                                                                                                   \
    PyObject *object, PyTypeObject *type, PyObject *const *args, Py_ssize_t nargs, PyObject *Py_UNUSED(names)

static scope_object *
scope_of(PyObject *object)
{
    return (scope_object *)object;
}

static PyObject *
scope_aim(SCOPE_PARAMS)
{
    scope_object *self = scope_of(object);
    py_state *state = PyType_GetModuleState(type);
    if (nargs != 2 || self->frames != NULL) {
        PyErr_SetString(PyExc_TypeError, "_aim(index, stream) is called once, before the block");
        return NULL;
    }
    int index = (int)PyLong_AsLong(args[0]);
    if (index == -1 && PyErr_Occurred()) {
        return NULL;
    }
    cuda_queue *queue = py_stream_queue(state, args[1]);
    if (queue != NULL) {
        cuda_queue_retain(queue);
    }
    if (self->queue != NULL) {
        cuda_queue_release(self->queue);
    }
    self->queue = queue;
    self->device = index;
    Py_RETURN_NONE;
}

/* Makes queue, unless it is NULL, and device the current ones. */
static dt_status
choose_in_scope(cuda_queue *queue, int device, dt_error *err)
{
    if (queue != NULL) {
        DT_TRY(cuda_set_current(queue, err));
    }
    return device == dt_current_device() ? DT_OK : dt_set_current_device(device, err);
}

static void
drop_scope(frame *f)
{
    if (f->queue != NULL) {
        cuda_queue_release(f->queue);
    }
    dt_free(f);
}

/* The innermost frame of this thread, taken off; NULL when it is in no block. */
static frame *
take_own(scope_object *self)
{
    frame **link = &self->frames;
    while (*link != NULL && (*link)->thread != PyThread_get_thread_ident()) {
        link = &(*link)->outer;
    }
    frame *own = *link;
    if (own != NULL) {
        *link = own->outer;
    }
    return own;
}

/* Puts back what this thread's innermost frame holds. */
static dt_status
leave_scope(scope_object *self, dt_error *err)
{
    frame *own = take_own(self); /* before others get the GIL */
    dt_status status = DT_OK;
    if (own != NULL) {
        PY_CALL(true, status, choose_in_scope(own->queue, own->device, err));
        drop_scope(own);
    }
    return status;
}

static PyObject *
scope_enter(SCOPE_PARAMS)
{
    (void)args, (void)nargs;
    scope_object *self = scope_of(object);
    py_state *state = PyType_GetModuleState(type);
    cuda_device *device;
    dt_error err, ignored;
    dt_status status;
    if (self->device < 0) {
        return Py_NewRef(object);
    }
    if (self->queue != NULL && py_enter_device(state, self->device, &device) != DT_OK) {
        return NULL;
    }
    frame *inner = dt_calloc(1, sizeof(*inner));
    if (inner == NULL) {
        return PyErr_NoMemory();
    }
    *inner = (frame){.outer = self->frames, .thread = PyThread_get_thread_ident(), .device = dt_current_device()};
    if (self->queue != NULL) {
        inner->queue = cuda_current(device);
        cuda_queue_retain(inner->queue);
    }
    self->frames = inner;
    PY_CALL(true, status, choose_in_scope(self->queue, self->device, &err));
    if (status != DT_OK) {
        (void)leave_scope(self, &ignored);
        return py_raise(state, &err, NULL, 0);
    }
    return Py_NewRef(object);
}

static PyObject *
scope_exit(SCOPE_PARAMS)
{
    (void)args, (void)nargs;
    dt_error err;
    if (leave_scope(scope_of(object), &err) != DT_OK) {
        return py_raise(PyType_GetModuleState(type), &err, NULL, 0);
    }
    Py_RETURN_NONE;
}

static void
scope_dealloc(PyObject *object)
{
    scope_object *self = scope_of(object);
    PyTypeObject *type = Py_TYPE(object);
    while (self->frames != NULL) { /* a block that was never left, as in a generator */
        frame *inner = self->frames;
        self->frames = inner->outer;
        drop_scope(inner);
    }
    if (self->queue != NULL) {
        cuda_queue_release(self->queue);
    }
    type->tp_free(object);
    Py_DECREF(type);
}

#define METHOD(name, function, signature, doc)                                                                         \
    {                                                                                                                  \
        name, PY_CAST(function), METH_METHOD | METH_FASTCALL | METH_KEYWORDS, name "(" signature ")\n--\n\n" doc       \
    }

static PyMethodDef scope_methods[] = {
    METHOD("_aim", scope_aim, PY_SELF__Scope__aim, "What holds within the block; index -1 changes nothing."),
    METHOD("__enter__", scope_enter, "$self, /", "The block begins."),
    METHOD("__exit__", scope_exit, "$self, kind, error, trace, /", "The block ends; all is as it was before."),
    PY_END,
};

static PyType_Slot scope_slots[] = {
    {Py_tp_dealloc, scope_dealloc},
    {Py_tp_methods, scope_methods},
    {Py_tp_doc, "A block with a current device, and a current stream, of its own."},
    {0, NULL},
};

PyType_Spec py_scope_spec = {
    .name = "devtensor._C._Scope",
    .basicsize = sizeof(scope_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = scope_slots,
};
