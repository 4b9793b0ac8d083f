/* test_sim.c: how the simulated GPU behaves, call by call. Every section runs in a process of its own, as a lost device
 * stays lost. Prints "N passed, M failed". */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../csrc/kernels/kernel.h"
#include "../../csrc/sim/sim.h"

#define MIB ((size_t)1 << 20)
#define MEMORY (16 * MIB)

static cuda_api api;
static int passed, failed;

#define CHECK(condition) check((condition), #condition, __LINE__)
#define SAME(actual, expected) same((int64_t)(actual), (int64_t)(expected), #actual, __LINE__)
#define OK(call) SAME(call, 0)

static void
check(bool good, const char *text, int line)
{
    if (good) {
        passed++;
    } else {
        failed++;
        fprintf(stderr, "test_sim.c:%d: %s\n", line, text);
    }
}

static void
same(int64_t actual, int64_t expected, const char *text, int line)
{
    if (actual == expected) {
        passed++;
    } else {
        failed++;
        fprintf(stderr, "test_sim.c:%d: %s is %lld, not %lld\n", line, text, (long long)actual, (long long)expected);
    }
}

/* ---------------------------------------------------------------- kernels to launch */

typedef struct {
    uint64_t x, n;
    float value;
} fill_args;

DT_KERNEL(k_test_fill, fill_args, a)
{
    float *x = DT_GLOBAL(float, a.x, a.n * sizeof(float));
    DT_FOR(i, (int64_t)a.n) {
        x[i] = a.value;
    }
}

/* Claims n elements and writes one more. */
DT_KERNEL(k_test_overrun, fill_args, a)
{
    float *x = DT_GLOBAL(float, a.x, a.n * sizeof(float));
    DT_FOR(i, (int64_t)a.n + 1) {
        x[i] = a.value;
    }
}

DT_KERNEL(k_test_add, fill_args, a)
{
    float *x = DT_GLOBAL(float, a.x, a.n * sizeof(float));
    DT_FOR(i, (int64_t)a.n) {
        x[i] += a.value;
    }
}

/* ---------------------------------------------------------------- helpers */

static CUcontext contexts[2];
static CUmodule module;
static CUfunction fill, add, overrun;

static void
start(void)
{
    OK(sim_open(2, MEMORY, &api, &(dt_error){0}));
    OK(api.cuInit(0));
    OK(api.cuDevicePrimaryCtxRetain(&contexts[0], 0));
    OK(api.cuDevicePrimaryCtxRetain(&contexts[1], 1));
    OK(api.cuCtxSetCurrent(contexts[0]));
    OK(api.cuModuleLoadData(&module, "image"));
    OK(api.cuModuleGetFunction(&fill, module, "k_test_fill"));
    OK(api.cuModuleGetFunction(&add, module, "k_test_add"));
    OK(api.cuModuleGetFunction(&overrun, module, "k_test_overrun"));
}

static CUdeviceptr
alloc(size_t nbytes)
{
    CUdeviceptr p = 0;
    OK(api.cuMemAlloc_v2(&p, nbytes));
    return p;
}

static CUstream
stream_new(unsigned flags)
{
    CUstream s = NULL;
    OK(api.cuStreamCreate(&s, flags));
    return s;
}

static CUresult
launch(CUfunction function, CUdeviceptr x, uint64_t n, float value, CUstream stream)
{
    fill_args args = {x, n, value};
    void *parameters[] = {&args};
    return api.cuLaunchKernel(function, 1, 1, 1, 256, 1, 1, 0, stream, parameters, NULL);
}

static void *
host(size_t nbytes)
{
    void *p = NULL;
    OK(api.cuMemHostAlloc(&p, nbytes, CU_MEMHOSTALLOC_PORTABLE));
    return p;
}

static float
peek(CUdeviceptr p, CUstream stream)
{
    float x = 0;
    OK(api.cuMemcpyDtoHAsync_v2(&x, p, sizeof(x), stream));
    return x;
}

