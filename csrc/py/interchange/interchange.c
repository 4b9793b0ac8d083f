/* interchange.c: arrays from anything, and to and from NumPy without a copy. NumPy is imported when it is first needed.
 */
#include "../../core/grad/grad.h"
#include "../py.h"

#include <numpy/arrayobject.h>

static int
import_numpy(void)
{
    return PyArray_API == NULL ? PyArray_ImportNumPyAPI() : 0;
}

/* ---------------------------------------------------------------- from NumPy */

/* The dtype of descr, or -1 */
static int
find_dtype(const PyArray_Descr *descr)
{
    switch (descr->kind) {
    case 'b':
        return DT_BOOL;
    case 'u':
        return PyDataType_ELSIZE(descr) == 1 ? DT_UINT8 : -1;
    case 'i':
        switch (PyDataType_ELSIZE(descr)) {
        case 1:
            return DT_INT8;
        case 2:
            return DT_INT16;
        case 4:
            return DT_INT32;
        default:
            return DT_INT64;
        }
    case 'f':
        switch (PyDataType_ELSIZE(descr)) {
        case 2:
            return DT_FLOAT16;
        case 4:
            return DT_FLOAT32;
        case 8:
            return DT_FLOAT64;
        default:
            return -1;
        }
    default:
        return strstr(descr->typeobj->tp_name, "bfloat16") != NULL && PyDataType_ELSIZE(descr) == 2 ? DT_BFLOAT16 : -1;
    }
}

static int
fail_dtype(const char *op, PyArrayObject *array)
{
    PyErr_Format(PyExc_TypeError,
                 "%s(): can't convert np.ndarray of type %s (dtype %S). The only supported types are: float64, "
                 "float32, float16, bfloat16, int64, int32, int16, int8, uint8 and bool.",
                 op, PyArray_DESCR(array)->typeobj->tp_name, PyArray_DESCR(array));
    return -1;
}

static bool
is_masked(PyObject *object)
{
    bool masked = false;
    for (PyTypeObject *type = Py_TYPE(object); type != NULL; type = type->tp_base) {
        masked = masked || strstr(type->tp_name, "MaskedArray") != NULL;
    }
    return masked;
}

static bool
is_byte_swapped(PyArrayObject *array)
{
    return !PyArray_ISNOTSWAPPED(array);
}

/* What keeps the memory of array from being shared, or NULL. */
static const char *
obstacle(PyArrayObject *array)
{
    npy_intp itemsize = PyArray_ITEMSIZE(array);
    if (is_byte_swapped(array)) {
        return "given numpy array has byte order different from the native byte order. Conversion between byte orders "
               "is currently not "
               "supported.";
    }
    if (PyArray_SIZE(array) == 0) {
        return NULL;
    }
    for (int d = 0; d < PyArray_NDIM(array); d++) {
        npy_intp stride = PyArray_STRIDE(array, d);
        if (PyArray_DIM(array, d) == 1) {
            continue;
        }
        if (stride < 0) {
            return "At least one stride in the given numpy array is negative, and tensors with negative strides are "
                   "not currently "
                   "supported. (You can probably work around this by making a copy of your array  with array.copy().)";
        }
        if (stride % itemsize != 0) {
            return "given numpy array strides not a multiple of the element byte size. Copy the numpy array to "
                   "reallocate the memory.";
        }
    }
    if (!PyArray_ISALIGNED(array)) {
        return "given numpy array is not aligned to its element size. Copy the numpy array to reallocate the memory.";
    }
    return NULL;
}

