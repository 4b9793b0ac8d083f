/* dtype.c: the ten dtype objects, and everything that names one. */
#include "as_torch.h"

typedef struct {
    PyObject_HEAD dt_dtype dtype;
} dtype_object;

static dt_dtype
value(PyObject *self)
{
    return ((dtype_object *)self)->dtype;
}

static void
dtype_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}

int
py_dtype_of(PyObject *object)
{
    return Py_TYPE(object)->tp_dealloc == dtype_dealloc ? (int)value(object) : -1;
}

static PyObject *
dtype_repr(PyObject *self)
{
    return PyUnicode_FromFormat("%s.%s", py_as_torch ? "torch" : "devtensor", dt_dtypes[value(self)].name);
}

static PyObject *
get_name(PyObject *self, void *closure)
{
    (void)closure;
    return PyUnicode_FromString(dt_dtypes[value(self)].name);
}

static PyObject *
get_itemsize(PyObject *self, void *closure)
{
    (void)closure;
    return PyLong_FromLong(dt_dtypes[value(self)].itemsize);
}

static PyObject *
get_is_floating_point(PyObject *self, void *closure)
{
    (void)closure;
    return PyBool_FromLong(dt_is_float(value(self)));
}

/* What np.dtype(devtensor.float32) reads. */
static PyObject *
get_numpy_dtype(PyObject *self, void *closure)
{
    (void)closure;
    return py_numpy_dtype(value(self));
}

/* Pickled by name: devtensor.float32. */
static PyObject *
dtype_reduce(PyObject *self, PyObject *ignored)
{
    (void)ignored;
    return get_name(self, NULL);
}

static Py_hash_t
dtype_hash(PyObject *self)
{
    return PyBaseObject_Type.tp_hash(self);
}

/* Equal to itself, and to NumPy's dtype of that name. */
static PyObject *
dtype_compare(PyObject *self, PyObject *other, int op)
{
    dt_dtype found;
    if ((op != Py_EQ && op != Py_NE) ||
        (Py_TYPE(other) != Py_TYPE(self) && strncmp(Py_TYPE(other)->tp_name, "numpy.dtype", 11) != 0)) {
        Py_RETURN_NOTIMPLEMENTED;
    }
    int rc = py_find_dtype(py_state_of(self), other, &found);
    return rc < 0 ? NULL : PyBool_FromLong((rc > 0 && found == value(self)) == (op == Py_EQ));
}

static PyMethodDef dtype_methods[] = {
    {"__reduce__", dtype_reduce, METH_NOARGS, NULL},
    PY_END,
};

