/* cell.c: a step of an LSTM or GRU after its products, where the device has a way of its own, and all steps of a layer.
 */
#include "cell.h"

#include <string.h>

#include "../call.h"
#include "../check/check.h"
#include "../grad/params.h"
#include "ops.h"
#include "../result.h"

static const char *const names[DT_NCELLS] = {"lstm", "gru"};

/* x, or a copy whose rows are neighbours. */
static dt_status
with_rows(const dt_array *x, dt_array *out, dt_error *err)
{
    const int last = x->ndim - 1;
    if (x->strides[last] != 1 && x->shape[last] != 1) {
        return dt_contiguous(x, out, err);
    }
    dt_array_copy_handle(x, out);
    return DT_OK;
}

dt_status
dt_cell_step(dt_cell cell, const dt_array *own, const dt_array *x, const dt_array *state, dt_array *out, dt_error *err)
{
    const dt_pair_record kind = {cell, 0};
    DT_RECORD(DT_GRAD_cell, &kind, out, dt_cell_step(cell, own, x, state, out, err), own, x, state);
    const char *op = names[cell];
    const dt_operand in[] = {{"own", own, -1}, {"input", x, -1}, {"state", state, -1}};
    const int64_t gates = cell == DT_CELL_LSTM ? 4 : 3;
    DT_TRY(dt_check_same_device(op, in, 3, err));
    DT_TRY(dt_check_float(op, in, 3, err));
    DT_TRY(dt_check_same_dtype(op, in, 3, err));
    DT_TRY(dt_check_rank_between(op, in, 3, 2, 2, 2, err));
    const int64_t wide[] = {state->shape[0], gates * state->shape[1]};
    DT_TRY(dt_check_shape(op, in, 3, 0, 2, wide, err));
    DT_TRY(dt_check_shape(op, in, 3, 1, 2, wide, err));
    const int64_t shape[] = {2, state->shape[0], state->shape[1]};
    const int one = cell == DT_CELL_LSTM ? 0 : 1;
    const dt_array *given[] = {own, x, state};
    dt_array rows[3] = {DT_ARRAY_EMPTY, DT_ARRAY_EMPTY, DT_ARRAY_EMPTY};
    dt_status rc = DT_OK;
    for (int k = 0; k < 3 && rc == DT_OK; k++) {
        rc = with_rows(given[k], &rows[k], err);
    }
    rc = rc == DT_OK ? dt_empty(dt_array_device(state), (dt_dtype)state->dtype, 3 - one, shape + one, out, err) : rc;
    if (rc == DT_OK) {
        bool made = true;
        rc = dt_call_new_cell(cell, &rows[0], &rows[1], &rows[2], out, &made, err);
        rc = dt_result_made_here(rc, made, op, out, err);
    }
    for (int k = 0; k < 3; k++) {
        dt_array_clear(&rows[k]);
    }
    return rc;
}

/* Entry t along dimension 0, borrowed. */
static dt_array
entry(const dt_array *x, int64_t t)
{
    dt_array one = *x;
    one.ndim = x->ndim - 1;
    one.offset += t * x->strides[0] * (int64_t)dt_itemsize((dt_dtype)x->dtype);
    memcpy(one.shape, x->shape + 1, sizeof(int64_t) * (size_t)one.ndim);
    memcpy(one.strides, x->strides + 1, sizeof(int64_t) * (size_t)one.ndim);
    return one;
}

/* An LSTM writes h over the c that its step has read, and c behind that: all h are in their places without a copy. */
static dt_status
run_steps(dt_cell cell, const dt_array *product, const dt_array *weight, const dt_array *bias, const dt_array *begin,
          const dt_array *state, dt_array *slots, dt_error *err)
{
    dt_array h = *begin, c = *state;
    bool all = true;
    dt_status rc = dt_call_cell_steps(cell, product, weight, bias, begin, state, slots, &all, err);
    if (all) {
        return rc;
    }
    for (int64_t t = 0; t < product->shape[0] && rc == DT_OK; t++) {
        dt_array own = DT_ARRAY_EMPTY, to = entry(slots, t);
        const dt_array x = entry(product, t), first = to;
        bool made = true;
        if (cell == DT_CELL_LSTM) {
            to = *slots;
            to.offset = first.offset;
            to.shape[0] = 2;
        }
        rc = dt_linear(&h, weight, bias, DT_ACTIVATION_NONE, &own, err);
        rc = rc == DT_OK ? dt_call_cell(cell, &own, &x, &c, &to, &made, err) : rc;
        if (rc == DT_OK && !made) {
            rc = dt_fail(err, DT_ENOTIMPL, "not-implemented", names[cell], "%s has no kernel for this device",
                         names[cell]);
        }
        dt_array_clear(&own);
        h = first;
        c = cell == DT_CELL_LSTM ? entry(slots, t + 1) : first;
    }
    return rc;
}

dt_status
dt_cell_steps(dt_cell cell, const dt_array *product, const dt_array *weight, const dt_array *bias, const dt_array *h,
              const dt_array *c, dt_array *outputs, dt_array *last, dt_error *err)
{
    const char *op = names[cell];
    const bool lstm = cell == DT_CELL_LSTM;
    const dt_operand in[] = {{"product", product, -1}, {"weight", weight, -1}, {"h", h, -1}, {"c", c, -1}};
    const int count = lstm ? 4 : 3;
    DT_TRY(dt_check_same_device(op, in, count, err));
    DT_TRY(dt_check_float(op, in, count, err));
    DT_TRY(dt_check_same_dtype(op, in, count, err));
    DT_TRY(dt_check_rank_between(op, in, count, 0, 3, 3, err));
    DT_TRY(dt_check_rank_between(op, in, count, 2, 2, 2, err));
    const int64_t steps = product->shape[0], n = h->shape[0], size = h->shape[1], gates = lstm ? 4 : 3;
    const int64_t wide[] = {steps, n, gates * size}, square[] = {gates * size, size}, slots[] = {steps + lstm, n, size};
    DT_TRY(dt_check_shape(op, in, count, 0, 3, wide, err));
    DT_TRY(dt_check_shape(op, in, count, 1, 2, square, err));
    if (lstm) {
        DT_TRY(dt_check_shape(op, in, count, 3, 2, h->shape, err));
    }
    dt_array rows[2] = {DT_ARRAY_EMPTY, DT_ARRAY_EMPTY};
    dt_status rc = with_rows(product, &rows[0], err);
    rc = rc == DT_OK ? with_rows(lstm ? c : h, &rows[1], err) : rc;
    rc = rc == DT_OK ? dt_empty(dt_array_device(h), (dt_dtype)h->dtype, 3, slots, outputs, err) : rc;
    rc = rc == DT_OK ? run_steps(cell, &rows[0], weight, bias, h, &rows[1], outputs, err) : rc;
    if (rc == DT_OK && lstm) {
        const dt_array end = entry(outputs, steps);
        outputs->shape[0] = steps;
        rc = dt_clone(&end, last, err);
    }
    dt_array_clear(&rows[0]);
    dt_array_clear(&rows[1]);
    return dt_result_made(rc, outputs);
}
