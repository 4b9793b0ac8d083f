/* select.c: ops that select by arrays of indices or by masks. */
#include "../../core/ops/index.h"
#include "../py.h"

/* status = call, which waits for the device where waits is true, and may take long. */
#define SELECT(a, x, waits, size, status, call)                                                                        \
    do {                                                                                                               \
        bool waits_ = (waits) && py_on_device(x);                                                                      \
        py_late_note((a)->op, x);                                                                                      \
        if (waits_) {                                                                                                  \
            PY_MOVE((a)->op, (a)->v[0], true, status, call);                                                           \
        } else {                                                                                                       \
            PY_CALL(py_is_large(size), status, call);                                                                  \
        }                                                                                                              \
    } while (0)

#define RETURN_SELECTION(a, x, waits, size, call)                                                                      \
    PY_RETURN_BY(py_array_new((a)->type, (a)->op), SELECT(a, x, waits, size, status_, call),                           \
                 py_done(a, result_, status_, &err))

/* input, dim, index; the work is of the size of the result, which is by_index or by the input */
static PyObject *
select_along(const py_args *a, dt_status (*select)(const dt_array *, int64_t, const dt_array *, dt_array *, dt_error *),
             bool by_index)
{
    int64_t dim = 0;
    const dt_array *x = py_arg_array(a, 0), *index = x == NULL ? NULL : py_arg_array(a, 2);
    if (index == NULL || py_arg_int(a, 1, &dim) < 0) {
        return NULL;
    }
    RETURN_SELECTION(a, x, false, by_index ? index : x, select(x, dim, index, out, &err));
}

static PyObject *
py_index_select(PY_PARAMS)
{
    PY_PARSE(index_select)
    return py_check_out(&a, 3) < 0 ? NULL : py_into_out(&a, 3, select_along(&a, dt_index_select, false));
}

static PyObject *
py_gather(PY_PARAMS)
{
    PY_PARSE(gather)
    return py_check_out(&a, 3) < 0 ? NULL : py_into_out(&a, 3, select_along(&a, dt_gather, true));
}

/* ---------------------------------------------------------------- sums */

/* input, dim, index, and what is added. */
typedef struct {
    const dt_array *input, *index, *added;
    int64_t dim;
} sum_operands;

static int
parse_sum(const py_args *a, sum_operands *o)
{
    o->dim = 0;
    return (o->input = py_arg_array(a, 0)) == NULL || py_arg_int(a, 1, &o->dim) < 0 ||
                   (o->index = py_arg_array(a, 2)) == NULL || (o->added = py_arg_array(a, 3)) == NULL
               ? -1
               : 0;
}

#define RETURN_SUM(a, o, in_place, call)                                                                               \
    PY_RETURN_BY((in_place) ? Py_NewRef((a)->v[0]) : py_array_new((a)->type, (a)->op),                                 \
                 SELECT(a, (o).input, false, (o).added, status_, call), py_done(a, result_, status_, &err))

static PyObject *
add_elements(const py_args *a, bool in_place)
{
    sum_operands o;
    if (parse_sum(a, &o) < 0) {
        return NULL;
    }
    RETURN_SUM(a, o, in_place, dt_scatter_add(o.input, o.dim, o.index, o.added, in_place, out, &err));
}

static PyObject *
py_scatter_add(PY_PARAMS)
{
    PY_PARSE(scatter_add)
    return add_elements(&a, false);
}

static PyObject *
py_scatter_add_(PY_PARAMS)
{
    PY_PARSE(scatter_add_)
    return add_elements(&a, true);
}

static PyObject *
add_rows(const py_args *a, bool in_place)
{
    sum_operands o;
    dt_scalar alpha = {.kind = DT_CATEGORY_INT, .i = 1, .f = 1};
    if (parse_sum(a, &o) < 0 || (a->v[4] != NULL && py_arg_scalar(a, 4, &alpha) < 0)) {
        return NULL;
    }
    if (alpha.kind == DT_CATEGORY_FLOAT && !dt_is_float((dt_dtype)o.input->dtype)) {
        return py_refuse_args(a, DT_EVALUE, "invalid-argument",
                              "For integral input tensors, argument alpha must not be a floating point number. (%s)",
                              a->op);
    }
    const dt_scalar *factor = alpha.f == 1 ? NULL : &alpha;
    RETURN_SUM(a, o, in_place, dt_index_add(o.input, o.dim, o.index, o.added, factor, in_place, out, &err));
}

static PyObject *
py_index_add(PY_PARAMS)
{
    PY_PARSE(index_add)
    return add_rows(&a, false);
}

