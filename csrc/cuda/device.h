/* device.h: a device and all that it holds (device.c), and what goes wrong on it (failure.c). */
#ifndef DT_CUDA_DEVICE_H
#define DT_CUDA_DEVICE_H

#include <pthread.h>

#include "../core/memory/heap.h"
#include "api.h"
#include "cache.h"
#include "front.h"

/* ---------------------------------------------------------------- what a device holds */

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
    atomic_uint sent[CUDA_SENT]; /* and the last of them; launch_log.c */
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
    cuda_memory_stats stats;
} cuda_memory;

/* staging.c */
typedef struct {
    pthread_mutex_t lock;
    pthread_cond_t returned;
    uint64_t clock;
    cuda_slot small[CUDA_NSMALL], large[CUDA_NLARGE];
} cuda_ring;

/* Copies of weights; weights.c. */
typedef struct {
    pthread_mutex_t lock;
    cuda_cache cache;
    size_t nbytes, limit, most; /* of what is kept: there are so many, now and ever may be */
    uint64_t questions;
    uint64_t swept; /* the question at which what is stale was looked for last */
} cuda_weights;

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

    struct cuda_late *_Atomic late; /* index_errors.c; NULL: nothing was sent that could go wrong */
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
    cuda_cache convolutions, attentions, tuned;
    int attention_shapes[3];             /* that have code of their own */
    struct conv_plan *retired;           /* of convolutions: whose last runs may go on */
    CUdeviceptr minus_zeros[DT_NDTYPES]; /* conv/memory.c */
    cuda_weights weights;
};

/* ---------------------------------------------------------------- device.c */

/* A device that is open already, to give something back to it; NULL when it cannot be used any more. */
cuda_device *cuda_find(int index);
/* One that cannot be used any more, or NULL. */
cuda_device *cuda_lost(int index);
/* All that were lost can be used again. */
void cuda_devices_found(void);

/* ---------------------------------------------------------------- failure.c */

/* Writes down that symbol answered status on device (NULL: none in particular). */
dt_status cuda_fail(cuda_device *device, dt_api_symbol symbol, int status, dt_error *err);
/* Fails where the context is lost, which a library says without saying why. */
dt_status cuda_check_lost(cuda_device *device, dt_error *err) DT_MUST_CHECK;
/* races.c: DT_OK unless symbol answered status since two pieces of work race on a simulated device. */
dt_status cuda_fail_race(cuda_device *device, dt_api_symbol symbol, int status, dt_error *err);
/* The host reads or writes page-locked memory; ours waits for what runs there already. */
dt_status cuda_host_use(const char *what, const void *memory, size_t nbytes, bool writes, dt_error *err) DT_MUST_CHECK;
/* What this thread orders from now on is no word of the program. */
void cuda_imply(bool implied);
void cuda_set_races(sim_race_mode mode);
bool cuda_looks_for_races(void);
/* What was released and is given to somebody new holds nothing that was there, where that is asked for. */
void cuda_fill_again(cuda_device *device, CUdeviceptr address, size_t nbytes);
/* Whoever gets this memory has nothing to do with who had it. */
void cuda_use_afresh(CUdeviceptr address, size_t nbytes);
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

#endif
