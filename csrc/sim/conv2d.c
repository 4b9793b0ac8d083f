/* conv2d.c: which of cuDNN's graphs can be had, and running them. The host backend computes; dims, strides, paddings,
 * everything comes from the descriptors. */
#include "cudnn.h"

#include <sched.h>
#include <string.h>

#include "../cpu/cpu.h"

typedef struct {
    dt_array x, weight, bias, y;
    uint64_t x_address, weight_address, bias_address, y_address, workspace;
    size_t workspace_size;
    sim_operation_kind kind;
    dt_conv2d_params params;
    sim_rounding rounding;
    cudnnBackendDescriptor_t plan; /* may own the code */
    bool wants_aligned;            /* loads 16 bytes at once */
    bool drops_nans;               /* ReLU of NaN is 0 */
} convolution;

/* ---------------------------------------------------------------- what can be had */

int
sim_dnn_dtype(int type)
{
    switch (type) {
    case CUDNN_DATA_HALF:
        return DT_FLOAT16;
    case CUDNN_DATA_BFLOAT16:
        return DT_BFLOAT16;
    case CUDNN_DATA_FLOAT:
        return DT_FLOAT32;
    case CUDNN_DATA_DOUBLE:
        return DT_FLOAT64;
    default:
        return -1;
    }
}

static bool
is_size(const int64_t *dims, int64_t n, int64_t c, int64_t h, int64_t w)
{
    return dims[0] == n && dims[1] == c && dims[2] == h && dims[3] == w;
}

cudnnStatus_t
sim_check_convolution(const sim_operation *op)
{
    const sim_tensor *x = &op->x, *w = &op->b, *y = &op->y;
    const sim_convolution *c = &op->convolution;
    int64_t out[2];
    if (x->ndim != 4 || w->ndim != 4 || y->ndim != 4) {
        return sim_dnn_fail(CUDNN_STATUS_BAD_PARAM, "a convolution of two dimensions has tensors of four");
    }
    if (x->dims[1] % w->dims[1] != 0 || w->dims[0] % (x->dims[1] / w->dims[1]) != 0) {
        return sim_dnn_fail(CUDNN_STATUS_BAD_PARAM, "channels of input and weight do not make whole groups");
    }
    for (int i = 0; i < 2; i++) {
        int64_t reach, padded;
        if (__builtin_mul_overflow(c->dilations[i], w->dims[2 + i] - 1, &reach) ||
            __builtin_add_overflow(x->dims[2 + i], c->pre[i], &padded) ||
            __builtin_add_overflow(padded, c->post[i], &padded)) {
            return sim_dnn_fail(CUDNN_STATUS_BAD_PARAM, "sizes overflow");
        }
        out[i] = padded > reach ? (padded - reach - 1) / c->strides[i] + 1 : 0;
    }
    return is_size(y->dims, x->dims[0], w->dims[0], out[0], out[1])
               ? CUDNN_STATUS_SUCCESS
               : sim_dnn_fail(CUDNN_STATUS_BAD_PARAM, "the output has the wrong size");
}

static bool
is_small(const sim_tensor *tensor)
{
    int64_t n = 1;
    for (int64_t i = 0; i < tensor->ndim; i++) {
        if (__builtin_mul_overflow(n, tensor->dims[i], &n) || n > sim_size_limit()) {
            return false;
        }
    }
    return true;
}

