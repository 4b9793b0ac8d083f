/* errors.c: a dt_error becomes an exception of devtensor._errors. */
#include "as_torch.h"

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
    case DT_EARGUMENT:
        return "ValueError";
    case DT_EINDEX:
        return "IndexError";
    case DT_ENODEVICE:
        return "DeviceNotAvailableError";
    case DT_EHOSTACCESS:
        return "HostAccessError";
    case DT_EFORBIDDEN:
        return "TransferForbiddenError";
    case DT_ENOMEM:
        return "MemoryError";
    case DT_EOUTOFMEMORY:
        return "OutOfMemoryError";
    case DT_ECUDA:
        return "CudaError";
    case DT_ENOTIMPL:
        return "NotImplementedError";
    case DT_EKERNEL:
        return "KernelArgumentError";
    case DT_EGRAD:
        return "GradientError";
    default:
        return "RuntimeError";
    }
}

/* The object among operands, or in a tuple among them, whose array has this identity. */
static PyObject *
find_object(uintptr_t identity, PyObject *const *operands, Py_ssize_t n)
{
    for (Py_ssize_t i = 0; i < n; i++) {
        if (operands[i] == NULL) {
            continue;
        }
        if (py_is_array(operands[i]) && (uintptr_t)py_array_of(operands[i]) == identity) {
            return operands[i];
        }
        if (PyTuple_CheckExact(operands[i])) {
            PyObject *found =
                find_object(identity, ((PyTupleObject *)operands[i])->ob_item, PyTuple_GET_SIZE(operands[i]));
            if (found != NULL) {
                return found;
            }
        }
    }
    return NULL;
}

/* (name, shape, dtype, device, steps, object) */
static PyObject *
operand_tuple(py_state *state, const dt_error_operand *operand, PyObject *const *objects, Py_ssize_t nobjects)
{
    PyObject *object = find_object(operand->identity, objects, nobjects);
    if (object == NULL && nobjects > 0 && strcmp(operand->name, "input") == 0 && objects[0] != NULL &&
        py_is_array(objects[0])) {
        object = objects[0]; /* x[i] = y: the operand is the part of x that is written */
    }
    PyObject *name = operand->index < 0 ? PyUnicode_FromString(operand->name)
                                        : PyUnicode_FromFormat("%s[%d]", operand->name, operand->index);
    PyObject *shape = py_shape_tuple(operand->ndim, operand->shape);
    PyObject *device = operand->device.type == 0 ? Py_NewRef(Py_None) : py_device_object(state, operand->device);
    PyObject *steps = object == NULL ? PyTuple_New(0) : py_step_list(state, object);
    if (name == NULL || shape == NULL || device == NULL || steps == NULL) {
        Py_XDECREF(name);
        Py_XDECREF(shape);
        Py_XDECREF(device);
        Py_XDECREF(steps);
        return NULL;
    }
    return Py_BuildValue("NNNNNO", name, shape, py_dtype_object(state, (dt_dtype)operand->dtype), device, steps,
                         object == NULL ? Py_None : object);
}

static dt_error_operand
described(const char *name, int index, PyObject *array)
{
    return dt_describe_operand(&(dt_operand){name, py_array_of(array), index});
}

/* What must not be moved: the core may have been at a temporary of its own. */
static dt_error
with_moved(const dt_error *err, const char *op, PyObject *const *objects, Py_ssize_t nobjects)
{
    dt_error more = *err;
    int at = op != NULL && strcmp(op, "copy_") == 0;
    if (at < nobjects && objects[at] != NULL && py_is_array(objects[at]) && py_array_of(objects[at])->storage != NULL) {
        more.operands[0] = described(at == 0 ? "input" : "src", -1, objects[at]);
        more.noperands = 1;
        more.culprit = 0;
    }
    return more;
}

static const char *const usual_names[] = {"input", "other"};

/* Adds operand, which is consumed, to list. */
static int
add(PyObject *list, PyObject *operand)
{
    int rc = operand == NULL ? -1 : PyList_Append(list, operand);
    Py_XDECREF(operand);
    return rc;
}

#define MOST_ENTRIES 8 /* of a tuple of arrays */

