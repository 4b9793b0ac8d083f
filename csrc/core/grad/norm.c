/* norm.c: the formula of layer norm, of group norm, and of batch norm by the numbers of the batch. */
#include "../call.h"
#include "shape.h"
#include "tape.h"
#include "../ops/ops.h"

/* Whether weight and bias have dimension d. */
static bool
weighs(const dt_normalize_params *p, int d)
{
    return p->kind == DT_NORM_LAST ? d >= p->lead : d == 1 || (p->kind == DT_NORM_GROUPS && d == 2);
}

/* The mean over what is normalised, whose dimensions stay with size 1. */
static dt_value
mean_of(dt_tape *t, dt_value x)
{
    const dt_normalize_params *p = t->params;
    int64_t dims[DT_MAX_NDIM];
    int n = 0;
    for (int d = 0; d < t->node->ndim; d++) {
        if (p->kind == DT_NORM_CHANNELS ? d != 1 : d >= p->lead) {
            dims[n++] = d;
        }
    }
    return dt_tape_reduce(t, DT_REDUCE_mean, x, n, dims, true);
}

/* What flows to weight or bias, from what has the shape of x: the engine sums over leading dimensions, not over those
 * behind the channels. */
static dt_value
for_channels(dt_tape *t, dt_value x)
{
    const dt_normalize_params *p = t->params;
    int64_t dims[DT_MAX_NDIM];
    int n = 0;
    for (int d = 0; d < t->node->ndim; d++) {
        if (!weighs(p, d)) {
            dims[n++] = d;
        }
    }
    return p->kind == DT_NORM_LAST ? x : dt_tape_reduce(t, DT_REDUCE_sum, x, n, dims, false);
}

/* weight beside x. */
static dt_value
beside(dt_tape *t, dt_value weight)
{
    const dt_normalize_params *p = t->params;
    int64_t shape[DT_MAX_NDIM];
    if (weight == NULL || p->kind == DT_NORM_LAST) {
        return weight;
    }
    for (int d = 0; d < t->node->ndim; d++) {
        shape[d] = weighs(p, d) ? weight->shape[d - 1] : 1;
    }
    return dt_tape_reshape(t, weight, t->node->ndim, shape);
}

static dt_value
contiguous(dt_tape *t, dt_value x)
{
    dt_array *slot = x == NULL ? NULL : dt_tape_slot(t);
    return slot == NULL ? NULL : dt_tape_made(t, dt_contiguous(x, slot, t->err), slot);
}

/* Where no graph is made, in one pass, and true, where the device has a way of its own. */
static bool
at_once(dt_tape *t)
{
    const dt_normalize_params *p = t->params;
    const bool affine = dt_tape_wants(t, 1) || (t->node->ninputs > 2 && dt_tape_wants(t, 2));
    const int mark = t->n;
    if (t->create_graph || A == NULL || G->dtype != A->dtype || dt_array_numel(A) == 0) {
        return false;
    }
    dt_value x = contiguous(t, A), grad = contiguous(t, G), weight = B == NULL ? NULL : contiguous(t, B);
    dt_array *out = dt_tape_slot(t), *sums = affine ? dt_tape_slot(t) : NULL;
    int64_t shape[DT_MAX_NDIM + 1] = {2};
    int nsums = 1;
    for (int d = 0; d < A->ndim; d++) {
        if (weighs(p, d)) {
            shape[nsums++] = A->shape[d];
        }
    }
    if (x == NULL || grad == NULL || out == NULL || (B != NULL && weight == NULL) ||
        dt_tape_made(t, dt_empty(dt_array_device(x), (dt_dtype)x->dtype, x->ndim, x->shape, out, t->err), out) ==
            NULL) {
        return true;
    }
    if (affine &&
        (sums == NULL ||
         dt_tape_made(t, dt_empty(dt_array_device(x), (dt_dtype)x->dtype, nsums, shape, sums, t->err), sums) == NULL)) {
        return true;
    }
    bool made = true;
    t->rc = dt_call_normalize_grad(grad, x, weight, p, out, sums, &made, t->err);
    if (t->rc != DT_OK || !made) {
        dt_tape_drop(t, t->rc == DT_OK ? mark : t->n);
        return made;
    }
    if (dt_tape_wants(t, 0)) {
        dt_tape_give(t, 0, out);
    }
    for (int k = 1; affine && k < t->node->ninputs; k++) {
        if (dt_tape_wants(t, k)) {
            dt_tape_give(t, k, dt_tape_select(t, sums, 0, k - 1));
        }
    }
    return true;
}

/* input, weight, bias */
void
normalize_gradient(dt_tape *t)
{
    const dt_normalize_params *p = t->params;
    if (at_once(t)) {
        return;
    }
    const bool needs_input = dt_tape_wants(t, 0) || dt_tape_wants(t, 1);
    if (needs_input) {
        dt_value distance = p->centred ? HOLD(SUB(A, mean_of(t, A))) : A;
        dt_value scale = HOLD(RSQRT(ADD(mean_of(t, SQUARE(distance)), N(p->eps))));
        dt_value normal = HOLD(MUL(distance, scale));
        if (dt_tape_wants(t, 1)) {
            dt_tape_give(t, 1, for_channels(t, MUL(G, normal)));
        }
        if (dt_tape_wants(t, 0)) {
            dt_value g = B == NULL ? G : HOLD(MUL(G, beside(t, B)));
            dt_value rest = HOLD(MUL(normal, mean_of(t, MUL(g, normal))));
            dt_value moved = p->centred ? SUB(g, mean_of(t, g)) : g;
            dt_tape_give(t, 0, MUL(SUB(moved, rest), scale));
        }
    }
    if (t->node->ninputs > 2 && dt_tape_wants(t, 2)) {
        dt_tape_give(t, 2, for_channels(t, G));
    }
}
