/* device.c: device objects, and everything that names one. */
#include "py.h"

typedef struct {
    PyObject_HEAD dt_device device;
} device_object;

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
    if (device.index >= PY_CACHED_DEVICES) {
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
    if (Py_TYPE(object) == state->device_type) {
        *out = value(object);
        return 0;
    }
    if (PyUnicode_Check(object)) {
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
    return PyUnicode_FromString(dt_device_text(value(self), text));
}

static PyObject *
device_repr(PyObject *self)
{
    return value(self).type == DT_CPU ? PyUnicode_FromString("device(type='cpu')")
                                      : PyUnicode_FromFormat("device(type='cuda', index=%d)", value(self).index);
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
        equal = PyUnicode_CompareWithASCIIString(other, dt_device_text(value(self), text)) == 0;
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
    return PyUnicode_FromString(value(self).type == DT_CPU ? "cpu" : "cuda");
}

static PyObject *
get_index(PyObject *self, void *closure)
{
    (void)closure;
    if (value(self).type == DT_CPU) {
        Py_RETURN_NONE;
    }
    return PyLong_FromLong(value(self).index);
}

static PyMethodDef device_methods[] = {
    {"__reduce__", device_reduce, METH_NOARGS, NULL},
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
     "string. Raises RuntimeError for a string that does not name a device." EXAMPLE_device},
    {0, NULL},
};

PyType_Spec py_device_spec = {
    .name = "devtensor.device",
    .basicsize = sizeof(device_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = device_slots,
};
