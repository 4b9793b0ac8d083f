/* select.h: the search for the number at a place of an order, digit by digit from the highest. */
#ifndef DT_KERNEL_SELECT_H
#define DT_KERNEL_SELECT_H

#include "../sums.h"

enum {
    K_SELECT_BITS = 11,
    K_SELECT_DIGITS = 1 << K_SELECT_BITS,
    K_SELECT_EACH = K_SELECT_DIGITS / K_SUM_LANES, /* digits of a lane */
};

/* Items of these keys, at these positions: the lowest, and how far the highest is above it. There are many positions
 * only, or keys at any position. */
typedef struct {
    uint64_t key, keys, position, positions;
} k_range;

DT_DEVICE int
k_in_range(const k_range *r, uint64_t key, uint64_t position)
{
    return key - r->key <= r->keys && position - r->position <= r->positions;
}

DT_DEVICE int
k_below_range(const k_range *r, uint64_t key, uint64_t position)
{
    return key < r->key || (key == r->key && position < r->position);
}

/* What a digit has: how many come before those, and how many they are. */
typedef struct {
    int64_t digit, before, number;
} k_digit;

/* found becomes the digit of the item that `place` others come before. Every thread of the block calls. */
DT_DEVICE void
k_find_digit(const uint32_t *counts, int64_t place, int64_t sums[2][K_SUM_LANES], k_digit *found)
{
    DT_FOR_THREADS(lane, K_SUM_LANES) {
        int64_t sum = 0;
        for (int j = 0; j < K_SELECT_EACH; j++) {
            sum += counts[lane * K_SELECT_EACH + j];
        }
        sums[0][lane] = sum;
    }
    const int64_t all = k_sums_before(sums);
    DT_FOR_THREADS(lane, K_SUM_LANES) {
        int64_t before = sums[K_SUMS_AT][lane];
        if (before <= place && place < (lane == K_SUM_LANES - 1 ? all : sums[K_SUMS_AT][lane + 1])) {
            int digit = lane * K_SELECT_EACH;
            while (before + counts[digit] <= place) {
                before += counts[digit++];
            }
            found->digit = digit;
            found->before = before;
            found->number = counts[digit];
        }
    }
    DT_SYNC();
}

#endif
