/* attention.c: the graphs of cuDNN that are attention or its gradient. A reader goes over the operations in the order
 * of the library's own patterns; the host computes, and which tensors it reads comes from the descriptors. */
#include <math.h>
#include <string.h>

#include "../cpu/cpu.h"
#include "cudnn.h"

enum { QUERY, KEY, VALUE, OUT, GRAD, DQUERY, DKEY, DVALUE, LOGARITHMS, SUMS, TENSORS };

/* What a graph is. Key and value are as they stand in memory: (batch, heads, rows, columns). */
typedef struct {
    const sim_tensor *tensors[TENSORS]; /* NULL: not in it */
    const sim_tensor *scale, *hidden, *one;
    bool causal, gradient;
} pattern;

typedef struct {
    dt_array arrays[TENSORS];
    uint64_t addresses[TENSORS], workspace; /* 0: not in it */
    dt_attention_params params;
    bool gradient;
    cudnnBackendDescriptor_t plan;
} attention;

bool
sim_is_attention(const sim_graph *graph)
{
    const sim_operation *first = &graph->ops[0];
    return first->kind == SIM_MATMUL || (first->kind == SIM_POINTWISE && first->pointwise.mode == CUDNN_POINTWISE_MUL);
}

/* ---------------------------------------------------------------- patterns */

typedef struct {
    const sim_graph *graph;
    int64_t at;
    bool good;
} reader;

/* What an operation may read besides what one before it wrote. */
static const sim_tensor in_memory, number;

static bool
is(const sim_tensor *found, const sim_tensor *expected)
{
    if (expected == NULL || found->ndim == 0) {
        return expected == NULL && found->ndim == 0;
    }
    if (expected == &in_memory || expected == &number) {
        return !found->is_virtual && found->by_value == (expected == &number);
    }
    return found->uid == expected->uid;
}

static const sim_operation *
take(reader *r, sim_operation_kind kind, int mode, const sim_tensor *x, const sim_tensor *b, const sim_tensor *t)
{
    const sim_operation *op = &r->graph->ops[r->at < r->graph->nops ? r->at : r->graph->nops - 1];
    const bool index = kind == SIM_POINTWISE && mode == CUDNN_POINTWISE_GEN_INDEX;
    const bool computes = kind == SIM_RESHAPE || op->pointwise.compute == (index ? CUDNN_DATA_INT32 : CUDNN_DATA_FLOAT);
    const bool moded = kind == SIM_POINTWISE || kind == SIM_REDUCTION;
    r->good = r->good && r->at < r->graph->nops && op->kind == kind && (!moded || op->pointwise.mode == mode) &&
              computes && is(&op->x, x) && is(&op->b, b) && is(&op->t, t);
    r->at++;
    return op;
}

static const sim_tensor *
pointwise(reader *r, int mode, const sim_tensor *x, const sim_tensor *b)
{
    return &take(r, SIM_POINTWISE, mode, x, b, NULL)->y;
}

static const sim_tensor *
reduction(reader *r, int mode, const sim_tensor *x)
{
    return &take(r, SIM_REDUCTION, mode, x, NULL, NULL)->y;
}

/* Later keys are hidden by indices of rows and columns, where the next operation makes one. */
static const sim_tensor *
hide(reader *r, pattern *p, const sim_tensor *scores)
{
    const sim_operation *next = &r->graph->ops[r->at < r->graph->nops ? r->at : r->graph->nops - 1];
    p->causal = next->kind == SIM_POINTWISE && next->pointwise.mode == CUDNN_POINTWISE_GEN_INDEX;
    if (!p->causal) {
        return scores;
    }
    const sim_operation *row = take(r, SIM_POINTWISE, CUDNN_POINTWISE_GEN_INDEX, scores, NULL, NULL);
    const sim_operation *column = take(r, SIM_POINTWISE, CUDNN_POINTWISE_GEN_INDEX, scores, NULL, NULL);
    const sim_tensor *seen = pointwise(r, CUDNN_POINTWISE_CMP_GE, &row->y, &column->y);
    const sim_operation *chosen = take(r, SIM_POINTWISE, CUDNN_POINTWISE_BINARY_SELECT, scores, &number, seen);
    r->good = r->good && row->pointwise.axis == 2 && column->pointwise.axis == 3;
    p->hidden = &chosen->b;
    return &chosen->y;
}

