/* test_sim.h: what the parts of test_sim.c share. */
#ifndef TEST_SIM_H
#define TEST_SIM_H

#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../csrc/cuda/launch/image.h"
#include "../../csrc/kernels/kernel.h"
#include "../../csrc/sim/sim.h"

#define MIB ((size_t)1 << 20)
#define MEMORY (80 * MIB)
/* What of it is free with the context and the module of start(). */
#define ROOM (MEMORY - MEMORY / SIM_CONTEXT_SHARE - SIM_MODULE_BYTES)

extern cuda_api api;
extern CUcontext contexts[2];
extern CUmodule module;
extern CUfunction fill, add, overrun;

#define CHECK(condition) check((condition), #condition, __FILE__, __LINE__)
#define SAME(actual, expected) same((int64_t)(actual), (int64_t)(expected), #actual, __FILE__, __LINE__)
#define OK(call) SAME(call, 0)

void check(bool good, const char *text, const char *file, int line);
void same(int64_t actual, int64_t expected, const char *text, const char *file, int line);

/* Two devices of MEMORY bytes, the first current, with a module and its functions. */
void start(void);
CUdeviceptr alloc(size_t nbytes);
CUstream stream_new(unsigned flags);
CUresult launch(CUfunction function, CUdeviceptr x, uint64_t n, float value, CUstream stream);
/* Page-locked memory. */
void *host(size_t nbytes);
float peek(CUdeviceptr p, CUstream stream);
/* Small integers, so that every order of summation is exact. */
double entry(int64_t i);

typedef struct {
    uint64_t x, n;
    float value;
} fill_args;

#define SECTIONS(X)                                                                                                    \
    X(before_init)                                                                                                     \
    X(devices)                                                                                                         \
    X(allocation)                                                                                                      \
    X(pool) X(copies) X(streams) X(events) X(launches) X(overrun) X(bad_address) X(freed_address) X(other_device)      \
        X(processes) X(no_memory) X(source) X(nvrtc) X(threads) X(products) X(lt_refusals) X(tf32) X(convolutions)     \
            X(dnn_refusals) X(blocking)
#define SECTION(name) void test_##name(void);
SECTIONS(SECTION)
#undef SECTION

#endif
