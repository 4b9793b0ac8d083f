/* history.c: who used which bytes of a piece of memory last. */
#include "sim.h"

#include <string.h>

#define MOST_PIECES 4096 /* in which memory is used; beyond that it is forgotten */

void
sim_history_init(sim_history *h, size_t nbytes)
{
    *h = (sim_history){.nbytes = nbytes};
}

void
sim_history_clear(sim_history *h)
{
    dt_free(h->many);
    sim_history_init(h, h->nbytes);
}

static sim_piece *
pieces(const sim_history *h)
{
    return h->many != NULL ? h->many : (sim_piece *)(uintptr_t)&h->one;
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
            if (!is_behind(clock, &p->read[k])) {
                return &p->read[k];
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
    h->n++;
    return i + 1;
}

static void
add_reader(sim_piece *p, const sim_clock *clock, const sim_mark *mark)
{
    unsigned n = 0;
    for (unsigned i = 0; i < p->nread; i++) { /* who is behind this read is behind those that it is behind */
        if (!is_behind(clock, &p->read[i])) {
            p->read[n++] = p->read[i];
        }
    }
    if (n == SIM_READERS) {
        memmove(p->read, p->read + 1, --n * sizeof(p->read[0]));
    }
    p->read[n++] = *mark;
    p->nread = n;
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
        same = same_mark(&a->read[i], &b->read[i]);
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
            p->nread = 0;
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
