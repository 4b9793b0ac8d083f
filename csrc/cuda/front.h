/* front.h: the door of the CUDA backend: all that csrc/py may ask of it. Nothing here needs the driver's table, and no
 * other header of this room leaves it but for csrc/sim. */
#ifndef DT_CUDA_FRONT_H
#define DT_CUDA_FRONT_H

#include "../core/devtensor.h"
#include "../core/ops/kernel.h"
#include "simulated.h"

typedef struct cuda_device cuda_device;
typedef struct cuda_queue cuda_queue;
/* The driver's, as in api.h. */
typedef unsigned long long CUdeviceptr;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
#define CU_STREAM_LEGACY ((CUstream)1)

/* The backend's entry: what the registry calls on first use. */
dt_status cuda_open(const dt_backend **backend, dt_error *err) DT_MUST_CHECK;

/* ---------------------------------------------------------------- libraries: api.c, load.c */

typedef enum { DT_LIBRARY_CUDA, DT_LIBRARY_CUBLASLT, DT_LIBRARY_CUDNN, DT_LIBRARY_NVRTC, DT_NLIBRARIES } dt_library;

/* Directories (absolute, separated by colons) where NVIDIA's Python packages keep their libraries. */
void cuda_set_search_path(const char *directories);
/* What was tried to find each library, one line an attempt. Returns the length; writes at most size bytes with the 0.
 */
size_t cuda_api_report(char *text, size_t size);
/* Finds and loads a library for the report, with no need of a device. The loader's own text on failure. */
dt_status cuda_api_probe(dt_library library, dt_error *err) DT_MUST_CHECK;
/* Loads a library at the first need of its symbols. */
dt_status cuda_api_need(dt_library library, dt_error *err) DT_MUST_CHECK;
/* The version of a library by its own count (13000, 130100, 91002), 0 when it is not loaded. */
int cuda_api_version(dt_library library);
/* True for a cuBLAS that may corrupt data on a device of this capability: 12.8 to before 13.2 on 10.0 to 11.x. */
bool cuda_cublas_hazard(int major);
/* place writes where the program is, such as "train.py:12"; it is asked once, when CUDA has been opened. */
void cuda_set_place(void (*place)(char *text, size_t size));
/* warn is given a sentence that users should see, which stays; from any thread, with no lock held. */
void cuda_set_warn(void (*warn)(const char *text));

/* The outside functions, by number from 0: how many there are, what they are called, how often each was called. */
int cuda_api_count(void);
const char *cuda_api_name(int symbol);
int64_t cuda_api_called(int symbol);

/* ---------------------------------------------------------------- the simulated GPU: api.c */

/* Makes "cuda" mean `devices` simulated GPUs of `memory` bytes each (0: the default); before the first use of CUDA.
 * races: a sim_race_mode, also later; -1: as it is. */
dt_status cuda_request_simulated(int devices, size_t memory, int races, dt_error *err) DT_MUST_CHECK;
/* races.c: where a program is, as a number that stays, with any locks held; and the number as text, "train.py:12". */
void cuda_set_places(unsigned (*place)(void), const char *(*text)(unsigned place));
bool cuda_is_simulated(void);
/* Makes simulated devices that are lost usable again. */
dt_status cuda_reset_simulated(dt_error *err) DT_MUST_CHECK;
/* Whether this process, or one that it is a fork of, has used CUDA. */
bool cuda_is_open(void);
/* Whether the addresses of device memory mean something to other libraries of this process. */
bool cuda_can_lend(void);
/* For tests, whose other library knows simulated devices. */
void cuda_lend_simulated(bool lend);

/* ---------------------------------------------------------------- devices: device.c */

/* The device, ready, with its context current on this thread. */
dt_status cuda_enter(int index, cuda_device **device, dt_error *err) DT_MUST_CHECK;
int cuda_device_index(const cuda_device *device);

/* ---------------------------------------------------------------- streams: stream.c */

typedef struct {
    int device, priority;
    CUstream stream; /* the driver's */
} cuda_queue_info;

