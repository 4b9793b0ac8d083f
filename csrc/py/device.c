/* device.c: device objects, and everything that names one. */
#include "py.h"

typedef struct {
    PyObject_HEAD dt_device device;
} device_object;

/* The device "meta" of PyTorch, whose arrays have no memory: it can be named and compared, as programs do that ask
 * where an array is, and no array can be on it. */
#define META ((dt_device){DT_NDEVICE_TYPES, 0})

static bool
is_meta(dt_device device)
{
    return device.type == DT_NDEVICE_TYPES;
}

static const char *
text_of(dt_device device, char *text)
{
    return is_meta(device) ? "meta" : dt_device_text(device, text);
}

static dt_device
value(PyObject *self)
{
    return ((device_object *)self)->device;
}

static PyObject *
device_new_object(PyTypeObject *type, dt_device device)
{
    device_object *self = (device_object *)type->tp_alloc(type, 0);
    if (self != NULL) {
        self->device = device;
    }
    return (PyObject *)self;
}

int
py_devices_init(PyObject *module, py_state *state)
{
    (void)module;
    state->cpu = device_new_object(state->device_type, (dt_device){DT_CPU, 0});
    return state->cpu == NULL ? -1 : 0;
}

PyObject *
py_device_object(py_state *state, dt_device device)
{
    if (device.type == DT_CPU) {
        return Py_NewRef(state->cpu);
    }
    if (is_meta(device) || device.index >= PY_CACHED_DEVICES) {
        return device_new_object(state->device_type, device);
    }
    PyObject **cached = &state->cuda[device.index];
    if (*cached == NULL) {
        *cached = device_new_object(state->device_type, device);
    }
    return Py_XNewRef(*cached);
}

/* A negative index would mean the current device to the core. */
static dt_status
make_device(const char *type, int64_t index, dt_device *out, dt_error *err)
{
    return index < 0 ? dt_fail(err, DT_EVALUE, "invalid-device", "device",
                               "Device index must not be negative, but got %lld", (long long)index)
                     : dt_device_make(type, index, out, err);
}

int
py_device(py_state *state, const char *op, const char *name, PyObject *object, dt_device *out)
{
    dt_error err;
    dt_status status;
    if (Py_TYPE(object) == state->device_type && !is_meta(value(object))) {
        *out = value(object);
        return 0;
    }
    if (Py_TYPE(object) == state->device_type) {
        status = dt_fail(&err, DT_ENODEVICE, "device-not-available", op,
                         "Device meta does not exist: an array has memory, on the cpu or a CUDA device. (%s)", op);
    } else if (PyUnicode_Check(object)) {
        Py_ssize_t length;
        const char *text = PyUnicode_AsUTF8AndSize(object, &length);
        if (text == NULL) {
            return -1;
        }
        if ((size_t)length != strlen(text)) {
            PyErr_Format(PyExc_ValueError, "%s(): argument '%s' has an embedded null character", op, name);
            return -1;
        }
        status = dt_device_parse(text, out, &err);
    } else if (PyIndex_Check(object) && !PyBool_Check(object) && !py_is_array(object)) {
        int64_t index;
        if (py_int(op, name, object, &index) < 0) {
            return -1;
        }
        status = make_device("cuda", index, out, &err);
    } else {
        PyErr_Format(PyExc_TypeError,
                     "%s(): argument '%s' must be a str such as \"cuda:0\", an int or a devtensor.device, not %s", op,
                     name, Py_TYPE(object)->tp_name);
        return -1;
    }
    if (status != DT_OK) {
        py_raise(state, &err, NULL, 0);
        return -1;
    }
    return 0;
}

static PyObject *
device_construct(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"type", "index", NULL};
    PyObject *object, *index = Py_None;
    py_state *state = PyType_GetModuleState(type);
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O|O:device", names, &object, &index)) {
        return NULL;
    }
    dt_device device;
    if (PyUnicode_Check(object) && PyUnicode_CompareWithASCIIString(object, "meta") == 0) {
        return device_new_object(type, META);
    }
    if (index == Py_None && Py_TYPE(object) == type) {
        return Py_NewRef(object);
    }
    if (index == Py_None) {
        return py_device(state, "device", "type", object, &device) < 0 ? NULL : py_device_object(state, device);
    }
    int64_t number;
    const char *text = PyUnicode_Check(object) ? PyUnicode_AsUTF8(object) : NULL;
    if (text == NULL) {
        return PyErr_Occurred() ? NULL
                                : PyErr_Format(PyExc_TypeError, "device(): argument 'type' must be str, not %s",
                                               Py_TYPE(object)->tp_name);
    }
    if (py_int("device", "index", index, &number) < 0) {
        return NULL;
    }
    dt_error err;
    if (make_device(text, number, &device, &err) != DT_OK) {
        return py_raise(state, &err, NULL, 0);
    }
    return py_device_object(state, device);
}

static void
device_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyObject *
device_str(PyObject *self)
{
    char text[DT_DEVICE_TEXT];
    return PyUnicode_FromString(text_of(value(self), text));
}

static const char *
type_of(dt_device device)
{
    return is_meta(device) ? "meta" : device.type == DT_CPU ? "cpu" : "cuda";
}

static PyObject *
device_repr(PyObject *self)
{
    dt_device device = value(self);
    return device.type == DT_CUDA ? PyUnicode_FromFormat("device(type='cuda', index=%d)", device.index)
                                  : PyUnicode_FromFormat("device(type='%s')", type_of(device));
}

