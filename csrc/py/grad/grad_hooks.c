/* grad_hooks.c: functions of the user's that see gradients on their way. */
#include "../../core/check/check.h"
#include "../../core/ops/ops.h"
#include "grad.h"

/* A callback raised an exception, which is pending. */
static dt_status
failed(dt_error *err)
{
    (void)dt_fail(err, DT_EFRONT, "hook", "backward", "a hook raised an exception");
    return DT_EFRONT;
}

/* Whether found, a hook's answer or what it made of its argument, may stand for the gradient; else an exception. */
static bool
may_stand_for(PyObject *found, const dt_array *gradient)
{
    if (!py_is_array(found)) {
        PyErr_Format(PyExc_TypeError, "hook must return a DeviceArray or None, not %s", Py_TYPE(found)->tp_name);
        return false;
    }
    dt_error err;
    if (dt_check_grad("hook", gradient, py_array_of(found), &err) != DT_OK) {
        py_raise(py_grad_state_module, &err, &found, 1);
        return false;
    }
    return true;
}

/* Calls every function of hooks with an array of the gradient; what one returns takes its place. A new reference,
 * NULL: an exception. */
static PyObject *
call_hooks(PyObject *hooks, PyObject *array, const dt_array *gradient)
{
    const int at = py_engine_pause();
    PyObject *functions = PyDict_Values(hooks);
    array = Py_NewRef(array);
    for (Py_ssize_t i = 0; functions != NULL && array != NULL && i < PyList_GET_SIZE(functions); i++) {
        PyObject *answer = PyObject_CallOneArg(PyList_GET_ITEM(functions, i), array);
        if (answer == Py_None) { /* it may have changed its argument */
            Py_SETREF(answer, Py_NewRef(array));
        }
        if (answer != NULL && !may_stand_for(answer, gradient)) {
            Py_CLEAR(answer);
        }
        Py_SETREF(array, answer);
    }
    if (functions == NULL) {
        Py_CLEAR(array);
    }
    Py_XDECREF(functions);
    py_engine_resume(at);
    return array;
}

/* Adds the gradient of a result to what its .grad has; on no record but with create_graph. */
static dt_status
retain(py_grad_state *s, const dt_array *gradient, dt_error *err)
{
    dt_array sum = DT_ARRAY_EMPTY;
    if (s->grad != NULL) {
        DT_TRY(dt_binary(DT_BINARY_add, "backward", py_array_of(s->grad), gradient, NULL, NULL, false, &sum, err));
    } else {
        dt_array_share(gradient, &sum);
    }
    if (dt_grad_off) {
        dt_node_release(sum.node);
        sum.node = NULL;
    }
    PyObject *array = py_grad_array(py_grad_state_module, &sum);
    if (array == NULL) {
        dt_array_clear(&sum);
        return failed(err);
    }
    Py_XSETREF(s->grad, array);
    return DT_OK;
}

dt_status
py_grad_run_hooks(dt_node *node, dt_array *grad, dt_error *err)
{
    py_grad_state *s = node->owner;
    if (s->hooks == NULL && !s->retains) {
        return DT_OK;
    }
    PyObject *array = py_array_new(py_grad_state_module->array_type, "backward");
    if (array == NULL) {
        return failed(err);
    }
    dt_array_share(grad, py_array_of(array));
    if (s->hooks != NULL) {
        PyObject *answer = call_hooks(s->hooks, array, grad);
        Py_DECREF(array);
        array = answer;
        if (array == NULL) {
            return failed(err);
        }
        dt_array replaced;
        dt_array_share(py_array_of(array), &replaced);
        dt_array_clear(grad);
        *grad = replaced;
    }
    const dt_status rc = s->retains ? retain(s, py_array_of(array), err) : DT_OK;
    Py_DECREF(array);
    return rc;
}

/* ---------------------------------------------------------------- of nodes */

/* A tuple of arrays, None where there is none. */
static PyObject *
tuple_of(const dt_array *arrays, int n)
{
    PyObject *result = PyTuple_New(n);
    for (int i = 0; result != NULL && i < n; i++) {
        PyObject *entry = Py_NewRef(Py_None);
        if (arrays[i].storage != NULL) {
            Py_SETREF(entry, py_array_new(py_grad_state_module->array_type, "backward"));
        }
        if (entry == NULL) {
            Py_CLEAR(result);
            break;
        }
        if (entry != Py_None) {
            dt_array_share(&arrays[i], py_array_of(entry));
        }
        PyTuple_SET_ITEM(result, i, entry);
    }
    return result;
}

