/* grad.c: gradients as Python sees them: requires_grad, grad, modes, and what the core asks of the front. */
#include "../../core/check/check.h"
#include "grad.h"

/* ---------------------------------------------------------------- what the core asks */

py_state *py_grad_state_module; /* of the module that made the arrays */

static void *
retain_place(void *place)
{
    return py_step_retain(place);
}

/* Runs call with the GIL, which this thread may have or not. */
#define WITH_GIL(call)                                                                                                 \
    do {                                                                                                               \
        if (Py_IsInitialized()) {                                                                                      \
            PyGILState_STATE gil_ = PyGILState_Ensure();                                                               \
            call;                                                                                                      \
            PyGILState_Release(gil_);                                                                                  \
        }                                                                                                              \
    } while (0)

static void
release_place(void *place)
{
    WITH_GIL(py_step_release(place));
}

static bool
is_as_used(const py_grad_state *s)
{
    return s->used != NULL && s->grad != NULL && py_array_of(s->grad)->storage == s->used &&
           atomic_load_explicit(&s->used->version, memory_order_relaxed) == s->version;
}

/* Its gradient is no longer one that a step has used. */
static void
forget_use(py_grad_state *s)
{
    if (s->used != NULL) {
        dt_storage *used = s->used;
        s->used = NULL;
        s->mixed = false;
        dt_storage_unkeep(used);
    }
}

static void
end_state(py_grad_state *s)
{
    PyObject *error_type, *error, *trace; /* what ends here may run code of the user's */
    PyErr_Fetch(&error_type, &error, &trace);
    forget_use(s);
    Py_XDECREF(s->grad);
    Py_XDECREF(s->hooks);
    Py_XDECREF(s->after);
    Py_XDECREF(s->before);
    Py_XDECREF(s->later);
    Py_XDECREF(s->metadata);
    if (s->handle != NULL) {
        PyCapsule_SetContext(s->handle, NULL);
        Py_DECREF(s->handle);
    }
    Py_XDECREF(s->context);
    PyErr_Restore(error_type, error, trace);
    dt_free(s);
}

static void
end_object(PyObject *object)
{
    PyObject *error_type, *error, *trace;
    PyErr_Fetch(&error_type, &error, &trace);
    Py_DECREF(object);
    PyErr_Restore(error_type, error, trace);
}

static void
release_object(void *owner)
{
    WITH_GIL(end_object(owner));
}

static void
release_owner(void *owner)
{
    WITH_GIL(end_state(owner));
}

static void *
leave(void)
{
    return PyEval_SaveThread();
}

static void
enter(void *state)
{
    PyEval_RestoreThread(state);
    py_lines_flush();
}

void
py_grad_init(py_state *state)
{
    py_grad_state_module = state;
    dt_set_grad_front(&(dt_grad_front){
        .retain_place = retain_place,
        .release_place = release_place,
        .release_owner = release_owner,
        .accumulate = py_grad_accumulate,
        .hooks = py_grad_run_hooks,
        .before = py_grad_before,
        .after = py_grad_later,
        .function = py_grad_function,
        .pack = py_grad_pack,
        .unpack = py_grad_unpack,
        .release_packed = release_object,
        .rerun = py_grad_rerun,
        .release_rerun = release_object,
        .watch = py_grad_watch,
        .wrote = py_write_note,
        .ended = py_write_forget,
        .leave = leave,
        .enter = enter,
    });
}

py_grad_state *
py_grad_state_of(dt_node *node)
{
    if (node->owner == NULL) {
        node->owner = dt_calloc(1, sizeof(py_grad_state));
        if (node->owner == NULL) {
            PyErr_NoMemory();
        }
    }
    return node->owner;
}

dt_array *
py_written_operand(PyObject *array)
{
    return py_node_refresh(array) < 0 ? NULL : py_array_of(array);
}

