/* scan_move.h: how a block shares a step of its rows: K_SCAN_EACH elements one after another for each thread. */
#ifndef DT_KERNEL_SCAN_MOVE_H
#define DT_KERNEL_SCAN_MOVE_H

#include "../index.h"

/* Element j of thread v has cell j * K_SCAN_PITCH + v: neither the threads that own cells nor those that move 16 bytes
 * side by side meet in a bank of shared memory. */
enum { K_SCAN_SIDE = 32, K_SCAN_PITCH = DT_MAX_THREADS + 4, K_SCAN_CELLS = K_SCAN_EACH * K_SCAN_PITCH };

/* Thread v has a lane of the row in a slot. */
#define K_SCAN_LANE(a, v) ((a).rows.across ? (v) >> (8 - (a).rows.lanes) : (v) & ((1 << (a).rows.lanes) - 1))
#define K_SCAN_SLOT(a, v) ((a).rows.across ? (v) & ((DT_MAX_THREADS >> (a).rows.lanes) - 1) : (v) >> (a).rows.lanes)
/* Between threads of the block, or of those side by side. */
#define K_SCAN_SYNC(block)                                                                                             \
    do {                                                                                                               \
        if (block) {                                                                                                   \
            DT_SYNC();                                                                                                 \
        } else {                                                                                                       \
            DT_SYNC_SIDE();                                                                                            \
        }                                                                                                              \
    } while (0)

/* Elements base to end, at most, of so many rows, which start there; `stride` elements apart. */
typedef struct {
    const int64_t *starts;
    int64_t base, end, stride;
    int rows;
} k_scan_piece;

/* The element with which access u of thread v begins, of those that threads side by side own. */
DT_DEVICE int
k_scan_element(int v, int u, int width)
{
    return (u * K_SCAN_SIDE + (v & (K_SCAN_SIDE - 1))) * width;
}

DT_DEVICE int
k_scan_cell(int v, int e)
{
    return (e & (K_SCAN_EACH - 1)) * K_SCAN_PITCH + (v & ~(K_SCAN_SIDE - 1)) + e / K_SCAN_EACH;
}

/* How many of `most` elements there are from that one on, and where. */
DT_DEVICE int
k_scan_there(const k_scan_args *a, const k_scan_piece *piece, int v, int e, int most, int64_t *at)
{
    const int owner = (v & ~(K_SCAN_SIDE - 1)) + e / K_SCAN_EACH, slot = owner >> a->rows.lanes;
    const int64_t i = piece->base + (owner & ((1 << a->rows.lanes) - 1)) * K_SCAN_EACH + (e & (K_SCAN_EACH - 1));
    if (e >= K_SCAN_SIDE * K_SCAN_EACH || slot >= piece->rows || i >= piece->end) {
        return 0;
    }
    *at = piece->starts[slot] + (a->reverse ? a->n - 1 - i : i) * piece->stride;
    return piece->end - i < most ? (int)(piece->end - i) : most;
}

#endif
