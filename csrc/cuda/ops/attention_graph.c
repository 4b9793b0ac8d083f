/* attention_graph.c: attention of the half types as one graph of cuDNN, which compiles a kernel for it: scores are
 * never in memory. It takes a good part of a second for each shape, so that little work goes another way. */
#include <math.h>
#include <string.h>

#include "../conv/plan.h"
#include "../launch/launch.h"
#include "../plans.h"
#include "attention.h"

#define WIDTH 8 /* numbers of the half types that are loaded at once */

enum { QUERY, KEY, VALUE, OUT, OPERANDS };

/* All that a plan depends on, in 64-bit words: (batch, heads, rows, columns) and strides in elements; key is
 * transposed. */
typedef struct {
    int64_t dtype, causal;
    int64_t shape[OPERANDS][4], strides[OPERANDS][4];
} graph_key;

size_t
cuda_attention_key_size(void)
{
    return sizeof(graph_key);
}

/* ---------------------------------------------------------------- the graph */

enum { ID_SCALE = OPERANDS + 1, ID_HIDDEN, ID_BETWEEN }; /* operands: their number and 1 */
#define MAX_OPS 14

typedef struct {
    const conv_planner *planner;
    conv_graph *graph;
    cudnnBackendDescriptor_t ops[MAX_OPS];
    int nops;
    int64_t next_id;
    dt_error *err;
} builder;

typedef struct {
    int64_t id;
    int type;
    const int64_t *shape, *strides;
    bool is_virtual, by_value;
} tensor;

static dt_status
add_tensor(builder *b, tensor t, cudnnBackendDescriptor_t *out)
{
    cuda_device *d = b->planner->device;
    dt_error *err = b->err;
    const int64_t alignment = t.by_value ? (int64_t)sizeof(float) : CONV_ALIGNMENT;
    DT_TRY(cuda_graph_part(d, b->graph, CUDNN_BACKEND_TENSOR_DESCRIPTOR, out, err));
    CONV_SET(d, *out, TENSOR_DATA_TYPE, DATA_TYPE, 1, &t.type);
    CONV_SET(d, *out, TENSOR_DIMENSIONS, INT64, 4, t.shape);
    CONV_SET(d, *out, TENSOR_STRIDES, INT64, 4, t.strides);
    CONV_SET(d, *out, TENSOR_UNIQUE_ID, INT64, 1, &t.id);
    CONV_SET(d, *out, TENSOR_BYTE_ALIGNMENT, INT64, 1, &alignment);
    CONV_SET(d, *out, TENSOR_IS_VIRTUAL, BOOLEAN, 1, &t.is_virtual);
    CONV_SET(d, *out, TENSOR_IS_BY_VALUE, BOOLEAN, 1, &t.by_value);
    CUDA_TRY(d, cudnnBackendFinalize, (*out));
    return DT_OK;
}

/* A number of the host that is given at each run. */
static dt_status
add_number(builder *b, int64_t id, cudnnBackendDescriptor_t *out)
{
    static const int64_t ones[] = {1, 1, 1, 1};
    return add_tensor(b, (tensor){id, CUDNN_DATA_FLOAT, ones, ones, false, true}, out);
}

/* What stands between operations, and never in memory. */
static dt_status
add_between(builder *b, int type, const int64_t shape[4], cudnnBackendDescriptor_t *out)
{
    const int64_t strides[] = {shape[1] * shape[2] * shape[3], shape[2] * shape[3], shape[3], 1};
    return add_tensor(b, (tensor){b->next_id++, type, shape, strides, true, false}, out);
}

static dt_status
finish_op(builder *b, cudnnBackendDescriptor_t op)
{
    dt_error *err = b->err;
    CUDA_TRY(b->planner->device, cudnnBackendFinalize, (op));
    b->ops[b->nops++] = op;
    return DT_OK;
}

/* c = a @ b */
static dt_status
add_product(builder *g, cudnnBackendDescriptor_t a, cudnnBackendDescriptor_t b, cudnnBackendDescriptor_t c)
{
    cuda_device *d = g->planner->device;
    dt_error *err = g->err;
    cudnnBackendDescriptor_t product, op;
    const int compute = CUDNN_DATA_FLOAT;
    DT_TRY(cuda_graph_part(d, g->graph, CUDNN_BACKEND_MATMUL_DESCRIPTOR, &product, err));
    CONV_SET(d, product, MATMUL_COMP_TYPE, DATA_TYPE, 1, &compute);
    CUDA_TRY(d, cudnnBackendFinalize, (product));
    DT_TRY(cuda_graph_part(d, g->graph, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, &op, err));
    CONV_SET(d, op, OPERATION_MATMUL_DESC, BACKEND_DESCRIPTOR, 1, &product);
    CONV_SET(d, op, OPERATION_MATMUL_ADESC, BACKEND_DESCRIPTOR, 1, &a);
    CONV_SET(d, op, OPERATION_MATMUL_BDESC, BACKEND_DESCRIPTOR, 1, &b);
    CONV_SET(d, op, OPERATION_MATMUL_CDESC, BACKEND_DESCRIPTOR, 1, &c);
    return finish_op(g, op);
}