static PyObject *
py_index_add_(PY_PARAMS)
{
    PY_PARSE(index_add_)
    return add_rows(&a, true);
}

/* ---------------------------------------------------------------- classes, takes, embeddings */

/* input and target are what the user gave; errors speak of them. The others are made of them. */
static PyObject *
pick_class(const py_args *a)
{
    int64_t dim = 0;
    const dt_array *arrays[5];
    for (int i = 0; i < 5; i++) {
        if (i != 3 && (arrays[i] = py_arg_array(a, i)) == NULL) {
            return NULL;
        }
    }
    PyObject *result = py_arg_int(a, 3, &dim) < 0 ? NULL : py_array_new(a->type, a->op);
    if (result == NULL) {
        return NULL;
    }
    dt_error err;
    dt_status status;
    SELECT(a, arrays[2], false, arrays[4], status,
           dt_pick_class(a->op, arrays[2], dim, arrays[4], py_array_of(result), &err));
    if (status != DT_OK) {
        for (err.noperands = 0; err.noperands < 2; err.noperands++) {
            const dt_operand given = {a->spec->names[err.noperands], arrays[err.noperands], -1};
            err.operands[err.noperands] = dt_describe_operand(&given);
        }
    }
    return py_done(a, result, status, &err);
}

static PyObject *
py__pick_nll_loss(PY_PARAMS)
{
    PY_PARSE(_pick_nll_loss)
    return pick_class(&a);
}

static PyObject *
py__pick_cross_entropy(PY_PARAMS)
{
    PY_PARSE(_pick_cross_entropy)
    return pick_class(&a);
}

/* what: int64 (1,), made of the others, of which errors speak. */
static PyObject *
py__check_binary_cross_entropy(PY_PARAMS)
{
    PY_PARSE(_check_binary_cross_entropy)
    const dt_array *arrays[3];
    for (int i = 0; i < 3; i++) {
        if ((arrays[i] = py_arg_array(&a, i)) == NULL) {
            return NULL;
        }
    }
    dt_array out = DT_ARRAY_EMPTY;
    dt_error err;
    dt_status status;
    SELECT(&a, arrays[2], false, arrays[2], status, dt_check_probabilities(a.op, arrays[2], &out, &err));
    dt_array_clear(&out);
    if (status == DT_OK) {
        Py_RETURN_NONE;
    }
    for (err.noperands = 0; err.noperands < 2; err.noperands++) {
        const dt_operand given = {a.spec->names[err.noperands], arrays[err.noperands], -1};
        err.operands[err.noperands] = dt_describe_operand(&given);
    }
    err.culprit = strstr(err.message, "target") != NULL;
    return py_raise(a.state, &err, a.v, 2);
}

static PyObject *
call_take(py_args *a)
{
    const dt_array *x = py_arg_array(a, 0), *index = x == NULL ? NULL : py_arg_array(a, 1);
    if (index == NULL) {
        return NULL;
    }
    RETURN_SELECTION(a, x, false, index, dt_take(x, index, out, &err));
}

static PyObject *
py_take(PY_PARAMS)
{
    PY_PARSE(take)
    return py_check_out(&a, 2) < 0 ? NULL : py_into_out(&a, 2, call_take(&a));
}

static PyObject *
call_take_along_dim(py_args *a)
{
    int64_t dim = 0;
    py_none_is_default(a, 2);
    const dt_array *x = py_arg_array(a, 0), *indices = x == NULL ? NULL : py_arg_array(a, 1);
    if (indices == NULL || py_arg_int(a, 2, &dim) < 0) {
        return NULL;
    }
    RETURN_SELECTION(a, x, false, x, dt_take_along_dim(x, indices, a->v[2] != NULL ? &dim : NULL, out, &err));
}

static PyObject *
py_take_along_dim(PY_PARAMS)
{
    PY_PARSE(take_along_dim)
    return py_check_out(&a, 3) < 0 ? NULL : py_into_out(&a, 3, call_take_along_dim(&a));
}

