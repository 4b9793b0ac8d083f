/* backward.c: a run of gradients that Python asks for. */
#include "../../core/check/check.h"
#include "../../core/ops/ops.h"
#include "grad.h"

#include <pthread.h>

/* ---------------------------------------------------------------- backward */

/* One run works at a time. While it calls a hook, or the backward of a Function, others may begin, of this thread or of
 * another one that the hook waits for: runs form a stack, and a hook's run goes on when those above it have ended,
 * whose marks lie over its own. */
static PyThread_type_lock engine;
static unsigned long holder;          /* the thread that has it; 0: none */
static unsigned long long begun, now; /* backward passes; the one that works */
static int depth;                     /* runs that have begun and not ended; who has the engine changes it */

/* In a child: the other threads are gone, with what they held. */
static void
forget_engine(void)
{
    engine = NULL;
    holder = 0;
}

static int
make_engine(void)
{
    static bool watches_forks;
    if (!watches_forks) {
        watches_forks = true;
        (void)pthread_atfork(NULL, NULL, forget_engine);
    }
    if (engine == NULL) {
        engine = PyThread_allocate_lock();
    }
    return engine == NULL ? -1 : 0;
}

/* Waits until the engine is free. interrupted: NULL, or whether a handler of a signal raised an exception. */
static void
take_engine(bool *interrupted)
{
    PyLockStatus taken = PyThread_acquire_lock_timed(engine, 0, 0);
    while (taken != PY_LOCK_ACQUIRED) {
        Py_BEGIN_ALLOW_THREADS;
        taken = PyThread_acquire_lock_timed(engine, -1, interrupted != NULL);
        Py_END_ALLOW_THREADS;
        if (taken == PY_LOCK_INTR && PyErr_CheckSignals() < 0) {
            *interrupted = true;
            return;
        }
    }
    holder = PyThread_get_thread_ident();
}

static void
give_engine(void)
{
    if (engine != NULL) { /* NULL: a fork in between */
        holder = 0;
        PyThread_release_lock(engine);
    }
}

/* took: what leave_engine is told; false where this thread has the engine: what ends in a run may run code of the
 * user's. */
static int
enter_engine(bool *took)
{
    bool interrupted = false;
    *took = holder != PyThread_get_thread_ident();
    if (*took && make_engine() < 0) {
        PyErr_NoMemory();
        return -1;
    }
    if (*took) {
        take_engine(&interrupted);
    }
    if (!interrupted) {
        depth++;
    }
    return interrupted ? -1 : 0;
}

static void
leave_engine(bool took)
{
    depth--;
    if (took) {
        give_engine();
    }
}

bool
py_engine_is_ours(void)
{
    return holder == PyThread_get_thread_ident();
}

unsigned long long
py_backward_now(void)
{
    return now;
}

int
py_engine_pause(void)
{
    const int at = depth;
    give_engine();
    return at;
}

void
py_engine_resume(int at)
{
    if (engine == NULL) { /* the hook forked, and is alone in the child */
        depth = at;
    }
    while (make_engine() == 0) {
        take_engine(NULL);
        if (depth == at) {
            return;
        }
        give_engine();
        Py_BEGIN_ALLOW_THREADS;
        dt_sleep_briefly();
        Py_END_ALLOW_THREADS;
    }
}

typedef struct {
    int n;
    dt_node **nodes;
    dt_array *gradients;
    const dt_array **pointers;
} root_list;

static void
end_roots(root_list *r)
{
    for (int i = 0; i < r->n; i++) {
        dt_node_release(r->nodes[i]);
        dt_array_clear(&r->gradients[i]);
    }
    PyMem_Free(r->nodes);
    PyMem_Free(r->gradients);
    PyMem_Free(r->pointers);
}

/* Fills gradient, the one that is given (None: a one, of a scalar) for root. */
static int
begin_root(PyObject *root, int index, PyObject *given, dt_array *gradient)
{
    const dt_array *x = py_array_of(root);
    dt_error err;
    dt_status rc;
    if (py_node_refresh(root) < 0) {
        return -1;
    }
    if (!dt_wants_grad(x)) {
        py_refuse_grad(root, "grad-missing", "backward",
                       "element %d of tensors does not require grad and does not have a grad_fn", index);
        return -1;
    }
    if (py_given(given)) {
        if (!py_is_array(given)) {
            PyErr_Format(PyExc_TypeError, "gradients can be either DeviceArrays or None, but got %s",
                         Py_TYPE(given)->tp_name);
            return -1;
        }
        rc = dt_check_grad("backward", x, py_array_of(given), &err);
        if (rc == DT_OK) {
            dt_array_share(py_array_of(given), gradient);
            return 0;
        }
        PyObject *operands[] = {root, given};
        py_raise(py_state_of(root), &err, operands, 2);
        return -1;
    }
    if (dt_array_numel(x) != 1) {
        py_refuse_grad(root, "grad-not-scalar", "backward", "grad can be implicitly created only for scalar outputs");
        return -1;
    }
    const dt_scalar one = dt_scalar_int(1);
    rc = dt_full("backward", dt_array_device(x), (dt_dtype)x->dtype, x->ndim, x->shape, &one, gradient, &err);
    if (rc != DT_OK) {
        py_raise(py_state_of(root), &err, &root, 1);
        return -1;
    }
    return 0;
}

