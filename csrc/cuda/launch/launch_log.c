/* launch_log.c: the last kernels and library calls that were sent to each stream of a device. Work that goes wrong
 * there is noticed by a later call, and one of these it was. */
#include <stdio.h>

#include "launch.h"
#include "launch_log.h"
#include "../plans.h"

static void (*told)(const cuda_sent *sent);

void
cuda_set_sent(void (*sent)(const cuda_sent *sent))
{
    told = sent;
}

static cuda_queue *
current(const cuda_device *device)
{
    bool many = atomic_load_explicit(&device->many, memory_order_acquire);
    return DT_UNLIKELY(many) ? cuda_current(device) : device->queues[0];
}

void
cuda_note_sent(cuda_device *device, unsigned what)
{
    cuda_queue *queue = current(device);
    uint64_t number = atomic_fetch_add_explicit(&queue->nsent, 1, memory_order_relaxed);
    atomic_store_explicit(&queue->sent[number % CUDA_SENT], what, memory_order_relaxed);
    if (told != NULL) {
        told(&(cuda_sent){device->index, queue->id, number});
    }
}

uint64_t
cuda_sent_mark(const cuda_device *device)
{
    return atomic_load_explicit(&current(device)->nsent, memory_order_relaxed);
}

void
cuda_sent_over(const cuda_device *device, uint64_t mark)
{
    atomic_store_explicit(&current(device)->nover, mark, memory_order_relaxed);
}

/* ---------------------------------------------------------------- for errors */

static void
launch_name(unsigned what, char *name, size_t size)
{
    if (what & CUDA_SENT_CALL) {
        snprintf(name, size, "%s", cuda_api_names[what & ~CUDA_SENT_CALL]);
    } else if (what & CUDA_SENT_RAW) {
        snprintf(name, size, "%s", cuda_raw_name(what & ~CUDA_SENT_RAW));
    } else if (what > 0) {
        cuda_function_name(what - 1, name, size);
    } else {
        snprintf(name, size, "?"); /* another thread is about to write it */
    }
}

int
cuda_last_sent(int index, cuda_suspect *out, int most)
{
    cuda_device *device = cuda_lost(index);
    int n = 0;
    for (int q = 0; device != NULL && q < device->nqueues; q++) {
        cuda_queue *queue = device->queues[q];
        uint64_t end = atomic_load(&queue->nsent), begin = atomic_load(&queue->nover);
        begin = end > begin + CUDA_SENT ? end - CUDA_SENT : begin;
        for (uint64_t number = end; number > begin && n < most; n++) {
            number--;
            out[n] = (cuda_suspect){.sent = {index, queue->id, number}, .stream = queue->id > 0 ? queue->stream : NULL};
            launch_name(atomic_load(&queue->sent[number % CUDA_SENT]), out[n].name, sizeof(out[n].name));
        }
    }
    return n;
}