/* query @ key, scaled */
static const sim_tensor *
scores(reader *r, pattern *p)
{
    const sim_operation *product = take(r, SIM_MATMUL, 0, &in_memory, &in_memory, NULL);
    const sim_operation *scaled = take(r, SIM_POINTWISE, CUDNN_POINTWISE_MUL, &product->y, &number, NULL);
    p->tensors[QUERY] = &product->x;
    p->tensors[KEY] = &product->b;
    p->scale = &scaled->b;
    return &scaled->y;
}

/* Seen for 9.19 and 9.28: without the logarithms, whether anybody reads them or not, it is no pattern. */
static void
read_forward(reader *r, pattern *p)
{
    const sim_tensor *seen = hide(r, p, scores(r, p));
    const sim_tensor *top = reduction(r, CUDNN_REDUCE_TENSOR_MAX, seen);
    const sim_tensor *power = pointwise(r, CUDNN_POINTWISE_EXP, pointwise(r, CUDNN_POINTWISE_SUB, seen, top), NULL);
    const sim_tensor *sum = reduction(r, CUDNN_REDUCE_TENSOR_ADD, power);
    const sim_tensor *kept = pointwise(r, CUDNN_POINTWISE_ADD, top, pointwise(r, CUDNN_POINTWISE_LOG, sum, NULL));
    const sim_tensor *weights = pointwise(r, CUDNN_POINTWISE_DIV, power, sum);
    const sim_operation *product = take(r, SIM_MATMUL, 0, weights, &in_memory, NULL);
    p->tensors[VALUE] = &product->b;
    p->tensors[OUT] = &product->y;
    p->tensors[LOGARITHMS] = kept->is_virtual ? NULL : kept;
}

/* x @ y, the heads of which are added where a reduction follows */
static const sim_tensor *
shared(reader *r, const sim_tensor *x, const sim_tensor *y)
{
    const sim_tensor *each = &take(r, SIM_MATMUL, 0, x, y, NULL)->y;
    return each->is_virtual ? reduction(r, CUDNN_REDUCE_TENSOR_ADD, each) : each;
}

static void
read_gradient(reader *r, pattern *p)
{
    const sim_operation *both = take(r, SIM_POINTWISE, CUDNN_POINTWISE_MUL, &in_memory, &in_memory, NULL);
    const sim_tensor *total = reduction(r, CUDNN_REDUCE_TENSOR_ADD, &both->y);
    const sim_operation *sums = take(r, SIM_POINTWISE, CUDNN_POINTWISE_MUL, total, &number, NULL);
    const sim_operation *below = take(r, SIM_POINTWISE, CUDNN_POINTWISE_SUB, scores(r, p), &in_memory, NULL);
    const sim_tensor *weights = pointwise(r, CUDNN_POINTWISE_EXP, hide(r, p, &below->y), NULL);
    const sim_tensor *turned = &take(r, SIM_RESHAPE, 0, weights, NULL, NULL)->y;
    p->tensors[DVALUE] = shared(r, turned, &both->x);
    const sim_operation *product = take(r, SIM_MATMUL, 0, &both->x, &in_memory, NULL);
    const sim_tensor *less = pointwise(r, CUDNN_POINTWISE_SUB, &product->y, &sums->y);
    const sim_tensor *slopes = pointwise(r, CUDNN_POINTWISE_MUL, less, weights);
    slopes = &take(r, SIM_POINTWISE, CUDNN_POINTWISE_MUL, slopes, p->scale, NULL)->y;
    turned = &take(r, SIM_RESHAPE, 0, slopes, NULL, NULL)->y;
    p->tensors[DKEY] = shared(r, turned, p->tensors[QUERY]);
    const sim_tensor *keys = &take(r, SIM_RESHAPE, 0, p->tensors[KEY], NULL, NULL)->y;
    p->tensors[DQUERY] = &take(r, SIM_MATMUL, 0, slopes, keys, NULL)->y;
    p->tensors[GRAD] = &both->x;
    p->tensors[OUT] = &both->b;
    p->tensors[SUMS] = &sums->y;
    p->tensors[LOGARITHMS] = &below->b;
    p->tensors[VALUE] = &product->b;
    p->one = &sums->b;
    p->gradient = true;
}

static bool
read_pattern(const sim_graph *graph, pattern *p)
{
    reader r = {graph, 0, true};
    memset(p, 0, sizeof(*p));
    if (graph->ops[0].kind == SIM_MATMUL) {
        read_forward(&r, p);
    } else {
        read_gradient(&r, p);
    }
    for (int i = 0; i < TENSORS; i++) {
        r.good = r.good && (p->tensors[i] == NULL || !p->tensors[i]->is_virtual);
    }
    return r.good && r.at == graph->nops;
}