static PyGetSetDef dtype_getset[] = {
    {"name", get_name, NULL, "str: the name without the module, such as \"float32\".", NULL},
    {"itemsize", get_itemsize, NULL, "int: bytes of one element.", NULL},
    {"is_floating_point", get_is_floating_point, NULL, "bool: whether elements are floating-point numbers.", NULL},
    {"__numpy_dtype__", get_numpy_dtype, NULL, "numpy.dtype: NumPy's of this name; of bfloat16 that of ml_dtypes.",
     NULL},
    {"dtype", get_numpy_dtype, NULL, "numpy.dtype: the same, for NumPy before 2.4.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot dtype_slots[] = {
    {Py_tp_dealloc, dtype_dealloc},
    {Py_tp_repr, dtype_repr},
    {Py_tp_hash, dtype_hash},
    {Py_tp_richcompare, dtype_compare},
    {Py_tp_methods, dtype_methods},
    {Py_tp_getset, dtype_getset},
    {Py_tp_doc, "The type of the elements of an array: devtensor.float32 and nine more. Not constructed."},
    {0, NULL},
};

PyType_Spec py_dtype_spec = {
    .name = "devtensor.dtype",
    .basicsize = sizeof(dtype_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = dtype_slots,
};

int
py_dtypes_init(PyObject *module, py_state *state)
{
    for (int i = 0; i < DT_NDTYPES; i++) {
        dtype_object *object = (dtype_object *)state->dtype_type->tp_alloc(state->dtype_type, 0);
        if (object == NULL) {
            return -1;
        }
        object->dtype = (dt_dtype)i;
        state->dtypes[i] = (PyObject *)object;
        if (PyModule_AddObjectRef(module, dt_dtypes[i].name, (PyObject *)object) < 0) {
            return -1;
        }
    }
    return 0;
}

PyObject *
py_dtype_object(py_state *state, dt_dtype dtype)
{
    return Py_NewRef(state->dtypes[dtype]);
}

/* ---------------------------------------------------------------- names of dtypes */

static int
find_name(const char *name, dt_dtype *out)
{
    static const char *const others[][2] = {
        {"half", "float16"}, {"double", "float64"}, {"long", "int64"}, {"short", "int16"}, {"bool_", "bool"}};
    int found = dt_dtype_find(name);
    for (size_t i = 0; found < 0 && i < Py_ARRAY_LENGTH(others); i++) {
        if (strcmp(name, others[i][0]) == 0) {
            found = dt_dtype_find(others[i][1]);
        }
    }
    if (found >= 0) {
        *out = (dt_dtype)found;
    }
    return found >= 0;
}

static int
find_unicode(PyObject *text, dt_dtype *out)
{
    const char *name = PyUnicode_AsUTF8(text);
    return name == NULL ? -1 : find_name(name, out);
}

/* The text in an attribute of object. */
static int
find_attribute(PyObject *object, const char *attribute, dt_dtype *out)
{
    PyObject *text = py_attribute(object, attribute);
    int rc = text == NULL ? -1 : PyUnicode_Check(text) ? find_unicode(text, out) : 0;
    Py_XDECREF(text);
    return rc;
}

/* A class: Python's, or a scalar type of NumPy or ml_dtypes. */
static int
find_class(PyObject *object, dt_dtype *out)
{
    const char *name = ((PyTypeObject *)object)->tp_name;
    if (object == (PyObject *)&PyFloat_Type || object == (PyObject *)&PyLong_Type ||
        object == (PyObject *)&PyBool_Type) {
        *out = object == (PyObject *)&PyFloat_Type  ? DT_FLOAT64
               : object == (PyObject *)&PyLong_Type ? DT_INT64
                                                    : DT_BOOL;
        return 1;
    }
    if (strncmp(name, "numpy.", 6) == 0 || strncmp(name, "ml_dtypes.", 10) == 0) {
        return find_attribute(object, "__name__", out);
    }
    return 0;
}

int
py_find_dtype(py_state *state, PyObject *object, dt_dtype *out)
{
    if (Py_TYPE(object) == state->dtype_type) {
        *out = value(object);
        return 1;
    }
    if (PyUnicode_Check(object)) {
        return find_unicode(object, out);
    }
    if (PyType_Check(object)) {
        return find_class(object, out);
    }
    if (strncmp(Py_TYPE(object)->tp_name, "numpy.dtype", 11) == 0) {
        PyObject *native = py_attribute(object, "isnative");
        int is_native = native == NULL ? -1 : PyObject_IsTrue(native);
        Py_XDECREF(native);
        return is_native <= 0 ? is_native : find_attribute(object, "name", out);
    }
    return 0;
}

int
py_dtype(py_state *state, const char *op, const char *name, PyObject *object, dt_dtype *out)
{
    int rc = py_find_dtype(state, object, out);
    PyObject *shown = rc == 0 ? py_shown(object) : NULL;
    if (shown != NULL) {
        PyErr_Format(PyExc_TypeError,
                     "%s(): argument '%s' must be a dtype, not %U; there are float16, bfloat16, float32, float64, "
                     "int8, int16, int32, int64, uint8 and bool",
                     op, name, shown);
        Py_DECREF(shown);
    }
    return rc > 0 ? 0 : -1;
}

PyObject *
py_numpy_dtype(dt_dtype dtype)
{
    bool extension = dtype == DT_BFLOAT16;
    PyObject *numpy = PyImport_ImportModule("numpy");
    PyObject *module = numpy == NULL ? NULL : extension ? PyImport_ImportModule("ml_dtypes") : Py_NewRef(numpy);
    PyObject *scalar = NULL, *result = NULL;
    if (module == NULL) {
        if (extension && numpy != NULL && PyErr_ExceptionMatches(PyExc_ImportError)) {
            PyErr_SetString(PyExc_TypeError, "NumPy has no bfloat16: install ml_dtypes, or convert first with .float() "
                                             "(bfloat16 to float32 is exact)");
        }
        goto done;
    }
    scalar = py_attribute(module, dtype == DT_BOOL ? "bool_" : dt_dtypes[dtype].name);
    if (scalar != NULL) {
        PyObject *constructor = py_attribute(numpy, "dtype");
        result = constructor == NULL ? NULL : PyObject_CallOneArg(constructor, scalar);
        Py_XDECREF(constructor);
    }
done:
    Py_XDECREF(numpy);
    Py_XDECREF(module);
    Py_XDECREF(scalar);
    return result;
}
