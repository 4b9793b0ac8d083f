/* resample.c: sums of neighbours have no kernel of their own here: they are made of other ops. */
#include "../device.h"

dt_status
cuda_resample(const dt_array *x, const dt_array *index, const dt_array *share, const dt_resample_params *params,
              dt_array *out, bool *made, dt_error *err)
{
    (void)x, (void)index, (void)share, (void)params, (void)out, (void)err;
    *made = false;
    return DT_OK;
}
