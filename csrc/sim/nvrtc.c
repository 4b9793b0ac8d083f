/* nvrtc.c: a compiler that compiles nothing of ours. Our kernels are in the process already; what comes out says which
 * of them was asked for, for which architecture, and from which program. For a user's it carries an executable: host.h.
 */
#include "host.h"

#include <stdlib.h>
#include <string.h>

enum { ERROR_INVALID_INPUT = 3, ERROR_INVALID_PROGRAM = 4 };

typedef struct {
    bool has_kernel, has_headers, compiled, failed;
    dt_sha256 hash; /* of source and headers */
    sim_cubin cubin;
    /* of a user's, which nvrtcAddNameExpression tells from ours: copies, and what was made of them */
    bool users;
    char *source, *name, **headers, **header_names;
    int nheaders;
    void *executable;
    sim_text log;
} program;

static const int architectures[] = {75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121};
static const char complaint[] = "error: there is no kernel in this source\n";

nvrtcResult
sim_nvrtcVersion(int *major, int *minor)
{
    if (major == NULL || minor == NULL) {
        return ERROR_INVALID_INPUT;
    }
    *major = 13;
    *minor = 0;
    return NVRTC_SUCCESS;
}

const char *
sim_nvrtcGetErrorString(nvrtcResult result)
{
    switch (result) {
    case NVRTC_SUCCESS:
        return "NVRTC_SUCCESS";
    case NVRTC_ERROR_OUT_OF_MEMORY:
        return "NVRTC_ERROR_OUT_OF_MEMORY";
    case ERROR_INVALID_INPUT:
        return "NVRTC_ERROR_INVALID_INPUT";
    case ERROR_INVALID_PROGRAM:
        return "NVRTC_ERROR_INVALID_PROGRAM";
    case NVRTC_ERROR_COMPILATION:
        return "NVRTC_ERROR_COMPILATION";
    case NVRTC_ERROR_INVALID_OPTION:
        return "NVRTC_ERROR_INVALID_OPTION";
    case NVRTC_ERROR_BUILTIN_OPERATION_FAILURE:
        return "NVRTC_ERROR_BUILTIN_OPERATION_FAILURE";
    case NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION:
        return "NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION";
    default:
        return "NVRTC_ERROR unknown";
    }
}

/* The kernel after "#define DT_ALONE_", where there is one: kernels/kernel.h. */
static bool
read_alone(const char *source, char kernel[SIM_KERNEL_NAME])
{
    static const char mark[] = "#define DT_ALONE_";
    const char *name = strstr(source, mark);
    size_t length = name ? strcspn(name + strlen(mark), " \n") : 0;
    if (length >= SIM_KERNEL_NAME) {
        return false;
    }
    if (length > 0) {
        memcpy(kernel, name + strlen(mark), length);
    }
    return true;
}

/* Whether every #include "file" of text is among the headers. */
static bool
finds_headers(const char *text, int nheaders, const char *const *header_names)
{
    static const char mark[] = "\n#include \"";
    for (const char *at = strstr(text, mark); at != NULL; at = strstr(at, mark)) {
        at += strlen(mark);
        size_t length = strcspn(at, "\"");
        bool found = false;
        for (int i = 0; i < nheaders && !found; i++) {
            found = strncmp(header_names[i], at, length) == 0 && header_names[i][length] == '\0';
        }
        if (!found) {
            return false;
        }
    }
    return true;
}

static void
read_text(program *p, const char *text, int nheaders, const char *const *header_names)
{
    dt_sha256_add(&p->hash, text, strlen(text) + 1);
    p->has_kernel = p->has_kernel || strstr(text, "DT_KERNEL") != NULL || strstr(text, "__global__") != NULL;
    p->has_headers = p->has_headers && finds_headers(text, nheaders, header_names);
}

static void
free_program(program *p)
{
    for (int i = 0; i < p->nheaders; i++) {
        dt_free(p->headers[i]);
        dt_free(p->header_names[i]);
    }
    dt_free(p->headers);
    dt_free(p->header_names);
    dt_free(p->source);
    dt_free(p->name);
    dt_free(p->executable);
    dt_free(p->log.data);
    dt_free(p);
}

static char *
copy_text(const char *text)
{
    char *copy = dt_malloc(strlen(text) + 1);
    return copy == NULL ? NULL : memcpy(copy, text, strlen(text) + 1);
}

static bool
keep_texts(program *p, const char *source, const char *name, int nheaders, const char *const *headers,
           const char *const *header_names)
{
    p->source = copy_text(source);
    p->name = copy_text(name != NULL ? name : "default_program");
    p->headers = dt_calloc((size_t)nheaders + 1, sizeof(*p->headers));
    p->header_names = dt_calloc((size_t)nheaders + 1, sizeof(*p->header_names));
    if (p->source == NULL || p->name == NULL || p->headers == NULL || p->header_names == NULL) {
        return false;
    }
    for (; p->nheaders < nheaders; p->nheaders++) {
        char *text = copy_text(headers[p->nheaders]), *own = copy_text(header_names[p->nheaders]);
        if (text == NULL || own == NULL) {
            dt_free(text);
            dt_free(own);
            return false;
        }
        p->headers[p->nheaders] = text;
        p->header_names[p->nheaders] = own;
    }
    return true;
}

