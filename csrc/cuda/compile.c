/* compile.c: one kernel at a time, so that the first use of an op waits for what it needs and no more. */
#include "compile.h"

#include <stdio.h>
#include <string.h>

#include "disk.h"
#include "image.h"

#define NOPTIONS 3
#define CHOICE_BYTES 512

typedef struct {
    nvrtcProgram program;
    void *cubin; /* dt_free */
    size_t nbytes;
} product;

static atomic_int_fast64_t ncompiled, nread;

void
cuda_compile_counts(int64_t *compiled, int64_t *read)
{
    *compiled = atomic_load(&ncompiled);
    *read = atomic_load(&nread);
}

bool
cuda_is_refusal(int status)
{
    return status == CUDA_ERROR_NO_BINARY_FOR_GPU || status == CUDA_ERROR_INVALID_IMAGE ||
           status == CUDA_ERROR_INVALID_PTX || status == CUDA_ERROR_JIT_COMPILER_NOT_FOUND ||
           status == CUDA_ERROR_UNSUPPORTED_PTX_VERSION || status == CUDA_ERROR_JIT_COMPILATION_DISABLED ||
           status == CUDA_ERROR_INVALID_SOURCE;
}

/* As the build compiles the images. */
static void
list_options(const cuda_device *d, char arch[40], const char *options[NOPTIONS])
{
    snprintf(arch, 40, "--gpu-architecture=sm_%d%d", d->major, d->minor);
    options[0] = arch;
    options[1] = "--std=c++17";
    options[2] = "--fmad=false";
}

/* Everything that the machine code depends on. */
static dt_status
make_key(cuda_device *d, const char *name, uint8_t key[DT_SHA256_BYTES], dt_error *err)
{
    int major = 0, minor = 0;
    char arch[40], version[40];
    const char *options[NOPTIONS];
    dt_sha256 hash;
    CUDA_TRY(d, nvrtcVersion, (&major, &minor));
    snprintf(version, sizeof(version), "NVRTC %d.%d", major, minor);
    list_options(d, arch, options);
    const char *const parts[] = {"kernel 1", cuda_kernel_hash, name,       d->name,
                                 version,    options[0],       options[1], options[2]};
    dt_sha256_init(&hash);
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        dt_sha256_add(&hash, parts[i], strlen(parts[i]) + 1);
    }
    dt_sha256_end(&hash, key);
    return DT_OK;
}

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

/* What picks one kernel out of the source: see kernels/kernel.h, and core/each_dtype.h for the dtypes in its name. */
static int
write_choice(const char *name, char *text, size_t size)
{
    int n = snprintf(text, size, "#define DT_ALONE\n#define DT_ALONE_%s ,\n#define DT_ONLY\n", name);
    for (int i = 0; i < DT_NDTYPES; i++) {
        size_t length = strlen(dt_dtypes[i].name);
        for (const char *at = strchr(name, '_'); at != NULL; at = strchr(at + 1, '_')) {
            if (strncmp(at + 1, dt_dtypes[i].name, length) == 0 && (at[1 + length] == '_' || at[1 + length] == '\0')) {
                n += snprintf(text + n, size - (size_t)n, "#define DT_ONLY_%s\n", dt_dtypes[i].name);
                break;
            }
        }
    }
    return n;
}

static dt_status
create_program(cuda_device *d, const char *name, product *p, dt_error *err)
{
    size_t size = CHOICE_BYTES + strlen(cuda_kernel_source) + 1;
    char *source = dt_malloc(size);
    if (source == NULL) {
        return dt_fail_nomem(err, size);
    }
    int n = write_choice(name, source, CHOICE_BYTES);
    memcpy(source + n, cuda_kernel_source, strlen(cuda_kernel_source) + 1);
    dt_status rc = CUDA_CALL(
        d, nvrtcCreateProgram,
        (&p->program, source, "kernels.cu", cuda_kernel_nheaders, cuda_kernel_headers, cuda_kernel_header_names));
    dt_free(source);
    return rc;
}

static dt_status
run_compiler(cuda_device *d, product *p, dt_error *err)
{
    char arch[40];
    const char *options[NOPTIONS];
    list_options(d, arch, options);
    int status = cu.nvrtcCompileProgram(p->program, NOPTIONS, options);
    if (status != 0) {
        return fail_compile(d, p->program, status, err);
    }
    CUDA_TRY(d, nvrtcGetCUBINSize, (p->program, &p->nbytes));
    p->cubin = dt_malloc(p->nbytes);
    if (p->cubin == NULL) {
        return dt_fail_nomem(err, p->nbytes);
    }
    CUDA_TRY(d, nvrtcGetCUBIN, (p->program, p->cubin));
    atomic_fetch_add(&ncompiled, 1);
    return DT_OK;
}

static dt_status
make_cubin(cuda_device *d, const char *name, product *p, dt_error *err)
{
    DT_TRY(create_program(d, name, p, err));
    dt_status rc = run_compiler(d, p, err);
    (void)cu.nvrtcDestroyProgram(&p->program);
    return rc;
}

/* *module stays NULL when nothing that this driver takes is on the disk. */
static dt_status
load_kept(cuda_device *d, const uint8_t key[DT_SHA256_BYTES], CUmodule *module, dt_error *err)
{
    size_t nbytes;
    void *cubin = cuda_disk_read(key, &nbytes);
    if (cubin == NULL) {
        return DT_OK;
    }
    int status = cu.cuModuleLoadData(module, cubin);
    dt_free(cubin);
    if (status == 0) {
        atomic_fetch_add(&nread, 1);
    }
    return cuda_is_refusal(status) ? DT_OK : cuda_check(d, DT_API_cuModuleLoadData, status, err);
}

dt_status
cuda_compile(cuda_device *d, const char *name, CUmodule *module, dt_error *err)
{
    uint8_t key[DT_SHA256_BYTES];
    product p = {0};
    *module = NULL;
    DT_TRY(cuda_api_need(DT_LIBRARY_NVRTC, err));
    DT_TRY(make_key(d, name, key, err));
    DT_TRY(load_kept(d, key, module, err));
    if (*module != NULL) {
        return DT_OK;
    }
    dt_status rc = make_cubin(d, name, &p, err);
    if (rc == DT_OK) {
        rc = CUDA_CALL(d, cuModuleLoadData, (module, p.cubin));
    }
    if (rc == DT_OK) {
        cuda_disk_write(key, p.cubin, p.nbytes);
    }
    dt_free(p.cubin);
    return rc;
}
