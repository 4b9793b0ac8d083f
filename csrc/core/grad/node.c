/* node.c: the life of nodes: what they keep, and their end, which may be that of a million others. */
#include "grad.h"

#include <string.h>

#include "../check/check.h"

dt_grad_front dt_front;

/* Later than all that this thread has recorded. */
static _Thread_local uint64_t latest_order;
_Thread_local dt_nodes_by_step dt_nodes_alive;
_Thread_local bool dt_packs_kept;

void
dt_set_grad_front(const dt_grad_front *front)
{
    dt_front = *front;
}

/* ---------------------------------------------------------------- how many there are */

static void
count(const dt_node *node, int64_t more)
{
    dt_nodes_by_step *all = &dt_nodes_alive;
    const bool is_recent = all->step - node->step < DT_STEPS;
    *(is_recent ? &all->recent[node->step % DT_STEPS] : &all->older) += node->ninputs > 0 ? more : 0;
}

uint32_t
dt_nodes_stepped(void)
{
    dt_nodes_by_step *all = &dt_nodes_alive;
    int64_t *next = &all->recent[++all->step % DT_STEPS];
    all->older += *next;
    *next = 0;
    return all->step;
}

int64_t
dt_nodes_before(uint32_t step)
{
    const dt_nodes_by_step *all = &dt_nodes_alive;
    int64_t n = all->older;
    for (uint32_t age = all->step - step + 1; age < DT_STEPS; age++) {
        n += all->recent[(all->step - age) % DT_STEPS];
    }
    return n;
}

/* ---------------------------------------------------------------- what a node keeps */

#define SAVED (((size_t)1 << 32) + 1) /* in dt_storage.refs: a holder that is a node */

void
dt_storage_keep(dt_storage *storage)
{
    atomic_fetch_add_explicit(&storage->refs, SAVED, memory_order_relaxed);
}

void
dt_storage_unkeep(dt_storage *storage)
{
    /* a holder like others, so that the last one has one path on which to release */
    atomic_fetch_sub_explicit(&storage->refs, SAVED - 1, memory_order_relaxed);
    dt_storage_release(storage);
}

static void
release_kept(dt_kept *kept)
{
    dt_storage *storage = kept->storage;
    kept->storage = NULL;
    if (storage != NULL) {
        dt_storage_unkeep(storage);
    }
}

void
dt_node_empty(dt_node *node)
{
    for (int i = 0; i < node->nkept; i++) {
        release_kept(&node->kept[i]);
    }
    if (DT_UNLIKELY(node->packed != NULL)) {
        void *packed = node->packed;
        node->packed = NULL;
        dt_front.release_packed(packed);
    }
}

/* What the front has made of the arrays takes their place. */
static dt_status
pack(dt_node *node, dt_error *err)
{
    DT_TRY(dt_front.pack(node, err));
    for (int k = 0; k < node->nkept; k++) {
        node->kept[k].packed = node->kept[k].storage != NULL;
        release_kept(&node->kept[k]);
    }
    return DT_OK;
}

dt_array
dt_node_kept(const dt_node *node, int k)
{
    const dt_kept *kept = &node->kept[k];
    dt_array x = {.storage = kept->storage, .offset = kept->offset, .dtype = kept->dtype, .ndim = kept->ndim};
    memcpy(x.shape, kept->dims, kept->ndim * sizeof(int64_t));
    memcpy(x.strides, kept->dims + kept->ndim, kept->ndim * sizeof(int64_t));
    return x;
}

static void
end_rerun(dt_node *node)
{
    dt_rerun *rerun = node->rerun;
    node->rerun = NULL;
    dt_rerun_release(rerun);
}

void
dt_node_forget(dt_node *node, void *place)
{
    if (node->nkept == 0 || (node->flags & (DT_NODE_RELEASED | DT_NODE_SECOND))) {
        return;
    }
    node->flags |= DT_NODE_RELEASED;
    dt_node_empty(node);
    node->kept[0].offset = (int64_t)latest_order;
    end_rerun(node);
    if (place != NULL && dt_front.retain_place != NULL) {
        node->freed = dt_front.retain_place(place);
    }
}

