/* run.c: runs of planned convolutions. Where an engine refuses as late as at its run, or finds no memory for its
 * workspace, another one takes its place, and is remembered. */
#include "plan.h"
#include "../launch/launch_log.h"
#include "../memory/memory.h"
#include "../plans.h"
#include "../streams/stream.h"

/* ---------------------------------------------------------------- one run */

static dt_status
fill_pack(cuda_device *d, const graph_pointers *pointers, CUdeviceptr workspace, cudnnBackendDescriptor_t pack,
          dt_error *err)
{
    void *scratch = (void *)(uintptr_t)workspace;
    CONV_SET(d, pack, VARIANT_PACK_UNIQUE_IDS, INT64, pointers->count, pointers->ids);
    CONV_SET(d, pack, VARIANT_PACK_DATA_POINTERS, VOID_PTR, pointers->count, pointers->addresses);
    CONV_SET(d, pack, VARIANT_PACK_WORKSPACE, VOID_PTR, 1, &scratch);
    CUDA_TRY(d, cudnnBackendFinalize, (pack));
    return DT_OK;
}

static dt_status
execute(cuda_device *d, const conv_plan *p, const graph_pointers *pointers, CUdeviceptr workspace, int *status,
        dt_error *err)
{
    cudnnBackendDescriptor_t pack = NULL;
    if (d->dnn_stream != cuda_stream(d)) {
        CUDA_TRY(d, cudnnSetStream, (d->dnn, cuda_stream(d)));
        d->dnn_stream = cuda_stream(d);
    }
    CUDA_TRY(d, cudnnBackendCreateDescriptor, (CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &pack));
    dt_status rc = fill_pack(d, pointers, workspace, pack, err);
    if (rc == DT_OK) {
        DT_COUNT(launches, 1);
        cuda_note_sent(d, CUDA_SENT_CALL | DT_API_cudnnBackendExecute);
        *status = cu.cudnnBackendExecute(d->dnn, p->plan, pack);
    }
    (void)cu.cudnnBackendDestroyDescriptor(pack);
    return rc;
}

dt_status
cuda_graph_run_plan(cuda_device *d, conv_plan *p, const graph_pointers *pointers, int *status, dt_error *err)
{
    CUdeviceptr workspace = 0;
    unsigned queue = cuda_current(d)->id;
    if (p->workspace > 0) {
        DT_TRY(cuda_allocate(d, (size_t)p->workspace, &workspace, err));
    }
    dt_status rc = execute(d, p, pointers, workspace, status, err);
    if (rc == DT_OK && (*status == 0 || *status >= CUDNN_STATUS_EXECUTION_FAILED)) { /* something was sent */
        p->queues[queue / 64] |= UINT64_C(1) << queue % 64;
    }
    cuda_release(d, workspace, (size_t)p->workspace);
    return rc;
}

dt_status
cuda_conv_run_plan(cuda_device *d, conv_plan *p, const conv_pointers *pointers, int *status, dt_error *err)
{
    const graph_pointers all = {p->fused & CONV_BIAS ? 4 : 3,
                                {CONV_ID_X, CONV_ID_WEIGHT, CONV_ID_OUT, CONV_ID_BIAS},
                                {(void *)(uintptr_t)pointers->x, (void *)(uintptr_t)pointers->weight,
                                 (void *)(uintptr_t)pointers->out, (void *)(uintptr_t)pointers->bias}};
    return cuda_graph_run_plan(d, p, &all, status, err);
}

/* ---------------------------------------------------------------- the plan of a key */

dt_status
cuda_graph_open_library(cuda_device *d, dt_error *err)
{
    if (d->dnn != NULL) {
        return DT_OK;
    }
    DT_TRY(cuda_api_need(DT_LIBRARY_CUDNN, err));
    int status; /* where memory lacks versions say NOT_INITIALIZED, INTERNAL_ERROR or what it is */
    CUDA_TRY_WITH_ROOM(d, status, status != 0, cu.cudnnCreate(&d->dnn));
    return cuda_check(d, DT_API_cudnnCreate, status, err);
}

/* An entry without a plan says that there is none, where the caller has another way: paddings that differ, gradients.
 */
static dt_status
remember_none(cuda_device *d, const conv_key *key, dt_error *err)
{
    conv_plan *p = dt_calloc(1, sizeof(*p));
    return p != NULL ? cuda_cache_put(&d->convolutions, key, p, err) : dt_fail_nomem(err, sizeof(*p));
}

/* NO_WORKSPACE: there was no memory for it. SHORT: cuDNN found none for itself. */
typedef enum { RAN, REFUSED, NO_WORKSPACE, SHORT } outcome;

static dt_status
try_plan(cuda_device *d, conv_plan *p, const conv_pointers *pointers, outcome *how, dt_error *err)
{
    int status = 0;
    dt_status rc;
    CUDA_TRY_WITH_ROOM(d, rc, rc == DT_OK && cuda_conv_found_no_memory(status),
                       cuda_conv_run_plan(d, p, pointers, &status, err));
    if (rc == DT_OK && !cuda_conv_refused(status)) {
        rc = cuda_check(d, DT_API_cudnnBackendExecute, status, err);
    }
    *how = status != 0 ? REFUSED : RAN;
    if (cuda_conv_device_is_full(rc, err)) {
        *how = err->library_status == CUDA_ERROR_OUT_OF_MEMORY ? NO_WORKSPACE : SHORT;
        rc = DT_OK;
    }
    return rc;
}

/* In place of a plan that did not run; wish: what it was chosen by. Each step leaves less to choose from: engines that
 * refused stay out, and room only shrinks. A tuned plan may have been any of them: after it the search begins. Where
 * there was no memory, err says so already. */
