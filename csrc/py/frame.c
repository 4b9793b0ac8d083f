/* frame.c: which Python code is running, and a variable of a frame without a snapshot of all of them. CPython has no
 * public way to either that costs nanoseconds, or that leaves the frame as it was. */
#include "frame.h"

#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#endif
#define Py_BUILD_CORE
#if PY_VERSION_HEX >= 0x030e0000
#include <internal/pycore_interpframe_structs.h>
#else
#include <internal/pycore_code.h>
#include <internal/pycore_frame.h>
#endif
#if PY_VERSION_HEX < 0x030c0000
#include <internal/pycore_pystate.h>
#endif
#undef Py_BUILD_CORE
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

typedef struct _PyInterpreterFrame frame;

/* ---------------------------------------------------------------- whose code */

#define MAX_OWN 1024
static char own[MAX_OWN];            /* devtensor's directory with the separator; set once, at import */
static size_t own_length = SIZE_MAX; /* as long as it is not known */

/* The end of the first own_length characters, which differs for nearly every file that is not ours. */
static inline uint64_t
tail(const char *text)
{
    uint64_t bytes;
    memcpy(&bytes, text + own_length - sizeof(bytes), sizeof(bytes));
    return bytes;
}

static bool
is_below(const char *text)
{
    return memcmp(text, own, own_length) == 0 && strncmp(text + own_length, "digits/", strlen("digits/")) != 0;
}

/* Where a folder above is not called in ASCII. */
static DT_NOINLINE bool
is_own_utf8(PyObject *filename)
{
    PyObject *type, *exception, *traceback;
    Py_ssize_t length;
    PyErr_Fetch(&type, &exception, &traceback);
    const char *text = PyUnicode_AsUTF8AndSize(filename, &length);
    PyErr_Restore(type, exception, traceback); /* and none of a name that is no text */
    return text != NULL && (size_t)length > own_length && is_below(text);
}

/* Whether a file may be of the library itself; nearly always the answer, and found without a call. */
static inline bool
may_be_own(PyObject *filename)
{
    if (!PyUnicode_IS_COMPACT_ASCII(filename)) {
        return true;
    }
    const char *text = (const char *)((PyASCIIObject *)filename + 1);
    return (size_t)PyUnicode_GET_LENGTH(filename) > own_length && tail(text) == tail(own);
}

/* Files of the library itself. Its programs (digits) are users of it. */
static bool
is_own(PyObject *filename)
{
    if (!PyUnicode_IS_COMPACT_ASCII(filename)) {
        return is_own_utf8(filename);
    }
    return may_be_own(filename) && is_below((const char *)PyUnicode_1BYTE_DATA(filename));
}

bool
py_is_own_file(PyObject *filename)
{
    return is_own(filename);
}

#if PY_VERSION_HEX < 0x030c0000
#define CODE(f) Py_NewRef((PyObject *)(f)->f_code)
#define INSTRUCTION(f) (_PyInterpreterFrame_LASTI(f) * (int)sizeof(_Py_CODEUNIT))
#else
#define CODE(f) PyUnstable_InterpreterFrame_GetCode(f)
#define INSTRUCTION(f) PyUnstable_InterpreterFrame_GetLasti(f)
#endif

static frame *
current(void)
{
#if PY_VERSION_HEX >= 0x030d0000
    return PyThreadState_Get()->current_frame;
#elif PY_VERSION_HEX >= 0x030c0000
    return PyThreadState_Get()->cframe->current_frame;
#else
    return _PyThreadState_GET()->cframe->current_frame; /* a load, and no call */
#endif
}

/* The frame that called f. */
static frame *
caller(frame *f)
{
    do {
        f = f->previous;
    }
#if PY_VERSION_HEX >= 0x030e0000
    while (f != NULL && f->owner >= FRAME_OWNED_BY_INTERPRETER);
#elif PY_VERSION_HEX >= 0x030c0000
    while (f != NULL && f->owner == FRAME_OWNED_BY_CSTACK);
#else
    while (false);
#endif
    return f;
}

/* Not code of ours, nor that which checks what __init__ gives: from 3.13 on it is between a class and its caller. */
static bool
is_users(PyObject *found)
{
    const PyCodeObject *code = (PyCodeObject *)found;
    return PyCode_Check(found) && !is_own(code->co_filename) &&
           !(code->co_firstlineno == 0 && code->co_filename == code->co_name);
}

/* Whether users know a function of ours by its name: not __call__, _helper, <lambda>, nor the forward of a layer. */
static bool
is_public(const PyCodeObject *code)
{
    const char first = (char)PyUnicode_READ_CHAR(code->co_name, 0);
    return first != '_' && first != '<' && PyUnicode_CompareWithASCIIString(code->co_name, "forward") != 0;
}

