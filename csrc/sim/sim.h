/* sim.h: the simulated GPU, the table of cuda/api.def on host memory. It ships, so that users can test where their
 * arrays live on a machine with no GPU.
 *
 * It is strict where a GPU is lenient. Device memory stands in an arena that is mapped twice: the addresses that leave
 * here belong to a view without access, so that a stray read by host code dies at once; the read-write view is known
 * only to this folder. Streams are queues that run as late as the driver's rules allow, so that a missing
 * synchronisation gives a wrong answer every time. Handles are names in a table, never pointers.
 *
 * One lock guards it all: table.c takes it around every call, so that nothing here locks and nothing can deadlock. */
#ifndef DT_SIM_H
#define DT_SIM_H

#include "../core/numbers/sha256.h"
#include "../cuda/api.h"
#include "../cuda/simulated.h"
#include "../kernels/kernel.h"
#include "races.h"

#define SIM_MAX_DEVICES 64
#define SIM_SHARED_BYTES (48 << 10) /* of a block, as it is, and when a kernel asks for more: an H100's */
#define SIM_SHARED_OPTIN_BYTES (227 << 10)
/* What the driver takes of a device's memory: for the context, where there is enough of it, and for each module. */
#define SIM_CONTEXT_BYTES ((size_t)256 << 20)
#define SIM_CONTEXT_SHARE 16
#define SIM_MODULE_BYTES ((size_t)64 << 10)
#define SIM_MODULE_SHARE 1024

/* The driver clears some answers before it looks at anything else. */
#define SIM_CLEAR(answer) ((answer) != NULL ? (void)(*(answer) = 0) : (void)0)

/* ---------------------------------------------------------------- the stand-ins, called with the lock held */

#define DT_API(library, symbol, ret, params, names) ret sim_##symbol params;
#include "../cuda/api.def"
#undef DT_API

void sim_lock(void);
void sim_unlock(void);

/* ---------------------------------------------------------------- handles: handle.c */

typedef enum {
    SIM_CONTEXT,
    SIM_POOL,
    SIM_STREAM,
    SIM_EVENT,
    SIM_MODULE,
    SIM_LT,
    SIM_LT_DESC,
    SIM_LT_LAYOUT,
    SIM_LT_PREFERENCE,
    SIM_DNN,
    SIM_DNN_DESC,
    SIM_PROGRAM,
    SIM_NKINDS
} sim_kind;

/* A name for object; NULL when there is no memory. */
void *sim_handle_new(sim_kind kind, void *object);
/* The object, or NULL for a name that never was, was deleted, or is of another kind. */
void *sim_handle_get(sim_kind kind, const void *handle);
/* The same, and the name is no more. */
void *sim_handle_delete(sim_kind kind, const void *handle);
int64_t sim_handle_count(sim_kind kind);
/* The next object of kind at or after *position, which moves past it; NULL at the end. */
void *sim_handle_next(sim_kind kind, size_t *position, void **handle);
/* A handle that also carries a number of up to 16 bits, and back. */
void *sim_handle_tag(void *handle, unsigned tag);
void *sim_handle_untag(const void *handle, unsigned *tag);

/* ---------------------------------------------------------------- devices: device.c */

typedef struct sim_block sim_block;
typedef struct sim_stream sim_stream;

typedef struct sim_device {
    int ordinal;
    void *context; /* handle of the primary context; NULL: none */
    void *pool;    /* handle */
    int64_t retained;
    CUresult sticky; /* what every call answers once the device is lost */
    uint64_t peers;  /* bit i: device i may be reached */
    sim_stream *null_stream, *streams;
    size_t memory;                /* bytes that the device says it has */
    size_t arena;                 /* bytes mapped: more, for guards and fragments */
    unsigned char *closed, *open; /* the same bytes, without access and read-write */
    int file;                     /* those bytes, for the processes of users' kernels */
    char fault[512];              /* what went wrong, in words; "": nothing, or not known */
    sim_block **blocks;           /* by address */
    size_t nblocks, room;
    size_t used;                              /* bytes charged outside the pool: blocks, the context, modules */
    size_t pool_used, pool_used_high;         /* bytes charged inside it */
    size_t pool_reserved, pool_reserved_high; /* bytes that it holds */
    uint64_t release_threshold;
} sim_device;

extern sim_device sim_devices[SIM_MAX_DEVICES];
extern int sim_ndevices;

