/* conv2d_each.h: depthwise convolution of arrays of one dtype. Included by each_dtype.h. */
#if IS_FLOAT

#define DEPTHWISE_BLOCK 64

/* Rows [begin, end) of all result planes. */
static void
DT_CAT(depthwise, ENUM)(const conv_rows *job, int64_t begin, int64_t end)
{
    const struct cpu_conv *conv = &job->conv;
    int64_t step = conv->stride[1] * conv->x_column;
    for (int64_t item = begin; item < end; item++) {
        int64_t p = item % conv->result[0], k = item / conv->result[0] % job->outputs;
        int64_t image = item / conv->result[0] / job->outputs;
        const T *plane = (const T *)job->x + k / job->multiplier * conv->x_channel;
        const T *weight = (const T *)job->weight + k * conv->weight_output;
        T *out = (T *)job->out + image * job->out_image + k * job->out_channel + p * job->out_row;
        const C bias = job->bias ? LOAD(((const T *)job->bias)[k * job->bias_stride]) : 0;
        for (int64_t q0 = 0; q0 < conv->result[1]; q0 += DEPTHWISE_BLOCK) {
            conv_run run = conv_next_run(conv, (image * conv->result[0] + p) * conv->result[1] + q0, DEPTHWISE_BLOCK);
            C sums[DEPTHWISE_BLOCK];
            for (int64_t q = 0; q < run.count; q++) {
                sums[q] = bias;
            }
            for (int64_t t = 0; t < conv->kernel[0] * conv->kernel[1]; t++) {
                int64_t r = t / conv->kernel[1], s = t % conv->kernel[1];
                const C w = LOAD(weight[r * conv->weight_row + s * conv->weight_column]);
                conv_span in = conv_clip(conv, &run, r, s);
                const T *from = plane + in.offset;
                if (step == 1) {
                    for (int64_t q = in.begin; q < in.end; q++) {
                        sums[q] += w * LOAD(from[q - in.begin]);
                    }
                } else {
                    for (int64_t q = in.begin; q < in.end; q++) {
                        sums[q] += w * LOAD(from[(q - in.begin) * step]);
                    }
                }
            }
            if (job->activation != NULL) {
                CPU_ACTIVATE(job->activation, sums, run.count);
            }
            for (int64_t q = 0; q < run.count; q++) {
                out[(q0 + q) * job->out_column] = STORE(sums[q]);
            }
        }
    }
}
#undef DEPTHWISE_BLOCK
#endif
