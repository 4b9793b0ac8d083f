/* patches.h: a convolution as the matrix product sees it: which numbers of x the rows or columns of a patch are. */
#ifndef DT_CPU_PATCHES_H
#define DT_CPU_PATCHES_H

#include "../cpu.h"

/* A convolution as a product of matrices: one axis of the result is patches, the other outputs, and the sums run over
 * taps (places of the weight) and channels. Strides in elements. */
struct cpu_conv {
    bool patches_are_rows;
    int64_t first; /* patch: the one at c */
    int64_t height, width, kernel[2], result[2], stride[2], pad[2], dilation[2];
    int64_t x_image, x_row, x_column, x_channel;
    int64_t weight_output, weight_row, weight_column, weight_channel;
    dt_storage *weight; /* whose panels may be kept, or NULL */
};

/* Patches side by side in one row of the result; row, column, offset: the corner of the first, maybe in the padding. */
typedef struct {
    int64_t count, row, column, offset;
} conv_run;

/* The patches [begin, end) of a run whose number for a tap lies in the image; offset: of the first, in x. */
typedef struct {
    int64_t begin, end, offset;
} conv_span;

/* The run of patch `patch`, with at most count patches. */
static inline conv_run
conv_next_run(const struct cpu_conv *conv, int64_t patch, int64_t count)
{
    int64_t q = patch % conv->result[1], p = patch / conv->result[1] % conv->result[0];
    int64_t image = patch / conv->result[1] / conv->result[0];
    conv_run run = {.count = CPU_MIN(count, conv->result[1] - q)};
    run.row = p * conv->stride[0] - conv->pad[0];
    run.column = q * conv->stride[1] - conv->pad[1];
    run.offset = image * conv->x_image + run.row * conv->x_row + run.column * conv->x_column;
    return run;
}

static inline conv_span
conv_clip(const struct cpu_conv *conv, const conv_run *run, int64_t tap_row, int64_t tap_column)
{
    int64_t begin = 0, end = run->count;
    int64_t row = run->row + tap_row * conv->dilation[0], column = run->column + tap_column * conv->dilation[1];
    if (row < 0 || row >= conv->height) {
        return (conv_span){0, 0, 0};
    }
    if (column < 0 || (end - 1) * conv->stride[1] >= conv->width - column) {
        begin = column < 0 ? CPU_CEIL_DIV(-column, conv->stride[1]) : 0;
        end = column >= conv->width ? 0 : CPU_MIN((conv->width - 1 - column) / conv->stride[1] + 1, end);
    }
    if (begin >= end) {
        return (conv_span){0, 0, 0};
    }
    int64_t offset = run->offset + tap_row * conv->dilation[0] * conv->x_row +
                     (tap_column * conv->dilation[1] + begin * conv->stride[1]) * conv->x_column;
    return (conv_span){begin, end, offset};
}

#endif