static PyObject *
wrap(py_state *state, const char *action, PyArrayObject *array, dt_dtype dtype)
{
    dt_error err;
    dt_storage *storage;
    int64_t shape[DT_MAX_NDIM], strides[DT_MAX_NDIM], itemsize = (int64_t)dt_itemsize(dtype), last = 0, expected = 1;
    int ndim = PyArray_NDIM(array);
    bool empty = PyArray_SIZE(array) == 0;
    if (ndim > DT_MAX_NDIM) {
        return PyErr_Format(PyExc_ValueError, "%s(): arrays have at most %d dimensions, but got %d", action,
                            DT_MAX_NDIM, ndim);
    }
    for (int d = ndim - 1; d >= 0; d--) {
        shape[d] = PyArray_DIM(array, d);
        strides[d] =
            empty || shape[d] == 1 ? expected : PyArray_STRIDE(array, d) / itemsize; /* NumPy's may be anything there */
        expected = shape[d] > 1 ? shape[d] * strides[d] : expected;
        last += empty ? 0 : (shape[d] - 1) * strides[d];
    }
    unsigned flags = DT_STORAGE_FOREIGN | (PyArray_ISWRITEABLE(array) ? 0u : (unsigned)DT_STORAGE_READONLY);
    size_t nbytes = empty ? 0 : (size_t)((last + 1) * itemsize);
    PyObject *result = py_array_new(state->array_type, action);
    if (result == NULL) {
        return NULL;
    }
    dt_status status = dt_storage_wrap((dt_device){DT_CPU, 0}, PyArray_DATA(array), nbytes, flags, array,
                                       py_release_owner, &storage, &err);
    if (status == DT_OK) {
        Py_INCREF(array);
        status = dt_as_strided(storage, 0, dtype, ndim, shape, strides, py_array_of(result), &err);
        dt_storage_release(storage);
    }
    return py_finish(result, status, &err, NULL, 0);
}

PyObject *
py_wrap_ndarray(py_state *state, const char *action, PyObject *object)
{
    if (import_numpy() < 0) {
        return NULL;
    }
    if (!PyArray_Check(object)) {
        PyErr_Format(PyExc_TypeError, "%s(): expected np.ndarray (got %s)", action, Py_TYPE(object)->tp_name);
        return py_is_array(object) ? py_explain(object, "invalid-argument", action) : NULL;
    }
    PyArrayObject *array = (PyArrayObject *)object;
    if (is_masked(object)) {
        return PyErr_Format(PyExc_TypeError, "%s(): a masked array would lose its mask; use .filled() or .data first",
                            action);
    }
    int dtype = find_dtype(PyArray_DESCR(array));
    if (dtype < 0) {
        fail_dtype(action, array);
        return NULL;
    }
    const char *problem = obstacle(array);
    if (problem != NULL) {
        return PyErr_Format(PyExc_ValueError, "%s(): %s", action, problem);
    }
    return wrap(state, action, array, (dt_dtype)dtype);
}

static bool
is_numpys_own(PyObject *object)
{
    return py_is_ndarray(object) || strncmp(Py_TYPE(object)->tp_name, "numpy.", 6) == 0;
}

bool
py_is_numpys(PyObject *object)
{
    if (is_numpys_own(object)) {
        return true;
    }
    if (PyType_Check(object) || PyFloat_CheckExact(object) || PyLong_CheckExact(object) || PyList_CheckExact(object) ||
        py_is_tuple(object)) {
        return false;
    }
    static const char *const protocols[] = {"__array__",
                                            "__array_interface__"}; /* PIL's images have the latter alone */
    bool found = false;
    for (size_t i = 0; i < Py_ARRAY_LENGTH(protocols) && !found; i++) {
        PyObject *method = py_attribute(object, protocols[i]);
        PyErr_Clear();
        found = method != NULL;
        Py_XDECREF(method);
    }
    return found;
}

/* The first leaf of nested lists and tuples is NumPy's: NumPy joins them, and its dtype stays. */
static bool
holds_numpys(PyObject *object)
{
    for (int depth = 0; depth < DT_MAX_NDIM; depth++) {
        if (!PyList_CheckExact(object) && !py_is_tuple(object)) {
            break;
        }
        if (PySequence_Fast_GET_SIZE(object) == 0) {
            return false;
        }
        object = PySequence_Fast_GET_ITEM(object, 0);
    }
    return py_is_ndarray(object) || strncmp(Py_TYPE(object)->tp_name, "numpy.", 6) == 0;
}