static dt_status
plan_another(const conv_planner *planner, const conv_key *key, const conv_plan *failed, outcome how, conv_wish *wish,
             conv_plan **out, dt_error *err)
{
    if (!failed->tuned && failed->fused != wish->fused) {
        wish->fused = failed->fused;
        wish->first = 0;
    }
    dt_error ignored;
    if (how == NO_WORKSPACE) {
        wish->room = wish->room < failed->workspace / 2 ? wish->room : failed->workspace / 2;
    } else if (!failed->tuned) {
        wish->first = failed->candidate + 1;
    }
    dt_status rc = cuda_conv_choose(planner, key, wish, out, how == REFUSED ? err : &ignored);
    if (rc != DT_OK) {
        return how == REFUSED ? rc : DT_EOUTOFMEMORY;
    }
    if (how == NO_WORKSPACE && (*out)->images == 0 &&
        (*out)->workspace >= failed->workspace) { /* there is nothing smaller */
        cuda_conv_destroy(*out);
        return DT_EOUTOFMEMORY;
    }
    return DT_OK;
}

/* A plan for key that is in no cache. */
static dt_status
make_plan(const conv_planner *planner, const conv_key *key, const conv_pointers *pointers, conv_plan **out,
          dt_error *err)
{
    const conv_wish wish = {cuda_conv_wanted(key), 0, cuda_conv_room(planner->device, key), false};
    DT_TRY(cuda_conv_choose(planner, key, &wish, out, err));
    if (!cuda_tuning() || (*out)->images > 0) {
        return DT_OK;
    }
    cuda_conv_destroy(*out);
    return cuda_conv_tune(planner, key, pointers, out, err);
}

/* Runs p, or else what takes its place; *cached: whether the cache has it. A plan for parts of the batch is left to the
 * caller. */
static dt_status
run_or_replace(const conv_planner *planner, const conv_key *key, const conv_pointers *pointers, conv_plan **plan,
               bool *cached, dt_error *err)
{
    cuda_device *d = planner->device;
    conv_wish wish = {cuda_conv_wanted(key), 0, -1, false}; /* room is asked for when a plan fails */
    bool settled = false; /* it took the place of a tuned plan that refuses: nothing is timed again */
    while ((*plan)->images == 0) {
        outcome how;
        DT_TRY(try_plan(d, *plan, pointers, &how, err));
        if (how == RAN) {
            (*plan)->tuned |= settled;
            return DT_OK;
        }
        if ((*plan)->tuned && how == REFUSED) {
            cuda_conv_forget(d, key);
            settled = true;
        }
        if (wish.room < 0) {
            wish.room = cuda_conv_room(d, key);
        }
        const conv_plan failed = **plan; /* its numbers */
        conv_plan *next;
        DT_TRY(plan_another(planner, key, &failed, how, &wish, &next, err));
        if (*cached) {
            cuda_cache_remove(&d->convolutions, key);
        } else {
            cuda_conv2d_retire(*plan);
        }
        next->crowded |= how == SHORT;
        next->outgrown = failed.outgrown;
        *plan = next;
        *cached = false;
    }
    return DT_OK;
}

/* Whether p did without something for want of memory, of which there is much more now. Where memory comes and goes, a
 * better plan is looked for at once, then after 64 runs, 128, 256. */
static bool
is_outgrown(cuda_device *d, const conv_key *key, conv_plan *p)
{
    if (!p->crowded || p->tuned || cuda_conv_room(d, key) / 2 <= p->room) {
        return false;
    }
    return p->outgrown == 0 || ++p->runs > INT64_C(32) << (p->outgrown < 32 ? p->outgrown : 32);
}

static dt_status
run_locked(cuda_device *d, const conv_key *key, conv_pointers pointers, int *fused, int64_t *images, dt_error *err)
{
    DT_TRY(cuda_graph_open_library(d, err));
    const conv_planner planner = {d, d->dnn, NULL};
    conv_plan *p = cuda_cache_find(&d->convolutions, key);
    if (p != NULL && p->plan == NULL && p->images == 0) {
        return cuda_conv_fail_none(&planner, key, err);
    }
    if (!key->has_bias && (cuda_conv_wanted(key) & CONV_BIAS) != 0) {
        DT_TRY(cuda_conv_no_bias(d, key, &pointers.bias, err));
    }
    const bool outgrown = p != NULL && is_outgrown(d, key, p);
    bool cached = p != NULL && (p->tuned || p->images > 0 || !cuda_tuning()) && !outgrown;
    if (!cached) {
        const int before = p != NULL ? p->outgrown : 0;
        DT_TRY(make_plan(&planner, key, &pointers, &p, err));
        p->outgrown = before + outgrown;
    }
    dt_status rc = run_or_replace(&planner, key, &pointers, &p, &cached, err);
    if (rc != DT_OK) {
        if (!cached) {
            cuda_conv2d_retire(p);
        }
        return rc;
    }
    if (!cached) {
        p->room = cuda_conv_room(d, key);
    }
    *fused = p->fused;
    *images = p->images;
    return cached ? DT_OK : cuda_cache_put(&d->convolutions, key, p, err);
}

dt_status
cuda_conv_run(cuda_device *device, const conv_key *key, const conv_pointers *pointers, int *fused, int64_t *images,
              dt_error *err)
{
    pthread_mutex_lock(&device->library_lock);
    dt_status rc = run_locked(device, key, *pointers, fused, images, err);
    if (rc == DT_ECUDA && cuda_conv_refused(err->library_status) &&
        (!cuda_conv_is_even(key) || key->kind != CONV_FORWARD) && cuda_cache_find(&device->convolutions, key) == NULL &&
        remember_none(device, key, err) != DT_OK) {
        rc = DT_ENOMEM;
    }
    pthread_mutex_unlock(&device->library_lock);
    return rc;
}
