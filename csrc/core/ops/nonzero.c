/* nonzero.c: which elements of a mask are True. Their number decides a shape, so that the host must know it: of a
 * device that is one transfer of 8 bytes. */
#include "../check/check.h"
#include "index.h"
#include "../layout/layout.h"
#include "ops.h"
#include "../result.h"

#include <string.h>

/* before: see slots.def. The last entry of it is the number of True elements. */
static dt_status
count_true(const char *op, const dt_array *mask, dt_array *before, int64_t *count, dt_error *err)
{
    int64_t chunks = (dt_array_numel(mask) - 1) / DT_TRUE_CHUNK + 1, entries = chunks + 1;
    dt_array last;
    dt_scalar total = {0};
    DT_TRY(dt_empty(dt_array_device(mask), DT_INT64, 1, &entries, before, err));
    dt_status rc = dt_call_count_true(mask, before, err);
    if (rc == DT_OK) {
        rc = dt_select(op, before, 0, -1, &last, err);
    }
    if (rc == DT_OK) {
        rc = dt_item(op, &last, &total, err);
        dt_array_clear(&last);
    }
    *count = total.i;
    return dt_result_made(rc, before);
}

/* Dimensions over which the weights go on evenly become one. */
static void
merge_dims(dt_array *mask, int64_t weights[DT_MAX_NDIM])
{
    int64_t strides[1][DT_MAX_NDIM];
    int n = 0;
    for (int d = 0; d < mask->ndim; d++) {
        n = dt_add_dim(n, mask->shape, 1, strides, mask->shape[d], &weights[d]);
    }
    memcpy(weights, strides[0], (size_t)n * sizeof(*weights));
    mask->ndim = (uint8_t)n;
    dt_array_set_contiguous(mask);
}

dt_status
dt_true_places(const char *op, const dt_array *mask, int64_t weights[DT_MAX_NDIM], dt_array *out, dt_error *err)
{
    dt_array flat, before = DT_ARRAY_EMPTY;
    int64_t shape[2] = {0, mask->ndim};
    int ndim = weights != NULL ? 1 : 2;
    DT_TRY(dt_contiguous(mask, &flat, err));
    dt_status rc = DT_OK;
    if (weights != NULL) {
        merge_dims(&flat, weights);
    }
    if (dt_array_numel(mask) > 0) {
        rc = count_true(op, &flat, &before, &shape[0], err);
    }
    if (rc == DT_OK) {
        rc = dt_empty(dt_array_device(mask), DT_INT64, ndim, shape, out, err);
    }
    if (rc == DT_OK) {
        rc = dt_result_made(dt_call_new_find_true(&flat, &before, weights, out, err), out);
    }
    dt_array_clear(&flat);
    dt_array_clear(&before);
    return rc;
}

dt_status
dt_nonzero(const char *op, const dt_array *input, dt_array *out, dt_error *err)
{
    dt_array mask;
    DT_TRY(dt_to(input, dt_array_device(input), DT_BOOL, false, false, &mask, err));
    dt_status rc = dt_true_places(op, &mask, NULL, out, err);
    dt_array_clear(&mask);
    return rc;
}

dt_status
dt_masked_select(const dt_array *input, const dt_array *mask, dt_array *out, dt_error *err)
{
    const dt_operand in[] = {{"input", input, -1}, {"mask", mask, -1}};
    int ndim;
    int64_t shape[DT_MAX_NDIM];
    DT_TRY(dt_check_same_device("masked_select", in, 2, err));
    DT_TRY(dt_check_mask("masked_select", in, 2, 1, err));
    DT_TRY(dt_broadcast_shapes("masked_select", in, 2, &ndim, shape, err));
    if (ndim == 0) { /* a mask takes the place of a dimension at least */
        shape[ndim++] = 1;
    }
    dt_array x, wide;
    DT_TRY(dt_expand("masked_select", input, ndim, shape, &x, err));
    dt_status rc = dt_expand("masked_select", mask, ndim, shape, &wide, err);
    if (rc == DT_OK) {
        const dt_selector all = {&wide, 0, 0, -1};
        rc = dt_index_get("masked_select", input, &x, 1, &all, out, err);
        dt_array_clear(&wide);
    }
    dt_array_clear(&x);
    return rc;
}
