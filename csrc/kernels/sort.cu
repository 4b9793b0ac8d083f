/* sort.cu: places, sorted without a change of order among equal ones, some bits at a time. Each tile counts its digits,
 * the counts are summed up, and each tile writes to where its own begin. */
#include "index.h"
#include "sums.h"

enum {
    K_SORT_EACH = K_SORT_TILE / K_SUM_LANES,            /* keys of a lane, one after another */
    K_SORT_LANES_A_DIGIT = K_SUM_LANES / K_SORT_DIGITS, /* that sum up its counts */
};

DT_DEVICE uint64_t
k_sort_key(const k_sort_args *a, const uint64_t *keys, int64_t i)
{
    if (!a->first) {
        return keys[i];
    }
    const int64_t place = (int64_t)keys[i];
    return (uint64_t)(place < 0 ? a->nowhere : place) << a->bits | (uint64_t)i;
}

DT_DEVICE int
k_sort_digit(const k_sort_args *a, uint64_t key)
{
    return (int)(key >> a->shift & (K_SORT_DIGITS - 1));
}

K_KERNEL(k_sort_int64, k_sort_args, a)
{
    DT_SHARED int64_t sums[2][K_SUM_LANES];
    DT_SHARED int32_t digits[K_SORT_DIGITS][K_SUM_LANES]; /* of each lane: how many, then how many before them */
    int64_t *counts = DT_GLOBAL(int64_t, a.counts.address, a.counts.nbytes);
    if (a.stage == K_SORT_SUM) {
        if (DT_BLOCK == 0) {
            k_sum_all(counts, K_SORT_DIGITS * a.tiles, sums);
        }
        return;
    }
    const uint64_t *keys = DT_GLOBAL(const uint64_t, a.keys.address, a.keys.nbytes);
    uint64_t *sorted = a.stage == K_SORT_MOVE ? DT_GLOBAL(uint64_t, a.sorted.address, a.sorted.nbytes) : 0;
    DT_ROLLED DT_FOR_BLOCKS(tile, a.tiles)
    {
        DT_FOR_THREADS(lane, K_SUM_LANES) {
            const int64_t begin = (tile * K_SUM_LANES + lane) * K_SORT_EACH;
            for (int d = 0; d < K_SORT_DIGITS; d++) {
                digits[d][lane] = 0;
            }
            for (int64_t i = begin; i < begin + K_SORT_EACH && i < a.numel; i++) {
                digits[k_sort_digit(&a, k_sort_key(&a, keys, i))][lane]++;
            }
        }
        DT_SYNC();
        DT_FOR_THREADS(lane, K_SUM_LANES) {
            const int32_t *own = digits[lane / K_SORT_LANES_A_DIGIT] + lane % K_SORT_LANES_A_DIGIT * K_SORT_DIGITS;
            int64_t sum = 0;
            for (int j = 0; j < K_SORT_DIGITS; j++) {
                sum += own[j];
            }
            sums[0][lane] = sum;
        }
        const int64_t all = k_sums_before(sums);
        const int64_t *before = sums[K_SUMS_AT];
        if (a.stage == K_SORT_COUNT) {
            DT_FOR_THREADS(d, K_SORT_DIGITS) {
                const int64_t end = d == K_SORT_DIGITS - 1 ? all : before[(d + 1) * K_SORT_LANES_A_DIGIT];
                counts[d * a.tiles + tile] = end - before[d * K_SORT_LANES_A_DIGIT];
            }
        } else {
            DT_FOR_THREADS(lane, K_SUM_LANES) {
                int32_t *own = digits[lane / K_SORT_LANES_A_DIGIT] + lane % K_SORT_LANES_A_DIGIT * K_SORT_DIGITS;
                int64_t sum = before[lane] - before[lane / K_SORT_LANES_A_DIGIT * K_SORT_LANES_A_DIGIT];
                for (int j = 0; j < K_SORT_DIGITS; j++) {
                    const int32_t count = own[j];
                    own[j] = (int32_t)sum;
                    sum += count;
                }
            }
            DT_SYNC();
            DT_FOR_THREADS(lane, K_SUM_LANES) {
                const int64_t begin = (tile * K_SUM_LANES + lane) * K_SORT_EACH;
                for (int64_t i = begin; i < begin + K_SORT_EACH && i < a.numel; i++) {
                    const uint64_t key = k_sort_key(&a, keys, i);
                    const int d = k_sort_digit(&a, key);
                    sorted[counts[d * a.tiles + tile] + digits[d][lane]++] = key;
                }
            }
        }
        DT_SYNC();
    }
}
