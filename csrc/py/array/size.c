/* size.c: Size, the type of shapes: a tuple of ints whose slices and sums are shapes too, with numel(). */
#include "../py.h"

/* A tuple from Python's list of free ones, as a Size, which it is until it ends. Ints make no cycles. */
static PyObject *
size_new(PyTypeObject *type, Py_ssize_t n)
{
    if (n == 0) { /* all empty tuples are one object */
        return type->tp_alloc(type, 0);
    }
    PyObject *self = PyTuple_New(n);
    if (self != NULL) {
        PyObject_GC_UnTrack(self);
        Py_INCREF(type);
        Py_SET_TYPE(self, type);
    }
    return self;
}

static void
size_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    if (PyTuple_GET_SIZE(self) == 0) { /* Python would put it on the list before those of tuples */
        PyObject_GC_UnTrack(self);
        type->tp_free(self);
    } else {
        Py_SET_TYPE(self, &PyTuple_Type);
        PyTuple_Type.tp_dealloc(self);
    }
    Py_DECREF(type);
}

bool
py_is_tuple(PyObject *object)
{
    return PyTuple_CheckExact(object) || Py_TYPE(object)->tp_dealloc == size_dealloc;
}

PyObject *
py_tuple_of(PyObject *object)
{
    return py_is_tuple(object) ? Py_NewRef(object) : PySequence_Tuple(object);
}

PyObject *
py_size_object(py_state *state, int ndim, const int64_t *shape)
{
    PyObject *self = size_new(state->size_type, ndim);
    for (int d = 0; self != NULL && d < ndim; d++) {
        PyObject *size = PyLong_FromLongLong(shape[d]);
        if (size == NULL) {
            Py_CLEAR(self);
        } else {
            PyTuple_SET_ITEM(self, d, size);
        }
    }
    return self;
}

/* tuple, which is given up, as a Size. */
static PyObject *
of_tuple(PyTypeObject *type, PyObject *tuple)
{
    const Py_ssize_t n = tuple == NULL ? 0 : PyTuple_GET_SIZE(tuple);
    PyObject *self = tuple == NULL ? NULL : size_new(type, n);
    for (Py_ssize_t i = 0; self != NULL && i < n; i++) {
        PyTuple_SET_ITEM(self, i, Py_NewRef(PyTuple_GET_ITEM(tuple, i)));
    }
    Py_XDECREF(tuple);
    return self;
}

static PyObject *
size_construct(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *given = NULL;
    if (kwargs != NULL && PyDict_GET_SIZE(kwargs) > 0) {
        PyErr_SetString(PyExc_TypeError, "Size() takes no keyword arguments");
        return NULL;
    }
    if (!PyArg_UnpackTuple(args, "Size", 0, 1, &given)) {
        return NULL;
    }
    PyObject *tuple = given == NULL ? PyTuple_New(0) : PySequence_Tuple(given), *self = NULL;
    const Py_ssize_t n = tuple == NULL ? 0 : PyTuple_GET_SIZE(tuple);
    self = tuple == NULL ? NULL : size_new(type, n);
    for (Py_ssize_t i = 0; self != NULL && i < n; i++) {
        PyObject *item = PyTuple_GET_ITEM(tuple, i);
        PyObject *size = PyIndex_Check(item) ? PyNumber_Index(item) : NULL;
        if (size == NULL) {
            if (!PyErr_Occurred()) {
                PyErr_Format(PyExc_TypeError, "Size() takes an iterable of 'int' (item %zd is '%s')", i,
                             Py_TYPE(item)->tp_name);
            }
            Py_CLEAR(self);
        } else {
            PyTuple_SET_ITEM(self, i, size);
        }
    }
    Py_XDECREF(tuple);
    return self;
}

static PyObject *
size_subscript(PyObject *self, PyObject *key)
{
    PyObject *found = PyTuple_Type.tp_as_mapping->mp_subscript(self, key);
    return PySlice_Check(key) ? of_tuple(Py_TYPE(self), found) : found;
}

/* One of the two is a Size. */
static PyObject *
size_add(PyObject *a, PyObject *b)
{
    if (!PyTuple_Check(a) || !PyTuple_Check(b)) {
        Py_RETURN_NOTIMPLEMENTED;
    }
    PyTypeObject *type = Py_TYPE(a)->tp_dealloc == size_dealloc ? Py_TYPE(a) : Py_TYPE(b);
    return of_tuple(type, PyTuple_Type.tp_as_sequence->sq_concat(a, b));
}

static PyObject *
size_repeat(PyObject *self, Py_ssize_t n)
{
    return of_tuple(Py_TYPE(self), PyTuple_Type.tp_as_sequence->sq_repeat(self, n));
}

static PyObject *
size_numel(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    PyObject *product = PyLong_FromLong(1);
    for (Py_ssize_t i = 0; product != NULL && i < PyTuple_GET_SIZE(self); i++) {
        PyObject *next = PyNumber_Multiply(product, PyTuple_GET_ITEM(self, i));
        Py_SETREF(product, next);
    }
    return product;
}

static int
size_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    return PyTuple_Type.tp_traverse(self, visit, arg);
}

static PyMethodDef size_methods[] = {
    {"numel", size_numel, METH_NOARGS, "numel($self)\n--\n\nThe number of elements of an array of this shape."},
    PY_END,
};

static PyType_Slot size_slots[] = {
    {Py_tp_new, size_construct},
    {Py_tp_dealloc, size_dealloc},
    {Py_tp_traverse, size_traverse},
    {Py_tp_methods, size_methods},
    {Py_mp_subscript, size_subscript},
    {Py_nb_add, size_add},
    {Py_sq_repeat, size_repeat},
    {Py_tp_doc, "Size(iterable=(), /)\n--\n\n"
                "A shape: a tuple of ints whose slices and sums are shapes too, with numel().\n\n"
                "x.shape and x.size() are one. Raises TypeError for anything but ints." EXAMPLE_Size},
    {0, NULL},
};

PyType_Spec py_size_spec = {
    .name = "devtensor.Size",
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_HAVE_GC,
    .slots = size_slots,
};
