/* attention_graph.c: attention, and its gradient, as graphs of cuDNN. What stands between operations never reaches
 * memory, as the patterns are those of the library's own kernels: operations that nobody needs are there for that. */
#include "attention_graph.h"

#define MAX_OPS 28

typedef struct {
    const conv_planner *planner;
    conv_graph *graph;
    cudnnBackendDescriptor_t ops[MAX_OPS];
    int nops;
    int64_t next_id;
    dt_error *err;
} builder;

static dt_status
add_tensor(builder *b, graph_tensor t, cudnnBackendDescriptor_t *out)
{
    return cuda_graph_tensor(b->planner->device, b->graph, &t, out, b->err);
}

/* A number of the host that is given at each run. */
static dt_status
add_number(builder *b, int64_t id, cudnnBackendDescriptor_t *out)
{
    static const int64_t ones[] = {1, 1, 1, 1};
    return add_tensor(b, (graph_tensor){id, CUDNN_DATA_FLOAT, ones, ones, false, true}, out);
}

/* What stands between operations, and never in memory. */
static dt_status
add_between(builder *b, int type, const int64_t shape[4], cudnnBackendDescriptor_t *out)
{
    const int64_t strides[] = {shape[1] * shape[2] * shape[3], shape[2] * shape[3], shape[3], 1};
    return add_tensor(b, (graph_tensor){b->next_id++, type, shape, strides, true, false}, out);
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
    const int compute = mode == CUDNN_POINTWISE_GEN_INDEX ? CUDNN_DATA_INT32 : CUDNN_DATA_FLOAT;
    const graph_pointwise p = {mode, compute, axis, x, second, chosen, out};
    return cuda_graph_pointwise(b->planner->device, b->graph, &p, &b->ops[b->nops++], b->err);
}

/* out = x with its last two dimensions changed */
static dt_status
add_transpose(builder *b, cudnnBackendDescriptor_t x, cudnnBackendDescriptor_t out)
{
    cuda_device *d = b->planner->device;
    dt_error *err = b->err;
    cudnnBackendDescriptor_t op;
    DT_TRY(cuda_graph_part(d, b->graph, CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR, &op, err));
    CONV_SET(d, op, OPERATION_RESHAPE_XDESC, BACKEND_DESCRIPTOR, 1, &x);
    CONV_SET(d, op, OPERATION_RESHAPE_YDESC, BACKEND_DESCRIPTOR, 1, &out);
    return finish_op(b, op);
}

/* out = the sum or maximum of x along the dimensions in which out has one entry, or fewer heads */
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
    DT_TRY(add_number(b, ATTENTION_ID_HIDDEN, &hidden));
    DT_TRY(add_pointwise(b, CUDNN_POINTWISE_GEN_INDEX, 2, *scores, NULL, NULL, row));
    DT_TRY(add_pointwise(b, CUDNN_POINTWISE_GEN_INDEX, 3, *scores, NULL, NULL, column));
    DT_TRY(add_pointwise(b, CUDNN_POINTWISE_CMP_GE, 0, row, column, NULL, seen));
    DT_TRY(add_pointwise(b, CUDNN_POINTWISE_BINARY_SELECT, 0, *scores, hidden, seen, out));
    *scores = out;
    return DT_OK;
}

/* A number for each row, in memory. */
static dt_status
add_column(builder *b, int64_t id, const int64_t shape[4], cudnnBackendDescriptor_t *out)
{
    const int64_t each[] = {shape[0], shape[1], shape[2], 1}, strides[] = {shape[1] * shape[2], shape[2], 1, 1};
    return add_tensor(b, (graph_tensor){id, CUDNN_DATA_FLOAT, each, strides, false, false}, out);
}

/* weights = softmax(scores); kept: the logarithms of what the rows add up to are kept, and else read by nobody. */
static dt_status
add_softmax(builder *b, int type, bool kept, const int64_t shape[4], cudnnBackendDescriptor_t scores,
            cudnnBackendDescriptor_t *weights)
{
    const int64_t each[] = {shape[0], shape[1], shape[2], 1};
    cudnnBackendDescriptor_t top, below, power, sum, logarithm, all;
    DT_TRY(add_between(b, CUDNN_DATA_FLOAT, each, &top));
    DT_TRY(add_between(b, CUDNN_DATA_FLOAT, shape, &below));
    DT_TRY(add_between(b, CUDNN_DATA_FLOAT, shape, &power));
    DT_TRY(add_between(b, CUDNN_DATA_FLOAT, each, &sum));
    DT_TRY(add_between(b, CUDNN_DATA_FLOAT, each, &logarithm));
    DT_TRY(kept ? add_column(b, ATTENTION_ID_LOGARITHMS, shape, &all) : add_between(b, CUDNN_DATA_FLOAT, each, &all));
    DT_TRY(add_between(b, type, shape, weights));
    DT_TRY(add_reduction(b, CUDNN_REDUCE_TENSOR_MAX, scores, top));
    DT_TRY(add_pointwise(b, CUDNN_POINTWISE_SUB, 0, scores, top, NULL, below));
    DT_TRY(add_pointwise(b, CUDNN_POINTWISE_EXP, 0, below, NULL, NULL, power));
    DT_TRY(add_reduction(b, CUDNN_REDUCE_TENSOR_ADD, power, sum));
    DT_TRY(add_pointwise(b, CUDNN_POINTWISE_LOG, 0, sum, NULL, NULL, logarithm));
    DT_TRY(add_pointwise(b, CUDNN_POINTWISE_ADD, 0, top, logarithm, NULL, all));
    return add_pointwise(b, CUDNN_POINTWISE_DIV, 0, power, sum, NULL, *weights);
}

