/* stream.c: devtensor.cuda.Stream and Event, and which stream a thread uses. */
#include "device.h"

typedef struct {
    PyObject_HEAD cuda_queue *queue; /* NULL until it was got */
} stream_object;

typedef struct {
    PyObject_HEAD cuda_event event;
} event_object;

static cuda_queue *
queue_of(PyObject *self)
{
    return ((stream_object *)self)->queue;
}

struct cuda_queue *
py_stream_queue(py_state *state, PyObject *object)
{
    return Py_TYPE(object) == state->stream_type ? queue_of(object) : NULL;
}

static cuda_event *
event_of(PyObject *self)
{
    return &((event_object *)self)->event;
}

/* Status = call without the GIL, then an exception or result. */
#define FINISH(state, call, result)                                                                                    \
    do {                                                                                                               \
        dt_error err_;                                                                                                 \
        dt_status status_;                                                                                             \
        PY_CALL(true, status_, call);                                                                                  \
        return status_ == DT_OK ? (result) : py_raise(state, &err_, NULL, 0);                                          \
    } while (0)

dt_status
py_enter_device(py_state *state, int index, cuda_device **out)
{
    const dt_backend *backend;
    dt_error err;
    dt_status status;
    PY_CALL(true, status, dt_backend_for((dt_device){DT_CUDA, index}, &backend, &err));
    if (status == DT_OK) {
        PY_CALL(true, status, cuda_enter(index, out, &err));
    }
    if (status != DT_OK) {
        py_raise(state, &err, NULL, 0);
    }
    return status;
}

dt_status
py_open_device(PyObject *self, const char *op, PyObject *object, cuda_device **out)
{
    dt_device device = {DT_CUDA, dt_current_device()};
    if (py_given(object) && py_device(py_state_of(self), op, "device", object, &device) < 0) {
        return DT_EVALUE;
    }
    if (device.type != DT_CUDA) {
        PyErr_Format(PyExc_ValueError, "%s(): Expected a cuda device, but got: cpu", op);
        return DT_EVALUE;
    }
    return py_enter_device(py_state_of(self), device.index, out);
}

/* A new object for queue. */
static PyObject *
stream_new_object(PyTypeObject *type, cuda_queue *queue)
{
    stream_object *self = (stream_object *)type->tp_alloc(type, 0);
    if (self != NULL) {
        cuda_queue_retain(queue);
        self->queue = queue;
    }
    return (PyObject *)self;
}

/* Parameter i of a as a Stream of some device; the current stream of the current device when not given. */
static cuda_queue *
arg_queue(const py_args *a, PyObject *self, int i)
{
    cuda_device *device;
    if (!py_given(a->v[i])) {
        return py_open_device(self, a->op, NULL, &device) == DT_OK ? cuda_current(device) : NULL;
    }
    if (Py_TYPE(a->v[i]) != a->state->stream_type) {
        py_arg_wrong(a, i, "a Stream");
        return NULL;
    }
    return queue_of(a->v[i]);
}

static cuda_event *
arg_event(const py_args *a, int i)
{
    if (a->v[i] == NULL || Py_TYPE(a->v[i]) != a->state->event_type) {
        py_arg_wrong(a, i, "an Event");
        return NULL;
    }
    return event_of(a->v[i]);
}

/* ---------------------------------------------------------------- Stream */

static PyObject *
stream_construct(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"device", "priority", NULL};
    PyObject *object = NULL, *number = NULL;
    int64_t priority = 0;
    cuda_device *device;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "|OO:Stream", names, &object, &number) ||
        (number != NULL && py_int("Stream", "priority", number, &priority) < 0)) {
        return NULL;
    }
    stream_object *self = (stream_object *)type->tp_alloc(type, 0);
    if (self == NULL || py_open_device((PyObject *)self, "Stream", object, &device) != DT_OK) {
        Py_XDECREF(self);
        return NULL;
    }
    dt_error err;
    dt_status status;
    PY_CALL(true, status, cuda_queue_acquire(device, priority, &self->queue, &err));
    if (status != DT_OK) {
        py_raise(py_state_of((PyObject *)self), &err, NULL, 0);
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

static void
stream_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    if (queue_of(self) != NULL) {
        cuda_queue_release(queue_of(self));
    }
    type->tp_free(self);
    Py_DECREF(type);
}

