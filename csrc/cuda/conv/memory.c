/* memory.c: what convolutions want of a device's memory besides their operands: room for workspaces, and biases
 * that change nothing. */
#include "plan.h"
#include "../memory/memory.h"
#include "../ops/ops.h"
#include "../streams/stream.h"

static atomic_int_fast64_t workspace_limit = INT64_MAX;

int64_t
cuda_workspace_limit(void)
{
    return atomic_load_explicit(&workspace_limit, memory_order_relaxed);
}

void
cuda_set_workspace_limit(int64_t nbytes)
{
    atomic_store(&workspace_limit, nbytes);
}

int64_t
cuda_conv_room(cuda_device *d, const conv_key *key)
{
    size_t free_bytes, total;
    cuda_memory_stats m;
    if (d == NULL || cu.cuMemGetInfo_v2(&free_bytes, &total) != 0) {
        return key->workspace_limit;
    }
    cuda_memory_read(d, &m);
    size_t room = free_bytes + (m.reserved - m.allocated), allowed = m.limit > m.allocated ? m.limit - m.allocated : 0;
    room = room < allowed ? room : allowed;
    return room < (uint64_t)key->workspace_limit ? (int64_t)room : key->workspace_limit;
}

/* x + -0 is x, also for 0 and -0. All streams may read it, so that it is waited for; it stays. */
static dt_status
make_minus_zeros(cuda_device *d, dt_dtype dtype, CUdeviceptr *address, dt_error *err)
{
    const dt_scalar minus_zero = dt_scalar_float(-0.0);
    dt_storage storage = {.device = {DT_CUDA, d->index}};
    dt_array a = {.storage = &storage, .dtype = (uint8_t)dtype, .ndim = 1, .shape = {CONV_MAX_NO_BIAS}};
    dt_array_set_contiguous(&a);
    DT_TRY(cuda_allocate_uncounted(d, dt_array_nbytes(&a), address, err));
    storage.data = (void *)(uintptr_t)*address;
    storage.nbytes = dt_array_nbytes(&a);
    DT_TRY(cuda_fill(&a, &minus_zero, err));
    return cuda_wait(d, err);
}

dt_status
cuda_conv_no_bias(cuda_device *d, const conv_key *key, CUdeviceptr *address, dt_error *err)
{
    if (d->minus_zeros[key->dtype] == 0) {
        CUdeviceptr made = 0;
        dt_status rc = make_minus_zeros(d, (dt_dtype)key->dtype, &made, err);
        if (rc != DT_OK) {
            if (made != 0) {
                (void)cu.cuMemFreeAsync(made, cuda_stream(d));
            }
            return rc;
        }
        d->minus_zeros[key->dtype] = made;
    }
    *address = d->minus_zeros[key->dtype];
    return DT_OK;
}