/* How a child that runs body ends: its exit code, or 1000 + the signal. */
static int
fate(void (*body)(void *), void *argument)
{
    fflush(stderr);
    pid_t pid = fork();
    if (pid == 0) {
        signal(SIGSEGV, SIG_DFL);
        body(argument);
        _exit(0);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    return WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* ---------------------------------------------------------------- sections */

static void
test_before_init(void)
{
    int n = -7;
    CUcontext context = NULL;
    CUdeviceptr p = 7;
    dt_error err;
    SAME(sim_open(-1, MIB, &api, &err), DT_EVALUE);
    SAME(sim_open(SIM_MAX_DEVICES + 1, MIB, &api, &err), DT_EVALUE);
    SAME(sim_open(1, 0, &api, &err), DT_EVALUE);
    OK(sim_open(0, MIB, &api, &err));
    SAME(api.cuInit(0), CUDA_ERROR_NO_DEVICE);
    OK(sim_open(2, MIB, &api, &err));
    SAME(api.cuDeviceGetCount(&n), CUDA_ERROR_NOT_INITIALIZED);
    SAME(n, -7);
    SAME(api.cuDevicePrimaryCtxRetain(&context, 0), CUDA_ERROR_NOT_INITIALIZED);
    SAME(api.cuMemAlloc_v2(&p, 4), CUDA_ERROR_NOT_INITIALIZED);
    SAME(p, 7);
    SAME(api.cuCtxSynchronize(), CUDA_ERROR_NOT_INITIALIZED);
    SAME(api.cuStreamSynchronize(NULL), CUDA_ERROR_NOT_INITIALIZED);
    SAME(api.cuInit(1), CUDA_ERROR_INVALID_VALUE);
    OK(api.cuDriverGetVersion(&n));
    CHECK(n >= 13000);
    SAME(api.cuDriverGetVersion(NULL), CUDA_ERROR_INVALID_VALUE);
    OK(api.cuInit(0));
    OK(api.cuInit(0));
    OK(sim_open(2, MIB, &api, &err));
    SAME(sim_open(3, MIB, &api, &err), DT_EVALUE);
    SAME(sim_open(2, 2 * MIB, &api, &err), DT_EVALUE);
    SAME(api.cuMemAlloc_v2(&p, 4), CUDA_ERROR_INVALID_CONTEXT);
    SAME(api.cuCtxSynchronize(), CUDA_ERROR_INVALID_CONTEXT);
    cublasLtHandle_t lt = NULL;
    cudnnHandle_t dnn = NULL;
    SAME(api.cublasLtCreate(&lt), CUBLAS_STATUS_NOT_INITIALIZED);
    SAME(api.cudnnCreate(&dnn), CUDNN_STATUS_NOT_INITIALIZED);
    CHECK(lt == NULL && dnn == NULL);
}

static void
test_devices(void)
{
    int n = 0, device = -1;
    size_t nbytes = 0, free_bytes = 0;
    char name[64], small[4];
    const char *text = NULL;
    CUcontext context = NULL;
    start();
    OK(api.cuDeviceGetCount(&n));
    SAME(n, 2);
    SAME(api.cuDeviceGetCount(NULL), CUDA_ERROR_INVALID_VALUE);
    OK(api.cuDeviceGet(&device, 1));
    SAME(device, 1);
    SAME(api.cuDeviceGet(&device, 2), CUDA_ERROR_INVALID_DEVICE);
    SAME(api.cuDeviceGet(&device, -1), CUDA_ERROR_INVALID_DEVICE);
    SAME(api.cuDeviceGet(NULL, 0), CUDA_ERROR_INVALID_VALUE);
    OK(api.cuDeviceGetName(name, sizeof(name), 0));
    CHECK(strstr(name, "simulated") != NULL);
    OK(api.cuDeviceGetName(small, sizeof(small), 0));
    SAME(strlen(small), 3);
    SAME(api.cuDeviceGetName(NULL, 4, 0), CUDA_ERROR_INVALID_VALUE);
    SAME(api.cuDeviceGetName(name, 0, 0), CUDA_ERROR_INVALID_VALUE);
    OK(api.cuDeviceGetAttribute(&n, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0));
    SAME(n, 9);
    sim_set_compute_capability(7, 5);
    OK(api.cuDeviceGetAttribute(&n, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0));
    SAME(n, 5);
    OK(api.cuDeviceGetAttribute(&n, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 0));
    SAME(n, 1);
    SAME(api.cuDeviceGetAttribute(&n, 9999, 0), CUDA_ERROR_INVALID_VALUE);
    SAME(api.cuDeviceGetAttribute(&n, 75, 2), CUDA_ERROR_INVALID_DEVICE);
    SAME(api.cuDeviceGetAttribute(NULL, 75, 0), CUDA_ERROR_INVALID_VALUE);
    OK(api.cuDeviceTotalMem_v2(&nbytes, 0));
    SAME(nbytes, MEMORY);
    SAME(api.cuDeviceTotalMem_v2(&nbytes, 9), CUDA_ERROR_INVALID_DEVICE);
    OK(api.cuDeviceCanAccessPeer(&n, 0, 1));
    SAME(n, 1);
    OK(api.cuDeviceCanAccessPeer(&n, 1, 1));
    SAME(n, 0);
    OK(api.cuMemGetInfo_v2(&free_bytes, &nbytes));
    SAME(free_bytes, MEMORY);
    SAME(api.cuMemGetInfo_v2(NULL, &nbytes), CUDA_ERROR_INVALID_VALUE);
    OK(api.cuCtxGetCurrent(&context));
    CHECK(context == contexts[0]);
    OK(api.cuCtxSetCurrent(NULL));
    OK(api.cuCtxGetCurrent(&context));
    CHECK(context == NULL);
    SAME(api.cuCtxSetCurrent((CUcontext)(uintptr_t)64), CUDA_ERROR_INVALID_CONTEXT);
    SAME(api.cuCtxSynchronize(), CUDA_ERROR_INVALID_CONTEXT);
    OK(api.cuCtxSetCurrent(contexts[0]));
    OK(api.cuCtxEnablePeerAccess(contexts[1], 0));
    SAME(api.cuCtxEnablePeerAccess(contexts[1], 0), CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
    SAME(api.cuCtxEnablePeerAccess(contexts[0], 0), CUDA_ERROR_INVALID_DEVICE);
    OK(api.cuGetErrorName(CUDA_ERROR_ILLEGAL_ADDRESS, &text));
    SAME(strcmp(text, "CUDA_ERROR_ILLEGAL_ADDRESS"), 0);
    OK(api.cuGetErrorString(CUDA_ERROR_OUT_OF_MEMORY, &text));
    SAME(strcmp(text, "out of memory"), 0);
    SAME(api.cuGetErrorName(12345, &text), CUDA_ERROR_INVALID_VALUE);
    CHECK(text == NULL);
    SAME(api.cuGetErrorName(0, NULL), CUDA_ERROR_INVALID_VALUE);
    alloc(100);
    OK(api.cuDevicePrimaryCtxRelease_v2(0));
    SAME(api.cuDevicePrimaryCtxRelease_v2(0), CUDA_ERROR_INVALID_CONTEXT);
    SAME(api.cuCtxSynchronize(), CUDA_ERROR_INVALID_CONTEXT);
    SAME(api.cuModuleUnload(module), CUDA_ERROR_INVALID_CONTEXT);
    int64_t ledger[6];
    sim_ledger(&ledger[0], &ledger[1], &ledger[2], &ledger[3], &ledger[4], &ledger[5]);
    SAME(ledger[0] + ledger[1] + ledger[2] + ledger[3] + ledger[4] + ledger[5], 0);
    OK(api.cuDevicePrimaryCtxRetain(&contexts[0], 0));
    OK(api.cuCtxSetCurrent(contexts[0]));
    OK(api.cuCtxSynchronize());
}

static void
test_allocation(void)
{
    CUdeviceptr p = 7, q;
    size_t free_bytes, total;
    start();
    SAME(api.cuMemAlloc_v2(&p, 0), CUDA_ERROR_INVALID_VALUE);
    SAME(api.cuMemAlloc_v2(NULL, 4), CUDA_ERROR_INVALID_VALUE);
    SAME(api.cuMemAlloc_v2(&p, MEMORY + 1), CUDA_ERROR_OUT_OF_MEMORY);
    SAME(api.cuMemAlloc_v2(&p, SIZE_MAX), CUDA_ERROR_OUT_OF_MEMORY);
    SAME(p, 7);
    p = alloc(MEMORY);
    SAME(api.cuMemAlloc_v2(&q, 1), CUDA_ERROR_OUT_OF_MEMORY);
    OK(api.cuMemGetInfo_v2(&free_bytes, &total));
    SAME(free_bytes, 0);
    OK(api.cuMemFree_v2(p));
    SAME(api.cuMemFree_v2(p), CUDA_ERROR_INVALID_VALUE);
    OK(api.cuMemFree_v2(0));
    SAME(api.cuMemFree_v2(p + 4), CUDA_ERROR_INVALID_VALUE);
    p = alloc(1);
    q = alloc(1000);
    SAME(p % 256, 0);
    SAME(q % 256, 0);
    SAME(api.cuMemFree_v2(q + 4), CUDA_ERROR_INVALID_VALUE);
    CHECK(isnan(peek(q, NULL)));
    OK(api.cuMemsetD8Async(q, 0, 1000, NULL));
    SAME(peek(q + 996, NULL), 0);
    OK(api.cuMemFree_v2(q));
    q = alloc(1000);
    CHECK(isnan(peek(q, NULL)));
    SAME(api.cuMemcpyDtoHAsync_v2(&total, q + 996, 8, NULL), CUDA_ERROR_INVALID_VALUE);
    SAME(api.cuMemcpyDtoHAsync_v2(&total, q - 1, 1, NULL), CUDA_ERROR_INVALID_VALUE);
    SAME(api.cuMemsetD8Async(q, 0, 1001, NULL), CUDA_ERROR_INVALID_VALUE);
    OK(api.cuMemsetD8Async(q, 0, 0, NULL));
    OK(api.cuMemcpyHtoDAsync_v2(0, NULL, 0, NULL));
    SAME(api.cuMemcpyHtoDAsync_v2(q, NULL, 4, NULL), CUDA_ERROR_INVALID_VALUE);
    SAME(api.cuMemcpyHtoDAsync_v2(q, (void *)(uintptr_t)p, 1, NULL), CUDA_ERROR_INVALID_VALUE);
    SAME(api.cuMemcpyDtoHAsync_v2(NULL, q, 4, NULL), CUDA_ERROR_INVALID_VALUE);
    OK(api.cuCtxSetCurrent(contexts[1]));
    SAME(api.cuMemsetD8Async(q, 0, 4, NULL), CUDA_ERROR_INVALID_VALUE);
    OK(api.cuMemFree_v2(q)); /* by address, as the driver: any context will do */
    OK(api.cuCtxSetCurrent(contexts[0]));
    OK(api.cuMemFree_v2(p));
    /* many blocks of odd sizes, freed in another order, leave the device as it was */
    CUdeviceptr blocks[200];
    for (size_t i = 0; i < 200; i++) {
        blocks[i] = alloc(1 + i * 37 % 5000);
    }
    for (size_t i = 0; i < 200; i++) {
        OK(api.cuMemFree_v2(blocks[i * 7 % 200]));
    }
    OK(api.cuMemGetInfo_v2(&free_bytes, &total));
    SAME(free_bytes, MEMORY);
    OK(api.cuMemFree_v2(alloc(MEMORY)));
    SAME(sim_guard_violations(), 0);
    void *bytes = NULL;
    SAME(api.cuMemHostAlloc(&bytes, 0, 0), CUDA_ERROR_INVALID_VALUE);
    SAME(api.cuMemHostAlloc(NULL, 4, 0), CUDA_ERROR_INVALID_VALUE);
    SAME(api.cuMemHostAlloc(&bytes, 4, 64), CUDA_ERROR_INVALID_VALUE);
    SAME(api.cuMemFreeHost(NULL), CUDA_ERROR_INVALID_VALUE);
    SAME(api.cuMemFreeHost(&bytes), CUDA_ERROR_INVALID_VALUE);
    bytes = host(100);
    SAME((uintptr_t)bytes % 64, 0);
    OK(api.cuMemFreeHost(bytes));
    SAME(api.cuMemFreeHost(bytes), CUDA_ERROR_INVALID_VALUE);
}

static void
test_pool(void)
{
    CUmemoryPool pool = NULL;
    CUdeviceptr p, q;
    uint64_t value = 99;
    start();
    CUstream stream = stream_new(CU_STREAM_NON_BLOCKING), other = stream_new(CU_STREAM_NON_BLOCKING);
    OK(api.cuDeviceGetDefaultMemPool(&pool, 0));
    SAME(api.cuDeviceGetDefaultMemPool(&pool, 2), CUDA_ERROR_INVALID_DEVICE);
    SAME(api.cuDeviceGetDefaultMemPool(NULL, 0), CUDA_ERROR_INVALID_VALUE);
    OK(api.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &value));
    SAME(value, 0);
    SAME(api.cuMemPoolGetAttribute(pool, 77, &value), CUDA_ERROR_INVALID_VALUE);
    SAME(api.cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &value), CUDA_ERROR_INVALID_VALUE);
    SAME(api.cuMemPoolGetAttribute(NULL, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &value), CUDA_ERROR_INVALID_VALUE);
    SAME(api.cuMemAllocAsync(&p, 0, stream), CUDA_ERROR_INVALID_VALUE);
    SAME(api.cuMemAllocAsync(&p, MEMORY + 1, stream), CUDA_ERROR_OUT_OF_MEMORY);
    OK(api.cuMemAllocAsync(&p, MIB, stream));
    OK(api.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &value));
    SAME(value, MIB);
    OK(api.cuMemFreeAsync(p, stream));
    SAME(api.cuMemFreeAsync(p, stream), CUDA_ERROR_INVALID_VALUE);
    SAME(api.cuMemsetD8Async(p, 0, 4, stream), CUDA_ERROR_INVALID_VALUE);
    OK(api.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &value));
    SAME(value, MIB); /* in stream order: not yet */
    value = UINT64_MAX;
    OK(api.cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &value));
    OK(api.cuStreamSynchronize(stream));
    OK(api.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &value));
    SAME(value, 0);
    OK(api.cuCtxSynchronize());
    OK(api.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &value));
    SAME(value, MIB);
    OK(api.cuMemPoolTrimTo(pool, 0));
    OK(api.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &value));
    SAME(value, 0);
    OK(api.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &value));
    SAME(value, MIB);
    value = 0;
    OK(api.cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &value));
    OK(api.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &value));
    SAME(value, 0);
    /* what is queued to be freed makes room */
    OK(api.cuMemAllocAsync(&p, MEMORY, stream));
    OK(api.cuMemFreeAsync(p, stream));
    OK(api.cuMemAllocAsync(&q, MEMORY, stream));
    OK(api.cuMemFreeAsync(q, stream));
    q = alloc(MEMORY);
    OK(api.cuMemFree_v2(q));
    /* a block of the pool may be freed at once; and stands only once its stream has got there */
    OK(api.cuMemAllocAsync(&p, 64, stream));
    OK(api.cuMemFree_v2(p));
    OK(api.cuMemAllocAsync(&p, 64, stream));
    OK(api.cuMemsetD8Async(p, 0, 64, other));
    SAME(api.cuStreamSynchronize(other), CUDA_ERROR_ILLEGAL_ADDRESS);
}

static void
test_copies(void)
{
    start();
    CUstream stream = stream_new(CU_STREAM_NON_BLOCKING);
    CUdeviceptr p = alloc(1024), q = alloc(1024);
    float one = 1, two = 2, *pinned = host(64);
    /* pageable: the bytes are taken at the call */
    OK(api.cuMemcpyHtoDAsync_v2(p, &one, 4, stream));
    one = 7;
    SAME(peek(p, stream), 1);
    /* pinned: at execution */
    pinned[0] = 3;
    OK(api.cuMemcpyHtoDAsync_v2(p, pinned, 4, stream));
    pinned[0] = 4;
    SAME(peek(p, stream), 4);
    /* to pinned memory: asynchronous */
    pinned[1] = -1;
    OK(api.cuMemcpyDtoHAsync_v2(&pinned[1], p, 4, stream));
    SAME(pinned[1], -1);
    OK(api.cuStreamSynchronize(stream));
    SAME(pinned[1], 4);
    /* on the device, in order */
    OK(api.cuMemcpyHtoDAsync_v2(p, &two, 4, stream));
    OK(api.cuMemcpyDtoDAsync_v2(q, p, 4, stream));
    OK(api.cuMemsetD8Async(p, 0, 4, stream));
    SAME(peek(q, stream), 2);
    SAME(peek(p, stream), 0);
    /* to the other device; its own order is not kept for us */
    OK(api.cuCtxSetCurrent(contexts[1]));
    CUdeviceptr far = alloc(1024);
    SAME(api.cuMemcpyDtoDAsync_v2(far, q, 4, NULL), CUDA_ERROR_INVALID_VALUE);
    SAME(api.cuMemcpyPeerAsync(far, contexts[1], q, contexts[0], 4, stream), CUDA_ERROR_INVALID_HANDLE);
    SAME(api.cuMemcpyPeerAsync(far, contexts[0], q, contexts[1], 4, NULL), CUDA_ERROR_INVALID_VALUE);
    SAME(api.cuMemcpyPeerAsync(far, NULL, q, contexts[0], 4, NULL), CUDA_ERROR_INVALID_CONTEXT);
    OK(api.cuMemcpyPeerAsync(far, contexts[1], q, contexts[0], 4, NULL));
    SAME(peek(far, NULL), 2);
    OK(api.cuMemcpyPeerAsync(far, contexts[1], q, contexts[0], 0, NULL));
    /* freeing pinned memory waits for what uses it */
    pinned[5] = 9;
    OK(api.cuMemcpyHtoDAsync_v2(far, &pinned[5], 4, NULL));
    OK(api.cuMemFreeHost(pinned));
    SAME(peek(far, NULL), 9);
}