/* Puts what hooks answered in the place of the n arrays that they saw. */
static dt_status
replace(dt_array *arrays, int n, PyObject *answer, dt_error *err)
{
    for (int i = 0; i < n; i++) {
        PyObject *entry = PyTuple_GET_ITEM(answer, i);
        if (entry == Py_None) {
            continue;
        }
        if (dt_check_grad("hook", &arrays[i], py_array_of(entry), err) != DT_OK) {
            py_raise(py_grad_state_module, err, &entry, 1);
            return DT_EFRONT;
        }
        dt_array replaced;
        dt_array_share(py_array_of(entry), &replaced);
        dt_array_clear(&arrays[i]);
        arrays[i] = replaced;
    }
    return DT_OK;
}

/* Calls the functions of hooks with the n arrays, which they may replace, and with what is fixed, of which there may be
 * nothing (NULL). */
static dt_status
run_node_hooks(PyObject *hooks, dt_array *arrays, int n, const dt_array *fixed, int nfixed, dt_error *err)
{
    if (hooks == NULL || PyDict_GET_SIZE(hooks) == 0) {
        return DT_OK;
    }
    const int at = py_engine_pause();
    PyObject *module = PyImport_ImportModule("devtensor.autograd._hooks"), *functions = PyDict_Values(hooks);
    PyObject *seen = tuple_of(arrays, n), *also = fixed == NULL ? Py_NewRef(Py_None) : tuple_of(fixed, nfixed);
    PyObject *answer = NULL;
    if (module != NULL && functions != NULL && seen != NULL && also != NULL) {
        answer = PyObject_CallMethod(module, "run_node_hooks", "OOO", functions, seen, also);
    }
    Py_XDECREF(module);
    Py_XDECREF(functions);
    Py_XDECREF(seen);
    Py_XDECREF(also);
    py_engine_resume(at);
    const dt_status rc = answer == NULL ? DT_EFRONT : replace(arrays, n, answer, err);
    Py_XDECREF(answer);
    return rc == DT_OK ? DT_OK : failed(err);
}

dt_status
py_grad_before(dt_node *node, dt_array *gradients, int n, dt_error *err)
{
    return run_node_hooks(((py_grad_state *)node->owner)->before, gradients, n, NULL, 0, err);
}

/* given NULL: of a leaf, which gives to nobody. */
dt_status
py_grad_later(dt_node *node, const dt_array *gradients, int n, dt_array *given, dt_error *err)
{
    const int ngiven = given == NULL ? 0 : node->ninputs;
    return run_node_hooks(((py_grad_state *)node->owner)->later, given, ngiven, gradients, n, err);
}

/* The dict at place, made when first needed. */
static PyObject *
dict_at(PyObject **place)
{
    if (*place == NULL) {
        *place = PyDict_New();
    }
    return Py_XNewRef(*place);
}

PyObject *
py_node_metadata(PyObject *self, void *Py_UNUSED(closure))
{
    py_grad_state *s = py_grad_state_of(py_node_behind(self));
    return s == NULL ? NULL : dict_at(&s->metadata);
}

static PyObject *
register_node_hook(PyObject *self, PyObject *hook, bool before)
{
    dt_node *node = py_node_behind(self);
    py_grad_state *s = py_grad_state_of(node);
    PyObject *module = s == NULL ? NULL : PyImport_ImportModule("devtensor.autograd._hooks");
    PyObject *hooks = module == NULL ? NULL : dict_at(before ? &s->before : &s->later);
    PyObject *handle = NULL;
    if (hooks != NULL) {
        handle = PyObject_CallMethod(module, "add_node_hook", "sOO", before ? "register_prehook" : "register_hook",
                                     hooks, hook);
    }
    node->hooked |= handle != NULL;
    Py_XDECREF(module);
    Py_XDECREF(hooks);
    return handle;
}

PyObject *
py_node_register_hook(PyObject *self, PyObject *hook)
{
    return register_node_hook(self, hook, false);
}

PyObject *
py_node_register_prehook(PyObject *self, PyObject *hook)
{
    return register_node_hook(self, hook, true);
}

