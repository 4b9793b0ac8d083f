/* tape.c: the ops of formulas. */
#include "tape.h"

#include <string.h>

#include "../check/check.h"
#include "../layout/layout.h"
#include "../ops/ops.h"

/* ---------------------------------------------------------------- values */

dt_array *
dt_tape_slot(dt_tape *t)
{
    if (t->rc != DT_OK) {
        return NULL;
    }
    if (t->n == DT_TAPE_VALUES) {
        t->rc = dt_fail(t->err, DT_ENOTIMPL, "too-many-values", "backward", "a formula of more than %d values",
                        DT_TAPE_VALUES);
        return NULL;
    }
    dt_array *slot = &t->values[t->n];
    t->fresh[t->n++] = false;
    *slot = DT_ARRAY_EMPTY;
    return slot;
}

dt_value
dt_tape_made(dt_tape *t, dt_status rc, dt_array *slot)
{
    if (rc != DT_OK) {
        t->rc = rc;
        return NULL;
    }
    t->fresh[slot - t->values] = true;
    return slot;
}

void
dt_tape_drop(dt_tape *t, int mark)
{
    while (t->n > mark) {
        dt_array_clear(&t->values[--t->n]);
    }
}

static bool
is_slot(const dt_tape *t, dt_value x)
{
    return x >= t->values && x < t->values + t->n;
}

dt_value
dt_tape_hold(dt_tape *t, dt_value x)
{
    if (x != NULL && is_slot(t, x)) {
        t->fresh[x - t->values] = false;
    }
    return x;
}

static dt_value
immediate(dt_tape *t, const dt_scalar *scalar, dt_dtype dtype)
{
    dt_array *slot = dt_tape_slot(t);
    if (slot != NULL) {
        dt_immediate(scalar, dtype, slot);
    }
    return slot;
}

dt_value
dt_tape_number(dt_tape *t, double number)
{
    const dt_scalar scalar = dt_scalar_float(number);
    return immediate(t, &scalar, DT_FLOAT64);
}

dt_value
dt_tape_integer(dt_tape *t, int64_t number)
{
    const dt_scalar scalar = dt_scalar_int(number);
    return immediate(t, &scalar, DT_INT64);
}

/* ---------------------------------------------------------------- the front's lock */

#define LARGE 50000 /* elements: work that is worth a release of the lock, which an op without a node may not hold */

#define RUN(x, slot, call)                                                                                             \
    do {                                                                                                               \
        void *state_ = NULL;                                                                                           \
        const bool leaves_ = t->node != NULL && dt_front.leave != NULL && dt_array_numel(x) > LARGE;                   \
        if (leaves_) {                                                                                                 \
            state_ = dt_front.leave();                                                                                 \
        }                                                                                                              \
        const dt_status rc_ = (call);                                                                                  \
        if (leaves_) {                                                                                                 \
            dt_front.enter(state_);                                                                                    \
        }                                                                                                              \
        return dt_tape_made(t, rc_, slot);                                                                             \
    } while (0)

/* A formula read what its line in derivatives.def does not keep. */
static dt_value
missing(dt_tape *t)
{
    if (t->rc == DT_OK) {
        t->rc = dt_fail(t->err, DT_ENOTIMPL, "not-kept", "backward", "the gradient of %s reads what is not kept",
                        dt_derivatives[t->node->derivative].op);
    }
    return NULL;
}

/* An op that writes a new value. */
#define NEW(x, call)                                                                                                   \
    do {                                                                                                               \
        dt_array *out = (x) == NULL ? (dt_array *)(uintptr_t)missing(t) : dt_tape_slot(t);                             \
        if (out == NULL) {                                                                                             \
            return NULL;                                                                                               \
        }                                                                                                              \
        RUN(x, out, call);                                                                                             \
    } while (0)

/* Whether an op may write over x: nobody else reads it or has its memory. */
static bool
is_spare(const dt_tape *t, dt_value x)
{
    return !t->create_graph && is_slot(t, x) && t->fresh[x - t->values] && x->storage != NULL &&
           atomic_load_explicit(&x->storage->refs, memory_order_relaxed) == 1 && dt_array_is_dense(x);
}

