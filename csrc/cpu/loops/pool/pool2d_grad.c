/* pool2d_grad.c: the gradient of the largest of windows: the largest entry of each is found anew, and is given what
 * came for it. A part owns what it adds to: a plane, or channels of an image that are neighbours in memory, which are
 * one line. The sums of an entry go from the first window over it to the last. */
#include "pool2d.h"

#define CHANNELS 64 /* of a part */

typedef struct {
    const dt_array *x, *grad, *out;
    const dt_pool2d_params *params;
    int64_t itemsize, size; /* of an element of x and grad, of out */
    int64_t channels;       /* of a part */
    cpu_pool_pick pick;
    cpu_pool_give give;
    cpu_pool_scatter scatter;
} grad_job;

static void
set_nowhere(int32_t *where, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        where[i] = POOL_NOWHERE;
    }
}

/* The window at (p, q), for n channels side by side. */
static void
grad_line(const grad_job *job, const char *x, const char *grad, char *out, int64_t p, int64_t q, int64_t n)
{
    double largest[CHANNELS]; /* room for either type */
    int32_t where[CHANNELS];
    const dt_pool2d_params *params = job->params;
    const int64_t *xs = job->x->strides, *os = job->out->strides, *gs = job->grad->strides;
    const window rows = dilated_window(params, 0, p, job->x->shape[2]);
    const window columns = dilated_window(params, 1, q, job->x->shape[3]);
    set_nowhere(where, n);
    for (int give = 0; give < 2; give++) {
        int32_t tap = 0;
        for (int64_t i = rows.begin; i < rows.end; i += params->dilation[0]) {
            for (int64_t j = columns.begin; j < columns.end; j += params->dilation[1], tap++) {
                if (give) {
                    job->give(out + (i * os[2] + j * os[3]) * job->size, where,
                              grad + (p * gs[2] + q * gs[3]) * job->itemsize, tap, n);
                } else {
                    job->pick(largest, where, x + (i * xs[2] + j * xs[3]) * job->itemsize, 1, tap, n);
                }
            }
        }
    }
}

/* n windows side by side in row p of a plane, from column first; where each finds its largest entry, as seen from its
 * own corner, is what is kept. */
static void
grad_row(const grad_job *job, const char *x, const char *grad, char *out, int64_t p, int64_t first, int64_t n)
{
    double largest[LINE]; /* room for either type */
    int32_t where[LINE];
    const dt_pool2d_params *params = job->params;
    const int64_t *xs = job->x->strides, *os = job->out->strides, *gs = job->grad->strides;
    const int64_t apart = params->stride[1], width = job->x->shape[3], corner = first * apart - params->padding[1];
    const window rows = dilated_window(params, 0, p, job->x->shape[2]);
    const window taps = taps_of_row(params, params->dilation[1], width, first, n);
    set_nowhere(where, n);
    for (int64_t i = rows.begin; i < rows.end; i += params->dilation[0]) {
        for (int64_t j = taps.begin; j < taps.end; j++) {
            const int64_t column = corner + j * params->dilation[1];
            const window in = columns_inside(column, apart, width, n);
            if (in.begin < in.end) {
                job->pick((char *)largest + in.begin * job->size, where + in.begin,
                          x + (i * xs[2] + (column + in.begin * apart) * xs[3]) * job->itemsize, apart * xs[3],
                          (int32_t)(i * os[2] + column * os[3]), in.end - in.begin);
            }
        }
    }
    job->scatter(out, where, grad + (p * gs[2] + first * gs[3]) * job->itemsize, apart * os[3], gs[3], n);
}

/* Zeros for n channels of an image. */
static void
clear_part(const grad_job *job, char *out, int64_t n)
{
    const int64_t *shape = job->out->shape, *os = job->out->strides;
    const bool rows = n == 1 && os[3] == 1;
    const size_t nbytes = (size_t)((rows ? shape[3] : n) * job->size);
    for (int64_t h = 0; h < shape[2]; h++) {
        for (int64_t w = 0; w < (rows ? 1 : shape[3]); w++) {
            memset(out + (h * os[2] + w * os[3]) * job->size, 0, nbytes);
        }
    }
}

static void
grad_parts(void *ctx, int64_t begin, int64_t end)
{
    const grad_job *job = ctx;
    const int64_t channels = job->x->shape[1], blocks = CPU_CEIL_DIV(channels, job->channels);
    const int64_t results = job->grad->shape[3];
    const int64_t together = job->channels == 1 ? windows_together(job->params, job->x->shape[3]) : 1;
    for (int64_t part = begin; part < end; part++) {
        const int64_t image = part / blocks, channel = part % blocks * job->channels;
        const int64_t n = CPU_MIN(job->channels, channels - channel);
        const int64_t *xs = job->x->strides, *gs = job->grad->strides, *os = job->out->strides;
        const char *x = (const char *)dt_array_data(job->x) + (image * xs[0] + channel * xs[1]) * job->itemsize;
        const char *grad = (const char *)dt_array_data(job->grad) + (image * gs[0] + channel * gs[1]) * job->itemsize;
        char *out = (char *)dt_array_data(job->out) + (image * os[0] + channel * os[1]) * job->size;
        clear_part(job, out, n);
        for (int64_t p = 0; p < job->grad->shape[2]; p++) {
            for (int64_t q = 0; q < results; q += together) {
                if (job->channels == 1) {
                    grad_row(job, x, grad, out, p, q, CPU_MIN(together, results - q));
                } else {
                    grad_line(job, x, grad, out, p, q, n);
                }
            }
        }
    }
}

dt_status
cpu_max_pool2d_grad(const dt_array *x, const dt_array *grad, const dt_pool2d_params *params, dt_array *out,
                    dt_error *err)
{
    (void)err;
    const cpu_loops *loops = cpu_loops_here();
    const int dtype = (int)x->dtype - DT_FLOAT16;
    const bool line = x->strides[1] == 1 && out->strides[1] == 1 && grad->strides[1] == 1 && x->shape[1] >= 8;
    grad_job job = {
        .x = x,
        .grad = grad,
        .out = out,
        .params = params,
        .itemsize = (int64_t)dt_itemsize((dt_dtype)x->dtype),
        .size = (int64_t)dt_itemsize((dt_dtype)out->dtype),
        .channels = line ? CHANNELS : 1,
        .pick = loops->pool_pick[dtype],
        .give = loops->pool_give[dtype],
        .scatter = loops->pool_scatter[dtype],
    };
    const int64_t parts = x->shape[0] * CPU_CEIL_DIV(x->shape[1], job.channels);
    const int64_t window_size = CPU_MIN(params->kernel[0], x->shape[2]) * CPU_MIN(params->kernel[1], x->shape[3]);
    const int64_t work = CPU_MAX(dt_array_numel(grad) / parts * window_size, 1);
    cpu_parallel(parts, CPU_CEIL_DIV(CPU_GRAIN, work), grad_parts, &job);
    return DT_OK;
}
