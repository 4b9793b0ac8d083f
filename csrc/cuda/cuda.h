/* cuda.h: what the files of the CUDA backend share. Its slots are declared from slots.def; the rest is sorted by file.
 */
#ifndef DT_CUDA_H
#define DT_CUDA_H

#include <pthread.h>

#include "../kernels/args.h"
#include "api.h"

/* ---------------------------------------------------------------- api.c: for the front and for tests */

/* Directories (absolute, separated by colons) where NVIDIA's Python packages keep their libraries. */
void cuda_set_search_path(const char *directories);
/* Makes "cuda" mean `devices` simulated GPUs of `memory` bytes each (0: the default); before the first use of CUDA. */
dt_status cuda_request_simulated(int devices, size_t memory, dt_error *err) DT_MUST_CHECK;
bool cuda_is_simulated(void);
/* What was tried to find each library, one line an attempt. Returns the length; writes at most size bytes with the 0.
 */
size_t cuda_api_report(char *text, size_t size);
/* The nth call from now (0: the next) of symbol (-1: of any that returns a status) answers status without being made;
 * all later ones too when sticky. nth < 0 disarms. */
void cuda_api_fail(int symbol, int64_t nth, int status, bool sticky);

/* The backend's entry: what the registry calls on first use. */
dt_status cuda_open(const dt_backend **backend, dt_error *err) DT_MUST_CHECK;

/* ---------------------------------------------------------------- api.c: for the backend */

extern const uint8_t cuda_api_libraries[DT_NAPI]; /* dt_library of each symbol */

/* Loads the driver, real or simulated, once. */
dt_status cuda_api_open(dt_error *err) DT_MUST_CHECK;
/* Loads another library at the first need of its symbols. */
dt_status cuda_api_need(dt_library library, dt_error *err) DT_MUST_CHECK;
/* False in a child of the process that opened CUDA: nothing of it may be touched there. */
bool cuda_api_alive(void);

/* ---------------------------------------------------------------- cache.c: a bounded cache of plans */

#define CUDA_CACHE_WAYS 8

typedef struct {
    uint64_t hash, used;
    void *key, *value;
} cuda_cache_entry;

/* nsets * CUDA_CACHE_WAYS entries; the least recently used of a set makes room. All keys have one size. */
typedef struct {
    size_t key_size;
    unsigned nsets;
    uint64_t clock;
    void (*destroy)(void *value);
    cuda_cache_entry *entries;
} cuda_cache;

void *cuda_cache_find(cuda_cache *cache, const void *key);
/* Takes value over, also on failure. */
dt_status cuda_cache_put(cuda_cache *cache, const void *key, void *value, dt_error *err) DT_MUST_CHECK;
void cuda_cache_remove(cuda_cache *cache, const void *key);

/* ---------------------------------------------------------------- device.c */

#define CUDA_NSLOTS 4
#define CUDA_SLOT_BYTES ((size_t)2 << 20)

/* Page-locked memory through which transfers pass. */
typedef struct {
    void *memory;
    CUevent event; /* recorded after the last copy in or out of memory */
    bool busy;
    bool arriving; /* memory holds, in arriving_dtype, what target waits for */
    dt_dtype arriving_dtype;
    dt_array target;
} cuda_slot;

typedef struct cuda_device {
    int index;
    CUdevice handle;
    CUcontext context;
    CUstream stream; /* program order is its order */
    CUmemoryPool pool;
    char name[128];
    int major, minor, multiprocessors;
    size_t total_memory;
    atomic_size_t allocated, peak;
    atomic_int poison; /* the sticky error after which nothing works any more, or 0 */

    pthread_mutex_t transfer_lock; /* the slots */
    cuda_slot slots[CUDA_NSLOTS];
    unsigned next_slot;

    pthread_mutex_t module_lock;
    atomic_bool module_ready;
    CUmodule module;
    _Atomic(CUfunction) *functions; /* by kernel id; module.c */

    pthread_mutex_t library_lock; /* the handles and caches */
    cublasLtHandle_t lt;
    CUdeviceptr lt_workspace;
    cuda_cache matmuls;
    cudnnHandle_t dnn;
    cuda_cache convolutions;
} cuda_device;

/* The device, ready, with its context current on this thread. */
dt_status cuda_enter(int index, cuda_device **device, dt_error *err) DT_MUST_CHECK;
/* A device that is open already, to give something back to it; NULL when it cannot be used any more. */
cuda_device *cuda_find(int index);

/* Writes down that symbol answered status on device (NULL: none in particular). */
dt_status cuda_fail(cuda_device *device, dt_api_symbol symbol, int status, dt_error *err);

static inline dt_status
cuda_check(cuda_device *device, dt_api_symbol symbol, int status, dt_error *err)
{
    return DT_UNLIKELY(status != 0) ? cuda_fail(device, symbol, status, err) : DT_OK;
}

/* CUDA_CALL(device, cuStreamSynchronize, (stream)): calls through the table; a dt_status. Of any of the libraries. */
#define CUDA_CALL(device, symbol, arguments) cuda_check((device), DT_API_##symbol, cu.symbol arguments, err)
#define CUDA_TRY(device, symbol, arguments) DT_TRY(CUDA_CALL(device, symbol, arguments))

