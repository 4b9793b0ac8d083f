/* attention_plan.c: attention of the half types, and its gradient, by kernels that cuDNN compiles for a shape. Scores
 * are never in memory. A plan takes a good part of a second, so that little work goes another way. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "../launch/launch.h"
#include "../memory/memory.h"
#include "../plans.h"
#include "attention.h"
#include "attention_graph.h"

#define WIDTH 8            /* numbers of the half types that are loaded at once */
#define SHARE_OF_MEMORY 16 /* of a device's: at most this part is workspace */

size_t
cuda_attention_key_size(void)
{
    return sizeof(attention_key);
}

/* ---------------------------------------------------------------- plans */

/* Bytes of workspace that a plan may want: that of the gradient is a matrix of scores, which grows with the square of
 * the length. A share of the whole device, so that what a shape goes by does not hang on what is free. */
static int64_t
room_for_workspace(void)
{
    const int64_t limit = cuda_workspace_limit();
    size_t free_bytes, total;
    if (cu.cuMemGetInfo_v2(&free_bytes, &total) != 0) {
        return limit;
    }
    const int64_t share = (int64_t)(total / SHARE_OF_MEMORY);
    return share < limit ? share : limit;
}

/* p->plan stays NULL where the library has none. */
static dt_status
plan_graph(const conv_planner *planner, const attention_key *key, conv_plan *p, dt_error *err)
{
    const int64_t room = planner->device != NULL ? room_for_workspace() : INT64_MAX;
    const conv_wish wish = {0, 0, room, true};
    conv_graph graph = {.nparts = 0};
    dt_status rc = cuda_attention_build(planner, key, &graph, err);
    if (rc == DT_OK) {
        rc = cuda_graph_plan(planner, false, &graph, &wish, p, err);
    } else if (rc == DT_ECUDA && cuda_conv_refused(err->library_status)) {
        rc = DT_OK;
    }
    cuda_conv_graph_clear(&graph);
    if (rc == DT_OK && p->plan != NULL && p->workspace > wish.room) {
        (void)cu.cudnnBackendDestroyDescriptor(p->plan);
        p->plan = NULL;
    }
    return rc;
}

/* No plan is an answer, which is kept: the library has none for this shape or device, or there are plans for many
 * already, as these lengths may never come again. */
static dt_status
make_plan(const conv_planner *planner, const attention_key *key, int *shapes, conv_plan **out, dt_error *err)
{
    conv_plan *p = dt_calloc(1, sizeof(*p));
    if (p == NULL) {
        return dt_fail_nomem(err, sizeof(*p));
    }
    p->device = planner->device;
    dt_status rc = *shapes < cuda_settings.attention_shapes ? plan_graph(planner, key, p, err) : DT_OK;
    *shapes += p->plan != NULL;
    if (rc != DT_OK) {
        cuda_conv_destroy(p);
        return rc;
    }
    *out = p;
    return DT_OK;
}

static dt_status
find_plan(cuda_device *d, const attention_key *key, conv_plan **out, dt_error *err)
{
    *out = cuda_cache_find(&d->attentions, key);
    if (*out != NULL) {
        return DT_OK;
    }
    const conv_planner planner = {d, d->dnn, NULL};
    DT_TRY(make_plan(&planner, key, &d->attention_shapes[key->kind], out, err));
    return cuda_cache_put(&d->attentions, key, *out, err);
}

static dt_status
remember_none(cuda_device *d, const attention_key *key, dt_error *err)
{
    conv_plan *p = dt_calloc(1, sizeof(*p));
    return p != NULL ? cuda_cache_put(&d->attentions, key, p, err) : dt_fail_nomem(err, sizeof(*p));
}