/* What concerns gradients is taken and changes nothing. */
static PyObject *
py_embedding(PY_PARAMS)
{
    PY_PARSE(embedding)
    if (py_given(a.v[3])) {
        return PyErr_Format(PyExc_NotImplementedError,
                            "embedding(): max_norm, which changes the weight, is not implemented");
    }
    int64_t padding;
    double norm_type = 2;
    bool by_freq, sparse;
    py_none_is_default(&a, 2);
    const dt_array *input = py_arg_array(&a, 0), *weight = input == NULL ? NULL : py_arg_array(&a, 1);
    if (weight == NULL || py_arg_int(&a, 2, &padding) < 0 || py_arg_float(&a, 4, &norm_type) < 0 ||
        py_arg_bool(&a, 5, &by_freq) < 0 || py_arg_bool(&a, 6, &sparse) < 0) {
        return NULL;
    }
    PyObject *result = py_array_new(a.type, a.op);
    if (result == NULL) {
        return NULL;
    }
    dt_error err;
    dt_status status;
    bool large = dt_array_numel(input) > PY_LARGE / 100; /* rows are long */
    py_late_note(a.op, weight);
    PY_CALL(large, status, dt_embedding(input, weight, py_array_of(result), &err));
    return py_done(&a, result, status, &err);
}

/* ---------------------------------------------------------------- masks */

PyObject *
py_nonzero_of(const py_args *a, PyObject *x, bool as_tuple)
{
    if (!py_is_array(x)) {
        py_arg_wrong(a, 0, "DeviceArray");
        return NULL;
    }
    PyObject *result = py_array_new(a->type, a->op);
    if (result == NULL) {
        return NULL;
    }
    dt_error err;
    dt_status status;
    dt_array row = *py_array_of(x);
    if (as_tuple && row.ndim == 0) { /* one array, as if of one element */
        row.ndim = 1;
        row.shape[0] = row.strides[0] = 1;
    }
    PY_MOVE(a->op, x, py_on_device(&row) || py_is_large(&row), status,
            dt_nonzero(a->op, &row, py_array_of(result), &err));
    result = py_done(a, result, status, &err);
    PyObject *tuple = result == NULL || !as_tuple ? NULL : PyTuple_New(row.ndim);
    if (result == NULL || !as_tuple) {
        return result;
    }
    for (int d = 0; tuple != NULL && d < row.ndim; d++) {
        PyObject *column = py_array_new(a->type, a->op);
        if (column != NULL) {
            column = py_done(a, column, dt_select(a->op, py_array_of(result), 1, d, py_array_of(column), &err), &err);
        }
        if (column == NULL) {
            Py_CLEAR(tuple);
        } else {
            PyTuple_SET_ITEM(tuple, d, column);
        }
    }
    Py_DECREF(result);
    return tuple;
}

static PyObject *
py_nonzero(PY_PARAMS)
{
    PY_PARSE(nonzero)
    bool as_tuple = false;
    return py_arg_bool(&a, 1, &as_tuple) < 0 ? NULL : py_nonzero_of(&a, a.v[0], as_tuple);
}

static PyObject *
call_masked_select(py_args *a)
{
    const dt_array *x = py_arg_array(a, 0), *mask = x == NULL ? NULL : py_arg_array(a, 1);
    if (mask == NULL) {
        return NULL;
    }
    RETURN_SELECTION(a, x, true, x, dt_masked_select(x, mask, out, &err));
}

static PyObject *
py_masked_select(PY_PARAMS)
{
    PY_PARSE(masked_select)
    return py_check_out(&a, 2) < 0 ? NULL : py_into_out(&a, 2, call_masked_select(&a));
}

static PyObject *
fill(const py_args *a, bool in_place)
{
    dt_scalar scalar = {0};
    const dt_array *x = py_arg_array(a, 0), *mask = x == NULL ? NULL : py_arg_array(a, 1);
    const bool has_value = mask != NULL && py_is_array(a->v[2]);
    const dt_array *value = has_value ? py_operand(a->v[2]) : NULL;
    if (mask == NULL || (value == NULL && (has_value || py_arg_scalar(a, 2, &scalar) < 0))) {
        return NULL;
    }
    PY_RETURN(a, in_place ? Py_NewRef(a->v[0]) : py_array_new(a->type, a->op), py_is_large(x),
              dt_masked_fill(x, mask, value, value == NULL ? &scalar : NULL, in_place, out, &err));
}

static PyObject *
py_masked_fill(PY_PARAMS)
{
    PY_PARSE(masked_fill)
    return fill(&a, false);
}

static PyObject *
py_masked_fill_(PY_PARAMS)
{
    PY_PARSE(masked_fill_)
    return fill(&a, true);
}

/* ---------------------------------------------------------------- tables */

#define RANGE                                                                                                          \
    "Raises DeviceMismatchError, DTypeMismatchError for indices that are not int32 or int64, IndexError for an index " \
    "out of range\n(a CUDA device reads zeros there, and the next wait raises)"
