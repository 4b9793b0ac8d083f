/* cuda.h: what the files of the CUDA backend share. Its slots are declared from slots.def; the rest is sorted by file.
 */
#ifndef DT_CUDA_H
#define DT_CUDA_H

#include <pthread.h>

#include "../core/heap.h"
#include "../kernels/args.h"
#include "api.h"
#include "cache.h"
#include "front.h"

/* ---------------------------------------------------------------- api.c */

extern const uint8_t cuda_api_libraries[DT_NAPI]; /* dt_library of each symbol */

/* Loads the driver, real or simulated, once. */
dt_status cuda_api_open(dt_error *err) DT_MUST_CHECK;
/* False in a child of the process that opened CUDA: nothing of it may be touched there. */
bool cuda_api_alive(void);

/* ---------------------------------------------------------------- device.c */

/* Copies of weights; weights.c. */
typedef struct {
    pthread_mutex_t lock;
    cuda_cache cache;
    size_t nbytes, limit; /* of what is kept */
    uint64_t questions;
    uint64_t swept; /* the question at which what is stale was looked for last */
} cuda_weights;

#define CUDA_NSMALL 32
#define CUDA_SMALL_BYTES ((size_t)64 << 10)
#define CUDA_NLARGE 8
#define CUDA_LARGE_BYTES ((size_t)4 << 20)

/* Idle; the memory of one thread; or left to a copy, of which the event tells when it is over. */
typedef enum { CUDA_SLOT_IDLE, CUDA_SLOT_TAKEN, CUDA_SLOT_SENT } cuda_slot_state;

/* Page-locked memory through which transfers pass. */
typedef struct {
    void *memory; /* NULL: not locked yet */
    CUevent event;
    cuda_slot_state state;
    bool unmarked; /* the event could not be recorded: only the end of all work tells */
    uint64_t ticket;
} cuda_slot;

#define CUDA_MAX_QUEUES 256 /* of a device; the first is the default stream */
#define CUDA_CHECKPOINTS 8

/* A stream, and what is known about its order. Queues stay as long as their device: a stream that nobody uses any more
 * is given to the next who asks. All but device, stream, id and priority is under the device's lock. */
struct cuda_queue {
    struct cuda_device *device;
    CUstream stream;
    unsigned id;
    int priority;
    int users;                        /* Stream objects and threads */
    uint64_t seq;                     /* how often work was noted */
    uint64_t done;                    /* up to here the work is known to be over */
    uint64_t waited[CUDA_MAX_QUEUES]; /* by id: up to where this stream waits for the other before its next work */
    struct {
        CUevent event;
        uint64_t seq;
    } checkpoints[CUDA_CHECKPOINTS];
    unsigned next_checkpoint;
    CUdeviceptr workspace;       /* cuBLASLt's */
    _Atomic uint64_t nsent;      /* kernels and library calls so far, */
    _Atomic uint64_t nover;      /* those that are known to have gone well, */
    atomic_uint sent[CUDA_SENT]; /* and the last of them; sent.c */
};

#define CUDA_MAX_READERS 6

/* Where a block was last written, and read since. */
typedef struct {
    cuda_mark written, read[CUDA_MAX_READERS];
    unsigned nread;
} cuda_usage;

/* A block that nobody uses, or an entry for one to come. */
typedef struct cuda_block {
    struct cuda_block *next;
    CUdeviceptr address;
    size_t size;
    cuda_usage usage; /* only where there are several streams */
} cuda_block;

_Static_assert(sizeof(cuda_block) <= DT_SMALL_BLOCK, "an entry fits a block");

#define CUDA_SIZE_CLASSES 121 /* to 64 MiB, and one for what is larger */

/* Under the device's lock. Sizes in bytes. */
typedef struct {
    bool cached;                           /* false: every block comes from the driver and goes back there */
    cuda_block *spare;                     /* as many as there are blocks in use: a release needs no memory */
    cuda_block *blocks[CUDA_SIZE_CLASSES]; /* released last first */
    size_t limit;                          /* of reserved */
    size_t requested, allocated, reserved; /* by arrays; the same, rounded; from the driver */
    size_t requested_peak, allocated_peak, reserved_peak;
    int64_t in_use, allocations, hits, driver_allocations, driver_frees, retries, failures;
} cuda_memory;
typedef struct {
    pthread_mutex_t lock;
    pthread_cond_t returned;
    uint64_t clock;
    cuda_slot small[CUDA_NSMALL], large[CUDA_NLARGE];
} cuda_ring;

