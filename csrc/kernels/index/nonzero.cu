/* nonzero.cu: the places of the True elements of a mask, in order: each chunk counts its own, the counts are summed up,
 * and each chunk writes to where its own begin. */
#include "../index.h"
#include "../sums.h"

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
    bits -= bits >> 1 & 0x55555555u;
    bits = (bits & 0x33333333u) + (bits >> 2 & 0x33333333u);
    return (int)(((bits + (bits >> 4)) & 0x0f0f0f0fu) * 0x01010101u >> 24);
}

enum { K_TRUE_SIDE = K_TRUE_LANES / K_TRUE_CHUNKS }; /* threads side by side */

/* Threads side by side count a chunk, with all that they read of it in flight. */
DT_DEVICE void
k_count_chunks(const k_true_args *a, const uint8_t *mask, int64_t *before, int counts[K_TRUE_LANES])
{
    DT_ROLLED
    for (int64_t first = DT_BLOCK * K_TRUE_CHUNKS; first < a->chunks; first += DT_BLOCKS * K_TRUE_CHUNKS) {
        DT_FOR_THREADS(v, K_TRUE_LANES) {
            const int64_t chunk = first + v / K_TRUE_SIDE;
            uint32_t bits[K_TRUE_CHUNKS];
            DT_UNROLLED for (int u = 0; u < K_TRUE_CHUNKS; u++)
            {
                const int64_t lane = chunk * K_TRUE_LANES + u * K_TRUE_SIDE + (v & (K_TRUE_SIDE - 1));
                bits[u] = k_load_bits(a, mask, lane * K_TRUE_EACH);
            }
            int count = 0;
            DT_UNROLLED for (int u = 0; u < K_TRUE_CHUNKS; u++)
            {
                count += k_count_bits(bits[u]);
            }
            counts[v] = count;
        }
        DT_ROLLED
        for (int reach = K_TRUE_SIDE / 2; reach > 0; reach /= 2) {
            DT_SYNC_SIDE();
            DT_FOR_THREADS(v, K_TRUE_LANES) {
                if ((v & (K_TRUE_SIDE - 1)) < reach) {
                    counts[v] += counts[v + reach];
                }
            }
        }
        DT_SYNC_SIDE();
        DT_FOR_THREADS(v, K_TRUE_LANES) {
            if (v % K_TRUE_SIDE == 0 && first + v / K_TRUE_SIDE < a->chunks) {
                before[first + v / K_TRUE_SIDE] = counts[v];
            }
        }
        DT_SYNC_SIDE();
    }
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

/* counts[0][lane] become sums up to the lane, of the lanes beside it, in the array that is returned. */
DT_DEVICE int
k_count_beside(int counts[2][K_TRUE_LANES])
{
    int now = 0;
    DT_UNROLLED for (int reach = 1; reach < K_TRUE_SIDE; reach *= 2)
    {
        DT_SYNC_SIDE();
        DT_FOR_THREADS(lane, K_TRUE_LANES) {
            counts[1 - now][lane] =
                counts[now][lane] + ((lane & (K_TRUE_SIDE - 1)) >= reach ? counts[now][lane - reach] : 0);
        }
        now = 1 - now;
    }
    DT_SYNC();
    return now;
}

/* A chunk's places are put together first, so that neighbours write side by side. */
#undef DT_ROOM
#define DT_ROOM , 4 /* else ptxas aims at more for sm_120, and spills */
K_KERNEL(k_nonzero_bool, k_true_args, a)
{
    DT_SHARED union {
        int64_t sums[2][K_TRUE_LANES];
        struct {
            int counts[2][K_TRUE_LANES];
            uint32_t bits[K_TRUE_LANES];
            uint16_t places[K_TRUE_LANES * K_TRUE_EACH];
        } own;
    } shared;
    int64_t *before = DT_GLOBAL(int64_t, a.before.address, a.before.nbytes);
    if (a.stage == K_TRUE_SUM) {
        if (DT_BLOCK == 0) {
            k_sum_all(before, a.chunks, shared.sums);
        }
        return;
    }
    const uint8_t *mask = DT_GLOBAL(const uint8_t, a.mask.address, a.mask.nbytes);
    if (a.stage == K_TRUE_COUNT) {
        k_count_chunks(&a, mask, before, shared.own.counts[0]);
        return;
    }
    int64_t *out = DT_GLOBAL(int64_t, a.out.address, a.out.nbytes);
    DT_ROLLED DT_FOR_BLOCKS(chunk, a.chunks)
    {
        const int64_t first = chunk * (K_TRUE_LANES * K_TRUE_EACH), row = before[chunk];
        DT_FOR_THREADS(lane, K_TRUE_LANES) {
            shared.own.bits[lane] = k_load_bits(&a, mask, first + lane * K_TRUE_EACH);
            shared.own.counts[0][lane] = k_count_bits(shared.own.bits[lane]);
        }
        const int now = k_count_beside(shared.own.counts);
        DT_FOR_THREADS(lane, K_TRUE_LANES) {
            int at = shared.own.counts[now][lane] - k_count_bits(shared.own.bits[lane]);
            DT_ROLLED for (int other = K_TRUE_SIDE - 1; other < (lane & ~(K_TRUE_SIDE - 1)); other += K_TRUE_SIDE)
            {
                at += shared.own.counts[now][other];
            }
            DT_UNROLLED for (int j = 0; j < K_TRUE_EACH; j++)
            {
                if (shared.own.bits[lane] >> j & 1) {
                    shared.own.places[at++] = (uint16_t)(lane * K_TRUE_EACH + j);
                }
            }
        }
        int count = 0;
        DT_UNROLLED for (int other = K_TRUE_SIDE - 1; other < K_TRUE_LANES; other += K_TRUE_SIDE)
        {
            count += shared.own.counts[now][other];
        }
        DT_SYNC();
        DT_FOR_THREADS(k, count) {
            if (row + k < a.rows) {
                k_write_place(&a, out, row + k, first + shared.own.places[k]);
            }
        }
        DT_SYNC();
    }
}
#undef DT_ROOM
#define DT_ROOM
