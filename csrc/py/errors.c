/* errors.c: a dt_error becomes an exception of devtensor._errors. */
#include "py.h"

#include <stdarg.h>

PyObject *
py_errors_get(py_state *state, const char *name)
{
    if (state->errors == NULL) {
        state->errors = PyImport_ImportModule("devtensor._errors");
        if (state->errors == NULL) {
            return NULL;
        }
    }
    return py_attribute(state->errors, name);
}

static const char *
class_name(dt_status status)
{
    switch (status) {
    case DT_EDEVICE:
        return "DeviceMismatchError";
    case DT_EDTYPE:
        return "DTypeMismatchError";
    case DT_ESHAPE:
        return "ShapeMismatchError";
    case DT_EINDEX:
        return "IndexError";
    case DT_ENODEVICE:
        return "DeviceNotAvailableError";
    case DT_EHOSTACCESS:
        return "HostAccessError";
    case DT_ENOMEM:
        return "MemoryError";
    case DT_EOUTOFMEMORY:
        return "OutOfMemoryError";
    case DT_ECUDA:
        return "CudaError";
    case DT_ENOTIMPL:
        return "NotImplementedError";
    default:
        return "RuntimeError";
    }
}

/* The object among operands, or in a tuple among them, that holds array. */
static PyObject *
find_object(const dt_array *array, PyObject *const *operands, Py_ssize_t n)
{
    for (Py_ssize_t i = 0; i < n; i++) {
        if (operands[i] == NULL) {
            continue;
        }
        if (py_is_array(operands[i]) && py_array_of(operands[i]) == array) {
            return operands[i];
        }
        if (PyTuple_CheckExact(operands[i])) {
            PyObject *found =
                find_object(array, ((PyTupleObject *)operands[i])->ob_item, PyTuple_GET_SIZE(operands[i]));
            if (found != NULL) {
                return found;
            }
        }
    }
    return NULL;
}

/* (name, shape, dtype, device, origin) */
static PyObject *
operand_tuple(py_state *state, const dt_operand *operand, PyObject *const *objects, Py_ssize_t nobjects)
{
    const dt_array *array = operand->array;
    PyObject *object = find_object(array, objects, nobjects);
    PyObject *name = operand->index < 0 ? PyUnicode_FromString(operand->name)
                                        : PyUnicode_FromFormat("%s[%d]", operand->name, operand->index);
    PyObject *shape = py_shape_tuple(array->ndim, array->shape);
    PyObject *device = array->storage == NULL ? Py_NewRef(Py_None) : py_device_object(state, dt_array_device(array));
    PyObject *origin = object == NULL ? Py_NewRef(Py_None) : py_origin_resolve(state, &((py_array *)object)->origin);
    if (name == NULL || shape == NULL || device == NULL || origin == NULL) {
        Py_XDECREF(name);
        Py_XDECREF(shape);
        Py_XDECREF(device);
        Py_XDECREF(origin);
        return NULL;
    }
    return Py_BuildValue("NNNNN", name, shape, py_dtype_object(state, (dt_dtype)array->dtype), device, origin);
}

PyObject *
py_raise(py_state *state, const dt_error *err, PyObject *const *objects, Py_ssize_t nobjects)
{
    if (err->status == DT_ENOMEM) {
        PyErr_SetString(PyExc_MemoryError, err->message);
        return NULL;
    }
    PyObject *operands = PyTuple_New(err->noperands), *build = NULL, *exception = NULL, *device = NULL;
    for (int i = 0; operands != NULL && i < err->noperands; i++) {
        PyObject *operand = operand_tuple(state, &err->operands[i], objects, nobjects);
        if (operand == NULL) {
            goto done;
        }
        PyTuple_SET_ITEM(operands, i, operand);
    }
    if (operands == NULL || (build = py_errors_get(state, "_build")) == NULL) {
        goto done;
    }
    bool names_device = (err->status == DT_ECUDA || err->status == DT_EOUTOFMEMORY) && err->device.type != 0;
    device = names_device ? py_device_object(state, err->device) : Py_NewRef(Py_None);
    if (device == NULL) {
        goto done;
    }
    exception =
        PyObject_CallFunction(build, "sszzOizin", class_name(err->status), err->message, err->op, err->code, operands,
                              err->culprit, err->symbol, err->library_status, (Py_ssize_t)err->requested);
    if (exception != NULL && PyObject_SetAttrString(exception, "device", device) == 0) {
        PyErr_SetObject((PyObject *)Py_TYPE(exception), exception);
    }
done:
    Py_XDECREF(operands);
    Py_XDECREF(build);
    Py_XDECREF(exception);
    Py_XDECREF(device);
    return NULL;
}

PyObject *
py_raise_args(const py_args *a, const dt_error *err)
{
    return py_raise(a->state, err, a->v, PY_MAX_ARGS);
}

PyObject *
py_finish(PyObject *result, dt_status status, const dt_error *err, PyObject *const *operands, Py_ssize_t noperands)
{
    if (status == DT_OK) {
        return result;
    }
    py_state *state = py_state_of(result);
    py_raise(state, err, operands, noperands);
    Py_DECREF(result);
    return NULL;
}

PyObject *
py_refuse(py_state *state, dt_status status, const char *code, const char *op, const char *format, ...)
{
    char message[512];
    va_list args;
    va_start(args, format);
    PyOS_vsnprintf(message, sizeof(message), format, args);
    va_end(args);
    dt_error err;
    dt_fail(&err, status, code, op, "%s", message);
    return py_raise(state, &err, NULL, 0);
}

PyObject *
py_refuse_numpy(py_state *state, const char *op)
{
    return py_refuse(state, DT_EHOSTACCESS, "numpy-operand", op,
                     "%s: NumPy's numpy.ndarray and DeviceArray do not mix; convert one of them: "
                     "devtensor.from_numpy(a), or x.cpu().numpy()",
                     op);
}

PyObject *
py_refuse_host_access(py_state *state, const char *op, const dt_array *x)
{
    char text[DT_DEVICE_TEXT];
    return py_refuse(
        state, DT_EHOSTACCESS, "host-access", op,
        "can't convert %s device type tensor to numpy. Use .cpu() to copy the tensor to host memory first. (%s)",
        dt_device_text(dt_array_device(x), text), op);
}
