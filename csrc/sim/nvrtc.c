/* nvrtc.c: a compiler that compiles nothing. The kernels are in the process already; what comes out says which of them
 * was asked for, for which architecture, and from which program. */
#include "sim.h"

#include <stdlib.h>
#include <string.h>

enum { ERROR_INVALID_INPUT = 3, ERROR_INVALID_PROGRAM = 4 };

typedef struct {
    bool has_kernel, has_headers, compiled, failed;
    dt_sha256 hash; /* of source and headers */
    sim_cubin cubin;
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

nvrtcResult
sim_nvrtcCreateProgram(nvrtcProgram *handle, const char *source, const char *name, int nheaders,
                       const char *const *headers, const char *const *header_names)
{
    (void)name;
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
    nvrtcProgram made = read_alone(source, p->cubin.kernel) ? sim_handle_new(SIM_PROGRAM, p) : NULL;
    if (made == NULL) {
        dt_free(p);
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
    dt_free(p);
    *handle = NULL;
    return NVRTC_SUCCESS;
}

/* The architecture that an option asks for, 0 for any other option, -1 for one that does not exist. */
static int
read_architecture(const char *option)
{
    static const char mark[] = "--gpu-architecture=";
    if (strncmp(option, mark, strlen(mark)) != 0) {
        return 0;
    }
    const char *value = option + strlen(mark);
    int arch = strncmp(value, "sm_", 3) == 0 ? atoi(value + 3) : 0;
    for (size_t i = 0; i < sizeof(architectures) / sizeof(architectures[0]); i++) {
        if (architectures[i] == arch) {
            return arch;
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
                                        "--split-compile="};
    for (size_t i = 0; text != NULL && i < sizeof(known) / sizeof(known[0]); i++) {
        if (strncmp(text, known[i], strlen(known[i])) == 0) {
            return true;
        }
    }
    return false;
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
    if (!p->has_kernel || !p->has_headers) {
        p->failed = true;
        return NVRTC_ERROR_COMPILATION;
    }
    dt_sha256_end(&hash, p->cubin.program);
    sim_cubin_seal(&p->cubin);
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
    *size = p->failed ? sizeof(complaint) : 1;
    return NVRTC_SUCCESS;
}

nvrtcResult
sim_nvrtcGetProgramLog(nvrtcProgram handle, char *log)
{
    const program *p = sim_handle_get(SIM_PROGRAM, handle);
    if (p == NULL || log == NULL) {
        return log ? ERROR_INVALID_PROGRAM : ERROR_INVALID_INPUT;
    }
    memcpy(log, p->failed ? complaint : "", p->failed ? sizeof(complaint) : 1);
    return NVRTC_SUCCESS;
}

nvrtcResult
sim_nvrtcGetCUBINSize(nvrtcProgram handle, size_t *size)
{
    const program *p = sim_handle_get(SIM_PROGRAM, handle);
    if (p == NULL || size == NULL) {
        return size ? ERROR_INVALID_PROGRAM : ERROR_INVALID_INPUT;
    }
    *size = p->compiled ? sizeof(p->cubin) : 0;
    return NVRTC_SUCCESS;
}

nvrtcResult
sim_nvrtcGetCUBIN(nvrtcProgram handle, char *cubin)
{
    const program *p = sim_handle_get(SIM_PROGRAM, handle);
    if (p == NULL || cubin == NULL) {
        return cubin ? ERROR_INVALID_PROGRAM : ERROR_INVALID_INPUT;
    }
    memcpy(cubin, &p->cubin, p->compiled ? sizeof(p->cubin) : 0);
    return NVRTC_SUCCESS;
}
