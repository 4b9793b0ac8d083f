/* scan.c: running sums and the like, and elements in order. */
#include "../../core/check/check.h"
#include "../../core/grad/grad.h"
#include "../../core/ops/index.h"
#include "../py.h"

/* ---------------------------------------------------------------- running sums */

/* input, dim, dtype (parameter at `dtype`, or -1), out (at `out`, or -1) */
static PyObject *
call_scan(const py_args *a, dt_scan_op op, int dtype_at, int out_at, bool in_place)
{
    int64_t dim = 0;
    dt_dtype dtype = DT_NDTYPES;
    const dt_array *x = py_arg_array(a, 0);
    if (x == NULL || py_arg_int(a, 1, &dim) < 0 || (dtype_at >= 0 && py_arg_dtype(a, dtype_at, &dtype) < 0)) {
        return NULL;
    }
    const int wanted = dtype == DT_NDTYPES ? -1 : (int)dtype;
    PY_RETURN(a, in_place ? Py_NewRef(a->v[0]) : py_result(a, out_at), py_is_large(x),
              dt_scan(op, a->op, x, dim, false, wanted, in_place, out, &err));
}

static PyObject *
py_cumsum(PY_PARAMS)
{
    PY_PARSE(cumsum)
    return call_scan(&a, DT_SCAN_SUM, 2, 3, false);
}

static PyObject *
py_cumsum_(PY_PARAMS)
{
    PY_PARSE_PLAIN(cumsum)
    return call_scan(&a, DT_SCAN_SUM, 2, -1, true);
}

static PyObject *
py_cumprod(PY_PARAMS)
{
    PY_PARSE(cumprod)
    return call_scan(&a, DT_SCAN_PROD, 2, 3, false);
}

static PyObject *
py_cumprod_(PY_PARAMS)
{
    PY_PARSE_PLAIN(cumprod)
    return call_scan(&a, DT_SCAN_PROD, 2, -1, true);
}

static PyObject *
py_logcumsumexp(PY_PARAMS)
{
    PY_PARSE(logcumsumexp)
    return call_scan(&a, DT_SCAN_LOGSUMEXP, -1, 2, false);
}

/* ---------------------------------------------------------------- values and indices */

/* What makes both: of all elements along dim, or of k in their order. */
typedef struct {
    bool scans;
    dt_scan_op op;
    int64_t dim, first, k;
    bool descending;
} selection;

static dt_status
select_elements(const selection *s, const char *op, const dt_array *x, dt_array *values, dt_array *indices,
                dt_error *err)
{
    DT_TRY(s->scans ? dt_scan_extremum(s->op, op, x, s->dim, values, indices, err)
                    : dt_sort(op, x, s->dim, s->first, s->k, s->descending, values, indices, err));
    if (DT_UNLIKELY(dt_wants_grad(x)) && !dt_grad_off) { /* gradients go to the elements that were taken */
        dt_array_clear(values);
        *values = DT_ARRAY_EMPTY;
        const dt_status rc = dt_gather(x, s->dim, indices, values, err);
        if (rc != DT_OK) {
            dt_array_clear(indices);
        }
        return rc;
    }
    return DT_OK;
}

/* The named tuple of both, or with type NULL the indices alone. */
static PyObject *
values_and_indices(const py_args *a, const selection *s, const dt_array *x, PyTypeObject *type)
{
    PyObject *values = py_array_new(a->type, a->op), *indices = py_array_new(a->type, a->op);
    PyObject *result = type == NULL || values == NULL || indices == NULL ? NULL : PyStructSequence_New(type);
    if (values == NULL || indices == NULL || (type != NULL && result == NULL)) {
        Py_XDECREF(values);
        Py_XDECREF(indices);
        return NULL;
    }
    dt_error err;
    dt_status status;
    PY_CALL_ON(a->v, PY_MAX_ARGS, py_is_large(x), status,
               select_elements(s, a->op, x, py_array_of(values), py_array_of(indices), &err));
    if (status != DT_OK) {
        Py_XDECREF(result);
        Py_DECREF(indices);
        return py_done(a, values, status, &err);
    }
    py_step_link(indices, a->v, 1);
    if (type == NULL) {
        Py_DECREF(values);
        return indices;
    }
    py_step_link(values, a->v, 1);
    PyStructSequence_SetItem(result, 0, values);
    PyStructSequence_SetItem(result, 1, indices);
    return result;
}

static PyObject *
call_extremum(const py_args *a, dt_scan_op op, PyTypeObject *type)
{
    selection s = {.scans = true, .op = op};
    const dt_array *x = py_arg_array(a, 0);
    return x == NULL || py_arg_int(a, 1, &s.dim) < 0 ? NULL : values_and_indices(a, &s, x, type);
}

static PyObject *
py_cummax(PY_PARAMS)
{
    PY_PARSE(cummax)
    return py_into_pair(&a, 2, call_extremum(&a, DT_SCAN_MAX, a.state->pair_types[PY_PAIR_cummax]));
}

static PyObject *
py_cummin(PY_PARAMS)
{
    PY_PARSE(cummin)
    return py_into_pair(&a, 2, call_extremum(&a, DT_SCAN_MIN, a.state->pair_types[PY_PAIR_cummin]));
}

