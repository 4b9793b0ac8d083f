/* stream.c: the streams of a device, and which one a thread sends its work to. */
#include "../launch/index_errors.h"
#include "../memory/memory.h"
#include "stream.h"

#define PER_PRIORITY 32 /* more than that many of one priority are shared */
#define MAX_PRIORITIES ((CUDA_MAX_QUEUES - 1) / PER_PRIORITY)

/* ---------------------------------------------------------------- the current stream */

/* A thread's choice for one device; without one it uses the default stream. */
typedef struct choice {
    cuda_queue *queue;
    struct choice *next;
} choice;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t choices; /* the first choice of the thread */
static atomic_bool has_choices;

static void
thread_ends(void *first)
{
    for (choice *c = first, *next; c != NULL; c = next) {
        next = c->next;
        cuda_queue_release(c->queue);
        dt_free(c);
    }
}

static void
make_key(void)
{
    atomic_store(&has_choices, pthread_key_create(&choices, thread_ends) == 0);
}

cuda_queue *
cuda_current(const cuda_device *device)
{
    if (atomic_load_explicit(&has_choices, memory_order_acquire)) {
        for (const choice *c = pthread_getspecific(choices); c != NULL; c = c->next) {
            if (c->queue->device == device) {
                return c->queue;
            }
        }
    }
    return cuda_default_queue(device);
}

cuda_queue *
cuda_default_queue(const cuda_device *device)
{
    return device->queues[0];
}

cuda_queue_info
cuda_queue_read(const cuda_queue *queue)
{
    return (cuda_queue_info){queue->device->index, queue->priority, queue->stream};
}

static dt_status
unchoose(const cuda_device *device, dt_error *err)
{
    choice *first = pthread_getspecific(choices), **link = &first;
    while (*link != NULL && (*link)->queue->device != device) {
        link = &(*link)->next;
    }
    choice *gone = *link;
    if (gone == NULL) {
        return DT_OK;
    }
    if (link == &first && pthread_setspecific(choices, gone->next) != 0) {
        return dt_fail_nomem(err, sizeof(*gone));
    }
    *link = gone->next;
    cuda_queue_release(gone->queue);
    dt_free(gone);
    return DT_OK;
}

static dt_status
choose_queue(cuda_queue *queue, dt_error *err)
{
    choice *first = pthread_getspecific(choices), *c = first;
    while (c != NULL && c->queue->device != queue->device) {
        c = c->next;
    }
    if (c != NULL) {
        cuda_queue_retain(queue);
        cuda_queue_release(c->queue);
        c->queue = queue;
        return DT_OK;
    }
    c = dt_malloc(sizeof(*c));
    if (c == NULL) {
        return dt_fail_nomem(err, sizeof(*c));
    }
    *c = (choice){queue, first};
    if (pthread_setspecific(choices, c) != 0) {
        dt_free(c);
        return dt_fail_nomem(err, sizeof(*c));
    }
    cuda_queue_retain(queue);
    return DT_OK;
}

/* An event where a thread leaves a stream: who needs what it sent there need not wait for what comes next. */
static void
mark_end(cuda_queue *queue)
{
    cuda_device *d;
    dt_error ignored;
    if (atomic_load(&queue->device->many) && cuda_enter(queue->device->index, &d, &ignored) == DT_OK) {
        pthread_mutex_lock(&d->lock);
        const unsigned last = (queue->next_checkpoint + CUDA_CHECKPOINTS - 1) % CUDA_CHECKPOINTS;
        if (queue->checkpoints[last].seq < queue->seq) {
            (void)!cuda_checkpoint(queue, &ignored);
        }
        pthread_mutex_unlock(&d->lock);
    }
}