static Py_hash_t
device_hash(PyObject *self)
{
    PyObject *text = device_str(self);
    Py_hash_t hash = text == NULL ? -1 : PyObject_Hash(text);
    Py_XDECREF(text);
    return hash;
}

static PyObject *
device_compare(PyObject *self, PyObject *other, int op)
{
    bool equal;
    if (op != Py_EQ && op != Py_NE) {
        Py_RETURN_NOTIMPLEMENTED;
    }
    if (Py_TYPE(other) == Py_TYPE(self)) {
        equal = dt_device_equal(value(self), value(other));
    } else if (PyUnicode_Check(other)) {
        char text[DT_DEVICE_TEXT];
        equal = PyUnicode_CompareWithASCIIString(other, text_of(value(self), text)) == 0;
    } else {
        Py_RETURN_NOTIMPLEMENTED;
    }
    return PyBool_FromLong(equal == (op == Py_EQ));
}

static PyObject *
device_reduce(PyObject *self, PyObject *ignored)
{
    (void)ignored;
    return Py_BuildValue("O(N)", Py_TYPE(self), device_str(self));
}

static PyObject *
get_type(PyObject *self, void *closure)
{
    (void)closure;
    return PyUnicode_FromString(type_of(value(self)));
}

static PyObject *
get_index(PyObject *self, void *closure)
{
    (void)closure;
    if (value(self).type != DT_CUDA) {
        Py_RETURN_NONE;
    }
    return PyLong_FromLong(value(self).index);
}

/* The devices that were before each `with device` of this thread, as pairs of numbers; borrowed. */
static PyObject *
devices_before(void)
{
    PyObject *state = PyThreadState_GetDict(), *name = PyUnicode_FromString("devtensor.device"), *list = NULL;
    if (state != NULL && name != NULL) {
        list = PyDict_GetItemWithError(state, name);
        if (list == NULL && !PyErr_Occurred()) {
            list = PyList_New(0);
            if (list != NULL && PyDict_SetItem(state, name, list) < 0) {
                Py_CLEAR(list);
            }
            Py_XDECREF(list);
        }
    }
    Py_XDECREF(name);
    return list != NULL || PyErr_Occurred() ? list : PyErr_NoMemory();
}

static PyObject *
set_here(py_state *state, dt_device device, dt_device *before)
{
    dt_error err;
    if (dt_set_default_device_here(device, before, &err) != DT_OK) {
        return py_raise(state, &err, NULL, 0);
    }
    Py_RETURN_NONE;
}

/* with device: what this thread makes without a device= is made there. */
static PyObject *
device_enter(PyObject *self, PyObject *ignored)
{
    (void)ignored;
    py_state *state = PyType_GetModuleState(Py_TYPE(self));
    dt_device device, before;
    PyObject *list = devices_before();
    if (list == NULL || py_device(state, "device", "self", self, &device) < 0) {
        return NULL;
    }
    PyObject *done = set_here(state, device, &before);
    PyObject *pair = done == NULL ? NULL : Py_BuildValue("ii", before.type, before.index);
    int rc = pair == NULL ? -1 : PyList_Append(list, pair);
    Py_XDECREF(pair);
    if (rc < 0 && done != NULL) { /* no memory for it */
        Py_XDECREF(set_here(state, before, &device));
    }
    Py_XDECREF(done);
    return rc < 0 ? NULL : Py_NewRef(self);
}

static PyObject *
device_exit(PyObject *self, PyObject *ignored)
{
    (void)ignored;
    PyObject *list = devices_before();
    Py_ssize_t n = list == NULL ? 0 : PyList_GET_SIZE(list);
    if (n == 0) {
        return list == NULL ? NULL : PyErr_Format(PyExc_RuntimeError, "device.__exit__ without __enter__");
    }
    dt_device before = {0}, here;
    if (!PyArg_ParseTuple(PyList_GET_ITEM(list, n - 1), "ii", &before.type, &before.index) ||
        PyList_SetSlice(list, n - 1, n, NULL) < 0) {
        return NULL;
    }
    return set_here(PyType_GetModuleState(Py_TYPE(self)), before, &here);
}

static PyMethodDef device_methods[] = {
    {"__reduce__", device_reduce, METH_NOARGS, NULL},
    {"__enter__", device_enter, METH_NOARGS, NULL},
    {"__exit__", device_exit, METH_VARARGS, NULL},
    PY_END,
};

static PyGetSetDef device_getset[] = {
    {"type", get_type, NULL, "str: \"cpu\" or \"cuda\".", NULL},
    {"index", get_index, NULL, "int or None: which CUDA device; None for the cpu.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot device_slots[] = {
    {Py_tp_new, device_construct},
    {Py_tp_dealloc, device_dealloc},
    {Py_tp_repr, device_repr},
    {Py_tp_str, device_str},
    {Py_tp_hash, device_hash},
    {Py_tp_richcompare, device_compare},
    {Py_tp_methods, device_methods},
    {Py_tp_getset, device_getset},
    {Py_tp_doc,
     "device(type, index=None)\n--\n\n"
     "Where an array lives: device(\"cpu\"), device(\"cuda:1\"), device(\"cuda\", 1) or device(1).\n\n"
     "A bare \"cuda\" is the current CUDA device. Making a device needs no CUDA, using it does. Equal to its\n"
     "string. In `with device(...):` what the thread makes without a device= is made there. \"meta\" can be named and "
     "compared, "
     "and\n"
     "holds no array. Raises RuntimeError for a string that does not name a device." EXAMPLE_device},
    {0, NULL},
};

PyType_Spec py_device_spec = {
    .name = "devtensor.device",
    .basicsize = sizeof(device_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = device_slots,
};
