/* compile.c: NVRTC, and what it made before. Of our own source one kernel at a time, so that the first use of an op
 * waits for what it needs and no more. */
#include "compile.h"
#include "../memory/memory.h"

#include <stdio.h>
#include <string.h>

#include "disk.h"
#include "image.h"

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

/* ---------------------------------------------------------------- any program */

static void
add_text(dt_sha256 *hash, const char *text)
{
    dt_sha256_add(hash, text, strlen(text) + 1);
}

static void
write_arch(const cuda_device *d, char arch[40])
{
    snprintf(arch, 40, "--gpu-architecture=sm_%d%d", d->major, d->minor);
}

dt_status
cuda_program_key(cuda_device *d, const cuda_program *program, uint8_t key[DT_SHA256_BYTES], dt_error *err)
{
    int major = 0, minor = 0;
    char arch[40], version[40];
    dt_sha256 hash;
    DT_TRY(cuda_api_need(DT_LIBRARY_NVRTC, err));
    CUDA_TRY(d, nvrtcVersion, (&major, &minor));
    snprintf(version, sizeof(version), "NVRTC %d.%d", major, minor);
    write_arch(d, arch);
    dt_sha256_init(&hash);
    add_text(&hash, "program 1");
    add_text(&hash, program->identity);
    add_text(&hash, program->kernel != NULL ? program->kernel : "");
    add_text(&hash, d->name);
    add_text(&hash, version);
    add_text(&hash, arch);
    for (int i = 0; i < program->noptions; i++) {
        add_text(&hash, program->options[i]);
    }
    dt_sha256_end(&hash, key);
    return DT_OK;
}

/* What the compiler says, by dt_free; NULL: nothing, or no memory for it. */
static char *
read_log(nvrtcProgram program)
{
    size_t size = 0;
    if (cu.nvrtcGetProgramLogSize(program, &size) != 0 || size <= 1) {
        return NULL;
    }
    char *log = dt_calloc(1, size + 1);
    if (log != NULL && cu.nvrtcGetProgramLog(program, log) != 0) {
        dt_free(log);
        log = NULL;
    }
    return log;
}

static dt_status
fail_compile(cuda_device *d, nvrtcProgram program, int status, char **log, dt_error *err)
{
    char *said = read_log(program);
    if (log != NULL && said != NULL && status != NVRTC_ERROR_OUT_OF_MEMORY) {
        *log = said;
        return DT_OK;
    }
    dt_status rc = cuda_fail(d, DT_API_nvrtcCompileProgram, status, err);
    size_t used = strlen(err->message);
    if (said != NULL) {
        snprintf(err->message + used, sizeof(err->message) - used, "\n%s", said);
        dt_free(said);
    }
    return rc;
}

static dt_status
run_compiler(cuda_device *d, const cuda_program *program, product *p, char **log, dt_error *err)
{
    char arch[40];
    const char *options[CUDA_MAX_OPTIONS + 1];
    write_arch(d, arch);
    options[0] = arch;
    memcpy(options + 1, program->options, (size_t)program->noptions * sizeof(*options));
    if (program->kernel != NULL) {
        CUDA_TRY(d, nvrtcAddNameExpression, (p->program, program->kernel));
    }
    int status = cu.nvrtcCompileProgram(p->program, program->noptions + 1, options);
    if (status != 0) {
        return fail_compile(d, p->program, status, log, err);
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
make_cubin(cuda_device *d, const cuda_program *program, product *p, char **log, dt_error *err)
{
    CUDA_TRY(d, nvrtcCreateProgram,
             (&p->program, program->source, program->file, program->nheaders, program->headers, program->header_names));
    dt_status rc = run_compiler(d, program, p, log, err);
    (void)cu.nvrtcDestroyProgram(&p->program);
    return rc;
}

dt_status
cuda_load_code(cuda_device *d, const void *code, CUmodule *module, int *status, dt_error *err)
{
    CUDA_TRY_WITH_ROOM(d, *status, *status == CUDA_ERROR_OUT_OF_MEMORY, cu.cuModuleLoadData(module, code));
    return DT_OK;
}

dt_status
cuda_get_function(cuda_device *d, CUmodule module, const char *name, CUfunction *function, dt_error *err)
{
    int status; /* drivers load code here, where they are lazy */
    CUDA_TRY_WITH_ROOM(d, status, status == CUDA_ERROR_OUT_OF_MEMORY, cu.cuModuleGetFunction(function, module, name));
    return cuda_check(d, DT_API_cuModuleGetFunction, status, err);
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
    int status = 0;
    dt_status rc = cuda_load_code(d, cubin, module, &status, err);
    dt_free(cubin);
    DT_TRY(rc);
    if (status == 0) {
        atomic_fetch_add(&nread, 1);
    }
    return cuda_is_refusal(status) ? DT_OK : cuda_check(d, DT_API_cuModuleLoadData, status, err);
}

dt_status
cuda_program_build(cuda_device *d, const cuda_program *program, const uint8_t key[DT_SHA256_BYTES], CUmodule *module,
                   char **log, dt_error *err)
{
    product p = {0};
    int status = 0;
    *module = NULL;
    if (program->kept) {
        DT_TRY(load_kept(d, key, module, err));
    }
    if (*module != NULL) {
        return DT_OK;
    }
    dt_status rc = make_cubin(d, program, &p, log, err);
    if (rc == DT_OK && p.cubin != NULL) {
        rc = cuda_load_code(d, p.cubin, module, &status, err);
    }
    if (rc == DT_OK) {
        rc = cuda_check(d, DT_API_cuModuleLoadData, status, err);
    }
    if (rc == DT_OK && *module != NULL && program->kept) {
        cuda_disk_write(key, p.cubin, p.nbytes);
    }
    dt_free(p.cubin);
    return rc;
}

/* ---------------------------------------------------------------- our own kernels */

/* What picks one kernel out of the source: see kernels/kernel.h, and core/each_dtype.inc for the dtypes in its name. */
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

dt_status
cuda_compile(cuda_device *d, const char *name, CUmodule *module, dt_error *err)
{
    static const char *const options[] = {"--std=c++17", "--fmad=false"}; /* as the build compiles the images */
    uint8_t key[DT_SHA256_BYTES];
    char identity[CHOICE_BYTES];
    size_t size = CHOICE_BYTES + strlen(cuda_kernel_source) + 1;
    char *source = dt_malloc(size);
    *module = NULL;
    if (source == NULL) {
        return dt_fail_nomem(err, size);
    }
    int n = write_choice(name, source, CHOICE_BYTES);
    memcpy(source + n, cuda_kernel_source, strlen(cuda_kernel_source) + 1);
    snprintf(identity, sizeof(identity), "%s %s", cuda_kernel_hash, name);
    const cuda_program program = {.source = source,
                                  .file = "kernels.cu",
                                  .identity = identity,
                                  .nheaders = cuda_kernel_nheaders,
                                  .headers = cuda_kernel_headers,
                                  .header_names = cuda_kernel_header_names,
                                  .noptions = 2,
                                  .options = options,
                                  .kept = true};
    dt_status rc = cuda_program_key(d, &program, key, err);
    if (rc == DT_OK) {
        rc = cuda_program_build(d, &program, key, module, NULL, err);
    }
    dt_free(source);
    return rc;
}
