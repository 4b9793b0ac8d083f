/* create.c: arrays made directly on their device. */
#include "../array/format.h"
#include "../grad/grad.h"

/* dtype=, device=, requires_grad=, pin_memory=, layout= from parameter i on. */
static int
parse_options(const py_args *a, int i, dt_dtype *dtype, dt_device *device)
{
    return py_arg_dtype(a, i, dtype) < 0 || py_arg_device(a, i + 1, device) < 0 || py_arg_grad(a, i + 2) < 0 ? -1 : 0;
}

/* Further out=, at i + 5, which decides what is not given. */
static int
parse_options_and_out(const py_args *a, int i, dt_dtype *dtype, dt_device *device)
{
    return py_begin_out(a, i + 5, dtype, device) < 0 || parse_options(a, i, dtype, device) < 0
               ? -1
               : py_check_out_dtype(a, i + 5, *dtype);
}

PyObject *
py_created_so(const py_args *a, int i, PyObject *result)
{
    bool wanted = false, pinned = false;
    if (result == NULL || py_arg_bool(a, i, &wanted) < 0 ||
        (py_given(a->v[i + 1]) && py_arg_bool(a, i + 1, &pinned) < 0)) {
        Py_XDECREF(result);
        return NULL;
    }
    if (pinned) { /* result is nobody's yet: it gets other memory */
        dt_error err;
        dt_status status;
        dt_array copy = DT_ARRAY_EMPTY, *x = py_array_of(result);
        PY_CALL(true, status, dt_pin(x, &copy, &err));
        if (status != DT_OK) {
            return py_fail_args(a, result, &err);
        }
        dt_array_clear(x);
        *x = copy;
    }
    return wanted ? py_want_grad(result) : result;
}

/* value NULL: undefined contents; grad: the parameter requires_grad */
static PyObject *
make_array(const py_args *a, int grad, dt_device device, dt_dtype dtype, int n, const int64_t *shape,
           const dt_scalar *value)
{
    int64_t largest = 0;
    for (int d = 0; d < n; d++) {
        largest = shape[d] > largest ? shape[d] : largest;
    }
    PY_CREATE(a, grad, py_array_new(a->type, a->op), largest > PY_LARGE / 8,
              value == NULL ? dt_empty(device, dtype, n, shape, out, &err)
                            : dt_full(a->op, device, dtype, n, shape, value, out, &err));
}

/* size, dtype, device, requires_grad, pin_memory, layout, out */
static PyObject *
call_sized(const py_args *a, const dt_scalar *value)
{
    int n;
    int64_t shape[DT_MAX_NDIM];
    dt_dtype dtype = dt_default_dtype();
    dt_device device = dt_default_device();
    if (py_arg_sizes(a, &n, shape) < 0 || parse_options_and_out(a, 1, &dtype, &device) < 0) {
        return NULL;
    }
    return py_into_out(a, 6, make_array(a, 3, device, dtype, n, shape, value));
}

/* The same of empty, in another order of memory. */
static PyObject *
call_empty_in(const py_args *a, py_format format)
{
    int n;
    dt_array like = DT_ARRAY_EMPTY;
    dt_dtype dtype = dt_default_dtype();
    dt_device device = dt_default_device();
    if (py_arg_sizes(a, &n, like.shape) < 0 || parse_options(a, 1, &dtype, &device) < 0) {
        return NULL;
    }
    like.ndim = (uint8_t)n;
    if (py_check_format(a, &like, format) < 0) {
        return NULL;
    }
    PY_CREATE(a, 3, py_array_new(a->type, a->op), true, py_empty_in(a->op, &like, format, device, dtype, out, &err));
}

static PyObject *
py_empty(PY_PARAMS)
{
    PY_PARSE(empty)
    py_format format = PY_ROW_MAJOR;
    if (py_arg_format(&a, 7, &format) < 0) {
        return NULL;
    }
    if (format == PY_PRESERVE) {
        return py_refuse_args(&a, DT_EVALUE, "invalid-argument", "empty(): unsupported memory format Preserve");
    }
    return format == PY_ROW_MAJOR || py_given(a.v[6]) ? call_sized(&a, NULL) : call_empty_in(&a, format);
}

static PyObject *
py_zeros(PY_PARAMS)
{
    PY_PARSE(zeros)
    const dt_scalar zero = dt_scalar_int(0);
    return call_sized(&a, &zero);
}

static PyObject *
py_ones(PY_PARAMS)
{
    PY_PARSE(ones)
    const dt_scalar one = dt_scalar_int(1);
    return call_sized(&a, &one);
}

