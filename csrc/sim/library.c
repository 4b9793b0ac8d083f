/* library.c: what the stand-ins of cuBLASLt and cuDNN share: they compute with the host backend. */
#include "sim.h"

#include <string.h>

#include "../cpu/cpu.h"

static atomic_int_fast64_t size_limit = INT32_MAX;

int64_t
sim_size_limit(void)
{
    return atomic_load(&size_limit);
}

void
sim_set_size_limit(int64_t limit)
{
    atomic_store(&size_limit, limit > 0 && limit < INT32_MAX ? limit : INT32_MAX);
}

size_t
sim_extent(const dt_array *a)
{
    int64_t last = 0, step;
    for (int i = 0; i < a->ndim; i++) {
        if (a->shape[i] == 0) {
            return 0;
        }
        if (__builtin_mul_overflow(a->shape[i] - 1, a->strides[i], &step) ||
            __builtin_add_overflow(last, step, &last)) {
            return SIZE_MAX;
        }
    }
    size_t nbytes;
    return __builtin_mul_overflow((uint64_t)last + 1, dt_itemsize((dt_dtype)a->dtype), &nbytes) ? SIZE_MAX : nbytes;
}

static void
point_at(void *memory, size_t nbytes, dt_storage *storage, dt_array *a)
{
    memset(storage, 0, sizeof(*storage));
    storage->refs = 1;
    storage->backend = &cpu_backend;
    storage->device = (dt_device){DT_CPU, 0};
    storage->nbytes = nbytes;
    storage->data = memory;
    a->storage = storage;
    a->offset = 0;
}

CUresult
sim_bind(sim_device *device, uint64_t address, dt_storage *storage, dt_array *a)
{
    void *memory;
    size_t nbytes = sim_extent(a);
    CUresult status = sim_resolve(device, address, nbytes, &memory);
    if (status == CUDA_SUCCESS) {
        point_at(memory, nbytes, storage, a);
    }
    return status;
}

/* Ten bits of mantissa, to nearest. */
static float
to_tf32(float x)
{
    uint32_t u = dt_f32_bits(x);
    return (u & 0x7f800000u) == 0x7f800000u ? x : dt_bits_f32((u + 0x1000u) & ~0x1fffu);
}

static void
round_numbers(sim_rounding rounding, dt_dtype dtype, void *numbers, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        if (dtype == DT_FLOAT64) {
            double *x = (double *)numbers + i;
            *x = (double)dt_f64_to_f32(*x);
        } else {
            float *x = (float *)numbers + i;
            *x = rounding == SIM_TF32 ? to_tf32(*x) : dt_f16_to_f32(dt_f32_to_f16(*x));
        }
    }
}

static bool
is_rounded(sim_rounding rounding, const dt_array *a)
{
    switch (rounding) {
    case SIM_WIDE:
        return dt_itemsize((dt_dtype)a->dtype) == 2;
    case SIM_HALF:
        return a->dtype == DT_FLOAT32 || a->dtype == DT_FLOAT64;
    case SIM_TF32:
        return a->dtype == DT_FLOAT32;
    default:
        return false;
    }
}

CUresult
sim_round(sim_rounding rounding, dt_storage *storage, dt_array *a, void **copy)
{
    *copy = NULL;
    if (!is_rounded(rounding, a)) {
        return CUDA_SUCCESS;
    }
    dt_error err;
    dt_storage rounded;
    dt_array b = *a;
    b.dtype = rounding == SIM_WIDE ? DT_FLOAT32 : a->dtype;
    const size_t nbytes = dt_array_nbytes(&b);
    *copy = dt_malloc_aligned(nbytes);
    if (*copy == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    point_at(*copy, nbytes, &rounded, &b);
    dt_array_set_contiguous(&b);
    dt_status status = cpu_copy(a, &b, false, &err);
    if (status != DT_OK) {
        return sim_from_status(status);
    }
    if (rounding != SIM_WIDE) {
        round_numbers(rounding, (dt_dtype)b.dtype, *copy, dt_array_numel(&b));
    }
    point_at(*copy, nbytes, storage, &b);
    *a = b;
    return CUDA_SUCCESS;
}

static bool
is_nan(dt_dtype dtype, const void *at)
{
    uint16_t half;
    float narrow;
    double wide;
    switch (dtype) {
    case DT_FLOAT64:
        memcpy(&wide, at, sizeof(wide));
        return wide != wide;
    case DT_FLOAT32:
        memcpy(&narrow, at, sizeof(narrow));
        return narrow != narrow;
    default:
        memcpy(&half, at, sizeof(half));
        return (half & 0x7fff) > (dtype == DT_FLOAT16 ? 0x7c00 : 0x7f80);
    }
}

void
sim_drop_nans(dt_array *y)
{
    size_t itemsize = dt_itemsize((dt_dtype)y->dtype);
    int64_t n = dt_array_numel(y);
    for (int64_t i = 0; i < n; i++) {
        int64_t rest = i, at = 0;
        for (int d = y->ndim - 1; d >= 0; d--) {
            at += rest % y->shape[d] * y->strides[d];
            rest /= y->shape[d];
        }
        char *element = (char *)y->storage->data + y->offset + at * (int64_t)itemsize;
        if (is_nan((dt_dtype)y->dtype, element)) {
            memset(element, 0, itemsize);
        }
    }
}

CUresult
sim_scribble(sim_device *device, uint64_t workspace, size_t nbytes)
{
    void *memory;
    CUresult status = sim_resolve(device, workspace, nbytes, &memory);
    if (status == CUDA_SUCCESS && nbytes > 0) {
        memset(memory, 0xff, nbytes);
    }
    return status;
}

CUresult
sim_from_status(dt_status status)
{
    return status == DT_OK ? CUDA_SUCCESS : status == DT_ENOMEM ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_LAUNCH_FAILED;
}
