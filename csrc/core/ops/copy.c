/* copy.c: values that move, change dtype or are written: to, clone, copy_, fill_, item, cat. */
#include "../check/check.h"
#include "../grad/params.h"
#include "ops.h"
#include "../result.h"

#include <string.h>

/* The side that is not the host's does the work: it knows both. */
static dt_status
copy_slot(const dt_array *src, dt_array *dst, bool non_blocking, dt_error *err)
{
    if (dt_array_numel(dst) == 0) {
        return DT_OK;
    }
    const dt_storage *worker = dt_array_device(src).type == DT_CPU ? dst->storage : src->storage;
    if (worker->device.type == DT_CPU) { /* else the worker knows when it need not wait */
        DT_TRY(dt_settle(src, DT_READ, err));
        DT_TRY(dt_settle(dst, DT_WRITE, err));
    }
    dt_status rc = worker->backend->copy(src, dst, non_blocking, err);
    dt_written(dst); /* the host's memory, written by another backend */
    return rc;
}

dt_status
dt_cast(const dt_array *x, dt_dtype dtype, dt_array *out, dt_error *err)
{
    DT_RECORD_NEW(x->dtype == dtype ? DT_GRAD_clone : DT_GRAD_to, DT_NO_PARAMS, out, dt_cast(x, dtype, out, err), x);
    DT_TRY(dt_empty_beside(x, dtype, out, err));
    return dt_result_made(dt_call_new_copy(x, out, false, err), out);
}

dt_status
dt_to(const dt_array *x, dt_device device, dt_dtype dtype, bool non_blocking, bool force_copy, dt_array *out,
      dt_error *err)
{
    if (dt_device_equal(dt_array_device(x), device)) {
        if (force_copy || x->dtype != dtype) {
            return dt_cast(x, dtype, out, err);
        }
        dt_array_share(x, out);
        return DT_OK;
    }
    DT_RECORD_NEW(DT_GRAD_to, DT_NO_PARAMS, out, dt_to(x, device, dtype, non_blocking, force_copy, out, err), x);
    bool arrives_later = non_blocking && device.type == DT_CPU;
    DT_TRY(arrives_later ? dt_empty_pinned(x, dtype, out, err) : dt_empty_like(x, device, dtype, out, err));
    return dt_result_made(copy_slot(x, out, non_blocking, err), out);
}

dt_status
dt_clone(const dt_array *x, dt_array *out, dt_error *err)
{
    return dt_cast(x, (dt_dtype)x->dtype, out, err);
}

dt_status
dt_contiguous(const dt_array *x, dt_array *out, dt_error *err)
{
    if (dt_array_is_contiguous(x)) {
        dt_array_share(x, out);
        return DT_OK;
    }
    DT_RECORD_NEW(DT_GRAD_clone, DT_NO_PARAMS, out, dt_contiguous(x, out, err), x);
    DT_TRY(dt_empty(dt_array_device(x), (dt_dtype)x->dtype, x->ndim, x->shape, out, err));
    return dt_result_made(dt_call_new_copy(x, out, false, err), out);
}

dt_status
dt_copy_into(const char *op, dt_array *dst, const char *name, const dt_array *src, bool across, bool non_blocking,
             dt_error *err)
{
    const bool is_leaf = dst->node != NULL && (dst->node->flags & DT_NODE_WANTS);
    const bool joins = dt_is_detached(dst) && dt_wants_grad(src);
    if (dt_array_is_same_view(dst, src) && !is_leaf && !joins) {
        return dt_check_writable(op, "input", dst, err); /* x[i] += y ends with x[i] = x[i] */
    }
    DT_RECORD_AS(op, DT_GRAD_copy_, DT_NO_PARAMS, dst, dt_copy_into(op, dst, name, src, across, non_blocking, err), dst,
                 src);
    const dt_operand in[] = {{"input", dst, -1}, {name, src, -1}};
    if (!across) {
        DT_TRY(dt_check_same_device(op, in, 2, err));
    }
    int ndim;
    int64_t shape[DT_MAX_NDIM];
    DT_TRY(dt_broadcast_shapes(op, in, 2, &ndim, shape, err));
    DT_TRY(dt_check_in_place(op, in, 2, (dt_dtype)dst->dtype, ndim, shape, err));
    dt_array value, separate = DT_ARRAY_EMPTY;
    DT_TRY(dt_expand(op, src, ndim, shape, &value, err));
    dt_status rc = DT_OK;
    if (dt_array_overlaps(dst, &value) && !dt_array_is_same_view(dst, &value)) {
        rc = dt_clone(&value, &separate, err);
    }
    if (rc == DT_OK) {
        rc = copy_slot(separate.storage ? &separate : &value, dst, non_blocking, err);
    }
    dt_array_clear(&value);
    dt_array_clear(&separate);
    return rc;
}