static dt_dtype
dtype_of_kind(dt_category kind)
{
    return kind == DT_CATEGORY_BOOL ? DT_BOOL : kind == DT_CATEGORY_INT ? DT_INT64 : dt_default_dtype();
}

/* fill_value: a number, or *array, 0-dimensional and without a gradient, which is not read here. */
static int
parse_fill(const py_args *a, int i, const dt_array **array, dt_scalar *value)
{
    if (!py_given(a->v[i])) {
        return py_arg_wrong(a, i, "a number");
    }
    if (!py_is_array(a->v[i]) || py_array_of(a->v[i])->ndim != 0) {
        return py_arg_scalar(a, i, value);
    }
    *array = py_array_of(a->v[i]);
    return !dt_wants_grad(*array) ? 0 : py_arg_wrong(a, i, "a number or an array without a gradient, x.detach()");
}

/* made, and then filled with the element of value. */
static dt_status
filled(const py_args *a, dt_status made, dt_array *out, const dt_array *value, dt_error *err)
{
    return made == DT_OK ? dt_fill_new(a->op, out, value, err) : made;
}

/* A new array of shape filled with an array or a number. */
static PyObject *
make_full(const py_args *a, int grad, dt_device device, dt_dtype dtype, int n, const int64_t *shape,
          const dt_array *array, const dt_scalar *number)
{
    if (array == NULL) {
        return make_array(a, grad, device, dtype, n, shape, number);
    }
    PY_CREATE(a, grad, py_array_new(a->type, a->op), false,
              filled(a, dt_empty(device, dtype, n, shape, out, &err), out, array, &err));
}

static PyObject *
py_full(PY_PARAMS)
{
    PY_PARSE(full)
    int n;
    int64_t shape[DT_MAX_NDIM];
    dt_scalar value = {0};
    const dt_array *array = NULL;
    if (!py_given(a.v[0])) {
        py_arg_wrong(&a, 0, "a sequence of ints");
        return NULL;
    }
    if (py_arg_dims(&a, 0, &n, shape) < 0 || parse_fill(&a, 1, &array, &value) < 0) {
        return NULL;
    }
    dt_dtype dtype = dtype_of_kind(array == NULL ? value.kind : dt_dtypes[array->dtype].category);
    dt_device device = dt_default_device();
    if (parse_options_and_out(&a, 2, &dtype, &device) < 0) {
        return NULL;
    }
    return py_into_out(&a, 7, make_full(&a, 4, device, dtype, n, shape, array, &value));
}

/* ---------------------------------------------------------------- like another array */

/* input, [value,] dtype, device, requires_grad, pin_memory, layout, memory_format: strides like those of input where it
 * is dense, unless another order is named */
static PyObject *
call_like(const py_args *a, int options, const dt_array *array, const dt_scalar *value)
{
    const dt_array *x = py_arg_array(a, 0);
    if (x == NULL) {
        return NULL;
    }
    dt_dtype dtype = (dt_dtype)x->dtype;
    dt_device device = dt_array_device(x);
    py_format format = PY_PRESERVE;
    if (parse_options(a, options, &dtype, &device) < 0 || py_arg_format(a, options + 5, &format) < 0 ||
        py_check_format(a, x, format) < 0) {
        return NULL;
    }
    PyObject *result = py_array_new(a->type, a->op);
    if (result == NULL) {
        return NULL;
    }
    dt_error err;
    dt_array *out = py_array_of(result);
    dt_status status = py_empty_in(a->op, x, format, device, dtype, out, &err);
    if (array != NULL) {
        status = filled(a, status, out, array, &err);
    } else if (status == DT_OK && value != NULL) {
        PY_CALL(py_is_large(out), status, dt_fill(a->op, out, value, &err));
    }
    return py_created(a, options + 2, py_done(a, result, status, &err));
}

static PyObject *
py_empty_like(PY_PARAMS)
{
    PY_PARSE(empty_like)
    return call_like(&a, 1, NULL, NULL);
}

static PyObject *
py_zeros_like(PY_PARAMS)
{
    PY_PARSE(zeros_like)
    const dt_scalar zero = dt_scalar_int(0);
    return call_like(&a, 1, NULL, &zero);
}

static PyObject *
py_ones_like(PY_PARAMS)
{
    PY_PARSE(ones_like)
    const dt_scalar one = dt_scalar_int(1);
    return call_like(&a, 1, NULL, &one);
}

static PyObject *
py_full_like(PY_PARAMS)
{
    PY_PARSE(full_like)
    dt_scalar value = {0};
    const dt_array *array = NULL;
    return parse_fill(&a, 1, &array, &value) < 0 ? NULL : call_like(&a, 2, array, &value);
}

