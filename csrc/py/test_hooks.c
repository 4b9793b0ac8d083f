/* test_hooks.c: devtensor._C._test: what tests, tools and benchmarks ask of the core and of the front, and change
 * there.
 */
#include "py.h"

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

PyMethodDef py_test_hooks[] = {
    PY_HIDDEN(fail_allocations,
              "The n-th host allocation from now fails, and all later ones when sticky; n < 0 disarms."),
    PY_HIDDEN_GETTER(allocation_count, "Host allocations asked for so far."),
    PY_HIDDEN_GETTER(live_blocks, "Host blocks alive."),
    PY_HIDDEN(check_cost, "Seconds for n checks of device and dtype of three operands."),
    PY_HIDDEN(origin_cost, "Seconds for n records of where an array was made, and from what operand."),
    PY_END,
};
