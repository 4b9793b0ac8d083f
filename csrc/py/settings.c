/* settings.c: what holds for the whole process: defaults, threads, counters. */
#include "../core/environment.h"
#include "../core/memory/packed_cache.h"
#include "../cpu/front.h"
#include "py.h"

static PyObject *
py_set_default_dtype(PY_PARAMS)
{
    PY_PARSE(set_default_dtype)
    dt_dtype dtype = DT_NDTYPES;
    if (py_arg_dtype(&a, 0, &dtype) < 0) {
        return NULL;
    }
    if (dtype == DT_NDTYPES || !dt_is_float(dtype)) {
        PyErr_SetString(
            PyExc_TypeError,
            "set_default_dtype(): argument 'd': only floating-point types are supported as the default type");
        return NULL;
    }
    dt_set_default_dtype(dtype);
    Py_RETURN_NONE;
}

static PyObject *
py_get_default_dtype(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    return py_dtype_object(py_state_of(self), dt_default_dtype());
}

static PyObject *
py_set_default_device(PY_PARAMS)
{
    PY_PARSE(set_default_device)
    dt_device device = {DT_CPU, 0};
    dt_error err;
    if (!py_given(a.v[0])) {
        return py_arg_wrong(&a, 0, "a device"), NULL;
    }
    if (py_arg_device(&a, 0, &device) < 0) {
        return NULL;
    }
    if (dt_set_default_device(device, &err) != DT_OK) {
        return py_raise_args(&a, &err);
    }
    Py_RETURN_NONE;
}

static PyObject *
py_get_default_device(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    return py_device_object(py_state_of(self), dt_default_device());
}

static PyObject *
py_set_num_threads(PY_PARAMS)
{
    PY_PARSE(set_num_threads)
    int64_t n = 0;
    if (py_arg_int(&a, 0, &n) < 0) {
        return NULL;
    }
    if (n < 1 || n > CPU_MAX_THREADS) {
        return py_refuse(a.state, DT_EVALUE, "invalid-argument", "set_num_threads",
                         n < 1 ? "set_num_threads expects a positive integer"
                               : "set_num_threads expects a number from 1 to 1024");
    }
    cpu_set_num_threads((int)n);
    Py_RETURN_NONE;
}

static PyObject *
py_get_num_threads(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    (void)self;
    return PyLong_FromLong(cpu_num_threads());
}

static PyObject *
py_set_float32_precision(PY_PARAMS)
{
    PY_PARSE(set_float32_precision)
    bool text = PyUnicode_Check(a.v[0]);
    bool tf32 = text && PyUnicode_CompareWithASCIIString(a.v[0], "tf32") == 0;
    if (tf32 || (text && PyUnicode_CompareWithASCIIString(a.v[0], "highest") == 0)) {
        dt_set_allow_tf32(tf32);
        Py_RETURN_NONE;
    }
    PyObject *shown = py_shown(a.v[0]);
    if (shown != NULL) {
        PyErr_Format(PyExc_ValueError, "set_float32_precision(): the precision is \"highest\" or \"tf32\", not %U",
                     shown);
        Py_DECREF(shown);
    }
    return NULL;
}

static PyObject *
py_get_float32_precision(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    (void)self;
    return PyUnicode_FromString(dt_allow_tf32() ? "tf32" : "highest");
}

static PyObject *
py__shown(PyObject *self, PyObject *object)
{
    (void)self;
    return py_shown(object);
}

/* ---------------------------------------------------------------- the environment */

static int
add_misread(PyObject *list, const dt_misread *m)
{
    PyObject *shown = PyUnicode_DecodeUTF8(m->text, (Py_ssize_t)strlen(m->text), "backslashreplace");
    PyObject *entry = shown == NULL ? NULL : Py_BuildValue("sNs", m->name, shown, m->valid);
    int rc = entry == NULL ? -1 : PyList_Append(list, entry);
    Py_XDECREF(entry);
    return rc;
}

static PyObject *
py__misread_environment(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    (void)self;
    PyObject *list = PyList_New(0);
    dt_misread m;
    for (int v = 0; list != NULL && v < DT_NVARIABLES; v++) {
        if (dt_environment_misread((dt_variable)v, &m) && add_misread(list, &m) < 0) {
            Py_CLEAR(list);
        }
    }
    return list;
}

/* ---------------------------------------------------------------- counters, and memory that is kept */

static int
set_number(PyObject *dict, const char *name, int64_t value)
{
    PyObject *number = PyLong_FromLongLong(value);
    int rc = number == NULL ? -1 : PyDict_SetItemString(dict, name, number);
    Py_XDECREF(number);
    return rc;
}

