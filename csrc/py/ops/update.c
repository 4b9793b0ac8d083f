/* update.c: _update, a step of an optimizer: lists of parameters, gradients and states, and the numbers of the rule. */
#include "../py.h"

#include <string.h>

enum { RULE, PARAMS, GRADS, STATES, NUMBERS, PLACES };

static int
find_rule(const py_args *a, dt_update_rule *rule, int *nstates)
{
    const char *name = PyUnicode_Check(a->v[RULE]) ? PyUnicode_AsUTF8(a->v[RULE]) : NULL;
    for (int i = 0; name != NULL && i < DT_NUPDATE; i++) {
        if (strcmp(name, dt_update_names[i]) == 0) {
            *rule = (dt_update_rule)i;
            *nstates = 0;
            while (*nstates < DT_UPDATE_STATES && dt_update_states[i][*nstates] != NULL) {
                ++*nstates;
            }
            return 0;
        }
    }
    if (!PyErr_Occurred()) {
        py_arg_wrong(a, RULE, "a rule of updates.def");
    }
    return -1;
}

/* A dictionary of numbers by their names; the others are 0. */
static int
read_numbers(const py_args *a, double number[DT_NNUMBERS])
{
    Py_ssize_t found = 0;
    if (!PyDict_Check(a->v[NUMBERS])) {
        return py_arg_wrong(a, NUMBERS, "a dict of numbers");
    }
    for (int i = 0; i < DT_NNUMBERS; i++) {
        PyObject *name = PyUnicode_InternFromString(dt_number_names[i]);
        PyObject *value = name == NULL ? NULL : PyDict_GetItemWithError(a->v[NUMBERS], name);
        Py_XDECREF(name);
        number[i] = value == NULL ? 0 : PyFloat_AsDouble(value);
        if (value != NULL && PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_TypeError)) {
            PyErr_Format(PyExc_TypeError, "%s(): the option '%s' must be a number, not %s", a->op, dt_number_names[i],
                         Py_TYPE(value)->tp_name);
        }
        if (PyErr_Occurred()) {
            return -1;
        }
        found += value != NULL;
    }
    return found == PyDict_GET_SIZE(a->v[NUMBERS]) ? 0 : py_arg_wrong(a, NUMBERS, "a dict of numbers of updates.def");
}

/* arrays[i * DT_UPDATE_ARRAYS + k] of the n arrays in tuple. */
static int
read_arrays(const py_args *a, int parameter, PyObject *tuple, Py_ssize_t n, int k, dt_array *arrays)
{
    if (!PyTuple_Check(tuple) || PyTuple_GET_SIZE(tuple) != n) {
        return py_arg_wrong(a, parameter, "a tuple with an entry for each parameter");
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *entry = PyTuple_GET_ITEM(tuple, i);
        if (!py_is_array(entry)) {
            PyErr_Format(PyExc_TypeError, "%s(): argument '%s' must hold DeviceArrays, but entry %zd is %s", a->op,
                         a->spec->names[parameter], i, Py_TYPE(entry)->tp_name);
            return -1;
        }
        dt_array_copy_handle(py_array_of(entry), &arrays[i * DT_UPDATE_ARRAYS + k]);
    }
    return 0;
}

static int
read_entries(const py_args *a, int nstates, Py_ssize_t n, dt_update_entry *entries, dt_array *arrays)
{
    if (!PyTuple_Check(a->v[STATES]) || PyTuple_GET_SIZE(a->v[STATES]) != nstates) {
        return py_arg_wrong(a, STATES, "a tuple with an entry for each state of the rule");
    }
    if (read_arrays(a, PARAMS, a->v[PARAMS], n, DT_UPDATE_PARAM, arrays) < 0 ||
        read_arrays(a, GRADS, a->v[GRADS], n, DT_UPDATE_GRAD, arrays) < 0) {
        return -1;
    }
    for (int k = 0; k < nstates; k++) {
        if (read_arrays(a, STATES, PyTuple_GET_ITEM(a->v[STATES], k), n, DT_UPDATE_STATE + k, arrays) < 0) {
            return -1;
        }
    }
    if (!PyTuple_Check(a->v[PLACES]) || PyTuple_GET_SIZE(a->v[PLACES]) != n) {
        return py_arg_wrong(a, PLACES, "a tuple with an entry for each parameter");
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        entries[i].place = (int)PyLong_AsLong(PyTuple_GET_ITEM(a->v[PLACES], i));
        for (int k = 0; k < DT_UPDATE_STATE + nstates; k++) {
            entries[i].array[k] = &arrays[i * DT_UPDATE_ARRAYS + k];
        }
    }
    return PyErr_Occurred() ? -1 : 0;
}

