/* test_sim_streams.c: streams, events, launches, lost devices, processes, threads and NVRTC. */
#include "test_sim.h"

#include "../../csrc/sim/host.h"

void
test_streams(void)
{
    CUstream s = NULL;
    float *seen;
    start();
    SAME(api.cuStreamCreate(NULL, 0), CUDA_ERROR_INVALID_VALUE);
    SAME(api.cuStreamCreate(&s, 16), CUDA_ERROR_INVALID_VALUE);
    CHECK(s == (CUstream)(intptr_t)-1);
    /* priorities: 0 is the lowest; either end may be left out; one outside is taken as the nearest */
    int least = 7, greatest = 7;
    OK(api.cuCtxGetStreamPriorityRange(&least, NULL));
    OK(api.cuCtxGetStreamPriorityRange(NULL, &greatest));
    CHECK(least == 0 && greatest < 0);
    OK(api.cuCtxGetStreamPriorityRange(NULL, NULL));
    SAME(api.cuStreamCreateWithPriority(NULL, 0, 0), CUDA_ERROR_INVALID_VALUE);
    SAME(api.cuStreamCreateWithPriority(&s, 16, 0), CUDA_ERROR_INVALID_VALUE);
    CHECK(s == (CUstream)(intptr_t)-1);
    OK(api.cuStreamCreateWithPriority(&s, CU_STREAM_NON_BLOCKING, greatest - 100));
    OK(api.cuStreamQuery(s));
    OK(api.cuStreamDestroy_v2(s));
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

void
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
    SAME(api.cuEventElapsedTime(NULL, e, f), CUDA_ERROR_INVALID_HANDLE);
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
    /* times of two devices have nothing in common; an event of no stream, a stream of no device */
    CUevent other = NULL;
    OK(api.cuEventCreate(&other, CU_EVENT_BLOCKING_SYNC));
    OK(api.cuEventRecord(other, c));
    OK(api.cuEventSynchronize(other));
    OK(api.cuEventSynchronize(e));
    SAME(api.cuEventElapsedTime(&ms, e, other), CUDA_ERROR_INVALID_HANDLE);
    SAME(api.cuEventRecord(other, (CUstream)(void *)far), CUDA_ERROR_INVALID_HANDLE);
    SAME(api.cuEventRecord((CUevent)(void *)c, c), CUDA_ERROR_INVALID_HANDLE);
    SAME(api.cuStreamWaitEvent(c, (CUevent)(void *)c, 0), CUDA_ERROR_INVALID_HANDLE);
    SAME(api.cuStreamWaitEvent((CUstream)(void *)other, other, 0), CUDA_ERROR_INVALID_HANDLE);
    /* what a stream that is gone was waiting for, and what waits for it, goes on */
    OK(api.cuCtxSetCurrent(contexts[0]));
    OK(launch(fill, p, 4, 70, a));
    OK(api.cuEventRecord(x, a));
    OK(api.cuStreamWaitEvent(b, x, 0));
    OK(launch(add, p, 4, 1, b));
    OK(api.cuEventRecord(y, b));
    OK(api.cuStreamDestroy_v2(b));
    OK(api.cuEventQuery(y));
    OK(api.cuEventSynchronize(y));
    SAME(peek(p, a), 71);
    /* a free block is reused only behind the release in its stream: what other streams do must be waited for */
    CUdeviceptr used = 0;
    CUstream late = stream_new(CU_STREAM_NON_BLOCKING);
    OK(api.cuMemAllocAsync(&used, 64, a));
    OK(launch(fill, used, 4, 3, a));
    OK(api.cuEventRecord(x, a));
    OK(api.cuStreamWaitEvent(late, x, 0));
    OK(api.cuMemcpyDtoDAsync_v2(p, used, 16, late));
    OK(api.cuEventRecord(y, late));
    OK(api.cuStreamWaitEvent(a, y, 0));
    OK(api.cuMemFreeAsync(used, a));
    OK(api.cuStreamSynchronize(a));
    SAME(peek(p, late), 3);
}

void
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
    SAME(api.cuMemAlloc_v2(&(CUdeviceptr){0}, 4), CUDA_ERROR_ILLEGAL_ADDRESS);
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

/* Where the memory of a block is closed, an access past the array stops the program, though it stays in the block. */
#if defined(__SANITIZE_ADDRESS__)
void
test_overrun(void)
{
    int status = 0;
    for (int past = 0; past < 2; past++) {
        pid_t child = fork();
        if (child == 0) {
            CHECK(freopen("/dev/null", "w", stderr) != NULL);
            start();
            CUdeviceptr p = alloc(1000);
            OK(launch(past ? overrun : fill, p, 16, 1, NULL));
            OK(api.cuCtxSynchronize());
            _exit(0);
        }
        SAME(waitpid(child, &status, 0), child);
        SAME(WIFEXITED(status) && WEXITSTATUS(status) == 0, !past);
    }
}
#else
void
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
#endif

