/* conform_dnn.c: cuDNN's descriptors, and a convolution by them. */
#include "conform.h"

typedef cudnnBackendDescriptor_t descriptor;

static descriptor
make(cudnnBackendDescriptorType_t type)
{
    descriptor d = NULL;
    conform_need("a descriptor can be made", api.cudnnBackendCreateDescriptor(type, &d) == 0);
    return d;
}

static void
set(descriptor d, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count, const void *value)
{
    char text[64];
    snprintf(text, sizeof(text), "attribute %d can be set", name);
    conform_need(text, api.cudnnBackendSetAttribute(d, name, type, count, value) == 0);
}

static void
finalize(const char *name, descriptor d)
{
    conform_need(name, api.cudnnBackendFinalize(d) == 0);
}

/* NCHW, contiguous; not finalized */
static descriptor
tensor_begin(int64_t uid, const int64_t *dims)
{
    descriptor d = make(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    int type = CUDNN_DATA_FLOAT;
    int64_t alignment = 16, strides[4] = {dims[1] * dims[2] * dims[3], dims[2] * dims[3], dims[3], 1};
    set(d, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
    set(d, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, dims);
    set(d, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, strides);
    set(d, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &uid);
    set(d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment);
    return d;
}

void
conform_dnn_descriptors(void)
{
    static const int64_t dims[4] = {2, 3, 4, 5};
    int64_t got[4] = {0}, count = 0, spatial = 2, ones[2] = {1, 1}, zeros[2] = {0, 0};
    int type = CUDNN_DATA_FLOAT, mode = CUDNN_CROSS_CORRELATION;
    descriptor none = NULL;
    HOLDS("cuDNN is 9", api.cudnnGetVersion() / 10000 == 9);
    HOLDS("the text of success is known", strstr(api.cudnnGetErrorString(0), "SUCCESS") != NULL);
    HOLDS("the text of 3000 is known",
          strstr(api.cudnnGetErrorString(CUDNN_STATUS_NOT_SUPPORTED), "NOT_SUPPORTED") != NULL);
    HOLDS("no descriptor of type 999", api.cudnnBackendCreateDescriptor(999, &none) != 0);
    OK("a descriptor", api.cudnnBackendCreateDescriptor(CUDNN_BACKEND_TENSOR_DESCRIPTOR, &none));
    HOLDS("there is a descriptor", none != NULL);
    HOLDS("an empty tensor cannot be finalized", api.cudnnBackendFinalize(none) != 0);
    HOLDS("dimensions of the wrong type",
          api.cudnnBackendSetAttribute(none, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_FLOAT, 4, dims) != 0);
    HOLDS("an attribute of another descriptor",
          api.cudnnBackendSetAttribute(none, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &spatial) != 0);
    HOLDS("dimensions of NULL",
          api.cudnnBackendSetAttribute(none, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, NULL) != 0);
    OK("cudnnBackendDestroyDescriptor of one not finalized", api.cudnnBackendDestroyDescriptor(none));
    descriptor t = tensor_begin(1, dims);
    HOLDS("nothing is read before it is final",
          api.cudnnBackendGetAttribute(t, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, &count, got) != 0);
    OK("a tensor is finalized", api.cudnnBackendFinalize(t));
    OK("its dimensions are read",
       api.cudnnBackendGetAttribute(t, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, &count, got));
    IS("there are four", count, 4);
    HOLDS("they are as set", memcmp(got, dims, sizeof(dims)) == 0);
    HOLDS("nothing is set after that",
          api.cudnnBackendSetAttribute(t, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, dims) != 0);
    OK("cudnnBackendDestroyDescriptor", api.cudnnBackendDestroyDescriptor(t));
    descriptor c = make(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    HOLDS("an empty convolution cannot be finalized", api.cudnnBackendFinalize(c) != 0);
    set(c, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
    set(c, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
    set(c, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &spatial);
    set(c, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, zeros);
    set(c, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, zeros);
    set(c, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, ones);
    set(c, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, ones);
    OK("a convolution is finalized", api.cudnnBackendFinalize(c));
    OK("its descriptor is destroyed", api.cudnnBackendDestroyDescriptor(c));
    HOLDS("an empty graph cannot be finalized",
          api.cudnnBackendFinalize(make(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR)) != 0);
    HOLDS("cudnnBackendDestroyDescriptor of NULL", api.cudnnBackendDestroyDescriptor(NULL) != 0);
}

/* x [1, 4, 6, 6] with w [8, 4, 3, 3], padded by one on each side */
enum { C = 4, H = 6, K = 8, R = 3, NX = C * H * H, NW = K * C * R * R, NY = K * H * H };

static float
number(int64_t i)
{
    return (float)((i * 5 + i / 4) % 7 - 3);
}

static float
wanted(int k, int y, int x)
{
    float sum = 0;
    for (int c = 0; c < C; c++) {
        for (int r = 0; r < R; r++) {
            for (int s = 0; s < R; s++) {
                int row = y + r - 1, column = x + s - 1;
                if (row >= 0 && row < H && column >= 0 && column < H) {
                    sum += number((c * H + row) * H + column) * number(((k * C + c) * R + r) * R + s + 1);
                }
            }
        }
    }
    return sum;
}

static descriptor
graph_new(cudnnHandle_t dnn, const descriptor tensors[3])
{
    int type = CUDNN_DATA_FLOAT, mode = CUDNN_CROSS_CORRELATION;
    int64_t spatial = 2, ones[2] = {1, 1};
    float alpha = 1, beta = 0;
    descriptor c = make(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    set(c, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
    set(c, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
    set(c, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &spatial);
    set(c, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, ones);
    set(c, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, ones);
    set(c, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, ones);
    set(c, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, ones);
    finalize("a padded convolution is finalized", c);
    descriptor op = make(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
    set(op, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &c);
    set(op, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &tensors[0]);
    set(op, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &tensors[1]);
    set(op, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &tensors[2]);
    set(op, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_TYPE_FLOAT, 1, &alpha);
    set(op, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, CUDNN_TYPE_FLOAT, 1, &beta);
    finalize("an operation is finalized", op);
    descriptor graph = make(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    set(graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &dnn);
    set(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &op);
    finalize("a graph is finalized", graph);
    return graph;
}

/* The first configuration that makes a plan. */
static descriptor
plan_new(cudnnHandle_t dnn, descriptor graph)
{
    enum { MOST = 8 };
    int mode = CUDNN_HEUR_MODE_A;
    int64_t count = 0;
    descriptor configs[MOST], heuristics = make(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    set(heuristics, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &graph);
    set(heuristics, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    finalize("heuristics are finalized", heuristics);
    for (int i = 0; i < MOST; i++) {
        configs[i] = make(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    }
    conform_need("heuristics answer",
                 api.cudnnBackendGetAttribute(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                              MOST, &count, configs) == 0);
    HOLDS("there is a configuration, and not more than asked for", count >= 1 && count <= MOST);
    for (int64_t i = 0; i < count && i < MOST; i++) {
        descriptor plan = make(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
        set(plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &dnn);
        set(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &configs[i]);
        if (api.cudnnBackendFinalize(plan) == 0) {
            return plan;
        }
    }
    conform_need("a configuration makes a plan", false);
    return NULL;
}

void
conform_dnn_convolution(void)
{
    static const int64_t dims[3][4] = {{1, C, H, H}, {K, C, R, R}, {1, K, H, H}};
    static const int64_t uids[3] = {11, 12, 13};
    cudnnHandle_t dnn = NULL;
    int64_t workspace = -1, count = 0;
    float x[NX], w[NW], y[NY];
    descriptor tensors[3];
    start();
    HOLDS("cudnnCreate to NULL", api.cudnnCreate(NULL) != 0);
    OK("cudnnCreate", api.cudnnCreate(&dnn));
    CUstream stream = stream_new();
    OK("cudnnSetStream", api.cudnnSetStream(dnn, stream));
    for (int i = 0; i < 3; i++) {
        tensors[i] = tensor_begin(uids[i], dims[i]);
        finalize("a tensor of the graph is finalized", tensors[i]);
    }
    descriptor plan = plan_new(dnn, graph_new(dnn, tensors));
    OK("the workspace of a plan", api.cudnnBackendGetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                                               CUDNN_TYPE_INT64, 1, &count, &workspace));
    HOLDS("it is one number, not negative", count == 1 && workspace >= 0);
    for (int i = 0; i < NX; i++) {
        x[i] = number(i);
    }
    for (int i = 0; i < NW; i++) {
        w[i] = number(i + 1);
    }
    CUdeviceptr space = allocate(workspace > 0 ? (size_t)workspace : 16);
    void *pointers[3] = {(void *)(uintptr_t)allocate(sizeof(x)), (void *)(uintptr_t)allocate(sizeof(w)),
                         (void *)(uintptr_t)allocate(sizeof(y))};
    void *scratch = (void *)(uintptr_t)space;
    conform_need("images are copied", api.cuMemcpyHtoDAsync_v2((uintptr_t)pointers[0], x, sizeof(x), stream) == 0 &&
                                          api.cuMemcpyHtoDAsync_v2((uintptr_t)pointers[1], w, sizeof(w), stream) == 0);
    descriptor pack = make(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    set(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, 3, uids);
    set(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, 3, pointers);
    set(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &scratch);
    finalize("a pack is finalized", pack);
    OK("cudnnBackendExecute", api.cudnnBackendExecute(dnn, plan, pack));
    HOLDS("cudnnBackendExecute with plan and pack exchanged", api.cudnnBackendExecute(dnn, pack, plan) != 0);
    OK("the result is read", api.cuMemcpyDtoHAsync_v2(y, (uintptr_t)pointers[2], sizeof(y), stream));
    OK("the convolution is done", api.cuStreamSynchronize(stream));
    bool right = true;
    for (int i = 0; i < NY; i++) {
        right = right && fabsf(y[i] - wanted(i / (H * H), i / H % H, i % H)) <= 0.01f * (1 + fabsf(y[i]));
    }
    HOLDS("the convolution is right", right);
    OK("cudnnDestroy", api.cudnnDestroy(dnn));
}