dt_status
cuda_set_current(cuda_queue *queue, dt_error *err)
{
    pthread_once(&once, make_key);
    if (!atomic_load(&has_choices)) {
        return dt_fail_nomem(err, 0);
    }
    cuda_queue *before = cuda_current(queue->device);
    if (before == queue) {
        return DT_OK;
    }
    mark_end(before);
    return queue->id == 0 ? unchoose(queue->device, err) : choose_queue(queue, err);
}

/* ---------------------------------------------------------------- the streams of a device */

static dt_status
queue_new(cuda_device *device, int priority, cuda_queue **out, dt_error *err)
{
    cuda_queue *q = dt_calloc(1, sizeof(*q));
    if (q == NULL) {
        return dt_fail_nomem(err, sizeof(*q));
    }
    dt_status rc = device->nqueues == 0
                       ? CUDA_CALL(device, cuStreamCreate, (&q->stream, CU_STREAM_NON_BLOCKING))
                       : CUDA_CALL(device, cuStreamCreateWithPriority, (&q->stream, CU_STREAM_NON_BLOCKING, priority));
    if (rc != DT_OK) {
        dt_free(q);
        return rc;
    }
    q->device = device;
    q->priority = priority;
    q->seq = 1;
    q->id = (unsigned)device->nqueues;
    device->queues[device->nqueues++] = q;
    *out = q;
    return DT_OK;
}

dt_status
cuda_queues_open(cuda_device *device, dt_error *err)
{
    cuda_queue *q = NULL;
    DT_TRY(queue_new(device, 0, &q, err));
    device->stream = q->stream;
    return DT_OK;
}

/* The lock is held. */
static void
add_users(cuda_queue *queue, int n)
{
    bool before = queue->users > 0;
    queue->users += n;
    if (queue->id != 0) {
        queue->device->nused += (queue->users > 0) - before;
    }
}

/* The lock is held. */
static dt_status
acquire(cuda_device *device, int priority, cuda_queue **out, dt_error *err)
{
    cuda_queue *best = NULL;
    int count = 0;
    for (int i = 1; i < device->nqueues; i++) {
        cuda_queue *q = device->queues[i];
        if (q->priority == priority) {
            count++;
            best = best == NULL || q->users < best->users ? q : best;
        }
    }
    if (best == NULL || (best->users > 0 && count < PER_PRIORITY)) {
        DT_TRY(queue_new(device, priority, &best, err));
    }
    if (!atomic_load(&device->many)) {
        cuda_memory_mark(device);
        atomic_store(&device->many, true);
        atomic_store(&cuda_many_streams, true);
    }
    add_users(best, 1);
    *out = best;
    return DT_OK;
}

dt_status
cuda_queue_acquire(cuda_device *device, int64_t priority, cuda_queue **queue, dt_error *err)
{
    int least = 0, greatest = 0;
    CUDA_TRY(device, cuCtxGetStreamPriorityRange, (&least, &greatest));
    if (greatest <= least - MAX_PRIORITIES) {
        greatest = least - MAX_PRIORITIES + 1;
    }
    int nearest = priority > least ? least : priority < greatest ? greatest : (int)priority;
    pthread_mutex_lock(&device->lock);
    dt_status rc = acquire(device, nearest, queue, err);
    pthread_mutex_unlock(&device->lock);
    return rc;
}

static void
count_user(cuda_queue *queue, int n)
{
    if (cuda_api_alive()) { /* in a child process the lock may be held for ever */
        pthread_mutex_lock(&queue->device->lock);
        add_users(queue, n);
        pthread_mutex_unlock(&queue->device->lock);
    }
}

void
cuda_queue_retain(cuda_queue *queue)
{
    count_user(queue, 1);
}

void
cuda_queue_release(cuda_queue *queue)
{
    count_user(queue, -1);
}

/* The library lock is held. */
dt_status
cuda_workspace(cuda_device *device, size_t nbytes, CUdeviceptr *address, dt_error *err)
{
    cuda_queue *q = cuda_current(device);
    if (q->workspace == 0) {
        DT_TRY(cuda_allocate_uncounted(device, nbytes, &q->workspace, err));
    }
    *address = q->workspace;
    return DT_OK;
}

