/* autocast.c: ops that choose their dtypes inside an autocast block. The rules and the casts are in
 * devtensor/_dtypes/autocast.py. */
#include "../py.h"

_Thread_local bool py_autocast_on __attribute__((tls_model("initial-exec")));

/* The arguments of a call by their names; a new reference. */
static PyObject *
named_arguments(const py_args *a)
{
    PyObject *named = PyDict_New();
    for (int i = 0; named != NULL && a->spec->names[i] != NULL; i++) {
        if (a->v[i] != NULL && PyDict_SetItemString(named, a->spec->names[i], a->v[i]) < 0) {
            Py_CLEAR(named);
        }
    }
    return named;
}

/* 1: the op has a rule for the device of its first array; 0: not; -1: an exception. */
static int
has_rule(const py_args *a, PyObject *op)
{
    const dt_array *first = NULL;
    for (int i = 0; first == NULL && a->spec->names[i] != NULL; i++) {
        first = a->v[i] != NULL && py_is_array(a->v[i]) ? py_array_of(a->v[i]) : NULL;
    }
    if (first == NULL || a->nrest > 0 || a->state->autocast_rules == NULL) {
        return 0;
    }
    PyObject *rule = PyDict_GetItemWithError(a->state->autocast_rules, op); /* borrowed: (on the CPU, on CUDA) */
    if (rule == NULL || !PyTuple_Check(rule) || PyTuple_GET_SIZE(rule) != 2) {
        return PyErr_Occurred() ? -1 : 0;
    }
    return PyTuple_GET_ITEM(rule, first->storage->device.type == DT_CPU ? 0 : 1) != Py_None;
}

/* What the rule makes of the call; NotImplemented: nothing. */
static PyObject *
ask(const py_args *a, PyObject *op)
{
    const int found = has_rule(a, op);
    PyObject *named = found > 0 ? named_arguments(a) : NULL;
    if (named == NULL) {
        return found == 0 ? Py_NewRef(Py_NotImplemented) : NULL;
    }
    PyObject *hook = Py_NewRef(a->state->autocast_hook);
    PyObject *answer = PyObject_CallFunctionObjArgs(hook, op, named, NULL);
    Py_DECREF(hook);
    Py_DECREF(named);
    return answer;
}

int
py_autocast(py_args *a)
{
    PyObject *op = PyUnicode_FromString(a->op);
    PyObject *answer = op == NULL ? NULL : ask(a, op);
    Py_XDECREF(op);
    if (answer == Py_NotImplemented) {
        Py_DECREF(answer);
        return 0;
    }
    a->answer = answer;
    return -1;
}

PyObject *
py_autocast_operator(const char *op, PyObject *a, PyObject *b)
{
    PyObject *module = PyType_GetModule(py_state_of(py_is_array(a) ? a : b)->array_type); /* borrowed */
    return module == NULL ? NULL : PyObject_CallMethod(module, op, "OO", a, b);
}

static PyObject *
py__set_autocast(PY_PARAMS)
{
    PY_PARSE(_set_autocast)
    if (!PyDict_Check(a.v[0])) {
        py_arg_wrong(&a, 0, "dict");
        return NULL;
    }
    Py_XSETREF(a.state->autocast_rules, Py_NewRef(a.v[0]));
    Py_XSETREF(a.state->autocast_hook, Py_NewRef(a.v[1]));
    Py_RETURN_NONE;
}

static PyObject *
py__autocast_on(PY_PARAMS)
{
    PY_PARSE(_autocast_on)
    bool on = py_autocast_on, before = on;
    py_none_is_default(&a, 0);
    if (py_arg_bool(&a, 0, &on) < 0) {
        return NULL;
    }
    py_autocast_on = on;
    return PyBool_FromLong(before);
}

PyMethodDef py_autocast_functions[] = {
    PY_HIDDEN(_set_autocast,
              "hook(op, arguments) is asked for ops that have an entry in rules; NotImplemented: as it is."),
    PY_HIDDEN(_autocast_on,
              "Whether ops of this thread are asked about; sets it where on is given. Gives what it was."),
    PY_END,
};

PyMethodDef py_autocast_methods[] = {PY_END};
