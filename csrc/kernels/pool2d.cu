/* pool2d.cu: windows over the last two dimensions, a thread a result. */
#include "index.h"

/* Where result i stands: n, c, p, q. */
DT_DEVICE void
k_pool_place(const k_pool2d_args *a, int64_t i, int64_t *place)
{
    for (int d = 3; d >= 0; d--) {
        int64_t next = i / a->shape[d];
        place[d] = i - next * a->shape[d];
        i = next;
    }
}

DT_DEVICE int64_t
k_pool_offset(const int64_t *strides, const int64_t *place)
{
    return place[0] * strides[0] + place[1] * strides[1] + place[2] * strides[2] + place[3] * strides[3];
}

/* The window of results p along dimension d (0: height), and how many entries it has when padding counts. */
DT_DEVICE void
k_pool_window(const k_pool2d_args *a, int d, int64_t p, int64_t *begin, int64_t *end, int64_t *padded)
{
    int64_t size = d == 0 ? a->height : a->width;
    if (a->adaptive) {
        int64_t results = a->shape[2 + d];
        *begin = p * size / results;
        *end = ((p + 1) * size + results - 1) / results;
        *padded = *end - *begin;
        return;
    }
    int64_t first = p * a->stride[d] - a->padding[d], last = first + a->kernel[d];
    *padded = (last < size + a->padding[d] ? last : size + a->padding[d]) - first;
    *begin = first < 0 ? 0 : first;
    *end = last < size ? last : size;
}

#define DT_EACH "../kernels/each_pool2d.h"
#include "../core/each_dtype.h"
#undef DT_EACH
