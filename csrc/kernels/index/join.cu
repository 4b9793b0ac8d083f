/* join.cu: arrays beside each other in one: a kernel for each size of what one access moves. */
#include "../index.h"

typedef struct {
    DT_ALIGNAS(16) uint64_t v[2];
} k_joined;

/* The part that has a chunk. */
DT_DEVICE int
k_join_find(const k_join_args *a, int64_t chunk)
{
    int low = 0, high = a->n - 1;
    DT_ROLLED while (low < high)
    {
        const int middle = (low + high) / 2;
        if (a->part[middle].chunks > chunk) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

#define T uint8_t
#define NAME uint8
#include "join.inc"
#undef T
#undef NAME

#define T uint16_t
#define NAME int16
#include "join.inc"
#undef T
#undef NAME

#define T uint32_t
#define NAME int32
#include "join.inc"
#undef T
#undef NAME

#define T uint64_t
#define NAME int64
#include "join.inc"
#undef T
#undef NAME

#define T k_joined
#define NAME wide_int64
#include "join.inc"
#undef T
#undef NAME