/* x.new_*: another shape, the dtype and device of x. input, size, dtype, device, requires_grad, ... */
static PyObject *
call_new(const py_args *a, const dt_scalar *value)
{
    int n;
    int64_t shape[DT_MAX_NDIM];
    const dt_array *x = py_array_of(a->v[0]);
    dt_dtype dtype = (dt_dtype)x->dtype;
    dt_device device = dt_array_device(x);
    if (py_arg_sizes(a, &n, shape) < 0 || parse_options(a, 2, &dtype, &device) < 0) {
        return NULL;
    }
    return make_array(a, 4, device, dtype, n, shape, value);
}

static PyObject *
py_new_empty(PY_PARAMS)
{
    PY_PARSE(new_empty)
    return call_new(&a, NULL);
}

static PyObject *
py_new_zeros(PY_PARAMS)
{
    PY_PARSE(new_zeros)
    const dt_scalar zero = dt_scalar_int(0);
    return call_new(&a, &zero);
}

static PyObject *
py_new_ones(PY_PARAMS)
{
    PY_PARSE(new_ones)
    const dt_scalar one = dt_scalar_int(1);
    return call_new(&a, &one);
}

static PyObject *
py_new_full(PY_PARAMS)
{
    PY_PARSE(new_full)
    int n;
    int64_t shape[DT_MAX_NDIM];
    dt_scalar value = {0};
    const dt_array *x = py_array_of(self);
    dt_dtype dtype = (dt_dtype)x->dtype;
    dt_device device = dt_array_device(x);
    const dt_array *array = NULL;
    if (!py_given(a.v[1])) {
        py_arg_wrong(&a, 1, "a sequence of ints");
        return NULL;
    }
    if (py_arg_dims(&a, 1, &n, shape) < 0 || parse_fill(&a, 2, &array, &value) < 0 ||
        parse_options(&a, 3, &dtype, &device) < 0) {
        return NULL;
    }
    return make_full(&a, 5, device, dtype, n, shape, array, &value);
}

/* ---------------------------------------------------------------- sequences and matrices */

static PyObject *
call_arange(const py_args *a)
{
    dt_scalar start = dt_scalar_int(0), end = {0}, step = dt_scalar_int(1);
    if (py_arg_scalar(a, 0, &start) < 0 || py_arg_scalar(a, 1, &end) < 0 || py_arg_scalar(a, 2, &step) < 0) {
        return NULL;
    }
    bool floats = start.kind == DT_CATEGORY_FLOAT || end.kind == DT_CATEGORY_FLOAT || step.kind == DT_CATEGORY_FLOAT;
    dt_dtype dtype = floats ? dt_default_dtype() : DT_INT64;
    dt_device device = dt_default_device();
    if (parse_options_and_out(a, 3, &dtype, &device) < 0) {
        return NULL;
    }
    PY_CREATE(a, 5, py_array_new(a->type, "arange"), end.f - start.f > PY_LARGE,
              dt_arange(device, dtype, &start, &end, &step, out, &err));
}

static PyObject *
py_arange(PY_PARAMS)
{
    PY_PARSE(arange)
    if (!py_given(a.v[1])) { /* arange(end) */
        a.v[1] = a.v[0];
        a.v[0] = NULL;
    }
    if (!py_given(a.v[1])) {
        PyErr_SetString(PyExc_TypeError, "arange() missing required argument: 'end'");
        return NULL;
    }
    return py_into_out(&a, 8, call_arange(&a));
}

static PyObject *
py_linspace(PY_PARAMS)
{
    PY_PARSE(linspace)
    dt_scalar start = {0}, end = {0};
    int64_t steps = 0;
    dt_dtype dtype = dt_default_dtype();
    dt_device device = dt_default_device();
    if (py_arg_scalar(&a, 0, &start) < 0 || py_arg_scalar(&a, 1, &end) < 0 || py_arg_int(&a, 2, &steps) < 0 ||
        parse_options(&a, 3, &dtype, &device) < 0) {
        return NULL;
    }
    PY_CREATE(&a, 5, py_array_new(a.type, "linspace"), steps > PY_LARGE,
              dt_linspace(device, dtype, &start, &end, steps, out, &err));
}

static PyObject *
call_eye(const py_args *a)
{
    int64_t n = 0;
    dt_dtype dtype = dt_default_dtype();
    dt_device device = dt_default_device();
    if (py_arg_int(a, 0, &n) < 0) {
        return NULL;
    }
    int64_t m = n;
    if (py_arg_int(a, 1, &m) < 0 || parse_options_and_out(a, 2, &dtype, &device) < 0) {
        return NULL;
    }
    PY_CREATE(a, 4, py_array_new(a->type, "eye"), m > 0 && n > PY_LARGE / m, dt_eye(device, dtype, n, m, out, &err));
}

