/* shape.c: views of one array with another shape. */
#include "../py.h"

/* A view, made by call as in PY_RETURN. */
#define RETURN_VIEW(call) PY_RETURN(&a, py_array_new(a.type, a.op), false, call)

static PyObject *
py_reshape(PY_PARAMS)
{
    PY_PARSE(reshape)
    int n;
    int64_t shape[DT_MAX_NDIM];
    const dt_array *x = py_arg_array(&a, 0);
    if (x == NULL || py_arg_sizes(&a, &n, shape) < 0) {
        return NULL;
    }
    PY_RETURN(&a, py_array_new(a.type, "reshape"), py_is_large(x) && !dt_array_is_contiguous(x),
              dt_reshape("reshape", x, n, shape, out, &err));
}

static PyObject *
py_view(PY_PARAMS)
{
    PY_PARSE(view)
    int n;
    int64_t shape[DT_MAX_NDIM];
    const dt_array *x = py_arg_array(&a, 0);
    if (x == NULL) {
        return NULL;
    }
    dt_dtype dtype = DT_FLOAT32;
    const int named = a.nrest == 1 ? py_find_dtype(a.state, a.rest[0], &dtype) : 0;
    if (named < 0) {
        return NULL;
    }
    if (named) {
        RETURN_VIEW(dt_view_dtype("view", x, dtype, out, &err));
    }
    if (py_arg_sizes(&a, &n, shape) < 0) {
        return NULL;
    }
    RETURN_VIEW(dt_view_reshape("view", x, n, shape, out, &err));
}

static PyObject *
py_flatten(PY_PARAMS)
{
    PY_PARSE(flatten)
    int64_t start = 0, end = -1;
    const dt_array *x = py_arg_array(&a, 0);
    if (x == NULL || py_arg_int(&a, 1, &start) < 0 || py_arg_int(&a, 2, &end) < 0) {
        return NULL;
    }
    RETURN_VIEW(dt_flatten("flatten", x, start, end, out, &err));
}

static PyObject *
py_unflatten(PY_PARAMS)
{
    PY_PARSE(unflatten)
    int n;
    int64_t dim = 0, sizes[DT_MAX_NDIM];
    const dt_array *x = py_arg_array(&a, 0);
    if (x == NULL || py_arg_int(&a, 1, &dim) < 0 || py_arg_dims(&a, 2, &n, sizes) < 0) {
        return NULL;
    }
    if (n < 0) {
        py_arg_wrong(&a, 2, "a sequence of ints");
        return NULL;
    }
    RETURN_VIEW(dt_unflatten("unflatten", x, dim, n, sizes, out, &err));
}

static PyObject *
py_transpose(PY_PARAMS)
{
    PY_PARSE(transpose)
    int64_t dim0 = 0, dim1 = 0;
    const dt_array *x = py_arg_array(&a, 0);
    if (x == NULL || py_arg_int(&a, 1, &dim0) < 0 || py_arg_int(&a, 2, &dim1) < 0) {
        return NULL;
    }
    RETURN_VIEW(dt_transpose("transpose", x, dim0, dim1, out, &err));
}

static PyObject *
py_t(PY_PARAMS)
{
    PY_PARSE(t)
    const dt_array *x = py_arg_array(&a, 0);
    if (x == NULL) {
        return NULL;
    }
    if (x->ndim > 2) {
        return py_refuse_args(&a, DT_ESHAPE, "rank-mismatch",
                              "t() expects a tensor with <= 2 dimensions, but input is %dD", x->ndim);
    }
    const int64_t dims[] = {1, 0};
    RETURN_VIEW(dt_permute("t", x, x->ndim, x->ndim == 2 ? dims : dims + 1, out, &err));
}

static PyObject *
py_permute(PY_PARAMS)
{
    PY_PARSE(permute)
    int n;
    int64_t dims[DT_MAX_NDIM];
    const dt_array *x = py_arg_array(&a, 0);
    if (x == NULL || py_arg_sizes(&a, &n, dims) < 0) {
        return NULL;
    }
    RETURN_VIEW(dt_permute("permute", x, n, dims, out, &err));
}