dt_status
dt_fill(const char *op, dt_array *x, const dt_scalar *value, dt_error *err)
{
    DT_RECORD_AS(op, DT_GRAD_fill_, DT_NO_PARAMS, x, dt_fill(op, x, value, err), x);
    DT_TRY(dt_check_writable(op, "input", x, err));
    DT_TRY(dt_check_value(op, value, (dt_dtype)x->dtype, err));
    return dt_call_fill(x, value, err);
}

dt_status
dt_check_written(const char *op, const dt_array *out, const dt_array *result, dt_error *err)
{
    const dt_operand in[] = {{"out", out, -1}, {"result", result, -1}};
    if (!dt_grad_off && (dt_wants_grad(result) || dt_wants_grad(out))) {
        return dt_fail_grad_out(op, out, err);
    }
    DT_TRY(dt_check_same_device(op, in, 2, err));
    return dt_check_in_place(op, in, 2, (dt_dtype)result->dtype, result->ndim, result->shape, err);
}

dt_status
dt_write_out(const char *op, dt_array *out, const dt_array *result, dt_error *err)
{
    DT_TRY(dt_check_written(op, out, result, err));
    return dt_copy_into(op, out, "result", result, false, false, err);
}

dt_status
dt_fill_new(const char *op, dt_array *out, const dt_array *value, dt_error *err)
{
    const dt_operand in[] = {{"out", out, -1}, {"fill_value", value, -1}};
    dt_status rc = dt_check_same_device(op, in, 2, err);
    return dt_result_made(rc == DT_OK ? dt_copy_into(op, out, "fill_value", value, false, false, err) : rc, out);
}

dt_status
dt_pin(const dt_array *x, dt_array *out, dt_error *err)
{
    if (dt_array_device(x).type != DT_CPU) {
        return dt_fail_pin(x, err);
    }
    DT_RECORD_NEW(DT_GRAD_clone, DT_NO_PARAMS, out, dt_pin(x, out, err), x);
    if (x->storage->flags & DT_STORAGE_PINNED) {
        dt_array_copy_handle(x, out);
        return DT_OK;
    }
    DT_TRY(dt_empty_pinned(x, (dt_dtype)x->dtype, out, err));
    return dt_result_made(dt_call_new_copy(x, out, false, err), out);
}

dt_status
dt_item(const char *op, const dt_array *x, dt_scalar *out, dt_error *err)
{
    if (dt_array_numel(x) != 1) {
        return dt_fail_item(op, x, err);
    }
    dt_array element;
    DT_TRY(dt_to(x, DT_HOST, (dt_dtype)x->dtype, false, false, &element, err));
    dt_status rc = dt_settle(&element, DT_READ, err);
    if (rc == DT_OK) {
        *out = dt_scalar_load((dt_dtype)x->dtype, dt_array_data(&element));
    }
    dt_array_clear(&element);
    return rc;
}

/* ---------------------------------------------------------------- cat and stack */

/* PyTorch lets a 1-d array of no elements stand beside any shape. */
static bool
is_nothing(const dt_array *a)
{
    return a->ndim == 1 && a->shape[0] == 0;
}

