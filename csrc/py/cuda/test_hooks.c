/* test_hooks.c: devtensor._C._test: what tests, tools and benchmarks ask of the CUDA backend and of the simulated GPU,
 * and change in them. */
#include "../../cuda/front.h"
#include "../py.h"

static PyObject *
py_api_calls(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    (void)self;
    PyObject *dict = PyDict_New();
    for (int i = 0; dict != NULL && i < cuda_api_count(); i++) {
        PyObject *count = PyLong_FromLongLong(cuda_api_called(i));
        if (count == NULL || PyDict_SetItemString(dict, cuda_api_name(i), count) < 0) {
            Py_CLEAR(dict);
        }
        Py_XDECREF(count);
    }
    return dict;
}

/* The number of the call of this name, -1 for None; false with an exception. */
static bool
find_symbol(const char *op, PyObject *given, int *symbol)
{
    *symbol = -1;
    if (given == Py_None) {
        return true;
    }
    const char *name = PyUnicode_AsUTF8(given);
    for (int i = 0; name != NULL && i < cuda_api_count(); i++) {
        *symbol = strcmp(name, cuda_api_name(i)) == 0 ? i : *symbol;
    }
    if (name != NULL && *symbol < 0) {
        PyErr_Format(PyExc_ValueError, "%s(): no symbol %s", op, name);
    }
    return *symbol >= 0;
}

static PyObject *
py_api_fail(PY_PARAMS)
{
    PY_PARSE(api_fail)
    int64_t n = -1, status = 0, times = 1;
    bool sticky = false, late = false, dropped = false;
    int symbol;
    if (!find_symbol(a.op, a.v[0], &symbol) || py_arg_int(&a, 1, &n) < 0 || py_arg_int(&a, 2, &status) < 0 ||
        py_arg_bool(&a, 3, &sticky) < 0 || py_arg_bool(&a, 4, &late) < 0 || py_arg_bool(&a, 5, &dropped) < 0 ||
        py_arg_int(&a, 6, &times) < 0) {
        return NULL;
    }
    const cuda_fault_mode mode = dropped ? CUDA_FAULT_DROPPED : late ? CUDA_FAULT_LATE : CUDA_FAULT_AT_ONCE;
    cuda_api_fail(symbol, n, sticky ? INT64_MAX : times, (int)status, mode);
    Py_RETURN_NONE;
}

static PyObject *
py_slow_calls(PY_PARAMS)
{
    PY_PARSE(slow_calls)
    int64_t microseconds = 0;
    int symbol;
    if (!find_symbol(a.op, a.v[0], &symbol) || py_arg_int(&a, 1, &microseconds) < 0) {
        return NULL;
    }
    if (microseconds < 0 || microseconds >= 1000000) {
        return PyErr_Format(PyExc_ValueError, "slow_calls(): microseconds must be 0 to 999999");
    }
    cuda_api_fail(symbol, microseconds > 0 ? 0 : -1, 0, (int)microseconds, CUDA_FAULT_SLOW);
    Py_RETURN_NONE;
}

static PyObject *
py_watch_calls(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    (void)self;
    cuda_api_fail(-1, 0, 0, 0, CUDA_FAULT_NONE);
    Py_RETURN_NONE;
}

static PyObject *
py_watched_calls(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    (void)self;
    const cuda_call_site *sites;
    const int n = cuda_api_sites(&sites);
    cuda_api_fail(-1, -1, 0, 0, CUDA_FAULT_AT_ONCE);
    PyObject *list = PyList_New(n);
    for (int i = 0; list != NULL && i < n; i++) {
        PyObject *one = Py_BuildValue("sL", cuda_api_name(sites[i].symbol), (long long)sites[i].site);
        if (one == NULL) {
            Py_CLEAR(list);
        } else {
            PyList_SET_ITEM(list, i, one);
        }
    }
    return list;
}

static PyObject *
py_kernel_images(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    (void)self;
    cuda_kernels k;
    cuda_kernels_info(&k);
    return Py_BuildValue("{s:s,s:i,s:i,s:n,s:L,s:L,s:s,s:z}", "archs", k.archs, "images", k.nimages, "kernels",
                         k.nkernels, "bytes", (Py_ssize_t)k.nbytes, "compiled", (long long)k.compiled, "read",
                         (long long)k.read, "kept_in", k.kept_in, "not_kept", k.not_kept);
}

static PyObject *
py_kernel_settings(PY_PARAMS)
{
    PY_PARSE(kernel_settings)
    cuda_kernel_settings settings = CUDA_KERNEL_SETTINGS;
    if (py_arg_int(&a, 0, &settings.index_limit) < 0 || py_arg_bool(&a, 1, &settings.skinny) < 0 ||
        py_arg_bool(&a, 2, &settings.depthwise) < 0 || py_arg_int(&a, 3, &settings.attention_scores) < 0 ||
        py_arg_int(&a, 4, &settings.attention_work) < 0 || py_arg_int(&a, 5, &settings.attention_shapes) < 0) {
        return NULL;
    }
    cuda_settings = settings;
    Py_RETURN_NONE;
}