/* Whether the last two dimensions are changed in the descriptor. */
static bool
is_turned(const pattern *p, int tensor)
{
    return tensor == KEY || (tensor == VALUE && p->gradient);
}

static dt_array
array_of(const pattern *p, int tensor)
{
    const sim_tensor *t = p->tensors[tensor];
    dt_array a = DT_ARRAY_EMPTY;
    a.dtype = (uint8_t)sim_dnn_dtype(t->dtype);
    a.ndim = 4;
    for (int d = 0; d < 4; d++) {
        const int from = is_turned(p, tensor) && d > 1 ? 5 - d : d;
        a.shape[d] = t->dims[from];
        a.strides[d] = t->strides[from];
    }
    return a;
}

/* Of a half type, whose columns are neighbours and read eight at a time, or for each query one number of float32. */
static bool
fits(const pattern *p, int tensor, int type, int64_t heads, int64_t rows, int64_t columns)
{
    if (p->tensors[tensor] == NULL) {
        return true;
    }
    const bool wide = tensor >= LOGARITHMS;
    const dt_array a = array_of(p, tensor);
    return p->tensors[tensor]->ndim == 4 && p->tensors[tensor]->dtype == (wide ? CUDNN_DATA_FLOAT : type) &&
           a.shape[0] == p->tensors[QUERY]->dims[0] && a.shape[1] == heads && a.shape[2] == rows &&
           a.shape[3] == columns && (wide || (a.strides[3] == 1 && columns % 8 == 0));
}

cudnnStatus_t
sim_check_attention(const sim_graph *graph)
{
    pattern p;
    if (!read_pattern(graph, &p)) {
        return sim_dnn_fail(CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN, "the graph is no attention");
    }
    const int type = p.tensors[QUERY]->dtype;
    if (type != CUDNN_DATA_HALF && type != CUDNN_DATA_BFLOAT16) {
        return sim_dnn_fail(CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE, "attention is of a half type");
    }
    const dt_array query = array_of(&p, QUERY), key = array_of(&p, KEY), value = array_of(&p, VALUE);
    const int64_t heads = query.shape[1], groups = key.shape[1], rows = query.shape[2], keys = key.shape[2];
    const int64_t depth = query.shape[3], columns = value.shape[3];
    const int of_query[] = {QUERY, DQUERY}, of_key[] = {KEY, DKEY}, of_value[] = {VALUE, DVALUE},
              of_out[] = {OUT, GRAD};
    bool good = groups > 0 && heads % groups == 0;
    for (int i = 0; i < 2; i++) {
        good = good && fits(&p, of_query[i], type, heads, rows, depth) &&
               fits(&p, of_key[i], type, groups, keys, depth) && fits(&p, of_value[i], type, groups, keys, columns) &&
               fits(&p, of_out[i], type, heads, rows, columns) && fits(&p, LOGARITHMS + i, type, heads, rows, 1);
    }
    return good ? CUDNN_STATUS_SUCCESS : sim_dnn_fail(CUDNN_STATUS_NOT_SUPPORTED, "shapes or strides of the operands");
}

/* ---------------------------------------------------------------- computing */

static void *
at(const dt_array *a, int64_t batch, int64_t head, int64_t row, int64_t column)
{
    const int64_t place = batch * a->strides[0] + head * a->strides[1] + row * a->strides[2] + column * a->strides[3];
    return (char *)a->storage->data + a->offset + place * (int64_t)dt_itemsize((dt_dtype)a->dtype);
}

static float
get(const dt_array *a, int64_t batch, int64_t head, int64_t row, int64_t column)
{
    const void *from = at(a, batch, head, row, column);
    return a->dtype == DT_FLOAT16    ? dt_cast_float16_float32(*(const dt_float16 *)from)
           : a->dtype == DT_BFLOAT16 ? dt_cast_bfloat16_float32(*(const dt_bfloat16 *)from)
                                     : *(const float *)from;
}

static void
set(const dt_array *a, int64_t batch, int64_t head, int64_t row, int64_t column, float x)
{
    void *to = at(a, batch, head, row, column);
    if (a->dtype == DT_FLOAT16) {
        *(dt_float16 *)to = dt_cast_float32_float16(x);
    } else if (a->dtype == DT_BFLOAT16) {
        *(dt_bfloat16 *)to = dt_cast_float32_bfloat16(x);
    } else {
        *(float *)to = x;
    }
}

