/* conv2d_each.h: the parts of the convolution that read arrays of one dtype. Included by each_dtype.h. */
#if IS_FLOAT

static void
DT_CAT(pack_weight, ENUM)(const cpu_gemm_args *g, void *panel, int64_t row, int64_t count, int64_t tap, int64_t depth,
                          int64_t width)
{
    C *to = panel;
    if (count < width) {
        memset(panel, 0, (size_t)(width * depth) * sizeof(C));
    }
    for (int64_t i = 0; i < count; i++) {
        const T *weight = (const T *)g->a + (row + i) * g->a_row;
        const conv_tap *taps = g->conv->taps + tap;
        for (int64_t p = 0; p < depth; p++) {
            to[p * width + i] = LOAD(weight[taps[p].weight]);
        }
    }
}

/* Columns of a panel that lie in one row of one image. */
static inline void
DT_CAT(pack_run, ENUM)(const struct cpu_conv *conv, const T *x, const conv_run *run, const conv_tap *tap, C *to)
{
    span in = clip(conv, run, tap);
    const T *from = x + in.offset;
    for (int64_t j = 0; j < in.begin; j++) {
        to[j] = 0;
    }
    if (conv->x_step == 1) {
        for (int64_t j = in.begin; j < in.end; j++) {
            to[j] = LOAD(from[j - in.begin]);
        }
    } else {
        for (int64_t j = in.begin; j < in.end; j++) {
            to[j] = LOAD(from[(j - in.begin) * conv->x_step]);
        }
    }
    for (int64_t j = in.end; j < run->count; j++) {
        to[j] = 0;
    }
}

static void
DT_CAT(pack_patches, ENUM)(const cpu_gemm_args *g, void *panel, int64_t column, int64_t count, int64_t tap,
                           int64_t depth, int64_t width)
{
    const struct cpu_conv *conv = g->conv;
    conv_run runs[GEMM_MAX_COLUMNS];
    int nruns = split_runs(conv, column, count, runs);
    C *to = panel;
    if (count < width) {
        memset(panel, 0, (size_t)(width * depth) * sizeof(C));
    }
    for (int64_t p = 0; p < depth; p++, to += width) {
        for (int i = 0, at = 0; i < nruns; at += (int)runs[i++].count) {
            DT_CAT(pack_run, ENUM)(conv, g->b, &runs[i], &conv->taps[tap + p], to + at);
        }
    }
}

/* Rows [begin, end) of all result planes of a convolution with one input channel a group. */
static void
DT_CAT(depthwise, ENUM)(const depthwise_job *job, int64_t begin, int64_t end)
{
    const struct cpu_conv *conv = &job->conv;
    for (int64_t item = begin; item < end; item++) {
        int64_t p = item % conv->result[0], k = item / conv->result[0] % job->outputs;
        int64_t image = item / conv->result[0] / job->outputs, row = p * conv->stride[0] - conv->pad[0];
        const T *plane = (const T *)job->x + image * conv->x_image + k / job->multiplier * job->x_channel;
        const T *weight = (const T *)job->weight + k * job->weight_output;
        T *out = (T *)job->out + image * conv->out_image + k * job->out_channel + p * conv->out_row;
        const C bias = job->bias ? LOAD(((const T *)job->bias)[k * job->bias_stride]) : 0;
        for (int64_t q0 = 0; q0 < conv->result[1]; q0 += DEPTHWISE_BLOCK) {
            int64_t count = CPU_MIN(DEPTHWISE_BLOCK, conv->result[1] - q0);
            conv_run run = {count, row, q0 * conv->stride[1] - conv->pad[1], 0};
            run.offset = row * conv->x_row + run.column * conv->x_column;
            C sums[DEPTHWISE_BLOCK];
            for (int64_t q = 0; q < count; q++) {
                sums[q] = bias;
            }
            for (int64_t t = 0; t < job->ntaps; t++) {
                const C w = LOAD(weight[conv->taps[t].weight]);
                span in = clip(conv, &run, &conv->taps[t]);
                const T *from = plane + in.offset;
                if (conv->x_step == 1) {
                    for (int64_t q = in.begin; q < in.end; q++) {
                        sums[q] += w * LOAD(from[q - in.begin]);
                    }
                } else {
                    for (int64_t q = in.begin; q < in.end; q++) {
                        sums[q] += w * LOAD(from[(q - in.begin) * conv->x_step]);
                    }
                }
            }
            if (job->activation != NULL) {
                CPU_ACTIVATE(job->activation, sums, count);
            }
            for (int64_t q = 0; q < count; q++) {
                out[(q0 + q) * conv->out_column] = STORE(sums[q]);
            }
        }
    }
}
#endif