static PyObject *
py_lend_simulated(PY_PARAMS)
{
    PY_PARSE(lend_simulated)
    bool lend = false;
    if (py_arg_bool(&a, 0, &lend) < 0) {
        return NULL;
    }
    cuda_lend_simulated(lend);
    Py_RETURN_NONE;
}

static PyObject *
py_sim_races(PY_PARAMS)
{
    PY_PARSE(sim_races)
    int64_t mode = 0;
    if (py_arg_int(&a, 0, &mode) < 0) {
        return NULL;
    }
    int before = (int)sim_races();
    if (mode >= SIM_RACES_OFF && mode <= SIM_RACES_STRICT) {
        sim_set_races((sim_race_mode)mode);
    }
    return PyLong_FromLong(before);
}

static PyObject *
py_guard_violations(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    (void)self;
    return PyLong_FromLongLong(sim_guard_violations());
}

static PyObject *
py_ledger(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    (void)self;
    int64_t n[6] = {0};
    sim_ledger(&n[0], &n[1], &n[2], &n[3], &n[4], &n[5]);
    return Py_BuildValue("{s:L,s:L,s:L,s:L,s:L,s:L}", "blocks", (long long)n[0], "bytes", (long long)n[1], "streams",
                         (long long)n[2], "events", (long long)n[3], "modules", (long long)n[4], "descriptors",
                         (long long)n[5]);
}

static PyObject *
py_set_compute_capability(PY_PARAMS)
{
    PY_PARSE(set_compute_capability)
    int64_t major = 0, minor = 0;
    if (py_arg_int(&a, 0, &major) < 0 || py_arg_int(&a, 1, &minor) < 0) {
        return NULL;
    }
    if (major < 0 || major > 99 || minor < 0 || minor > 9) {
        return PyErr_Format(PyExc_ValueError, "set_compute_capability(): no such capability");
    }
    sim_set_compute_capability((int)major, (int)minor);
    Py_RETURN_NONE;
}

/* ---------------------------------------------------------------- plans with no device */

static int
parse_sizes(const py_args *a, int i, int wanted, int64_t *sizes)
{
    int64_t dims[DT_MAX_NDIM];
    int n = -1;
    if (py_arg_dims(a, i, &n, dims) < 0) {
        return -1;
    }
    if (n != wanted) {
        return py_arg_wrong(a, i, wanted == 2 ? "a pair of ints" : "four ints");
    }
    memcpy(sizes, dims, (size_t)wanted * sizeof(int64_t));
    return 0;
}

static PyObject *
py_describe_conv2d(PY_PARAMS)
{
    PY_PARSE(describe_conv2d)
    dt_dtype dtype = DT_FLOAT32;
    int64_t x[4], weight[4];
    bool channels_last = false, bias = false;
    int64_t kind = 0;
    dt_conv2d_params params = {.groups = 1};
    Py_ssize_t length = 0;
    const char *json = PyUnicode_AsUTF8AndSize(a.v[0], &length);
    if (json == NULL || py_arg_dtype(&a, 1, &dtype) < 0 || parse_sizes(&a, 2, 4, x) < 0 ||
        parse_sizes(&a, 3, 4, weight) < 0 || parse_sizes(&a, 4, 2, params.stride) < 0 ||
        parse_sizes(&a, 5, 2, params.pad_before) < 0 || parse_sizes(&a, 6, 2, params.pad_after) < 0 ||
        parse_sizes(&a, 7, 2, params.dilation) < 0 || py_arg_bool(&a, 8, &channels_last) < 0 ||
        py_arg_bool(&a, 9, &bias) < 0 || py_arg_activation(&a, 10, &params.activation) < 0 ||
        (a.v[11] != NULL && py_arg_int(&a, 11, &kind) < 0)) {
        return NULL;
    }
    if (params.stride[0] < 1 || params.stride[1] < 1 || !dt_is_float(dtype) || kind < 0 || kind > 2) {
        return PyErr_Format(PyExc_ValueError, "%s(): no such convolution", a.op);
    }
    cuda_conv_description d = {0};
    dt_error err;
    dt_status status;
    PY_CALL(
        true, status,
        cuda_conv_describe(json, (size_t)length, dtype, x, weight, bias, &params, channels_last, (int)kind, &d, &err));
    if (status != DT_OK) {
        return py_raise_args(&a, &err);
    }
    return Py_BuildValue("{s:O,s:L,s:L,s:I,s:I,s:i,s:O,s:O,s:O,s:N}", "product", d.product ? Py_True : Py_False,
                         "engine", (long long)d.engine, "workspace", (long long)d.workspace, "notes", (unsigned)d.notes,
                         "behaviors", (unsigned)d.behaviors, "candidate", d.candidate, "bias",
                         d.bias ? Py_True : Py_False, "activation", d.activation ? Py_True : Py_False, "unloadable",
                         d.unloadable ? Py_True : Py_False, "out", py_shape_tuple(4, d.out));
}

