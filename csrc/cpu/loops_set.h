/* loops_set.h: every loop, for the instruction set SET. */
#include "functions.h"

#define IF_0(...)
#define IF_1(...) __VA_ARGS__

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wtype-limits" /* x < 0 for the unsigned */
#include "elementwise_set.h"
#include "copy_set.h"
#include "reduce_set.h"
#pragma GCC diagnostic pop
#include "pool2d_set.h"
#include "softmax_set.h"

const cpu_loops DT_CAT(cpu_loops, SET) = {
    .ops = ops,
    .half_signs = half_signs,
    .sin_wide = sin_wide,
    .magnitude = magnitude,
    .where = {where_8, where_16, where_32, where_64},
    .move = moves,
    .casts = casts,
#if HAS_F16C
    .add_lines = add_lines,
#endif
    .reductions = reductions,
    .reduced_rows = reduced_rows,
    .softmax = {&softmax_f32, &softmax_f64},
    .pool_largest = {POOL_LINES(largest)},
    .pool_sum = {POOL_LINES(sum)},
    .pool_pairs = {NULL, NULL, pool_pairs_FLOAT32, pool_pairs_FLOAT64},
};
