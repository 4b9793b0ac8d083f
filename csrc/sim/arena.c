/* arena.c: a device's memory. One file of bytes mapped twice, cut first fit into blocks with guard bytes around them.
 */
#define _GNU_SOURCE
#include "sim.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* In the sanitized build the bytes of a block, and those around it, are closed to all but who has them from
 * sim_resolve, until the piece of work is over: what reaches past an array is told at that line, though it stays in the
 * block. */
#if SIM_CLOSES
#include <sanitizer/asan_interface.h>
#define CLOSE(bytes, n) __asan_poison_memory_region(bytes, n)
#define OPEN(bytes, n) __asan_unpoison_memory_region(bytes, n)
#define UNCHECKED __attribute__((no_sanitize_address))
#else
#define CLOSE(bytes, n) ((void)(bytes))
#define OPEN(bytes, n) ((void)(bytes))
#define UNCHECKED
#endif

#define GUARD 64
#define FRONT 256 /* from the start of a block's span to the user's bytes */
#define GRANULE 512
#define GUARD_BYTE 0xc5
#define PUNCH ((size_t)1 << 20)  /* spans from this size give their pages back */
#define CHUNK ((size_t)32 << 20) /* what a pool takes at a time, and gives back as a whole; */
#define PAGE ((size_t)2 << 20)   /* of a device, which a pool takes when it is nearly full; */
#define SHARE 2                  /* both are less where they were more than this share of the memory */

static sim_block *touched;
static int64_t violations;
static bool fill_turns;
static unsigned filled;

/* ---------------------------------------------------------------- the arena */

static int
anonymous_file(void)
{
    int fd = memfd_create("devtensor simulated GPU", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0) {
        FILE *file = tmpfile();
        if (file != NULL) {
            fd = dup(fileno(file));
            fclose(file);
        }
    }
    return fd;
}

/* Where programs seldom have anything, so that these addresses are free in the processes of users' kernels too. */
static void *
place_of(const sim_device *device)
{
    return (void *)(((uintptr_t)0x200 + (uintptr_t)device->ordinal) << 36);
}