/* object as an array whose memory can be wrapped: itself, or a copy that is nobody else's (*fresh). */
static PyObject *
native_ndarray(const char *action, PyObject *object, bool *fresh)
{
    PyArrayObject *array = (PyArrayObject *)PyArray_FromAny(object, NULL, 0, 0, 0, NULL);
    if (array != NULL && is_masked(object)) {
        return (PyObject *)array; /* refused by py_wrap_ndarray */
    }
    bool scalar = strncmp(Py_TYPE(object)->tp_name, "numpy.", 6) == 0 && !PyArray_Check(object);
    *fresh = scalar || PyList_CheckExact(object) || py_is_tuple(object);
    if (array == NULL) {
        return NULL;
    }
    if (find_dtype(PyArray_DESCR(array)) < 0) {
        fail_dtype(action, array);
        Py_DECREF(array);
        return NULL;
    }
    if (obstacle(array) == NULL) {
        return (PyObject *)array;
    }
    *fresh = true;
    PyArray_Descr *native = PyArray_DescrNewByteorder(PyArray_DESCR(array), NPY_NATIVE);
    PyObject *copy = native == NULL ? NULL : PyArray_FromArray(array, native, NPY_ARRAY_CARRAY | NPY_ARRAY_ENSURECOPY);
    Py_DECREF(array);
    return copy;
}

PyObject *
py_copy_ndarray(py_state *state, const char *op, PyObject *object)
{
    bool fresh = false;
    PyObject *native = import_numpy() < 0 ? NULL : native_ndarray(op, object, &fresh);
    PyObject *wrapped = native == NULL ? NULL : py_wrap_ndarray(state, op, native), *copy = NULL;
    Py_XDECREF(native);
    if (wrapped != NULL) {
        copy = py_convert(wrapped, op, (dt_device){DT_CPU, 0}, (dt_dtype)py_array_of(wrapped)->dtype, false, true);
    }
    Py_XDECREF(wrapped);
    return copy;
}

/* ---------------------------------------------------------------- array, asarray */

/* An array of another library by its own protocols; NULL without an exception where there is none to be had, as NumPy
 * may still be able to read it. */
static PyObject *
foreign_array(const py_args *a, PyObject *object)
{
    PyObject *result = NULL;
    if (PyType_Check(object) || PyFloat_CheckExact(object) || PyLong_CheckExact(object) || PyList_CheckExact(object) ||
        py_is_tuple(object) || is_numpys_own(object)) {
        return NULL;
    }
    PyObject *found = py_attribute(object, "__dlpack__");
    if (found != NULL) {
        result = py_import_dlpack(a, object, NULL, -1);
    } else if (PyErr_ExceptionMatches(PyExc_AttributeError)) {
        PyErr_Clear();
        found = py_attribute(object, "__cuda_array_interface__");
        result = found == NULL ? NULL : py_import_cuda_interface(a, object, found);
    }
    Py_XDECREF(found);
    if (result == NULL && (PyErr_ExceptionMatches(PyExc_AttributeError) || PyErr_ExceptionMatches(PyExc_BufferError))) {
        PyErr_Clear();
    }
    return result;
}

static PyObject *
host_array(const py_args *a, PyObject *object, int dtype, bool *shared)
{
    *shared = false;
    if (!py_is_numpys(object) && !holds_numpys(object)) {
        return py_array_from_nested(a->state, a->op, object, dtype);
    }
    bool fresh = false;
    PyObject *native = import_numpy() < 0 ? NULL : native_ndarray(a->op, object, &fresh);
    PyObject *wrapped = native == NULL ? NULL : py_wrap_ndarray(a->state, a->op, native);
    Py_XDECREF(native);
    *shared = !fresh;
    return wrapped;
}

/* What array and tensor copy: no gradient flows back from there. */
static PyObject *
without_history(const py_args *a, PyObject *object)
{
    if (dt_wants_grad(py_array_of(object)) && !dt_grad_off &&
        PyErr_WarnFormat(PyExc_UserWarning, 1,
                         "%s(): no gradient flows back from the copy. x.clone() keeps the gradient; "
                         "x.detach().clone() is the same copy without this warning.",
                         a->op) < 0) {
        return NULL;
    }
    return py_array_handle(object, a->op);
}