int
py_node_refresh(PyObject *array)
{
    dt_array *x = py_array_of(array);
    if (x->storage == NULL || !dt_has_history(x)) {
        return 0;
    }
    dt_error err;
    dt_node *node = NULL, *old;
    py_wait_for_readers(array);
    if (dt_node_after_writes(x, &node, &err) != DT_OK) {
        py_raise(py_state_of(array), &err, &array, 1);
        return -1;
    }
    if (node != NULL) {
        node->place = py_step_retain(((py_array *)array)->step);
        old = x->node;
        x->node = node;
        dt_node_release(old);
    }
    return 0;
}

/* ---------------------------------------------------------------- leaves */

static bool
is_result(const dt_array *x)
{
    return x->node != NULL && !(x->node->flags & DT_NODE_LEAF);
}

static int
refuse_flag(PyObject *self, bool wants)
{
    py_refuse_grad(self, "grad-flag", "requires_grad_",
                   wants
                       ? "you can only change requires_grad flags of leaf variables."
                       : "you can only change requires_grad flags of leaf variables. If you want to use a computed "
                         "variable in a subgraph that doesn't require differentiation use var_no_grad = var.detach().");
    return -1;
}

/* Makes array a leaf that wants a gradient, or not. -1 with an exception. */
static int
set_wants(PyObject *self, bool wants)
{
    dt_array *x = py_array_of(self);
    if (py_node_refresh(self) < 0) {
        return -1;
    }
    if (x->node == NULL && !wants) {
        return 0;
    }
    if (is_result(x)) {
        return wants ? 0 : refuse_flag(self, false);
    }
    if (wants && !dt_is_float((dt_dtype)x->dtype)) {
        py_refuse_grad(self, "grad-dtype", "requires_grad_",
                       "only Tensors of floating point dtype can require gradients");
        return -1;
    }
    if (x->node != NULL) {
        x->node->flags = (uint16_t)(wants ? x->node->flags | DT_NODE_WANTS : x->node->flags & ~DT_NODE_WANTS);
        return 0;
    }
    dt_error err;
    if (dt_leaf_new(x, wants, &x->node, &err) != DT_OK) {
        py_raise(py_state_of(self), &err, &self, 1);
        return -1;
    }
    x->node->place = py_step_retain(((py_array *)self)->step);
    return 0;
}

PyObject *
py_want_grad(PyObject *result)
{
    if (result != NULL && set_wants(result, true) < 0) {
        Py_CLEAR(result);
    }
    return result;
}

static PyObject *
get_requires_grad(PyObject *self, void *Py_UNUSED(closure))
{
    return PyBool_FromLong(dt_wants_grad(py_array_of(self)));
}

static int
set_requires_grad(PyObject *self, PyObject *value, void *Py_UNUSED(closure))
{
    if (value == NULL || !PyBool_Check(value)) {
        PyErr_SetString(PyExc_TypeError, "requires_grad must be a bool");
        return -1;
    }
    if (py_node_refresh(self) < 0) {
        return -1;
    }
    /* requires_grad_() of a result does nothing; an assignment would seem to make a leaf, so it is refused */
    return is_result(py_array_of(self)) ? refuse_flag(self, value == Py_True) : set_wants(self, value == Py_True);
}

static PyObject *
get_is_leaf(PyObject *self, void *Py_UNUSED(closure))
{
    if (py_node_refresh(self) < 0) {
        return NULL;
    }
    const dt_node *node = py_node_of(self);
    return PyBool_FromLong(node == NULL || (node->flags & DT_NODE_LEAF));
}

static PyObject *
get_retains_grad(PyObject *self, void *Py_UNUSED(closure))
{
    if (py_node_refresh(self) < 0) {
        return NULL;
    }
    const dt_node *node = py_node_of(self);
    const py_grad_state *s = node == NULL ? NULL : node->owner;
    return PyBool_FromLong(s != NULL && s->retains);
}

