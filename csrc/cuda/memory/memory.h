/* memory.h: memory of a device (allocator.c, memory.c), and page-locked memory of the host (pinned.c, pinned_uses.c).
 */
#ifndef DT_CUDA_MEMORY_H
#define DT_CUDA_MEMORY_H

#include "../device.h"

/* ---------------------------------------------------------------- allocator.c */

/* Memory for this thread's stream, and back: at once, the next who gets it waits. */
dt_status cuda_allocate(cuda_device *device, size_t nbytes, CUdeviceptr *address, dt_error *err) DT_MUST_CHECK;
void cuda_release(cuda_device *device, CUdeviceptr address, size_t nbytes);
/* The same where another way is open without it: of what is free alone, and err is not written for lack of it. */
dt_status cuda_try_allocate(cuda_device *device, size_t nbytes, CUdeviceptr *address, dt_error *err) DT_MUST_CHECK;
/* The same for a block that others than this thread's stream may have used; usage NULL: the default stream. */
void cuda_release_used(cuda_device *device, CUdeviceptr address, size_t nbytes, const cuda_usage *usage);
/* The driver's answer to a request of its own, outside what arrays hold, tried again without the cache when it has no
 * more. */
dt_status cuda_allocate_uncounted(cuda_device *device, size_t nbytes, CUdeviceptr *address,
                                  dt_error *err) DT_MUST_CHECK;
/* Gives the driver all that nobody uses, copies of weights first; waits for the device. */
dt_status cuda_give_back(cuda_device *device, dt_error *err) DT_MUST_CHECK;
/* status = call, of a driver or library that takes memory of its own; where that is_full, once more without what is
 * cached. Returns what cuda_give_back returns. */
#define CUDA_TRY_WITH_ROOM(device, status, is_full, call)                                                              \
    do {                                                                                                               \
        (status) = (call);                                                                                             \
        if (DT_UNLIKELY(is_full)) {                                                                                    \
            DT_TRY(cuda_give_back((device), err));                                                                     \
            (status) = (call);                                                                                         \
        }                                                                                                              \
    } while (0)
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
/* By cuda_try_allocate. */
dt_status cuda_temporary_try(cuda_temporary *t, cuda_device *device, const dt_array *like, dt_dtype dtype,
                             dt_error *err) DT_MUST_CHECK;
void cuda_temporary_clear(cuda_temporary *t);
/* contiguous becomes x itself or a temporary copy. */
dt_status cuda_contiguous(cuda_device *device, const dt_array *x, cuda_temporary *t, const dt_array **contiguous,
                          dt_error *err) DT_MUST_CHECK;

/* ---------------------------------------------------------------- pinned.c, pinned_uses.c */

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

#endif