static void
test_streams(void)
{
    CUstream s = NULL;
    float *seen;
    start();
    SAME(api.cuStreamCreate(NULL, 0), CUDA_ERROR_INVALID_VALUE);
    SAME(api.cuStreamCreate(&s, 16), CUDA_ERROR_INVALID_VALUE);
    CHECK(s == NULL);
    CUstream a = stream_new(CU_STREAM_NON_BLOCKING), b = stream_new(CU_STREAM_NON_BLOCKING), c = stream_new(0);
    CUdeviceptr p = alloc(16);
    seen = host(64);
    OK(api.cuStreamQuery(a));
    /* without a wait the other stream sees the old bytes, every time */
    OK(launch(fill, p, 4, 1, a));
    CHECK(isnan(peek(p, b)));
    OK(api.cuStreamSynchronize(a));
    SAME(peek(p, b), 1);
    /* polling ends */
    OK(launch(fill, p, 4, 2, a));
    OK(launch(add, p, 4, 1, a));
    SAME(api.cuStreamQuery(a), CUDA_ERROR_NOT_READY);
    SAME(api.cuStreamQuery(a), CUDA_ERROR_NOT_READY);
    OK(api.cuStreamQuery(a));
    SAME(peek(p, b), 3);
    /* the NULL stream and blocking streams order each other, others not */
    OK(launch(fill, p, 4, 4, c));
    OK(launch(add, p, 4, 1, NULL));
    OK(launch(add, p, 4, 1, c));
    CHECK(peek(p, a) == 3);
    SAME(peek(p, c), 6);
    OK(launch(fill, p, 4, 7, NULL));
    SAME(peek(p, c), 7);
    OK(launch(fill, p, 4, 8, a));
    SAME(peek(p, NULL), 7);
    OK(api.cuStreamSynchronize(a));
    OK(launch(fill, p, 4, 9, c));
    OK(api.cuStreamSynchronize(NULL));
    SAME(peek(p, b), 9);
    /* more than a queue holds */
    for (int i = 0; i < 1000; i++) {
        OK(launch(add, p, 4, 1, a));
    }
    SAME(peek(p, a), 1009);
    /* destroying a stream finishes its work */
    OK(launch(fill, p, 4, 5, a));
    OK(api.cuStreamDestroy_v2(a));
    SAME(peek(p, b), 5);
    SAME(api.cuStreamDestroy_v2(a), CUDA_ERROR_INVALID_HANDLE);
    SAME(api.cuStreamSynchronize(a), CUDA_ERROR_INVALID_HANDLE);
    SAME(launch(fill, p, 4, 5, a), CUDA_ERROR_INVALID_HANDLE);
    SAME(api.cuStreamQuery((CUstream)(void *)seen), CUDA_ERROR_INVALID_HANDLE);
    SAME(api.cuStreamDestroy_v2(NULL), CUDA_ERROR_INVALID_HANDLE);
    SAME(api.cuStreamSynchronize((CUstream)(void *)module), CUDA_ERROR_INVALID_HANDLE);
    OK(api.cuCtxSetCurrent(contexts[1]));
    SAME(api.cuMemsetD8Async(alloc(4), 0, 4, b), CUDA_ERROR_INVALID_HANDLE);
    OK(api.cuStreamSynchronize(b));
}

static void
test_events(void)
{
    CUevent e = NULL, f = NULL, untimed = NULL;
    float ms = -1, *pinned;
    start();
    CUstream a = stream_new(CU_STREAM_NON_BLOCKING), b = stream_new(CU_STREAM_NON_BLOCKING);
    CUdeviceptr p = alloc(16), q = alloc(16);
    SAME(api.cuEventCreate(NULL, 0), CUDA_ERROR_INVALID_VALUE);
    SAME(api.cuEventCreate(&e, 64), CUDA_ERROR_INVALID_VALUE);
    OK(api.cuEventCreate(&e, 0));
    OK(api.cuEventCreate(&f, 0));
    OK(api.cuEventCreate(&untimed, CU_EVENT_DISABLE_TIMING));
    OK(api.cuEventQuery(e));
    OK(api.cuEventSynchronize(e));
    OK(api.cuStreamWaitEvent(a, e, 0));
    SAME(api.cuEventElapsedTime(&ms, e, f), CUDA_ERROR_INVALID_HANDLE);
    OK(launch(fill, p, 4, 1, a));
    OK(api.cuEventRecord(e, a));
    OK(launch(fill, p, 4, 2, a));
    OK(api.cuEventRecord(f, a));
    SAME(api.cuEventElapsedTime(&ms, e, f), CUDA_ERROR_NOT_READY);
    OK(api.cuEventSynchronize(e));
    SAME(peek(p, b), 1); /* as far as the event, not further */
    SAME(api.cuEventQuery(f), CUDA_ERROR_NOT_READY);
    SAME(api.cuEventQuery(f), CUDA_ERROR_NOT_READY);
    OK(api.cuEventQuery(f));
    OK(api.cuEventElapsedTime(&ms, e, f));
    CHECK(ms >= 0 && ms < 60000);
    SAME(api.cuEventElapsedTime(NULL, e, f), CUDA_ERROR_INVALID_VALUE);
    OK(api.cuEventRecord(untimed, a));
    OK(api.cuEventSynchronize(untimed));
    SAME(api.cuEventElapsedTime(&ms, e, untimed), CUDA_ERROR_INVALID_HANDLE);
    /* a stream that waits sees the work, and the wait itself is lazy: pinned memory may not be reused yet */
    pinned = host(64);
    pinned[0] = 5;
    OK(api.cuMemcpyHtoDAsync_v2(p, pinned, 4, a));
    OK(api.cuEventRecord(e, a));
    OK(api.cuStreamWaitEvent(b, e, 0));
    SAME(api.cuStreamWaitEvent(b, e, 8), CUDA_ERROR_INVALID_VALUE);
    OK(api.cuMemcpyDtoDAsync_v2(q, p, 4, b));
    pinned[0] = 6;
    SAME(peek(q, b), 6);
    /* the last record before the wait counts, and the event may go meanwhile */
    OK(launch(fill, p, 4, 10, a));
    OK(api.cuEventRecord(f, a));
    OK(api.cuStreamWaitEvent(b, f, 0));
    OK(api.cuEventDestroy_v2(f));
    SAME(api.cuEventDestroy_v2(f), CUDA_ERROR_INVALID_HANDLE);
    SAME(api.cuEventRecord(f, a), CUDA_ERROR_INVALID_HANDLE);
    OK(launch(fill, p, 4, 11, a));
    SAME(peek(p, b), 10);
    /* streams that wait for each other in turns */
    CUevent x = NULL, y = NULL;
    OK(api.cuEventCreate(&x, 2));
    OK(api.cuEventCreate(&y, 2));
    OK(launch(fill, p, 4, 0, a));
    for (int i = 0; i < 100; i++) {
        OK(api.cuEventRecord(x, a));
        OK(api.cuStreamWaitEvent(b, x, 0));
        OK(launch(add, p, 4, 1, b));
        OK(api.cuEventRecord(y, b));
        OK(api.cuStreamWaitEvent(a, y, 0));
        OK(launch(add, p, 4, 1, a));
    }
    SAME(peek(p, a), 200);
    /* across devices */
    OK(launch(fill, p, 4, 33, a));
    OK(api.cuEventRecord(x, a));
    OK(api.cuCtxSetCurrent(contexts[1]));
    CUdeviceptr far = alloc(16);
    CUstream c = stream_new(CU_STREAM_NON_BLOCKING);
    SAME(api.cuEventRecord(x, c), CUDA_ERROR_INVALID_HANDLE);
    OK(api.cuMemcpyPeerAsync(far, contexts[1], p, contexts[0], 4, c));
    SAME(peek(far, c), 200);
    OK(api.cuStreamWaitEvent(c, x, 0));
    OK(api.cuMemcpyPeerAsync(far, contexts[1], p, contexts[0], 4, c));
    SAME(peek(far, c), 33);
}

