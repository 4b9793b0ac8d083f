/* print_options.c: how arrays are written, for the whole process; guarded by the GIL. */
#include "../py.h"

#include <math.h>

#define MAX_PRECISION 100

static const py_print_options profiles[] = {
    {.precision = 4, .threshold = 1000, .edgeitems = 3, .linewidth = 80, .sci_mode = -1},
    {.precision = 2, .threshold = 1000, .edgeitems = 2, .linewidth = 80, .sci_mode = -1},
    {.precision = 4, .threshold = INT64_MAX, .edgeitems = 3, .linewidth = 80, .sci_mode = -1},
};
static const char *const profile_names[] = {"default", "short", "full"};

static py_print_options current = {.precision = 4, .threshold = 1000, .edgeitems = 3, .linewidth = 80, .sci_mode = -1};

py_print_options
py_print_options_now(void)
{
    return current;
}

/* ---------------------------------------------------------------- setting */

/* Parameter i, a number from 0 to most; out stays as it is for None. */
static int
arg_number(const py_args *a, int i, int64_t most, int64_t *out)
{
    int64_t value = 0;
    if (!py_given(a->v[i])) {
        return 0;
    }
    if (py_arg_int(a, i, &value) < 0) {
        return -1;
    }
    if (value < 0 || value > most) {
        py_refuse(a->state, DT_EVALUE, "invalid-argument", a->op, "%s expects %s from 0 to %lld, but got %lld", a->op,
                  a->spec->names[i], (long long)most, (long long)value);
        return -1;
    }
    *out = value;
    return 0;
}

/* The same for one that may also be infinite. */
static int
arg_threshold(const py_args *a, int i, int64_t *out)
{
    dt_scalar value;
    if (!py_given(a->v[i]) || !PyFloat_Check(a->v[i])) {
        return arg_number(a, i, INT64_MAX, out);
    }
    if (py_arg_scalar(a, i, &value) < 0) {
        return -1;
    }
    if (!(value.f >= 0)) {
        py_refuse(a->state, DT_EVALUE, "invalid-argument", a->op,
                  "%s expects threshold to be a number that is not negative", a->op);
        return -1;
    }
    *out = value.f < 0x1p63 ? (int64_t)value.f : INT64_MAX;
    return 0;
}

static int
arg_profile(const py_args *a, int i, py_print_options *out)
{
    if (!py_given(a->v[i])) {
        return 0;
    }
    for (size_t k = 0; k < sizeof(profiles) / sizeof(*profiles) && PyUnicode_Check(a->v[i]); k++) {
        if (PyUnicode_CompareWithASCIIString(a->v[i], profile_names[k]) == 0) {
            *out = profiles[k];
            return 0;
        }
    }
    PyObject *shown = py_shown(a->v[i]);
    if (shown != NULL) {
        PyErr_Format(PyExc_ValueError, "set_printoptions(): profile is \"default\", \"short\" or \"full\", not %U",
                     shown);
        Py_DECREF(shown);
    }
    return -1;
}

static PyObject *
py_set_printoptions(PY_PARAMS)
{
    PY_PARSE(set_printoptions)
    py_print_options chosen = current;
    bool scientific = false;
    if (arg_profile(&a, 4, &chosen) < 0 || arg_number(&a, 0, MAX_PRECISION, &chosen.precision) < 0 ||
        arg_threshold(&a, 1, &chosen.threshold) < 0 || arg_number(&a, 2, INT_MAX, &chosen.edgeitems) < 0 ||
        arg_number(&a, 3, INT_MAX, &chosen.linewidth) < 0 ||
        (py_given(a.v[5]) && py_arg_bool(&a, 5, &scientific) < 0)) {
        return NULL;
    }
    chosen.sci_mode = py_given(a.v[5]) ? scientific : -1;
    current = chosen;
    Py_RETURN_NONE;
}

static PyObject *
py_get_printoptions(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    (void)self;
    const py_print_options now = current;
    PyObject *threshold =
        now.threshold == INT64_MAX ? PyFloat_FromDouble(INFINITY) : PyLong_FromLongLong(now.threshold);
    PyObject *sci_mode = now.sci_mode < 0 ? Py_NewRef(Py_None) : PyBool_FromLong(now.sci_mode);
    return Py_BuildValue("{s:L,s:N,s:L,s:L,s:N}", "precision", (long long)now.precision, "threshold", threshold,
                         "edgeitems", (long long)now.edgeitems, "linewidth", (long long)now.linewidth, "sci_mode",
                         sci_mode);
}

PyMethodDef py_print_options_functions[] = {
    PY_OP(
        set_printoptions,
        "How arrays are written, for the whole process; None leaves an option as it is, but sci_mode.\n\n"
        "precision: digits after the point (4). threshold: arrays of more elements are shown by their edges (1000).\n"
        "edgeitems: how many entries of each dimension an edge has (3). linewidth: characters in a line (80).\n"
        "profile: \"default\", \"short\" or \"full\", which set these four. sci_mode: True or False writes floats with "
        "an exponent\nor without; None lets the values decide.\n"
        "Raises RuntimeError for numbers out of range, ValueError for another profile."),
    PY_GETTER(get_printoptions, "The options of set_printoptions, as a dict that it accepts."),
    PY_END,
};

PyMethodDef py_print_options_methods[] = {PY_END};
