/* writes.c: the lines that write to memory that nodes keep, for the error that a later backward raises. The last few
 * are known, as code object and instruction, as origins are (origin.c). */
#include "../frame.h"
#include "grad.h"

#define WRITES 256 /* lines that are known */

typedef struct {
    _Atomic(const dt_storage *) storage; /* NULL: none, or one that has ended */
    uint32_t version;                    /* since this write */
    int instruction;
    PyObject *code;
} write_line;

static write_line lines[WRITES]; /* the GIL guards them, but for the end of a storage */
static unsigned next;

/* What this thread wrote while it had given the GIL up, until it has it again; little of a thread's own memory is left
 * to a library that is loaded late, so this is a block. */
typedef struct {
    unsigned n;
    struct {
        const dt_storage *storage;
        uint32_t version;
    } write[WRITES];
} write_list;

static _Thread_local write_list *waiting;

static void
write_down(const dt_storage *storage, uint32_t version)
{
    write_line *line = &lines[next++ % WRITES];
    PyObject *before = line->code;
    line->version = version;
    line->code = py_frame_user_code(&line->instruction);
    atomic_store(&line->storage, storage);
    py_frame_drop_code(before);
}

void
py_write_note(const dt_storage *storage, uint32_t version)
{
    if (py_holds_gil()) {
        write_down(storage, version);
        return;
    }
    if (waiting == NULL && (waiting = dt_malloc(sizeof(*waiting))) != NULL) {
        waiting->n = 0;
    }
    if (waiting != NULL && waiting->n < WRITES) {
        waiting->write[waiting->n].storage = storage;
        waiting->write[waiting->n++].version = version;
    }
}

void
py_writes_flush(void)
{
    if (waiting == NULL) {
        return;
    }
    for (unsigned i = 0; i < waiting->n; i++) {
        write_down(waiting->write[i].storage, waiting->write[i].version);
    }
    dt_free(waiting);
    waiting = NULL;
}

void
py_write_forget(const dt_storage *storage)
{
    for (unsigned i = 0; waiting != NULL && i < waiting->n; i++) {
        waiting->write[i].storage = waiting->write[i].storage == storage ? NULL : waiting->write[i].storage;
    }
    for (int i = 0; i < WRITES; i++) {
        const dt_storage *held = storage;
        (void)atomic_compare_exchange_strong(&lines[i].storage, &held, NULL);
    }
}

PyObject *
py_write_line(const dt_storage *storage, uint32_t version)
{
    for (int i = 0; i < WRITES; i++) {
        const write_line *line = &lines[i];
        if (atomic_load(&line->storage) == storage && line->version == version && line->code != NULL) {
            return Py_BuildValue("Oi", line->code, line->instruction);
        }
    }
    Py_RETURN_NONE;
}

void
py_writes_clear(void)
{
    for (int i = 0; i < WRITES; i++) {
        atomic_store(&lines[i].storage, NULL);
        Py_CLEAR(lines[i].code);
    }
}