nvrtcResult
sim_nvrtcCreateProgram(nvrtcProgram *handle, const char *source, const char *name, int nheaders,
                       const char *const *headers, const char *const *header_names)
{
    if (handle == NULL) {
        return ERROR_INVALID_PROGRAM;
    }
    if (source == NULL || nheaders < 0 || (nheaders > 0 && (headers == NULL || header_names == NULL))) {
        return ERROR_INVALID_INPUT;
    }
    program *p = dt_calloc(1, sizeof(*p));
    if (p == NULL) {
        return NVRTC_ERROR_OUT_OF_MEMORY;
    }
    p->has_headers = true;
    dt_sha256_init(&p->hash);
    read_text(p, source, nheaders, header_names);
    for (int i = 0; i < nheaders; i++) {
        read_text(p, headers[i], nheaders, header_names);
    }
    bool ours = strstr(source, "#define DT_ALONE_") != NULL;
    bool kept =
        ours ? read_alone(source, p->cubin.kernel) : keep_texts(p, source, name, nheaders, headers, header_names);
    nvrtcProgram made = kept ? sim_handle_new(SIM_PROGRAM, p) : NULL;
    if (made == NULL) {
        free_program(p);
        return NVRTC_ERROR_OUT_OF_MEMORY;
    }
    *handle = made;
    return NVRTC_SUCCESS;
}

nvrtcResult
sim_nvrtcDestroyProgram(nvrtcProgram *handle)
{
    program *p = handle ? sim_handle_delete(SIM_PROGRAM, *handle) : NULL;
    if (p == NULL) {
        return ERROR_INVALID_PROGRAM;
    }
    free_program(p);
    *handle = NULL;
    return NVRTC_SUCCESS;
}

/* The kernel that is wanted of a user's program. */
nvrtcResult
sim_nvrtcAddNameExpression(nvrtcProgram handle, const char *expression)
{
    program *p = sim_handle_get(SIM_PROGRAM, handle);
    if (p == NULL) {
        return ERROR_INVALID_PROGRAM;
    }
    if (expression == NULL || p->source == NULL || strlen(expression) >= SIM_KERNEL_NAME) {
        return ERROR_INVALID_INPUT;
    }
    if (p->compiled) {
        return NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION;
    }
    p->users = true;
    memcpy(p->cubin.kernel, expression, strlen(expression) + 1);
    return NVRTC_SUCCESS;
}

/* The architecture that an option asks for, 0 for any other option, -1 for one that does not exist. From 9.0 on each
 * has a second one of its own features, as sm_90a. */
static int
read_architecture(const char *option)
{
    static const char mark[] = "--gpu-architecture=";
    if (strncmp(option, mark, strlen(mark)) != 0) {
        return 0;
    }
    const char *value = option + strlen(mark);
    char *end = NULL;
    long arch = strncmp(value, "sm_", 3) == 0 ? strtol(value + 3, &end, 10) : 0;
    for (size_t i = 0; i < sizeof(architectures) / sizeof(architectures[0]); i++) {
        if (architectures[i] == arch && (*end == '\0' || (arch >= 90 && strcmp(end, "a") == 0))) {
            return architectures[i];
        }
    }
    return -1;
}

static bool
is_option(const char *text)
{
    static const char *const known[] = {"--gpu-architecture=",
                                        "-arch=",
                                        "--std=",
                                        "-std=",
                                        "--fmad=",
                                        "-fmad=",
                                        "-D",
                                        "--define-macro=",
                                        "-I",
                                        "--include-path=",
                                        "--device-as-default-execution-space",
                                        "-default-device",
                                        "--extra-device-vectorization",
                                        "--restrict",
                                        "--maxrregcount=",
                                        "--generate-line-info",
                                        "-lineinfo",
                                        "--device-debug",
                                        "-G",
                                        "--dopt=",
                                        "--disable-warnings",
                                        "-w",
                                        "--minimal",
                                        "--ftz=",
                                        "--prec-div=",
                                        "--prec-sqrt=",
                                        "--no-cache",
                                        "--split-compile=",
                                        "--pre-include=",
                                        "-U",
                                        "--undefine-macro=",
                                        "--use_fast_math",
                                        "-use_fast_math",
                                        "--diag-suppress=",
                                        "-diag-suppress=",
                                        "--device-int128",
                                        "-device-int128",
                                        "-dopt=",
                                        "-extra-device-vectorization",
                                        "-ftz=",
                                        "-maxrregcount=",
                                        "-prec-div=",
                                        "-prec-sqrt=",
                                        "-restrict"};
    for (size_t i = 0; text != NULL && i < sizeof(known) / sizeof(known[0]); i++) {
        if (strncmp(text, known[i], strlen(known[i])) == 0) {
            return true;
        }
    }
    return false;
}