/* Every sort is stable. */
static PyObject *
call_sort(const py_args *a, PyTypeObject *type)
{
    bool stable = false;
    selection s = {.dim = -1, .k = -1};
    const dt_array *x = py_arg_array(a, 0);
    if (x == NULL || py_arg_int(a, 1, &s.dim) < 0 || py_arg_bool(a, 2, &s.descending) < 0 ||
        (py_given(a->v[3]) && py_arg_bool(a, 3, &stable) < 0)) {
        return NULL;
    }
    return values_and_indices(a, &s, x, type);
}

static PyObject *
py_sort(PY_PARAMS)
{
    PY_PARSE(sort)
    return py_into_pair(&a, 4, call_sort(&a, a.state->pair_types[PY_PAIR_sort]));
}

static PyObject *
py_argsort(PY_PARAMS)
{
    PY_PARSE(argsort)
    return py_check_out(&a, 4) < 0 ? NULL : py_into_out(&a, 4, call_sort(&a, NULL));
}

/* Always sorted. */
static PyObject *
py_topk(PY_PARAMS)
{
    PY_PARSE(topk)
    bool largest = true, sorted = true;
    selection s = {.dim = -1};
    const dt_array *x = py_arg_array(&a, 0);
    if (x == NULL || py_arg_int(&a, 1, &s.k) < 0 || py_arg_int(&a, 2, &s.dim) < 0 || py_arg_bool(&a, 3, &largest) < 0 ||
        py_arg_bool(&a, 4, &sorted) < 0) {
        return NULL;
    }
    s.descending = largest;
    dt_error err;
    const dt_status status = dt_check_selected(a.op, x, s.dim, s.k, 0, &err);
    return status == DT_OK ? py_into_pair(&a, 5, values_and_indices(&a, &s, x, a.state->pair_types[PY_PAIR_topk]))
                           : py_raise(a.state, &err, a.v, 1);
}

/* k - 1 is in range. */
static PyObject *
py__kth(PY_PARAMS)
{
    PY_PARSE(_kth)
    selection s = {.k = 1};
    const dt_array *x = py_arg_array(&a, 0);
    if (x == NULL || py_arg_int(&a, 1, &s.first) < 0 || py_arg_int(&a, 2, &s.dim) < 0) {
        return NULL;
    }
    s.first--;
    return values_and_indices(&a, &s, x, NULL);
}

/* ---------------------------------------------------------------- tables */

#define SCAN_DOC(formula)                                                                                              \
    formula                                                                                                            \
        "\n\nInts and bool give int64, floats their own dtype, or dtype, which input is cast to first. Floats are "    \
        "summed\nup in float64 and rounded once. Raises IndexError for a dim out of range."
#define SCAN_IN_PLACE "\n\nIn place: self keeps device, dtype and shape, and is returned."
#define CUMSUM_DOC SCAN_DOC("Running sums along dim: y[i] = x[0] + ... + x[i].")
#define CUMPROD_DOC SCAN_DOC("Running products along dim: y[i] = x[0] * ... * x[i].")
#define EXTREMUM_DOC(word)                                                                                             \
    "The " word " element so far along dim, and its index: a named tuple (values, indices).\n\n"                       \
    "values have the dtype of input, indices are int64 and name the last of equals; NaN wins and stays. Raises\n"      \
    "IndexError for a dim out of range."
#define ORDER                                                                                                          \
    "Equal elements stay in their order, whatever stable says; NaN counts as the largest. Raises IndexError for a "    \
    "dim\nout of range."

#define OPS(X)                                                                                                         \
    X(cumsum, CUMSUM_DOC), X(cumprod, CUMPROD_DOC),                                                                    \
        X(logcumsumexp, "log(exp(x[0]) + ... + exp(x[i])) along dim, without overflow.\n\n"                            \
                        "Raises DTypeMismatchError for ints and bool, IndexError for a dim out of range."),            \
        X(cummax, EXTREMUM_DOC("largest")), X(cummin, EXTREMUM_DOC("smallest")),                                       \
        X(sort, "The elements along dim in order, and where they stood: a named tuple (values, indices).\n\n"          \
                "values have the dtype of input, indices are int64. " ORDER),                                          \
        X(argsort, "The places of the elements along dim in their order: int64, sort(...).indices.\n\n" ORDER),        \
        X(topk, "The k largest elements along dim, the largest first, or with largest=False the smallest, and where "  \
                "they\nstood: a named tuple (values, indices).\n\nvalues have the dtype of input, indices are int64 "  \
                "and name the first of equals. They are in order, whatever\nsorted says; NaN counts as the largest. "  \
                "Raises IndexError for a dim out of range, ShapeMismatchError for a k\nthat is more than there are.")

PyMethodDef py_scan_functions[] = {
    OPS(PY_OP),
    PY_HIDDEN(_kth, "Where the k-th smallest element stands along a dimension, which stays, of size 1."),
    PY_END,
};

PyMethodDef py_scan_methods[] = {
    OPS(PY_METHOD),
    PY_METHOD(cumsum_, CUMSUM_DOC SCAN_IN_PLACE),
    PY_METHOD(cumprod_, CUMPROD_DOC SCAN_IN_PLACE),
    PY_END,
};
