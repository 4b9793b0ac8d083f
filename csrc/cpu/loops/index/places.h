/* places.h: indices become offsets, and are checked: places.c. */
#ifndef DT_CPU_PLACES_H
#define DT_CPU_PLACES_H

#include "../../cpu.h"

/* The ndim dimensions from first on of what is gone over, of which the indices know. */
typedef struct {
    const dt_index *by;
    int first, ndim;
    const int64_t *shape;
    atomic_int_fast64_t bad; /* the first position with an index out of range; INT64_MAX: none so far */
} cpu_places;

/* Offsets of n positions that follow each other along the last dimension, where each has step more; false: out of
 * range. */
bool cpu_find_offsets(cpu_places *p, int64_t position, int64_t n, int64_t step, int64_t *offsets);

/* Adds n entries of index k, from data on, times its stride to offsets; returns how many of them are in range before
 * one that is not. */
int64_t cpu_add_index(const dt_index *by, int k, const char *data, int64_t step, int64_t n, int64_t *offsets);

/* The index at position is out of range. */
void cpu_note_bad(cpu_places *p, int64_t position);

/* How far positions follow each other along the last dimension. */
static inline int64_t
cpu_run_from(const cpu_places *p, int64_t position)
{
    int64_t last = p->ndim > 0 ? p->shape[p->ndim - 1] : 1;
    return last - position % last;
}

/* The first index out of range, if there was one. */
dt_status cpu_check_range(const cpu_places *p, dt_error *err) DT_MUST_CHECK;

#endif
