/* device.c: initialisation, devices, contexts and the errors that stay. */
#include "sim.h"

#include <stdio.h>
#include <string.h>

sim_device sim_devices[SIM_MAX_DEVICES];
int sim_ndevices;

static bool initialised, forked; /* forked: a child of the process that initialised */
static _Thread_local void *current;
static int capability_major = 9, capability_minor = 0;

/* ---------------------------------------------------------------- for the rest of this folder and for tests */

bool
sim_configure(int devices, size_t memory)
{
    if (initialised) {
        return devices == sim_ndevices && (devices == 0 || memory == sim_devices[0].memory);
    }
    sim_ndevices = devices;
    for (int i = 0; i < devices; i++) {
        sim_devices[i].ordinal = i;
        sim_devices[i].memory = memory;
    }
    return true;
}

void
sim_set_compute_capability(int major, int minor)
{
    sim_lock();
    capability_major = major;
    capability_minor = minor;
    sim_unlock();
}

void
sim_ledger(int64_t *blocks, int64_t *bytes, int64_t *streams, int64_t *events, int64_t *modules, int64_t *descriptors)
{
    sim_lock();
    *blocks = *bytes = 0;
    for (int i = 0; i < sim_ndevices; i++) {
        for (size_t j = 0; j < sim_devices[i].nblocks; j++) {
            const sim_block *block = sim_devices[i].blocks[j];
            *blocks += !block->freeing;
            *bytes += block->freeing ? 0 : (int64_t)block->nbytes;
        }
    }
    *streams = sim_handle_count(SIM_STREAM);
    *events = sim_handle_count(SIM_EVENT);
    *modules = sim_handle_count(SIM_MODULE);
    *descriptors = sim_handle_count(SIM_LT_DESC) + sim_handle_count(SIM_LT_LAYOUT) +
                   sim_handle_count(SIM_LT_PREFERENCE) + sim_handle_count(SIM_DNN_DESC) + sim_handle_count(SIM_PROGRAM);
    sim_unlock();
}

void
sim_reset(void)
{
    sim_lock();
    for (int i = 0; i < sim_ndevices; i++) {
        sim_device *device = &sim_devices[i];
        if (device->sticky == CUDA_SUCCESS) {
            continue;
        }
        for (size_t j = 0; j < device->nblocks; j++) {
            if (!device->blocks[j]->live) { /* what would have begun it was dropped */
                sim_block_start(device->blocks[j]);
            }
        }
        device->sticky = CUDA_SUCCESS;
        device->fault[0] = '\0';
    }
    sim_unlock();
}

