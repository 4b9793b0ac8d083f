/* device_array.c: the type DeviceArray: its life, its attributes, the table of its methods. */
#include "../as_torch.h"
#include "../grad/grad.h"
#include "../subclass.h"

#include <structmember.h>

/* ---------------------------------------------------------------- life */

#define FREE_LIST_SIZE 64
static py_array *free_list[FREE_LIST_SIZE]; /* blocks without type or contents; the GIL guards them */
static size_t free_list_count;

PyObject *
py_array_new(PyTypeObject *type, const char *action)
{
    py_array *self;
    while (DT_UNLIKELY(type->tp_base != &PyBaseObject_Type)) {
        type = type->tp_base;
    }
#ifndef Py_GIL_DISABLED
    if (free_list_count > 0) {
        self = free_list[--free_list_count];
        PyObject_Init((PyObject *)self, type);
    } else
#endif
    {
        self = PyObject_New(py_array, type);
        if (self == NULL) {
            return NULL;
        }
    }
    self->array.storage = NULL; /* the rest of an empty array is never read */
    self->array.offset = 0;
    self->array.dtype = 0;
    self->array.ndim = 0;
    self->weakrefs = NULL;
    self->busy = 0;
    self->wanted = 0;
    self->step = py_step_new(action);
    return (PyObject *)self;
}

/* The end of an array that has a node. */
static DT_NOINLINE void
py_node_end(PyObject *object)
{
    dt_node *node = py_array_of(object)->node;
    py_grad_state *s = node->owner;
    if (s != NULL && s->array == object) {
        s->array = NULL;
    }
    dt_node_release(node);
}

/* Weak references, memory, history. */
static inline void
release(PyObject *object)
{
    py_array *self = (py_array *)object;
    if (self->weakrefs != NULL) {
        PyObject_ClearWeakRefs(object);
    }
    if (self->array.storage != NULL) {
        dt_storage_release(self->array.storage);
        if (DT_UNLIKELY(self->array.node != NULL)) {
            py_node_end(object);
        }
    }
    py_step_release(self->step);
}

/* Of Parameter, Buffer, or a class of the user's. */
static DT_NOINLINE void
dealloc_collected(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    release(object);
    if (type->tp_dictoffset == (Py_ssize_t)sizeof(py_array)) {
        Py_CLEAR(*(PyObject **)((py_array *)object + 1));
    }
    type->tp_free(object);
    Py_DECREF(type);
}

void
py_array_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    if (DT_UNLIKELY(type->tp_flags & Py_TPFLAGS_HAVE_GC)) {
        dealloc_collected(object);
        return;
    }
    release(object);
#ifndef Py_GIL_DISABLED
    if (free_list_count < FREE_LIST_SIZE) {
        free_list[free_list_count++] = (py_array *)object;
    } else
#endif
    {
        PyObject_Free(object);
    }
    Py_DECREF(type);
}

void
py_array_clear_free_list(void)
{
    while (free_list_count > 0) {
        PyObject_Free(free_list[--free_list_count]);
    }
    py_step_clear_free_list();
    py_sent_clear();
    py_writes_clear();
}

/* ---------------------------------------------------------------- attributes */

#define GETTER(name) static PyObject *name(PyObject *self, void *Py_UNUSED(closure))

GETTER(get_shape)
{
    const dt_array *x = py_array_of(self);
    return py_size_object(py_state_of(self), x->ndim, x->shape);
}

GETTER(get_strides)
{
    const dt_array *x = py_array_of(self);
    int64_t bytes[DT_MAX_NDIM];
    for (int d = 0; d < x->ndim; d++) {
        bytes[d] = x->strides[d] * (int64_t)dt_itemsize((dt_dtype)x->dtype);
    }
    return py_shape_tuple(x->ndim, bytes);
}

GETTER(get_dtype)
{
    return py_dtype_object(py_state_of(self), (dt_dtype)py_array_of(self)->dtype);
}

GETTER(get_device)
{
    return py_device_object(py_state_of(self), dt_array_device(py_array_of(self)));
}

GETTER(get_ndim)
{
    return PyLong_FromLong(py_array_of(self)->ndim);
}

