/* shape.c: the formulas of views and copies. */
#include "shape.h"

#include "tape.h"
#include "../ops/ops.h"

void
pass_gradient(dt_tape *t)
{
    dt_tape_give(t, 0, G);
}

void
reshape_gradient(dt_tape *t)
{
    const dt_node *input = dt_tape_input(t, 0);
    dt_tape_give(t, 0, dt_tape_reshape(t, G, input->ndim, input->shape));
}

void
transpose_gradient(dt_tape *t)
{
    const dt_pair_record *dims = t->params;
    dt_tape_give(t, 0, dt_tape_transpose(t, G, (int)dims->a, (int)dims->b));
}

void
permute_gradient(dt_tape *t)
{
    const dt_dims_record *order = t->params;
    int64_t back[DT_MAX_NDIM];
    for (int d = 0; d < order->n; d++) {
        back[order->dims[d]] = d;
    }
    dt_tape_give(t, 0, dt_tape_permute(t, G, order->n, back));
}

void
subset_gradient(dt_tape *t)
{
    dt_tape_give_region(t, 0, t->params, G);
}

/* The dimension of the region to go along, so that what is left overlaps less. */
static int
shortest_dim(const dt_region *region)
{
    int best = -1;
    for (int d = 0; d < region->ndim; d++) {
        if (region->shape[d] > 1 && (best < 0 || region->shape[d] < region->shape[best])) {
            best = d;
        }
    }
    return best;
}

static dt_region
without_dim(const dt_region *region, int dim, int64_t at)
{
    dt_region left = {.offset = region->offset + at * region->strides[dim]};
    for (int d = 0; d < region->ndim; d++) {
        if (d != dim) {
            left.shape[left.ndim] = region->shape[d];
            left.strides[left.ndim++] = region->strides[d];
        }
    }
    return left;
}

/* whole[region] += part, where elements of the region may lie in one place: by parts of it that do not overlap, in
 * their order. graph: recorded, so that whole is new each time. */
static dt_status
add_region(bool graph, dt_array *whole, const dt_region *region, const dt_array *part, dt_error *err)
{
    if (dt_region_overlaps(region)) {
        const int dim = shortest_dim(region);
        for (int64_t i = 0; i < region->shape[dim]; i++) {
            const dt_region left = without_dim(region, dim, i);
            dt_array one = DT_ARRAY_EMPTY;
            dt_status rc = dt_select("backward", part, dim, i, &one, err);
            rc = rc == DT_OK ? add_region(graph, whole, &left, &one, err) : rc;
            dt_array_clear(&one);
            DT_TRY(rc);
        }
        return DT_OK;
    }
    if (!graph) {
        return dt_array_numel(part) == 0 ? DT_OK : dt_write_region(whole, region, part, true, err);
    }
    dt_array spread = DT_ARRAY_EMPTY, sum = DT_ARRAY_EMPTY;
    dt_status rc = dt_embed(part, region, 1, whole->shape, &spread, err);
    rc = rc == DT_OK ? dt_binary(DT_BINARY_add, "backward", whole, &spread, NULL, NULL, false, &sum, err) : rc;
    dt_array_clear(&spread);
    if (rc == DT_OK) {
        dt_array_clear(whole);
        *whole = sum;
    }
    return rc;
}

/* n zeros, and part added in the region. */
static dt_value
spread_over(dt_tape *t, dt_value part, const dt_region *region, int64_t n)
{
    int64_t repeated[DT_MAX_NDIM];
    int nrepeated = 0;
    dt_region once = *region;
    for (int d = region->ndim - 1; d >= 0; d--) {
        if (region->strides[d] == 0) {
            repeated[nrepeated++] = d;
            once = without_dim(&once, d, 0);
        }
    }
    part = nrepeated > 0 ? dt_tape_sum(t, part, nrepeated, repeated, false) : part;
    const dt_value zeros = dt_tape_zeros(t, 1, &n);
    dt_array *slot = zeros == NULL || part == NULL ? NULL : dt_tape_slot(t);
    if (slot == NULL) {
        return NULL;
    }
    dt_array_share(zeros, slot);
    return dt_tape_made(t, add_region(t->create_graph, slot, &once, part, t->err), slot);
}