static bool
is_much(const dt_update_entry *entries, Py_ssize_t n)
{
    int64_t numel = 0;
    for (Py_ssize_t i = 0; i < n; i++) {
        numel += dt_array_numel(entries[i].array[DT_UPDATE_PARAM]);
    }
    return numel > PY_LARGE;
}

/* Errors say whose array it was: the caller's, not the handle's. */
static void
name_callers(const py_args *a, const dt_array *arrays, Py_ssize_t n, dt_error *err)
{
    for (int i = 0; i < err->noperands; i++) {
        const size_t at = (err->operands[i].identity - (uintptr_t)arrays) / sizeof(*arrays);
        if (at >= (size_t)n * DT_UPDATE_ARRAYS) {
            continue; /* a copy's */
        }
        const Py_ssize_t entry = (Py_ssize_t)(at / DT_UPDATE_ARRAYS);
        const int k = (int)(at % DT_UPDATE_ARRAYS);
        PyObject *tuple = k == DT_UPDATE_PARAM  ? a->v[PARAMS]
                          : k == DT_UPDATE_GRAD ? a->v[GRADS]
                                                : PyTuple_GET_ITEM(a->v[STATES], k - DT_UPDATE_STATE);
        err->operands[i].identity = (uintptr_t)py_array_of(PyTuple_GET_ITEM(tuple, entry));
    }
}

/* The handles keep the memory while the GIL is away, should somebody move a parameter meanwhile. */
static PyObject *
py__update(PY_PARAMS)
{
    PY_PARSE(_update)
    dt_update_rule rule;
    int nstates;
    double number[DT_NNUMBERS];
    if (find_rule(&a, &rule, &nstates) < 0 || read_numbers(&a, number) < 0) {
        return NULL;
    }
    if (!PyTuple_Check(a.v[PARAMS])) {
        py_arg_wrong(&a, PARAMS, "a tuple of DeviceArrays");
        return NULL;
    }
    const Py_ssize_t n = PyTuple_GET_SIZE(a.v[PARAMS]);
    PyObject *result = NULL;
    dt_update_entry *entries = PyMem_Calloc((size_t)n + 1, sizeof(*entries));
    dt_array *arrays = PyMem_Calloc((size_t)n * DT_UPDATE_ARRAYS + 1, sizeof(*arrays));
    if (entries == NULL || arrays == NULL) {
        PyErr_NoMemory();
    } else if (read_entries(&a, nstates, n, entries, arrays) == 0) {
        dt_error err;
        dt_status status;
        PY_CALL(is_much(entries, n), status, dt_update_params(a.op, rule, number, (int)n, entries, &err));
        if (status == DT_OK) {
            result = Py_NewRef(Py_None);
        } else {
            name_callers(&a, arrays, n, &err);
            py_raise_args(&a, &err);
        }
    }
    for (Py_ssize_t i = 0; arrays != NULL && i < n * DT_UPDATE_ARRAYS; i++) {
        dt_array_clear(&arrays[i]);
    }
    PyMem_Free(arrays);
    PyMem_Free(entries);
    return result;
}

PyMethodDef py_update_functions[] = {
    PY_HIDDEN(_update, "Changes parameters and states by a rule of updates.def, in place."), PY_END};
PyMethodDef py_update_methods[] = {PY_END};