#define WAITS "On a CUDA device this waits for 8 bytes, the number of results.\n"
#define MASK "Raises DeviceMismatchError, DTypeMismatchError for a mask that is not bool, ShapeMismatchError"
#define FILL_DOC                                                                                                       \
    "value where mask is True, else input; the dtype of input. mask broadcasts with input.\n\n"                        \
    "value is a number or a 0-dimensional array on the same device. " MASK "."

#define SUMS                                                                                                           \
    "Sums are formed in a fixed order, in float32 for the half types: the same bits in every run.\n"                   \
    "Integers wrap; bool is added as or. Any dtype, the same for both. Negative indices are refused. "
#define WRITES                                                                                                         \
    "Raises DeviceMismatchError, DTypeMismatchError also for indices that are not int32 or int64,\n"                   \
    "ShapeMismatchError, IndexError for an index out of range (a CUDA device skips it, and the next wait raises)."
#define SCATTER_ADD_DOC                                                                                                \
    "input with result[i][index[i][j][k]][k] += src[i][j][k] for dim 1.\n\n"                                           \
    "index, int64 or int32, has as many dimensions as input and src, and is nowhere larger than src, nor than input "  \
    "but in dim.\n" SUMS WRITES
#define INDEX_ADD_DOC                                                                                                  \
    "input with alpha times the entries of source added to those of dimension dim at the places of index, a "          \
    "vector.\n\nsource has the shape of input, but along dim that of index, int64 or int32.\n" SUMS WRITES             \
    "\nRaises RuntimeError for an alpha with a fraction among integers."
#define OPS(X)                                                                                                         \
    X(index_select,                                                                                                    \
      "The entries of dimension dim at the places of index, a vector of int32 or int64: a copy.\n\n"                   \
      "Any dtype. Negative indices are refused. " RANGE ", ShapeMismatchError where index is not a vector."),          \
        X(gather,                                                                                                      \
          "result[i][j][k] = input[i][index[i][j][k]][k] for dim 1; the result has the shape of index.\n\n"            \
          "index, int64 or int32, has as many dimensions as input, and is nowhere larger but in dim. Any dtype.\n"     \
          "Negative indices are refused. " RANGE ", ShapeMismatchError."),                                             \
        X(scatter_add, SCATTER_ADD_DOC), X(index_add, INDEX_ADD_DOC),                                                  \
        X(take, "The elements at the places of index in input as one row, negative ones from its end; the shape of "   \
                "index.\n\nAny dtype. " RANGE "."),                                                                    \
        X(take_along_dim,                                                                                              \
          "Like gather along dim, with all other dimensions broadcast and negative indices from the end; of the "      \
          "flat array without dim.\n\nAny dtype. " RANGE ", ShapeMismatchError."),                                     \
        X(nonzero,                                                                                                     \
          "The coordinates of the elements that are not zero, in order: int64 (count, ndim), or with as_tuple a "      \
          "tuple of ndim\nvectors.\n\nAny dtype. " WAITS),                                                             \
        X(masked_select,                                                                                               \
          "The elements of input where mask is True, in order: a vector. Both broadcast.\n\nAny dtype. " WAITS MASK    \
          "."),                                                                                                        \
        X(masked_fill, FILL_DOC)

PyMethodDef py_select_functions[] = {
    OPS(PY_OP),
    PY_OP(embedding, "The rows of weight (n, d) at the indices in input, of any shape: (*, d).\n\n"
                     "padding_idx, scale_grad_by_freq and sparse concern gradients and change nothing. " RANGE
                     ", ShapeMismatchError\nwhere weight is not a matrix, NotImplementedError for max_norm."),
    PY_HIDDEN(_pick_nll_loss, "gather(logs, dim, index), whose errors are nll_loss's."),
    PY_HIDDEN(_check_binary_cross_entropy, "Raises, on a device late, where what is not 0."),
    PY_HIDDEN(_pick_cross_entropy, "gather(logs, dim, index), whose errors are cross_entropy's."),
    PY_END,
};

PyMethodDef py_select_methods[] = {
    OPS(PY_METHOD),
    PY_METHOD(scatter_add_, SCATTER_ADD_DOC "\n\nIn place: self keeps device, dtype and shape, and is returned."),
    PY_METHOD(index_add_, INDEX_ADD_DOC "\n\nIn place: self keeps device, dtype and shape, and is returned."),
    PY_METHOD(masked_fill_, FILL_DOC "\n\nIn place: self keeps device, dtype and shape, and is returned."),
    PY_END,
};
