/* attention.c: the graph of cuDNN that is attention: a product, its scale, hidden keys where it is causal, a softmax,
 * a product. The host backend computes it; which tensors it reads comes from the descriptors. */
#include <math.h>
#include <string.h>

#include "../cpu/cpu.h"
#include "cudnn.h"

/* What follows the first product, each operation reading what one before it wrote. */
typedef struct {
    sim_operation_kind kind;
    int mode;
    int x, b, t;   /* how many operations before; 0: none, or a number of the host */
    bool by_value; /* b is a number of the host */
} step;

static const step scaled[] = {{SIM_POINTWISE, CUDNN_POINTWISE_MUL, 1, 0, 0, true}};
static const step hidden[] = {{SIM_POINTWISE, CUDNN_POINTWISE_GEN_INDEX, 1, 0, 0, false},
                              {SIM_POINTWISE, CUDNN_POINTWISE_GEN_INDEX, 2, 0, 0, false},
                              {SIM_POINTWISE, CUDNN_POINTWISE_CMP_GE, 2, 1, 0, false},
                              {SIM_POINTWISE, CUDNN_POINTWISE_BINARY_SELECT, 4, 0, 1, true}};
static const step softmax[] = {
    {SIM_REDUCTION, CUDNN_REDUCE_TENSOR_MAX, 1, 0, 0, false}, {SIM_POINTWISE, CUDNN_POINTWISE_SUB, 2, 1, 0, false},
    {SIM_POINTWISE, CUDNN_POINTWISE_EXP, 1, 0, 0, false},     {SIM_REDUCTION, CUDNN_REDUCE_TENSOR_ADD, 1, 0, 0, false},
    {SIM_POINTWISE, CUDNN_POINTWISE_LOG, 1, 0, 0, false},     {SIM_POINTWISE, CUDNN_POINTWISE_ADD, 5, 1, 0, false},
    {SIM_POINTWISE, CUDNN_POINTWISE_DIV, 4, 3, 0, false},     {SIM_MATMUL, 0, 1, 0, 0, false}};
#define COUNT(steps) ((int64_t)(sizeof(steps) / sizeof((steps)[0])))

typedef struct {
    dt_array arrays[4]; /* query, key, value, out; key is not transposed */
    uint64_t addresses[4], workspace;
    dt_attention_params params;
    cudnnBackendDescriptor_t plan;
} attention;

enum { QUERY, KEY, VALUE, OUT };

bool
sim_is_attention(const sim_graph *graph)
{
    return graph->ops[0].kind == SIM_MATMUL;
}

static bool
is_causal(const sim_graph *graph)
{
    return graph->nops > 1 + COUNT(scaled) + COUNT(softmax);
}

static bool
reads(const sim_operation *ops, int64_t at, int before, const sim_tensor *x)
{
    return before == 0 || (at >= before && ops[at - before].y.uid == x->uid && x->is_virtual);
}

static bool
follows(const sim_operation *ops, int64_t at, const step *s)
{
    const sim_operation *op = &ops[at];
    const bool last = op->kind == SIM_MATMUL;
    return op->kind == s->kind && (last || op->pointwise.mode == s->mode) && reads(ops, at, s->x, &op->x) &&
           reads(ops, at, s->b, &op->b) && reads(ops, at, s->t, &op->t) && op->y.is_virtual == !last &&
           (op->b.ndim != 0) == (s->b != 0 || s->by_value || last) && op->b.by_value == s->by_value &&
           (op->t.ndim != 0) == (s->t != 0);
}

static bool
are_steps(const sim_graph *graph, int64_t *at, const step *steps, int64_t n)
{
    for (int64_t i = 0; i < n; i++, ++*at) {
        if (*at >= graph->nops || !follows(graph->ops, *at, &steps[i])) {
            return false;
        }
    }
    return true;
}

/* The axes of the two indices: rows, then columns. */
static bool
has_axes(const sim_graph *graph)
{
    return !is_causal(graph) || (graph->ops[2].pointwise.axis == 2 && graph->ops[3].pointwise.axis == 3);
}

static bool
is_half(const sim_tensor *t, int type)
{
    return t->ndim == 4 && t->dtype == type && (type == CUDNN_DATA_HALF || type == CUDNN_DATA_BFLOAT16) &&
           t->dims[3] > 0;
}

static bool
has_computed_in_float(const sim_graph *graph)
{
    bool all = true;
    for (int64_t i = 0; i < graph->nops; i++) {
        const sim_operation *op = &graph->ops[i];
        const bool index = op->kind == SIM_POINTWISE && op->pointwise.mode == CUDNN_POINTWISE_GEN_INDEX;
        all &= op->pointwise.compute == (index ? CUDNN_DATA_INT32 : CUDNN_DATA_FLOAT);
    }
    return all;
}

/* Of the shapes that go together; the library reads eight numbers of a half type at once. */
static bool
fit(const sim_tensor *q, const sim_tensor *k, const sim_tensor *v, const sim_tensor *o)
{
    const int64_t batch = q->dims[0], heads = q->dims[1], groups = k->dims[1];
    return k->dims[0] == batch && v->dims[0] == batch && o->dims[0] == batch && v->dims[1] == groups &&
           o->dims[1] == heads && heads % groups == 0 && k->dims[2] == q->dims[3] && v->dims[2] == k->dims[3] &&
           o->dims[2] == q->dims[2] && o->dims[3] == v->dims[3] && q->dims[3] % 8 == 0 && v->dims[3] % 8 == 0 &&
           q->strides[3] == 1 && k->strides[2] == 1 && v->strides[3] == 1 && o->strides[3] == 1;
}

