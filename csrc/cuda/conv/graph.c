/* graph.c: a convolution as a graph of cuDNN: the convolution and, with a bias, an addition and, with an
 * activation, a ReLU. What stands between them is virtual and never reaches memory. A gradient is one operation. */
#include "plan.h"

dt_status
cuda_graph_part(cuda_device *d, conv_graph *g, cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t *out,
                dt_error *err)
{
    *out = NULL;
    CUDA_TRY(d, cudnnBackendCreateDescriptor, (type, out));
    g->parts[g->nparts++] = *out;
    return DT_OK;
}

void
cuda_conv_graph_clear(conv_graph *g)
{
    while (g->nparts > 0) {
        (void)cu.cudnnBackendDestroyDescriptor(g->parts[--g->nparts]);
    }
}

dt_status
cuda_graph_tensor(cuda_device *d, conv_graph *g, const graph_tensor *t, cudnnBackendDescriptor_t *out, dt_error *err)
{
    const int64_t alignment = t->by_value ? (int64_t)sizeof(float) : CONV_ALIGNMENT;
    DT_TRY(cuda_graph_part(d, g, CUDNN_BACKEND_TENSOR_DESCRIPTOR, out, err));
    CONV_SET(d, *out, TENSOR_DATA_TYPE, DATA_TYPE, 1, &t->type);
    CONV_SET(d, *out, TENSOR_DIMENSIONS, INT64, 4, t->shape);
    CONV_SET(d, *out, TENSOR_STRIDES, INT64, 4, t->strides);
    CONV_SET(d, *out, TENSOR_UNIQUE_ID, INT64, 1, &t->id);
    CONV_SET(d, *out, TENSOR_BYTE_ALIGNMENT, INT64, 1, &alignment);
    CONV_SET(d, *out, TENSOR_IS_VIRTUAL, BOOLEAN, 1, &t->is_virtual);
    if (t->by_value) {
        CONV_SET(d, *out, TENSOR_IS_BY_VALUE, BOOLEAN, 1, &t->by_value);
    }
    CUDA_TRY(d, cudnnBackendFinalize, (*out));
    return DT_OK;
}

/* What a kind of operation is called, and its attributes. */
typedef struct {
    cudnnBackendDescriptorType_t type;
    int x, weight, out, convolution, alpha, beta;
} operation_names;

static const operation_names operations[] = {
    [CONV_FORWARD] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
    [CONV_INPUT_GRAD] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
                         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
                         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
    [CONV_WEIGHT_GRAD] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
                          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
                          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
                          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
                          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
                          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA},
};

static dt_status
add_convolution(cuda_device *d, conv_graph *g, const conv_key *key, int compute, const cudnnBackendDescriptor_t xwy[3],
                cudnnBackendDescriptor_t *op, dt_error *err)
{
    cudnnBackendDescriptor_t conv;
    int mode = CUDNN_CROSS_CORRELATION;
    int64_t ndims = 2;
    bool wide = compute == CUDNN_DATA_DOUBLE;
    const float narrow_scale[] = {1, 0};
    const double wide_scale[] = {1, 0};
    DT_TRY(cuda_graph_part(d, g, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, &conv, err));
    CONV_SET(d, conv, CONVOLUTION_COMP_TYPE, DATA_TYPE, 1, &compute);
    CONV_SET(d, conv, CONVOLUTION_CONV_MODE, CONVOLUTION_MODE, 1, &mode);
    CONV_SET(d, conv, CONVOLUTION_SPATIAL_DIMS, INT64, 1, &ndims);
    CONV_SET(d, conv, CONVOLUTION_PRE_PADDINGS, INT64, 2, key->before);
    CONV_SET(d, conv, CONVOLUTION_POST_PADDINGS, INT64, 2, key->after);
    CONV_SET(d, conv, CONVOLUTION_FILTER_STRIDES, INT64, 2, key->stride);
    CONV_SET(d, conv, CONVOLUTION_DILATIONS, INT64, 2, key->dilation);
    CUDA_TRY(d, cudnnBackendFinalize, (conv));
    const operation_names *names = &operations[key->kind];
    DT_TRY(cuda_graph_part(d, g, names->type, op, err));
    const int of_tensors[] = {names->x, names->weight, names->out};
    for (int i = 0; i < 3; i++) {
        CUDA_TRY(d, cudnnBackendSetAttribute, (*op, of_tensors[i], CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &xwy[i]));
    }
    CUDA_TRY(d, cudnnBackendSetAttribute, (*op, names->convolution, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &conv));
    const int of_scales[] = {names->alpha, names->beta};
    for (int i = 0; i < 2; i++) {
        const void *scale = wide ? (const void *)&wide_scale[i] : (const void *)&narrow_scale[i];
        CUDA_TRY(d, cudnnBackendSetAttribute,
                 (*op, of_scales[i], wide ? CUDNN_TYPE_DOUBLE : CUDNN_TYPE_FLOAT, 1, scale));
    }
    CUDA_TRY(d, cudnnBackendFinalize, (*op));
    return DT_OK;
}

