/* report.c: what the report of `python -m devtensor run` is told of training programs (devtensor._diagnosis.report). */
#include "grad.h"

#include <math.h>

bool py_training_watched; /* the GIL guards it */

/* Calls a function there, whose failure is nobody's business; arguments: taken over. */
static void
tell(const char *function, PyObject *arguments)
{
    PyObject *error_type, *error, *trace;
    PyErr_Fetch(&error_type, &error, &trace);
    PyObject *report = arguments == NULL ? NULL : PyImport_ImportModule("devtensor._diagnosis.report");
    PyObject *told = report == NULL ? NULL : PyObject_GetAttrString(report, function);
    PyObject *answer = told == NULL ? NULL : PyObject_CallObject(told, arguments);
    Py_XDECREF(arguments);
    Py_XDECREF(report);
    Py_XDECREF(told);
    Py_XDECREF(answer);
    PyErr_Restore(error_type, error, trace);
}

void
py_leaf_reached(const dt_node *leaf)
{
    const py_step *made = leaf->place;
    if (made != NULL && made->code != NULL && PyCode_Check(made->code) && strcmp(made->action, "Parameter") == 0) {
        tell("reached", Py_BuildValue("K(Oi)", (unsigned long long)leaf->order, made->code, made->instruction));
    }
}

void
py_number_read(const char *op, PyObject *array, const dt_scalar *value)
{
    if (DT_UNLIKELY(py_training_watched) && value->kind == DT_CATEGORY_FLOAT && !isfinite(value->f) &&
        dt_wants_grad(py_array_of(array))) {
        tell("not_finite", Py_BuildValue("sOd", op, array, value->f));
    }
}

static PyObject *
py__watch_training(PY_PARAMS)
{
    PY_PARSE(_watch_training)
    return py_arg_bool(&a, 0, &py_training_watched) < 0 ? NULL : Py_NewRef(Py_None);
}

PyMethodDef py_report_functions[] = {
    PY_HIDDEN(_watch_training, "Whether devtensor._diagnosis.report is told of leaves and numbers."),
    PY_END,
};

PyMethodDef py_report_methods[] = {PY_END};