struct cuda_device {
    int index;
    CUdevice handle;
    CUcontext context;
    CUstream stream;  /* the default one */
    atomic_bool many; /* there is another, and order.c keeps books */
    CUmemoryPool pool;
    char name[128];
    int major, minor, multiprocessors, threads_per_multiprocessor;
    size_t total_memory;
    atomic_int poison; /* the sticky error after which nothing works any more, and whose it is (failure.c), or 0 */

    pthread_mutex_t lock; /* queues and memory; held for moments, never over a call that waits */
    int nqueues, nused;   /* nused: those that somebody uses, without the default stream */
    cuda_queue *queues[CUDA_MAX_QUEUES];
    cuda_memory memory;

    cuda_ring ring;     /* staging.c */
    uint64_t peers;     /* bit i: access to device i has been asked for; peer.c */
    CUevent peer_event; /* what another device waits for */

    struct cuda_late *_Atomic late; /* late.c; NULL: nothing was sent that could go wrong */
    _Atomic uint64_t sources;       /* bit i: what device i made may have come here, so that its mistakes matter here */

    pthread_mutex_t module_lock;
    atomic_bool module_ready;       /* functions is there */
    CUmodule *modules;              /* by embedded image */
    int refusal;                    /* what the driver answered to an image that it cannot use, or 0 */
    _Atomic(CUfunction) *functions; /* by kernel id; module.c */
    cuda_cache raws;                /* users' kernels by their source; raw.c */
    _Atomic(struct cuda_raw_module *) raw_unused;

    pthread_mutex_t library_lock; /* the handles and caches */
    cublasLtHandle_t lt;
    cuda_cache matmuls;
    cudnnHandle_t dnn;
    CUstream dnn_stream; /* that dnn works on */
    cuda_cache convolutions, tuned;
    struct conv_plan *retired;           /* of convolutions: whose last runs may go on */
    CUdeviceptr minus_zeros[DT_NDTYPES]; /* conv_memory.c */
    cuda_weights weights;
};

/* A device that is open already, to give something back to it; NULL when it cannot be used any more. */
cuda_device *cuda_find(int index);
/* One that cannot be used any more, or NULL. */
cuda_device *cuda_lost(int index);

/* failure.c: writes down that symbol answered status on device (NULL: none in particular). */
dt_status cuda_fail(cuda_device *device, dt_api_symbol symbol, int status, dt_error *err);
/* Fails where the context is lost, which a library says without saying why. */
dt_status cuda_check_lost(cuda_device *device, dt_error *err) DT_MUST_CHECK;
/* The same for a device that an earlier call has lost. */
dt_status cuda_fail_lost(const cuda_device *device, dt_error *err);

static inline dt_status
cuda_check(cuda_device *device, dt_api_symbol symbol, int status, dt_error *err)
{
    return DT_UNLIKELY(status != 0) ? cuda_fail(device, symbol, status, err) : DT_OK;
}

/* CUDA_CALL(device, cuStreamSynchronize, (stream)): calls through the table; a dt_status. Of any of the libraries. */
#define CUDA_CALL(device, symbol, arguments) cuda_check((device), DT_API_##symbol, cu.symbol arguments, err)
#define CUDA_TRY(device, symbol, arguments) DT_TRY(CUDA_CALL(device, symbol, arguments))

/* ---------------------------------------------------------------- stream.c */

/* Where this thread's calls are sent. */
static inline CUstream
cuda_stream(const cuda_device *device)
{
    bool many = atomic_load_explicit(&device->many, memory_order_acquire);
    return DT_UNLIKELY(many) ? cuda_current(device)->stream : device->stream;
}

/* Waits for this thread's stream of device, or for all of them. */
dt_status cuda_wait(cuda_device *device, dt_error *err) DT_MUST_CHECK;
dt_status cuda_wait_all(cuda_device *device, dt_error *err) DT_MUST_CHECK;