/* The score of a key for a query: of query and key, or of what comes back and value. */
static float
score(const dt_array *left, const dt_array *right, int64_t b, int64_t h, int64_t g, int64_t row, int64_t key)
{
    float sum = 0;
    for (int64_t i = 0; i < left->shape[3]; i++) {
        sum += get(left, b, h, row, i) * get(right, b, g, key, i);
    }
    return sum;
}

static int64_t
keys_seen(const attention *c, int64_t row)
{
    const int64_t keys = c->arrays[KEY].shape[2];
    return c->params.causal && row + 1 < keys ? row + 1 : keys;
}

static void
keep_logarithms(const attention *c, int64_t b, int64_t h, int64_t g)
{
    for (int64_t row = 0; row < c->arrays[QUERY].shape[2]; row++) {
        double top = -INFINITY, sum = 0;
        for (int pass = 0; pass < 2; pass++) {
            for (int64_t k = 0; k < keys_seen(c, row); k++) {
                const double s = c->params.scale * score(&c->arrays[QUERY], &c->arrays[KEY], b, h, g, row, k);
                top = pass == 0 && s > top ? s : top;
                sum += pass == 1 ? exp(s - top) : 0;
            }
        }
        set(&c->arrays[LOGARITHMS], b, h, row, 0, (float)(top + log(sum)));
    }
}

/* Gradients of one head of keys and values, and of one query, added up in float32. */
typedef struct {
    float *key, *value, *query;
} sums;

/* What one query gives. */
static void
add_query(const attention *c, int64_t b, int64_t h, int64_t g, int64_t row, const sums *to)
{
    const dt_array *query = &c->arrays[QUERY], *key = &c->arrays[KEY], *grad = &c->arrays[GRAD];
    const int64_t depth = query->shape[3], columns = grad->shape[3], keys = keys_seen(c, row);
    const float scale = (float)c->params.scale, logarithm = get(&c->arrays[LOGARITHMS], b, h, row, 0);
    float total = 0;
    for (int64_t i = 0; i < columns; i++) {
        total += get(grad, b, h, row, i) * get(&c->arrays[OUT], b, h, row, i);
    }
    set(&c->arrays[SUMS], b, h, row, 0, total);
    memset(to->query, 0, (size_t)depth * sizeof(float));
    for (int64_t k = 0; k < keys; k++) {
        const float weight = expf(scale * score(query, key, b, h, g, row, k) - logarithm);
        const float slope = scale * weight * (score(grad, &c->arrays[VALUE], b, h, g, row, k) - total);
        for (int64_t i = 0; i < columns; i++) {
            to->value[k * columns + i] += weight * get(grad, b, h, row, i);
        }
        for (int64_t i = 0; i < depth; i++) {
            to->key[k * depth + i] += slope * get(query, b, h, row, i);
            to->query[i] += slope * get(key, b, g, k, i);
        }
    }
    for (int64_t i = 0; i < depth; i++) {
        set(&c->arrays[DQUERY], b, h, row, i, to->query[i]);
    }
}

/* Of all heads that share one of keys and values. */
static void
differentiate_group(const attention *c, int64_t b, int64_t g, const sums *to)
{
    const dt_array *key_grad = &c->arrays[DKEY], *value_grad = &c->arrays[DVALUE];
    const int64_t keys = key_grad->shape[2], depth = key_grad->shape[3], columns = value_grad->shape[3];
    const int64_t group = c->arrays[QUERY].shape[1] / key_grad->shape[1];
    memset(to->key, 0, (size_t)(keys * depth) * sizeof(float));
    memset(to->value, 0, (size_t)(keys * columns) * sizeof(float));
    for (int64_t h = g * group; h < (g + 1) * group; h++) {
        for (int64_t row = 0; row < c->arrays[QUERY].shape[2]; row++) {
            add_query(c, b, h, g, row, to);
        }
    }
    for (int64_t k = 0; k < keys; k++) {
        for (int64_t i = 0; i < depth; i++) {
            set(key_grad, b, g, k, i, to->key[k * depth + i]);
        }
        for (int64_t i = 0; i < columns; i++) {
            set(value_grad, b, g, k, i, to->value[k * columns + i]);
        }
    }
}

