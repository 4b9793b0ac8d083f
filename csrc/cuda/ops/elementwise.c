/* elementwise.c: unary, binary and ternary ops. */
#include "../launch/launch.h"
#include "ops.h"

#define MAX_ARRAYS 4

static const uint8_t unary_kinds[] = {
#define DT_UNARY(name, kind, ...) DT_KIND_##kind,
#include "../../core/elementwise.def"
#undef DT_UNARY
};

static const uint8_t binary_kinds[] = {
#define DT_BINARY(name, kind, ...) DT_KIND_##kind,
#include "../../core/elementwise.def"
#undef DT_BINARY
};

static const cuda_kernel ternary_kernels[] = {
    CUDA_KERNEL_where,
#define DT_TERNARY(name, ...) CUDA_KERNEL_##name,
#include "../../core/elementwise.def"
#undef DT_TERNARY
};

static size_t
widest(const dt_walk *walk, const dt_dtype *dtypes)
{
    size_t most = 1;
    for (int k = 0; k < walk->narrays; k++) {
        most = dt_itemsize(dtypes[k]) > most ? dt_itemsize(dtypes[k]) : most;
    }
    return most;
}

/* Elements that one access may take, or 1; sets the bit of each array that is one element along the last dimension. */
static int
vector_size(const dt_walk *walk, const dt_dtype *dtypes, const k_operand *arrays, uint32_t *splat)
{
    int last = walk->ndim - 1, width = K_VECTOR_BYTES / (int)widest(walk, dtypes);
    *splat = 0;
    if (last < 0 || walk->strides[0][last] != 1 || (last > 0 && walk->shape[last] % width != 0)) {
        return 1;
    }
    for (int k = 0; k < walk->narrays; k++) {
        if (walk->strides[k][last] == 0) {
            *splat |= 1u << k;
            continue;
        }
        bool aligned = walk->strides[k][last] == 1 && arrays[k].address % ((size_t)width * dt_itemsize(dtypes[k])) == 0;
        for (int d = 0; d < last && aligned; d++) {
            aligned = walk->strides[k][d] % width == 0;
        }
        if (!aligned) {
            return 1;
        }
    }
    return width;
}

static dt_status
launch_walk(cuda_device *device, CUfunction function, bool costly, const dt_walk *walk, const dt_dtype *dtypes,
            k_elementwise_args *args, dt_error *err)
{
    int width = vector_size(walk, dtypes, args->array, &args->splat);
    int64_t tile = (int64_t)K_DEPTH(costly, widest(walk, dtypes), walk->narrays - 1) * CUDA_THREADS * width;
    cuda_index(&args->index, walk);
    args->tiles = width > 1 && walk->ndim == 1 ? walk->numel / tile : 0;
    args->unit = width > 1 && walk->ndim > 1 ? width : 1;
    if (args->tiles == 0) {
        return cuda_launch(device, function, walk->numel / args->unit, args, err);
    }
    int64_t rest = (walk->numel % tile + CUDA_THREADS - 1) / CUDA_THREADS;
    return cuda_launch_blocks(device, function, args->tiles > rest ? args->tiles : rest, args, err);
}

/* How far a dimension goes: entries, or elements of one of the arrays. */
static int64_t
reach(const dt_walk *walk, int d)
{
    int64_t most = walk->shape[d] - 1;
    for (int k = 0; k < walk->narrays; k++) {
        int64_t stride = walk->strides[k][d], far = (walk->shape[d] - 1) * (stride < 0 ? -stride : stride);
        most = far > most ? far : most;
    }
    return most;
}

dt_status
cuda_launch_stream(cuda_device *device, CUfunction function, bool costly, const dt_walk *walk, const dt_dtype *dtypes,
                   k_elementwise_args *args, dt_error *err)
{
    if (walk->ndim <= 1 || cuda_fits_narrow(walk)) {
        return launch_walk(device, function, costly, walk, dtypes, args, err);
    }
    int far = 0; /* two halves, until 32 bits are enough */
    for (int d = 1; d < walk->ndim; d++) {
        far = reach(walk, d) > reach(walk, far) ? d : far;
    }
    for (int part = 0; part < 2; part++) {
        dt_walk half = *walk;
        k_elementwise_args moved = *args;
        int64_t begin = part == 0 ? 0 : walk->shape[far] / 2;
        half.shape[far] = (part == 0 ? walk->shape[far] / 2 : walk->shape[far]) - begin;
        half.numel = walk->numel / walk->shape[far] * half.shape[far];
        for (int k = 0; k < walk->narrays; k++) {
            if (moved.array[k].address != 0) {
                int64_t bytes = begin * walk->strides[k][far] * (int64_t)dt_itemsize(dtypes[k]);
                moved.array[k].address += (uint64_t)bytes;
                moved.array[k].nbytes -= (uint64_t)bytes;
            }
        }
        DT_TRY(cuda_launch_stream(device, function, costly, &half, dtypes, &moved, err));
    }
    return DT_OK;
}

static dt_status
launch_elementwise(cuda_family family, int op, dt_dtype dtype, const dt_params *params, int narrays,
                   const dt_array *const *arrays, dt_error *err)
{
    cuda_device *d;
    CUfunction function;
    dt_walk walk;
    dt_dtype dtypes[MAX_ARRAYS];
    k_elementwise_args args = {0};
    DT_TRY(cuda_enter(arrays[0]->storage->device.index, &d, err));
    DT_TRY(cuda_function(d, family, op, dtype, &function, err));
    dt_walk_init(&walk, narrays, arrays);
    for (int i = 0; i < narrays; i++) {
        args.array[i] = cuda_operand(arrays[i]);
        dtypes[i] = arrays[i]->storage != NULL ? (dt_dtype)arrays[i]->dtype : dtype;
    }
    for (int i = 0; params != NULL && i < 2; i++) {
        args.f[i] = params->f[i];
        args.i[i] = params->i[i];
    }
    bool costly = (family == CUDA_FAMILY_UNARY && unary_kinds[op] == DT_KIND_FLOAT) ||
                  (family == CUDA_FAMILY_BINARY && binary_kinds[op] == DT_KIND_FLOAT);
    return cuda_launch_stream(d, function, costly, &walk, dtypes, &args, err);
}

dt_status
cuda_unary(dt_unary_op op, const dt_params *params, const dt_array *x, dt_array *out, dt_error *err)
{
    const dt_array *arrays[] = {out, x};
    return launch_elementwise(CUDA_FAMILY_UNARY, (int)op, (dt_dtype)x->dtype, params, 2, arrays, err);
}

dt_status
cuda_binary(dt_binary_op op, const dt_params *params, const dt_array *a, const dt_array *b, dt_array *out,
            dt_error *err)
{
    const dt_array *arrays[] = {out, a, b};
    const dt_dtype dtype = (dt_dtype)(a->storage != NULL ? a : b)->dtype;
    return launch_elementwise(CUDA_FAMILY_BINARY, (int)op, dtype, params, 3, arrays, err);
}

dt_status
cuda_ternary(dt_ternary_op op, const dt_array *a, const dt_array *b, const dt_array *c, dt_array *out, dt_error *err)
{
    const dt_array *arrays[MAX_ARRAYS] = {out, a, b, c};
    return launch_elementwise(CUDA_FAMILY_OTHER, (int)ternary_kernels[op], (dt_dtype)out->dtype, NULL, MAX_ARRAYS,
                              arrays, err);
}
