/* history.c: writes in place to memory that several arrays share. The storage holds a node of its whole content as
 * a flat array, the history: what was there before, but for the part that the last write has replaced. An array whose
 * node is older takes its part of the history for its node when it is next used; views need not know each other. */
#include <pthread.h>

#include "../check/check.h"
#include "params.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the field of all storages */

static void
take_lock(void)
{
    pthread_mutex_lock(&lock);
}

static void
give_lock(void)
{
    pthread_mutex_unlock(&lock);
}

__attribute__((constructor)) static void
watch_forks(void)
{
    (void)pthread_atfork(take_lock, give_lock, give_lock);
}

/* Whether the last write is newer than the node. */
static bool
is_older(const dt_node *node, const dt_node *history)
{
    return node == NULL || (node != history->inputs[1] && node->order < history->order &&
                            !(node->flags & (DT_NODE_WANTS | DT_NODE_APART)));
}

/* The history, for x whose node is older; else NULL. */
static dt_node *
newer_history(const dt_array *x)
{
    take_lock();
    dt_node *history = atomic_load_explicit(&x->storage->history, memory_order_relaxed);
    const bool newer = history != NULL && history->dtype == x->dtype && is_older(x->node, history);
    dt_node *found = newer ? dt_node_retain(history) : NULL;
    give_lock();
    return found;
}

bool
dt_is_stale(const dt_array *x)
{
    dt_node *history = newer_history(x);
    dt_node_release(history);
    return history != NULL;
}

/* ---------------------------------------------------------------- where arrays lie in the flat one */

/* All elements of x's storage. It holds no reference. */
static dt_array
flat_of(const dt_array *x)
{
    const int64_t n = (int64_t)(x->storage->nbytes / dt_itemsize((dt_dtype)x->dtype));
    return (dt_array){.storage = x->storage, .dtype = x->dtype, .ndim = 1, .shape = {n}, .strides = {1}};
}

static dt_region
region_in_flat(const dt_array *x)
{
    dt_region region = {.offset = x->offset / (int64_t)dt_itemsize((dt_dtype)x->dtype), .ndim = x->ndim};
    for (int d = 0; d < x->ndim; d++) {
        region.shape[d] = x->shape[d];
        region.strides[d] = x->strides[d];
    }
    return region;
}

static dt_status
node_of_region(dt_derivative_id id, const dt_array *result, dt_node *const *inputs, int n, const dt_array *part,
               dt_node **out, dt_error *err)
{
    const dt_region region = region_in_flat(part);
    return dt_node_new(
        &(dt_node_plan){
            .id = id, .result = result, .inputs = inputs, .ninputs = n, .params = &region, .nbytes = sizeof(region)},
        out, err);
}

/* The node of part, which history has the memory of. */
static dt_status
node_of_part(const dt_array *part, dt_node **history, dt_node **out, dt_error *err)
{
    const dt_array flat = flat_of(part);
    const dt_strided_record record = {region_in_flat(part), region_in_flat(&flat), flat.shape[0]};
    if (!dt_region_overlaps(&record.part)) {
        return node_of_region(DT_GRAD_subset, part, history, 1, part, out, err);
    }
    return dt_node_new(&(dt_node_plan){.id = DT_GRAD_strided,
                                       .result = part,
                                       .inputs = history,
                                       .ninputs = 1,
                                       .params = &record,
                                       .nbytes = sizeof(record)},
                       out, err);
}

dt_status
dt_node_after_writes(const dt_array *x, dt_node **out, dt_error *err)
{
    dt_node *history = newer_history(x);
    if (history == NULL) {
        return DT_OK;
    }
    dt_array part = *x; /* without what expand() repeats */
    bool repeats = false;
    for (int d = 0; d < x->ndim; d++) {
        if (x->strides[d] == 0 && x->shape[d] > 1) {
            part.shape[d] = 1;
            repeats = true;
        }
    }
    dt_status rc = node_of_part(&part, &history, out, err);
    dt_node_release(history);
    if (rc == DT_OK && repeats) {
        dt_node *node = *out;
        *out = NULL;
        rc = dt_node_new(&(dt_node_plan){.id = DT_GRAD_expand, .result = x, .inputs = &node, .ninputs = 1}, out, err);
        dt_node_release(node);
    }
    return rc;
}

