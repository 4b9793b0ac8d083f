/* shape.c: views of one array with another shape. */
#include "py.h"

/* Makes the result of a with call, which sees x, out and err. */
#define RETURN_VIEW(call)                                                                                              \
    do {                                                                                                               \
        PyObject *result_ = py_array_new(a.type, a.op);                                                                \
        if (result_ == NULL) {                                                                                         \
            return NULL;                                                                                               \
        }                                                                                                              \
        dt_error err;                                                                                                  \
        dt_array *out = py_array_of(result_);                                                                          \
        dt_status status_ = (call);                                                                                    \
        return py_done(&a, result_, status_, &err);                                                                    \
    } while (0)

static PyObject *
py_reshape(PY_PARAMS)
{
    PY_PARSE_REST("reshape", 2, 2, 1, "input", "shape")
    int n;
    int64_t shape[DT_MAX_NDIM];
    const dt_array *x = py_arg_array(&a, 0);
    if (x == NULL || py_arg_sizes(&a, &n, shape) < 0) {
        return NULL;
    }
    PyObject *result = py_array_new(a.type, "reshape");
    if (result == NULL) {
        return NULL;
    }
    dt_error err;
    dt_status status;
    PY_CALL(py_is_large(x) && !dt_array_is_contiguous(x), status,
            dt_reshape("reshape", x, n, shape, py_array_of(result), &err));
    return py_done(&a, result, status, &err);
}

static PyObject *
py_view(PY_PARAMS)
{
    PY_PARSE_REST("view", 2, 2, 1, "input", "size")
    int n;
    int64_t shape[DT_MAX_NDIM];
    const dt_array *x = py_arg_array(&a, 0);
    if (x == NULL || py_arg_sizes(&a, &n, shape) < 0) {
        return NULL;
    }
    RETURN_VIEW(dt_view_reshape("view", x, n, shape, out, &err));
}

static PyObject *
py_flatten(PY_PARAMS)
{
    PY_PARSE("flatten", 1, 3, "input", "start_dim", "end_dim")
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
    PY_PARSE("unflatten", 3, 3, "input", "dim", "sizes")
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
    PY_PARSE("transpose", 3, 3, "input", "dim0", "dim1")
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
    PY_PARSE("t", 1, 1, "input")
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
    PY_PARSE_REST("permute", 2, 2, 1, "input", "dims")
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
    PY_PARSE("movedim", 3, 3, "input", "source", "destination")
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
    PY_PARSE("squeeze", 1, 2, "input", "dim")
    int n;
    int64_t dims[DT_MAX_NDIM];
    const dt_array *x = py_arg_array(&a, 0);
    if (x == NULL || py_arg_dims(&a, 1, &n, dims) < 0) {
        return NULL;
    }
    if (n == 0) { /* an empty tuple names no dimension */
        RETURN_VIEW((dt_array_copy_handle(x, out), (void)err, DT_OK));
    }
    RETURN_VIEW(dt_squeeze("squeeze", x, n < 0 ? 0 : n, dims, out, &err));
}

static PyObject *
py_unsqueeze(PY_PARAMS)
{
    PY_PARSE("unsqueeze", 2, 2, "input", "dim")
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
    PY_PARSE_REST("expand", 2, 2, 1, "input", "size")
    return call_expand(&a);
}

static PyObject *
py_broadcast_to(PY_PARAMS)
{
    PY_PARSE_REST("broadcast_to", 2, 2, 1, "input", "size")
    return call_expand(&a);
}

static PyObject *
py_expand_as(PY_PARAMS)
{
    PY_PARSE("expand_as", 2, 2, "input", "other")
    const dt_array *x = py_arg_array(&a, 0), *other = x == NULL ? NULL : py_arg_array(&a, 1);
    if (other == NULL) {
        return NULL;
    }
    RETURN_VIEW(dt_expand_as(x, other, out, &err));
}

static PyObject *
py_view_as(PY_PARAMS)
{
    PY_PARSE("view_as", 2, 2, "input", "other")
    const dt_array *x = py_arg_array(&a, 0), *other = x == NULL ? NULL : py_arg_array(&a, 1);
    if (other == NULL) {
        return NULL;
    }
    RETURN_VIEW(dt_view_as(x, other, out, &err));
}

