/* join.c: arrays beside each other along a dimension, as many of them a launch as its arguments have room for. */
#include "../launch/launch.h"
#include "ops.h"

_Static_assert(sizeof(k_join_args) <= 4096, "what a launch takes");

/* out as rows of `pitch` bytes; of a part a row has numel / rows. */
typedef struct {
    int64_t rows;
    uint64_t pitch;
    uint64_t unit; /* bytes of an access */
} layout;

static bool
is_joined(const dt_array *part)
{
    return dt_array_numel(part) > 0;
}

static uint64_t
row_bytes(const layout *l, const dt_array *part)
{
    return (uint64_t)(dt_array_numel(part) / l->rows) * dt_itemsize((dt_dtype)part->dtype);
}

/* Whether all lie as they shall, in memory one after the other. */
static bool
lay_out(const dt_array *const *parts, int n, int dim, const dt_array *out, layout *l)
{
    uint64_t all = cuda_address(out);
    *l = (layout){.rows = 1, .unit = K_VECTOR_BYTES};
    if (!dt_array_is_contiguous(out)) {
        return false;
    }
    for (int d = 0; d < dim; d++) {
        l->rows *= out->shape[d];
    }
    l->pitch = row_bytes(l, out);
    for (int i = 0; i < n; i++) {
        if (is_joined(parts[i])) {
            if (parts[i]->dtype != out->dtype || !dt_array_is_contiguous(parts[i])) {
                return false;
            }
            all |= cuda_address(parts[i]) | row_bytes(l, parts[i]);
        }
    }
    while (all % l->unit != 0) {
        l->unit /= 2;
    }
    return true;
}

dt_status
cuda_join_parts(const dt_array *const *parts, int n, int dim, dt_array *out, bool *made, dt_error *err)
{
    static const dt_dtype words[] = {[1] = DT_UINT8, [2] = DT_INT16, [4] = DT_INT32, [8] = DT_INT64, [16] = DT_INT64};
    cuda_device *d;
    CUfunction function;
    layout l;
    k_join_args args = {0};
    uint64_t offset = 0;
    *made = lay_out(parts, n, dim, out, &l);
    if (!*made) {
        return DT_OK;
    }
    DT_TRY(cuda_enter(out->storage->device.index, &d, err));
    DT_TRY(cuda_function(d, CUDA_FAMILY_OTHER, l.unit == K_VECTOR_BYTES ? CUDA_KERNEL_join_wide : CUDA_KERNEL_join,
                         words[l.unit], &function, err));
    args.out = cuda_operand(out);
    args.pitch = (int64_t)(l.pitch / l.unit);
    for (int i = 0; i < n; i++) {
        if (!is_joined(parts[i])) {
            continue;
        }
        const uint64_t bytes = row_bytes(&l, parts[i]);
        k_join_part *part = &args.part[args.n];
        part->address = cuda_address(parts[i]);
        part->length = (int64_t)(bytes / l.unit);
        part->numel = l.rows * part->length;
        part->offset = (int64_t)(offset / l.unit);
        part->chunks = (args.n > 0 ? part[-1].chunks : 0) + (part->numel - 1) / K_JOIN_CHUNK + 1;
        args.wide = args.wide || part->numel > INT32_MAX;
        if (part->numel <= INT32_MAX) {
            part->by_length = cuda_divisor(part->length);
        }
        offset += bytes;
        if (++args.n == K_JOIN_PARTS) {
            DT_TRY(cuda_launch_blocks(d, function, part->chunks, &args, err));
            args.n = args.wide = 0;
        }
    }
    return args.n == 0 ? DT_OK : cuda_launch_blocks(d, function, args.part[args.n - 1].chunks, &args, err);
}
