/* pool2d_set.h: the lines of a pool (pool2d.c). */
#define DT_EACH "../cpu/pool2d_line.h"
#include "../core/each_dtype.h"
#undef DT_EACH
#define POOL_LINES(op) pool_##op##_FLOAT16, pool_##op##_BFLOAT16, pool_##op##_FLOAT32, pool_##op##_FLOAT64
