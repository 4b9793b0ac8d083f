/* conform_memory.c: devices, contexts, memory, pools and copies. */
#include "conform.h"

void
conform_devices(void)
{
    int n = 0, value = -1;
    CUdevice device = -1;
    size_t nbytes = 0;
    char name[64] = "", small[5] = "xxxx";
    OK("cuInit of devices", api.cuInit(0));
    OK("cuDeviceGetCount", api.cuDeviceGetCount(&n));
    HOLDS("there is a device", n >= 1);
    IS("cuDeviceGetCount to NULL", api.cuDeviceGetCount(NULL), CUDA_ERROR_INVALID_VALUE);
    OK("cuDeviceGet 0", api.cuDeviceGet(&device, 0));
    IS("device 0 is 0", device, 0);
    IS("cuDeviceGet of the count", api.cuDeviceGet(&device, n), CUDA_ERROR_INVALID_DEVICE);
    IS("cuDeviceGet -1", api.cuDeviceGet(&device, -1), CUDA_ERROR_INVALID_DEVICE);
    IS("a refused cuDeviceGet leaves its answer", device, 0);
    IS("cuDeviceGet to NULL", api.cuDeviceGet(NULL, 0), CUDA_ERROR_INVALID_VALUE);
    OK("cuDeviceGetName", api.cuDeviceGetName(name, sizeof(name), 0));
    HOLDS("the name is text", name[0] != '\0' && memchr(name, '\0', sizeof(name)) != NULL);
    OK("cuDeviceGetName into little room", api.cuDeviceGetName(small, 4, 0));
    HOLDS("a cut name ends in its room", memchr(small, '\0', 4) != NULL);
    IS("cuDeviceGetName to NULL", api.cuDeviceGetName(NULL, 4, 0), CUDA_ERROR_INVALID_VALUE);
    IS("cuDeviceGetName of no device", api.cuDeviceGetName(name, sizeof(name), n), CUDA_ERROR_INVALID_DEVICE);
    OK("the major capability", api.cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0));
    HOLDS("the capability is 7 or more", value >= 7);
    OK("the minor capability", api.cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0));
    HOLDS("the minor capability is a digit", value >= 0 && value <= 9);
    OK("the multiprocessors", api.cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
    HOLDS("there are multiprocessors", value > 0);
    OK("memory pools", api.cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 0));
    IS("memory pools are supported", value, 1);
    OK("unified addressing", api.cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 0));
    IS("addresses are unified", value, 1);
    IS("cuDeviceGetAttribute 9999", api.cuDeviceGetAttribute(&value, 9999, 0), CUDA_ERROR_INVALID_VALUE);
    IS("cuDeviceGetAttribute to NULL", api.cuDeviceGetAttribute(NULL, 75, 0), CUDA_ERROR_INVALID_VALUE);
    IS("cuDeviceGetAttribute of no device", api.cuDeviceGetAttribute(&value, 75, n), CUDA_ERROR_INVALID_DEVICE);
    OK("cuDeviceTotalMem", api.cuDeviceTotalMem_v2(&nbytes, 0));
    HOLDS("there is memory", nbytes >= 64 * MIB);
    IS("cuDeviceTotalMem to NULL", api.cuDeviceTotalMem_v2(NULL, 0), CUDA_ERROR_INVALID_VALUE);
    IS("cuDeviceTotalMem of no device", api.cuDeviceTotalMem_v2(&nbytes, n), CUDA_ERROR_INVALID_DEVICE);
    OK("cuDeviceCanAccessPeer itself", api.cuDeviceCanAccessPeer(&value, 0, 0));
    IS("a device is not its own peer", value, 0);
    IS("cuDeviceCanAccessPeer of no device", api.cuDeviceCanAccessPeer(&value, 0, n), CUDA_ERROR_INVALID_DEVICE);
}

static void *
other_thread(void *out)
{
    CUcontext *current = out;
    (void)api.cuCtxGetCurrent(current);
    return NULL;
}

