/* cell_steps.c: all steps of an LSTM or GRU in one call, what they keep for a gradient, and that. A device that has no
 * way of its own to take them goes step by step. */
#include <string.h>

#include "../call.h"
#include "../check/check.h"
#include "../layout/layout.h"
#include "../result.h"
#include "cell.h"
#include "ops.h"

static const dt_matmul_params plain = {1.0, 0.0, DT_ACTIVATION_NONE}, added = {1.0, 1.0, DT_ACTIVATION_NONE};

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

/* A matrix with its dimensions exchanged, borrowed. */
static dt_array
turned(const dt_array *x)
{
    dt_array other = *x;
    for (int d = 0; d < 2; d++) {
        other.shape[d] = x->shape[1 - d];
        other.strides[d] = x->strides[1 - d];
    }
    return other;
}

/* The steps of x, along dimension d, from the last one on; borrowed. */
static dt_array
from_the_end(const dt_array *x, int d)
{
    dt_array other = *x;
    other.offset += (x->shape[d] - 1) * x->strides[d] * (int64_t)dt_itemsize((dt_dtype)x->dtype);
    other.strides[d] = -x->strides[d];
    return other;
}

/* ---------------------------------------------------------------- the operands */

/* c: NULL of a GRU. */
static dt_status
check_steps(const dt_array *product, const dt_array *weight, const dt_array *bias, const dt_array *h, const dt_array *c,
            dt_error *err)
{
    const char *op = dt_cell_names[c != NULL ? DT_CELL_LSTM : DT_CELL_GRU];
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

/* last: NULL of a GRU. */
static dt_status
check_grad(const dt_array *own, const dt_array *product, const dt_array *weight, const dt_array *states,
           const dt_array *grad, const dt_array *last, dt_error *err)
{
    const char *op = dt_cell_names[last != NULL ? DT_CELL_LSTM : DT_CELL_GRU];
    const dt_operand in[] = {{"own", own, -1},       {"product", product, -1}, {"weight", weight, -1},
                             {"states", states, -1}, {"grad", grad, -1},       {"last", last, -1}};
    const int count = last != NULL ? 6 : 5;
    DT_TRY(dt_check_same_device(op, in, count, err));
    DT_TRY(dt_check_float(op, in, count, err));
    DT_TRY(dt_check_same_dtype(op, in, count, err));
    DT_TRY(dt_check_rank_between(op, in, count, 4, 3, 3, err));
    const int64_t steps = grad->shape[0], n = grad->shape[1], size = grad->shape[2], gates = last != NULL ? 4 : 3;
    const int64_t wide[] = {steps, n, gates * size}, square[] = {gates * size, size};
    const int64_t both[] = {steps + 1, 2, n, size}, one[] = {steps + 1, n, size};
    DT_TRY(dt_check_shape(op, in, count, 0, 3, wide, err));
    DT_TRY(dt_check_shape(op, in, count, 1, 3, wide, err));
    DT_TRY(dt_check_shape(op, in, count, 2, 2, square, err));
    DT_TRY(dt_check_shape(op, in, count, 3, last != NULL ? 4 : 3, last != NULL ? both : one, err));
    return last != NULL ? dt_check_shape(op, in, count, 5, 2, one + 1, err) : DT_OK;
}

/* ---------------------------------------------------------------- without a gradient */

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
    const int64_t steps = product->shape[0], shape[] = {begin->shape[0], weight->shape[0]};
    dt_array h = *begin, c = *state, own = DT_ARRAY_EMPTY;
    const dt_array factor = turned(weight);
    bool made = true;
    dt_status rc = dt_call_cell_steps(product, weight, bias, begin, state, out, last, &made, err);
    if (made) {
        return rc;
    }
    rc = rc == DT_OK ? dt_empty(dt_array_device(out), (dt_dtype)out->dtype, 2, shape, &own, err) : rc;
    for (int64_t t = 0; t < steps && rc == DT_OK; t++) {
        dt_array first = entry(out, t), pair = *out;
        const dt_array x = entry(product, t);
        pair.offset = first.offset;
        pair.shape[0] = 2;
        made = true;
        rc = dt_call_matmul(&h, &factor, bias, &plain, &own, err);
        if (rc == DT_OK && cell == DT_CELL_LSTM && t == steps - 1) {
            rc = last_step(&own, &x, &c, &first, last, &made, err);
        } else if (rc == DT_OK) {
            rc = dt_call_cell(cell, &own, &x, &c, cell == DT_CELL_LSTM ? &pair : &first, &made, err);
        }
        rc = dt_made_here(rc, made, dt_cell_names[cell], err);
        h = first;
        c = cell == DT_CELL_GRU ? first : t + 1 < steps ? entry(out, t + 1) : *last;
    }
    dt_array_clear(&own);
    return rc;
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
    dt_status rc = dt_cell_rows(product, &rows[0], err);
    rc = rc == DT_OK ? dt_cell_rows(state, &rows[1], err) : rc;
    rc = rc == DT_OK ? dt_empty(device, dtype, 3, shape, outputs, err) : rc;
    rc = rc == DT_OK && c != NULL ? dt_empty(device, dtype, 2, shape + 1, last, err) : rc;
    if (rc == DT_OK && shape[0] == 0 && c != NULL) {
        rc = dt_call_new_copy(c, last, false, err);
    } else if (rc == DT_OK) {
        const dt_array taken = reverse ? from_the_end(&rows[0], 0) : rows[0];
        rc = run_steps(&taken, weight, bias, h, &rows[1], outputs, last, err);
    }
    dt_array_clear(&rows[0]);
    dt_array_clear(&rows[1]);
    if (c != NULL) {
        rc = dt_result_made(rc, last);
    }
    return dt_result_made(rc, outputs);
}

