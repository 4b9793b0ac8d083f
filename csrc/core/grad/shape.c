/* shape.c: the formulas of views and copies. */
#include "shape.h"

#include "tape.h"
#include "../ops/ops.h"

void
pass_gradient(dt_tape *t)
{
    dt_tape_give(t, 0, G);
}

void
reshape_gradient(dt_tape *t)
{
    const dt_node *input = dt_tape_input(t, 0);
    dt_tape_give(t, 0, dt_tape_reshape(t, G, input->ndim, input->shape));
}

void
transpose_gradient(dt_tape *t)
{
    const dt_pair_record *dims = t->params;
    dt_tape_give(t, 0, dt_tape_transpose(t, G, (int)dims->a, (int)dims->b));
}

void
permute_gradient(dt_tape *t)
{
    const dt_dims_record *order = t->params;
    int64_t back[DT_MAX_NDIM];
    for (int d = 0; d < order->n; d++) {
        back[order->dims[d]] = d;
    }
    dt_tape_give(t, 0, dt_tape_permute(t, G, order->n, back));
}

void
subset_gradient(dt_tape *t)
{
    dt_tape_give_region(t, 0, t->params, G);
}

void
embed_gradient(dt_tape *t)
{
    dt_tape_give(t, 0, dt_tape_region(t, G, t->params));
}

void
without_gradient(dt_tape *t)
{
    dt_tape_give_rest(t, 0, t->params);
}

/* The content of memory after a write: that before it, and what the part shows now. */
void
write_gradient(dt_tape *t)
{
    const dt_region *region = t->params;
    const int mark = t->n;
    if (dt_tape_wants(t, 1)) {
        const dt_value part = dt_tape_region(t, G, region);
        dt_tape_give(t, 1, dt_tape_wants(t, 0) ? dt_tape_clone(t, part) : part);
        dt_tape_drop(t, mark);
    }
    dt_tape_give_rest(t, 0, region);
}

void
to_gradient(dt_tape *t)
{
    const dt_node *input = dt_tape_input(t, 0);
    dt_tape_give(t, 0, dt_tape_to(t, G, input->device, (dt_dtype)input->dtype));
}

/* dst[...] = src: nothing of what was there is left. */
void
copy_gradient(dt_tape *t)
{
    if (dt_tape_wants(t, 0)) {
        dt_tape_give(t, 0, dt_tape_zeros(t, t->node->ndim, t->node->shape));
    }
    if (dt_tape_wants(t, 1)) {
        const dt_node *input = dt_tape_input(t, 1);
        dt_tape_give(t, 1, dt_tape_to(t, G, input->device, (dt_dtype)G->dtype));
    }
}

/* params: the dimension, then the size of each operand along it */
void
cat_gradient(dt_tape *t)
{
    const int64_t *sizes = t->params;
    const int dim = (int)*sizes++, mark = t->n;
    int64_t at = 0;
    for (int i = 0; i < t->node->ninputs; at += sizes[i++]) {
        if (dt_tape_wants(t, i)) {
            const dt_node *input = dt_tape_input(t, i);
            dt_tape_give(t, i,
                         input->ndim == G->ndim
                             ? dt_tape_narrow(t, G, dim, at, sizes[i])
                             : dt_tape_zeros(t, input->ndim, input->shape)); /* nothing: shape (0,) */
            dt_tape_drop(t, mark);
        }
    }
}

void
stack_gradient(dt_tape *t)
{
    const int dim = (int)((const dt_pair_record *)t->params)->a, mark = t->n;
    for (int i = 0; i < t->node->ninputs; i++) {
        if (dt_tape_wants(t, i)) {
            dt_tape_give(t, i, dt_tape_select(t, G, dim, i));
            dt_tape_drop(t, mark);
        }
    }
}

void
tri_gradient(dt_tape *t)
{
    const dt_pair_record *r = t->params;
    dt_tape_give(t, 0, dt_tape_tri(t, G, r->a, r->b != 0));
}
