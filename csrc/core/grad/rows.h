/* rows.h: the gradient of a weight that several products share, as the steps of a recurrent network do: one product of
 * all their rows, where each step would read and write the whole gradient. */
#ifndef DT_GRAD_ROWS_H
#define DT_GRAD_ROWS_H

#include "tape.h"

typedef struct dt_rows {
    dt_array left, right; /* (room, m), (room, n): copies, so that nothing of the graph is held */
    int64_t n, room;
} dt_rows;

/* Rows for leftᵀ @ right, the gradient of weight, to which so many products give; NULL: too few to gain by it, or
 * failed (t->rc). */
dt_rows *dt_rows_new(dt_tape *t, const dt_node *weight, int64_t products, dt_value left, dt_value right);
void dt_rows_free(dt_rows *rows);
/* Whether these are rows of the same kind, and rows has room for them when it is empty. */
bool dt_rows_suit(const dt_rows *rows, dt_value left, dt_value right);
void dt_rows_append(dt_tape *t, dt_rows *rows, dt_value left, dt_value right);
/* The product of all rows, which are then gone. */
dt_value dt_rows_product(dt_tape *t, dt_rows *rows);

#endif
