/* grad_node.c: devtensor.autograd.Node: what grad_fn gives. */
#include "grad.h"

typedef struct {
    PyObject_HEAD dt_node *node;
} py_node;

PyObject *
py_node_object(py_state *state, dt_node *node)
{
    if (node == NULL) {
        Py_RETURN_NONE;
    }
    if (node->derivative == DT_GRAD_output) { /* all outputs of a function show the function */
        node = node->inputs[0];
    }
    py_node *self = PyObject_New(py_node, state->node_type);
    if (self != NULL) {
        self->node = dt_node_retain(node);
    }
    return (PyObject *)self;
}

PyObject *
py_grad_fn(PyObject *self, void *Py_UNUSED(closure))
{
    if (py_node_refresh(self) < 0) {
        return NULL;
    }
    dt_node *node = py_node_of(self);
    return py_node_object(py_state_of(self), node != NULL && (node->flags & DT_NODE_LEAF) ? NULL : node);
}

dt_node *
py_node_behind(PyObject *self)
{
    return ((py_node *)self)->node;
}

static void
node_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    dt_node_release(py_node_behind(self));
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyObject *
text_of(const dt_node *node)
{
    if (node->derivative == DT_GRAD_function) {
        return PyObject_CallMethod(((py_grad_state *)node->owner)->context, "name", NULL);
    }
    return node->flags & DT_NODE_LEAF ? PyUnicode_FromString("AccumulateGrad")
                                      : PyUnicode_FromFormat("%sBackward0", dt_derivatives[node->derivative].name);
}

static PyObject *
node_name(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    return text_of(py_node_behind(self));
}

static PyObject *
get_next_functions(PyObject *self, void *Py_UNUSED(closure))
{
    const dt_node *node = py_node_behind(self);
    py_state *state = py_state_of(self);
    PyObject *result = PyTuple_New(node->ninputs);
    for (Py_ssize_t i = 0; result != NULL && i < node->ninputs; i++) {
        PyObject *pair = Py_BuildValue("Ni", py_node_object(state, node->inputs[i]), 0);
        if (pair == NULL) {
            Py_CLEAR(result);
        } else {
            PyTuple_SET_ITEM(result, i, pair);
        }
    }
    return result;
}

static PyObject *
get_node_origin(PyObject *self, void *Py_UNUSED(closure))
{
    return py_origin_of_step(py_state_of(self), py_node_behind(self)->place);
}

static PyObject *
node_repr(PyObject *self)
{
    PyObject *name = text_of(py_node_behind(self)), *origin = name == NULL ? NULL : get_node_origin(self, NULL);
    PyObject *text = NULL;
    if (origin == Py_None) {
        text = PyUnicode_FromFormat("<%U>", name);
    } else if (origin != NULL) {
        PyObject *file = PyObject_GetAttrString(origin, "filename"), *line = PyObject_GetAttrString(origin, "lineno");
        text = file == NULL || line == NULL ? NULL : PyUnicode_FromFormat("<%U at %S:%S>", name, file, line);
        Py_XDECREF(file);
        Py_XDECREF(line);
    }
    Py_XDECREF(name);
    Py_XDECREF(origin);
    return text;
}

static PyObject *
node_compare(PyObject *self, PyObject *other, int op)
{
    if (Py_TYPE(self) != Py_TYPE(other) || (op != Py_EQ && op != Py_NE)) {
        Py_RETURN_NOTIMPLEMENTED;
    }
    return PyBool_FromLong((py_node_behind(self) == py_node_behind(other)) == (op == Py_EQ));
}

static Py_hash_t
node_hash(PyObject *self)
{
    return _Py_HashPointer(py_node_behind(self));
}

static PyMethodDef node_methods[] = {
    {"name", node_name, METH_NOARGS, "name($self, /)\n--\n\nThe op, such as MulBackward0."},
    {"register_hook", py_node_register_hook, METH_O,
     "register_hook($self, fn, /)\n--\n\nCalls fn(grad_inputs, grad_outputs) in a backward, after the gradients of the "
     "operands were computed;\na tuple that it returns takes the place of grad_inputs. Of a leaf grad_inputs is (), "
     "and "
     ".grad has\nbeen added to. Returns a handle with remove()."},
    {"register_prehook", py_node_register_prehook, METH_O,
     "register_prehook($self, fn, /)\n--\n\nCalls fn(grad_outputs) in a backward, before anything is computed of them; "
     "a "
     "tuple that it returns takes\ntheir place. Returns a handle with remove()."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef node_getset[] = {
    {"next_functions", get_next_functions, NULL, "tuple: the nodes of the operands, each with a 0.", NULL},
    {"metadata", py_node_metadata, NULL, "dict: what programs keep here.", NULL},
    {"_facts", py_node_facts, NULL, "tuple: what the node is, keeps and lost.", NULL},
    {"origin", get_node_origin, NULL, "Origin or None: where the op was called.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot node_slots[] = {
    {Py_tp_dealloc, node_dealloc},
    {Py_tp_methods, node_methods},
    {Py_tp_getset, node_getset},
    {Py_tp_repr, node_repr},
    {Py_tp_richcompare, node_compare},
    {Py_tp_hash, node_hash},
    {Py_tp_doc, "A recorded op: what grad_fn gives."},
    {0, NULL},
};

PyType_Spec py_node_spec = {
    .name = "devtensor.autograd.Node",
    .basicsize = sizeof(py_node),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = node_slots,
};