/* roots and gradients: tuples of the same length. */
static int
begin_roots(PyObject *roots, PyObject *gradients, root_list *r)
{
    const size_t n = (size_t)PyTuple_GET_SIZE(roots) + 1;
    *r = (root_list){0, PyMem_Calloc(n, sizeof(*r->nodes)), PyMem_Calloc(n, sizeof(*r->gradients)),
                     PyMem_Calloc(n, sizeof(*r->pointers))};
    if (r->nodes == NULL || r->gradients == NULL || r->pointers == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(roots); i++) {
        PyObject *root = PyTuple_GET_ITEM(roots, i);
        if (!py_is_array(root)) {
            PyErr_Format(PyExc_TypeError, "backward takes DeviceArrays, not %s", Py_TYPE(root)->tp_name);
            return -1;
        }
        if (begin_root(root, (int)i, PyTuple_GET_ITEM(gradients, i), &r->gradients[i]) < 0) {
            return -1;
        }
        r->nodes[i] = dt_node_retain(py_node_of(root));
        r->pointers[i] = &r->gradients[i];
        r->n++;
    }
    return 0;
}

static void
end_wanted(dt_node **nodes, Py_ssize_t n)
{
    for (Py_ssize_t i = 0; nodes != NULL && i < n; i++) {
        dt_node_release(nodes[i]);
    }
    PyMem_Free(nodes);
}

/* The nodes of inputs, a tuple of arrays; added: their gradients are added to .grad, also of results. */
static dt_node **
wanted_nodes(PyObject *inputs, bool added)
{
    const Py_ssize_t n = PyTuple_GET_SIZE(inputs);
    dt_node **nodes = PyMem_Calloc((size_t)n + 1, sizeof(*nodes));
    if (nodes == NULL) {
        PyErr_NoMemory();
    }
    for (Py_ssize_t i = 0; nodes != NULL && i < n; i++) {
        PyObject *input = PyTuple_GET_ITEM(inputs, i);
        if (!py_is_array(input)) {
            PyErr_Format(PyExc_TypeError, "inputs must be DeviceArrays, not %s", Py_TYPE(input)->tp_name);
        } else if (py_node_refresh(input) < 0) {
            ; /* there is an exception */
        } else if (!dt_wants_grad(py_array_of(input))) {
            py_refuse_grad(input, "grad-unwanted", "grad", "One of the differentiated Tensors does not require grad");
        } else if (!added || py_grad_retain(py_node_of(input)) == 0) {
            nodes[i] = dt_node_retain(py_node_of(input)); /* a hook may cut it off */
            continue;
        }
        end_wanted(nodes, n);
        nodes = NULL;
    }
    return nodes;
}

/* Runs; found NULL: gradients are added to the leaves. -1 with an exception. */
static int
run(py_state *state, PyObject *roots, PyObject *gradients, PyObject *inputs, bool retain, bool create, dt_array *found)
{
    root_list r;
    dt_node **wanted = NULL, *failed = NULL;
    const Py_ssize_t nwanted = inputs == Py_None ? 0 : PyTuple_GET_SIZE(inputs);
    int rc = -1;
    bool took = false;
    py_step *place = py_step_new("backward");
    if (begin_roots(roots, gradients, &r) == 0 &&
        (inputs == Py_None || (wanted = wanted_nodes(inputs, found == NULL)) != NULL) && enter_engine(&took) == 0) {
        const dt_backward_options options = {
            .retain_graph = retain,
            .create_graph = create,
            .wanted = wanted,
            .found = found,
            .nwanted = (int)nwanted,
            .place = place,
            .failed = &failed,
        };
        dt_error err;
        const unsigned long long outer = now;
        now = ++begun;
        const dt_status status = dt_backward(r.n, r.nodes, r.pointers, &options, &err);
        now = outer;
        leave_engine(took);
        rc = status == DT_OK ? 0 : -1;
        if (status != DT_OK && status != DT_EFRONT) {
            PyObject *about = failed == NULL ? NULL : py_node_object(state, failed);
            if (failed == NULL || about != NULL) {
                py_raise_about(state, &err, ((PyTupleObject *)roots)->ob_item, r.n, about);
            }
            Py_XDECREF(about);
        }
        dt_node_release(failed);
    }
    end_roots(&r);
    end_wanted(wanted, nwanted);
    py_step_release(place);
    return rc;
}

