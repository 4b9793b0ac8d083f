/* cublaslt.c: cuBLASLt's handles and descriptors. */
#include "cublaslt.h"

#include <string.h>

size_t
sim_cublasLtGetVersion(void)
{
    return 130000;
}

cublasStatus_t
sim_cublasLtCreate(cublasLtHandle_t *handle)
{
    sim_device *device;
    if (handle == NULL) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    if (sim_current(&device) != CUDA_SUCCESS) {
        return CUBLAS_STATUS_NOT_INITIALIZED;
    }
    cublasLtHandle_t made = sim_handle_new(SIM_LT, device);
    if (made == NULL) {
        return CUBLAS_STATUS_ALLOC_FAILED;
    }
    *handle = made;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t
sim_cublasLtDestroy(cublasLtHandle_t handle)
{
    return sim_handle_delete(SIM_LT, handle) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

/* Gives a copy of initial a name. */
static cublasStatus_t
create(sim_kind kind, const void *initial, size_t size, void **handle)
{
    void *object = dt_malloc(size);
    void *made = object ? sim_handle_new(kind, object) : NULL;
    if (made == NULL) {
        dt_free(object);
        return CUBLAS_STATUS_ALLOC_FAILED;
    }
    memcpy(object, initial, size);
    *handle = made;
    return CUBLAS_STATUS_SUCCESS;
}

/* A descriptor that was never made may be destroyed, as in the library. */
static cublasStatus_t
destroy(sim_kind kind, void *handle)
{
    void *object = sim_handle_delete(kind, handle);
    dt_free(object);
    return object == NULL && handle != NULL ? CUBLAS_STATUS_INVALID_VALUE : CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t
sim_cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *desc, cublasComputeType_t compute, cudaDataType scale)
{
    const sim_lt_desc initial = {
        .compute = compute, .scale = scale, .bias_type = -1, .epilogue = CUBLASLT_EPILOGUE_DEFAULT};
    void *made;
    cublasStatus_t status = desc ? create(SIM_LT_DESC, &initial, sizeof(initial), &made) : CUBLAS_STATUS_INVALID_VALUE;
    if (status == CUBLAS_STATUS_SUCCESS) {
        *desc = made;
    }
    return status;
}

cublasStatus_t
sim_cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc)
{
    return destroy(SIM_LT_DESC, desc);
}

static cublasStatus_t
set(void *field, size_t field_size, const void *value, size_t size)
{
    if (field == NULL || value == NULL || size != field_size) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    memcpy(field, value, size);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t
sim_cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t handle, cublasLtMatmulDescAttributes_t attribute,
                                   const void *value, size_t size)
{
    sim_lt_desc *desc = sim_handle_get(SIM_LT_DESC, handle);
    if (desc == NULL) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
        return set(&desc->transa, sizeof(desc->transa), value, size);
    case CUBLASLT_MATMUL_DESC_TRANSB:
        return set(&desc->transb, sizeof(desc->transb), value, size);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
        return set(&desc->epilogue, sizeof(desc->epilogue), value, size);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
        return set(&desc->bias, sizeof(desc->bias), value, size);
    case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE:
        return set(&desc->bias_type, sizeof(desc->bias_type), value, size);
    default:
        return CUBLAS_STATUS_INVALID_VALUE;
    }
}

cublasStatus_t
sim_cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *layout, cudaDataType type, uint64_t rows, uint64_t columns,
                               int64_t ld)
{
    const sim_lt_layout initial = {.type = type, .rows = rows, .columns = columns, .ld = ld, .batch = 1};
    void *made;
    cublasStatus_t status =
        layout ? create(SIM_LT_LAYOUT, &initial, sizeof(initial), &made) : CUBLAS_STATUS_INVALID_VALUE;
    if (status == CUBLAS_STATUS_SUCCESS) {
        *layout = made;
    }
    return status;
}

cublasStatus_t
sim_cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout)
{
    return destroy(SIM_LT_LAYOUT, layout);
}

cublasStatus_t
sim_cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t handle, cublasLtMatrixLayoutAttribute_t attribute,
                                     const void *value, size_t size)
{
    sim_lt_layout *layout = sim_handle_get(SIM_LT_LAYOUT, handle);
    if (layout == NULL) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    switch (attribute) {
    case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT:
        return set(&layout->batch, sizeof(layout->batch), value, size);
    case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET:
        return set(&layout->stride, sizeof(layout->stride), value, size);
    default:
        return CUBLAS_STATUS_INVALID_VALUE;
    }
}

cublasStatus_t
sim_cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *preference)
{
    const sim_lt_preference initial = {.alignment = {256, 256, 256, 256}, .reductions = 7};
    void *made;
    cublasStatus_t status =
        preference ? create(SIM_LT_PREFERENCE, &initial, sizeof(initial), &made) : CUBLAS_STATUS_INVALID_VALUE;
    if (status == CUBLAS_STATUS_SUCCESS) {
        *preference = made;
    }
    return status;
}

cublasStatus_t
sim_cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference)
{
    return destroy(SIM_LT_PREFERENCE, preference);
}

cublasStatus_t
sim_cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t handle,
                                         cublasLtMatmulPreferenceAttributes_t attribute, const void *value, size_t size)
{
    sim_lt_preference *preference = sim_handle_get(SIM_LT_PREFERENCE, handle);
    if (preference == NULL) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    if (attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES) {
        return set(&preference->workspace, sizeof(preference->workspace), value, size);
    }
    if (attribute == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK) {
        return set(&preference->reductions, sizeof(preference->reductions), value, size);
    }
    int operand = attribute - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES;
    return operand < 0 || operand > 3 ? CUBLAS_STATUS_INVALID_VALUE
                                      : set(&preference->alignment[operand], sizeof(unsigned), value, size);
}
