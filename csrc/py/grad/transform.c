/* transform.c: calls of functions that dt.func transforms, which may not write to what was there before. */
#include "../py.h"

/* Begins a transform: arrays, a list, are its own, unless one around it may not write to them either. What leaves it.
 */
static PyObject *
py__enter_transform(PY_PARAMS)
{
    PY_PARSE(_enter_transform)
    bool maps = false;
    if (!PyList_Check(a.v[0])) {
        return PyErr_Format(PyExc_TypeError, "_enter_transform(): a list is needed");
    }
    if (py_arg_bool(&a, 1, &maps) < 0) {
        return NULL;
    }
    const dt_transform before = dt_transform_enter(maps);
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(a.v[0]); i++) {
        PyObject *array = PyList_GET_ITEM(a.v[0], i);
        if (py_is_array(array) && py_array_of(array)->storage != NULL) {
            dt_transform_admit(&before, py_array_of(array)->storage);
        }
    }
    return Py_BuildValue("Ki", (unsigned long long)before.began, (int)before.maps);
}

static PyObject *
py__leave_transform(PY_PARAMS)
{
    PY_PARSE(_leave_transform)
    unsigned long long began;
    int maps;
    if (!PyArg_ParseTuple(a.v[0], "Ki", &began, &maps)) {
        return NULL;
    }
    dt_transform_here.began = began;
    dt_transform_here.maps = maps;
    Py_RETURN_NONE;
}

PyMethodDef py_transform_functions[] = {
    PY_HIDDEN(_enter_transform, "Begins a transform of a function, which may not write to what was there before."),
    PY_HIDDEN(_leave_transform, "Goes back to what _enter_transform gave."),
    PY_END,
};

PyMethodDef py_transform_methods[] = {PY_END};
