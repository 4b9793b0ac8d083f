/* cell.c: the formulas of a step of an LSTM or GRU (ops/cell.c). */
#include "../call.h"
#include "shape.h"
#include "tape.h"
#include "../ops/ops.h"

static bool
is_lstm(const dt_tape *t)
{
    return ((const dt_pair_record *)t->params)->a == DT_CELL_LSTM;
}

/* Whose rows are neighbours. */
static dt_value
with_rows(dt_tape *t, dt_value x)
{
    if (x == NULL || x->strides[x->ndim - 1] == 1 || x->shape[x->ndim - 1] == 1) {
        return x;
    }
    dt_array *slot = dt_tape_slot(t);
    return slot == NULL ? NULL : dt_tape_made(t, dt_contiguous(x, slot, t->err), slot);
}

/* So many rows of gradients from the first-th element on. */
static dt_value
part(dt_tape *t, dt_value all, int64_t first, int64_t n, int64_t width)
{
    const int64_t shape[] = {n, width};
    return dt_tape_reshape(t, dt_tape_narrow(t, all, 0, first, n * width), 2, shape);
}

/* In one pass, where no graph is made; false: this device has no way of its own. */
static bool
at_once(dt_tape *t)
{
    if (t->create_graph || C == NULL || G->dtype != C->dtype || dt_array_numel(C) == 0) {
        return false;
    }
    const dt_cell cell = is_lstm(t) ? DT_CELL_LSTM : DT_CELL_GRU;
    const int64_t n = C->shape[0], size = C->shape[1], wide = cell == DT_CELL_LSTM ? 4 * size : 3 * size;
    const int64_t products = cell == DT_CELL_LSTM ? n * wide : 2 * n * wide, numel = products + n * size;
    const int mark = t->n;
    dt_value own = with_rows(t, A), x = with_rows(t, B), state = with_rows(t, C), grad = with_rows(t, G);
    dt_array *slot = dt_tape_slot(t);
    if (own == NULL || x == NULL || state == NULL || grad == NULL || slot == NULL ||
        dt_tape_made(t, dt_empty(dt_array_device(state), (dt_dtype)state->dtype, 1, &numel, slot, t->err), slot) ==
            NULL) {
        return true;
    }
    bool made = true;
    t->rc = dt_call_cell_grad(cell, own, x, state, grad, slot, &made, t->err);
    if (t->rc != DT_OK) {
        return true;
    }
    if (!made) {
        dt_tape_drop(t, mark);
        return false;
    }
    if (dt_tape_wants(t, 0)) {
        dt_tape_give(t, 0, part(t, slot, 0, n, wide));
    }
    if (dt_tape_wants(t, 1)) {
        dt_tape_give(t, 1, part(t, slot, cell == DT_CELL_LSTM ? 0 : n * wide, n, wide));
    }
    if (dt_tape_wants(t, 2)) {
        dt_tape_give(t, 2, part(t, slot, products, n, size));
    }
    return true;
}

/* Gate k of x. */
static dt_value
gate(dt_tape *t, dt_value x, int k)
{
    return x == NULL ? NULL : dt_tape_narrow(t, x, 1, k * C->shape[1], C->shape[1]);
}

/* gradient: of gate k of operand i. */
static void
give_gate(dt_tape *t, int i, int k, dt_value gradient)
{
    if (gradient == NULL || !dt_tape_wants(t, i)) {
        return;
    }
    const int64_t size = C->shape[1];
    const dt_region region = {
        .offset = k * size, .ndim = 2, .shape = {C->shape[0], size}, .strides = {(is_lstm(t) ? 4 : 3) * size, 1}};
    dt_tape_give_region(t, i, &region, gradient);
}

/* The gradient of s in a sigmoid of it, from that of the result y. */
static dt_value
through_sigmoid(dt_tape *t, dt_value gradient, dt_value y)
{
    return MUL(gradient, MUL(SUB(N(1), y), y));
}

static void
lstm_formula(dt_tape *t)
{
    dt_value in = HOLD(SIGMOID(ADD(gate(t, A, 0), gate(t, B, 0))));
    dt_value forget = HOLD(SIGMOID(ADD(gate(t, A, 1), gate(t, B, 1))));
    dt_value new = HOLD(TANH(ADD(gate(t, A, 2), gate(t, B, 2))));
    dt_value out = HOLD(SIGMOID(ADD(gate(t, A, 3), gate(t, B, 3))));
    dt_value tanh = HOLD(TANH(ADD(MUL(forget, C), MUL(in, new))));
    dt_value dh = HOLD(dt_tape_select(t, G, 0, 0)), dc = HOLD(dt_tape_select(t, G, 0, 1));
    dt_value cell = HOLD(ADD(dc, MUL(MUL(dh, out), SUB(N(1), SQUARE(tanh)))));
    for (int k = 0; k < 4; k++) {
        dt_value gradient = k == 0   ? through_sigmoid(t, MUL(cell, new), in)
                            : k == 1 ? through_sigmoid(t, MUL(cell, C), forget)
                            : k == 2 ? MUL(MUL(cell, in), SUB(N(1), SQUARE(new)))
                                     : through_sigmoid(t, MUL(dh, tanh), out);
        gradient = HOLD(gradient);
        give_gate(t, 0, k, gradient);
        give_gate(t, 1, k, gradient);
    }
    if (dt_tape_wants(t, 2)) {
        dt_tape_give(t, 2, MUL(cell, forget));
    }
}

static void
gru_formula(dt_tape *t)
{
    dt_value reset = HOLD(SIGMOID(ADD(gate(t, B, 0), gate(t, A, 0))));
    dt_value keep = HOLD(SIGMOID(ADD(gate(t, B, 1), gate(t, A, 1))));
    dt_value last = HOLD(gate(t, A, 2));
    dt_value fresh = HOLD(TANH(ADD(gate(t, B, 2), MUL(reset, last))));
    dt_value inner = HOLD(MUL(MUL(G, SUB(N(1), keep)), SUB(N(1), SQUARE(fresh))));
    dt_value first = HOLD(through_sigmoid(t, MUL(inner, last), reset));
    dt_value second = HOLD(through_sigmoid(t, MUL(G, SUB(C, fresh)), keep));
    for (int i = 0; i < 2; i++) {
        give_gate(t, i, 0, first);
        give_gate(t, i, 1, second);
    }
    give_gate(t, 0, 2, MUL(inner, reset));
    give_gate(t, 1, 2, inner);
    if (dt_tape_wants(t, 2)) {
        dt_tape_give(t, 2, MUL(G, keep));
    }
}

/* the product with h, that with the input, the state */
void
cell_gradient(dt_tape *t)
{
    if (!at_once(t)) {
        (is_lstm(t) ? lstm_formula : gru_formula)(t);
    }
}
