/* matmul.c: cuBLASLt's product. Its column-major D = epilogue(alpha op(A) op(B) + beta C) is, read row-major, the
 * transposed product, which the host backend computes when the stream gets there. */
#include "cublaslt.h"

#include <string.h>

#include "../cpu/cpu.h"

#define WORKSPACE ((size_t)1 << 20) /* what an algorithm wants if it may */
#define WORKSPACE_ALIGNMENT 256
#define ALGORITHMS 3
#define MOST_PRODUCTS 65535 /* of a batch */
#define WIDEST_LOAD 16

/* What an algorithm is chosen for. Without padding: its bytes are the key. */
typedef struct {
    int64_t m, n, k, batch;
    int64_t ld[4], stride[4];
    int32_t type, result, compute, transa, transb, epilogue;
} problem;

typedef struct {
    dt_array a, b, c, d, bias;
    uint64_t a_address, b_address, c_address, d_address, bias_address, workspace;
    size_t workspace_size;
    dt_matmul_params params;
    sim_rounding rounding;
    bool rounds_sum; /* before the bias is added: seen on an H100, half types whose rows begin on no 16 bytes */
    bool copied;     /* for when the product finds no memory and is tried again */
    bool drops_nans; /* expected: the epilogue's ReLU is max(x, 0), as documented */
} product;

/* ---------------------------------------------------------------- what is asked for */

static int
cublas_dtype(cudaDataType type)
{
    switch (type) {
    case CUDA_R_16F:
        return DT_FLOAT16;
    case CUDA_R_16BF:
        return DT_BFLOAT16;
    case CUDA_R_32F:
        return DT_FLOAT32;
    case CUDA_R_64F:
        return DT_FLOAT64;
    default:
        return -1;
    }
}

static bool
supported(const sim_lt_desc *desc, const sim_lt_layout *const layouts[4])
{
    const cudaDataType type = layouts[0]->type, result = layouts[3]->type;
    uint64_t most = (uint64_t)sim_size_limit();
    for (int i = 0; i < 4; i++) {
        const sim_lt_layout *layout = layouts[i];
        if (layout->type != (i < 2 ? type : result) || layout->rows > most || layout->columns > most ||
            layout->ld > INT32_MAX || layout->batch > MOST_PRODUCTS) {
            return false;
        }
    }
    bool computes = type == CUDA_R_64F ? desc->compute == CUBLAS_COMPUTE_64F && desc->scale == CUDA_R_64F
                                       : desc->scale == CUDA_R_32F && (desc->compute == CUBLAS_COMPUTE_32F ||
                                                                       desc->compute == CUBLAS_COMPUTE_32F_PEDANTIC);
    computes |= (type == CUDA_R_32F || type == CUDA_R_16F) && desc->scale == CUDA_R_32F &&
                desc->compute == CUBLAS_COMPUTE_32F_FAST_TF32;
    bool biased = (desc->epilogue & CUBLASLT_EPILOGUE_BIAS) != 0;
    computes &= result == type || ((type == CUDA_R_16F || type == CUDA_R_16BF) && result == CUDA_R_32F);
    return cublas_dtype(type) >= 0 && computes && (!biased || desc->bias_type < 0 || desc->bias_type == result);
}