/* ---------------------------------------------------------------- waiting */

static uint64_t
sent_so_far(cuda_queue *queue)
{
    pthread_mutex_lock(&queue->device->lock);
    uint64_t seq = queue->seq;
    pthread_mutex_unlock(&queue->device->lock);
    return seq;
}

static void
set_done(cuda_queue *queue, uint64_t seq)
{
    pthread_mutex_lock(&queue->device->lock);
    queue->done = queue->done < seq ? seq : queue->done;
    pthread_mutex_unlock(&queue->device->lock);
}

dt_status
cuda_queue_synchronize(cuda_queue *queue, dt_error *err)
{
    cuda_device *d;
    DT_TRY(cuda_enter(queue->device->index, &d, err));
    uint64_t seq = sent_so_far(queue), sent = atomic_load(&queue->nsent);
    DT_COUNT(synchronizations, 1);
    CUDA_TRY(d, cuStreamSynchronize, (queue->stream));
    set_done(queue, seq);
    atomic_store(&queue->nover, sent);
    return cuda_late_check(d, err);
}

dt_status
cuda_queue_query(cuda_queue *queue, bool *done, dt_error *err)
{
    cuda_device *d;
    DT_TRY(cuda_enter(queue->device->index, &d, err));
    uint64_t seq = sent_so_far(queue);
    int status = cu.cuStreamQuery(queue->stream);
    *done = status == CUDA_SUCCESS;
    if (status == CUDA_ERROR_NOT_READY) {
        return DT_OK;
    }
    DT_TRY(cuda_check(d, DT_API_cuStreamQuery, status, err));
    set_done(queue, seq);
    return DT_OK;
}

dt_status
cuda_wait(cuda_device *device, dt_error *err)
{
    return cuda_queue_synchronize(cuda_current(device), err);
}

dt_status
cuda_wait_all(cuda_device *device, dt_error *err)
{
    uint64_t seqs[CUDA_MAX_QUEUES], sent[CUDA_MAX_QUEUES];
    pthread_mutex_lock(&device->lock);
    int n = device->nqueues;
    for (int i = 0; i < n; i++) {
        seqs[i] = device->queues[i]->seq;
        sent[i] = atomic_load(&device->queues[i]->nsent);
    }
    pthread_mutex_unlock(&device->lock);
    DT_COUNT(synchronizations, 1);
    CUDA_TRY(device, cuCtxSynchronize, ());
    for (int i = 0; i < n; i++) {
        set_done(device->queues[i], seqs[i]);
        atomic_store(&device->queues[i]->nover, sent[i]);
    }
    return cuda_late_check(device, err);
}

/* What was sent without being noted counts too, so that an event of its own is needed. */
dt_status
cuda_queue_wait(cuda_queue *queue, cuda_queue *other, dt_error *err)
{
    cuda_device *first, *then;
    if (queue == other) {
        return DT_OK;
    }
    DT_TRY(cuda_enter(other->device->index, &first, err));
    pthread_mutex_lock(&first->lock);
    unsigned i = other->next_checkpoint;
    dt_status rc = cuda_checkpoint(other, err);
    CUevent event = other->checkpoints[i].event;
    uint64_t seq = other->checkpoints[i].seq;
    pthread_mutex_unlock(&first->lock);
    if (rc != DT_OK || (rc = cuda_enter(queue->device->index, &then, err)) != DT_OK) {
        return rc;
    }
    CUDA_TRY(then, cuStreamWaitEvent, (queue->stream, event, 0));
    if (first == then) {
        pthread_mutex_lock(&then->lock);
        queue->waited[other->id] = queue->waited[other->id] < seq ? seq : queue->waited[other->id];
        pthread_mutex_unlock(&then->lock);
    }
    return DT_OK;
}
