/* conv2d.c: the convolution as products of matrices, patches (N * P * Q, taps) by weights (taps, K / groups) or the
 * other way round, where the patches are never laid out: the product reads them where they lie in x, or packs its
 * panels of them straight from there (gemm.c). With one input channel and few results a group there is nothing to gain
 * from that, and the sums are made directly. Strides of all arrays are free. */
#include "narrow.h"

#define FEW_PATCHES 64 /* of an image: better rows than columns, which come in larger panels */
#define FEW_OUTPUTS 8
#define FEW_CHANNELS 7
#define PADDED_BYTES ((int64_t)8 << 20)
#define LARGE_WORK ((int64_t)1 << 21) /* multiplications */

/* With a weight of 1 x 1 that misses nothing, an image is one long row if x can be read so, and so are all images. */
static void
flatten_rows(const dt_array *x, struct cpu_conv *conv)
{
    bool all = conv->kernel[0] == 1 && conv->kernel[1] == 1 && conv->stride[0] == 1 && conv->stride[1] == 1 &&
               conv->pad[0] == 0 && conv->pad[1] == 0 && conv->result[0] == conv->height &&
               conv->result[1] == conv->width;
    if (!all || conv->x_row != conv->width * conv->x_column) {
        return;
    }
    conv->width *= conv->height;
    if (conv->x_image == conv->width * conv->x_column) {
        conv->width *= x->shape[0];
    }
    conv->height = conv->result[0] = 1;
    conv->result[1] = conv->width;
}

/* ---------------------------------------------------------------- products */

/* Products of one group each, and of patches whose results lie evenly apart. */
typedef struct {
    cpu_gemm_args g;
    struct cpu_conv conv;
    const dt_array *out;
    int64_t pieces, piece; /* of patches, patches in one */
    int64_t outputs, x_group, weight_group, out_group, bias_group;
} conv_job;

static dt_status
run_products(void *ctx, int64_t begin, int64_t end, dt_error *err)
{
    const conv_job *job = ctx;
    int64_t itemsize = (int64_t)dt_itemsize(job->g.dtype);
    const int64_t *shape = job->out->shape, *strides = job->out->strides;
    for (int64_t item = begin; item < end; item++) {
        int64_t group = item / job->pieces, patch = item % job->pieces * job->piece;
        struct cpu_conv conv = job->conv;
        cpu_gemm_args g = job->g;
        conv.first = patch;
        g.conv = &conv;
        int64_t to = patch % shape[3] * strides[3] + patch / shape[3] % shape[2] * strides[2] +
                     patch / shape[3] / shape[2] * strides[0];
        const char **x = (const char **)(conv.patches_are_rows ? &g.a : &g.b);
        const char **weight = (const char **)(conv.patches_are_rows ? &g.b : &g.a);
        *x += group * job->x_group * itemsize;
        *weight += group * job->weight_group * itemsize;
        g.c = (char *)g.c + (to + group * job->out_group) * itemsize;
        g.bias = g.bias ? (const char *)g.bias + group * job->bias_group * itemsize : NULL;
        DT_TRY(cpu_gemm(&g, err));
    }
    return DT_OK;
}

