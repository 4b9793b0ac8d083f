/* index.c: the formulas of selections: what was read many times gets a sum, formed in the order of the elements.
 */
#include "index.h"

#include "shape.h"
#include "tape.h"
#include "../check/check.h"
#include "../layout/layout.h"
#include "../ops/ops.h"

dt_selection_record
dt_selection_numbers(int n, const dt_selector *selectors)
{
    dt_selection_record r = {.n = n};
    for (int k = 0; k < n; k++) {
        r.dims[k] = selectors[k].dim;
        r.dimensions[k] = selectors[k].dimension;
        r.positions[k] = selectors[k].position;
    }
    return r;
}

/* The selectors of a recorded op, whose arrays are given. */
static void
selectors_of(const dt_selection_record *r, const dt_value *arrays, dt_selector *out)
{
    for (int k = 0; k < r->n; k++) {
        out[k] = (dt_selector){arrays[k], r->dims[k], r->dimensions[k], r->positions[k]};
    }
}

dt_status
dt_check_regions(const char *op, const dt_array *whole, dt_error *err)
{
    if (dt_array_overlaps_itself(whole)) { /* no write goes through: the check of that says more */
        return DT_OK;
    }
    dt_region own = {.ndim = whole->ndim};
    memcpy(own.shape, whole->shape, whole->ndim * sizeof(int64_t));
    memcpy(own.strides, whole->strides, whole->ndim * sizeof(int64_t));
    return dt_region_overlaps(&own) ? dt_fail_grad_shared(op, whole, err) : DT_OK;
}

dt_region
dt_region_of(const dt_array *whole, const dt_array *view)
{
    int order[DT_MAX_NDIM];
    int64_t dense[DT_MAX_NDIM], stride = 1;
    for (int d = whole->ndim - 1; d >= 0; d--) {
        dense[d] = stride;
        stride *= whole->shape[d] > 1 ? whole->shape[d] : 1;
    }
    int n = 0;
    for (int d = 0; d < whole->ndim; d++) { /* by stride, the largest first */
        /* a stride of 0: expanded, of an array of nothing */
        int at = whole->shape[d] > 1 && whole->strides[d] != 0 ? n++ : -1;
        for (; at > 0 && whole->strides[order[at - 1]] < whole->strides[d]; at--) {
            order[at] = order[at - 1];
        }
        if (at >= 0) {
            order[at] = d;
        }
    }
    dt_region region = {.ndim = view->ndim};
    const int64_t itemsize = (int64_t)dt_itemsize((dt_dtype)whole->dtype);
    int64_t offset = dt_array_numel(view) == 0 ? 0 : (view->offset - whole->offset) / itemsize, rest[DT_MAX_NDIM];
    for (int v = 0; v < view->ndim; v++) {
        region.shape[v] = view->shape[v];
        rest[v] = view->shape[v] > 1 ? view->strides[v] : 0;
    }
    for (int i = 0; i < n; i++) {
        const int d = order[i];
        region.offset += offset / whole->strides[d] * dense[d];
        offset %= whole->strides[d];
        for (int v = 0; v < view->ndim; v++) {
            region.strides[v] += rest[v] / whole->strides[d] * dense[d];
            rest[v] %= whole->strides[d];
        }
    }
    return region;
}

/* ---------------------------------------------------------------- x[arrays] */

/* Zeros of this shape, to which part is added where selectors say: the gradient of a selection, and one itself. */
static dt_status
embed_selection(const dt_array *part, const dt_selection_record *r, const dt_selector *selectors, int ndim,
                const int64_t *shape, dt_array *out, dt_error *err)
{
    if (dt_is_tracked(part) && !dt_grad_off) {
        const dt_array *inputs[DT_MAX_NDIM + 1] = {part};
        for (int k = 0; k < r->n; k++) {
            inputs[k + 1] = selectors[k].array;
        }
        DT_RECORD_LIST(DT_GRAD_index_add_to, r, out, embed_selection(part, r, selectors, ndim, shape, out, err), inputs,
                       r->n + 1);
    }
    const dt_scalar zero = dt_scalar_int(0);
    dt_array dense;
    DT_TRY(dt_full("backward", dt_array_device(part), (dt_dtype)part->dtype, ndim, shape, &zero, out, err));
    dt_status rc = dt_contiguous(part, &dense, err);
    if (rc == DT_OK) {
        rc = dt_index_add_to("backward", out, r->n, selectors, &dense, err);
        dt_array_clear(&dense);
    }
    if (rc != DT_OK) {
        dt_array_clear(out);
    }
    return rc;
}

