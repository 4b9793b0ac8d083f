/* test_sim_conv2d.c: cuDNN. */
#include "test_sim.h"

static cudnnBackendDescriptor_t
dnn_new(int type)
{
    cudnnBackendDescriptor_t desc = NULL;
    OK(api.cudnnBackendCreateDescriptor(type, &desc));
    return desc;
}

#define SET(desc, name, type, count, value)                                                                            \
    api.cudnnBackendSetAttribute(desc, CUDNN_ATTR_##name, CUDNN_TYPE_##type, count, value)
#define GET(desc, name, type, n, count, value)                                                                         \
    api.cudnnBackendGetAttribute(desc, CUDNN_ATTR_##name, CUDNN_TYPE_##type, n, count, value)

static cudnnBackendDescriptor_t
tensor_new(int64_t uid, int dtype, const int64_t dims[4], bool channels_last, bool is_virtual)
{
    cudnnBackendDescriptor_t t = dnn_new(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    int64_t c = dims[1], h = dims[2], w = dims[3], alignment = 16;
    const int64_t first[4] = {c * h * w, h * w, w, 1}, last[4] = {c * h * w, 1, w * c, c};
    OK(SET(t, TENSOR_DATA_TYPE, DATA_TYPE, 1, &dtype));
    OK(SET(t, TENSOR_DIMENSIONS, INT64, 4, dims));
    OK(SET(t, TENSOR_STRIDES, INT64, 4, channels_last ? last : first));
    OK(SET(t, TENSOR_UNIQUE_ID, INT64, 1, &uid));
    OK(SET(t, TENSOR_BYTE_ALIGNMENT, INT64, 1, &alignment));
    OK(SET(t, TENSOR_IS_VIRTUAL, BOOLEAN, 1, &is_virtual));
    OK(api.cudnnBackendFinalize(t));
    return t;
}

static cudnnBackendDescriptor_t
pointwise_new(int mode, cudnnBackendDescriptor_t x, cudnnBackendDescriptor_t b, cudnnBackendDescriptor_t y)
{
    cudnnBackendDescriptor_t how = dnn_new(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    cudnnBackendDescriptor_t op = dnn_new(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    int compute = CUDNN_DATA_FLOAT;
    OK(SET(how, POINTWISE_MODE, POINTWISE_MODE, 1, &mode));
    OK(SET(how, POINTWISE_MATH_PREC, DATA_TYPE, 1, &compute));
    OK(api.cudnnBackendFinalize(how));
    OK(SET(op, OPERATION_POINTWISE_PW_DESCRIPTOR, BACKEND_DESCRIPTOR, 1, &how));
    OK(SET(op, OPERATION_POINTWISE_XDESC, BACKEND_DESCRIPTOR, 1, &x));
    if (b != NULL) {
        OK(SET(op, OPERATION_POINTWISE_BDESC, BACKEND_DESCRIPTOR, 1, &b));
    }
    OK(SET(op, OPERATION_POINTWISE_YDESC, BACKEND_DESCRIPTOR, 1, &y));
    OK(api.cudnnBackendFinalize(op));
    OK(api.cudnnBackendDestroyDescriptor(how));
    return op;
}

typedef struct {
    int64_t n, c, h, w, k, r, s, groups;
    int64_t pre[2], post[2], stride[2], dilation[2];
    bool channels_last, bias, relu;
} shape;

static cudnnBackendDescriptor_t
parameters_new(const shape *q)
{
    cudnnBackendDescriptor_t conv = dnn_new(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    int compute = CUDNN_DATA_FLOAT, mode = CUDNN_CROSS_CORRELATION;
    int64_t two = 2;
    OK(SET(conv, CONVOLUTION_COMP_TYPE, DATA_TYPE, 1, &compute));
    OK(SET(conv, CONVOLUTION_CONV_MODE, CONVOLUTION_MODE, 1, &mode));
    OK(SET(conv, CONVOLUTION_SPATIAL_DIMS, INT64, 1, &two));
    OK(SET(conv, CONVOLUTION_PRE_PADDINGS, INT64, 2, q->pre));
    OK(SET(conv, CONVOLUTION_POST_PADDINGS, INT64, 2, q->post));
    OK(SET(conv, CONVOLUTION_FILTER_STRIDES, INT64, 2, q->stride));
    OK(SET(conv, CONVOLUTION_DILATIONS, INT64, 2, q->dilation));
    return conv;
}

static cudnnBackendDescriptor_t
operation_new(cudnnBackendDescriptor_t conv, cudnnBackendDescriptor_t x, cudnnBackendDescriptor_t w,
              cudnnBackendDescriptor_t y)
{
    cudnnBackendDescriptor_t op = dnn_new(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
    float one = 1, zero = 0;
    OK(SET(op, OPERATION_CONVOLUTION_FORWARD_CONV_DESC, BACKEND_DESCRIPTOR, 1, &conv));
    OK(SET(op, OPERATION_CONVOLUTION_FORWARD_X, BACKEND_DESCRIPTOR, 1, &x));
    OK(SET(op, OPERATION_CONVOLUTION_FORWARD_W, BACKEND_DESCRIPTOR, 1, &w));
    OK(SET(op, OPERATION_CONVOLUTION_FORWARD_Y, BACKEND_DESCRIPTOR, 1, &y));
    OK(SET(op, OPERATION_CONVOLUTION_FORWARD_ALPHA, FLOAT, 1, &one));
    OK(SET(op, OPERATION_CONVOLUTION_FORWARD_BETA, FLOAT, 1, &zero));
    return op;
}

static int64_t
place(const int64_t dims[4], bool channels_last, int64_t n, int64_t c, int64_t h, int64_t w)
{
    return channels_last ? ((n * dims[2] + h) * dims[3] + w) * dims[1] + c
                         : ((n * dims[1] + c) * dims[2] + h) * dims[3] + w;
}

static void
one_convolution(cudnnHandle_t dnn, shape q)
{
    int64_t p[2];
    for (int i = 0; i < 2; i++) {
        int64_t size = i ? q.w : q.h, kernel = i ? q.s : q.r;
        p[i] = (size + q.pre[i] + q.post[i] - q.dilation[i] * (kernel - 1) - 1) / q.stride[i] + 1;
    }
    const int64_t dims[4][4] = {
        {q.n, q.c, q.h, q.w}, {q.k, q.c / q.groups, q.r, q.s}, {1, q.k, 1, 1}, {q.n, q.k, p[0], p[1]}};
    int last = (q.bias ? 1 : 0) + (q.relu ? 1 : 0);
    cudnnBackendDescriptor_t x = tensor_new(1, CUDNN_DATA_FLOAT, dims[0], q.channels_last, false);
    cudnnBackendDescriptor_t w = tensor_new(2, CUDNN_DATA_FLOAT, dims[1], q.channels_last, false);
    cudnnBackendDescriptor_t b = tensor_new(3, CUDNN_DATA_FLOAT, dims[2], q.channels_last, false);
    cudnnBackendDescriptor_t y[3], ops[3], conv = parameters_new(&q);
    for (int i = 0; i <= last; i++) {
        y[i] = tensor_new(i == last ? 10 : 11 + i, CUDNN_DATA_FLOAT, dims[3], q.channels_last, i != last);
    }
    OK(api.cudnnBackendFinalize(conv));
    ops[0] = operation_new(conv, x, w, y[0]);
    OK(api.cudnnBackendFinalize(ops[0]));
    int nops = 1;
    if (q.bias) {
        ops[nops] = pointwise_new(CUDNN_POINTWISE_ADD, y[nops - 1], b, y[nops]);
        nops++;
    }
    if (q.relu) {
        ops[nops] = pointwise_new(CUDNN_POINTWISE_RELU_FWD, y[nops - 1], NULL, y[nops]);
        nops++;
    }
    cudnnBackendDescriptor_t graph = dnn_new(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    OK(SET(graph, OPERATIONGRAPH_HANDLE, HANDLE, 1, &dnn));
    OK(SET(graph, OPERATIONGRAPH_OPS, BACKEND_DESCRIPTOR, nops, ops));
    OK(api.cudnnBackendFinalize(graph));
    cudnnBackendDescriptor_t heuristics = dnn_new(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR), configs[4];
    int mode = CUDNN_HEUR_MODE_FALLBACK, note = -1;
    /* the plain engine is the first of the fallback list, but for a ReLU alone */
    static const int notes[4] = {CUDNN_NUMERICAL_NOTE_TENSOR_CORE, CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS, -1, -1};
    bool compiled = q.relu && !q.bias;
    int plain = compiled ? 0 : nops == 1 ? 3 : 2, named = compiled ? 4 : plain + q.channels_last;
    int64_t count = 0, index = -1;
    OK(SET(heuristics, ENGINEHEUR_OPERATION_GRAPH, BACKEND_DESCRIPTOR, 1, &graph));
    OK(SET(heuristics, ENGINEHEUR_MODE, HEUR_MODE, 1, &mode));
    OK(api.cudnnBackendFinalize(heuristics));
    OK(GET(heuristics, ENGINEHEUR_RESULTS, BACKEND_DESCRIPTOR, 0, &count, NULL));
    SAME(count, 4); /* what there may be */
    for (int i = 0; i < 4; i++) {
        configs[i] = dnn_new(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    }
    OK(GET(heuristics, ENGINEHEUR_RESULTS, BACKEND_DESCRIPTOR, 4, &count, configs));
    SAME(count, named);
    for (int i = 0; i < named; i++) {
        cudnnBackendDescriptor_t engine = dnn_new(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
        note = -1;
        OK(GET(configs[i], ENGINECFG_ENGINE, BACKEND_DESCRIPTOR, 1, &count, &engine));
        OK(GET(engine, ENGINE_GLOBAL_INDEX, INT64, 1, &count, &index));
        SAME(index, i < plain ? 2 : 3);
        OK(GET(engine, ENGINE_NUMERICAL_NOTE, NUMERICAL_NOTE, 16, &count, &note));
        SAME(note, notes[index]);
        SAME(count, notes[index] >= 0);
        note = -1;
        OK(GET(engine, ENGINE_BEHAVIOR_NOTE, BEHAVIOR_NOTE, 16, &count, &note));
        SAME(note, index == 3 ? CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION : -1);
        OK(api.cudnnBackendDestroyDescriptor(engine));
    }
    cudnnBackendDescriptor_t plan = dnn_new(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    int64_t space = -1;
    OK(SET(plan, EXECUTION_PLAN_HANDLE, HANDLE, 1, &dnn));
    OK(SET(plan, EXECUTION_PLAN_ENGINE_CONFIG, BACKEND_DESCRIPTOR, 1, &configs[0]));
    OK(api.cudnnBackendFinalize(plan));
    OK(GET(plan, EXECUTION_PLAN_WORKSPACE_SIZE, INT64, 1, &count, &space));
    for (int i = 0; i < 4; i++) {
        OK(api.cudnnBackendDestroyDescriptor(configs[i]));
    }
    OK(api.cudnnBackendDestroyDescriptor(heuristics));
    OK(api.cudnnBackendDestroyDescriptor(graph));
    for (int i = 0; i < nops; i++) {
        OK(api.cudnnBackendDestroyDescriptor(ops[i]));
        OK(api.cudnnBackendDestroyDescriptor(y[i]));
    }
    OK(api.cudnnBackendDestroyDescriptor(conv));
    OK(api.cudnnBackendDestroyDescriptor(x));
    OK(api.cudnnBackendDestroyDescriptor(w));
    OK(api.cudnnBackendDestroyDescriptor(b));
    CUdeviceptr device[4], workspace = alloc((size_t)space + 1);
    float *values[4];
    for (int i = 0; i < 4; i++) {
        int64_t n = dims[i][0] * dims[i][1] * dims[i][2] * dims[i][3];
        values[i] = malloc((size_t)n * 4);
        for (int64_t j = 0; j < n; j++) {
            values[i][j] = (float)entry(j + i);
        }
        device[i] = alloc((size_t)n * 4);
        OK(api.cuMemcpyHtoDAsync_v2(device[i], values[i], (size_t)n * 4, NULL));
    }
    cudnnBackendDescriptor_t pack = dnn_new(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    const int64_t uids[4] = {1, 2, 3, 10};
    void *pointers[4];
    for (int i = 0; i < 4; i++) {
        pointers[i] = (void *)(uintptr_t)device[i];
    }
    void *at = (void *)(uintptr_t)workspace;
    OK(SET(pack, VARIANT_PACK_UNIQUE_IDS, INT64, 4, uids));
    OK(SET(pack, VARIANT_PACK_DATA_POINTERS, VOID_PTR, 4, pointers));
    OK(SET(pack, VARIANT_PACK_WORKSPACE, VOID_PTR, 1, &at));
    SAME(api.cudnnBackendExecute(dnn, plan, pack), CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED);
    OK(api.cudnnBackendFinalize(pack));
    OK(api.cudnnBackendExecute(dnn, plan, pack));
    OK(api.cudnnBackendDestroyDescriptor(pack));
    int64_t n = q.n * q.k * p[0] * p[1], wrong = 0;
    float *got = malloc((size_t)n * 4);
    OK(api.cuMemcpyDtoHAsync_v2(got, device[3], (size_t)n * 4, NULL));
    for (int64_t i = 0; i < n; i++) {
        int64_t ow = i % p[1], oh = i / p[1] % p[0], k = i / p[1] / p[0] % q.k, m = i / p[1] / p[0] / q.k;
        int64_t per = q.c / q.groups;
        float sum = q.bias ? values[2][k] : 0;
        for (int64_t c = 0; c < per; c++) {
            for (int64_t r = 0; r < q.r; r++) {
                for (int64_t s = 0; s < q.s; s++) {
                    int64_t ih = oh * q.stride[0] - q.pre[0] + r * q.dilation[0],
                            iw = ow * q.stride[1] - q.pre[1] + s * q.dilation[1];
                    if (ih >= 0 && ih < q.h && iw >= 0 && iw < q.w) {
                        sum += values[0][place(dims[0], q.channels_last, m, k / (q.k / q.groups) * per + c, ih, iw)] *
                               values[1][place(dims[1], q.channels_last, k, c, r, s)];
                    }
                }
            }
        }
        sum = q.relu && sum < 0 ? 0 : sum;
        wrong += got[place(dims[3], q.channels_last, m, k, oh, ow)] != sum;
    }
    SAME(wrong, 0);
    free(got);
    OK(api.cudnnBackendDestroyDescriptor(plan)); /* not before its runs are over */
    for (int i = 0; i < 4; i++) {
        OK(api.cuMemFree_v2(device[i]));
        free(values[i]);
    }
    OK(api.cuMemFree_v2(workspace));
    int64_t ledger[6];
    sim_ledger(&ledger[0], &ledger[1], &ledger[2], &ledger[3], &ledger[4], &ledger[5]);
    SAME(ledger[0] + ledger[5], 0);
}

void
test_convolutions(void)
{
    cudnnHandle_t dnn = NULL;
    start();
    OK(api.cudnnCreate(&dnn));
    const shape base = {2, 4, 9, 8, 6, 3, 3, 1, {0, 0}, {0, 0}, {1, 1}, {1, 1}, false, false, false};
    for (int i = 0; i < 64; i++) {
        shape q = base;
        q.channels_last = i & 1;
        q.bias = i & 2;
        q.relu = i & 4;
        q.groups = i & 8 ? 2 : 1;
        if (i & 16) {
            q.stride[0] = 2;
            q.pre[0] = 1;
            q.post[1] = 2;
        }
        if (i & 32) {
            q.dilation[1] = 2;
            q.r = q.s = 2;
            q.pre[1] = 3;
        }
        if (q.channels_last || q.bias || !q.relu) { /* else there is no engine */
            one_convolution(dnn, q);
        }
    }
    shape pointwise = base;
    pointwise.r = pointwise.s = 1;
    one_convolution(dnn, pointwise);
    OK(api.cudnnDestroy(dnn));
}

void
test_dnn_refusals(void)
{
    cudnnHandle_t dnn = NULL;
    cudnnBackendDescriptor_t none = NULL, t = NULL;
    int64_t four[4] = {1, 2, 3, 4}, zero[4] = {1, 0, 1, 1}, got[8], count = 77, odd = 6;
    int dtype = 0;
    char text[32] = "?";
    start();
    SAME(api.cudnnCreate(NULL), CUDNN_STATUS_BAD_PARAM);
    OK(api.cudnnCreate(&dnn));
    CHECK(api.cudnnGetVersion() >= 90000);
    CHECK(strcmp(api.cudnnGetErrorString(3000), "CUDNN_STATUS_NOT_SUPPORTED") == 0);
    OK(api.cudnnSetStream(dnn, stream_new(0)));
    OK(api.cudnnSetStream(dnn, NULL));
    SAME(api.cudnnSetStream(dnn, (CUstream)(uintptr_t)64), CUDNN_STATUS_BAD_PARAM);
    SAME(api.cudnnSetStream(NULL, NULL), CUDNN_STATUS_BAD_PARAM);
    SAME(api.cudnnBackendCreateDescriptor(999, &none), CUDNN_STATUS_NOT_SUPPORTED);
    api.cudnnGetLastErrorString(text, sizeof(text));
    CHECK(strlen(text) == sizeof(text) - 1);
    SAME(api.cudnnBackendCreateDescriptor(CUDNN_BACKEND_TENSOR_DESCRIPTOR, NULL), CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
    t = dnn_new(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    SAME(api.cudnnBackendFinalize(t), CUDNN_STATUS_BAD_PARAM);
    SAME(SET(t, CONVOLUTION_COMP_TYPE, DATA_TYPE, 1, &dtype), CUDNN_STATUS_BAD_PARAM);
    SAME(SET(t, TENSOR_DIMENSIONS, DATA_TYPE, 4, four), CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE);
    SAME(SET(t, TENSOR_DIMENSIONS, INT64, 0, four), CUDNN_STATUS_BAD_PARAM);
    SAME(SET(t, TENSOR_DIMENSIONS, INT64, -1, four), CUDNN_STATUS_BAD_PARAM);
    SAME(SET(t, TENSOR_DIMENSIONS, INT64, 9, four), CUDNN_STATUS_BAD_PARAM);
    SAME(SET(t, TENSOR_DIMENSIONS, INT64, 4, NULL), CUDNN_STATUS_BAD_PARAM);
    SAME(SET(t, TENSOR_DATA_TYPE, DATA_TYPE, 2, &dtype), CUDNN_STATUS_BAD_PARAM);
    SAME(SET(NULL, TENSOR_DATA_TYPE, DATA_TYPE, 1, &dtype), CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
    SAME(GET(t, TENSOR_DIMENSIONS, INT64, 8, &count, got), CUDNN_STATUS_NOT_INITIALIZED);
    SAME(count, 77);
    OK(SET(t, TENSOR_DATA_TYPE, DATA_TYPE, 1, &dtype));
    OK(SET(t, TENSOR_DIMENSIONS, INT64, 4, zero));
    OK(SET(t, TENSOR_STRIDES, INT64, 4, four));
    OK(SET(t, TENSOR_UNIQUE_ID, INT64, 1, four));
    OK(SET(t, TENSOR_BYTE_ALIGNMENT, INT64, 1, &four[3]));
    SAME(api.cudnnBackendFinalize(t), CUDNN_STATUS_BAD_PARAM);
    OK(SET(t, TENSOR_DIMENSIONS, INT64, 3, four));
    SAME(api.cudnnBackendFinalize(t), CUDNN_STATUS_BAD_PARAM);
    OK(SET(t, TENSOR_DIMENSIONS, INT64, 4, four));
    OK(SET(t, TENSOR_BYTE_ALIGNMENT, INT64, 1, &odd));
    SAME(api.cudnnBackendFinalize(t), CUDNN_STATUS_BAD_PARAM);
    OK(SET(t, TENSOR_BYTE_ALIGNMENT, INT64, 1, &four[1]));
    SAME(api.cudnnBackendFinalize(t), CUDNN_STATUS_BAD_PARAM); /* no multiple of an element's size */
    OK(SET(t, TENSOR_BYTE_ALIGNMENT, INT64, 1, &four[3]));
    OK(api.cudnnBackendFinalize(t));
    SAME(api.cudnnBackendFinalize(t), CUDNN_STATUS_BAD_PARAM);
    SAME(SET(t, TENSOR_UNIQUE_ID, INT64, 1, four), CUDNN_STATUS_BAD_PARAM);
    OK(GET(t, TENSOR_DIMENSIONS, INT64, 8, &count, got));
    SAME(count, 4);
    SAME(got[3], 4);
    OK(GET(t, TENSOR_DIMENSIONS, INT64, 2, &count, got));
    SAME(count, 2);
    OK(GET(t, TENSOR_DIMENSIONS, INT64, 0, &count, NULL));
    SAME(count, 4);
    SAME(GET(t, TENSOR_DIMENSIONS, DATA_TYPE, 8, &count, got), CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE);
    /* shapes that do not fit */
    shape q = {2, 4, 8, 8, 6, 3, 3, 1, {1, 1}, {1, 1}, {1, 1}, {1, 1}, false, false, false};
    const int64_t xd[4] = {2, 4, 8, 8}, wd[4] = {6, 4, 3, 3}, yd[4] = {2, 6, 8, 8}, bad_y[4] = {2, 6, 7, 8},
                  bad_w[4] = {6, 3, 3, 3};
    cudnnBackendDescriptor_t x = tensor_new(1, 0, xd, false, false), w = tensor_new(2, 0, wd, false, false),
                             y = tensor_new(3, 0, yd, false, false);
    cudnnBackendDescriptor_t conv = parameters_new(&q), op;
    op = dnn_new(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
    SAME(SET(op, OPERATION_CONVOLUTION_FORWARD_CONV_DESC, BACKEND_DESCRIPTOR, 1, &conv),
         CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED);
    SAME(SET(op, OPERATION_CONVOLUTION_FORWARD_CONV_DESC, BACKEND_DESCRIPTOR, 1, &x), CUDNN_STATUS_BAD_PARAM);
    SAME(SET(conv, CONVOLUTION_DILATIONS, INT64, 3, four), CUDNN_STATUS_BAD_PARAM);
    OK(api.cudnnBackendFinalize(conv));
    SAME(api.cudnnBackendFinalize(op), CUDNN_STATUS_BAD_PARAM);
    SAME(api.cudnnBackendFinalize(operation_new(conv, x, w, tensor_new(3, 0, bad_y, false, false))),
         CUDNN_STATUS_BAD_PARAM);
    SAME(api.cudnnBackendFinalize(operation_new(conv, x, tensor_new(2, 0, bad_w, false, false), y)),
         CUDNN_STATUS_BAD_PARAM);
    q.pre[0] = -1;
    SAME(api.cudnnBackendFinalize(parameters_new(&q)), CUDNN_STATUS_BAD_PARAM);
    q.pre[0] = 1;
    q.stride[1] = 0;
    SAME(api.cudnnBackendFinalize(parameters_new(&q)), CUDNN_STATUS_BAD_PARAM);
    q.stride[1] = 1;
    q.dilation[0] = 0;
    SAME(api.cudnnBackendFinalize(parameters_new(&q)), CUDNN_STATUS_BAD_PARAM);
    /* types that do not go together are refused by the heuristics */
    op = operation_new(conv, x, tensor_new(2, CUDNN_DATA_HALF, wd, false, false), y);
    OK(api.cudnnBackendFinalize(op));
    cudnnBackendDescriptor_t graph = dnn_new(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR),
                             heuristics = dnn_new(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    int mode = CUDNN_HEUR_MODE_FALLBACK;
    SAME(SET(graph, OPERATIONGRAPH_OPS, BACKEND_DESCRIPTOR, 1, &x), CUDNN_STATUS_BAD_PARAM);
    SAME(api.cudnnBackendFinalize(graph), CUDNN_STATUS_BAD_PARAM);
    OK(SET(graph, OPERATIONGRAPH_OPS, BACKEND_DESCRIPTOR, 1, &op));
    OK(api.cudnnBackendFinalize(graph));
    OK(SET(heuristics, ENGINEHEUR_OPERATION_GRAPH, BACKEND_DESCRIPTOR, 1, &graph));
    OK(SET(heuristics, ENGINEHEUR_MODE, HEUR_MODE, 1, &mode));
    SAME(api.cudnnBackendFinalize(heuristics), CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE);
    /* a plan, and packs that do not fit it */
    op = operation_new(conv, x, w, y);
    OK(api.cudnnBackendFinalize(op));
    graph = dnn_new(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    OK(SET(graph, OPERATIONGRAPH_OPS, BACKEND_DESCRIPTOR, 1, &op));
    OK(api.cudnnBackendFinalize(graph));
    heuristics = dnn_new(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    OK(SET(heuristics, ENGINEHEUR_OPERATION_GRAPH, BACKEND_DESCRIPTOR, 1, &graph));
    OK(SET(heuristics, ENGINEHEUR_MODE, HEUR_MODE, 1, &mode));
    OK(api.cudnnBackendFinalize(heuristics));
    cudnnBackendDescriptor_t config = dnn_new(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR),
                             plan = dnn_new(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    SAME(SET(plan, EXECUTION_PLAN_ENGINE_CONFIG, BACKEND_DESCRIPTOR, 1, &config), CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED);
    OK(GET(heuristics, ENGINEHEUR_RESULTS, BACKEND_DESCRIPTOR, 1, &count, &config));
    SAME(count, 1);
    SAME(GET(heuristics, ENGINEHEUR_RESULTS, BACKEND_DESCRIPTOR, 1, &count, &config), CUDNN_STATUS_BAD_PARAM);
    OK(SET(plan, EXECUTION_PLAN_ENGINE_CONFIG, BACKEND_DESCRIPTOR, 1, &config));
    SAME(api.cudnnBackendFinalize(plan), CUDNN_STATUS_BAD_PARAM);
    OK(SET(plan, EXECUTION_PLAN_HANDLE, HANDLE, 1, &dnn));
    OK(api.cudnnBackendFinalize(plan));
    /* a device that is only described: plans, but runs nothing */
    cudnnBackendDescriptor_t device = dnn_new(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR), engine, described;
    SAME(SET(device, DEVICEPROP_JSON_REPRESENTATION, INT64, 1, four), CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE);
    OK(SET(device, DEVICEPROP_JSON_REPRESENTATION, CHAR, 4, "oops"));
    SAME(api.cudnnBackendFinalize(device), CUDNN_STATUS_BAD_PARAM);
    OK(SET(device, DEVICEPROP_JSON_REPRESENTATION, CHAR, 17, "{\"deviceVer\":900}"));
    OK(api.cudnnBackendFinalize(device));
    described = dnn_new(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    OK(SET(described, EXECUTION_PLAN_ENGINE_CONFIG, BACKEND_DESCRIPTOR, 1, &config));
    OK(SET(described, EXECUTION_PLAN_DEVICEPROP, BACKEND_DESCRIPTOR, 1, &device));
    OK(api.cudnnBackendFinalize(described));
    OK(GET(described, EXECUTION_PLAN_WORKSPACE_SIZE, INT64, 1, &count, got));
    engine = dnn_new(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    OK(GET(config, ENGINECFG_ENGINE, BACKEND_DESCRIPTOR, 1, &count, &engine));
    OK(GET(engine, ENGINE_BEHAVIOR_NOTE, BEHAVIOR_NOTE, 8, &count, got));
    SAME(count, 0);
    /* a tensor of too many elements */
    heuristics = dnn_new(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    OK(SET(heuristics, ENGINEHEUR_OPERATION_GRAPH, BACKEND_DESCRIPTOR, 1, &graph));
    OK(SET(heuristics, ENGINEHEUR_MODE, HEUR_MODE, 1, &mode));
    OK(SET(heuristics, ENGINEHEUR_DEVICEPROP, BACKEND_DESCRIPTOR, 1, &device));
    sim_set_size_limit(2 * 6 * 8 * 8 - 1);
    SAME(api.cudnnBackendFinalize(heuristics), CUDNN_STATUS_NOT_SUPPORTED);
    sim_set_size_limit(0);
    OK(api.cudnnBackendFinalize(heuristics));
    CUdeviceptr p = alloc(1 << 20);
    void *good = (void *)(uintptr_t)p, *bad = (void *)(uintptr_t)(p + 4);
    const struct {
        int64_t uids[3];
        void *pointers[3], *workspace;
        cudnnStatus_t status;
    } packs[] = {
        {{1, 2, 3}, {good, good, (char *)good + 65536}, (char *)good + 131072, CUDNN_STATUS_SUCCESS},
        {{1, 2, 4}, {good, good, good}, good, CUDNN_STATUS_BAD_PARAM},
        {{1, 2, 3}, {good, NULL, good}, good, CUDNN_STATUS_BAD_PARAM},
        {{1, 2, 3}, {good, bad, good}, good, CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER},
        {{1, 2, 3}, {good, good, good}, NULL, CUDNN_STATUS_BAD_PARAM},
    };
    for (size_t i = 0; i < sizeof(packs) / sizeof(packs[0]); i++) {
        cudnnBackendDescriptor_t pack = dnn_new(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
        OK(SET(pack, VARIANT_PACK_UNIQUE_IDS, INT64, 3, packs[i].uids));
        OK(SET(pack, VARIANT_PACK_DATA_POINTERS, VOID_PTR, 2, packs[i].pointers));
        SAME(api.cudnnBackendFinalize(pack), CUDNN_STATUS_BAD_PARAM);
        OK(SET(pack, VARIANT_PACK_DATA_POINTERS, VOID_PTR, 3, packs[i].pointers));
        OK(SET(pack, VARIANT_PACK_WORKSPACE, VOID_PTR, 1, &packs[i].workspace));
        OK(api.cudnnBackendFinalize(pack));
        SAME(api.cudnnBackendExecute(dnn, plan, pack), packs[i].status);
        SAME(api.cudnnBackendExecute(dnn, pack, plan), CUDNN_STATUS_BAD_PARAM);
        SAME(api.cudnnBackendExecute(dnn, described, pack), CUDNN_STATUS_BAD_PARAM);
        SAME(api.cudnnBackendExecute(NULL, plan, pack), CUDNN_STATUS_BAD_PARAM);
    }
    OK(api.cuCtxSynchronize());
    SAME(api.cudnnBackendDestroyDescriptor(NULL), CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
    OK(api.cudnnBackendDestroyDescriptor(t));
    SAME(api.cudnnBackendDestroyDescriptor(t), CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
    OK(api.cudnnDestroy(NULL));
    OK(api.cudnnDestroy(dnn));
    SAME(api.cudnnDestroy(dnn), CUDNN_STATUS_BAD_PARAM);
}