void
conform_contexts(void)
{
    CUcontext first = NULL, again = NULL, current = NULL, elsewhere = (CUcontext)&first;
    CUdeviceptr p = 0;
    CUstream stream = NULL;
    CUevent event = NULL;
    size_t free_bytes = 0, total = 0;
    pthread_t thread;
    OK("cuInit of contexts", api.cuInit(0));
    OK("cuCtxGetCurrent of none", api.cuCtxGetCurrent(&current));
    HOLDS("at first there is no context", current == NULL);
    IS("cuCtxGetCurrent to NULL", api.cuCtxGetCurrent(NULL), CUDA_ERROR_INVALID_VALUE);
    IS("cuMemAlloc without a context", api.cuMemAlloc_v2(&p, 4), CUDA_ERROR_INVALID_CONTEXT);
    IS("cuStreamCreate without a context", api.cuStreamCreate(&stream, 0), CUDA_ERROR_INVALID_CONTEXT);
    IS("cuEventCreate without a context", api.cuEventCreate(&event, 0), CUDA_ERROR_INVALID_CONTEXT);
    IS("cuCtxSynchronize without a context", api.cuCtxSynchronize(), CUDA_ERROR_INVALID_CONTEXT);
    IS("cuMemGetInfo without a context", api.cuMemGetInfo_v2(&free_bytes, &total), CUDA_ERROR_INVALID_CONTEXT);
    IS("cuDevicePrimaryCtxRetain to NULL", api.cuDevicePrimaryCtxRetain(NULL, 0), CUDA_ERROR_INVALID_VALUE);
    IS("cuDevicePrimaryCtxRetain of no device", api.cuDevicePrimaryCtxRetain(&first, 4096), CUDA_ERROR_INVALID_DEVICE);
    IS("cuDevicePrimaryCtxRelease of one not held", api.cuDevicePrimaryCtxRelease_v2(0), CUDA_ERROR_INVALID_CONTEXT);
    OK("cuDevicePrimaryCtxRetain", api.cuDevicePrimaryCtxRetain(&first, 0));
    OK("cuDevicePrimaryCtxRetain again", api.cuDevicePrimaryCtxRetain(&again, 0));
    HOLDS("the primary context is one", first != NULL && first == again);
    OK("cuCtxGetCurrent after retaining", api.cuCtxGetCurrent(&current));
    HOLDS("retaining makes nothing current", current == NULL);
    OK("cuCtxSetCurrent", api.cuCtxSetCurrent(first));
    OK("cuCtxGetCurrent after setting", api.cuCtxGetCurrent(&current));
    HOLDS("what was set is current", current == first);
    pthread_create(&thread, NULL, other_thread, &elsewhere);
    pthread_join(thread, NULL);
    HOLDS("another thread has no context", elsewhere == NULL);
    OK("cuMemGetInfo", api.cuMemGetInfo_v2(&free_bytes, &total));
    HOLDS("not more is free than there is", free_bytes > 0 && free_bytes <= total);
    HOLDS("a context takes a mebibyte at the least", free_bytes + MIB <= total);
    OK("cuCtxSynchronize of nothing", api.cuCtxSynchronize());
    OK("cuDevicePrimaryCtxRelease of one of two", api.cuDevicePrimaryCtxRelease_v2(0));
    OK("the context is still good", api.cuCtxSynchronize());
    IS("cuCtxEnablePeerAccess with flags", api.cuCtxEnablePeerAccess(first, 1), CUDA_ERROR_INVALID_VALUE);
    IS("cuCtxEnablePeerAccess to itself", api.cuCtxEnablePeerAccess(first, 0), CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
    OK("cuCtxSetCurrent to none", api.cuCtxSetCurrent(NULL));
    OK("cuCtxGetCurrent after setting none", api.cuCtxGetCurrent(&current));
    HOLDS("there is no context again", current == NULL);
}

void
conform_memory(void)
{
    CUdeviceptr p = 0, q = 0;
    size_t before = 0, after = 0, total = 0;
    void *bytes = NULL;
    start();
    IS("cuMemAlloc of nothing", api.cuMemAlloc_v2(&p, 0), CUDA_ERROR_INVALID_VALUE);
    IS("cuMemAlloc to NULL", api.cuMemAlloc_v2(NULL, 4), CUDA_ERROR_INVALID_VALUE);
    OK("cuMemGetInfo of a fresh device", api.cuMemGetInfo_v2(&before, &total));
    IS("cuMemAlloc of more than there is", api.cuMemAlloc_v2(&p, total + 1), CUDA_ERROR_OUT_OF_MEMORY);
    IS("cuMemAlloc of SIZE_MAX", api.cuMemAlloc_v2(&p, SIZE_MAX), CUDA_ERROR_OUT_OF_MEMORY);
    OK("cuMemAlloc of a byte", api.cuMemAlloc_v2(&p, 1));
    OK("cuMemAlloc of 1000 bytes", api.cuMemAlloc_v2(&q, 1000));
    IS("a block is aligned to 256 bytes", p % 256, 0);
    IS("the next block is aligned to 256 bytes", q % 256, 0);
    HOLDS("blocks are apart", p != q && (p < q ? q - p >= 1 : p - q >= 1000));
    OK("cuMemFree of a byte", api.cuMemFree_v2(p));
    IS("cuMemFree inside a block", api.cuMemFree_v2(q + 4), CUDA_ERROR_INVALID_VALUE);
    OK("cuMemFree of 1000 bytes", api.cuMemFree_v2(q));
    OK("cuMemFree of NULL", api.cuMemFree_v2(0));
    IS("cuMemFree of what never was", api.cuMemFree_v2(64), CUDA_ERROR_INVALID_VALUE);
    p = allocate(64 * MIB);
    OK("cuMemGetInfo with a block", api.cuMemGetInfo_v2(&after, &total));
    HOLDS("a block is taken from what is free", after + 64 * MIB <= before);
    IS("cuMemFree of a large block", api.cuMemFree_v2(p), 0);
    IS("cuMemFree twice", api.cuMemFree_v2(p), CUDA_ERROR_INVALID_VALUE);
    OK("cuMemGetInfo after freeing", api.cuMemGetInfo_v2(&after, &total));
    HOLDS("a freed block is free again", after + MIB >= before - 8 * MIB);
    OK("cuMemHostAlloc of nothing", api.cuMemHostAlloc(&bytes, 0, 0));
    IS("cuMemHostAlloc to NULL", api.cuMemHostAlloc(NULL, 4, 0), CUDA_ERROR_INVALID_VALUE);
    IS("cuMemHostAlloc with unknown flags", api.cuMemHostAlloc(&bytes, 4, 1u << 20), CUDA_ERROR_INVALID_VALUE);
    OK("cuMemHostAlloc", api.cuMemHostAlloc(&bytes, 100, CU_MEMHOSTALLOC_PORTABLE));
    HOLDS("pinned memory can be written", memset(bytes, 1, 100) == bytes);
    IS("pinned memory is aligned to 64 bytes", (uintptr_t)bytes % 64, 0);
    OK("cuMemFreeHost", api.cuMemFreeHost(bytes));
    OK("cuMemFreeHost of NULL", api.cuMemFreeHost(NULL));
    IS("cuMemFreeHost of other memory", api.cuMemFreeHost(&total), CUDA_ERROR_INVALID_VALUE);
}

void
conform_pool(void)
{
    CUmemoryPool pool = NULL;
    CUdeviceptr p = 0, q = 0;
    uint64_t value = 99, all = UINT64_MAX, reserved = 0;
    int ordinal = -1;
    start();
    CUstream stream = stream_new();
    OK("cuDeviceGetDefaultMemPool", api.cuDeviceGetDefaultMemPool(&pool, 0));
    IS("cuDeviceGetDefaultMemPool to NULL", api.cuDeviceGetDefaultMemPool(NULL, 0), CUDA_ERROR_INVALID_VALUE);
    IS("cuDeviceGetDefaultMemPool of no device", api.cuDeviceGetDefaultMemPool(&pool, 4096), CUDA_ERROR_INVALID_DEVICE);
    OK("the release threshold", api.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &value));
    IS("the release threshold is 0 at first", value, 0);
    OK("the release threshold is set", api.cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &all));
    OK("the new release threshold", api.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &value));
    HOLDS("the release threshold is as set", value == UINT64_MAX);
    IS("cuMemPoolGetAttribute 77", api.cuMemPoolGetAttribute(pool, 77, &value), CUDA_ERROR_INVALID_VALUE);
    IS("what is used cannot be set", api.cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &value),
       CUDA_ERROR_INVALID_VALUE);
    OK("cuMemAllocAsync of nothing", api.cuMemAllocAsync(&p, 0, stream));
    IS("cuMemAllocAsync to NULL", api.cuMemAllocAsync(NULL, 4, stream), CUDA_ERROR_INVALID_VALUE);
    IS("cuMemAllocAsync of more than there is", api.cuMemAllocAsync(&p, (size_t)1 << 46, stream),
       CUDA_ERROR_OUT_OF_MEMORY);
    OK("cuMemAllocAsync", api.cuMemAllocAsync(&p, MIB, stream));
    IS("a block of the pool is aligned to 256 bytes", p % 256, 0);
    OK("what is used", api.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &value));
    HOLDS("the block is used", value >= MIB);
    OK("what is reserved", api.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved));
    HOLDS("what is used is reserved", reserved >= value);
    HOLDS("a pool takes 32 MiB at a time", reserved >= 32 * MIB && reserved % (2 * MIB) == 0);
    OK("a small block", api.cuMemAllocAsync(&q, 512, stream));
    OK("what is reserved with it", api.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &value));
    IS("a small block is of what is reserved", value, reserved);
    OK("the small block is freed", api.cuMemFreeAsync(q, stream));
    OK("memory of the pool is written in stream order", api.cuMemsetD8Async(p, 0, MIB, stream));
    OK("cuMemFreeAsync", api.cuMemFreeAsync(p, stream));
    OK("the stream of the pool is done", api.cuStreamSynchronize(stream));
    OK("what is used after freeing", api.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &value));
    IS("nothing is used after freeing", value, 0);
    OK("what is reserved after freeing", api.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &value));
    IS("a full threshold keeps what was freed", value, reserved);
    IS("a freed address is nobody's", api.cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, p),
       CUDA_ERROR_INVALID_VALUE);
    IS("a refusal leaves the ordinal", ordinal, -1);
    OK("cuMemPoolTrimTo 0", api.cuMemPoolTrimTo(pool, 0));
    OK("what is reserved after trimming",
       api.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &value));
    IS("trimming gives everything back", value, 0);
    OK("the most that was used", api.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &value));
    HOLDS("the most that was used is remembered", value >= MIB);
    value = 0;
    OK("the most that was used is reset", api.cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &value));
    value = 1;
    OK("the mark after the reset", api.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &value));
    IS("the mark is reset", value, 0);
    value = 5;
    IS("the mark takes only 0", api.cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &value),
       CUDA_ERROR_INVALID_VALUE);
    OK("a block to be freed at once", api.cuMemAllocAsync(&p, 64, stream));
    OK("its stream is done", api.cuStreamSynchronize(stream));
    OK("cuMemFree of a block of the pool", api.cuMemFree_v2(p));
    OK("a block that is freed in order", api.cuMemAllocAsync(&p, 4 * MIB, stream));
    OK("it is freed", api.cuMemFreeAsync(p, stream));
    OK("the same stream may have it again", api.cuMemAllocAsync(&q, 4 * MIB, stream));
    OK("what came again is freed", api.cuMemFreeAsync(q, stream));
    IS("cuMemFreeAsync of what never was", api.cuMemFreeAsync(64, stream), CUDA_ERROR_INVALID_VALUE);
    OK("cuMemFreeAsync of a block of cuMemAlloc", api.cuMemFreeAsync(allocate(64), stream));
    OK("the pool's work is done", api.cuCtxSynchronize());
}