static cublasStatus_t
read_problem(const sim_lt_desc *desc, const sim_lt_layout *const layouts[4], problem *p)
{
    const sim_lt_layout *a = layouts[0], *b = layouts[1], *d = layouts[3];
    memset(p, 0, sizeof(*p));
    switch (desc->epilogue) {
    case CUBLASLT_EPILOGUE_DEFAULT:
    case CUBLASLT_EPILOGUE_RELU:
    case CUBLASLT_EPILOGUE_BIAS:
    case CUBLASLT_EPILOGUE_RELU_BIAS:
    case CUBLASLT_EPILOGUE_GELU:
    case CUBLASLT_EPILOGUE_GELU_BIAS:
        break;
    default:
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    if (desc->transa < CUBLAS_OP_N || desc->transa > CUBLAS_OP_T || desc->transb < CUBLAS_OP_N ||
        desc->transb > CUBLAS_OP_T) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    bool ta = desc->transa == CUBLAS_OP_T, tb = desc->transb == CUBLAS_OP_T;
    uint64_t m = d->rows, n = d->columns, k = ta ? a->rows : a->columns;
    if (m == 0 || n == 0 || k == 0 || (ta ? a->columns : a->rows) != m || (tb ? b->columns : b->rows) != k ||
        (tb ? b->rows : b->columns) != n || layouts[2]->rows != m || layouts[2]->columns != n) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    for (int i = 0; i < 4; i++) {
        const sim_lt_layout *layout = layouts[i];
        if (layout->ld < 0 || (uint64_t)layout->ld < layout->rows || layout->batch != d->batch || layout->batch < 0 ||
            layout->stride < 0) {
            return CUBLAS_STATUS_INVALID_VALUE;
        }
        p->ld[i] = layout->ld;
        p->stride[i] = layout->stride;
    }
    if (!supported(desc, layouts)) {
        return CUBLAS_STATUS_NOT_SUPPORTED;
    }
    if (d->batch > 1 && d->stride < d->ld * (int64_t)(n - 1) + (int64_t)m) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    if (desc->epilogue != CUBLASLT_EPILOGUE_DEFAULT && n == 1) { /* expected: a vector has no epilogue */
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    p->m = (int64_t)m;
    p->n = (int64_t)n;
    p->k = (int64_t)k;
    p->batch = d->batch;
    p->type = a->type;
    p->result = d->type;
    p->compute = desc->compute;
    p->transa = desc->transa;
    p->transb = desc->transb;
    p->epilogue = (int32_t)desc->epilogue;
    return CUBLAS_STATUS_SUCCESS;
}

static bool
find_layouts(cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
             const sim_lt_layout *layouts[4])
{
    const cublasLtMatrixLayout_t handles[4] = {a, b, c, d};
    for (int i = 0; i < 4; i++) {
        layouts[i] = sim_handle_get(SIM_LT_LAYOUT, handles[i]);
        if (layouts[i] == NULL) {
            return false;
        }
    }
    return true;
}

/* FNV-1a */
static uint64_t
key_of(const problem *p)
{
    const unsigned char *bytes = (const unsigned char *)p;
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < sizeof(*p); i++) {
        hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    }
    return hash | 1;
}

/* Up to ALGORITHMS algorithms a problem, with less and less workspace: data holds the key, the workspace, the
 * alignments that it was promised and its number. */
cublasStatus_t
sim_cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc_handle, cublasLtMatrixLayout_t a,
                                   cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                   cublasLtMatmulPreference_t preference_handle, int wanted,
                                   cublasLtMatmulHeuristicResult_t *results, int *found)
{
    const sim_lt_desc *desc = sim_handle_get(SIM_LT_DESC, desc_handle);
    const sim_lt_preference *preference = sim_handle_get(SIM_LT_PREFERENCE, preference_handle);
    const sim_lt_layout *layouts[4];
    problem p;
    if (handle == NULL || sim_ready() != CUDA_SUCCESS) {
        return CUBLAS_STATUS_NOT_INITIALIZED;
    }
    if (sim_handle_get(SIM_LT, handle) == NULL || desc == NULL || preference == NULL || wanted < 1 || results == NULL ||
        found == NULL || !find_layouts(a, b, c, d, layouts)) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    *found = 0;
    cublasStatus_t status = read_problem(desc, layouts, &p);
    if (status != CUBLAS_STATUS_SUCCESS) {
        return status;
    }
    for (size_t i = 0; i < ALGORITHMS && *found < wanted; i++) {
        size_t workspace = i + 1 < ALGORITHMS ? WORKSPACE >> 4 * i : 0;
        if (workspace > preference->workspace) {
            continue;
        }
        cublasLtMatmulHeuristicResult_t *result = &results[(*found)++];
        memset(result, 0, sizeof(*result));
        result->workspaceSize = workspace;
        result->wavesCount = 1.0f;
        result->algo.data[0] = key_of(&p);
        result->algo.data[1] = workspace;
        for (int j = 0; j < 4; j++) {
            result->algo.data[2 + j] = preference->alignment[j];
        }
        result->algo.data[6] = i;
    }
    return CUBLAS_STATUS_SUCCESS;
}

