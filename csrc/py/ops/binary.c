/* binary.c: functions of two arrays or of an array and a number, element by element; where and lerp; normalisation. */
#include "../py.h"

#include "../../core/ops/norm.h"
#include "../../core/ops/remap.h"
#include "../../core/ops/resample.h"

/* One side of an op: an array, or a number. */
typedef struct {
    const dt_array *array;
    dt_scalar scalar;
} operand;

static DT_NOINLINE int
parse_number(const py_args *a, int i, operand *out)
{
    PyObject *object = a->v[i];
    int rc = py_scalar(object, &out->scalar);
    if (rc == 0) {
        const char *wanted = py_is_ndarray(object) ? "DeviceArray (devtensor.from_numpy makes one) or a number"
                                                   : "DeviceArray or a number";
        return py_arg_wrong(a, i, wanted);
    }
    return rc < 0 ? -1 : 0;
}

static inline int
parse_operand(const py_args *a, int i, operand *out)
{
    PyObject *object = a->v[i];
    out->array = NULL;
    if (py_is_array(object)) {
        out->array = py_operand(object);
        return out->array == NULL ? -1 : 0;
    }
    return parse_number(a, i, out);
}

/* v[0] op v[1], into out= (parameter out_index), into v[0] or into a new array. */
static PyObject *
apply(const py_args *a, dt_binary_op op, const dt_params *params, int out_index, bool in_place)
{
    operand x, y;
    if (parse_operand(a, 0, &x) < 0 || parse_operand(a, 1, &y) < 0) {
        return NULL;
    }
    if (x.array == NULL && y.array == NULL) {
        py_arg_wrong(a, 0, "DeviceArray");
        return NULL;
    }
    const dt_scalar *scalar = x.array == NULL ? &x.scalar : y.array == NULL ? &y.scalar : NULL;
    bool release = (x.array != NULL && py_is_large(x.array)) || (y.array != NULL && py_is_large(y.array));
    PY_RETURN(a, in_place ? Py_NewRef(a->v[0]) : py_result(a, out_index), release,
              dt_binary(op, a->op, x.array, y.array, scalar, params, in_place, out, &err));
}

static PyObject *
call_binary(const py_spec *spec, dt_binary_op op, bool in_place, PY_PARAMS)
{
    py_args a;
    if ((in_place ? py_parse_in_place : py_parse)(spec, self, args, nargs, kwnames, &a) < 0) {
        return a.answer;
    }
    return apply(&a, op, NULL, 2, in_place);
}

/* add sub div pow have parameters of their own and stand below; maximum and minimum have no in-place form. */
#define OWN_add ~, 1
#define OWN_sub ~, 1
#define OWN_div ~, 1
#define OWN_pow ~, 1
#define NEVER_IN_PLACE_maximum ~, 1
#define NEVER_IN_PLACE_minimum ~, 1
#define SECOND(...) SECOND_(__VA_ARGS__, 0, ~)
#define SECOND_(first, second, ...) second
#define CONCAT(a, b) CONCAT_(a, b)
#define CONCAT_(a, b) a##b