/* ---------------------------------------------------------------- with one */

/* h, and c of an LSTM, before the t-th step; borrowed. */
static dt_array
h_before(const dt_array *states, int64_t t)
{
    const dt_array all = entry(states, t);
    return all.ndim == 3 ? entry(&all, 0) : all;
}

static dt_array
state_before(const dt_array *states, int64_t t)
{
    const dt_array all = entry(states, t);
    return all.ndim == 3 ? entry(&all, 1) : all;
}

static dt_status
run_kept(const dt_array *product, const dt_array *weight, const dt_array *bias, dt_array *own, dt_array *states,
         dt_error *err)
{
    const dt_cell cell = states->ndim == 4 ? DT_CELL_LSTM : DT_CELL_GRU;
    const dt_array factor = turned(weight);
    const int64_t steps = product->shape[0];
    bool made = true;
    dt_status rc = dt_call_cell_steps_kept(product, weight, bias, own, states, &made, err);
    for (int64_t t = 0; t < (made ? 0 : steps) && rc == DT_OK; t++) {
        const dt_array h = h_before(states, t), state = state_before(states, t);
        const dt_array x = entry(product, t);
        dt_array mine = entry(own, t), next = entry(states, t + 1);
        bool stepped = true;
        rc = dt_call_matmul(&h, &factor, bias, &plain, &mine, err);
        rc = rc == DT_OK ? dt_call_cell(cell, &mine, &x, &state, &next, &stepped, err) : rc;
        rc = dt_made_here(rc, stepped, dt_cell_names[cell], err);
    }
    return rc;
}

dt_status
dt_cell_steps_kept(const dt_array *product, const dt_array *weight, const dt_array *bias, const dt_array *h,
                   const dt_array *c, bool reverse, dt_array *own, dt_array *states, dt_error *err)
{
    DT_TRY(check_steps(product, weight, bias, h, c, err));
    const dt_device device = dt_array_device(h);
    const dt_dtype dtype = (dt_dtype)h->dtype;
    const int64_t steps = product->shape[0], n = h->shape[0], size = h->shape[1];
    const int64_t wide[] = {steps, n, weight->shape[0]}, both[] = {steps + 1, 2, n, size}, one[] = {steps + 1, n, size};
    dt_array rows = DT_ARRAY_EMPTY;
    dt_status rc = dt_cell_rows(product, &rows, err);
    rc = rc == DT_OK ? dt_empty(device, dtype, 3, wide, own, err) : rc;
    rc = rc == DT_OK ? dt_empty(device, dtype, c != NULL ? 4 : 3, c != NULL ? both : one, states, err) : rc;
    if (rc == DT_OK) {
        const dt_array taken = reverse && steps > 0 ? from_the_end(&rows, 0) : rows;
        dt_array first = h_before(states, 0), state = state_before(states, 0);
        rc = dt_call_copy(h, &first, false, err);
        rc = rc == DT_OK && c != NULL ? dt_call_copy(c, &state, false, err) : rc;
        rc = rc == DT_OK ? run_kept(&taken, weight, bias, own, states, err) : rc;
    }
    dt_array_clear(&rows);
    rc = dt_result_made(rc, own);
    return dt_result_made(rc, states);
}

/* What a step gave own, and the product if that is something else, and state, one after the other in all. */
static dt_status
take_step(const dt_array *all, dt_array *const *to, int count, dt_error *err)
{
    dt_array part = *all;
    for (int i = 0; i < count; i++) {
        part.ndim = 2;
        memcpy(part.shape, to[i]->shape, sizeof(int64_t) * 2);
        dt_array_set_contiguous(&part);
        DT_TRY(dt_call_copy(&part, to[i], false, err));
        part.offset += dt_array_numel(&part) * (int64_t)dt_itemsize((dt_dtype)all->dtype);
    }
    return DT_OK;
}