/* data, dtype, device, requires_grad; of tensor pin_memory */
static PyObject *
call_array(const py_args *a, bool copy)
{
    PyObject *object = a->v[0];
    bool shared = true, has_dtype = py_given(a->v[1]);
    dt_dtype dtype = DT_FLOAT32;
    dt_device device = dt_default_device();
    if (py_arg_dtype(a, 1, &dtype) < 0 || py_arg_device(a, 2, &device) < 0 || py_arg_grad(a, 3) < 0) {
        return NULL;
    }
    const bool cut = copy && py_is_array(object) && dt_wants_grad(py_array_of(object));
    PyObject *array = !py_is_array(object) ? foreign_array(a, object)
                      : copy               ? without_history(a, object)
                                           : Py_NewRef(object);
    if (array == NULL && !PyErr_Occurred()) {
        array = host_array(a, object, has_dtype ? (int)dtype : -1, &shared);
    }
    if (array == NULL) {
        return NULL;
    }
    const dt_array *x = py_array_of(array);
    if (!py_given(a->v[2]) && (py_is_array(object) || py_on_device(x))) {
        device = dt_array_device(x); /* what is on a device stays there */
    }
    PyObject *result = py_convert(array, a->op, device, has_dtype ? dtype : (dt_dtype)x->dtype, false, copy && shared);
    if (result != NULL && (cut || !py_is_array(object))) { /* what was made on the way here, or is no history of it */
        py_step_begin(result);
    }
    Py_DECREF(array);
    return py_created(a, 3, result);
}

static PyObject *
py_array_(PY_PARAMS)
{
    PY_PARSE(array)
    return call_array(&a, true);
}

static PyObject *
py_tensor(PY_PARAMS)
{
    PY_PARSE(tensor)
    return call_array(&a, true);
}

static PyObject *
py_as_tensor(PY_PARAMS)
{
    PY_PARSE(as_tensor)
    return call_array(&a, false);
}

static PyObject *
py_asarray(PY_PARAMS)
{
    PY_PARSE(asarray)
    return call_array(&a, false);
}

static PyObject *
py_from_numpy(PY_PARAMS)
{
    PY_PARSE(from_numpy)
    return py_wrap_ndarray(a.state, "from_numpy", a.v[0]);
}

/* ---------------------------------------------------------------- to NumPy */

static PyObject *
to_numpy(PyObject *self, const char *op)
{
    const dt_array *x = py_array_of(self);
    if (py_on_device(x)) {
        return py_refuse_host_access(py_state_of(self), op, self);
    }
    if (py_refuse_tracked(self, op) < 0 || py_hand_out(self) < 0) {
        return NULL;
    }
    npy_intp shape[DT_MAX_NDIM], strides[DT_MAX_NDIM];
    for (int d = 0; d < x->ndim; d++) {
        shape[d] = (npy_intp)x->shape[d];
        strides[d] = (npy_intp)(x->strides[d] * (int64_t)dt_itemsize((dt_dtype)x->dtype));
    }
    PyObject *descr = import_numpy() < 0 ? NULL : py_numpy_dtype((dt_dtype)x->dtype);
    if (descr == NULL) {
        return NULL;
    }
    int flags = dt_array_readonly(x) || dt_array_overlaps_itself(x) ? 0 : NPY_ARRAY_WRITEABLE;
    PyObject *array = PyArray_NewFromDescr(&PyArray_Type, (PyArray_Descr *)descr, x->ndim, shape, strides,
                                           dt_array_data(x), flags, NULL);
    /* a handle, as self may get other data */
    PyObject *base = array == NULL ? NULL : py_array_handle(self, op);
    if (array != NULL && (base == NULL || PyArray_SetBaseObject((PyArrayObject *)array, base) < 0)) {
        Py_CLEAR(array);
    }
    return array;
}