/* False when the devices are in use already and are not like that. */
bool sim_configure(int devices, size_t memory);
/* In a child process, where CUDA cannot go on. */
void sim_fork(void);
/* CUDA_SUCCESS after cuInit, in the process that called it. */
CUresult sim_ready(void);
/* The device of an ordinal. */
CUresult sim_find_device(CUdevice ordinal, sim_device **device);
/* The device of the calling thread's context; sim_current also fails when it is lost. */
CUresult sim_context(sim_device **device);
CUresult sim_current(sim_device **device);
/* The device is lost: every call answers status, and what was queued is dropped. */
void sim_poison(sim_device *device, CUresult status);
/* What cuGetErrorString says more about the device's sticky error. */
void sim_set_fault_text(sim_device *device, const char *text);

/* ---------------------------------------------------------------- memory: arena.c */

/* Whether the bytes of blocks are closed to all but those who were given them: in the sanitized build. */
#if defined(__SANITIZE_ADDRESS__)
#define SIM_CLOSES 1
#else
#define SIM_CLOSES 0
#endif

struct sim_block {
    sim_device *device;
    size_t offset, nbytes; /* of the user's bytes in the arena */
    bool live;             /* false until a stream-ordered allocation has run */
    bool freeing;          /* its release is queued */
    bool pooled;
    bool touched;
    sim_block *next_touched;
    sim_histories histories;
};

/* Maps the arena. */
CUresult sim_arena_open(sim_device *device);
CUresult sim_block_new(sim_device *device, size_t nbytes, bool pooled, sim_block **block);
/* Bytes that the driver has for itself. CUDA_ERROR_OUT_OF_MEMORY */
CUresult sim_charge(sim_device *device, size_t nbytes);
void sim_discharge(sim_device *device, size_t nbytes);
/* Writes the guards and fills the block with NaN: from here on it can be used. */
void sim_block_start(sim_block *block);
void sim_block_free(sim_block *block);
uint64_t sim_block_address(const sim_block *block);
/* The block that begins at address and that nobody freed; NULL: none. */
sim_block *sim_block_at(sim_device *device, uint64_t address);
/* The device whose addresses these are; NULL: none. */
sim_device *sim_owner(uint64_t address);
/* Whether a call may name these bytes: CUDA_ERROR_INVALID_VALUE outside every block of device. */
CUresult sim_check_range(sim_device *device, uint64_t address, size_t nbytes);
/* Whether it can be asked whose this address is: in the pool until its release has run. */
bool sim_is_mapped(sim_device *device, uint64_t address);
/* The memory behind these bytes when work runs: CUDA_ERROR_ILLEGAL_ADDRESS unless one live block holds them all. */
CUresult sim_resolve(sim_device *device, uint64_t address, size_t nbytes, void **memory);
/* Checks the guards of the blocks resolved since the last call; a broken one poisons its device. */
void sim_check_touched(void);
void sim_check_all(sim_device *device);
void sim_pool_trim(sim_device *device, size_t keep);

/* The block that holds these bytes, at least one; NULL: none does. */
sim_block *sim_block_holding(const sim_device *device, uint64_t address, size_t nbytes);

/* memory.c */
CUresult sim_enqueue_fill(sim_stream *stream, uint64_t address, unsigned char value, size_t nbytes);
/* Whether one block of page-locked memory holds these bytes of the host. */
bool sim_is_pinned(const void *memory, size_t nbytes);
/* Its histories, and where in it they stand; NULL: none does. */
sim_histories *sim_pinned_histories(const void *memory, size_t nbytes, size_t *into);
void sim_pinned_forget(void);

/* ---------------------------------------------------------------- streams: queue.c, stream.c */

/* A place in a stream that events and waits refer to. Counted. */
typedef struct sim_point {
    int64_t refs;
    struct sim_point *also; /* a place in another stream, counted: an event of a context has all of them */
    sim_stream *stream;
    uint64_t ticket; /* 0 until it stands in its stream */
    bool done;
    int64_t time; /* nanoseconds, when it was reached */
} sim_point;

void sim_point_release(sim_point *point);

/* One piece of queued work. run answers CUDA_ERROR_OUT_OF_MEMORY when the host has none: the item then stays and is
 * tried again later; any other failure loses the device. */
typedef struct sim_item {
    CUresult (*run)(sim_device *device, const struct sim_item *item);
    uint64_t ticket; /* order of all calls on all streams */
    uint64_t target, source;
    size_t nbytes;
    const void *what;
    sim_block *starts; /* borrowed */
    uint64_t digest;   /* of what a copy reads, in page-locked memory */
    uint32_t place;
    /* given back at the end, also when the item is dropped */
    void *held;                  /* by dt_free */
    sim_point *point;            /* counted; done when this item is, if it has its ticket */
    sim_block *block;            /* freed */
    struct sim_program *program; /* released */
} sim_item;

#define SIM_QUEUE 256

