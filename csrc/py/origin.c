/* origin.c: where an array was made. Recorded as code object and instruction, since that costs nanoseconds; the file
 * and the line are worked out when somebody asks. */
#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#endif
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#if PY_VERSION_HEX < 0x030c0000
#define Py_BUILD_CORE /* 3.11 has no public way to the frame that does not make a frame object */
#include <internal/pycore_frame.h>
#undef Py_BUILD_CORE
#endif
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

#include "py.h"

void
py_origin_record(py_origin *origin, const char *action)
{
    origin->action = action;
    origin->code = NULL;
    PyThreadState *thread = PyThreadState_Get();
#if PY_VERSION_HEX >= 0x030d0000
    struct _PyInterpreterFrame *frame = thread->current_frame;
#else
    struct _PyInterpreterFrame *frame = thread->cframe->current_frame;
#endif
    if (frame == NULL) {
        return;
    }
#if PY_VERSION_HEX >= 0x030c0000
    origin->code = PyUnstable_InterpreterFrame_GetCode(frame);
    origin->instruction = PyUnstable_InterpreterFrame_GetLasti(frame);
#else
    origin->code = Py_NewRef((PyObject *)frame->f_code);
    origin->instruction = _PyInterpreterFrame_LASTI(frame) * (int)sizeof(_Py_CODEUNIT);
#endif
}

PyObject *
py_origin_resolve(py_state *state, const py_origin *origin)
{
    if (origin->code == NULL || !PyCode_Check(origin->code)) {
        Py_RETURN_NONE;
    }
    PyCodeObject *code = (PyCodeObject *)origin->code;
    PyObject *type = py_errors_get(state, "Origin");
    if (type == NULL) {
        return NULL;
    }
    PyObject *result = PyObject_CallFunction(type, "sOi", origin->action, code->co_filename,
                                             PyCode_Addr2Line(code, origin->instruction));
    Py_DECREF(type);
    return result;
}
