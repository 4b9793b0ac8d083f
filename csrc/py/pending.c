/* pending.c: waiting, without the GIL, for copies that a device still has to make in memory of the host. */
#include "grad/grad.h"

bool
py_holds_gil(void)
{
#if PY_VERSION_HEX >= 0x030d0000
    PyThreadState *thread = PyThreadState_GetUnchecked();
#else
    PyThreadState *thread = _PyThreadState_UncheckedGet();
#if PY_VERSION_HEX < 0x030c0000
    thread = thread == PyGILState_GetThisThreadState() ? thread : NULL; /* else another thread's */
#endif
#endif
    return thread != NULL;
}

/* Gives the GIL up if this thread has it. */
static void *
enter_python(void)
{
    if (!py_holds_gil()) {
        return NULL;
    }
    py_place_keep();
    return PyEval_SaveThread();
}

static void
leave_python(void *thread)
{
    if (thread != NULL) {
        PyEval_RestoreThread(thread);
        py_lines_flush();
    }
}

void
py_lines_flush(void)
{
    py_sent_flush();
    py_writes_flush();
}

void
py_settle_init(void)
{
    dt_set_wait_hooks(enter_python, leave_python);
}

int
py_settle(PyObject *array, dt_access access)
{
    dt_error err;
    if (DT_UNLIKELY(dt_settle(py_array_of(array), access, &err) != DT_OK)) {
        py_raise(py_state_of(array), &err, &array, 1);
        return -1;
    }
    return 0;
}

int
py_hand_out(PyObject *array)
{
    if (py_settle(array, DT_WRITE) < 0) {
        return -1;
    }
    atomic_store_explicit(&py_array_of(array)->storage->exported, true, memory_order_relaxed);
    return 0;
}
