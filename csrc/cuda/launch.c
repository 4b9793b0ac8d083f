/* launch.c: sending kernels to the device, and describing arrays to them. */
#include <string.h>

#include "cuda.h"

#define BLOCKS_PER_MULTIPROCESSOR 32

static dt_status
launch(cuda_device *device, CUfunction function, int64_t nblocks, int threads, const void *args, dt_error *err)
{
    void *parameters[] = {(void *)(uintptr_t)args};
    int64_t room = (int64_t)device->multiprocessors * BLOCKS_PER_MULTIPROCESSOR;
    unsigned grid = (unsigned)(nblocks < 1 ? 1 : nblocks < room || room < 1 ? nblocks : room);
    DT_COUNT(launches, 1);
    CUDA_TRY(device, cuLaunchKernel,
             (function, grid, 1, 1, (unsigned)threads, 1, 1, 0, cuda_stream(device), parameters, NULL));
    return DT_OK;
}

dt_status
cuda_launch(cuda_device *device, CUfunction function, int64_t n, const void *args, dt_error *err)
{
    return launch(device, function, (n - 1) / CUDA_THREADS + 1, CUDA_THREADS, args, err);
}

dt_status
cuda_launch_blocks(cuda_device *device, CUfunction function, int64_t nblocks, int threads, const void *args,
                   dt_error *err)
{
    return launch(device, function, nblocks, threads, args, err);
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
        int64_t size = arrays[0]->shape[d];
        walk->numel *= size;
        if (size == 1) {
            continue;
        }
        bool merge = n > 0;
        for (int k = 0; k < narrays && merge; k++) {
            merge = walk->strides[k][n - 1] == arrays[k]->strides[d] * size;
        }
        n += !merge;
        walk->shape[n - 1] = merge ? walk->shape[n - 1] * size : size;
        for (int k = 0; k < narrays; k++) {
            walk->strides[k][n - 1] = arrays[k]->strides[d];
        }
    }
    walk->ndim = n;
}