cuda_queue_info cuda_queue_read(const cuda_queue *queue);
/* The stream that this thread has chosen for device, or the default one. */
cuda_queue *cuda_current(const cuda_device *device);
cuda_queue *cuda_default_queue(const cuda_device *device);
dt_status cuda_set_current(cuda_queue *queue, dt_error *err) DT_MUST_CHECK;
/* A stream of the user's, one that is free if there is; 0 is the lowest priority, smaller numbers come first. */
dt_status cuda_queue_acquire(cuda_device *device, int64_t priority, cuda_queue **queue, dt_error *err) DT_MUST_CHECK;
void cuda_queue_retain(cuda_queue *queue);
void cuda_queue_release(cuda_queue *queue);
dt_status cuda_queue_synchronize(cuda_queue *queue, dt_error *err) DT_MUST_CHECK;
dt_status cuda_queue_query(cuda_queue *queue, bool *done, dt_error *err) DT_MUST_CHECK;
/* What is sent to queue from now on waits for what other (of any device) has been sent so far. */
dt_status cuda_queue_wait(cuda_queue *queue, cuda_queue *other, dt_error *err) DT_MUST_CHECK;

/* ---------------------------------------------------------------- events: event.c */

/* A point in a stream: after all that had been noted there when its count was seq. 0: before everything. */
typedef struct {
    uint64_t seq;
    unsigned queue;
} cuda_mark;

/* An event of the user's; the driver's is made when it is first recorded. */
typedef struct {
    bool timed, blocking, recorded;
    cuda_device *device; /* NULL: none yet */
    CUevent event;
    cuda_mark mark;
} cuda_event;

void cuda_event_clear(cuda_event *event);
/* A copy; whether it was recorded. */
bool cuda_event_read(const cuda_event *event, cuda_event *out);
dt_status cuda_event_record(cuda_event *event, cuda_queue *queue, dt_error *err) DT_MUST_CHECK;
dt_status cuda_event_wait(const cuda_event *event, cuda_queue *queue, dt_error *err) DT_MUST_CHECK;
dt_status cuda_event_query(const cuda_event *event, bool *done, dt_error *err) DT_MUST_CHECK;
dt_status cuda_event_synchronize(const cuda_event *event, dt_error *err) DT_MUST_CHECK;
dt_status cuda_event_elapsed(const cuda_event *start, const cuda_event *end, float *milliseconds,
                             dt_error *err) DT_MUST_CHECK;

/* ---------------------------------------------------------------- memory: allocator.c, pinned.c */

/* Sizes in bytes, of one device. */
typedef struct {
    size_t limit;                          /* of reserved */
    size_t requested, allocated, reserved; /* by arrays; the same, rounded; from the driver */
    size_t requested_peak, allocated_peak, reserved_peak;
    int64_t in_use, allocations, hits, driver_allocations, driver_frees, retries, failures;
} cuda_memory_stats;

void cuda_memory_read(cuda_device *device, cuda_memory_stats *out);
/* weights.c: bytes of copies of weights, a part of what is allocated. */
size_t cuda_weights_kept(cuda_device *device);
void cuda_memory_reset_peak(cuda_device *device);
dt_status cuda_memory_limit(cuda_device *device, double fraction, dt_error *err) DT_MUST_CHECK;

/* PyTorch's names: what is there now, the most there was, and all that came and went. */
typedef struct {
    uint64_t current, peak, allocated, freed;
} cuda_host_count;

typedef struct {
    double total, max, min; /* microseconds */
    uint64_t count;
} cuda_host_time;

typedef struct {
    cuda_host_count allocations, allocated_bytes; /* blocks of the driver */
    cuda_host_count active_requests, active_bytes;
    cuda_host_time alloc_time, free_time; /* in the driver */
} cuda_host_stats;

void cuda_host_memory(cuda_host_stats *out);

/* ---------------------------------------------------------------- shared with other libraries: foreign.c */

/* Before the address of a is given away: consumer's work (NULL: nobody's) runs behind ours on it from now on. */
dt_status cuda_lend(const dt_array *a, CUstream consumer, dt_error *err) DT_MUST_CHECK;
/* What is done with the memory from now on comes after all that the device was sent, by whomever: where others are done
 * with it, or it ends and nobody knows whether they are. Nothing on the host waits. */
void cuda_follow_others(dt_storage *storage);
/* A storage over nbytes of memory of device index that another library owns. Our work runs behind what producer (NULL:
 * nobody) was sent; release(owner, address) is called at the end, once our work on it is over. */