void
conform_copies(void)
{
    start();
    CUstream stream = stream_new();
    CUdeviceptr p = allocate(1024), q = allocate(1024);
    float one = 1, two = 2, out[4] = {0}, *held = pinned(64);
    OK("pageable memory to the device", api.cuMemcpyHtoDAsync_v2(p, &one, 4, stream));
    one = 7;
    IS("pageable bytes are taken at the call", peek(p, stream), 1);
    keep_busy(stream);
    held[0] = 3;
    OK("pinned memory to the device", api.cuMemcpyHtoDAsync_v2(p, held, 4, stream));
    held[0] = 4;
    IS("pinned bytes are taken when the copy runs", peek(p, stream), 4);
    keep_busy(stream);
    held[1] = -1;
    OK("the device to pinned memory", api.cuMemcpyDtoHAsync_v2(&held[1], p, 4, stream));
    IS("a copy to pinned memory is not over at once", held[1], -1);
    OK("it is waited for", api.cuStreamSynchronize(stream));
    IS("then it is over", held[1], 4);
    OK("the device to pageable memory", api.cuMemcpyDtoHAsync_v2(out, p, 4, stream));
    IS("a copy to pageable memory is over on return", out[0], 4);
    OK("a copy in", api.cuMemcpyHtoDAsync_v2(p, &two, 4, stream));
    OK("cuMemcpyDtoD", api.cuMemcpyDtoDAsync_v2(q, p, 4, stream));
    OK("cuMemsetD8", api.cuMemsetD8Async(p, 0, 4, stream));
    IS("copies on the device keep their order", peek(q, stream), 2);
    IS("a memset is in order too", peek(p, stream), 0);
    OK("bytes of 0x3f", api.cuMemsetD8Async(q, 0x3f, 16, stream));
    HOLDS("a memset fills bytes", fabsf(peek(q + 12, stream) - 0.747059f) < 1e-5f);
    OK("cuMemsetD8 of nothing", api.cuMemsetD8Async(q, 1, 0, stream));
    OK("a copy of nothing", api.cuMemcpyHtoDAsync_v2(q, &one, 0, stream));
    OK("a copy of nothing back", api.cuMemcpyDtoHAsync_v2(&one, q, 0, stream));
    OK("a copy of nothing inside", api.cuMemcpyDtoDAsync_v2(q, p, 0, stream));
    OK("a copy in the NULL stream", api.cuMemcpyHtoDAsync_v2(p, &two, 4, NULL));
    IS("the NULL stream copies", peek(p, NULL), 2);
    IS("a copy to no memory of the device", api.cuMemcpyHtoDAsync_v2(64, &two, 4, stream), CUDA_ERROR_INVALID_VALUE);
    IS("a copy from no memory of the device", api.cuMemcpyDtoHAsync_v2(out, 64, 4, stream), CUDA_ERROR_INVALID_VALUE);
    IS("a memset of no memory", api.cuMemsetD8Async(64, 0, 4, stream), CUDA_ERROR_INVALID_VALUE);
    OK("a copy to another context, here the same", api.cuMemcpyPeerAsync(q, context, p, context, 4, stream));
    IS("it has arrived", peek(q, stream), 2);
    OK("cuMemFreeHost while nothing runs", api.cuMemFreeHost(held));
    OK("cuMemFree of one", api.cuMemFree_v2(p));
    OK("cuMemFree of the other", api.cuMemFree_v2(q));
}
