/* cudnn.c: cuDNN's handles and backend descriptors. What attributes there are stands in cudnn.def. */
#include "cudnn.h"

#include <string.h>

/* ---------------------------------------------------------------- handles and errors */

static _Thread_local const char *last_error = "";

cudnnStatus_t
sim_dnn_fail(cudnnStatus_t status, const char *text)
{
    last_error = text;
    return status;
}

size_t
sim_cudnnGetVersion(void)
{
    return 91900;
}

const char *
sim_cudnnGetErrorString(cudnnStatus_t status)
{
    switch (status) {
    case CUDNN_STATUS_SUCCESS:
        return "CUDNN_STATUS_SUCCESS";
    case CUDNN_STATUS_NOT_INITIALIZED:
        return "CUDNN_STATUS_NOT_INITIALIZED";
    case CUDNN_STATUS_BAD_PARAM:
        return "CUDNN_STATUS_BAD_PARAM";
    case CUDNN_STATUS_BAD_PARAM_NULL_POINTER:
        return "CUDNN_STATUS_BAD_PARAM_NULL_POINTER";
    case CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER:
        return "CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER";
    case CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED:
        return "CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED";
    case CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH:
        return "CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH";
    case CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE:
        return "CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE";
    case CUDNN_STATUS_NOT_SUPPORTED:
        return "CUDNN_STATUS_NOT_SUPPORTED";
    case CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN:
        return "CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN";
    case CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE:
        return "CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE";
    case CUDNN_STATUS_INTERNAL_ERROR:
        return "CUDNN_STATUS_INTERNAL_ERROR";
    case CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED:
        return "CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED";
    case CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED:
        return "CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED";
    case CUDNN_STATUS_EXECUTION_FAILED:
        return "CUDNN_STATUS_EXECUTION_FAILED";
    default:
        return "CUDNN_UNKNOWN_STATUS";
    }
}

void
sim_cudnnGetLastErrorString(char *text, size_t size)
{
    if (text != NULL && size > 0) {
        size_t n = strlen(last_error) < size ? strlen(last_error) : size - 1;
        memcpy(text, last_error, n);
        text[n] = '\0';
    }
    last_error = "";
}

