/* order.c: keeps work on several streams of a device in the order of the program, without a word from the user.
 *
 * Each stream counts the work noted on it, and remembers up to which count it waits for each other stream. Each block
 * of memory remembers where it was written last and read since. An op first has its stream wait for those, by an event
 * that stands late enough, or by a new one. Work is noted after it was sent, so that an event recorded later comes
 * after it.
 *
 * Before a second stream exists nothing is noted. A block without notes was used by the default stream at most. */
#include "stream.h"

atomic_bool cuda_many_streams;

bool
cuda_passed(const cuda_queue *queue, cuda_mark mark)
{
    const cuda_queue *other = queue->device->queues[mark.queue];
    return other == queue || mark.seq <= queue->waited[mark.queue] || mark.seq <= other->done;
}

dt_status
cuda_checkpoint(cuda_queue *queue, dt_error *err)
{
    unsigned i = queue->next_checkpoint;
    CUevent *event = &queue->checkpoints[i].event;
    if (*event == NULL) {
        CUDA_TRY(queue->device, cuEventCreate, (event, CU_EVENT_DISABLE_TIMING));
    }
    CUDA_TRY(queue->device, cuEventRecord, (*event, queue->stream));
    queue->checkpoints[i].seq = queue->seq;
    queue->next_checkpoint = (i + 1) % CUDA_CHECKPOINTS;
    return DT_OK;
}

/* The earliest event that comes after mark, or -1. */
static int
find_checkpoint(const cuda_queue *queue, uint64_t seq)
{
    int found = -1;
    for (int i = 0; i < CUDA_CHECKPOINTS; i++) {
        uint64_t at = queue->checkpoints[i].seq;
        if (at >= seq && (found < 0 || at < queue->checkpoints[found].seq)) {
            found = i;
        }
    }
    return found;
}

dt_status
cuda_wait_for(cuda_queue *queue, cuda_mark mark, dt_error *err)
{
    if (cuda_passed(queue, mark)) {
        return DT_OK;
    }
    cuda_queue *other = queue->device->queues[mark.queue];
    int i = find_checkpoint(other, mark.seq);
    if (i < 0) {
        i = (int)other->next_checkpoint;
        DT_TRY(cuda_checkpoint(other, err));
    }
    CUDA_TRY(queue->device, cuStreamWaitEvent, (queue->stream, other->checkpoints[i].event, 0));
    queue->waited[mark.queue] = other->checkpoints[i].seq;
    return DT_OK;
}

dt_status
cuda_wait_for_usage(cuda_queue *queue, const cuda_usage *usage, dt_error *err)
{
    DT_TRY(cuda_wait_for(queue, usage->written, err));
    for (unsigned i = 0; i < usage->nread; i++) {
        DT_TRY(cuda_wait_for(queue, usage->read[i], err));
    }
    return DT_OK;
}

/* ---------------------------------------------------------------- operands */

static cuda_mark *
find_reader(cuda_usage *usage, unsigned queue)
{
    for (unsigned i = 0; i < usage->nread; i++) {
        if (usage->read[i].queue == queue) {
            return &usage->read[i];
        }
    }
    return NULL;
}

/* Makes room for queue among the readers: where there is none, it waits for one of them and stands for both. */
static dt_status
add_reader(cuda_queue *queue, cuda_usage *usage, dt_error *err)
{
    if (find_reader(usage, queue->id) != NULL) {
        return DT_OK;
    }
    if (usage->nread == CUDA_MAX_READERS) {
        DT_TRY(cuda_wait_for(queue, usage->read[0], err));
        usage->read[0] = cuda_stamp(queue);
    } else {
        usage->read[usage->nread++] = (cuda_mark){0, queue->id};
    }
    return DT_OK;
}

/* The lock is held. Whoever holds a block without notes has it from work that was sent to the default stream already.
 */
static dt_status
order_locked(cuda_device *device, dt_storage *storage, bool written, dt_error *err)
{
    cuda_queue *queue = cuda_current(device);
    cuda_usage *usage = storage->private;
    if (usage == NULL) {
        usage = dt_block_new();
        if (usage == NULL) {
            return dt_fail_nomem(err, sizeof(*usage));
        }
        *usage = (cuda_usage){.written = cuda_stamp(device->queues[0])};
        storage->private = usage;
    }
    if (written) {
        return cuda_wait_for_usage(queue, usage, err);
    }
    DT_TRY(cuda_wait_for(queue, usage->written, err));
    return add_reader(queue, usage, err);
}

static bool
is_ours(const dt_array *a)
{
    return a != NULL && a->storage != NULL && a->storage->device.type == DT_CUDA;
}

dt_status
cuda_order(const cuda_operands *operands, dt_error *err)
{
    for (int i = 0; i < CUDA_MAX_OPERANDS; i++) {
        const dt_array *a = operands->array[i];
        cuda_device *device;
        if (!is_ours(a)) {
            continue;
        }
        DT_TRY(cuda_enter(a->storage->device.index, &device, err));
        if (!atomic_load(&device->many)) {
            continue;
        }
        pthread_mutex_lock(&device->lock);
        dt_status rc = order_locked(device, a->storage, operands->written[i], err);
        pthread_mutex_unlock(&device->lock);
        DT_TRY(rc);
    }
    return DT_OK;
}

static void
note_locked(cuda_device *device, cuda_usage *usage, bool written)
{
    cuda_mark mark = cuda_stamp(cuda_current(device));
    if (written) {
        usage->written = mark;
        usage->nread = 0;
        return;
    }
    cuda_mark *reader = find_reader(usage, mark.queue);
    if (reader == NULL && usage->nread < CUDA_MAX_READERS) {
        reader = &usage->read[usage->nread++];
    }
    if (reader != NULL) {
        *reader = mark;
    }
}

void
cuda_note(const cuda_operands *operands)
{
    for (int i = 0; i < CUDA_MAX_OPERANDS; i++) {
        const dt_array *a = operands->array[i];
        cuda_device *device = is_ours(a) ? cuda_find(a->storage->device.index) : NULL;
        if (device != NULL && atomic_load(&device->many)) {
            pthread_mutex_lock(&device->lock);
            if (a->storage->private != NULL) {
                note_locked(device, a->storage->private, operands->written[i]);
            }
            pthread_mutex_unlock(&device->lock);
        }
    }
}
