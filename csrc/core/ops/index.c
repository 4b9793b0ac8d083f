/* index.c: selection by arrays of indices and by masks. Whatever the op, it becomes one gather or scatter over the
 * shape of the result; a mask becomes the places of its True elements first. */
#include "../check/check.h"
#include "../grad/index.h"
#include "index.h"
#include "ops.h"
#include "../result.h"

#include <string.h>

static _Thread_local uint64_t current_place;

void
dt_index_set_place(uint64_t place)
{
    current_place = place;
}

uint64_t
dt_index_place(void)
{
    return current_place;
}

/* ---------------------------------------------------------------- the operands */

/* input, the indices, and value where there is one, as the user gave them. */
typedef struct {
    int n;
    dt_operand in[DT_MAX_NDIM + 2];
} operands;

static void
list_operands(operands *o, const dt_array *input, int n, const dt_selector *selectors, const dt_array *value)
{
    o->n = 0;
    o->in[o->n++] = (dt_operand){"input", input, -1};
    for (int k = 0; k < n; k++) {
        o->in[o->n++] = (dt_operand){"index", selectors[k].array, selectors[k].position};
    }
    if (value != NULL) {
        o->in[o->n++] = (dt_operand){"value", value, -1};
    }
}

static bool
is_mask(const dt_selector *selector)
{
    return selector->array->dtype == DT_BOOL;
}

/* How many dimensions of x a selector takes the place of. */
static int
taken_by(const dt_selector *selector)
{
    return is_mask(selector) ? selector->array->ndim : 1;
}

static dt_status
check_selectors(const char *op, const operands *o, const dt_array *x, int n, const dt_selector *selectors,
                dt_error *err)
{
    DT_TRY(dt_check_same_device(op, o->in, o->n, err));
    for (int k = 0; k < n; k++) {
        const dt_selector *s = &selectors[k];
        DT_TRY(dt_check_indices(op, o->in, o->n, 1 + k, true, err));
        if (is_mask(s) && memcmp(s->array->shape, x->shape + s->dim, s->array->ndim * sizeof(int64_t)) != 0) {
            return dt_fail_mask(op, o->in, o->n, 1 + k, x, s->dim, s->dimension, err);
        }
    }
    return DT_OK;
}

/* ---------------------------------------------------------------- what is gone over */

/* x over the shape of a result (a borrowed view), and the indices over the same. */
typedef struct {
    dt_index by;
    dt_array x;
    const dt_array *array[DT_MAX_NDIM]; /* as given, or in held */
    dt_array held[DT_MAX_NDIM];
} selection;

static void
selection_close(selection *s)
{
    for (int k = 0; k < s->by.n; k++) {
        dt_array_clear(&s->held[k]);
    }
}

