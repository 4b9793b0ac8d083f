/* pool2d.h: the windows of a pool, one by one and side by side: pool2d.c, pool2d_grad.c. */
#ifndef DT_CPU_POOL2D_H
#define DT_CPU_POOL2D_H

#include "../loops.h"

#define LINE 256 /* results side by side that are made together */

/* [begin, end) lie in the image; size is what a mean divides by. */
typedef struct {
    int64_t begin, end, size;
} window;

static inline window
dilated_window(const dt_pool2d_params *params, int dim, int64_t i, int64_t length)
{
    int64_t begin = i * params->stride[dim] - params->padding[dim], step = params->dilation[dim];
    int64_t end = CPU_MIN(begin + (params->kernel[dim] - 1) * step + 1, length);
    return (window){begin < 0 ? begin + CPU_CEIL_DIV(-begin, step) * step : begin, end, 0};
}

/* The columns of a window, `step` apart, that touch an image of this width in any of n windows side by side from column
 * first. */
static inline window
taps_of_row(const dt_pool2d_params *params, int64_t step, int64_t width, int64_t first, int64_t n)
{
    int64_t left = first * params->stride[1] - params->padding[1], right = left + (n - 1) * params->stride[1];
    int64_t begin = right < 0 ? CPU_CEIL_DIV(-right, step) : 0;
    int64_t end = left < width ? CPU_MIN(params->kernel[1], (width - 1 - left) / step + 1) : 0;
    return (window){begin, end, 0};
}

/* How many windows are made together: between those that a step leads past the image, columns touch nothing. */
static inline int64_t
windows_together(const dt_pool2d_params *params, int64_t width)
{
    return params->stride[1] > width ? 1 : LINE;
}

/* Of n columns from `column` on, `apart` from each other, those that lie in an image of this width. */
static inline window
columns_inside(int64_t column, int64_t apart, int64_t width, int64_t n)
{
    int64_t left = width - 1 - column;
    return (window){column < 0 ? CPU_CEIL_DIV(-column, apart) : 0, left < 0 ? 0 : CPU_MIN(n, left / apart + 1), 0};
}

/* Windows beside each other, without gaps, from the image's first row or column on. */
static inline bool
is_side_by_side(const dt_pool2d_params *params, int dim)
{
    return params->stride[dim] == params->kernel[dim] && params->padding[dim] == 0 && params->dilation[dim] == 1;
}

/* Windows of 2 x 2 beside each other, all of them whole. */
static inline bool
is_pairs(const dt_array *x, const dt_pool2d_params *params, const dt_array *out)
{
    bool found = x->strides[3] == 1 && out->strides[3] == 1;
    for (int d = 0; d < 2; d++) {
        found =
            found && params->kernel[d] == 2 && is_side_by_side(params, d) && 2 * out->shape[2 + d] <= x->shape[2 + d];
    }
    return found;
}

#endif