/* From the real library, 9.19 and 9.28: without the logarithms that nobody reads it knows no such pattern. */
cudnnStatus_t
sim_check_attention(const sim_graph *graph)
{
    const sim_operation *first = &graph->ops[0], *last = &graph->ops[graph->nops - 1];
    int64_t at = 1;
    bool known = !first->x.is_virtual && !first->b.is_virtual && first->y.is_virtual;
    known = known && are_steps(graph, &at, scaled, COUNT(scaled));
    known = known && (!is_causal(graph) || are_steps(graph, &at, hidden, COUNT(hidden)));
    known = known && are_steps(graph, &at, softmax, COUNT(softmax)) && at == graph->nops && has_axes(graph);
    if (!known || last->b.is_virtual) {
        return sim_dnn_fail(CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN, "the graph is no attention");
    }
    const int type = first->x.dtype;
    if (!is_half(&first->x, type) || !is_half(&first->b, type) || !is_half(&last->x, type) ||
        !is_half(&last->b, type) || !is_half(&last->y, type) || !has_computed_in_float(graph)) {
        return sim_dnn_fail(CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE, "attention is of a half type, computed in float32");
    }
    return fit(&first->x, &first->b, &last->b, &last->y)
               ? CUDNN_STATUS_SUCCESS
               : sim_dnn_fail(CUDNN_STATUS_NOT_SUPPORTED, "shapes or strides of the operands");
}

/* ---------------------------------------------------------------- running it */

static CUresult
run_attention(sim_device *device, const sim_item *item)
{
    attention *call = item->held;
    dt_storage storage[4];
    dt_error err;
    bool made = true;
    if (sim_handle_get(SIM_DNN_DESC, call->plan) == NULL) {
        return CUDA_ERROR_ILLEGAL_INSTRUCTION;
    }
    CUresult status = sim_scribble(device, call->workspace, SIM_ATTENTION_WORKSPACE);
    for (int i = 0; i < 4 && status == CUDA_SUCCESS; i++) {
        status = sim_bind(device, call->addresses[i], &storage[i], &call->arrays[i]);
    }
    return status != CUDA_SUCCESS
               ? status
               : sim_from_status(cpu_attention(&call->arrays[QUERY], &call->arrays[KEY], &call->arrays[VALUE], NULL,
                                               &call->params, &call->arrays[OUT], &made, &err));
}

static dt_array
array_of(const sim_tensor *t, bool transposed)
{
    dt_array a = DT_ARRAY_EMPTY;
    a.dtype = (uint8_t)sim_dnn_dtype(t->dtype);
    a.ndim = 4;
    for (int d = 0; d < 4; d++) {
        const int from = transposed && d > 1 ? 5 - d : d;
        a.shape[d] = t->dims[from];
        a.strides[d] = t->strides[from];
    }
    return a;
}

/* Numbers of the host are read now. */
static cudnnStatus_t
find_number(const sim_pack *pack, const sim_tensor *t, float *number)
{
    uint64_t address;
    cudnnStatus_t status = sim_find_address(pack, t, &address);
    if (status == CUDNN_STATUS_SUCCESS) {
        memcpy(number, (const void *)(uintptr_t)address, sizeof(*number));
    }
    return status;
}

static cudnnStatus_t
collect(const sim_plan *plan, const sim_pack *pack, attention *call)
{
    const sim_graph *graph = &plan->engine.graph;
    const sim_operation *first = &graph->ops[0], *last = &graph->ops[graph->nops - 1];
    const sim_tensor *tensors[] = {&first->x, &first->b, &last->b, &last->y};
    float scale = 1, hides = -INFINITY;
    cudnnStatus_t status = find_number(pack, &graph->ops[1].b, &scale);
    if (status == CUDNN_STATUS_SUCCESS && is_causal(graph)) {
        status = find_number(pack, &graph->ops[5].b, &hides);
    }
    for (int i = 0; i < 4 && status == CUDNN_STATUS_SUCCESS; i++) {
        call->arrays[i] = array_of(tensors[i], i == KEY);
        status = sim_find_address(pack, tensors[i], &call->addresses[i]);
    }
    if (status == CUDNN_STATUS_SUCCESS && (pack->workspace == NULL || hides != -INFINITY)) {
        status = sim_dnn_fail(CUDNN_STATUS_BAD_PARAM, "the workspace, or what hides a score");
    }
    call->params.scale = scale;
    call->params.causal = is_causal(graph);
    call->workspace = (uint64_t)(uintptr_t)pack->workspace;
    return status;
}

cudnnStatus_t
sim_attention_item(const sim_plan *plan, const sim_pack *pack, cudnnBackendDescriptor_t handle, sim_item *item,
                   sim_touch touches[SIM_MAX_TOUCHES])
{
    attention *call = dt_calloc(1, sizeof(*call));
    if (call == NULL) {
        return sim_dnn_fail(CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED, "no memory to queue the work");
    }
    cudnnStatus_t status = collect(plan, pack, call);
    if (status != CUDNN_STATUS_SUCCESS) {
        dt_free(call);
        return status;
    }
    call->plan = handle;
    *item = (sim_item){.run = run_attention, .held = call};
    for (int i = 0; i < 4; i++) {
        touches[i] = (sim_touch){call->addresses[i], sim_extent(&call->arrays[i]), i == OUT};
    }
    touches[4] = (sim_touch){call->workspace, SIM_ATTENTION_WORKSPACE, true};
    return CUDNN_STATUS_SUCCESS;
}
