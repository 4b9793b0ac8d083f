/* depthwise.h: convolution with one input channel a group: depthwise.c and the templates of this folder. */
#ifndef DT_CPU_DEPTHWISE_H
#define DT_CPU_DEPTHWISE_H

#include "../gemm/gemm.h"
#include "../gemm/patches.h"

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