/* ---------------------------------------------------------------- of leaves */

dt_status
py_grad_after(py_grad_state *s)
{
    if (s->after == NULL || s->array == NULL) {
        return DT_OK;
    }
    const int at = py_engine_pause();
    PyObject *array = Py_NewRef(s->array), *functions = PyDict_Values(s->after);
    bool ok = functions != NULL;
    for (Py_ssize_t i = 0; ok && i < PyList_GET_SIZE(functions); i++) {
        PyObject *answer = PyObject_CallOneArg(PyList_GET_ITEM(functions, i), array);
        ok = answer != NULL;
        Py_XDECREF(answer);
    }
    Py_XDECREF(functions);
    Py_DECREF(array);
    py_engine_resume(at);
    return ok ? DT_OK : DT_EFRONT;
}

/* What the array alone holds by way of its node: a graph that holds the node too needs its hooks. */
static py_grad_state *
own_state(PyObject *array)
{
    const dt_node *node = py_node_of(array);
    return node != NULL && atomic_load_explicit(&node->refs, memory_order_relaxed) == 1 ? node->owner : NULL;
}

int
py_grad_traverse(PyObject *array, visitproc visit, void *arg)
{
    const py_grad_state *s = own_state(array);
    if (s != NULL) {
        Py_VISIT(s->hooks);
        Py_VISIT(s->after);
        Py_VISIT(s->before);
        Py_VISIT(s->later);
        Py_VISIT(s->metadata);
    }
    return 0;
}

void
py_grad_clear(PyObject *array)
{
    py_grad_state *s = own_state(array);
    if (s != NULL) {
        Py_CLEAR(s->hooks);
        Py_CLEAR(s->after);
        Py_CLEAR(s->before);
        Py_CLEAR(s->later);
        Py_CLEAR(s->metadata);
    }
}

/* The dict of hooks of a node, made when first needed. */
static PyObject *
hook_dict(PyObject *self, bool after)
{
    dt_node *node = py_node_of(self);
    py_grad_state *s = py_grad_state_of(node);
    if (s == NULL) {
        return NULL;
    }
    if (after) {
        s->array = self;
    }
    return dict_at(after ? &s->after : &s->hooks);
}

/* The dict that register_hook and register_post_accumulate_grad_hook add to; after: of the latter. */
static PyObject *
py__grad_hooks(PY_PARAMS)
{
    PY_PARSE(_grad_hooks)
    bool after = false;
    const dt_array *x = py_arg_array(&a, 0);
    if (x == NULL || py_arg_bool(&a, 1, &after) < 0 || py_node_refresh(a.v[0]) < 0) {
        return NULL;
    }
    if (!dt_wants_grad(x)) {
        return py_refuse_grad(a.v[0], "grad-hook", "register_hook",
                              "cannot register a hook on a tensor that doesn't require gradient");
    }
    if (after && !(x->node->flags & DT_NODE_LEAF)) {
        return py_refuse_grad(a.v[0], "grad-hook", "register_post_accumulate_grad_hook",
                              "post accumulate grad hooks cannot be registered on non-leaf tensors");
    }
    return hook_dict(a.v[0], after);
}

int
py_grad_retain(dt_node *node)
{
    if (!(node->flags & DT_NODE_LEAF)) {
        py_grad_state *s = py_grad_state_of(node);
        if (s == NULL) {
            return -1;
        }
        s->retains = true;
    }
    return 0;
}

static PyObject *
py_retain_grad(PY_PARAMS)
{
    PY_PARSE(retain_grad)
    const dt_array *x = py_arg_array(&a, 0);
    if (x == NULL || py_node_refresh(a.v[0]) < 0) {
        return NULL;
    }
    if (!dt_wants_grad(x)) {
        return py_refuse_grad(a.v[0], "grad-hook", "retain_grad",
                              "can't retain_grad on Tensor that has requires_grad=False");
    }
    if (py_grad_retain(x->node) < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

PyMethodDef py_grad_hooks_functions[] = {
    PY_HIDDEN(_grad_hooks, "The dict of hooks of an array."),
    PY_END,
};

PyMethodDef py_grad_hooks_methods[] = {
    PY_METHOD(retain_grad, "Keeps the gradient of this result in .grad, as that of a leaf is.\n\nRaises GradientError "
                           "where it has none."),
    PY_END,
};
