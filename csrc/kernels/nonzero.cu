/* nonzero.cu: the places of the True elements of a mask, in order: each chunk counts its own, the counts are summed up,
 * and each chunk writes to where its own begin. */
#include "index.h"
#include "sums.h"

typedef K_PACK(uint8_t, K_TRUE_EACH) k_bytes;

/* The elements of a lane, a bit each that is True. */
DT_DEVICE uint32_t
k_load_bits(const k_true_args *a, const uint8_t *mask, int64_t first)
{
    k_bytes bytes;
    if (a->aligned && first + K_TRUE_EACH <= a->numel) {
        bytes = *(const k_bytes *)(const void *)(mask + first);
    } else {
        DT_UNROLLED for (int j = 0; j < K_TRUE_EACH; j++)
        {
            bytes.v[j] = first + j < a->numel ? mask[first + j] : 0;
        }
    }
    uint32_t bits = 0;
    DT_UNROLLED for (int j = 0; j < K_TRUE_EACH; j++)
    {
        bits |= (uint32_t)(bytes.v[j] != 0) << j;
    }
    return bits;
}

DT_DEVICE int
k_count_bits(uint32_t bits)
{
    int count = 0;
    DT_UNROLLED for (int j = 0; j < K_TRUE_EACH; j++)
    {
        count += (int)(bits >> j & 1);
    }
    return count;
}

/* Element i is True, the row-th that is. */
DT_DEVICE void
k_write_place(const k_true_args *a, int64_t *out, int64_t row, int64_t i)
{
    if (a->columns == 0) {
        int64_t at[1];
        k_locate(&a->index, 1, i, at);
        out[row] = at[0];
        return;
    }
    DT_ROLLED
    for (int d = a->columns - 1; d >= 0; d--) {
        int64_t next = a->index.wide ? i / a->index.shape[d] : (int64_t)k_divide((uint32_t)i, a->index.divisor[d]);
        out[row * a->columns + d] = i - next * a->index.shape[d];
        i = next;
    }
}

K_KERNEL(k_nonzero_bool, k_true_args, a)
{
    DT_SHARED int64_t counts[2][K_TRUE_LANES];
    int64_t *before = DT_GLOBAL(int64_t, a.before.address, a.before.nbytes);
    if (a.stage == K_TRUE_SUM) {
        if (DT_BLOCK == 0) {
            k_sum_all(before, a.chunks, counts);
        }
        return;
    }
    const uint8_t *mask = DT_GLOBAL(const uint8_t, a.mask.address, a.mask.nbytes);
    int64_t *out = a.stage == K_TRUE_FIND ? DT_GLOBAL(int64_t, a.out.address, a.out.nbytes) : 0;
    DT_ROLLED DT_FOR_BLOCKS(chunk, a.chunks)
    {
        DT_FOR_THREADS(lane, K_TRUE_LANES) {
            counts[0][lane] = k_count_bits(k_load_bits(&a, mask, (chunk * K_TRUE_LANES + lane) * K_TRUE_EACH));
        }
        const int64_t all = k_sums_before(counts);
        if (a.stage == K_TRUE_COUNT) {
            if (DT_THREAD == 0) {
                before[chunk] = all;
            }
        } else if (all > 0) {
            DT_FOR_THREADS(lane, K_TRUE_LANES) {
                const int64_t first = (chunk * K_TRUE_LANES + lane) * K_TRUE_EACH;
                const uint32_t bits = k_load_bits(&a, mask, first); /* again, from the cache */
                int64_t row = before[chunk] + counts[K_SUMS_AT][lane];
                DT_ROLLED
                for (int j = 0; j < K_TRUE_EACH; j++) {
                    if ((bits >> j & 1) && row < a.rows) {
                        k_write_place(&a, out, row++, first + j);
                    }
                }
            }
        }
        DT_SYNC();
    }
}
