/* places.c: lines of the program as numbers, for the race detector of simulated devices, which asks for them under
 * locks and from threads that have given the GIL up. Nothing here runs unless it looks for races. */
#include "../../cuda/front.h"
#include "../frame.h"

#include <unistd.h>

#define BUCKETS 1024

typedef struct place {
    struct place *next;
    unsigned number;
    int line;
    char file[200], text[220];
} place;

static place *buckets[BUCKETS]; /* the GIL guards them */
static place **places;          /* by number - 1 */
static unsigned nplaces, room;
static _Thread_local unsigned before_release; /* where this thread gave the GIL up */

/* Relative to the folder of the process. */
static const char *
short_name(const char *file)
{
    char folder[1024];
    size_t n = getcwd(folder, sizeof(folder)) != NULL ? strlen(folder) : 0;
    return n > 0 && strncmp(file, folder, n) == 0 && file[n] == '/' ? file + n + 1 : file;
}

static bool
make_room(void)
{
    if (nplaces < room) {
        return true;
    }
    unsigned more = room > 0 ? room * 2 : 256;
    place **bigger = PyMem_RawMalloc(more * sizeof(place *));
    if (bigger == NULL) {
        return false;
    }
    if (nplaces > 0) {
        memcpy(bigger, places, nplaces * sizeof(place *));
    }
    /* the old table may be read at this moment, without the GIL */
    places = bigger;
    room = more;
    return true;
}

static unsigned
bucket_of(const char *file, int line)
{
    uint64_t hash = (uint64_t)(unsigned)line;
    for (; *file != '\0'; file++) {
        hash = (hash ^ (unsigned char)*file) * UINT64_C(0x100000001b3);
    }
    return (unsigned)(hash % BUCKETS);
}

/* Takes code over. */
static unsigned
number_of(PyObject *code, int instruction)
{
    const char *file = PyCode_Check(code) ? PyUnicode_AsUTF8(((PyCodeObject *)code)->co_filename) : NULL;
    int line = file != NULL ? PyCode_Addr2Line((PyCodeObject *)code, instruction) : 0;
    PyErr_Clear();
    place **bucket = &buckets[bucket_of(file != NULL ? file : "", line)], *p = *bucket;
    while (p != NULL && (p->line != line || file == NULL || strncmp(p->file, file, sizeof(p->file) - 1) != 0)) {
        p = p->next;
    }
    if (p == NULL && file != NULL && make_room() && (p = PyMem_RawMalloc(sizeof(*p))) != NULL) {
        *p = (place){.next = *bucket, .number = nplaces + 1, .line = line};
        PyOS_snprintf(p->file, sizeof(p->file), "%s", file);
        PyOS_snprintf(p->text, sizeof(p->text), "%s:%d", short_name(p->file), line);
        places[nplaces++] = p;
        *bucket = p;
    }
    py_frame_drop_code(code);
    return p != NULL ? p->number : 0;
}

static unsigned
place_now(void)
{
    if (!py_holds_gil()) {
        return before_release;
    }
    PyObject *type, *exception, *traceback;
    int instruction;
    PyErr_Fetch(&type, &exception, &traceback);
    PyObject *code = py_frame_user_code(&instruction);
    unsigned number = code != NULL ? number_of(code, instruction) : 0;
    PyErr_Restore(type, exception, traceback);
    return number;
}

static const char *
text_of(unsigned number)
{
    return number > 0 && number <= nplaces ? places[number - 1]->text : NULL;
}

void
py_place_keep(void)
{
    if (DT_UNLIKELY(sim_races() != SIM_RACES_OFF)) {
        before_release = place_now();
    }
}

void
py_places_init(void)
{
    cuda_set_places(place_now, text_of);
}
