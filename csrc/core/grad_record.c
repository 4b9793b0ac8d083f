/* grad_record.c: the node of an op that was just called. */
#include "check.h"
#include "grad.h"
#include "ops.h"

_Thread_local bool dt_grad_off __attribute__((tls_model("initial-exec")));

/* Arrays that share the storage of x; what nodes keep does not count. */
static uint32_t
holders(const dt_array *x)
{
    const size_t refs = atomic_load_explicit(&x->storage->refs, memory_order_relaxed);
    return (uint32_t)refs - (uint32_t)(refs >> 32);
}

static bool
is_wanting_leaf(const dt_array *x)
{
    return dt_wants_grad(x) && (x->node->flags & DT_NODE_LEAF);
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
is_view_of_leaf(const dt_node *node)
{
    while (node != NULL && node->derivative >= DT_GRAD_reshape && node->derivative <= DT_GRAD_subset) {
        node = node->inputs[0];
    }
    return node != NULL && (node->flags & DT_NODE_LEAF);
}

dt_status
dt_grad_check_in_place(const char *op, const dt_array *target, dt_error *err)
{
    if (is_wanting_leaf(target)) {
        return dt_fail_grad_leaf(op, target, err);
    }
    if (is_view_of_leaf(target->node)) {
        return dt_fail_grad_leaf_view(op, target, err);
    }
    return holders(target) > 1 ? dt_fail_grad_shared(op, target, err) : DT_OK;
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

/* Whether a gradient reads what the op writes over: any operand may be the target itself (x *= x). */
static bool
reads_target(const dt_recording *r, const dt_array *out)
{
    const unsigned kept = kept_of(r);
    bool reads = false;
    for (int i = 0; i < r->n && i < DT_MAX_KEPT - 1; i++) {
        reads |= (kept & DT_KEEP(i)) && r->inputs[i] == out;
    }
    return reads;
}

/* In place: what was there is the op's to read once more on the way back. */
static dt_status
check_target(dt_recording *r, dt_array *out, dt_error *err)
{
    return r->in_place ? dt_grad_check_in_place(r->derivative->op, out, err)
                       : dt_fail_grad_out(r->derivative->op, out, err);
}

dt_status
dt_record_open(dt_recording *r, dt_derivative_id id, const dt_array *const *inputs, int n, dt_array *out, dt_error *err)
{
    *r = (dt_recording){.derivative = &dt_derivatives[id], .inputs = inputs, .n = n};
    for (int i = 0; i < n; i++) {
        r->wanted |= dt_wants_grad(inputs[i]);
    }
    r->in_place = out->storage != NULL && inputs[0] == out;
    if (r->wanted && out->storage != NULL) {
        DT_TRY(check_target(r, out, err));
    }
    dt_grad_off = true;
    if (r->wanted && r->in_place && reads_target(r, out)) {
        const dt_status rc = dt_clone(out, &r->before, err);
        if (rc != DT_OK) {
            dt_grad_off = false;
            return rc;
        }
    }
    return DT_OK;
}

static dt_status
make_node(const dt_recording *r, const void *params, size_t nbytes, const dt_array *out, dt_node **node, dt_error *err)
{
    const unsigned bits = kept_of(r);
    const dt_array *kept[DT_MAX_KEPT];
    uint8_t operands[DT_MAX_KEPT];
    dt_node *few[DT_MAX_KEPT], **nodes = few;
    int nkept = 0;
    for (int i = 0; i < DT_MAX_KEPT; i++) {
        const dt_array *x = i == DT_MAX_KEPT - 1 ? out : i < r->n ? r->inputs[i] : NULL;
        if ((bits & DT_KEEP(i)) && x != NULL) {
            kept[nkept] = x == out && i != DT_MAX_KEPT - 1 && r->before.storage != NULL ? &r->before : x;
            operands[nkept++] = (uint8_t)i;
        }
    }
    if (r->n > DT_MAX_KEPT && (nodes = dt_malloc((size_t)r->n * sizeof(*nodes))) == NULL) {
        return dt_fail_nomem(err, (size_t)r->n * sizeof(*nodes));
    }
    for (int i = 0; i < r->n; i++) {
        nodes[i] = dt_wants_grad(r->inputs[i]) ? r->inputs[i]->node : NULL;
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
    };
    const dt_status rc = dt_node_new(&plan, node, err);
    if (nodes != few) {
        dt_free(nodes);
    }
    return rc;
}

dt_status
dt_record_close(dt_recording *r, dt_status rc, const void *params, size_t nbytes, dt_array *out, dt_error *err)
{
    dt_grad_off = false;
    if (rc == DT_OK && r->wanted) {
        dt_node *node = NULL;
        if (r->derivative->gradient != NULL && dt_is_float((dt_dtype)out->dtype)) {
            rc = make_node(r, params, nbytes, out, &node, err);
        }
        if (rc == DT_OK) {
            dt_node_release(out->node);
            out->node = node;
        } else if (!r->in_place) {
            dt_array_clear(out);
        }
    }
    dt_array_clear(&r->before);
    return rc;
}