/* The products of queries and keys, scaled. */
static dt_status
add_scores(builder *b, const int64_t shape[4], cudnnBackendDescriptor_t query, cudnnBackendDescriptor_t key,
           cudnnBackendDescriptor_t scale, cudnnBackendDescriptor_t *scores)
{
    cudnnBackendDescriptor_t products;
    DT_TRY(add_between(b, CUDNN_DATA_FLOAT, shape, &products));
    DT_TRY(add_between(b, CUDNN_DATA_FLOAT, shape, scores));
    DT_TRY(add_product(b, query, key, products));
    return add_pointwise(b, CUDNN_POINTWISE_MUL, 0, products, scale, NULL, *scores);
}

static dt_status
add_operand(builder *b, int type, const attention_key *key, int operand, bool transposed, cudnnBackendDescriptor_t *out)
{
    const int64_t *s = key->shape[operand], *t = key->strides[operand];
    const int row = transposed ? 3 : 2, column = transposed ? 2 : 3;
    const int64_t shape[] = {s[0], s[1], s[row], s[column]}, strides[] = {t[0], t[1], t[row], t[column]};
    return add_tensor(b, (graph_tensor){operand + 1, type, shape, strides, false, false}, out);
}

static dt_status
build_forward(builder *b, int type, const attention_key *key, const int64_t shape[4])
{
    cudnnBackendDescriptor_t query, transposed, value, out, scale, scores, weights;
    DT_TRY(add_operand(b, type, key, ATTENTION_QUERY, false, &query));
    DT_TRY(add_operand(b, type, key, ATTENTION_KEY, true, &transposed));
    DT_TRY(add_operand(b, type, key, ATTENTION_VALUE, false, &value));
    DT_TRY(add_operand(b, type, key, ATTENTION_OUT, false, &out));
    DT_TRY(add_number(b, ATTENTION_ID_SCALE, &scale));
    DT_TRY(add_scores(b, shape, query, transposed, scale, &scores));
    if (key->causal) {
        DT_TRY(hide_later(b, shape, &scores));
    }
    DT_TRY(add_softmax(b, type, key->kind != ATTENTION_FORWARD, shape, scores, &weights));
    return add_product(b, weights, value, out);
}

/* to = x @ y, whose heads are added where `to` has fewer */
static dt_status
add_shared(builder *b, int type, const int64_t *shape, int64_t heads, cudnnBackendDescriptor_t x,
           cudnnBackendDescriptor_t y, cudnnBackendDescriptor_t to)
{
    const int64_t all[] = {shape[0], heads, shape[2], shape[3]};
    cudnnBackendDescriptor_t each;
    if (shape[1] == heads) {
        return add_product(b, x, y, to);
    }
    DT_TRY(add_between(b, type, all, &each));
    DT_TRY(add_product(b, x, y, each));
    return add_reduction(b, CUDNN_REDUCE_TENSOR_ADD, each, to);
}

/* x (.., rows, columns), transposed */
static dt_status
turn(builder *b, int type, const int64_t shape[4], cudnnBackendDescriptor_t x, cudnnBackendDescriptor_t *out)
{
    const int64_t turned[] = {shape[0], shape[1], shape[3], shape[2]};
    const int64_t strides[] = {shape[1] * shape[2] * shape[3], shape[2] * shape[3], 1, shape[3]};
    DT_TRY(add_tensor(b, (graph_tensor){b->next_id++, type, turned, strides, true, false}, out));
    return add_transpose(b, x, *out);
}

