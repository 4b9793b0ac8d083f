/* unary.c: functions of one array, element by element; all but gelu and clamp come from elementwise.def. */
#include "../../core/ops/clamp.h"
#include "../py.h"

typedef struct {
    py_spec spec;
    dt_unary_op op;
    const char *name; /* without the underscore of the in-place form */
    int nparams;
    double defaults[2];
} unary_op;

static PyObject *
call_unary(const unary_op *u, bool in_place, PY_PARAMS)
{
    py_args a;
    if ((in_place ? py_parse_in_place : py_parse)(&u->spec, self, args, nargs, kwnames, &a) < 0) {
        return a.answer;
    }
    dt_params params;
    for (int i = 0; i < 2; i++) {
        dt_scalar value = dt_scalar_float(u->defaults[i]);
        if (i < u->nparams && py_arg_scalar(&a, 1 + i, &value) < 0) {
            return NULL;
        }
        params.f[i] = value.f;
        params.i[i] = value.i;
    }
    const dt_array *x = py_arg_array(&a, 0);
    if (x == NULL) {
        return NULL;
    }
    PY_RETURN(&a, in_place ? Py_NewRef(self) : py_result(&a, 1 + u->nparams), py_is_large(x),
              dt_unary(u->op, u->name, x, &params, in_place, out, &err));
}

/* What (count, name, default, ...) of the .def means for the names, the defaults and the signature. */
#define NAMES(n, ...) NAMES_##n(__VA_ARGS__)
#define NAMES_0(...)                                                                                                   \
    {                                                                                                                  \
        "input", "out"                                                                                                 \
    }
#define NAMES_1(p, d)                                                                                                  \
    {                                                                                                                  \
        "input", p, "out"                                                                                              \
    }
#define NAMES_2(p, d, q, e)                                                                                            \
    {                                                                                                                  \
        "input", p, q, "out"                                                                                           \
    }
#define DEFAULTS(n, ...) DEFAULTS_##n(__VA_ARGS__)
#define DEFAULTS_0(...)                                                                                                \
    {                                                                                                                  \
        0, 0                                                                                                           \
    }
#define DEFAULTS_1(p, d)                                                                                               \
    {                                                                                                                  \
        d, 0                                                                                                           \
    }
#define DEFAULTS_2(p, d, q, e)                                                                                         \
    {                                                                                                                  \
        d, e                                                                                                           \
    }
#define COUNT(n, ...) n
#define SIGNATURE(n, ...) SIGNATURE_##n(__VA_ARGS__)
#define SIGNATURE_0(...) ""
#define SIGNATURE_1(p, d) ", " p "=" #d
#define SIGNATURE_2(p, d, q, e) ", " p "=" #d ", " q "=" #e