static int
add_entries(py_state *state, PyObject *list, PyObject *tuple)
{
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(tuple) && k < MOST_ENTRIES; k++) {
        PyObject *entry = PyTuple_GET_ITEM(tuple, k);
        if (py_is_array(entry)) {
            dt_error_operand one = described("tensors", (int)k, entry);
            if (add(list, operand_tuple(state, &one, &entry, 1)) < 0) {
                return -1;
            }
        }
    }
    return 0;
}

/* The arrays among objects, also those in tuples, as operands; names may be shorter than objects. What stands at wrong
 * (-1: nothing) comes along whatever it is, as *culprit of the operands. */
static PyObject *
all_operands(py_state *state, const char *const *names, PyObject *const *objects, Py_ssize_t n, Py_ssize_t wrong,
             int *culprit)
{
    PyObject *list = PyList_New(0);
    *culprit = -1;
    for (Py_ssize_t i = 0; list != NULL && i < n && names[i] != NULL; i++) {
        PyObject *object = objects[i];
        int rc = 0;
        if (object == NULL) {
            continue;
        }
        *culprit = i == wrong ? (int)PyList_GET_SIZE(list) : *culprit;
        if (py_is_array(object) && py_array_of(object)->storage != NULL) {
            dt_error_operand one = described(names[i], -1, object);
            rc = add(list, operand_tuple(state, &one, objects, n));
        } else if (i == wrong) {
            rc = add(list, Py_BuildValue("s()OO()O", names[i], Py_None, Py_None, object));
        } else if (PyTuple_CheckExact(object)) {
            rc = add_entries(state, list, object);
        }
        if (rc < 0) {
            Py_CLEAR(list);
        }
    }
    PyObject *operands = list == NULL ? NULL : PyList_AsTuple(list);
    Py_XDECREF(list);
    return operands;
}

/* The operands that err names; where it names none, all arrays. */
static PyObject *
operands_of(py_state *state, const dt_error *err, const char *const *names, PyObject *const *objects,
            Py_ssize_t nobjects)
{
    int ignored;
    if (err->noperands == 0) {
        Py_ssize_t known = names != usual_names ? PY_MAX_ARGS : (Py_ssize_t)Py_ARRAY_LENGTH(usual_names);
        return all_operands(state, names, objects, nobjects < known ? nobjects : known, -1, &ignored);
    }
    PyObject *operands = PyTuple_New(err->noperands);
    for (int i = 0; operands != NULL && i < err->noperands; i++) {
        PyObject *operand = operand_tuple(state, &err->operands[i], objects, nobjects);
        if (operand == NULL) {
            Py_CLEAR(operands);
        } else {
            PyTuple_SET_ITEM(operands, i, operand);
        }
    }
    return operands;
}

/* op: the public name, for errors that came from where it is not known; names those of objects; about: what else the
 * explanation looks at, or NULL. */
static PyObject *
raise_in(py_state *state, const char *op, const dt_error *err, const char *const *names, PyObject *const *objects,
         Py_ssize_t nobjects, PyObject *about)
{
    if (err->status == DT_EFRONT && PyErr_Occurred()) { /* of a function that the op has called */
        return NULL;
    }
    if (err->status == DT_ENOMEM) {
        PyErr_SetString(PyExc_MemoryError, err->message);
        return NULL;
    }
    dt_error more;
    if (err->status == DT_EFORBIDDEN) {
        more = with_moved(err, op, objects, nobjects);
        err = &more;
    } else if (err->place != 0) {
        more = *err;
        py_late_explain(&more);
        err = &more;
    }
    PyObject *operands = operands_of(state, err, names, objects, nobjects);
    PyObject *build = NULL, *exception = NULL, *device = NULL;
    /* it may quote bytes that are no text, or be cut off within a character */
    PyObject *message = PyUnicode_DecodeUTF8(err->message, (Py_ssize_t)strlen(err->message), "backslashreplace");
    if (operands == NULL || message == NULL || (build = py_errors_get(state, "_build")) == NULL) {
        goto done;
    }
    bool names_device = (err->status == DT_ECUDA || err->status == DT_EOUTOFMEMORY) && err->device.type != 0;
    device = names_device ? py_device_object(state, err->device) : Py_NewRef(Py_None);
    if (device == NULL) {
        goto done;
    }
    if (about == NULL) { /* what met a DeviceArray and is none */
        about = nobjects == 2 && objects[1] != NULL && py_is_ndarray(objects[1]) ? objects[1] : Py_None;
    }
    exception = PyObject_CallFunction(build, "sOzzOizinO", class_name(err->status), message, err->op ? err->op : op,
                                      err->code, operands, err->culprit, err->symbol, err->library_status,
                                      (Py_ssize_t)err->requested, about);
    if (exception != NULL && PyObject_SetAttrString(exception, "device", device) == 0) {
        PyErr_SetObject((PyObject *)Py_TYPE(exception), exception);
    }
done:
    Py_XDECREF(operands);
    Py_XDECREF(message);
    Py_XDECREF(build);
    Py_XDECREF(exception);
    Py_XDECREF(device);
    return NULL;
}

