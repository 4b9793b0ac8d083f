/* module.c: the kernels, from the embedded image or compiled from the embedded source, and looked up by name. */
#include <stdio.h>
#include <string.h>

#include "cuda.h"

/* Written by the build: machine code (size 0 where there was no nvcc) and the source with its headers. */
extern const unsigned char dt_kernel_image[];
extern const size_t dt_kernel_image_size;
extern const char dt_kernel_source[];
extern const int dt_kernel_nheaders;
extern const char *const dt_kernel_headers[];
extern const char *const dt_kernel_header_names[];

static const char *const other_names[CUDA_NKERNELS] = {
#define CUDA_KERNEL(name) #name,
    CUDA_KERNELS(CUDA_KERNEL)
#undef CUDA_KERNEL
};

static const int family_sizes[] = {
    [CUDA_FAMILY_UNARY] = DT_NUNARY, [CUDA_FAMILY_BINARY] = DT_NBINARY,   [CUDA_FAMILY_REDUCE] = DT_NREDUCE,
    [CUDA_FAMILY_CAST] = DT_NDTYPES, [CUDA_FAMILY_OTHER] = CUDA_NKERNELS,
};
#define NFUNCTIONS ((size_t)(DT_NUNARY + DT_NBINARY + DT_NREDUCE + DT_NDTYPES + CUDA_NKERNELS) * DT_NDTYPES)

static size_t
function_id(cuda_family family, int op, dt_dtype dtype)
{
    int base = 0;
    for (int f = 0; f < (int)family; f++) {
        base += family_sizes[f];
    }
    return (size_t)(base + op) * DT_NDTYPES + (size_t)dtype;
}

/* k_exp_float32; k_cast_float64_float32, where op is the source. */
static void
function_name(cuda_family family, int op, dt_dtype dtype, char *name, size_t size)
{
    const char *first = family == CUDA_FAMILY_UNARY    ? dt_unary_names[op]
                        : family == CUDA_FAMILY_BINARY ? dt_binary_names[op]
                        : family == CUDA_FAMILY_REDUCE ? dt_reduce_names[op]
                        : family == CUDA_FAMILY_CAST   ? dt_dtypes[op].name
                                                       : other_names[op];
    snprintf(name, size, "k_%s%s_%s", family == CUDA_FAMILY_CAST ? "cast_" : "", first, dt_dtypes[dtype].name);
}

/* ---------------------------------------------------------------- loading */

/* What the compiler says, added to the error. */
static dt_status
fail_compile(cuda_device *d, nvrtcProgram program, int status, dt_error *err)
{
    dt_status rc = cuda_fail(d, DT_API_nvrtcCompileProgram, status, err);
    size_t size = 0, used = strlen(err->message);
    if (cu.nvrtcGetProgramLogSize(program, &size) != 0 || size <= 1) {
        return rc;
    }
    char *log = dt_calloc(1, size + 1);
    if (log != NULL && cu.nvrtcGetProgramLog(program, log) == 0) {
        snprintf(err->message + used, sizeof(err->message) - used, "\n%s", log);
    }
    dt_free(log);
    return rc;
}

static dt_status
load_compiled(cuda_device *d, nvrtcProgram program, CUmodule *module, dt_error *err)
{
    char arch[40];
    const char *const options[] = {arch, "--std=c++17", "--fmad=false"}; /* as the build compiles the image */
    snprintf(arch, sizeof(arch), "--gpu-architecture=sm_%d%d", d->major, d->minor);
    int status = cu.nvrtcCompileProgram(program, (int)(sizeof(options) / sizeof(options[0])), options);
    if (status != 0) {
        return fail_compile(d, program, status, err);
    }
    size_t size = 0;
    CUDA_TRY(d, nvrtcGetCUBINSize, (program, &size));
    char *cubin = dt_malloc(size);
    if (cubin == NULL) {
        return dt_fail_nomem(err, size);
    }
    dt_status rc = CUDA_CALL(d, nvrtcGetCUBIN, (program, cubin));
    if (rc == DT_OK) {
        rc = CUDA_CALL(d, cuModuleLoadData, (module, cubin));
    }
    dt_free(cubin);
    return rc;
}

static dt_status
compile_source(cuda_device *d, CUmodule *module, dt_error *err)
{
    nvrtcProgram program = NULL;
    DT_TRY(cuda_api_need(DT_LIBRARY_NVRTC, err));
    CUDA_TRY(d, nvrtcCreateProgram,
             (&program, dt_kernel_source, "kernels.cu", dt_kernel_nheaders, dt_kernel_headers, dt_kernel_header_names));
    dt_status rc = load_compiled(d, program, module, err);
    (void)cu.nvrtcDestroyProgram(&program);
    return rc;
}

static dt_status
load_module(cuda_device *d, CUmodule *module, dt_error *err)
{
    if (dt_kernel_image_size > 0) {
        int status = cu.cuModuleLoadData(module, dt_kernel_image);
        if (status != CUDA_ERROR_NO_BINARY_FOR_GPU) {
            return cuda_check(d, DT_API_cuModuleLoadData, status, err);
        }
    }
    return compile_source(d, module, err);
}

static dt_status
find_function(cuda_device *d, const char *name, CUfunction *function, dt_error *err)
{
    if (d->functions == NULL) {
        d->functions = dt_calloc(NFUNCTIONS, sizeof(*d->functions));
        if (d->functions == NULL) {
            return dt_fail_nomem(err, NFUNCTIONS * sizeof(*d->functions));
        }
    }
    if (d->module == NULL) {
        CUmodule module = NULL;
        DT_TRY(load_module(d, &module, err));
        d->module = module;
        atomic_store_explicit(&d->module_ready, true, memory_order_release);
    }
    dt_status rc = CUDA_CALL(d, cuModuleGetFunction, (function, d->module, name));
    if (rc != DT_OK) {
        size_t used = strlen(err->message);
        snprintf(err->message + used, sizeof(err->message) - used, " (kernel %s)", name);
    }
    return rc;
}

dt_status
cuda_function(cuda_device *device, cuda_family family, int op, dt_dtype dtype, CUfunction *function, dt_error *err)
{
    size_t id = function_id(family, op, dtype);
    *function = NULL;
    if (atomic_load_explicit(&device->module_ready, memory_order_acquire)) {
        *function = atomic_load_explicit(&device->functions[id], memory_order_acquire);
        if (*function != NULL) {
            return DT_OK;
        }
    }
    char name[64];
    function_name(family, op, dtype, name, sizeof(name));
    pthread_mutex_lock(&device->module_lock);
    dt_status rc = find_function(device, name, function, err);
    if (rc == DT_OK) {
        atomic_store_explicit(&device->functions[id], *function, memory_order_release);
    }
    pthread_mutex_unlock(&device->module_lock);
    return rc;
}