/* code, which f runs, or that of the first frame from f on that is a user's; called as in py_frame_user_call. */
static DT_NOINLINE PyObject *
find_user_code(PyObject *code, frame *f, int *instruction, PyObject **called)
{
    PyObject *found = Py_NewRef(code), *name = NULL;
    while (!is_users(found)) {
        if (PyCode_Check(found) && is_public((PyCodeObject *)found)) {
            Py_XSETREF(name, Py_NewRef(((PyCodeObject *)found)->co_name));
        }
        Py_DECREF(found);
        f = caller(f);
        if (f == NULL) {
            Py_XDECREF(name);
            return code;
        }
        found = CODE(f);
    }
    *instruction = INSTRUCTION(f);
    Py_DECREF(code);
    if (called != NULL) {
        *called = name;
    } else {
        Py_XDECREF(name);
    }
    return found;
}

PyObject *
py_frame_user_code(int *instruction)
{
    return py_frame_user_call(instruction, NULL);
}

PyObject *
py_frame_user_call(int *instruction, PyObject **called)
{
    frame *f = current();
    if (f == NULL) {
        return NULL;
    }
    PyObject *code = CODE(f);
    *instruction = INSTRUCTION(f);
    bool ours = !PyCode_Check(code) || may_be_own(((PyCodeObject *)code)->co_filename);
    return DT_UNLIKELY(ours) ? find_user_code(code, f, instruction, called) : code;
}

static int
release(void *code)
{
    Py_DECREF((PyObject *)code);
    return 0;
}

void
py_frame_drop_code(PyObject *code)
{
    /* weak references to code may run anything */
    if (code != NULL && (Py_REFCNT(code) > 1 || Py_AddPendingCall(release, code) < 0)) {
        Py_DECREF(code);
    }
}

/* ---------------------------------------------------------------- variables */

#if PY_VERSION_HEX < 0x030c0000
/* A new reference to the local, cell or free variable; NULL without an exception where it has no value. */
static PyObject *
variable(PyFrameObject *object, PyObject *name)
{
    frame *f = object->f_frame;
    for (int i = 0; i < f->f_code->co_nlocalsplus; i++) {
        if (PyUnicode_Compare(PyTuple_GET_ITEM(f->f_code->co_localsplusnames, i), name) != 0) {
            continue;
        }
        PyObject *value = f->localsplus[i];
        bool cell = _PyLocals_GetKind(f->f_code->co_localspluskinds, i) & (CO_FAST_CELL | CO_FAST_FREE);
        if (cell && value != NULL && PyCell_Check(value)) {
            value = PyCell_GET(value);
        }
        return Py_XNewRef(value);
    }
    return NULL;
}
#else
static PyObject *
variable(PyFrameObject *object, PyObject *name)
{
    PyObject *value = PyFrame_GetVar(object, name);
    if (value == NULL && PyErr_ExceptionMatches(PyExc_NameError)) {
        PyErr_Clear();
    }
    return value;
}
#endif

static PyObject *
py__frame_variable(PY_PARAMS)
{
    PY_PARSE(_frame_variable)
    if (!PyFrame_Check(a.v[0]) || !PyUnicode_Check(a.v[1])) {
        return PyErr_Format(PyExc_TypeError, "_frame_variable(): a frame and a name are needed");
    }
    PyObject *value = variable((PyFrameObject *)a.v[0], a.v[1]);
    return value != NULL || PyErr_Occurred() ? value : Py_NewRef(a.v[2]);
}

static PyObject *
py__set_own_directory(PY_PARAMS)
{
    PY_PARSE(_set_own_directory)
    Py_ssize_t length;
    const char *text = PyUnicode_Check(a.v[0]) ? PyUnicode_AsUTF8AndSize(a.v[0], &length) : NULL;
    if (text == NULL) {
        PyErr_Clear();
        return PyErr_Format(PyExc_TypeError, "_set_own_directory(): a path is needed");
    }
    own_length = SIZE_MAX;
    if ((size_t)length < sizeof(own) && (size_t)length >= sizeof(uint64_t)) {
        memcpy(own, text, (size_t)length);
        own_length = (size_t)length;
    }
    Py_RETURN_NONE;
}

PyMethodDef py_frame_functions[] = {
    PY_HIDDEN(_frame_variable, "A variable of a function's frame, or default; the frame stays as it is."),
    PY_HIDDEN(_set_own_directory,
              "Says where devtensor's own files are: arrays are never made there, but by the caller."),
    PY_END,
};

PyMethodDef py_frame_methods[] = {PY_END};