CUresult
sim_ready(void)
{
    return initialised && !forked ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

void
sim_fork(void)
{
    forked = initialised;
}

CUresult
sim_context(sim_device **device)
{
    CUresult status = sim_ready();
    *device = status == CUDA_SUCCESS ? sim_handle_get(SIM_CONTEXT, current) : NULL;
    return status != CUDA_SUCCESS ? status : *device == NULL ? CUDA_ERROR_INVALID_CONTEXT : CUDA_SUCCESS;
}

CUresult
sim_current(sim_device **device)
{
    CUresult status = sim_context(device);
    return status != CUDA_SUCCESS ? status : (*device)->sticky;
}

void
sim_set_fault_text(sim_device *device, const char *text)
{
    snprintf(device->fault, sizeof(device->fault), "%s", text);
}

void
sim_poison(sim_device *device, CUresult status)
{
    if (device->sticky == CUDA_SUCCESS) {
        device->sticky = status;
    }
    sim_stream_drop(device->null_stream);
    for (sim_stream *stream = device->streams; stream != NULL; stream = stream->next) {
        sim_stream_drop(stream);
    }
}

CUresult
sim_find_device(CUdevice ordinal, sim_device **device)
{
    CUresult status = sim_ready();
    if (status != CUDA_SUCCESS) {
        return status;
    }
    if (ordinal < 0 || ordinal >= sim_ndevices) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    *device = &sim_devices[ordinal];
    return CUDA_SUCCESS;
}

/* ---------------------------------------------------------------- driver and devices */

CUresult
sim_cuInit(unsigned flags)
{
    if (flags != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (sim_ndevices == 0) {
        return CUDA_ERROR_NO_DEVICE;
    }
    if (initialised) {
        return sim_ready();
    }
    for (int i = 0; i < sim_ndevices; i++) {
        sim_device *device = &sim_devices[i];
        device->pool = device->pool ? device->pool : sim_handle_new(SIM_POOL, device);
        if (device->pool == NULL) {
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
    }
    initialised = true;
    return CUDA_SUCCESS;
}

CUresult
sim_cuDriverGetVersion(int *version)
{
    if (version == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *version = 13000;
    return CUDA_SUCCESS;
}

static const struct {
    CUresult error;
    const char *name, *text;
} errors[] = {
#define ERROR(code, text)                                                                                              \
    {                                                                                                                  \
        CUDA_##code, "CUDA_" #code, text                                                                               \
    }
    ERROR(SUCCESS, "no error"),
    ERROR(ERROR_INVALID_VALUE, "invalid argument"),
    ERROR(ERROR_OUT_OF_MEMORY, "out of memory"),
    ERROR(ERROR_NOT_INITIALIZED, "initialization error"),
    ERROR(ERROR_DEINITIALIZED, "driver shutting down"),
    ERROR(ERROR_STUB_LIBRARY, "CUDA driver is a stub library"),
    ERROR(ERROR_NO_DEVICE, "no CUDA-capable device is detected"),
    ERROR(ERROR_INVALID_DEVICE, "invalid device ordinal"),
    ERROR(ERROR_INVALID_IMAGE, "device kernel image is invalid"),
    ERROR(ERROR_INVALID_CONTEXT, "invalid device context"),
    ERROR(ERROR_NO_BINARY_FOR_GPU, "no kernel image is available for execution on the device"),
    ERROR(ERROR_ECC_UNCORRECTABLE, "uncorrectable ECC error encountered"),
    ERROR(ERROR_PEER_ACCESS_UNSUPPORTED, "peer access is not supported between these two devices"),
    ERROR(ERROR_INVALID_PTX, "a PTX JIT compilation failed"),
    ERROR(ERROR_NVLINK_UNCORRECTABLE, "uncorrectable NVLink error detected during the execution"),
    ERROR(ERROR_JIT_COMPILER_NOT_FOUND, "PTX JIT compiler library not found"),
    ERROR(ERROR_UNSUPPORTED_PTX_VERSION, "the provided PTX was compiled with an unsupported toolchain."),
    ERROR(ERROR_JIT_COMPILATION_DISABLED, "PTX JIT compilation was disabled"),
    ERROR(ERROR_CONTAINED, "Invalid access of peer GPU memory over nvlink or a hardware error"),
    ERROR(ERROR_INVALID_SOURCE, "device kernel image is invalid"),
    ERROR(ERROR_INVALID_HANDLE, "invalid resource handle"),
    ERROR(ERROR_NOT_FOUND, "named symbol not found"),
    ERROR(ERROR_NOT_READY, "device not ready"),
    ERROR(ERROR_ILLEGAL_ADDRESS, "an illegal memory access was encountered"),
    ERROR(ERROR_LAUNCH_OUT_OF_RESOURCES, "too many resources requested for launch"),
    ERROR(ERROR_LAUNCH_TIMEOUT, "the launch timed out and was terminated"),
    ERROR(ERROR_PEER_ACCESS_ALREADY_ENABLED, "peer access is already enabled"),
    ERROR(ERROR_ASSERT, "device-side assert triggered"),
    ERROR(ERROR_HARDWARE_STACK_ERROR, "hardware stack error"),
    ERROR(ERROR_ILLEGAL_INSTRUCTION, "an illegal instruction was encountered"),
    ERROR(ERROR_MISALIGNED_ADDRESS, "misaligned address"),
    ERROR(ERROR_INVALID_ADDRESS_SPACE, "operation not supported on global/shared address space"),
    ERROR(ERROR_INVALID_PC, "invalid program counter"),
    ERROR(ERROR_LAUNCH_FAILED, "unspecified launch failure"),
    ERROR(ERROR_TENSOR_MEMORY_LEAK, "tensor memory not completely freed"),
    ERROR(ERROR_NOT_SUPPORTED, "operation not supported"),
    ERROR(ERROR_MPS_CLIENT_TERMINATED, "the MPS client has been terminated by the server"),
    ERROR(ERROR_EXTERNAL_DEVICE, "an async error has occured in external entity outside of CUDA"),
    ERROR(ERROR_UNKNOWN, "unknown error"),
#undef ERROR
};

static CUresult
error_text(CUresult error, bool name, const char **text)
{
    if (text == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
        if (errors[i].error == error) {
            *text = name ? errors[i].name : errors[i].text;
            return CUDA_SUCCESS;
        }
    }
    *text = NULL;
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult
sim_cuGetErrorName(CUresult error, const char **text)
{
    return error_text(error, true, text);
}

/* Of the error that the thread's device is lost to, all that is known. */
CUresult
sim_cuGetErrorString(CUresult error, const char **text)
{
    static char both[SIM_MAX_DEVICES][sizeof(sim_devices[0].fault) + 128];
    sim_device *device;
    CUresult status = error_text(error, false, text);
    if (status == CUDA_SUCCESS && error != CUDA_SUCCESS && sim_context(&device) == CUDA_SUCCESS &&
        device->sticky == error && device->fault[0] != '\0') {
        snprintf(both[device->ordinal], sizeof(both[0]), "%s: %s", *text, device->fault);
        *text = both[device->ordinal];
    }
    return status;
}

CUresult
sim_cuDeviceGetCount(int *count)
{
    CUresult status = sim_ready();
    if (status == CUDA_SUCCESS && count == NULL) {
        status = CUDA_ERROR_INVALID_VALUE;
    }
    if (status == CUDA_SUCCESS) {
        *count = sim_ndevices;
    }
    return status;
}

CUresult
sim_cuDeviceGet(CUdevice *device, int ordinal)
{
    sim_device *found;
    CUresult status = sim_find_device(ordinal, &found);
    if (status == CUDA_SUCCESS && device == NULL) {
        status = CUDA_ERROR_INVALID_VALUE;
    }
    if (status == CUDA_SUCCESS) {
        *device = ordinal;
    }
    return status;
}

CUresult
sim_cuDeviceGetName(char *name, int length, CUdevice device)
{
    static const char text[] = "devtensor simulated GPU";
    sim_device *found;
    CUresult status = sim_find_device(device, &found);
    if (status == CUDA_SUCCESS && (name == NULL || length <= 0)) {
        status = CUDA_ERROR_INVALID_VALUE;
    }
    if (status == CUDA_SUCCESS) {
        size_t n = sizeof(text) < (size_t)length ? sizeof(text) : (size_t)length;
        memcpy(name, text, n);
        name[n - 1] = '\0';
    }
    return status;
}

CUresult
sim_cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
    sim_device *found;
    CUresult status = sim_find_device(device, &found);
    if (status != CUDA_SUCCESS) {
        return status;
    }
    if (value == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y:
        *value = 1024;
        return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z:
        *value = 64;
        return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X:
        *value = INT32_MAX;
        return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z:
        *value = 65535;
        return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK:
        *value = SIM_SHARED_BYTES;
        return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
        *value = SIM_SHARED_OPTIN_BYTES;
        return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
        *value = 132;
        return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
        *value = 2048;
        return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
    case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED:
        *value = 1;
        return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
        *value = capability_major;
        return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
        *value = capability_minor;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult
sim_cuDeviceTotalMem_v2(size_t *nbytes, CUdevice device)
{
    sim_device *found;
    SIM_CLEAR(nbytes);
    CUresult status = sim_find_device(device, &found);
    if (status == CUDA_SUCCESS && nbytes == NULL) {
        status = CUDA_ERROR_INVALID_VALUE;
    }
    if (status == CUDA_SUCCESS) {
        *nbytes = found->memory;
    }
    return status;
}

/* ---------------------------------------------------------------- contexts */

static size_t
context_bytes(const sim_device *device)
{
    size_t share = device->memory / SIM_CONTEXT_SHARE;
    return share < SIM_CONTEXT_BYTES ? share : SIM_CONTEXT_BYTES;
}

static CUresult
open_context(sim_device *device)
{
    if (device->null_stream == NULL) {
        CUresult status = sim_stream_new(device, true, &device->null_stream);
        if (status != CUDA_SUCCESS) {
            return status;
        }
    }
    CUresult status = device->open == NULL ? sim_arena_open(device) : CUDA_SUCCESS;
    if (status == CUDA_SUCCESS) {
        status = sim_charge(device, context_bytes(device));
    }
    if (status != CUDA_SUCCESS) {
        return status;
    }
    device->context = sim_handle_new(SIM_CONTEXT, device);
    if (device->context == NULL) {
        sim_discharge(device, context_bytes(device));
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    return CUDA_SUCCESS;
}

static void
close_context(sim_device *device)
{
    void *handle;
    size_t position = 0;
    sim_drain_device(device);
    sim_stream_drop(device->null_stream);
    while (device->streams != NULL) {
        sim_handle_delete(SIM_STREAM, device->streams->handle);
        sim_stream_free(device->streams);
    }
    while (device->nblocks > 0) {
        sim_block_free(device->blocks[device->nblocks - 1]);
    }
    sim_pool_trim(device, 0);
    for (sim_event *event; (event = sim_handle_next(SIM_EVENT, &position, &handle)) != NULL;) {
        if (event->device == device) {
            sim_handle_delete(SIM_EVENT, handle);
            sim_event_free(event);
        }
    }
    position = 0;
    for (sim_module *module; (module = sim_handle_next(SIM_MODULE, &position, &handle)) != NULL;) {
        if (module->device == device) {
            sim_module_free(sim_handle_delete(SIM_MODULE, handle));
        }
    }
    sim_handle_delete(SIM_CONTEXT, device->context);
    sim_discharge(device, context_bytes(device));
    device->context = NULL;
    device->peers = 0;
}

CUresult
sim_cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    sim_device *found;
    CUresult status = sim_find_device(device, &found);
    if (status == CUDA_SUCCESS && context == NULL) {
        status = CUDA_ERROR_INVALID_VALUE;
    }
    if (status == CUDA_SUCCESS && found->context == NULL) {
        status = open_context(found);
    }
    if (status == CUDA_SUCCESS) {
        found->retained++;
        *context = found->context;
    }
    return status;
}

CUresult
sim_cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    sim_device *found;
    CUresult status = sim_find_device(device, &found);
    if (status != CUDA_SUCCESS) {
        return status;
    }
    if (found->retained == 0) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    if (--found->retained == 0) {
        close_context(found);
    }
    return CUDA_SUCCESS;
}

CUresult
sim_cuCtxSetCurrent(CUcontext context)
{
    CUresult status = sim_ready();
    if (status != CUDA_SUCCESS) {
        return status;
    }
    if (context != NULL && sim_handle_get(SIM_CONTEXT, context) == NULL) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    current = context;
    return CUDA_SUCCESS;
}

CUresult
sim_cuCtxGetCurrent(CUcontext *context)
{
    CUresult status = sim_ready();
    if (status == CUDA_SUCCESS && context == NULL) {
        status = CUDA_ERROR_INVALID_VALUE;
    }
    if (status == CUDA_SUCCESS) {
        *context = current;
    }
    return status;
}

CUresult
sim_cuCtxSynchronize(void)
{
    sim_device *device;
    CUresult status = sim_current(&device);
    if (status == CUDA_SUCCESS) {
        status = sim_drain_device(device);
    }
    if (status == CUDA_SUCCESS) {
        sim_check_all(device);
        sim_race_host_drained_all(device);
        status = device->sticky != CUDA_SUCCESS ? device->sticky : sim_race_untold();
    }
    return status;
}