/* The stream that this thread's calls are sent to. */
static inline CUstream
cuda_stream(const cuda_device *device)
{
    return device->stream;
}

/* Waits until everything sent to the device is done. */
dt_status cuda_wait(cuda_device *device, dt_error *err) DT_MUST_CHECK;

/* ---------------------------------------------------------------- memory.c */

/* Stream-ordered scratch memory. */
dt_status cuda_allocate(cuda_device *device, size_t nbytes, CUdeviceptr *address, dt_error *err) DT_MUST_CHECK;
void cuda_release(cuda_device *device, CUdeviceptr address, size_t nbytes);

/* A contiguous array of dtype with like's shape in memory of its own; cuda_temporary_clear gives it back. */
typedef struct {
    dt_storage storage;
    dt_array array;
} cuda_temporary;

#define CUDA_TEMPORARY_EMPTY ((cuda_temporary){0})

dt_status cuda_temporary_init(cuda_temporary *t, cuda_device *device, const dt_array *like, dt_dtype dtype,
                              dt_error *err) DT_MUST_CHECK;
void cuda_temporary_clear(cuda_temporary *t);
/* contiguous becomes x itself or a temporary copy. */
dt_status cuda_contiguous(cuda_device *device, const dt_array *x, cuda_temporary *t, const dt_array **contiguous,
                          dt_error *err) DT_MUST_CHECK;

/* Page-locked memory that the device may still read or write after the call. */
bool cuda_is_pinned(const dt_array *a);
void cuda_pinned_in_use(const dt_array *a, const cuda_device *device);

/* ---------------------------------------------------------------- module.c */

/* Kernels that do not come from a .def list: name and dtype. */
#define CUDA_KERNELS(X)                                                                                                \
    X(where)                                                                                                           \
    X(lerp)                                                                                                            \
    X(softmax)                                                                                                         \
    X(log_softmax)                                                                                                     \
    X(max_pool2d)                                                                                                      \
    X(avg_pool2d)                                                                                                      \
    X(arange)                                                                                                          \
    X(tri)                                                                                                             \
    X(uniform)                                                                                                         \
    X(normal)                                                                                                          \
    X(integers)                                                                                                        \
    X(permutation)

typedef enum {
#define CUDA_KERNEL(name) CUDA_KERNEL_##name,
    CUDA_KERNELS(CUDA_KERNEL)
#undef CUDA_KERNEL
        CUDA_NKERNELS
} cuda_kernel;

/* A kernel is named by its family, its place there and its dtype. */
typedef enum {
    CUDA_FAMILY_UNARY,
    CUDA_FAMILY_BINARY,
    CUDA_FAMILY_REDUCE,
    CUDA_FAMILY_CAST,
    CUDA_FAMILY_OTHER
} cuda_family;

dt_status cuda_function(cuda_device *device, cuda_family family, int op, dt_dtype dtype, CUfunction *function,
                        dt_error *err) DT_MUST_CHECK;

/* ---------------------------------------------------------------- launch.c */

#define CUDA_THREADS 256 /* of a block; kernels are compiled for no more */

/* A thread for each of n items, as far as the device has room; or a block of `threads` for each. */
dt_status cuda_launch(cuda_device *device, CUfunction function, int64_t n, const void *args,
                      dt_error *err) DT_MUST_CHECK;
dt_status cuda_launch_blocks(cuda_device *device, CUfunction function, int64_t nblocks, int threads, const void *args,
                             dt_error *err) DT_MUST_CHECK;
/* Address, extent or immediate of an array. */
k_operand cuda_operand(const dt_array *a);
/* A walk in logical order over dimensions [first, last) of arrays of one shape: merged, not sorted. */
void cuda_walk_logical(dt_walk *walk, int first, int last, int narrays, const dt_array *const *arrays);

static inline CUdeviceptr
cuda_address(const dt_array *a)
{
    return (CUdeviceptr)(uintptr_t)a->storage->data + (CUdeviceptr)a->offset;
}

/* ---------------------------------------------------------------- copy.c */

/* dst = cast(src) on one device by a kernel (or a plain copy where the layouts agree); src may be an immediate. */
dt_status cuda_copy_within(cuda_device *device, const dt_array *src, dt_array *dst, dt_error *err) DT_MUST_CHECK;

/* transfer.c */
dt_status cuda_to_device(cuda_device *device, const dt_array *src, dt_array *dst, bool non_blocking,
                         dt_error *err) DT_MUST_CHECK;
dt_status cuda_to_host(cuda_device *device, const dt_array *src, dt_array *dst, dt_error *err) DT_MUST_CHECK;
dt_status cuda_to_peer(const dt_array *src, dt_array *dst, dt_error *err) DT_MUST_CHECK;

/* matmul.c, conv2d.c: what the caches give back */
void cuda_matmul_destroy(void *plan);
void cuda_conv2d_destroy(void *plan);
size_t cuda_matmul_key_size(void);
size_t cuda_conv2d_key_size(void);

/* ---------------------------------------------------------------- the slots */

#define DT_SLOT(ret, name, args) ret cuda_##name args;
#include "../core/slots.def"
#undef DT_SLOT

#endif