static void
test_launches(void)
{
    CUfunction function = NULL;
    CUmodule other = NULL;
    start();
    CUdeviceptr p = alloc(16);
    fill_args args = {p, 4, 1};
    void *parameters[] = {&args}, *nothing[] = {NULL};
    SAME(api.cuModuleLoadData(&other, NULL), CUDA_ERROR_INVALID_VALUE);
    SAME(api.cuModuleLoadData(NULL, "x"), CUDA_ERROR_INVALID_VALUE);
    SAME(api.cuModuleGetFunction(&function, module, "k_nothing"), CUDA_ERROR_NOT_FOUND);
    CHECK(function == NULL);
    SAME(api.cuModuleGetFunction(&function, module, NULL), CUDA_ERROR_INVALID_VALUE);
    SAME(api.cuModuleGetFunction(NULL, module, "k_test_fill"), CUDA_ERROR_INVALID_VALUE);
    SAME(api.cuModuleGetFunction(&function, NULL, "k_test_fill"), CUDA_ERROR_INVALID_HANDLE);
    static const unsigned bad[][7] = {
        {0, 1, 1, 1, 1, 1, 0},     {1, 0, 1, 1, 1, 1, 0},           {1, 1, 0, 1, 1, 1, 0},     {1, 1, 1, 0, 1, 1, 0},
        {1, 1, 1, 1, 0, 1, 0},     {1, 1, 1, 1, 1, 0, 0},           {1, 1, 1, 1025, 1, 1, 0},  {1, 1, 1, 1, 1, 65, 0},
        {1, 1, 1, 32, 33, 1, 0},   {1, 65536, 1, 1, 1, 1, 0},       {1, 1, 65536, 1, 1, 1, 0}, {1, 1, 1, 512, 1, 1, 0},
        {1, 1, 1, 1, 1, 1, 49153}, {0x80000000u, 1, 1, 1, 1, 1, 0},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        const unsigned *g = bad[i];
        SAME(api.cuLaunchKernel(fill, g[0], g[1], g[2], g[3], g[4], g[5], g[6], NULL, parameters, NULL),
             CUDA_ERROR_INVALID_VALUE);
    }
    OK(api.cuLaunchKernel(fill, 0x7fffffff, 1, 1, 256, 1, 1, 49152, NULL, parameters, NULL));
    SAME(api.cuLaunchKernel(fill, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    SAME(api.cuLaunchKernel(fill, 1, 1, 1, 1, 1, 1, 0, NULL, nothing, NULL), CUDA_ERROR_INVALID_VALUE);
    SAME(api.cuLaunchKernel(fill, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, nothing), CUDA_ERROR_INVALID_VALUE);
    SAME(api.cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL), CUDA_ERROR_INVALID_HANDLE);
    SAME(launch((CUfunction)(void *)module, p, 5, 0, (CUstream)(uintptr_t)8), CUDA_ERROR_INVALID_HANDLE);
    /* arguments are taken at the call */
    OK(api.cuLaunchKernel(fill, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
    args.value = 50;
    SAME(peek(p + 12, NULL), 1);
    OK(launch(fill, p, 0, 9, NULL));
    OK(launch(fill, 0, 0, 9, NULL));
    SAME(peek(p, NULL), 1);
    OK(api.cuCtxSetCurrent(contexts[1]));
    SAME(launch(fill, p, 4, 1, NULL), CUDA_ERROR_INVALID_HANDLE);
    OK(api.cuCtxSetCurrent(contexts[0]));
    OK(api.cuModuleUnload(module));
    SAME(api.cuModuleUnload(module), CUDA_ERROR_INVALID_HANDLE);
    SAME(launch(fill, p, 4, 1, NULL), CUDA_ERROR_INVALID_HANDLE);
    SAME(api.cuModuleGetFunction(&function, module, "k_test_fill"), CUDA_ERROR_INVALID_HANDLE);
}

/* After the device is lost every call says so, and what is released is released. */
static void
check_lost(CUdeviceptr p)
{
    CUstream s = NULL;
    CUevent e = NULL;
    size_t n;
    float x = 5;
    SAME(api.cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
    SAME(api.cuStreamSynchronize(NULL), CUDA_ERROR_ILLEGAL_ADDRESS);
    SAME(api.cuStreamQuery(NULL), CUDA_ERROR_ILLEGAL_ADDRESS);
    SAME(api.cuStreamCreate(&s, 0), CUDA_ERROR_ILLEGAL_ADDRESS);
    SAME(api.cuEventCreate(&e, 0), CUDA_ERROR_ILLEGAL_ADDRESS);
    SAME(api.cuMemAlloc_v2(&p, 4), CUDA_ERROR_ILLEGAL_ADDRESS);
    SAME(api.cuMemGetInfo_v2(&n, &n), CUDA_ERROR_ILLEGAL_ADDRESS);
    SAME(api.cuMemcpyDtoHAsync_v2(&x, p, 4, NULL), CUDA_ERROR_ILLEGAL_ADDRESS);
    SAME(x, 5);
    SAME(launch(fill, p, 1, 0, NULL), CUDA_ERROR_ILLEGAL_ADDRESS);
    SAME(api.cuMemFree_v2(p), CUDA_ERROR_ILLEGAL_ADDRESS);
    SAME(api.cuModuleUnload(module), CUDA_ERROR_ILLEGAL_ADDRESS);
    OK(api.cuCtxSetCurrent(contexts[1]));
    OK(api.cuCtxSynchronize());
    OK(api.cuMemFree_v2(alloc(8)));
    int64_t ledger[6];
    sim_ledger(&ledger[0], &ledger[1], &ledger[2], &ledger[3], &ledger[4], &ledger[5]);
    SAME(ledger[0], 0);
    SAME(ledger[4], 0);
}

static void
test_overrun(void)
{
    start();
    CUdeviceptr p = alloc(16);
    OK(launch(fill, p, 4, 1, NULL));
    OK(api.cuCtxSynchronize());
    OK(launch(overrun, p, 4, 1, NULL));
    SAME(sim_guard_violations(), 0);
    SAME(api.cuStreamSynchronize(NULL), CUDA_ERROR_ILLEGAL_ADDRESS);
    SAME(sim_guard_violations(), 1);
    SAME(api.cuMemFree_v2(p), CUDA_ERROR_ILLEGAL_ADDRESS);
    check_lost(p);
}

static void
test_bad_address(void)
{
    start();
    CUdeviceptr p = alloc(16);
    OK(launch(fill, p, 5, 1, NULL)); /* the launch succeeds, the fault comes later */
    OK(launch(fill, p, 4, 1, NULL));
    SAME(api.cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
    SAME(api.cuMemFree_v2(p), CUDA_ERROR_ILLEGAL_ADDRESS);
    check_lost(p);
}

static void
test_freed_address(void)
{
    start();
    CUstream stream = stream_new(CU_STREAM_NON_BLOCKING);
    CUdeviceptr p = alloc(16);
    OK(api.cuMemFreeAsync(p, stream));
    OK(launch(fill, p, 4, 1, stream));
    OK(api.cuEventQuery((CUevent)NULL) == CUDA_ERROR_INVALID_HANDLE ? 0 : 1);
    SAME(api.cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
    SAME(api.cuStreamDestroy_v2(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
    check_lost(p);
}

static void
test_other_device(void)
{
    start();
    OK(api.cuCtxSetCurrent(contexts[1]));
    CUdeviceptr far = alloc(16);
    OK(api.cuCtxSetCurrent(contexts[0]));
    OK(launch(fill, far, 4, 1, NULL));
    SAME(api.cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
    OK(api.cuCtxSetCurrent(contexts[1]));
    OK(api.cuMemFree_v2(far));
    OK(api.cuCtxSetCurrent(contexts[0]));
    check_lost(far);
}

static void
read_byte(void *pointer)
{
    volatile char *p = *(void **)pointer;
    (void)*p;
}

static void
use_cuda(void *unused)
{
    CUdeviceptr p;
    (void)unused;
    cublasLtHandle_t lt;
    bool good = api.cuInit(0) == CUDA_ERROR_NOT_INITIALIZED && api.cuCtxSynchronize() == CUDA_ERROR_NOT_INITIALIZED &&
                api.cuMemAlloc_v2(&p, 4) == CUDA_ERROR_NOT_INITIALIZED &&
                api.cublasLtCreate(&lt) == CUBLAS_STATUS_NOT_INITIALIZED;
    _exit(good ? 42 : 1);
}

static void
test_processes(void)
{
    start();
    void *p = (void *)(uintptr_t)alloc(4096), *stream = stream_new(0);
    SAME(fate(read_byte, &p), 1000 + SIGSEGV);
    SAME(fate(read_byte, &stream), 1000 + SIGSEGV);
    SAME(fate(use_cuda, NULL), 42);
    OK(api.cuCtxSynchronize());
}

static void
test_no_memory(void)
{
    start();
    CUstream stream = stream_new(CU_STREAM_NON_BLOCKING), other = NULL;
    CUdeviceptr p = alloc(16), q;
    CUevent e = NULL;
    cublasLtHandle_t lt = NULL;
    cudnnHandle_t dnn = NULL;
    cudnnBackendDescriptor_t desc = NULL;
    nvrtcProgram program = NULL;
    void *bytes = NULL;
    float x = 3;
    int64_t live = dt_live_blocks();
    OK(api.cuEventCreate(&e, 0));
    dt_fail_allocations(0, true);
    SAME(api.cuMemAlloc_v2(&q, 4), CUDA_ERROR_OUT_OF_MEMORY);
    SAME(api.cuMemAllocAsync(&q, 4, stream), CUDA_ERROR_OUT_OF_MEMORY);
    SAME(api.cuStreamCreate(&other, 0), CUDA_ERROR_OUT_OF_MEMORY);
    SAME(api.cuEventRecord(e, stream), CUDA_ERROR_OUT_OF_MEMORY);
    SAME(api.cuMemHostAlloc(&bytes, 4, 0), CUDA_ERROR_OUT_OF_MEMORY);
    SAME(api.cuMemcpyHtoDAsync_v2(p, &x, 4, stream), CUDA_ERROR_OUT_OF_MEMORY);
    SAME(launch(fill, p, 4, 1, stream), CUDA_ERROR_OUT_OF_MEMORY);
    SAME(api.cublasLtCreate(&lt), 0); /* a name is free: nothing to allocate */
    SAME(api.cudnnCreate(&dnn), CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED);
    SAME(api.cudnnBackendCreateDescriptor(CUDNN_BACKEND_TENSOR_DESCRIPTOR, &desc),
         CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED);
    SAME(api.nvrtcCreateProgram(&program, "__global__", "x", 0, NULL, NULL), 1);
    /* what cannot allocate cannot fail */
    OK(api.cuMemsetD8Async(p, 0, 16, stream));
    OK(api.cuStreamSynchronize(stream));
    OK(api.cuMemFreeAsync(p, stream));
    OK(api.cuStreamSynchronize(stream));
    OK(api.cuEventDestroy_v2(e));
    OK(api.cublasLtDestroy(lt));
    dt_fail_allocations(-1, false);
    SAME(dt_live_blocks(), live - 1);
}

static void
test_nvrtc(void)
{
    nvrtcProgram program = NULL;
    size_t size = 0;
    char buffer[64] = "?";
    int major = 0, minor = -1;
    start();
    OK(api.nvrtcVersion(&major, &minor));
    SAME(major, 13);
    CHECK(api.nvrtcVersion(NULL, &minor) != 0);
    CHECK(api.nvrtcCreateProgram(&program, NULL, "x", 0, NULL, NULL) != 0);
    OK(api.nvrtcCreateProgram(&program, "nothing to see", "x", 0, NULL, NULL));
    SAME(api.nvrtcCompileProgram(program, 0, NULL), NVRTC_ERROR_COMPILATION);
    CHECK(api.nvrtcGetCUBINSize(program, &size) != 0);
    OK(api.nvrtcDestroyProgram(&program));
    CHECK(program == NULL);
    CHECK(api.nvrtcDestroyProgram(&program) != 0);
    OK(api.nvrtcCreateProgram(&program, "DT_KERNEL(k, int, a) {}", "x", 0, NULL, NULL));
    OK(api.nvrtcCompileProgram(program, 0, NULL));
    OK(api.nvrtcGetProgramLogSize(program, &size));
    SAME(size, 1);
    OK(api.nvrtcGetProgramLog(program, buffer));
    SAME(buffer[0], 0);
    OK(api.nvrtcGetCUBINSize(program, &size));
    CHECK(size > 0 && size <= sizeof(buffer));
    OK(api.nvrtcGetCUBIN(program, buffer));
    CUmodule made = NULL;
    OK(api.cuModuleLoadData(&made, buffer));
    CHECK(api.nvrtcCompileProgram(NULL, 0, NULL) != 0);
    CHECK(strlen(api.nvrtcGetErrorString(NVRTC_ERROR_COMPILATION)) > 0);
    OK(api.nvrtcDestroyProgram(&program));
}

static void *
hammer(void *argument)
{
    int device = (int)(intptr_t)argument % 2;
    int64_t wrong = 0;
    CUstream stream = NULL;
    wrong += api.cuCtxSetCurrent(contexts[device]) != 0;
    wrong += api.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) != 0;
    for (int i = 0; i < 300; i++) {
        CUdeviceptr p = 0;
        float x = (float)i, y = 0;
        wrong += api.cuMemAllocAsync(&p, 4096, stream) != 0;
        wrong += api.cuMemcpyHtoDAsync_v2(p, &x, 4, stream) != 0;
        wrong += api.cuMemcpyDtoHAsync_v2(&y, p, 4, stream) != 0;
        wrong += api.cuMemFreeAsync(p, stream) != 0;
        wrong += x != y;
    }
    wrong += api.cuStreamDestroy_v2(stream) != 0;
    return (void *)(intptr_t)wrong;
}

static void
test_threads(void)
{
    pthread_t threads[8];
    start();
    for (int i = 0; i < 8; i++) {
        pthread_create(&threads[i], NULL, hammer, (void *)(intptr_t)i);
    }
    for (int i = 0; i < 8; i++) {
        void *wrong;
        pthread_join(threads[i], &wrong);
        SAME((intptr_t)wrong, 0);
    }
    int64_t ledger[6];
    sim_ledger(&ledger[0], &ledger[1], &ledger[2], &ledger[3], &ledger[4], &ledger[5]);
    SAME(ledger[0] + ledger[2], 0);
}

/* ---------------------------------------------------------------- cuBLASLt */

typedef struct {
    cudaDataType type;
    cublasComputeType_t compute;
    int transa, transb, batch;
    unsigned epilogue;
    int64_t m, n, k;
    int64_t pad; /* of every leading dimension */
    double alpha, beta;
} product;

static void
store(cudaDataType type, void *at, double x)
{
    dt_scalar value = dt_scalar_float(x);
    dt_scalar_store(&value,
                    type == CUDA_R_64F   ? DT_FLOAT64
                    : type == CUDA_R_32F ? DT_FLOAT32
                    : type == CUDA_R_16F ? DT_FLOAT16
                                         : DT_BFLOAT16,
                    at);
}

static double
load(cudaDataType type, const void *at)
{
    return dt_scalar_load(type == CUDA_R_64F   ? DT_FLOAT64
                          : type == CUDA_R_32F ? DT_FLOAT32
                          : type == CUDA_R_16F ? DT_FLOAT16
                                               : DT_BFLOAT16,
                          at)
        .f;
}

static size_t
width(cudaDataType type)
{
    return type == CUDA_R_64F ? 8 : type == CUDA_R_32F ? 4 : 2;
}

static cublasLtMatrixLayout_t
layout_new(const product *q, int64_t rows, int64_t columns)
{
    cublasLtMatrixLayout_t layout = NULL;
    int64_t ld = rows + q->pad, stride = ld * columns + q->pad;
    OK(api.cublasLtMatrixLayoutCreate(&layout, q->type, (uint64_t)rows, (uint64_t)columns, ld));
    OK(api.cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &q->batch, sizeof(q->batch)));
    OK(api.cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride,
                                            sizeof(stride)));
    return layout;
}

/* Small integers, so that every order of summation is exact. */
static double
entry(int64_t i)
{
    return (double)((i * 7 + i / 3) % 5 - 2);
}

static void
one_product(product q)
{
    cublasLtHandle_t lt = NULL;
    cublasLtMatmulDesc_t desc = NULL;
    cublasLtMatmulPreference_t preference = NULL;
    cublasLtMatmulHeuristicResult_t found;
    size_t wanted = 8 * MIB, w = width(q.type);
    int n = 0;
    unsigned char numbers[2][8];
    bool wide = q.type == CUDA_R_64F;
    int64_t rows[3] = {q.transa ? q.k : q.m, q.transb ? q.n : q.k, q.m};
    int64_t columns[3] = {q.transa ? q.m : q.k, q.transb ? q.k : q.n, q.n}, sizes[3];
    cublasLtMatrixLayout_t layouts[3];
    CUdeviceptr device[5];
    unsigned char *bytes[3];
    OK(api.cublasLtCreate(&lt));
    OK(api.cublasLtMatmulDescCreate(&desc, q.compute, wide ? CUDA_R_64F : CUDA_R_32F));
    OK(api.cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_TRANSA, &q.transa, sizeof(q.transa)));
    OK(api.cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_TRANSB, &q.transb, sizeof(q.transb)));
    OK(api.cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &q.epilogue, sizeof(q.epilogue)));
    for (int i = 0; i < 3; i++) {
        layouts[i] = layout_new(&q, rows[i], columns[i]);
        sizes[i] = ((rows[i] + q.pad) * columns[i] + q.pad) * q.batch;
        bytes[i] = malloc((size_t)sizes[i] * w);
        for (int64_t j = 0; j < sizes[i]; j++) {
            store(q.type, bytes[i] + (size_t)j * w, entry(j + i));
        }
        device[i] = alloc((size_t)sizes[i] * w);
        OK(api.cuMemcpyHtoDAsync_v2(device[i], bytes[i], (size_t)sizes[i] * w, NULL));
    }
    device[3] = alloc(wanted);
    device[4] = alloc((size_t)q.m * w);
    unsigned char bias[8];
    for (int64_t i = 0; i < q.m; i++) {
        store(q.type, bias, entry(i + 40));
        OK(api.cuMemcpyHtoDAsync_v2(device[4] + (size_t)i * w, bias, w, NULL));
    }
    OK(api.cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &device[4], sizeof(device[4])));
    OK(api.cublasLtMatmulPreferenceCreate(&preference));
    OK(api.cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &wanted,
                                                sizeof(wanted)));
    OK(api.cublasLtMatmulAlgoGetHeuristic(lt, desc, layouts[0], layouts[1], layouts[2], layouts[2], preference, 1,
                                          &found, &n));
    SAME(n, 1);
    for (int i = 0; i < 2; i++) {
        double number = i ? q.beta : q.alpha;
        float narrow = (float)number;
        memcpy(numbers[i], wide ? (void *)&number : (void *)&narrow, wide ? 8 : 4);
    }
    void *a = (void *)(uintptr_t)device[0], *b = (void *)(uintptr_t)device[1], *d = (void *)(uintptr_t)device[2];
    void *space = (void *)(uintptr_t)device[3];
    OK(api.cublasLtMatmul(lt, desc, numbers[0], a, layouts[0], b, layouts[1], numbers[1], d, layouts[2], d, layouts[2],
                          &found.algo, space, wanted, NULL));
    memset(numbers, 0x55, sizeof(numbers));
    for (int i = 0; i < 3; i++) {
        OK(api.cublasLtMatrixLayoutDestroy(layouts[i]));
    }
    OK(api.cublasLtMatmulDescDestroy(desc));
    OK(api.cublasLtMatmulPreferenceDestroy(preference));
    unsigned char *got = malloc((size_t)sizes[2] * w);
    OK(api.cuMemcpyDtoHAsync_v2(got, device[2], (size_t)sizes[2] * w, NULL));
    int64_t wrong = 0;
    for (int64_t t = 0; t < q.batch; t++) {
        const unsigned char *base[3];
        for (int i = 0; i < 3; i++) {
            base[i] = bytes[i] + (size_t)(t * (sizes[i] / q.batch)) * w;
        }
        for (int64_t i = 0; i < q.m; i++) {
            for (int64_t j = 0; j < q.n; j++) {
                double sum = 0;
                for (int64_t l = 0; l < q.k; l++) {
                    int64_t ai = q.transa ? l + i * (rows[0] + q.pad) : i + l * (rows[0] + q.pad);
                    int64_t bi = q.transb ? j + l * (rows[1] + q.pad) : l + j * (rows[1] + q.pad);
                    sum += load(q.type, base[0] + (size_t)ai * w) * load(q.type, base[1] + (size_t)bi * w);
                }
                size_t at = (size_t)(i + j * (rows[2] + q.pad)) * w;
                sum = q.alpha * sum + q.beta * load(q.type, base[2] + at);
                sum += q.epilogue & CUBLASLT_EPILOGUE_BIAS ? entry(i + 40) : 0;
                sum = (q.epilogue & CUBLASLT_EPILOGUE_RELU) && sum < 0 ? 0 : sum;
                wrong += load(q.type, got + (size_t)(t * (sizes[2] / q.batch)) * w + at) != sum;
            }
        }
    }
    SAME(wrong, 0);
    free(got);
    for (int i = 0; i < 5; i++) {
        OK(api.cuMemFree_v2(device[i]));
        if (i < 3) {
            free(bytes[i]);
        }
    }
    OK(api.cublasLtDestroy(lt));
    int64_t ledger[6];
    sim_ledger(&ledger[0], &ledger[1], &ledger[2], &ledger[3], &ledger[4], &ledger[5]);
    SAME(ledger[0] + ledger[5], 0);
}

static void
test_products(void)
{
    static const struct {
        cudaDataType type;
        cublasComputeType_t compute;
    } types[] = {{CUDA_R_32F, CUBLAS_COMPUTE_32F},           {CUDA_R_64F, CUBLAS_COMPUTE_64F},
                 {CUDA_R_16F, CUBLAS_COMPUTE_32F},           {CUDA_R_16BF, CUBLAS_COMPUTE_32F},
                 {CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32}, {CUDA_R_32F, CUBLAS_COMPUTE_32F_PEDANTIC}};
    static const unsigned epilogues[] = {CUBLASLT_EPILOGUE_DEFAULT, CUBLASLT_EPILOGUE_BIAS, CUBLASLT_EPILOGUE_RELU,
                                         CUBLASLT_EPILOGUE_RELU_BIAS};
    start();
    for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); t++) {
        for (int trans = 0; trans < 4; trans++) {
            for (int e = 0; e < 4; e++) {
                product q = {types[t].type,
                             types[t].compute,
                             trans & 1,
                             trans >> 1,
                             1 + e % 3,
                             epilogues[e],
                             5,
                             3,
                             7,
                             e % 2 * 2,
                             1 + e,
                             trans};
                one_product(q);
            }
        }
    }
}