static PyObject *
py_requires_grad_(PY_PARAMS)
{
    PY_PARSE(requires_grad_)
    bool wants = true;
    if (py_arg_array(&a, 0) == NULL || py_arg_bool(&a, 1, &wants) < 0 || set_wants(self, wants) < 0) {
        return NULL;
    }
    return Py_NewRef(self);
}

static PyObject *
py_detach_(PY_PARAMS)
{
    PY_PARSE(detach_)
    if (py_arg_array(&a, 0) == NULL) {
        return NULL;
    }
    dt_array *x = py_array_of(self);
    py_wait_for_readers(self);
    dt_node *before = x->node, *leaf = NULL;
    dt_error err;
    if (x->storage != NULL && dt_has_history(x) && !dt_is_shared(x)) { /* nobody else sees that memory */
        dt_history_end(x->storage);
    }
    if (before != NULL && (before->flags & DT_NODE_LEAF) && !dt_has_history(x)) { /* it keeps its gradient */
        return set_wants(self, false) < 0 ? NULL : Py_NewRef(self);
    }
    if (dt_is_tracked(x)) { /* later than what was written so far */
        if (dt_leaf_new(x, false, &leaf, &err) != DT_OK) {
            py_raise(py_state_of(self), &err, &self, 1);
            return NULL;
        }
    }
    x->node = leaf;
    dt_node_release(before);
    return Py_NewRef(self);
}

int
py_refuse_tracked(PyObject *array, const char *op)
{
    if (DT_UNLIKELY(dt_wants_grad(py_array_of(array))) && !dt_grad_off) {
        py_refuse_grad(array, "grad-host-access", op,
                       strcmp(op, "__dlpack__") == 0
                           ? "Can't export tensors that require gradient, use tensor.detach()"
                           : "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.");
        return -1;
    }
    return 0;
}

/* ---------------------------------------------------------------- grad */

static PyObject *
get_grad(PyObject *self, void *Py_UNUSED(closure))
{
    if (py_node_refresh(self) < 0) {
        return NULL;
    }
    dt_node *node = py_node_of(self);
    const py_grad_state *s = node == NULL ? NULL : node->owner;
    if (s != NULL && s->grad != NULL) {
        return Py_NewRef(s->grad);
    }
    if (node == NULL || (node->flags & DT_NODE_LEAF) || (s != NULL && s->retains)) {
        Py_RETURN_NONE;
    }
    PyObject *training = PyImport_ImportModule("devtensor._diagnosis.training");
    PyObject *none = training == NULL ? NULL : PyObject_CallMethod(training, "warn_no_leaf", "O", self);
    Py_XDECREF(training);
    return none;
}

/* What grad must look like, that of self. -1 with an exception. */
static int
check_grad(PyObject *self, PyObject *value)
{
    if (!py_is_array(value)) {
        PyErr_Format(PyExc_TypeError, "assigned grad must be a DeviceArray or None, not %s", Py_TYPE(value)->tp_name);
        return -1;
    }
    if (value == self) {
        PyErr_SetString(PyExc_RuntimeError, "can't assign Variable as its own grad");
        return -1;
    }
    dt_error err;
    if (dt_check_grad("grad", py_array_of(self), py_array_of(value), &err) == DT_OK) {
        return 0;
    }
    PyObject *operands[] = {self, value};
    py_raise(py_state_of(self), &err, operands, 2);
    return -1;
}

static int
set_grad(PyObject *self, PyObject *value, void *Py_UNUSED(closure))
{
    dt_array *x = py_array_of(self);
    if (py_node_refresh(self) < 0) {
        return -1;
    }
    if (value == NULL || value == Py_None) {
        py_grad_state *s = x->node == NULL ? NULL : x->node->owner;
        if (s != NULL) {
            forget_use(s);
            Py_CLEAR(s->grad);
        }
        return 0;
    }
    if (check_grad(self, value) < 0) {
        return -1;
    }
    if (x->node == NULL) { /* a leaf that wants none has one all the same */
        dt_error err;
        if (dt_leaf_new(x, false, &x->node, &err) != DT_OK) {
            py_raise(py_state_of(self), &err, &self, 1);
            return -1;
        }
    }
    py_grad_state *s = py_grad_state_of(x->node);
    if (s == NULL) {
        return -1;
    }
    forget_use(s);
    Py_XSETREF(s->grad, Py_NewRef(value));
    return 0;
}

