/* saved_hooks.c: functions of the user's that nodes hand what they keep to, and ask for it
 * (devtensor.autograd.graph.saved_tensors_hooks); and what hooks of several arrays ask of the run that they are in. */
#include "../../core/check/check.h"
#include "grad.h"

/* Calls devtensor.autograd.graph.name with nothing recorded; steals arguments. NULL: an exception. */
static PyObject *
call(const char *name, PyObject *arguments)
{
    const uint8_t was_off = dt_grad_off;
    dt_grad_off = DT_GRAD_OFF_BY_USER;
    PyObject *module = PyImport_ImportModule("devtensor.autograd.graph"), *answer = NULL;
    PyObject *function = module == NULL ? NULL : PyObject_GetAttrString(module, name);
    if (function != NULL && arguments != NULL) {
        answer = PyObject_CallObject(function, arguments);
    }
    Py_XDECREF(function);
    Py_XDECREF(module);
    Py_XDECREF(arguments);
    dt_grad_off = was_off;
    return answer;
}

/* A DeviceArray that no gradient flows to for each array that node keeps, None for a number. */
static PyObject *
kept_arrays(const dt_node *node, dt_error *err)
{
    PyObject *arrays = PyTuple_New(node->nkept);
    for (int k = 0; arrays != NULL && k < node->nkept; k++) {
        const dt_array x = dt_node_kept(node, k);
        PyObject *array = x.storage == NULL ? Py_NewRef(Py_None)
                                            : py_array_new(py_grad_state_module->array_type, "saved_tensors_hooks");
        if (array != NULL && x.storage != NULL && dt_detach(&x, py_array_of(array), err) != DT_OK) {
            Py_CLEAR(array);
            PyErr_NoMemory();
        }
        if (array == NULL) {
            Py_CLEAR(arrays);
        } else {
            PyTuple_SET_ITEM(arrays, k, array);
        }
    }
    return arrays;
}

static dt_status
failed(dt_error *err)
{
    (void)dt_fail(err, DT_EFRONT, "function", "saved_tensors_hooks", "a function raised an exception");
    return DT_EFRONT;
}

dt_status
py_grad_pack(dt_node *node, dt_error *err)
{
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *arrays = kept_arrays(node, err);
    node->packed = call("_pack", arrays == NULL ? NULL : Py_BuildValue("(N)", arrays));
    const dt_status rc = node->packed == NULL ? failed(err) : DT_OK;
    PyGILState_Release(gil);
    return rc;
}

dt_status
py_grad_unpack(dt_node *node, int k, dt_array *out, dt_error *err)
{
    const dt_kept *kept = &node->kept[k];
    PyObject *shape = py_shape_tuple(kept->ndim, kept->dims);
    PyObject *dtype = py_dtype_object(py_grad_state_module, (dt_dtype)kept->dtype);
    PyObject *arguments = shape == NULL || dtype == NULL ? NULL : Py_BuildValue("OiNN", node->packed, k, shape, dtype);
    const bool ours = py_engine_is_ours();
    const int at = ours ? py_engine_pause() : 0;
    PyObject *array = call("_unpack", arguments);
    if (ours) {
        py_engine_resume(at);
    }
    if (array == NULL) {
        return failed(err);
    }
    dt_array_copy_handle(py_array_of(array), out); /* checked there: an array of this shape and dtype */
    out->node = NULL;
    Py_DECREF(array);
    return DT_OK;
}

/* Whether new nodes of this thread hand over what they keep; gives what it was. */
static PyObject *
py__pack_saved(PY_PARAMS)
{
    PY_PARSE(_pack_saved)
    const bool was = dt_packs_kept;
    return py_arg_bool(&a, 0, &dt_packs_kept) < 0 ? NULL : PyBool_FromLong(was);
}

/* The number of the backward that works, 0 for none, and whether it will give a gradient to array. */
static PyObject *
py__backward_of(PY_PARAMS)
{
    PY_PARSE(_backward_of)
    if (py_arg_array(&a, 0) == NULL) {
        return NULL;
    }
    const dt_node *node = py_node_of(a.v[0]);
    return Py_BuildValue("KN", py_backward_now(), PyBool_FromLong(node != NULL && dt_node_is_needed(node)));
}

/* The node of array, that of a leaf too; None where there is none. */
static PyObject *
py__node_of(PY_PARAMS)
{
    PY_PARSE(_node_of)
    if (py_arg_array(&a, 0) == NULL || py_node_refresh(a.v[0]) < 0) {
        return NULL;
    }
    return py_node_object(a.state, py_node_of(a.v[0]));
}

/* As if somebody had written to the memory of array. */
static PyObject *
py__increment_version(PY_PARAMS)
{
    PY_PARSE(_increment_version)
    const dt_array *x = py_arg_array(&a, 0);
    if (x == NULL) {
        return NULL;
    }
    if (x->storage != NULL) {
        dt_written(x);
    }
    Py_RETURN_NONE;
}

PyMethodDef py_saved_hooks_functions[] = {
    PY_HIDDEN(_pack_saved, "Whether new nodes hand over what they keep; gives what it was."),
    PY_HIDDEN(_backward_of, "Which backward works, and whether it gives a gradient to an array."),
    PY_HIDDEN(_node_of, "The node of an array, that of a leaf too."),
    PY_HIDDEN(_increment_version, "Says that the memory of an array was written to."),
    PY_END,
};

PyMethodDef py_saved_hooks_methods[] = {PY_END};
