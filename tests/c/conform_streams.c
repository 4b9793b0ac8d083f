/* conform_streams.c: streams, events, modules, launches, and a device that is lost. */
#include "conform.h"

void
conform_streams(void)
{
    CUstream none = NULL;
    start();
    IS("cuStreamCreate to NULL", api.cuStreamCreate(NULL, 0), CUDA_ERROR_INVALID_VALUE);
    IS("cuStreamCreate with unknown flags", api.cuStreamCreate(&none, 16), CUDA_ERROR_INVALID_VALUE);
    CUstream a = stream_new(), b = stream_new(), blocking = NULL;
    HOLDS("streams differ", a != NULL && b != NULL && a != b);
    OK("a blocking stream", api.cuStreamCreate(&blocking, 0));
    CUdeviceptr p = allocate(16);
    OK("cuStreamQuery of an idle stream", api.cuStreamQuery(a));
    OK("cuStreamQuery of the NULL stream", api.cuStreamQuery(NULL));
    OK("cuStreamSynchronize of an idle stream", api.cuStreamSynchronize(a));
    OK("zeros to start from", api.cuMemsetD8Async(p, 0, 16, a));
    OK("they are there", api.cuStreamSynchronize(a));
    keep_busy(a);
    IS("cuStreamQuery of a busy stream", api.cuStreamQuery(a), CUDA_ERROR_NOT_READY);
    OK("a launch behind it", launch(fill, p, 4, 1, a));
    IS("another stream does not wait", peek(p, b), 0);
    OK("cuStreamSynchronize of a busy stream", api.cuStreamSynchronize(a));
    OK("cuStreamQuery after waiting", api.cuStreamQuery(a));
    IS("what was waited for is done", peek(p, b), 1);
    OK("a fill", launch(fill, p, 4, 5, a));
    OK("then an addition", launch(add, p, 4, 2, a));
    IS("a stream keeps its order", peek(p, a), 7);
    keep_busy(blocking);
    OK("a fill of a blocking stream", launch(fill, p, 4, 4, blocking));
    OK("an addition of the NULL stream", launch(add, p, 4, 1, NULL));
    OK("another of the blocking stream", launch(add, p, 4, 1, blocking));
    IS("the NULL stream and blocking streams keep one order", peek(p, blocking), 6);
    keep_busy(a);
    OK("a fill of a non-blocking stream", launch(fill, p, 4, 9, a));
    IS("the NULL stream does not wait for a non-blocking one", peek(p, NULL), 6);
    OK("cuCtxSynchronize", api.cuCtxSynchronize());
    IS("cuCtxSynchronize waits for all streams", peek(p, b), 9);
    for (int i = 0; i < 1500; i++) {
        conform_need("many launches", launch(add, p, 4, 1, a) == 0);
    }
    IS("a long queue is worked off in order", peek(p, a), 1509);
    keep_busy(a);
    OK("a fill before the stream is destroyed", launch(fill, p, 4, 3, a));
    OK("cuStreamDestroy of a busy stream", api.cuStreamDestroy_v2(a));
    OK("everything is waited for", api.cuCtxSynchronize());
    IS("a destroyed stream finishes its work", peek(p, b), 3);
    OK("cuStreamDestroy of an idle stream", api.cuStreamDestroy_v2(b));
}

