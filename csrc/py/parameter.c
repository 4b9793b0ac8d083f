/* parameter.c: nn.Parameter and nn.Buffer: arrays that a Module registers. What an op makes of them is a plain
 * DeviceArray. They have the layout and the deallocator of DeviceArray, and behind that layout the attributes that a
 * program sets: a mark such as p.no_decay = True. */
#include "grad/grad.h"
#include "py.h"
#include "subclass.h"

#include <structmember.h>

static PyObject *
make_parameter(PyTypeObject *type, PyObject *args, PyObject *kwds, const char *format, const char *option,
               bool is_parameter, const char *action)
{
    char *names[] = {"data", (char *)(uintptr_t)option, NULL};
    PyObject *data = Py_None;
    int chosen = true;
    if (!PyArg_ParseTupleAndKeywords(args, kwds, format, names, &data, &chosen)) {
        return NULL;
    }
    if (!py_is_array(data)) {
        return PyErr_Format(PyExc_TypeError, "%s(): argument 'data' must be DeviceArray, not %s", action,
                            Py_TYPE(data)->tp_name);
    }
    PyObject *self = py_share(type, action, data);
    if (self != NULL) {
        ((py_array *)self)->persistent = chosen;
    }
    return is_parameter && chosen ? py_want_grad(self) : self;
}

static PyObject *
parameter_new(PyTypeObject *type, PyObject *args, PyObject *kwds)
{
    return make_parameter(type, args, kwds, "O|p:Parameter", "requires_grad", true, "Parameter");
}

static PyObject *
buffer_new(PyTypeObject *type, PyObject *args, PyObject *kwds)
{
    return make_parameter(type, args, kwds, "O|$p:Buffer", "persistent", false, "Buffer");
}

static PyObject **
attributes_of(PyObject *self)
{
    return (PyObject **)((char *)self + sizeof(py_array));
}

static int
traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(*attributes_of(self));
    return py_grad_traverse(self, visit, arg);
}

static int
clear(PyObject *self)
{
    Py_CLEAR(*attributes_of(self));
    py_grad_clear(self);
    return 0;
}

static PyObject *
same_kind(PyObject *self, PyObject *array, const char *action)
{
    PyObject *result = array == NULL ? NULL : py_share(Py_TYPE(self), action, array);
    Py_XDECREF(array);
    if (result != NULL) {
        ((py_array *)result)->persistent = ((py_array *)self)->persistent;
    }
    return dt_wants_grad(py_array_of(self)) ? py_want_grad(result) : result;
}

static PyObject *
copy(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    if (py_is_subclassed(self)) {
        return py_of_subclass("copied", self, NULL);
    }
    PyObject *result = same_kind(self, Py_NewRef(self), "copy"), *attributes = *attributes_of(self);
    if (result != NULL && attributes != NULL && (*attributes_of(result) = PyDict_Copy(attributes)) == NULL) {
        Py_CLEAR(result);
    }
    return result;
}

static PyObject *
deepcopy(PyObject *self, PyObject *memo)
{
    return py_is_subclassed(self) ? py_of_subclass("deeply_copied", self, memo)
                                  : same_kind(self, py_deep_copy(self, memo), "deepcopy");
}

static PyObject *
reduce(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    if (py_is_subclassed(self)) {
        return py_of_subclass("reduced", self, NULL);
    }
    PyObject *data = py_array_handle(self, "pickle");
    PyObject *wants = dt_wants_grad(py_array_of(self)) ? Py_True : Py_False, *state = *attributes_of(self);
    return data == NULL ? NULL : Py_BuildValue("O(NO)O", Py_TYPE(self), data, wants, state == NULL ? Py_None : state);
}

/* persistent= is a keyword, which a reduced value cannot give: it travels as the state. */
static PyObject *
buffer_reduce(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    if (py_is_subclassed(self)) {
        return py_of_subclass("reduced", self, NULL);
    }
    PyObject *data = py_array_handle(self, "pickle");
    return data == NULL
               ? NULL
               : Py_BuildValue("O(N)O", Py_TYPE(self), data, ((py_array *)self)->persistent ? Py_True : Py_False);
}

