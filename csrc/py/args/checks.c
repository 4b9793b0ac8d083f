/* checks.c: the checks of the core, for the ops that Python composes of others. names are public parameter names,
 * arrays a DeviceArray for each, or None but for the first. */
#include "../as_torch.h"

#include "../../core/check/check.h"

typedef struct {
    const char *op;
    int n;
    dt_operand in[DT_MAX_OPERANDS];
    PyObject *const *objects;
} operands;

/* The first three parameters of each function here: op, names, arrays. */
static int
parse(py_args *a, operands *out)
{
    PyObject *names = a->v[1], *arrays = a->v[2];
    if (!PyUnicode_Check(a->v[0]) || !PyTuple_Check(names) || !PyTuple_Check(arrays) ||
        PyTuple_GET_SIZE(names) != PyTuple_GET_SIZE(arrays) || PyTuple_GET_SIZE(names) < 1 ||
        PyTuple_GET_SIZE(names) > DT_MAX_OPERANDS) {
        PyErr_Format(PyExc_TypeError, "%s() takes a name, a tuple of names and a tuple of as many arrays", a->op);
        return -1;
    }
    out->op = PyUnicode_AsUTF8(a->v[0]);
    out->n = (int)PyTuple_GET_SIZE(names);
    out->objects = ((PyTupleObject *)arrays)->ob_item;
    for (int i = 0; out->op != NULL && i < out->n; i++) {
        PyObject *name = PyTuple_GET_ITEM(names, i), *array = PyTuple_GET_ITEM(arrays, i);
        const char *text = PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : NULL;
        if (text == NULL || !(py_is_array(array) || (array == Py_None && i > 0))) {
            PyErr_Format(PyExc_TypeError, "%s(): argument '%s' must be DeviceArray, not %s", out->op,
                         text != NULL ? text : "?", Py_TYPE(array)->tp_name);
            return py_explain_args(a, -1);
        }
        out->in[i] = (dt_operand){text, array == Py_None ? NULL : py_array_of(array), -1};
    }
    a->op = out->op; /* whose the other arguments are, should one of them be wrong */
    return out->op == NULL ? -1 : 0;
}

static PyObject *
answer(const py_args *a, const operands *o, dt_status status, const dt_error *err)
{
    if (status != DT_OK) {
        return py_raise(a->state, err, o->objects, o->n);
    }
    Py_RETURN_NONE;
}

/* The index of the operand in question, which must be there: parameter 3. */
static int
parse_which(const py_args *a, const operands *o, int64_t *which)
{
    if (py_arg_int(a, 3, which) < 0) {
        return -1;
    }
    if (*which < 0 || *which >= o->n || o->in[*which].array == NULL) {
        PyErr_Format(PyExc_ValueError, "%s(): no operand %lld", a->op, (long long)*which);
        return -1;
    }
    return 0;
}

static PyObject *
py__check(PY_PARAMS)
{
    PY_PARSE(_check)
    operands o;
    int64_t apart = -1;
    bool channels = false, convolution = false;
    if (parse(&a, &o) < 0 || py_arg_int(&a, 3, &apart) < 0 || py_arg_bool(&a, 4, &channels) < 0 ||
        py_arg_bool(&a, 5, &convolution) < 0) {
        return NULL;
    }
    const unsigned together = apart >= 0 && apart < DT_MAX_OPERANDS ? ~(1u << apart) : DT_ALL;
    dt_error err;
    dt_status status = dt_check_same_device(o.op, o.in, o.n, &err);
    if (status == DT_OK) {
        status = dt_check_dtypes(o.op, o.in, o.n, together, convolution ? DT_CONVOLUTION : DT_BY_NAME, &err);
    }
    if (status == DT_OK) {
        status = dt_check_float(o.op, o.in, o.n, &err);
    }
    if (status == DT_OK && channels) {
        status = dt_check_channels(o.op, o.in, o.n, &err);
    }
    return answer(&a, &o, status, &err);
}

static PyObject *
py__check_shape(PY_PARAMS)
{
    PY_PARSE(_check_shape)
    operands o;
    int n;
    int64_t which, shape[DT_MAX_NDIM];
    if (parse(&a, &o) < 0 || parse_which(&a, &o, &which) < 0 || py_arg_dims(&a, 4, &n, shape) < 0) {
        return NULL;
    }
    dt_error err;
    return answer(&a, &o, dt_check_shape(o.op, o.in, o.n, (int)which, n, shape, &err), &err);
}

