/* sort.c: elements in order, and where they stood. The dimension goes last; the backend sees rows. */
#include "../check/check.h"
#include "../layout/layout.h"
#include "ops.h"
#include "../result.h"

#include <string.h>

dt_status
dt_sort(const char *name, const dt_array *x, int64_t dim, int64_t first, int64_t k, bool descending, dt_array *values,
        dt_array *indices, dt_error *err)
{
    int last;
    int64_t shape[DT_MAX_NDIM];
    DT_TRY(dt_check_dim(name, dim, x->ndim, &last, err));
    memcpy(shape, x->shape, sizeof(shape));
    if (x->ndim > 0 && k >= 0 && k < shape[last]) {
        shape[last] = k;
    }
    const dt_form form = {name, dt_array_device(x), (dt_dtype)x->dtype, x->ndim, shape, .like = x};
    dt_form places = form;
    places.dtype = DT_INT64;
    DT_TRY(dt_result_new(&form, values, err));
    dt_status rc = dt_result_new(&places, indices, err);
    if (rc == DT_OK) {
        const dt_array rows = dt_with_last(x, last);
        dt_array elements = dt_with_last(values, last), places_there = dt_with_last(indices, last);
        rc = dt_result_made(dt_call_new_sort(&rows, descending, first, &elements, &places_there, err), indices);
    }
    return dt_result_made(rc, values);
}