/* input, arrays */
void
index_get_gradient(dt_tape *t)
{
    const dt_selection_record *r = t->params;
    const dt_node *input = dt_tape_input(t, 0);
    dt_selector selectors[DT_MAX_NDIM];
    dt_array *slot = dt_tape_slot(t);
    if (slot != NULL) {
        selectors_of(r, &t->kept[1], selectors);
        dt_tape_give(t, 0,
                     dt_tape_made(t, embed_selection(G, r, selectors, input->ndim, input->shape, slot, t->err), slot));
    }
}

static dt_value
select_again(dt_tape *t, dt_value x, const dt_selection_record *r, const dt_value *arrays)
{
    dt_selector selectors[DT_MAX_NDIM];
    dt_array *slot = x == NULL ? NULL : dt_tape_slot(t);
    selectors_of(r, arrays, selectors);
    return slot == NULL ? NULL : dt_tape_made(t, dt_index_get("backward", x, x, r->n, selectors, slot, t->err), slot);
}

void
index_add_to_gradient(dt_tape *t)
{
    dt_tape_give(t, 0, select_again(t, G, t->params, &t->kept[1]));
}

/* ---------------------------------------------------------------- x[..] = value */

/* G with zeros where was written through arrays of indices. */
static dt_status
without_part(const dt_tape *t, const dt_setitem_record *r, const dt_selector *selectors, dt_array *out, dt_error *err)
{
    const dt_scalar zero = dt_scalar_int(0);
    dt_array whole = DT_ARRAY_EMPTY, part = DT_ARRAY_EMPTY;
    DT_TRY(dt_empty(dt_array_device(G), (dt_dtype)G->dtype, G->ndim, G->shape, &whole, err));
    dt_status rc = dt_copy_into("backward", &whole, "src", G, false, false, err);
    if (rc == DT_OK) {
        rc = dt_take_region(&whole, &r->region, &part, err);
    }
    if (rc == DT_OK) {
        rc = dt_index_set("backward", &part, &part, r->selection.n, selectors, true, NULL, &zero, err);
    }
    dt_array_clear(&part);
    if (rc != DT_OK) {
        dt_array_clear(&whole);
        return rc;
    }
    *out = whole;
    return DT_OK;
}

/* G without what was written, as an op that is recorded. */
static dt_value
masked(dt_tape *t, const dt_setitem_record *r, const dt_selector *selectors)
{
    const dt_scalar one = dt_scalar_int(1);
    dt_array *all = dt_tape_slot(t), *kept = dt_tape_slot(t);
    if (kept == NULL) {
        return NULL;
    }
    const dt_value g = G;
    dt_tape inner = {
        .grad = dt_tape_made(t, dt_full("backward", dt_array_device(g), DT_BOOL, g->ndim, g->shape, &one, all, t->err),
                             all)};
    const dt_value left =
        inner.grad == NULL ? NULL : dt_tape_made(t, without_part(&inner, r, selectors, kept, t->err), kept);
    return WHERE(left, G, N(0));
}