PyObject *
py_raise(py_state *state, const dt_error *err, PyObject *const *objects, Py_ssize_t nobjects)
{
    return raise_in(state, NULL, err, usual_names, objects, nobjects, NULL);
}

PyObject *
py_raise_about(py_state *state, const dt_error *err, PyObject *const *objects, Py_ssize_t nobjects, PyObject *about)
{
    return raise_in(state, NULL, err, usual_names, objects, nobjects, about);
}

PyObject *
py_raise_args(const py_args *a, const dt_error *err)
{
    return raise_in(a->state, a->op, err, a->spec->names, a->v, PY_MAX_ARGS, NULL);
}

static DT_NOINLINE PyObject *
fail(PyObject *result, const dt_error *err, PyObject *const *operands, Py_ssize_t noperands)
{
    /* what is written in place has the name of what made it */
    const py_step *step = py_array_of(result)->storage == NULL ? ((py_array *)result)->step : NULL;
    raise_in(py_state_of(result), step != NULL ? step->action : NULL, err, usual_names, operands, noperands, NULL);
    Py_DECREF(result);
    return NULL;
}

PyObject *
py_finish(PyObject *result, dt_status status, const dt_error *err, PyObject *const *operands, Py_ssize_t noperands)
{
    return DT_UNLIKELY(status != DT_OK) ? fail(result, err, operands, noperands)
                                        : py_step_link(result, operands, noperands);
}

PyObject *
py_fail_args(const py_args *a, PyObject *result, const dt_error *err)
{
    py_raise_args(a, err);
    Py_DECREF(result);
    return NULL;
}

/* ---------------------------------------------------------------- refusals of the front */

static dt_error
refusal(dt_status status, const char *code, const char *op, const char *format, va_list args)
{
    char message[512];
    PyOS_vsnprintf(message, sizeof(message), format, args);
    dt_error err;
    dt_fail(&err, status, code, op, "%s", message);
    return err;
}

PyObject *
py_refuse_grad(PyObject *array, const char *code, const char *op, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    dt_error err = refusal(DT_EGRAD, code, op, format, args);
    va_end(args);
    const dt_operand about = {"input", py_array_of(array), -1};
    err.operands[0] = dt_describe_operand(&about);
    err.noperands = 1;
    err.culprit = 0;
    return py_raise(py_state_of(array), &err, &array, 1);
}

PyObject *
py_refuse(py_state *state, dt_status status, const char *code, const char *op, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    dt_error err = refusal(status, code, op, format, args);
    va_end(args);
    return py_raise(state, &err, NULL, 0);
}

PyObject *
py_refuse_args(const py_args *a, dt_status status, const char *code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    dt_error err = refusal(status, code, a->op, format, args);
    va_end(args);
    return py_raise_args(a, &err);
}

/* A refusal that one array explains. */
static PyObject *
refuse_array(py_state *state, const char *code, const char *op, const char *name, PyObject *array, PyObject *other,
             const char *message)
{
    dt_error err;
    dt_fail(&err, DT_EHOSTACCESS, code, op, "%s", message);
    err.operands[0] = described(name, -1, array);
    err.noperands = 1;
    err.culprit = 0;
    PyObject *objects[] = {array, other};
    return py_raise(state, &err, objects, 2);
}

PyObject *
py_refuse_numpy(py_state *state, const char *op, const char *name, PyObject *array, PyObject *ndarray)
{
    char message[256];
    PyOS_snprintf(message, sizeof(message),
                  "%s: NumPy's numpy.ndarray and DeviceArray do not mix; convert one of them: "
                  "devtensor.from_numpy(a), or x.cpu().numpy()",
                  op);
    return refuse_array(state, "numpy-operand", op, name, array, ndarray, message);
}

