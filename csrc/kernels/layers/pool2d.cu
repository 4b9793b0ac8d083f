/* pool2d.cu: windows over the last two dimensions, a thread a result, in the order of the result in memory. */
#include "../index.h"

/* Where result i stands: n, c, p, q. */
DT_DEVICE void
k_pool_place(const k_pool2d_args *a, int64_t i, int64_t *place)
{
    int64_t at[4];
    DT_UNROLLED for (int d = 3; d > 0; d--)
    {
        int64_t next = a->wide ? i / a->sizes[d] : (int64_t)k_divide((uint32_t)i, a->divisor[d]);
        at[d] = i - next * a->sizes[d];
        i = next;
    }
    place[0] = i;
    place[1] = a->channels_last ? at[3] : at[1];
    place[2] = a->channels_last ? at[1] : at[2];
    place[3] = a->channels_last ? at[2] : at[3];
}

/* The same in 32 bits, of what is not wide. */
DT_DEVICE void
k_pool_place_narrow(const k_pool2d_args *a, uint32_t i, int32_t *place)
{
    int32_t at[4];
    DT_UNROLLED for (int d = 3; d > 0; d--)
    {
        const uint32_t next = k_divide(i, a->divisor[d]);
        at[d] = (int32_t)(i - next * (uint32_t)a->sizes[d]);
        i = next;
    }
    place[0] = (int32_t)i;
    place[1] = a->channels_last ? at[3] : at[1];
    place[2] = a->channels_last ? at[1] : at[2];
    place[3] = a->channels_last ? at[2] : at[3];
}

DT_DEVICE int32_t
k_pool_offset_narrow(const int64_t *strides, const int32_t *place)
{
    return place[0] * (int32_t)strides[0] + place[1] * (int32_t)strides[1] + place[2] * (int32_t)strides[2] +
           place[3] * (int32_t)strides[3];
}

/* Where the window of results p begins along dimension d, which may be in front of the image. */
DT_DEVICE int32_t
k_pool_first(const k_pool2d_args *a, int d, int32_t p)
{
    return p * (int32_t)a->stride[d] - (int32_t)a->padding[d];
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
        int64_t results = a->sizes[(a->channels_last ? 1 : 2) + d];
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

/* The entries of a dilated window that lie in the image: from begin in steps of the dilation, before end. */
DT_DEVICE void
k_pool_taps(const k_pool2d_args *a, int d, int64_t p, int64_t *begin, int64_t *end)
{
    const int64_t size = d == 0 ? a->height : a->width, step = a->dilation[d];
    const int64_t first = p * a->stride[d] - a->padding[d], last = first + (a->kernel[d] - 1) * step + 1;
    *begin = first >= 0 ? first : step == 1 ? 0 : first + (step - 1 - first) / step * step;
    *end = last < size ? last : size;
}

/* The results [first, last] along d whose windows reach over entry i of the image, whether or not they look at it. */
DT_DEVICE void
k_pool_windows_over(const k_pool2d_args *a, int d, int64_t i, int64_t results, int64_t *first, int64_t *last)
{
    const int64_t behind = i + a->padding[d], before = behind - (a->kernel[d] - 1) * a->dilation[d];
    const int64_t begin = before > 0 ? (before + a->stride[d] - 1) / a->stride[d] : 0, end = behind / a->stride[d];
    *first = begin;
    *last = end < results ? end : results - 1;
}

#undef DT_ROOM
#define DT_ROOM , 4
#define DT_EACH "../kernels/layers/pool2d.inc"
#include "../../core/each_dtype.inc"
#undef DT_EACH
#undef DT_ROOM
#define DT_ROOM