PyObject *
py_grad_array(py_state *state, dt_array *grad)
{
    PyObject *array = py_array_new(state->array_type, "backward");
    if (array != NULL) {
        *py_array_of(array) = *grad;
        *grad = DT_ARRAY_EMPTY;
    }
    return array;
}

/* Whether nobody else holds the memory, and it lies as a new array would. */
static bool
may_take(const dt_array *grad)
{
    return atomic_load_explicit(&grad->storage->refs, memory_order_relaxed) == 1 && dt_array_is_dense(grad);
}

static dt_status
accumulate(dt_node *leaf, dt_array *grad, bool create_graph, dt_error *err)
{
    py_grad_state *s = py_grad_state_of(leaf);
    if (s == NULL) {
        return DT_EFRONT;
    }
    dt_array sum = DT_ARRAY_EMPTY;
    if (DT_UNLIKELY(py_training_watched)) {
        py_leaf_reached(leaf);
    }
    if (!(leaf->flags & DT_NODE_WANTS)) { /* it has been told so since it was used */
        return py_grad_after(s);
    }
    if (s->grad == NULL) {
        if (!create_graph && !may_take(grad)) {
            DT_TRY(dt_clone(grad, &sum, err));
            grad = &sum;
        }
    } else if (!create_graph && !dt_wants_grad(py_array_of(s->grad))) {
        dt_array *old = py_array_of(s->grad);
        const bool as_used = is_as_used(s);
        DT_TRY(dt_check_grad("backward", old, grad, err));
        DT_TRY(dt_binary(DT_BINARY_add, "backward", old, grad, NULL, NULL, true, old, err));
        if (as_used) {
            s->mixed = true;
            s->version = atomic_load_explicit(&s->used->version, memory_order_relaxed);
        } else {
            forget_use(s);
        }
        return py_grad_after(s);
    } else {
        DT_TRY(dt_binary(DT_BINARY_add, "backward", py_array_of(s->grad), grad, NULL, NULL, false, &sum, err));
        grad = &sum;
    }
    if (!create_graph) { /* a hook may have given one that was recorded */
        dt_node_release(grad->node);
        grad->node = NULL;
    }
    PyObject *array = py_grad_array(py_grad_state_module, grad);
    if (array == NULL) {
        dt_array_clear(&sum);
        return DT_EFRONT;
    }
    forget_use(s);
    Py_XSETREF(s->grad, array);
    return py_grad_after(s);
}

dt_status
py_grad_accumulate(dt_node *leaf, dt_array *grad, bool create_graph, dt_error *err)
{
    if (!leaf->hooked) {
        return accumulate(leaf, grad, create_graph, err);
    }
    dt_array seen = DT_ARRAY_EMPTY;
    dt_status rc = py_grad_before(leaf, grad, 1, err);
    if (rc == DT_OK) {
        dt_array_share(grad, &seen);
        rc = accumulate(leaf, grad, create_graph, err);
    }
    if (rc == DT_OK) {
        rc = py_grad_later(leaf, &seen, 1, NULL, err);
    }
    dt_array_clear(&seen);
    return rc;
}

/* ---------------------------------------------------------------- what optimizers have used */

/* A step has used the gradient, which there is; whether it held one that an earlier step has used. */
static bool
use_grad(py_grad_state *s)
{
    const bool mixed = s->mixed && is_as_used(s);
    forget_use(s);
    s->used = py_array_of(s->grad)->storage;
    dt_storage_keep(s->used);
    s->version = atomic_load_explicit(&s->used->version, memory_order_relaxed);
    return mixed;
}

