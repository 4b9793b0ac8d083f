/* sort_rows.cu: rows in order. An element becomes a number with its position in the row; all differ, so that the order
 * is the only one. Tiles are sorted by a bitonic network, then merged: each tile of a merged run finds where its items
 * begin in both runs, and each item its place by a binary search. */
#include "index.h"

#define DT_EACH "../kernels/sort_rows.inc"
#include "../core/each_dtype.inc"
#undef DT_EACH