static PyObject *
py__check_broadcast(PY_PARAMS)
{
    PY_PARSE(_check_broadcast)
    operands o;
    int ndim;
    int64_t shape[DT_MAX_NDIM];
    if (parse(&a, &o) < 0) {
        return NULL;
    }
    dt_error err;
    return answer(&a, &o, dt_broadcast_shapes(o.op, o.in, o.n, &ndim, shape, &err), &err);
}

static PyObject *
py__check_devices(PY_PARAMS)
{
    PY_PARSE(_check_devices)
    operands o;
    if (parse(&a, &o) < 0) {
        return NULL;
    }
    if (DT_UNLIKELY(py_as_torch) && py_follows_in(o.op)) {
        int n = 0;
        for (int i = 0; i < o.n; i++) { /* numbers follow in the ops that this one is made of */
            const dt_array *x = o.in[i].array;
            if (i == 0 || x->ndim > 0 || py_on_device(x)) {
                o.in[n++] = o.in[i];
            }
        }
        o.n = n;
    }
    dt_error err;
    return answer(&a, &o, dt_check_same_device(o.op, o.in, o.n, &err), &err);
}

static PyObject *
py__check_dtypes(PY_PARAMS)
{
    PY_PARSE(_check_dtypes)
    operands o;
    int64_t apart = -1;
    if (parse(&a, &o) < 0 || py_arg_int(&a, 3, &apart) < 0) {
        return NULL;
    }
    const unsigned together = apart >= 0 && apart < DT_MAX_OPERANDS ? ~(1u << apart) : DT_ALL;
    dt_error err;
    return answer(&a, &o, dt_check_dtypes(o.op, o.in, o.n, together, DT_BY_NAME, &err), &err);
}

static PyObject *
py__check_indices(PY_PARAMS)
{
    PY_PARSE(_check_indices)
    operands o;
    int64_t which;
    bool masks = false;
    if (parse(&a, &o) < 0 || parse_which(&a, &o, &which) < 0 || py_arg_bool(&a, 4, &masks) < 0) {
        return NULL;
    }
    dt_error err;
    return answer(&a, &o, dt_check_indices(o.op, o.in, o.n, (int)which, masks, &err), &err);
}

/* Whether operand 0 can be written over with a result of this dtype and shape. */
static PyObject *
py__check_in_place(PY_PARAMS)
{
    PY_PARSE(_check_in_place)
    operands o;
    int ndim;
    int64_t shape[DT_MAX_NDIM];
    dt_dtype dtype = DT_FLOAT32;
    if (parse(&a, &o) < 0 || py_arg_dtype(&a, 3, &dtype) < 0 || py_arg_dims(&a, 4, &ndim, shape) < 0) {
        return NULL;
    }
    dt_error err;
    return answer(&a, &o, dt_check_in_place(o.op, o.in, o.n, dtype, ndim, shape, &err), &err);
}

static PyObject *
py__write_out(PY_PARAMS)
{
    PY_PARSE(_write_out)
    a.op = PyUnicode_Check(a.v[0]) ? PyUnicode_AsUTF8(a.v[0]) : NULL;
    if (a.op == NULL || py_arg_array(&a, 1) == NULL) {
        return NULL;
    }
    return py_into_out(&a, 2, Py_NewRef(a.v[1]));
}

static PyObject *
py__check_rank(PY_PARAMS)
{
    PY_PARSE(_check_rank)
    operands o;
    int64_t which, low, high;
    if (parse(&a, &o) < 0 || parse_which(&a, &o, &which) < 0 || py_arg_int(&a, 4, &low) < 0 ||
        py_arg_int(&a, 5, &high) < 0) {
        return NULL;
    }
    dt_error err;
    return answer(&a, &o, dt_check_rank_between(o.op, o.in, o.n, (int)which, (int)low, (int)high, &err), &err);
}

static PyObject *
py__fail_dtype(PY_PARAMS)
{
    PY_PARSE(_fail_dtype)
    operands o;
    int64_t which;
    const char *kinds = PyUnicode_Check(a.v[4]) ? PyUnicode_AsUTF8(a.v[4]) : "";
    if (kinds == NULL || parse(&a, &o) < 0 || parse_which(&a, &o, &which) < 0) {
        return NULL;
    }
    dt_error err;
    return answer(&a, &o, dt_fail_kind(o.op, o.in, o.n, (int)which, kinds, &err), &err);
}

