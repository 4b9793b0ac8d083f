/* module.c: modules, functions and launches. The kernels are those of csrc/kernels, built for the host, of which an
 * image says which are in the module; or one of a user's, which raw.c launches. */
#include "host.h"

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include "../cuda/launch/image.h"
#include "../kernels/kernel.h"

/* Not there in programs without kernels. */
#pragma weak cuda_nimage_kernels
#pragma weak cuda_image_kernels

/* The ends of the section that DT_KERNEL fills. */
extern const dt_host_kernel __start_dt_kernels[] __attribute__((weak, visibility("hidden")));
extern const dt_host_kernel __stop_dt_kernels[] __attribute__((weak, visibility("hidden")));

static sim_device *launched_on;
static jmp_buf escape;
static CUresult fault;
static sim_touch declared[SIM_MOST_TOUCHES];
static int ndeclared; /* -1: nobody asks */

static int
static_shared_bytes(const sim_module *module)
{
    return module->program != NULL ? (int)module->program->shared_bytes : 0;
}

/* Little where there is little. */
static size_t
module_bytes(const sim_device *device)
{
    size_t share = device->memory / SIM_MODULE_SHARE;
    return share < SIM_MODULE_BYTES ? share : SIM_MODULE_BYTES;
}

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
    sim_image contents;
    (void)sim_cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device->ordinal);
    (void)sim_cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device->ordinal);
    status = sim_image_read(image, 10 * major + minor, &contents);
    if (status != CUDA_SUCCESS) {
        return status;
    }
    status = sim_charge(device, module_bytes(device));
    if (status != CUDA_SUCCESS) {
        return status;
    }
    sim_module *module = dt_malloc(sizeof(*module));
    if (module == NULL) {
        sim_discharge(device, module_bytes(device));
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *module = (sim_module){.device = device, .dynamic_shared_bytes = SIM_SHARED_BYTES};
    memcpy(module->kernel, contents.kernel, sizeof(contents.kernel));
    if (contents.executable != NULL) {
        status = sim_program_new(contents.kernel, contents.executable, contents.nbytes, &module->program);
    }
    module->dynamic_shared_bytes -= static_shared_bytes(module);
    CUmodule name = status == CUDA_SUCCESS ? sim_handle_new(SIM_MODULE, module) : NULL;
    if (name == NULL) {
        sim_module_free(module);
        return status != CUDA_SUCCESS ? status : CUDA_ERROR_OUT_OF_MEMORY;
    }
    *handle = name;
    return CUDA_SUCCESS;
}

void
sim_module_free(sim_module *module)
{
    sim_program_release(module->program);
    sim_discharge(module->device, module_bytes(module->device));
    dt_free(module);
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
    sim_module_free(module);
    return status;
}

static int
compare_names(const void *name, const void *kernel)
{
    return strcmp(name, ((const cuda_image_kernel *)kernel)->name);
}

/* Whether the kernel takes as many bytes on the host, whose struct is launched, as in the embedded machine code. */
static bool
has_device_size(const dt_host_kernel *kernel)
{
    size_t n = &cuda_nimage_kernels != NULL ? (size_t)cuda_nimage_kernels : 0;
    const cuda_image_kernel *embedded =
        n > 0 ? bsearch(kernel->name, cuda_image_kernels, n, sizeof(*embedded), compare_names) : NULL;
    return embedded == NULL || embedded->args_size == kernel->args_size;
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
    if (module->program != NULL) {
        *function = sim_handle_tag(handle, 0);
        return CUDA_SUCCESS;
    }
    for (const dt_host_kernel *kernel = __start_dt_kernels; kernel < __stop_dt_kernels; kernel++) {
        if (strcmp(kernel->name, name) == 0) {
            if (!has_device_size(kernel)) {
                return CUDA_ERROR_INVALID_IMAGE;
            }
            *function = sim_handle_tag(handle, (unsigned)(kernel - __start_dt_kernels));
            return CUDA_SUCCESS;
        }
    }
    return CUDA_ERROR_NOT_FOUND;
}

/* Whether the race detector has been told of it. */
static bool
is_declared(uint64_t address, uint64_t nbytes, bool written)
{
    for (int i = 0; i < ndeclared; i++) {
        const sim_touch *touch = &declared[i];
        if (address - touch->address < touch->nbytes && nbytes <= touch->nbytes - (address - touch->address) &&
            (touch->writes || !written)) {
            return true;
        }
    }
    return ndeclared < 0 || nbytes == 0;
}

/* Of the device that runs, or page-locked: with one address space for both, kernels reach that too. */
void *
sim_global(uint64_t address, uint64_t nbytes, int written, unsigned alignment)
{
    void *memory, *host = (void *)(uintptr_t)address;
    fault =
        address % alignment == 0 ? sim_resolve(launched_on, address, nbytes, &memory) : CUDA_ERROR_MISALIGNED_ADDRESS;
    if (fault == CUDA_ERROR_MISALIGNED_ADDRESS) {
        longjmp(escape, 1);
    }
    if (fault == CUDA_SUCCESS && !is_declared(address, nbytes, written)) {
        sim_set_fault_text(launched_on, "a kernel uses memory in another way than touches.c says");
        fault = CUDA_ERROR_ILLEGAL_ADDRESS;
        longjmp(escape, 1);
    }
    if (fault == CUDA_SUCCESS) {
        return memory;
    }
    if (!sim_is_pinned(host, nbytes)) {
        longjmp(escape, 1);
    }
    fault = CUDA_SUCCESS;
    return host;
}

