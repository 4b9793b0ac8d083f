/* transfers.c: tells devtensor._transfers of copies between devices, while somebody watches. */
#include "py.h"

static _Thread_local struct {
    const char *action;
    PyObject *array; /* borrowed: it is an operand of the call that runs */
} now;

void
py_move_begin(const char *action, PyObject *array)
{
    now.action = action;
    now.array = array;
}

void
py_move_end(void)
{
    now.action = NULL;
    now.array = NULL;
}

/* What a hook raises cannot get through the core; an interrupt is raised once more when it can. */
static void
drop_exception(void)
{
    if (PyErr_ExceptionMatches(PyExc_KeyboardInterrupt)) {
        PyErr_Clear();
        PyErr_SetInterrupt();
    } else {
        PyErr_WriteUnraisable(NULL);
    }
}

/* name(nbytes, source, target, synchronous, pinned, action, array) of the module; with or without the GIL. */
static bool
ask_watcher(const char *name, const dt_transfer *t)
{
    char source[DT_DEVICE_TEXT], target[DT_DEVICE_TEXT];
    PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *array = Py_XNewRef(now.array), *module = PyImport_ImportModule("devtensor._transfers"), *answer = NULL;
    if (module != NULL) {
        answer = PyObject_CallMethod(module, name, "KssOOsO", (unsigned long long)t->nbytes,
                                     dt_device_text(t->source, source), dt_device_text(t->target, target),
                                     t->synchronous ? Py_True : Py_False, t->pinned ? Py_True : Py_False,
                                     now.action != NULL ? now.action : "copy", array != NULL ? array : Py_None);
    }
    bool yes = answer != Py_False; /* also after a failure: a broken watcher stops nobody */
    if (answer == NULL) {
        drop_exception();
    }
    Py_XDECREF(answer);
    Py_XDECREF(module);
    Py_XDECREF(array);
    PyGILState_Release(gil);
    return yes;
}

static bool
allows(const dt_transfer *t)
{
    return ask_watcher("_allows", t);
}

static void
done(const dt_transfer *t)
{
    (void)ask_watcher("_done", t);
}

void
py_transfers_init(void)
{
    dt_set_transfer_hooks((dt_transfer_hooks){allows, done});
}

int
py_warn_synchronous(const char *action, const char *reason)
{
    PyObject *module = PyImport_ImportModule("devtensor._transfers");
    PyObject *answer = module == NULL ? NULL : PyObject_CallMethod(module, "_warn_synchronous", "ss", action, reason);
    Py_XDECREF(module);
    Py_XDECREF(answer);
    return answer == NULL ? -1 : 0;
}

static PyObject *
py__watch_transfers(PY_PARAMS)
{
    PY_PARSE(_watch_transfers)
    int64_t by = 0;
    if (py_arg_int(&a, 0, &by) < 0) {
        return NULL;
    }
    return PyLong_FromLong(atomic_fetch_add(&dt_transfer_watchers, (int)by) + (long)by);
}

PyMethodDef py_transfers_functions[] = {
    PY_HIDDEN(_watch_transfers, "Changes how many want to know of transfers; gives their number."),
    PY_END,
};

PyMethodDef py_transfers_methods[] = {PY_END};