void
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

void
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

void
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

void
test_processes(void)
{
    start();
    void *p = (void *)(uintptr_t)alloc(4096), *stream = stream_new(0);
    SAME(fate(read_byte, &p), 1000 + SIGSEGV);
    SAME(fate(read_byte, &stream), 1000 + SIGSEGV);
    SAME(fate(use_cuda, NULL), 42);
    OK(api.cuCtxSynchronize());
}

void
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

/* A declaration that no limit is for: nothing is added, also where sanitizers look at memcpy. */
void
test_source(void)
{
    sim_text out = {0}, log = {0};
    CHECK(sim_source_prepare("void f() { __shared__ float (*r)[2]; }", "x", "k", &out, &log));
    CHECK(!out.failed && strstr(out.data, "__shared__ float (*r)[2]; }") != NULL && log.used == 0);
    dt_free(out.data);
    dt_free(log.data);
}

void
test_nvrtc(void)
{
    nvrtcProgram program = NULL;
    size_t size = 0;
    char buffer[256] = "?";
    int major = 0, minor = -1;
    start();
    OK(api.nvrtcVersion(&major, &minor));
    SAME(major, 13);
    CHECK(api.nvrtcVersion(NULL, &minor) != 0);
    CHECK(api.nvrtcCreateProgram(&program, NULL, "x", 0, NULL, NULL) != 0);
    OK(api.nvrtcCreateProgram(&program, "nothing to see", "x", 0, NULL, NULL));
    SAME(api.nvrtcCompileProgram(program, 0, NULL), NVRTC_ERROR_COMPILATION);
    OK(api.nvrtcGetCUBINSize(program, &size));
    SAME(size, 0);
    OK(api.nvrtcDestroyProgram(&program));
    CHECK(program == NULL);
    CHECK(api.nvrtcDestroyProgram(&program) != 0);
    const char *const wrong[] = {"--gpu-architecture=sm_52"}, *const unknown[] = {"--gpu-architecture=sm_90x"};
    const char *const right[] = {"--gpu-architecture=sm_90"}, *const own[] = {"--gpu-architecture=sm_90a"};
    OK(api.nvrtcCreateProgram(&program, "DT_KERNEL(k, int, a) {}\n#include \"y\"\n", "x", 0, NULL, NULL));
    SAME(api.nvrtcCompileProgram(program, 0, NULL), NVRTC_ERROR_COMPILATION);
    OK(api.nvrtcDestroyProgram(&program));
    OK(api.nvrtcCreateProgram(&program, "#define DT_ALONE_k_test_fill ,\nDT_KERNEL(k, int, a) {}", "x", 0, NULL, NULL));
    SAME(api.nvrtcCompileProgram(program, 1, wrong), NVRTC_ERROR_INVALID_OPTION);
    SAME(api.nvrtcCompileProgram(program, 1, unknown), NVRTC_ERROR_INVALID_OPTION);
    OK(api.nvrtcCompileProgram(program, 1, own));
    OK(api.nvrtcCompileProgram(program, 1, right));
    OK(api.nvrtcGetProgramLogSize(program, &size));
    SAME(size, 1);
    OK(api.nvrtcGetProgramLog(program, buffer));
    SAME(buffer[0], 0);
    OK(api.nvrtcGetCUBINSize(program, &size));
    CHECK(size > 0 && size <= sizeof(buffer));
    OK(api.nvrtcGetCUBIN(program, buffer));
    CUmodule made = NULL;
    CUfunction function = NULL;
    OK(api.cuModuleLoadData(&made, buffer));
    OK(api.cuModuleGetFunction(&function, made, "k_test_fill"));
    SAME(api.cuModuleGetFunction(&function, made, "k_test_add"), CUDA_ERROR_NOT_FOUND);
    buffer[size - 1] ^= 1;
    SAME(api.cuModuleLoadData(&made, buffer), CUDA_ERROR_INVALID_IMAGE);
    SAME(api.cuModuleGetFunction(&function, module, "k_test_uneven"), CUDA_ERROR_INVALID_IMAGE);
    SAME(api.cuModuleLoadData(&made, "image"), CUDA_ERROR_INVALID_IMAGE);
    SAME(api.cuModuleLoadData(&made, ".version 9.0\n.target sm_120\n"), CUDA_ERROR_NO_BINARY_FOR_GPU);
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

void
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

void
test_blocking(void)
{
    OK(setenv("CUDA_LAUNCH_BLOCKING", "1", 1));
    start();
    CUstream stream = stream_new(CU_STREAM_NON_BLOCKING);
    CUdeviceptr p = alloc(16);
    OK(launch(fill, p, 4, 3, stream));
    OK(api.cuStreamQuery(stream));
    SAME(peek(p, NULL), 3);
    SAME(launch(fill, p, 1 << 20, 3, stream), CUDA_ERROR_ILLEGAL_ADDRESS);
}