/* A plan that refuses as late as at its run is given up. */
static dt_status
run_locked(cuda_device *d, const attention_key *key, const graph_pointers *pointers, bool *made, dt_error *err)
{
    conv_plan *p;
    int status = 0;
    DT_TRY(cuda_graph_open_library(d, err));
    DT_TRY(find_plan(d, key, &p, err));
    if (p->plan == NULL) {
        return DT_OK;
    }
    DT_TRY(cuda_graph_run_plan(d, p, pointers, &status, err));
    if (cuda_conv_refused(status)) {
        return remember_none(d, key, err);
    }
    *made = status == 0;
    return cuda_check(d, DT_API_cudnnBackendExecute, status, err);
}

/* *made is false where the library has no plan, or finds no memory. */
static dt_status
run_plan(cuda_device *d, const attention_key *key, const graph_pointers *pointers, bool *made, dt_error *err)
{
    *made = false;
    pthread_mutex_lock(&d->library_lock);
    dt_status rc = run_locked(d, key, pointers, made, err);
    pthread_mutex_unlock(&d->library_lock);
    return cuda_conv_device_is_full(rc, err) ? DT_OK : rc;
}

/* ---------------------------------------------------------------- keys */

/* The dimensions of x as (batch, heads, rows, columns); whether the library can read them. */
static bool
describe(const dt_array *x, int64_t shape[4], int64_t strides[4])
{
    const int less = 4 - x->ndim;
    int64_t dense = 1;
    bool good = less >= 0;
    for (int d = 3; good && d >= 0; d--) {
        const int own = d - less;
        shape[d] = own >= 0 ? x->shape[own] : 1;
        strides[d] = shape[d] > 1 ? x->strides[own] : d == 3 ? 1 : dense;
        good = strides[d] > 0 && (d == 3 ? strides[d] == 1 : strides[d] % WIDTH == 0);
        dense = dense > strides[d] * shape[d] ? dense : strides[d] * shape[d];
    }
    return good && shape[3] % WIDTH == 0 && cuda_address(x) % CONV_ALIGNMENT == 0;
}

/* A dense operand of that shape. */
static void
describe_dense(attention_key *k, int operand, const int64_t shape[4])
{
    const int64_t strides[] = {shape[1] * shape[2] * shape[3], shape[2] * shape[3], shape[3], 1};
    memcpy(k->shape[operand], shape, sizeof(k->shape[operand]));
    memcpy(k->strides[operand], strides, sizeof(strides));
}

/* What the gradient writes; what comes back may have other strides. */
static void
describe_gradient(attention_key *k)
{
    if (k->shape[ATTENTION_GRAD][0] == 0) {
        describe_dense(k, ATTENTION_GRAD, k->shape[ATTENTION_OUT]);
    }
    describe_dense(k, ATTENTION_DQUERY, k->shape[ATTENTION_QUERY]);
    describe_dense(k, ATTENTION_DKEY, k->shape[ATTENTION_KEY]);
    describe_dense(k, ATTENTION_DVALUE, k->shape[ATTENTION_VALUE]);
}

/* Whether there is so much to do that it pays. */
static bool
is_much(const attention_key *k)
{
    const int64_t *q = k->shape[ATTENTION_QUERY];
    const double work = (double)q[0] * (double)q[1] * (double)q[2] * (double)k->shape[ATTENTION_KEY][2];
    return work * (double)(q[3] + k->shape[ATTENTION_VALUE][3]) >= (double)cuda_settings.attention_work;
}

/* Of query, key, value and what has the shape of the result; whether that goes by cuDNN. */
static bool
make_key(int kind, const dt_array *query, const dt_array *key, const dt_array *value, const dt_array *result,
         const dt_attention_params *params, attention_key *k)
{
    const dt_array *arrays[] = {query, key, value, result};
    const int operands[] = {ATTENTION_QUERY, ATTENTION_KEY, ATTENTION_VALUE,
                            kind == ATTENTION_FORWARD ? ATTENTION_OUT : ATTENTION_GRAD};
    memset(k, 0, sizeof(*k));
    k->kind = kind;
    k->dtype = query->dtype;
    k->causal = params->causal;
    /* The library's kernels scale what was the largest before. */
    const bool scaled = params->scale >= (double)FLT_MIN && params->scale <= (double)FLT_MAX;
    if (!scaled || dt_itemsize((dt_dtype)query->dtype) != 2 || dt_array_numel(result) == 0 ||
        dt_array_numel(key) == 0) {
        return false;
    }
    for (int i = 0; i < 4; i++) {
        if (!describe(arrays[i], k->shape[operands[i]], k->strides[operands[i]])) {
            return false;
        }
    }
    dt_error ignored;
    return is_much(k) && cuda_api_need(DT_LIBRARY_CUDNN, &ignored) == DT_OK; /* another way does without */
}