cudnnStatus_t
sim_cudnnCreate(cudnnHandle_t *handle)
{
    sim_device *device;
    if (handle == NULL) {
        return sim_dnn_fail(CUDNN_STATUS_BAD_PARAM, "handle is NULL");
    }
    if (sim_current(&device) != CUDA_SUCCESS) {
        return sim_dnn_fail(CUDNN_STATUS_NOT_INITIALIZED, "no device is current");
    }
    sim_dnn *dnn = dt_calloc(1, sizeof(*dnn));
    cudnnHandle_t made = dnn ? sim_handle_new(SIM_DNN, dnn) : NULL;
    if (made == NULL) {
        dt_free(dnn);
        return sim_dnn_fail(CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED, "no memory for a handle");
    }
    dnn->device = device;
    *handle = made;
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t
find_handle(cudnnHandle_t handle, sim_dnn **dnn)
{
    *dnn = sim_handle_get(SIM_DNN, handle);
    if (*dnn == NULL) {
        return sim_dnn_fail(CUDNN_STATUS_BAD_PARAM, "not a handle");
    }
    return (*dnn)->busy ? sim_dnn_fail(CUDNN_STATUS_INTERNAL_ERROR, "two threads use one handle")
                        : CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t
sim_cudnnDestroy(cudnnHandle_t handle)
{
    sim_dnn *dnn;
    if (handle == NULL) {
        return CUDNN_STATUS_SUCCESS;
    }
    cudnnStatus_t status = find_handle(handle, &dnn);
    if (status == CUDNN_STATUS_SUCCESS) {
        dt_free(sim_handle_delete(SIM_DNN, handle));
    }
    return status;
}

cudnnStatus_t
sim_cudnnSetStream(cudnnHandle_t handle, CUstream handle_of_stream)
{
    sim_dnn *dnn;
    sim_stream *stream;
    cudnnStatus_t status = find_handle(handle, &dnn);
    if (status != CUDNN_STATUS_SUCCESS) {
        return status;
    }
    if (sim_stream_find(dnn->device, handle_of_stream, &stream) != CUDA_SUCCESS) {
        return sim_dnn_fail(CUDNN_STATUS_BAD_PARAM, "not a stream of the handle's device");
    }
    dnn->stream = handle_of_stream;
    return CUDNN_STATUS_SUCCESS;
}

/* ---------------------------------------------------------------- the table of attributes */

typedef struct {
    cudnnBackendDescriptorType_t desc;
    cudnnBackendAttributeName_t name;
    cudnnBackendAttributeType_t type;
    cudnnBackendDescriptorType_t child; /* of CUDNN_TYPE_BACKEND_DESCRIPTOR */
    int most;                           /* elements; exactly that many where count is 0 */
    bool required;
    size_t offset, size; /* in sim_dnn_desc; of an element */
    size_t count;        /* offset of an int64_t with the number of elements; 0: none */
} attribute;

#define AT(field) offsetof(sim_dnn_desc, field), sizeof(((sim_dnn_desc *)0)->field)
#define EACH(field) offsetof(sim_dnn_desc, field), sizeof(((sim_dnn_desc *)0)->field[0])
#define COUNT(field) offsetof(sim_dnn_desc, field)
#define ANY_OPERATION (-2)

static const attribute attributes[] = {
#define ROW(desc, name, type, most, required, ...)                                                                     \
    {CUDNN_BACKEND_##desc##_DESCRIPTOR, CUDNN_ATTR_##name, CUDNN_TYPE_##type, -1, most, required, __VA_ARGS__},
#define CHILD(desc, name, child, most, required, ...)                                                                  \
    {CUDNN_BACKEND_##desc##_DESCRIPTOR,                                                                                \
     CUDNN_ATTR_##name,                                                                                                \
     CUDNN_TYPE_BACKEND_DESCRIPTOR,                                                                                    \
     child,                                                                                                            \
     most,                                                                                                             \
     required,                                                                                                         \
     __VA_ARGS__},
#include "cudnn.def"
#undef ROW
#undef CHILD
};

#define NATTRIBUTES (sizeof(attributes) / sizeof(attributes[0]))
_Static_assert(NATTRIBUTES <= 128, "sim_dnn_desc.set has a bit for each");

/* What a descriptor can compute on being asked, and nobody sets. */
static const struct {
    cudnnBackendDescriptorType_t desc;
    cudnnBackendAttributeName_t name;
    cudnnBackendAttributeType_t type;
} answers[] = {
    {CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR},
    {CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR},
    {CUDNN_BACKEND_ENGINE_DESCRIPTOR, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64},
    {CUDNN_BACKEND_ENGINE_DESCRIPTOR, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE},
    {CUDNN_BACKEND_ENGINE_DESCRIPTOR, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE},
    {CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64},
};

/* The row of an attribute of desc, or a refusal. */
static cudnnStatus_t
find_attribute(const sim_dnn_desc *desc, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
               size_t *row)
{
    bool known = false;
    for (size_t i = 0; i < NATTRIBUTES; i++) {
        if (attributes[i].desc == desc->type && attributes[i].name == name) {
            known = true;
            if (attributes[i].type == type) {
                *row = i;
                return CUDNN_STATUS_SUCCESS;
            }
        }
    }
    return known ? sim_dnn_fail(CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE, "the attribute has another type")
                 : sim_dnn_fail(CUDNN_STATUS_BAD_PARAM, "the descriptor has no such attribute");
}

/* ---------------------------------------------------------------- descriptors */

/* Of a sim_operation; -1: no operation. */
static int
kind_of(cudnnBackendDescriptorType_t type)
{
    switch (type) {
    case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
        return SIM_POINTWISE;
    case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
        return SIM_MATMUL;
    case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
        return SIM_REDUCTION;
    case CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR:
        return SIM_RESHAPE;
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
        return SIM_CONVOLUTION;
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
        return SIM_INPUT_GRAD;
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
        return SIM_WEIGHT_GRAD;
    default:
        return -1;
    }
}

cudnnStatus_t
sim_cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t *handle)
{
    bool known = type == CUDNN_BACKEND_ENGINE_DESCRIPTOR;
    for (size_t i = 0; i < NATTRIBUTES; i++) {
        known |= attributes[i].desc == type;
    }
    if (handle == NULL) {
        return sim_dnn_fail(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "descriptor is NULL");
    }
    if (!known) {
        return sim_dnn_fail(CUDNN_STATUS_NOT_SUPPORTED, "the simulated cuDNN has no such descriptor");
    }
    sim_dnn_desc *desc = dt_calloc(1, sizeof(*desc));
    void *made = desc ? sim_handle_new(SIM_DNN_DESC, desc) : NULL;
    if (made == NULL) {
        dt_free(desc);
        return sim_dnn_fail(CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED, "no memory for a descriptor");
    }
    desc->type = type;
    if (kind_of(type) > SIM_POINTWISE) {
        desc->operation.kind = (sim_operation_kind)kind_of(type);
        desc->operation.alpha = 1.0f;
        desc->operation.alpha_double = 1.0;
    }
    *handle = made;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t
sim_cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t handle)
{
    sim_dnn_desc *desc = sim_handle_delete(SIM_DNN_DESC, handle);
    if (desc == NULL) {
        return sim_dnn_fail(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "not a descriptor");
    }
    dt_free(desc);
    return CUDNN_STATUS_SUCCESS;
}

/* Copies what stands behind the finished descriptor. */
static cudnnStatus_t
set_child(const attribute *a, cudnnBackendDescriptor_t handle, void *field)
{
    const sim_dnn_desc *child = sim_handle_get(SIM_DNN_DESC, handle);
    if (child == NULL) {
        return sim_dnn_fail(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "not a descriptor");
    }
    if (a->child == ANY_OPERATION ? kind_of(child->type) < 0 : child->type != a->child) {
        return sim_dnn_fail(CUDNN_STATUS_BAD_PARAM, "the descriptor given is of another type");
    }
    if (!child->final) {
        return sim_dnn_fail(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, "the descriptor given is not finalized");
    }
    memcpy(field, &child->tensor, a->size);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t
sim_cudnnBackendSetAttribute(cudnnBackendDescriptor_t handle, cudnnBackendAttributeName_t name,
                             cudnnBackendAttributeType_t type, int64_t count, const void *elements)
{
    sim_dnn_desc *desc = sim_handle_get(SIM_DNN_DESC, handle);
    size_t row;
    if (desc == NULL) {
        return sim_dnn_fail(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "not a descriptor");
    }
    if (desc->final) {
        return sim_dnn_fail(CUDNN_STATUS_BAD_PARAM, "the descriptor is finalized");
    }
    cudnnStatus_t status = find_attribute(desc, name, type, &row);
    if (status != CUDNN_STATUS_SUCCESS) {
        return status;
    }
    const attribute *a = &attributes[row];
    if (elements == NULL || count < 1 || count > a->most || (a->count == 0 && count != a->most)) {
        return sim_dnn_fail(CUDNN_STATUS_BAD_PARAM, "the attribute takes another number of elements");
    }
    unsigned char *field = (unsigned char *)desc + a->offset;
    if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
        const cudnnBackendDescriptor_t *children = elements;
        for (int64_t i = 0; i < count && status == CUDNN_STATUS_SUCCESS; i++) {
            status = set_child(a, children[i], field + (size_t)i * a->size);
        }
    } else if (type == CUDNN_TYPE_HANDLE && sim_handle_get(SIM_DNN, *(const cudnnHandle_t *)elements) == NULL) {
        status = sim_dnn_fail(CUDNN_STATUS_BAD_PARAM, "not a handle");
    } else {
        memcpy(field, elements, (size_t)count * a->size);
    }
    if (status == CUDNN_STATUS_SUCCESS) {
        desc->set[row / 64] |= UINT64_C(1) << row % 64;
        if (a->count != 0) {
            memcpy((unsigned char *)desc + a->count, &count, sizeof(count));
        }
    }
    return status;
}

static int64_t
size_of(int dtype)
{
    switch (dtype) {
    case CUDNN_DATA_DOUBLE:
        return 8;
    case CUDNN_DATA_FLOAT:
    case CUDNN_DATA_INT32:
        return 4;
    case CUDNN_DATA_BOOLEAN:
        return 1;
    default:
        return 2;
    }
}

/* From the real library: an alignment is a multiple of the element's size, also for what is virtual. */
static cudnnStatus_t
check_tensor(const sim_tensor *tensor)
{
    bool good = tensor->ndim == tensor->nstrides && tensor->ndim >= 3 && tensor->alignment > 0 &&
                tensor->alignment % size_of(tensor->dtype) == 0;
    for (int64_t i = 0; good && i < tensor->ndim; i++) {
        good = tensor->dims[i] > 0 && tensor->strides[i] > 0;
    }
    return good ? CUDNN_STATUS_SUCCESS : sim_dnn_fail(CUDNN_STATUS_BAD_PARAM, "dimensions, strides or alignment");
}

static cudnnStatus_t
check_convolution_parameters(const sim_convolution *c)
{
    bool good = c->spatial == 2;
    for (int i = 0; i < 2; i++) {
        good &= c->pre[i] >= 0 && c->post[i] >= 0 && c->strides[i] > 0 && c->dilations[i] > 0;
    }
    return good ? CUDNN_STATUS_SUCCESS : sim_dnn_fail(CUDNN_STATUS_BAD_PARAM, "paddings, strides or dilations");
}

static cudnnStatus_t
check(sim_dnn_desc *desc)
{
    switch (desc->type) {
    case CUDNN_BACKEND_TENSOR_DESCRIPTOR:
        return check_tensor(&desc->tensor);
    case CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR:
        return check_convolution_parameters(&desc->convolution);
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
        return sim_check_convolution(&desc->operation);
    case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
        return desc->operation.pointwise.mode == CUDNN_POINTWISE_ADD && desc->operation.b.ndim == 0
                   ? sim_dnn_fail(CUDNN_STATUS_BAD_PARAM, "an addition needs a second operand")
                   : CUDNN_STATUS_SUCCESS;
    case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR:
        return desc->heuristics.mode == CUDNN_HEUR_MODE_A || desc->heuristics.mode == CUDNN_HEUR_MODE_FALLBACK
                   ? sim_check_graph(&desc->heuristics.graph)
                   : sim_dnn_fail(CUDNN_STATUS_NOT_SUPPORTED, "no such heuristic");
    case CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR:
        return desc->properties.json[0] == '{' && desc->properties.json[desc->properties.length - 1] == '}'
                   ? CUDNN_STATUS_SUCCESS
                   : sim_dnn_fail(CUDNN_STATUS_BAD_PARAM, "the properties are not an object of JSON");
    case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR:
        return desc->plan.handle != NULL || desc->plan.properties.length > 0
                   ? sim_check_plan(&desc->plan)
                   : sim_dnn_fail(CUDNN_STATUS_BAD_PARAM, "neither a handle nor a description of a device");
    case CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR:
        return desc->pack.nuids == desc->pack.npointers
                   ? CUDNN_STATUS_SUCCESS
                   : sim_dnn_fail(CUDNN_STATUS_BAD_PARAM, "as many unique ids as pointers");
    case CUDNN_BACKEND_ENGINE_DESCRIPTOR:
        return sim_dnn_fail(CUDNN_STATUS_NOT_SUPPORTED, "engines come from the heuristics");
    default:
        return CUDNN_STATUS_SUCCESS;
    }
}

cudnnStatus_t
sim_cudnnBackendFinalize(cudnnBackendDescriptor_t handle)
{
    sim_dnn_desc *desc = sim_handle_get(SIM_DNN_DESC, handle);
    if (desc == NULL) {
        return sim_dnn_fail(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "not a descriptor");
    }
    if (desc->final) {
        return sim_dnn_fail(CUDNN_STATUS_BAD_PARAM, "the descriptor is finalized");
    }
    for (size_t i = 0; i < NATTRIBUTES; i++) {
        if (attributes[i].desc == desc->type && attributes[i].required && !(desc->set[i / 64] >> i % 64 & 1)) {
            return sim_dnn_fail(CUDNN_STATUS_BAD_PARAM, "a required attribute is not set");
        }
    }
    cudnnStatus_t status = check(desc);
    desc->final = status == CUDNN_STATUS_SUCCESS;
    return status;
}

/* ---------------------------------------------------------------- answers */

/* Makes a descriptor of the caller's the finished description of one engine of graph. */
static cudnnStatus_t
give_engine(const sim_graph *graph, int64_t index, cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t handle)
{
    sim_dnn_desc *desc = sim_handle_get(SIM_DNN_DESC, handle);
    if (desc == NULL || desc->type != type || desc->final) {
        return sim_dnn_fail(CUDNN_STATUS_BAD_PARAM, "not a fresh descriptor of the right type to write to");
    }
    desc->engine = (sim_engine){*graph, index};
    desc->final = true;
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t
get_results(const sim_heuristics *heuristics, int64_t requested, int64_t *count, void *elements)
{
    const cudnnBackendDescriptor_t *configs = elements;
    int64_t engines[SIM_DNN_MAX_CONFIGS], n = sim_engine_bound(heuristics->mode);
    cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
    if (requested > 0 && elements != NULL) {
        n = sim_list_engines(&heuristics->graph, heuristics->mode, engines);
        n = requested < n ? requested : n;
        for (int64_t i = 0; i < n && status == CUDNN_STATUS_SUCCESS; i++) {
            status = give_engine(&heuristics->graph, engines[i], CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, configs[i]);
        }
    }
    *count = n;
    return status;
}

static cudnnStatus_t
get_values(const void *values, size_t size, int64_t n, int64_t requested, int64_t *count, void *elements)
{
    if (requested > 0 && elements != NULL) {
        n = requested < n ? requested : n;
        if (n > 0) {
            memcpy(elements, values, (size_t)n * size);
        }
    }
    *count = n;
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t
get_answer(const sim_dnn_desc *desc, cudnnBackendAttributeName_t name, int64_t requested, int64_t *count,
           void *elements)
{
    static const int notes[SIM_NENGINES] = {
        [SIM_ENGINE_TENSOR_CORE] = CUDNN_NUMERICAL_NOTE_TENSOR_CORE,
        [SIM_ENGINE_DOWN_CONVERT] = CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS,
    };
    static const int compiled[] = {CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION};
    switch (name) {
    case CUDNN_ATTR_ENGINEHEUR_RESULTS:
        return get_results(&desc->heuristics, requested, count, elements);
    case CUDNN_ATTR_ENGINECFG_ENGINE:
        *count = 1;
        return requested < 1 || elements == NULL
                   ? CUDNN_STATUS_SUCCESS
                   : give_engine(&desc->engine.graph, desc->engine.index, CUDNN_BACKEND_ENGINE_DESCRIPTOR,
                                 *(const cudnnBackendDescriptor_t *)elements);
    case CUDNN_ATTR_ENGINE_GLOBAL_INDEX:
        return get_values(&desc->engine.index, sizeof(int64_t), 1, requested, count, elements);
    case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE:
        return get_values(&notes[desc->engine.index], sizeof(int), desc->engine.index < SIM_ENGINE_PLAIN, requested,
                          count, elements);
    case CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE:
        return get_values(compiled, sizeof(int), desc->engine.index == SIM_ENGINE_COMPILED, requested, count, elements);
    default:
        return get_values(&desc->plan.workspace, sizeof(int64_t), 1, requested, count, elements);
    }
}

cudnnStatus_t
sim_cudnnBackendGetAttribute(cudnnBackendDescriptor_t handle, cudnnBackendAttributeName_t name,
                             cudnnBackendAttributeType_t type, int64_t requested, int64_t *count, void *elements)
{
    const sim_dnn_desc *desc = sim_handle_get(SIM_DNN_DESC, handle);
    int64_t unwanted;
    size_t row;
    if (desc == NULL) {
        return sim_dnn_fail(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "not a descriptor");
    }
    if (!desc->final) {
        return sim_dnn_fail(CUDNN_STATUS_NOT_INITIALIZED, "the descriptor is not finalized");
    }
    if (requested < 0) {
        return sim_dnn_fail(CUDNN_STATUS_BAD_PARAM, "a negative number of elements");
    }
    count = count ? count : &unwanted;
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        if (answers[i].desc == desc->type && answers[i].name == name) {
            return answers[i].type == type
                       ? get_answer(desc, name, requested, count, elements)
                       : sim_dnn_fail(CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE, "the attribute has another type");
        }
    }
    cudnnStatus_t status = find_attribute(desc, name, type, &row);
    if (status != CUDNN_STATUS_SUCCESS) {
        return status;
    }
    const attribute *a = &attributes[row];
    if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
        return sim_dnn_fail(CUDNN_STATUS_NOT_SUPPORTED, "the simulated cuDNN does not give this descriptor back");
    }
    int64_t n = a->most;
    if (a->count != 0) {
        memcpy(&n, (const unsigned char *)desc + a->count, sizeof(n));
    }
    return get_values((const unsigned char *)desc + a->offset, a->size, n, requested, count, elements);
}
