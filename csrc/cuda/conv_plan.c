/* conv_plan.c: cuDNN's graph API. A graph is the convolution and, with a bias, an addition; engines that convert their
 * inputs to fewer bits are never taken, tensor cores not for float32. An engine may refuse as late as at its run: then
 * the next one is planned. */
#include "conv_plan.h"

#define MAX_CONFIGS 64
#define MAX_NOTES CUDNN_NUMERICAL_NOTE_TYPE_COUNT
#define MAX_PARTS 12

/* How tensors are called in the graph and in the pack of pointers. */
enum { ID_X = 1, ID_WEIGHT, ID_BIAS, ID_OUT, ID_SUM };

typedef struct {
    cudnnBackendDescriptor_t parts[MAX_PARTS]; /* of the graph, the graph last */
    int nparts;
} conv_graph;

typedef struct {
    cudnnBackendDescriptor_t plan;
    cuda_device *device;
    int64_t workspace;
    int candidate; /* its place among the engines of the heuristics */
    bool bias_apart;
} conv_plan;

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
        dt_error ignored; /* it may own code that still runs, on any stream */
        (void)!cuda_wait_all(p->device, &ignored);
        (void)cu.cudnnBackendDestroyDescriptor(p->plan);
    }
    dt_free(p);
}

/* ---------------------------------------------------------------- descriptors */

