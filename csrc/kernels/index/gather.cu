/* gather.cu: reading and writing where arrays of indices say. Only bytes move: a kernel for each size of what one
 * access moves, which along a row may be several elements. */
#include "selection.h"

typedef struct {
    DT_ALIGNAS(16) uint64_t v[2];
} k_wide;

#undef DT_ROOM
#define DT_ROOM , 3
#define T uint8_t
#define NAME uint8
#include "gather.inc"
#undef T
#undef NAME

#define T uint16_t
#define NAME int16
#include "gather.inc"
#undef T
#undef NAME

#define T uint32_t
#define NAME int32
#include "gather.inc"
#undef T
#undef NAME

#define T uint64_t
#define NAME int64
#include "gather.inc"
#undef T
#undef NAME

#define T k_wide
#define NAME wide_int64
#include "gather.inc"
#undef T
#undef NAME

#undef DT_ROOM
#define DT_ROOM

DT_DEVICE uint64_t
k_hash(int64_t place, uint64_t mask)
{
    return ((uint64_t)place * 0x9E3779B97F4A7C15u >> 20) & mask;
}

K_KERNEL(k_places_int64, k_places_args, a)
{
    int64_t *places = DT_GLOBAL(int64_t, a.places.address, a.places.nbytes);
    uint64_t *table = DT_GLOBAL(uint64_t, a.table.address, a.table.nbytes);
    if (a.stage == K_PLACES_FIND) {
        const void *first = K_OPEN_INDEX(&a.by, 0);
        DT_ROLLED DT_FOR(i, a.by.index.numel)
        {
            int64_t at[3];
            k_locate(&a.by.index, 3, i, at);
            const int64_t place = k_place_all(&a.by, i, k_load_index(&a.by, 0, first, at[2]));
            places[i] = place < 0 ? -1 : at[0] + place;
        }
        return;
    }
    int64_t *kept = DT_GLOBAL(int64_t, a.kept.address, a.kept.nbytes);
    DT_ROLLED DT_FOR(i, a.by.index.numel)
    {
        const int64_t place = places[i];
        uint64_t h = k_hash(place, a.mask), seen;
        if (a.stage == K_PLACES_CLAIM) {
            while (place >= 0 && (seen = DT_ATOMIC_CAS(&table[h], 0, (uint64_t)i + 1)) != 0) {
                if (places[seen - 1] == place) { /* who takes the entry over later has the same place */
                    (void)DT_ATOMIC_MAX(&table[h], (uint64_t)i + 1);
                    break;
                }
                h = (h + 1) & a.mask;
            }
        } else {
            while (place >= 0 && places[table[h] - 1] != place) {
                h = (h + 1) & a.mask;
            }
            kept[i] = place >= 0 && table[h] == (uint64_t)i + 1 ? place : -1;
        }
    }
}
