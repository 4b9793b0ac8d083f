/* record.c: the node of an op that was just called. */
#include "../check/check.h"
#include "grad.h"
#include "../layout/layout.h"
#include "../ops/ops.h"

_Thread_local uint8_t dt_grad_off __attribute__((tls_model("initial-exec")));

/* What nodes keep does not count. */
static uint32_t
holders_of(const dt_array *x)
{
    const uint64_t refs = atomic_load_explicit(&x->storage->refs, memory_order_relaxed);
    return (uint32_t)refs - (uint32_t)(refs >> 32);
}

bool
dt_is_shared(const dt_array *x)
{
    return holders_of(x) > 1;
}

static bool
is_wanting_leaf(const dt_array *x)
{
    return x->node != NULL && (x->node->flags & DT_NODE_WANTS);
}

dt_status
dt_grad_check_write(const char *op, const dt_array *target, dt_error *err)
{
    if (dt_grad_off || !dt_wants_grad(target)) {
        return DT_OK;
    }
    return is_wanting_leaf(target) ? dt_fail_grad_leaf(op, target, err) : dt_fail_grad_out(op, target, err);
}

static bool
is_view_of_leaf(const dt_array *x)
{
    dt_array layout;
    const dt_node *node = dt_node_under_views(x->node, &layout);
    return node != NULL && node != x->node && (node->flags & DT_NODE_WANTS);
}

dt_status
dt_grad_check_leaf(const char *op, const dt_array *target, dt_error *err)
{
    if (is_wanting_leaf(target)) {
        return dt_fail_grad_leaf(op, target, err);
    }
    return is_view_of_leaf(target) ? dt_fail_grad_leaf_view(op, target, err) : DT_OK;
}

dt_status
dt_grad_check_in_place(const char *op, const dt_array *target, dt_error *err)
{
    DT_TRY(dt_grad_check_leaf(op, target, err));
    return dt_is_shared(target) ? dt_fail_grad_shared(op, target, err) : DT_OK;
}

/* What the gradients of the operands that want one read. */
static unsigned
kept_of(const dt_recording *r)
{
    unsigned kept = 0;
    for (int i = 0; i < r->n && i < 3; i++) {
        kept |= dt_wants_grad(r->inputs[i]) ? r->derivative->keeps[i] : 0;
    }
    return kept;
}

/* Whether the op writes over its operand x: any of them may be the target itself (x *= x). */
static bool
is_target(const dt_array *x, const dt_array *out)
{
    return x == out || (x != NULL && x->storage == out->storage && dt_array_is_same_view(x, out));
}

/* In place: whether a gradient reads what the op writes over. */
static dt_status
check_reads(const dt_recording *r, const dt_array *out, bool *reads, dt_error *err)
{
    const unsigned kept = kept_of(r);
    for (int i = 0; i < r->n && i < DT_MAX_KEPT - 1; i++) {
        const dt_array *x = r->inputs[i];
        if ((kept & DT_KEEP(i)) && x != NULL) {
            *reads |= is_target(x, out);
            if (!is_target(x, out) && dt_array_overlaps(x, out)) {
                return dt_fail_grad_shared(r->op, out, err);
            }
        }
    }
    return DT_OK;
}

/* In place: what was there is the op's to read once more on the way back. */
static dt_status
check_target(dt_recording *r, dt_array *out, dt_error *err)
{
    if (!r->in_place) {
        return dt_fail_grad_out(r->op, out, err);
    }
    DT_TRY(dt_grad_check_leaf(r->op, out, err));
    r->shared = dt_is_shared(out);
    return r->shared ? dt_check_history(r->op, out, err) : DT_OK;
}

dt_status
dt_record_open(dt_recording *r, dt_derivative_id id, const dt_array *const *inputs, int n, dt_array *out, dt_error *err)
{
    return dt_record_open_as(r, dt_derivatives[id].op, id, inputs, n, out, err);
}

