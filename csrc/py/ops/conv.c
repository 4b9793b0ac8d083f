/* conv.c: conv2d and pooling. */
#include "../py.h"

/* Multiply-adds above which a convolution is worth a release of the GIL. */
#define LARGE_CONV 200000

static bool
is_large(const dt_array *x, const dt_array *weight)
{
    int64_t taps = 1;
    for (int d = 0; d < weight->ndim; d++) {
        taps *= d == 1 || weight->shape[d] == 0 ? 1 : weight->shape[d];
        if (taps > LARGE_CONV) {
            return true;
        }
    }
    return dt_array_numel(x) > LARGE_CONV / taps;
}

/* Parameter i: numbers, "same" or "valid". */
static int
parse_padding(const py_args *a, int i, dt_padding_mode *mode, int64_t padding[2])
{
    PyObject *object = a->v[i];
    *mode = DT_PADDING_NUMBERS;
    if (object == NULL || !PyUnicode_Check(object)) {
        return py_arg_pair(a, i, padding);
    }
    if (PyUnicode_CompareWithASCIIString(object, "same") == 0) {
        *mode = DT_PADDING_SAME;
    } else if (PyUnicode_CompareWithASCIIString(object, "valid") == 0) {
        *mode = DT_PADDING_VALID;
    } else {
        py_refuse_args(a, DT_EVALUE, "invalid-argument", "%s: padding must be numbers, 'same' or 'valid'", a->op);
        return -1;
    }
    return 0;
}

static PyObject *
py_conv2d(PY_PARAMS)
{
    PY_PARSE(conv2d)
    dt_activation activation;
    int64_t stride[2] = {1, 1}, padding[2] = {0, 0}, dilation[2] = {1, 1}, groups = 1;
    dt_padding_mode mode;
    const dt_array *bias, *x = py_arg_array(&a, 0), *weight = x == NULL ? NULL : py_arg_array(&a, 1);
    if (weight == NULL || py_arg_optional_array(&a, 2, &bias) < 0 || py_arg_pair(&a, 3, stride) < 0 ||
        parse_padding(&a, 4, &mode, padding) < 0 || py_arg_pair(&a, 5, dilation) < 0 ||
        py_arg_int(&a, 6, &groups) < 0 || py_arg_activation(&a, 7, &activation) < 0) {
        return NULL;
    }
    PY_RETURN(&a, py_result(&a, 8), is_large(x, weight),
              dt_conv2d(x, weight, bias, stride, mode, padding, dilation, groups, activation, out, &err));
}

static PyObject *
py__conv_transpose2d(PY_PARAMS)
{
    PY_PARSE(_conv_transpose2d)
    dt_conv_transpose2d_params params = {.groups = 1};
    const dt_array *bias, *x = py_arg_array(&a, 0), *weight = x == NULL ? NULL : py_arg_array(&a, 1);
    if (weight == NULL || py_arg_optional_array(&a, 2, &bias) < 0 || py_arg_pair(&a, 3, params.stride) < 0 ||
        py_arg_pair(&a, 4, params.padding) < 0 || py_arg_pair(&a, 5, params.output_padding) < 0 ||
        py_arg_int(&a, 6, &params.groups) < 0 || py_arg_pair(&a, 7, params.dilation) < 0) {
        return NULL;
    }
    if ((x->ndim != 3 && x->ndim != 4) || weight->ndim != 4 || x->shape[x->ndim - 3] != weight->shape[0] ||
        params.stride[0] <= 0 || params.stride[1] <= 0 || params.groups <= 0) {
        return py_refuse_args(&a, DT_EVALUE, "invalid-argument", "%s takes what was checked", a.op);
    }
    PY_RETURN(&a, py_array_new(a.type, a.op), is_large(x, weight),
              dt_conv_transpose2d(x, weight, bias, &params, out, &err));
}

/* ---------------------------------------------------------------- pooling */

/* Parameters 1, 2, 3: kernel_size, stride (that of the kernel by default), padding. */
static int
parse_window(py_args *a, dt_pool2d_params *params)
{
    py_none_is_default(a, 2);
    if (!py_given(a->v[1])) {
        return py_arg_wrong(a, 1, "an int or a pair of ints");
    }
    if (py_arg_pair(a, 1, params->kernel) < 0) {
        return -1;
    }
    params->stride[0] = params->kernel[0];
    params->stride[1] = params->kernel[1];
    bool empty = a->v[2] != NULL && (py_is_tuple(a->v[2]) || PyList_CheckExact(a->v[2])) && PyObject_Size(a->v[2]) == 0;
    return (empty ? 0 : py_arg_pair(a, 2, params->stride)) < 0 || py_arg_pair(a, 3, params->padding) < 0 ? -1 : 0;
}

static PyObject *
py_max_pool2d(PY_PARAMS)
{
    PY_PARSE(max_pool2d)
    dt_pool2d_params params = {.mode = DT_POOL_MAX, .dilation = {1, 1}};
    bool ceil_mode = false, return_indices = false;
    const dt_array *x = py_arg_array(&a, 0);
    if (x == NULL || parse_window(&a, &params) < 0 || py_arg_pair(&a, 4, params.dilation) < 0 ||
        py_arg_bool(&a, 5, &ceil_mode) < 0 || py_arg_bool(&a, 6, &return_indices) < 0) {
        return NULL;
    }
    PyObject *result = py_array_new(a.type, "max_pool2d"), *indices = NULL;
    if (result == NULL || (return_indices && (indices = py_array_new(a.type, "max_pool2d")) == NULL)) {
        Py_XDECREF(result);
        return NULL;
    }
    dt_error err;
    dt_status status;
    dt_array *positions = indices == NULL ? NULL : py_array_of(indices);
    PY_CALL(py_is_large(x), status,
            dt_pool2d("max_pool2d", x, &params, ceil_mode, py_array_of(result), positions, &err));
    if (status != DT_OK) {
        Py_XDECREF(indices);
        return py_done(&a, result, status, &err);
    }
    py_step_link(result, a.v, 1);
    if (indices == NULL) {
        return result;
    }
    py_step_link(indices, a.v, 1);
    return Py_BuildValue("NN", result, indices);
}