/* tensors, grad_tensors, retain_graph, create_graph, inputs: tuples, as devtensor.autograd makes them */
static PyObject *
py__backward(PY_PARAMS)
{
    PY_PARSE(_backward)
    bool retain = false, create = false;
    PyObject *first = PyTuple_GET_SIZE(a.v[0]) == 0 ? NULL : PyTuple_GET_ITEM(a.v[0], 0);
    if (dt_transform_here.began != 0 && first != NULL && py_is_array(first)) {
        py_refuse_grad(first, "grad-transform", "backward",
                       "backward() called inside a function that dt.func or vmap transforms: .grad of what is outside "
                       "would change. Use dt.func.grad or dt.func.vjp in it, or call backward() outside of it.");
        return NULL;
    }
    if (py_arg_bool(&a, 2, &retain) < 0 || py_arg_bool(&a, 3, &create) < 0 ||
        run(a.state, a.v[0], a.v[1], a.v[4], retain, create, NULL) < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

/* A tuple of the gradients, None where there is none. */
static PyObject *
found_tuple(py_state *state, dt_array *found, Py_ssize_t n)
{
    PyObject *result = PyTuple_New(n);
    for (Py_ssize_t i = 0; result != NULL && i < n; i++) {
        PyObject *entry = found[i].storage == NULL ? Py_NewRef(Py_None) : py_grad_array(state, &found[i]);
        if (entry == NULL) {
            Py_CLEAR(result);
        } else {
            PyTuple_SET_ITEM(result, i, entry);
        }
    }
    return result;
}

static PyObject *
py__grad(PY_PARAMS)
{
    PY_PARSE(_grad)
    bool retain = false, create = false;
    if (py_arg_bool(&a, 2, &retain) < 0 || py_arg_bool(&a, 3, &create) < 0) {
        return NULL;
    }
    const Py_ssize_t n = PyTuple_GET_SIZE(a.v[4]);
    dt_array *found = PyMem_Calloc((size_t)n + 1, sizeof(*found));
    if (found == NULL) {
        return PyErr_NoMemory();
    }
    PyObject *result =
        run(a.state, a.v[0], a.v[1], a.v[4], retain, create, found) < 0 ? NULL : found_tuple(a.state, found, n);
    for (Py_ssize_t i = 0; i < n; i++) {
        dt_array_clear(&found[i]);
    }
    PyMem_Free(found);
    return result;
}

/* No output was made from the input that stands at index. */
static PyObject *
py__refuse_unused(PY_PARAMS)
{
    PY_PARSE(_refuse_unused)
    int64_t index = 0;
    if (py_arg_array(&a, 0) == NULL || py_arg_int(&a, 1, &index) < 0) {
        return NULL;
    }
    return py_refuse_grad(a.v[0], "grad-unused", "grad",
                          "One of the differentiated Tensors appears to not have been used in the graph. Set "
                          "allow_unused=True if this is the desired behavior. (index %d)",
                          (int)index);
}

/* x.backward(gradient, retain_graph, create_graph, inputs) */
static PyObject *
py_backward(PY_PARAMS)
{
    PY_PARSE(backward)
    const dt_array *gradient;
    bool flag = false;
    py_none_is_default(&a, 2);
    if (py_arg_array(&a, 0) == NULL || py_arg_optional_array(&a, 1, &gradient) < 0 || py_arg_bool(&a, 2, &flag) < 0 ||
        py_arg_bool(&a, 3, &flag) < 0) {
        return NULL;
    }
    if (py_given(a.v[4]) && !py_is_array(a.v[4]) && !PyList_Check(a.v[4]) && !PyTuple_Check(a.v[4])) {
        py_arg_wrong(&a, 4, "DeviceArray or a sequence of them");
        return NULL;
    }
    PyObject *module = PyImport_ImportModule("devtensor.autograd");
    PyObject *result = NULL;
    if (module != NULL) {
        PyObject *given[5];
        for (int i = 0; i < 5; i++) {
            given[i] = a.v[i] == NULL ? Py_None : a.v[i];
        }
        result = PyObject_CallMethod(module, "backward", "OOOOOO", given[0], given[1], given[2],
                                     a.v[3] == NULL ? Py_False : a.v[3], Py_None, given[4]);
    }
    Py_XDECREF(module);
    return result;
}

/* ---------------------------------------------------------------- tables */

PyMethodDef py_backward_functions[] = {
    PY_HIDDEN(_backward, "Adds gradients to leaves."),
    PY_HIDDEN(_grad, "The gradients of inputs."),
    PY_HIDDEN(_refuse_unused, "Raises that an input of grad is not used."),
    PY_END,
};

PyMethodDef py_backward_methods[] = {
    PY_METHOD(
        backward,
        "Adds the gradient of this array with respect to the leaves that it was made from to their .grad.\n\n"
        "gradient is that of this array, of its shape; a scalar needs none. Raises GradientError where nothing was "
        "recorded,\nor the graph has been used up."),
    PY_END,
};