static void
test_lt_refusals(void)
{
    cublasLtHandle_t lt = NULL;
    cublasLtMatmulDesc_t desc = NULL;
    cublasLtMatrixLayout_t a = NULL, b = NULL, d = NULL, wrong = NULL, tight = NULL, half = NULL, big = NULL;
    cublasLtMatmulPreference_t preference = NULL;
    cublasLtMatmulHeuristicResult_t found, other;
    float one = 1, zero = 0;
    int n = -1, transposed = 1;
    unsigned alignment = 4;
    start();
    CUdeviceptr p = alloc(4096);
    void *x = (void *)(uintptr_t)p, *odd = (void *)(uintptr_t)(p + 2), *shifted = (void *)(uintptr_t)(p + 4);
    SAME(api.cublasLtCreate(NULL), CUBLAS_STATUS_INVALID_VALUE);
    OK(api.cublasLtCreate(&lt));
    CHECK(api.cublasLtGetVersion() >= 130000);
    SAME(api.cublasLtMatmulDescCreate(NULL, 68, 0), CUBLAS_STATUS_INVALID_VALUE);
    OK(api.cublasLtMatmulDescCreate(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    SAME(api.cublasLtMatmulDescSetAttribute(desc, 3, &n, 8), CUBLAS_STATUS_INVALID_VALUE);
    SAME(api.cublasLtMatmulDescSetAttribute(desc, 99, &n, 4), CUBLAS_STATUS_INVALID_VALUE);
    SAME(api.cublasLtMatmulDescSetAttribute(desc, 3, NULL, 4), CUBLAS_STATUS_INVALID_VALUE);
    SAME(api.cublasLtMatmulDescSetAttribute(NULL, 3, &n, 4), CUBLAS_STATUS_INVALID_VALUE);
    OK(api.cublasLtMatmulDescDestroy(NULL));
    OK(api.cublasLtMatrixLayoutCreate(&a, CUDA_R_32F, 4, 6, 4));
    OK(api.cublasLtMatrixLayoutCreate(&b, CUDA_R_32F, 6, 5, 6));
    OK(api.cublasLtMatrixLayoutCreate(&d, CUDA_R_32F, 4, 5, 4));
    OK(api.cublasLtMatrixLayoutCreate(&wrong, CUDA_R_32F, 4, 4, 4));
    OK(api.cublasLtMatrixLayoutCreate(&tight, CUDA_R_32F, 4, 5, 3));
    OK(api.cublasLtMatrixLayoutCreate(&half, CUDA_R_16F, 4, 6, 4));
    OK(api.cublasLtMatrixLayoutCreate(&big, CUDA_R_32F, 1ull << 31, 6, 1ll << 31));
    OK(api.cublasLtMatmulPreferenceCreate(&preference));
    SAME(api.cublasLtMatmulPreferenceSetAttribute(preference, 77, &n, 4), CUBLAS_STATUS_INVALID_VALUE);
#define HEURISTIC(a, b, d) api.cublasLtMatmulAlgoGetHeuristic(lt, desc, a, b, d, d, preference, 1, &found, &n)
    SAME(HEURISTIC(a, wrong, d), CUBLAS_STATUS_INVALID_VALUE);
    SAME(HEURISTIC(a, b, wrong), CUBLAS_STATUS_INVALID_VALUE);
    SAME(HEURISTIC(a, b, tight), CUBLAS_STATUS_INVALID_VALUE);
    SAME(HEURISTIC(half, b, d), CUBLAS_STATUS_NOT_SUPPORTED);
    SAME(n, 0);
    SAME(api.cublasLtMatmulAlgoGetHeuristic(NULL, desc, a, b, d, d, preference, 1, &found, &n),
         CUBLAS_STATUS_NOT_INITIALIZED);
    SAME(api.cublasLtMatmulAlgoGetHeuristic(lt, desc, a, b, d, d, preference, 0, &found, &n),
         CUBLAS_STATUS_INVALID_VALUE);
    OK(HEURISTIC(a, b, d));
    SAME(n, 1);
    SAME(found.workspaceSize, 0);
#define MATMUL(algo, A, B, D, space, size)                                                                             \
    api.cublasLtMatmul(lt, desc, &one, A, a, B, b, &zero, D, d, D, d, algo, space, size, NULL)
    OK(MATMUL(&found.algo, x, x, (char *)x + 1024, NULL, 0));
    OK(MATMUL(NULL, x, x, (char *)x + 1024, NULL, 0));
    SAME(MATMUL(NULL, odd, x, x, NULL, 0), CUBLAS_STATUS_INVALID_VALUE);
    SAME(MATMUL(NULL, NULL, x, x, NULL, 0), CUBLAS_STATUS_INVALID_VALUE);
    SAME(MATMUL(NULL, x, x, x, NULL, 64), CUBLAS_STATUS_INVALID_VALUE);
    SAME(MATMUL(NULL, x, x, x, shifted, 64), CUBLAS_STATUS_INVALID_VALUE);
    SAME(MATMUL(&found.algo, shifted, x, x, NULL, 0), CUBLAS_STATUS_INVALID_VALUE);
    OK(api.cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &alignment, 4));
    OK(HEURISTIC(a, b, d));
    OK(MATMUL(&found.algo, shifted, x, (char *)x + 1024, NULL, 0));
    other = found;
    other.algo.data[0] ^= 2;
    SAME(MATMUL(&other.algo, x, x, x, NULL, 0), CUBLAS_STATUS_INVALID_VALUE);
    other = found;
    other.algo.data[1] = 512;
    SAME(MATMUL(&other.algo, x, x, x, x, 256), CUBLAS_STATUS_INVALID_VALUE);
    OK(api.cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, 4));
    SAME(MATMUL(&found.algo, x, x, x, NULL, 0), CUBLAS_STATUS_INVALID_VALUE);
    SAME(HEURISTIC(big, b, d), CUBLAS_STATUS_INVALID_VALUE);
    OK(api.cublasLtMatrixLayoutDestroy(a));
    SAME(api.cublasLtMatrixLayoutDestroy(a), CUBLAS_STATUS_INVALID_VALUE);
    SAME(HEURISTIC(a, b, d), CUBLAS_STATUS_INVALID_VALUE);
    OK(api.cuCtxSynchronize());
    OK(api.cuCtxSetCurrent(contexts[1]));
    SAME(MATMUL(NULL, x, x, x, NULL, 0), CUBLAS_STATUS_INVALID_VALUE);
    OK(api.cublasLtDestroy(lt));
    SAME(api.cublasLtDestroy(lt), CUBLAS_STATUS_INVALID_VALUE);
}

