/* reduce.c: reductions, softmax, and max and min with their three meanings. */
#include "../../core/grad/grad.h"
#include "../../core/ops/index.h"
#include "../py.h"

/* target: a reference that is taken, NULL with an exception for none. */
static PyObject *
reduce(const py_args *a, dt_reduce_op op, const dt_array *x, int ndims, const int64_t *dims, bool keepdim, int dtype,
       PyObject *target)
{
    PY_RETURN(a, target, py_is_large(x), dt_reduce(op, a->op, x, ndims, dims, keepdim, dtype, out, &err));
}

/* input, dim=None, keepdim=False, out=None, dtype=None; dim=() is told from None by the core. */
static PyObject *
call_reduce(const py_spec *spec, dt_reduce_op op, PY_PARAMS)
{
    py_args a;
    if (py_parse(spec, self, args, nargs, kwnames, &a) < 0) {
        return a.answer;
    }
    int ndims;
    int64_t dims[DT_MAX_NDIM];
    bool keepdim = false;
    dt_dtype dtype = DT_NDTYPES;
    const dt_array *x = py_arg_array(&a, 0);
    if (x == NULL || py_arg_dims(&a, 1, &ndims, dims) < 0 || py_arg_bool(&a, 2, &keepdim) < 0 ||
        py_arg_dtype(&a, 4, &dtype) < 0) {
        return NULL;
    }
    return reduce(&a, op, x, ndims, dims, keepdim, dtype == DT_NDTYPES ? -1 : (int)dtype, py_result(&a, 3));
}

/* The parameters by kind, for the parser; SIGNATURE_kind below has the same for help(). */
#define REDUCTION_NAMES_SUM                                                                                            \
    {                                                                                                                  \
        "input", "dim", "keepdim", "out", "dtype"                                                                      \
    }
#define REDUCTION_NAMES_FLOAT REDUCTION_NAMES_SUM
#define REDUCTION_NAMES_SAME                                                                                           \
    {                                                                                                                  \
        "input", "dim", "keepdim", "out"                                                                               \
    }
#define REDUCTION_NAMES_ARG REDUCTION_NAMES_SAME
#define REDUCTION_NAMES_TEST REDUCTION_NAMES_SAME