struct sim_stream {
    sim_device *device;
    sim_stream *next;
    void *handle;  /* NULL: the NULL stream */
    bool blocking; /* ordered with the NULL stream */
    sim_pace pace;
    unsigned first, count;
    sim_item items[SIM_QUEUE];
};

CUresult sim_stream_new(sim_device *device, bool blocking, sim_stream **stream);
void sim_stream_free(sim_stream *stream);
/* The stream of a handle that belongs to device; NULL is the NULL stream. */
/* The device's default stream, or a stream of any device; NULL: none. */
sim_stream *sim_stream_named(sim_device *device, CUstream handle);
CUresult sim_stream_find(sim_device *device, CUstream handle, sim_stream **stream);
/* Queues a copy of item; what it holds is the stream's on success only. */
CUresult sim_enqueue(sim_stream *stream, const sim_item *item);
/* The same for work that uses memory: fails with CUDA_ERROR_UNKNOWN where that races. */
CUresult sim_enqueue_work(sim_stream *stream, const sim_item *item, const char *what, const sim_touch *touches, int n);
/* After a kernel or a product was queued: runs it where CUDA_LAUNCH_BLOCKING=1 asks for that. */
CUresult sim_sent(sim_stream *stream);
/* Runs what stands in the stream up to ticket, and what it must wait for. */
CUresult sim_run_until(sim_stream *stream, uint64_t ticket);
CUresult sim_run_one(sim_stream *stream);
CUresult sim_drain(sim_stream *stream);
/* The same, and what the NULL stream orders before the next item. */
CUresult sim_settle(sim_stream *stream);
CUresult sim_drain_device(sim_device *device);
/* Forgets what stands in the stream. */
void sim_stream_drop(sim_stream *stream);

typedef struct {
    sim_device *device;
    sim_point *point; /* of the last record; NULL: never recorded */
    bool timed;
    sim_moment moment; /* the same, for the order */
} sim_event;

void sim_event_free(sim_event *event);

/* ---------------------------------------------------------------- kernels: module.c, image.c, nvrtc.c, host.h */

#define SIM_KERNEL_NAME 72
#define SIM_CUBIN_MAGIC "simcubn"

typedef struct {
    sim_device *device;
    char kernel[SIM_KERNEL_NAME]; /* the only one in the module; "": all */
    struct sim_program *program;  /* a user's kernel; NULL: ours */
    int dynamic_shared_bytes;     /* the most that a launch of it may ask for */
} sim_module;

void sim_module_free(sim_module *module);

/* touches.c: the operands of a launch of one of our kernels. */
#define SIM_MOST_TOUCHES 320
int sim_touches_of(const dt_host_kernel *kernel, const void *args, sim_touch touches[SIM_MOST_TOUCHES]);

/* What the simulated NVRTC makes: it names what it was made from and for. */
typedef struct {
    char magic[8];
    uint8_t digest[DT_SHA256_BYTES]; /* of what follows */
    int32_t arch;
    char kernel[SIM_KERNEL_NAME]; /* as in sim_module */
    uint8_t program[DT_SHA256_BYTES];
    uint64_t nbytes; /* of the executable that follows, for a user's kernel */
    uint8_t contents[DT_SHA256_BYTES];
} sim_cubin;

typedef struct {
    char kernel[SIM_KERNEL_NAME];
    const void *executable; /* inside the image; NULL: one of our kernels */
    size_t nbytes;
} sim_image;

/* Writes the magic and the digests. */
void sim_cubin_seal(sim_cubin *cubin, const void *executable);
/* What a device of that capability (90: 9.0) answers when it is to load image, and what is in it. */
CUresult sim_image_read(const void *image, int capability, sim_image *out);

/* ---------------------------------------------------------------- libraries: library.c */

/* How a library's faster algorithms round their inputs; SIM_WIDE: half types become float32. */
typedef enum { SIM_EXACT, SIM_TF32, SIM_HALF, SIM_WIDE } sim_rounding;

int64_t sim_size_limit(void);
/* Bytes from the first to the last element of a (strides are not negative). */
size_t sim_extent(const dt_array *a);
/* Points a at the memory behind address; storage is the caller's and outlives a. */
CUresult sim_bind(sim_device *device, uint64_t address, dt_storage *storage, dt_array *a);
/* Points a at a rounded copy of itself in *copy, to be released by dt_free; nothing to do for SIM_EXACT. */
CUresult sim_round(sim_rounding rounding, dt_storage *storage, dt_array *a, void **copy);
/* What max(x, 0) makes of the NaNs in y where they are not asked for: 0. */
void sim_drop_nans(dt_array *y);
/* Overwrites the workspace, as the library would. */
CUresult sim_scribble(sim_device *device, uint64_t workspace, size_t nbytes);
CUresult sim_from_status(dt_status status);

#endif
