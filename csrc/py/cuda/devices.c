/* devices.c: devices, their loader and the simulated ones: what python/devtensor/cuda and testing.py are made of. */
#include "../../core/registry.h"
#include "../../cpu/front.h"
#include "../../cuda/front.h"
#include "../frame.h"
#include "../py.h"

/* The line of the user's code that is running; frames of this package are passed over. With or without the GIL. */
static void
find_place(char *text, size_t size)
{
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *type, *exception, *traceback;
    PyErr_Fetch(&type, &exception, &traceback);
    PyFrameObject *frame = PyEval_GetFrame();
    Py_XINCREF(frame);
    while (frame != NULL) {
        PyCodeObject *code = PyFrame_GetCode(frame);
        const char *file = PyUnicode_AsUTF8(code->co_filename);
        bool ours = py_is_own_file(code->co_filename);
        if (file != NULL && !ours) {
            snprintf(text, size, "%s:%d", file, PyFrame_GetLineNumber(frame));
        }
        Py_DECREF(code);
        PyFrameObject *back = ours ? PyFrame_GetBack(frame) : NULL;
        Py_DECREF(frame);
        frame = back;
    }
    PyErr_Restore(type, exception, traceback); /* and none of a name that is no text */
    PyGILState_Release(gil);
}

static int
warn_now(void *text)
{
    return PyErr_WarnEx(PyExc_RuntimeWarning, text, 1);
}

/* The main thread warns, as soon as it can. */
static void
warn_soon(const char *text)
{
    union {
        const char *in;
        void *out;
    } same = {text};
    (void)Py_AddPendingCall(warn_now, same.out);
}

void
py_backends_register(void)
{
    cuda_set_place(find_place);
    cuda_set_warn(warn_soon);
    py_sent_init();
    py_places_init();
    dt_register_backend(DT_CPU, &(dt_backend_entry){"cpu", NULL, cpu_open});
    dt_register_backend(DT_CUDA, &(dt_backend_entry){"CUDA", "CUDA_VISIBLE_DEVICES", cuda_open});
}

/* device: an int, a text or a device object; the current device when not given. -1 with an exception. */
static int
device_index(const py_args *a, int i)
{
    dt_device device = {DT_CUDA, dt_current_device()};
    if (py_arg_device(a, i, &device) < 0) {
        return -1;
    }
    if (device.type != DT_CUDA) {
        PyErr_Format(PyExc_ValueError, "%s(): Expected a cuda device, but got: cpu", a->op);
        return -1;
    }
    return device.index;
}

/* The backend of an existing device, opened without the GIL. */
static const dt_backend *
backend_of(const py_args *a, int index)
{
    const dt_backend *backend = NULL;
    dt_error err;
    dt_status status;
    PY_CALL(true, status, dt_backend_for((dt_device){DT_CUDA, index}, &backend, &err));
    if (status != DT_OK) {
        py_raise_args(a, &err);
        return NULL;
    }
    return backend;
}

static PyObject *
py__cuda_device_count(PY_PARAMS)
{
    PY_PARSE(_cuda_device_count)
    int count = 0;
    dt_error err;
    dt_status status;
    PY_CALL(true, status, dt_device_count(DT_CUDA, &count, &err));
    return status == DT_OK ? PyLong_FromLong(count) : py_raise_args(&a, &err);
}

static PyObject *
py__cuda_current_device(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    (void)self;
    return PyLong_FromLong(dt_current_device());
}

/* Where a device object or index points; no CUDA needed. */
static PyObject *
py__cuda_index(PY_PARAMS)
{
    PY_PARSE(_cuda_index)
    int index = device_index(&a, 0);
    return index < 0 ? NULL : PyLong_FromLong(index);
}

static PyObject *
py__cuda_set_device(PY_PARAMS)
{
    PY_PARSE(_cuda_set_device)
    int index = device_index(&a, 0);
    if (index < 0) {
        return NULL;
    }
    dt_error err;
    dt_status status;
    PY_CALL(true, status, dt_set_current_device(index, &err));
    if (status != DT_OK) {
        return py_raise_args(&a, &err);
    }
    Py_RETURN_NONE;
}

