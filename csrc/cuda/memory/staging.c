/* staging.c: pageable memory passes to and from a device through page-locked slots, where strided sources are gathered
 * and cast.
 *
 * While one slot is on the bus the host's threads fill or empty the next: cpu_copy spreads a slot over them. A slot of
 * 4 MiB takes a PCIe 5 bus some 75 us, which hides the start of a parallel region, and all of them stay in the last
 * level cache. A slot whose copy is over is taken before a new one is locked, so that a fast bus needs two of them.
 * Small transfers have small slots, so many that the host need not wait for the device. */
#include <string.h>

#include "../../cpu/cpu.h"
#include "../launch/index_errors.h"
#include "../launch/launch.h"
#include "memory.h"
#include "../streams/stream.h"
#include "transfer.h"

#define MOST_ARRIVING 4 /* slots that one transfer to the host has at once */

/* ---------------------------------------------------------------- slots */

void
cuda_ring_init(cuda_ring *ring)
{
    pthread_mutex_init(&ring->lock, NULL);
    pthread_cond_init(&ring->returned, NULL);
}

void
cuda_ring_destroy(cuda_ring *ring)
{
    pthread_mutex_destroy(&ring->lock);
    pthread_cond_destroy(&ring->returned);
}

static void
give_back(cuda_device *device, cuda_slot *slot, cuda_slot_state state)
{
    cuda_ring *ring = &device->ring;
    pthread_mutex_lock(&ring->lock);
    slot->state = state;
    slot->ticket = ++ring->clock;
    pthread_cond_signal(&ring->returned);
    pthread_mutex_unlock(&ring->lock);
}

/* Waits until the slot's last copy is over. */
static dt_status
wait_for_slot(cuda_device *device, cuda_slot *slot, dt_error *err)
{
    DT_COUNT(synchronizations, 1);
    if (slot->unmarked) {
        CUDA_TRY(device, cuCtxSynchronize, ());
        slot->unmarked = false;
    } else {
        CUDA_TRY(device, cuEventSynchronize, (slot->event));
    }
    return DT_OK;
}

/* After a copy was sent: remembers its end. */
static dt_status
mark(cuda_device *device, cuda_slot *slot, dt_error *err)
{
    dt_status rc = CUDA_CALL(device, cuEventRecord, (slot->event, cuda_stream(device)));
    slot->unmarked = rc != DT_OK;
    return rc;
}

/* Memory and an event for a slot that has none; the lock is held. */
static dt_status
equip(cuda_device *device, cuda_slot *slot, bool small, dt_error *err)
{
    cuda_ring *ring = &device->ring;
    if (small && slot->memory == NULL) {
        char *memory;
        DT_TRY(cuda_lock_pages(device, CUDA_NSMALL * CUDA_SMALL_BYTES, (void **)&memory, err));
        for (int i = 0; i < CUDA_NSMALL; i++) {
            ring->small[i].memory = memory + (size_t)i * CUDA_SMALL_BYTES;
        }
    } else if (slot->memory == NULL) {
        DT_TRY(cuda_lock_pages(device, CUDA_LARGE_BYTES, &slot->memory, err));
    }
    if (slot->event == NULL) {
        CUDA_TRY(device, cuEventCreate, (&slot->event, CU_EVENT_DISABLE_TIMING));
    }
    return DT_OK;
}

/* An idle slot, else the one whose copy was sent first (*sent), else none. Slots with memory come first. */
static cuda_slot *
choose_slot(cuda_slot *slots, int n, cuda_slot **sent)
{
    cuda_slot *idle = NULL;
    *sent = NULL;
    for (int i = 0; i < n; i++) {
        cuda_slot *slot = &slots[i];
        if (slot->state == CUDA_SLOT_IDLE && (idle == NULL || (idle->memory == NULL && slot->memory != NULL))) {
            idle = slot;
        }
        if (slot->state == CUDA_SLOT_SENT && (*sent == NULL || slot->ticket < (*sent)->ticket)) {
            *sent = slot;
        }
    }
    return idle;
}

