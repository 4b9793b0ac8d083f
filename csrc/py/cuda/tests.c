/* tests.c: what tests and benchmarks ask of the CUDA backend and of the simulated GPU, and change in them. */
#include "../../cuda/front.h"
#include "../py.h"

static PyObject *
py__cuda_api_calls(PyObject *self, PyObject *Py_UNUSED(ignored))
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

static PyObject *
py__cuda_api_fail(PY_PARAMS)
{
    PY_PARSE("_cuda_api_fail", 3, 5, "symbol", "n", "status", "sticky", "late")
    int64_t n = -1, status = 0;
    bool sticky = false, late = false;
    int symbol = -1;
    if (py_arg_int(&a, 1, &n) < 0 || py_arg_int(&a, 2, &status) < 0 || py_arg_bool(&a, 3, &sticky) < 0 ||
        py_arg_bool(&a, 4, &late) < 0) {
        return NULL;
    }
    if (a.v[0] != Py_None) {
        const char *name = PyUnicode_AsUTF8(a.v[0]);
        if (name == NULL) {
            return NULL;
        }
        for (int i = 0; i < cuda_api_count(); i++) {
            symbol = strcmp(name, cuda_api_name(i)) == 0 ? i : symbol;
        }
        if (symbol < 0) {
            return PyErr_Format(PyExc_ValueError, "_cuda_api_fail(): no symbol %s", name);
        }
    }
    cuda_api_fail(symbol, n, (int)status, late ? CUDA_FAULT_LATE : sticky ? CUDA_FAULT_STICKY : CUDA_FAULT_ONCE);
    Py_RETURN_NONE;
}

static PyObject *
py__kernel_images(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    (void)self;
    cuda_kernels k;
    cuda_kernels_info(&k);
    return Py_BuildValue("{s:s,s:i,s:i,s:n,s:L,s:L,s:s,s:z}", "archs", k.archs, "images", k.nimages, "kernels",
                         k.nkernels, "bytes", (Py_ssize_t)k.nbytes, "compiled", (long long)k.compiled, "read",
                         (long long)k.read, "kept_in", k.kept_in, "not_kept", k.not_kept);
}

static PyObject *
py__cuda_kernel_settings(PY_PARAMS)
{
    PY_PARSE("_cuda_kernel_settings", 0, 3, "index_limit", "skinny", "depthwise")
    cuda_kernel_settings settings = {.index_limit = INT32_MAX, .skinny = true, .depthwise = true};
    if (py_arg_int(&a, 0, &settings.index_limit) < 0 || py_arg_bool(&a, 1, &settings.skinny) < 0 ||
        py_arg_bool(&a, 2, &settings.depthwise) < 0) {
        return NULL;
    }
    cuda_settings = settings;
    Py_RETURN_NONE;
}

static PyObject *
py__sim_lend(PY_PARAMS)
{
    PY_PARSE("_sim_lend", 1, 1, "lend")
    bool lend = false;
    if (py_arg_bool(&a, 0, &lend) < 0) {
        return NULL;
    }
    cuda_lend_simulated(lend);
    Py_RETURN_NONE;
}

static PyObject *
py__sim_guard_violations(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    (void)self;
    return PyLong_FromLongLong(sim_guard_violations());
}

static PyObject *
py__sim_ledger(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    (void)self;
    int64_t n[6] = {0};
    sim_ledger(&n[0], &n[1], &n[2], &n[3], &n[4], &n[5]);
    return Py_BuildValue("{s:L,s:L,s:L,s:L,s:L,s:L}", "blocks", (long long)n[0], "bytes", (long long)n[1], "streams",
                         (long long)n[2], "events", (long long)n[3], "modules", (long long)n[4], "descriptors",
                         (long long)n[5]);
}

static PyObject *
py__sim_set_compute_capability(PY_PARAMS)
{
    PY_PARSE("_sim_set_compute_capability", 2, 2, "major", "minor")
    int64_t major = 0, minor = 0;
    if (py_arg_int(&a, 0, &major) < 0 || py_arg_int(&a, 1, &minor) < 0) {
        return NULL;
    }
    if (major < 0 || major > 99 || minor < 0 || minor > 9) {
        return PyErr_Format(PyExc_ValueError, "_sim_set_compute_capability(): no such capability");
    }
    sim_set_compute_capability((int)major, (int)minor);
    Py_RETURN_NONE;
}

PyMethodDef py_cuda_tests_functions[] = {
    PY_HIDDEN_GETTER(_cuda_api_calls, "How often each outside function was called, a dict."),
    PY_HIDDEN(
        _cuda_api_fail, "symbol, n, status, sticky=False, late=False",
        "The n-th call from now of symbol (None: of any) answers status, and all later ones when sticky; when late it "
        "answers success, and what waits for it next answers status. n < 0 disarms."),
    PY_HIDDEN_GETTER(_kernel_images,
                     "Where kernels come from: what is embedded, what was compiled, and where that is kept; a dict."),
    PY_HIDDEN(
        _cuda_kernel_settings, "index_limit=2147483647, skinny=True, depthwise=True",
        "Which kernels CUDA takes: 64-bit indices above index_limit; ours or the library's for skinny products and "
        "depthwise convolutions."),
    PY_HIDDEN(_sim_lend, "lend",
              "Whether addresses of simulated devices are given to other libraries, which cannot use them."),
    PY_HIDDEN_GETTER(_sim_guard_violations, "Blocks of the simulated devices whose guard bytes were overwritten."),
    PY_HIDDEN_GETTER(_sim_ledger, "What is alive on the simulated devices, a dict."),
    PY_HIDDEN(_sim_set_compute_capability, "major, minor", "The compute capability of the simulated devices."),
    PY_END,
};

PyMethodDef py_cuda_tests_methods[] = {PY_END};
