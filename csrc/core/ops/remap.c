/* remap.c: places of the input along two neighbouring dimensions, where the device has a way of its own. */
#include "remap.h"

#include "../call.h"
#include "../check/check.h"
#include "ops.h"
#include "../result.h"

dt_status
dt_remap(const char *op, const dt_array *x, const dt_remap_params *p, dt_array *out, dt_error *err)
{
    const dt_operand in[] = {{"input", x, -1}};
    int64_t shape[DT_MAX_NDIM];
    int dim;
    DT_TRY(dt_check_rank_between(op, in, 1, 0, 2, DT_MAX_NDIM, err));
    DT_TRY(dt_check_dim(op, p->dim, x->ndim - 1, &dim, err));
    if (p->along[0].kind == DT_REMAP_LINEAR || p->along[1].kind == DT_REMAP_LINEAR) {
        DT_TRY(dt_check_float(op, in, 1, err));
    }
    for (int d = 0; d < x->ndim; d++) {
        shape[d] = d == dim || d == dim + 1 ? p->along[d - dim].size : x->shape[d];
    }
    dt_array dense;
    DT_TRY(dt_contiguous(x, &dense, err));
    dt_status rc = dt_empty(dt_array_device(x), (dt_dtype)x->dtype, x->ndim, shape, out, err);
    if (rc == DT_OK) {
        bool made = true;
        rc = dt_call_new_remap(&dense, p, out, &made, err);
        rc = dt_result_made_here(rc, made, op, out, err);
    }
    dt_array_clear(&dense);
    return rc;
}