void
conform_events(void)
{
    CUevent e = NULL, f = NULL, untimed = NULL;
    float ms = -1;
    start();
    CUstream a = stream_new(), b = stream_new();
    CUdeviceptr p = allocate(16);
    IS("cuEventCreate to NULL", api.cuEventCreate(NULL, 0), CUDA_ERROR_INVALID_VALUE);
    IS("cuEventCreate with unknown flags", api.cuEventCreate(&e, 64), CUDA_ERROR_INVALID_VALUE);
    OK("cuEventCreate", api.cuEventCreate(&e, 0));
    OK("a second event", api.cuEventCreate(&f, 0));
    OK("an event without time", api.cuEventCreate(&untimed, CU_EVENT_DISABLE_TIMING));
    OK("cuEventQuery of an event not recorded", api.cuEventQuery(e));
    OK("cuEventSynchronize of an event not recorded", api.cuEventSynchronize(e));
    OK("cuStreamWaitEvent of an event not recorded", api.cuStreamWaitEvent(a, e, 0));
    IS("cuEventElapsedTime of events not recorded", api.cuEventElapsedTime(&ms, e, f), CUDA_ERROR_INVALID_HANDLE);
    OK("zeros for the events", api.cuMemsetD8Async(p, 0, 16, a));
    OK("cuEventRecord", api.cuEventRecord(e, a));
    keep_busy(a);
    OK("a fill before an event", launch(fill, p, 4, 1, a));
    OK("cuEventRecord behind work", api.cuEventRecord(f, a));
    IS("cuEventQuery of an event to come", api.cuEventQuery(f), CUDA_ERROR_NOT_READY);
    IS("cuEventElapsedTime to an event to come", api.cuEventElapsedTime(&ms, e, f), CUDA_ERROR_NOT_READY);
    OK("cuStreamWaitEvent", api.cuStreamWaitEvent(b, f, 0));
    OK("an addition in the stream that waits", launch(add, p, 4, 1, b));
    IS("the waiting stream comes after the event", peek(p, b), 2);
    OK("cuEventSynchronize", api.cuEventSynchronize(f));
    OK("cuEventQuery of an event that has come", api.cuEventQuery(f));
    OK("cuEventElapsedTime", api.cuEventElapsedTime(&ms, e, f));
    HOLDS("the time is not negative", ms >= 0 && ms < 60000);
    IS("cuEventElapsedTime to NULL", api.cuEventElapsedTime(NULL, e, f), CUDA_ERROR_INVALID_HANDLE);
    OK("an event without time is recorded", api.cuEventRecord(untimed, a));
    OK("an event without time is waited for", api.cuEventSynchronize(untimed));
    IS("cuEventElapsedTime without time", api.cuEventElapsedTime(&ms, e, untimed), CUDA_ERROR_INVALID_HANDLE);
    IS("cuStreamWaitEvent with unknown flags", api.cuStreamWaitEvent(b, e, 8), CUDA_ERROR_INVALID_VALUE);
    /* the last record before the wait counts */
    OK("a fill of 10", launch(fill, p, 4, 10, a));
    OK("an event after 10", api.cuEventRecord(f, a));
    OK("the other stream waits for 10", api.cuStreamWaitEvent(b, f, 0));
    OK("the stream reads 10", api.cuStreamSynchronize(b));
    keep_busy(a);
    OK("a fill of 11", launch(fill, p, 4, 11, a));
    OK("the event is recorded again", api.cuEventRecord(f, a));
    IS("the earlier wait was for the earlier record", peek(p, b), 10);
    OK("the other stream waits for 11", api.cuStreamWaitEvent(b, f, 0));
    OK("cuEventDestroy of an event that is waited for", api.cuEventDestroy_v2(f));
    IS("the wait outlives the event", peek(p, b), 11);
    /* in turns */
    CUevent x = NULL, y = NULL;
    OK("an event of a", api.cuEventCreate(&x, CU_EVENT_DISABLE_TIMING));
    OK("an event of b", api.cuEventCreate(&y, CU_EVENT_DISABLE_TIMING));
    OK("a fill of 0", launch(fill, p, 4, 0, a));
    for (int i = 0; i < 100; i++) {
        conform_need("streams wait for each other in turns",
                     api.cuEventRecord(x, a) == 0 && api.cuStreamWaitEvent(b, x, 0) == 0 &&
                         launch(add, p, 4, 1, b) == 0 && api.cuEventRecord(y, b) == 0 &&
                         api.cuStreamWaitEvent(a, y, 0) == 0 && launch(add, p, 4, 1, a) == 0);
    }
    IS("no turn is lost", peek(p, a), 200);
    /* an event of all streams */
    CUcontext context = NULL;
    OK("the context", api.cuCtxGetCurrent(&context));
    IS("cuCtxRecordEvent of no context", api.cuCtxRecordEvent(NULL, x), CUDA_ERROR_INVALID_CONTEXT);
    IS("cuCtxRecordEvent of no event", api.cuCtxRecordEvent(context, NULL), CUDA_ERROR_INVALID_HANDLE);
    OK("a fill of 20 before an event of the context", launch(fill, p, 4, 20, a));
    OK("cuCtxRecordEvent", api.cuCtxRecordEvent(context, x));
    OK("a stream waits for the context", api.cuStreamWaitEvent(b, x, 0));
    OK("an addition behind the context", launch(add, p, 4, 1, b));
    IS("the wait is for every stream", peek(p, b), 21);
    OK("cuEventSynchronize of an event of the context", api.cuEventSynchronize(x));
    OK("cuEventQuery of an event of the context", api.cuEventQuery(x));
    OK("an event in the NULL stream", api.cuEventRecord(e, NULL));
    OK("it comes", api.cuEventSynchronize(e));
    OK("cuEventDestroy", api.cuEventDestroy_v2(e));
}