/* out = mode(x, second, chosen); those that are NULL are not there, axis is that of an index. */
static dt_status
add_pointwise(builder *b, int mode, int64_t axis, cudnnBackendDescriptor_t x, cudnnBackendDescriptor_t second,
              cudnnBackendDescriptor_t chosen, cudnnBackendDescriptor_t out)
{
    cuda_device *d = b->planner->device;
    dt_error *err = b->err;
    cudnnBackendDescriptor_t pointwise, op;
    const int compute = mode == CUDNN_POINTWISE_GEN_INDEX ? CUDNN_DATA_INT32 : CUDNN_DATA_FLOAT;
    DT_TRY(cuda_graph_part(d, b->graph, CUDNN_BACKEND_POINTWISE_DESCRIPTOR, &pointwise, err));
    CONV_SET(d, pointwise, POINTWISE_MODE, POINTWISE_MODE, 1, &mode);
    CONV_SET(d, pointwise, POINTWISE_MATH_PREC, DATA_TYPE, 1, &compute);
    if (mode == CUDNN_POINTWISE_GEN_INDEX) {
        CONV_SET(d, pointwise, POINTWISE_AXIS, INT64, 1, &axis);
    }
    CUDA_TRY(d, cudnnBackendFinalize, (pointwise));
    DT_TRY(cuda_graph_part(d, b->graph, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, &op, err));
    CONV_SET(d, op, OPERATION_POINTWISE_PW_DESCRIPTOR, BACKEND_DESCRIPTOR, 1, &pointwise);
    CONV_SET(d, op, OPERATION_POINTWISE_XDESC, BACKEND_DESCRIPTOR, 1, &x);
    if (second != NULL) {
        CONV_SET(d, op, OPERATION_POINTWISE_BDESC, BACKEND_DESCRIPTOR, 1, &second);
    }
    if (chosen != NULL) {
        CONV_SET(d, op, OPERATION_POINTWISE_TDESC, BACKEND_DESCRIPTOR, 1, &chosen);
    }
    CONV_SET(d, op, OPERATION_POINTWISE_YDESC, BACKEND_DESCRIPTOR, 1, &out);
    return finish_op(b, op);
}

/* out = the sum or maximum of each row of x */
static dt_status
add_reduction(builder *b, int mode, cudnnBackendDescriptor_t x, cudnnBackendDescriptor_t out)
{
    cuda_device *d = b->planner->device;
    dt_error *err = b->err;
    cudnnBackendDescriptor_t reduction, op;
    const int compute = CUDNN_DATA_FLOAT;
    DT_TRY(cuda_graph_part(d, b->graph, CUDNN_BACKEND_REDUCTION_DESCRIPTOR, &reduction, err));
    CONV_SET(d, reduction, REDUCTION_OPERATOR, REDUCTION_OPERATOR_TYPE, 1, &mode);
    CONV_SET(d, reduction, REDUCTION_COMP_TYPE, DATA_TYPE, 1, &compute);
    CUDA_TRY(d, cudnnBackendFinalize, (reduction));
    DT_TRY(cuda_graph_part(d, b->graph, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, &op, err));
    CONV_SET(d, op, OPERATION_REDUCTION_DESC, BACKEND_DESCRIPTOR, 1, &reduction);
    CONV_SET(d, op, OPERATION_REDUCTION_XDESC, BACKEND_DESCRIPTOR, 1, &x);
    CONV_SET(d, op, OPERATION_REDUCTION_YDESC, BACKEND_DESCRIPTOR, 1, &out);
    return finish_op(b, op);
}

