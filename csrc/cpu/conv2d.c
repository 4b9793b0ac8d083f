/* conv2d.c: the convolution as a product of matrices, weight (K / groups, taps) by patches (taps, N * P * Q), where the
 * patches are never laid out: the product packs its panels of them straight from x (gemm.c). With one input channel and
 * few results a group there is nothing to gain from that, and the sums are made directly. Strides of all arrays are
 * free. */
#include "gemm.h"

#define DEPTHWISE_BLOCK 64

/* One number of a weight: its place there, in x from the corner of a patch, and in rows and columns of the image. */
typedef struct {
    int64_t weight, x, row, column;
} conv_tap;

struct cpu_conv {
    const conv_tap *taps;
    int64_t height, width, result[2], stride[2], pad[2];
    int64_t x_image, x_row, x_column, x_step; /* x_step: from one patch to the next in a row */
    int64_t out_image, out_row, out_column;
};

/* count patches side by side; row, column, offset: the corner of the first, which may lie in the padding */
typedef struct {
    int64_t count, row, column, offset;
} conv_run;

typedef struct {
    struct cpu_conv conv;
    const void *x, *weight, *bias;
    void *out;
    dt_dtype dtype;
    int64_t ntaps, outputs, multiplier;
    int64_t x_channel, weight_output, out_channel, bias_stride;
    cpu_row activation;
} depthwise_job;

static int
split_runs(const struct cpu_conv *conv, int64_t column, int64_t count, conv_run *runs)
{
    int n = 0;
    int64_t q = column % conv->result[1], p = column / conv->result[1] % conv->result[0];
    int64_t image = column / conv->result[1] / conv->result[0];
    while (count > 0) {
        conv_run *run = &runs[n++];
        run->count = CPU_MIN(count, conv->result[1] - q);
        run->row = p * conv->stride[0] - conv->pad[0];
        run->column = q * conv->stride[1] - conv->pad[1];
        run->offset = image * conv->x_image + run->row * conv->x_row + run->column * conv->x_column;
        count -= run->count;
        q = 0;
        if (++p == conv->result[0]) {
            p = 0;
            image++;
        }
    }
    return n;
}

/* The patches [begin, end) of a run whose number for a tap lies in the image; offset: of the first in x. */
typedef struct {
    int64_t begin, end, offset;
} span;

static inline span
clip(const struct cpu_conv *conv, const conv_run *run, const conv_tap *tap)
{
    int64_t begin = 0, end = run->count, row = run->row + tap->row, column = run->column + tap->column;
    if (row < 0 || row >= conv->height) {
        return (span){0, 0, 0};
    }
    if (column < 0 || (end - 1) * conv->stride[1] >= conv->width - column) {
        begin = column < 0 ? CPU_CEIL_DIV(-column, conv->stride[1]) : 0;
        end = column >= conv->width ? 0 : CPU_MIN((conv->width - 1 - column) / conv->stride[1] + 1, end);
    }
    return begin < end ? (span){begin, end, run->offset + tap->x + begin * conv->x_step} : (span){0, 0, 0};
}

#define DT_EACH "../cpu/conv2d_each.h"
#include "../core/each_dtype.h"

typedef void (*conv_pack)(const cpu_gemm_args *, void *, int64_t, int64_t, int64_t, int64_t, int64_t);

static const struct {
    conv_pack weight, patches;
    void (*depthwise)(const depthwise_job *, int64_t, int64_t);
} parts[DT_NDTYPES] = {
    [DT_FLOAT16] = {pack_weight_FLOAT16, pack_patches_FLOAT16, depthwise_FLOAT16},
    [DT_BFLOAT16] = {pack_weight_BFLOAT16, pack_patches_BFLOAT16, depthwise_BFLOAT16},
    [DT_FLOAT32] = {pack_weight_FLOAT32, pack_patches_FLOAT32, depthwise_FLOAT32},
    [DT_FLOAT64] = {pack_weight_FLOAT64, pack_patches_FLOAT64, depthwise_FLOAT64},
};

void
cpu_conv_pack_a(const cpu_gemm_args *g, void *panel, int64_t row, int64_t count, int64_t tap, int64_t depth,
                int64_t width)
{
    parts[g->dtype].weight(g, panel, row, count, tap, depth, width);
}

void
cpu_conv_pack_b(const cpu_gemm_args *g, void *panel, int64_t column, int64_t count, int64_t tap, int64_t depth,
                int64_t width)
{
    parts[g->dtype].patches(g, panel, column, count, tap, depth, width);
}

void
cpu_conv_columns(const struct cpu_conv *conv, int64_t column, int64_t count, int64_t *offsets)
{
    int64_t q = column % conv->result[1], p = column / conv->result[1] % conv->result[0];
    int64_t image = column / conv->result[1] / conv->result[0];
    for (int64_t j = 0; j < count; j++) {
        offsets[j] = image * conv->out_image + p * conv->out_row + q * conv->out_column;
        if (++q == conv->result[1]) {
            q = 0;
            if (++p == conv->result[0]) {
                p = 0;
                image++;
            }
        }
    }
}

/* The taps of one group, channels innermost where x has them side by side. */
static void
fill_taps(const dt_array *x, const dt_array *weight, const dt_conv2d_params *params, conv_tap *taps)
{
    const int64_t *ws = weight->strides;
    int64_t channels = weight->shape[1], rows = weight->shape[2], columns = weight->shape[3];
    bool inner = channels > 1 && x->strides[1] == 1;
    int64_t apart = inner ? 1 : rows * columns, channel_step = inner ? channels : 1;
    for (int64_t c = 0; c < channels; c++) {
        for (int64_t r = 0; r < rows; r++) {
            for (int64_t s = 0; s < columns; s++) {
                conv_tap *tap = &taps[c * apart + (r * columns + s) * channel_step];
                tap->weight = c * ws[1] + r * ws[2] + s * ws[3];
                tap->row = r * params->dilation[0];
                tap->column = s * params->dilation[1];
                tap->x = c * x->strides[1] + tap->row * x->strides[2] + tap->column * x->strides[3];
            }
        }
    }
}

