/* remap.cu: elements of the result of places along two neighbouring dimensions of the input: images of another size,
 * padding by what stands within, and dimensions turned round. */
#include "../index.h"

/* The element of the input, of n, for place i of dimension d; in 32 bits unless wide. */
DT_DEVICE int64_t
k_remap_place(const k_remap_args *a, int d, int64_t i)
{
    const k_remap_dim *m = &a->dim[d];
    const int64_t last = m->n - 1;
    int64_t k = i - m->before;
    if (m->kind == K_REMAP_NEAREST) {
        const float place = floorf(((float)i + m->shift) * (float)m->step);
        k = (int64_t)place;
        return k > last ? last : k;
    }
    if (m->kind == K_REMAP_REFLECT) {
        k = k < 0 ? -k : k;
        return k > last ? 2 * last - k : k;
    }
    if (m->kind == K_REMAP_REPLICATE) {
        return k < 0 ? 0 : k > last ? last : k;
    }
    if (m->kind == K_REMAP_CIRCULAR) {
        k = (k - m->first) % m->period;
        return (k < 0 ? k + m->period : k) + m->first;
    }
    return m->kind == K_REMAP_FLIP ? last - i : i;
}

/* Where result i, or line i of results, stands: outer, rows, columns, inner. */
DT_DEVICE void
k_remap_split(const k_remap_args *a, int64_t i, int64_t *at)
{
    DT_UNROLLED for (int d = 3; d > 0; d--)
    {
        const int64_t next = a->wide ? i / a->sizes[d] : (int64_t)k_divide((uint32_t)i, a->divisor[d]);
        at[d] = a->wide ? i - next * a->sizes[d] : (int64_t)((uint32_t)i - (uint32_t)next * (uint32_t)a->sizes[d]);
        i = next;
    }
    at[0] = i;
}

#undef DT_ROOM
#define DT_ROOM , 4
#define DT_EACH "../kernels/index/remap.inc"
#include "../../core/each_dtype.inc"
#undef DT_EACH
#undef DT_ROOM
#define DT_ROOM
