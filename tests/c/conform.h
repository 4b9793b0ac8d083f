/* conform.h: what the parts of the conformance list share. */
#ifndef CONFORM_H
#define CONFORM_H

#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../csrc/cuda/api.h"
#include "../../csrc/cuda/load.h"
#include "../../csrc/kernels/kernel.h"

#define MIB ((size_t)1 << 20)

/* The table, simulated or real. */
extern cuda_api api;
extern CUcontext context;
extern CUfunction fill, add, spin;

/* An assertion has a name, which no other has. */
#define IS(name, actual, expected) conform_is(name, (int64_t)(actual), (int64_t)(expected))
#define OK(name, call) IS(name, call, 0)
#define HOLDS(name, condition) conform_is(name, (condition) ? 1 : 0, 1)

/* The same for what devtensor calls nowhere: of the real table it is only told. */
#define TELLS(name, actual, expected) conform_tells(name, (int64_t)(actual), (int64_t)(expected))

void conform_is(const char *name, int64_t actual, int64_t expected);
void conform_tells(const char *name, int64_t actual, int64_t expected);
/* Ends the section: what follows needs this. */
void conform_need(const char *name, bool condition);

/* Device 0, its context current, with the kernels. */
void start(void);
CUdeviceptr allocate(size_t nbytes);
CUstream stream_new(void);
/* x[0..n) = value or += value, in a block of 256 threads. */
CUresult launch(CUfunction function, CUdeviceptr x, uint64_t n, float value, CUstream stream);
/* Keeps the stream busy for a while. */
void keep_busy(CUstream stream);
/* The first element, read in the order of the stream. */
float peek(CUdeviceptr p, CUstream stream);
void *pinned(size_t nbytes);

typedef struct {
    uint64_t x, n;
    float value;
} conform_args;

/* What a section needs: the libraries alone, NVIDIA's driver (cuDNN is linked against it), or a device. All is as on an
 * H100 but for what needs two devices, which is expected. */
typedef enum { LIBRARIES, DRIVER, DEVICE } conform_needs;

#define SECTIONS(X)                                                                                                    \
    X(before_init, DRIVER)                                                                                             \
    X(error_texts, DRIVER)                                                                                             \
    X(init, DEVICE)                                                                                                    \
    X(devices, DEVICE)                                                                                                 \
    X(contexts, DEVICE)                                                                                                \
    X(memory, DEVICE)                                                                                                  \
    X(pool, DEVICE)                                                                                                    \
    X(copies, DEVICE)                                                                                                  \
    X(streams, DEVICE)                                                                                                 \
    X(events, DEVICE)                                                                                                  \
    X(modules, DEVICE)                                                                                                 \
    X(launches, DEVICE)                                                                                                \
    X(peers, DEVICE)                                                                                                   \
    X(lost_device, DEVICE)                                                                                             \
    X(nvrtc, LIBRARIES)                                                                                                \
    X(lt_descriptors, LIBRARIES)                                                                                       \
    X(lt_products, DEVICE)                                                                                             \
    X(lt_combinations, DEVICE)                                                                                         \
    X(dnn_descriptors, DRIVER)                                                                                         \
    X(dnn_convolution, DEVICE)                                                                                         \
    X(dnn_plans, DRIVER)
#define SECTION(name, needs) void conform_##name(void);
SECTIONS(SECTION)
#undef SECTION

#endif
