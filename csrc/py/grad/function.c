/* function.c: functions whose gradients are Python's (devtensor.autograd.Function), parts that run again (checkpoint),
 * and who looks at gradients (detect_anomaly). Their Python side is in devtensor/autograd. */
#include "../../core/check/check.h"
#include "grad.h"

#define CAPSULE "devtensor.function"

/* ---------------------------------------------------------------- what Python answers */

static dt_status
failed(dt_error *err)
{
    (void)dt_fail(err, DT_EFRONT, "function", "backward", "a function raised an exception");
    return DT_EFRONT;
}

/* Of devtensor.autograd.module; steals arguments. NULL: an exception. */
static PyObject *
call(const char *module, const char *name, PyObject *arguments)
{
    PyObject *found = PyImport_ImportModule(module), *function = NULL, *answer = NULL;
    if (found != NULL && arguments != NULL && (function = PyObject_GetAttrString(found, name)) != NULL) {
        answer = PyObject_CallObject(function, arguments);
    }
    Py_XDECREF(function);
    Py_XDECREF(found);
    Py_XDECREF(arguments);
    return answer;
}

/* A new DeviceArray that shares x, or None where x is empty. */
static PyObject *
shared(const dt_array *x)
{
    if (x->storage == NULL) {
        return Py_NewRef(Py_None);
    }
    PyObject *array = py_array_new(py_grad_state_module->array_type, "backward");
    if (array != NULL) {
        dt_array_share(x, py_array_of(array));
    }
    return array;
}

/* ---------------------------------------------------------------- functions */

dt_status
py_grad_function(dt_node *node, const dt_array *gradients, int n, dt_array *found, dt_error *err)
{
    const py_grad_state *s = node->owner;
    PyObject *given = PyTuple_New(n), *answer = NULL;
    for (int i = 0; given != NULL && i < n; i++) {
        PyObject *array = shared(&gradients[i]);
        if (array == NULL) {
            Py_CLEAR(given);
        } else {
            PyTuple_SET_ITEM(given, i, array);
        }
    }
    if (given != NULL) {
        const int at = py_engine_pause();
        answer = call("devtensor.autograd.function", "_differentiate",
                      Py_BuildValue("ONN", s->context, given, py_node_object(py_grad_state_module, node)));
        py_engine_resume(at);
    }
    if (answer == NULL) {
        return failed(err);
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(answer); i++) { /* checked there: as many, each an array or None */
        PyObject *gradient = PyTuple_GET_ITEM(answer, i);
        if (gradient != Py_None) {
            dt_array_share(py_array_of(gradient), &found[i]);
        }
    }
    Py_DECREF(answer);
    return DT_OK;
}

