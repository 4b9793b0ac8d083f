/* queue.c: the streams' queues. Work runs when something waits for it, in the order of its ticket within what must be
 * ordered. A dependency always has a smaller ticket than what depends on it, so waiting cannot go round in circles. */
#define _POSIX_C_SOURCE 200809L
#include "host.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static uint64_t next_ticket = 1;

CUresult
sim_stream_new(sim_device *device, bool blocking, sim_stream **stream)
{
    *stream = dt_calloc(1, sizeof(**stream));
    if (*stream == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    (*stream)->device = device;
    (*stream)->blocking = blocking;
    CUresult status = sim_pace_open(*stream);
    if (status != CUDA_SUCCESS) {
        dt_free(*stream);
    }
    return status;
}

/* The NULL stream is not in the list of its device. */
void
sim_stream_free(sim_stream *stream)
{
    sim_stream **link = &stream->device->streams;
    while (*link != NULL && *link != stream) {
        link = &(*link)->next;
    }
    if (*link == stream) {
        *link = stream->next;
    }
    sim_stream_drop(stream);
    sim_pace_close(stream);
    dt_free(stream);
}

/* A thread's own default stream is the legacy one here, which waits for more. */
sim_stream *
sim_stream_named(sim_device *device, CUstream handle)
{
    bool is_default = handle == NULL || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD;
    return is_default ? device->null_stream : sim_handle_get(SIM_STREAM, handle);
}

CUresult
sim_stream_find(sim_device *device, CUstream handle, sim_stream **stream)
{
    *stream = sim_stream_named(device, handle);
    return *stream != NULL && (*stream)->device == device ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

void
sim_point_release(sim_point *point)
{
    while (point != NULL && --point->refs == 0) {
        sim_point *also = point->also;
        dt_free(point);
        point = also;
    }
}

/* Takes the first item out, then does what every item leaves to its end, run or not. Freeing a block may find a broken
 * guard and drop this very stream. */
static void
pop(sim_stream *stream)
{
    sim_item item = stream->items[stream->first];
    stream->first = (stream->first + 1) % SIM_QUEUE;
    stream->count--;
    dt_free(item.held);
    sim_program_release(item.program);
    if (item.point != NULL && item.point->ticket == item.ticket) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        item.point->time = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
        item.point->done = true;
    }
    sim_point_release(item.point);
    if (item.block != NULL) {
        sim_block_free(item.block);
    }
}

void
sim_stream_drop(sim_stream *stream)
{
    while (stream->count > 0) {
        pop(stream);
    }
}

/* What the NULL stream and the blocking streams owe each other before the item with this ticket. */
static CUresult
run_earlier(sim_stream *stream, uint64_t ticket)
{
    sim_device *device = stream->device;
    if (!stream->blocking) {
        return CUDA_SUCCESS;
    }
    if (stream != device->null_stream) {
        return sim_run_until(device->null_stream, ticket);
    }
    for (sim_stream *other = device->streams; other != NULL; other = other->next) {
        CUresult status = other->blocking ? sim_run_until(other, ticket) : CUDA_SUCCESS;
        if (status != CUDA_SUCCESS) {
            return status;
        }
    }
    return CUDA_SUCCESS;
}

CUresult
sim_run_one(sim_stream *stream)
{
    sim_device *device = stream->device;
    if (device->sticky != CUDA_SUCCESS || stream->count == 0) {
        return device->sticky;
    }
    const sim_item *item = &stream->items[stream->first];
    CUresult status = run_earlier(stream, item->ticket);
    if (status == CUDA_SUCCESS && item->digest != 0 && sim_race_digest(item->what, item->nbytes) != item->digest) {
        sim_race_host_wrote(stream, item->nbytes, item->place);
    }
    if (status == CUDA_SUCCESS) {
        status = item->run(device, item);
        sim_check_touched();
    }
    if (status != CUDA_SUCCESS && status != CUDA_ERROR_OUT_OF_MEMORY) {
        sim_poison(device, status);
    }
    if (device->sticky != CUDA_SUCCESS) {
        return device->sticky; /* the queue is empty */
    }
    if (status == CUDA_SUCCESS) {
        pop(stream);
    }
    return device->sticky != CUDA_SUCCESS ? device->sticky : status;
}

CUresult
sim_run_until(sim_stream *stream, uint64_t ticket)
{
    CUresult status = stream->device->sticky;
    while (status == CUDA_SUCCESS && stream->count > 0 && stream->items[stream->first].ticket <= ticket) {
        status = sim_run_one(stream);
    }
    return status;
}

CUresult
sim_drain(sim_stream *stream)
{
    return sim_run_until(stream, UINT64_MAX);
}

CUresult
sim_settle(sim_stream *stream)
{
    CUresult status = run_earlier(stream, UINT64_MAX);
    return status == CUDA_SUCCESS ? sim_drain(stream) : status;
}

CUresult
sim_drain_device(sim_device *device)
{
    CUresult status = sim_drain(device->null_stream);
    for (sim_stream *stream = device->streams; stream != NULL && status == CUDA_SUCCESS; stream = stream->next) {
        status = sim_drain(stream);
    }
    if (status == CUDA_SUCCESS) {
        sim_pool_trim(device, device->release_threshold);
    }
    return status;
}

/* ---------------------------------------------------------------- in an order that is drawn */

static uint64_t drawn; /* 0: as late as possible */

void
sim_set_order(uint64_t seed)
{
    sim_lock();
    drawn = seed;
    sim_unlock();
}

/* xorshift64* */
static uint64_t
draw(uint64_t n)
{
    drawn ^= drawn >> 12;
    drawn ^= drawn << 25;
    drawn ^= drawn >> 27;
    return (drawn * UINT64_C(0x2545f4914f6cdd1d) >> 33) % n;
}

/* The nth stream of all that have work; NULL: there are not so many. */
static sim_stream *
busy_stream(uint64_t n)
{
    for (int i = 0; i < sim_ndevices; i++) {
        sim_stream *stream = sim_devices[i].null_stream;
        for (bool first = true; stream != NULL; first = false) {
            if (stream->count > 0 && n-- == 0) {
                return stream;
            }
            stream = first ? sim_devices[i].streams : stream->next;
        }
    }
    return NULL;
}

/* What goes wrong is told by whoever waits for it. */
static void
run_some(void)
{
    uint64_t n = 0;
    while (busy_stream(n) != NULL) {
        n++;
    }
    for (; n > 0 && draw(3) == 0; n--) {
        sim_stream *stream = busy_stream(draw(n));
        if (stream != NULL) {
            (void)sim_run_one(stream);
        }
    }
}

CUresult
sim_enqueue(sim_stream *stream, const sim_item *item)
{
    if (drawn != 0) {
        run_some();
        if (stream->device->sticky != CUDA_SUCCESS) {
            return stream->device->sticky;
        }
    }
    CUresult status = stream->count == SIM_QUEUE ? sim_drain(stream) : CUDA_SUCCESS;
    if (status != CUDA_SUCCESS) {
        return status;
    }
    sim_item *slot = &stream->items[(stream->first + stream->count) % SIM_QUEUE];
    *slot = *item;
    slot->ticket = next_ticket++;
    if (slot->point != NULL && slot->point->ticket == 0) {
        slot->point->ticket = slot->ticket;
    }
    stream->count++;
    return CUDA_SUCCESS;
}

CUresult
sim_enqueue_work(sim_stream *stream, const sim_item *item, const char *what, const sim_touch *touches, int n)
{
    CUresult status = sim_race_check(stream, what, touches, n);
    if (status == CUDA_SUCCESS) {
        status = sim_enqueue(stream, item);
    }
    if (status == CUDA_SUCCESS) {
        sim_race_note(stream, what, touches, n);
    }
    return status;
}

CUresult
sim_sent(sim_stream *stream)
{
    static int blocking = -1;
    if (blocking < 0) {
        const char *text = getenv("CUDA_LAUNCH_BLOCKING");
        blocking = text != NULL && strcmp(text, "1") == 0;
    }
    return blocking ? sim_settle(stream) : CUDA_SUCCESS;
}
