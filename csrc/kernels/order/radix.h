/* radix.h: passes of a sort by one digit after another, from the lowest on, that leave equal ones in their order. Each
 * tile counts its digits; sums over tiles say where those of a tile begin; in a tile each item is ranked, so that those
 * of a digit leave side by side. */
#ifndef DT_KERNEL_RADIX_H
#define DT_KERNEL_RADIX_H

#include "../args.h"
#include "../sums.h"

enum {
    K_RADIX_DIGITS = 1 << K_RADIX_BITS,
    K_RADIX_WARPS = 8,
    K_RADIX_SHARE = K_SORTED_TILE / K_RADIX_WARPS, /* items of a warp, one after another */
    K_RADIX_FEW = 64,                              /* tiles that one thread sums up */
};

/* What threads of a block share. */
typedef struct {
    union {
        uint32_t numbers[K_RADIX_DIGITS]; /* of items with a digit */
        uint16_t starts[K_RADIX_WARPS][K_RADIX_DIGITS];
    } of;
    uint16_t ranks[K_SORTED_TILE];
    int64_t sums[2][K_SUM_LANES];
    int64_t bases[K_RADIX_DIGITS];
} k_radix;

/* Where the count of digit d of a tile stands; that of the tile after the last is the sum of all. */
DT_DEVICE int64_t
k_radix_at(int64_t row, int64_t tiles, int d, int64_t tile)
{
    return (row * K_RADIX_DIGITS + d) * (tiles + 1) + tile;
}

/* The counts of a tile, from numbers. Every thread of the block calls. */
DT_DEVICE void
k_radix_counts(const k_radix *r, int64_t *counts, int64_t row, int64_t tiles, int64_t tile)
{
    DT_SYNC();
    DT_FOR_THREADS(d, K_RADIX_DIGITS) {
        counts[k_radix_at(row, tiles, d, tile)] = r->of.numbers[d];
    }
    DT_SYNC();
}

/* Counts become sums of those of the tiles before, in rows for which every eighth of counted is not 0; NULL: all. */
DT_DEVICE void
k_radix_sums(k_radix *r, int64_t *counts, int64_t rows, int64_t tiles, const uint64_t *counted)
{
    if (tiles > K_RADIX_FEW) {
        DT_ROLLED DT_FOR_BLOCKS(b, rows * K_RADIX_DIGITS)
        {
            if (!counted || counted[b / K_RADIX_DIGITS * 8]) {
                k_sum_all(counts + b * (tiles + 1), tiles, r->sums);
            }
        }
        return;
    }
    DT_ROLLED DT_FOR(i, rows * K_RADIX_DIGITS)
    {
        int64_t *own = counts + i * (tiles + 1), sum = 0;
        if (counted && !counted[i / K_RADIX_DIGITS * 8]) {
            continue;
        }
        for (int64_t tile = 0; tile <= tiles; tile++) {
            const int64_t count = tile < tiles ? own[tile] : 0;
            own[tile] = sum;
            sum += count;
        }
    }
}

/* Before the digits of a tile are ranked: where in the row those of each digit go. */
DT_DEVICE void
k_radix_bases(k_radix *r, const int64_t *counts, int64_t row, int64_t tiles, int64_t tile)
{
    DT_FOR_THREADS(d, K_RADIX_DIGITS) {
        r->sums[0][d] = counts[k_radix_at(row, tiles, d, tiles)];
    }
    (void)k_sums_before(r->sums);
    DT_FOR_THREADS(d, K_RADIX_DIGITS) {
        r->bases[d] = r->sums[K_SUMS_AT][d] + counts[k_radix_at(row, tiles, d, tile)];
    }
    DT_FOR_THREADS(e, K_RADIX_WARPS * K_RADIX_DIGITS) {
        r->of.starts[e / K_RADIX_DIGITS][e % K_RADIX_DIGITS] = 0;
    }
    DT_SYNC();
}

/* Each warp ranks its share of n digits among those before that are the same. */
DT_DEVICE void
k_radix_warps(k_radix *r, const uint8_t *digits, int n)
{
#ifdef __CUDACC__
    const int warp = DT_THREAD / 32, lane = DT_THREAD % 32;
    uint16_t *starts = r->of.starts[warp];
    DT_ROLLED
    for (int e = warp * K_RADIX_SHARE + lane; e < (warp + 1) * K_RADIX_SHARE; e += 32) {
        const int digit = e < n ? digits[e] : K_RADIX_DIGITS;
        const unsigned same = __match_any_sync(0xffffffffu, digit);
        const int before = __popc(same & ((1u << lane) - 1)), seen = e < n ? starts[digit] : 0;
        __syncwarp();
        if (e < n) {
            r->ranks[e] = (uint16_t)(seen + before);
            if (before == 0) {
                starts[digit] = (uint16_t)(seen + __popc(same));
            }
        }
        __syncwarp();
    }
#else
    DT_FOR_THREADS(warp, K_RADIX_WARPS) {
        for (int e = warp * K_RADIX_SHARE; e < (warp + 1) * K_RADIX_SHARE && e < n; e++) {
            r->ranks[e] = r->of.starts[warp][digits[e]]++;
        }
    }
#endif
}

/* Ranks n digits; then k_radix_place says where an item goes in the tile, and k_radix_base where from there in the row.
 * Nobody reads digits after. */
DT_DEVICE void
k_radix_rank(k_radix *r, const uint8_t *digits, int n)
{
    k_radix_warps(r, digits, n);
    DT_SYNC();
    DT_FOR_THREADS(d, K_RADIX_DIGITS) {
        int sum = 0;
        for (int warp = 0; warp < K_RADIX_WARPS; warp++) {
            const int count = r->of.starts[warp][d];
            r->of.starts[warp][d] = (uint16_t)sum;
            sum += count;
        }
        r->sums[0][d] = sum;
    }
    (void)k_sums_before(r->sums);
    DT_FOR_THREADS(d, K_RADIX_DIGITS) {
        const int64_t start = r->sums[K_SUMS_AT][d];
        for (int warp = 0; warp < K_RADIX_WARPS; warp++) {
            r->of.starts[warp][d] = (uint16_t)(r->of.starts[warp][d] + start);
        }
        r->bases[d] -= start;
    }
    DT_SYNC();
}

/* Where item e of a tile, with that digit, goes in it. */
DT_DEVICE int
k_radix_place(const k_radix *r, int e, int digit)
{
    return r->of.starts[e / K_RADIX_SHARE][digit] + r->ranks[e];
}

#endif
