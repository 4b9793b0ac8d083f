/* region.c: parts of dense arrays: read, written, cleared, as ops whose gradients are each other. */
#include "tape.h"
#include "../layout/layout.h"
#include "../ops/ops.h"

bool
dt_region_overlaps(const dt_region *region)
{
    int64_t strides[DT_MAX_NDIM], sizes[DT_MAX_NDIM], reach = 0;
    int n = 0;
    for (int d = 0; d < region->ndim; d++) {
        int i = n;
        if (region->shape[d] == 0) {
            return false;
        }
        if (region->shape[d] == 1) {
            continue;
        }
        for (; i > 0 && strides[i - 1] > region->strides[d]; i--) { /* by strides */
            strides[i] = strides[i - 1];
            sizes[i] = sizes[i - 1];
        }
        strides[i] = region->strides[d];
        sizes[i] = region->shape[d];
        n++;
    }
    for (int i = 0; i < n; i++) {
        if (strides[i] <= reach) {
            return true;
        }
        reach += (sizes[i] - 1) * strides[i];
    }
    return false;
}

static dt_status
view_region(const dt_array *whole, const dt_region *region, dt_array *out, dt_error *err)
{
    const int64_t offset = whole->offset + region->offset * (int64_t)dt_itemsize((dt_dtype)whole->dtype);
    return dt_as_strided(whole->storage, offset, (dt_dtype)whole->dtype, region->ndim, region->shape, region->strides,
                         out, err);
}

dt_status
dt_write_region(const dt_array *whole, const dt_region *region, dt_value gradient, bool add, dt_error *err)
{
    dt_array part = DT_ARRAY_EMPTY;
    DT_TRY(view_region(whole, region, &part, err));
    dt_status rc = add ? dt_binary(DT_BINARY_add, "backward", &part, gradient, NULL, NULL, true, &part, err)
                       : dt_copy_into("backward", &part, "src", gradient, false, false, err);
    dt_array_clear(&part);
    return rc;
}

dt_status
dt_clear_region(const dt_array *whole, const dt_region *region, dt_error *err)
{
    const dt_scalar zero = dt_scalar_int(0);
    dt_array part = DT_ARRAY_EMPTY;
    DT_TRY(view_region(whole, region, &part, err));
    dt_status rc = dt_fill("backward", &part, &zero, err);
    dt_array_clear(&part);
    return rc;
}

dt_status
dt_embed(const dt_array *part, const dt_region *region, int ndim, const int64_t *shape, dt_array *out, dt_error *err)
{
    DT_RECORD(DT_GRAD_embed, region, out, dt_embed(part, region, ndim, shape, out, err), part);
    const dt_scalar zero = dt_scalar_int(0);
    DT_TRY(dt_full("backward", dt_array_device(part), (dt_dtype)part->dtype, ndim, shape, &zero, out, err));
    dt_status rc = dt_write_region(out, region, part, false, err);
    if (rc != DT_OK) {
        dt_array_clear(out);
    }
    return rc;
}

dt_status
dt_without_region(const dt_array *whole, const dt_region *region, dt_array *out, dt_error *err)
{
    DT_RECORD(DT_GRAD_without, region, out, dt_without_region(whole, region, out, err), whole);
    DT_TRY(dt_empty(dt_array_device(whole), (dt_dtype)whole->dtype, whole->ndim, whole->shape, out, err));
    dt_status rc = dt_copy_into("backward", out, "src", whole, false, false, err);
    rc = rc == DT_OK ? dt_clear_region(out, region, err) : rc;
    if (rc != DT_OK) {
        dt_array_clear(out);
    }
    return rc;
}

dt_status
dt_take_region(const dt_array *whole, const dt_region *region, dt_array *out, dt_error *err)
{
    DT_RECORD(DT_GRAD_subset, region, out, dt_take_region(whole, region, out, err), whole);
    dt_array dense;
    DT_TRY(dt_contiguous(whole, &dense, err));
    dt_status rc = view_region(&dense, region, out, err);
    dt_array_clear(&dense);
    return rc;
}