/* ---------------------------------------------------------------- the product */

static dt_array
matrix(const problem *p, cudaDataType type, int64_t rows, int64_t columns, int64_t row_stride, int64_t column_stride,
       int64_t batch_stride)
{
    dt_array a = DT_ARRAY_EMPTY;
    int i = 0;
    a.dtype = (uint8_t)cublas_dtype(type);
    if (p->batch > 1) {
        a.shape[i] = p->batch;
        a.strides[i++] = batch_stride;
    }
    a.shape[i] = rows;
    a.strides[i++] = row_stride;
    a.shape[i] = columns;
    a.strides[i++] = column_stride;
    a.ndim = (uint8_t)i;
    return a;
}

static void
lay_out_call(const problem *p, product *call)
{
    const cudaDataType type = (cudaDataType)p->type, result = (cudaDataType)p->result;
    const bool ta = p->transa == CUBLAS_OP_T, tb = p->transb == CUBLAS_OP_T;
    call->a = matrix(p, type, p->n, p->k, tb ? 1 : p->ld[1], tb ? p->ld[1] : 1, p->stride[1]);
    call->b = matrix(p, type, p->k, p->m, ta ? 1 : p->ld[0], ta ? p->ld[0] : 1, p->stride[0]);
    call->c = matrix(p, result, p->n, p->m, p->ld[2], 1, p->stride[2]);
    call->d = matrix(p, result, p->n, p->m, p->ld[3], 1, p->stride[3]);
    call->bias = DT_ARRAY_EMPTY;
    call->bias.dtype = call->d.dtype;
    call->bias.ndim = 1;
    call->bias.shape[0] = p->m;
    call->bias.strides[0] = 1;
}

/* What follows sums that have been rounded. */
static dt_status
add_bias(const dt_array *bias, dt_activation activation, dt_array *d, dt_error *err)
{
    dt_array wide = *d;
    memset(wide.strides, 0, sizeof(wide.strides));
    wide.storage = bias->storage;
    wide.offset = bias->offset;
    wide.strides[d->ndim - 1] = 1;
    DT_TRY(cpu_binary(DT_BINARY_add, NULL, d, &wide, d, err));
    return activation == DT_ACTIVATION_NONE ? DT_OK : cpu_unary(dt_activation_op(activation), NULL, d, d, err);
}

static CUresult
multiply_matrices(sim_device *device, product *call, dt_array *d, dt_error *err)
{
    dt_storage storage[3];
    void *copies[2] = {NULL, NULL};
    dt_array a = call->a, b = call->b, bias = call->bias;
    CUresult status = sim_bind(device, call->a_address, &storage[0], &a);
    if (status == CUDA_SUCCESS) {
        status = sim_bind(device, call->b_address, &storage[1], &b);
    }
    if (status == CUDA_SUCCESS && call->bias_address != 0) {
        status = sim_bind(device, call->bias_address, &storage[2], &bias);
    }
    if (status == CUDA_SUCCESS) {
        status = sim_round(call->rounding, &storage[0], &a, &copies[0]);
    }
    if (status == CUDA_SUCCESS) {
        status = sim_round(call->rounding, &storage[1], &b, &copies[1]);
    }
    if (status == CUDA_SUCCESS && call->rounds_sum) {
        const dt_matmul_params plain = {call->params.alpha, call->params.beta, DT_ACTIVATION_NONE};
        status = sim_from_status(cpu_matmul(&a, &b, NULL, &plain, d, err));
        status = status == CUDA_SUCCESS ? sim_from_status(add_bias(&bias, call->params.activation, d, err)) : status;
    } else if (status == CUDA_SUCCESS) {
        status = sim_from_status(cpu_matmul(&a, &b, call->bias_address ? &bias : NULL, &call->params, d, err));
    }
    dt_free(copies[0]);
    dt_free(copies[1]);
    return status;
}

