/* rerun.c: nodes that keep nothing, because what made them runs again when a formula wants to read (checkpoint).
 */
#include <string.h>

#include "../check/check.h"
#include "grad.h"

_Thread_local dt_rerun *dt_rerun_here __attribute__((tls_model("initial-exec")));

dt_status
dt_rerun_new(void *owner, dt_rerun **out, dt_error *err)
{
    dt_rerun *rerun = dt_calloc(1, sizeof(*rerun));
    if (rerun == NULL) {
        return dt_fail_nomem(err, sizeof(*rerun));
    }
    atomic_init(&rerun->refs, 1);
    rerun->owner = owner;
    *out = rerun;
    return DT_OK;
}

static void
drop_second(dt_rerun *rerun)
{
    for (uint32_t i = 0; i < rerun->nsecond; i++) {
        dt_node_release(rerun->second[i]);
    }
    dt_free(rerun->second);
    rerun->second = NULL;
    rerun->nsecond = rerun->room = 0;
}

void
dt_rerun_release(dt_rerun *rerun)
{
    if (rerun == NULL || atomic_fetch_sub_explicit(&rerun->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    drop_second(rerun);
    dt_front.release_rerun(rerun->owner);
    dt_free(rerun);
}

static dt_status
note_second(dt_rerun *rerun, dt_node *node, dt_error *err)
{
    if (rerun->nsecond == rerun->room) {
        const uint32_t room = rerun->room == 0 ? 64 : 2 * rerun->room;
        dt_node **second = dt_malloc(room * sizeof(*second));
        if (second == NULL) {
            return dt_fail_nomem(err, room * sizeof(*second));
        }
        if (rerun->nsecond > 0) {
            memcpy(second, rerun->second, rerun->nsecond * sizeof(*second));
        }
        dt_free(rerun->second);
        rerun->second = second;
        rerun->room = room;
    }
    rerun->second[rerun->nsecond++] = dt_node_retain(node);
    node->flags |= DT_NODE_SECOND;
    return DT_OK;
}

dt_status
dt_rerun_note(dt_rerun *rerun, dt_node *node, dt_error *err)
{
    if (rerun->again) {
        return note_second(rerun, node, err);
    }
    atomic_fetch_add_explicit(&rerun->refs, 1, memory_order_relaxed);
    node->rerun = rerun;
    node->rank = rerun->nodes++;
    dt_node_empty(node);
    return DT_OK;
}

static bool
is_second_of(const dt_node *second, const dt_node *node)
{
    bool same = second->derivative == node->derivative && second->nkept == node->nkept;
    for (int k = 0; same && k < node->nkept; k++) {
        const dt_kept *a = &node->kept[k], *b = &second->kept[k];
        same = a->dtype == b->dtype && a->ndim == b->ndim &&
               (a->ndim == 0 || memcmp(a->dims, b->dims, a->ndim * sizeof(int64_t)) == 0);
    }
    return same;
}

dt_status
dt_rerun_fill(dt_node *node, dt_error *err)
{
    dt_rerun *rerun = node->rerun;
    if (!rerun->done) {
        rerun->again = true;
        const dt_status rc = dt_front.rerun(rerun, err);
        rerun->again = false;
        if (rc != DT_OK) {
            drop_second(rerun);
            return rc;
        }
        rerun->done = true;
    }
    /* a backward inside of the first run comes before its last op */
    const bool fits = rerun->ended ? rerun->nsecond == rerun->nodes : rerun->nsecond >= rerun->nodes;
    dt_node *second = fits ? rerun->second[node->rank] : NULL;
    if (second == NULL || !is_second_of(second, node)) {
        return dt_fail_grad_rerun(dt_derivatives[node->derivative].op, rerun->nodes, rerun->nsecond, err);
    }
    dt_node_take_kept(node, second);
    node->rerun = NULL;
    dt_rerun_release(rerun);
    return DT_OK;
}

void
dt_rerun_draw(dt_node *node)
{
    dt_rerun *rerun = node->rerun;
    const dt_node *second = rerun->done && node->rank < rerun->nsecond ? rerun->second[node->rank] : NULL;
    if (second != NULL && second->derivative == node->derivative) {
        memcpy(node->params, second->params, sizeof(dt_random_params));
    }
    node->rerun = NULL;
    dt_rerun_release(rerun);
}
