/* conv_plan.c: plans of convolutions, cached, and their runs. Where no engine does the whole graph, the next one does
 * less of it; where one refuses as late as at its run, the next candidate is planned. */
#include "conv_plan.h"

size_t
cuda_conv2d_key_size(void)
{
    return sizeof(conv_key);
}

void
cuda_conv2d_destroy(void *plan)
{
    conv_plan *p = plan;
    if (p->plan != NULL) {
        if (p->ran) {
            (void)cu.cuCtxSynchronize(); /* it may own code that still runs */
        }
        (void)cu.cudnnBackendDestroyDescriptor(p->plan);
    }
    dt_free(p);
}

/* ---------------------------------------------------------------- planning */

int
cuda_conv_wanted(const conv_key *key)
{
    return (key->has_bias ? CONV_BIAS : 0) | (key->activation != DT_ACTIVATION_NONE ? CONV_RELU : 0);
}

/* p->plan stays NULL when there is no engine for this much of the graph. */
static dt_status
plan_graph(const conv_planner *planner, const conv_key *key, int fused, int first, conv_plan *p, dt_error *err)
{
    conv_graph g = {.nparts = 0};
    p->fused = fused;
    dt_status rc = cuda_conv_graph(planner, key, fused, &g, err);
    if (rc == DT_OK) {
        rc = cuda_conv_engine(planner, key, &g, first, p, err);
    } else if (rc == DT_ECUDA && fused != 0 && cuda_conv_refused(err->library_status)) {
        rc = DT_OK;
    }
    cuda_conv_graph_clear(&g);
    return rc;
}

static dt_status
fail_no_engine(const conv_planner *planner, const conv_key *key, dt_error *err)
{
    const cuda_device *d = planner->device;
    dt_fail(
        err, DT_ECUDA, "cuda-error", NULL,
        "cuDNN %zu has no engine for this convolution on cuda:%d (%s): input (%lld, %lld, %lld, %lld), weight (%lld, "
        "%lld, %lld, %lld), %s.",
        cu.cudnnGetVersion(), d ? d->index : 0, d ? d->name : "described", (long long)key->x[0], (long long)key->x[1],
        (long long)key->x[2], (long long)key->x[3], (long long)key->weight[0], (long long)key->weight[1],
        (long long)key->weight[2], (long long)key->weight[3], dt_dtypes[key->dtype].name);
    err->symbol = cuda_api_names[DT_API_cudnnBackendFinalize];
    err->library_status = CUDNN_STATUS_NOT_SUPPORTED;
    err->device = (dt_device){DT_CUDA, d ? d->index : 0};
    return DT_ECUDA;
}

dt_status
cuda_conv_plan_new(const conv_planner *planner, const conv_key *key, int fused, int first, conv_plan **out,
                   dt_error *err)
{
    conv_plan *p = dt_calloc(1, sizeof(*p));
    if (p == NULL) {
        return dt_fail_nomem(err, sizeof(*p));
    }
    dt_status rc = plan_graph(planner, key, fused, first, p, err);
    while (rc == DT_OK && p->plan == NULL && fused != 0) { /* the activation is given up first, then the bias */
        fused = fused & CONV_RELU ? fused & ~CONV_RELU : 0;
        rc = plan_graph(planner, key, fused, 0, p, err);
    }
    if (rc == DT_OK && p->plan == NULL) {
        rc = fail_no_engine(planner, key, err);
    }
    if (rc != DT_OK) {
        cuda_conv2d_destroy(p);
        return rc;
    }
    *out = p;
    return DT_OK;
}

/* ---------------------------------------------------------------- running */

static dt_status
fill_pack(cuda_device *d, const conv_plan *p, const conv_pointers *pointers, CUdeviceptr workspace,
          cudnnBackendDescriptor_t pack, dt_error *err)
{
    const int64_t ids[] = {CONV_ID_X, CONV_ID_WEIGHT, CONV_ID_OUT, CONV_ID_BIAS};
    void *addresses[] = {(void *)(uintptr_t)pointers->x, (void *)(uintptr_t)pointers->weight,
                         (void *)(uintptr_t)pointers->out, (void *)(uintptr_t)pointers->bias};
    void *scratch = (void *)(uintptr_t)workspace;
    int64_t count = p->fused & CONV_BIAS ? 4 : 3;
    CONV_SET(d, pack, VARIANT_PACK_UNIQUE_IDS, INT64, count, ids);
    CONV_SET(d, pack, VARIANT_PACK_DATA_POINTERS, VOID_PTR, count, addresses);
    CONV_SET(d, pack, VARIANT_PACK_WORKSPACE, VOID_PTR, 1, &scratch);
    CUDA_TRY(d, cudnnBackendFinalize, (pack));
    return DT_OK;
}