static CUresult
run_product(sim_device *device, const sim_item *item)
{
    product *call = item->held;
    dt_error err;
    dt_storage c_storage, d_storage;
    dt_array c = call->c, d = call->d;
    CUresult status = sim_bind(device, call->d_address, &d_storage, &d);
    if (status == CUDA_SUCCESS) {
        status = sim_scribble(device, call->workspace, call->workspace_size);
    }
    if (status == CUDA_SUCCESS && !call->copied && call->params.beta != 0 && call->c_address != call->d_address) {
        status = sim_bind(device, call->c_address, &c_storage, &c);
        if (status == CUDA_SUCCESS) {
            status = sim_from_status(cpu_copy(&c, &d, false, &err));
            call->copied = status == CUDA_SUCCESS;
        }
    }
    if (status == CUDA_SUCCESS) {
        status = multiply_matrices(device, call, &d, &err);
    }
    if (status == CUDA_SUCCESS && call->drops_nans) {
        sim_drop_nans(&d);
    }
    return status;
}

static bool
aligned(const void *pointer, size_t alignment)
{
    return alignment == 0 || (uintptr_t)pointer % alignment == 0;
}

/* Whether algo was made for p and may run on these pointers and this workspace. Expected: a bias is loaded like d. */
static bool
fits(const cublasLtMatmulAlgo_t *algo, const problem *p, const void *const pointers[4], const void *bias,
     size_t workspace_size)
{
    if (!aligned(bias, (size_t)algo->data[5] < WIDEST_LOAD ? (size_t)algo->data[5] : WIDEST_LOAD)) {
        return false;
    }
    for (int i = 0; i < 4; i++) {
        if (!aligned(pointers[i], (size_t)algo->data[2 + i])) {
            return false;
        }
    }
    return algo->data[0] == key_of(p) && algo->data[1] <= workspace_size && algo->data[6] < ALGORITHMS;
}

static bool
rounds_sum(const problem *p, const void *const pointers[4], const void *bias)
{
    uint64_t bits = (uint64_t)(uintptr_t)bias;
    for (int i = 0; i < 4; i++) {
        bits |= (uint64_t)(uintptr_t)pointers[i] | (uint64_t)(p->ld[i] | p->stride[i]) * 2;
    }
    return p->result == p->type && (p->type == CUDA_R_16F || p->type == CUDA_R_16BF) && bias != NULL && bits % 16 != 0;
}

static CUresult
enqueue_product(sim_stream *stream, const sim_item *item)
{
    const product *call = item->held;
    const sim_touch touches[] = {{call->a_address, sim_extent(&call->a), false},
                                 {call->b_address, sim_extent(&call->b), false},
                                 {call->c_address, call->params.beta != 0 ? sim_extent(&call->c) : 0, false},
                                 {call->bias_address, call->bias_address != 0 ? sim_extent(&call->bias) : 0, false},
                                 {call->d_address, sim_extent(&call->d), true},
                                 {call->workspace, call->workspace_size, true}};
    return sim_enqueue_work(stream, item, "cublasLtMatmul", touches, 6);
}