GETTER(get_nbytes)
{
    return PyLong_FromSize_t(dt_array_nbytes(py_array_of(self)));
}

GETTER(get_itemsize)
{
    return PyLong_FromSize_t(dt_itemsize((dt_dtype)py_array_of(self)->dtype));
}

GETTER(get_is_cuda)
{
    return PyBool_FromLong(py_on_device(py_array_of(self)));
}

GETTER(get_data)
{
    PY_ASK("attribute", "data", self, NULL)
    dt_error err;
    PyObject *result = py_array_new(Py_TYPE(self), "data");
    return result == NULL ? NULL
                          : py_finish(result, dt_data_of(py_array_of(self), py_as_torch, py_array_of(result), &err),
                                      &err, NULL, 0);
}

static int
set_data(PyObject *self, PyObject *value, void *Py_UNUSED(closure))
{
    return py_set_data(self, value);
}

GETTER(get_origin)
{
    return py_step_origin(py_state_of(self), self);
}

GETTER(get_T)
{
    PY_ASK("attribute", "T", self, NULL)
    const dt_array *x = py_array_of(self);
    int64_t dims[DT_MAX_NDIM];
    for (int d = 0; d < x->ndim; d++) {
        dims[d] = x->ndim - 1 - d;
    }
    dt_error err;
    PyObject *result = py_array_new(Py_TYPE(self), "T");
    return result == NULL
               ? NULL
               : py_finish(result, dt_permute("T", x, x->ndim, dims, py_array_of(result), &err), &err, &self, 1);
}

/* The view with the last two dimensions exchanged: of 2 to most dimensions. */
static PyObject *
exchanged(PyObject *self, const char *name, int most)
{
    PY_ASK("attribute", name, self, NULL)
    const dt_array *x = py_array_of(self);
    dt_error err;
    if (x->ndim < 2 || x->ndim > most) {
        dt_fail(&err, DT_ESHAPE, "rank-mismatch", name, "%s: an array of %s2 dimensions is needed, but got %d", name,
                most == 2 ? "" : "at least ", x->ndim);
        return py_raise(py_state_of(self), &err, &self, 1);
    }
    PyObject *result = py_array_new(Py_TYPE(self), name);
    return result == NULL ? NULL
                          : py_finish(result, dt_transpose(name, x, -2, -1, py_array_of(result), &err), &err, &self, 1);
}

GETTER(get_mT)
{
    return exchanged(self, "mT", DT_MAX_NDIM);
}

GETTER(get_mH)
{
    return exchanged(self, "mH", DT_MAX_NDIM);
}

GETTER(get_H)
{
    return exchanged(self, "H", 2);
}