#define DT_REDUCE(name, kind, ...)                                                                                     \
    static PyObject *py_##name(PY_PARAMS)                                                                              \
    {                                                                                                                  \
        static const py_spec spec = {#name, 1, 3, -1, REDUCTION_NAMES_##kind, NULL};                                   \
        return call_reduce(&spec, DT_REDUCE_##name, self, args, nargs, kwnames);                                       \
    }
#define DT_REDUCE_HIDDEN(...)
#include "../../core/reductions.def"
#undef DT_REDUCE

/* Of floats, in their dtype; no dims: all. */
static PyObject *
squares(const py_args *args, dt_reduce_op op)
{
    int ndims;
    int64_t dims[DT_MAX_NDIM];
    bool keepdim = false;
    const dt_array *x = py_arg_array(args, 0);
    if (x == NULL || py_arg_dims(args, 1, &ndims, dims) < 0 || py_arg_bool(args, 2, &keepdim) < 0) {
        return NULL;
    }
    return reduce(args, op, x, ndims, dims, keepdim, -1, py_array_new(args->type, args->op));
}

static PyObject *
py__sum_squares(PY_PARAMS)
{
    PY_PARSE(_sum_squares)
    return squares(&a, DT_REDUCE_sum_squares);
}

static PyObject *
py__root_squares(PY_PARAMS)
{
    PY_PARSE(_root_squares)
    return squares(&a, DT_REDUCE_root_squares);
}

static PyObject *
py__variance(PY_PARAMS)
{
    PY_PARSE(_variance)
    int ndims;
    int64_t dims[DT_MAX_NDIM];
    bool keepdim = false;
    double count;
    bool root = false;
    const dt_array *x = py_arg_array(&a, 0);
    if (x == NULL || py_arg_dims(&a, 1, &ndims, dims) < 0 || py_arg_bool(&a, 2, &keepdim) < 0 ||
        py_arg_float(&a, 3, &count) < 0 || py_arg_bool(&a, 4, &root) < 0) {
        return NULL;
    }
    PY_RETURN(&a, py_array_new(a.type, a.op), py_is_large(x),
              dt_variance(a.op, x, ndims, dims, keepdim, count, root, out, &err));
}

/* ---------------------------------------------------------------- max, min */

typedef struct {
    dt_reduce_op values, indices;
    dt_binary_op binary;
} extremum;

static dt_status
gather_at(const dt_array *x, int64_t dim, bool keepdim, const dt_array *indices, dt_array *out, dt_error *err)
{
    if (keepdim || x->ndim == 0) {
        return dt_gather(x, dim, indices, out, err);
    }
    dt_array kept = DT_ARRAY_EMPTY, values = DT_ARRAY_EMPTY;
    DT_TRY(dt_unsqueeze("max", indices, dim, &kept, err));
    dt_status rc = dt_gather(x, dim, &kept, &values, err);
    rc = rc == DT_OK ? dt_squeeze("max", &values, 1, &dim, out, err) : rc;
    dt_array_clear(&kept);
    dt_array_clear(&values);
    return rc;
}

/* The elements at indices, so that gradients go to these alone. */
static PyObject *
values_at(const py_args *a, const dt_array *x, int64_t dim, bool keepdim, PyObject *indices)
{
    const dt_array *at = py_array_of(indices);
    PY_RETURN(a, py_array_new(a->type, a->op), py_is_large(x), gather_at(x, dim, keepdim, at, out, &err));
}

static PyObject *
values_and_indices(const py_args *a, const extremum *e, PyTypeObject *type)
{
    int64_t dim = 0;
    bool keepdim = false;
    const dt_array *x = py_arg_array(a, 0);
    if (x == NULL || py_arg_int(a, 1, &dim) < 0 || py_arg_bool(a, 2, &keepdim) < 0) {
        return NULL;
    }
    PyObject *indices = reduce(a, e->indices, x, 1, &dim, keepdim, -1, py_array_new(a->type, a->op));
    PyObject *values = indices == NULL ? NULL
                       : DT_UNLIKELY(dt_wants_grad(x)) && !dt_grad_off
                           ? values_at(a, x, dim, keepdim, indices)
                           : reduce(a, e->values, x, 1, &dim, keepdim, -1, py_array_new(a->type, a->op));
    PyObject *result = values == NULL ? NULL : PyStructSequence_New(type);
    if (result == NULL) {
        Py_XDECREF(values);
        Py_XDECREF(indices);
        return NULL;
    }
    PyStructSequence_SetItem(result, 0, values);
    PyStructSequence_SetItem(result, 1, indices);
    return result;
}

/* max(x), max(x, dim, keepdim=False), max(x, other), each with out= */
static PyObject *
call_extremum(const py_args *a, const extremum *e, PyTypeObject *type)
{
    PyObject *second = py_given(a->v[3]) ? a->v[3] : a->v[1];
    bool keepdim; /* that of a dim alone */
    const dt_array *x = py_arg_array(a, 0);
    if (x == NULL || py_arg_bool(a, 2, &keepdim) < 0) {
        return NULL;
    }
    if (!py_given(second)) {
        return reduce(a, e->values, x, -1, NULL, false, -1, py_result(a, 4));
    }
    if (!py_is_array(second) || (second == a->v[1] && py_arg_renamed(a, 1))) {
        return py_into_pair(a, 4, values_and_indices(a, e, type));
    }
    PY_RETURN(a, py_result(a, 4), py_is_large(x),
              dt_binary(e->binary, a->op, x, py_array_of(second), NULL, NULL, false, out, &err));
}

static PyObject *
py_max(PY_PARAMS)
{
    PY_PARSE(max)
    return call_extremum(&a, &(extremum){DT_REDUCE_amax, DT_REDUCE_argmax, DT_BINARY_maximum},
                         a.state->pair_types[PY_PAIR_max]);
}

static PyObject *
py_min(PY_PARAMS)
{
    PY_PARSE(min)
    return call_extremum(&a, &(extremum){DT_REDUCE_amin, DT_REDUCE_argmin, DT_BINARY_minimum},
                         a.state->pair_types[PY_PAIR_min]);
}

/* ---------------------------------------------------------------- softmax */

/* The dimension that PyTorch takes where none is named, and a warning, as there. */
static int
implied_dim(const py_args *a, const dt_array *x, int64_t *dim)
{
    *dim = x->ndim == 0 || x->ndim == 1 || x->ndim == 3 ? 0 : 1;
    return PyErr_WarnFormat(PyExc_UserWarning, 1,
                            "Implicit dimension choice for %s has been deprecated. "
                            "Change the call to include dim=%lld as an argument.",
                            a->op, (long long)*dim);
}

static PyObject *
call_softmax(const py_args *a, bool log)
{
    int64_t dim = 0;
    dt_dtype dtype = DT_NDTYPES;
    const dt_array *x = py_arg_array(a, 0);
    if (x == NULL || py_arg_dtype(a, 2, &dtype) < 0) {
        return NULL;
    }
    if (py_given(a->v[1]) ? py_arg_int(a, 1, &dim) < 0 : implied_dim(a, x, &dim) < 0) {
        return NULL;
    }
    PY_RETURN(a, py_array_new(a->type, a->op), py_is_large(x),
              dt_softmax(a->op, x, dim, log, dtype == DT_NDTYPES ? -1 : (int)dtype, out, &err));
}

static PyObject *
py_softmax(PY_PARAMS)
{
    PY_PARSE(softmax)
    return call_softmax(&a, false);
}

static PyObject *
py_log_softmax(PY_PARAMS)
{
    PY_PARSE(log_softmax)
    return call_softmax(&a, true);
}

/* ---------------------------------------------------------------- tables */

#define SHAPES                                                                                                         \
    "dim is an int, a tuple of ints or None for all dimensions; with keepdim they stay with size 1.\n"                 \
    "Raises IndexError for a dim out of range"
#define KIND_SUM SHAPES ". Ints and bool give int64, floats their own dtype, or dtype."
#define KIND_FLOAT SHAPES ", DTypeMismatchError for ints and bool (dtype= casts first)."
#define KIND_SAME                                                                                                      \
    SHAPES ", ShapeMismatchError if there is no element to choose from. The result has the dtype of input."
#define KIND_ARG SHAPES ", ShapeMismatchError if there is no element to choose from. The result is int64."
#define KIND_TEST SHAPES ". The result is bool, of uint8 a uint8 of 0 or 1."
#define SIGNATURE_SUM ", dim=None, keepdim=False, *, dtype=None"
#define OUT_SUM ", out=None"
#define OUT_FLOAT OUT_SUM
#define OUT_SAME ", *, out=None"
#define OUT_ARG OUT_SAME
#define OUT_TEST OUT_SAME
#define SIGNATURE_FLOAT SIGNATURE_SUM
#define SIGNATURE_SAME ", dim=None, keepdim=False"
#define SIGNATURE_ARG SIGNATURE_SAME
#define SIGNATURE_TEST SIGNATURE_SAME

#define EXTREMUM_DOC(word, function)                                                                                   \
    "The " word " element: of all, 0-dimensional; with dim, a named tuple (values, indices); of two arrays given,\n"   \
    "the " word " of each pair, as " function ".\n\n"                                                                  \
    "values have the dtype of input, indices are int64 and name the first of equals; NaN wins. Raises IndexError for " \
    "a\n"                                                                                                              \
    "dim out of range, ShapeMismatchError if there is no element to choose from."
#define SOFTMAX_DOC(formula)                                                                                           \
    formula                                                                                                            \
        " over dim, without overflow.\n\n"                                                                             \
        "The result has the shape of input and its dtype, or dtype. Without dim a UserWarning says which one was\n"    \
        "taken: 0 of 0, 1 or 3 dimensions, else 1. Raises IndexError for a dim out of range,\n"                        \
        "DTypeMismatchError for ints and bool."

#define OPS(X)                                                                                                         \
    X(max, EXTREMUM_DOC("largest", "maximum")), X(min, EXTREMUM_DOC("smallest", "minimum")),                           \
        X(softmax, SOFTMAX_DOC("exp(x) / sum(exp(x))")), X(log_softmax, SOFTMAX_DOC("x - log(sum(exp(x)))")), PY_END

PyMethodDef py_reduce_functions[] = {
    PY_HIDDEN(_variance,
              "Squared distances of floats from their mean over dim, on a GPU: their sum by count, or its root."),
    PY_HIDDEN(_sum_squares, "The sum of the squares of floats over dim."),
    PY_HIDDEN(_root_squares, "Its square root, rounded once."),
#define DT_REDUCE(name, kind, identity, step, finish, doc)                                                             \
    PY_ENTRY(name, "input" SIGNATURE_##kind OUT_##kind, doc "\n\n" KIND_##kind EXAMPLE_##name),
#define DT_REDUCE_HIDDEN(...)
#include "../../core/reductions.def"
#undef DT_REDUCE
    OPS(PY_OP),
};

PyMethodDef py_reduce_methods[] = {
#define DT_REDUCE(name, kind, identity, step, finish, doc)                                                             \
    PY_ENTRY(name, "$self" SIGNATURE_##kind, doc "\n\n" KIND_##kind EXAMPLE_##name),
#define DT_REDUCE_HIDDEN(...)
#include "../../core/reductions.def"
#undef DT_REDUCE
    OPS(PY_METHOD),
};