/* A slot of the caller's own; NULL where the caller would have to wait and must not. */
static dt_status
take(cuda_device *device, size_t nbytes, bool may_wait, cuda_slot **out, dt_error *err)
{
    cuda_ring *ring = &device->ring;
    bool small = nbytes <= CUDA_SMALL_BYTES;
    cuda_slot *slots = small ? ring->small : ring->large, *idle, *sent;
    dt_status rc = DT_OK;
    bool wait = false;
    *out = NULL;
    pthread_mutex_lock(&ring->lock);
    for (;;) {
        idle = choose_slot(slots, small ? CUDA_NSMALL : CUDA_NLARGE, &sent);
        bool over = (idle == NULL || idle->memory == NULL) && sent != NULL && !sent->unmarked &&
                    cu.cuEventQuery(sent->event) == CUDA_SUCCESS;
        if (over || (idle == NULL && sent != NULL && may_wait)) {
            *out = sent;
            wait = !over;
        } else if (idle != NULL) {
            *out = idle;
            rc = equip(device, idle, small, err);
        } else if (may_wait) {
            pthread_cond_wait(&ring->returned, &ring->lock);
            continue;
        }
        break;
    }
    if (*out != NULL && rc == DT_OK) {
        (*out)->state = CUDA_SLOT_TAKEN;
    }
    pthread_mutex_unlock(&ring->lock);
    if (wait && (rc = wait_for_slot(device, *out, err)) != DT_OK) {
        give_back(device, *out, CUDA_SLOT_SENT); /* its copy may still run */
    }
    return rc;
}

/* part's elements, contiguous and of dtype, in the slot's memory; storage is the caller's. */
static dt_array
slot_view(const cuda_slot *slot, const dt_array *part, dt_dtype dtype, dt_storage *storage)
{
    dt_array view = *part;
    *storage = (dt_storage){.device = {DT_CPU, 0}, .nbytes = CUDA_LARGE_BYTES, .data = slot->memory};
    view.storage = storage;
    view.offset = 0;
    view.dtype = (uint8_t)dtype;
    dt_array_set_contiguous(&view);
    return view;
}

/* ---------------------------------------------------------------- in parts that fit a slot */

typedef struct {
    cuda_device *device;
    CUdeviceptr address; /* of the next part */
    dt_dtype bus;
    struct {
        cuda_slot *slot;
        dt_array target;
    } arriving[MOST_ARRIVING];
    unsigned first, count;
} transfer;

typedef dt_status (*transfer_part)(transfer *t, const dt_array *host, size_t nbytes, dt_error *err);

static dt_status
send_part(transfer *t, const dt_array *host, size_t nbytes, dt_error *err)
{
    cuda_slot *slot;
    dt_storage storage;
    DT_TRY(take(t->device, nbytes, true, &slot, err));
    dt_array view = slot_view(slot, host, t->bus, &storage);
    dt_status rc = cuda_host_use("staging", slot->memory, nbytes, true, err);
    if (rc == DT_OK) {
        rc = cpu_copy(host, &view, false, err);
    }
    if (rc == DT_OK) {
        rc = CUDA_CALL(t->device, cuMemcpyHtoDAsync_v2, (t->address, slot->memory, nbytes, cuda_stream(t->device)));
    }
    bool sent = rc == DT_OK;
    if (sent) {
        rc = mark(t->device, slot, err);
    }
    give_back(t->device, slot, sent ? CUDA_SLOT_SENT : CUDA_SLOT_IDLE);
    return rc;
}

/* Waits for the part that was asked for first, and puts it where it belongs. */
static dt_status
receive_first(transfer *t, dt_error *err)
{
    cuda_slot *slot = t->arriving[t->first].slot;
    dt_array *target = &t->arriving[t->first].target;
    dt_storage storage;
    dt_array view = slot_view(slot, target, t->bus, &storage);
    t->first = (t->first + 1) % MOST_ARRIVING;
    t->count--;
    dt_status rc = wait_for_slot(t->device, slot, err);
    bool over = rc == DT_OK;
    if (over) {
        rc = cuda_host_use("staging", slot->memory, dt_array_nbytes(&view), false, err);
    }
    if (rc == DT_OK) {
        rc = cpu_copy(&view, target, false, err);
    }
    give_back(t->device, slot, over ? CUDA_SLOT_IDLE : CUDA_SLOT_SENT);
    return rc;
}

/* Who has slots must not wait for others that may do the same. */
static dt_status
take_to_receive(transfer *t, size_t nbytes, cuda_slot **slot, dt_error *err)
{
    if (t->count == MOST_ARRIVING) {
        DT_TRY(receive_first(t, err));
    }
    do {
        DT_TRY(take(t->device, nbytes, t->count == 0, slot, err));
        if (*slot == NULL) {
            DT_TRY(receive_first(t, err));
        }
    } while (*slot == NULL);
    return DT_OK;
}