static dt_status
run_groups(const dt_array *x, const dt_array *weight, const dt_array *bias, const dt_conv2d_params *params,
           dt_array *out, dt_error *err)
{
    int64_t outputs = weight->shape[0] / params->groups, channels = weight->shape[1];
    int64_t image = out->shape[2] * out->shape[3];
    int64_t step = out->strides[out->shape[3] > 1 ? 3 : out->shape[2] > 1 ? 2 : 0]; /* from pixel to pixel */
    bool empty = channels == 0;                                                     /* no address to move then */
    conv_job job = {
        .conv = conv_geometry(x, weight, out, params),
        .out = out,
        .outputs = outputs,
        .piece = out->shape[3],
        .x_group = empty ? 0 : channels * x->strides[1],
        .weight_group = empty ? 0 : outputs * weight->strides[0],
        .out_group = outputs * out->strides[1],
        .bias_group = bias ? outputs * bias->strides[0] : 0,
    };
    flatten_rows(x, &job.conv);
    if (out->shape[2] == 1 || out->strides[2] == out->shape[3] * step) {
        bool even = out->shape[0] == 1 || out->strides[0] == image * step;
        job.piece = even ? out->shape[0] * image : image;
    }
    job.pieces = out->shape[0] * image / job.piece;
    bool rows = outputs >= FEW_OUTPUTS && (out->strides[1] == 1 || job.piece <= FEW_PATCHES);
    int64_t bias_stride = bias ? bias->strides[0] : 0;
    job.conv.patches_are_rows = rows;
    job.g = (cpu_gemm_args){
        .dtype = (dt_dtype)x->dtype,
        .m = rows ? job.piece : outputs,
        .n = rows ? outputs : job.piece,
        .k = channels,
        .alpha = 1,
        .a = dt_array_data(rows ? x : weight),
        .b = dt_array_data(rows ? weight : x),
        .c = dt_array_data(out),
        .bias = bias ? dt_array_data(bias) : NULL,
        .c_row = rows ? step : out->strides[1],
        .c_column = rows ? out->strides[1] : step,
        .bias_row = rows ? 0 : bias_stride,
        .bias_column = rows ? bias_stride : 0,
        .activation = cpu_activation_row(params->activation, (dt_dtype)x->dtype),
    };
    int64_t items = job.pieces * params->groups, threads = cpu_num_threads();
    int64_t work = outputs * job.piece * CPU_MAX(channels * weight->shape[2] * weight->shape[3], 1);
    /* products that are few and large share their own work among the threads */
    bool apart = work < LARGE_WORK || CPU_CEIL_DIV(items, threads) * threads * 7 <= items * 8;
    return cpu_try_parallel(items, apart ? CPU_CEIL_DIV(CPU_GRAIN, work) : items, run_products, &job, err);
}

/* ---------------------------------------------------------------- few channels */

/* Images with their padding, channels innermost, so that the numbers of one row of a weight lie side by side: with few
 * channels they are the product's channels. */
typedef struct {
    const dt_array *x;
    const dt_conv2d_params *params;
    char *to;
    int64_t itemsize, height, width;
} padded_job;

#define COPY_NUMBERS(type)                                                                                             \
    for (int64_t j = begin; j < end; j++) {                                                                            \
        ((type *)(void *)to)[j * channels] = ((const type *)(const void *)from)[(j - begin) * x->strides[3]];          \
    }

/* Rows [begin, end) of all images. */
static void
pad_rows(void *ctx, int64_t first, int64_t last)
{
    const padded_job *job = ctx;
    const dt_array *x = job->x;
    int64_t channels = x->shape[1], pad = job->params->pad_before[1];
    int64_t begin = pad, end = CPU_MIN(pad + x->shape[3], job->width);
    for (int64_t item = first; item < last; item++) {
        int64_t image = item / job->height, row = item % job->height - job->params->pad_before[0];
        char *line = job->to + item * job->width * channels * job->itemsize;
        memset(line, 0, (size_t)(job->width * channels * job->itemsize));
        for (int64_t c = 0; c < channels && row >= 0 && row < x->shape[2]; c++) {
            char *to = line + c * job->itemsize;
            const char *from = (const char *)dt_array_data(x) +
                               (image * x->strides[0] + c * x->strides[1] + row * x->strides[2]) * job->itemsize;
            if (job->itemsize == 2) {
                COPY_NUMBERS(uint16_t)
            } else if (job->itemsize == 4) {
                COPY_NUMBERS(uint32_t)
            } else {
                COPY_NUMBERS(uint64_t)
            }
        }
    }
}

static bool
has_few_channels(const dt_array *x, const dt_array *weight, const dt_conv2d_params *params)
{
    return params->groups == 1 && x->shape[1] > 0 && x->shape[1] <= FEW_CHANNELS && weight->shape[3] > 1 &&
           params->dilation[1] == 1 && weight->shape[0] >= FEW_OUTPUTS;
}