/* *scores become those of which a query sees no later key. */
static dt_status
hide_later(builder *b, const int64_t shape[4], cudnnBackendDescriptor_t *scores)
{
    cudnnBackendDescriptor_t row, column, seen, hidden, out;
    DT_TRY(add_between(b, CUDNN_DATA_INT32, shape, &row));
    DT_TRY(add_between(b, CUDNN_DATA_INT32, shape, &column));
    DT_TRY(add_between(b, CUDNN_DATA_BOOLEAN, shape, &seen));
    DT_TRY(add_between(b, CUDNN_DATA_FLOAT, shape, &out));
    DT_TRY(add_number(b, ID_HIDDEN, &hidden));
    DT_TRY(add_pointwise(b, CUDNN_POINTWISE_GEN_INDEX, 2, *scores, NULL, NULL, row));
    DT_TRY(add_pointwise(b, CUDNN_POINTWISE_GEN_INDEX, 3, *scores, NULL, NULL, column));
    DT_TRY(add_pointwise(b, CUDNN_POINTWISE_CMP_GE, 0, row, column, NULL, seen));
    DT_TRY(add_pointwise(b, CUDNN_POINTWISE_BINARY_SELECT, 0, *scores, hidden, seen, out));
    *scores = out;
    return DT_OK;
}

/* weights = softmax(scores). The logarithms, which nobody reads, make the pattern one that the library knows. */
static dt_status
add_softmax(builder *b, int type, const int64_t shape[4], cudnnBackendDescriptor_t scores,
            cudnnBackendDescriptor_t *weights)
{
    const int64_t each[] = {shape[0], shape[1], shape[2], 1};
    cudnnBackendDescriptor_t top, below, power, sum, logarithm, unread;
    DT_TRY(add_between(b, CUDNN_DATA_FLOAT, each, &top));
    DT_TRY(add_between(b, CUDNN_DATA_FLOAT, shape, &below));
    DT_TRY(add_between(b, CUDNN_DATA_FLOAT, shape, &power));
    DT_TRY(add_between(b, CUDNN_DATA_FLOAT, each, &sum));
    DT_TRY(add_between(b, CUDNN_DATA_FLOAT, each, &logarithm));
    DT_TRY(add_between(b, CUDNN_DATA_FLOAT, each, &unread));
    DT_TRY(add_between(b, type, shape, weights));
    DT_TRY(add_reduction(b, CUDNN_REDUCE_TENSOR_MAX, scores, top));
    DT_TRY(add_pointwise(b, CUDNN_POINTWISE_SUB, 0, scores, top, NULL, below));
    DT_TRY(add_pointwise(b, CUDNN_POINTWISE_EXP, 0, below, NULL, NULL, power));
    DT_TRY(add_reduction(b, CUDNN_REDUCE_TENSOR_ADD, power, sum));
    DT_TRY(add_pointwise(b, CUDNN_POINTWISE_LOG, 0, sum, NULL, NULL, logarithm));
    DT_TRY(add_pointwise(b, CUDNN_POINTWISE_ADD, 0, top, logarithm, NULL, unread));
    return add_pointwise(b, CUDNN_POINTWISE_DIV, 0, power, sum, NULL, *weights);
}

static dt_status
build(const conv_planner *planner, const graph_key *key, conv_graph *graph, dt_error *err)
{
    builder b = {.planner = planner, .graph = graph, .next_id = ID_BETWEEN, .err = err};
    const int type = key->dtype == DT_FLOAT16 ? CUDNN_DATA_HALF : CUDNN_DATA_BFLOAT16;
    const int64_t *q = key->shape[QUERY], scores_shape[] = {q[0], q[1], q[2], key->shape[KEY][3]};
    cudnnBackendDescriptor_t operands[OPERANDS], products, scale, scores, weights;
    for (int i = 0; i < OPERANDS; i++) {
        const tensor t = {i + 1, type, key->shape[i], key->strides[i], false, false};
        DT_TRY(add_tensor(&b, t, &operands[i]));
    }
    DT_TRY(add_between(&b, CUDNN_DATA_FLOAT, scores_shape, &products));
    DT_TRY(add_between(&b, CUDNN_DATA_FLOAT, scores_shape, &scores));
    DT_TRY(add_number(&b, ID_SCALE, &scale));
    DT_TRY(add_product(&b, operands[QUERY], operands[KEY], products));
    DT_TRY(add_pointwise(&b, CUDNN_POINTWISE_MUL, 0, products, scale, NULL, scores));
    if (key->causal) {
        DT_TRY(hide_later(&b, scores_shape, &scores));
    }
    DT_TRY(add_softmax(&b, type, scores_shape, scores, &weights));
    DT_TRY(add_product(&b, weights, operands[VALUE], operands[OUT]));
    return cuda_graph_finish(planner, graph, b.ops, b.nops, err);
}

/* ---------------------------------------------------------------- plans */