static dt_status
execute(cuda_device *d, const conv_plan *p, const conv_pointers *pointers, CUdeviceptr workspace, int *status,
        dt_error *err)
{
    cudnnBackendDescriptor_t pack = NULL;
    if (d->dnn_stream != cuda_stream(d)) {
        CUDA_TRY(d, cudnnSetStream, (d->dnn, cuda_stream(d)));
        d->dnn_stream = cuda_stream(d);
    }
    CUDA_TRY(d, cudnnBackendCreateDescriptor, (CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &pack));
    dt_status rc = fill_pack(d, p, pointers, workspace, pack, err);
    if (rc == DT_OK) {
        DT_COUNT(launches, 1);
        cuda_note_sent(d, CUDA_SENT_CALL | DT_API_cudnnBackendExecute);
        *status = cu.cudnnBackendExecute(d->dnn, p->plan, pack);
    }
    (void)cu.cudnnBackendDestroyDescriptor(pack);
    return rc;
}

dt_status
cuda_conv_run_plan(cuda_device *d, conv_plan *p, const conv_pointers *pointers, int *status, dt_error *err)
{
    CUdeviceptr workspace = 0;
    if (p->workspace > 0) {
        DT_TRY(cuda_allocate(d, (size_t)p->workspace, &workspace, err));
    }
    p->ran = true;
    dt_status rc = execute(d, p, pointers, workspace, status, err);
    cuda_release(d, workspace, (size_t)p->workspace);
    return rc;
}

static dt_status
open_library(cuda_device *d, dt_error *err)
{
    if (d->dnn == NULL) {
        DT_TRY(cuda_api_need(DT_LIBRARY_CUDNN, err));
        CUDA_TRY(d, cudnnCreate, (&d->dnn));
    }
    return DT_OK;
}

/* Runs p, and while it is refused, the plan of the next candidate in its place. */
static dt_status
run_or_replace(const conv_planner *planner, const conv_key *key, const conv_pointers *pointers, conv_plan **p,
               dt_error *err)
{
    for (;;) {
        int status = 0;
        DT_TRY(cuda_conv_run_plan(planner->device, *p, pointers, &status, err));
        if (!cuda_conv_refused(status)) {
            return cuda_check(planner->device, DT_API_cudnnBackendExecute, status, err);
        }
        conv_plan *next = NULL;
        DT_TRY(cuda_conv_plan_new(planner, key, (*p)->fused, (*p)->candidate + 1, &next, err));
        next->tuned = (*p)->tuned;
        cuda_cache_remove(&planner->device->tuned, key); /* what was found no longer holds */
        cuda_conv2d_destroy(*p);
        *p = next;
    }
}

/* An entry without a plan says that there is none, where the caller has another way: paddings that differ. */
static dt_status
remember_none(cuda_device *d, const conv_key *key, dt_error *err)
{
    conv_plan *p = dt_calloc(1, sizeof(*p));
    return p != NULL ? cuda_cache_put(&d->convolutions, key, p, err) : dt_fail_nomem(err, sizeof(*p));
}

static dt_status
run_locked(cuda_device *d, const conv_key *key, const conv_pointers *pointers, int *fused, dt_error *err)
{
    DT_TRY(open_library(d, err));
    const conv_planner planner = {d, d->dnn, NULL};
    bool tune = cuda_tuning(), tuned = false;
    int first = 0;
    conv_plan *p = cuda_cache_find(&d->convolutions, key);
    *fused = cuda_conv_wanted(key);
    if (p != NULL && p->plan == NULL) {
        return fail_no_engine(&planner, key, err);
    }
    if (p != NULL && (p->tuned || !tune)) {
        int status = 0;
        DT_TRY(cuda_conv_run_plan(d, p, pointers, &status, err));
        *fused = p->fused;
        if (!cuda_conv_refused(status)) {
            return cuda_check(d, DT_API_cudnnBackendExecute, status, err);
        }
        first = p->candidate + 1;
        tuned = p->tuned;
        tune = false;
        cuda_cache_remove(&d->tuned, key);
    }
    cuda_cache_remove(&d->convolutions, key);
    DT_TRY(tune ? cuda_conv_tune(&planner, key, pointers, &p, err)
                : cuda_conv_plan_new(&planner, key, *fused, first, &p, err));
    p->tuned = p->tuned || tuned;
    dt_status rc = run_or_replace(&planner, key, pointers, &p, err);
    if (rc != DT_OK) {
        cuda_conv2d_destroy(p);
        return rc;
    }
    *fused = p->fused;
    return cuda_cache_put(&d->convolutions, key, p, err);
}

dt_status
cuda_conv_run(cuda_device *device, const conv_key *key, const conv_pointers *pointers, int *fused, dt_error *err)
{
    pthread_mutex_lock(&device->library_lock);
    dt_status rc = run_locked(device, key, pointers, fused, err);
    if (rc == DT_ECUDA && cuda_conv_refused(err->library_status) && !cuda_conv_is_even(key) &&
        cuda_cache_find(&device->convolutions, key) == NULL && remember_none(device, key, err) != DT_OK) {
        rc = DT_ENOMEM;
    }
    pthread_mutex_unlock(&device->library_lock);
    return rc;
}