/* The default stream of a device that is being opened. */
dt_status cuda_queues_open(cuda_device *device, dt_error *err) DT_MUST_CHECK;
/* The workspace that products on this thread's stream share. */
dt_status cuda_workspace(cuda_device *device, size_t nbytes, CUdeviceptr *address, dt_error *err) DT_MUST_CHECK;

/* ---------------------------------------------------------------- order.c: with the device's lock held */

extern atomic_bool cuda_many_streams; /* on any device */

/* Notes work on queue; the mark comes after it. */
static inline cuda_mark
cuda_stamp(cuda_queue *queue)
{
    return (cuda_mark){++queue->seq, queue->id};
}

/* Whether work sent to queue now comes after mark anyway. */
bool cuda_passed(const cuda_queue *queue, cuda_mark mark);
/* Sees to it; the context is current. */
dt_status cuda_wait_for(cuda_queue *queue, cuda_mark mark, dt_error *err) DT_MUST_CHECK;
dt_status cuda_wait_for_usage(cuda_queue *queue, const cuda_usage *usage, dt_error *err) DT_MUST_CHECK;
/* Makes waiting for what queue has been sent so far cheap, also later: an event stands here. */
dt_status cuda_checkpoint(cuda_queue *queue, dt_error *err) DT_MUST_CHECK;

/* order.c: without the lock */

#define CUDA_MAX_OPERANDS (8 + DT_MAX_NDIM) /* and the arrays of indices */

/* What an op is called with; NULL where it is no array. */
typedef struct {
    const dt_array *array[CUDA_MAX_OPERANDS];
    bool written[CUDA_MAX_OPERANDS];
} cuda_operands;

/* Before an op: this thread's stream waits for the last uses of its operands. After it: they are written down. */
dt_status cuda_order(const cuda_operands *operands, dt_error *err) DT_MUST_CHECK;
void cuda_note(const cuda_operands *operands);

/* ---------------------------------------------------------------- allocator.c */

/* Memory for this thread's stream, and back: at once, the next who gets it waits. */
dt_status cuda_allocate(cuda_device *device, size_t nbytes, CUdeviceptr *address, dt_error *err) DT_MUST_CHECK;
void cuda_release(cuda_device *device, CUdeviceptr address, size_t nbytes);
/* The same for a block that others than this thread's stream may have used; usage NULL: the default stream. */
void cuda_release_used(cuda_device *device, CUdeviceptr address, size_t nbytes, const cuda_usage *usage);
/* The driver's answer to a request of its own, outside what arrays hold, tried again without the cache when it has no
 * more. */
dt_status cuda_allocate_uncounted(cuda_device *device, size_t nbytes, CUdeviceptr *address,
                                  dt_error *err) DT_MUST_CHECK;
/* Gives the driver all that nobody uses, copies of weights first; waits for the device. */
dt_status cuda_give_back(cuda_device *device, dt_error *err) DT_MUST_CHECK;
void cuda_memory_open(cuda_device *device);
/* From now on the blocks in the cache may be used from several streams; the lock is held. */
void cuda_memory_mark(cuda_device *device);

/* ---------------------------------------------------------------- memory.c */

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

/* ---------------------------------------------------------------- pinned.c */
/* Page-locked memory for good. */
dt_status cuda_lock_pages(cuda_device *device, size_t nbytes, void **out, dt_error *err) DT_MUST_CHECK;
/* Gives blocks that nobody uses back to the driver. */
dt_status cuda_pinned_trim(cuda_device *device, dt_error *err) DT_MUST_CHECK;
/* Whether a's memory is page-locked and ours. */
bool cuda_is_pinned(const dt_array *a);

typedef struct cuda_use cuda_use;
/* A copy to (writes) or from such memory that the host does not wait for is sent to the current stream between begin,
 * after which the stream runs it behind those that it must not meet, and end, which is told how sending ended. */
dt_status cuda_pinned_begin(cuda_device *device, const dt_array *a, bool writes, cuda_use **use,
                            dt_error *err) DT_MUST_CHECK;
dt_status cuda_pinned_end(cuda_device *device, const dt_array *a, bool writes, cuda_use *use, dt_status sent,
                          dt_error *err) DT_MUST_CHECK;
/* Whoever waits for to casts from, in which a copy arrives, into it. Takes from over on success. */
dt_status cuda_pinned_defer(dt_array *from, const dt_array *to, dt_error *err) DT_MUST_CHECK;