dt_status
cuda_graph_pointwise(cuda_device *d, conv_graph *g, const graph_pointwise *p, cudnnBackendDescriptor_t *op,
                     dt_error *err)
{
    cudnnBackendDescriptor_t pointwise;
    int nans = CUDNN_PROPAGATE_NAN;
    DT_TRY(cuda_graph_part(d, g, CUDNN_BACKEND_POINTWISE_DESCRIPTOR, &pointwise, err));
    CONV_SET(d, pointwise, POINTWISE_MODE, POINTWISE_MODE, 1, &p->mode);
    CONV_SET(d, pointwise, POINTWISE_MATH_PREC, DATA_TYPE, 1, &p->compute);
    if (p->mode == CUDNN_POINTWISE_RELU_FWD) {
        CONV_SET(d, pointwise, POINTWISE_NAN_PROPAGATION, NAN_PROPOGATION, 1, &nans);
    }
    if (p->mode == CUDNN_POINTWISE_GEN_INDEX) {
        CONV_SET(d, pointwise, POINTWISE_AXIS, INT64, 1, &p->axis);
    }
    CUDA_TRY(d, cudnnBackendFinalize, (pointwise));
    DT_TRY(cuda_graph_part(d, g, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, op, err));
    CONV_SET(d, *op, OPERATION_POINTWISE_PW_DESCRIPTOR, BACKEND_DESCRIPTOR, 1, &pointwise);
    CONV_SET(d, *op, OPERATION_POINTWISE_XDESC, BACKEND_DESCRIPTOR, 1, &p->x);
    if (p->b != NULL) {
        CONV_SET(d, *op, OPERATION_POINTWISE_BDESC, BACKEND_DESCRIPTOR, 1, &p->b);
    }
    if (p->chosen != NULL) {
        CONV_SET(d, *op, OPERATION_POINTWISE_TDESC, BACKEND_DESCRIPTOR, 1, &p->chosen);
    }
    CONV_SET(d, *op, OPERATION_POINTWISE_YDESC, BACKEND_DESCRIPTOR, 1, &p->y);
    CUDA_TRY(d, cudnnBackendFinalize, (*op));
    return DT_OK;
}

dt_status
cuda_graph_finish(const conv_planner *planner, conv_graph *g, const cudnnBackendDescriptor_t *ops, int nops,
                  dt_error *err)
{
    cuda_device *d = planner->device;
    cudnnBackendDescriptor_t graph;
    DT_TRY(cuda_graph_part(d, g, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, &graph, err));
    if (planner->handle != NULL) {
        CONV_SET(d, graph, OPERATIONGRAPH_HANDLE, HANDLE, 1, &planner->handle);
    }
    CONV_SET(d, graph, OPERATIONGRAPH_OPS, BACKEND_DESCRIPTOR, nops, ops);
    CUDA_TRY(d, cudnnBackendFinalize, (graph));
    return DT_OK;
}

dt_status
cuda_conv_graph(const conv_planner *planner, const conv_key *key, int fused, conv_graph *g, dt_error *err)
{
    static const int types[DT_NDTYPES] = {[DT_FLOAT16] = CUDNN_DATA_HALF,
                                          [DT_BFLOAT16] = CUDNN_DATA_BFLOAT16,
                                          [DT_FLOAT32] = CUDNN_DATA_FLOAT,
                                          [DT_FLOAT64] = CUDNN_DATA_DOUBLE};
    cuda_device *d = planner->device;
    int type = types[key->dtype], compute = key->dtype == DT_FLOAT64 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
    bool bias = (fused & CONV_BIAS) != 0, relu = (fused & CONV_RELU) != 0;
    int64_t k = key->out[1], bias_shape[] = {1, k, 1, 1};
    int64_t bias_strides[] = {k, 1, key->channels_last ? k : 1, key->channels_last ? k : 1};
    const graph_tensor between = {CONV_ID_CONVOLVED, compute, key->out, key->out_strides, true, false};
    cudnnBackendDescriptor_t xwy[3], b, convolved, biased, out, ops[3];
    int nops = 1;
    DT_TRY(
        cuda_graph_tensor(d, g, &(graph_tensor){CONV_ID_X, type, key->x, key->x_strides, false, false}, &xwy[0], err));
    DT_TRY(cuda_graph_tensor(
        d, g, &(graph_tensor){CONV_ID_WEIGHT, type, key->weight, key->weight_strides, false, false}, &xwy[1], err));
    DT_TRY(cuda_graph_tensor(d, g, &(graph_tensor){CONV_ID_OUT, type, key->out, key->out_strides, false, false}, &out,
                             err));
    convolved = biased = out;
    if (bias || relu) {
        DT_TRY(cuda_graph_tensor(d, g, &between, &convolved, err));
    }
    xwy[2] = convolved;
    DT_TRY(add_convolution(d, g, key, compute, xwy, &ops[0], err));
    if (bias) {
        DT_TRY(cuda_graph_tensor(d, g, &(graph_tensor){CONV_ID_BIAS, type, bias_shape, bias_strides, false, false}, &b,
                                 err));
        if (relu) {
            graph_tensor after = between;
            after.id = CONV_ID_BIASED;
            DT_TRY(cuda_graph_tensor(d, g, &after, &biased, err));
        }
        DT_TRY(cuda_graph_pointwise(
            d, g, &(graph_pointwise){CUDNN_POINTWISE_ADD, compute, 0, convolved, b, NULL, biased}, &ops[nops++], err));
        convolved = biased;
    }
    if (relu) {
        DT_TRY(cuda_graph_pointwise(
            d, g, &(graph_pointwise){CUDNN_POINTWISE_RELU_FWD, compute, 0, convolved, NULL, NULL, out}, &ops[nops++],
            err));
    }
    return cuda_graph_finish(planner, g, ops, nops, err);
}
