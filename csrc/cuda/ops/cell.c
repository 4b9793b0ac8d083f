/* cell.c: steps of an LSTM or GRU have no kernel of their own here: they are made of other ops. */
#include "../device.h"

dt_status
cuda_cell(dt_cell cell, const dt_array *own, const dt_array *x, const dt_array *state, dt_array *out, bool *made,
          dt_error *err)
{
    (void)cell, (void)own, (void)x, (void)state, (void)out, (void)err;
    *made = false;
    return DT_OK;
}

dt_status
cuda_cell_grad(dt_cell cell, const dt_array *own, const dt_array *x, const dt_array *state, const dt_array *grad,
               dt_array *out, bool *made, dt_error *err)
{
    (void)cell, (void)own, (void)x, (void)state, (void)grad, (void)out, (void)err;
    *made = false;
    return DT_OK;
}
