/* event.c: the user's events. */
#include "../launch/index_errors.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* the events' fields; taken before a device's */

static dt_status
fail_event(const char *text, dt_error *err)
{
    return dt_fail(err, DT_EVALUE, "invalid-argument", NULL, "%s", text);
}

void
cuda_event_clear(cuda_event *event)
{
    cuda_device *d = event->event != NULL ? cuda_find(event->device->index) : NULL;
    if (d != NULL && cu.cuEventDestroy_v2(event->event) != 0 && cu.cuCtxSetCurrent(d->context) == 0) {
        (void)cu.cuEventDestroy_v2(event->event); /* this thread may have had no context */
    }
    event->event = NULL;
}

static dt_status
record(cuda_event *event, cuda_queue *queue, dt_error *err)
{
    cuda_device *d;
    if (event->device != NULL && event->device != queue->device) {
        return dt_fail(err, DT_EVALUE, "invalid-argument", NULL,
                       "Event device %d does not match recording stream's device %d.", event->device->index,
                       queue->device->index);
    }
    DT_TRY(cuda_enter(queue->device->index, &d, err));
    if (event->event == NULL) {
        unsigned flags = (event->timed ? 0u : (unsigned)CU_EVENT_DISABLE_TIMING) |
                         (event->blocking ? (unsigned)CU_EVENT_BLOCKING_SYNC : 0u);
        CUDA_TRY(d, cuEventCreate, (&event->event, flags));
        event->device = d;
    }
    pthread_mutex_lock(&d->lock);
    dt_status rc = CUDA_CALL(d, cuEventRecord, (event->event, queue->stream));
    if (rc == DT_OK) {
        event->recorded = true;
        event->mark = atomic_load(&d->many) ? (cuda_mark){queue->seq, queue->id} : (cuda_mark){0, 0};
    }
    pthread_mutex_unlock(&d->lock);
    return rc;
}

dt_status
cuda_event_record(cuda_event *event, cuda_queue *queue, dt_error *err)
{
    pthread_mutex_lock(&lock);
    dt_status rc = record(event, queue, err);
    pthread_mutex_unlock(&lock);
    return rc;
}

bool
cuda_event_read(const cuda_event *event, cuda_event *out)
{
    pthread_mutex_lock(&lock);
    *out = *event;
    pthread_mutex_unlock(&lock);
    return out->recorded;
}

static dt_status
wait_for_event(const cuda_event *event, cuda_queue *queue, dt_error *err)
{
    cuda_device *d;
    if (!event->recorded) {
        return DT_OK;
    }
    DT_TRY(cuda_enter(queue->device->index, &d, err));
    CUDA_TRY(d, cuStreamWaitEvent, (queue->stream, event->event, 0));
    if (event->device == d) {
        uint64_t *waited = &queue->waited[event->mark.queue];
        pthread_mutex_lock(&d->lock);
        *waited = *waited < event->mark.seq ? event->mark.seq : *waited;
        pthread_mutex_unlock(&d->lock);
    }
    return DT_OK;
}

dt_status
cuda_event_wait(const cuda_event *event, cuda_queue *queue, dt_error *err)
{
    pthread_mutex_lock(&lock); /* it is not recorded anew meanwhile */
    dt_status rc = wait_for_event(event, queue, err);
    pthread_mutex_unlock(&lock);
    return rc;
}

dt_status
cuda_event_query(const cuda_event *event, bool *done, dt_error *err)
{
    cuda_device *d;
    cuda_event e;
    *done = true;
    if (!cuda_event_read(event, &e)) {
        return DT_OK;
    }
    DT_TRY(cuda_enter(e.device->index, &d, err));
    int status = cu.cuEventQuery(e.event);
    *done = status == CUDA_SUCCESS;
    return status == CUDA_ERROR_NOT_READY ? DT_OK : cuda_check(d, DT_API_cuEventQuery, status, err);
}

dt_status
cuda_event_synchronize(const cuda_event *event, dt_error *err)
{
    cuda_device *d;
    cuda_event e;
    if (!cuda_event_read(event, &e)) {
        return DT_OK;
    }
    DT_TRY(cuda_enter(e.device->index, &d, err));
    DT_COUNT(synchronizations, 1);
    CUDA_TRY(d, cuEventSynchronize, (e.event));
    return cuda_late_check(d, err);
}

dt_status
cuda_event_elapsed(const cuda_event *start, const cuda_event *end, float *milliseconds, dt_error *err)
{
    cuda_device *d;
    cuda_event first, last;
    bool recorded = cuda_event_read(start, &first);
    recorded = cuda_event_read(end, &last) && recorded;
    if (!first.timed || !last.timed) {
        return fail_event("Both events must be created with argument 'enable_timing=True'.", err);
    }
    if (!recorded) {
        return fail_event("Both events must be recorded before calculating elapsed time.", err);
    }
    if (first.device != last.device) {
        return fail_event("Both events must be recorded on the same device to calculate elapsed time.", err);
    }
    DT_TRY(cuda_enter(first.device->index, &d, err));
    int status = cu.cuEventElapsedTime(milliseconds, first.event, last.event);
    if (status == CUDA_ERROR_NOT_READY) {
        return fail_event("Both events must be completed before calculating elapsed time.", err);
    }
    return cuda_check(d, DT_API_cuEventElapsedTime, status, err);
}