dt_status
dt_data_of(const dt_array *x, bool quiet, dt_array *out, dt_error *err)
{
    quiet = quiet || (x->node != NULL && (x->node->flags & DT_NODE_QUIET));
    dt_array_copy_handle(x, out);
    if (dt_is_float((dt_dtype)x->dtype)) {
        const dt_status rc = dt_leaf_new(x, false, &out->node, err);
        if (rc != DT_OK) {
            dt_array_clear(out);
            return rc;
        }
        out->node->flags |= quiet ? DT_NODE_APART | DT_NODE_QUIET : DT_NODE_APART;
    }
    return DT_OK;
}

dt_status
dt_detach(const dt_array *x, dt_array *out, dt_error *err)
{
    return dt_data_of(x, false, out, err);
}

/* ---------------------------------------------------------------- writes */

const dt_node *
dt_node_under_views(const dt_node *node, dt_array *layout)
{
    while (node != NULL && node->source != NULL && node->inputs[0] != NULL) {
        const int64_t *source = node->source;
        node = node->inputs[0];
        layout->offset = *source++;
        layout->ndim = node->ndim;
        for (int d = 0; d < node->ndim; d++) {
            layout->shape[d] = node->shape[d];
            layout->strides[d] = source[d];
        }
    }
    return node;
}

/* Whether node is of as_strided on a view, which may reach memory of the storage that the view does not have. */
static bool
leaves_its_view(const dt_node *node)
{
    for (; node != NULL && node->source != NULL && node->inputs[0] != NULL; node = node->inputs[0]) {
        if (node->derivative == DT_GRAD_strided && node->inputs[0]->source != NULL) {
            return true;
        }
    }
    return false;
}

dt_status
dt_check_history(const char *op, const dt_array *x, dt_error *err)
{
    const int64_t itemsize = (int64_t)dt_itemsize((dt_dtype)x->dtype);
    take_lock();
    const dt_node *history = atomic_load_explicit(&x->storage->history, memory_order_relaxed);
    const bool fits = history == NULL || history->dtype == x->dtype;
    give_lock();
    const unsigned flags = x->node == NULL ? 0 : x->node->flags;
    if (flags & DT_NODE_CUT) {
        return dt_fail_grad_view(op, x, err);
    }
    const bool has_views = (flags & DT_NODE_APART) && ((flags & DT_NODE_SEEN) || x->node->source != NULL);
    return !fits || has_views || leaves_its_view(x->node) || x->offset % itemsize != 0 ? dt_fail_grad_shared(op, x, err)
                                                                                       : DT_OK;
}

/* The content before the first write on record: that of the array which the views of it go back to. */
static dt_status
first_history(const dt_array *x, dt_node *before, dt_node **out, dt_error *err)
{
    dt_array layout = *x;
    dt_node *root = (dt_node *)(uintptr_t)dt_node_under_views(before, &layout);
    const dt_array flat = flat_of(x);
    return root == NULL ? DT_OK : node_of_region(DT_GRAD_embed, &flat, &root, 1, &layout, out, err);
}

/* The history of a storage, replaced. */
static void
set_history(dt_storage *storage, dt_node *history)
{
    take_lock();
    dt_node *old = atomic_exchange(&storage->history, history);
    give_lock();
    dt_node_release(old);
}

dt_status
dt_history_add(const dt_array *x, dt_node *before, dt_node *write, dt_error *err)
{
    take_lock();
    dt_node *inputs[2] = {dt_node_retain(atomic_load_explicit(&x->storage->history, memory_order_relaxed)), write};
    give_lock();
    dt_status rc = inputs[0] != NULL ? DT_OK : first_history(x, before, &inputs[0], err);
    dt_node *history = NULL;
    if (rc == DT_OK && (inputs[0] != NULL || write != NULL)) {
        const dt_array flat = flat_of(x);
        rc = node_of_region(DT_GRAD_write, &flat, inputs, 2, x, &history, err);
    }
    if (history != NULL) {
        dt_node_mark_epoch(history);
        set_history(x->storage, history);
    }
    dt_node_release(inputs[0]);
    return rc;
}

void
dt_history_end(dt_storage *storage)
{
    set_history(storage, NULL);
}

bool
dt_history_leave(dt_storage *storage)
{
    dt_node *last = NULL;
    take_lock();
    const uint64_t before = atomic_fetch_sub_explicit(&storage->refs, 1, memory_order_acq_rel);
    if ((uint32_t)before - 1 == before >> 32) { /* what is left are nodes, maybe of the history itself */
        last = atomic_exchange(&storage->history, NULL);
    }
    give_lock();
    dt_node_release(last);
    return before == 1;
}