static PyObject *
py_narrow(PY_PARAMS)
{
    PY_PARSE("narrow", 4, 4, "input", "dim", "start", "length")
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
    PY_PARSE("select", 3, 3, "input", "dim", "index")
    int64_t dim = 0, index = 0;
    const dt_array *x = py_arg_array(&a, 0);
    if (x == NULL || py_arg_int(&a, 1, &dim) < 0 || py_arg_int(&a, 2, &index) < 0) {
        return NULL;
    }
    RETURN_VIEW(dt_select("select", x, dim, index, out, &err));
}

#define VIEW "The result is a view: it shares the memory of input, keeps its dtype and device. "
#define OPS(first)                                                                                                     \
    PY_OP(                                                                                                             \
        reshape, first ", *shape",                                                                                     \
        "The same elements in another shape; one size may be -1. A view where the strides allow it, else a copy.\n\n"  \
        "Any dtype. Raises ShapeMismatchError where the number of elements differs."),                                 \
        PY_OP(view, first ", *size",                                                                                   \
              "The same elements in another shape; one size may be -1.\n\n" VIEW                                       \
              "Raises ShapeMismatchError where the number of elements differs or a copy would be needed."),            \
        PY_OP(flatten, first ", start_dim=0, end_dim=-1",                                                              \
              "Dimensions start_dim to end_dim become one. A view where the strides allow it, else a copy.\n\n"        \
              "Any dtype. Raises IndexError for dims out of range."),                                                  \
        PY_OP(unflatten, first ", dim, sizes",                                                                         \
              "Dimension dim becomes several; one size may be -1.\n\n" VIEW                                            \
              "Raises ShapeMismatchError where the sizes do not multiply to that of dim."),                            \
        PY_OP(transpose, first ", dim0, dim1",                                                                         \
              "Exchanges two dimensions.\n\n" VIEW "Raises IndexError for dims out of range."),                        \
        PY_OP(t, first,                                                                                                \
              "The transpose of a matrix; vectors and 0-dimensional arrays stay.\n\n" VIEW                             \
              "Raises ShapeMismatchError for more than two dimensions."),                                              \
        PY_OP(permute, first ", *dims",                                                                                \
              "The dimensions in another order.\n\n" VIEW                                                              \
              "Raises RuntimeError unless dims names each dimension once."),                                           \
        PY_OP(movedim, first ", source, destination",                                                                  \
              "Moves dimensions; the others keep their order.\n\n" VIEW                                                \
              "Raises RuntimeError where the two lists differ in length or repeat a dimension."),                      \
        PY_OP(squeeze, first ", dim=None",                                                                             \
              "Drops dimensions of size 1: all of them, or those among dim.\n\n" VIEW                                  \
              "Raises IndexError for dims out of range."),                                                             \
        PY_OP(unsqueeze, first ", dim",                                                                                \
              "A new dimension of size 1 at dim.\n\n" VIEW "Raises IndexError for a dim out of range."),               \
        PY_OP(expand, first ", *size",                                                                                 \
              "Repeats dimensions of size 1; -1 keeps a size. Nothing is copied.\n\n" VIEW                             \
              "Raises ShapeMismatchError where a size other than 1 would change."),                                    \
        PY_OP(broadcast_to, first ", size",                                                                            \
              "Repeats dimensions of size 1, as broadcasting does.\n\n" VIEW                                           \
              "Raises ShapeMismatchError where a size other than 1 would change."),                                    \
        PY_OP(narrow, first ", dim, start, length",                                                                    \
              "length entries of dim, from start.\n\n" VIEW                                                            \
              "Raises ShapeMismatchError where dim has fewer of them, IndexError for a dim out of range."),            \
        PY_OP(select, first ", dim, index",                                                                            \
              "Entry index of dim; the result has one dimension less.\n\n" VIEW                                        \
              "Raises IndexError for an index or a dim out of range.")

PyMethodDef py_shape_functions[] = {OPS("input"), PY_END};
PyMethodDef py_shape_methods[] = {
    OPS("$self"),
    PY_OP(expand_as, "$self, other",
          "As expand, to the shape of other, of which device and dtype do not count.\n\n" VIEW
          "Raises ShapeMismatchError where a size other than 1 would change."),
    PY_OP(view_as, "$self, other",
          "As view, in the shape of other, of which device and dtype do not count.\n\n" VIEW
          "Raises ShapeMismatchError where the number of elements differs or a copy would be needed."),
    PY_END,
};
