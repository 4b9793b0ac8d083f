/* cell.c: a step of an LSTM or GRU after its products, where the device has a way of its own. */
#include "cell.h"

#include "../call.h"
#include "../check/check.h"
#include "../grad/params.h"
#include "ops.h"
#include "../result.h"

const char *const dt_cell_names[DT_NCELLS] = {"lstm", "gru"};

dt_status
dt_cell_rows(const dt_array *x, dt_array *out, dt_error *err)
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
    const char *op = dt_cell_names[cell];
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
        rc = dt_cell_rows(given[k], &rows[k], err);
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