/* input, value, arrays */
void
setitem_gradient(dt_tape *t)
{
    const dt_setitem_record *r = t->params;
    dt_selector selectors[DT_MAX_NDIM];
    const int mark = t->n;
    selectors_of(&r->selection, &t->kept[2], selectors);
    if (dt_tape_wants(t, 1)) {
        const dt_value part = dt_tape_region(t, G, &r->region);
        dt_tape_give(t, 1,
                     r->selection.n > 0 ? select_again(t, part, &r->selection, &t->kept[2]) : dt_tape_clone(t, part));
        dt_tape_drop(t, mark);
    }
    if (r->selection.n == 0) {
        dt_tape_give_rest(t, 0, &r->region);
    } else if (dt_tape_wants(t, 0)) {
        dt_array *slot = t->create_graph ? NULL : dt_tape_slot(t);
        dt_tape_give(t, 0,
                     t->create_graph ? masked(t, r, selectors)
                     : slot == NULL  ? NULL
                                     : dt_tape_made(t, without_part(t, r, selectors, slot, t->err), slot));
    }
}

/* ---------------------------------------------------------------- along one dimension */

static dt_status
embed_along(const dt_array *part, const dt_along_record *r, const dt_array *index, int ndim, const int64_t *shape,
            dt_array *out, dt_error *err)
{
    DT_RECORD(DT_GRAD_add_along, r, out, embed_along(part, r, index, ndim, shape, out, err), part, index);
    const dt_scalar zero = dt_scalar_int(0);
    dt_array dense;
    DT_TRY(dt_full("backward", dt_array_device(part), (dt_dtype)part->dtype, ndim, shape, &zero, out, err));
    dt_status rc = dt_contiguous(part, &dense, err);
    if (rc == DT_OK) {
        rc = dt_add_along("backward", out, r->dim, index, r->wraps, &dense, err);
        dt_array_clear(&dense);
    }
    if (rc != DT_OK) {
        dt_array_clear(out);
    }
    return rc;
}

dt_status
dt_embed_along(const dt_array *part, int dim, const dt_array *index, int ndim, const int64_t *shape, dt_array *out,
               dt_error *err)
{
    const dt_along_record along = {dim, false, 1};
    return embed_along(part, &along, index, ndim, shape, out, err);
}

/* input, index */
void
gather_gradient(dt_tape *t)
{
    const dt_node *input = dt_tape_input(t, 0);
    dt_array *slot = dt_tape_slot(t);
    if (slot != NULL) {
        dt_tape_give(t, 0,
                     dt_tape_made(t, embed_along(G, t->params, B, input->ndim, input->shape, slot, t->err), slot));
    }
}

static dt_value
gather_again(dt_tape *t, dt_value x, dt_value index)
{
    const dt_along_record *r = t->params;
    dt_array *slot = dt_tape_slot(t);
    return slot == NULL
               ? NULL
               : dt_tape_made(t, dt_gather_along("backward", x, r->dim, r->dim, index, r->wraps, slot, t->err), slot);
}

void
add_along_gradient(dt_tape *t)
{
    dt_tape_give(t, 0, gather_again(t, G, B));
}

/* input, index, src */
void
scatter_add_gradient(dt_tape *t)
{
    dt_tape_give(t, 0, G);
    if (!dt_tape_wants(t, 2)) {
        return;
    }
    dt_value part = gather_again(t, G, B);
    const dt_node *src = dt_tape_input(t, 2);
    if (part == NULL || dt_array_has_shape(part, src->ndim, src->shape)) {
        dt_tape_give(t, 2, part);
        return;
    }
    dt_region region = {.ndim = src->ndim}; /* the index is smaller: the rest was not added */
    int64_t stride = 1;
    for (int d = src->ndim - 1; d >= 0; d--) {
        region.shape[d] = part->shape[d];
        region.strides[d] = stride;
        stride *= src->shape[d];
    }
    dt_tape_give_region(t, 2, &region, part);
}

/* input, index, source */
void
index_add_gradient(dt_tape *t)
{
    const dt_along_record *r = t->params;
    dt_tape_give(t, 0, G);
    dt_array *slot = dt_tape_wants(t, 2) ? dt_tape_slot(t) : NULL;
    if (slot != NULL) {
        dt_value part = dt_tape_made(t, dt_index_select(G, r->dim, B, slot, t->err), slot);
        dt_tape_give(t, 2, r->alpha == 1 ? part : MUL(part, N(r->alpha)));
    }
}
