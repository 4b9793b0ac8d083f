/* compile.h: kernels from source. */
#ifndef DT_CUDA_COMPILE_H
#define DT_CUDA_COMPILE_H

#include "../../core/numbers/sha256.h"
#include "../api.h"
#include "../front.h"

/* A module with our kernel of that name alone, for the device: compiled by NVRTC, or read from the disk where that was
 * done before. */
dt_status cuda_compile(cuda_device *device, const char *name, CUmodule *module, dt_error *err) DT_MUST_CHECK;

/* What NVRTC is given beside the architecture, and what stands for its texts in the key of what is kept. */
typedef struct {
    const char *source, *file, *identity;
    int nheaders;
    const char *const *headers, *const *header_names;
    const char *kernel; /* whose name is asked for; NULL: not asked */
    int noptions;
    const char *const *options;
    bool kept; /* on the disk */
} cuda_program;

#define CUDA_MAX_OPTIONS 64

/* Everything that the machine code for device depends on. */
dt_status cuda_program_key(cuda_device *device, const cuda_program *program, uint8_t key[DT_SHA256_BYTES],
                           dt_error *err) DT_MUST_CHECK;
/* A module of it. Where the compiler refuses the source and log is given, the answer is DT_OK, *module is NULL and *log
 * what it said, by dt_free; without log that is an error as others are. */
dt_status cuda_program_build(cuda_device *device, const cuda_program *program, const uint8_t key[DT_SHA256_BYTES],
                             CUmodule *module, char **log, dt_error *err) DT_MUST_CHECK;

/* A kernel of module; the driver's error, with no word of ours. */
dt_status cuda_get_function(cuda_device *device, CUmodule module, const char *name, CUfunction *function,
                            dt_error *err) DT_MUST_CHECK;
/* Loads machine code; on a full device once more when all that nobody uses is given back. *status: the driver's. */
dt_status cuda_load_code(cuda_device *device, const void *code, CUmodule *module, int *status,
                         dt_error *err) DT_MUST_CHECK;

/* Whether the driver, asked to load machine code, says that it is not for this device or not for this driver. */
bool cuda_is_refusal(int status);

/* How many kernels NVRTC compiled in this process, and how many came from the disk. */
void cuda_compile_counts(int64_t *compiled, int64_t *read);

#endif