static PyObject *
py_eye(PY_PARAMS)
{
    PY_PARSE(eye)
    py_none_is_default(&a, 1);
    return py_into_out(&a, 7, call_eye(&a));
}

static PyObject *
call_tri(const py_args *a, bool upper)
{
    int64_t diagonal = 0;
    const dt_array *x = py_arg_array(a, 0);
    if (x == NULL || py_arg_int(a, 1, &diagonal) < 0) {
        return NULL;
    }
    PY_RETURN(a, py_array_new(a->type, a->op), py_is_large(x), dt_tri(a->op, x, diagonal, upper, out, &err));
}

static PyObject *
py_tril(PY_PARAMS)
{
    PY_PARSE(tril)
    return py_check_out(&a, 2) < 0 ? NULL : py_into_out(&a, 2, call_tri(&a, false));
}

static PyObject *
py_triu(PY_PARAMS)
{
    PY_PARSE(triu)
    return py_check_out(&a, 2) < 0 ? NULL : py_into_out(&a, 2, call_tri(&a, true));
}

/* ---------------------------------------------------------------- tables */

#define WHERE                                                                                                          \
    "dtype and device default to those that set_default_dtype and set_default_device chose (float32, cpu); the array " \
    "is\n"                                                                                                             \
    "made on its device, of the cpu in page-locked memory with pin_memory; the only layout is strided. Raises\n"       \
    "ShapeMismatchError for a size below 0, DeviceNotAvailableError, MemoryError or OutOfMemoryError, RuntimeError "   \
    "for\npin_memory of a CUDA device."
#define INTO                                                                                                           \
    " Written into out, which must have the shape and decides dtype and device, where that is given:\n"                \
    "DeviceMismatchError, DTypeMismatchError where others are named, ShapeMismatchError."
#define LIKE                                                                                                           \
    "of the shape of input, and of its dtype and device unless others are given.\n\nIt has the strides of input "      \
    "where "                                                                                                           \
    "that is dense, unless memory_format names another order. Raises\nMemoryError or OutOfMemoryError, RuntimeError "  \
    "for a memory_format of another number of dimensions."
#define NEW                                                                                                            \
    "of the given size, and of the dtype and device of self unless others are given.\n\nRaises MemoryError or "        \
    "OutOfMemoryError."
#define TRIANGLES(X)                                                                                                   \
    X(tril, "The lower triangle of a matrix (..., m, n), zeros above the diagonal.\n\n"                                \
            "Any dtype. Raises ShapeMismatchError for less than two dimensions."),                                     \
        X(triu, "The upper triangle of a matrix (..., m, n), zeros below the diagonal.\n\n"                            \
                "Any dtype. Raises ShapeMismatchError for less than two dimensions.")

PyMethodDef py_create_functions[] = {
    PY_OP(empty, "An array whose elements are undefined.\n\n" WHERE INTO),
    PY_OP(zeros, "An array of zeros.\n\n" WHERE INTO),
    PY_OP(ones, "An array of ones.\n\n" WHERE INTO),
    PY_OP(full,
          "An array of one number, or of the element of a 0-dimensional array on the device of the result. Its kind "
          "decides the\ndtype: bool, int64 or the default.\n\n" WHERE
          " Raises DeviceMismatchError for an array on another device, TypeError for one with a gradient." INTO),
    PY_OP(empty_like, "An array whose elements are undefined, " LIKE),
    PY_OP(zeros_like, "Zeros " LIKE),
    PY_OP(ones_like, "Ones " LIKE),
    PY_OP(full_like, "One number, or the element of a 0-dimensional array, " LIKE),
    PY_OP(arange,
          "Numbers from start up to, but not with, end; arange(end) starts at 0. int64 for ints, else the default "
          "dtype.\n\n" WHERE INTO),
    PY_OP(linspace, "steps numbers from start to end, both included, evenly spaced.\n\n" WHERE),
    PY_OP(eye, "An (n, m) matrix with ones on the diagonal and zeros elsewhere.\n\n" WHERE INTO),
    TRIANGLES(PY_OP),
    PY_END,
};

PyMethodDef py_create_methods[] = {
    PY_METHOD(new_empty, "An array whose elements are undefined, " NEW),
    PY_METHOD(new_zeros, "Zeros " NEW),
    PY_METHOD(new_ones, "Ones " NEW),
    PY_METHOD(new_full, "One number, or the element of a 0-dimensional array, " NEW),
    TRIANGLES(PY_METHOD),
    PY_END,
};