void
conform_modules(void)
{
    CUmodule module = NULL;
    CUfunction function = NULL;
    start();
    IS("cuModuleLoadData of NULL", api.cuModuleLoadData(&module, NULL), CUDA_ERROR_INVALID_VALUE);
    IS("cuModuleLoadData of no image", api.cuModuleLoadData(&module, "this is no image of a module"),
       CUDA_ERROR_INVALID_IMAGE);
    HOLDS("a refused cuModuleLoadData leaves its answer", module == NULL);
    nvrtcProgram program = NULL;
    size_t size = 0;
    int major = 0, minor = 0, value = 0;
    char arch[40], *cubin = NULL;
    conform_args none = {0};
    void *nothing[] = {&none};
    const char *const options[] = {arch};
    (void)api.cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0);
    (void)api.cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0);
    snprintf(arch, sizeof(arch), "--gpu-architecture=sm_%d%d", major, minor);
    OK("a program for this device",
       api.nvrtcCreateProgram(&program, "extern \"C\" __global__ void k_conform_fill() { }", "a.cu", 0, NULL, NULL));
    OK("it compiles", api.nvrtcCompileProgram(program, 1, options));
    OK("its cubin has a size", api.nvrtcGetCUBINSize(program, &size));
    cubin = malloc(size);
    OK("its cubin", api.nvrtcGetCUBIN(program, cubin));
    OK("cuModuleLoadData", api.cuModuleLoadData(&module, cubin));
    OK("cuModuleGetFunction", api.cuModuleGetFunction(&function, module, "k_conform_fill"));
    HOLDS("the function is there", function != NULL);
    OK("the most threads of a block",
       api.cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function));
    HOLDS("a block has threads", value >= 64 && value <= 1024);
    OK("room for more shared memory",
       api.cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 60000));
    OK("that room", api.cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, function));
    IS("that room is kept", value, 60000);
    OK("a launch with that much", api.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 60000, NULL, nothing, NULL));
    IS("with a byte more", api.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 60001, NULL, nothing, NULL),
       CUDA_ERROR_INVALID_VALUE);
    OK("the most shared memory",
       api.cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 0));
    HOLDS("a block may have more than 60000 bytes", value > 60000);
    OK("all of it", api.cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, value));
    IS("a byte more than there is",
       api.cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, value + 1),
       CUDA_ERROR_INVALID_VALUE);
    IS("cuModuleGetFunction of no kernel", api.cuModuleGetFunction(&function, module, "k_nothing"),
       CUDA_ERROR_NOT_FOUND);
    IS("cuModuleGetFunction of NULL", api.cuModuleGetFunction(&function, module, NULL), CUDA_ERROR_INVALID_VALUE);
    IS("cuModuleGetFunction to NULL", api.cuModuleGetFunction(NULL, module, "k_conform_fill"),
       CUDA_ERROR_INVALID_VALUE);
    IS("cuModuleGetFunction of no module", api.cuModuleGetFunction(&function, NULL, "k_conform_fill"),
       CUDA_ERROR_INVALID_HANDLE);
    OK("cuModuleUnload", api.cuModuleUnload(module));
    OK("nothing is left of it", api.cuCtxSynchronize());
    (void)api.nvrtcDestroyProgram(&program);
    free(cubin);
}

