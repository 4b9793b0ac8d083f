/* plan.c: plans of convolutions. Where no engine does the whole graph, the next one does less of it; where the
 * memory is too small for tensor cores, the batch is done in parts. */
#include "plan.h"
#include "../plans.h"

#define MAX_PARTS 16

size_t
cuda_conv2d_key_size(void)
{
    return sizeof(conv_key);
}

/* ---------------------------------------------------------------- the end of a plan */

void
cuda_conv_destroy(conv_plan *p)
{
    if (p->last_run != NULL) {
        (void)cu.cuEventDestroy_v2(p->last_run);
    }
    if (p->plan != NULL) {
        (void)cu.cudnnBackendDestroyDescriptor(p->plan);
    }
    dt_free(p);
}

/* Puts an event behind the last runs of p in one of the streams that they were sent to; false: there is no such stream
 * left. One that cannot be marked now stays. */
static bool
mark_stream(conv_plan *p)
{
    for (unsigned i = 0; i < CUDA_MAX_QUEUES; i++) {
        uint64_t bit = UINT64_C(1) << i % 64;
        if ((p->queues[i / 64] & bit) == 0) {
            continue;
        }
        if (p->last_run == NULL && cu.cuEventCreate(&p->last_run, CU_EVENT_DISABLE_TIMING) != 0) {
            p->last_run = NULL;
        } else if (cu.cuEventRecord(p->last_run, p->device->queues[i]->stream) == 0) {
            p->queues[i / 64] &= ~bit;
            p->marked = true;
        }
        return true;
    }
    return false;
}

/* Whether p may own code that still runs. */
static bool
may_run(conv_plan *p)
{
    while (!p->marked || cu.cuEventQuery(p->last_run) == 0) {
        p->marked = false;
        if (!mark_stream(p)) {
            return false;
        }
        if (!p->marked) {
            return true;
        }
    }
    return true;
}

/* Destroys those of the retired plans whose runs are over. */
static void
reap(cuda_device *d)
{
    conv_plan **link = &d->retired;
    while (*link != NULL) {
        conv_plan *p = *link;
        if (may_run(p)) {
            link = &p->next;
        } else {
            *link = p->next;
            cuda_conv_destroy(p);
        }
    }
}

void
cuda_conv2d_reap(cuda_device *d)
{
    pthread_mutex_lock(&d->library_lock);
    reap(d);
    pthread_mutex_unlock(&d->library_lock);
}

void
cuda_conv2d_retire(void *plan)
{
    conv_plan *p = plan;
    if (p->plan == NULL || p->device == NULL) {
        cuda_conv_destroy(p);
        return;
    }
    p->next = p->device->retired;
    p->device->retired = p;
    reap(p->device);
}

/* ---------------------------------------------------------------- planning */

int
cuda_conv_wanted(const conv_key *key)
{
    if (key->activation == DT_ACTIVATION_NONE) {
        return key->has_bias ? CONV_BIAS : 0;
    }
    /* a ReLU right after the convolution is compiled at run time: it goes with a bias, or apart */
    return key->has_bias || key->out[1] <= CONV_MAX_NO_BIAS ? CONV_BIAS | CONV_RELU : 0;
}

/* The activation is given up first, then the bias. */
static int
less_of(const conv_key *key, int fused)
{
    return fused == (CONV_BIAS | CONV_RELU) && key->has_bias ? CONV_BIAS : 0;
}

/* p->plan stays NULL when there is no engine for this much of the graph. */
static dt_status
plan_graph(const conv_planner *planner, const conv_key *key, const conv_wish *wish, conv_plan *p, dt_error *err)
{
    conv_graph g = {.nparts = 0};
    p->fused = wish->fused;
    dt_status rc = cuda_conv_graph(planner, key, wish->fused, &g, err);
    if (rc == DT_OK) {
        rc = cuda_graph_plan(planner, key->dtype == DT_FLOAT32 && !key->tf32, &g, wish, p, err);
    } else if (rc == DT_ECUDA && wish->fused != 0 && cuda_conv_refused(err->library_status)) {
        rc = DT_OK;
    }
    cuda_conv_graph_clear(&g);
    return rc;
}

dt_status
cuda_conv_fail_none(const conv_planner *planner, const conv_key *key, dt_error *err)
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

/* First as much in one graph as can be had; what is compiled at run time only where there is nothing else at all. */
static dt_status
plan_some(const conv_planner *planner, const conv_key *key, conv_wish wish, conv_plan *p, dt_error *err)
{
    DT_TRY(plan_graph(planner, key, &wish, p, err));
    while (p->plan == NULL && wish.fused != 0) {
        wish.fused = less_of(key, wish.fused);
        wish.first = 0;
        DT_TRY(plan_graph(planner, key, &wish, p, err));
    }
    if (p->plan == NULL && !wish.compiled) {
        wish.compiled = true;
        DT_TRY(plan_graph(planner, key, &wish, p, err));
    }
    if (p->plan == NULL && p->squeezed) {
        return cuda_check(planner->device, DT_API_cudnnBackendFinalize,
                          CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED, err);
    }
    return p->plan != NULL ? DT_OK : cuda_conv_fail_none(planner, key, err);
}

dt_status
cuda_conv_plan_new(const conv_planner *planner, const conv_key *key, const conv_wish *wish, conv_plan **out,
                   dt_error *err)
{
    conv_plan *p = dt_calloc(1, sizeof(*p));
    if (p == NULL) {
        return dt_fail_nomem(err, sizeof(*p));
    }
    p->device = planner->device;
    dt_status rc = plan_some(planner, key, *wish, p, err);
    if (rc != DT_OK) {
        cuda_conv_destroy(p);
        return rc;
    }
    *out = p;
    return DT_OK;
}

/* ---------------------------------------------------------------- batches in parts */

static dt_status
is_crowded(const conv_planner *planner, const conv_key *key, const conv_wish *wish, bool *crowded, dt_error *err)
{
    conv_plan *p;
    DT_TRY(cuda_conv_plan_new(planner, key, wish, &p, err));
    *crowded = p->crowded;
    cuda_conv_destroy(p);
    return DT_OK;
}

/* The most images for which there is room to have what the whole batch would have to give up; 0: not even for few. */
static dt_status
find_batch_part(const conv_planner *planner, const conv_key *key, conv_wish wish, int64_t *images, dt_error *err)
{
    conv_key part = *key;
    bool crowded = true;
    wish.first = 0;
    for (int64_t n = 1; n < MAX_PARTS && crowded && part.x[0] > 1; n *= 2) {
        part.x[0] = part.out[0] = (part.x[0] + 1) / 2;
        DT_TRY(is_crowded(planner, &part, &wish, &crowded, err));
    }
    *images = crowded ? 0 : part.x[0];
    return DT_OK;
}

dt_status
cuda_conv_choose(const conv_planner *planner, const conv_key *key, const conv_wish *wish, conv_plan **out,
                 dt_error *err)
{
    conv_plan *p;
    int64_t images = 0;
    DT_TRY(cuda_conv_plan_new(planner, key, wish, &p, err));
    dt_status rc = p->crowded ? find_batch_part(planner, key, *wish, &images, err) : DT_OK;
    if (rc != DT_OK) {
        cuda_conv_destroy(p);
        return rc;
    }
    if (images > 0) {
        (void)cu.cudnnBackendDestroyDescriptor(p->plan);
        p->plan = NULL;
        p->images = images;
    }
    *out = p;
    return DT_OK;
}