static dt_status
fetch_part(transfer *t, const dt_array *host, size_t nbytes, dt_error *err)
{
    cuda_slot *slot;
    DT_TRY(take_to_receive(t, nbytes, &slot, err));
    dt_status rc =
        CUDA_CALL(t->device, cuMemcpyDtoHAsync_v2, (slot->memory, t->address, nbytes, cuda_stream(t->device)));
    bool sent = rc == DT_OK;
    if (sent) {
        rc = mark(t->device, slot, err);
    }
    if (rc != DT_OK) {
        give_back(t->device, slot, sent ? CUDA_SLOT_SENT : CUDA_SLOT_IDLE);
        return rc;
    }
    unsigned last = (t->first + t->count++) % MOST_ARRIVING;
    t->arriving[last].slot = slot;
    t->arriving[last].target = *host;
    return DT_OK;
}

/* Cuts host along its first dimensions into parts of one size; the device's side is contiguous in the same order. */
static dt_status
in_parts(transfer *t, const dt_array *host, transfer_part part, dt_error *err)
{
    size_t itemsize = dt_itemsize(t->bus), nbytes = (size_t)dt_array_numel(host) * itemsize;
    if (nbytes <= CUDA_LARGE_BYTES) {
        DT_TRY(part(t, host, nbytes, err));
        t->address += nbytes;
        return DT_OK;
    }
    int64_t size = host->shape[0], most = (int64_t)(CUDA_LARGE_BYTES / (nbytes / (size_t)size));
    int64_t rows = most < 2 ? 1 : CPU_CEIL_DIV(size, CPU_CEIL_DIV(size, most));
    for (int64_t i = 0; i < size; i += rows) {
        dt_array piece = *host;
        piece.shape[0] = CPU_MIN(rows, size - i);
        piece.offset += i * host->strides[0] * (int64_t)dt_itemsize((dt_dtype)host->dtype);
        if (rows == 1) { /* may itself be too large: cut it along the next dimension */
            piece.ndim--;
            memmove(piece.shape, piece.shape + 1, piece.ndim * sizeof(piece.shape[0]));
            memmove(piece.strides, piece.strides + 1, piece.ndim * sizeof(piece.strides[0]));
        }
        DT_TRY(in_parts(t, &piece, part, err));
    }
    return DT_OK;
}

/* a with neighbouring dimensions merged, at least one. */
static dt_array
collapse(const dt_array *a)
{
    dt_walk walk;
    dt_array flat = *a;
    cuda_walk_logical(&walk, 0, a->ndim, 1, &a);
    flat.ndim = (uint8_t)(walk.ndim > 0 ? walk.ndim : 1);
    flat.shape[0] = flat.strides[0] = 1;
    memcpy(flat.shape, walk.shape, (size_t)walk.ndim * sizeof(flat.shape[0]));
    memcpy(flat.strides, walk.strides[0], (size_t)walk.ndim * sizeof(flat.strides[0]));
    return flat;
}

dt_status
cuda_send_staged(cuda_device *device, const dt_array *src, CUdeviceptr address, dt_dtype bus, dt_error *err)
{
    transfer t = {.device = device, .address = address, .bus = bus};
    dt_array flat = collapse(src);
    DT_TRY(dt_settle(src, DT_READ, err));
    return in_parts(&t, &flat, send_part, err);
}

dt_status
cuda_fetch_staged(cuda_device *device, CUdeviceptr address, dt_dtype bus, const dt_array *dst, dt_error *err)
{
    transfer t = {.device = device, .address = address, .bus = bus};
    dt_array flat = collapse(dst);
    DT_TRY(dt_settle(dst, DT_WRITE, err));
    dt_status rc = in_parts(&t, &flat, fetch_part, err);
    while (t.count > 0 && rc == DT_OK) {
        rc = receive_first(&t, err);
    }
    while (t.count > 0) { /* after a failure nobody waits for them */
        give_back(device, t.arriving[t.first].slot, CUDA_SLOT_SENT);
        t.first = (t.first + 1) % MOST_ARRIVING;
        t.count--;
    }
    return rc == DT_OK ? cuda_late_check(device, err) : rc;
}
