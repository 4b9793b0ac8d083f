/* data.c: x.data = y: an array that takes over the memory, device, dtype and shape of another, and stays the object
 * that it is. Module.to moves parameters so, which optimizers and the user's own variables hold. */
#include "../../core/check/check.h"
#include "../grad/grad.h"

#include <string.h>

/* ---------------------------------------------------------------- arrays that ops read without the GIL */

static int unmarked; /* ops that run without the GIL, and have not marked what they read; the GIL guards it */
static int waiting;  /* threads in py_wait_for_readers: ops that would begin let them go first */

static void
let_others_run(void)
{
    Py_BEGIN_ALLOW_THREADS;
    dt_sleep_briefly();
    Py_END_ALLOW_THREADS;
}

void
py_released(int by)
{
    while (by > 0 && DT_UNLIKELY(waiting > 0)) {
        let_others_run();
    }
    unmarked += by;
}

static bool
is_wanted(PyObject *const *objects, Py_ssize_t n)
{
    bool wanted = false;
    for (Py_ssize_t i = 0; i < n; i++) {
        wanted |= objects[i] != NULL && py_is_array(objects[i]) && ((py_array *)objects[i])->wanted > 0;
    }
    return wanted;
}

void
py_mark_busy(PyObject *const *objects, Py_ssize_t n, int by)
{
    while (by > 0 && DT_UNLIKELY(waiting > 0) && is_wanted(objects, n)) {
        let_others_run();
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        if (objects[i] != NULL && py_is_array(objects[i])) {
            ((py_array *)objects[i])->busy = (short)(((py_array *)objects[i])->busy + by);
        }
    }
}

/* Until no op reads the array. */
void
py_wait_for_readers(PyObject *self)
{
    py_array *array = (py_array *)self;
    waiting++;
    array->wanted++;
    while (array->busy > 0 || unmarked > 0) {
        let_others_run();
    }
    array->wanted--;
    waiting--;
}

/* ---------------------------------------------------------------- the node of the array as it will be */

/* Of what is or was detached, or a leaf without a gradient: nothing that a shape stands for. */
static bool
is_replaceable(const dt_node *node)
{
    const bool plain = (node->flags & DT_NODE_LEAF) && node->owner == NULL;
    return (plain || (node->flags & DT_NODE_APART)) && !(node->flags & DT_NODE_WANTS);
}

/* The leaf goes on as one for x, with its gradient and hooks. A result keeps its node, and so its shape; what is only
 * detached gets another. */
static int
change_node(PyObject *self, const dt_array *x)
{
    dt_node *node = py_node_of(self);
    if (node == NULL) {
        return 0;
    }
    if (node->ndim != x->ndim && is_replaceable(node)) {
        dt_node *other;
        dt_error err;
        if (dt_leaf_new(x, false, &other, &err) != DT_OK) {
            py_raise(py_state_of(self), &err, &self, 1);
            return -1;
        }
        other->flags |= node->flags & (DT_NODE_APART | DT_NODE_QUIET);
        py_array_of(self)->node = other;
        dt_node_release(node);
        return 0;
    }
    if (dt_wants_grad(py_array_of(self)) && !dt_is_float((dt_dtype)x->dtype)) {
        py_refuse_grad(self, "grad-flag", "data",
                       "data set to a tensor that requires gradients must be floating point");
        return -1;
    }
    if (node->ndim != x->ndim || !(node->flags & DT_NODE_LEAF)) {
        py_refuse_grad(self, "grad-flag", "data",
                       "the data of an array that gradients flow to may change its device and dtype, not its number of "
                       "dimensions (nor anything, where an op made it): use a new array");
        return -1;
    }
    memcpy(node->shape, x->shape, x->ndim * sizeof(int64_t));
    node->device = dt_array_device(x);
    if (node->dtype != x->dtype && atomic_load(&node->refs) > 1) {
        dt_node_mark_epoch(node); /* ops that were recorded before gave gradients of another dtype */
    }
    node->dtype = x->dtype;
    return 0;
}

/* self has what value has, with this node, which it takes over. */
static void
take(PyObject *self, PyObject *value, dt_node *node)
{
    dt_array *x = py_array_of(self), new, old = *x;
    dt_array_copy_handle(py_array_of(value), &new);
    new.node = node;
    *x = new;
    dt_array_clear(&old);
    py_array *object = (py_array *)self;
    py_step *before = object->step;
    object->step = py_step_retain(((py_array *)value)->step);
    py_step_release(before);
}

int
py_set_data(PyObject *self, PyObject *value)
{
    if (value == NULL || !py_is_array(value)) {
        PyErr_Format(PyExc_TypeError, "data must be a DeviceArray, not %s",
                     value == NULL ? "nothing" : Py_TYPE(value)->tp_name);
        return -1;
    }
    if (self == value) {
        return 0;
    }
    py_wait_for_readers(self);
    if (change_node(self, py_array_of(value)) < 0) {
        return -1;
    }
    dt_node *node = py_array_of(self)->node;
    py_array_of(self)->node = NULL;
    take(self, value, node);
    return 0;
}

PyObject *
py__become(PY_PARAMS)
{
    PY_PARSE(_become)
    a.op = PyUnicode_Check(a.v[0]) ? PyUnicode_AsUTF8(a.v[0]) : NULL;
    if (a.op == NULL || py_arg_array(&a, 1) == NULL || py_arg_array(&a, 2) == NULL) {
        return NULL;
    }
    PyObject *input = a.v[1], *view = a.v[2];
    dt_error err;
    if (dt_grad_check_leaf(a.op, py_array_of(input), &err) != DT_OK) {
        return py_raise_args(&a, &err);
    }
    py_wait_for_readers(input);
    dt_node *before = py_node_of(input), *node = py_node_of(view);
    const py_grad_state *kept = before == NULL ? NULL : before->owner;
    if (kept != NULL && kept->retains && node != NULL && py_grad_retain(node) < 0) {
        return NULL;
    }
    take(input, view, dt_node_retain(node));
    return Py_NewRef(input);
}
