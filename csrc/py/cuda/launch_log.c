/* launch_log.c: the lines that sent work to a device, for errors of work that went wrong there later. A line is kept as
 * code object and instruction, as origins are (origin.c), for the last few pieces of work of each stream. */
#include "../../cuda/front.h"
#include "../frame.h"

#define STREAMS 16 /* those that differ by a multiple of it share their places */

typedef struct {
    PyObject *code;
    int instruction;
    cuda_sent sent;
} place;

static place places[STREAMS][CUDA_SENT]; /* the GIL guards them */

/* What this thread sent while it had given the GIL up. */
static _Thread_local struct {
    unsigned n;
    cuda_sent sent[CUDA_SENT];
} waiting;

static place *
place_of(const cuda_sent *sent)
{
    return &places[((unsigned)sent->device * 5 + sent->stream) % STREAMS][sent->number % CUDA_SENT];
}

static void
write_down(const cuda_sent *sent)
{
    place *p = place_of(sent);
    PyObject *before = p->code;
    p->sent = *sent;
    p->code = py_frame_user_code(&p->instruction);
    py_frame_drop_code(before);
}

static void
note_line(const cuda_sent *sent)
{
    if (py_holds_gil()) {
        write_down(sent);
    } else {
        waiting.sent[waiting.n++ % CUDA_SENT] = *sent;
    }
}

void
py_sent_flush(void)
{
    unsigned n = waiting.n < CUDA_SENT ? waiting.n : CUDA_SENT;
    waiting.n = 0;
    for (unsigned i = 0; i < n; i++) {
        write_down(&waiting.sent[i]);
    }
}

void
py_sent_init(void)
{
    cuda_set_sent(note_line);
}

void
py_sent_clear(void)
{
    cuda_set_sent(NULL);
    for (size_t i = 0; i < STREAMS * CUDA_SENT; i++) {
        Py_CLEAR(places[i / CUDA_SENT][i % CUDA_SENT].code);
    }
}

/* ---------------------------------------------------------------- for people */

#define MOST 64

/* (stream, what, file or None, line) */
static PyObject *
entry(const cuda_suspect *suspect)
{
    const place *p = place_of(&suspect->sent);
    const cuda_sent *known = &p->sent, *wanted = &suspect->sent;
    char stream[32] = "";
    if (suspect->stream != NULL) {
        PyOS_snprintf(stream, sizeof(stream), "%p", suspect->stream);
    }
    bool placed = p->code != NULL && PyCode_Check(p->code) && known->device == wanted->device &&
                  known->stream == wanted->stream && known->number == wanted->number;
    if (!placed) {
        return Py_BuildValue("ssOi", stream, suspect->name, Py_None, 0);
    }
    PyCodeObject *code = (PyCodeObject *)p->code;
    return Py_BuildValue("ssOi", stream, suspect->name, code->co_filename, PyCode_Addr2Line(code, p->instruction));
}

static PyObject *
py__cuda_last_sent(PY_PARAMS)
{
    PY_PARSE(_cuda_last_sent)
    int64_t index = 0;
    cuda_suspect suspects[MOST];
    if (py_arg_int(&a, 0, &index) < 0) {
        return NULL;
    }
    int n = cuda_last_sent(index < 0 || index > INT_MAX ? -1 : (int)index, suspects, MOST);
    PyObject *list = PyList_New(n);
    for (int i = 0; list != NULL && i < n; i++) {
        PyObject *one = entry(&suspects[i]);
        if (one == NULL) {
            Py_CLEAR(list);
        } else {
            PyList_SET_ITEM(list, i, one);
        }
    }
    return list;
}

PyMethodDef py_sent_functions[] = {
    PY_HIDDEN(
        _cuda_last_sent,
        "[(stream or '', what, file or None, line)] of what may have gone wrong on a device that is lost, by stream, "
        "the latest first."),
    PY_END,
};

PyMethodDef py_sent_methods[] = {PY_END};