static PyObject *
py__cuda_info(PY_PARAMS)
{
    PY_PARSE(_cuda_info)
    int index = device_index(&a, 0);
    const dt_backend *backend = index < 0 ? NULL : backend_of(&a, index);
    if (backend == NULL) {
        return NULL;
    }
    dt_device_info info = {.name = ""};
    dt_error err;
    dt_status status;
    PY_CALL(true, status, backend->device_info(index, &info, &err));
    if (status != DT_OK) {
        return py_raise_args(&a, &err);
    }
    return Py_BuildValue("{s:s,s:i,s:i,s:i,s:K,s:K,s:K,s:K,s:K,s:O}", "name", info.name, "major", info.major, "minor",
                         info.minor, "multi_processor_count", info.multiprocessors, "total_memory",
                         (unsigned long long)info.total_memory, "free_memory", (unsigned long long)info.free_memory,
                         "allocated_memory", (unsigned long long)info.allocated_memory, "reserved_memory",
                         (unsigned long long)info.reserved_memory, "peak_memory", (unsigned long long)info.peak_memory,
                         "simulated", info.simulated ? Py_True : Py_False);
}

static PyObject *
py__cuda_synchronize(PY_PARAMS)
{
    PY_PARSE(_cuda_synchronize)
    int index = device_index(&a, 0);
    const dt_backend *backend = index < 0 ? NULL : backend_of(&a, index);
    if (backend == NULL) {
        return NULL;
    }
    dt_error err;
    dt_status status;
    PY_CALL(true, status, backend->synchronize(index, &err));
    if (status != DT_OK) {
        return py_raise_args(&a, &err);
    }
    Py_RETURN_NONE;
}

static PyObject *
py__cuda_empty_cache(PY_PARAMS)
{
    PY_PARSE(_cuda_empty_cache)
    const dt_backend *backend = backend_of(&a, dt_current_device());
    if (backend == NULL) {
        return NULL;
    }
    dt_error err;
    dt_status status;
    PY_CALL(true, status, backend->empty_cache(&err));
    if (status != DT_OK) {
        return py_raise_args(&a, &err);
    }
    Py_RETURN_NONE;
}

/* ---------------------------------------------------------------- the loader and the simulated GPU */

static PyObject *
py__cuda_is_simulated(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    (void)self;
    return PyBool_FromLong(cuda_is_simulated());
}

static PyObject *
py__cuda_is_initialized(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    (void)self;
    return PyBool_FromLong(cuda_is_open());
}

static PyObject *
py__sim_confines(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    (void)self;
    return PyBool_FromLong(sim_has_filters());
}

static PyObject *
py__cuda_report(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    (void)self;
    size_t size = cuda_api_report(NULL, 0) + 1;
    char *text = PyMem_Malloc(size);
    if (text == NULL) {
        return PyErr_NoMemory();
    }
    text[0] = '\0';
    cuda_api_report(text, size);
    PyObject *result = PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
    PyMem_Free(text);
    return result;
}

static PyObject *
py__cuda_set_search_path(PyObject *self, PyObject *text)
{
    (void)self;
    const char *directories = PyUnicode_AsUTF8(text);
    if (directories == NULL) {
        return NULL;
    }
    cuda_set_search_path(directories);
    Py_RETURN_NONE;
}

static PyObject *
py__simulate_cuda(PY_PARAMS)
{
    PY_PARSE(_simulate_cuda)
    int64_t devices = 0, memory = 0, races = -1;
    if (py_arg_int(&a, 0, &devices) < 0 || py_arg_int(&a, 1, &memory) < 0 || py_arg_int(&a, 2, &races) < 0) {
        return NULL;
    }
    if (memory < 0 || devices > INT_MAX || devices < INT_MIN) {
        PyErr_SetString(PyExc_ValueError, "simulate_cuda(): the number of devices and their memory must be positive");
        return NULL;
    }
    dt_error err;
    if (cuda_request_simulated((int)devices, (size_t)memory, (int)races, &err) != DT_OK) {
        return py_raise_args(&a, &err);
    }
    Py_RETURN_NONE;
}