static bool
fits_over(const dt_array *x, const dt_array *other)
{
    return other->storage == NULL || (x->dtype == other->dtype && dt_array_has_shape(x, other->ndim, other->shape));
}

dt_value
dt_tape_unary(dt_tape *t, dt_unary_op op, dt_value x)
{
    if (x == NULL || x->storage == NULL) {
        return missing(t);
    }
    if (is_spare(t, x)) {
        dt_array *over = &t->values[x - t->values];
        RUN(x, over, dt_unary(op, "backward", x, NULL, true, over, t->err));
    }
    NEW(x, dt_unary(op, "backward", x, NULL, false, out, t->err));
}

static bool
is_test(dt_binary_op op)
{
    return op >= DT_BINARY_eq && op <= DT_BINARY_logical_xor;
}

dt_value
dt_tape_binary(dt_tape *t, dt_binary_op op, dt_value a, dt_value b)
{
    if (a == NULL || b == NULL || (a->storage == NULL && b->storage == NULL)) {
        return missing(t);
    }
    dt_scalar number;
    const dt_scalar *scalar = NULL;
    const dt_array *x = a, *y = b;
    if (a->storage == NULL || b->storage == NULL) {
        const dt_array *n = a->storage == NULL ? a : b;
        number = dt_scalar_load((dt_dtype)n->dtype, n->immediate);
        scalar = &number;
        x = n == a ? NULL : a;
        y = n == b ? NULL : b;
    }
    const dt_array *big = x != NULL ? x : y;
    if (x != NULL && !is_test(op) && is_spare(t, a) && fits_over(a, b)) {
        dt_array *over = &t->values[a - t->values];
        RUN(big, over, dt_binary(op, "backward", x, y, scalar, NULL, true, over, t->err));
    }
    NEW(big, dt_binary(op, "backward", x, y, scalar, NULL, false, out, t->err));
}

dt_value
dt_tape_fused(dt_tape *t, dt_binary_op op, dt_value x, const dt_params *params)
{
    NEW(x, dt_binary(op, "backward", t->grad, x, NULL, params, false, out, t->err));
}

dt_value
dt_tape_where(dt_tape *t, dt_value condition, dt_value a, dt_value b)
{
    if (condition == NULL || a == NULL || b == NULL) {
        return missing(t);
    }
    dt_scalar sa, sb;
    const dt_array *x = a->storage == NULL ? NULL : a, *y = b->storage == NULL ? NULL : b;
    if (x == NULL) {
        sa = dt_scalar_load((dt_dtype)a->dtype, a->immediate);
    }
    if (y == NULL) {
        sb = dt_scalar_load((dt_dtype)b->dtype, b->immediate);
    }
    NEW(condition, dt_where(condition, x, y, x ? NULL : &sa, y ? NULL : &sb, out, t->err));
}

dt_value
dt_tape_reduce(dt_tape *t, dt_reduce_op op, dt_value x, int ndims, const int64_t *dims, bool keepdim)
{
    NEW(x, dt_reduce(op, "backward", x, ndims, dims, keepdim, -1, out, t->err));
}

dt_value
dt_tape_scan(dt_tape *t, dt_scan_op op, dt_value x, int64_t dim, bool reverse)
{
    NEW(x, dt_scan(op, "backward", x, dim, reverse, -1, false, out, t->err));
}

dt_value
dt_tape_sum(dt_tape *t, dt_value x, int ndims, const int64_t *dims, bool keepdim)
{
    return dt_tape_reduce(t, DT_REDUCE_sum, x, ndims, dims, keepdim);
}

dt_value
dt_tape_reshape(dt_tape *t, dt_value x, int ndim, const int64_t *shape)
{
    NEW(x, dt_reshape("backward", x, ndim, shape, out, t->err));
}

dt_value
dt_tape_expand(dt_tape *t, dt_value x, int ndim, const int64_t *shape)
{
    NEW(x, dt_expand("backward", x, ndim, shape, out, t->err));
}

dt_value
dt_tape_transpose(dt_tape *t, dt_value x, int dim0, int dim1)
{
    NEW(x, dt_transpose("backward", x, dim0, dim1, out, t->err));
}