/* float32 is strict unless TF32 is asked for: 1 + 2**-12 does not survive ten bits of mantissa */
static void
test_tf32(void)
{
    start();
    CUdeviceptr p = alloc(12);
    float x = 1.0f + 0x1p-12f, one = 1, zero = 0;
    cublasLtHandle_t lt = NULL;
    cublasLtMatrixLayout_t layout = NULL;
    OK(api.cuMemcpyHtoDAsync_v2(p, &x, 4, NULL));
    OK(api.cuMemcpyHtoDAsync_v2(p + 4, &one, 4, NULL));
    OK(api.cublasLtCreate(&lt));
    OK(api.cublasLtMatrixLayoutCreate(&layout, CUDA_R_32F, 1, 1, 1));
    for (int tf32 = 0; tf32 < 2; tf32++) {
        cublasLtMatmulDesc_t desc = NULL;
        OK(api.cublasLtMatmulDescCreate(&desc, tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUDA_R_32F));
        OK(api.cublasLtMatmul(lt, desc, &one, (void *)(uintptr_t)p, layout, (void *)(uintptr_t)(p + 4), layout, &zero,
                              NULL, layout, (void *)(uintptr_t)(p + 8), layout, NULL, NULL, 0, NULL));
        CHECK(peek(p + 8, NULL) == (tf32 ? 1.0f : x));
    }
}

/* ---------------------------------------------------------------- cuDNN */

static cudnnBackendDescriptor_t
dnn_new(int type)
{
    cudnnBackendDescriptor_t desc = NULL;
    OK(api.cudnnBackendCreateDescriptor(type, &desc));
    return desc;
}