dt_status
dt_record_open_as(dt_recording *r, const char *op, dt_derivative_id id, const dt_array *const *inputs, int n,
                  dt_array *out, dt_error *err)
{
    *r = (dt_recording){.derivative = &dt_derivatives[id], .op = op, .inputs = inputs, .n = n, .was_off = dt_grad_off};
    for (int i = 0; i < n && !dt_grad_off; i++) {
        r->wanted |= dt_wants_grad(inputs[i]);
    }
    r->in_place = out->storage != NULL && inputs[0] == out;
    if (r->wanted && out->storage != NULL) {
        DT_TRY(check_target(r, out, err));
    }
    bool reads = false;
    if (r->wanted && r->in_place) {
        DT_TRY(check_reads(r, out, &reads, err));
    }
    dt_grad_off |= DT_GRAD_OFF_INSIDE;
    const dt_status rc = reads ? dt_clone(out, &r->before, err) : DT_OK;
    dt_grad_off = rc == DT_OK ? dt_grad_off : r->was_off;
    return rc;
}

/* The nodes of the operands as they are now, NULL where no gradient flows. made: those that are new, linked by task. */
static dt_status
find_nodes(const dt_recording *r, dt_node **nodes, dt_node **made, dt_error *err)
{
    for (int i = 0; i < r->n; i++) {
        const dt_array *x = r->inputs[i];
        nodes[i] = x == NULL || x->storage == NULL ? NULL : x->node;
        if (x != NULL && x->storage != NULL && dt_has_history(x)) {
            dt_node *now = NULL;
            DT_TRY(dt_node_after_writes(x, &now, err));
            if (now != NULL) {
                now->task = (void *)*made;
                nodes[i] = *made = now;
            }
        }
        nodes[i] = dt_node_flows(nodes[i]) ? nodes[i] : NULL;
    }
    return DT_OK;
}

static void
drop_nodes(dt_node *made)
{
    while (made != NULL) {
        dt_node *next = (void *)made->task;
        made->task = NULL;
        dt_node_release(made);
        made = next;
    }
}

static bool
is_view(const dt_recording *r, const dt_array *out)
{
    const dt_array *x = r->inputs[0];
    return !r->in_place && x != NULL && x->storage == out->storage && x->dtype == out->dtype;
}

static dt_status
make_node(const dt_recording *r, dt_node *const *nodes, const void *params, size_t nbytes, const dt_array *out,
          dt_node **node, dt_error *err)
{
    const unsigned bits = kept_of(r);
    const dt_array *kept[DT_MAX_KEPT];
    uint8_t operands[DT_MAX_KEPT];
    int nkept = 0;
    for (int i = 0; i < DT_MAX_KEPT; i++) {
        const dt_array *x = i == DT_MAX_KEPT - 1 ? out : i < r->n ? r->inputs[i] : NULL;
        if ((bits & DT_KEEP(i)) && x != NULL) {
            kept[nkept] = i != DT_MAX_KEPT - 1 && r->before.storage != NULL && is_target(x, out) ? &r->before : x;
            operands[nkept++] = (uint8_t)i;
        }
    }
    const dt_node_plan plan = {
        .id = (dt_derivative_id)(r->derivative - dt_derivatives),
        .result = out,
        .inputs = nodes,
        .ninputs = r->n,
        .nkept = nkept,
        .kept = kept,
        .operands = operands,
        .params = params,
        .nbytes = nbytes,
        .source = is_view(r, out) ? r->inputs[0] : NULL,
    };
    return dt_node_new(&plan, node, err);
}

/* Whose memory nobody but its new view sees lies apart from nothing any more. */
static void
end_apart(const dt_recording *r, const dt_array *out)
{
    dt_node *node = is_view(r, out) ? r->inputs[0]->node : NULL;
    if (node != NULL && (node->flags & (DT_NODE_APART | DT_NODE_QUIET | DT_NODE_CUT)) == DT_NODE_APART &&
        node->source == NULL && holders_of(out) == 2) {
        if (dt_has_history(out)) {
            dt_history_end(out->storage);
        }
        node->flags &= (uint16_t) ~(DT_NODE_APART | DT_NODE_SEEN);
    }
}