static PyObject *
py_describe_attention(PY_PARAMS)
{
    PY_PARSE(describe_attention)
    dt_dtype dtype = DT_FLOAT16;
    int64_t query[4], key[4], value[4], kind = 0;
    bool causal = false, known = false;
    Py_ssize_t length = 0;
    const char *json = PyUnicode_AsUTF8AndSize(a.v[0], &length);
    if (json == NULL || py_arg_dtype(&a, 1, &dtype) < 0 || parse_sizes(&a, 2, 4, query) < 0 ||
        parse_sizes(&a, 3, 4, key) < 0 || parse_sizes(&a, 4, 4, value) < 0 || py_arg_bool(&a, 5, &causal) < 0 ||
        py_arg_int(&a, 6, &kind) < 0) {
        return NULL;
    }
    if (kind < 0 || kind > 2) {
        return PyErr_Format(PyExc_ValueError, "%s(): no such kind", a.op);
    }
    dt_error err;
    dt_status status;
    PY_CALL(true, status,
            cuda_attention_describe(json, (size_t)length, dtype, query, key, value, causal, (int)kind, &known, &err));
    return status != DT_OK ? py_raise_args(&a, &err) : PyBool_FromLong(known);
}

/* ---------------------------------------------------------------- limits */

static PyObject *
py_set_size_limit(PY_PARAMS)
{
    PY_PARSE(set_size_limit)
    int64_t n = 0;
    if (py_arg_int(&a, 0, &n) < 0) {
        return NULL;
    }
    cuda_set_size_limit(n);
    sim_set_size_limit(n);
    Py_RETURN_NONE;
}

static PyObject *
py_set_plan_limit(PY_PARAMS)
{
    PY_PARSE(set_plan_limit)
    int64_t n = 0;
    if (py_arg_int(&a, 0, &n) < 0) {
        return NULL;
    }
    cuda_set_plan_limit(n > 0 ? (size_t)n : 0);
    Py_RETURN_NONE;
}

PyMethodDef py_cuda_test_hooks[] = {
    PY_HIDDEN_GETTER(api_calls, "How often each outside function was called, a dict."),
    PY_HIDDEN(api_fail,
              "The n-th call from now of symbol (None: of any) answers status, and so do those after it, times in all, "
              "or all "
              "when sticky; when late it answers success, and what waits for it next answers status. n < 0 disarms."),
    PY_HIDDEN(slow_calls, "Makes calls of symbol (None: all) so many microseconds late; 0: none."),
    PY_HIDDEN_GETTER(watch_calls, "Notes every outside call from now on, and where in the code it is made."),
    PY_HIDDEN_GETTER(watched_calls, "The calls since then, in order: (symbol, place in the code); notes no more."),
    PY_HIDDEN_GETTER(kernel_images,
                     "Where kernels come from: what is embedded, what was compiled, and where that is kept; a dict."),
    PY_HIDDEN(
        kernel_settings,
        "Which kernels CUDA takes: 64-bit indices above index_limit; ours or the library's for skinny products and "
        "depthwise convolutions."),
    PY_HIDDEN(lend_simulated,
              "Whether addresses of simulated devices are given to other libraries, which cannot use them."),
    PY_HIDDEN(sim_races, "How simulated devices look for races: 0, 1 or 2 (strict); else nothing. The mode before."),
    PY_HIDDEN_GETTER(guard_violations, "Blocks of the simulated devices whose guard bytes were overwritten."),
    PY_HIDDEN_GETTER(ledger, "What is alive on the simulated devices, a dict."),
    PY_HIDDEN(set_compute_capability, "The compute capability of the simulated devices."),
    PY_HIDDEN(describe_attention,
              "Whether cuDNN plans attention of a half type for a device described in JSON, up to the loading of its\n"
              "code; kind 0: the result; 1: with what its gradient needs; 2: the gradient."),
    PY_HIDDEN(
        describe_conv2d,
        "The plan of a convolution on a device described in cuDNN's JSON, a dict. Raises CudaError where there is "
        "none."),
    PY_HIDDEN(set_plan_limit, "Plans that a device keeps of products, and of convolutions; 0: 4096."),
    PY_HIDDEN(set_size_limit, "Elements that one call of a library may have to count; 0: 2**31 - 1."),
    PY_END,
};
