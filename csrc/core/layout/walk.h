/* walk.h: how to go over several arrays of one shape. Apart from devtensor.h because kernels read it too. */
#ifndef DT_WALK_H
#define DT_WALK_H

#include "../numbers/scalar.h"

#define DT_MAX_NDIM 8

/* How to go over up to four arrays of one shape: dimensions of size 1 dropped, in the memory order of array 0, merged
 * where all strides allow. The innermost dimension is the last. Plain data: kernels take it by value. */
typedef struct {
    int32_t ndim;
    int32_t narrays;
    int64_t numel;
    int64_t shape[DT_MAX_NDIM];
    int64_t strides[4][DT_MAX_NDIM]; /* elements */
} dt_walk;

#endif
