/* sort.cu: places, sorted by digits without a change of order among equal ones. */
#include "../index.h"
#include "radix.h"

enum { K_SORT_LOADS = K_SORTED_TILE / DT_MAX_THREADS }; /* of a thread in flight */

/* Key i and those that are DT_THREADS apart; past the end they are of no use. */
DT_DEVICE void
k_sort_load(const k_sort_args *a, const uint64_t *keys, int64_t i, uint64_t *got)
{
    DT_UNROLLED for (int u = 0; u < K_SORT_LOADS; u++)
    {
        const int64_t own = i + u * DT_THREADS;
        got[u] = keys[own < a->numel ? own : a->numel - 1];
    }
    DT_UNROLLED for (int u = 0; u < K_SORT_LOADS; u++)
    {
        const int64_t place = (int64_t)got[u];
        if (a->first) {
            got[u] = (uint64_t)(place < 0 ? a->nowhere : place) << a->bits | (uint64_t)(i + u * DT_THREADS);
        }
    }
}

DT_DEVICE int
k_sort_digit(const k_sort_args *a, uint64_t key)
{
    return (int)(key >> a->shift & (K_RADIX_DIGITS - 1));
}

K_KERNEL(k_sort_int64, k_sort_args, a)
{
    DT_SHARED k_radix radix;
    DT_SHARED uint64_t moved[K_SORTED_TILE];
    int64_t *counts = DT_GLOBAL(int64_t, a.counts.address, a.counts.nbytes);
    const int64_t tiles = (a.numel - 1) / K_SORTED_TILE + 1;
    if (a.stage == K_RADIX_SUM) {
        k_radix_sums(&radix, counts, 1, tiles, 0);
        return;
    }
    const int moves = a.stage == K_RADIX_MOVE;
    const uint64_t *keys = DT_GLOBAL(const uint64_t, a.keys.address, a.keys.nbytes);
    uint64_t *sorted = moves ? DT_GLOBAL(uint64_t, a.sorted.address, a.sorted.nbytes) : 0;
    uint8_t *digits = (uint8_t *)moved; /* until they are ranked */
    DT_ROLLED DT_FOR_BLOCKS(tile, tiles)
    {
        const int64_t begin = tile * K_SORTED_TILE;
        const int n = (int)(a.numel - begin < K_SORTED_TILE ? a.numel - begin : K_SORTED_TILE);
        if (moves) {
            k_radix_bases(&radix, counts, 0, tiles, tile);
        } else {
            DT_FOR_THREADS(d, K_RADIX_DIGITS) {
                radix.of.numbers[d] = 0;
            }
            DT_SYNC();
        }
        DT_ROLLED
        for (int e = DT_THREAD; e < n; e += K_SORT_LOADS * DT_THREADS) {
            uint64_t got[K_SORT_LOADS];
            k_sort_load(&a, keys, begin + e, got);
            DT_UNROLLED for (int u = 0; u < K_SORT_LOADS; u++)
            {
                const int digit = k_sort_digit(&a, got[u]), own = e + u * DT_THREADS;
                if (own < n && moves) {
                    digits[own] = (uint8_t)digit;
                } else if (own < n) {
                    (void)DT_ATOMIC_COUNT(&radix.of.numbers[digit]);
                }
            }
        }
        if (!moves) {
            k_radix_counts(&radix, counts, 0, tiles, tile);
            continue;
        }
        DT_SYNC();
        k_radix_rank(&radix, digits, n);
        DT_ROLLED
        for (int e = DT_THREAD; e < n; e += K_SORT_LOADS * DT_THREADS) {
            uint64_t got[K_SORT_LOADS];
            k_sort_load(&a, keys, begin + e, got);
            DT_UNROLLED for (int u = 0; u < K_SORT_LOADS; u++)
            {
                const int own = e + u * DT_THREADS;
                if (own < n) {
                    moved[k_radix_place(&radix, own, k_sort_digit(&a, got[u]))] = got[u];
                }
            }
        }
        DT_SYNC();
        DT_FOR_THREADS(e, n) {
            sorted[radix.bases[k_sort_digit(&a, moved[e])] + e] = moved[e];
        }
        DT_SYNC();
    }
}