static PyObject *
py_numpy(PY_PARAMS)
{
    PY_PARSE(numpy)
    bool force = false;
    if (py_arg_bool(&a, 1, &force) < 0) {
        return NULL;
    }
    if (!force) {
        return to_numpy(self, "numpy");
    }
    PyObject *plain = py_array_handle(self, "numpy"); /* without the gradient */
    PyObject *host = plain == NULL ? NULL
                                   : py_convert(plain, "numpy", (dt_device){DT_CPU, 0},
                                                (dt_dtype)py_array_of(self)->dtype, false, false);
    PyObject *array = host == NULL ? NULL : to_numpy(host, "numpy");
    Py_XDECREF(host);
    Py_XDECREF(plain);
    return array;
}

static PyObject *
py___array__(PY_PARAMS)
{
    PY_PARSE(__array__)
    PyObject *array = to_numpy(self, "__array__"), *result = NULL;
    PyArray_Descr *descr = NULL;
    if (array == NULL || (py_given(a.v[1]) && !PyArray_DescrConverter(a.v[1], &descr))) {
        Py_XDECREF(array);
        return NULL;
    }
    bool casts = descr != NULL && !PyArray_EquivTypes(descr, PyArray_DESCR((PyArrayObject *)array));
    int copy = py_given(a.v[2]) ? PyObject_IsTrue(a.v[2]) : -1;
    bool decided = copy >= 0 || !PyErr_Occurred();
    if (decided && casts && copy == 0) {
        PyErr_SetString(PyExc_ValueError,
                        "Unable to avoid copy while creating an array as requested: the dtype differs");
    } else if (decided && (casts || copy > 0)) {
        PyArray_Descr *target = casts ? descr : PyArray_DESCR((PyArrayObject *)array);
        Py_INCREF(target);
        result = PyArray_FromArray((PyArrayObject *)array, target, NPY_ARRAY_ENSURECOPY | NPY_ARRAY_FORCECAST);
    } else if (decided) {
        result = Py_NewRef(array);
    }
    Py_XDECREF(descr);
    Py_DECREF(array);
    return result;
}

#define ARRAY_DOC                                                                                                      \
    "An array of a number, nested sequences of numbers, a NumPy array or another DeviceArray: always a copy, from "    \
    "which no gradient flows back.\n\nPython floats give the default dtype (float32), ints int64, bools bool; NumPy "  \
    "input keeps its dtype. Raises "                                                                                   \
    "ValueError for\n"                                                                                                 \
    "sequences of unequal length, OverflowError for ints that do not fit, TypeError for anything but numbers, "        \
    "DeviceNotAvailableError."
#define ASARRAY_DOC                                                                                                    \
    "Like array, but without a copy where none is needed: a NumPy array on the cpu shares its memory.\n\n"             \
    "Raises what array raises."

PyMethodDef py_interchange_functions[] = {
    {"array", PY_CAST(py_array_), METH_FASTCALL | METH_KEYWORDS,
     "array(" PY_TEXT_array ")\n--\n\n" ARRAY_DOC EXAMPLE_array},
    PY_OP(tensor, ARRAY_DOC),
    PY_OP(asarray, ASARRAY_DOC),
    PY_OP(as_tensor, ASARRAY_DOC),
    PY_OP(frombuffer,
          "A 1-dimensional DeviceArray on the cpu that shares the memory of a buffer, and keeps it alive; read-only if "
          "that is.\n\n"
          "count elements from byte offset, all by default. Raises ValueError where the bytes do not fit, TypeError "
          "for no buffer."),
    PY_OP(from_numpy,
          "A DeviceArray on the cpu that shares the memory of a NumPy array, and keeps it alive; read-only if that "
          "is.\n\n"
          "Any shape, the ten dtypes. Raises TypeError for other objects and dtypes, ValueError for negative strides, "
          "byte-swapped or\n"
          "misaligned memory."),
    PY_END,
};

PyMethodDef py_interchange_methods[] = {
    PY_METHOD(numpy, "A NumPy array that shares the memory; with force, of a device array a copy.\n\n"
                     "Raises HostAccessError on a device, TypeError for bfloat16 without ml_dtypes."),
    PY_HIDDEN_METHOD(__array__, "What NumPy calls. Raises HostAccessError on a device."),
    PY_END,
};