/* The arrays of a tuple as they are now, behind which there is room for as many numbers. NULL with an exception. */
static dt_array **
arrays_of(PyObject *tuple)
{
    const size_t n = (size_t)PyTuple_GET_SIZE(tuple);
    dt_array **arrays = PyMem_Malloc(n * (sizeof(*arrays) + sizeof(int32_t)) + 1);
    if (arrays == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    for (size_t i = 0; i < n; i++) {
        arrays[i] = py_operand(PyTuple_GET_ITEM(tuple, (Py_ssize_t)i));
        if (arrays[i] == NULL) {
            PyMem_Free(arrays);
            return NULL;
        }
    }
    return arrays;
}

static Py_ssize_t
place_of(PyObject *array, PyObject *tuple)
{
    Py_ssize_t i = PyTuple_GET_SIZE(tuple) - 1;
    while (i >= 0 && PyTuple_GET_ITEM(tuple, i) != array) {
        i--;
    }
    return i;
}

/* Which of the inputs, or after them of the outputs, array is; -1: another. What was written in place is an output. */
static int32_t
source_of(PyObject *array, PyObject *inputs, PyObject *outputs)
{
    const Py_ssize_t output = place_of(array, outputs);
    return (int32_t)(output < 0 ? place_of(array, inputs) : PyTuple_GET_SIZE(inputs) + output);
}

/* What the node of a function owns: its context, and what the context finds the node by. NULL with an exception. */
static py_grad_state *
function_state(PyObject *context)
{
    py_grad_state *s = dt_calloc(1, sizeof(*s));
    if (s == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    s->handle = PyCapsule_New(s, CAPSULE, NULL);
    if (s->handle == NULL) {
        dt_free(s);
        return NULL;
    }
    s->context = Py_NewRef(context);
    return s;
}

/* context; inputs, outputs and saved: tuples of arrays. What the context finds its node by. */
static PyObject *
py__record_function(PY_PARAMS)
{
    PY_PARSE(_record_function)
    PyObject *inputs = a.v[1], *outputs = a.v[2], *saved = a.v[3], *handle = NULL;
    dt_array **in = arrays_of(inputs), **out = arrays_of(outputs), **kept = arrays_of(saved);
    py_grad_state *s = in != NULL && out != NULL && kept != NULL ? function_state(a.v[0]) : NULL;
    if (s != NULL) {
        const Py_ssize_t nkept = PyTuple_GET_SIZE(saved);
        int32_t *sources = (int32_t *)(void *)(kept + nkept);
        for (Py_ssize_t k = 0; k < nkept; k++) {
            sources[k] = source_of(PyTuple_GET_ITEM(saved, k), inputs, outputs);
        }
        const dt_function_plan plan = {
            .inputs = (const dt_array *const *)in,
            .outputs = out,
            .kept = (const dt_array *const *)kept,
            .sources = sources,
            .ninputs = (int)PyTuple_GET_SIZE(inputs),
            .noutputs = (int)PyTuple_GET_SIZE(outputs),
            .nkept = (int)nkept,
            .owner = s,
        };
        dt_error err;
        dt_node *node = NULL;
        handle = Py_NewRef(s->handle);
        if (dt_function_record(&plan, &node, &err) == DT_OK) {
            PyCapsule_SetContext(handle, node);
            node->place = py_step_new("apply");
            for (int i = 0; i < plan.noutputs && plan.noutputs > 1; i++) {
                out[i]->node->place = py_step_retain(node->place);
            }
        } else {
            Py_CLEAR(handle);
            py_raise(a.state, &err, ((PyTupleObject *)outputs)->ob_item, 1);
        }
    }
    PyMem_Free(in);
    PyMem_Free(out);
    PyMem_Free(kept);
    return handle;
}

/* handle, of a function; the k-th array that its node keeps. */
static PyObject *
py__saved_of_function(PY_PARAMS)
{
    PY_PARSE(_saved_of_function)
    int64_t k;
    dt_node *node = PyCapsule_IsValid(a.v[0], CAPSULE) ? PyCapsule_GetContext(a.v[0]) : NULL;
    if (py_arg_int(&a, 1, &k) < 0) {
        return NULL;
    }
    if (node == NULL || k < 0 || k >= node->nkept) {
        PyErr_Clear();
        return PyErr_Format(PyExc_RuntimeError, "saved_tensors: the graph of this function is gone");
    }
    PyObject *array = py_array_new(a.state->array_type, "saved_tensors");
    dt_error err;
    if (array != NULL && dt_function_unpack(node, (int)k, py_array_of(array), &err) != DT_OK) {
        Py_CLEAR(array);
        if (!PyErr_Occurred()) { /* what runs again may have raised */
            PyObject *about = py_node_object(a.state, node);
            if (about != NULL) {
                py_raise_about(a.state, &err, NULL, 0, about);
                Py_DECREF(about);
            }
        }
    }
    return array;
}

/* ---------------------------------------------------------------- parts that run again */

/* Calls function(*args, **kwargs) with ops that keep nothing; again() calls it once more. */
static PyObject *
py__run_light(PY_PARAMS)
{
    PY_PARSE(_run_light)
    dt_rerun *rerun = NULL, *outer = dt_rerun_here;
    dt_error err;
    if (dt_rerun_new(a.v[3], &rerun, &err) != DT_OK) {
        return py_raise(a.state, &err, NULL, 0);
    }
    Py_INCREF(a.v[3]);
    dt_rerun_here = rerun;
    PyObject *result = PyObject_Call(a.v[0], a.v[1], a.v[2]);
    dt_rerun_here = outer;
    rerun->ended = true;
    dt_rerun_release(rerun);
    return result;
}

dt_status
py_grad_rerun(dt_rerun *rerun, dt_error *err)
{
    dt_rerun *outer = dt_rerun_here;
    const uint8_t was_off = dt_grad_off;
    dt_rerun_here = rerun;
    dt_grad_off = 0;
    PyObject *answer = PyObject_CallNoArgs(rerun->owner);
    dt_grad_off = was_off;
    dt_rerun_here = outer;
    Py_XDECREF(answer);
    return answer == NULL ? failed(err) : DT_OK;
}

/* ---------------------------------------------------------------- who looks at gradients */

static PyObject *
py__watch_gradients(PY_PARAMS)
{
    PY_PARSE(_watch_gradients)
    bool watched = true;
    if (py_arg_bool(&a, 0, &watched) < 0) {
        return NULL;
    }
    const bool was = dt_grad_watched;
    dt_grad_watched = watched;
    return PyBool_FromLong(was);
}

dt_status
py_grad_watch(dt_node *node, int i, const dt_array *gradient, dt_error *err)
{
    PyObject *answer = call("devtensor.autograd.anomaly", "_look",
                            Py_BuildValue("NiN", py_node_object(py_grad_state_module, node), i, shared(gradient)));
    Py_XDECREF(answer);
    return answer == NULL ? failed(err) : DT_OK;
}

/* ---------------------------------------------------------------- tables */

PyMethodDef py_function_functions[] = {
    PY_HIDDEN(_record_function, "Makes outputs those of a function, whose context is asked for gradients."),
    PY_HIDDEN(_saved_of_function, "An array that a function has saved."),
    PY_HIDDEN(_run_light, "Calls function so that nothing is kept for gradients; again calls it once more for them."),
    PY_HIDDEN(_watch_gradients, "Whether gradients of this thread are looked at; gives what it was."),
    PY_END,
};

PyMethodDef py_function_methods[] = {PY_END};