#define SET(desc, name, type, count, value)                                                                            \
    api.cudnnBackendSetAttribute(desc, CUDNN_ATTR_##name, CUDNN_TYPE_##type, count, value)
#define GET(desc, name, type, n, count, value)                                                                         \
    api.cudnnBackendGetAttribute(desc, CUDNN_ATTR_##name, CUDNN_TYPE_##type, n, count, value)

static cudnnBackendDescriptor_t
tensor_new(int64_t uid, int dtype, const int64_t dims[4], bool channels_last, bool is_virtual)
{
    cudnnBackendDescriptor_t t = dnn_new(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    int64_t c = dims[1], h = dims[2], w = dims[3], alignment = 16;
    const int64_t first[4] = {c * h * w, h * w, w, 1}, last[4] = {c * h * w, 1, w * c, c};
    OK(SET(t, TENSOR_DATA_TYPE, DATA_TYPE, 1, &dtype));
    OK(SET(t, TENSOR_DIMENSIONS, INT64, 4, dims));
    OK(SET(t, TENSOR_STRIDES, INT64, 4, channels_last ? last : first));
    OK(SET(t, TENSOR_UNIQUE_ID, INT64, 1, &uid));
    OK(SET(t, TENSOR_BYTE_ALIGNMENT, INT64, 1, &alignment));
    OK(SET(t, TENSOR_IS_VIRTUAL, BOOLEAN, 1, &is_virtual));
    OK(api.cudnnBackendFinalize(t));
    return t;
}

static cudnnBackendDescriptor_t
pointwise_new(int mode, cudnnBackendDescriptor_t x, cudnnBackendDescriptor_t b, cudnnBackendDescriptor_t y)
{
    cudnnBackendDescriptor_t how = dnn_new(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    cudnnBackendDescriptor_t op = dnn_new(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    int compute = CUDNN_DATA_FLOAT;
    OK(SET(how, POINTWISE_MODE, POINTWISE_MODE, 1, &mode));
    OK(SET(how, POINTWISE_MATH_PREC, DATA_TYPE, 1, &compute));
    OK(api.cudnnBackendFinalize(how));
    OK(SET(op, OPERATION_POINTWISE_PW_DESCRIPTOR, BACKEND_DESCRIPTOR, 1, &how));
    OK(SET(op, OPERATION_POINTWISE_XDESC, BACKEND_DESCRIPTOR, 1, &x));
    if (b != NULL) {
        OK(SET(op, OPERATION_POINTWISE_BDESC, BACKEND_DESCRIPTOR, 1, &b));
    }
    OK(SET(op, OPERATION_POINTWISE_YDESC, BACKEND_DESCRIPTOR, 1, &y));
    OK(api.cudnnBackendFinalize(op));
    OK(api.cudnnBackendDestroyDescriptor(how));
    return op;
}

typedef struct {
    int64_t n, c, h, w, k, r, s, groups;
    int64_t pre[2], post[2], stride[2], dilation[2];
    bool channels_last, bias, relu;
} shape;

static cudnnBackendDescriptor_t
parameters_new(const shape *q)
{
    cudnnBackendDescriptor_t conv = dnn_new(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    int compute = CUDNN_DATA_FLOAT, mode = CUDNN_CROSS_CORRELATION;
    int64_t two = 2;
    OK(SET(conv, CONVOLUTION_COMP_TYPE, DATA_TYPE, 1, &compute));
    OK(SET(conv, CONVOLUTION_CONV_MODE, CONVOLUTION_MODE, 1, &mode));
    OK(SET(conv, CONVOLUTION_SPATIAL_DIMS, INT64, 1, &two));
    OK(SET(conv, CONVOLUTION_PRE_PADDINGS, INT64, 2, q->pre));
    OK(SET(conv, CONVOLUTION_POST_PADDINGS, INT64, 2, q->post));
    OK(SET(conv, CONVOLUTION_FILTER_STRIDES, INT64, 2, q->stride));
    OK(SET(conv, CONVOLUTION_DILATIONS, INT64, 2, q->dilation));
    return conv;
}

static cudnnBackendDescriptor_t
operation_new(cudnnBackendDescriptor_t conv, cudnnBackendDescriptor_t x, cudnnBackendDescriptor_t w,
              cudnnBackendDescriptor_t y)
{
    cudnnBackendDescriptor_t op = dnn_new(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
    float one = 1, zero = 0;
    OK(SET(op, OPERATION_CONVOLUTION_FORWARD_CONV_DESC, BACKEND_DESCRIPTOR, 1, &conv));
    OK(SET(op, OPERATION_CONVOLUTION_FORWARD_X, BACKEND_DESCRIPTOR, 1, &x));
    OK(SET(op, OPERATION_CONVOLUTION_FORWARD_W, BACKEND_DESCRIPTOR, 1, &w));
    OK(SET(op, OPERATION_CONVOLUTION_FORWARD_Y, BACKEND_DESCRIPTOR, 1, &y));
    OK(SET(op, OPERATION_CONVOLUTION_FORWARD_ALPHA, FLOAT, 1, &one));
    OK(SET(op, OPERATION_CONVOLUTION_FORWARD_BETA, FLOAT, 1, &zero));
    return op;
}

static int64_t
place(const int64_t dims[4], bool channels_last, int64_t n, int64_t c, int64_t h, int64_t w)
{
    return channels_last ? ((n * dims[2] + h) * dims[3] + w) * dims[1] + c
                         : ((n * dims[1] + c) * dims[2] + h) * dims[3] + w;
}

static void
one_convolution(cudnnHandle_t dnn, shape q)
{
    int64_t p[2];
    for (int i = 0; i < 2; i++) {
        int64_t size = i ? q.w : q.h, kernel = i ? q.s : q.r;
        p[i] = (size + q.pre[i] + q.post[i] - q.dilation[i] * (kernel - 1) - 1) / q.stride[i] + 1;
    }
    const int64_t dims[4][4] = {
        {q.n, q.c, q.h, q.w}, {q.k, q.c / q.groups, q.r, q.s}, {1, q.k, 1, 1}, {q.n, q.k, p[0], p[1]}};
    int last = (q.bias ? 1 : 0) + (q.relu ? 1 : 0);
    cudnnBackendDescriptor_t x = tensor_new(1, CUDNN_DATA_FLOAT, dims[0], q.channels_last, false);
    cudnnBackendDescriptor_t w = tensor_new(2, CUDNN_DATA_FLOAT, dims[1], q.channels_last, false);
    cudnnBackendDescriptor_t b = tensor_new(3, CUDNN_DATA_FLOAT, dims[2], q.channels_last, false);
    cudnnBackendDescriptor_t y[3], ops[3], conv = parameters_new(&q);
    for (int i = 0; i <= last; i++) {
        y[i] = tensor_new(i == last ? 10 : 11 + i, CUDNN_DATA_FLOAT, dims[3], q.channels_last, i != last);
    }
    OK(api.cudnnBackendFinalize(conv));
    ops[0] = operation_new(conv, x, w, y[0]);
    OK(api.cudnnBackendFinalize(ops[0]));
    int nops = 1;
    if (q.bias) {
        ops[nops] = pointwise_new(CUDNN_POINTWISE_ADD, y[nops - 1], b, y[nops]);
        nops++;
    }
    if (q.relu) {
        ops[nops] = pointwise_new(CUDNN_POINTWISE_RELU_FWD, y[nops - 1], NULL, y[nops]);
        nops++;
    }
    cudnnBackendDescriptor_t graph = dnn_new(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    OK(SET(graph, OPERATIONGRAPH_HANDLE, HANDLE, 1, &dnn));
    OK(SET(graph, OPERATIONGRAPH_OPS, BACKEND_DESCRIPTOR, nops, ops));
    OK(api.cudnnBackendFinalize(graph));
    cudnnBackendDescriptor_t heuristics = dnn_new(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR), configs[4];
    int mode = CUDNN_HEUR_MODE_A, note = -1;
    int64_t count = 0, index = -1;
    OK(SET(heuristics, ENGINEHEUR_OPERATION_GRAPH, BACKEND_DESCRIPTOR, 1, &graph));
    OK(SET(heuristics, ENGINEHEUR_MODE, HEUR_MODE, 1, &mode));
    OK(api.cudnnBackendFinalize(heuristics));
    OK(GET(heuristics, ENGINEHEUR_RESULTS, BACKEND_DESCRIPTOR, 0, &count, NULL));
    SAME(count, 3);
    for (int i = 0; i < 4; i++) {
        configs[i] = dnn_new(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    }
    OK(GET(heuristics, ENGINEHEUR_RESULTS, BACKEND_DESCRIPTOR, 4, &count, configs));
    SAME(count, 3);
    static const int notes[3] = {CUDNN_NUMERICAL_NOTE_TENSOR_CORE, CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS, -1};
    for (int i = 0; i < 3; i++) {
        cudnnBackendDescriptor_t engine = dnn_new(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
        note = -1;
        OK(GET(configs[i], ENGINECFG_ENGINE, BACKEND_DESCRIPTOR, 1, &count, &engine));
        OK(GET(engine, ENGINE_GLOBAL_INDEX, INT64, 1, &count, &index));
        SAME(index, i);
        OK(GET(engine, ENGINE_NUMERICAL_NOTE, NUMERICAL_NOTE, CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &count, &note));
        SAME(note, notes[i]);
        SAME(count, notes[i] >= 0);
        OK(api.cudnnBackendDestroyDescriptor(engine));
    }
    cudnnBackendDescriptor_t plan = dnn_new(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    int64_t space = -1;
    OK(SET(plan, EXECUTION_PLAN_HANDLE, HANDLE, 1, &dnn));
    OK(SET(plan, EXECUTION_PLAN_ENGINE_CONFIG, BACKEND_DESCRIPTOR, 1, &configs[2]));
    OK(api.cudnnBackendFinalize(plan));
    OK(GET(plan, EXECUTION_PLAN_WORKSPACE_SIZE, INT64, 1, &count, &space));
    for (int i = 0; i < 4; i++) {
        OK(api.cudnnBackendDestroyDescriptor(configs[i]));
    }
    OK(api.cudnnBackendDestroyDescriptor(heuristics));
    OK(api.cudnnBackendDestroyDescriptor(graph));
    for (int i = 0; i < nops; i++) {
        OK(api.cudnnBackendDestroyDescriptor(ops[i]));
        OK(api.cudnnBackendDestroyDescriptor(y[i]));
    }
    OK(api.cudnnBackendDestroyDescriptor(conv));
    OK(api.cudnnBackendDestroyDescriptor(x));
    OK(api.cudnnBackendDestroyDescriptor(w));
    OK(api.cudnnBackendDestroyDescriptor(b));
    CUdeviceptr device[4], workspace = alloc((size_t)space + 1);
    float *values[4];
    for (int i = 0; i < 4; i++) {
        int64_t n = dims[i][0] * dims[i][1] * dims[i][2] * dims[i][3];
        values[i] = malloc((size_t)n * 4);
        for (int64_t j = 0; j < n; j++) {
            values[i][j] = (float)entry(j + i);
        }
        device[i] = alloc((size_t)n * 4);
        OK(api.cuMemcpyHtoDAsync_v2(device[i], values[i], (size_t)n * 4, NULL));
    }
    cudnnBackendDescriptor_t pack = dnn_new(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    const int64_t uids[4] = {1, 2, 3, 10};
    void *pointers[4];
    for (int i = 0; i < 4; i++) {
        pointers[i] = (void *)(uintptr_t)device[i];
    }
    void *at = (void *)(uintptr_t)workspace;
    OK(SET(pack, VARIANT_PACK_UNIQUE_IDS, INT64, 4, uids));
    OK(SET(pack, VARIANT_PACK_DATA_POINTERS, VOID_PTR, 4, pointers));
    OK(SET(pack, VARIANT_PACK_WORKSPACE, VOID_PTR, 1, &at));
    SAME(api.cudnnBackendExecute(dnn, plan, pack), CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED);
    OK(api.cudnnBackendFinalize(pack));
    OK(api.cudnnBackendExecute(dnn, plan, pack));
    OK(api.cudnnBackendDestroyDescriptor(plan));
    OK(api.cudnnBackendDestroyDescriptor(pack));
    int64_t n = q.n * q.k * p[0] * p[1], wrong = 0;
    float *got = malloc((size_t)n * 4);
    OK(api.cuMemcpyDtoHAsync_v2(got, device[3], (size_t)n * 4, NULL));
    for (int64_t i = 0; i < n; i++) {
        int64_t ow = i % p[1], oh = i / p[1] % p[0], k = i / p[1] / p[0] % q.k, m = i / p[1] / p[0] / q.k;
        int64_t per = q.c / q.groups;
        float sum = q.bias ? values[2][k] : 0;
        for (int64_t c = 0; c < per; c++) {
            for (int64_t r = 0; r < q.r; r++) {
                for (int64_t s = 0; s < q.s; s++) {
                    int64_t ih = oh * q.stride[0] - q.pre[0] + r * q.dilation[0],
                            iw = ow * q.stride[1] - q.pre[1] + s * q.dilation[1];
                    if (ih >= 0 && ih < q.h && iw >= 0 && iw < q.w) {
                        sum += values[0][place(dims[0], q.channels_last, m, k / (q.k / q.groups) * per + c, ih, iw)] *
                               values[1][place(dims[1], q.channels_last, k, c, r, s)];
                    }
                }
            }
        }
        sum = q.relu && sum < 0 ? 0 : sum;
        wrong += got[place(dims[3], q.channels_last, m, k, oh, ow)] != sum;
    }
    SAME(wrong, 0);
    free(got);
    for (int i = 0; i < 4; i++) {
        OK(api.cuMemFree_v2(device[i]));
        free(values[i]);
    }
    OK(api.cuMemFree_v2(workspace));
    int64_t ledger[6];
    sim_ledger(&ledger[0], &ledger[1], &ledger[2], &ledger[3], &ledger[4], &ledger[5]);
    SAME(ledger[0] + ledger[5], 0);
}

static void
test_convolutions(void)
{
    cudnnHandle_t dnn = NULL;
    start();
    OK(api.cudnnCreate(&dnn));
    const shape base = {2, 4, 9, 8, 6, 3, 3, 1, {0, 0}, {0, 0}, {1, 1}, {1, 1}, false, false, false};
    for (int i = 0; i < 64; i++) {
        shape q = base;
        q.channels_last = i & 1;
        q.bias = i & 2;
        q.relu = i & 4;
        q.groups = i & 8 ? 2 : 1;
        if (i & 16) {
            q.stride[0] = 2;
            q.pre[0] = 1;
            q.post[1] = 2;
        }
        if (i & 32) {
            q.dilation[1] = 2;
            q.r = q.s = 2;
            q.pre[1] = 3;
        }
        one_convolution(dnn, q);
    }
    shape pointwise = base;
    pointwise.r = pointwise.s = 1;
    one_convolution(dnn, pointwise);
    OK(api.cudnnDestroy(dnn));
}

static void
test_dnn_refusals(void)
{
    cudnnHandle_t dnn = NULL;
    cudnnBackendDescriptor_t none = NULL, t = NULL;
    int64_t four[4] = {1, 2, 3, 4}, zero[4] = {1, 0, 1, 1}, got[8], count = 77, odd = 3;
    int dtype = 0;
    char text[32] = "?";
    start();
    SAME(api.cudnnCreate(NULL), CUDNN_STATUS_BAD_PARAM);
    OK(api.cudnnCreate(&dnn));
    CHECK(api.cudnnGetVersion() >= 90000);
    CHECK(strcmp(api.cudnnGetErrorString(3000), "CUDNN_STATUS_NOT_SUPPORTED") == 0);
    OK(api.cudnnSetStream(dnn, stream_new(0)));
    OK(api.cudnnSetStream(dnn, NULL));
    SAME(api.cudnnSetStream(dnn, (CUstream)(uintptr_t)64), CUDNN_STATUS_BAD_PARAM);
    SAME(api.cudnnSetStream(NULL, NULL), CUDNN_STATUS_BAD_PARAM);
    SAME(api.cudnnBackendCreateDescriptor(999, &none), CUDNN_STATUS_NOT_SUPPORTED);
    api.cudnnGetLastErrorString(text, sizeof(text));
    CHECK(strlen(text) == sizeof(text) - 1);
    SAME(api.cudnnBackendCreateDescriptor(CUDNN_BACKEND_TENSOR_DESCRIPTOR, NULL), CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
    t = dnn_new(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    SAME(api.cudnnBackendFinalize(t), CUDNN_STATUS_BAD_PARAM);
    SAME(SET(t, CONVOLUTION_COMP_TYPE, DATA_TYPE, 1, &dtype), CUDNN_STATUS_BAD_PARAM);
    SAME(SET(t, TENSOR_DIMENSIONS, DATA_TYPE, 4, four), CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE);
    SAME(SET(t, TENSOR_DIMENSIONS, INT64, 0, four), CUDNN_STATUS_BAD_PARAM);
    SAME(SET(t, TENSOR_DIMENSIONS, INT64, -1, four), CUDNN_STATUS_BAD_PARAM);
    SAME(SET(t, TENSOR_DIMENSIONS, INT64, 9, four), CUDNN_STATUS_BAD_PARAM);
    SAME(SET(t, TENSOR_DIMENSIONS, INT64, 4, NULL), CUDNN_STATUS_BAD_PARAM);
    SAME(SET(t, TENSOR_DATA_TYPE, DATA_TYPE, 2, &dtype), CUDNN_STATUS_BAD_PARAM);
    SAME(SET(NULL, TENSOR_DATA_TYPE, DATA_TYPE, 1, &dtype), CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
    SAME(GET(t, TENSOR_DIMENSIONS, INT64, 8, &count, got), CUDNN_STATUS_NOT_INITIALIZED);
    SAME(count, 77);
    OK(SET(t, TENSOR_DATA_TYPE, DATA_TYPE, 1, &dtype));
    OK(SET(t, TENSOR_DIMENSIONS, INT64, 4, zero));
    OK(SET(t, TENSOR_STRIDES, INT64, 4, four));
    OK(SET(t, TENSOR_UNIQUE_ID, INT64, 1, four));
    OK(SET(t, TENSOR_BYTE_ALIGNMENT, INT64, 1, four));
    SAME(api.cudnnBackendFinalize(t), CUDNN_STATUS_BAD_PARAM);
    OK(SET(t, TENSOR_DIMENSIONS, INT64, 3, four));
    SAME(api.cudnnBackendFinalize(t), CUDNN_STATUS_BAD_PARAM);
    OK(SET(t, TENSOR_DIMENSIONS, INT64, 4, four));
    OK(SET(t, TENSOR_BYTE_ALIGNMENT, INT64, 1, &odd));
    SAME(api.cudnnBackendFinalize(t), CUDNN_STATUS_BAD_PARAM);
    OK(SET(t, TENSOR_BYTE_ALIGNMENT, INT64, 1, four));
    OK(api.cudnnBackendFinalize(t));
    SAME(api.cudnnBackendFinalize(t), CUDNN_STATUS_BAD_PARAM);
    SAME(SET(t, TENSOR_UNIQUE_ID, INT64, 1, four), CUDNN_STATUS_BAD_PARAM);
    OK(GET(t, TENSOR_DIMENSIONS, INT64, 8, &count, got));
    SAME(count, 4);
    SAME(got[3], 4);
    OK(GET(t, TENSOR_DIMENSIONS, INT64, 2, &count, got));
    SAME(count, 2);
    OK(GET(t, TENSOR_DIMENSIONS, INT64, 0, &count, NULL));
    SAME(count, 4);
    SAME(GET(t, TENSOR_DIMENSIONS, DATA_TYPE, 8, &count, got), CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE);
    /* shapes that do not fit */
    shape q = {2, 4, 8, 8, 6, 3, 3, 1, {1, 1}, {1, 1}, {1, 1}, {1, 1}, false, false, false};
    const int64_t xd[4] = {2, 4, 8, 8}, wd[4] = {6, 4, 3, 3}, yd[4] = {2, 6, 8, 8}, bad_y[4] = {2, 6, 7, 8},
                  bad_w[4] = {6, 3, 3, 3};
    cudnnBackendDescriptor_t x = tensor_new(1, 0, xd, false, false), w = tensor_new(2, 0, wd, false, false),
                             y = tensor_new(3, 0, yd, false, false);
    cudnnBackendDescriptor_t conv = parameters_new(&q), op;
    op = dnn_new(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
    SAME(SET(op, OPERATION_CONVOLUTION_FORWARD_CONV_DESC, BACKEND_DESCRIPTOR, 1, &conv),
         CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED);
    SAME(SET(op, OPERATION_CONVOLUTION_FORWARD_CONV_DESC, BACKEND_DESCRIPTOR, 1, &x), CUDNN_STATUS_BAD_PARAM);
    SAME(SET(conv, CONVOLUTION_DILATIONS, INT64, 3, four), CUDNN_STATUS_BAD_PARAM);
    OK(api.cudnnBackendFinalize(conv));
    SAME(api.cudnnBackendFinalize(op), CUDNN_STATUS_BAD_PARAM);
    SAME(api.cudnnBackendFinalize(operation_new(conv, x, w, tensor_new(3, 0, bad_y, false, false))),
         CUDNN_STATUS_BAD_PARAM);
    SAME(api.cudnnBackendFinalize(operation_new(conv, x, tensor_new(2, 0, bad_w, false, false), y)),
         CUDNN_STATUS_BAD_PARAM);
    q.pre[0] = -1;
    SAME(api.cudnnBackendFinalize(parameters_new(&q)), CUDNN_STATUS_BAD_PARAM);
    q.pre[0] = 1;
    q.stride[1] = 0;
    SAME(api.cudnnBackendFinalize(parameters_new(&q)), CUDNN_STATUS_BAD_PARAM);
    q.stride[1] = 1;
    q.dilation[0] = 0;
    SAME(api.cudnnBackendFinalize(parameters_new(&q)), CUDNN_STATUS_BAD_PARAM);
    /* types that do not go together are refused by the heuristics */
    op = operation_new(conv, x, tensor_new(2, CUDNN_DATA_HALF, wd, false, false), y);
    OK(api.cudnnBackendFinalize(op));
    cudnnBackendDescriptor_t graph = dnn_new(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR),
                             heuristics = dnn_new(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    int mode = CUDNN_HEUR_MODE_FALLBACK;
    SAME(SET(graph, OPERATIONGRAPH_OPS, BACKEND_DESCRIPTOR, 1, &x), CUDNN_STATUS_BAD_PARAM);
    SAME(api.cudnnBackendFinalize(graph), CUDNN_STATUS_BAD_PARAM);
    OK(SET(graph, OPERATIONGRAPH_OPS, BACKEND_DESCRIPTOR, 1, &op));
    OK(api.cudnnBackendFinalize(graph));
    OK(SET(heuristics, ENGINEHEUR_OPERATION_GRAPH, BACKEND_DESCRIPTOR, 1, &graph));
    OK(SET(heuristics, ENGINEHEUR_MODE, HEUR_MODE, 1, &mode));
    SAME(api.cudnnBackendFinalize(heuristics), CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE);
    /* a plan, and packs that do not fit it */
    op = operation_new(conv, x, w, y);
    OK(api.cudnnBackendFinalize(op));
    graph = dnn_new(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    OK(SET(graph, OPERATIONGRAPH_OPS, BACKEND_DESCRIPTOR, 1, &op));
    OK(api.cudnnBackendFinalize(graph));
    heuristics = dnn_new(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    OK(SET(heuristics, ENGINEHEUR_OPERATION_GRAPH, BACKEND_DESCRIPTOR, 1, &graph));
    OK(SET(heuristics, ENGINEHEUR_MODE, HEUR_MODE, 1, &mode));
    OK(api.cudnnBackendFinalize(heuristics));
    cudnnBackendDescriptor_t config = dnn_new(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR),
                             plan = dnn_new(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    SAME(SET(plan, EXECUTION_PLAN_ENGINE_CONFIG, BACKEND_DESCRIPTOR, 1, &config), CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED);
    OK(GET(heuristics, ENGINEHEUR_RESULTS, BACKEND_DESCRIPTOR, 1, &count, &config));
    SAME(count, 1);
    SAME(GET(heuristics, ENGINEHEUR_RESULTS, BACKEND_DESCRIPTOR, 1, &count, &config), CUDNN_STATUS_BAD_PARAM);
    OK(SET(plan, EXECUTION_PLAN_ENGINE_CONFIG, BACKEND_DESCRIPTOR, 1, &config));
    SAME(api.cudnnBackendFinalize(plan), CUDNN_STATUS_BAD_PARAM);
    OK(SET(plan, EXECUTION_PLAN_HANDLE, HANDLE, 1, &dnn));
    OK(api.cudnnBackendFinalize(plan));
    CUdeviceptr p = alloc(1 << 20);
    void *good = (void *)(uintptr_t)p, *bad = (void *)(uintptr_t)(p + 4);
    const struct {
        int64_t uids[3];
        void *pointers[3], *workspace;
        cudnnStatus_t status;
    } packs[] = {
        {{1, 2, 3}, {good, good, (char *)good + 65536}, (char *)good + 131072, CUDNN_STATUS_SUCCESS},
        {{1, 2, 4}, {good, good, good}, good, CUDNN_STATUS_BAD_PARAM},
        {{1, 2, 3}, {good, NULL, good}, good, CUDNN_STATUS_BAD_PARAM},
        {{1, 2, 3}, {good, bad, good}, good, CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER},
        {{1, 2, 3}, {good, good, good}, NULL, CUDNN_STATUS_BAD_PARAM},
    };
    for (size_t i = 0; i < sizeof(packs) / sizeof(packs[0]); i++) {
        cudnnBackendDescriptor_t pack = dnn_new(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
        OK(SET(pack, VARIANT_PACK_UNIQUE_IDS, INT64, 3, packs[i].uids));
        OK(SET(pack, VARIANT_PACK_DATA_POINTERS, VOID_PTR, 2, packs[i].pointers));
        SAME(api.cudnnBackendFinalize(pack), CUDNN_STATUS_BAD_PARAM);
        OK(SET(pack, VARIANT_PACK_DATA_POINTERS, VOID_PTR, 3, packs[i].pointers));
        OK(SET(pack, VARIANT_PACK_WORKSPACE, VOID_PTR, 1, &packs[i].workspace));
        OK(api.cudnnBackendFinalize(pack));
        SAME(api.cudnnBackendExecute(dnn, plan, pack), packs[i].status);
        SAME(api.cudnnBackendExecute(dnn, pack, plan), CUDNN_STATUS_BAD_PARAM);
        SAME(api.cudnnBackendExecute(NULL, plan, pack), CUDNN_STATUS_BAD_PARAM);
    }
    OK(api.cuCtxSynchronize());
    SAME(api.cudnnBackendDestroyDescriptor(NULL), CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
    OK(api.cudnnBackendDestroyDescriptor(t));
    SAME(api.cudnnBackendDestroyDescriptor(t), CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
    OK(api.cudnnDestroy(NULL));
    OK(api.cudnnDestroy(dnn));
    SAME(api.cudnnDestroy(dnn), CUDNN_STATUS_BAD_PARAM);
}

/* ---------------------------------------------------------------- all of them */

static const struct {
    const char *name;
    void (*run)(void);
} sections[] = {
#define SECTION(name)                                                                                                  \
    {                                                                                                                  \
#name, test_##name                                                                                             \
    }
    SECTION(before_init),   SECTION(devices),      SECTION(allocation),  SECTION(pool),      SECTION(copies),
    SECTION(streams),       SECTION(events),       SECTION(launches),    SECTION(overrun),   SECTION(bad_address),
    SECTION(freed_address), SECTION(other_device), SECTION(processes),   SECTION(no_memory), SECTION(nvrtc),
    SECTION(threads),       SECTION(products),     SECTION(lt_refusals), SECTION(tf32),      SECTION(convolutions),
    SECTION(dnn_refusals),
#undef SECTION
};

int
main(void)
{
    int all_passed = 0, all_failed = 0;
    for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++) {
        int counts[2] = {0, 1}, ends[2], status = 0;
        if (pipe(ends) != 0) {
            return 2;
        }
        pid_t pid = fork();
        if (pid == 0) {
            sections[i].run();
            counts[0] = passed;
            counts[1] = failed;
            exit(write(ends[1], counts, sizeof(counts)) == (ssize_t)sizeof(counts) ? 0 : 2);
        }
        close(ends[1]);
        if (read(ends[0], counts, sizeof(counts)) != (ssize_t)sizeof(counts)) {
            fprintf(stderr, "test_sim.c: %s did not come to its end\n", sections[i].name);
        }
        close(ends[0]);
        waitpid(pid, &status, 0);
        all_failed += status != 0 && counts[1] == 0;
        all_passed += counts[0];
        all_failed += counts[1];
    }
    printf("%d passed, %d failed\n", all_passed, all_failed);
    return all_failed != 0;
}
