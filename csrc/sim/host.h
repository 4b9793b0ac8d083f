/* host.h: a user's kernel on the host: its source made ready (source.c), its compiler (host.c), its process
 * (raw.c). */
#ifndef DT_SIM_HOST_H
#define DT_SIM_HOST_H

#include "host_image.h"
#include "launch.h"
#include "sim.h"

/* ---------------------------------------------------------------- source.c */

/* Text that grows. Without memory it stays as it is and failed. */
typedef struct {
    char *data; /* ends with a 0; dt_free */
    size_t used, room;
    bool failed;
} sim_text;

void sim_text_add(sim_text *text, const char *data, size_t nbytes);
void sim_text_print(sim_text *text, const char *format, ...) DT_PRINTF(2, 3);

/* Writes source to out as the host's compiler takes it, with the launch of kernel behind it; name is the file's. What
 * the simulated GPU cannot do is written to log, as a compiler would; then the answer is false. */
bool sim_source_prepare(const char *source, const char *name, const char *kernel, sim_text *out, sim_text *log);

/* ---------------------------------------------------------------- host.c */

/* An executable with that kernel, by dt_free. NVRTC's codes; log says what went wrong. */
nvrtcResult sim_host_compile(const char *source, const char *name, const char *kernel, int arch, int noptions,
                             const char *const *options, void **executable, size_t *nbytes, sim_text *log);

/* What the real NVRTC says, where it is installed; NVRTC_SUCCESS where it is not. */
nvrtcResult sim_real_compile(const char *source, const char *name, int nheaders, const char *const *headers,
                             const char *const *header_names, const char *kernel, int noptions,
                             const char *const *options, sim_text *log);

/* ---------------------------------------------------------------- raw.c */

typedef struct sim_program {
    char kernel[SIM_KERNEL_NAME];
    uint32_t param_bytes, shared_bytes;
    size_t refs;
    int executable; /* a file in memory */
    bool loads;     /* it needs shared libraries */
} sim_program;

/* Starts the executable once: false where what it does then, or what it declares, is refused; log says why. */
bool sim_program_check(const char *kernel, const void *executable, size_t nbytes, sim_text *log);

/* Starts the executable once and asks it what its kernel is. CUDA_ERROR_INVALID_IMAGE: it does not run here. */
CUresult sim_program_new(const char *kernel, const void *executable, size_t nbytes, sim_program **program);
void sim_program_release(sim_program *program);
/* extra as cuda/launch/raw.c passes it. */
CUresult sim_program_launch(sim_program *program, sim_stream *stream, const unsigned grid[3], const unsigned block[3],
                            unsigned shared_bytes, void **extra);

#endif
