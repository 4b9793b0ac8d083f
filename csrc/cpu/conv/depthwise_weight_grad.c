/* depthwise_weight_grad.c: the gradient of the weight of a convolution with one input channel a group. Where channels
 * lie side by side, vectors of them are added up, for nine taps at once. Else each plane of the gradient is correlated
 * with one of x, read where it lies or in tiles, as depthwise.c does it. Sums of some patches are joined in double;
 * which those are follows from the shapes alone, and a thread has whole weights. */
#include "conv.h"

#define CHANNELS_JOINED 128 /* patches whose products are added up one after the other */
#define CHANNELS_ACROSS 32  /* of them in a row, so that the rows of x stay in the first cache */
#define PLANES_JOINED 2048  /* the same, in lanes */

static void
run_channels(void *ctx, int64_t begin, int64_t end)
{
    const conv_weight_grad *job = ctx;
    cpu_gemm_parts(job->rows.dtype)->weight_channels(job, begin, end);
}

static void
run_planes(void *ctx, int64_t begin, int64_t end)
{
    const conv_weight_grad *job = ctx;
    cpu_gemm_parts(job->rows.dtype)->weight_planes(job, begin, end);
}

/* Cuts planes of few rows: those of the gradient are to fit where they may be copied to. */
static bool
cut_planes(conv_weight_grad *job)
{
    const struct cpu_conv *conv = &job->rows.conv;
    conv_tiles *t = &job->rows.tiles;
    job->bands = cpu_cut_bands(&job->rows);
    if (!job->bands && !cpu_cut_tiles(&job->rows)) {
        return false;
    }
    const int64_t whole = CPU_CEIL_DIV(t->columns, DEPTHWISE_LANES) * DEPTHWISE_LANES;
    const int64_t beyond = t->in_rows - (t->rows - 1) * conv->stride[0];
    t->rows = CPU_MIN(t->rows, WEIGHT_GRADS / whole);
    t->down = CPU_CEIL_DIV(conv->result[0], t->rows);
    t->rows = CPU_CEIL_DIV(conv->result[0], t->down);
    t->in_rows = (t->rows - 1) * conv->stride[0] + beyond;
    return true;
}

/* The patches of an image in parts, in whose rows and columns. */
static void
cut_patches(conv_weight_grad *job)
{
    const int64_t *result = job->rows.conv.result;
    conv_tiles *t = &job->rows.tiles;
    t->across = CPU_CEIL_DIV(result[1], CHANNELS_ACROSS);
    t->columns = CPU_CEIL_DIV(result[1], t->across);
    t->rows = CPU_MIN(CHANNELS_JOINED / t->columns, result[0]);
    t->down = CPU_CEIL_DIV(result[0], t->rows);
    t->rows = CPU_CEIL_DIV(result[0], t->down);
}

static dt_status
add_channels(conv_weight_grad *job, int64_t patches, dt_error *err)
{
    const int64_t lanes = cpu_gemm_parts(job->rows.dtype)->lanes, size = job->rows.dtype == DT_FLOAT64 ? 8 : 4;
    const int64_t blocks = CPU_CEIL_DIV(job->rows.outputs, lanes), n = blocks * lanes * job->taps;
    const size_t nbytes = (size_t)(n * (size + (int64_t)sizeof(double)));
    job->sums = dt_calloc(1, nbytes);
    if (job->sums == NULL) {
        return dt_fail_nomem(err, nbytes);
    }
    job->lanes = job->sums + n;
    job->joined = CHANNELS_JOINED;
    cut_patches(job);
    cpu_parallel(blocks, CPU_CEIL_DIV(CPU_GRAIN, patches * job->taps * lanes), run_channels, job);
    dt_free(job->sums);
    return DT_OK;
}

dt_status
cpu_depthwise_weight_grad(const dt_array *x, const dt_array *grad, const struct cpu_conv *conv, int64_t multiplier,
                          dt_array *out, bool *made, dt_error *err)
{
    const int64_t patches = grad->shape[0] * grad->shape[2] * grad->shape[3];
    conv_weight_grad job = {
        .rows =
            {
                .conv = *conv,
                .dtype = (dt_dtype)x->dtype,
                .x = dt_array_data(x),
                .channels = x->shape[1],
                .outputs = out->shape[0],
                .multiplier = multiplier,
                .out_image = grad->strides[0],
                .out_channel = grad->strides[1],
                .out_row = grad->strides[2],
                .out_column = grad->strides[3],
            },
        .grad = dt_array_data(grad),
        .weight = dt_array_data(out),
        .images = grad->shape[0],
        .taps = conv->kernel[0] * conv->kernel[1],
    };
    *made = true;
    const gemm_dtype *parts = cpu_gemm_parts(job.rows.dtype);
    if (parts->weight_channels != NULL && multiplier == 1 && conv->x_channel == 1 && grad->strides[1] == 1 &&
        job.rows.outputs >= parts->lanes) {
        return add_channels(&job, patches, err);
    }
    *made = cut_planes(&job);
    if (*made) {
        job.joined = PLANES_JOINED;
        cpu_parallel(job.rows.outputs, CPU_CEIL_DIV(CPU_GRAIN, patches * job.taps), run_planes, &job);
    }
    return DT_OK;
}
