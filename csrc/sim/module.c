/* module.c: modules, functions and launches. The kernels are those of csrc/kernels, built for the host; an image says
 * which of them are in the module. */
#include "sim.h"

#include <setjmp.h>
#include <string.h>

#include "../kernels/kernel.h"

#define MAX_SHARED_BYTES (48u * 1024u)

/* The ends of the section that DT_KERNEL fills. */
extern const dt_host_kernel __start_dt_kernels[] __attribute__((weak, visibility("hidden")));
extern const dt_host_kernel __stop_dt_kernels[] __attribute__((weak, visibility("hidden")));

static sim_device *launched_on;
static jmp_buf escape;
static CUresult fault;

CUresult
sim_cuModuleLoadData(CUmodule *handle, const void *image)
{
    sim_device *device;
    CUresult status = sim_current(&device);
    if (status != CUDA_SUCCESS) {
        return status;
    }
    if (handle == NULL || image == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    int major = 0, minor = 0;
    char kernel[SIM_KERNEL_NAME];
    (void)sim_cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device->ordinal);
    (void)sim_cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device->ordinal);
    status = sim_image_read(image, 10 * major + minor, kernel);
    if (status != CUDA_SUCCESS) {
        return status;
    }
    sim_module *module = dt_malloc(sizeof(*module));
    if (module == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    module->device = device;
    memcpy(module->kernel, kernel, sizeof(kernel));
    CUmodule name = sim_handle_new(SIM_MODULE, module);
    if (name == NULL) {
        dt_free(module);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *handle = name;
    return CUDA_SUCCESS;
}

CUresult
sim_cuModuleUnload(CUmodule handle)
{
    sim_device *device;
    CUresult status = sim_context(&device);
    if (status != CUDA_SUCCESS) {
        return status;
    }
    sim_module *module = sim_handle_delete(SIM_MODULE, handle);
    if (module == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    status = module->device->sticky;
    dt_free(module);
    return status;
}

CUresult
sim_cuModuleGetFunction(CUfunction *function, CUmodule handle, const char *name)
{
    sim_device *device;
    CUresult status = sim_current(&device);
    if (status != CUDA_SUCCESS) {
        return status;
    }
    if (function == NULL || name == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const sim_module *module = sim_handle_get(SIM_MODULE, handle);
    if (module == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (module->kernel[0] != '\0' && strcmp(module->kernel, name) != 0) {
        return CUDA_ERROR_NOT_FOUND;
    }
    for (const dt_host_kernel *kernel = __start_dt_kernels; kernel < __stop_dt_kernels; kernel++) {
        if (strcmp(kernel->name, name) == 0) {
            *function = sim_handle_tag(handle, (unsigned)(kernel - __start_dt_kernels));
            return CUDA_SUCCESS;
        }
    }
    return CUDA_ERROR_NOT_FOUND;
}

/* Of the device that runs, or page-locked: with one address space for both, kernels reach that too. */
void *
sim_global(uint64_t address, uint64_t nbytes)
{
    void *memory = (void *)(uintptr_t)address;
    if (sim_is_pinned(memory, nbytes)) {
        return memory;
    }
    fault = sim_resolve(launched_on, address, nbytes, &memory);
    if (fault != CUDA_SUCCESS) {
        longjmp(escape, 1);
    }
    return memory;
}

/* A kernel holds nothing, so that a bad address can end it on the spot. */
static CUresult
run_launch(sim_device *device, const sim_item *item)
{
    const dt_host_kernel *kernel = item->what;
    launched_on = device;
    fault = CUDA_SUCCESS;
    if (setjmp(escape) == 0) {
        kernel->run(item->held);
    }
    return fault;
}

static CUresult
check_geometry(unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z,
               unsigned shared_bytes)
{
    uint64_t threads = (uint64_t)block_x * block_y * (block_z <= 64 ? block_z : 0);
    if (grid_x == 0 || grid_x > INT32_MAX || grid_y == 0 || grid_y > 65535 || grid_z == 0 || grid_z > 65535) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (threads == 0 || block_x > 1024 || block_y > 1024 || threads > 1024 || shared_bytes > MAX_SHARED_BYTES) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    /* what DT_KERNEL promises the compiler */
    return threads > DT_MAX_THREADS ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult
sim_cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                   unsigned block_y, unsigned block_z, unsigned shared_bytes, CUstream handle, void **parameters,
                   void **extra)
{
    sim_device *device;
    sim_stream *stream;
    unsigned index;
    CUresult status = sim_current(&device);
    if (status != CUDA_SUCCESS) {
        return status;
    }
    const sim_module *module = sim_handle_get(SIM_MODULE, sim_handle_untag(function, &index));
    if (module == NULL || module->device != device || index >= (size_t)(__stop_dt_kernels - __start_dt_kernels)) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    status = sim_stream_find(device, handle, &stream);
    if (status == CUDA_SUCCESS) {
        status = check_geometry(grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes);
    }
    if (status == CUDA_SUCCESS && (parameters == NULL || parameters[0] == NULL || extra != NULL)) {
        status = CUDA_ERROR_INVALID_VALUE;
    }
    if (status != CUDA_SUCCESS) {
        return status;
    }
    const dt_host_kernel *kernel = &__start_dt_kernels[index];
    sim_item item = {.run = run_launch, .what = kernel, .held = dt_malloc(kernel->args_size)};
    if (item.held == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    memcpy(item.held, parameters[0], kernel->args_size);
    status = sim_enqueue(stream, &item);
    if (status != CUDA_SUCCESS) {
        dt_free(item.held);
        return status;
    }
    return sim_sent(stream);
}