static dt_status
run_few_channels(const dt_array *x, const dt_array *weight, const dt_array *bias, const dt_conv2d_params *params,
                 dt_array *out, dt_error *err)
{
    int64_t itemsize = (int64_t)dt_itemsize((dt_dtype)x->dtype), channels = x->shape[1];
    const int64_t *ws = weight->shape;
    int64_t outputs = ws[0], taps = channels * ws[2] * ws[3];
    padded_job image = {
        .params = params,
        .itemsize = itemsize,
        .height = (out->shape[2] - 1) * params->stride[0] + (ws[2] - 1) * params->dilation[0] + 1,
        .width = (out->shape[3] - 1) * params->stride[1] + ws[3],
    };
    int64_t size = image.height * image.width * channels, some = CPU_MAX(PADDED_BYTES / (size * itemsize), 1);
    some = CPU_MIN(some, x->shape[0]);
    size_t nbytes = (size_t)((some * size + outputs * taps) * itemsize);
    char *buffer = dt_large_new(nbytes);
    if (buffer == NULL) {
        return dt_fail_nomem(err, nbytes);
    }
    dt_storage images = {.data = buffer}, weights = {.data = buffer + some * size * itemsize};
    const dt_conv2d_params none = {.pad_before = {0, 0}};
    dt_status rc = DT_OK;
    for (int64_t k = 0; k < outputs; k++) {
        dt_array one = *weight;
        one.offset += k * weight->strides[0] * itemsize;
        one.shape[0] = 1;
        pad_rows(&(padded_job){&one, &none, (char *)weights.data + k * taps * itemsize, itemsize, ws[2], ws[3]}, 0,
                 ws[2]);
    }
    dt_array rows = {
        .storage = &weights,
        .dtype = weight->dtype,
        .ndim = 4,
        .shape = {outputs, channels * ws[3], ws[2], 1},
        .strides = {taps, 1, channels * ws[3], 1},
    };
    dt_conv2d_params inner = *params;
    inner.pad_before[0] = inner.pad_before[1] = 0;
    for (int64_t i = 0; i < x->shape[0] && rc == DT_OK; i += some) {
        dt_array part = *x, to = *out;
        part.offset += i * x->strides[0] * itemsize;
        part.shape[0] = to.shape[0] = CPU_MIN(some, x->shape[0] - i);
        to.offset += i * out->strides[0] * itemsize;
        image.x = &part;
        image.to = buffer;
        cpu_parallel(part.shape[0] * image.height, CPU_CEIL_DIV(CPU_GRAIN, image.width * channels), pad_rows, &image);
        dt_array padded = {
            .storage = &images,
            .dtype = x->dtype,
            .ndim = 4,
            .shape = {part.shape[0], channels * ws[3], image.height, image.width},
            .strides = {size, 1, image.width * channels, channels},
        };
        rc = run_groups(&padded, &rows, bias, &inner, &to, err);
    }
    dt_large_free(buffer);
    return rc;
}

/* ---------------------------------------------------------------- the slot */

static dt_status
run_depthwise(const dt_array *x, const dt_array *weight, const dt_array *bias, const dt_conv2d_params *params,
              dt_array *out, dt_error *err)
{
    conv_rows job = {
        .conv = conv_geometry(x, weight, out, params),
        .dtype = (dt_dtype)x->dtype,
        .x = dt_array_data(x),
        .weight = dt_array_data(weight),
        .bias = bias ? dt_array_data(bias) : NULL,
        .out = dt_array_data(out),
        .channels = x->shape[1],
        .outputs = weight->shape[0],
        .multiplier = weight->shape[0] / params->groups,
        .out_image = out->strides[0],
        .out_channel = out->strides[1],
        .out_row = out->strides[2],
        .out_column = out->strides[3],
        .bias_stride = bias ? bias->strides[0] : 0,
        .activation = cpu_activation_row(params->activation, (dt_dtype)x->dtype),
    };
    return cpu_depthwise(&job, out->shape[0], err);
}

dt_status
cpu_conv2d(const dt_array *x, const dt_array *weight, const dt_array *bias, const dt_conv2d_params *params,
           dt_array *out, dt_error *err)
{
    if (cpu_is_narrow(x, weight, params, out)) {
        return cpu_by_lines(cpu_conv2d, x, weight, bias, params, out, err);
    }
    if (weight->shape[1] == 1 && weight->shape[0] / params->groups < 4) {
        return run_depthwise(x, weight, bias, params, out, err);
    }
    if (has_few_channels(x, weight, params)) {
        return run_few_channels(x, weight, bias, params, out, err);
    }
    return run_groups(x, weight, bias, params, out, err);
}
