/* conv2d.h: what the files of the convolution share with each other and with the matrix product. */
#ifndef DT_CPU_CONV2D_H
#define DT_CPU_CONV2D_H

#include "gemm.h"

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

/* ---------------------------------------------------------------- one input channel a group: depthwise.c */

#define DEPTHWISE_TILE 65536 /* bytes */
#define DEPTHWISE_TAPS 128   /* of a weight that is used for tiles */
#define DEPTHWISE_BAND 32768 /* the same, of some rows of a plane */

/* How planes of the result are cut. A tile needs in_rows rows of x, each as stride[1] lines of `pitch` numbers. */
typedef struct {
    int64_t rows, columns, down, across, in_rows, pitch;
} conv_tiles;

typedef struct conv_rows {
    struct cpu_conv conv;
    conv_tiles tiles;
    dt_dtype dtype;
    const void *x, *weight, *bias;
    void *packed; /* as accumulators, channels side by side, in lines of padded_outputs: taps, bias, zeros */
    void *out;
    int64_t together; /* rows of the result, where channels lie side by side */
    int64_t channels, outputs, multiplier, padded_outputs;
    int64_t out_image, out_channel, out_row, out_column, bias_stride;
    cpu_row activation;
} conv_rows;

/* Rows of a plane's result, whose first one needs row `first` of x and two more, counted from where x points; zeros:
 * what the rows beyond [0, height) are. */
typedef struct {
    const void *x, *zeros;
    void *out, *spare; /* a line for nothing */
    int64_t width, height, pad, first, rows, columns, out_row;
} conv_plane;

/* Rows and columns [0, 1) of a weight that lie in the image; offset: of the weight's corner, which may not. */
typedef struct {
    int64_t rows[2], columns[2], offset;
} conv_window;

/* Of `kernel` places, `dilation` apart from `first` on, those in [0, size). */
static inline void
conv_meet(int64_t first, int64_t size, int64_t kernel, int64_t dilation, int64_t *window)
{
    window[0] = first < 0 ? CPU_CEIL_DIV(-first, dilation) : 0;
    window[1] = first >= size ? 0 : CPU_MIN(kernel, (size - 1 - first) / dilation + 1);
}

dt_status cpu_depthwise(conv_rows *job, int64_t images, dt_error *err) DT_MUST_CHECK;

#endif