dt_value
dt_tape_unsqueeze(dt_tape *t, dt_value x, int dim)
{
    NEW(x, dt_unsqueeze("backward", x, dim, out, t->err));
}

dt_value
dt_tape_narrow(dt_tape *t, dt_value x, int dim, int64_t start, int64_t length)
{
    NEW(x, dt_narrow("backward", x, dim, start, length, out, t->err));
}

dt_value
dt_tape_select(dt_tape *t, dt_value x, int dim, int64_t index)
{
    NEW(x, dt_select("backward", x, dim, index, out, t->err));
}

dt_value
dt_tape_matmul(dt_tape *t, dt_value a, dt_value b)
{
    if (b == NULL) {
        return missing(t);
    }
    NEW(a, dt_matmul(a, b, out, t->err));
}

dt_value
dt_tape_zeros(dt_tape *t, int ndim, const int64_t *shape)
{
    const dt_scalar zero = dt_scalar_int(0);
    NEW(t->grad,
        dt_full("backward", dt_array_device(t->grad), (dt_dtype)t->grad->dtype, ndim, shape, &zero, out, t->err));
}

dt_value
dt_tape_permute(dt_tape *t, dt_value x, int n, const int64_t *dims)
{
    NEW(x, dt_permute("backward", x, n, dims, out, t->err));
}

dt_value
dt_tape_tri(dt_tape *t, dt_value x, int64_t diagonal, bool upper)
{
    NEW(x, dt_tri("backward", x, diagonal, upper, out, t->err));
}

dt_value
dt_tape_to(dt_tape *t, dt_value x, dt_device device, dt_dtype dtype)
{
    NEW(x, dt_to(x, device, dtype, false, false, out, t->err));
}

dt_value
dt_tape_region(dt_tape *t, dt_value x, const dt_region *region)
{
    NEW(x, dt_take_region(x, region, out, t->err));
}

dt_value
dt_tape_clone(dt_tape *t, dt_value x)
{
    NEW(x, dt_clone(x, out, t->err));
}

dt_value
dt_tape_fit(dt_tape *t, const dt_node *node, dt_value gradient)
{
    if (gradient == NULL) {
        return NULL;
    }
    if (!dt_device_equal(dt_array_device(gradient), node->device)) {
        t->rc = dt_fail_grad_moved(dt_derivatives[t->node->derivative].op, gradient, node->device, t->err);
        return NULL;
    }
    if ((node->flags & DT_NODE_LEAF) && node->order > t->node->order && gradient->dtype != node->dtype) {
        t->rc = dt_fail_grad_cast(dt_derivatives[t->node->derivative].op, gradient, (dt_dtype)node->dtype, t->err);
        return NULL;
    }
    if (gradient->ndim < node->ndim) { /* dimensions of size 1 that a write dropped */
        int64_t shape[DT_MAX_NDIM];
        for (int d = 0, lead = node->ndim - gradient->ndim; d < node->ndim; d++) {
            shape[d] = d < lead ? 1 : gradient->shape[d - lead];
        }
        gradient = dt_tape_reshape(t, gradient, node->ndim, shape);
        if (gradient == NULL) {
            return NULL;
        }
    }
    if (!dt_array_has_shape(gradient, node->ndim, node->shape)) {
        int64_t dims[DT_MAX_NDIM];
        int n = 0, lead = gradient->ndim - node->ndim;
        for (int d = 0; d < gradient->ndim; d++) {
            if (d < lead || (node->shape[d - lead] == 1 && gradient->shape[d] != 1)) {
                dims[n++] = d;
            }
        }
        gradient = n == 0 ? gradient : dt_tape_sum(t, gradient, n, dims, true);
        gradient = dt_tape_reshape(t, gradient, node->ndim, node->shape);
    }
    if (gradient != NULL && gradient->dtype != node->dtype) {
        dt_array *slot = dt_tape_slot(t);
        gradient = slot == NULL
                       ? NULL
                       : dt_tape_made(
                             t, dt_to(gradient, node->device, (dt_dtype)node->dtype, false, false, slot, t->err), slot);
    }
    return gradient;
}
