/* resample.c: the formula of sums of neighbours, which is the same op the other way. */
#include "shape.h"
#include "tape.h"
#include "../ops/resample.h"

/* input, index, share */
void
resample_gradient(dt_tape *t)
{
    const dt_resample_params *p = t->params;
    const dt_node *input = dt_tape_input(t, 0);
    const int64_t dim = p->dim < 0 ? p->dim + input->ndim : p->dim;
    const dt_resample_params other = {.dim = dim, .size = input->shape[dim], .back = !p->back};
    dt_value g = C == NULL ? NULL : dt_tape_to(t, G, dt_array_device(C), (dt_dtype)C->dtype);
    dt_array *slot = g == NULL ? NULL : dt_tape_slot(t);
    if (slot != NULL) {
        dt_tape_give(t, 0, dt_tape_made(t, dt_resample(g, B, C, &other, slot, t->err), slot));
    }
}