static int64_t
common_divisor(int64_t a, int64_t b)
{
    while (b != 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* The k-th array: as it is; of a mask the places of its True elements in x; a copy where x, which shall be written, is
 * its memory too. */
static dt_status
prepare_array(selection *s, int k, const dt_array *x, const dt_selector *selector, bool written, dt_error *err)
{
    dt_index *by = &s->by;
    const dt_array *array = selector->array;
    by->dimension[k] = (int8_t)selector->dimension;
    s->array[k] = array;
    if (!is_mask(selector)) {
        by->size[k] = x->shape[selector->dim];
        by->stride[k] = x->strides[selector->dim];
        if (written && array->storage == x->storage) {
            DT_TRY(dt_clone(array, &s->held[k], err));
            s->array[k] = &s->held[k];
        }
        return DT_OK;
    }
    const int64_t *shape = x->shape + selector->dim, *strides = x->strides + selector->dim;
    int64_t weights[DT_MAX_NDIM] = {0}, step = 0;
    for (int d = 0; d < array->ndim; d++) {
        step = shape[d] > 1 ? common_divisor(step, strides[d]) : step;
    }
    by->size[k] = 1;
    by->stride[k] = step > 0 ? step : 1;
    for (int d = 0; d < array->ndim; d++) {
        weights[d] = shape[d] > 1 ? strides[d] / by->stride[k] : 0;
        by->size[k] += shape[d] > 1 ? (shape[d] - 1) * weights[d] : 0;
    }
    s->array[k] = &s->held[k];
    return dt_true_places(by->op, array, weights, &s->held[k], err);
}

/* Lays the broadcast shape of the indices and the dimensions of x that stay out as one shape. */
static dt_status
lay_out(selection *s, const dt_array *x, int n, const dt_selector *selectors, int ndim, const int64_t *shape,
        dt_error *err)
{
    bool taken[DT_MAX_NDIM] = {false}, apart = false;
    int kept = 0, before = selectors[0].dim;
    for (int k = 0; k < n; k++) {
        apart = apart || (k > 0 && selectors[k].dim != selectors[k - 1].dim + taken_by(&selectors[k - 1]));
        for (int d = selectors[k].dim; d < selectors[k].dim + taken_by(&selectors[k]); d++) {
            taken[d] = true;
        }
    }
    for (int d = 0; d < x->ndim; d++) {
        kept += !taken[d];
    }
    if (kept + ndim > DT_MAX_NDIM) {
        return dt_fail_too_many_dims(s->by.op, kept + ndim, err);
    }
    s->x = *x;
    s->x.ndim = (uint8_t)(kept + ndim);
    s->by.first = apart ? 0 : before;
    s->by.ndim = ndim;
    for (int d = 0, from = 0; d < s->x.ndim; d++) {
        int own = d - s->by.first;
        if (own >= 0 && own < ndim) {
            s->x.shape[d] = shape[own];
            s->x.strides[d] = 0;
            continue;
        }
        while (taken[from]) {
            from++;
        }
        s->x.shape[d] = x->shape[from];
        s->x.strides[d] = x->strides[from++];
    }
    return DT_OK;
}

/* by.array[k]: s->array[k], broadcast along its dimensions, the same along all others. */
static void
spread(selection *s, int k)
{
    const dt_array *array = s->array[k];
    dt_array *wide = &s->by.array[k];
    *wide = *array;
    wide->ndim = s->x.ndim;
    memcpy(wide->shape, s->x.shape, sizeof(wide->shape));
    memset(wide->strides, 0, sizeof(wide->strides));
    int first = s->by.first + s->by.ndim - array->ndim;
    for (int d = 0; d < array->ndim; d++) {
        wide->strides[first + d] = array->shape[d] == 1 ? 0 : array->strides[d];
    }
}

/* The operands have been checked. selection_close whatever comes of it. */
static dt_status
selection_open(selection *s, const char *op, const dt_array *x, int n, const dt_selector *selectors, bool wraps,
               bool written, dt_error *err)
{
    dt_operand indices[DT_MAX_NDIM] = {{0}};
    int ndim;
    int64_t shape[DT_MAX_NDIM];
    memset(s->held, 0, sizeof(s->held));
    s->by.op = op;
    s->by.place = current_place;
    s->by.wraps = wraps;
    s->by.any_order = n == 1 && is_mask(&selectors[0]);
    s->by.n = n;
    for (int k = 0; k < n; k++) {
        DT_TRY(prepare_array(s, k, x, &selectors[k], written, err));
        indices[k] = (dt_operand){"index", s->array[k], selectors[k].position};
    }
    dt_status rc = dt_broadcast_shapes(op, indices, n, &ndim, shape, err);
    if (rc != DT_OK) {
        for (int k = 0; k < err->noperands; k++) { /* the user's mask, not the places made of it */
            err->operands[k] = dt_describe_operand(&(dt_operand){"index", selectors[k].array, selectors[k].position});
        }
        return rc;
    }
    bool any_index = true;
    for (int d = 0; d < ndim; d++) {
        any_index = any_index && shape[d] > 0;
    }
    DT_TRY(lay_out(s, x, n, selectors, ndim, shape, err));
    for (int k = 0; k < n; k++) {
        DT_TRY(dt_check_indexed_size(op, s->by.dimension[k], s->by.size[k], any_index, err));
        spread(s, k);
    }
    return dt_shape_check(op, s->x.ndim, s->x.shape, (dt_dtype)x->dtype, err);
}

/* ---------------------------------------------------------------- reading */

/* out: of the shape of view, which is x where by says. */
static dt_status
gather_from(const dt_array *x, const dt_array *view, const dt_index *by, dt_array *out, dt_error *err)
{
    const dt_array *reads[DT_MAX_NDIM + 1] = {x};
    for (int k = 0; k < by->n; k++) {
        reads[k + 1] = &by->array[k];
    }
    const dt_form form = {by->op, dt_array_device(x), (dt_dtype)x->dtype, view->ndim, view->shape, .fills = DT_BLOCK};
    dt_result r;
    DT_TRY(dt_result_open(&r, &form, reads, by->n + 1, out, err));
    return dt_result_close(&r, dt_call_gather(view, by, r.target, err), err);
}

static dt_status
select_new(const char *op, const dt_array *x, int n, const dt_selector *selectors, bool wraps, dt_array *out,
           dt_error *err)
{
    selection s;
    dt_status rc = selection_open(&s, op, x, n, selectors, wraps, false, err);
    if (rc == DT_OK) {
        rc = gather_from(x, &s.x, &s.by, out, err);
    }
    selection_close(&s);
    return rc;
}

dt_status
dt_index_get(const char *op, const dt_array *input, const dt_array *x, int n, const dt_selector *selectors,
             dt_array *out, dt_error *err)
{
    if (DT_UNLIKELY(dt_is_tracked(x)) && !dt_grad_off) {
        const dt_selection_record numbers = dt_selection_numbers(n, selectors);
        const dt_array *inputs[DT_MAX_NDIM + 1] = {x};
        for (int k = 0; k < n; k++) {
            inputs[k + 1] = selectors[k].array;
        }
        DT_RECORD_LIST(DT_GRAD_index_get, &numbers, out, dt_index_get(op, input, x, n, selectors, out, err), inputs,
                       n + 1);
    }
    operands o;
    list_operands(&o, input, n, selectors, NULL);
    DT_TRY(check_selectors(op, &o, x, n, selectors, err));
    return select_new(op, x, n, selectors, true, out, err);
}

/* x at one vector of indices, which is kept as it is seen here. */
static dt_status
select_recorded(const char *op, const dt_array *x, const dt_selector *selector, dt_array *out, dt_error *err)
{
    const dt_selection_record numbers = dt_selection_numbers(1, selector);
    const int64_t one = 1;
    dt_array row = DT_ARRAY_EMPTY;
    if (x->ndim > 0) {
        const dt_array *inputs[] = {x, selector->array};
        dt_recording r;
        DT_TRY(dt_record_open(&r, DT_GRAD_index_get, inputs, 2, out, err));
        return dt_record_close(&r, select_new(op, x, 1, selector, false, out, err), &numbers, sizeof(numbers), out,
                               err);
    }
    DT_TRY(dt_view_reshape(op, x, 1, &one, &row, err));
    dt_array picked = DT_ARRAY_EMPTY;
    dt_status rc = select_recorded(op, &row, selector, &picked, err);
    rc = rc == DT_OK ? dt_view_reshape(op, &picked, 0, NULL, out, err) : rc;
    dt_array_clear(&picked);
    dt_array_clear(&row);
    return rc;
}

dt_status
dt_index_select(const dt_array *input, int64_t dim, const dt_array *index, dt_array *out, dt_error *err)
{
    static const char op[] = "index_select";
    const dt_operand in[] = {{"input", input, -1}, {"index", index, -1}};
    static const int64_t one = 1;
    int at;
    DT_TRY(dt_check_same_device(op, in, 2, err));
    DT_TRY(dt_check_indices(op, in, 2, 1, false, err));
    DT_TRY(dt_check_rank_between(op, in, 2, 1, 0, 1, err));
    DT_TRY(dt_check_dim(op, dim, input->ndim, &at, err));
    dt_array x = *input, row = *index;
    if (row.ndim == 0) {
        row.ndim = 1;
        row.shape[0] = row.strides[0] = 1;
    }
    if (input->ndim == 0) {
        DT_TRY(dt_check_shape(op, in, 2, 1, index->ndim, &one, err));
        x.ndim = 1;
        x.shape[0] = x.strides[0] = 1;
    }
    const dt_selector selector = {&row, at, at, -1};
    if (DT_UNLIKELY(dt_is_tracked(input)) && !dt_grad_off) {
        return select_recorded(op, input, &selector, out, err);
    }
    DT_TRY(select_new(op, &x, 1, &selector, false, out, err));
    out->ndim = input->ndim;
    return DT_OK;
}

dt_status
dt_embedding(const dt_array *input, const dt_array *weight, dt_array *out, dt_error *err)
{
    static const char op[] = "embedding";
    const dt_operand in[] = {{"input", input, -1}, {"weight", weight, -1}};
    DT_TRY(dt_check_same_device(op, in, 2, err));
    DT_TRY(dt_check_indices(op, in, 2, 0, false, err));
    DT_TRY(dt_check_rank_between(op, in, 2, 1, 2, 2, err));
    const dt_selector selector = {input, 0, 0, -1};
    return DT_UNLIKELY(dt_is_tracked(weight)) && !dt_grad_off ? select_recorded(op, weight, &selector, out, err)
                                                              : select_new(op, weight, 1, &selector, false, out, err);
}

dt_status
dt_take(const dt_array *input, const dt_array *index, dt_array *out, dt_error *err)
{
    static const char op[] = "take";
    const dt_operand in[] = {{"input", input, -1}, {"index", index, -1}};
    const dt_selector selector = {index, 0, 0, -1};
    static const int64_t all = -1;
    dt_array flat;
    DT_TRY(dt_check_same_device(op, in, 2, err));
    DT_TRY(dt_check_indices(op, in, 2, 1, false, err));
    DT_TRY(dt_reshape(op, input, 1, &all, &flat, err));
    dt_status rc = DT_UNLIKELY(dt_is_tracked(&flat)) ? dt_index_get(op, input, &flat, 1, &selector, out, err)
                                                     : select_new(op, &flat, 1, &selector, true, out, err);
    dt_array_clear(&flat);
    return rc;
}

/* ---------------------------------------------------------------- an index for each element */

/* Over index, whose dimension dim, called so in messages, chooses along that of x; x is nowhere smaller elsewhere. */
dt_status
dt_gather_along(const char *op, const dt_array *x, int dim, int called, const dt_array *index, bool wraps,
                dt_array *out, dt_error *err)
{
    const dt_along_record along = {dim, wraps, 1};
    DT_RECORD(DT_GRAD_gather, &along, out, dt_gather_along(op, x, dim, called, index, wraps, out, err), x, index);
    dt_index by = {.op = op, .place = current_place, .n = 1, .wraps = wraps, .ndim = index->ndim};
    dt_array view = *x;
    by.array[0] = *index;
    by.size[0] = x->ndim == 0 ? 1 : x->shape[dim];
    by.stride[0] = x->ndim == 0 ? 1 : x->strides[dim];
    by.dimension[0] = (int8_t)called;
    DT_TRY(dt_check_indexed_size(op, called, by.size[0], dt_array_numel(index) > 0, err));
    view.ndim = index->ndim;
    memcpy(view.shape, index->shape, sizeof(view.shape));
    view.strides[dim] = 0;
    return gather_from(x, &view, &by, out, err);
}

static dt_status
gather(const char *op, const dt_array *input, int64_t dim, bool classes, const dt_array *index, dt_array *out,
       dt_error *err)
{
    const dt_operand in[] = {{"input", input, -1}, {"index", index, -1}};
    int at;
    int64_t most[DT_MAX_NDIM];
    DT_TRY(dt_check_same_device(op, in, 2, err));
    DT_TRY(dt_check_indices(op, in, 2, 1, false, err));
    DT_TRY(dt_check_dim(op, dim, input->ndim, &at, err));
    bool one = !classes && input->ndim <= 1; /* 0 and 1 dimensions fit each other */
    DT_TRY(dt_check_rank_between(op, in, 2, 1, one ? 0 : input->ndim, one ? 1 : input->ndim, err));
    for (int d = 0; d < index->ndim; d++) {
        most[d] = d == at || index->shape[d] <= input->shape[d] ? -1 : input->shape[d];
    }
    DT_TRY(dt_check_shape(op, in, 2, 1, index->ndim, most, err));
    return dt_gather_along(op, input, at, classes ? DT_CLASSES : at, index, false, out, err);
}

dt_status
dt_gather(const dt_array *input, int64_t dim, const dt_array *index, dt_array *out, dt_error *err)
{
    return gather("gather", input, dim, false, index, out, err);
}

dt_status
dt_pick_class(const char *op, const dt_array *logs, int64_t dim, const dt_array *target, dt_array *out, dt_error *err)
{
    return gather(op, logs, dim, true, target, out, err);
}

dt_status
dt_check_probabilities(const char *op, const dt_array *what, dt_array *out, dt_error *err)
{
    const dt_operand in[] = {{"what", what, -1}};
    DT_TRY(dt_check_indices(op, in, 1, 0, false, err));
    DT_TRY(dt_check_rank_between(op, in, 1, 0, 1, 1, err));
    return dt_gather_along(op, what, 0, DT_PROBABILITIES, what, false, out, err);
}

dt_status
dt_take_along_dim(const dt_array *input, const dt_array *indices, const int64_t *dim, dt_array *out, dt_error *err)
{
    static const char op[] = "take_along_dim";
    const dt_operand in[] = {{"input", input, -1}, {"indices", indices, -1}};
    static const int64_t all = -1;
    dt_array x = DT_ARRAY_EMPTY, index = DT_ARRAY_EMPTY;
    int at = 0;
    int64_t shape[DT_MAX_NDIM] = {0};
    DT_TRY(dt_check_same_device(op, in, 2, err));
    DT_TRY(dt_check_indices(op, in, 2, 1, false, err));
    dt_status rc;
    if (dim == NULL) {
        rc = dt_reshape(op, input, 1, &all, &x, err);
        rc = rc == DT_OK ? dt_reshape(op, indices, 1, &all, &index, err) : rc;
    } else {
        DT_TRY(dt_check_dim(op, *dim, input->ndim, &at, err));
        DT_TRY(dt_check_rank_between(op, in, 2, 1, input->ndim, input->ndim, err));
        for (int d = 0; d < input->ndim; d++) { /* all but dim broadcast */
            int64_t a = input->shape[d], b = indices->shape[d];
            if (d != at && a != b && a != 1 && b != 1) {
                return dt_fail_broadcast(op, in, 2, 0, 1, d, err);
            }
            shape[d] = d == at ? a : a == 1 ? b : a;
        }
        rc = dt_expand(op, input, input->ndim, shape, &x, err);
        shape[at] = input->ndim > 0 ? indices->shape[at] : 1;
        rc = rc == DT_OK ? dt_expand(op, indices, input->ndim, shape, &index, err) : rc;
    }
    if (rc == DT_OK) {
        rc = dt_gather_along(op, &x, at, at, &index, true, out, err);
    }
    dt_array_clear(&x);
    dt_array_clear(&index);
    return rc;
}

/* ---------------------------------------------------------------- writing */

/* One number at all True places: no need to know how many. */
static dt_status
fill_where(const dt_selector *selector, const dt_array *value, dt_array *x, dt_error *err)
{
    dt_array mask = *selector->array, wide = *value;
    mask.ndim = wide.ndim = x->ndim;
    memset(mask.strides, 0, sizeof(mask.strides));
    memset(wide.strides, 0, sizeof(wide.strides));
    for (int d = 0; d < selector->array->ndim; d++) {
        mask.strides[selector->dim + d] = selector->array->strides[d];
    }
    memcpy(mask.shape, x->shape, sizeof(mask.shape));
    memcpy(wide.shape, x->shape, sizeof(wide.shape));
    return dt_call_ternary(DT_TERNARY_where, &mask, &wide, x, x, err);
}

/* value, seen over the shape; false: it does not broadcast to it. */
static bool
spread_value(const dt_array *value, int ndim, const int64_t *shape, dt_array *out)
{
    int lead = ndim - value->ndim;
    *out = *value;
    out->ndim = (uint8_t)ndim;
    for (int d = 0; d < ndim; d++) {
        int64_t size = d < lead ? 1 : value->shape[d - lead];
        if (size != 1 && size != shape[d]) {
            return false;
        }
        out->shape[d] = shape[d];
        out->strides[d] = size == 1 ? 0 : value->strides[d - lead];
    }
    return lead >= 0;
}

/* Whether an array does not change along n dimensions. */
static bool
is_same_along(const dt_array *a, int first, int n)
{
    bool same = true;
    for (int d = first; d < first + n; d++) {
        same = same && (a->strides[d] == 0 || a->shape[d] == 1);
    }
    return same;
}

/* value has the dtype of x and memory of its own, or is an immediate, unless it is added. */
static dt_status
write_selected(const char *op, const operands *o, const dt_array *x, int n, const dt_selector *selectors, bool wraps,
               const dt_array *value, bool adds, dt_error *err)
{
    selection s;
    dt_array wide;
    dt_status rc = selection_open(&s, op, x, n, selectors, wraps, true, err);
    if (rc == DT_OK && !spread_value(value, s.x.ndim, s.x.shape, &wide)) {
        rc = dt_fail_value(op, o->in, o->n, s.x.ndim, s.x.shape, err);
    }
    if (rc == DT_OK && adds) {
        rc = dt_call_scatter_add(&wide, &s.by, &s.x, err);
    } else if (rc == DT_OK) {
        s.by.any_order = s.by.any_order || is_same_along(&wide, s.by.first, s.by.ndim);
        rc = dt_call_scatter(&wide, &s.by, &s.x, err);
    }
    selection_close(&s);
    return rc;
}

dt_status
dt_index_set(const char *op, const dt_array *input, const dt_array *x, int n, const dt_selector *selectors, bool wraps,
             const dt_array *value, const dt_scalar *scalar, dt_error *err)
{
    operands o;
    list_operands(&o, input, n, selectors, value);
    DT_TRY(check_selectors(op, &o, x, n, selectors, err));
    dt_array ready = DT_ARRAY_EMPTY;
    if (value == NULL) {
        DT_TRY(dt_check_writable(op, "input", x, err));
        DT_TRY(dt_check_value(op, scalar, (dt_dtype)x->dtype, err));
        dt_immediate(scalar, (dt_dtype)x->dtype, &ready);
    } else {
        const dt_operand both[] = {{"input", x, -1}, {"value", value, -1}};
        DT_TRY(dt_check_in_place(op, both, 2, (dt_dtype)value->dtype, x->ndim, x->shape, err));
        DT_TRY(dt_to(value, dt_array_device(x), (dt_dtype)x->dtype, false, value->storage == x->storage, &ready, err));
    }
    dt_array target = *x;
    bool by_mask = n == 1 && is_mask(&selectors[0]) && selectors[0].array->storage != x->storage;
    dt_status rc = by_mask && (value == NULL || value->ndim == 0)
                       ? fill_where(&selectors[0], &ready, &target, err)
                       : write_selected(op, &o, x, n, selectors, wraps, &ready, false, err);
    dt_array_clear(&ready);
    return rc;
}

dt_status
dt_index_add_to(const char *op, const dt_array *x, int n, const dt_selector *selectors, const dt_array *value,
                dt_error *err)
{
    operands o;
    dt_adding adding;
    list_operands(&o, x, n, selectors, value);
    DT_TRY(check_selectors(op, &o, x, n, selectors, err));
    DT_TRY(dt_adding_open(&adding, x, err));
    dt_status rc = write_selected(op, &o, &adding.sums, n, selectors, true, value, true, err);
    return dt_adding_close(&adding, op, rc, err);
}
