/* history.c: who used which bytes of a piece of memory last. */
#include "sim.h"

#include <string.h>

#define MOST_PIECES 4096 /* in which memory is used; beyond that it is forgotten */

void
sim_history_init(sim_history *h, size_t nbytes)
{
    *h = (sim_history){.nbytes = nbytes};
}

static sim_piece *
pieces(const sim_history *h)
{
    return h->many != NULL ? h->many : (sim_piece *)(uintptr_t)&h->one;
}

static void
forget_readers(sim_piece *p)
{
    dt_free(p->more);
    p->more = NULL;
    p->nread = p->room = 0;
}

void
sim_history_clear(sim_history *h)
{
    for (unsigned i = 0; i < h->n; i++) {
        forget_readers(&pieces(h)[i]);
    }
    dt_free(h->many);
    sim_history_init(h, h->nbytes);
}

static sim_mark *
readers(const sim_piece *p)
{
    return p->more != NULL ? p->more : (sim_mark *)(uintptr_t)p->few;
}

/* The piece that holds the byte at. */
static unsigned
find(const sim_history *h, size_t at)
{
    const sim_piece *p = pieces(h);
    unsigned low = 0, high = h->n;
    while (high - low > 1) {
        unsigned middle = low + (high - low) / 2;
        *(p[middle].begin <= at ? &low : &high) = middle;
    }
    return low;
}

static bool
is_behind(const sim_clock *clock, const sim_mark *mark)
{
    return mark->tick == 0 || mark->tick <= clock->at[mark->clock];
}

const sim_mark *
sim_history_conflict(const sim_history *h, size_t begin, size_t end, bool writes, const sim_clock *clock, bool *written)
{
    for (unsigned i = h->n > 0 ? find(h, begin) : 0; i < h->n && pieces(h)[i].begin < end; i++) {
        const sim_piece *p = &pieces(h)[i];
        *written = true;
        if (!is_behind(clock, &p->written)) {
            return &p->written;
        }
        *written = false;
        for (unsigned k = 0; writes && k < p->nread; k++) {
            if (!is_behind(clock, &readers(p)[k])) {
                return &readers(p)[k];
            }
        }
    }
    return NULL;
}

/* Room for two more pieces. */
static bool
make_room(sim_history *h)
{
    if (h->n + 2 <= h->room || h->n == 0) {
        return true;
    }
    unsigned room = h->room > 0 ? h->room * 2 : 4;
    sim_piece *more = room <= MOST_PIECES ? dt_malloc(room * sizeof(*more)) : NULL;
    if (more == NULL) {
        return false;
    }
    memcpy(more, pieces(h), h->n * sizeof(*more));
    dt_free(h->many);
    h->many = more;
    h->room = room;
    return true;
}

/* p, a copy of another piece, gets room of its own for its readers; without memory for it, it forgets them but a few.
 */
static void
own_readers(sim_piece *p)
{
    sim_mark *others = p->more;
    p->more = others != NULL ? dt_malloc(p->room * sizeof(*p->more)) : NULL;
    if (others != NULL && p->more == NULL) {
        p->room = 0;
        p->nread = p->nread < SIM_READERS ? p->nread : SIM_READERS;
    }
    if (others != NULL) {
        memcpy(readers(p), others, p->nread * sizeof(*others));
    }
}

/* A piece begins at; there is room. */
static unsigned
split(sim_history *h, size_t at)
{
    unsigned i = find(h, at);
    sim_piece *p = pieces(h);
    if (p[i].begin == at) {
        return i;
    }
    memmove(p + i + 1, p + i, (h->n - i) * sizeof(*p));
    p[i + 1].begin = at;
    own_readers(&p[i + 1]);
    h->n++;
    return i + 1;
}

/* Room for one more reader. */
static bool
make_room_for_reader(sim_piece *p)
{
    unsigned room = p->more != NULL ? p->room : SIM_READERS;
    if (p->nread < room) {
        return true;
    }
    sim_mark *more = dt_malloc((size_t)2 * room * sizeof(*more));
    if (more == NULL) {
        return false;
    }
    memcpy(more, readers(p), p->nread * sizeof(*more));
    dt_free(p->more);
    p->more = more;
    p->room = 2 * room;
    return true;
}

static void
add_reader(sim_piece *p, const sim_clock *clock, const sim_mark *mark)
{
    sim_mark *read = readers(p);
    unsigned n = 0;
    for (unsigned i = 0; i < p->nread; i++) { /* who is behind this read is behind those that it is behind */
        if (!is_behind(clock, &read[i])) {
            read[n++] = read[i];
        }
    }
    p->nread = n;
    if (!make_room_for_reader(p)) { /* the host has no memory: the earliest is forgotten */
        memmove(read, read + 1, --p->nread * sizeof(*read));
    }
    readers(p)[p->nread++] = *mark;
}

static bool
same_mark(const sim_mark *a, const sim_mark *b)
{
    return a->tick == b->tick && a->clock == b->clock;
}

static bool
same_use(const sim_piece *a, const sim_piece *b)
{
    bool same = same_mark(&a->written, &b->written) && a->nread == b->nread;
    for (unsigned i = 0; i < a->nread && same; i++) {
        same = same_mark(&readers(a)[i], &readers(b)[i]);
    }
    return same;
}

/* Pieces from first to last, and their neighbours, become one where they have been used alike. */
static void
merge(sim_history *h, unsigned first, unsigned last)
{
    sim_piece *p = pieces(h);
    unsigned kept = first > 0 ? first - 1 : 0, end = last + 1 < h->n ? last + 1 : h->n - 1, i = kept + 1;
    for (; i <= end; i++) {
        if (!same_use(&p[kept], &p[i])) {
            p[++kept] = p[i];
        } else {
            forget_readers(&p[i]);
        }
    }
    memmove(p + kept + 1, p + i, (h->n - i) * sizeof(*p));
    h->n -= i - (kept + 1);
}

static void
use(sim_history *h, size_t begin, size_t end, bool writes, const sim_clock *clock, const sim_mark *mark)
{
    if (h->n == 0) {
        h->one = (sim_piece){0};
        h->n = 1;
    }
    bool whole = h->n == 1 && begin == 0 && end == h->nbytes;
    if (!whole && !make_room(h)) {
        sim_history_clear(h);
        return;
    }
    unsigned first = whole ? 0 : split(h, begin);
    unsigned last = whole ? 0 : end < h->nbytes ? split(h, end) - 1 : h->n - 1;
    for (unsigned i = first; i <= last; i++) {
        sim_piece *p = &pieces(h)[i];
        if (writes) {
            p->written = *mark;
            forget_readers(p);
        } else if (mark->tick != 0) {
            add_reader(p, clock, mark);
        }
    }
    if (!whole) {
        merge(h, first, last);
    }
}

void
sim_history_note(sim_history *h, size_t begin, size_t end, bool writes, const sim_clock *clock, const sim_mark *mark)
{
    if (begin < end && end <= h->nbytes) {
        use(h, begin, end, writes, clock, mark);
    }
}

void
sim_history_forget(sim_history *h, size_t begin, size_t end)
{
    const sim_mark nobody = {0};
    sim_history_note(h, begin, end, true, NULL, &nobody);
}