static PyObject *
py_movedim(PY_PARAMS)
{
    PY_PARSE(movedim)
    int n, m;
    int64_t source[DT_MAX_NDIM], destination[DT_MAX_NDIM];
    const dt_array *x = py_arg_array(&a, 0);
    if (x == NULL || py_arg_dims(&a, 1, &n, source) < 0 || py_arg_dims(&a, 2, &m, destination) < 0) {
        return NULL;
    }
    if (n < 0 || m < 0) {
        return py_arg_wrong(&a, n < 0 ? 1 : 2, "ints or a sequence of ints"), NULL;
    }
    if (n != m) {
        return py_refuse_args(
            &a, DT_EVALUE, "invalid-argument",
            "movedim: Invalid source or destination dims: source (%d dims) should contain the same number of dims as "
            "destination (%d dims)",
            n, m);
    }
    RETURN_VIEW(dt_movedim("movedim", x, n, source, destination, out, &err));
}

static PyObject *
py_squeeze(PY_PARAMS)
{
    PY_PARSE(squeeze)
    int n;
    int64_t dims[DT_MAX_NDIM];
    const dt_array *x = py_arg_array(&a, 0);
    if (x == NULL || py_arg_dims(&a, 1, &n, dims) < 0) {
        return NULL;
    }
    if (n == 0) { /* an empty tuple names no dimension */
        RETURN_VIEW(dt_expand("squeeze", x, x->ndim, x->shape, out, &err));
    }
    RETURN_VIEW(dt_squeeze("squeeze", x, n < 0 ? 0 : n, dims, out, &err));
}

static PyObject *
py_unsqueeze(PY_PARAMS)
{
    PY_PARSE(unsqueeze)
    int64_t dim = 0;
    const dt_array *x = py_arg_array(&a, 0);
    if (x == NULL || py_arg_int(&a, 1, &dim) < 0) {
        return NULL;
    }
    RETURN_VIEW(dt_unsqueeze("unsqueeze", x, dim, out, &err));
}

static PyObject *
call_expand(const py_args *given)
{
    const py_args a = *given;
    int n;
    int64_t sizes[DT_MAX_NDIM];
    const dt_array *x = py_arg_array(&a, 0);
    if (x == NULL || py_arg_sizes(&a, &n, sizes) < 0) {
        return NULL;
    }
    RETURN_VIEW(dt_expand(a.op, x, n, sizes, out, &err));
}

static PyObject *
py_expand(PY_PARAMS)
{
    PY_PARSE(expand)
    return call_expand(&a);
}

static PyObject *
py_broadcast_to(PY_PARAMS)
{
    PY_PARSE(broadcast_to)
    return call_expand(&a);
}

static PyObject *
py_expand_as(PY_PARAMS)
{
    PY_PARSE(expand_as)
    const dt_array *x = py_arg_array(&a, 0), *other = x == NULL ? NULL : py_arg_array(&a, 1);
    if (other == NULL) {
        return NULL;
    }
    RETURN_VIEW(dt_expand_as(x, other, out, &err));
}

static PyObject *
py_view_as(PY_PARAMS)
{
    PY_PARSE(view_as)
    const dt_array *x = py_arg_array(&a, 0), *other = x == NULL ? NULL : py_arg_array(&a, 1);
    if (other == NULL) {
        return NULL;
    }
    RETURN_VIEW(dt_view_as(x, other, out, &err));
}

static PyObject *
py_narrow(PY_PARAMS)
{
    PY_PARSE(narrow)
    int64_t dim = 0, start = 0, length = 0;
    const dt_array *x = py_arg_array(&a, 0);
    if (x == NULL || py_arg_int(&a, 1, &dim) < 0 || py_arg_int(&a, 2, &start) < 0 || py_arg_int(&a, 3, &length) < 0) {
        return NULL;
    }
    RETURN_VIEW(dt_narrow("narrow", x, dim, start, length, out, &err));
}

static PyObject *
py_select(PY_PARAMS)
{
    PY_PARSE(select)
    int64_t dim = 0, index = 0;
    const dt_array *x = py_arg_array(&a, 0);
    if (x == NULL || py_arg_int(&a, 1, &dim) < 0 || py_arg_int(&a, 2, &index) < 0) {
        return NULL;
    }
    RETURN_VIEW(dt_select("select", x, dim, index, out, &err));
}

