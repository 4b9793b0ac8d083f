/* nvrtc.c: a compiler that compiles nothing. The kernels are in the process already; what comes out is a token that
 * cuModuleLoadData takes for an image. */
#include "sim.h"

#include <string.h>

enum { ERROR_OUT_OF_MEMORY = 1, ERROR_INVALID_INPUT = 3, ERROR_INVALID_PROGRAM = 4 };

typedef struct {
    bool compiles, compiled;
} program;

static const char token[] = "devtensor simulated GPU: cubin";

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
    case ERROR_OUT_OF_MEMORY:
        return "NVRTC_ERROR_OUT_OF_MEMORY";
    case ERROR_INVALID_INPUT:
        return "NVRTC_ERROR_INVALID_INPUT";
    case ERROR_INVALID_PROGRAM:
        return "NVRTC_ERROR_INVALID_PROGRAM";
    case NVRTC_ERROR_COMPILATION:
        return "NVRTC_ERROR_COMPILATION";
    default:
        return "NVRTC_ERROR unknown";
    }
}

nvrtcResult
sim_nvrtcCreateProgram(nvrtcProgram *handle, const char *source, const char *name, int nheaders,
                       const char *const *headers, const char *const *header_names)
{
    (void)name;
    if (handle == NULL || source == NULL || nheaders < 0 ||
        (nheaders > 0 && (headers == NULL || header_names == NULL))) {
        return ERROR_INVALID_INPUT;
    }
    program *p = dt_malloc(sizeof(*p));
    if (p == NULL) {
        return ERROR_OUT_OF_MEMORY;
    }
    p->compiled = false;
    p->compiles = strstr(source, "DT_KERNEL") != NULL || strstr(source, "__global__") != NULL;
    for (int i = 0; i < nheaders && !p->compiles; i++) {
        p->compiles = headers[i] != NULL && strstr(headers[i], "DT_KERNEL") != NULL;
    }
    nvrtcProgram made = sim_handle_new(SIM_PROGRAM, p);
    if (made == NULL) {
        dt_free(p);
        return ERROR_OUT_OF_MEMORY;
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
    p->compiled = p->compiles;
    return p->compiles ? NVRTC_SUCCESS : NVRTC_ERROR_COMPILATION;
}

nvrtcResult
sim_nvrtcGetProgramLogSize(nvrtcProgram handle, size_t *size)
{
    if (sim_handle_get(SIM_PROGRAM, handle) == NULL || size == NULL) {
        return size ? ERROR_INVALID_PROGRAM : ERROR_INVALID_INPUT;
    }
    *size = 1;
    return NVRTC_SUCCESS;
}

nvrtcResult
sim_nvrtcGetProgramLog(nvrtcProgram handle, char *log)
{
    if (sim_handle_get(SIM_PROGRAM, handle) == NULL || log == NULL) {
        return log ? ERROR_INVALID_PROGRAM : ERROR_INVALID_INPUT;
    }
    *log = '\0';
    return NVRTC_SUCCESS;
}

nvrtcResult
sim_nvrtcGetCUBINSize(nvrtcProgram handle, size_t *size)
{
    const program *p = sim_handle_get(SIM_PROGRAM, handle);
    if (p == NULL || size == NULL || !p->compiled) {
        return size ? ERROR_INVALID_PROGRAM : ERROR_INVALID_INPUT;
    }
    *size = sizeof(token);
    return NVRTC_SUCCESS;
}

nvrtcResult
sim_nvrtcGetCUBIN(nvrtcProgram handle, char *cubin)
{
    const program *p = sim_handle_get(SIM_PROGRAM, handle);
    if (p == NULL || cubin == NULL || !p->compiled) {
        return cubin ? ERROR_INVALID_PROGRAM : ERROR_INVALID_INPUT;
    }
    memcpy(cubin, token, sizeof(token));
    return NVRTC_SUCCESS;
}