static PyObject *
stream_repr(PyObject *self)
{
    cuda_queue_info q = cuda_queue_read(queue_of(self));
    return PyUnicode_FromFormat("<devtensor.cuda.Stream device=cuda:%d cuda_stream=%p>", q.device,
                                (const void *)q.stream);
}

static Py_hash_t
stream_hash(PyObject *self)
{
    Py_hash_t hash = (Py_hash_t)((uintptr_t)queue_of(self) >> 4);
    return hash == -1 ? -2 : hash;
}

static PyObject *
stream_compare(PyObject *self, PyObject *other, int op)
{
    if ((op != Py_EQ && op != Py_NE) || Py_TYPE(other) != Py_TYPE(self)) {
        Py_RETURN_NOTIMPLEMENTED;
    }
    return PyBool_FromLong((queue_of(self) == queue_of(other)) == (op == Py_EQ));
}

static PyObject *
stream_wait_event(PY_PARAMS)
{
    PY_PARSE(Stream_wait_event)
    cuda_event *event = arg_event(&a, 0);
    if (event == NULL) {
        return NULL;
    }
    FINISH(a.state, cuda_event_wait(event, queue_of(self), &err_), Py_NewRef(Py_None));
}

static PyObject *
stream_wait_stream(PY_PARAMS)
{
    PY_PARSE(Stream_wait_stream)
    if (a.v[0] == Py_None) {
        py_arg_wrong(&a, 0, "a Stream");
        return NULL;
    }
    cuda_queue *other = arg_queue(&a, self, 0);
    if (other == NULL) {
        return NULL;
    }
    FINISH(a.state, cuda_queue_wait(queue_of(self), other, &err_), Py_NewRef(Py_None));
}

static PyObject *
stream_record_event(PY_PARAMS)
{
    PY_PARSE(Stream_record_event)
    PyObject *object = py_given(a.v[0]) ? Py_NewRef(a.v[0]) : a.state->event_type->tp_alloc(a.state->event_type, 0);
    if (object == NULL) {
        return NULL;
    }
    a.v[0] = object;
    cuda_event *event = arg_event(&a, 0);
    dt_error err;
    dt_status status = DT_OK;
    if (event != NULL) {
        PY_CALL(true, status, cuda_event_record(event, queue_of(self), &err));
    }
    if (event == NULL || status != DT_OK) {
        Py_DECREF(object);
        return event == NULL ? NULL : py_raise(a.state, &err, NULL, 0);
    }
    return object;
}

static PyObject *
stream_query(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    bool done = false;
    FINISH(py_state_of(self), cuda_queue_query(queue_of(self), &done, &err_), PyBool_FromLong(done));
}

static PyObject *
stream_synchronize(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    FINISH(py_state_of(self), cuda_queue_synchronize(queue_of(self), &err_), Py_NewRef(Py_None));
}

static PyObject *
stream_get_device(PyObject *self, void *Py_UNUSED(closure))
{
    return py_device_object(py_state_of(self), (dt_device){DT_CUDA, cuda_queue_read(queue_of(self)).device});
}

static PyObject *
stream_get_cuda_stream(PyObject *self, void *Py_UNUSED(closure))
{
    return PyLong_FromVoidPtr(cuda_queue_read(queue_of(self)).stream);
}

static PyObject *
stream_get_priority(PyObject *self, void *Py_UNUSED(closure))
{
    return PyLong_FromLong(cuda_queue_read(queue_of(self)).priority);
}

#define METHOD(type, prefix, name, doc)                                                                                \
    {                                                                                                                  \
#name, PY_CAST(prefix##_##name), METH_FASTCALL | METH_KEYWORDS,                                                \
            #name "(" PY_SELF_##type##_##name ")\n--\n\n" doc                                                          \
    }
#define PLAIN(type, name, doc)                                                                                         \
    {                                                                                                                  \
#name, type##_##name, METH_NOARGS, #name "($self)\n--\n\n" doc                                                 \
    }

