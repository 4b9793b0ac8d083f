/* failure.c: what a call of a library answered becomes an error, and a device that is lost stays so. */
#include "streams/stream.h"

/* After these the driver answers nothing else until the process ends. */
static bool
is_sticky(int status)
{
    switch (status) {
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case CUDA_ERROR_CONTAINED:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_TENSOR_MEMORY_LEAK:
    case CUDA_ERROR_MPS_CLIENT_TERMINATED:
    case CUDA_ERROR_EXTERNAL_DEVICE:
        return true;
    default:
        return false;
    }
}

static void
describe_driver(int status, const char **name, const char **text)
{
    *name = *text = NULL;
    if (cu.cuGetErrorName(status, name) != 0 || *name == NULL) {
        *name = "unknown error";
    }
    if (cu.cuGetErrorString(status, text) != 0 || *text == NULL) {
        *text = "no description";
    }
}

static const char *
cublas_name(int status)
{
    switch (status) {
#define NAME(s)                                                                                                        \
    case s:                                                                                                            \
        return #s
        NAME(CUBLAS_STATUS_NOT_INITIALIZED);
        NAME(CUBLAS_STATUS_ALLOC_FAILED);
        NAME(CUBLAS_STATUS_INVALID_VALUE);
        NAME(CUBLAS_STATUS_ARCH_MISMATCH);
        NAME(CUBLAS_STATUS_EXECUTION_FAILED);
        NAME(CUBLAS_STATUS_INTERNAL_ERROR);
        NAME(CUBLAS_STATUS_NOT_SUPPORTED);
#undef NAME
    default:
        return "unknown error";
    }
}

#define POISON_BITS 16 /* of a status; above it stands the call that had it */

/* Whether symbol only waits: what failed was sent by an earlier call. */
static bool
is_wait(dt_api_symbol symbol)
{
    return symbol == DT_API_cuStreamSynchronize || symbol == DT_API_cuStreamQuery ||
           symbol == DT_API_cuEventSynchronize || symbol == DT_API_cuEventQuery || symbol == DT_API_cuCtxSynchronize;
}

/* What libraries answer when their work failed: also where the context has been lost before. */
static bool
may_be_lost(dt_api_symbol symbol, int status)
{
    switch (cuda_api_libraries[symbol]) {
    case DT_LIBRARY_CUBLASLT:
        return status == CUBLAS_STATUS_EXECUTION_FAILED || status == CUBLAS_STATUS_INTERNAL_ERROR;
    case DT_LIBRARY_CUDNN:
        return status >= CUDNN_STATUS_EXECUTION_FAILED;
    default:
        return false;
    }
}

dt_status
cuda_check_lost(cuda_device *device, dt_error *err)
{
    int status = cu.cuStreamQuery(cuda_stream(device));
    return is_sticky(status) ? cuda_fail(device, DT_API_cuStreamQuery, status, err) : DT_OK;
}

dt_status
cuda_fail(cuda_device *device, dt_api_symbol symbol, int status, dt_error *err)
{
    DT_TRY(cuda_fail_race(device, symbol, status, err));
    if (device != NULL && may_be_lost(symbol, status)) {
        DT_TRY(cuda_check_lost(device, err));
    }
    const char *name = NULL, *text = "";
    char last[256] = "";
    const char *hint = "";
    dt_status kind = DT_ECUDA;
    switch (cuda_api_libraries[symbol]) {
    case DT_LIBRARY_CUDA:
        describe_driver(status, &name, &text);
        if (device != NULL && is_sticky(status)) {
            int none = 0;
            atomic_compare_exchange_strong(&device->poison, &none, status | (int)symbol << POISON_BITS);
        }
        if (is_wait(symbol) && is_sticky(status)) {
            hint = ". An earlier operation went wrong on the device; with CUDA_LAUNCH_BLOCKING=1 in the environment it "
                   "is the one that raises.";
        }
        kind = status == CUDA_ERROR_OUT_OF_MEMORY ? DT_EOUTOFMEMORY : DT_ECUDA;
        break;
    case DT_LIBRARY_CUBLASLT:
        name = cublas_name(status);
        kind = status == CUBLAS_STATUS_ALLOC_FAILED ? DT_EOUTOFMEMORY : DT_ECUDA;
        break;
    case DT_LIBRARY_CUDNN:
        name = cu.cudnnGetErrorString(status);
        cu.cudnnGetLastErrorString(last, sizeof(last));
        last[sizeof(last) - 1] = '\0';
        text = last;
        kind = status == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED ||
                       status == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED
                   ? DT_EOUTOFMEMORY
                   : DT_ECUDA;
        break;
    default:
        name = cu.nvrtcGetErrorString(status);
        kind = status == NVRTC_ERROR_OUT_OF_MEMORY ? DT_EOUTOFMEMORY : DT_ECUDA;
        break;
    }
    char where[DT_DEVICE_TEXT] = "";
    dt_device at = {DT_CUDA, device ? device->index : 0};
    if (device != NULL) {
        dt_device_text(at, where);
    }
    dt_fail(err, kind, kind == DT_ECUDA ? "cuda-error" : "out-of-memory", NULL, "%s failed%s%s: %s (%d)%s%s%s",
            cuda_api_names[symbol], device ? " on " : "", where, name ? name : "unknown error", status,
            text[0] ? ": " : "", text, hint);
    err->symbol = cuda_api_names[symbol];
    err->library_status = status;
    err->device = at;
    return kind;
}

dt_status
cuda_fail_lost(const cuda_device *device, dt_error *err)
{
    const char *name, *text;
    int poison = atomic_load(&device->poison), status = poison & ((1 << POISON_BITS) - 1);
    const char *symbol = cuda_api_names[poison >> POISON_BITS];
    describe_driver(status, &name, &text);
    dt_fail(err, DT_ECUDA, "cuda-error", NULL,
            "cuda:%d cannot be used any more in this process: an earlier call of %s failed with %s (%d): %s",
            device->index, symbol, name, status, text);
    err->symbol = symbol;
    err->library_status = status;
    err->device = (dt_device){DT_CUDA, device->index};
    return DT_ECUDA;
}
