/* depthwise.h: convolution with one input channel a group: depthwise.c and the templates of this folder. */
#ifndef DT_CPU_DEPTHWISE_H
#define DT_CPU_DEPTHWISE_H

#include "../gemm/gemm.h"
#include "../gemm/patches.h"

#define DEPTHWISE_TILE 65536 /* bytes */
#define DEPTHWISE_TAPS 128   /* of a weight that is used for tiles */
#define DEPTHWISE_BAND 32768 /* the same, of some rows of a plane */
#define DEPTHWISE_LANES 16   /* no vector has more */
#define WEIGHT_GRADS 2048    /* numbers of the gradient in a tile, in whole vectors */

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

/* The gradient of a weight. rows: of the convolution whose result has the gradient's strides; x, no weight. */
typedef struct conv_weight_grad {
    conv_rows rows;
    const void *grad;
    void *weight, *lanes;         /* lanes: sums not yet joined, (blocks of channels, taps, a vector) */
    double *sums;                 /* the same, joined */
    int64_t images, taps, joined; /* patches after which they are joined */
    bool bands;
} conv_weight_grad;

/* Rows of a plane of the gradient. x, zeros to first: as in conv_plane, where the weight is of 3 x 3. */
typedef struct {
    const void *x, *zeros, *grad;
    int64_t width, height, pad, first, rows, columns, grad_row;
} weight_plane;

#define SPREAD_LINE 1024 /* numbers of a row of the gradient, with zeros before and behind it */
#define SPREAD_BEFORE DEPTHWISE_LANES
#define SPREAD_TAPS 32 /* that reach one number of the input */

/* The gradient of an input. rows: as above; no x. */
typedef struct conv_input_grad {
    conv_rows rows;
    const void *grad;
    void *x;
} conv_input_grad;

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

/* `count` patches side by side, of whose taps the same ones lie in x, none or `taps` from number `tap` on; place: of
 * that of the first, in rows or columns of x. */
typedef struct {
    int64_t count, tap, taps, place;
} conv_stretch;

/* The stretch from patch i on along dimension dim of x, with that size, and some taps from `tap` on. */
static inline conv_stretch
conv_next_stretch(const struct cpu_conv *conv, int dim, int64_t size, int64_t i, int64_t end, int64_t tap, int64_t some)
{
    const int64_t dilation = conv->dilation[dim], stride = conv->stride[dim];
    const int64_t first = i * stride - conv->pad[dim] + tap * dilation, n = CPU_MIN(some, conv->kernel[dim] - tap);
    int64_t window[2], count = end - i;
    conv_meet(first, size, n, dilation, window);
    if (window[0] > 0) { /* until the tap before comes in */
        count = CPU_MIN(count, CPU_CEIL_DIV(-first - (CPU_MIN(window[0], n) - 1) * dilation, stride));
    }
    if (window[1] > 0) { /* until the last one goes out */
        count = CPU_MIN(count, CPU_CEIL_DIV(size - first - (window[1] - 1) * dilation, stride));
    }
    return (conv_stretch){count, tap + window[0], CPU_MAX(window[1] - window[0], 0), first + window[0] * dilation};
}

dt_status cpu_depthwise(conv_rows *job, int64_t images, dt_error *err) DT_MUST_CHECK;
/* Makes `packed`, which the caller frees. */
dt_status cpu_pack_taps(conv_rows *job, dt_error *err) DT_MUST_CHECK;
/* Set tiles: to rows of a plane with a weight of 3 x 3, which is read where it lies, or to what is copied. False: they
 * are none. */
bool cpu_cut_bands(conv_rows *job);
bool cpu_cut_tiles(conv_rows *job);

/* The gradient of a weight with `multiplier` outputs a group. made: whether there is a way. */
dt_status cpu_depthwise_weight_grad(const dt_array *x, const dt_array *grad, const struct cpu_conv *conv,
                                    int64_t multiplier, dt_array *out, bool *made, dt_error *err) DT_MUST_CHECK;

#endif