/* The first entries as operands, among them entry i and the model that it was compared with. Returns how many. */
static int
list_entries(const dt_array *const *arrays, int n, int model, int i, dt_operand in[DT_MAX_OPERANDS])
{
    int shown = 0;
    for (int k = 0; k < n && shown < DT_MAX_OPERANDS; k++) {
        const int kept = (model > k) + (i > k && i != model); /* places for those to come */
        if (k == model || k == i || shown + kept < DT_MAX_OPERANDS) {
            in[shown++] = (dt_operand){"tensors", arrays[k], k};
        }
    }
    return shown;
}

/* Every entry is checked against the first. */
static dt_status
check_list(const char *op, const dt_array *const *arrays, int n, dt_dtype *dtype, dt_error *err)
{
    if (n == 0) {
        return dt_fail_empty_list(op, err);
    }
    *dtype = (dt_dtype)arrays[0]->dtype;
    for (int i = 1; i < n; i++) {
        *dtype = dt_promote(*dtype, (dt_dtype)arrays[i]->dtype);
        if (dt_device_equal(dt_array_device(arrays[0]), dt_array_device(arrays[i]))) {
            continue;
        }
        dt_operand in[DT_MAX_OPERANDS];
        const int shown = list_entries(arrays, n, 0, i, in);
        DT_TRY(dt_check_same_device(op, in, shown, err));
    }
    return DT_OK;
}

/* out[.., at : at + length, ..] = part */
static dt_status
copy_part(const char *op, const dt_array *part, int dim, int64_t at, dt_array *out, dt_error *err)
{
    dt_array place;
    DT_TRY(dt_slice(op, out, dim, at, 1, part->shape[dim], &place, err));
    dt_status rc = copy_slot(part, &place, false, err);
    dt_array_clear(&place);
    return rc;
}

/* *made: as the device puts many beside each other. */
static dt_status
join_at_once(const dt_array *const *arrays, int n, int dim, dt_array *out, bool *made, dt_error *err)
{
    *made = n > 1 && dt_array_numel(out) > 0;
    for (int i = 0; i < n && *made; i++) {
        DT_TRY(dt_settle(arrays[i], DT_READ, err));
    }
    return *made ? out->storage->backend->join(arrays, n, dim, out, made, err) : DT_OK;
}

static bool
all_channels_last(const dt_array *const *arrays, int n)
{
    for (int i = 0; i < n; i++) {
        if (!dt_is_channels_last(arrays[i])) {
            return false;
        }
    }
    return true;
}

static bool
any_tracked(const dt_array *const *arrays, int n)
{
    bool tracked = false;
    for (int i = 0; i < n; i++) {
        tracked |= dt_is_tracked(arrays[i]);
    }
    return tracked;
}

/* dt_cat, on record. */
static dt_status
cat_recorded(const dt_array *const *arrays, int n, int64_t dim, dt_array *out, dt_error *err)
{
    dt_recording r;
    const size_t nbytes = (size_t)(n + 1) * sizeof(int64_t);
    int64_t *sizes = dt_malloc(nbytes);
    if (sizes == NULL) {
        return dt_fail_nomem(err, nbytes);
    }
    dt_status rc = dt_record_open(&r, DT_GRAD_cat, arrays, n, out, err);
    if (rc == DT_OK) {
        rc = dt_cat(arrays, n, dim, out, err);
        sizes[0] = rc == DT_OK && dim < 0 ? dim + out->ndim : dim;
        for (int i = 0; i < n && rc == DT_OK; i++) {
            sizes[i + 1] = is_nothing(arrays[i]) ? 0 : arrays[i]->shape[sizes[0]];
        }
        rc = dt_record_close(&r, rc, sizes, nbytes, out, err);
    }
    dt_free(sizes);
    return rc;
}