static CUresult
differentiate(const attention *c)
{
    const int64_t keys = c->arrays[KEY].shape[2], depth = c->arrays[KEY].shape[3], columns = c->arrays[VALUE].shape[3];
    float *all = dt_malloc((size_t)(keys * (depth + columns) + depth) * sizeof(float));
    if (all == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    const sums to = {all, all + keys * depth, all + keys * (depth + columns)};
    for (int64_t b = 0; b < c->arrays[KEY].shape[0]; b++) {
        for (int64_t g = 0; g < c->arrays[KEY].shape[1]; g++) {
            differentiate_group(c, b, g, &to);
        }
    }
    dt_free(all);
    return CUDA_SUCCESS;
}

static CUresult
attend(const attention *c)
{
    const dt_array *query = &c->arrays[QUERY], *key = &c->arrays[KEY];
    dt_array out = c->arrays[OUT];
    dt_error err;
    bool made = true;
    dt_status rc = cpu_attention(query, key, &c->arrays[VALUE], NULL, &c->params, &out, &made, &err);
    for (int64_t b = 0; c->addresses[LOGARITHMS] != 0 && b < query->shape[0]; b++) {
        for (int64_t h = 0; h < query->shape[1]; h++) {
            keep_logarithms(c, b, h, h / (query->shape[1] / key->shape[1]));
        }
    }
    return sim_from_status(rc);
}

/* ---------------------------------------------------------------- running it */

static CUresult
run_attention(sim_device *device, const sim_item *item)
{
    attention *call = item->held;
    dt_storage storage[TENSORS];
    if (sim_handle_get(SIM_DNN_DESC, call->plan) == NULL) {
        return CUDA_ERROR_ILLEGAL_INSTRUCTION;
    }
    CUresult status = sim_scribble(device, call->workspace, SIM_ATTENTION_WORKSPACE);
    for (int i = 0; i < TENSORS && status == CUDA_SUCCESS; i++) {
        if (call->addresses[i] != 0) {
            status = sim_bind(device, call->addresses[i], &storage[i], &call->arrays[i]);
        }
    }
    return status != CUDA_SUCCESS ? status : call->gradient ? differentiate(call) : attend(call);
}

/* Numbers of the host are read now. */
static cudnnStatus_t
find_number(const sim_pack *pack, const sim_tensor *t, float *found)
{
    uint64_t address;
    cudnnStatus_t status = t != NULL ? sim_find_address(pack, t, &address) : CUDNN_STATUS_SUCCESS;
    if (status == CUDNN_STATUS_SUCCESS && t != NULL) {
        memcpy(found, (const void *)(uintptr_t)address, sizeof(*found));
    }
    return status;
}

static cudnnStatus_t
collect(const pattern *p, const sim_pack *pack, attention *call)
{
    float scale = 1, hidden = -INFINITY, one = 1;
    cudnnStatus_t status = find_number(pack, p->scale, &scale);
    status = status == CUDNN_STATUS_SUCCESS ? find_number(pack, p->hidden, &hidden) : status;
    status = status == CUDNN_STATUS_SUCCESS ? find_number(pack, p->one, &one) : status;
    for (int i = 0; i < TENSORS && status == CUDNN_STATUS_SUCCESS; i++) {
        if (p->tensors[i] != NULL) {
            call->arrays[i] = array_of(p, i);
            status = sim_find_address(pack, p->tensors[i], &call->addresses[i]);
        }
    }
    call->params.scale = scale;
    call->params.causal = p->causal;
    call->gradient = p->gradient;
    call->workspace = (uint64_t)(uintptr_t)pack->workspace;
    if (status == CUDNN_STATUS_SUCCESS && (call->workspace == 0 || hidden != -INFINITY || one != 1)) {
        return sim_dnn_fail(CUDNN_STATUS_BAD_PARAM, "the workspace, or a number of the host");
    }
    return status;
}

cudnnStatus_t
sim_attention_item(const sim_plan *plan, const sim_pack *pack, cudnnBackendDescriptor_t handle, sim_item *item,
                   sim_touch touches[SIM_MAX_TOUCHES])
{
    pattern p;
    attention *call = dt_calloc(1, sizeof(*call));
    if (call == NULL) {
        return sim_dnn_fail(CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED, "no memory to queue the work");
    }
    (void)read_pattern(&plan->engine.graph, &p); /* which was checked */
    cudnnStatus_t status = collect(&p, pack, call);
    if (status != CUDNN_STATUS_SUCCESS) {
        dt_free(call);
        return status;
    }
    call->plan = handle;
    *item = (sim_item){.run = run_attention, .held = call};
    for (int i = 0; i < TENSORS; i++) {
        const bool written = i >= DQUERY ? i != LOGARITHMS || !p.gradient : i == OUT && !p.gradient;
        touches[i] = (sim_touch){call->addresses[i], call->addresses[i] ? sim_extent(&call->arrays[i]) : 0, written};
    }
    touches[TENSORS] = (sim_touch){call->workspace, SIM_ATTENTION_WORKSPACE, true};
    return CUDNN_STATUS_SUCCESS;
}
