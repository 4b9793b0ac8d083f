/* stream.h: streams (stream.c), and in which order they do things (order.c). */
#ifndef DT_CUDA_STREAM_H
#define DT_CUDA_STREAM_H

#include "../../core/operands.h"
#include "../device.h"

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

/* ---------------------------------------------------------------- order.c: without the lock */

#define CUDA_MAX_OPERANDS (DT_MAX_ARGS + DT_MAX_NDIM) /* and the arrays of indices */

/* What an op is called with; NULL where it is no array. */
typedef struct {
    const dt_array *array[CUDA_MAX_OPERANDS];
    bool written[CUDA_MAX_OPERANDS];
} cuda_operands;

/* Before an op: this thread's stream waits for the last uses of its operands. After it: they are written down. */
dt_status cuda_order(const cuda_operands *operands, dt_error *err) DT_MUST_CHECK;
void cuda_note(const cuda_operands *operands);

/* ---------------------------------------------------------------- races.c */

/* cuda_order for an op of the user's, of which the program may be asked to have said the order itself. */
dt_status cuda_order_use(const char *what, const cuda_operands *operands, dt_error *err) DT_MUST_CHECK;

#endif