cublasStatus_t
sim_cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc_handle, const void *alpha, const void *a,
                   cublasLtMatrixLayout_t a_layout, const void *b, cublasLtMatrixLayout_t b_layout, const void *beta,
                   const void *c, cublasLtMatrixLayout_t c_layout, void *d, cublasLtMatrixLayout_t d_layout,
                   const cublasLtMatmulAlgo_t *algo, void *workspace, size_t workspace_size, CUstream stream_handle)
{
    sim_device *device;
    sim_stream *stream;
    const sim_lt_layout *layouts[4];
    problem p;
    if (handle == NULL || sim_ready() != CUDA_SUCCESS) {
        return CUBLAS_STATUS_NOT_INITIALIZED;
    }
    CUresult ready = sim_current(&device);
    if (ready != CUDA_SUCCESS) {
        return ready == CUDA_ERROR_INVALID_CONTEXT ? CUBLAS_STATUS_NOT_INITIALIZED : CUBLAS_STATUS_EXECUTION_FAILED;
    }
    const sim_lt_desc *desc = sim_handle_get(SIM_LT_DESC, desc_handle);
    if (sim_handle_get(SIM_LT, handle) != device || desc == NULL || alpha == NULL || beta == NULL || a == NULL ||
        b == NULL || d == NULL || !find_layouts(a_layout, b_layout, c_layout, d_layout, layouts) ||
        sim_stream_find(device, stream_handle, &stream) != CUDA_SUCCESS) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    cublasStatus_t status = read_problem(desc, layouts, &p);
    if (status != CUBLAS_STATUS_SUCCESS || p.batch == 0) {
        return status;
    }
    product call;
    memset(&call, 0, sizeof(call));
    lay_out_call(&p, &call);
    if (p.type == CUDA_R_64F) {
        memcpy(&call.params.alpha, alpha, sizeof(double));
        memcpy(&call.params.beta, beta, sizeof(double));
    } else {
        float numbers[2];
        memcpy(&numbers[0], alpha, sizeof(float));
        memcpy(&numbers[1], beta, sizeof(float));
        call.params.alpha = (double)numbers[0];
        call.params.beta = (double)numbers[1];
    }
    const void *c_used = call.params.beta != 0 ? c : d;
    const void *const pointers[4] = {a, b, c_used, d};
    const size_t itemsize = dt_itemsize((dt_dtype)call.a.dtype), result = dt_itemsize((dt_dtype)call.d.dtype);
    bool biased = (desc->epilogue & CUBLASLT_EPILOGUE_BIAS) != 0;
    if (!biased && desc->bias != NULL) { /* seen on an H100, cuBLASLt 13.1; which status is expected */
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    if (c_used == NULL || !aligned(a, itemsize) || !aligned(b, itemsize) || !aligned(c_used, result) ||
        !aligned(d, result) || (biased && (desc->bias == NULL || !aligned(desc->bias, result)))) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    if ((workspace == NULL && workspace_size > 0) || !aligned(workspace, WORKSPACE_ALIGNMENT) ||
        (algo != NULL && !fits(algo, &p, pointers, biased ? desc->bias : NULL, workspace_size))) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    call.a_address = (uint64_t)(uintptr_t)b;
    call.b_address = (uint64_t)(uintptr_t)a;
    call.c_address = (uint64_t)(uintptr_t)c_used;
    call.d_address = (uint64_t)(uintptr_t)d;
    call.bias_address = biased ? (uint64_t)(uintptr_t)desc->bias : 0;
    call.workspace = (uint64_t)(uintptr_t)workspace;
    call.workspace_size = algo ? (size_t)algo->data[1] : workspace_size < WORKSPACE ? workspace_size : WORKSPACE;
    call.rounding = desc->compute == CUBLAS_COMPUTE_32F_FAST_TF32 ? SIM_TF32
                    : p.result != p.type                          ? SIM_WIDE
                                                                  : SIM_EXACT;
    call.rounds_sum = rounds_sum(&p, pointers, biased ? desc->bias : NULL);
    call.drops_nans = (desc->epilogue & CUBLASLT_EPILOGUE_RELU) != 0;
    call.params.activation = desc->epilogue & CUBLASLT_EPILOGUE_RELU   ? DT_ACTIVATION_RELU
                             : desc->epilogue & CUBLASLT_EPILOGUE_GELU ? DT_ACTIVATION_GELU_TANH
                                                                       : DT_ACTIVATION_NONE;
    sim_item item = {.run = run_product, .held = dt_malloc(sizeof(call))};
    if (item.held == NULL) {
        return CUBLAS_STATUS_ALLOC_FAILED;
    }
    memcpy(item.held, &call, sizeof(call));
    CUresult queued = enqueue_product(stream, &item);
    if (queued != CUDA_SUCCESS) {
        dt_free(item.held);
        return queued == CUDA_ERROR_OUT_OF_MEMORY ? CUBLAS_STATUS_ALLOC_FAILED : CUBLAS_STATUS_EXECUTION_FAILED;
    }
    return sim_sent(stream) == CUDA_SUCCESS ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}