/* What dt_conv2d checks of shapes, for images of one row; of weights of more dimensions only their channels. */
static PyObject *
py__check_conv1d(PY_PARAMS)
{
    PY_PARSE(_check_conv1d)
    operands o;
    int64_t groups, padded[2] = {1, 0}, reach[2] = {1, 0}, expected;
    if (parse(&a, &o) < 0 || py_arg_int(&a, 3, &groups) < 0 || py_arg_int(&a, 4, &padded[1]) < 0 ||
        py_arg_int(&a, 5, &reach[1]) < 0) {
        return NULL;
    }
    const dt_array *x = o.in[0].array, *weight = o.n == 3 ? o.in[1].array : NULL, *bias = weight ? o.in[2].array : NULL;
    if (weight == NULL || weight->ndim < 3 || x->ndim < weight->ndim - 1) {
        return PyErr_Format(PyExc_ValueError, "_check_conv1d() takes input, weight and bias of checked ranks");
    }
    int64_t channels = x->shape[x->ndim - weight->ndim + 1];
    dt_error err;
    dt_status status = DT_OK;
    if (groups <= 0) {
        status = dt_fail(&err, DT_EVALUE, "invalid-parameter", o.op,
                         "expected groups to be greater than 0, but got groups=%lld", (long long)groups);
    } else if (weight->shape[0] % groups != 0 || weight->shape[0] < groups) {
        status = dt_fail_conv_groups(o.op, o.in, o.n, groups, &err);
    } else if (__builtin_mul_overflow(weight->shape[1], groups, &expected) || channels != expected) {
        status = dt_fail_conv_channels(o.op, o.in, o.n, groups, expected, channels, &err);
    } else if (bias != NULL && (bias->ndim != 1 || bias->shape[0] != weight->shape[0])) {
        status = dt_fail_bias(o.op, o.in, o.n, 2, weight->shape[0], &err);
    } else if (padded[1] < reach[1] || (weight->ndim == 3 && weight->shape[2] == 0)) {
        status = dt_fail_window(o.op, o.in, o.n, padded, reach, &err);
    }
    return answer(&a, &o, status, &err);
}

/* Gives DeviceArray a method, while devtensor is imported. */
static PyObject *
py__add_method(PY_PARAMS)
{
    PY_PARSE(_add_method)
    PyTypeObject *type = a.state->array_type;
    if (!PyUnicode_CheckExact(a.v[0])) {
        return py_arg_wrong(&a, 0, "str"), NULL;
    }
    if (PyDict_SetItem(type->tp_dict, a.v[0], a.v[1]) < 0) {
        return NULL;
    }
    PyType_Modified(type);
    Py_RETURN_NONE;
}

static PyObject *
py__explained(PY_PARAMS)
{
    PY_PARSE(_explained)
    operands o;
    int64_t culprit = -1;
    const char *code = PyUnicode_Check(a.v[3]) ? PyUnicode_AsUTF8(a.v[3]) : NULL, *names[DT_MAX_OPERANDS];
    if (code == NULL) {
        return PyErr_Occurred() ? NULL : (py_arg_wrong(&a, 3, "str"), NULL);
    }
    if (parse(&a, &o) < 0 || py_arg_int(&a, 5, &culprit) < 0) {
        return NULL;
    }
    for (int i = 0; i < o.n; i++) {
        names[i] = o.in[i].name;
    }
    py_annotate(a.state, a.v[4], code, o.op, names, o.objects, o.n, (Py_ssize_t)culprit);
    return Py_NewRef(a.v[4]);
}

PyMethodDef py_checks_functions[] = {
    PY_HIDDEN(
        _check,
        "One device; one dtype, but for the operand apart; a float; with channels (N, C, ...), then (C): else raises "
        "what a compiled op raises."),
    PY_HIDDEN(_check_devices, "Raises DeviceMismatchError for arrays on several devices."),
    PY_HIDDEN(_check_dtypes, "Raises DTypeMismatchError for several dtypes, but for that of the operand apart."),
    PY_HIDDEN(_check_indices, "Raises DTypeMismatchError where operand which holds no indices."),
    PY_HIDDEN(_check_in_place, "Raises what an op in place raises where operand 0 cannot hold a result."),
    PY_HIDDEN(_write_out, "result, or out, into which it is written after the checks of out=."),
    PY_HIDDEN(_check_broadcast, "Raises ShapeMismatchError for shapes that do not broadcast."),
    PY_HIDDEN(_check_shape, "Raises ShapeMismatchError; -1 stands for any size."),
    PY_HIDDEN(_check_rank, "Raises ShapeMismatchError for another rank."),
    PY_HIDDEN(_check_conv1d, "Raises what conv1d raises about shapes."),
    PY_HIDDEN(_fail_dtype, "Raises DTypeMismatchError: that one of the arrays must have one of kinds."),
    PY_HIDDEN(_explained, "error, with the notes of a mismatch of the arrays."),
    PY_HIDDEN(_add_method, "Makes function a method of DeviceArray."),
    PY_END,
};

PyMethodDef py_checks_methods[] = {PY_END};
