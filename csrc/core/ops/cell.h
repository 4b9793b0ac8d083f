/* cell.h: a step of a recurrent layer after its products. */
#ifndef DT_CELL_H
#define DT_CELL_H

#include "../devtensor.h"

/* own: the product with h, x: that with the input, of (n, 4 * size) for an LSTM, (n, 3 * size) for a GRU; state (n,
 * size): c of an LSTM, h of a GRU. out: (2, n, size), the new h and c, or (n, size). All of float32 or all of float64,
 * on a device that has a way of its own. */
dt_status dt_cell_step(dt_cell cell, const dt_array *own, const dt_array *x, const dt_array *state, dt_array *out,
                       dt_error *err) DT_MUST_CHECK;

/* All steps of a layer, none of them recorded, the last one first where reverse is true: product (steps, n, gates *
 * size); weight and bias of the product with h, an LSTM's without bias; h (n, size), and c likewise, NULL for a GRU.
 * outputs: (steps, n, size), the h of each step in the order in which they were taken; last: c after them, of an LSTM;
 * NULL for a GRU. */
dt_status dt_cell_steps(const dt_array *product, const dt_array *weight, const dt_array *bias, const dt_array *h,
                        const dt_array *c, bool reverse, dt_array *outputs, dt_array *last,
                        dt_error *err) DT_MUST_CHECK;
/* The same steps, with what their gradient needs. own: (steps, n, gates * size), the products with h; states: (steps +
 * 1, 2, n, size), h and c before each step and after the last, or (steps + 1, n, size) of a GRU. */
dt_status dt_cell_steps_kept(const dt_array *product, const dt_array *weight, const dt_array *bias, const dt_array *h,
                             const dt_array *c, bool reverse, dt_array *own, dt_array *states,
                             dt_error *err) DT_MUST_CHECK;
/* grad: (steps, n, size), of the h of each step as it was taken, and last: (n, size), of the last c, NULL for a GRU.
 * gates: the gradients of both products, (steps, n, 4 * size), or (2, steps, n, 3 * size) of a GRU, that with h first,
 * laid out as product. begin: of the first h and c, (2, n, size), or (n, size). */
dt_status dt_cell_steps_grad(const dt_array *own, const dt_array *product, const dt_array *weight,
                             const dt_array *states, const dt_array *grad, const dt_array *last, bool reverse,
                             dt_array *gates, dt_array *begin, dt_error *err) DT_MUST_CHECK;

extern const char *const dt_cell_names[DT_NCELLS];
/* x, or a copy whose rows are neighbours. */
dt_status dt_cell_rows(const dt_array *x, dt_array *out, dt_error *err) DT_MUST_CHECK;

#endif