static void
point(graph_pointers *pointers, int64_t id, const void *address)
{
    pointers->ids[pointers->count] = id;
    pointers->addresses[pointers->count++] = (void *)(uintptr_t)address;
}

static const void *
place(CUdeviceptr address)
{
    return (const void *)(uintptr_t)address;
}

/* ---------------------------------------------------------------- the calls */

static const float hidden = -INFINITY, unit = 1;

static void
point_inputs(graph_pointers *pointers, const dt_array *query, const dt_array *key, const dt_array *value, bool causal,
             const float *scale)
{
    point(pointers, ATTENTION_QUERY + 1, place(cuda_address(query)));
    point(pointers, ATTENTION_KEY + 1, place(cuda_address(key)));
    point(pointers, ATTENTION_VALUE + 1, place(cuda_address(value)));
    point(pointers, ATTENTION_ID_SCALE, scale);
    if (causal) {
        point(pointers, ATTENTION_ID_HIDDEN, &hidden);
    }
}

dt_status
cuda_attention_graph(const dt_array *query, const dt_array *key, const dt_array *value,
                     const dt_attention_params *params, dt_array *out, bool *made, dt_error *err)
{
    cuda_device *d;
    attention_key k;
    graph_pointers pointers = {.count = 0};
    const float scale = (float)params->scale;
    *made = false;
    if (!make_key(ATTENTION_FORWARD, query, key, value, out, params, &k)) {
        return DT_OK;
    }
    DT_TRY(cuda_enter(out->storage->device.index, &d, err));
    point_inputs(&pointers, query, key, value, params->causal, &scale);
    point(&pointers, ATTENTION_OUT + 1, place(cuda_address(out)));
    return run_plan(d, &k, &pointers, made, err);
}

/* The result again, with the logarithms of what its rows add up to, and then the gradients. */
static dt_status
run_gradient(cuda_device *d, attention_key *k, const graph_pointers *inputs, const dt_array *grad, CUdeviceptr result,
             CUdeviceptr columns, dt_array *out, bool *made, dt_error *err)
{
    const int64_t *q = k->shape[ATTENTION_QUERY], *keys = k->shape[ATTENTION_KEY];
    const CUdeviceptr sums = columns + (CUdeviceptr)(q[0] * q[1] * ((q[2] + 3) / 4 * 4)) * sizeof(float);
    const CUdeviceptr query_grad = cuda_address(out);
    const CUdeviceptr key_grad = query_grad + (CUdeviceptr)(2 * q[0] * q[1] * q[2] * q[3]);
    const CUdeviceptr value_grad = key_grad + (CUdeviceptr)(2 * keys[0] * keys[1] * keys[2] * keys[3]);
    graph_pointers forward = *inputs, backward = *inputs;
    attention_key kept = *k;
    kept.kind = ATTENTION_KEPT;
    memset(kept.shape + ATTENTION_GRAD, 0, (ATTENTION_OPERANDS - ATTENTION_GRAD) * sizeof(kept.shape[0]));
    memset(kept.strides + ATTENTION_GRAD, 0, (ATTENTION_OPERANDS - ATTENTION_GRAD) * sizeof(kept.strides[0]));
    point(&forward, ATTENTION_OUT + 1, place(result));
    point(&forward, ATTENTION_ID_LOGARITHMS, place(columns));
    DT_TRY(run_plan(d, &kept, &forward, made, err));
    if (!*made) {
        return DT_OK;
    }
    point(&backward, ATTENTION_OUT + 1, place(result));
    point(&backward, ATTENTION_GRAD + 1, place(cuda_address(grad)));
    point(&backward, ATTENTION_DQUERY + 1, place(query_grad));
    point(&backward, ATTENTION_DKEY + 1, place(key_grad));
    point(&backward, ATTENTION_DVALUE + 1, place(value_grad));
    point(&backward, ATTENTION_ID_LOGARITHMS, place(columns));
    point(&backward, ATTENTION_ID_SUMS, place(sums));
    point(&backward, ATTENTION_ID_ONE, &unit);
    return run_plan(d, k, &backward, made, err);
}

