/* conform_plans.c: what cuDNN plans for an H200 that is described: all of it from the real library. */
#include "conform.h"

typedef cudnnBackendDescriptor_t descriptor;

static const char h200[] =
    "{\"deviceVer\":900,\"multiProcessorCount\":132,\"smCountOrigin\":0,\"warpSize\":32,"
    "\"maxSharedMemoryPerBlock\":49152,\"maxSharedMemoryPerBlockOptin\":232448,\"oversizedSharedMemoryPerBlock\":0,"
    "\"reservedSharedMemoryPerBlock\":1024,\"maxRegistersPerSM\":65536,\"maxCtasPerSM\":32,\"maxThreadsPerBlock\":1024,"
    "\"maxThreadsPerSM\":2048,\"regsPerBlock\":65536,\"totalGlobalMem\":151397597184,\"smClockRateKHz\":1980000,"
    "\"l2CacheSize\":52428800,\"memClockRateKHz\":3201000,\"memoryBusWidth\":6144,\"maxBlockSize\":[1024,1024,64],"
    "\"maxGridSize\":[2147483647,65535,65535],\"supportCoopLaunch\":1,\"pciDeviceId\":0,\"isTccDriver\":0,"
    "\"cudaDeviceId\":0,\"driverVer\":13000,\"deviceName\":\"NVIDIA H200\"}";

enum { N = 8, C = 64, H = 28, PLAIN = 0, BIAS = 1, RELU = 2, MOST = 64 };

static descriptor
make(cudnnBackendDescriptorType_t type)
{
    descriptor d = NULL;
    conform_need("a descriptor can be made", api.cudnnBackendCreateDescriptor(type, &d) == 0);
    return d;
}