/* A kernel holds nothing, so that a bad address can end it on the spot. */
static CUresult
run_launch(sim_device *device, const sim_item *item)
{
    const dt_host_kernel *kernel = item->what;
    launched_on = device;
    fault = CUDA_SUCCESS;
    const int touched = SIM_CLOSES || sim_races_on() ? sim_touches_of(kernel, item->held, declared) : -1;
    ndeclared = sim_races_on() ? touched : -1;
    for (int i = 0; SIM_CLOSES && i < touched; i++) { /* a view may go backwards from the element that a kernel has */
        void *opened;
        (void)sim_resolve(device, declared[i].address, declared[i].nbytes, &opened);
    }
    if (setjmp(escape) == 0) {
        kernel->run(item->held);
    }
    return fault;
}

static CUresult
check_geometry(const sim_module *module, const unsigned grid[3], const unsigned block[3], unsigned shared_bytes)
{
    uint64_t threads = (uint64_t)block[0] * block[1] * (block[2] <= 64 ? block[2] : 0);
    if (grid[0] == 0 || grid[0] > INT32_MAX || grid[1] == 0 || grid[1] > 65535 || grid[2] == 0 || grid[2] > 65535) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (threads == 0 || block[0] > 1024 || block[1] > 1024 || threads > 1024 ||
        shared_bytes > (unsigned)module->dynamic_shared_bytes) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    /* what DT_KERNEL promises the compiler */
    return threads > DT_MAX_THREADS && module->program == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

static CUresult
launch_ours(unsigned index, sim_stream *stream, void **parameters, void **extra)
{
    if (index >= (size_t)(__stop_dt_kernels - __start_dt_kernels)) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (parameters == NULL || parameters[0] == NULL || extra != NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const dt_host_kernel *kernel = &__start_dt_kernels[index];
    sim_item item = {.run = run_launch, .what = kernel, .held = dt_malloc(kernel->args_size)};
    if (item.held == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    memcpy(item.held, parameters[0], kernel->args_size);
    sim_touch touches[SIM_MOST_TOUCHES];
    int n = sim_races_on() ? sim_touches_of(kernel, item.held, touches) : 0;
    CUresult status = sim_enqueue_work(stream, &item, kernel->name, touches, n);
    if (status != CUDA_SUCCESS) {
        dt_free(item.held);
        return status;
    }
    return sim_sent(stream);
}

CUresult
sim_cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                   unsigned block_y, unsigned block_z, unsigned shared_bytes, CUstream handle, void **parameters,
                   void **extra)
{
    const unsigned grid[3] = {grid_x, grid_y, grid_z}, block[3] = {block_x, block_y, block_z};
    sim_device *device;
    sim_stream *stream;
    unsigned index;
    CUresult status = sim_current(&device);
    if (status != CUDA_SUCCESS) {
        return status;
    }
    const sim_module *module = sim_handle_get(SIM_MODULE, sim_handle_untag(function, &index));
    if (module == NULL || module->device != device) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    status = sim_stream_find(device, handle, &stream);
    if (status == CUDA_SUCCESS) {
        status = check_geometry(module, grid, block, shared_bytes);
    }
    if (status != CUDA_SUCCESS) {
        return status;
    }
    return module->program != NULL ? sim_program_launch(module->program, stream, grid, block, shared_bytes, extra)
                                   : launch_ours(index, stream, parameters, extra);
}

/* ---------------------------------------------------------------- attributes */

static CUresult
find_module(CUfunction function, sim_module **module)
{
    sim_device *device;
    unsigned index;
    CUresult status = sim_current(&device);
    if (status == CUDA_SUCCESS) {
        *module = sim_handle_get(SIM_MODULE, sim_handle_untag(function, &index));
        status = *module != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
    }
    return status;
}

/* There are no registers here: their number is 0. */
CUresult
sim_cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction function)
{
    sim_module *module;
    int major = 0, minor = 0;
    CUresult status = find_module(function, &module);
    if (status != CUDA_SUCCESS || value == NULL) {
        return status != CUDA_SUCCESS ? status : CUDA_ERROR_INVALID_VALUE;
    }
    switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        *value = module->program != NULL ? 1024 : DT_MAX_THREADS;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
        *value = static_shared_bytes(module);
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
        *value = 0;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
        (void)sim_cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, module->device->ordinal);
        (void)sim_cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, module->device->ordinal);
        *value = 10 * major + minor;
        return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        *value = module->dynamic_shared_bytes;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult
sim_cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value)
{
    sim_module *module;
    CUresult status = find_module(function, &module);
    if (status != CUDA_SUCCESS) {
        return status;
    }
    if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES || value < 0 ||
        value > SIM_SHARED_OPTIN_BYTES - static_shared_bytes(module)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    module->dynamic_shared_bytes = value;
    return CUDA_SUCCESS;
}