dt_status cuda_borrow(int index, CUdeviceptr address, size_t nbytes, unsigned flags, CUstream producer, void *owner,
                      void (*release)(void *owner, void *data), dt_storage **out, dt_error *err) DT_MUST_CHECK;
/* *index, an existing device, becomes that of an address, if it is one of a device. */
dt_status cuda_find_address(CUdeviceptr address, int *index, dt_error *err) DT_MUST_CHECK;

/* ---------------------------------------------------------------- what was sent: launch_log.c */

#define CUDA_SENT 8 /* the last pieces of work of a stream that are remembered */

/* One piece of work: the number counts those of its stream. */
typedef struct {
    int device;
    unsigned stream;
    uint64_t number;
} cuda_sent;

/* Work that may have gone wrong. */
typedef struct {
    cuda_sent sent;
    const void *stream; /* the driver's */
    char name[64];
} cuda_suspect;

/* sent is told of each kernel and library call before it is sent; from any thread, with locks of the device held. */
void cuda_set_sent(void (*sent)(const cuda_sent *sent));
/* What was sent last to a device that is lost and is not known to have ended: stream by stream, the latest first. The
 * number of them; 0 for any other device. */
int cuda_last_sent(int index, cuda_suspect *out, int most);

/* ---------------------------------------------------------------- users' kernels: raw.c */

typedef struct cuda_raw cuda_raw;

/* Takes nothing over: all texts are copied. kept: what NVRTC makes may be kept on the disk, since nothing but these
 * texts goes into it. */
dt_status cuda_raw_new(const dt_kernel *kernel, const char *source, int nheaders, const char *const *headers,
                       const char *const *header_names, int noptions, const char *const *options, bool kept,
                       cuda_raw **out, dt_error *err) DT_MUST_CHECK;
/* From any thread, also with no context: modules are given back later. */
void cuda_raw_release(cuda_raw *raw);
const dt_kernel *cuda_raw_kernel(const cuda_raw *raw);

/* Makes the kernel ready on a device. *log: NULL, or what the compiler says against it, by dt_free. */
dt_status cuda_raw_compile(cuda_raw *raw, int device, char **log, dt_error *err) DT_MUST_CHECK;

typedef struct {
    unsigned grid[3], block[3];
    int64_t shared_bytes;
    cuda_queue *queue; /* NULL: this thread's stream */
} cuda_raw_launch;

/* Sends a launch, in order with what other streams do to the arrays among args. *missing: the kernel is not ready on
 * that device, and nothing was sent. */
dt_status cuda_raw_call(cuda_raw *raw, const cuda_raw_launch *launch, const dt_kernel_arg *args, int nargs, int *device,
                        bool *missing, dt_error *err) DT_MUST_CHECK;

typedef struct {
    int max_threads, shared_bytes, const_bytes, local_bytes, registers, ptx_version, binary_version;
    int max_dynamic_shared_bytes; /* that a launch may ask for on this device */
} cuda_raw_attributes;

/* Of a kernel that is ready on that device. */
dt_status cuda_raw_describe(cuda_raw *raw, int device, cuda_raw_attributes *out, dt_error *err) DT_MUST_CHECK;

/* ---------------------------------------------------------------- our kernels: module.c, launch.c */

/* Where kernels come from. */
typedef struct {
    const char *archs; /* of the embedded machine code; "" where there is none */
    int nimages, nkernels;
    size_t nbytes;          /* of the images */
    int64_t compiled, read; /* kernels compiled at run time in this process, and taken from kept_in instead */
    char kept_in[256];
    const char *not_kept; /* NULL, or why nothing is kept there */
} cuda_kernels;

void cuda_kernels_info(cuda_kernels *info);

/* disk.c: where files are kept between processes, which need not exist; NULL, or why there is no such place. */
#define CUDA_PATH_BYTES 4096
const char *cuda_disk_path(char path[CUDA_PATH_BYTES]);

/* ---------------------------------------------------------------- plans of products and convolutions */

/* conv/tune.c: whether new plans of convolutions are timed; what was found, as rows of 64-bit words of which the first
 * ones are the key, and the next is -1 where what was found before no longer holds. */