dt_status
cuda_attention_grad(const dt_array *query, const dt_array *key, const dt_array *value, const dt_array *grad,
                    const dt_attention_params *params, dt_array *out, bool *made, dt_error *err)
{
    cuda_device *d;
    attention_key k;
    graph_pointers inputs = {.count = 0};
    const float scale = (float)params->scale;
    cuda_temporary result = CUDA_TEMPORARY_EMPTY, columns = CUDA_TEMPORARY_EMPTY;
    *made = false;
    if (!make_key(ATTENTION_GRADIENT, query, key, value, grad, params, &k) || cuda_address(out) % CONV_ALIGNMENT != 0) {
        return DT_OK;
    }
    DT_TRY(cuda_enter(out->storage->device.index, &d, err));
    describe_dense(&k, ATTENTION_OUT, k.shape[ATTENTION_GRAD]);
    describe_gradient(&k);
    const int64_t *q = k.shape[ATTENTION_QUERY];
    const dt_array like = {.ndim = 1, .shape = {2 * q[0] * q[1] * ((q[2] + 3) / 4 * 4)}}; /* two of them, aligned */
    point_inputs(&inputs, query, key, value, params->causal, &scale);
    dt_status rc = cuda_temporary_try(&result, d, grad, (dt_dtype)query->dtype, err);
    if (rc == DT_OK) {
        rc = cuda_temporary_try(&columns, d, &like, DT_FLOAT32, err);
    }
    if (rc == DT_OK) {
        rc = run_gradient(d, &k, &inputs, grad, cuda_address(&result.array), cuda_address(&columns.array), out, made,
                          err);
    }
    cuda_temporary_clear(&columns);
    cuda_temporary_clear(&result);
    return rc == DT_EOUTOFMEMORY ? DT_OK : rc;
}

/* ---------------------------------------------------------------- described */

dt_status
cuda_attention_describe(const char *json, size_t length, dt_dtype dtype, const int64_t query[4], const int64_t key[4],
                        const int64_t value[4], bool causal, int kind, bool *known, dt_error *err)
{
    conv_planner planner = {NULL, NULL, NULL};
    conv_plan *p = NULL;
    attention_key k;
    int shapes = 0;
    memset(&k, 0, sizeof(k));
    k.kind = kind;
    k.dtype = dtype;
    k.causal = causal;
    describe_dense(&k, ATTENTION_QUERY, query);
    describe_dense(&k, ATTENTION_KEY, key);
    describe_dense(&k, ATTENTION_VALUE, value);
    describe_dense(&k, ATTENTION_OUT, (const int64_t[]){query[0], query[1], query[2], value[3]});
    if (kind == ATTENTION_GRADIENT) {
        describe_gradient(&k);
    }
    DT_TRY(cuda_api_need(DT_LIBRARY_CUDNN, err));
    dt_status rc = cuda_describe_device(json, length, &planner.properties, err);
    if (rc == DT_OK) {
        rc = make_plan(&planner, &k, &shapes, &p, err);
    }
    if (rc == DT_OK) {
        *known = p->plan != NULL || p->unloadable;
        cuda_conv_destroy(p);
    }
    if (planner.properties != NULL) {
        (void)cu.cudnnBackendDestroyDescriptor(planner.properties);
    }
    return rc;
}