static PyObject *
buffer_setstate(PyObject *self, PyObject *state)
{
    ((py_array *)self)->persistent = state == Py_True;
    Py_RETURN_NONE;
}

static PyObject *
get_persistent(PyObject *self, void *Py_UNUSED(closure))
{
    return PyBool_FromLong(((py_array *)self)->persistent);
}

#define COPIES                                                                                                         \
    {"__copy__", copy, METH_NOARGS, NULL},                                                                             \
    {                                                                                                                  \
        "__deepcopy__", deepcopy, METH_O, NULL                                                                         \
    }

static PyMethodDef parameter_methods[] = {COPIES, {"__reduce__", reduce, METH_NOARGS, NULL}, PY_END};
static PyMethodDef buffer_methods[] = {
    COPIES, {"__reduce__", buffer_reduce, METH_NOARGS, NULL}, {"__setstate__", buffer_setstate, METH_O, NULL}, PY_END};

#define ATTRIBUTES                                                                                                     \
    {                                                                                                                  \
        "__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL                                       \
    }

static PyMemberDef members[] = {
    {"__dictoffset__", T_PYSSIZET, sizeof(py_array), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef parameter_getset[] = {ATTRIBUTES, {NULL, NULL, NULL, NULL, NULL}};
static PyGetSetDef buffer_getset[] = {
    ATTRIBUTES,
    {"persistent", get_persistent, NULL, "bool: whether state_dict() has it.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot parameter_slots[] = {
    {Py_tp_new, parameter_new},
    {Py_tp_dealloc, py_array_dealloc},
    {Py_tp_traverse, traverse},
    {Py_tp_clear, clear},
    {Py_tp_methods, parameter_methods},
    {Py_tp_members, members},
    {Py_tp_getset, parameter_getset},
    {Py_tp_doc,
     "Parameter(data, requires_grad=True)\n--\n\n"
     "An array that a Module registers as a parameter when it is assigned to an attribute.\n\n"
     "Shares the memory of data; ops on it give plain DeviceArrays. Gradients flow to it unless "
     "requires_grad is False.\n"
     "Raises TypeError where data is not a DeviceArray, GradientError where its dtype is no float." EXAMPLE_Parameter},
    {0, NULL},
};

static PyType_Slot buffer_slots[] = {
    {Py_tp_new, buffer_new},
    {Py_tp_dealloc, py_array_dealloc},
    {Py_tp_traverse, traverse},
    {Py_tp_clear, clear},
    {Py_tp_methods, buffer_methods},
    {Py_tp_members, members},
    {Py_tp_getset, buffer_getset},
    {Py_tp_doc, "Buffer(data, *, persistent=True)\n--\n\n"
                "An array that a Module registers as a buffer when it is assigned to an attribute.\n\n"
                "Shares the memory of data; ops on it give plain DeviceArrays. Raises TypeError where data is not a "
                "DeviceArray." EXAMPLE_Buffer},
    {0, NULL},
};

static int
add(PyObject *module, PyTypeObject *base, const char *attribute, const char *name, PyType_Slot *slots)
{
    PyType_Spec spec = {
        .name = name,
        .basicsize = sizeof(py_array) + sizeof(PyObject *),
        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_SEQUENCE |
                 Py_TPFLAGS_HAVE_GC,
        .slots = slots,
    };
    PyObject *type = PyType_FromModuleAndSpec(module, &spec, (PyObject *)base);
    int rc = type == NULL ? -1 : PyModule_AddObjectRef(module, attribute, type);
    Py_XDECREF(type);
    return rc;
}

int
py_parameters_init(PyObject *module, py_state *state)
{
    PyTypeObject *base = state->array_type;
    return add(module, base, "_Parameter", "devtensor.nn.Parameter", parameter_slots) < 0 ||
                   add(module, base, "_Buffer", "devtensor.nn.Buffer", buffer_slots) < 0
               ? -1
               : 0;
}
