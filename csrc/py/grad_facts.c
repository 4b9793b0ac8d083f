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
    return kept->storage != NULL && atomic_load(&kept->storage->version) != kept->version;
}

/* (operand, shape, dtype, device, whether it was written to, the line of the first write) */
static PyObject *
kept_facts(py_state *state, const dt_kept *kept)
{
    PyObject *shape = py_shape_tuple(kept->ndim, kept->dims);
    PyObject *device = kept->storage == NULL ? Py_NewRef(Py_None) : py_device_object(state, kept->storage->device);
    PyObject *line = is_changed(kept) ? py_write_line(kept->storage, kept->version + 1) : Py_NewRef(Py_None);
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

static dt_node *
node_argument(const py_args *a)
{
    if (Py_TYPE(a->v[0]) != a->state->node_type) {
        PyErr_Format(PyExc_TypeError, "%s(): a Node is needed", a->op);
        return NULL;
    }
    return py_node_behind(a->v[0]);
}

/* (op, order, whether a backward has been there, line, line of the backward that released it or None, order then, what
 * it keeps) */
static PyObject *
py__node_facts(PY_PARAMS)
{
    PY_PARSE(_node_facts)
    const dt_node *node = node_argument(&a);
    if (node == NULL) {
        return NULL;
    }
    const bool released = node->flags & DT_NODE_RELEASED;
    PyObject *kept = PyTuple_New(released ? 0 : node->nkept), *line = line_of(node->place),
             *freed = line_of(node->freed);
    for (Py_ssize_t k = 0; kept != NULL && k < PyTuple_GET_SIZE(kept); k++) {
        PyObject *one = kept_facts(a.state, &node->kept[k]);
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

/* Whether array lies in memory that the node keeps and that was written to. */
static PyObject *
py__node_keeps(PY_PARAMS)
{
    PY_PARSE(_node_keeps)
    const dt_array *x = py_arg_array(&a, 1);
    const dt_node *node = x == NULL ? NULL : node_argument(&a);
    if (node == NULL) {
        return NULL;
    }
    bool found = false;
    for (int k = 0; k < node->nkept; k++) {
        found |= is_changed(&node->kept[k]) && node->kept[k].storage == x->storage;
    }
    return PyBool_FromLong(found);
}

/* Whether array is an operand of the node, and on another device than its result. */
static PyObject *
py__node_reads(PY_PARAMS)
{
    PY_PARSE(_node_reads)
    const dt_array *x = py_arg_array(&a, 1);
    const dt_node *node = x == NULL ? NULL : node_argument(&a);
    if (node == NULL) {
        return NULL;
    }
    bool found = false;
    for (int i = 0; i < node->ninputs && x->storage != NULL && x->node != NULL; i++) {
        found |= node->inputs[i] == x->node && !dt_device_equal(x->storage->device, node->device);
    }
    return PyBool_FromLong(found);
}

/* (line, whether recording was off) of each step of an array, as its history has them. */
static PyObject *
py__step_places(PY_PARAMS)
{
    PY_PARSE(_step_places)
    if (py_arg_array(&a, 0) == NULL) {
        return NULL;
    }
    PyObject *list = PyList_New(0);
    for (const py_step *step = ((py_array *)a.v[0])->step; list != NULL && step != NULL; step = step->parent) {
        PyObject *line = line_of(step);
        PyObject *entry = line == NULL ? NULL : Py_BuildValue("NN", line, PyBool_FromLong(step->unrecorded));
        if (entry == NULL || PyList_Append(list, entry) < 0) {
            Py_CLEAR(list);
        }
        Py_XDECREF(entry);
    }
    PyObject *places = list == NULL ? NULL : PyList_AsTuple(list);
    Py_XDECREF(list);
    return places;
}

/* The steps of an array, as errors list them. */
static PyObject *
py__history(PY_PARAMS)
{
    PY_PARSE(_history)
    return py_arg_array(&a, 0) == NULL ? NULL : py_step_list(a.state, a.v[0]);
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

/* After a step: how many of a list of parameters have a gradient, how many of these held one of an earlier step, the
 * place of the first of them, or -1, and how many parameters are in a graph that is alive. */
static PyObject *
py__note_step(PY_PARAMS)
{
    PY_PARSE(_note_step)
    Py_ssize_t given = 0, mixed = 0, first = -1, recorded = 0;
    if (!PyList_Check(a.v[0])) {
        return PyErr_Format(PyExc_TypeError, "_note_step(): a list is needed");
    }
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(a.v[0]); i++) {
        PyObject *param = PyList_GET_ITEM(a.v[0], i);
        dt_node *node = py_is_array(param) ? py_node_of(param) : NULL;
        recorded += node != NULL && atomic_load(&node->refs) > 1;
        py_grad_state *s = node == NULL ? NULL : node->owner;
        if (s == NULL || s->grad == NULL || py_array_of(s->grad)->storage == NULL) {
            continue;
        }
        given++;
        if (py_grad_step(s)) {
            first = mixed++ == 0 ? i : first;
        }
    }
    return Py_BuildValue("nnnn", given, mixed, first, recorded);
}

PyMethodDef py_grad_facts_functions[] = {
    PY_HIDDEN(_node_facts, "What a node is, keeps and lost."),
    PY_HIDDEN(_node_keeps, "Whether an array lies in memory that a node keeps and that was written to."),
    PY_HIDDEN(_node_reads, "Whether an array is an operand of a node, on another device than its result."),
    PY_HIDDEN(_step_places, "The lines of the steps of an array."),
    PY_HIDDEN(_history, "The steps of an array."),
    PY_HIDDEN(_made_by, "Whether the last step of an array is an op."),
    PY_HIDDEN(_note_step, "Which gradients a step has used."),
    PY_END,
};

PyMethodDef py_grad_facts_methods[] = {PY_END};