static PyObject *
py_diagonal(PY_PARAMS)
{
    PY_PARSE(diagonal)
    int64_t offset = 0, dim1 = 0, dim2 = 1;
    const dt_array *x = py_arg_array(&a, 0);
    if (x == NULL || py_arg_int(&a, 1, &offset) < 0 || py_arg_int(&a, 2, &dim1) < 0 || py_arg_int(&a, 3, &dim2) < 0) {
        return NULL;
    }
    RETURN_VIEW(dt_diagonal("diagonal", x, offset, dim1, dim2, out, &err));
}

#define VIEW "The result is a view: it shares the memory of input, keeps its dtype and device. "
#define OPS(X)                                                                                                         \
    X(reshape,                                                                                                         \
      "The same elements in another shape; one size may be -1. A view if the strides allow it, otherwise a copy.\n\n"  \
      "Any dtype. Raises ShapeMismatchError where the number of elements differs."),                                   \
        X(view,                                                                                                        \
          "The same elements in another shape, where one size may be -1; or the same bytes as elements of a "          \
          "dtype.\n\n"                                                                                                 \
          "The result shares the memory of input. A dtype of another size changes the last dimension, no gradient "    \
          "flows through a dtype, and as bool bytes other than 0 and 1 have no meaning. Raises ShapeMismatchError "    \
          "where the number of elements differs, the bytes do not divide, or a copy would be needed."),                \
        X(flatten, "Dimensions start_dim to end_dim become one. A view if the strides allow it, otherwise a copy.\n\n" \
                   "Any dtype. Raises IndexError for dims out of range."),                                             \
        X(unflatten, "Dimension dim becomes several; one size may be -1.\n\n" VIEW                                     \
                     "Raises ShapeMismatchError where the sizes do not multiply to that of dim."),                     \
        X(transpose, "Exchanges two dimensions.\n\n" VIEW "Raises IndexError for dims out of range."),                 \
        X(t, "The transpose of a matrix; vectors and 0-dimensional arrays stay.\n\n" VIEW                              \
             "Raises ShapeMismatchError for more than two dimensions."),                                               \
        X(permute,                                                                                                     \
          "The dimensions in another order.\n\n" VIEW "Raises RuntimeError unless dims names each dimension once."),   \
        X(movedim, "Moves dimensions; the others keep their order.\n\n" VIEW                                           \
                   "Raises RuntimeError where the two lists differ in length or repeat a dimension."),                 \
        X(squeeze, "Drops dimensions of size 1: all of them, or those among dim.\n\n" VIEW                             \
                   "Raises IndexError for dims out of range."),                                                        \
        X(unsqueeze, "A new dimension of size 1 at dim.\n\n" VIEW "Raises IndexError for a dim out of range."),        \
        X(expand, "Repeats dimensions of size 1; -1 keeps a size. Nothing is copied.\n\n" VIEW                         \
                  "Raises ShapeMismatchError where a size other than 1 would change."),                                \
        X(broadcast_to, "Repeats dimensions of size 1, as broadcasting does.\n\n" VIEW                                 \
                        "Raises ShapeMismatchError where a size other than 1 would change."),                          \
        X(narrow, "length entries of dim, from start.\n\n" VIEW                                                        \
                  "Raises ShapeMismatchError where dim has fewer of them, IndexError for a dim out of range."),        \
        X(select, "Entry index of dim; the result has one dimension less.\n\n" VIEW                                    \
                  "Raises IndexError for an index or a dim out of range."),                                            \
        X(diagonal,                                                                                                    \
          "The elements whose index in dim2 is offset more than that in dim1, as the last dimension.\n\n" VIEW         \
          "Raises IndexError for dims out of range, RuntimeError where they are one.")

PyMethodDef py_shape_functions[] = {OPS(PY_OP), PY_END};
PyMethodDef py_shape_methods[] = {
    OPS(PY_METHOD),
    PY_METHOD(expand_as, "As expand, to the shape of other, of which device and dtype do not count.\n\n" VIEW
                         "Raises ShapeMismatchError where a size other than 1 would change."),
    PY_METHOD(view_as, "As view, in the shape of other, of which device and dtype do not count.\n\n" VIEW
                       "Raises ShapeMismatchError where the number of elements differs or a copy would be needed."),
    PY_END,
};
