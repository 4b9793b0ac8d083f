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

/* The last step of an LSTM, whose c has a place of its own. */
static dt_status
last_step(const dt_array *own, const dt_array *x, const dt_array *c, dt_array *h, dt_array *last, bool *made,
          dt_error *err)
{
    dt_array pair = DT_ARRAY_EMPTY;
    const int64_t shape[] = {2, c->shape[0], c->shape[1]};
    DT_TRY(dt_empty(dt_array_device(c), (dt_dtype)c->dtype, 3, shape, &pair, err));
    dt_status rc = dt_call_new_cell(DT_CELL_LSTM, own, x, c, &pair, made, err);
    const dt_array parts[] = {entry(&pair, 0), entry(&pair, 1)};
    rc = rc == DT_OK ? dt_call_copy(&parts[0], h, false, err) : rc;
    rc = rc == DT_OK ? dt_call_copy(&parts[1], last, false, err) : rc;
    dt_array_clear(&pair);
    return rc;
}

/* An LSTM writes h over the c that its step has read, and c behind that: all h are in their places without a copy. */
static dt_status
run_steps(const dt_array *product, const dt_array *weight, const dt_array *bias, const dt_array *begin,
          const dt_array *state, dt_array *out, dt_array *last, dt_error *err)
{
    const dt_cell cell = last != NULL ? DT_CELL_LSTM : DT_CELL_GRU;
    dt_array h = *begin, c = *state;
    bool made = true;
    dt_status rc = dt_call_cell_steps(product, weight, bias, begin, state, out, last, &made, err);
    if (made) {
        return rc;
    }
    for (int64_t t = 0; t < product->shape[0] && rc == DT_OK; t++) {
        dt_array own = DT_ARRAY_EMPTY, first = entry(out, t), pair = *out;
        const dt_array x = entry(product, t);
        pair.offset = first.offset;
        pair.shape[0] = 2;
        made = true;
        rc = dt_linear(&h, weight, bias, DT_ACTIVATION_NONE, &own, err);
        if (rc == DT_OK && cell == DT_CELL_LSTM && t == product->shape[0] - 1) {
            rc = last_step(&own, &x, &c, &first, last, &made, err);
        } else if (rc == DT_OK) {
            rc = dt_call_cell(cell, &own, &x, &c, cell == DT_CELL_LSTM ? &pair : &first, &made, err);
        }
        rc = dt_result_made_here(rc, made, names[cell], &own, err);
        dt_array_clear(&own);
        h = first;
        c = cell == DT_CELL_GRU ? first : t + 1 < out->shape[0] ? entry(out, t + 1) : *last;
    }
    return rc;
}

static dt_status
check_steps(const dt_array *product, const dt_array *weight, const dt_array *bias, const dt_array *h, const dt_array *c,
            dt_error *err)
{
    const char *op = names[c != NULL ? DT_CELL_LSTM : DT_CELL_GRU];
    const dt_operand in[] = {{"product", product, -1},
                             {"weight", weight, -1},
                             {"h", h, -1},
                             c != NULL ? (dt_operand){"c", c, -1} : (dt_operand){"bias", bias, -1}};
    const int count = c != NULL || bias != NULL ? 4 : 3;
    DT_TRY(dt_check_same_device(op, in, count, err));
    DT_TRY(dt_check_float(op, in, count, err));
    DT_TRY(dt_check_same_dtype(op, in, count, err));
    DT_TRY(dt_check_rank_between(op, in, count, 0, 3, 3, err));
    DT_TRY(dt_check_rank_between(op, in, count, 2, 2, 2, err));
    const int64_t n = h->shape[0], size = h->shape[1], gates = c != NULL ? 4 : 3;
    const int64_t wide[] = {product->shape[0], n, gates * size}, square[] = {gates * size, size};
    DT_TRY(dt_check_shape(op, in, count, 0, 3, wide, err));
    DT_TRY(dt_check_shape(op, in, count, 1, 2, square, err));
    if (c != NULL) {
        return dt_check_shape(op, in, count, 3, 2, h->shape, err);
    }
    return bias == NULL ? DT_OK : dt_check_shape(op, in, count, 3, 1, square, err);
}

/* The steps of x from the last one on. */
static void
turn_steps(dt_array *x)
{
    x->offset += (x->shape[0] - 1) * x->strides[0] * (int64_t)dt_itemsize((dt_dtype)x->dtype);
    x->strides[0] = -x->strides[0];
}

dt_status
dt_cell_steps(const dt_array *product, const dt_array *weight, const dt_array *bias, const dt_array *h,
              const dt_array *c, bool reverse, dt_array *outputs, dt_array *last, dt_error *err)
{
    DT_TRY(check_steps(product, weight, bias, h, c, err));
    const dt_array *state = c != NULL ? c : h;
    const dt_device device = dt_array_device(h);
    const dt_dtype dtype = (dt_dtype)h->dtype;
    const int64_t shape[] = {product->shape[0], h->shape[0], h->shape[1]};
    dt_array rows[2] = {DT_ARRAY_EMPTY, DT_ARRAY_EMPTY};
    dt_status rc = with_rows(product, &rows[0], err);
    rc = rc == DT_OK ? with_rows(state, &rows[1], err) : rc;
    rc = rc == DT_OK ? dt_empty(device, dtype, 3, shape, outputs, err) : rc;
    rc = rc == DT_OK && c != NULL ? dt_empty(device, dtype, 2, shape + 1, last, err) : rc;
    if (rc == DT_OK && shape[0] == 0 && c != NULL) {
        rc = dt_call_new_copy(c, last, false, err);
    } else if (rc == DT_OK) {
        if (reverse) {
            turn_steps(&rows[0]);
        }
        rc = run_steps(&rows[0], weight, bias, h, &rows[1], outputs, last, err);
    }
    dt_array_clear(&rows[0]);
    dt_array_clear(&rows[1]);
    if (c != NULL) {
        rc = dt_result_made(rc, last);
    }
    return dt_result_made(rc, outputs);
}