void
conform_launches(void)
{
    start();
    CUdeviceptr p = allocate(4096 * 4);
    conform_args args = {p, 4096, 1};
    void *parameters[] = {&args};
    static const struct {
        const char *name;
        unsigned grid[3], block[3], shared;
    } refused[] = {
        {"a grid of 0", {0, 1, 1}, {1, 1, 1}, 0},
        {"a grid of 1 x 0", {1, 0, 1}, {1, 1, 1}, 0},
        {"a grid of 1 x 1 x 0", {1, 1, 0}, {1, 1, 1}, 0},
        {"a block of 0", {1, 1, 1}, {0, 1, 1}, 0},
        {"a block of 1 x 0", {1, 1, 1}, {1, 0, 1}, 0},
        {"a block of 1 x 1 x 0", {1, 1, 1}, {1, 1, 0}, 0},
        {"a block of 1025", {1, 1, 1}, {1025, 1, 1}, 0},
        {"a block of 32 x 33", {1, 1, 1}, {32, 33, 1}, 0},
        {"a block of 1 x 1 x 65", {1, 1, 1}, {1, 1, 65}, 0},
        {"a grid of 2^31", {0x80000000u, 1, 1}, {1, 1, 1}, 0},
        {"a grid of 1 x 65536", {1, 65536, 1}, {1, 1, 1}, 0},
        {"a grid of 1 x 1 x 65536", {1, 1, 65536}, {1, 1, 1}, 0},
        {"1 GiB of shared memory", {1, 1, 1}, {1, 1, 1}, 1u << 30},
    };
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        const unsigned *g = refused[i].grid, *b = refused[i].block;
        IS(refused[i].name,
           api.cuLaunchKernel(fill, g[0], g[1], g[2], b[0], b[1], b[2], refused[i].shared, NULL, parameters, NULL),
           CUDA_ERROR_INVALID_VALUE);
    }
    IS("a launch of no function", api.cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL),
       CUDA_ERROR_INVALID_HANDLE);
    OK("refused launches lose nothing", api.cuCtxSynchronize());
    OK("a launch of one thread", api.cuLaunchKernel(fill, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
    IS("one thread does it all", peek(p + 4095 * 4, NULL), 1);
    args.value = 2;
    OK("a launch of many blocks", api.cuLaunchKernel(fill, 16, 1, 1, 256, 1, 1, 0, NULL, parameters, NULL));
    args.value = 77; /* copied at the call */
    IS("many blocks do it once", peek(p + 4095 * 4, NULL), 2);
    OK("more threads than work", api.cuLaunchKernel(add, 64, 1, 1, 256, 1, 1, 0, NULL, parameters, NULL));
    IS("spare threads do nothing", peek(p + 4095 * 4, NULL), 79);
    IS("a block of more threads than the kernel is for",
       api.cuLaunchKernel(fill, 1, 1, 1, 512, 1, 1, 0, NULL, parameters, NULL), CUDA_ERROR_INVALID_VALUE);
}

/* Last of its process: nothing works after it. */
void
conform_lost_device(void)
{
    CUdeviceptr p = 0;
    CUcontext current = NULL;
    float x = 0;
    start();
    CUstream stream = stream_new();
    OK("a kernel with a wrong address is launched", launch(fill, 4096, 4, 1, stream));
    IS("the wait for it", api.cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
    IS("the next wait", api.cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
    IS("cuCtxSynchronize of a lost device", api.cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
    IS("cuMemAlloc on a lost device", api.cuMemAlloc_v2(&p, 4), CUDA_ERROR_ILLEGAL_ADDRESS);
    IS("a copy on a lost device", api.cuMemcpyDtoHAsync_v2(&x, 4096, 4, stream), CUDA_ERROR_ILLEGAL_ADDRESS);
    IS("a launch on a lost device", launch(fill, 4096, 4, 1, stream), CUDA_ERROR_ILLEGAL_ADDRESS);
    OK("cuCtxGetCurrent of a lost device", api.cuCtxGetCurrent(&current));
    HOLDS("its context is still current", current == context);
}