CUresult
sim_arena_open(sim_device *device)
{
    size_t size = (device->memory / 4096 + 1) * 4096 * 2 + PUNCH;
    CUresult status = CUDA_ERROR_OUT_OF_MEMORY;
    void *closed = MAP_FAILED, *open = MAP_FAILED;
    int fd = anonymous_file();
    if (fd < 0 || ftruncate(fd, (off_t)size) != 0) {
        goto done;
    }
    /* the process of a kernel has this file too, and could cut it short under us */
    (void)fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
    closed = mmap(place_of(device), size, PROT_NONE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    open = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    if (closed == MAP_FAILED || open == MAP_FAILED) {
        goto done;
    }
    device->arena = size;
    device->file = fd;
    device->closed = closed;
    device->open = open;
    status = CUDA_SUCCESS;
done:
    if (status != CUDA_SUCCESS && closed != MAP_FAILED) {
        munmap(closed, size);
    }
    if (status != CUDA_SUCCESS && open != MAP_FAILED) {
        munmap(open, size);
    }
    if (status != CUDA_SUCCESS && fd >= 0) {
        close(fd);
    }
    return status;
}

sim_device *
sim_owner(uint64_t address)
{
    for (int i = 0; i < sim_ndevices; i++) {
        sim_device *device = &sim_devices[i];
        if (device->closed != NULL && address - (uint64_t)(uintptr_t)device->closed < device->arena) {
            return device;
        }
    }
    return NULL;
}

/* ---------------------------------------------------------------- how much the device has */

static size_t
whole(size_t nbytes, size_t unit)
{
    return (nbytes + unit - 1) / unit * unit;
}

static size_t
charge_of(size_t nbytes)
{
    return whole(nbytes, GRANULE);
}

static size_t
unit_of(const sim_device *device, size_t usual)
{
    size_t share = charge_of(device->memory / SHARE);
    return share < usual && share > 0 ? share : usual;
}

void
sim_pool_trim(sim_device *device, size_t keep)
{
    size_t least = keep > device->pool_used ? keep : device->pool_used, unit = unit_of(device, CHUNK);
    if (device->pool_reserved > least && device->pool_reserved > whole(least, unit)) {
        device->pool_reserved = whole(least, unit);
    }
}

/* The pool takes whole chunks; on a device that is nearly full, pages, or just what it needs. */
static CUresult
charge_pool(sim_device *device, size_t n)
{
    size_t wanted = device->pool_used + n, room = device->memory - device->used;
    if (wanted > room) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (wanted > device->pool_reserved) {
        size_t chunks = whole(wanted, unit_of(device, CHUNK)), pages = whole(wanted, unit_of(device, PAGE));
        device->pool_reserved = chunks <= room ? chunks : pages <= room ? pages : wanted;
    }
    device->pool_used = wanted;
    if (device->pool_used > device->pool_used_high) {
        device->pool_used_high = device->pool_used;
    }
    if (device->pool_reserved > device->pool_reserved_high) {
        device->pool_reserved_high = device->pool_reserved;
    }
    return CUDA_SUCCESS;
}

CUresult
sim_charge(sim_device *device, size_t nbytes)
{
    size_t n = charge_of(nbytes);
    if (device->used + n + device->pool_reserved > device->memory) {
        sim_pool_trim(device, 0);
    }
    if (device->used + n + device->pool_reserved > device->memory) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    device->used += n;
    return CUDA_SUCCESS;
}

void
sim_discharge(sim_device *device, size_t nbytes)
{
    device->used -= charge_of(nbytes);
}

/* ---------------------------------------------------------------- blocks */

static size_t
span_of(size_t nbytes)
{
    return charge_of(FRONT + nbytes + GUARD);
}

uint64_t
sim_block_address(const sim_block *block)
{
    return (uint64_t)(uintptr_t)block->device->closed + block->offset;
}

/* Index of the first block that begins after offset. */
static size_t
upper_bound(const sim_device *device, size_t offset)
{
    size_t low = 0, high = device->nblocks;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (device->blocks[middle]->offset <= offset) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static bool
grow_arena(sim_device *device)
{
    size_t more = device->room ? device->room * 2 : 64;
    sim_block **bigger = dt_malloc(more * sizeof(*bigger));
    if (bigger == NULL) {
        return false;
    }
    if (device->nblocks > 0) {
        memcpy(bigger, device->blocks, device->nblocks * sizeof(*bigger));
    }
    dt_free(device->blocks);
    device->blocks = bigger;
    device->room = more;
    return true;
}

CUresult
sim_block_new(sim_device *device, size_t nbytes, bool pooled, sim_block **out)
{
    if (nbytes > device->memory) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (device->nblocks == device->room && !grow_arena(device)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    size_t span = span_of(nbytes), end = 0, i = 0;
    for (; i < device->nblocks; i++) {
        const sim_block *block = device->blocks[i];
        if (block->offset - FRONT - end >= span) {
            break;
        }
        end = block->offset - FRONT + span_of(block->nbytes);
    }
    if (i == device->nblocks && device->arena - end < span) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    sim_block *block = dt_malloc(sizeof(*block));
    if (block == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    CUresult status = pooled ? charge_pool(device, charge_of(nbytes)) : sim_charge(device, nbytes);
    if (status != CUDA_SUCCESS) {
        dt_free(block);
        return status;
    }
    *block = (sim_block){.device = device, .offset = end + FRONT, .nbytes = nbytes, .pooled = pooled};
    sim_histories_init(&block->histories, nbytes);
    memmove(device->blocks + i + 1, device->blocks + i, (device->nblocks - i) * sizeof(sim_block *));
    device->blocks[i] = block;
    device->nblocks++;
    *out = block;
    return CUDA_SUCCESS;
}

/* Of float64, float32 and the half types alike: NaN; large numbers of both signs; zero. Of ints -1, large ones, 0. */
static int
fresh_byte(void)
{
    static const int bytes[] = {0xff, 0x7b, 0xfb, 0x00};
    return fill_turns ? bytes[filled++ % 4] : bytes[0];
}

void
sim_set_fill(bool turns)
{
    sim_lock();
    fill_turns = turns;
    sim_unlock();
}

void
sim_fill_again(void *handle, int device, uint64_t address, size_t nbytes)
{
    sim_lock();
    sim_stream *stream = fill_turns ? sim_stream_named(&sim_devices[device], handle) : NULL;
    if (stream != NULL && sim_devices[device].sticky == CUDA_SUCCESS) {
        (void)sim_enqueue_fill(stream, address, (unsigned char)fresh_byte(), nbytes);
    }
    sim_unlock();
}

void
sim_block_start(sim_block *block)
{
    unsigned char *bytes = block->device->open + block->offset;
    OPEN(bytes - GUARD, block->nbytes + 2 * GUARD);
    memset(bytes - GUARD, GUARD_BYTE, GUARD);
    memset(bytes, fresh_byte(), block->nbytes);
    memset(bytes + block->nbytes, GUARD_BYTE, GUARD);
    CLOSE(bytes - GUARD, block->nbytes + 2 * GUARD);
    block->live = true;
}

static UNCHECKED bool
guard_holds(const unsigned char *guard)
{
    for (int i = 0; i < GUARD; i++) {
        if (guard[i] != GUARD_BYTE) {
            return false;
        }
    }
    return true;
}

static void
check_guards(sim_block *block)
{
    unsigned char *bytes = block->device->open + block->offset;
    if (!block->live || (guard_holds(bytes - GUARD) && guard_holds(bytes + block->nbytes))) {
        return;
    }
    violations++;
    if (block->device->fault[0] == '\0') {
        char text[80];
        snprintf(text, sizeof(text), "bytes next to a block of %zu were overwritten", block->nbytes);
        sim_set_fault_text(block->device, text);
    }
    OPEN(bytes - GUARD, block->nbytes + 2 * GUARD);
    memset(bytes - GUARD, GUARD_BYTE, GUARD);
    memset(bytes + block->nbytes, GUARD_BYTE, GUARD);
    CLOSE(bytes - GUARD, block->nbytes + 2 * GUARD);
    sim_poison(block->device, CUDA_ERROR_ILLEGAL_ADDRESS);
}

void
sim_block_free(sim_block *block)
{
    sim_device *device = block->device;
    size_t i = upper_bound(device, block->offset) - 1;
    memmove(device->blocks + i, device->blocks + i + 1, (device->nblocks - i - 1) * sizeof(sim_block *));
    device->nblocks--;
    for (sim_block **link = &touched; block->touched && *link != NULL; link = &(*link)->next_touched) {
        if (*link == block) {
            *link = block->next_touched;
            break;
        }
    }
    check_guards(block);
    if (block->nbytes >= PUNCH) {
        size_t page = (size_t)sysconf(_SC_PAGESIZE);
        size_t first = (block->offset + page - 1) / page * page, last = (block->offset + block->nbytes) / page * page;
        madvise(device->open + first, last - first, MADV_REMOVE);
    }
    if (block->pooled) {
        device->pool_used -= charge_of(block->nbytes);
    } else {
        sim_discharge(device, block->nbytes);
    }
    sim_histories_clear(&block->histories);
    dt_free(block);
}

sim_block *
sim_block_at(sim_device *device, uint64_t address)
{
    uint64_t offset = address - (uint64_t)(uintptr_t)device->closed;
    size_t i = offset < device->arena ? upper_bound(device, offset) : 0;
    if (i == 0 || device->blocks[i - 1]->offset != offset || device->blocks[i - 1]->freeing) {
        return NULL;
    }
    return device->blocks[i - 1];
}

sim_block *
sim_block_holding(const sim_device *device, uint64_t address, size_t nbytes)
{
    uint64_t offset = address - (uint64_t)(uintptr_t)device->closed;
    size_t i = offset < device->arena ? upper_bound(device, offset) : 0;
    if (i == 0) {
        return NULL;
    }
    sim_block *block = device->blocks[i - 1];
    size_t into = offset - block->offset;
    return into < block->nbytes && nbytes <= block->nbytes - into ? block : NULL;
}

CUresult
sim_check_range(sim_device *device, uint64_t address, size_t nbytes)
{
    const sim_block *block = sim_block_holding(device, address, nbytes);
    return nbytes == 0 || (block != NULL && !block->freeing) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

bool
sim_is_mapped(sim_device *device, uint64_t address)
{
    const sim_block *block = sim_block_holding(device, address, 1);
    return block != NULL && (block->pooled || !block->freeing);
}

CUresult
sim_resolve(sim_device *device, uint64_t address, size_t nbytes, void **memory)
{
    if (nbytes == 0) {
        *memory = device->open;
        return CUDA_SUCCESS;
    }
    sim_block *block = sim_block_holding(device, address, nbytes);
    if (block == NULL || !block->live) {
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    }
    if (!block->touched) {
        block->touched = true;
        block->next_touched = touched;
        touched = block;
    }
    *memory = device->open + (address - (uint64_t)(uintptr_t)device->closed);
    OPEN(*memory, nbytes);
    return CUDA_SUCCESS;
}

/* ---------------------------------------------------------------- guards */

void
sim_check_touched(void)
{
    while (touched != NULL) {
        sim_block *block = touched;
        touched = block->next_touched;
        block->touched = false;
        CLOSE(block->device->open + block->offset, block->nbytes);
        check_guards(block);
    }
}

void
sim_check_all(sim_device *device)
{
    for (size_t i = 0; i < device->nblocks; i++) {
        check_guards(device->blocks[i]);
    }
}

int64_t
sim_guard_violations(void)
{
    sim_lock();
    for (int i = 0; i < sim_ndevices; i++) {
        sim_check_all(&sim_devices[i]);
    }
    int64_t found = violations;
    sim_unlock();
    return found;
}
