/* scatter_add.cu: sums at the places that indices choose, without atomics: the same bits each time. */
#include "selection.h"

DT_DEVICE int64_t
k_key_place(const k_scatter_add_args *a, uint64_t key)
{
    return (int64_t)(key >> a->bits);
}

/* Where the element of a key stands in value, beside its column. */
DT_DEVICE int64_t
k_key_value(const k_scatter_add_args *a, uint64_t key)
{
    int64_t at[2];
    k_locate(&a->by.index, 2, (int64_t)(key & (((uint64_t)1 << a->bits) - 1)), at);
    return at[1];
}

#define DT_EACH "../kernels/index/scatter_add.inc"
#include "../../core/each_dtype.inc"
#undef DT_EACH

#undef DT_ROOM
#define DT_ROOM , 3 /* blocks: more of them would spill */
#define DT_EACH "../kernels/index/add_together.inc"
#include "../../core/each_dtype.inc"
#undef DT_EACH
#undef DT_ROOM
#define DT_ROOM