/* What lies apart from other arrays of its memory stays so: a view of it, and what is written to it. */
static void
keep_apart(const dt_recording *r, dt_node *node, const dt_array *out)
{
    dt_node *source = is_view(r, out) ? r->inputs[0]->node : r->in_place ? out->node : NULL;
    if (source == NULL || node == NULL || !(source->flags & DT_NODE_APART)) {
        return;
    }
    node->flags |= source->flags & (DT_NODE_APART | DT_NODE_QUIET);
    if (!r->in_place) {
        source->flags |= DT_NODE_SEEN;
    }
}

/* What was written in place is the end of a history of its own, or part of that which others see. */
static dt_status
note_write(const dt_recording *r, dt_node *before, dt_node *node, const dt_array *out, dt_error *err)
{
    if (out->node != NULL && (out->node->flags & DT_NODE_APART)) {
        return DT_OK;
    }
    if (r->shared) {
        return dt_history_add(out, before, node, err);
    }
    if (dt_has_history(out)) {
        dt_history_end(out->storage);
    }
    return DT_OK;
}

/* Hangs the node of the op on its result. */
static dt_status
record(const dt_recording *r, const void *params, size_t nbytes, dt_array *out, dt_error *err)
{
    if (is_view(r, out) && dt_has_history(out) && dt_is_stale(r->inputs[0])) {
        return dt_node_after_writes(out, &out->node, err); /* not by way of the whole */
    }
    dt_node *few[DT_MAX_KEPT], **nodes = few, *made = NULL, *node = NULL;
    if (r->n > DT_MAX_KEPT && (nodes = dt_malloc((size_t)r->n * sizeof(*nodes))) == NULL) {
        return dt_fail_nomem(err, (size_t)r->n * sizeof(*nodes));
    }
    dt_status rc = find_nodes(r, nodes, &made, err);
    if (rc == DT_OK && r->derivative->gradient != NULL && dt_is_float((dt_dtype)out->dtype)) {
        rc = make_node(r, nodes, params, nbytes, out, &node, err);
    }
    if (rc == DT_OK && r->in_place) {
        rc = note_write(r, nodes[0], node, out, err);
    }
    if (rc == DT_OK) {
        keep_apart(r, node, out);
        dt_node_release(out->node);
        out->node = node;
    } else {
        dt_node_release(node);
    }
    drop_nodes(made);
    if (nodes != few) {
        dt_free(nodes);
    }
    return rc;
}

/* Whether x is a view that hides what it shows from the histories of its memory. */
static unsigned
cut_by(const dt_recording *r, const dt_array *out)
{
    const dt_array *x = r->inputs[0];
    if (!is_view(r, out) || out->node != NULL) {
        return 0;
    }
    const unsigned flags = x->node == NULL ? 0 : x->node->flags & (DT_NODE_APART | DT_NODE_QUIET | DT_NODE_CUT);
    if (flags & DT_NODE_APART) {
        x->node->flags |= DT_NODE_SEEN;
    }
    return flags != 0 || (r->was_off && dt_wants_grad(x)) ? flags | DT_NODE_CUT : 0;
}

/* Whether x is later than what was written to its memory, as detach_() leaves it: then so is a view of it. */
static bool
is_later(const dt_recording *r, const dt_array *out)
{
    return is_view(r, out) && out->node == NULL && dt_has_history(out) && r->inputs[0]->node != NULL &&
           !dt_is_stale(r->inputs[0]);
}

static dt_status
cut(unsigned flags, dt_array *out, dt_error *err)
{
    DT_TRY(dt_leaf_new(out, false, &out->node, err));
    out->node->flags |= (uint16_t)flags;
    return DT_OK;
}

dt_status
dt_record_close(dt_recording *r, dt_status rc, const void *params, size_t nbytes, dt_array *out, dt_error *err)
{
    dt_grad_off = r->was_off;
    if (rc == DT_OK) {
        end_apart(r, out);
    }
    const unsigned flags = rc == DT_OK && !r->wanted ? cut_by(r, out) : 0;
    const bool has_leaf = rc == DT_OK && !r->wanted && (flags != 0 || is_later(r, out));
    if (rc == DT_OK && (r->wanted || has_leaf)) {
        rc = r->wanted ? record(r, params, nbytes, out, err) : cut(flags, out, err);
        if (rc != DT_OK && !r->in_place) {
            dt_array_clear(out);
        }
    }
    dt_array_clear(&r->before);
    return rc;
}