/* Gates: of the products, along them of a GRU own and the other; begin: has the gradient of the last c, and gets those
 * of the first h and c. */
static dt_status
run_grad(const dt_array *own, const dt_array *product, const dt_array *weight, const dt_array *states,
         const dt_array *grad, dt_array *gates, dt_array *begin, dt_error *err)
{
    const dt_cell cell = begin->ndim == 3 ? DT_CELL_LSTM : DT_CELL_GRU;
    const bool lstm = cell == DT_CELL_LSTM;
    const int64_t steps = grad->shape[0], n = grad->shape[1], size = grad->shape[2];
    const int64_t numel = n * (lstm ? 4 + 1 : 3 + 3 + 1) * size;
    const dt_params none = {{0}, {0}};
    bool made = true;
    dt_status rc = dt_call_cell_steps_grad(own, product, weight, states, grad, gates, begin, &made, err);
    if (made) {
        return rc;
    }
    dt_array all = DT_ARRAY_EMPTY, dh = lstm ? entry(begin, 0) : *begin, state = lstm ? entry(begin, 1) : *begin;
    rc = rc == DT_OK ? dt_empty(dt_array_device(grad), (dt_dtype)grad->dtype, 1, &numel, &all, err) : rc;
    for (int64_t t = steps - 1; t >= 0 && rc == DT_OK; t--) {
        const dt_array mine = entry(own, t), x = entry(product, t), g = entry(grad, t),
                       before = state_before(states, t);
        dt_array of_own = lstm ? *gates : entry(gates, 0), of_product = lstm ? *gates : entry(gates, 1);
        of_own = entry(&of_own, t);
        of_product = entry(&of_product, t);
        dt_array *const given[] = {&of_own, lstm ? &state : &of_product, &state};
        bool stepped = true;
        rc = dt_call_binary(DT_BINARY_add, &none, &dh, &g, &dh, err);
        rc = rc == DT_OK ? dt_call_cell_grad(cell, &mine, &x, &before, begin, &all, &stepped, err) : rc;
        rc = dt_made_here(rc, stepped, dt_cell_names[cell], err);
        rc = rc == DT_OK ? take_step(&all, given, lstm ? 2 : 3, err) : rc;
        rc = rc == DT_OK ? dt_call_matmul(&of_own, weight, NULL, lstm ? &plain : &added, &dh, err) : rc;
    }
    dt_array_clear(&all);
    return rc;
}

dt_status
dt_cell_steps_grad(const dt_array *own, const dt_array *product, const dt_array *weight, const dt_array *states,
                   const dt_array *grad, const dt_array *last, bool reverse, dt_array *gates, dt_array *begin,
                   dt_error *err)
{
    DT_TRY(check_grad(own, product, weight, states, grad, last, err));
    const dt_device device = dt_array_device(grad);
    const dt_dtype dtype = (dt_dtype)grad->dtype;
    const int64_t steps = grad->shape[0], n = grad->shape[1], size = grad->shape[2];
    const int64_t both[] = {2, steps, n, weight->shape[0]}, pair[] = {2, n, size};
    const dt_array *given[] = {own, product, states, grad};
    enum { COUNT = sizeof(given) / sizeof(*given) };
    dt_array rows[COUNT] = {DT_ARRAY_EMPTY, DT_ARRAY_EMPTY, DT_ARRAY_EMPTY, DT_ARRAY_EMPTY};
    const int skip = last != NULL ? 1 : 0; /* an LSTM has one kind of gates and two of states */
    const dt_scalar zero = dt_scalar_int(0);
    dt_status rc = DT_OK;
    for (int i = 0; i < COUNT && rc == DT_OK; i++) { /* own and states: a hook may have replaced them */
        rc = given[i] == product ? dt_cell_rows(product, &rows[i], err) : dt_contiguous(given[i], &rows[i], err);
    }
    rc = rc == DT_OK ? dt_empty(device, dtype, 4 - skip, both + skip, gates, err) : rc;
    rc = rc == DT_OK ? dt_full("zeros", device, dtype, 2 + skip, pair + 1 - skip, &zero, begin, err) : rc;
    if (rc == DT_OK && last != NULL) {
        dt_array c = entry(begin, 1);
        rc = dt_call_copy(last, &c, false, err);
    }
    if (rc == DT_OK) {
        const bool turns = reverse && steps > 0;
        const dt_array taken = turns ? from_the_end(&rows[1], 0) : rows[1];
        dt_array to = turns ? from_the_end(gates, 1 - skip) : *gates;
        rc = run_grad(&rows[0], &taken, weight, &rows[2], &rows[3], &to, begin, err);
    }
    for (int i = 0; i < COUNT; i++) {
        dt_array_clear(&rows[i]);
    }
    rc = dt_result_made(rc, gates);
    return dt_result_made(rc, begin);
}