/* The operations after the convolution: at most one addition of a bias, then at most one ReLU. */
static cudnnStatus_t
check_tail(const sim_graph *graph)
{
    const sim_tensor *y = &graph->ops[0].y;
    int last_mode = -1;
    for (int64_t i = 1; i < graph->nops; i++) {
        const sim_operation *op = &graph->ops[i];
        bool add = op->kind == SIM_POINTWISE && op->pointwise.mode == CUDNN_POINTWISE_ADD && i == 1;
        bool relu = op->kind == SIM_POINTWISE && op->pointwise.mode == CUDNN_POINTWISE_RELU_FWD &&
                    last_mode != op->pointwise.mode;
        if ((!add && !relu) || op->x.uid != y->uid || !op->x.is_virtual || !y->is_virtual || op->x.ndim != 4 ||
            op->y.ndim != 4 || memcmp(op->x.dims, y->dims, 4 * sizeof(int64_t)) != 0 ||
            memcmp(op->y.dims, y->dims, 4 * sizeof(int64_t)) != 0) {
            return sim_dnn_fail(CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN, "not convolution, bias, ReLU in a chain");
        }
        if (add && (op->b.is_virtual || op->b.ndim != 4 || !is_size(op->b.dims, 1, y->dims[1], 1, 1))) {
            return sim_dnn_fail(CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN, "the bias is not [1, K, 1, 1]");
        }
        last_mode = op->pointwise.mode;
        y = &op->y;
    }
    return y->is_virtual ? sim_dnn_fail(CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN, "the result is virtual")
                         : CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t
sim_check_graph(const sim_graph *graph)
{
    const sim_operation *first = &graph->ops[0], *last = &graph->ops[graph->nops - 1];
    if (sim_is_attention(graph)) {
        return sim_check_attention(graph);
    }
    if (first->kind < SIM_CONVOLUTION || (first->kind != SIM_CONVOLUTION && graph->nops > 1) || first->x.is_virtual ||
        first->b.is_virtual) {
        return sim_dnn_fail(CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN,
                            "the graph is no convolution with a tail, and no gradient alone");
    }
    cudnnStatus_t status = check_tail(graph);
    if (status != CUDNN_STATUS_SUCCESS) {
        return status;
    }
    int type = first->x.dtype, compute = type == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
    bool same = sim_dnn_dtype(type) >= 0 && first->b.dtype == type && last->y.dtype == type &&
                first->convolution.compute == compute;
    for (int64_t i = 1; i < graph->nops; i++) {
        const sim_operation *op = &graph->ops[i];
        same &= op->pointwise.compute == compute && (op->pointwise.mode != CUDNN_POINTWISE_ADD || op->b.dtype == type);
    }
    if (!same) {
        return sim_dnn_fail(CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE, "data types that do not go together");
    }
    if (first->alpha != 1.0f || first->alpha_double != 1.0 || first->beta != 0.0f || first->beta_double != 0.0 ||
        first->convolution.mode != CUDNN_CROSS_CORRELATION || !is_small(&first->x) || !is_small(&first->b) ||
        !is_small(&first->y)) {
        return sim_dnn_fail(CUDNN_STATUS_NOT_SUPPORTED, "alpha, beta, the mode, or a tensor of 2**31 elements or more");
    }
    return CUDNN_STATUS_SUCCESS;
}

static bool
is_fused(const sim_graph *graph, int mode)
{
    return graph->nops > 1 && graph->ops[1].pointwise.mode == mode;
}

static bool
is_channels_last(const sim_tensor *tensor)
{
    return tensor->strides[1] == 1 && tensor->dims[1] > 1;
}

#define NAMED_A SIM_DNN_MAX_CONFIGS /* what a list is cut at */
#define NAMED_FALLBACK 4

static int
repeat(int64_t engine, int times, int64_t engines[SIM_DNN_MAX_CONFIGS], int n)
{
    for (; times > 0 && n < SIM_DNN_MAX_CONFIGS; times--) {
        engines[n++] = engine;
    }
    return n;
}

/* From the real library, 9.28 planning for compute capability 9.0. Mode A names tensor cores, each engine with many
 * settings, until the list is full, so that what is strict stands in the fallback list alone; for float64 it names
 * nothing. Engines that are compiled at run time come for channels last only; a ReLU right after the convolution has no
 * other. A convolution alone of less aligned tensors has no tensor cores; a fused one is planned as if it were aligned.
 * Expected: what mode A names without tensor cores converts its inputs down. */
int
sim_list_engines(const sim_graph *graph, int mode, int64_t engines[SIM_DNN_MAX_CONFIGS])
{
    const sim_operation *conv = &graph->ops[0];
    bool compiled = is_channels_last(&conv->x), alone = graph->nops == 1;
    bool aligned = conv->x.alignment >= 16 && conv->b.alignment >= 16 && conv->y.alignment >= 16;
    int n = 0;
    if (sim_is_attention(graph)) { /* seen for 9.19 and 9.28 */
        return mode == CUDNN_HEUR_MODE_A ? repeat(SIM_ENGINE_COMPILED, 4, engines, n) : 0;
    }
    if (is_fused(graph, CUDNN_POINTWISE_RELU_FWD)) {
        return compiled ? repeat(SIM_ENGINE_COMPILED, mode == CUDNN_HEUR_MODE_A ? 10 : 4, engines, n) : 0;
    }
    if (mode == CUDNN_HEUR_MODE_FALLBACK) {
        n = repeat(SIM_ENGINE_PLAIN, alone ? 3 : 2, engines, n);
        return repeat(SIM_ENGINE_COMPILED, compiled, engines, n);
    }
    if (conv->x.dtype == CUDNN_DATA_DOUBLE) {
        return 0;
    }
    n = repeat(SIM_ENGINE_TENSOR_CORE, aligned || !alone ? NAMED_A - 1 : 0, engines, n);
    return repeat(SIM_ENGINE_DOWN_CONVERT, 1, engines, n);
}

int
sim_engine_bound(int mode)
{
    return mode == CUDNN_HEUR_MODE_A ? NAMED_A : NAMED_FALLBACK;
}

static int64_t
bytes_of(const sim_tensor *t)
{
    return t->dims[0] * t->dims[1] * t->dims[2] * t->dims[3] * (int64_t)dt_itemsize((dt_dtype)sim_dnn_dtype(t->dtype));
}

/* As planned by the real library: with channels first tensor cores work on transposed copies of all three tensors. */
static int64_t
workspace_of(const sim_engine *engine)
{
    if (sim_is_attention(&engine->graph)) {
        return SIM_ATTENTION_WORKSPACE;
    }
    const sim_operation *first = &engine->graph.ops[0], *last = &engine->graph.ops[engine->graph.nops - 1];
    const sim_tensor *w = &first->b;
    switch (engine->index) {
    case SIM_ENGINE_TENSOR_CORE:
        return 1024 + (is_channels_last(&first->x) ? 0 : bytes_of(&first->x) + bytes_of(w) + bytes_of(&last->y));
    case SIM_ENGINE_DOWN_CONVERT:
        return 1 << 18;
    case SIM_ENGINE_PLAIN:
        return engine->graph.nops == 1 && w->dims[2] * w->dims[3] > 1 ? 3072 : 0;
    default:
        return 0;
    }
}

cudnnStatus_t
sim_check_plan(sim_plan *plan)
{
    cudnnStatus_t status = sim_check_graph(&plan->engine.graph);
    if (status == CUDNN_STATUS_SUCCESS) {
        plan->workspace = workspace_of(&plan->engine);
    }
    return status;
}

/* ---------------------------------------------------------------- running it */

enum { X, WEIGHT, Y };

static dt_status
compute(const convolution *call, dt_array arrays[3], const dt_array *bias, dt_error *err)
{
    bool made = true;
    switch (call->kind) {
    case SIM_INPUT_GRAD:
        return cpu_conv2d_input_grad(&arrays[Y], &arrays[WEIGHT], &call->params, &arrays[X], &made, err);
    case SIM_WEIGHT_GRAD:
        return cpu_conv2d_weight_grad(&arrays[X], &arrays[Y], &call->params, &arrays[WEIGHT], &made, err);
    default:
        return cpu_conv2d(&arrays[X], &arrays[WEIGHT], bias, &call->params, &arrays[Y], err);
    }
}

static CUresult
convolve_on_host(sim_device *device, const convolution *call, dt_error *err)
{
    static const int results[] = {[SIM_CONVOLUTION] = Y, [SIM_INPUT_GRAD] = X, [SIM_WEIGHT_GRAD] = WEIGHT};
    dt_storage storage[4];
    void *copies[3] = {NULL, NULL, NULL};
    dt_array arrays[] = {call->x, call->weight, call->y}, bias = call->bias;
    const uint64_t addresses[] = {call->x_address, call->weight_address, call->y_address};
    CUresult status = CUDA_SUCCESS;
    for (int i = 0; i < 3 && status == CUDA_SUCCESS; i++) {
        status = sim_bind(device, addresses[i], &storage[i], &arrays[i]);
        if (status == CUDA_SUCCESS && i != results[call->kind]) {
            status = sim_round(call->rounding, &storage[i], &arrays[i], &copies[i]);
        }
    }
    if (status == CUDA_SUCCESS && call->bias_address != 0) {
        status = sim_bind(device, call->bias_address, &storage[3], &bias);
    }
    if (status == CUDA_SUCCESS) {
        status = sim_from_status(compute(call, arrays, call->bias_address ? &bias : NULL, err));
    }
    if (status == CUDA_SUCCESS && call->drops_nans) {
        sim_drop_nans(&arrays[results[call->kind]]);
    }
    for (int i = 0; i < 3; i++) {
        dt_free(copies[i]);
    }
    return status;
}

static CUresult
run_convolution(sim_device *device, const sim_item *item)
{
    convolution *call = item->held;
    dt_error err;
    uint64_t addresses = call->x_address | call->weight_address | call->bias_address | call->y_address;
    if (sim_handle_get(SIM_DNN_DESC, call->plan) == NULL) {
        return CUDA_ERROR_ILLEGAL_INSTRUCTION;
    }
    if (call->wants_aligned && addresses % 16 != 0) {
        return CUDA_ERROR_MISALIGNED_ADDRESS;
    }
    CUresult status = sim_scribble(device, call->workspace, call->workspace_size);
    return status == CUDA_SUCCESS ? convolve_on_host(device, call, &err) : status;
}

static dt_array
array_of(const sim_tensor *tensor)
{
    dt_array a = DT_ARRAY_EMPTY;
    a.dtype = (uint8_t)sim_dnn_dtype(tensor->dtype);
    a.ndim = (uint8_t)tensor->ndim;
    memcpy(a.shape, tensor->dims, sizeof(a.shape));
    memcpy(a.strides, tensor->strides, sizeof(a.strides));
    return a;
}

cudnnStatus_t
sim_find_address(const sim_pack *pack, const sim_tensor *tensor, uint64_t *address)
{
    for (int64_t i = 0; i < pack->nuids; i++) {
        if (pack->uids[i] == tensor->uid && pack->pointers[i] != NULL) {
            *address = (uint64_t)(uintptr_t)pack->pointers[i];
            return *address % (uint64_t)tensor->alignment == 0
                       ? CUDNN_STATUS_SUCCESS
                       : sim_dnn_fail(CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER,
                                      "a pointer has not the alignment promised");
        }
    }
    return sim_dnn_fail(CUDNN_STATUS_BAD_PARAM, "the variant pack lacks a tensor of the plan");
}

static cudnnStatus_t
collect(const sim_plan *plan, const sim_pack *pack, convolution *call)
{
    static const sim_rounding roundings[SIM_NENGINES] = {
        [SIM_ENGINE_TENSOR_CORE] = SIM_TF32, [SIM_ENGINE_DOWN_CONVERT] = SIM_HALF};
    const sim_graph *graph = &plan->engine.graph;
    const sim_operation *conv = &graph->ops[0];
    const sim_tensor *y = &graph->ops[graph->nops - 1].y;
    memset(call, 0, sizeof(*call));
    call->kind = conv->kind;
    call->x = array_of(&conv->x);
    call->weight = array_of(&conv->b);
    call->y = array_of(y);
    call->params.groups = conv->x.dims[1] / conv->b.dims[1];
    for (int i = 0; i < 2; i++) {
        call->params.stride[i] = conv->convolution.strides[i];
        call->params.pad_before[i] = conv->convolution.pre[i];
        call->params.pad_after[i] = conv->convolution.post[i];
        call->params.dilation[i] = conv->convolution.dilations[i];
    }
    call->rounding = roundings[plan->engine.index];
    call->wants_aligned = plan->engine.index == SIM_ENGINE_TENSOR_CORE;
    call->workspace = (uint64_t)(uintptr_t)pack->workspace;
    call->workspace_size = (size_t)plan->workspace;
    if (plan->workspace > 0 && pack->workspace == NULL) {
        return sim_dnn_fail(CUDNN_STATUS_BAD_PARAM, "the plan needs a workspace");
    }
    cudnnStatus_t status = sim_find_address(pack, &conv->x, &call->x_address);
    if (status == CUDNN_STATUS_SUCCESS) {
        status = sim_find_address(pack, &conv->b, &call->weight_address);
    }
    if (status == CUDNN_STATUS_SUCCESS) {
        status = sim_find_address(pack, y, &call->y_address);
    }
    for (int64_t i = 1; i < graph->nops && status == CUDNN_STATUS_SUCCESS; i++) {
        const sim_operation *op = &graph->ops[i];
        if (op->pointwise.mode == CUDNN_POINTWISE_ADD) {
            call->bias = array_of(&op->b);
            call->bias.ndim = 1;
            call->bias.shape[0] = op->b.dims[1];
            call->bias.strides[0] = op->b.strides[1];
            status = sim_find_address(pack, &op->b, &call->bias_address);
        } else {
            call->params.activation = DT_ACTIVATION_RELU;
            call->drops_nans = op->pointwise.nans != CUDNN_PROPAGATE_NAN;
        }
    }
    return status;
}

#define CONVOLUTION_TOUCHES 5

/* Makes the item that runs the plan, and says what it touches. */
static cudnnStatus_t
convolution_item(const sim_plan *plan, const sim_pack *pack, cudnnBackendDescriptor_t handle, sim_item *item,
                 sim_touch touches[SIM_MAX_TOUCHES])
{
    convolution call;
    cudnnStatus_t status = collect(plan, pack, &call);
    if (status != CUDNN_STATUS_SUCCESS) {
        return status;
    }
    call.plan = handle;
    *item = (sim_item){.run = run_convolution, .held = dt_malloc(sizeof(call))};
    if (item->held == NULL) {
        return sim_dnn_fail(CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED, "no memory to queue the work");
    }
    memcpy(item->held, &call, sizeof(call));
    touches[0] = (sim_touch){call.x_address, sim_extent(&call.x), call.kind == SIM_INPUT_GRAD};
    touches[1] = (sim_touch){call.weight_address, sim_extent(&call.weight), call.kind == SIM_WEIGHT_GRAD};
    touches[2] = (sim_touch){call.bias_address, call.bias_address != 0 ? sim_extent(&call.bias) : 0, false};
    touches[3] = (sim_touch){call.y_address, sim_extent(&call.y), call.kind == SIM_CONVOLUTION};
    touches[4] = (sim_touch){call.workspace, call.workspace_size, true};
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t
sim_cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan_handle,
                        cudnnBackendDescriptor_t pack_handle)
{
    sim_device *device;
    sim_stream *stream;
    sim_item item;
    sim_touch touches[SIM_MAX_TOUCHES];
    sim_dnn *dnn = sim_handle_get(SIM_DNN, handle);
    if (dnn == NULL || dnn->busy) {
        return dnn ? sim_dnn_fail(CUDNN_STATUS_INTERNAL_ERROR, "two threads use one handle")
                   : sim_dnn_fail(CUDNN_STATUS_BAD_PARAM, "not a handle");
    }
    /* gives another thread that uses this handle at the same time the chance to be caught */
    dnn->busy = true;
    sim_unlock();
    sched_yield();
    sim_lock();
    dnn->busy = false;
    const sim_dnn_desc *plan = sim_handle_get(SIM_DNN_DESC, plan_handle);
    const sim_dnn_desc *pack = sim_handle_get(SIM_DNN_DESC, pack_handle);
    if (plan == NULL || plan->type != CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR || pack == NULL ||
        pack->type != CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR) {
        return sim_dnn_fail(CUDNN_STATUS_BAD_PARAM, "not a plan and a variant pack");
    }
    if (!plan->final || !pack->final) {
        return sim_dnn_fail(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, "the plan or the variant pack is not finalized");
    }
    const sim_dnn *planned = sim_handle_get(SIM_DNN, plan->plan.handle);
    CUresult ready = sim_current(&device);
    if (ready != CUDA_SUCCESS) {
        bool lost = ready != CUDA_ERROR_NOT_INITIALIZED && ready != CUDA_ERROR_INVALID_CONTEXT;
        return lost ? sim_dnn_fail(CUDNN_STATUS_EXECUTION_FAILED, "the device is lost")
                    : sim_dnn_fail(CUDNN_STATUS_NOT_INITIALIZED, "no device is current");
    }
    if (planned == NULL || planned->device != dnn->device || device != dnn->device ||
        sim_stream_find(device, dnn->stream, &stream) != CUDA_SUCCESS) {
        return sim_dnn_fail(CUDNN_STATUS_BAD_PARAM,
                            "the handle, its stream, the plan and the context are of several devices");
    }
    const bool attends = sim_is_attention(&plan->plan.engine.graph);
    const int ntouches = attends ? SIM_MAX_TOUCHES : CONVOLUTION_TOUCHES;
    cudnnStatus_t status = attends ? sim_attention_item(&plan->plan, &pack->pack, plan_handle, &item, touches)
                                   : convolution_item(&plan->plan, &pack->pack, plan_handle, &item, touches);
    if (status != CUDNN_STATUS_SUCCESS) {
        return status;
    }
    CUresult queued = sim_enqueue_work(stream, &item, "cudnnBackendExecute", touches, ntouches);
    if (queued != CUDA_SUCCESS) {
        dt_free(item.held);
        return queued == CUDA_ERROR_OUT_OF_MEMORY ? sim_dnn_fail(CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED,
                                                                 "no memory for the work queued before")
                                                  : sim_dnn_fail(CUDNN_STATUS_EXECUTION_FAILED, "the device is lost");
    }
    return sim_sent(stream) == CUDA_SUCCESS ? CUDNN_STATUS_SUCCESS
                                            : sim_dnn_fail(CUDNN_STATUS_EXECUTION_FAILED, "the device is lost");
}
