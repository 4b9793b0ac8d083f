/* sort_rows.cu: rows in order, or a part of that order. An element becomes a number with its position in the row; all
 * differ, so that the order is the only one. Tiles are sorted by a bitonic network, then merged: each tile of a merged
 * run finds where its items begin in both runs, and each item its place by a binary search. Long rows are sorted by
 * digits instead, and where few are wanted they are selected first. */
#include "../index.h"
#include "radix.h"
#include "select.h"

/* The key in the highest bits of the first word; the position in the others, or in a second word. */
#define K_NAMED(op) DT_CAT(k_##op, NAME)
#define K_WORDS (sizeof(T) == 8 ? 2 : 1)
#define K_POSITION_BITS (sizeof(T) == 8 ? 63 : 64 - 8 * (int)sizeof(T))

#define DT_EACH "../kernels/order/sort_item.inc"
#include "../../core/each_dtype.inc"
#undef DT_EACH
#define DT_EACH "../kernels/order/sort_rows.inc"
#include "../../core/each_dtype.inc"
#undef DT_EACH

#undef DT_ROOM
#define DT_ROOM , 3 /* blocks a multiprocessor: loads in flight; more would spill */
#define DT_EACH "../kernels/order/select_rows.inc"
#include "../../core/each_dtype.inc"
#undef DT_EACH
#define DT_EACH "../kernels/order/radix_rows.inc"
#include "../../core/each_dtype.inc"
#undef DT_EACH
#undef DT_ROOM
#define DT_ROOM

#undef K_POSITION_BITS
#undef K_WORDS
#undef K_NAMED
