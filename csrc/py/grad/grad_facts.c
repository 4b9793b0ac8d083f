/* grad_facts.c: what an explanation of a failed gradient asks of nodes and steps (devtensor._diagnosis.gradients). */
#include "grad.h"

/* (code, instruction), or None; a new reference. */
static PyObject *
line_of(const py_step *step)
{
    if (step == NULL || step->code == NULL || !PyCode_Check(step->code)) {
        Py_RETURN_NONE;
    }
    return Py_BuildValue("Oi", step->code, step->instruction);
}

static bool
is_changed(const dt_kept *kept)
{
    return kept->storage != NULL && dt_kept_version(kept->storage, kept->quiet) != kept->version;
}

/* (operand, shape, dtype, device, whether it was written to, the line of the first write) */
static PyObject *
kept_facts(py_state *state, const dt_kept *kept)
{
    PyObject *shape = py_shape_tuple(kept->ndim, kept->dims);
    PyObject *device = kept->storage == NULL ? Py_NewRef(Py_None) : py_device_object(state, kept->storage->device);
    const bool known = is_changed(kept) && !kept->quiet; /* lines are noted by the version without quiet writes */
    PyObject *line = known ? py_write_line(kept->storage, kept->version + 1) : Py_NewRef(Py_None);
    if (shape == NULL || device == NULL || line == NULL) {
        Py_XDECREF(shape);
        Py_XDECREF(device);
        Py_XDECREF(line);
        return NULL;
    }
    return Py_BuildValue("iNNNNN", kept->operand == DT_MAX_KEPT - 1 ? -1 : (int)kept->operand, shape,
                         py_dtype_object(state, (dt_dtype)kept->dtype), device, PyBool_FromLong(is_changed(kept)),
                         line);
}

/* (op, order, whether a backward has been there, line, line of the backward that released it or None, order then, what
 * it keeps) */
PyObject *
py_node_facts(PyObject *self, void *Py_UNUSED(closure))
{
    py_state *state = py_state_of(self);
    const dt_node *node = py_node_behind(self);
    const bool released = node->flags & DT_NODE_RELEASED;
    PyObject *kept = PyTuple_New(released ? 0 : node->nkept), *line = line_of(node->place),
             *freed = line_of(node->freed);
    for (Py_ssize_t k = 0; kept != NULL && k < PyTuple_GET_SIZE(kept); k++) {
        PyObject *one = kept_facts(state, &node->kept[k]);
        if (one == NULL) {
            Py_CLEAR(kept);
        } else {
            PyTuple_SET_ITEM(kept, k, one);
        }
    }
    if (kept == NULL || line == NULL || freed == NULL) {
        Py_XDECREF(kept);
        Py_XDECREF(line);
        Py_XDECREF(freed);
        return NULL;
    }
    return Py_BuildValue("sKNNNKN", dt_derivatives[node->derivative].op, (unsigned long long)node->order,
                         PyBool_FromLong(node->flags & DT_NODE_RAN), line, freed,
                         (unsigned long long)(released ? dt_node_freed_at(node) : 0), kept);
}

/* Whether the node keeps memory of array that was written to, and whether array is an operand of it that is on another
 * device now, or of another dtype. */
static PyObject *
py__node_has(PY_PARAMS)
{
    PY_PARSE(_node_has)
    const dt_array *x = py_arg_array(&a, 1);
    if (x == NULL || Py_TYPE(a.v[0]) != a.state->node_type) {
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_TypeError, "_node_has(): a Node is needed");
    }
    const dt_node *node = py_node_behind(a.v[0]);
    bool changed = false, elsewhere = false;
    for (int k = 0; k < node->nkept; k++) {
        changed |= is_changed(&node->kept[k]) && node->kept[k].storage == x->storage;
    }
    for (int i = 0; i < node->ninputs && x->storage != NULL && x->node != NULL; i++) {
        elsewhere |= node->inputs[i] == x->node &&
                     (!dt_device_equal(x->storage->device, node->device) || x->node->order > node->order);
    }
    return Py_BuildValue("NN", PyBool_FromLong(changed), PyBool_FromLong(elsewhere));
}

/* (step, as errors list it; its line; whether recording was off) of an array's history, the latest first. */
static PyObject *
py__steps(PY_PARAMS)
{
    PY_PARSE(_steps)
    PyObject *list = py_arg_array(&a, 0) == NULL ? NULL : py_step_list(a.state, a.v[0]);
    PyObject *steps = list == NULL ? NULL : PyTuple_New(PyTuple_GET_SIZE(list));
    const py_step *step = ((py_array *)a.v[0])->step;
    for (Py_ssize_t i = 0; steps != NULL && i < PyTuple_GET_SIZE(steps); i++, step = step->parent) {
        PyObject *entry =
            Py_BuildValue("ONN", PyTuple_GET_ITEM(list, i), line_of(step), PyBool_FromLong(step->unrecorded));
        if (entry == NULL) {
            Py_CLEAR(steps);
        } else {
            PyTuple_SET_ITEM(steps, i, entry);
        }
    }
    Py_XDECREF(list);
    return steps;
}

/* (address, bytes) of each block of memory that a node keeps. */
static PyObject *
py__kept_memory(PY_PARAMS)
{
    PY_PARSE(_kept_memory)
    if (Py_TYPE(a.v[0]) != a.state->node_type) {
        return PyErr_Format(PyExc_TypeError, "_kept_memory(): a Node is needed");
    }
    const dt_node *node = py_node_behind(a.v[0]);
    PyObject *list = PyList_New(0);
    for (int k = 0; list != NULL && !(node->flags & DT_NODE_RELEASED) && k < node->nkept; k++) {
        const dt_storage *storage = node->kept[k].storage;
        PyObject *one = storage == NULL ? NULL
                                        : Py_BuildValue("NK", PyLong_FromVoidPtr(storage->data),
                                                        (unsigned long long)storage->nbytes);
        if (storage != NULL && (one == NULL || PyList_Append(list, one) < 0)) {
            Py_CLEAR(list);
        }
        Py_XDECREF(one);
    }
    return list;
}

/* Whether the last step of an array is op. */
static PyObject *
py__made_by(PY_PARAMS)
{
    PY_PARSE(_made_by)
    const char *op = PyUnicode_Check(a.v[1]) ? PyUnicode_AsUTF8(a.v[1]) : NULL;
    if (py_arg_array(&a, 0) == NULL || op == NULL) {
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_TypeError, "_made_by(): a name is needed");
    }
    const py_step *step = ((py_array *)a.v[0])->step;
    return PyBool_FromLong(step != NULL && strcmp(step->action, op) == 0);
}

PyMethodDef py_grad_facts_functions[] = {
    PY_HIDDEN(_node_has, "What a node has to do with an array that was written to or moved."),
    PY_HIDDEN(_steps, "The steps of an array, with their lines."),
    PY_HIDDEN(_kept_memory, "The memory that a node keeps."),
    PY_HIDDEN(_made_by, "Whether the last step of an array is an op."),
    PY_END,
};

PyMethodDef py_grad_facts_methods[] = {PY_END};