#define SET(d, name, type, count, value)                                                                               \
    conform_need("attribute " #name " can be set",                                                                     \
                 api.cudnnBackendSetAttribute((d), CUDNN_ATTR_##name, CUDNN_TYPE_##type, (count), (value)) == 0)

static descriptor
finalized(descriptor d)
{
    conform_need("a part of a graph is finalized", api.cudnnBackendFinalize(d) == 0);
    return d;
}

static descriptor
tensor_begin(int64_t uid, int dtype, const int64_t *dims, bool last, int64_t alignment, bool is_virtual)
{
    int64_t c = dims[1], h = dims[2], w = dims[3];
    const int64_t first_strides[] = {c * h * w, h * w, w, 1}, last_strides[] = {c * h * w, 1, w * c, c};
    descriptor d = make(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    SET(d, TENSOR_DATA_TYPE, DATA_TYPE, 1, &dtype);
    SET(d, TENSOR_DIMENSIONS, INT64, 4, dims);
    SET(d, TENSOR_STRIDES, INT64, 4, last ? last_strides : first_strides);
    SET(d, TENSOR_UNIQUE_ID, INT64, 1, &uid);
    SET(d, TENSOR_BYTE_ALIGNMENT, INT64, 1, &alignment);
    SET(d, TENSOR_IS_VIRTUAL, BOOLEAN, 1, &is_virtual);
    return d;
}

static descriptor
pointwise(int mode, int type, descriptor x, descriptor b, descriptor y)
{
    int nans = CUDNN_PROPAGATE_NAN;
    descriptor how = make(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    SET(how, POINTWISE_MODE, POINTWISE_MODE, 1, &mode);
    SET(how, POINTWISE_MATH_PREC, DATA_TYPE, 1, &type);
    if (mode == CUDNN_POINTWISE_RELU_FWD) {
        SET(how, POINTWISE_NAN_PROPAGATION, NAN_PROPOGATION, 1, &nans);
    }
    finalized(how);
    descriptor op = make(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    SET(op, OPERATION_POINTWISE_PW_DESCRIPTOR, BACKEND_DESCRIPTOR, 1, &how);
    SET(op, OPERATION_POINTWISE_XDESC, BACKEND_DESCRIPTOR, 1, &x);
    if (b != NULL) {
        SET(op, OPERATION_POINTWISE_BDESC, BACKEND_DESCRIPTOR, 1, &b);
    }
    SET(op, OPERATION_POINTWISE_YDESC, BACKEND_DESCRIPTOR, 1, &y);
    return finalized(op);
}

/* A convolution of 3 x 3 with padding, and what follows it. */
static descriptor
graph_new(int dtype, bool last, int64_t alignment, int tail)
{
    static const int64_t xd[] = {N, C, H, H}, wd[] = {C, C, 3, 3}, bd[] = {1, C, 1, 1}, ones[] = {1, 1};
    bool wide = dtype == CUDNN_DATA_DOUBLE;
    int type = wide ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT, mode = CUDNN_CROSS_CORRELATION;
    int64_t spatial = 2;
    const float alpha = 1, beta = 0;
    const double alpha_double = 1, beta_double = 0;
    descriptor x = finalized(tensor_begin(1, dtype, xd, last, alignment, false));
    descriptor w = finalized(tensor_begin(2, dtype, wd, last, alignment, false));
    descriptor y = finalized(tensor_begin(3, dtype, xd, last, alignment, false)), ops[3];
    descriptor first = tail ? finalized(tensor_begin(4, type, xd, last, 16, true)) : y;
    descriptor conv = make(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    SET(conv, CONVOLUTION_COMP_TYPE, DATA_TYPE, 1, &type);
    SET(conv, CONVOLUTION_CONV_MODE, CONVOLUTION_MODE, 1, &mode);
    SET(conv, CONVOLUTION_SPATIAL_DIMS, INT64, 1, &spatial);
    SET(conv, CONVOLUTION_PRE_PADDINGS, INT64, 2, ones);
    SET(conv, CONVOLUTION_POST_PADDINGS, INT64, 2, ones);
    SET(conv, CONVOLUTION_FILTER_STRIDES, INT64, 2, ones);
    SET(conv, CONVOLUTION_DILATIONS, INT64, 2, ones);
    finalized(conv);
    descriptor op = make(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
    SET(op, OPERATION_CONVOLUTION_FORWARD_CONV_DESC, BACKEND_DESCRIPTOR, 1, &conv);
    SET(op, OPERATION_CONVOLUTION_FORWARD_X, BACKEND_DESCRIPTOR, 1, &x);
    SET(op, OPERATION_CONVOLUTION_FORWARD_W, BACKEND_DESCRIPTOR, 1, &w);
    SET(op, OPERATION_CONVOLUTION_FORWARD_Y, BACKEND_DESCRIPTOR, 1, &first);
    if (wide) {
        SET(op, OPERATION_CONVOLUTION_FORWARD_ALPHA, DOUBLE, 1, &alpha_double);
        SET(op, OPERATION_CONVOLUTION_FORWARD_BETA, DOUBLE, 1, &beta_double);
    } else {
        SET(op, OPERATION_CONVOLUTION_FORWARD_ALPHA, FLOAT, 1, &alpha);
        SET(op, OPERATION_CONVOLUTION_FORWARD_BETA, FLOAT, 1, &beta);
    }
    ops[0] = finalized(op);
    int nops = 1;
    if (tail & BIAS) {
        descriptor b = finalized(tensor_begin(5, dtype, bd, last, alignment, false));
        descriptor to = tail & RELU ? finalized(tensor_begin(6, type, xd, last, 16, true)) : y;
        ops[nops++] = pointwise(CUDNN_POINTWISE_ADD, type, first, b, to);
        first = to;
    }
    if (tail & RELU) {
        ops[nops++] = pointwise(CUDNN_POINTWISE_RELU_FWD, type, first, NULL, y);
    }
    descriptor graph = make(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    SET(graph, OPERATIONGRAPH_OPS, BACKEND_DESCRIPTOR, nops, ops);
    return finalized(graph);
}

/* What a heuristic names. */
typedef struct {
    int engines, tensor_cores, strict, compiled;
    int different;     /* engines: others are one with other settings */
    int64_t announced; /* when it is asked for none */
    int64_t workspace; /* of the first, unless it is compiled */
} named;

static bool
has_note(descriptor engine, int name, int type, int note)
{
    int notes[MOST];
    int64_t count = 0;
    bool found = false;
    conform_need("notes are read", api.cudnnBackendGetAttribute(engine, name, type, MOST, &count, notes) == 0);
    for (int64_t i = 0; i < count; i++) {
        found |= notes[i] == note;
    }
    return found;
}

static bool
is_new(const int64_t *seen, int64_t i)
{
    int64_t j = 0;
    while (seen[j] != seen[i]) {
        j++;
    }
    return j == i;
}

static named
names(int mode, int dtype, bool last, int64_t alignment, int tail)
{
    named result = {.workspace = -1};
    descriptor graph = graph_new(dtype, last, alignment, tail), configs[MOST];
    int64_t seen[MOST];
    descriptor device = make(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR), h = make(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    int64_t count = 0, one = 0;
    SET(device, DEVICEPROP_JSON_REPRESENTATION, CHAR, (int64_t)strlen(h200), h200);
    finalized(device);
    SET(h, ENGINEHEUR_OPERATION_GRAPH, BACKEND_DESCRIPTOR, 1, &graph);
    SET(h, ENGINEHEUR_MODE, HEUR_MODE, 1, &mode);
    SET(h, ENGINEHEUR_DEVICEPROP, BACKEND_DESCRIPTOR, 1, &device);
    if (api.cudnnBackendFinalize(h) != 0) {
        return result;
    }
    conform_need("a list can be asked how long it is",
                 api.cudnnBackendGetAttribute(h, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0,
                                              &result.announced, NULL) == 0);
    for (int i = 0; i < MOST; i++) {
        configs[i] = make(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    }
    if (api.cudnnBackendGetAttribute(h, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, MOST, &count,
                                     configs) != 0) {
        return result;
    }
    for (int64_t i = 0; i < count; i++) {
        descriptor engine = make(CUDNN_BACKEND_ENGINE_DESCRIPTOR), plan = make(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
        conform_need("an engine is read",
                     api.cudnnBackendGetAttribute(configs[i], CUDNN_ATTR_ENGINECFG_ENGINE,
                                                  CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &one, &engine) == 0);
        bool tensor_core = has_note(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                    CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
        bool narrow = has_note(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                               CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS);
        bool compiled = has_note(engine, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE,
                                 CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION);
        conform_need("an engine has an index", api.cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX,
                                                                            CUDNN_TYPE_INT64, 1, &one, &seen[i]) == 0);
        result.different += is_new(seen, i);
        result.engines++;
        result.tensor_cores += tensor_core;
        result.compiled += compiled;
        result.strict += !tensor_core && !narrow && !compiled;
        if (i == 0 && !compiled) {
            SET(plan, EXECUTION_PLAN_ENGINE_CONFIG, BACKEND_DESCRIPTOR, 1, &configs[i]);
            SET(plan, EXECUTION_PLAN_DEVICEPROP, BACKEND_DESCRIPTOR, 1, &device);
            finalized(plan);
            conform_need("a workspace is read",
                         api.cudnnBackendGetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64,
                                                      1, &one, &result.workspace) == 0);
        }
    }
    return result;
}

/* A list may announce more than it names, but no more than is asked for. Which engines stand in the first list is
 * another matter from version to version: cuDNN 9.28 names none for float64 there and none for strict float32, 9.19
 * some of both. */
static bool
is_whole(named list)
{
    return list.engines <= list.announced && list.announced < MOST;
}

void
conform_dnn_plans(void)
{
    enum { A = CUDNN_HEUR_MODE_A, FALLBACK = CUDNN_HEUR_MODE_FALLBACK };
    enum { HALF = CUDNN_DATA_HALF, F32 = CUDNN_DATA_FLOAT, F64 = CUDNN_DATA_DOUBLE };
    static const int64_t dims[] = {N, C, H, H};
    const int64_t copies = 2 * (2 * (int64_t)N * C * H * H + (int64_t)C * C * 9);
    HOLDS("an alignment of 2 is none for float32", api.cudnnBackendFinalize(tensor_begin(1, F32, dims, 0, 2, 0)) != 0);
    HOLDS("nor for what is virtual", api.cudnnBackendFinalize(tensor_begin(1, F32, dims, 0, 2, 1)) != 0);
    OK("an alignment of 2 for float16", api.cudnnBackendFinalize(tensor_begin(1, HALF, dims, 0, 2, 0)));
    HOLDS("aligned half precision has tensor cores", names(A, HALF, true, 16, PLAIN).tensor_cores > 0);
    IS("with 8 bytes it has none", names(A, HALF, true, 8, PLAIN).tensor_cores, 0);
    HOLDS("with a bias it is planned as if it had", names(A, HALF, true, 8, BIAS | RELU).tensor_cores > 0);
    HOLDS("strict float32 is in the fallback list", names(FALLBACK, F32, true, 16, BIAS | RELU).strict > 0);
    named relu = names(A, HALF, true, 16, RELU);
    HOLDS("a ReLU alone has engines for channels last", relu.engines > 0);
    IS("all of them are compiled at run time", relu.compiled, relu.engines);
    IS("it has none for channels first", names(A, HALF, false, 16, RELU).engines, 0);
    IS("nor in the fallback list", names(FALLBACK, HALF, false, 16, RELU).engines, 0);
    HOLDS("channels first take copies of all three tensors", names(A, HALF, false, 16, PLAIN).workspace >= copies);
    HOLDS("channels last do not", names(A, HALF, true, 16, PLAIN).workspace < copies / 2);
    named half = names(A, HALF, true, 16, PLAIN);
    HOLDS("a list of float16 is read whole", is_whole(half));
    HOLDS("so is one of float32", is_whole(names(A, F32, true, 16, PLAIN)));
    HOLDS("and one of float64, which may be empty", is_whole(names(A, F64, true, 16, PLAIN)));
    HOLDS("most of a list is one engine with other settings", half.different < half.engines / 4);
    named strict = names(FALLBACK, F32, true, 16, PLAIN);
    HOLDS("the fallback list of float32 has some", strict.strict >= 2);
    HOLDS("it is short", strict.engines <= 4);
    HOLDS("one of them is compiled for channels last", strict.compiled == 1);
    HOLDS("float64 has engines in the fallback list", names(FALLBACK, F64, false, 16, PLAIN).strict > 0);
    HOLDS("with bias and ReLU too", names(FALLBACK, F64, false, 16, BIAS | RELU).strict > 0);
    IS("none of them for a ReLU alone", names(FALLBACK, F64, false, 16, RELU).engines, 0);
}