/* With weights p and scores s: dv = p.T @ g, dp = g @ v.T, ds = p * (dp - sum(g * out)), dq = ds @ k, dk = ds.T @ q. */
static dt_status
build_gradient(builder *b, int type, const attention_key *key, const int64_t shape[4])
{
    cudnnBackendDescriptor_t operands[ATTENTION_OPERANDS], scale, one, logarithms, sums, both, total, scores, below,
        weights, turned, products, less, unscaled, slopes, slopes_turned, keys;
    const int64_t heads = shape[1], *out = key->shape[ATTENTION_OUT], *k = key->shape[ATTENTION_KEY];
    const int64_t each[] = {shape[0], shape[1], shape[2], 1};
    for (int i = 0; i < ATTENTION_OPERANDS; i++) {
        DT_TRY(add_operand(b, type, key, i, i == ATTENTION_KEY || i == ATTENTION_VALUE, &operands[i]));
    }
    DT_TRY(add_number(b, ATTENTION_ID_SCALE, &scale));
    DT_TRY(add_number(b, ATTENTION_ID_ONE, &one));
    DT_TRY(add_column(b, ATTENTION_ID_LOGARITHMS, shape, &logarithms));
    DT_TRY(add_column(b, ATTENTION_ID_SUMS, shape, &sums));
    DT_TRY(add_between(b, CUDNN_DATA_FLOAT, out, &both));
    DT_TRY(add_between(b, CUDNN_DATA_FLOAT, each, &total));
    DT_TRY(add_pointwise(b, CUDNN_POINTWISE_MUL, 0, operands[ATTENTION_GRAD], operands[ATTENTION_OUT], NULL, both));
    DT_TRY(add_reduction(b, CUDNN_REDUCE_TENSOR_ADD, both, total));
    DT_TRY(add_pointwise(b, CUDNN_POINTWISE_MUL, 0, total, one, NULL, sums));

    DT_TRY(add_scores(b, shape, operands[ATTENTION_QUERY], operands[ATTENTION_KEY], scale, &scores));
    DT_TRY(add_between(b, CUDNN_DATA_FLOAT, shape, &below));
    DT_TRY(add_pointwise(b, CUDNN_POINTWISE_SUB, 0, scores, logarithms, NULL, below));
    if (key->causal) {
        DT_TRY(hide_later(b, shape, &below));
    }
    DT_TRY(add_between(b, CUDNN_DATA_FLOAT, shape, &weights));
    DT_TRY(add_pointwise(b, CUDNN_POINTWISE_EXP, 0, below, NULL, NULL, weights));
    DT_TRY(turn(b, type, shape, weights, &turned));
    DT_TRY(add_shared(b, type, key->shape[ATTENTION_DVALUE], heads, turned, operands[ATTENTION_GRAD],
                      operands[ATTENTION_DVALUE]));

    DT_TRY(add_between(b, CUDNN_DATA_FLOAT, shape, &products));
    DT_TRY(add_between(b, CUDNN_DATA_FLOAT, shape, &less));
    DT_TRY(add_between(b, CUDNN_DATA_FLOAT, shape, &unscaled));
    DT_TRY(add_between(b, type, shape, &slopes));
    DT_TRY(add_product(b, operands[ATTENTION_GRAD], operands[ATTENTION_VALUE], products));
    DT_TRY(add_pointwise(b, CUDNN_POINTWISE_SUB, 0, products, sums, NULL, less));
    DT_TRY(add_pointwise(b, CUDNN_POINTWISE_MUL, 0, less, weights, NULL, unscaled));
    DT_TRY(add_pointwise(b, CUDNN_POINTWISE_MUL, 0, unscaled, scale, NULL, slopes));
    DT_TRY(turn(b, type, shape, slopes, &slopes_turned));
    DT_TRY(add_shared(b, type, key->shape[ATTENTION_DKEY], heads, slopes_turned, operands[ATTENTION_QUERY],
                      operands[ATTENTION_DKEY]));

    DT_TRY(add_tensor(b, (graph_tensor){b->next_id++, type, k, key->strides[ATTENTION_KEY], true, false}, &keys));
    DT_TRY(add_transpose(b, operands[ATTENTION_KEY], keys));
    return add_product(b, slopes, keys, operands[ATTENTION_DQUERY]);
}

dt_status
cuda_attention_build(const conv_planner *planner, const attention_key *key, conv_graph *graph, dt_error *err)
{
    builder b = {.planner = planner, .graph = graph, .next_id = ATTENTION_ID_BETWEEN, .err = err};
    const int type = key->dtype == DT_FLOAT16 ? CUDNN_DATA_HALF : CUDNN_DATA_BFLOAT16;
    const int64_t *q = key->shape[ATTENTION_QUERY], shape[] = {q[0], q[1], q[2], key->shape[ATTENTION_KEY][2]};
    if (key->kind == ATTENTION_GRADIENT) {
        DT_TRY(build_gradient(&b, type, key, shape));
    } else {
        DT_TRY(build_forward(&b, type, key, shape));
    }
    return cuda_graph_finish(planner, graph, b.ops, b.nops, err);
}