static PyObject *
py__reset_simulated(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    dt_error err;
    if (cuda_reset_simulated(&err) != DT_OK) {
        return py_raise(PyModule_GetState(self), &err, NULL, 0);
    }
    Py_RETURN_NONE;
}

/* [what is wrong with each library, or None]: the driver, cuBLASLt, cuDNN, NVRTC. */
static PyObject *
py__cuda_probe(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    (void)self;
    PyObject *list = PyList_New(DT_NLIBRARIES);
    for (int i = 0; list != NULL && i < DT_NLIBRARIES; i++) {
        dt_error err;
        dt_status status;
        PY_CALL(true, status, cuda_api_probe((dt_library)i, &err));
        PyObject *text = status == DT_OK
                             ? Py_NewRef(Py_None)
                             : PyUnicode_DecodeUTF8(err.message, (Py_ssize_t)strlen(err.message), "replace");
        if (text == NULL) {
            Py_CLEAR(list);
        } else {
            PyList_SET_ITEM(list, i, text);
        }
    }
    return list;
}

static PyObject *
py__cuda_hazard(PY_PARAMS)
{
    PY_PARSE(_cuda_hazard)
    int64_t major = 0;
    return py_arg_int(&a, 0, &major) < 0 ? NULL
                                         : PyBool_FromLong(major >= 0 && major < 100 && cuda_cublas_hazard((int)major));
}

static PyObject *
py__cuda_versions(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    (void)self;
    return Py_BuildValue("{s:i,s:i,s:i,s:i}", "driver", cuda_api_version(DT_LIBRARY_CUDA), "cublasLt",
                         cuda_api_version(DT_LIBRARY_CUBLASLT), "cudnn", cuda_api_version(DT_LIBRARY_CUDNN), "nvrtc",
                         cuda_api_version(DT_LIBRARY_NVRTC));
}

PyMethodDef py_cuda_functions[] = {
    PY_HIDDEN(_cuda_device_count, "Number of CUDA devices. Raises DeviceNotAvailableError where CUDA cannot be used."),
    PY_HIDDEN_GETTER(_cuda_current_device, "The current CUDA device of this thread, an index."),
    PY_HIDDEN(_cuda_index, "The index of a CUDA device. Raises ValueError for the cpu."),
    PY_HIDDEN(_cuda_set_device, "Chooses the current CUDA device of this thread. Raises DeviceNotAvailableError."),
    PY_HIDDEN(_cuda_info, "What is known about a device, a dict. Raises DeviceNotAvailableError."),
    PY_HIDDEN(_cuda_synchronize, "Waits for all work on a device. Raises CudaError for what went wrong in it."),
    PY_HIDDEN(_cuda_empty_cache, "Gives unused memory, of devices and page-locked, back to the driver."),
    PY_HIDDEN_GETTER(_cuda_is_initialized, "Whether this process has used CUDA."),
    PY_HIDDEN_GETTER(_cuda_is_simulated, "Whether CUDA is the simulated one."),
    PY_HIDDEN_GETTER(_sim_confines,
                     "Whether this system can refuse system calls to kernels of users on simulated devices."),
    PY_HIDDEN_GETTER(_cuda_report, "What was tried to find each library, one line an attempt."),
    {"_cuda_set_search_path", py__cuda_set_search_path, METH_O,
     "_cuda_set_search_path(directories)\n--\n\nAbsolute directories, separated by colons, in which NVIDIA's Python "
     "packages keep their libraries."},
    PY_HIDDEN(_simulate_cuda, "Makes \"cuda\" mean simulated devices. Raises RuntimeError once CUDA is in use."),
    PY_HIDDEN_GETTER(_reset_simulated, "Makes simulated devices that are lost usable again."),
    PY_HIDDEN_GETTER(_cuda_probe,
                     "What is wrong with the driver, cuBLASLt, cuDNN and NVRTC, None for nothing, a list."),
    PY_HIDDEN(_cuda_hazard, "Whether the cuBLAS in use may corrupt data on devices of this capability."),
    PY_HIDDEN_GETTER(_cuda_versions,
                     "The version of each library by its own count, 0 for one that is not loaded, a dict."),
    PY_END,
};

PyMethodDef py_cuda_methods[] = {PY_END};