/* Libraries whose arrays an operator refuses by name: Python would compare them by identity. */
static const char *
library_of(PyObject *object)
{
    static const char *const names[] = {"torch", "cupy", "jax", "jaxlib", "tensorflow"};
    PyObject *module = PyObject_GetAttrString((PyObject *)Py_TYPE(object), "__module__");
    const char *text = module != NULL && PyUnicode_Check(module) ? PyUnicode_AsUTF8(module) : NULL, *found = NULL;
    for (size_t i = 0; text != NULL && i < Py_ARRAY_LENGTH(names); i++) {
        size_t n = strlen(names[i]);
        found = strncmp(text, names[i], n) == 0 && (text[n] == '.' || text[n] == '\0') ? names[i] : found;
    }
    Py_XDECREF(module);
    PyErr_Clear();
    return found != NULL && PyObject_HasAttrString((PyObject *)Py_TYPE(object), "__dlpack__") ? found : NULL;
}

PyObject *
py_refuse_foreign(const char *op, const char *name, PyObject *array, PyObject *other)
{
    if (py_is_ndarray(other) && py_as_torch) {
        Py_RETURN_NOTIMPLEMENTED; /* NumPy's operator is next, which asks __array_ufunc__ */
    }
    if (py_is_ndarray(other)) {
        return py_refuse_numpy(py_state_of(array), op, name, array, other);
    }
    const char *library = library_of(other);
    if (library == NULL) {
        Py_RETURN_NOTIMPLEMENTED;
    }
    return PyErr_Format(
        PyExc_TypeError,
        "%s: an array of %s and a DeviceArray do not mix; convert one of them: devtensor.from_dlpack(t), "
        "or %s.from_dlpack(x)",
        op, library, library);
}

PyObject *
py_refuse_host_access(py_state *state, const char *op, PyObject *array)
{
    char message[256], text[DT_DEVICE_TEXT];
    PyOS_snprintf(
        message, sizeof(message),
        "can't convert %s device type tensor to numpy. Use .cpu() to copy the tensor to host memory first. (%s)",
        dt_device_text(dt_array_device(py_array_of(array)), text), op);
    return refuse_array(state, "host-access", op, "input", array, NULL, message);
}

/* ---------------------------------------------------------------- exceptions of Python's own classes */

void
py_annotate(py_state *state, PyObject *exception, const char *code, const char *op, const char *const *names,
            PyObject *const *objects, Py_ssize_t n, Py_ssize_t wrong)
{
    int culprit;
    PyObject *operands = all_operands(state, names, objects, n, wrong, &culprit), *function = NULL, *answer = NULL;
    if (operands != NULL && PyTuple_GET_SIZE(operands) > 0 && (function = py_errors_get(state, "_annotate")) != NULL) {
        answer = PyObject_CallFunction(function, "OssOi", exception, op, code, operands, culprit);
    }
    if (PyErr_Occurred()) {
        PyErr_Clear(); /* exception is what counts */
    }
    Py_XDECREF(operands);
    Py_XDECREF(function);
    Py_XDECREF(answer);
}

/* The same for the pending exception, unless code of the caller's raised it that was asked something. */
static void
explain(py_state *state, const char *code, const char *op, const char *const *names, PyObject *const *objects,
        Py_ssize_t n, Py_ssize_t wrong)
{
    PyObject *type, *exception, *traceback;
    PyErr_Fetch(&type, &exception, &traceback);
    if (traceback == NULL) {
        PyErr_NormalizeException(&type, &exception, &traceback);
        PyObject *before = PyException_GetTraceback(exception);
        if (before == NULL) {
            py_annotate(state, exception, code, op, names, objects, n, wrong);
        }
        Py_XDECREF(before);
    }
    PyErr_Restore(type, exception, traceback);
}

int
py_explain_args(const py_args *a, int wrong)
{
    explain(a->state, "invalid-argument", a->op, a->spec->names, a->v, PY_MAX_ARGS, wrong);
    return -1;
}

PyObject *
py_explain(PyObject *array, const char *code, const char *op)
{
    explain(py_state_of(array), code, op, usual_names, &array, 1, -1);
    return NULL;
}
