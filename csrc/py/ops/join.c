/* join.c: cat and stack join arrays; split, chunk and unbind take one apart. */
#include "../../core/check/check.h"
#include "../py.h"

typedef dt_status (*joiner)(const dt_array *const *arrays, int n, int64_t dim, dt_array *out, dt_error *err);

/* arrays[i] of the entries of a tuple; NULL with an exception set. Freed with PyMem_Free. */
static const dt_array **
arrays_of(const py_args *a, PyObject *tuple, bool *large)
{
    Py_ssize_t n = PyTuple_GET_SIZE(tuple);
    const dt_array **arrays = PyMem_Calloc((size_t)n + 1, sizeof(*arrays));
    if (arrays == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *entry = PyTuple_GET_ITEM(tuple, i);
        if (!py_is_array(entry)) {
            PyErr_Format(PyExc_TypeError, "%s(): argument 'tensors' must hold DeviceArrays, but entry %zd is %s", a->op,
                         i, Py_TYPE(entry)->tp_name);
            py_explain_args(a, 0);
            PyMem_Free(arrays);
            return NULL;
        }
        arrays[i] = py_operand(entry);
        if (DT_UNLIKELY(arrays[i] == NULL)) {
            PyMem_Free(arrays);
            return NULL;
        }
        *large = *large || py_is_large(arrays[i]);
    }
    return arrays;
}

static PyObject *
join(py_args *a, joiner call)
{
    int64_t dim = 0;
    bool large = false;
    if (py_is_array(a->v[0]) || !PySequence_Check(a->v[0]) || PyUnicode_Check(a->v[0])) {
        py_arg_wrong(a, 0, "a tuple or list of DeviceArrays");
        return NULL;
    }
    if (py_arg_int(a, 1, &dim) < 0) {
        return NULL;
    }
    PyObject *tuple = PySequence_Tuple(a->v[0]); /* keeps them alive while the GIL is away */
    if (tuple == NULL) {
        return NULL;
    }
    PyObject *result = NULL;
    const dt_array **arrays = arrays_of(a, tuple, &large);
    if (arrays != NULL && (result = py_array_new(a->type, a->op)) != NULL) {
        dt_error err;
        dt_status status;
        Py_ssize_t n = PyTuple_GET_SIZE(tuple);
        PY_CALL(large || n > 1000, status, call(arrays, (int)Py_MIN(n, INT_MAX), dim, py_array_of(result), &err));
        result = py_finish(result, status, &err, &tuple, 1);
    }
    PyMem_Free(arrays);
    Py_DECREF(tuple);
    return result;
}

static PyObject *
py_cat(PY_PARAMS)
{
    PY_PARSE(cat)
    return py_check_out(&a, 2) < 0 ? NULL : py_into_out(&a, 2, join(&a, dt_cat));
}

static PyObject *
py_stack(PY_PARAMS)
{
    PY_PARSE(stack)
    return py_check_out(&a, 2) < 0 ? NULL : py_into_out(&a, 2, join(&a, dt_stack));
}

/* ---------------------------------------------------------------- apart */

/* The size of dim, which becomes an index. */
static int
size_of(const py_args *a, const dt_array *x, int64_t *dim, int64_t *size)
{
    int index;
    dt_error err;
    if (x->ndim == 0) {
        py_refuse_args(a, DT_ESHAPE, "rank-mismatch", "%s expects at least a 1-dimensional tensor", a->op);
        return -1;
    }
    if (dt_check_dim(a->op, *dim, x->ndim, &index, &err) != DT_OK) {
        py_raise_args(a, &err);
        return -1;
    }
    *dim = index;
    *size = x->shape[index];
    return 0;
}

static PyObject *
piece(const py_args *a, const dt_array *x, int64_t dim, int64_t start, int64_t length)
{
    dt_error err;
    PyObject *result = py_array_new(a->type, a->op);
    return result == NULL
               ? NULL
               : py_done(a, result, dt_narrow(a->op, x, dim, start, length, py_array_of(result), &err), &err);
}

/* So many pieces of step entries, the last one shorter. */
static PyObject *
equal_pieces(const py_args *a, const dt_array *x, int64_t dim, int64_t size, int64_t step, int64_t count)
{
    PyObject *tuple = PyTuple_New((Py_ssize_t)count);
    for (int64_t i = 0; tuple != NULL && i < count; i++) {
        PyObject *part = piece(a, x, dim, i * step, size - i * step < step ? size - i * step : step);
        if (part == NULL || PyErr_CheckSignals() < 0) { /* there may be as many empty ones as the user likes */
            Py_XDECREF(part);
            Py_CLEAR(tuple);
        } else {
            PyTuple_SET_ITEM(tuple, (Py_ssize_t)i, part);
        }
    }
    return tuple;
}

/* Reads the sections, a tuple of ints: their sizes and that they add up. Freed with PyMem_Free. */
static int64_t *
sections_of(const py_args *a, PyObject *sections, int64_t size)
{
    Py_ssize_t n = PyTuple_GET_SIZE(sections);
    int64_t left = size, *sizes = PyMem_Calloc((size_t)n + 1, sizeof(*sizes));
    if (sizes == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        if (py_int(a->op, "split_size_or_sections", PyTuple_GET_ITEM(sections, i), &sizes[i]) < 0) {
            goto fail;
        }
        if (sizes[i] < 0 || sizes[i] > left) {
            left = -1;
            break;
        }
        left -= sizes[i];
    }
    if (left != 0) {
        PyObject *shown = PyObject_Repr(sections);
        const char *given = shown == NULL ? NULL : PyUnicode_AsUTF8(shown);
        if (given != NULL) {
            py_refuse_args(
                a, DT_ESHAPE, "shape-mismatch",
                "split_with_sizes expects split_sizes have only non-negative entries that sum exactly to %lld, the "
                "size of dim, not %.80s",
                (long long)size, given);
        }
        Py_XDECREF(shown);
        goto fail;
    }
    return sizes;
fail:
    PyMem_Free(sizes);
    return NULL;
}

