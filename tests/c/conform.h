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

void conform_is(const char *name, int64_t actual, int64_t expected);
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

/* true for those that need a driver; cuDNN's parts are linked against it */
#define SECTIONS(X)                                                                                                    \
    X(before_init, true)                                                                                               \
    X(devices, true)                                                                                                   \
    X(contexts, true)                                                                                                  \
    X(memory, true)                                                                                                    \
    X(pool, true)                                                                                                      \
    X(copies, true)                                                                                                    \
    X(streams, true)                                                                                                   \
    X(events, true)                                                                                                    \
    X(modules, true)                                                                                                   \
    X(launches, true)                                                                                                  \
    X(lost_device, true)                                                                                               \
    X(nvrtc, false)                                                                                                    \
    X(lt_descriptors, false)                                                                                           \
    X(lt_products, true)                                                                                               \
    X(dnn_descriptors, true)                                                                                           \
    X(dnn_convolution, true)
#define SECTION(name, driver) void conform_##name(void);
SECTIONS(SECTION)
#undef SECTION

#endif