#define SET(d, desc, name, type, count, value)                                                                         \
    CUDA_TRY(d, cudnnBackendSetAttribute, ((desc), CUDNN_ATTR_##name, CUDNN_TYPE_##type, (count), (value)))

/* A new descriptor that the graph owns. */
static dt_status
add_part(cuda_device *d, conv_graph *g, cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t *out, dt_error *err)
{
    *out = NULL;
    CUDA_TRY(d, cudnnBackendCreateDescriptor, (type, out));
    g->parts[g->nparts++] = *out;
    return DT_OK;
}

static void
graph_clear(conv_graph *g)
{
    while (g->nparts > 0) {
        (void)cu.cudnnBackendDestroyDescriptor(g->parts[--g->nparts]);
    }
}

static cudnnBackendAttributeType_t
scalar_type(bool wide)
{
    return wide ? CUDNN_TYPE_DOUBLE : CUDNN_TYPE_FLOAT;
}

static dt_status
add_tensor(cuda_device *d, conv_graph *g, int64_t id, int data_type, const int64_t *shape, const int64_t *strides,
           int64_t alignment, bool is_virtual, cudnnBackendDescriptor_t *out, dt_error *err)
{
    DT_TRY(add_part(d, g, CUDNN_BACKEND_TENSOR_DESCRIPTOR, out, err));
    SET(d, *out, TENSOR_DATA_TYPE, DATA_TYPE, 1, &data_type);
    SET(d, *out, TENSOR_DIMENSIONS, INT64, 4, shape);
    SET(d, *out, TENSOR_STRIDES, INT64, 4, strides);
    SET(d, *out, TENSOR_UNIQUE_ID, INT64, 1, &id);
    SET(d, *out, TENSOR_BYTE_ALIGNMENT, INT64, 1, &alignment);
    SET(d, *out, TENSOR_IS_VIRTUAL, BOOLEAN, 1, &is_virtual);
    CUDA_TRY(d, cudnnBackendFinalize, (*out));
    return DT_OK;
}

static dt_status
add_convolution(cuda_device *d, conv_graph *g, const conv_key *key, int compute, cudnnBackendDescriptor_t x,
                cudnnBackendDescriptor_t weight, cudnnBackendDescriptor_t out, cudnnBackendDescriptor_t *op,
                dt_error *err)
{
    cudnnBackendDescriptor_t conv;
    int mode = CUDNN_CROSS_CORRELATION;
    int64_t ndims = 2;
    bool wide = compute == CUDNN_DATA_DOUBLE;
    const float narrow_scale[] = {1, 0};
    const double wide_scale[] = {1, 0};
    DT_TRY(add_part(d, g, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, &conv, err));
    SET(d, conv, CONVOLUTION_COMP_TYPE, DATA_TYPE, 1, &compute);
    SET(d, conv, CONVOLUTION_CONV_MODE, CONVOLUTION_MODE, 1, &mode);
    SET(d, conv, CONVOLUTION_SPATIAL_DIMS, INT64, 1, &ndims);
    SET(d, conv, CONVOLUTION_PRE_PADDINGS, INT64, 2, key->padding);
    SET(d, conv, CONVOLUTION_POST_PADDINGS, INT64, 2, key->padding);
    SET(d, conv, CONVOLUTION_FILTER_STRIDES, INT64, 2, key->stride);
    SET(d, conv, CONVOLUTION_DILATIONS, INT64, 2, key->dilation);
    CUDA_TRY(d, cudnnBackendFinalize, (conv));
    DT_TRY(add_part(d, g, CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, op, err));
    SET(d, *op, OPERATION_CONVOLUTION_FORWARD_X, BACKEND_DESCRIPTOR, 1, &x);
    SET(d, *op, OPERATION_CONVOLUTION_FORWARD_W, BACKEND_DESCRIPTOR, 1, &weight);
    SET(d, *op, OPERATION_CONVOLUTION_FORWARD_Y, BACKEND_DESCRIPTOR, 1, &out);
    SET(d, *op, OPERATION_CONVOLUTION_FORWARD_CONV_DESC, BACKEND_DESCRIPTOR, 1, &conv);
    const void *scales = wide ? (const void *)wide_scale : narrow_scale;
    const char *beta = (const char *)scales + (wide ? sizeof(double) : sizeof(float));
    CUDA_TRY(d, cudnnBackendSetAttribute,
             (*op, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, scalar_type(wide), 1, scales));
    CUDA_TRY(d, cudnnBackendSetAttribute,
             (*op, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, scalar_type(wide), 1, beta));
    CUDA_TRY(d, cudnnBackendFinalize, (*op));
    return DT_OK;
}

static dt_status
add_addition(cuda_device *d, conv_graph *g, int compute, cudnnBackendDescriptor_t sum, cudnnBackendDescriptor_t bias,
             cudnnBackendDescriptor_t out, cudnnBackendDescriptor_t *op, dt_error *err)
{
    cudnnBackendDescriptor_t pointwise;
    int mode = CUDNN_POINTWISE_ADD;
    DT_TRY(add_part(d, g, CUDNN_BACKEND_POINTWISE_DESCRIPTOR, &pointwise, err));
    SET(d, pointwise, POINTWISE_MODE, POINTWISE_MODE, 1, &mode);
    SET(d, pointwise, POINTWISE_MATH_PREC, DATA_TYPE, 1, &compute);
    CUDA_TRY(d, cudnnBackendFinalize, (pointwise));
    DT_TRY(add_part(d, g, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, op, err));
    SET(d, *op, OPERATION_POINTWISE_PW_DESCRIPTOR, BACKEND_DESCRIPTOR, 1, &pointwise);
    SET(d, *op, OPERATION_POINTWISE_XDESC, BACKEND_DESCRIPTOR, 1, &sum);
    SET(d, *op, OPERATION_POINTWISE_BDESC, BACKEND_DESCRIPTOR, 1, &bias);
    SET(d, *op, OPERATION_POINTWISE_YDESC, BACKEND_DESCRIPTOR, 1, &out);
    CUDA_TRY(d, cudnnBackendFinalize, (*op));
    return DT_OK;
}

static dt_status
graph_build(cuda_device *d, const conv_key *key, bool with_bias, conv_graph *g, dt_error *err)
{
    static const int types[DT_NDTYPES] = {[DT_FLOAT16] = CUDNN_DATA_HALF,
                                          [DT_BFLOAT16] = CUDNN_DATA_BFLOAT16,
                                          [DT_FLOAT32] = CUDNN_DATA_FLOAT,
                                          [DT_FLOAT64] = CUDNN_DATA_DOUBLE};
    int type = types[key->dtype], compute = key->dtype == DT_FLOAT64 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
    int64_t k = key->out[1], bias_shape[] = {1, k, 1, 1};
    int64_t bias_strides[] = {k, 1, key->channels_last ? k : 1, key->channels_last ? k : 1};
    cudnnBackendDescriptor_t x, weight, bias, sum, out, ops[2], graph;
    DT_TRY(add_tensor(d, g, ID_X, type, key->x, key->x_strides, key->alignment, false, &x, err));
    DT_TRY(add_tensor(d, g, ID_WEIGHT, type, key->weight, key->weight_strides, key->alignment, false, &weight, err));
    DT_TRY(add_tensor(d, g, ID_OUT, type, key->out, key->out_strides, key->alignment, false, &out, err));
    sum = out;
    if (with_bias) {
        DT_TRY(add_tensor(d, g, ID_BIAS, type, bias_shape, bias_strides, key->alignment, false, &bias, err));
        DT_TRY(add_tensor(d, g, ID_SUM, compute, key->out, key->out_strides, key->alignment, true, &sum, err));
    }
    DT_TRY(add_convolution(d, g, key, compute, x, weight, sum, &ops[0], err));
    if (with_bias) {
        DT_TRY(add_addition(d, g, compute, sum, bias, out, &ops[1], err));
    }
    DT_TRY(add_part(d, g, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, &graph, err));
    if (d->dnn != NULL) { /* without one, graphs can still be built and looked at on a machine with no GPU */
        SET(d, graph, OPERATIONGRAPH_HANDLE, HANDLE, 1, &d->dnn);
    }
    SET(d, graph, OPERATIONGRAPH_OPS, BACKEND_DESCRIPTOR, with_bias ? 2 : 1, ops);
    CUDA_TRY(d, cudnnBackendFinalize, (graph));
    return DT_OK;
}

/* ---------------------------------------------------------------- engines */

/* Not an error but an answer: this graph or engine is not for this library or device. */
static bool
is_refusal(int status)
{
    return status >= CUDNN_STATUS_NOT_SUPPORTED && status < CUDNN_STATUS_INTERNAL_ERROR;
}

/* Whether config's engine keeps the precision that the dtype promises. */
static dt_status
keeps_precision(cuda_device *d, cudnnBackendDescriptor_t config, dt_dtype dtype, bool *keeps, dt_error *err)
{
    cudnnBackendDescriptor_t engine = NULL;
    int64_t count = 0;
    int notes[MAX_NOTES];
    *keeps = false;
    CUDA_TRY(d, cudnnBackendCreateDescriptor, (CUDNN_BACKEND_ENGINE_DESCRIPTOR, &engine));
    dt_status rc = CUDA_CALL(d, cudnnBackendGetAttribute,
                             (config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &engine));
    if (rc == DT_OK) {
        count = 0;
        rc = CUDA_CALL(d, cudnnBackendGetAttribute,
                       (engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, MAX_NOTES, &count, notes));
    }
    if (rc == DT_OK) {
        *keeps = true;
        for (int64_t i = 0; i < count && i < MAX_NOTES; i++) {
            if (notes[i] == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS ||
                (notes[i] == CUDNN_NUMERICAL_NOTE_TENSOR_CORE && dtype == DT_FLOAT32)) {
                *keeps = false;
            }
        }
    }
    (void)cu.cudnnBackendDestroyDescriptor(engine);
    return rc;
}

/* Makes an execution plan of config; p->plan stays NULL when it is refused. */
static dt_status
plan_config(cuda_device *d, cudnnBackendDescriptor_t config, conv_plan *p, dt_error *err)
{
    cudnnBackendDescriptor_t plan = NULL;
    int64_t count = 0;
    CUDA_TRY(d, cudnnBackendCreateDescriptor, (CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, &plan));
    dt_status rc =
        CUDA_CALL(d, cudnnBackendSetAttribute, (plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &d->dnn));
    if (rc == DT_OK) {
        rc = CUDA_CALL(d, cudnnBackendSetAttribute,
                       (plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &config));
    }
    if (rc == DT_OK) {
        int status = cu.cudnnBackendFinalize(plan);
        if (is_refusal(status)) {
            (void)cu.cudnnBackendDestroyDescriptor(plan);
            return DT_OK;
        }
        rc = cuda_check(d, DT_API_cudnnBackendFinalize, status, err);
    }
    if (rc == DT_OK) {
        rc = CUDA_CALL(d, cudnnBackendGetAttribute,
                       (plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &count, &p->workspace));
    }
    if (rc != DT_OK) {
        (void)cu.cudnnBackendDestroyDescriptor(plan);
        return rc;
    }
    p->plan = plan;
    return DT_OK;
}

/* Plans the first usable config; skip says how many candidates are behind us, and is counted down. */
static dt_status
plan_first(cuda_device *d, cudnnBackendDescriptor_t *configs, int64_t n, dt_dtype dtype, int *skip, conv_plan *p,
           dt_error *err)
{
    for (int64_t i = 0; i < n && p->plan == NULL; i++) {
        bool keeps;
        if (*skip > 0) {
            (*skip)--;
            continue;
        }
        p->candidate++;
        DT_TRY(keeps_precision(d, configs[i], dtype, &keeps, err));
        if (keeps) {
            DT_TRY(plan_config(d, configs[i], p, err));
        }
    }
    return DT_OK;
}

/* Asks the heuristics of one mode, and plans the first engine that they name and that is usable. */
static dt_status
plan_mode(cuda_device *d, cudnnBackendDescriptor_t graph, int mode, dt_dtype dtype, int *skip, conv_plan *p,
          dt_error *err)
{
    cudnnBackendDescriptor_t heuristics = NULL, configs[MAX_CONFIGS] = {NULL};
    int64_t n = 0;
    int made = 0;
    CUDA_TRY(d, cudnnBackendCreateDescriptor, (CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, &heuristics));
    dt_status rc =
        CUDA_CALL(d, cudnnBackendSetAttribute,
                  (heuristics, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &graph));
    if (rc == DT_OK) {
        rc = CUDA_CALL(d, cudnnBackendSetAttribute,
                       (heuristics, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode));
    }
    if (rc == DT_OK) {
        int status = cu.cudnnBackendFinalize(heuristics);
        if (is_refusal(status)) {
            goto done;
        }
        rc = cuda_check(d, DT_API_cudnnBackendFinalize, status, err);
    }
    for (; rc == DT_OK && made < MAX_CONFIGS; made++) {
        rc = CUDA_CALL(d, cudnnBackendCreateDescriptor, (CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, &configs[made]));
        if (rc != DT_OK) {
            break;
        }
    }
    if (rc == DT_OK) {
        int status = cu.cudnnBackendGetAttribute(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                                 CUDNN_TYPE_BACKEND_DESCRIPTOR, MAX_CONFIGS, &n, configs);
        if (is_refusal(status)) {
            goto done;
        }
        rc = cuda_check(d, DT_API_cudnnBackendGetAttribute, status, err);
    }
    if (rc == DT_OK) {
        rc = plan_first(d, configs, n < MAX_CONFIGS ? n : MAX_CONFIGS, dtype, skip, p, err);
    }
done:
    for (int i = 0; i < made; i++) {
        (void)cu.cudnnBackendDestroyDescriptor(configs[i]);
    }
    (void)cu.cudnnBackendDestroyDescriptor(heuristics);
    return rc;
}

/* Plans the graph, passing over the first `skip` candidates; p->plan stays NULL when there is no engine for it. */
static dt_status
plan_graph(cuda_device *d, const conv_key *key, bool with_bias, int skip, conv_plan *p, dt_error *err)
{
    static const int modes[] = {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK};
    conv_graph g = {.nparts = 0};
    p->candidate = skip;
    p->bias_apart = key->has_bias && !with_bias;
    dt_status rc = graph_build(d, key, with_bias, &g, err);
    if (rc == DT_ECUDA && with_bias && is_refusal(err->library_status)) {
        rc = DT_OK; /* not with the bias in one graph */
        graph_clear(&g);
        return rc;
    }
    for (int i = 0; i < 2 && rc == DT_OK && p->plan == NULL; i++) {
        rc = plan_mode(d, g.parts[g.nparts - 1], modes[i], (dt_dtype)key->dtype, &skip, p, err);
    }
    graph_clear(&g);
    return rc;
}

static dt_status
fail_no_engine(cuda_device *d, const conv_key *key, dt_error *err)
{
    dt_fail(
        err, DT_ECUDA, "cuda-error", NULL,
        "cuDNN %zu has no engine for this convolution on cuda:%d (%s): input (%lld, %lld, %lld, %lld), weight (%lld, "
        "%lld, %lld, %lld), %s.",
        cu.cudnnGetVersion(), d->index, d->name, (long long)key->x[0], (long long)key->x[1], (long long)key->x[2],
        (long long)key->x[3], (long long)key->weight[0], (long long)key->weight[1], (long long)key->weight[2],
        (long long)key->weight[3], dt_dtypes[key->dtype].name);
    err->symbol = cuda_api_names[DT_API_cudnnBackendFinalize];
    err->library_status = CUDNN_STATUS_NOT_SUPPORTED;
    err->device = (dt_device){DT_CUDA, d->index};
    return DT_ECUDA;
}

/* A new plan, after those that were refused: with the bias where an engine adds it, without otherwise. */
static dt_status
plan_new(cuda_device *d, const conv_key *key, int skip, bool bias_apart, conv_plan **out, dt_error *err)
{
    conv_plan *p = dt_calloc(1, sizeof(*p));
    if (p == NULL) {
        return dt_fail_nomem(err, sizeof(*p));
    }
    p->device = d;
    dt_status rc = DT_OK;
    bool with_bias = key->has_bias && !bias_apart;
    if (with_bias) {
        rc = plan_graph(d, key, true, skip, p, err);
        skip = 0;
    }
    if (rc == DT_OK && p->plan == NULL) {
        rc = plan_graph(d, key, false, skip, p, err);
    }
    if (rc == DT_OK && p->plan == NULL) {
        rc = fail_no_engine(d, key, err);
    }
    if (rc != DT_OK) {
        cuda_conv2d_destroy(p);
        return rc;
    }
    *out = p;
    return DT_OK;
}

/* ---------------------------------------------------------------- running */

/* *status: what the library answered to the run. */
static dt_status
execute(cuda_device *d, const conv_plan *p, const conv_key *key, const conv_pointers *pointers, CUdeviceptr workspace,
        int *status, dt_error *err)
{
    bool with_bias = key->has_bias && !p->bias_apart;
    const int64_t ids[] = {ID_X, ID_WEIGHT, ID_OUT, ID_BIAS};
    void *addresses[] = {(void *)(uintptr_t)pointers->x, (void *)(uintptr_t)pointers->weight,
                         (void *)(uintptr_t)pointers->out, (void *)(uintptr_t)pointers->bias};
    void *scratch = (void *)(uintptr_t)workspace;
    int64_t count = with_bias ? 4 : 3;
    cudnnBackendDescriptor_t pack = NULL;
    CUDA_TRY(d, cudnnBackendCreateDescriptor, (CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &pack));
    dt_status rc = CUDA_CALL(d, cudnnBackendSetAttribute,
                             (pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, count, ids));
    if (rc == DT_OK) {
        rc = CUDA_CALL(d, cudnnBackendSetAttribute,
                       (pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, count, addresses));
    }
    if (rc == DT_OK) {
        rc = CUDA_CALL(d, cudnnBackendSetAttribute,
                       (pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &scratch));
    }
    if (rc == DT_OK) {
        rc = CUDA_CALL(d, cudnnBackendFinalize, (pack));
    }
    if (rc == DT_OK) {
        DT_COUNT(launches, 1);
        *status = cu.cudnnBackendExecute(d->dnn, p->plan, pack);
    }
    (void)cu.cudnnBackendDestroyDescriptor(pack);
    return rc;
}

static dt_status
run_plan(cuda_device *d, const conv_plan *p, const conv_key *key, const conv_pointers *pointers, int *status,
         dt_error *err)
{
    CUdeviceptr workspace = 0;
    if (p->workspace > 0) {
        DT_TRY(cuda_allocate(d, (size_t)p->workspace, &workspace, err));
    }
    dt_status rc = execute(d, p, key, pointers, workspace, status, err);
    cuda_release(d, workspace, (size_t)p->workspace);
    return rc;
}

static dt_status
open_library(cuda_device *d, dt_error *err)
{
    if (d->dnn != NULL) {
        return DT_OK;
    }
    cudnnHandle_t handle = NULL;
    DT_TRY(cuda_api_need(DT_LIBRARY_CUDNN, err));
    CUDA_TRY(d, cudnnCreate, (&handle));
    d->dnn = handle;
    return DT_OK;
}

/* The handle sends its work where this thread does. */
static dt_status
use_stream(cuda_device *d, dt_error *err)
{
    CUstream stream = cuda_stream(d);
    if (d->dnn_stream != stream) {
        d->dnn_stream = NULL;
        CUDA_TRY(d, cudnnSetStream, (d->dnn, stream));
        d->dnn_stream = stream;
    }
    return DT_OK;
}

static dt_status
run_locked(cuda_device *d, const conv_key *key, const conv_pointers *pointers, bool *bias_apart, dt_error *err)
{
    DT_TRY(open_library(d, err));
    DT_TRY(use_stream(d, err));
    conv_plan *p = cuda_cache_find(&d->convolutions, key);
    bool is_new = p == NULL;
    if (is_new) {
        DT_TRY(plan_new(d, key, 0, false, &p, err));
    }
    for (;;) {
        int status = 0;
        dt_status rc = run_plan(d, p, key, pointers, &status, err);
        if (rc == DT_OK && !is_refusal(status)) {
            rc = cuda_check(d, DT_API_cudnnBackendExecute, status, err);
        } else if (rc == DT_OK) { /* the next candidate */
            int tried = p->candidate;
            bool apart = p->bias_apart;
            if (is_new) {
                cuda_conv2d_destroy(p);
            } else {
                cuda_cache_remove(&d->convolutions, key);
                is_new = true;
            }
            DT_TRY(plan_new(d, key, tried, apart, &p, err));
            continue;
        }
        *bias_apart = p->bias_apart;
        if (is_new && rc == DT_OK) {
            return cuda_cache_put(&d->convolutions, key, p, err);
        }
        if (is_new) {
            cuda_conv2d_destroy(p);
        }
        return rc;
    }
}

dt_status
cuda_conv_run(cuda_device *device, const conv_key *key, const conv_pointers *pointers, bool *bias_apart, dt_error *err)
{
    pthread_mutex_lock(&device->library_lock);
    dt_status rc = run_locked(device, key, pointers, bias_apart, err);
    pthread_mutex_unlock(&device->library_lock);
    return rc;
}
