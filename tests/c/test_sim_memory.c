/* test_sim_memory.c: initialisation, devices, allocation, pools and copies. */
#include "test_sim.h"

void
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
    SAME(p, 0);
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

void
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
    SAME(free_bytes, ROOM);
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
    SAME(api.cuCtxEnablePeerAccess(contexts[0], 0), CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
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

void
test_allocation(void)
{
    CUdeviceptr p = 7, q;
    size_t free_bytes, total;
    start();
    SAME(api.cuMemAlloc_v2(&p, 0), CUDA_ERROR_INVALID_VALUE);
    SAME(api.cuMemAlloc_v2(NULL, 4), CUDA_ERROR_INVALID_VALUE);
    SAME(api.cuMemAlloc_v2(&p, MEMORY + 1), CUDA_ERROR_OUT_OF_MEMORY);
    SAME(api.cuMemAlloc_v2(&p, SIZE_MAX), CUDA_ERROR_OUT_OF_MEMORY);
    SAME(p, 0);
    p = alloc(ROOM);
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
    SAME(free_bytes, ROOM);
    OK(api.cuMemFree_v2(alloc(ROOM)));
    SAME(sim_guard_violations(), 0);
    void *bytes = &total;
    OK(api.cuMemHostAlloc(&bytes, 0, 0));
    CHECK(bytes == NULL); /* no answer of before is taken for memory */
    SAME(api.cuMemHostAlloc(NULL, 4, 0), CUDA_ERROR_INVALID_VALUE);
    SAME(api.cuMemHostAlloc(&bytes, 4, 64), CUDA_ERROR_INVALID_VALUE);
    OK(api.cuMemFreeHost(NULL));
    SAME(api.cuMemFreeHost(&bytes), CUDA_ERROR_INVALID_VALUE);
    bytes = host(100);
    SAME((uintptr_t)bytes % 64, 0);
    OK(api.cuMemFreeHost(bytes));
    SAME(api.cuMemFreeHost(bytes), CUDA_ERROR_INVALID_VALUE);
}

void
test_pool(void)
{
    CUmemoryPool pool = NULL;
    CUdeviceptr p, q;
    uint64_t value = 99;
    int ordinal = -1;
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
    OK(api.cuMemAllocAsync(&p, 0, stream));
    SAME(p, 0);
    SAME(api.cuMemAllocAsync(&p, MEMORY + 1, stream), CUDA_ERROR_OUT_OF_MEMORY);
    OK(api.cuMemAllocAsync(&p, MIB, stream));
    OK(api.cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, p + MIB - 1));
    SAME(ordinal, 0);
    SAME(api.cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, p + MIB), CUDA_ERROR_INVALID_VALUE);
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
    SAME(value, 32 * MIB);
    SAME(api.cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, p), CUDA_ERROR_INVALID_VALUE);
    /* whole chunks, or pages where that is too much */
    OK(api.cuMemAllocAsync(&p, 32 * MIB, stream));
    OK(api.cuMemAllocAsync(&q, 1, stream));
    OK(api.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &value));
    SAME(value, 64 * MIB);
    OK(api.cuMemFreeAsync(p, stream));
    OK(api.cuStreamSynchronize(stream));
    OK(api.cuMemPoolTrimTo(pool, 0));
    OK(api.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &value));
    SAME(value, 32 * MIB);
    SAME(api.cuMemAlloc_v2(&p, ROOM - 32 * MIB + 1), CUDA_ERROR_OUT_OF_MEMORY);
    p = alloc(ROOM - 48 * MIB);
    CUdeviceptr r;
    OK(api.cuMemAllocAsync(&r, 33 * MIB, stream));
    OK(api.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &value));
    SAME(value, 34 * MIB);
    OK(api.cuMemFreeAsync(r, stream));
    OK(api.cuMemFree_v2(p));
    OK(api.cuMemFreeAsync(q, stream));
    OK(api.cuStreamSynchronize(stream));
    OK(api.cuMemPoolTrimTo(pool, 0));
    SAME(api.cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, q), CUDA_ERROR_INVALID_VALUE);
    OK(api.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &value));
    SAME(value, 0);
    OK(api.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &value));
    SAME(value, 33 * MIB + 512);
    value = 0;
    OK(api.cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &value));
    OK(api.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &value));
    SAME(value, 0);
    /* what is queued to be freed makes room */
    OK(api.cuMemAllocAsync(&p, ROOM, stream));
    OK(api.cuMemFreeAsync(p, stream));
    OK(api.cuMemAllocAsync(&q, ROOM, stream));
    OK(api.cuMemFreeAsync(q, stream));
    q = alloc(ROOM);
    CUmodule another = NULL;
    SAME(api.cuModuleLoadData(&another, ".version 9.0\n.target sm_75\n"), CUDA_ERROR_OUT_OF_MEMORY);
    OK(api.cuMemFree_v2(q));
    OK(api.cuModuleLoadData(&another, ".version 9.0\n.target sm_75\n"));
    SAME(api.cuMemAllocAsync(&q, ROOM, stream), CUDA_ERROR_OUT_OF_MEMORY);
    OK(api.cuModuleUnload(another));
    OK(api.cuMemAllocAsync(&q, ROOM, stream));
    OK(api.cuMemFreeAsync(q, stream));
    /* a block of the pool may be freed at once; and stands only once its stream has got there */
    OK(api.cuMemAllocAsync(&p, 64, stream));
    OK(api.cuMemFree_v2(p));
    OK(api.cuMemAllocAsync(&p, 64, stream));
    OK(api.cuMemsetD8Async(p, 0, 64, other));
    SAME(api.cuStreamSynchronize(other), CUDA_ERROR_ILLEGAL_ADDRESS);
}

void
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
    /* onto itself is nothing, onto a part of itself is refused */
    OK(api.cuMemcpyHtoDAsync_v2(q, &two, 4, stream));
    OK(api.cuMemcpyDtoDAsync_v2(q, q, 16, stream));
    SAME(peek(q, stream), 2);
    SAME(api.cuMemcpyDtoDAsync_v2(q + 4, q, 8, stream), CUDA_ERROR_INVALID_VALUE);
    SAME(api.cuMemcpyDtoDAsync_v2(q, q + 4, 8, stream), CUDA_ERROR_INVALID_VALUE);
    CHECK(isnan(peek(q + 4, stream)) && isnan(peek(q + 8, stream)));
    OK(api.cuMemcpyHtoDAsync_v2(q, &two, 4, stream));
    OK(api.cuMemcpyDtoDAsync_v2(q + 4, q, 4, stream));
    SAME(peek(q + 4, stream), 2);
    OK(api.cuMemcpyHtoDAsync_v2(q, &two, 4, stream));
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