/* No plan is an answer, which is kept: the library has none for this shape or device. */
static dt_status
make_plan(cuda_device *d, const graph_key *key, conv_plan **out, dt_error *err)
{
    const conv_planner planner = {d, d->dnn, NULL};
    const conv_wish wish = {0, 0, cuda_workspace_limit(), true};
    conv_graph graph = {.nparts = 0};
    conv_plan *p = dt_calloc(1, sizeof(*p));
    if (p == NULL) {
        return dt_fail_nomem(err, sizeof(*p));
    }
    p->device = d;
    dt_status rc = build(&planner, key, &graph, err);
    if (rc == DT_OK) {
        rc = cuda_graph_plan(&planner, false, &graph, &wish, p, err);
    } else if (rc == DT_ECUDA && cuda_conv_refused(err->library_status)) {
        rc = DT_OK;
    }
    cuda_conv_graph_clear(&graph);
    if (rc == DT_OK && p->plan != NULL && p->workspace > wish.room) {
        (void)cu.cudnnBackendDestroyDescriptor(p->plan);
        p->plan = NULL;
    }
    if (rc != DT_OK) {
        cuda_conv_destroy(p);
        return rc;
    }
    *out = p;
    return DT_OK;
}

static dt_status
find_plan(cuda_device *d, const graph_key *key, conv_plan **out, dt_error *err)
{
    *out = cuda_cache_find(&d->attentions, key);
    if (*out != NULL) {
        return DT_OK;
    }
    DT_TRY(make_plan(d, key, out, err));
    return cuda_cache_put(&d->attentions, key, *out, err);
}

static dt_status
remember_none(cuda_device *d, const graph_key *key, dt_error *err)
{
    conv_plan *p = dt_calloc(1, sizeof(*p));
    return p != NULL ? cuda_cache_put(&d->attentions, key, p, err) : dt_fail_nomem(err, sizeof(*p));
}

/* A plan that refuses as late as at its run is given up. */
static dt_status
run_locked(cuda_device *d, const graph_key *key, const graph_pointers *pointers, bool *made, dt_error *err)
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

/* ---------------------------------------------------------------- the call */

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

static void
swap(int64_t *a, int64_t *b)
{
    const int64_t was = *a;
    *a = *b;
    *b = was;
}

/* Whether there is so much to do that it pays; overflow counts as much. */
static bool
is_much(const graph_key *key)
{
    const int64_t *q = key->shape[QUERY], keys = key->shape[KEY][2];
    const double work = (double)q[0] * (double)q[1] * (double)q[2] * (double)keys;
    return work * (double)(q[3] + key->shape[VALUE][3]) >= (double)cuda_settings.attention_work;
}

static bool
make_key(const dt_array *query, const dt_array *key, const dt_array *value, const dt_array *out, bool causal,
         graph_key *k)
{
    const dt_array *arrays[] = {query, key, value, out};
    memset(k, 0, sizeof(*k));
    k->dtype = query->dtype;
    k->causal = causal;
    if (dt_itemsize((dt_dtype)query->dtype) != 2 || dt_array_numel(out) == 0 || dt_array_numel(key) == 0) {
        return false;
    }
    for (int i = 0; i < OPERANDS; i++) {
        if (!describe(arrays[i], k->shape[i], k->strides[i])) {
            return false;
        }
    }
    const bool much = is_much(k);
    swap(&k->shape[KEY][2], &k->shape[KEY][3]);
    swap(&k->strides[KEY][2], &k->strides[KEY][3]);
    return much;
}

dt_status
cuda_attention_graph(const dt_array *query, const dt_array *key, const dt_array *value,
                     const dt_attention_params *params, dt_array *out, bool *made, dt_error *err)
{
    cuda_device *d;
    graph_key k;
    float scale = (float)params->scale, hidden = -INFINITY;
    *made = false;
    if (!make_key(query, key, value, out, params->causal, &k)) {
        return DT_OK;
    }
    if (cuda_api_need(DT_LIBRARY_CUDNN, err) != DT_OK) { /* another way does without */
        return DT_OK;
    }
    DT_TRY(cuda_enter(out->storage->device.index, &d, err));
    const graph_pointers pointers = {params->causal ? OPERANDS + 2 : OPERANDS + 1,
                                     {QUERY + 1, KEY + 1, VALUE + 1, OUT + 1, ID_SCALE, ID_HIDDEN},
                                     {(void *)(uintptr_t)cuda_address(query), (void *)(uintptr_t)cuda_address(key),
                                      (void *)(uintptr_t)cuda_address(value), (void *)(uintptr_t)cuda_address(out),
                                      &scale, &hidden}};
    pthread_mutex_lock(&d->library_lock);
    dt_status rc = run_locked(d, &k, &pointers, made, err);
    pthread_mutex_unlock(&d->library_lock);
    if (cuda_conv_device_is_full(rc, err)) { /* another way needs less */
        *made = false;
        return DT_OK;
    }
    return rc;
}