/* By the real NVRTC, where there is one, to hear what it says; then by the host's compiler. */
static nvrtcResult
compile_users(program *p, int noptions, const char *const *options)
{
    size_t nbytes = 0;
    dt_free(p->executable);
    dt_free(p->log.data);
    p->executable = NULL;
    p->log = (sim_text){0};
    nvrtcResult result =
        sim_real_compile(p->source, p->name, p->nheaders, (const char *const *)p->headers,
                         (const char *const *)p->header_names, p->cubin.kernel, noptions, options, &p->log);
    if (result == NVRTC_SUCCESS) {
        result = sim_host_compile(p->source, p->name, p->cubin.kernel, p->cubin.arch, noptions, options, &p->executable,
                                  &nbytes, &p->log);
    }
    p->cubin.nbytes = nbytes;
    return p->log.failed ? NVRTC_ERROR_OUT_OF_MEMORY : result;
}

/* What a failed compilation says. */
static const char *
log_of(const program *p)
{
    return p->failed ? complaint : p->log.data != NULL ? p->log.data : "";
}

nvrtcResult
sim_nvrtcCompileProgram(nvrtcProgram handle, int noptions, const char *const *options)
{
    program *p = sim_handle_get(SIM_PROGRAM, handle);
    if (p == NULL) {
        return ERROR_INVALID_PROGRAM;
    }
    if (noptions < 0 || (noptions > 0 && options == NULL)) {
        return ERROR_INVALID_INPUT;
    }
    dt_sha256 hash = p->hash;
    p->cubin.arch = architectures[0];
    p->compiled = p->failed = false;
    for (int i = 0; i < noptions; i++) {
        int arch = options[i] != NULL ? read_architecture(options[i]) : -1;
        if (arch < 0 || !is_option(options[i])) {
            return NVRTC_ERROR_INVALID_OPTION;
        }
        p->cubin.arch = arch > 0 ? arch : p->cubin.arch;
        dt_sha256_add(&hash, options[i], strlen(options[i]) + 1);
    }
    if (p->users) {
        nvrtcResult result = compile_users(p, noptions, options);
        if (result != NVRTC_SUCCESS) {
            return result;
        }
    } else if (!p->has_kernel || !p->has_headers) {
        p->failed = true;
        return NVRTC_ERROR_COMPILATION;
    }
    dt_sha256_end(&hash, p->cubin.program);
    sim_cubin_seal(&p->cubin, p->executable);
    p->compiled = true;
    return NVRTC_SUCCESS;
}

nvrtcResult
sim_nvrtcGetProgramLogSize(nvrtcProgram handle, size_t *size)
{
    const program *p = sim_handle_get(SIM_PROGRAM, handle);
    if (p == NULL || size == NULL) {
        return size ? ERROR_INVALID_PROGRAM : ERROR_INVALID_INPUT;
    }
    *size = strlen(log_of(p)) + 1;
    return NVRTC_SUCCESS;
}

nvrtcResult
sim_nvrtcGetProgramLog(nvrtcProgram handle, char *log)
{
    const program *p = sim_handle_get(SIM_PROGRAM, handle);
    if (p == NULL || log == NULL) {
        return log ? ERROR_INVALID_PROGRAM : ERROR_INVALID_INPUT;
    }
    memcpy(log, log_of(p), strlen(log_of(p)) + 1);
    return NVRTC_SUCCESS;
}

nvrtcResult
sim_nvrtcGetCUBINSize(nvrtcProgram handle, size_t *size)
{
    const program *p = sim_handle_get(SIM_PROGRAM, handle);
    if (p == NULL || size == NULL) {
        return size ? ERROR_INVALID_PROGRAM : ERROR_INVALID_INPUT;
    }
    *size = p->compiled ? sizeof(p->cubin) + (size_t)p->cubin.nbytes : 0;
    return NVRTC_SUCCESS;
}

nvrtcResult
sim_nvrtcGetCUBIN(nvrtcProgram handle, char *cubin)
{
    const program *p = sim_handle_get(SIM_PROGRAM, handle);
    if (p == NULL || cubin == NULL) {
        return cubin ? ERROR_INVALID_PROGRAM : ERROR_INVALID_INPUT;
    }
    if (p->compiled) {
        memcpy(cubin, &p->cubin, sizeof(p->cubin));
    }
    if (p->compiled && p->executable != NULL) {
        memcpy(cubin + sizeof(p->cubin), p->executable, (size_t)p->cubin.nbytes);
    }
    return NVRTC_SUCCESS;
}