static void
keep(dt_kept *kept, const dt_array *x, int operand)
{
    const size_t n = x->ndim * sizeof(int64_t);
    kept->storage = x->storage;
    kept->offset = x->offset;
    kept->dtype = x->dtype;
    kept->ndim = x->ndim;
    kept->operand = (uint8_t)operand;
    kept->packed = false;
    kept->quiet = x->storage != NULL && x->node != NULL && (x->node->flags & DT_NODE_QUIET);
    memcpy(kept->dims, x->shape, n);
    memcpy(kept->dims + x->ndim, x->strides, n);
    if (x->storage != NULL) {
        dt_storage_keep(x->storage);
        kept->version = dt_kept_version(x->storage, kept->quiet);
    }
}

void
dt_node_take_kept(dt_node *node, dt_node *second)
{
    for (int k = 0; k < node->nkept; k++) {
        dt_kept *kept = &node->kept[k], *from = &second->kept[k];
        const dt_array x = dt_node_kept(second, k);
        if (x.storage != NULL) {
            dt_storage_retain(x.storage);
            keep(kept, &x, kept->operand);
            kept->quiet = from->quiet;
            kept->version = from->version;
            dt_storage_release(x.storage);
        }
    }
    dt_node_empty(second);
}

dt_status
dt_node_unpack(dt_node *node, const dt_kept *kept, dt_array *out, dt_error *err)
{
    if (node->flags & DT_NODE_RELEASED) {
        return dt_fail_grad_freed(dt_derivatives[node->derivative].op, err);
    }
    if (DT_UNLIKELY(node->rerun != NULL)) {
        DT_TRY(dt_rerun_fill(node, err));
    }
    if (DT_UNLIKELY(kept->packed)) {
        return dt_front.unpack(node, (int)(kept - node->kept), out, err);
    }
    dt_array x = dt_node_kept(node, (int)(kept - node->kept));
    if (kept->storage != NULL) {
        const uint32_t version = dt_kept_version(kept->storage, kept->quiet);
        (void)dt_storage_retain(kept->storage);
        if (version != kept->version) {
            dt_status rc = dt_fail_grad_modified(dt_derivatives[node->derivative].op, &x, version, kept->version, err);
            dt_array_clear(&x);
            return rc;
        }
    }
    *out = x;
    return DT_OK;
}

/* ---------------------------------------------------------------- birth */

/* That of the latest history: what is recorded after it by any thread is later. */
static atomic_uint_fast64_t epoch;

#define EPOCH ((uint64_t)1 << 24) /* more nodes than threads record between two histories */

void
dt_node_mark_epoch(dt_node *node)
{
    uint64_t was = atomic_load_explicit(&epoch, memory_order_relaxed), now;
    do {
        now = (was > node->order ? was : node->order) / EPOCH * EPOCH + EPOCH;
    } while (!atomic_compare_exchange_weak(&epoch, &was, now));
    node->order = latest_order = now;
}

static uint64_t
next_order(const dt_node *const *inputs, int n)
{
    const uint64_t least = atomic_load_explicit(&epoch, memory_order_relaxed);
    latest_order = latest_order < least ? least : latest_order;
    for (int i = 0; i < n; i++) {
        if (inputs[i] != NULL && inputs[i]->order > latest_order) { /* recorded by another thread */
            latest_order = inputs[i]->order;
        }
    }
    return ++latest_order;
}

static size_t
aligned(size_t nbytes)
{
    return (nbytes + 7) & ~(size_t)7;
}

