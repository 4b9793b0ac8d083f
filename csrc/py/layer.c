/* layer.c: the call of an nn.Module: its forward, without a Python function in between. */
#include "py.h"

#define MOST 8 /* values that are handed on without a detour */

static PyObject *forward_name, *hooks_name;

/* Tells the exception that it came out of self. */
static void
add_module(PyObject *self)
{
    PyObject *type, *exception, *traceback;
    PyErr_Fetch(&type, &exception, &traceback);
    PyErr_NormalizeException(&type, &exception, &traceback);
    PyObject *told = PyObject_CallMethod(self, "_explain", "O", exception);
    if (told == NULL) {
        PyErr_Clear(); /* it says less, and stays what it is */
    }
    Py_XDECREF(told);
    PyErr_Restore(type, exception, traceback);
}

static PyObject *
call_forward(PyObject *self, PyObject *args, PyObject *kwargs)
{
    Py_ssize_t n = PyTuple_GET_SIZE(args);
    PyObject *values[MOST + 1] = {self};
    if (n <= MOST && kwargs == NULL) {
        memcpy(values + 1, ((PyTupleObject *)args)->ob_item, (size_t)n * sizeof(*values));
        return PyObject_VectorcallMethod(forward_name, values, (size_t)n + 1, NULL);
    }
    PyObject *forward = PyObject_GetAttr(self, forward_name);
    PyObject *result = forward == NULL ? NULL : PyObject_Call(forward, args, kwargs);
    Py_XDECREF(forward);
    return result;
}

static PyObject *
layer_call(PyObject *self, PyObject *args, PyObject *kwargs)
{
    PyObject *result = NULL, *hooks = PyObject_GetAttr(self, hooks_name);
    if (hooks == Py_None) {
        result = call_forward(self, args, kwargs);
    } else if (hooks != NULL) {
        result = PyObject_CallMethod(hooks, "run", "OOO", self, args, kwargs != NULL ? kwargs : Py_None);
    }
    Py_XDECREF(hooks);
    if (DT_UNLIKELY(result == NULL)) {
        add_module(self);
    }
    return result;
}

static PyType_Slot slots[] = {
    {Py_tp_call, layer_call},
    {Py_tp_doc, "What calls forward, or the hooks that a module has."},
    {0, NULL},
};

int
py_layer_init(PyObject *module)
{
    PyType_Spec spec = {
        .name = "devtensor._C._Layer",
        .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_IMMUTABLETYPE,
        .slots = slots,
    };
    if ((forward_name == NULL && (forward_name = PyUnicode_InternFromString("forward")) == NULL) ||
        (hooks_name == NULL && (hooks_name = PyUnicode_InternFromString("_hooks_of_module")) == NULL)) {
        return -1;
    }
    PyObject *type = PyType_FromModuleAndSpec(module, &spec, NULL);
    int rc = type == NULL ? -1 : PyModule_AddObjectRef(module, "_Layer", type);
    Py_XDECREF(type);
    return rc;
}
