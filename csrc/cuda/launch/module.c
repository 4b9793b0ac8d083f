/* module.c: kernels, looked up by name in the embedded images, or compiled one by one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compile.h"
#include "launch.h"
#include "launch_log.h"
#include "disk.h"
#include "image.h"

static const char *const other_names[CUDA_NKERNELS] = {
#define DT_TERNARY(name, ...) #name,
#include "../../core/elementwise.def"
#undef DT_TERNARY
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

void
cuda_function_name(unsigned id, char *name, size_t size)
{
    int op = (int)(id / DT_NDTYPES), family = 0;
    while (family < CUDA_FAMILY_OTHER && op >= family_sizes[family]) {
        op -= family_sizes[family++];
    }
    function_name((cuda_family)family, op, (dt_dtype)(id % DT_NDTYPES), name, size);
}

/* ---------------------------------------------------------------- loading */

static int
compare_names(const void *name, const void *kernel)
{
    return strcmp(name, ((const cuda_image_kernel *)kernel)->name);
}

/* The image that holds a kernel, or -1. */
static int
find_image(const char *name)
{
    const cuda_image_kernel *found =
        bsearch(name, cuda_image_kernels, (size_t)cuda_nimage_kernels, sizeof(*found), compare_names);
    return found ? found->image : -1;
}

/* *module stays NULL when the device or its driver cannot use the image; then it cannot use any. */
static dt_status
load_image(cuda_device *d, int image, CUmodule *module, dt_error *err)
{
    *module = d->modules[image];
    if (*module != NULL || d->refusal != 0) {
        return DT_OK;
    }
    int status;
    DT_TRY(cuda_load_code(d, cuda_images[image].data, module, &status, err));
    if (cuda_is_refusal(status)) {
        d->refusal = status;
        *module = NULL;
        return DT_OK;
    }
    DT_TRY(cuda_check(d, DT_API_cuModuleLoadData, status, err));
    d->modules[image] = *module;
    return DT_OK;
}

/* Says first why the kernel had to be compiled, if it is the compiler that failed. */
static dt_status
explain(const cuda_device *d, dt_status rc, dt_error *err)
{
    bool by_compiler = err->symbol != NULL && strncmp(err->symbol, "nvrtc", 5) == 0;
    if (rc == DT_EOUTOFMEMORY || (rc != DT_ENODEVICE && !by_compiler && !cuda_is_refusal(err->library_status))) {
        return rc;
    }
    char reason[sizeof(err->message)], *at = err->message;
    const char *refusal = "unknown error";
    memcpy(reason, err->message, sizeof(reason));
    int room = (int)sizeof(err->message), n;
    if (cuda_nimages == 0) {
        n = snprintf(at, (size_t)room, "This build of devtensor has no machine code for GPUs");
    } else {
        (void)cu.cuGetErrorName(d->refusal, &refusal);
        n = snprintf(at, (size_t)room, "The machine code in this build of devtensor (%s) does not run on cuda:%d",
                     cuda_image_archs, d->index);
        n += snprintf(at + n, (size_t)(room - n), " (%s, compute capability %d.%d: %s)", d->name, d->major, d->minor,
                      refusal);
    }
    snprintf(at + n, (size_t)(room - n), ", and compiling it at run time failed: %.*s", room - n - 64, reason);
    return rc;
}

static dt_status
make_tables(cuda_device *d, dt_error *err)
{
    if (d->modules == NULL) {
        size_t size = (size_t)cuda_nimages + 1;
        d->modules = dt_calloc(size, sizeof(*d->modules));
        if (d->modules == NULL) {
            return dt_fail_nomem(err, size * sizeof(*d->modules));
        }
    }
    if (d->functions == NULL) {
        d->functions = dt_calloc(NFUNCTIONS, sizeof(*d->functions));
        if (d->functions == NULL) {
            return dt_fail_nomem(err, NFUNCTIONS * sizeof(*d->functions));
        }
        atomic_store_explicit(&d->module_ready, true, memory_order_release);
    }
    return DT_OK;
}

static dt_status
get_function(cuda_device *d, CUmodule module, const char *name, CUfunction *function, dt_error *err)
{
    dt_status rc = cuda_get_function(d, module, name, function, err);
    if (rc != DT_OK) {
        size_t used = strlen(err->message);
        snprintf(err->message + used, sizeof(err->message) - used, " (kernel %s)", name);
    }
    return rc;
}

static dt_status
find_function(cuda_device *d, const char *name, CUfunction *function, dt_error *err)
{
    CUmodule module = NULL;
    int image = find_image(name);
    DT_TRY(make_tables(d, err));
    if (image >= 0) {
        DT_TRY(load_image(d, image, &module, err));
    }
    if (module != NULL) {
        return get_function(d, module, name, function, err);
    }
    dt_status rc = cuda_compile(d, name, &module, err);
    if (rc != DT_OK) {
        return explain(d, rc, err);
    }
    rc = get_function(d, module, name, function, err);
    if (rc != DT_OK) {
        (void)cu.cuModuleUnload(module);
    }
    return rc;
}

dt_status
cuda_function(cuda_device *device, cuda_family family, int op, dt_dtype dtype, CUfunction *function, dt_error *err)
{
    size_t id = function_id(family, op, dtype);
    *function = NULL;
    cuda_note_sent(device, (unsigned)id + 1);
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

/* ---------------------------------------------------------------- the report */

void
cuda_kernels_info(cuda_kernels *info)
{
    *info = (cuda_kernels){.archs = cuda_image_archs, .nimages = cuda_nimages, .nkernels = cuda_nimage_kernels};
    for (int i = 0; i < cuda_nimages; i++) {
        info->nbytes += cuda_images[i].nbytes;
    }
    cuda_compile_counts(&info->compiled, &info->read);
    info->not_kept = cuda_disk_where(info->kept_in, sizeof(info->kept_in));
}