static PyMethodDef stream_methods[] = {
    METHOD(Stream, stream, wait_event,
           "What is sent to this stream from now on waits for an Event; for nothing if that was not recorded.\n\n"
           "Raises CudaError."),
    METHOD(
        Stream, stream, wait_stream,
        "What is sent to this stream from now on waits for all that another stream, of any device, has been sent.\n\n"
        "Ops on arrays do so by themselves where they must. Raises CudaError."),
    METHOD(
        Stream, stream, record_event,
        "Records an Event, or a new one, behind what this stream has been sent; returns it.\n\nRaises RuntimeError for "
        "an event of another device."),
    PLAIN(stream, query,
          "bool: whether all that was sent to this stream is done. Raises CudaError for what went wrong."),
    PLAIN(stream, synchronize,
          "Waits until all that was sent to this stream is done. Raises CudaError for what went wrong."),
    PY_END,
};

static PyGetSetDef stream_getset[] = {
    {"device", stream_get_device, NULL, "device: where the stream is.", NULL},
    {"cuda_stream", stream_get_cuda_stream, NULL, "int: the driver's CUstream.", NULL},
    {"priority", stream_get_priority, NULL, "int: 0 is the lowest, smaller numbers come first.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot stream_slots[] = {
    {Py_tp_new, stream_construct},
    {Py_tp_dealloc, stream_dealloc},
    {Py_tp_repr, stream_repr},
    {Py_tp_hash, stream_hash},
    {Py_tp_richcompare, stream_compare},
    {Py_tp_methods, stream_methods},
    {Py_tp_getset, stream_getset},
    {Py_tp_doc,
     "Stream(device=None, priority=0)\n--\n\n"
     "A queue of work on a device (the current one by default), separate from the default stream.\n\n"
     "Ops of a thread go where stream(s) says, in order; those of two streams may overlap. An op waits for\n"
     "what other streams still do to its operands, so that results do not depend on streams. A priority\n"
     "outside the device's range becomes the nearest. More than 32 live streams of one priority are shared.\n"
     "Raises DeviceNotAvailableError." EXAMPLE_Stream},
    {0, NULL},
};

PyType_Spec py_stream_spec = {
    .name = "devtensor.cuda.Stream",
    .basicsize = sizeof(stream_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = stream_slots,
};

/* ---------------------------------------------------------------- Event */

static PyObject *
event_construct(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"enable_timing", "blocking", NULL};
    int timed = 0, blocking = 0;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "|pp:Event", names, &timed, &blocking)) {
        return NULL;
    }
    event_object *self = (event_object *)type->tp_alloc(type, 0);
    if (self != NULL) {
        self->event.timed = timed != 0;
        self->event.blocking = blocking != 0;
    }
    return (PyObject *)self;
}

static void
event_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    cuda_event_clear(event_of(self));
    type->tp_free(self);
    Py_DECREF(type);
}

static PyObject *
event_repr(PyObject *self)
{
    cuda_event e;
    (void)cuda_event_read(event_of(self), &e);
    return PyUnicode_FromFormat("<devtensor.cuda.Event %p>", (const void *)e.event);
}

static PyObject *
event_record(PY_PARAMS)
{
    PY_PARSE(Event_record)
    cuda_queue *queue = arg_queue(&a, self, 0);
    if (queue == NULL) {
        return NULL;
    }
    FINISH(a.state, cuda_event_record(event_of(self), queue, &err_), Py_NewRef(Py_None));
}

static PyObject *
event_wait(PY_PARAMS)
{
    PY_PARSE(Event_wait)
    cuda_queue *queue = arg_queue(&a, self, 0);
    if (queue == NULL) {
        return NULL;
    }
    FINISH(a.state, cuda_event_wait(event_of(self), queue, &err_), Py_NewRef(Py_None));
}

static PyObject *
event_query(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    bool done = false;
    FINISH(py_state_of(self), cuda_event_query(event_of(self), &done, &err_), PyBool_FromLong(done));
}

static PyObject *
event_synchronize(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    FINISH(py_state_of(self), cuda_event_synchronize(event_of(self), &err_), Py_NewRef(Py_None));
}

