/* depthwise.c: convolution with one input channel a group, without a product of matrices. Where channels lie side by
 * side in x and the result, vectors of them are added up. Else a plane is copied, tile by tile, to where its padding
 * has a place and columns that a stride keeps apart lie side by side. */
#include "depthwise.h"

#define LANES DEPTHWISE_LANES
#define TILE_COLUMNS 256

typedef struct {
    const conv_rows *job;
    int way;
} depthwise_work;

static void
run_part(void *ctx, int64_t begin, int64_t end)
{
    const depthwise_work *work = ctx;
    cpu_gemm_parts(work->job->dtype)->depthwise[work->way](work->job, begin, end);
}

/* Cuts planes into bands of rows; whether the weight is of 3 x 3, its middle column always in the image, and a band can
 * be held behind a line of zeros of `pitch` numbers. */
bool
cpu_cut_bands(conv_rows *job)
{
    const struct cpu_conv *conv = &job->conv;
    const int64_t stride = conv->stride[0], columns = conv->result[1];
    const int64_t numbers = DEPTHWISE_BAND / (job->dtype == DT_FLOAT64 ? 8 : 4);
    if (conv->kernel[0] != 3 || conv->kernel[1] != 3 || conv->dilation[0] != 1 || conv->dilation[1] != 1 ||
        conv->stride[1] != stride || stride > 2 || conv->pad[1] > 1 || conv->pad[1] < 0 ||
        (columns - 1) * stride + 1 - conv->pad[1] >= conv->width || conv->width > numbers / 8) {
        return false;
    }
    conv_tiles t = {.columns = columns, .across = 1};
    t.pitch = CPU_CEIL_DIV(CPU_MAX(columns, LANES) * stride + 2, LANES) * LANES + LANES;
    t.rows = ((numbers - t.pitch - 3 * LANES) / conv->width - 3) / stride + 1;
    t.down = CPU_CEIL_DIV(conv->result[0], t.rows);
    t.rows = CPU_CEIL_DIV(conv->result[0], t.down);
    t.in_rows = (t.rows - 1) * stride + 3;
    job->tiles = t;
    return true;
}

/* Cuts planes into tiles; whether one can hold what it needs. */
bool
cpu_cut_tiles(conv_rows *job)
{
    const struct cpu_conv *conv = &job->conv;
    int64_t numbers = DEPTHWISE_TILE / (job->dtype == DT_FLOAT64 ? 8 : 4);
    int64_t reach[2] = {(conv->kernel[0] - 1) * conv->dilation[0], (conv->kernel[1] - 1) * conv->dilation[1]};
    conv_tiles t = {.columns = CPU_MIN(conv->result[1], TILE_COLUMNS)};
    t.pitch = CPU_CEIL_DIV(CPU_MAX(t.columns, LANES) + reach[1] / conv->stride[1], LANES) * LANES;
    if (conv->kernel[0] * conv->kernel[1] > DEPTHWISE_TAPS || conv->stride[1] > numbers ||
        t.pitch > numbers / conv->stride[1] || reach[0] > numbers) {
        return false;
    }
    int64_t held = numbers / (t.pitch * conv->stride[1]);
    if (held < reach[0] + 1) {
        return false;
    }
    t.rows = CPU_MIN((held - reach[0] - 1) / conv->stride[0] + 1, conv->result[0]);
    t.down = CPU_CEIL_DIV(conv->result[0], t.rows);
    t.rows = CPU_CEIL_DIV(conv->result[0], t.down);
    t.across = CPU_CEIL_DIV(conv->result[1], t.columns);
    t.in_rows = (t.rows - 1) * conv->stride[0] + reach[0] + 1;
    job->tiles = t;
    return true;
}

/* A line of `packed`, or some of them, from numbers of all outputs. */
static void
pack_lines(const conv_rows *job, int64_t line, const void *from, int64_t across, int64_t along, int64_t lines)
{
    int64_t itemsize = (int64_t)dt_itemsize(job->dtype), size = job->dtype == DT_FLOAT64 ? 8 : 4;
    for (int64_t k = 0; k < job->outputs; k += GEMM_MAX_COLUMNS) {
        cpu_gemm_parts(job->dtype)
            ->pack((char *)job->packed + (line * job->padded_outputs + k) * size,
                   (const char *)from + k * across * itemsize, across, along,
                   CPU_MIN(GEMM_MAX_COLUMNS, job->outputs - k), lines, job->padded_outputs, NULL);
    }
}

dt_status
cpu_pack_taps(conv_rows *job, dt_error *err)
{
    const struct cpu_conv *conv = &job->conv;
    int64_t taps = conv->kernel[0] * conv->kernel[1], itemsize = (int64_t)dt_itemsize(job->dtype);
    job->padded_outputs = CPU_CEIL_DIV(job->outputs, LANES) * LANES;
    size_t nbytes = (size_t)((taps + 2) * job->padded_outputs) * (job->dtype == DT_FLOAT64 ? 8 : 4);
    job->packed = dt_calloc(1, nbytes);
    if (job->packed == NULL) {
        return dt_fail_nomem(err, nbytes);
    }
    for (int64_t r = 0; r < conv->kernel[0]; r++) {
        pack_lines(job, r * conv->kernel[1], (const char *)job->weight + r * conv->weight_row * itemsize,
                   conv->weight_output, conv->weight_column, conv->kernel[1]);
    }
    if (job->bias != NULL) {
        pack_lines(job, taps, job->bias, job->bias_stride, 0, 1);
    }
    return DT_OK;
}

/* Where channels lie side by side. */
static dt_status
run_rows(conv_rows *job, int64_t images, dt_error *err)
{
    const struct cpu_conv *conv = &job->conv;
    const int64_t taps = conv->kernel[0] * conv->kernel[1];
    DT_TRY(cpu_pack_taps(job, err));
    bool shared = conv->stride[0] == 1 && conv->stride[1] == 1 && taps == 9; /* rows need the same ones of x */
    job->together = shared ? 2 : 1;
    int64_t work = job->together * conv->result[1] * job->outputs * taps;
    cpu_parallel(images * CPU_CEIL_DIV(conv->result[0], job->together), CPU_CEIL_DIV(CPU_GRAIN, work), run_part,
                 &(depthwise_work){job, 0});
    dt_free(job->packed);
    return DT_OK;
}

dt_status
cpu_depthwise(conv_rows *job, int64_t images, dt_error *err)
{
    const struct cpu_conv *conv = &job->conv;
    int64_t taps = conv->kernel[0] * conv->kernel[1];
    if (conv->x_channel == 1 && job->out_channel == 1 && job->multiplier == 1 && job->outputs >= LANES) {
        return run_rows(job, images, err);
    }
    int way = cpu_cut_bands(job) ? 1 : cpu_cut_tiles(job) ? 2 : 3;
    if (way < 3) {
        int64_t work = job->tiles.rows * job->tiles.columns * taps;
        cpu_parallel(images * job->outputs * job->tiles.down * job->tiles.across, CPU_CEIL_DIV(CPU_GRAIN, work),
                     run_part, &(depthwise_work){job, way});
    } else {
        cpu_parallel(images * conv->result[0] * job->outputs * conv->result[1], CPU_CEIL_DIV(CPU_GRAIN, taps), run_part,
                     &(depthwise_work){job, way});
    }
    return DT_OK;
}
