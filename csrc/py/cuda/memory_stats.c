/* memory_stats.c: what is known about memory of devices and page-locked memory, and how much may be taken. */
#include "device.h"

static PyObject *
py__cuda_memory_stats(PY_PARAMS)
{
    PY_PARSE(_cuda_memory_stats)
    cuda_device *device;
    cuda_memory_stats m;
    if (py_open_device(self, a.op, a.v[0], &device) != DT_OK) {
        return NULL;
    }
    cuda_memory_read(device, &m);
    const struct {
        const char *name;
        long long value;
    } stats[] = {
        {"requested_bytes.all.current", (long long)m.requested},
        {"requested_bytes.all.peak", (long long)m.requested_peak},
        {"allocated_bytes.all.current", (long long)m.allocated},
        {"allocated_bytes.all.peak", (long long)m.allocated_peak},
        {"active_bytes.all.current", (long long)m.allocated},
        {"active_bytes.all.peak", (long long)m.allocated_peak},
        {"reserved_bytes.all.current", (long long)m.reserved},
        {"reserved_bytes.all.peak", (long long)m.reserved_peak},
        {"inactive_bytes.all.current", (long long)(m.reserved - m.allocated)},
        {"allocation.all.current", (long long)m.in_use},
        {"allocation.all.allocated", (long long)m.allocations},
        {"allocation.all.freed", (long long)(m.allocations - m.in_use)},
        {"num_alloc_retries", (long long)m.retries},
        {"num_ooms", (long long)m.failures},
        {"num_device_alloc", (long long)m.driver_allocations},
        {"num_device_free", (long long)m.driver_frees},
        {"num_cache_hits", (long long)m.hits},
        {"kept_weights_bytes", (long long)cuda_weights_kept(device)},
    };
    PyObject *dict = PyDict_New();
    for (size_t i = 0; dict != NULL && i < Py_ARRAY_LENGTH(stats); i++) {
        PyObject *number = PyLong_FromLongLong(stats[i].value);
        if (number == NULL || PyDict_SetItemString(dict, stats[i].name, number) < 0) {
            Py_CLEAR(dict);
        }
        Py_XDECREF(number);
    }
    return dict;
}

static PyObject *
py__cuda_reset_peak(PY_PARAMS)
{
    PY_PARSE(_cuda_reset_peak)
    cuda_device *device;
    if (py_open_device(self, a.op, a.v[0], &device) != DT_OK) {
        return NULL;
    }
    cuda_memory_reset_peak(device);
    Py_RETURN_NONE;
}

static PyObject *
py__cuda_set_memory_fraction(PY_PARAMS)
{
    PY_PARSE(_cuda_set_memory_fraction)
    cuda_device *device;
    double fraction = 0;
    if (py_arg_float(&a, 0, &fraction) < 0 || py_open_device(self, a.op, a.v[1], &device) != DT_OK) {
        return NULL;
    }
    dt_error err;
    if (cuda_memory_limit(device, fraction, &err) != DT_OK) {
        return py_raise_args(&a, &err);
    }
    Py_RETURN_NONE;
}

/* ---------------------------------------------------------------- page-locked memory */

static int
put_count(PyObject *dict, const char *name, const cuda_host_count *count)
{
    PyObject *entry = Py_BuildValue("{s:K,s:K,s:K,s:K}", "current", (unsigned long long)count->current, "peak",
                                    (unsigned long long)count->peak, "allocated", (unsigned long long)count->allocated,
                                    "freed", (unsigned long long)count->freed);
    int rc = entry == NULL ? -1 : PyDict_SetItemString(dict, name, entry);
    Py_XDECREF(entry);
    return rc;
}

static int
put_time(PyObject *dict, const char *name, const cuda_host_time *time)
{
    PyObject *entry =
        Py_BuildValue("{s:d,s:d,s:d,s:K,s:d}", "total", time->total, "max", time->max, "min", time->min, "count",
                      (unsigned long long)time->count, "avg", time->count ? time->total / (double)time->count : 0.0);
    int rc = entry == NULL ? -1 : PyDict_SetItemString(dict, name, entry);
    Py_XDECREF(entry);
    return rc;
}

static PyObject *
py__cuda_host_memory(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    (void)self;
    cuda_host_stats stats;
    cuda_host_memory(&stats);
    PyObject *dict = PyDict_New();
    if (dict != NULL && (put_count(dict, "allocations", &stats.allocations) < 0 ||
                         put_count(dict, "allocated_bytes", &stats.allocated_bytes) < 0 ||
                         put_count(dict, "active_requests", &stats.active_requests) < 0 ||
                         put_count(dict, "active_bytes", &stats.active_bytes) < 0 ||
                         put_time(dict, "host_alloc_time", &stats.alloc_time) < 0 ||
                         put_time(dict, "host_free_time", &stats.free_time) < 0)) {
        Py_CLEAR(dict);
    }
    return dict;
}

PyMethodDef py_memory_stats_functions[] = {
    PY_HIDDEN(_cuda_memory_stats, "Bytes, and what the allocator has done, a dict."),
    PY_HIDDEN(_cuda_reset_peak, "Starts the counts of the most memory held anew."),
    PY_HIDDEN(_cuda_set_memory_fraction, "The part of a device's memory that may be taken."),
    PY_HIDDEN_GETTER(_cuda_host_memory, "What is known about page-locked memory, a dict of dicts."),
    PY_END,
};

PyMethodDef py_memory_stats_methods[] = {PY_END};