static PyObject *
event_elapsed_time(PY_PARAMS)
{
    PY_PARSE(Event_elapsed_time)
    cuda_event *end = arg_event(&a, 0);
    float milliseconds = 0;
    if (end == NULL) {
        return NULL;
    }
    FINISH(a.state, cuda_event_elapsed(event_of(self), end, &milliseconds, &err_),
           PyFloat_FromDouble((double)milliseconds));
}

static PyObject *
event_get_device(PyObject *self, void *Py_UNUSED(closure))
{
    cuda_event e;
    (void)cuda_event_read(event_of(self), &e);
    return e.device == NULL ? Py_NewRef(Py_None)
                            : py_device_object(py_state_of(self), (dt_device){DT_CUDA, cuda_device_index(e.device)});
}

static PyObject *
event_get_cuda_event(PyObject *self, void *Py_UNUSED(closure))
{
    cuda_event e;
    (void)cuda_event_read(event_of(self), &e);
    return PyLong_FromVoidPtr(e.event);
}

static PyMethodDef event_methods[] = {
    METHOD(Event, event, record,
           "Puts the event behind what a Stream, the current one by default, has been sent so far.\n\nRaises "
           "RuntimeError for a stream of another device than before."),
    METHOD(
        Event, event, wait,
        "What is sent to a Stream, the current one by default, from now on waits for the event.\n\nRaises CudaError."),
    METHOD(Event, event, elapsed_time,
           "Milliseconds from this event to another, a float.\n\nRaises RuntimeError unless both were made with "
           "enable_timing=True, recorded on one device, and are done."),
    PLAIN(event, query, "bool: whether what stood before the event is done; True if it was never recorded."),
    PLAIN(event, synchronize, "Waits until what stood before the event is done. Raises CudaError for what went wrong."),
    PY_END,
};

static PyGetSetDef event_getset[] = {
    {"device", event_get_device, NULL, "device or None: where it was first recorded.", NULL},
    {"cuda_event", event_get_cuda_event, NULL, "int: the driver's CUevent; 0 before the first record.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot event_slots[] = {
    {Py_tp_new, event_construct},
    {Py_tp_dealloc, event_dealloc},
    {Py_tp_repr, event_repr},
    {Py_tp_methods, event_methods},
    {Py_tp_getset, event_getset},
    {Py_tp_doc, "Event(enable_timing=False, blocking=False)\n--\n\n"
                "A place in a stream, to wait for and, with enable_timing, to measure time between.\n\n"
                "With blocking the host sleeps while it waits. The event belongs to the device of its first "
                "record." EXAMPLE_Event},
    {0, NULL},
};

PyType_Spec py_event_spec = {
    .name = "devtensor.cuda.Event",
    .basicsize = sizeof(event_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = event_slots,
};

/* ---------------------------------------------------------------- functions */

static PyObject *
py__cuda_current_stream(PY_PARAMS)
{
    PY_PARSE(_cuda_current_stream)
    cuda_device *device;
    return py_open_device(self, a.op, a.v[0], &device) == DT_OK
               ? stream_new_object(a.state->stream_type, cuda_current(device))
               : NULL;
}

static PyObject *
py__cuda_default_stream(PY_PARAMS)
{
    PY_PARSE(_cuda_default_stream)
    cuda_device *device;
    return py_open_device(self, a.op, a.v[0], &device) == DT_OK
               ? stream_new_object(a.state->stream_type, cuda_default_queue(device))
               : NULL;
}

static PyObject *
py__cuda_set_stream(PY_PARAMS)
{
    PY_PARSE(_cuda_set_stream)
    if (Py_TYPE(a.v[0]) != a.state->stream_type) {
        py_arg_wrong(&a, 0, "a Stream");
        return NULL;
    }
    FINISH(a.state, cuda_set_current(queue_of(a.v[0]), &err_), Py_NewRef(Py_None));
}

PyMethodDef py_stream_functions[] = {
    PY_HIDDEN(_cuda_current_stream, "The stream that this thread sends its work for a device to."),
    PY_HIDDEN(_cuda_default_stream, "The stream of a device that is there from the start."),
    PY_HIDDEN(_cuda_set_stream, "Where this thread sends its work for the stream's device from now on."),
    PY_END,
};

PyMethodDef py_stream_methods[] = {PY_END};