/* ---------------------------------------------------------------- module.c */

/* Kernels that do not come from a .def list: name and dtype. */
#define CUDA_KERNELS(X)                                                                                                \
    X(where)                                                                                                           \
    X(softmax)                                                                                                         \
    X(log_softmax)                                                                                                     \
    X(max_pool2d)                                                                                                      \
    X(avg_pool2d)                                                                                                      \
    X(arange)                                                                                                          \
    X(tri)                                                                                                             \
    X(uniform)                                                                                                         \
    X(normal)                                                                                                          \
    X(integers)                                                                                                        \
    X(permutation)                                                                                                     \
    X(transpose)                                                                                                       \
    X(depthwise)                                                                                                       \
    X(skinny)                                                                                                          \
    X(small_matmul)                                                                                                    \
    X(dot)                                                                                                             \
    X(gather)                                                                                                          \
    X(gather_wide)                                                                                                     \
    X(places)                                                                                                          \
    X(nonzero)

typedef enum {
#define DT_TERNARY(name, ...) CUDA_KERNEL_##name,
#include "../core/elementwise.def"
#undef DT_TERNARY
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

/* The name of the kernel with that number, to name. */
void cuda_function_name(unsigned id, char *name, size_t size);

/* ---------------------------------------------------------------- sent.c: what an error of earlier work may be of */

#define CUDA_SENT_CALL 0x80000000u /* and the symbol, for a call of a library */
#define CUDA_SENT_RAW 0x40000000u  /* and its number, for a user's kernel; else a kernel's number + 1 */

/* Before it is sent to this thread's stream. */
void cuda_note_sent(cuda_device *device, unsigned what);
/* This thread's stream has ended, without an error, what was sent to it before the mark. */
uint64_t cuda_sent_mark(const cuda_device *device);
void cuda_sent_over(const cuda_device *device, uint64_t mark);

/* ---------------------------------------------------------------- late.c: what kernels find wrong */

typedef struct cuda_late cuda_late;

/* A launch that may find indices out of range: where it reports them, and its number. */
dt_status cuda_late_begin(cuda_device *device, const dt_index *index, k_selection *by, dt_error *err) DT_MUST_CHECK;
/* After the host has waited for work on device: fails where an index was out of range there, or on a device whose work
 * came here. Each report is told once. */
dt_status cuda_late_check(cuda_device *device, dt_error *err) DT_MUST_CHECK;

/* ---------------------------------------------------------------- launch.c */

#define CUDA_THREADS 256 /* of a block; kernels are compiled for no more */

/* A thread for each of n items, or nblocks blocks of CUDA_THREADS, as far as the device has room. */
dt_status cuda_launch(cuda_device *device, CUfunction function, int64_t n, const void *args,
                      dt_error *err) DT_MUST_CHECK;
dt_status cuda_launch_blocks(cuda_device *device, CUfunction function, int64_t nblocks, const void *args,
                             dt_error *err) DT_MUST_CHECK;
/* Address, extent or immediate of an array. */
k_operand cuda_operand(const dt_array *a);
bool cuda_fits_narrow(const dt_walk *walk);
k_divisor cuda_divisor(int64_t size);
void cuda_index(k_index *index, const dt_walk *walk);
/* A walk in logical order over dimensions [first, last) of arrays of one shape: merged, not sorted. */
void cuda_walk_logical(dt_walk *walk, int first, int last, int narrays, const dt_array *const *arrays);

static inline CUdeviceptr
cuda_address(const dt_array *a)
{
    return (CUdeviceptr)(uintptr_t)a->storage->data + (CUdeviceptr)a->offset;
}

/* ---------------------------------------------------------------- elementwise.c */

/* Launches a kernel of stream.h over the walk; args has everything but the index. costly as in K_DEPTH; dtypes: of each
 * array. */
dt_status cuda_launch_stream(cuda_device *device, CUfunction function, bool costly, const dt_walk *walk,
                             const dt_dtype *dtypes, k_elementwise_args *args, dt_error *err) DT_MUST_CHECK;

/* ---------------------------------------------------------------- copy.c */

/* dst = cast(src) on one device by a kernel (or a plain copy where the layouts agree); src may be an immediate. */
dt_status cuda_copy_within(cuda_device *device, const dt_array *src, dt_array *dst, dt_error *err) DT_MUST_CHECK;

/* ---------------------------------------------------------------- depthwise.c, skinny.c: in place of the libraries */

bool cuda_depthwise_applies(const dt_array *x, const dt_array *weight, const dt_conv2d_params *params);
_Static_assert((int)K_ACTIVATION_RELU == DT_ACTIVATION_RELU && (int)K_ACTIVATION_GELU == DT_ACTIVATION_GELU &&
                   (int)K_ACTIVATION_GELU_TANH == DT_ACTIVATION_GELU_TANH,
               "kernels are given the core's numbers");
dt_status cuda_depthwise(const dt_array *x, const dt_array *weight, const dt_array *bias,
                         const dt_conv2d_params *params, dt_array *out, dt_error *err) DT_MUST_CHECK;

/* What a product would be for the kernels of skinny.cu. */
typedef struct {
    cuda_kernel kernel;
    k_skinny_args args;
} cuda_skinny_plan;

bool cuda_skinny_applies(const dt_array *a, const dt_array *b, const dt_array *out, cuda_skinny_plan *plan);
dt_status cuda_skinny(const dt_array *a, const dt_array *b, const dt_array *bias, const dt_matmul_params *params,
                      cuda_skinny_plan *plan, dt_array *out, dt_error *err) DT_MUST_CHECK;

/* dot.c: vectors so long that their product is a reduction. */
bool cuda_dot_applies(const dt_array *a, const dt_array *bias, const dt_matmul_params *params, const dt_array *out);
dt_status cuda_dot(const dt_array *a, const dt_array *b, dt_array *out, dt_error *err) DT_MUST_CHECK;

/* ---------------------------------------------------------------- transfers: staging.c, transfer.c, peer.c */

void cuda_ring_init(cuda_ring *ring);
void cuda_ring_destroy(cuda_ring *ring);

/* src goes to address, or what stands there to dst, as contiguous elements of dtype bus in src's or dst's order,
 * through slots. The host has read all of src, or written all of dst, on return. */
dt_status cuda_send_staged(cuda_device *device, const dt_array *src, CUdeviceptr address, dt_dtype bus,
                           dt_error *err) DT_MUST_CHECK;
dt_status cuda_fetch_staged(cuda_device *device, CUdeviceptr address, dt_dtype bus, const dt_array *dst,
                            dt_error *err) DT_MUST_CHECK;

/* The narrower of the two dtypes goes over the bus. */
dt_dtype cuda_bus_dtype(const dt_array *src, const dt_array *dst);
/* A view of a with its dimensions in the order in which key lies in memory. */
dt_array cuda_in_order_of(const dt_array *key, const dt_array *a);

/* Between any two devices of which at least one is a GPU; the arrays have elements. */
dt_status cuda_transfer(const dt_array *src, dt_array *dst, bool non_blocking, dt_error *err) DT_MUST_CHECK;
dt_status cuda_to_peer(const dt_array *src, dt_array *dst, dt_error *err) DT_MUST_CHECK;

/* lt_plan.c, conv_plan.c, raw.c: what the caches give back */
void cuda_raw_module_drop(void *module);
/* The name of a kernel of users' by its number. */
const char *cuda_raw_name(unsigned number);
void cuda_matmul_destroy(void *plan);
void cuda_conv2d_retire(void *plan);
/* Destroys those that were given back and run no more. */
void cuda_conv2d_reap(cuda_device *device);
size_t cuda_matmul_key_size(void);
/* The most rows, columns or elements of an operand that one call of a library is given. */
int64_t cuda_size_limit(void);
size_t cuda_conv2d_key_size(void);

/* epilogue.c: out = activation(out + bias) in place, by kernels; bias, or NULL, runs along dimension dim. */
dt_status cuda_epilogue(const dt_array *bias, int dim, dt_activation activation, dt_array *out,
                        dt_error *err) DT_MUST_CHECK;

/* ---------------------------------------------------------------- the slots: put together in backend.c */

extern const dt_backend cuda_backend;

#define DT_SLOT(ret, name, args) ret cuda_##name args;
#include "../core/slots.def"
#undef DT_SLOT

#endif