#define DEFINE_1(name)
#define DEFINE_0(name)                                                                                                 \
    static const py_spec spec_##name = {#name, 2, 2, -1, {"input", "other", "out"}, NULL};                             \
    static PyObject *py_##name(PY_PARAMS)                                                                              \
    {                                                                                                                  \
        return call_binary(&spec_##name, DT_BINARY_##name, false, self, args, nargs, kwnames);                         \
    }                                                                                                                  \
    static PyObject *py_##name##_(PY_PARAMS)                                                                           \
    {                                                                                                                  \
        return call_binary(&spec_##name, DT_BINARY_##name, true, self, args, nargs, kwnames);                          \
    }
#define DT_BINARY(name, kind, i, f, doc) CONCAT(DEFINE_, SECOND(OWN_##name))(name)
#define DT_GRADIENT(...)
#include "../../core/elementwise.def"
#undef DT_BINARY

/* ---------------------------------------------------------------- add, sub: alpha */

static bool
has_float(const py_args *a)
{
    for (int i = 0; i < 2; i++) {
        dt_scalar number;
        if (py_is_array(a->v[i]) ? dt_is_float((dt_dtype)py_array_of(a->v[i])->dtype)
                                 : py_scalar(a->v[i], &number) > 0 && number.kind == DT_CATEGORY_FLOAT) {
            return true;
        }
    }
    PyErr_Clear();
    return false;
}

static PyObject *
call_add(const py_args *a, bool subtract, bool in_place)
{
    dt_binary_op op = subtract ? DT_BINARY_sub : DT_BINARY_add;
    if (a->v[2] == NULL) {
        return apply(a, op, NULL, 3, in_place);
    }
    dt_scalar alpha = {0};
    if (py_arg_scalar(a, 2, &alpha) < 0) {
        return NULL;
    }
    if (alpha.kind == DT_CATEGORY_FLOAT && !has_float(a)) {
        return py_refuse_args(a, DT_EVALUE, "invalid-argument",
                              "For integral input tensors, argument alpha must not be a floating point number. (%s)",
                              a->op);
    }
    if (alpha.f == 1) {
        return apply(a, op, NULL, 3, in_place);
    }
    dt_params params = {{alpha.f, 0}, {alpha.i, 0}};
    if (subtract) {
        params.f[0] = -alpha.f;
        params.i[0] = (int64_t)(0 - (uint64_t)alpha.i);
    }
    return apply(a, DT_BINARY_add_scaled, &params, 3, in_place);
}

#define ADD_FORM(name, op, subtract, in_place)                                                                         \
    static PyObject *py_##name(PY_PARAMS)                                                                              \
    {                                                                                                                  \
        PY_PARSE(op)                                                                                                   \
        return call_add(&a, subtract, in_place);                                                                       \
    }
ADD_FORM(add, add, false, false)
ADD_FORM(add_, add, false, true)
ADD_FORM(sub, sub, true, false)
ADD_FORM(sub_, sub, true, true)

/* ---------------------------------------------------------------- div: rounding_mode; pow: exponent */

static PyObject *
call_div(const py_args *a, bool in_place)
{
    dt_binary_op op = DT_BINARY_div;
    PyObject *mode = a->v[2];
    if (py_given(mode)) {
        if (!PyUnicode_Check(mode)) {
            py_arg_wrong(a, 2, "str");
            return NULL;
        }
        if (PyUnicode_CompareWithASCIIString(mode, "floor") == 0) {
            op = DT_BINARY_floor_divide;
        } else if (PyUnicode_CompareWithASCIIString(mode, "trunc") == 0) {
            op = DT_BINARY_trunc_divide;
        } else {
            const char *text = PyUnicode_AsUTF8(mode);
            return text == NULL
                       ? NULL
                       : py_refuse_args(
                             a, DT_EVALUE, "invalid-argument",
                             "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '%s'", text);
        }
    }
    return apply(a, op, NULL, 3, in_place);
}

static PyObject *
py_div(PY_PARAMS)
{
    PY_PARSE(div)
    return call_div(&a, false);
}

static PyObject *
py_div_(PY_PARAMS)
{
    PY_PARSE(div)
    return call_div(&a, true);
}

static PyObject *
py_pow(PY_PARAMS)
{
    PY_PARSE(pow)
    return apply(&a, DT_BINARY_pow, NULL, 2, false);
}

static PyObject *
py_pow_(PY_PARAMS)
{
    PY_PARSE_PLAIN(pow)
    return apply(&a, DT_BINARY_pow, NULL, 2, true);
}

/* ---------------------------------------------------------------- where, lerp */

static PyObject *
call_where(const py_args *a, int condition_index, int input_index)
{
    operand x, y;
    const dt_array *condition = py_arg_array(a, condition_index);
    if (condition == NULL || parse_operand(a, input_index, &x) < 0 || parse_operand(a, 2, &y) < 0) {
        return NULL;
    }
    PY_RETURN(a, py_result(a, 3), py_is_large(condition),
              dt_where(condition, x.array, y.array, x.array == NULL ? &x.scalar : NULL,
                       y.array == NULL ? &y.scalar : NULL, out, &err));
}

static PyObject *
py_where(PY_PARAMS)
{
    if (py_is_array(self)) { /* x.where(condition, other) */
        PY_PARSE(self_where)
        return call_where(&a, 1, 0);
    }
    PY_PARSE(where)
    if (a.v[1] == NULL && a.v[2] == NULL && a.v[3] == NULL) {
        return py_nonzero_of(&a, a.v[0], true);
    }
    if (a.v[1] == NULL || a.v[2] == NULL) {
        return PyErr_Format(PyExc_TypeError, "where() takes a condition, or a condition, input and other");
    }
    return call_where(&a, 0, 1);
}

static PyObject *
call_lerp(const py_args *a, bool in_place)
{
    operand weight;
    const dt_array *x = py_arg_array(a, 0), *end = x == NULL ? NULL : py_arg_array(a, 1);
    if (end == NULL || parse_operand(a, 2, &weight) < 0) {
        return NULL;
    }
    PY_RETURN(a, in_place ? Py_NewRef(a->v[0]) : py_result(a, 3), py_is_large(x),
              dt_lerp(x, end, weight.array, &weight.scalar, in_place, out, &err));
}

static PyObject *
py_lerp(PY_PARAMS)
{
    PY_PARSE(lerp)
    return call_lerp(&a, false);
}

static PyObject *
py_lerp_(PY_PARAMS)
{
    PY_PARSE(lerp)
    return call_lerp(&a, true);
}

static PyObject *
py__huber(PY_PARAMS)
{
    PY_PARSE(_huber)
    dt_scalar delta = dt_scalar_float(1);
    const dt_array *x = py_arg_array(&a, 0), *target = py_arg_array(&a, 1);
    if (x == NULL || target == NULL || py_arg_scalar(&a, 2, &delta) < 0) {
        return NULL;
    }
    const dt_params params = {{delta.f, 0}, {delta.i, 0}};
    PY_RETURN(&a, py_array_new(a.type, a.op), py_is_large(x),
              dt_binary(DT_BINARY_huber, a.op, x, target, NULL, &params, false, out, &err));
}

/* ---------------------------------------------------------------- normalisation */

static PyObject *
call_affine(const py_args *a, bool in_place)
{
    const dt_array *input = py_arg_array(a, 0), *scale = py_arg_array(a, 1), *shift = py_arg_array(a, 2);
    if (input == NULL || scale == NULL || shift == NULL) {
        return NULL;
    }
    PY_RETURN(a, in_place ? Py_NewRef(a->v[0]) : py_array_new(a->type, a->op), py_is_large(input),
              dt_affine(a->op, input, scale, shift, in_place, out, &err));
}

static PyObject *
py__affine(PY_PARAMS)
{
    PY_PARSE(_affine)
    return call_affine(&a, false);
}

static PyObject *
py__affine_(PY_PARAMS)
{
    PY_PARSE(_affine_)
    return call_affine(&a, true);
}

static PyObject *
py__batch_norm(PY_PARAMS)
{
    PY_PARSE(_batch_norm)
    const dt_array *mean, *var, *weight, *bias, *input = py_arg_array(&a, 0);
    double eps;
    if (input == NULL || py_arg_optional_array(&a, 3, &weight) < 0 || py_arg_optional_array(&a, 4, &bias) < 0 ||
        (mean = py_arg_array(&a, 1)) == NULL || (var = py_arg_array(&a, 2)) == NULL || py_arg_float(&a, 5, &eps) < 0) {
        return NULL;
    }
    PY_RETURN(&a, py_array_new(a.type, "batch_norm"), py_is_large(input),
              dt_batch_norm(input, mean, var, weight, bias, eps, out, &err));
}

static PyObject *
py__normalize_channels(PY_PARAMS)
{
    PY_PARSE(_normalize_channels)
    const dt_array *weight, *bias, *input = py_arg_array(&a, 0), *stats = py_arg_array(&a, 3);
    dt_normalize_params params = {.kind = DT_NORM_CHANNELS, .centred = true};
    if (input == NULL || stats == NULL || py_arg_optional_array(&a, 1, &weight) < 0 ||
        py_arg_optional_array(&a, 2, &bias) < 0 || py_arg_float(&a, 4, &params.eps) < 0) {
        return NULL;
    }
    dt_array numbers = *stats; /* written to: the array itself stays as it is */
    PY_RETURN(&a, py_array_new(a.type, a.op), py_is_large(input),
              dt_normalize_channels(input, weight, bias, &params, &numbers, out, &err));
}

/* Over the dimensions from parameter 3 on; parameter 5: the mean is subtracted. op is what errors name. */
static PyObject *
normalized(const py_args *a)
{
    const dt_array *weight, *bias, *input = py_arg_array(a, 0);
    dt_normalize_params params = {.kind = DT_NORM_LAST};
    int64_t lead;
    if (input == NULL || py_arg_optional_array(a, 1, &weight) < 0 || py_arg_optional_array(a, 2, &bias) < 0 ||
        py_arg_int(a, 3, &lead) < 0 || py_arg_float(a, 4, &params.eps) < 0 || py_arg_bool(a, 5, &params.centred) < 0) {
        return NULL;
    }
    params.lead = (int)lead;
    PY_RETURN(a, py_array_new(a->type, a->op), py_is_large(input),
              dt_normalize(a->op, input, weight, bias, &params, out, &err));
}

static PyObject *
py__group_norm(PY_PARAMS)
{
    PY_PARSE(_group_norm)
    const dt_array *weight, *bias, *input = py_arg_array(&a, 0);
    dt_normalize_params params = {.kind = DT_NORM_GROUPS, .lead = 2, .centred = true};
    if (input == NULL || py_arg_optional_array(&a, 1, &weight) < 0 || py_arg_optional_array(&a, 2, &bias) < 0 ||
        py_arg_float(&a, 3, &params.eps) < 0) {
        return NULL;
    }
    PY_RETURN(&a, py_array_new(a.type, a.op), py_is_large(input),
              dt_normalize(a.op, input, weight, bias, &params, out, &err));
}

/* The two ints of a tuple, as _remap is given them. */
static int
two_ints(const py_args *a, int i, int64_t out[2])
{
    int n;
    int64_t found[DT_MAX_NDIM];
    if (py_arg_dims(a, i, &n, found) < 0) {
        return -1;
    }
    if (n != 2) {
        return py_arg_wrong(a, i, "two ints");
    }
    out[0] = found[0];
    out[1] = found[1];
    return 0;
}

static int
two_floats(const py_args *a, int i, double out[2])
{
    if (!PyTuple_Check(a->v[i]) || PyTuple_GET_SIZE(a->v[i]) != 2) {
        return py_arg_wrong(a, i, "two floats");
    }
    out[0] = PyFloat_AsDouble(PyTuple_GET_ITEM(a->v[i], 0));
    out[1] = PyFloat_AsDouble(PyTuple_GET_ITEM(a->v[i], 1));
    return PyErr_Occurred() ? -1 : 0;
}

static PyObject *
py__remap(PY_PARAMS)
{
    PY_PARSE(_remap)
    dt_remap_params params = {.dim = 0};
    int64_t dim, kinds[2], sizes[2], before[2];
    double steps[2], shifts[2];
    const dt_array *input = py_arg_array(&a, 0);
    if (input == NULL || py_arg_int(&a, 1, &dim) < 0 || two_ints(&a, 2, kinds) < 0 || two_ints(&a, 3, sizes) < 0 ||
        two_ints(&a, 4, before) < 0 || two_floats(&a, 5, steps) < 0 || two_floats(&a, 6, shifts) < 0 ||
        py_arg_bool(&a, 7, &params.columns_first) < 0) {
        return NULL;
    }
    params.dim = (int)dim;
    for (int d = 0; d < 2; d++) {
        if (kinds[d] < 0 || kinds[d] >= DT_NREMAPS) {
            return PyErr_Format(PyExc_ValueError, "%s: no such kind", a.op);
        }
        params.along[d] = (dt_remap_dim){(dt_remap_kind)kinds[d], sizes[d], before[d], shifts[d], steps[d]};
    }
    PY_RETURN(&a, py_array_new(a.type, a.op), py_is_large(input), dt_remap(a.op, input, &params, out, &err));
}

static PyObject *
py__resample(PY_PARAMS)
{
    PY_PARSE(_resample)
    const dt_array *input = py_arg_array(&a, 0), *index = py_arg_array(&a, 1), *share = py_arg_array(&a, 2);
    dt_resample_params params = {.back = false};
    if (input == NULL || index == NULL || share == NULL || py_arg_int(&a, 3, &params.dim) < 0) {
        return NULL;
    }
    params.size = index->ndim == 2 ? index->shape[1] : 0;
    PY_RETURN(&a, py_array_new(a.type, a.op), py_is_large(input), dt_resample(input, index, share, &params, out, &err));
}

static PyObject *
py__layer_norm(PY_PARAMS)
{
    PY_PARSE(_layer_norm)
    return normalized(&a);
}

static PyObject *
py__rms_norm(PY_PARAMS)
{
    PY_PARSE(_rms_norm)
    return normalized(&a);
}

/* ---------------------------------------------------------------- tables */

#define SHAPES "Shapes broadcast together. "
#define RAISES                                                                                                         \
    "Raises DeviceMismatchError for arrays on different devices, ShapeMismatchError for shapes that do not\n"          \
    "broadcast, DTypeMismatchError for other dtypes and for an out of another dtype."
#define KIND_ARITH SHAPES "dtypes promote; every dtype but bool with bool. "
#define KIND_FLOAT SHAPES "dtypes promote; ints and bool give the default dtype. "
#define KIND_BITS SHAPES "dtypes promote; ints and bool. "
#define KIND_COMPARE SHAPES "dtypes promote for the comparison; the result is bool. "
#define IN_PLACE                                                                                                       \
    "\n\nIn place: self keeps device, dtype and shape, and is returned; raises where the result does not fit."
#define FLAGS METH_FASTCALL | METH_KEYWORDS
#define DOC(doc, text) (sizeof(doc) == 1 ? "" : (text))

#define ADD_DOC "input + alpha * other. Integers wrap.\n\n" KIND_ARITH RAISES
#define SUB_DOC "input - alpha * other. Integers wrap.\n\n" KIND_ARITH RAISES
#define DIV_DOC                                                                                                        \
    "input / other; rounding_mode \"floor\" or \"trunc\" rounds the quotient and keeps integers.\n\n" KIND_FLOAT RAISES
#define POW_DOC "input ** exponent; either may be a number. Integers wrap.\n\n" KIND_ARITH RAISES
#define WHERE_DOC                                                                                                      \
    "input where condition is true, else other; each may be a number.\n\n" SHAPES                                      \
    "condition is bool; the dtypes of the others promote. " RAISES
#define LERP_DOC "input + weight * (end - input); weight may be a number.\n\n" SHAPES "Floats of one dtype. " RAISES

PyMethodDef py_binary_functions[] = {
#define FUNCTION_1(name, kind, doc)
#define FUNCTION_0(name, kind, doc)                                                                                    \
    {#name, PY_CAST(py_##name), FLAGS,                                                                                 \
     DOC(doc, #name "(input, other, *, out=None)\n--\n\n" doc "\n\n" KIND_##kind RAISES EXAMPLE_##name)},
#define DT_BINARY(name, kind, i, f, doc) CONCAT(FUNCTION_, SECOND(OWN_##name))(name, kind, doc)
#define DT_GRADIENT(...)
#include "../../core/elementwise.def"
#undef DT_BINARY
    PY_OP(add, ADD_DOC),
    PY_OP(sub, SUB_DOC),
    PY_OP(div, DIV_DOC),
    PY_OP(pow, POW_DOC),
    PY_OP(where, WHERE_DOC "\n\nwhere(condition) is nonzero(condition, as_tuple=True)."),
    PY_OP(lerp, LERP_DOC),
    PY_HIDDEN(_huber, "Half the square of input - target up to delta, from there on a line of slope delta."),
    PY_HIDDEN(_affine, "input * scale + shift, rounded twice."),
    PY_HIDDEN(_affine_, "input = input * scale + shift, rounded twice."),
    PY_HIDDEN(_batch_norm, "batch_norm in evaluation mode."),
    PY_HIDDEN(_normalize_channels,
              "batch_norm in training, of contiguous channels; stats gets mean and variance by n - 1."),
    PY_HIDDEN(_layer_norm, "layer_norm of float32 or float64 on the cpu, over the dimensions from lead on."),
    PY_HIDDEN(_rms_norm, "The same without a mean."),
    PY_HIDDEN(_group_norm,
              "The same of (N, groups, channels, pixels): the last two; weight and bias (groups, channels)."),
    PY_HIDDEN(_remap, "Places of the input along dim and the next: see csrc/core/ops/remap.h."),
    PY_HIDDEN(_resample,
              "Sums of input[index[t, i]] * share[t, i] over t along dim, on the cpu; a negative index gives 0."),
    PY_END,
};

PyMethodDef py_binary_methods[] = {
#define METHOD_1(name, kind, doc)
#define METHOD_0(name, kind, doc)                                                                                      \
    {#name, PY_CAST(py_##name), FLAGS,                                                                                 \
     DOC(doc, #name "($self, other)\n--\n\n" doc "\n\n" KIND_##kind RAISES EXAMPLE_##name)},                           \
        CONCAT(IN_PLACE_, SECOND(NEVER_IN_PLACE_##name))(name, kind, doc)
#define IN_PLACE_0(name, kind, doc)                                                                                    \
    {#name "_", PY_CAST(py_##name##_), FLAGS,                                                                          \
     DOC(doc, #name "_($self, other)\n--\n\n" doc "\n\n" KIND_##kind RAISES IN_PLACE)},
#define IN_PLACE_1(name, kind, doc) {#name "_", PY_CAST(py_##name##_), FLAGS, ""},
#define DT_BINARY(name, kind, i, f, doc) CONCAT(METHOD_, SECOND(OWN_##name))(name, kind, doc)
#define DT_GRADIENT(...)
#include "../../core/elementwise.def"
#undef DT_BINARY
    PY_METHOD(add, ADD_DOC),
    PY_METHOD(add_, ADD_DOC IN_PLACE),
    PY_METHOD(sub, SUB_DOC),
    PY_METHOD(sub_, SUB_DOC IN_PLACE),
    PY_METHOD(div, DIV_DOC),
    PY_METHOD(div_, DIV_DOC IN_PLACE),
    PY_METHOD(pow, POW_DOC),
    PY_METHOD(pow_, POW_DOC IN_PLACE),
    PY_METHOD(where, WHERE_DOC),
    PY_METHOD(lerp, LERP_DOC),
    PY_METHOD(lerp_, LERP_DOC IN_PLACE),
    PY_END,
};
