/* attention.c: scaled dot-product attention, where a device does it in one pass over blocks. */
#include "../check/check.h"
#include "ops.h"
#include "../result.h"

enum { QUERY, KEY, VALUE, MASK, ARRAYS };

/* mask as a view over the scores. */
static dt_status
spread(const char *op, const dt_operand *in, int64_t keys, dt_array *view, dt_error *err)
{
    const dt_array *query = in[QUERY].array, *mask = in[MASK].array;
    const int ndim = query->ndim, less = ndim - mask->ndim;
    int64_t shape[DT_MAX_NDIM];
    for (int d = 0; d < ndim; d++) {
        shape[d] = d == ndim - 1 ? keys : query->shape[d];
    }
    *view = *mask;
    view->node = NULL;
    view->ndim = (uint8_t)ndim;
    for (int d = 0; d < ndim; d++) {
        const int own = d - less;
        const bool wide = own >= 0 && mask->shape[own] != 1;
        if (less < 0 || (wide && mask->shape[own] != shape[d])) {
            return dt_check_shape(op, in, ARRAYS, MASK, ndim, shape, err);
        }
        view->shape[d] = shape[d];
        view->strides[d] = wide ? mask->strides[own] : 0;
    }
    return DT_OK;
}

static dt_status
check(const char *op, const dt_operand *in, dt_error *err)
{
    const dt_array *query = in[QUERY].array, *key = in[KEY].array, *mask = in[MASK].array;
    const bool choice = mask != NULL && mask->dtype == DT_BOOL;
    const int ndim = query->ndim, n = choice ? MASK : ARRAYS;
    DT_TRY(dt_check_same_device(op, in, ARRAYS, err));
    DT_TRY(dt_check_same_dtype(op, in, n, err));
    DT_TRY(dt_check_float(op, in, n, err));
    DT_TRY(dt_check_min_rank(op, in, ARRAYS, QUERY, 2, err));
    int64_t shape[DT_MAX_NDIM];
    for (int d = 0; d < ndim; d++) {
        shape[d] = d == ndim - 2 ? -1 : query->shape[d];
    }
    if (ndim > 2 && key->ndim == ndim && key->shape[ndim - 3] > 0 && shape[ndim - 3] % key->shape[ndim - 3] == 0) {
        shape[ndim - 3] = key->shape[ndim - 3];
    }
    DT_TRY(dt_check_shape(op, in, ARRAYS, KEY, ndim, shape, err));
    shape[ndim - 2] = key->shape[ndim - 2];
    shape[ndim - 1] = -1;
    return dt_check_shape(op, in, ARRAYS, VALUE, ndim, shape, err);
}

dt_status
dt_attention(const char *op, const dt_array *query, const dt_array *key, const dt_array *value, const dt_array *mask,
             const dt_attention_params *params, dt_array *out, bool *made, dt_error *err)
{
    const dt_operand in[ARRAYS] = {
        {"query", query, -1}, {"key", key, -1}, {"value", value, -1}, {"attn_mask", mask, -1}};
    dt_array view;
    int64_t shape[DT_MAX_NDIM];
    DT_TRY(check(op, in, err));
    const int ndim = query->ndim;
    if (mask != NULL) {
        DT_TRY(spread(op, in, key->shape[ndim - 2], &view, err));
    }
    for (int d = 0; d < ndim; d++) {
        shape[d] = d == ndim - 1 ? value->shape[d] : query->shape[d];
    }
    const dt_form form = {op, dt_array_device(query), (dt_dtype)query->dtype, ndim, shape, .like = query};
    *made = true;
    DT_TRY(dt_result_new(&form, out, err));
    dt_status rc = dt_call_new_attention(query, key, value, mask ? &view : NULL, params, out, made, err);
    rc = dt_result_made(rc, out);
    if (rc == DT_OK && !*made) {
        dt_array_clear(out);
    }
    return rc;
}

dt_status
dt_attention_grad(const char *op, const dt_array *query, const dt_array *key, const dt_array *value,
                  const dt_array *grad, const dt_attention_params *params, dt_array *out, bool *made, dt_error *err)
{
    const dt_operand in[ARRAYS] = {
        {"query", query, -1}, {"key", key, -1}, {"value", value, -1}, {"attn_mask", NULL, -1}};
    const dt_operand given[] = {{"query", query, -1}, {"grad", grad, -1}};
    int64_t shape[DT_MAX_NDIM];
    DT_TRY(check(op, in, err));
    const int ndim = query->ndim;
    for (int d = 0; d < ndim; d++) {
        shape[d] = d == ndim - 1 ? value->shape[d] : query->shape[d];
    }
    DT_TRY(dt_check_same_device(op, given, 2, err));
    DT_TRY(dt_check_same_dtype(op, given, 2, err));
    DT_TRY(dt_check_shape(op, given, 2, 1, ndim, shape, err));
    const int64_t numel = dt_array_numel(query) + dt_array_numel(key) + dt_array_numel(value);
    *made = numel > 0;
    DT_TRY(dt_empty(dt_array_device(query), (dt_dtype)query->dtype, 1, &numel, out, err));
    dt_status rc = dt_call_new_attention_grad(query, key, value, grad, params, out, made, err);
    rc = dt_result_made(rc, out);
    if (rc == DT_OK && !*made) {
        dt_array_clear(out);
    }
    return rc;
}
