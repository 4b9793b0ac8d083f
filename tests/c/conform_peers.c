/* conform_peers.c: two devices, and threads that use one each. Expected, until a machine with two GPUs has run it; with
 * fewer there is nothing to see. */
#include "conform.h"

enum { N = 256 };

typedef struct {
    CUcontext context;
    int ordinal;
    CUresult without; /* what the thread may do before it has a context */
    int wrong;
} worker;

/* Its context is its own: what it allocates is on its device, whatever other threads do. */
static void *
work(void *argument)
{
    worker *w = argument;
    CUdeviceptr p = 0;
    CUstream stream = NULL;
    w->without = api.cuMemAlloc_v2(&p, N);
    w->wrong += api.cuCtxSetCurrent(w->context) != 0 || api.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) != 0;
    for (int i = 0; i < 100; i++) {
        int ordinal = -1;
        float x = (float)(i + w->ordinal), y = -1;
        w->wrong += api.cuMemAllocAsync(&p, N, stream) != 0 || api.cuMemcpyHtoDAsync_v2(p, &x, 4, stream) != 0 ||
                    api.cuMemcpyDtoHAsync_v2(&y, p, 4, stream) != 0 || y != x ||
                    api.cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, p) != 0 ||
                    ordinal != w->ordinal || api.cuMemFreeAsync(p, stream) != 0;
    }
    w->wrong += api.cuStreamSynchronize(stream) != 0 || api.cuStreamDestroy_v2(stream) != 0;
    return NULL;
}

static void
threads(const CUcontext contexts[2])
{
    worker workers[4];
    pthread_t ids[4];
    int wrong = 0, without = 0;
    for (int i = 0; i < 4; i++) {
        workers[i] = (worker){.context = contexts[i % 2], .ordinal = i % 2};
        conform_need("threads can be had", pthread_create(&ids[i], NULL, work, &workers[i]) == 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(ids[i], NULL);
        wrong += workers[i].wrong;
        without += workers[i].without == CUDA_ERROR_INVALID_CONTEXT;
    }
    IS("a new thread has no context", without, 4);
    IS("threads on two devices do not meet", wrong, 0);
}

static void
access_of(const CUcontext contexts[2])
{
    int there = -1, back = -1;
    OK("the first may reach the second or not", api.cuDeviceCanAccessPeer(&there, 0, 1));
    OK("and the second the first", api.cuDeviceCanAccessPeer(&back, 1, 0));
    HOLDS("which is the same", there == back && (there == 0 || there == 1));
    IS("access where there is none is refused, else granted", api.cuCtxEnablePeerAccess(contexts[1], 0),
       there ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
    IS("access is granted once", api.cuCtxEnablePeerAccess(contexts[1], 0),
       there ? CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED : CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
    IS("access to no context", api.cuCtxEnablePeerAccess(NULL, 0), CUDA_ERROR_INVALID_CONTEXT);
}

void
conform_peers(void)
{
    CUcontext contexts[2];
    CUdeviceptr p[2];
    CUstream streams[2];
    CUevent events[2];
    int n = 0;
    float four = 4, got = 0, milliseconds = 0;
    start();
    if (api.cuDeviceGetCount(&n) != 0 || n < 2) {
        return;
    }
    for (int i = 1; i >= 0; i--) {
        conform_need("both devices can be used", api.cuDevicePrimaryCtxRetain(&contexts[i], i) == 0 &&
                                                     api.cuCtxSetCurrent(contexts[i]) == 0 &&
                                                     api.cuEventCreate(&events[i], 0) == 0);
        p[i] = allocate(N);
        streams[i] = stream_new();
    }
    OK("bytes for the first", api.cuMemcpyHtoDAsync_v2(p[0], &four, 4, streams[0]));
    OK("they are there", api.cuStreamSynchronize(streams[0]));
    OK("cuMemcpyPeerAsync needs no access", api.cuMemcpyPeerAsync(p[1], contexts[1], p[0], contexts[0], 4, streams[0]));
    IS("a launch in the other's stream", launch(fill, p[0], 1, 1, streams[1]), CUDA_ERROR_INVALID_HANDLE);
    IS("an event in the other's stream", api.cuEventRecord(events[0], streams[1]), CUDA_ERROR_INVALID_HANDLE);
    OK("an event in its own", api.cuEventRecord(events[0], streams[0]));
    OK("another device may wait for it", api.cuStreamWaitEvent(streams[1], events[0], 0));
    access_of(contexts);
    OK("the second device", api.cuCtxSetCurrent(contexts[1]));
    OK("its bytes", api.cuMemcpyDtoHAsync_v2(&got, p[1], 4, streams[1]));
    OK("have come", api.cuStreamSynchronize(streams[1]));
    IS("from the first", got, 4);
    OK("an event of the second", api.cuEventRecord(events[1], streams[1]));
    OK("it has come", api.cuEventSynchronize(events[1]));
    IS("no time passes between devices", api.cuEventElapsedTime(&milliseconds, events[0], events[1]),
       CUDA_ERROR_INVALID_HANDLE);
    IS("a launch of the other's function", launch(fill, p[1], 1, 1, streams[1]), CUDA_ERROR_INVALID_HANDLE);
    threads(contexts);
    OK("the first is as it was", api.cuCtxSetCurrent(contexts[0]));
    IS("with its bytes", peek(p[0], streams[0]), 4);
}