static const PyGetSetDef own_getset[] = {
    {"shape", get_shape, NULL, "tuple of int: the size of each dimension.", NULL},
    {"dtype", get_dtype, NULL, "dtype: the type of the elements.", NULL},
    {"device", get_device, NULL, "device: where the elements are.", NULL},
    {"ndim", get_ndim, NULL, "int: number of dimensions.", NULL},
    {"nbytes", get_nbytes, NULL, "int: bytes of all elements.", NULL},
    {"itemsize", get_itemsize, NULL, "int: bytes of one element.", NULL},
    {"strides", get_strides, NULL, "tuple of int: bytes from one element to the next in each dimension.", NULL},
    {"T", get_T, NULL, "DeviceArray: a view with the dimensions in reverse.", NULL},
    {"mT", get_mT, NULL, "DeviceArray: a view with the last two dimensions exchanged.", NULL},
    {"H", get_H, NULL, "DeviceArray: a view of a matrix with both dimensions exchanged.", NULL},
    {"mH", get_mH, NULL, "DeviceArray: a view with the last two dimensions exchanged, which of real numbers is mT.",
     NULL},
    {"data", get_data, set_data,
     "DeviceArray: the same memory as a plain array without a history. Assigning another array replaces the memory.",
     NULL},
    {"is_cuda", get_is_cuda, NULL, "bool: whether the elements are on a CUDA device, real or simulated.", NULL},
    {"origin", get_origin, NULL, "Origin or None: the action, file and line that made this array.", NULL},
    {"__cuda_array_interface__", py_get_cuda_interface, NULL,
     "dict: how other libraries reach the memory of an array on a real CUDA device; no such attribute elsewhere.",
     NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

/* With those of grad.c: collect_getset. */
static PyGetSetDef getset[40];

static void
collect_getset(void)
{
    int n = 0;
    const PyGetSetDef *const parts[] = {own_getset, py_grad_getset};
    for (size_t p = 0; p < Py_ARRAY_LENGTH(parts); p++) {
        for (const PyGetSetDef *g = parts[p]; g->name != NULL && n < (int)Py_ARRAY_LENGTH(getset) - 1; g++) {
            getset[n++] = *g;
        }
    }
}

static PyMemberDef members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(py_array, weakrefs), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

/* ---------------------------------------------------------------- protocols */

/* By identity: == is elementwise. */
static Py_hash_t
array_hash(PyObject *self)
{
    return PyBaseObject_Type.tp_hash(self);
}

/* ---------------------------------------------------------------- the type */

#define MAX_METHODS 400

/* The methods of all families in one table; entries with an empty doc are not public. */
static PyMethodDef methods[MAX_METHODS];

static void
collect_methods(void)
{
    static PyMethodDef *const families[] = {
#define PY_FAMILY(name) py_##name##_methods,
        PY_FAMILIES(PY_FAMILY)
#undef PY_FAMILY
    };
    int n = 0;
    for (size_t f = 0; f < Py_ARRAY_LENGTH(families); f++) {
        for (const PyMethodDef *m = families[f]; m->ml_name != NULL && n < MAX_METHODS - 1; m++) {
            if (m->ml_doc == NULL || m->ml_doc[0] != '\0') {
                methods[n++] = *m;
            }
        }
    }
}

/* DeviceArray(2, 3), DeviceArray([1.0]): PyTorch's first spelling. */
static PyObject *
array_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *names = PyImport_ImportModule("devtensor._names.old_names");
    PyObject *make = names == NULL ? NULL : PyObject_GetAttrString(names, "new_array");
    PyObject *result = make == NULL ? NULL : PyObject_Call(make, args, kwargs);
    Py_XDECREF(names);
    Py_XDECREF(make);
    if (result == NULL || type == Py_TYPE(result)) {
        return result;
    }
    PyObject *shared = py_share(type, "Tensor", result);
    Py_DECREF(result);
    return shared;
}

static PyType_Slot own_slots[] = {
    {Py_tp_new, array_new},
    {Py_tp_dealloc, py_array_dealloc},
    {Py_tp_is_gc, py_array_is_gc},
    {Py_tp_methods, methods},
    {Py_tp_getset, getset},
    {Py_tp_members, members},
    {Py_tp_hash, array_hash},
    {Py_tp_repr, py_repr},
    {Py_bf_getbuffer, py_buffer_get},
    {Py_bf_releasebuffer, py_buffer_release},
    {Py_tp_doc,
     "An array of one dtype on one device. Made by devtensor.array, zeros, randn, from_numpy and the like.\n\n"
     "It never changes its device or its dtype by itself: an op on arrays of different devices raises\n"
     "DeviceMismatchError, and .to() is the one way to move or cast." EXAMPLE_DeviceArray},
    {0, NULL},
};

#define MAX_SLOTS 96

PyTypeObject *
py_array_type_new(PyObject *module)
{
    if (methods[0].ml_name == NULL) {
        collect_methods();
        collect_getset();
    }
    PyType_Slot slots[MAX_SLOTS], *parts[] = {own_slots, py_number_slots, py_index_slots, py_sequence_slots};
    int n = 0;
    for (size_t p = 0; p < Py_ARRAY_LENGTH(parts); p++) {
        for (const PyType_Slot *slot = parts[p]; slot->slot != 0 && n < MAX_SLOTS - 1; slot++) {
            slots[n++] = *slot;
        }
    }
    slots[n] = (PyType_Slot){0, NULL};
    PyType_Spec spec = {
        .name = "devtensor.DeviceArray",
        .basicsize = sizeof(py_array),
        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_SEQUENCE,
        .slots = slots,
    };
    return (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
}
