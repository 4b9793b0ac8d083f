/* test_hooks.c: devtensor._C._test: what tests, tools and benchmarks ask of the core and of the front, and change
 * there.
 */
#include "../core/ops/index.h"
#include "py.h"

#include <string.h>
#include <time.h>

static PyObject *
py_fail_allocations(PY_PARAMS)
{
    PY_PARSE(fail_allocations)
    int64_t n = -1;
    bool sticky = false;
    if (py_arg_int(&a, 0, &n) < 0 || py_arg_bool(&a, 1, &sticky) < 0) {
        return NULL;
    }
    dt_fail_allocations(n, sticky);
    Py_RETURN_NONE;
}

static PyObject *
py_allocation_count(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    (void)self;
    return PyLong_FromLongLong(dt_allocation_count());
}

static PyObject *
py_live_blocks(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    (void)self;
    return PyLong_FromLongLong(dt_live_blocks());
}

/* Seconds for n checks of three operands that agree. */
static PyObject *
py_check_cost(PY_PARAMS)
{
    PY_PARSE(check_cost)
    int64_t n = 0, failed = 0;
    if (py_arg_int(&a, 0, &n) < 0) {
        return NULL;
    }
    dt_error err;
    dt_array x = DT_ARRAY_EMPTY;
    const int64_t shape[] = {1};
    if (dt_empty((dt_device){DT_CPU, 0}, DT_FLOAT32, 1, shape, &x, &err) != DT_OK) {
        return py_raise_args(&a, &err);
    }
    const dt_operand in[] = {{"input", &x, -1}, {"weight", &x, -1}, {"bias", &x, -1}};
    struct timespec start, end;
    timespec_get(&start, TIME_UTC);
    for (int64_t i = 0; i < n; i++) {
        failed += dt_check_same_device("linear", in, 3, &err) != DT_OK;
        failed += dt_check_same_dtype("linear", in, 3, &err) != DT_OK;
    }
    timespec_get(&end, TIME_UTC);
    double seconds = (double)(end.tv_sec - start.tv_sec) + 1e-9 * (double)(end.tv_nsec - start.tv_nsec);
    dt_array_clear(&x);
    return PyFloat_FromDouble(failed ? -1.0 : seconds);
}

/* Seconds for n records of an origin, as every new array makes one; with operand also of where that came from. */
static PyObject *
py_origin_cost(PY_PARAMS)
{
    PY_PARSE(origin_cost)
    int64_t n = 0;
    const dt_array *x = NULL;
    if (py_arg_int(&a, 0, &n) < 0 || py_arg_optional_array(&a, 1, &x) < 0) {
        return NULL;
    }
    py_array *result = (py_array *)py_array_new(a.type, "measure");
    if (result == NULL) {
        return NULL;
    }
    if (x != NULL) {
        dt_array_copy_handle(x, &result->array);
    }
    struct timespec start, end;
    timespec_get(&start, TIME_UTC);
    for (int64_t i = 0; i < n; i++) {
        py_step_release(result->step);
        result->step = py_step_new("measure");
        if (x != NULL) {
            py_step_link((PyObject *)result, &a.v[1], 1);
        }
    }
    timespec_get(&end, TIME_UTC);
    Py_DECREF(result);
    return PyFloat_FromDouble((double)(end.tv_sec - start.tv_sec) + 1e-9 * (double)(end.tv_nsec - start.tv_nsec));
}

/* The number of the binary op of that name, or -1 with an error set. */
static int
find_binary(const py_args *a, int i)
{
    const char *name = PyUnicode_Check(a->v[i]) ? PyUnicode_AsUTF8(a->v[i]) : "";
    if (name == NULL) {
        return -1;
    }
    for (int op = 0; op < DT_NBINARY; op++) {
        if (strcmp(name, dt_binary_names[op]) == 0) {
            return op;
        }
    }
    return py_arg_wrong(a, i, "the name of a binary op");
}

static PyObject *
py_binary(PY_PARAMS)
{
    PY_PARSE(binary)
    dt_params params = {0};
    bool in_place = false;
    const int op = find_binary(&a, 0);
    const dt_array *input = op < 0 ? NULL : py_arg_array(&a, 1), *other = input == NULL ? NULL : py_arg_array(&a, 2);
    if (other == NULL || py_arg_float(&a, 3, &params.f[0]) < 0 || py_arg_float(&a, 4, &params.f[1]) < 0 ||
        py_arg_bool(&a, 5, &in_place) < 0) {
        return NULL;
    }
    PY_RETURN(&a, in_place ? Py_NewRef(a.v[1]) : py_array_new(a.type, dt_binary_names[op]), py_is_large(input),
              dt_binary((dt_binary_op)op, dt_binary_names[op], input, other, NULL, &params, in_place, out, &err));
}

static PyObject *
py_add_at(PY_PARAMS)
{
    PY_PARSE(add_at)
    dt_selector selectors[DT_MAX_NDIM];
    const dt_array *input = py_arg_array(&a, 0), *value = input == NULL ? NULL : py_arg_array(&a, 2);
    const Py_ssize_t n = PyTuple_Check(a.v[1]) ? PyTuple_GET_SIZE(a.v[1]) : 0;
    if (value == NULL || n == 0 || n > input->ndim) {
        return value == NULL ? NULL : PyErr_Format(PyExc_TypeError, "indices must be a tuple of arrays");
    }
    for (int k = 0; k < n; k++) {
        PyObject *index = PyTuple_GET_ITEM(a.v[1], k);
        if (!py_is_array(index)) {
            return PyErr_Format(PyExc_TypeError, "indices must be a tuple of arrays");
        }
        selectors[k] = (dt_selector){py_array_of(index), k, k, k};
    }
    PY_RETURN(&a, Py_NewRef(a.v[0]), py_is_large(value), dt_index_add_to(a.op, out, (int)n, selectors, value, &err));
}

static PyObject *
py_softmax_grad(PY_PARAMS)
{
    PY_PARSE(softmax_grad)
    int64_t dim = 0;
    bool log = false, in_place = false;
    const dt_array *grad = py_arg_array(&a, 0), *result = grad == NULL ? NULL : py_arg_array(&a, 1);
    if (result == NULL || py_arg_int(&a, 2, &dim) < 0 || py_arg_bool(&a, 3, &log) < 0 ||
        py_arg_bool(&a, 4, &in_place) < 0) {
        return NULL;
    }
    PY_RETURN(&a, in_place ? Py_NewRef(a.v[0]) : py_array_new(a.type, a.op), py_is_large(grad),
              dt_softmax_grad(a.op, grad, result, dim, log, out, &err));
}

PyMethodDef py_test_hooks[] = {
    PY_HIDDEN(add_at,
              "target[indices] += value, what is meant twice twice; an index for each of the first dimensions."),
    PY_HIDDEN(fail_allocations,
              "The n-th host allocation from now fails, and all later ones when sticky; n < 0 disarms."),
    PY_HIDDEN_GETTER(allocation_count, "Host allocations asked for so far."),
    PY_HIDDEN_GETTER(live_blocks, "Host blocks alive."),
    PY_HIDDEN(binary, "A binary op by its name in core/elementwise.def, also one without a function."),
    PY_HIDDEN(check_cost, "Seconds for n checks of device and dtype of three operands."),
    PY_HIDDEN(origin_cost, "Seconds for n records of where an array was made, and from what operand."),
    PY_HIDDEN(softmax_grad, "What softmax's gradient, or log_softmax's, is made of."),
    PY_END,
};
