/* conform_driver.c: the driver before a device is used, and its texts. */
#include "conform.h"

/* What is asked of the handle comes before whether there is a driver at all. */
static const struct {
    const char *name;
    CUresult status;
} early[] = {
    {"cuStreamDestroy_v2", CUDA_ERROR_INVALID_HANDLE}, {"cuEventDestroy_v2", CUDA_ERROR_INVALID_HANDLE},
    {"cuEventSynchronize", CUDA_ERROR_INVALID_HANDLE}, {"cuEventQuery", CUDA_ERROR_INVALID_HANDLE},
    {"cuEventElapsedTime", CUDA_ERROR_INVALID_HANDLE},
};

static CUresult
before_init(const char *name)
{
    for (size_t i = 0; i < sizeof(early) / sizeof(early[0]); i++) {
        if (strcmp(early[i].name, name) == 0) {
            return early[i].status;
        }
    }
    return CUDA_ERROR_NOT_INITIALIZED;
}

#define BEFORE(function, ...) IS(#function " before cuInit", api.function(__VA_ARGS__), before_init(#function))

void
conform_before_init(void)
{
    int n = -7;
    size_t nbytes = 7;
    float milliseconds = 7;
    char name[8] = "name";
    void *host = name;
    CUdeviceptr p = 7;
    CUmemoryPool pool = NULL;
    CUmodule module = NULL;
    CUfunction function = NULL;
    CUstream stream = NULL;
    CUevent event = NULL;
    CUmemAccessDesc access = {0};
    BEFORE(cuDeviceGetCount, &n);
    BEFORE(cuDeviceGet, &n, 0);
    BEFORE(cuDeviceGetName, name, sizeof(name), 0);
    BEFORE(cuDeviceGetAttribute, &n, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0);
    BEFORE(cuDeviceTotalMem_v2, &nbytes, 0);
    BEFORE(cuDeviceCanAccessPeer, &n, 0, 0);
    BEFORE(cuDevicePrimaryCtxRetain, &context, 0);
    BEFORE(cuDevicePrimaryCtxRelease_v2, 0);
    BEFORE(cuCtxSetCurrent, NULL);
    BEFORE(cuCtxGetCurrent, &context);
    BEFORE(cuCtxSynchronize);
    BEFORE(cuCtxEnablePeerAccess, NULL, 0);
    BEFORE(cuMemGetInfo_v2, &nbytes, &nbytes);
    BEFORE(cuMemAlloc_v2, &p, 4);
    BEFORE(cuMemFree_v2, p);
    BEFORE(cuMemAllocAsync, &p, 4, NULL);
    BEFORE(cuMemFreeAsync, p, NULL);
    BEFORE(cuDeviceGetDefaultMemPool, &pool, 0);
    BEFORE(cuMemPoolSetAttribute, NULL, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &nbytes);
    BEFORE(cuMemPoolGetAttribute, NULL, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &nbytes);
    BEFORE(cuMemPoolSetAccess, NULL, &access, 1);
    BEFORE(cuMemPoolTrimTo, NULL, 0);
    BEFORE(cuMemHostAlloc, &host, 4, 0);
    BEFORE(cuMemFreeHost, host);
    BEFORE(cuMemcpyHtoDAsync_v2, p, name, 4, NULL);
    BEFORE(cuMemcpyDtoHAsync_v2, name, p, 4, NULL);
    BEFORE(cuMemcpyDtoDAsync_v2, p, p, 4, NULL);
    BEFORE(cuMemcpyPeerAsync, p, NULL, p, NULL, 4, NULL);
    BEFORE(cuMemsetD8Async, p, 0, 4, NULL);
    BEFORE(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
    BEFORE(cuStreamCreateWithPriority, &stream, CU_STREAM_NON_BLOCKING, 0);
    BEFORE(cuCtxGetStreamPriorityRange, &n, &n);
    BEFORE(cuStreamDestroy_v2, NULL);
    BEFORE(cuStreamSynchronize, NULL);
    BEFORE(cuStreamQuery, NULL);
    BEFORE(cuStreamWaitEvent, NULL, NULL, 0);
    BEFORE(cuEventCreate, &event, 0);
    BEFORE(cuEventDestroy_v2, NULL);
    BEFORE(cuEventRecord, NULL, NULL);
    BEFORE(cuEventSynchronize, NULL);
    BEFORE(cuEventQuery, NULL);
    BEFORE(cuEventElapsedTime, &milliseconds, NULL, NULL);
    BEFORE(cuModuleLoadData, &module, name);
    BEFORE(cuModuleUnload, NULL);
    BEFORE(cuModuleGetFunction, &function, NULL, name);
    BEFORE(cuFuncSetAttribute, NULL, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 0);
    BEFORE(cuPointerGetAttribute, &n, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, p);
    BEFORE(cuLaunchKernel, NULL, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
    HOLDS("a refusal clears sizes and addresses", nbytes == 0 && p == 0 && host == NULL);
    HOLDS("a refused stream is no NULL", stream == (CUstream)(intptr_t)-1);
    HOLDS("a refusal leaves every other answer", n == -7 && milliseconds == 7 && strcmp(name, "name") == 0 &&
                                                     context == NULL && module == NULL && function == NULL &&
                                                     event == NULL && pool == NULL);
    OK("cuDriverGetVersion before cuInit", api.cuDriverGetVersion(&n));
    HOLDS("the driver is for CUDA 13 or later", n >= 13000);
    IS("cuDriverGetVersion to NULL", api.cuDriverGetVersion(NULL), CUDA_ERROR_INVALID_VALUE);
    IS("cuInit with flags", api.cuInit(1), CUDA_ERROR_INVALID_VALUE);
}

void
conform_error_texts(void)
{
    const char *text = "";
#define TEXT(code, words)                                                                                              \
    HOLDS("the name of " #code,                                                                                        \
          api.cuGetErrorName(CUDA_##code, &text) == 0 && text != NULL && strcmp(text, "CUDA_" #code) == 0);            \
    HOLDS("the text of " #code,                                                                                        \
          api.cuGetErrorString(CUDA_##code, &text) == 0 && text != NULL && strcmp(text, words) == 0);
    TEXT(SUCCESS, "no error")
    TEXT(ERROR_INVALID_VALUE, "invalid argument")
    TEXT(ERROR_OUT_OF_MEMORY, "out of memory")
    TEXT(ERROR_NOT_INITIALIZED, "initialization error")
    TEXT(ERROR_DEINITIALIZED, "driver shutting down")
    TEXT(ERROR_STUB_LIBRARY, "CUDA driver is a stub library")
    TEXT(ERROR_NO_DEVICE, "no CUDA-capable device is detected")
    TEXT(ERROR_INVALID_DEVICE, "invalid device ordinal")
    TEXT(ERROR_INVALID_IMAGE, "device kernel image is invalid")
    TEXT(ERROR_INVALID_CONTEXT, "invalid device context")
    TEXT(ERROR_NO_BINARY_FOR_GPU, "no kernel image is available for execution on the device")
    TEXT(ERROR_ECC_UNCORRECTABLE, "uncorrectable ECC error encountered")
    TEXT(ERROR_PEER_ACCESS_UNSUPPORTED, "peer access is not supported between these two devices")
    TEXT(ERROR_INVALID_PTX, "a PTX JIT compilation failed")
    TEXT(ERROR_NVLINK_UNCORRECTABLE, "uncorrectable NVLink error detected during the execution")
    TEXT(ERROR_JIT_COMPILER_NOT_FOUND, "PTX JIT compiler library not found")
    TEXT(ERROR_UNSUPPORTED_PTX_VERSION, "the provided PTX was compiled with an unsupported toolchain.")
    TEXT(ERROR_JIT_COMPILATION_DISABLED, "PTX JIT compilation was disabled")
    TEXT(ERROR_CONTAINED, "Invalid access of peer GPU memory over nvlink or a hardware error")
    TEXT(ERROR_INVALID_SOURCE, "device kernel image is invalid")
    TEXT(ERROR_INVALID_HANDLE, "invalid resource handle")
    TEXT(ERROR_NOT_FOUND, "named symbol not found")
    TEXT(ERROR_NOT_READY, "device not ready")
    TEXT(ERROR_ILLEGAL_ADDRESS, "an illegal memory access was encountered")
    TEXT(ERROR_LAUNCH_OUT_OF_RESOURCES, "too many resources requested for launch")
    TEXT(ERROR_LAUNCH_TIMEOUT, "the launch timed out and was terminated")
    TEXT(ERROR_PEER_ACCESS_ALREADY_ENABLED, "peer access is already enabled")
    TEXT(ERROR_ASSERT, "device-side assert triggered")
    TEXT(ERROR_HARDWARE_STACK_ERROR, "hardware stack error")
    TEXT(ERROR_ILLEGAL_INSTRUCTION, "an illegal instruction was encountered")
    TEXT(ERROR_MISALIGNED_ADDRESS, "misaligned address")
    TEXT(ERROR_INVALID_ADDRESS_SPACE, "operation not supported on global/shared address space")
    TEXT(ERROR_INVALID_PC, "invalid program counter")
    TEXT(ERROR_LAUNCH_FAILED, "unspecified launch failure")
    TEXT(ERROR_TENSOR_MEMORY_LEAK, "tensor memory not completely freed")
    TEXT(ERROR_NOT_SUPPORTED, "operation not supported")
    TEXT(ERROR_MPS_CLIENT_TERMINATED, "the MPS client has been terminated by the server")
    TEXT(ERROR_EXTERNAL_DEVICE, "an async error has occured in external entity outside of CUDA")
    TEXT(ERROR_UNKNOWN, "unknown error")
#undef TEXT
    IS("cuGetErrorName of no error", api.cuGetErrorName((CUresult)12345, &text), CUDA_ERROR_INVALID_VALUE);
    HOLDS("the name of no error is NULL", text == NULL);
    text = "";
    IS("cuGetErrorString of no error", api.cuGetErrorString((CUresult)12345, &text), CUDA_ERROR_INVALID_VALUE);
    HOLDS("the text of no error is NULL", text == NULL);
}

void
conform_init(void)
{
    OK("cuInit", api.cuInit(0));
    OK("cuInit again", api.cuInit(0));
}