static PyObject *
py_counters(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    (void)self;
    PyObject *dict = PyDict_New();
#define DT_COUNTER(name)                                                                                               \
    if (dict != NULL && set_number(dict, #name, atomic_load(&dt_counters.name)) < 0) {                                 \
        Py_CLEAR(dict);                                                                                                \
    }
    DT_COUNTERS(DT_COUNTER)
#undef DT_COUNTER
    return dict;
}

/* Large host blocks that are kept for reuse. */
static PyObject *
py__cpu_cache(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    (void)self;
    dt_large_info info = dt_large_read();
    dt_kept_info packed = dt_kept_read();
    return Py_BuildValue("{s:n,s:n,s:L,s:L,s:n,s:n}", "kept", (Py_ssize_t)info.kept, "limit", (Py_ssize_t)info.limit,
                         "requests", (long long)info.requests, "reused", (long long)info.reused, "packed",
                         (Py_ssize_t)packed.kept, "packed_limit", (Py_ssize_t)packed.limit);
}

static PyObject *
py__cpu_trim_cache(PY_PARAMS)
{
    PY_PARSE(_cpu_trim_cache)
    int64_t keep = 0;
    if (py_arg_int(&a, 0, &keep) < 0) {
        return NULL;
    }
    dt_kept_clear();
    dt_large_trim(keep > 0 ? (size_t)keep : 0);
    Py_RETURN_NONE;
}

static PyObject *
call_limit(const py_args *a, void (*set)(size_t))
{
    int64_t limit = 0;
    if (py_arg_int(a, 0, &limit) < 0) {
        return NULL;
    }
    if (limit < 0) {
        return py_refuse(a->state, DT_EVALUE, "invalid-argument", a->op,
                         "%s expects a number of bytes that is not negative", a->op);
    }
    set((size_t)limit);
    Py_RETURN_NONE;
}

static PyObject *
py__cpu_limit_cache(PY_PARAMS)
{
    PY_PARSE(_cpu_limit_cache)
    return call_limit(&a, dt_large_set_limit);
}

static PyObject *
py__cpu_limit_packed(PY_PARAMS)
{
    PY_PARSE(_cpu_limit_packed)
    return call_limit(&a, dt_kept_set_limit);
}

PyMethodDef py_settings_functions[] = {
    PY_OP(set_default_dtype,
          "The float dtype of arrays made from Python floats and by zeros, randn and the like.\n\nRaises TypeError for "
          "others."),
    PY_GETTER(get_default_dtype, "The default float dtype."),
    PY_OP(set_default_device,
          "The device of arrays made without device=.\n\nRaises DeviceNotAvailableError if there is no such device."),
    PY_GETTER(get_default_device, "The device of arrays made without device=."),
    PY_OP(set_num_threads, "How many threads the cpu's ops use.\n\nRaises RuntimeError for n below 1 or above 1024."),
    PY_GETTER(get_num_threads, "How many threads the cpu's ops use."),
    PY_OP(
        set_float32_precision,
        "\"highest\", the default: products and convolutions of float32 are computed strictly in float32.\n\n\"tf32\" "
        "lets CUDA devices round their inputs to TF32 (10 bits of mantissa); the cpu never does. For the whole "
        "process.\nRaises ValueError for other words."),
    PY_GETTER(get_float32_precision, "\"highest\" or \"tf32\"; see set_float32_precision."),
    PY_GETTER(counters, "What has happened so far in this process, a dict: allocations, transfers and their bytes, "
                        "launches, synchronizations."),
    PY_HIDDEN_GETTER(_cpu_cache,
                     "Large host blocks kept for reuse: bytes kept and the most to keep, requests and how many of them "
                     "were served from what was kept; bytes of packed weights and the most of them."),
    PY_HIDDEN(_cpu_trim_cache, "Gives kept host blocks back to the system."),
    PY_HIDDEN(_cpu_limit_cache, "Sets how many bytes of host blocks are kept for reuse; 0: none."),
    PY_HIDDEN(_cpu_limit_packed, "Sets how many bytes of packed weights are kept; 0: none."),
    {"_shown", py__shown, METH_O,
     "_shown(object)\n--\n\nHow a message names it: a string or a number as Python writes it, anything else by its "
     "type."},
    PY_HIDDEN_GETTER(_name_as_torch, "From now on dtypes are shown as torch.float32."),
    PY_HIDDEN_GETTER(_misread_environment,
                     "[(variable, text, what is valid)] of the variables that are not understood."),
    PY_END,
};

PyMethodDef py_settings_methods[] = {PY_END};