#define DT_UNARY(name_, kind, i, f, params, doc)                                                                       \
    static const unary_op op_##name_ = {{#name_, 1, 1 + COUNT params, -1, NAMES params, NULL},                         \
                                        DT_UNARY_##name_,                                                              \
                                        #name_,                                                                        \
                                        COUNT params,                                                                  \
                                        DEFAULTS params};                                                              \
    static PyObject *py_##name_(PY_PARAMS)                                                                             \
    {                                                                                                                  \
        return call_unary(&op_##name_, false, self, args, nargs, kwnames);                                             \
    }                                                                                                                  \
    static PyObject *py_##name_##_(PY_PARAMS)                                                                          \
    {                                                                                                                  \
        return call_unary(&op_##name_, true, self, args, nargs, kwnames);                                              \
    }
#include "../../core/elementwise.def"
#undef DT_UNARY

/* ---------------------------------------------------------------- gelu */

static PyObject *
py_gelu(PY_PARAMS)
{
    PY_PARSE(gelu)
    const dt_array *x = py_arg_array(&a, 0);
    if (x == NULL) {
        return NULL;
    }
    bool is_tanh = false;
    if (a.v[1] != NULL) {
        if (!PyUnicode_Check(a.v[1])) {
            py_arg_wrong(&a, 1, "str");
            return NULL;
        }
        is_tanh = PyUnicode_CompareWithASCIIString(a.v[1], "tanh") == 0;
        if (!is_tanh && PyUnicode_CompareWithASCIIString(a.v[1], "none") != 0) {
            return py_refuse_args(&a, DT_EVALUE, "invalid-argument",
                                  "approximate argument must be either none or tanh.");
        }
    }
    PY_RETURN(&a, py_result(&a, 2), py_is_large(x),
              dt_unary(is_tanh ? DT_UNARY_gelu_tanh : DT_UNARY_gelu_erf, "gelu", x, NULL, false, out, &err));
}

/* ---------------------------------------------------------------- clamp */

static int
parse_bound(const py_args *a, int i, dt_bound *out)
{
    *out = (dt_bound){0};
    if (!py_given(a->v[i])) {
        return 0;
    }
    out->given = true;
    if (py_is_array(a->v[i])) {
        out->array = py_operand(a->v[i]);
        return out->array == NULL ? -1 : 0;
    }
    int rc = py_scalar(a->v[i], &out->scalar);
    return rc == 0 ? py_arg_wrong(a, i, "a number or DeviceArray") : rc < 0 ? -1 : 0;
}

static PyObject *
call_clamp(const py_args *a, bool in_place)
{
    dt_bound low, high;
    const dt_array *x = py_arg_array(a, 0);
    if (x == NULL || parse_bound(a, 1, &low) < 0 || parse_bound(a, 2, &high) < 0) {
        return NULL;
    }
    if (!low.given && !high.given) {
        return py_refuse_args(a, DT_EVALUE, "invalid-argument",
                              "clamp: At least one of 'min' or 'max' must not be None");
    }
    PY_RETURN(a, in_place ? Py_NewRef(a->v[0]) : py_result(a, 3), py_is_large(x),
              dt_clamp(x, &low, &high, in_place, out, &err));
}

static PyObject *
py_clamp(PY_PARAMS)
{
    PY_PARSE(clamp)
    return call_clamp(&a, false);
}

static PyObject *
py_clamp_(PY_PARAMS)
{
    PY_PARSE(clamp)
    return call_clamp(&a, true);
}

/* ---------------------------------------------------------------- tables */

#define RAISES                                                                                                         \
    "Raises DTypeMismatchError for other dtypes and for an out of another dtype, ShapeMismatchError for an out of "    \
    "another shape,\n"                                                                                                 \
    "DeviceMismatchError for an out on another device."
#define KIND_ARITH "The result has the shape and the dtype of input; every dtype but bool. "
#define KIND_FLOAT                                                                                                     \
    "The result has the shape of input, and its dtype if that is a float; ints and bool give the default dtype. "
#define KIND_ROUND "The result has the shape and the dtype of input; floats and ints. "
#define KIND_BITS "The result has the shape and the dtype of input; ints and bool. "
#define KIND_TEST "The result is bool and has the shape of input; every dtype. "
#define KIND_FTEST KIND_TEST

#define IN_PLACE_DOC(name, signature, doc)                                                                             \
#name "_($self" signature ")\n--\n\n" doc "\n\nIn place: self keeps device, dtype and shape, and is returned. "
#define IN_PLACE_ARITH(name, signature, doc) IN_PLACE_DOC(name, signature, doc) KIND_ARITH
#define IN_PLACE_FLOAT(name, signature, doc) IN_PLACE_DOC(name, signature, doc) "Floats only."
#define IN_PLACE_ROUND(name, signature, doc) IN_PLACE_DOC(name, signature, doc) KIND_ROUND
#define IN_PLACE_BITS(name, signature, doc) IN_PLACE_DOC(name, signature, doc) KIND_BITS
#define IN_PLACE_TEST(name, signature, doc) IN_PLACE_DOC(name, signature, doc) KIND_TEST
#define IN_PLACE_FTEST(name, signature, doc) ""

#define FLAGS METH_FASTCALL | METH_KEYWORDS
#define DOC(doc, text) (sizeof(doc) == 1 ? "" : (text))
#define CLAMP_DOC                                                                                                      \
    "Limits the elements to [min, max]; each may be a number, an array that broadcasts, or None. NaN stays.\n\n"       \
    "The result has the shape of input broadcast with the bounds, and the promoted dtype. Raises RuntimeError when "   \
    "both are None,\n"                                                                                                 \
    "DeviceMismatchError for arrays on different devices, DTypeMismatchError for bool."
#define GELU_DOC                                                                                                       \
    "x times the normal distribution's cumulative function; approximate is \"none\" or \"tanh\".\n\n" KIND_FLOAT RAISES

PyMethodDef py_unary_functions[] = {
#define DT_UNARY(name, kind, i, f, params, doc)                                                                        \
    {#name, PY_CAST(py_##name), FLAGS,                                                                                 \
     DOC(doc, #name "(input" SIGNATURE params ", *, out=None)\n--\n\n" doc "\n\n" KIND_##kind RAISES EXAMPLE_##name)},
#include "../../core/elementwise.def"
#undef DT_UNARY
    PY_OP(gelu, GELU_DOC),
    PY_OP(clamp, CLAMP_DOC),
    PY_END,
};

PyMethodDef py_unary_methods[] = {
#define DT_UNARY(name, kind, i, f, params, doc)                                                                        \
    {#name, PY_CAST(py_##name), FLAGS,                                                                                 \
     DOC(doc, #name "($self" SIGNATURE params ")\n--\n\n" doc "\n\n" KIND_##kind RAISES EXAMPLE_##name)},              \
        {#name "_", PY_CAST(py_##name##_), FLAGS, DOC(doc, IN_PLACE_##kind(name, SIGNATURE params, doc))},
#include "../../core/elementwise.def"
#undef DT_UNARY
    PY_METHOD(gelu, GELU_DOC),
    PY_METHOD(clamp, CLAMP_DOC),
    PY_METHOD(clamp_, CLAMP_DOC "\n\nIn place: self keeps device, dtype and shape, and is returned."),
    PY_END,
};