/* After a step: how many of a list of parameters have a gradient, how many of these held one of an earlier step, the
 * place of the first of them, or -1, how many parameters are in a graph that is alive, the number of this step, and
 * how many nodes are alive that were made before the step with the number before. */
static PyObject *
py__note_step(PY_PARAMS)
{
    PY_PARSE(_note_step)
    Py_ssize_t given = 0, mixed = 0, first = -1, recorded = 0;
    const long long before = PyLong_AsLongLong(a.v[1]);
    if (!PyList_Check(a.v[0]) || PyErr_Occurred()) {
        return PyErr_Format(PyExc_TypeError, "_note_step(): a list and a number are needed");
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
        if (use_grad(s)) {
            first = mixed++ == 0 ? i : first;
        }
    }
    const uint32_t step = dt_nodes_stepped();
    return Py_BuildValue("nnnnIL", given, mixed, first, recorded, step, (long long)dt_nodes_before((uint32_t)before));
}

/* How many of a list of parameters have the gradient that a step has used, with nothing added since. */
static PyObject *
py__gradients_as_used(PY_PARAMS)
{
    PY_PARSE(_gradients_as_used)
    Py_ssize_t found = 0;
    if (!PyList_Check(a.v[0])) {
        return PyErr_Format(PyExc_TypeError, "_gradients_as_used(): a list is needed");
    }
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(a.v[0]); i++) {
        PyObject *param = PyList_GET_ITEM(a.v[0], i);
        const dt_node *node = py_is_array(param) ? py_node_of(param) : NULL;
        const py_grad_state *s = node != NULL ? node->owner : NULL;
        found += s != NULL && is_as_used(s) && !s->mixed;
    }
    return PyLong_FromSsize_t(found);
}

/* ---------------------------------------------------------------- modes */

static PyObject *
py__set_grad_enabled(PY_PARAMS)
{
    PY_PARSE(_set_grad_enabled)
    bool enabled = true;
    if (py_arg_bool(&a, 0, &enabled) < 0) {
        return NULL;
    }
    const bool was = !dt_grad_off;
    dt_grad_off = enabled ? 0 : DT_GRAD_OFF_BY_USER;
    return PyBool_FromLong(was);
}

static PyObject *
py_is_grad_enabled(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(ignored))
{
    return PyBool_FromLong(!dt_grad_off);
}

/* ---------------------------------------------------------------- tables */

PyGetSetDef py_grad_getset[] = {
    {"requires_grad", get_requires_grad, set_requires_grad,
     "bool: whether gradients flow to this array. Set it on leaves of a float dtype.", NULL},
    {"is_leaf", get_is_leaf, NULL, "bool: whether no recorded op made this array.", NULL},
    {"retains_grad", get_retains_grad, NULL,
     "bool: whether this is the result of a recorded op that keeps its gradient, as retain_grad() asks for.", NULL},
    {"grad", get_grad, set_grad, "DeviceArray or None: the gradient that backward() has added up here.", NULL},
    {"grad_fn", py_grad_fn, NULL, "Node or None: the op that made this array, for gradients.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyMethodDef py_grad_functions[] = {
    PY_HIDDEN(_become, "input itself as its view: of that shape, with its gradient."),
    PY_HIDDEN(_note_step, "Which gradients a step has used."),
    PY_HIDDEN(_gradients_as_used, "How many gradients are those that a step has used."),
    PY_HIDDEN(_set_grad_enabled, "Turns recording on or off in this thread; gives what it was."),
    PY_GETTER(is_grad_enabled, "Whether ops on arrays that require a gradient are recorded in this thread."),
    PY_END,
};

PyMethodDef py_grad_methods[] = {
    PY_METHOD(requires_grad_,
              "Makes this array a leaf that gradients flow to, or no longer; returns it.\n\nRaises GradientError for a "
              "dtype that is no float, and for False on the result of a recorded op."),
    PY_METHOD(detach_, "Forgets how this array was made: no gradient flows through it further; returns it."),
    PY_END,
};
