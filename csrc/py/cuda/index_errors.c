/* index_errors.c: where the last calls stood whose work a device may complain of later. */
#include "../../core/ops/index.h"
#include "../py.h"

#include <pthread.h>

#define KEPT 256

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t count;
static struct {
    uint64_t place;
    py_step *step;
} calls[KEPT];

void
py_late_note(const char *op, const dt_array *x)
{
    if (!py_on_device(x)) {
        return;
    }
    py_step *step = py_step_new(op);
    pthread_mutex_lock(&lock);
    uint64_t place = ++count;
    py_step *old = calls[place % KEPT].step;
    calls[place % KEPT].place = place;
    calls[place % KEPT].step = step;
    pthread_mutex_unlock(&lock);
    py_step_release(old);
    dt_index_set_place(place);
}

void
py_late_explain(dt_error *err)
{
    PyObject *filename = NULL;
    int line = 0;
    pthread_mutex_lock(&lock);
    const py_step *step = calls[err->place % KEPT].place == err->place ? calls[err->place % KEPT].step : NULL;
    if (step != NULL && step->code != NULL && PyCode_Check(step->code)) {
        filename = Py_NewRef(((PyCodeObject *)step->code)->co_filename);
        line = PyCode_Addr2Line((PyCodeObject *)step->code, step->instruction);
    }
    pthread_mutex_unlock(&lock);
    const char *text = filename == NULL ? NULL : PyUnicode_AsUTF8(filename);
    if (text != NULL) {
        size_t used = strlen(err->message);
        PyOS_snprintf(err->message + used, sizeof(err->message) - used, "; the call is at %s:%d", text, line);
    }
    PyErr_Clear(); /* a name that is no text is left out */
    Py_XDECREF(filename);
}
