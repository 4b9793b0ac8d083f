/* launch.c: sending kernels to the device, and describing arrays to them. */
#include <string.h>

#include "../../core/layout/layout.h"
#include "launch.h"
#include "../memory/memory.h"
#include "../streams/stream.h"

/* Blocks for each place on the device: enough that the last round is short against the rest. */
#define ROUNDS 8

cuda_kernel_settings cuda_settings = CUDA_KERNEL_SETTINGS;

static dt_status
launch(cuda_device *device, CUfunction function, int64_t nblocks, int threads, const void *args, dt_error *err)
{
    void *parameters[] = {(void *)(uintptr_t)args};
    int64_t room = (int64_t)device->multiprocessors * (device->threads_per_multiprocessor / threads) * ROUNDS;
    unsigned grid = (unsigned)(nblocks < 1 ? 1 : nblocks < room || room < 1 ? nblocks : room);
    DT_COUNT(launches, 1);
    int status;
    CUDA_TRY_WITH_ROOM(
        device, status, status == CUDA_ERROR_OUT_OF_MEMORY,
        cu.cuLaunchKernel(function, grid, 1, 1, (unsigned)threads, 1, 1, 0, cuda_stream(device), parameters, NULL));
    return cuda_check(device, DT_API_cuLaunchKernel, status, err);
}

dt_status
cuda_launch(cuda_device *device, CUfunction function, int64_t n, const void *args, dt_error *err)
{
    int threads = CUDA_THREADS; /* fewer where that brings more multiprocessors to work */
    while (threads > 64 && (n - 1) / threads + 1 < device->multiprocessors) {
        threads /= 2;
    }
    return launch(device, function, (n - 1) / threads + 1, threads, args, err);
}

dt_status
cuda_launch_blocks(cuda_device *device, CUfunction function, int64_t nblocks, const void *args, dt_error *err)
{
    return launch(device, function, nblocks, CUDA_THREADS, args, err);
}

k_operand
cuda_operand(const dt_array *a)
{
    k_operand operand = {0};
    if (a->storage == NULL) {
        memcpy(&operand.bits, a->immediate, sizeof(operand.bits));
        return operand;
    }
    int64_t first, last;
    dt_array_extent(a, &first, &last);
    operand.address = cuda_address(a);
    operand.nbytes = (uint64_t)(last - a->offset);
    return operand;
}

void
cuda_walk_logical(dt_walk *walk, int first, int last, int narrays, const dt_array *const *arrays)
{
    int n = 0;
    memset(walk, 0, sizeof(*walk));
    walk->narrays = narrays;
    walk->numel = 1;
    for (int d = first; d < last; d++) {
        int64_t size = arrays[0]->shape[d], stride[4];
        for (int k = 0; k < narrays; k++) {
            stride[k] = arrays[k]->strides[d];
        }
        walk->numel *= size;
        n = dt_add_dim(n, walk->shape, narrays, walk->strides, size, stride);
    }
    walk->ndim = n;
}

/* Whether entries and offsets fit the 32-bit form of an index. */
bool
cuda_fits_narrow(const dt_walk *walk)
{
    if (walk->numel > cuda_settings.index_limit) {
        return false;
    }
    for (int k = 0; k < walk->narrays; k++) {
        int64_t reach = 0;
        for (int d = 0; d < walk->ndim; d++) {
            int64_t stride = walk->strides[k][d];
            reach += (walk->shape[d] - 1) * (stride < 0 ? -stride : stride);
        }
        if (reach > cuda_settings.index_limit) {
            return false;
        }
    }
    return true;
}

bool
cuda_array_fits_narrow(const dt_array *a)
{
    dt_walk walk = {.ndim = a->ndim, .narrays = 1, .numel = dt_array_numel(a)};
    memcpy(walk.shape, a->shape, sizeof(a->shape));
    memcpy(walk.strides[0], a->strides, sizeof(a->strides));
    return cuda_fits_narrow(&walk);
}

k_divisor
cuda_divisor(int64_t size)
{
    k_divisor by = {0};
    while (by.shift < 31 && (INT64_C(1) << by.shift) < size) {
        by.shift++;
    }
    if (size > 0 && size <= INT32_MAX) {
        uint64_t above = ((uint64_t)1 << by.shift) - (uint64_t)size;
        by.multiplier = (uint32_t)((above << 32) / (uint64_t)size + 1);
    }
    return by;
}

void
cuda_index(k_index *index, const dt_walk *walk)
{
    index->numel = walk->numel;
    index->ndim = walk->ndim;
    index->wide = !cuda_fits_narrow(walk);
    memcpy(index->shape, walk->shape, sizeof(index->shape));
    memcpy(index->strides, walk->strides, sizeof(index->strides));
    for (int d = 0; d < walk->ndim; d++) {
        index->divisor[d] = cuda_divisor(walk->shape[d]);
    }
}
