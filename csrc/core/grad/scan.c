/* scan.c: the formulas of running sums and products. */
#include "scan.h"

#include <float.h>

#include "tape.h"
#include "../ops/ops.h"

void
dt_cumsum_gradient(dt_tape *t)
{
    const dt_pair_record *along = t->params;
    dt_tape_give(t, 0, dt_tape_scan(t, DT_SCAN_SUM, G, along->a, !along->b));
}

/* ---------------------------------------------------------------- products */

/* y = a running product over the n elements of the last dimension of x: x[k] gets the sum over i >= k of g[i] times the
 * product of all x[j], j <= i, but x[k]. Work and memory are those of n such arrays, but it has a gradient itself. */
static dt_value
through_all_products(dt_tape *t, dt_value x, dt_value g)
{
    const int64_t n = x->shape[x->ndim - 1], rows[2] = {n == 0 ? 0 : dt_array_numel(x) / n, n}, sum[] = {2};
    const int64_t shape[3] = {rows[0], n, n};
    dt_array *slot = dt_tape_slot(t);
    dt_value own = slot == NULL ? NULL : dt_tape_made(t, dt_eye(dt_array_device(x), DT_BOOL, n, n, slot, t->err), slot);
    dt_value row = dt_tape_reshape(t, x, 2, rows), gradient = dt_tape_reshape(t, g, 2, rows);
    dt_value others = WHERE(own, N(1), dt_tape_expand(t, dt_tape_unsqueeze(t, row, 1), 3, shape));
    dt_value terms = MUL(dt_tape_scan(t, DT_SCAN_PROD, others, 2, false), dt_tape_unsqueeze(t, gradient, 1));
    return dt_tape_reshape(t, dt_tape_sum(t, dt_tape_tri(t, terms, 0, true), 1, sum, false), x->ndim, x->shape);
}

/* Up to the first zero of a row the sum of g y, from the end, over x; there the same without that zero; then 0. */
void
dt_cumprod_gradient(dt_tape *t)
{
    const dt_pair_record *along = t->params;
    if (G->ndim == 0) {
        dt_tape_give(t, 0, G);
        return;
    }
    dt_value x = HOLD(dt_tape_to(t, A, dt_array_device(A), (dt_dtype)G->dtype));
    const int dim = (int)(along->a < 0 ? along->a + G->ndim : along->a);
    if (t->create_graph && x != NULL) {
        dt_value found = through_all_products(t, dt_tape_transpose(t, x, dim, G->ndim - 1),
                                              dt_tape_transpose(t, G, dim, G->ndim - 1));
        dt_tape_give(t, 0, dt_tape_transpose(t, found, dim, G->ndim - 1));
        return;
    }
    dt_value zero = HOLD(EQ(x, N(0))), zeros = HOLD(dt_tape_scan(t, DT_SCAN_SUM, zero, dim, false));
    dt_value first = HOLD(AND(EQ(zeros, dt_tape_integer(t, 1)), zero));
    dt_value before = DIV(dt_tape_scan(t, DT_SCAN_SUM, MUL(G, Y), dim, true), x);
    dt_value without = dt_tape_scan(t, DT_SCAN_PROD, WHERE(first, N(1), x), dim, false);
    dt_value there = dt_tape_scan(t, DT_SCAN_SUM, MUL(G, without), dim, true);
    dt_tape_give(t, 0, WHERE(EQ(zeros, dt_tape_integer(t, 0)), before, WHERE(first, there, N(0))));
}

/* ---------------------------------------------------------------- logarithms */

/* In the place of the logarithm of 0: infinity less infinity would be none. */
static double
lowest(dt_dtype dtype)
{
    return dtype == DT_FLOAT64   ? -DBL_MAX
           : dtype == DT_FLOAT32 ? -(double)FLT_MAX
           : dtype == DT_FLOAT16 ? -65504.0
                                 : -3.3895313892515355e38;
}

/* exp(x) times the sum of g exp(-y) from the end, by the logarithms of g: of one sign at a time */
static dt_value
of_one_sign(dt_tape *t, dt_value g, dt_value x, const dt_pair_record *along)
{
    dt_value logs = WHERE(GT(g, N(0)), LOG(g), N(lowest((dt_dtype)G->dtype)));
    return EXP(ADD(dt_tape_scan(t, DT_SCAN_LOGSUMEXP, SUB(logs, Y), along->a, !along->b), x));
}

void
dt_logcumsumexp_gradient(dt_tape *t)
{
    const dt_pair_record *along = t->params;
    dt_value x = HOLD(dt_tape_to(t, A, dt_array_device(A), (dt_dtype)G->dtype));
    dt_tape_give(t, 0, SUB(of_one_sign(t, G, x, along), of_one_sign(t, HOLD(NEG(G)), x, along)));
}