static struct cpu_conv
geometry(const dt_array *x, const dt_array *out, const dt_conv2d_params *params, const conv_tap *taps)
{
    return (struct cpu_conv){
        .taps = taps,
        .height = x->shape[2],
        .width = x->shape[3],
        .result = {out->shape[2], out->shape[3]},
        .stride = {params->stride[0], params->stride[1]},
        .pad = {params->pad_before[0], params->pad_before[1]},
        .x_image = x->strides[0],
        .x_row = x->strides[2],
        .x_column = x->strides[3],
        .x_step = params->stride[1] * x->strides[3],
        .out_image = out->strides[0],
        .out_row = out->strides[2],
        .out_column = out->strides[3],
    };
}

/* With a weight of 1 x 1 that misses nothing, an image is one long row if x and out can be read so. */
static void
flatten_rows(const dt_array *weight, const dt_conv2d_params *params, struct cpu_conv *conv)
{
    if (weight->shape[2] == 1 && weight->shape[3] == 1 && params->stride[0] == 1 && params->stride[1] == 1 &&
        conv->pad[0] == 0 && conv->pad[1] == 0 && conv->result[0] == conv->height && conv->result[1] == conv->width &&
        conv->x_row == conv->width * conv->x_column && conv->out_row == conv->width * conv->out_column) {
        conv->width = conv->result[1] = conv->height * conv->width;
        conv->height = conv->result[0] = 1;
    }
}

static void
depthwise_part(void *ctx, int64_t begin, int64_t end)
{
    const depthwise_job *job = ctx;
    parts[job->dtype].depthwise(job, begin, end);
}

static void
run_depthwise(const dt_array *x, const dt_array *weight, const dt_array *bias, const dt_conv2d_params *params,
              const struct cpu_conv *conv, dt_array *out)
{
    depthwise_job job = {
        .conv = *conv,
        .x = dt_array_data(x),
        .weight = dt_array_data(weight),
        .bias = bias ? dt_array_data(bias) : NULL,
        .out = dt_array_data(out),
        .dtype = (dt_dtype)x->dtype,
        .ntaps = weight->shape[2] * weight->shape[3],
        .outputs = weight->shape[0],
        .multiplier = weight->shape[0] / params->groups,
        .x_channel = x->strides[1],
        .weight_output = weight->strides[0],
        .out_channel = out->strides[1],
        .bias_stride = bias ? bias->strides[0] : 0,
        .activation = cpu_activation_row(params->activation, (dt_dtype)x->dtype),
    };
    int64_t rows = out->shape[0] * job.outputs * conv->result[0];
    cpu_parallel(rows, CPU_CEIL_DIV(CPU_GRAIN, CPU_MAX(conv->result[1] * job.ntaps, 1)), depthwise_part, &job);
}

static dt_status
run_groups(const dt_array *x, const dt_array *weight, const dt_array *bias, const dt_conv2d_params *params,
           const struct cpu_conv *conv, dt_array *out, dt_error *err)
{
    int64_t itemsize = (int64_t)dt_itemsize((dt_dtype)x->dtype), outputs = weight->shape[0] / params->groups;
    cpu_gemm_args g = {
        .dtype = (dt_dtype)x->dtype,
        .m = outputs,
        .n = out->shape[0] * conv->result[0] * conv->result[1],
        .k = weight->shape[1] * weight->shape[2] * weight->shape[3],
        .alpha = 1,
        .a_row = weight->strides[0],
        .c_row = out->strides[1],
        .bias_row = bias ? bias->strides[0] : 0,
        .activation = cpu_activation_row(params->activation, (dt_dtype)x->dtype),
        .conv = conv,
    };
    for (int64_t i = 0; i < params->groups; i++) {
        int64_t first = i * outputs;
        g.a = (const char *)dt_array_data(weight) + (g.k > 0 ? first * weight->strides[0] * itemsize : 0);
        g.b = (const char *)dt_array_data(x) + (g.k > 0 ? i * weight->shape[1] * x->strides[1] * itemsize : 0);
        g.c = (char *)dt_array_data(out) + first * out->strides[1] * itemsize;
        g.bias = bias ? (const char *)dt_array_data(bias) + first * bias->strides[0] * itemsize : NULL;
        DT_TRY(cpu_gemm(&g, err));
    }
    return DT_OK;
}

dt_status
cpu_conv2d(const dt_array *x, const dt_array *weight, const dt_array *bias, const dt_conv2d_params *params,
           dt_array *out, dt_error *err)
{
    size_t nbytes = (size_t)(weight->shape[1] * weight->shape[2] * weight->shape[3]) * sizeof(conv_tap);
    conv_tap *taps = dt_malloc(CPU_MAX(nbytes, sizeof(*taps)));
    if (taps == NULL) {
        return dt_fail_nomem(err, nbytes);
    }
    fill_taps(x, weight, params, taps);
    struct cpu_conv conv = geometry(x, out, params, taps);
    flatten_rows(weight, params, &conv);
    dt_status rc = DT_OK;
    if (weight->shape[1] == 1 && weight->shape[0] / params->groups < 4) {
        run_depthwise(x, weight, bias, params, &conv, out);
    } else {
        rc = run_groups(x, weight, bias, params, &conv, out, err);
    }
    dt_free(taps);
    return rc;
}
