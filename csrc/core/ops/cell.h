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

#endif
