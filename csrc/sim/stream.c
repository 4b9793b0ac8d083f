/* stream.c: streams and events. */
#include "sim.h"

#define LEAST_PRIORITY 0
#define GREATEST_PRIORITY (-5)

/* Either pointer may be NULL. */
CUresult
sim_cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
    sim_device *device;
    CUresult status = sim_current(&device);
    if (status == CUDA_SUCCESS && least != NULL) {
        *least = LEAST_PRIORITY;
    }
    if (status == CUDA_SUCCESS && greatest != NULL) {
        *greatest = GREATEST_PRIORITY;
    }
    return status;
}

/* A priority outside the range is taken as the nearest one. It is a hint, which work here does not heed. */
CUresult
sim_cuStreamCreateWithPriority(CUstream *handle, unsigned flags, int priority)
{
    (void)priority;
    return sim_cuStreamCreate(handle, flags);
}

CUresult
sim_cuStreamCreate(CUstream *handle, unsigned flags)
{
    sim_device *device;
    sim_stream *stream;
    if (handle != NULL) {
        *handle = (CUstream)(intptr_t)-1; /* what the driver leaves when it refuses */
    }
    CUresult status = sim_current(&device);
    if (status == CUDA_SUCCESS && (handle == NULL || (flags & ~(unsigned)CU_STREAM_NON_BLOCKING) != 0)) {
        status = CUDA_ERROR_INVALID_VALUE;
    }
    if (status == CUDA_SUCCESS) {
        status = sim_stream_new(device, !(flags & CU_STREAM_NON_BLOCKING), &stream);
    }
    if (status != CUDA_SUCCESS) {
        return status;
    }
    stream->handle = sim_handle_new(SIM_STREAM, stream);
    if (stream->handle == NULL) {
        sim_stream_free(stream);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    stream->next = device->streams;
    device->streams = stream;
    *handle = stream->handle;
    return CUDA_SUCCESS;
}

/* A stream of any device; the thread needs a context, though not that device's. */
static CUresult
find_any(CUstream handle, sim_stream **stream)
{
    sim_device *device;
    CUresult status = sim_context(&device);
    if (status != CUDA_SUCCESS) {
        return status;
    }
    *stream = sim_stream_named(device, handle);
    return *stream == NULL ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
}

/* Finishes the work first; the driver returns at once and lets it finish. */
CUresult
sim_cuStreamDestroy_v2(CUstream handle)
{
    sim_stream *stream;
    CUresult status = handle == NULL ? CUDA_ERROR_INVALID_HANDLE : find_any(handle, &stream);
    if (status != CUDA_SUCCESS) {
        return status;
    }
    sim_device *device = stream->device;
    if (stream == device->null_stream) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    status = sim_drain(stream);
    if (status == CUDA_SUCCESS || status == device->sticky) {
        sim_handle_delete(SIM_STREAM, handle);
        sim_stream_free(stream);
    }
    return status;
}

CUresult
sim_cuStreamSynchronize(CUstream handle)
{
    sim_stream *stream;
    CUresult status = find_any(handle, &stream);
    if (status != CUDA_SUCCESS) {
        return status;
    }
    return stream == stream->device->null_stream ? sim_settle(stream) : sim_drain(stream);
}

/* Polling makes progress, one item a call. */
CUresult
sim_cuStreamQuery(CUstream handle)
{
    sim_stream *stream;
    CUresult status = find_any(handle, &stream);
    if (status != CUDA_SUCCESS) {
        return status;
    }
    bool pending = stream->count > 0;
    status = sim_run_one(stream);
    return status == CUDA_SUCCESS && pending ? CUDA_ERROR_NOT_READY : status;
}

/* ---------------------------------------------------------------- events */

void
sim_event_free(sim_event *event)
{
    sim_point_release(event->point);
    dt_free(event);
}

static CUresult
find_event(CUevent handle, sim_event **event)
{
    sim_device *device;
    CUresult status = handle == NULL ? CUDA_ERROR_INVALID_HANDLE : sim_context(&device);
    if (status != CUDA_SUCCESS) {
        return status;
    }
    *event = sim_handle_get(SIM_EVENT, handle);
    return *event == NULL ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
}

CUresult
sim_cuEventCreate(CUevent *handle, unsigned flags)
{
    sim_device *device;
    CUresult status = sim_current(&device);
    /* CU_EVENT_BLOCKING_SYNC changes how a thread waits, not what it sees */
    unsigned known = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING;
    if (status == CUDA_SUCCESS && (handle == NULL || (flags & ~known) != 0)) {
        status = CUDA_ERROR_INVALID_VALUE;
    }
    if (status != CUDA_SUCCESS) {
        return status;
    }
    sim_event *event = dt_malloc(sizeof(*event));
    if (event == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *event = (sim_event){.device = device, .timed = !(flags & CU_EVENT_DISABLE_TIMING)};
    CUevent name = sim_handle_new(SIM_EVENT, event);
    if (name == NULL) {
        dt_free(event);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *handle = name;
    return CUDA_SUCCESS;
}

CUresult
sim_cuEventDestroy_v2(CUevent handle)
{
    sim_event *event;
    CUresult status = find_event(handle, &event);
    if (status != CUDA_SUCCESS) {
        return status;
    }
    status = event->device->sticky;
    sim_handle_delete(SIM_EVENT, handle);
    sim_event_free(event);
    return status;
}

static CUresult
run_record(sim_device *device, const sim_item *item)
{
    (void)device;
    (void)item;
    return CUDA_SUCCESS;
}

CUresult
sim_cuEventRecord(CUevent handle, CUstream stream_handle)
{
    sim_device *device;
    sim_event *event;
    sim_stream *stream;
    CUresult status = sim_current(&device);
    if (status == CUDA_SUCCESS) {
        status = find_event(handle, &event);
    }
    if (status == CUDA_SUCCESS) {
        status = find_any(stream_handle, &stream);
    }
    if (status == CUDA_SUCCESS) {
        status = stream->device == event->device ? stream->device->sticky : CUDA_ERROR_INVALID_HANDLE;
    }
    if (status != CUDA_SUCCESS) {
        return status;
    }
    sim_point *point = dt_malloc(sizeof(*point));
    if (point == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *point = (sim_point){.refs = 2, .stream = stream};
    sim_item item = {.run = run_record, .point = point};
    status = sim_enqueue(stream, &item);
    if (status != CUDA_SUCCESS) {
        dt_free(point);
        return status;
    }
    sim_point_release(event->point);
    event->point = point;
    return CUDA_SUCCESS;
}

/* Runs the stream in which point stands as far as that. A device that is lost has nothing to wait for. */
static CUresult
reach(const sim_point *point)
{
    CUresult status = point->done ? CUDA_SUCCESS : sim_run_until(point->stream, point->ticket);
    return point->done ? CUDA_SUCCESS : status;
}

static CUresult
run_wait(sim_device *device, const sim_item *item)
{
    (void)device;
    return reach(item->point);
}

CUresult
sim_cuStreamWaitEvent(CUstream stream_handle, CUevent handle, unsigned flags)
{
    sim_event *event;
    sim_stream *stream;
    CUresult status = find_any(stream_handle, &stream);
    if (status == CUDA_SUCCESS) {
        status = find_event(handle, &event);
    }
    if (status == CUDA_SUCCESS && flags != 0) {
        status = CUDA_ERROR_INVALID_VALUE;
    }
    if (status == CUDA_SUCCESS) {
        status = stream->device->sticky;
    }
    if (status != CUDA_SUCCESS || event->point == NULL || event->point->done) {
        return status;
    }
    sim_item item = {.run = run_wait, .point = event->point};
    event->point->refs++;
    status = sim_enqueue(stream, &item);
    if (status != CUDA_SUCCESS) {
        sim_point_release(item.point);
    }
    return status;
}

CUresult
sim_cuEventSynchronize(CUevent handle)
{
    sim_event *event;
    CUresult status = find_event(handle, &event);
    if (status == CUDA_SUCCESS && event->point != NULL) {
        status = reach(event->point);
    }
    return status == CUDA_SUCCESS ? event->device->sticky : status;
}

CUresult
sim_cuEventQuery(CUevent handle)
{
    sim_event *event;
    CUresult status = find_event(handle, &event);
    if (status != CUDA_SUCCESS) {
        return status;
    }
    if (event->device->sticky == CUDA_SUCCESS && event->point != NULL && !event->point->done) {
        status = sim_run_one(event->point->stream);
        return status == CUDA_SUCCESS ? CUDA_ERROR_NOT_READY : status;
    }
    return event->device->sticky;
}

CUresult
sim_cuEventElapsedTime(float *milliseconds, CUevent start_handle, CUevent end_handle)
{
    sim_event *start, *end;
    CUresult status = find_event(start_handle, &start);
    if (status == CUDA_SUCCESS) {
        status = find_event(end_handle, &end);
    }
    if (status == CUDA_SUCCESS && milliseconds == NULL) {
        status = CUDA_ERROR_INVALID_VALUE;
    }
    if (status == CUDA_SUCCESS) {
        status = end->device->sticky;
    }
    if (status != CUDA_SUCCESS) {
        return status;
    }
    if (start->device != end->device || !start->timed || !end->timed || start->point == NULL || end->point == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (!start->point->done || !end->point->done) {
        return CUDA_ERROR_NOT_READY;
    }
    *milliseconds = (float)((double)(end->point->time - start->point->time) * 1e-6);
    return CUDA_SUCCESS;
}
