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
    status = stream == stream->device->null_stream ? sim_settle(stream) : sim_drain(stream);
    if (status == CUDA_SUCCESS) {
        sim_race_host_drained(stream);
        status = sim_race_untold();
    }
    return status;
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
    if (status == CUDA_SUCCESS && !pending) {
        sim_race_host_drained(stream);
    }
    return status == CUDA_SUCCESS && pending ? CUDA_ERROR_NOT_READY : status;
}

/* ---------------------------------------------------------------- events */

void
sim_event_free(sim_event *event)
{
    sim_point_release(event->point);
    dt_free(event->moment.at);
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

/* Puts a new point at the end of stream; the caller has a reference to it. */
static CUresult
mark_end(sim_stream *stream, sim_point **out)
{
    sim_point *point = dt_malloc(sizeof(*point));
    if (point == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *point = (sim_point){.refs = 2, .stream = stream};
    sim_item item = {.run = run_record, .point = point};
    CUresult status = sim_enqueue(stream, &item);
    if (status != CUDA_SUCCESS) {
        dt_free(point);
        return status;
    }
    *out = point;
    return CUDA_SUCCESS;
}

CUresult
sim_cuEventRecord(CUevent handle, CUstream stream_handle)
{
    sim_device *device;
    sim_event *event;
    sim_stream *stream;
    sim_point *point;
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
    if (status == CUDA_SUCCESS) {
        status = mark_end(stream, &point);
    }
    if (status == CUDA_SUCCESS) {
        sim_point_release(event->point);
        event->point = point;
        status = sim_race_record(&event->moment, stream->device, stream);
    }
    return status;
}

/* Adds the end of stream to points, if it has work. */
static CUresult
mark_also(sim_stream *stream, sim_point **points)
{
    sim_point *point;
    CUresult status = stream->count > 0 ? mark_end(stream, &point) : CUDA_SUCCESS;
    if (status == CUDA_SUCCESS && stream->count > 0) {
        point->also = *points;
        *points = point;
    }
    return status;
}

CUresult
sim_cuCtxRecordEvent(CUcontext context, CUevent handle)
{
    sim_device *current, *device;
    sim_event *event;
    sim_point *points = NULL;
    CUresult status = sim_current(&current);
    if (status == CUDA_SUCCESS) {
        device = context == NULL ? NULL : sim_handle_get(SIM_CONTEXT, context);
        status = device == NULL ? CUDA_ERROR_INVALID_CONTEXT : find_event(handle, &event);
    }
    if (status == CUDA_SUCCESS) {
        status = device == event->device ? device->sticky : CUDA_ERROR_INVALID_HANDLE;
    }
    if (status == CUDA_SUCCESS) {
        status = mark_also(device->null_stream, &points);
    }
    for (sim_stream *s = status == CUDA_SUCCESS ? device->streams : NULL; s != NULL && status == CUDA_SUCCESS;
         s = s->next) {
        status = mark_also(s, &points);
    }
    if (status != CUDA_SUCCESS) {
        sim_point_release(points);
        return status;
    }
    sim_point_release(event->point);
    event->point = points;
    return sim_race_record(&event->moment, device, NULL);
}

static bool
is_done(const sim_point *point)
{
    while (point != NULL && point->done) {
        point = point->also;
    }
    return point == NULL;
}

/* Runs the streams in which point stands as far as that. A device that is lost has nothing to wait for. */
static CUresult
reach(const sim_point *point)
{
    CUresult status = CUDA_SUCCESS;
    for (; point != NULL && status == CUDA_SUCCESS; point = point->also) {
        status = point->done ? CUDA_SUCCESS : sim_run_until(point->stream, point->ticket);
        status = point->done ? CUDA_SUCCESS : status;
    }
    return status;
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
    if (status != CUDA_SUCCESS) {
        return status;
    }
    if (is_done(event->point)) {
        sim_race_wait(stream, &event->moment);
        return CUDA_SUCCESS;
    }
    sim_item item = {.run = run_wait, .point = event->point};
    event->point->refs++;
    status = sim_enqueue(stream, &item);
    if (status != CUDA_SUCCESS) {
        sim_point_release(item.point);
        return status;
    }
    sim_race_wait(stream, &event->moment);
    return CUDA_SUCCESS;
}

CUresult
sim_cuEventSynchronize(CUevent handle)
{
    sim_event *event;
    CUresult status = find_event(handle, &event);
    if (status == CUDA_SUCCESS) {
        status = reach(event->point);
    }
    if (status == CUDA_SUCCESS) {
        sim_race_host_reached(&event->moment);
        status = event->device->sticky != CUDA_SUCCESS ? event->device->sticky : sim_race_untold();
    }
    return status;
}

CUresult
sim_cuEventQuery(CUevent handle)
{
    sim_event *event;
    CUresult status = find_event(handle, &event);
    if (status != CUDA_SUCCESS) {
        return status;
    }
    if (event->device->sticky == CUDA_SUCCESS && !is_done(event->point)) {
        const sim_point *point = event->point;
        while (point->done) {
            point = point->also;
        }
        status = sim_run_one(point->stream);
        return status == CUDA_SUCCESS ? CUDA_ERROR_NOT_READY : status;
    }
    sim_race_host_reached(&event->moment);
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
        status = CUDA_ERROR_INVALID_HANDLE;
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
    if (!is_done(start->point) || !is_done(end->point)) {
        return CUDA_ERROR_NOT_READY;
    }
    *milliseconds = (float)((double)(end->point->time - start->point->time) * 1e-6);
    return CUDA_SUCCESS;
}