dt_status
dt_node_new(const dt_node_plan *plan, dt_node **out, dt_error *err)
{
    const dt_array *result = plan->result;
    size_t at_inputs = sizeof(dt_node) + result->ndim * sizeof(int64_t);
    size_t at_kept = at_inputs + (size_t)plan->ninputs * sizeof(dt_node *);
    size_t at_dims = at_kept + (size_t)plan->nkept * sizeof(dt_kept), at_params = at_dims;
    for (int k = 0; k < plan->nkept; k++) {
        at_params += 2 * sizeof(int64_t) * plan->kept[k]->ndim;
    }
    const size_t at_source = at_params + aligned(plan->nbytes);
    const size_t size = at_source + (plan->source == NULL ? 0 : 1 + (size_t)plan->source->ndim) * sizeof(int64_t);
    char *block = dt_malloc(size);
    if (block == NULL) {
        return dt_fail_nomem(err, size);
    }
    dt_node *node = (dt_node *)(void *)block;
    *node = (dt_node){.derivative = (uint8_t)plan->id,
                      .flags = plan->flags,
                      .dtype = result->dtype,
                      .ndim = result->ndim,
                      .ninputs = plan->ninputs,
                      .nkept = (uint16_t)plan->nkept,
                      .device = dt_array_device(result),
                      .step = dt_nodes_alive.step,
                      .inputs = (dt_node **)(void *)(block + at_inputs),
                      .kept = (dt_kept *)(void *)(block + at_kept),
                      .params = plan->nbytes > 0 ? block + at_params : NULL};
    atomic_init(&node->refs, 1);
    count(node, 1);
    memcpy(node->shape, result->shape, result->ndim * sizeof(int64_t));
    for (int i = 0; i < plan->ninputs; i++) {
        node->inputs[i] = dt_node_retain(plan->inputs[i]);
    }
    node->order = next_order((const dt_node *const *)node->inputs, plan->ninputs);
    int64_t *dims = (int64_t *)(void *)(block + at_dims);
    for (int k = 0; k < plan->nkept; k++) {
        node->kept[k].dims = dims;
        dims += (size_t)2 * plan->kept[k]->ndim;
        keep(&node->kept[k], plan->kept[k], plan->operands[k]);
    }
    if (plan->nbytes > 0) {
        memcpy(node->params, plan->params, plan->nbytes);
    }
    if (plan->source != NULL) {
        node->source = (int64_t *)(void *)(block + at_source);
        node->source[0] = plan->source->offset;
        memcpy(node->source + 1, plan->source->strides, plan->source->ndim * sizeof(int64_t));
    }
    if (DT_UNLIKELY(dt_rerun_here != NULL) && (plan->nkept > 0 || plan->id == DT_GRAD_dropout)) {
        const dt_status rc = dt_rerun_note(dt_rerun_here, node, err);
        if (rc != DT_OK) {
            dt_node_release(node);
            return rc;
        }
    }
    if (DT_UNLIKELY(dt_packs_kept) && plan->nkept > 0 && dt_rerun_here == NULL) {
        const dt_status rc = pack(node, err);
        if (rc != DT_OK) {
            dt_node_release(node);
            return rc;
        }
    }
    *out = node;
    return DT_OK;
}

dt_status
dt_leaf_new(const dt_array *x, bool wants, dt_node **out, dt_error *err)
{
    const uint16_t flags = wants ? DT_NODE_LEAF | DT_NODE_WANTS : DT_NODE_LEAF;
    return dt_node_new(&(dt_node_plan){.id = DT_GRAD_none, .flags = flags, .result = x}, out, err);
}

/* ---------------------------------------------------------------- the end */

/* The nodes without holders that this thread still has to free: what a node holds may be the last holder of others, so
 * a release inside a release adds to the list of the outer one. Linked through task. */
static _Thread_local dt_node **waiting;

static void
free_one(dt_node *node)
{
    count(node, -1);
    for (int i = 0; i < node->ninputs; i++) {
        dt_node_release(node->inputs[i]);
    }
    dt_node_empty(node);
    end_rerun(node);
    if (node->place != NULL) {
        dt_front.release_place(node->place);
    }
    if (node->freed != NULL) {
        dt_front.release_place(node->freed);
    }
    if (node->owner != NULL) {
        dt_front.release_owner(node->owner);
    }
    dt_free(node);
}

void
dt_node_release(dt_node *node)
{
    if (node == NULL || (atomic_load_explicit(&node->refs, memory_order_acquire) != 1 &&
                         atomic_fetch_sub_explicit(&node->refs, 1, memory_order_acq_rel) != 1)) {
        return;
    }
    if (waiting != NULL) {
        node->task = (void *)*waiting;
        *waiting = node;
        return;
    }
    dt_node *list = NULL;
    waiting = &list;
    for (; node != NULL; node = list) {
        if (node == list) {
            list = (void *)node->task;
        }
        free_one(node);
    }
    waiting = NULL;
}

void
dt_array_share(const dt_array *a, dt_array *out)
{
    dt_array_copy_handle(a, out);
    out->node = a->storage == NULL ? NULL : dt_node_retain(a->node);
}