static PyObject *
py_avg_pool2d(PY_PARAMS)
{
    PY_PARSE(avg_pool2d)
    dt_pool2d_params params = {.mode = DT_POOL_AVG, .count_include_pad = true, .dilation = {1, 1}};
    bool ceil_mode = false;
    py_none_is_default(&a, 6);
    const dt_array *x = py_arg_array(&a, 0);
    if (x == NULL || parse_window(&a, &params) < 0 || py_arg_bool(&a, 4, &ceil_mode) < 0 ||
        py_arg_bool(&a, 5, &params.count_include_pad) < 0 || py_arg_int(&a, 6, &params.divisor) < 0) {
        return NULL;
    }
    if (a.v[6] != NULL && params.divisor == 0) {
        return py_refuse_args(&a, DT_EVALUE, "invalid-argument", "avg_pool2d: divisor_override must not be zero");
    }
    PY_RETURN(&a, py_array_new(a.type, "avg_pool2d"), py_is_large(x),
              dt_pool2d("avg_pool2d", x, &params, ceil_mode, out, NULL, &err));
}

static int
parse_size_or_none(const py_args *a, PyObject *object, int64_t *out)
{
    if (object != Py_None && py_int(a->op, "output_size", object, out) < 0) {
        return -1;
    }
    *out = object != Py_None && *out < 0 ? -2 : *out; /* only None keeps a size */
    return 0;
}

/* An int, or a pair of ints or None; -1 keeps a size. */
static int
parse_output_size(const py_args *a, int64_t size[2])
{
    PyObject *object = a->v[1];
    size[0] = size[1] = -1;
    if (!py_given(object)) {
        return 0;
    }
    if (!PyTuple_Check(object) && !PyList_Check(object)) {
        if (py_arg_pair(a, 1, size) < 0) {
            return -1;
        }
        size[0] = size[1] = size[0] < 0 ? -2 : size[0];
        return 0;
    }
    PyObject *pair = py_tuple_of(object); /* a copy: __index__ may change a list */
    if (pair == NULL) {
        return -1;
    }
    Py_ssize_t n = PyTuple_GET_SIZE(pair);
    if (n != 2) {
        PyErr_Format(PyExc_ValueError, "%s(): argument 'output_size' must be an int or a pair of ints or None, not %zd",
                     a->op, n);
    }
    bool read = n == 2 && parse_size_or_none(a, PyTuple_GET_ITEM(pair, 0), &size[0]) == 0 &&
                parse_size_or_none(a, PyTuple_GET_ITEM(pair, 1), &size[1]) == 0;
    Py_DECREF(pair);
    return read ? 0 : -1;
}

static PyObject *
py_adaptive_avg_pool2d(PY_PARAMS)
{
    PY_PARSE(adaptive_avg_pool2d)
    int64_t size[2];
    const dt_array *x = py_arg_array(&a, 0);
    if (x == NULL || parse_output_size(&a, size) < 0) {
        return NULL;
    }
    PY_RETURN(&a, py_array_new(a.type, "adaptive_avg_pool2d"), py_is_large(x),
              dt_adaptive_avg_pool2d(x, size, out, &err));
}

#define RAISES                                                                                                         \
    "Raises DTypeMismatchError for ints and bool, ShapeMismatchError for another rank or a window larger than the "    \
    "padded\n"                                                                                                         \
    "input, RuntimeError for numbers out of range."

PyMethodDef py_conv_functions[] = {
    PY_OP(conv2d,
          "2-D convolution (cross-correlation) of images.\n\n"
          "input (N, C, H, W) or (C, H, W), weight (K, C / groups, R, S), bias (K,); the result is (N, K, P, Q) or (K, "
          "P, Q).\n"
          "stride, padding and dilation are ints or pairs; padding may be \"same\" or \"valid\". Floats of one dtype "
          "on one device.\n"
          "activation \"relu\", \"gelu\" or \"gelu_tanh\" is applied to the sums before they are rounded, in the same "
          "pass; on CUDA\n"
          "the two gelus, and what cuDNN cannot do in one graph, are passes of their own.\n"
          "Raises DeviceMismatchError, DTypeMismatchError and ShapeMismatchError, also for an out that does not fit."),
    PY_HIDDEN(_conv_transpose2d, "What conv_transpose2d computes, of arguments that it has checked."),
    PY_OP(max_pool2d,
          "Largest element of each window of (N, C, H, W) or (C, H, W); with return_indices also where it was (int64, "
          "in H * W).\n\n" RAISES),
    PY_OP(avg_pool2d, "Mean of each window of (N, C, H, W) or (C, H, W).\n\n" RAISES),
    PY_OP(adaptive_avg_pool2d,
          "Means of windows chosen so that the result has output_size (None keeps a size); (N, C, H, W) or (C, H, "
          "W).\n\n" RAISES),
    PY_END,
};

PyMethodDef py_conv_methods[] = {PY_END};
