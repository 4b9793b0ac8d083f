/* sums.h: running sums by a block. */
#ifndef DT_KERNEL_SUMS_H
#define DT_KERNEL_SUMS_H

#include "kernel.h"

enum { K_SUM_LANES = DT_MAX_THREADS, K_SUM_EACH = 16 }; /* elements of a lane at a time */

/* counts[lane] becomes the sum of the counts before it; returns the sum of all. Every thread of the block calls. */
DT_DEVICE int64_t
k_sums_before(int64_t counts[2][K_SUM_LANES])
{
    int now = 0;
    DT_SYNC();
    DT_UNROLLED for (int reach = 1; reach < K_SUM_LANES; reach *= 2)
    {
        DT_FOR_THREADS(lane, K_SUM_LANES) {
            counts[1 - now][lane] = counts[now][lane] + (lane >= reach ? counts[now][lane - reach] : 0);
        }
        now = 1 - now;
        DT_SYNC();
    }
    const int64_t all = counts[now][K_SUM_LANES - 1];
    DT_FOR_THREADS(lane, K_SUM_LANES) {
        counts[1 - now][lane] = lane > 0 ? counts[now][lane - 1] : 0;
    }
    DT_SYNC();
    return all;
}

enum { K_SUMS_AT = 1 }; /* where k_sums_before leaves them: after 8 doublings and a shift */

/* before[i], of n and one more, becomes the sum of those before it. One block: each lane sums up some, and goes on from
 * what stands before them. */
DT_DEVICE void
k_sum_all(int64_t *before, int64_t n, int64_t counts[2][K_SUM_LANES])
{
    int64_t total = 0;
    DT_ROLLED
    for (int64_t base = 0; base <= n; base += K_SUM_LANES * K_SUM_EACH) {
        DT_FOR_THREADS(lane, K_SUM_LANES) {
            int64_t sum = 0;
            for (int j = 0; j < K_SUM_EACH; j++) {
                const int64_t chunk = base + lane * K_SUM_EACH + j;
                sum += chunk < n ? before[chunk] : 0;
            }
            counts[0][lane] = sum;
        }
        const int64_t all = k_sums_before(counts);
        DT_FOR_THREADS(lane, K_SUM_LANES) {
            int64_t sum = total + counts[K_SUMS_AT][lane];
            for (int j = 0; j < K_SUM_EACH; j++) {
                const int64_t chunk = base + lane * K_SUM_EACH + j;
                const int64_t own = chunk < n ? before[chunk] : 0;
                if (chunk <= n) {
                    before[chunk] = sum;
                }
                sum += own;
            }
        }
        total += all;
        DT_SYNC();
    }
}

#endif