bool cuda_tuning(void);
void cuda_set_tuning(bool tune);
size_t cuda_tuned_key(void);
size_t cuda_tuned_width(void);
/* Rows to be freed by dt_free. */
dt_status cuda_tuned_export(int device, int64_t **rows, size_t *nrows, dt_error *err) DT_MUST_CHECK;
/* False: the row cannot be one of ours. */
dt_status cuda_tuned_import(int device, const int64_t *row, dt_error *err) DT_MUST_CHECK;

/* conv/memory.c: the most bytes of scratch memory that a convolution may want, where there is a choice; INT64_MAX: as
 * much as is free. */
int64_t cuda_workspace_limit(void);
void cuda_set_workspace_limit(int64_t nbytes);

/* kind: 0 the convolution, 1 the gradient of its input, 2 of its weight
 * conv/describe.c: what would be planned on a device that need not be there, described in cuDNN's JSON. */
typedef struct {
    bool product; /* of matrices: cuDNN plans nothing */
    int64_t engine, workspace, out[4];
    uint32_t notes, behaviors;
    int candidate;
    bool bias, activation; /* in the same graph */
    bool unloadable;       /* an engine before it could not be loaded without the device */
} cuda_conv_description;
/* attention_plan.c: whether cuDNN plans that for such a device, up to the loading of its code: kind 0 the result, 1
 * with what its gradient needs, 2 the gradient; shapes are (batch, heads, length, size). */
dt_status cuda_attention_describe(const char *json, size_t length, dt_dtype dtype, const int64_t query[4],
                                  const int64_t key[4], const int64_t value[4], bool causal, int kind, bool *known,
                                  dt_error *err) DT_MUST_CHECK;
dt_status cuda_conv_describe(const char *json, size_t length, dt_dtype dtype, const int64_t x[4],
                             const int64_t weight[4], bool has_bias, const dt_conv2d_params *params, bool channels_last,
                             int kind, cuda_conv_description *out, dt_error *err) DT_MUST_CHECK;

/* ---------------------------------------------------------------- for tests and benchmarks */

/* LATE: the call answers success without being made, as work that goes wrong on the device later; the next call that
 * waits answers the status, and from there on all calls that touch the context. */
typedef enum {
    CUDA_FAULT_AT_ONCE,
    CUDA_FAULT_LATE,
    CUDA_FAULT_DROPPED,
    CUDA_FAULT_NONE, /* calls are noted */
    CUDA_FAULT_SLOW, /* calls are made status microseconds late: other threads come between a call and what follows */
} cuda_fault_mode;
/* The nth call from now (0: the next) of symbol (-1: of any that returns a status) answers status without being made,
 * and so do those after it, times in all. nth < 0 disarms. */
void cuda_api_fail(int symbol, int64_t nth, int64_t times, int status, cuda_fault_mode mode);

typedef struct {
    int symbol;
    int64_t site; /* of the code, from a fixed place */
} cuda_call_site;

/* The calls since cuda_api_fail with CUDA_FAULT_NONE, in order. */
int cuda_api_sites(const cuda_call_site **out);

/* What may be changed, to reach the other way of doing the same. */
typedef struct {
    int64_t index_limit; /* entries and offsets above it take the 64-bit form */
    bool skinny, depthwise;
    int64_t attention_scores; /* bytes of them that are in memory at a time; 0: attention never goes by products */
    int64_t attention_work;   /* multiplications from which attention goes by cuDNN */
    int64_t attention_shapes; /* of a kind on a device for which it compiles */
} cuda_kernel_settings;
#define CUDA_KERNEL_SETTINGS                                                                                           \
    {                                                                                                                  \
        .index_limit = INT32_MAX, .skinny = true, .depthwise = true, .attention_scores = INT64_C(24) << 20,            \
        .attention_work = INT64_C(1) << 32, .attention_shapes = 32                                                     \
    }
extern cuda_kernel_settings cuda_settings;

/* cache.c: how many plans a device keeps of products, and of convolutions (0: back to 4096). */
void cuda_set_plan_limit(size_t limit);
/* matmul.c: the most rows, columns or elements of an operand that one call of a library is given (0: back to 2**31 -
 * 1).
 */
void cuda_set_size_limit(int64_t limit);

#endif