static PyObject *
section_pieces(const py_args *a, const dt_array *x, int64_t dim, int64_t size)
{
    PyObject *sections = py_arg_sequence(a, 1), *result = NULL;
    int64_t start = 0, *sizes = sections == NULL ? NULL : sections_of(a, sections, size);
    if (sizes != NULL) {
        result = PyTuple_New(PyTuple_GET_SIZE(sections));
    }
    for (Py_ssize_t i = 0; result != NULL && i < PyTuple_GET_SIZE(sections); i++) {
        PyObject *part = piece(a, x, dim, start, sizes[i]);
        if (part == NULL) {
            Py_CLEAR(result);
        } else {
            PyTuple_SET_ITEM(result, i, part);
            start += sizes[i];
        }
    }
    PyMem_Free(sizes);
    Py_XDECREF(sections);
    return result;
}

static PyObject *
py_split(PY_PARAMS)
{
    PY_PARSE(split)
    int64_t dim = 0, size = 0, step = 0;
    const dt_array *x = py_arg_array(&a, 0);
    if (x == NULL || py_arg_int(&a, 2, &dim) < 0 || size_of(&a, x, &dim, &size) < 0) {
        return NULL;
    }
    if (!PyIndex_Check(a.v[1])) {
        return section_pieces(&a, x, dim, size);
    }
    if (py_arg_int(&a, 1, &step) < 0) {
        return NULL;
    }
    if (step < 0 || (step == 0 && size > 0)) {
        return py_refuse_args(&a, DT_EVALUE, "invalid-argument",
                              "split expects split_size to be positive, but got split_size=%lld", (long long)step);
    }
    return equal_pieces(&a, x, dim, size, step, size == 0 ? 1 : (size - 1) / step + 1);
}

static PyObject *
py_chunk(PY_PARAMS)
{
    PY_PARSE(chunk)
    int64_t dim = 0, size = 0, chunks = 0;
    const dt_array *x = py_arg_array(&a, 0);
    if (x == NULL || py_arg_int(&a, 1, &chunks) < 0 || py_arg_int(&a, 2, &dim) < 0 || size_of(&a, x, &dim, &size) < 0) {
        return NULL;
    }
    if (chunks <= 0) {
        return py_refuse_args(&a, DT_EVALUE, "invalid-argument",
                              "chunk expects `chunks` to be greater than 0, got: %lld", (long long)chunks);
    }
    if (size == 0) { /* as many as asked for, as in PyTorch */
        return equal_pieces(&a, x, dim, 0, 0, chunks);
    }
    const int64_t step = (size - 1) / chunks + 1;
    return equal_pieces(&a, x, dim, size, step, (size - 1) / step + 1);
}

static PyObject *
py_unbind(PY_PARAMS)
{
    PY_PARSE(unbind)
    int64_t dim = 0, size = 0;
    const dt_array *x = py_arg_array(&a, 0);
    if (x == NULL || py_arg_int(&a, 1, &dim) < 0 || size_of(&a, x, &dim, &size) < 0) {
        return NULL;
    }
    PyObject *tuple = PyTuple_New((Py_ssize_t)size);
    for (int64_t i = 0; tuple != NULL && i < size; i++) {
        dt_error err;
        PyObject *entry = py_array_new(a.type, "unbind");
        if (entry != NULL) {
            entry = py_done(&a, entry, dt_select("unbind", x, dim, i, py_array_of(entry), &err), &err);
        }
        if (entry == NULL) {
            Py_CLEAR(tuple);
        } else {
            PyTuple_SET_ITEM(tuple, (Py_ssize_t)i, entry);
        }
    }
    return tuple;
}

#define VIEWS "The results are views that share the memory of the input. Any dtype. "
#define APART(X)                                                                                                       \
    X(split, "A tuple of pieces along dim: of one size (the last may be smaller), or of the sizes listed.\n\n" VIEWS   \
             "Raises RuntimeError for a size below 1, ShapeMismatchError where the sizes do not add up."),             \
        X(chunk, "A tuple of at most `chunks` pieces along dim; of an empty dim, as many empty ones.\n\n" VIEWS        \
                 "Raises RuntimeError for chunks below 1, IndexError for a dim out of range."),                        \
        X(unbind, "A tuple of all entries of dim, each with one dimension less.\n\n" VIEWS                             \
                  "Raises IndexError for a dim out of range."),                                                        \
        PY_END

PyMethodDef py_join_functions[] = {
    PY_OP(cat, "Joins arrays along a dimension they have; the other sizes agree.\n\n"
               "dtypes promote. Raises DeviceMismatchError, ShapeMismatchError, RuntimeError for an empty list."),
    PY_OP(stack, "Joins arrays of one shape along a new dimension.\n\n"
                 "dtypes promote. Raises DeviceMismatchError, ShapeMismatchError, RuntimeError for an empty list."),
    APART(PY_OP),
};

PyMethodDef py_join_methods[] = {APART(PY_METHOD)};