/* The region of a flat array, where elements of it may lie in one place. */
static dt_value
view_of(dt_tape *t, dt_value flat, const dt_region *region)
{
    if (flat == NULL || !dt_region_overlaps(region)) {
        return dt_tape_region(t, flat, region);
    }
    dt_array *slot = dt_tape_slot(t);
    const int64_t begin = flat->offset / (int64_t)dt_itemsize((dt_dtype)flat->dtype);
    return slot == NULL ? NULL
                        : dt_tape_made(t,
                                       dt_view_strided(flat, begin + region->offset, region->ndim, region->shape,
                                                       region->strides, slot, t->err),
                                       slot);
}

/* What lies in one place is added up; where elements of the operand lie in one place, each gets its share. */
void
strided_gradient(dt_tape *t)
{
    const dt_strided_record *r = t->params;
    dt_value flat = spread_over(t, G, &r->part, r->n);
    dt_array *slot = flat != NULL && dt_region_overlaps(&r->own) ? dt_tape_slot(t) : NULL;
    if (slot != NULL) {
        const dt_scalar one = dt_scalar_int(1);
        const dt_status rc = dt_full("backward", dt_array_device(flat), (dt_dtype)flat->dtype, r->own.ndim,
                                     r->own.shape, &one, slot, t->err);
        const dt_value ones = dt_tape_made(t, rc, slot);
        const dt_value counts = spread_over(t, ones, &r->own, r->n);
        flat = DIV(flat, dt_tape_binary(t, DT_BINARY_maximum, counts, N(1)));
    }
    dt_tape_give(t, 0, view_of(t, flat, &r->own));
}

void
embed_gradient(dt_tape *t)
{
    dt_tape_give(t, 0, dt_tape_region(t, G, t->params));
}

void
without_gradient(dt_tape *t)
{
    dt_tape_give_rest(t, 0, t->params);
}

/* The content of memory after a write: that before it, and what the part shows now. */
void
write_gradient(dt_tape *t)
{
    const dt_region *region = t->params;
    const int mark = t->n;
    if (dt_tape_wants(t, 1)) {
        const dt_value part = dt_tape_region(t, G, region);
        dt_tape_give(t, 1, dt_tape_wants(t, 0) ? dt_tape_clone(t, part) : part);
        dt_tape_drop(t, mark);
    }
    dt_tape_give_rest(t, 0, region);
}

void
to_gradient(dt_tape *t)
{
    const dt_node *input = dt_tape_input(t, 0);
    dt_tape_give(t, 0, dt_tape_to(t, G, input->device, (dt_dtype)input->dtype));
}

/* dst[...] = src: nothing of what was there is left. */
void
copy_gradient(dt_tape *t)
{
    if (dt_tape_wants(t, 0)) {
        dt_tape_give(t, 0, dt_tape_zeros(t, t->node->ndim, t->node->shape));
    }
    if (dt_tape_wants(t, 1)) {
        const dt_node *input = dt_tape_input(t, 1);
        dt_tape_give(t, 1, dt_tape_to(t, G, input->device, (dt_dtype)G->dtype));
    }
}

/* params: the dimension, then the size of each operand along it */
void
cat_gradient(dt_tape *t)
{
    const int64_t *sizes = t->params;
    const int dim = (int)*sizes++, mark = t->n;
    int64_t at = 0;
    for (int i = 0; i < t->node->ninputs; at += sizes[i++]) {
        if (dt_tape_wants(t, i)) {
            const dt_node *input = dt_tape_input(t, i);
            dt_tape_give(t, i,
                         input->ndim == G->ndim
                             ? dt_tape_narrow(t, G, dim, at, sizes[i])
                             : dt_tape_zeros(t, input->ndim, input->shape)); /* nothing: shape (0,) */
            dt_tape_drop(t, mark);
        }
    }
}

void
stack_gradient(dt_tape *t)
{
    const int dim = (int)((const dt_pair_record *)t->params)->a, mark = t->n;
    for (int i = 0; i < t->node->ninputs; i++) {
        if (dt_tape_wants(t, i)) {
            dt_tape_give(t, i, dt_tape_select(t, G, dim, i));
            dt_tape_drop(t, mark);
        }
    }
}

void
tri_gradient(dt_tape *t)
{
    const dt_pair_record *r = t->params;
    dt_tape_give(t, 0, dt_tape_tri(t, G, r->a, r->b != 0));
}