dt_status
dt_cat(const dt_array *const *arrays, int n, int64_t dim, dt_array *out, dt_error *err)
{
    if (DT_UNLIKELY(any_tracked(arrays, n)) && !dt_grad_off) {
        return cat_recorded(arrays, n, dim, out, err);
    }
    dt_dtype dtype;
    DT_TRY(check_list("cat", arrays, n, &dtype, err));
    const dt_array *model = arrays[0];
    int model_index = 0, at;
    for (int i = 1; i < n && is_nothing(model); i++) {
        model = arrays[i];
        model_index = i;
    }
    if (model->ndim == 0) {
        dt_operand in[DT_MAX_OPERANDS];
        const int shown = list_entries(arrays, n, model_index, model_index, in);
        return dt_fail_cat_scalar(in, shown, model_index < shown ? model_index : shown - 1, err);
    }
    DT_TRY(dt_check_dim("cat", dim, model->ndim, &at, err));
    int64_t shape[DT_MAX_NDIM];
    memcpy(shape, model->shape, sizeof(shape));
    shape[at] = 0;
    for (int i = 0; i < n; i++) {
        const dt_array *a = arrays[i];
        if (is_nothing(a) && a->ndim != model->ndim) {
            continue;
        }
        bool fits = a->ndim == model->ndim;
        for (int d = 0; d < model->ndim && fits; d++) {
            fits = d == at || a->shape[d] == model->shape[d];
        }
        if (!fits) {
            dt_operand in[DT_MAX_OPERANDS];
            return dt_fail_cat(in, list_entries(arrays, n, model_index, i, in), model, a, at, err);
        }
        if (__builtin_add_overflow(shape[at], a->shape[at], &shape[at])) {
            return dt_fail_too_large("cat", model->ndim, model->shape, err);
        }
    }
    DT_TRY(dt_empty(dt_array_device(model), dtype, model->ndim, shape, out, err));
    if (all_channels_last(arrays, n)) {
        dt_set_channels_last(out);
    }
    bool made;
    dt_status rc = join_at_once(arrays, n, at, out, &made, err);
    int64_t position = 0;
    for (int i = 0; i < n && rc == DT_OK && !made; i++) {
        if (arrays[i]->ndim == model->ndim) {
            rc = copy_part("cat", arrays[i], at, position, out, err);
            position += arrays[i]->shape[at];
        }
    }
    return dt_result_made(rc, out);
}

dt_status
dt_stack(const dt_array *const *arrays, int n, int64_t dim, dt_array *out, dt_error *err)
{
    if (DT_UNLIKELY(any_tracked(arrays, n)) && !dt_grad_off) {
        const dt_pair_record along = {dim < 0 && n > 0 ? dim + arrays[0]->ndim + 1 : dim, 0};
        DT_RECORD_LIST(DT_GRAD_stack, &along, out, dt_stack(arrays, n, dim, out, err), arrays, n);
    }
    dt_dtype dtype;
    DT_TRY(check_list("stack", arrays, n, &dtype, err));
    const dt_array *model = arrays[0];
    int at;
    if (model->ndim == DT_MAX_NDIM) {
        return dt_fail_too_many_dims("stack", DT_MAX_NDIM + 1, err);
    }
    DT_TRY(dt_check_dim("stack", dim, model->ndim + 1, &at, err));
    for (int i = 1; i < n; i++) {
        if (arrays[i]->ndim != model->ndim ||
            memcmp(arrays[i]->shape, model->shape, model->ndim * sizeof(int64_t)) != 0) {
            dt_operand in[DT_MAX_OPERANDS];
            return dt_fail_stack(in, list_entries(arrays, n, 0, i, in), err);
        }
    }
    int64_t shape[DT_MAX_NDIM];
    for (int d = 0; d <= model->ndim; d++) {
        shape[d] = d < at ? model->shape[d] : d == at ? n : model->shape[d - 1];
    }
    DT_TRY(dt_empty(dt_array_device(model), dtype, model->ndim + 1, shape, out, err));
    bool made;
    dt_status rc = join_at_once(arrays, n, at, out, &made, err);
    for (int i = 0; i < n && rc == DT_OK && !made; i++) {
        dt_array part;
        rc = dt_unsqueeze("stack", arrays[i], at, &part, err);
        if (rc == DT_OK) {
            rc = copy_part("stack", &part, at, i, out, err);
            dt_array_clear(&part);
        }
    }
    return dt_result_made(rc, out);
}
