/* resample.c: sums of few neighbours along a dimension, where the device has a way of its own. */
#include "resample.h"

#include "../call.h"
#include "../check/check.h"
#include "../grad/grad.h"
#include "ops.h"
#include "../result.h"

#define OP "interpolate"

/* Of dense operands. */
static dt_status
resampled(const dt_array *const *given, const dt_resample_params *p, int ndim, const int64_t *shape, dt_array *out,
          dt_error *err)
{
    dt_array dense[3] = {DT_ARRAY_EMPTY, DT_ARRAY_EMPTY, DT_ARRAY_EMPTY};
    dt_status rc = DT_OK;
    for (int k = 0; k < 3 && rc == DT_OK; k++) {
        rc = dt_contiguous(given[k], &dense[k], err);
    }
    rc = rc == DT_OK ? dt_empty(dt_array_device(given[0]), (dt_dtype)given[0]->dtype, ndim, shape, out, err) : rc;
    if (rc == DT_OK) {
        bool made = true;
        rc = dt_call_new_resample(&dense[0], &dense[1], &dense[2], p, out, &made, err);
        rc = dt_result_made_here(rc, made, OP, out, err);
    }
    for (int k = 0; k < 3; k++) {
        dt_array_clear(&dense[k]);
    }
    return rc;
}

dt_status
dt_resample(const dt_array *input, const dt_array *index, const dt_array *share, const dt_resample_params *p,
            dt_array *out, dt_error *err)
{
    DT_RECORD(DT_GRAD_resample, p, out, dt_resample(input, index, share, p, out, err), input, index, share);
    const dt_operand in[] = {{"input", input, -1}, {"share", share, -1}, {"index", index, -1}};
    DT_TRY(dt_check_same_device(OP, in, 3, err));
    DT_TRY(dt_check_float(OP, in, 2, err));
    DT_TRY(dt_check_same_dtype(OP, in, 2, err));
    DT_TRY(dt_check_rank_between(OP, in, 3, 0, 1, DT_MAX_NDIM, err));
    int dim;
    DT_TRY(dt_check_dim(OP, p->dim, input->ndim, &dim, err));
    const int64_t taps[] = {-1, p->back ? input->shape[dim] : p->size};
    DT_TRY(dt_check_shape(OP, in, 3, 1, 2, taps, err));
    DT_TRY(dt_check_shape(OP, in, 3, 2, 2, share->shape, err));
    int64_t shape[DT_MAX_NDIM];
    for (int d = 0; d < input->ndim; d++) {
        shape[d] = d == dim ? p->size : input->shape[d];
    }
    return resampled((const dt_array *[]){input, index, share}, p, input->ndim, shape, out, err);
}
