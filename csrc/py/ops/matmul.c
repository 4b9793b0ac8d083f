/* matmul.c: products of matrices and vectors. */
#include "../py.h"

/* Bound on the multiply-adds of a product: more than this is worth a release of the GIL. */
#define LARGE_PRODUCT 500000

bool
py_matmul_is_large(const dt_array *a, const dt_array *b)
{
    int64_t columns = b->ndim > 1 ? b->shape[b->ndim - 1] : 1, numbers = dt_array_numel(a);
    return columns > LARGE_PRODUCT || numbers > LARGE_PRODUCT || numbers * columns > LARGE_PRODUCT;
}

typedef dt_status (*product)(const dt_array *a, const dt_array *b, dt_array *out, dt_error *err);

static PyObject *
call_product(const py_spec *spec, product multiply, PY_PARAMS)
{
    py_args a;
    if (py_parse(spec, self, args, nargs, kwnames, &a) < 0) {
        return a.answer;
    }
    const dt_array *x = py_arg_array(&a, 0), *y = x == NULL ? NULL : py_arg_array(&a, 1);
    if (y == NULL) {
        return NULL;
    }
    PY_RETURN(&a, py_result(&a, 2), py_matmul_is_large(x, y), multiply(x, y, out, &err));
}

#define PRODUCT(name)                                                                                                  \
    static PyObject *py_##name(PY_PARAMS)                                                                              \
    {                                                                                                                  \
        static const py_spec spec = PY_SPEC_##name;                                                                    \
        return call_product(&spec, dt_##name, self, args, nargs, kwnames);                                             \
    }
PRODUCT(matmul)
PRODUCT(mm)
PRODUCT(bmm)
PRODUCT(mv)
PRODUCT(dot)
PRODUCT(outer)

/* input, mat1 (or batch1), mat2 (or batch2), beta, alpha, out */
static PyObject *
call_addmm(const py_args *a, bool batched)
{
    double beta = 1, alpha = 1;
    const dt_array *x[3];
    for (int i = 0; i < 3; i++) {
        if ((x[i] = py_arg_array(a, i)) == NULL) {
            return NULL;
        }
    }
    if (py_arg_float(a, 3, &beta) < 0 || py_arg_float(a, 4, &alpha) < 0) {
        return NULL;
    }
    PY_RETURN(a, py_result(a, 5), py_matmul_is_large(x[1], x[2]),
              dt_addmm(batched, x[0], x[1], x[2], beta, alpha, out, &err));
}

static PyObject *
py_addmm(PY_PARAMS)
{
    PY_PARSE(addmm)
    return call_addmm(&a, false);
}

static PyObject *
py_baddbmm(PY_PARAMS)
{
    PY_PARSE(baddbmm)
    return call_addmm(&a, true);
}

int
py_arg_activation(const py_args *a, int i, dt_activation *out)
{
    const char *name = NULL;
    dt_error err;
    if (py_given(a->v[i])) {
        if (!PyUnicode_Check(a->v[i])) {
            return py_arg_wrong(a, i, "str or None");
        }
        name = PyUnicode_AsUTF8(a->v[i]);
        if (name == NULL) {
            return -1;
        }
    }
    if (dt_activation_find(a->op, name, out, &err) != DT_OK) {
        py_raise_args(a, &err);
        return -1;
    }
    return 0;
}

static PyObject *
py_linear(PY_PARAMS)
{
    PY_PARSE(linear)
    dt_activation activation;
    const dt_array *bias, *x = py_arg_array(&a, 0), *weight = x == NULL ? NULL : py_arg_array(&a, 1);
    if (weight == NULL || py_arg_optional_array(&a, 2, &bias) < 0 || py_arg_activation(&a, 3, &activation) < 0) {
        return NULL;
    }
    int64_t rows = weight->ndim > 0 ? weight->shape[0] : 1;
    PY_RETURN(&a, py_result(&a, 4), rows > 0 && dt_array_numel(x) > LARGE_PRODUCT / rows,
              dt_linear(x, weight, bias, activation, out, &err));
}

/* Work that is worth a release of the GIL. */
static bool
is_large_attention(const dt_array *query, const dt_array *key)
{
    const int64_t keys = key->ndim > 1 ? key->shape[key->ndim - 2] : 1;
    return keys > 0 && dt_array_numel(query) > LARGE_PRODUCT / keys;
}

/* None where the device has no way of its own. */
static PyObject *
done_or_none(const py_args *a, PyObject *result, dt_status status, bool made, dt_error *err)
{
    if (status == DT_OK && !made) {
        Py_DECREF(result);
        Py_RETURN_NONE;
    }
    return py_done(a, result, status, err);
}

static PyObject *
py__attention(PY_PARAMS)
{
    PY_PARSE(_attention)
    dt_attention_params params;
    const dt_array *mask, *query = py_arg_array(&a, 0), *key = query == NULL ? NULL : py_arg_array(&a, 1);
    const dt_array *value = key == NULL ? NULL : py_arg_array(&a, 2);
    if (value == NULL || py_arg_optional_array(&a, 3, &mask) < 0 || py_arg_float(&a, 4, &params.scale) < 0 ||
        py_arg_bool(&a, 5, &params.causal) < 0) {
        return NULL;
    }
    PyObject *result = py_array_new(a.type, a.op);
    if (result == NULL) {
        return NULL;
    }
    dt_error err;
    dt_status status;
    bool made = true;
    PY_CALL_ON(a.v, PY_MAX_ARGS, is_large_attention(query, key), status,
               dt_attention(a.op, query, key, value, mask, &params, py_array_of(result), &made, &err));
    return done_or_none(&a, result, status, made, &err);
}

/* The gradients of query, key and value one after another. */
static PyObject *
py__attention_grad(PY_PARAMS)
{
    PY_PARSE(_attention_grad)
    dt_attention_params params;
    const dt_array *x[4];
    for (int i = 0; i < 4; i++) {
        if ((x[i] = py_arg_array(&a, i)) == NULL) {
            return NULL;
        }
    }
    if (py_arg_float(&a, 4, &params.scale) < 0 || py_arg_bool(&a, 5, &params.causal) < 0) {
        return NULL;
    }
    PyObject *result = py_array_new(a.type, a.op);
    if (result == NULL) {
        return NULL;
    }
    dt_error err;
    dt_status status;
    bool made = true;
    PY_CALL_ON(a.v, PY_MAX_ARGS, is_large_attention(x[0], x[1]), status,
               dt_attention_grad(a.op, x[0], x[1], x[2], x[3], &params, py_array_of(result), &made, &err));
    return done_or_none(&a, result, status, made, &err);
}

#define RAISES                                                                                                         \
    "\n\nFloats of one dtype on one device; float16 and bfloat16 accumulate in float32. Raises DeviceMismatchError,\n" \
    "DTypeMismatchError (also for ints and bool) and ShapeMismatchError, also for an out that does not fit."

/* of no more than a product */
#define RAISES_OF_BOOLS                                                                                                \
    "\n\nFloats of one dtype on one device, on the cpu also integers, whose sums wrap; float16 and bfloat16 "          \
    "accumulate in\nfloat32. Raises DeviceMismatchError, DTypeMismatchError (also for bool) and ShapeMismatchError, "  \
    "also for an out\nthat does not fit."

#define OPS(X)                                                                                                         \
    X(matmul, "Matrix product: (m, k) @ (k, n); one dimension is a vector; more are batches, which "                   \
              "broadcast." RAISES_OF_BOOLS),                                                                           \
        X(mm, "Matrix product (m, k) @ (k, n), no broadcasting." RAISES_OF_BOOLS),                                     \
        X(bmm, "Batch of matrix products (b, m, k) @ (b, k, n), no broadcasting." RAISES_OF_BOOLS),                    \
        X(mv, "Matrix (m, k) times vector (k,)." RAISES_OF_BOOLS),                                                     \
        X(dot, "Inner product of two vectors (k,): 0-dimensional." RAISES_OF_BOOLS),                                   \
        X(outer, "Outer product of vectors (m,) and (n,): (m, n)." RAISES),                                            \
        X(addmm,                                                                                                       \
          "beta * input + alpha * (mat1 @ mat2); mat1 (m, k), mat2 (k, n), input broadcasts to (m, n)." RAISES),       \
        X(baddbmm,                                                                                                     \
          "beta * input + alpha * (batch1 @ batch2); batch1 (b, m, k), batch2 (b, k, n), input broadcasts." RAISES)

PyMethodDef py_matmul_functions[] = {
    OPS(PY_OP),
    PY_OP(linear,
          "input @ weight.T + bias; input (..., k), weight (n, k), bias (n,): (..., n).\n\n"
          "activation \"relu\", \"gelu\" or \"gelu_tanh\" is applied to the sums before they are rounded, in the same "
          "pass; on CUDA\n"
          "\"gelu\", and what cuBLASLt cannot do at its end, is a pass of its own. RuntimeError for another "
          "name." RAISES),
    PY_HIDDEN(_attention,
              "softmax(query @ key.mT * scale + attn_mask) @ value in one pass over blocks, without a gradient; None\n"
              "where the device has none."),
    PY_HIDDEN(_attention_grad,
              "The gradients of query, key and value, flat and one after another, from that of _attention's result\n"
              "without a mask; None where the device has no way of its own."),
    PY_END,
};

PyMethodDef py_matmul_methods[] = {OPS(PY_METHOD), PY_END};
