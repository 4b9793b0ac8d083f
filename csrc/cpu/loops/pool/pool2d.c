/* pool2d.c: largest or mean of windows over an image. Results side by side are made together; one by one where the
 * places of the largest are asked for, or where windows differ in size. */
#include "pool2d.h"

typedef struct {
    const dt_pool2d_params *params;
    const dt_array *x, *out, *indices; /* indices or NULL */
} pool_job;

static window
average_window(const pool_job *job, int dim, int64_t i)
{
    const dt_pool2d_params *params = job->params;
    int64_t length = job->x->shape[2 + dim], results = job->out->shape[2 + dim];
    if (params->mode == DT_POOL_ADAPTIVE_AVG) {
        /* floor(i * length / results), ceil((i + 1) * length / results), without the large product */
        int64_t whole = length / results, rest = length % results;
        int64_t begin = i * whole + i * rest / results, end = (i + 1) * whole + CPU_CEIL_DIV((i + 1) * rest, results);
        return (window){begin, end, end - begin};
    }
    int64_t begin = i * params->stride[dim] - params->padding[dim];
    int64_t end = CPU_MIN(begin + params->kernel[dim], length + params->padding[dim]), size = end - begin;
    begin = CPU_MAX(begin, 0);
    end = CPU_MIN(end, length);
    return (window){begin, end, params->count_include_pad ? size : end - begin};
}

/* Windows with padding may have more entries than 64 bits count. */
static double
divisor_of(const pool_job *job, window rows, window columns)
{
    int64_t fixed = job->params->divisor;
    return fixed ? (double)fixed : (double)rows.size * (double)columns.size;
}

/* ---------------------------------------------------------------- lines of results side by side */

/* A line: results whose windows lie side by side, along a row of the image, or along the channels where these are
 * neighbours in memory. */
typedef struct {
    const pool_job *job;
    cpu_pool_line step;
    cpu_row store;
    int64_t in_size, size; /* of an element, of an accumulator */
    bool max, channels;
    cpu_pool_pairs pairs; /* where it makes the lines, else NULL */
} line_job;

static void
set_line(const line_job *job, void *acc, int64_t n)
{
    double start = job->max ? -INFINITY : 0;
    for (int64_t i = 0; i < n; i++) {
        if (job->size == 8) {
            ((double *)acc)[i] = start;
        } else {
            ((float *)acc)[i] = (float)start;
        }
    }
}

static void
divide_line(const line_job *job, void *acc, int64_t n, double divisor)
{
    for (int64_t i = 0; i < n; i++) {
        if (job->size == 8) {
            ((double *)acc)[i] /= divisor;
        } else {
            ((float *)acc)[i] /= (float)divisor;
        }
    }
}

static window
find_window(const line_job *job, int dim, int64_t i)
{
    return job->max ? dilated_window(job->job->params, dim, i, job->job->x->shape[2 + dim])
                    : average_window(job->job, dim, i);
}

/* n channels at (p, q); x and out stand at the first channel */
static void
channel_line(const line_job *job, const char *x, char *out, int64_t n, int64_t p, int64_t q)
{
    double acc[LINE]; /* room for either type */
    const dt_pool2d_params *params = job->job->params;
    const int64_t *xs = job->job->x->strides, *os = job->job->out->strides;
    window rows = find_window(job, 0, p), columns = find_window(job, 1, q);
    set_line(job, acc, n);
    for (int64_t i = rows.begin; i < rows.end; i += job->max ? params->dilation[0] : 1) {
        for (int64_t j = columns.begin; j < columns.end; j += job->max ? params->dilation[1] : 1) {
            job->step(acc, x + (i * xs[2] + j * xs[3]) * job->in_size, 1, n);
        }
    }
    if (!job->max) {
        divide_line(job, acc, n, divisor_of(job->job, rows, columns));
    }
    char *to = out + (p * os[2] + q * os[3]) * job->in_size;
    job->store((char *[]){to, (char *)acc}, (const int64_t[]){1, 1}, n, NULL);
}

/* n results of row p from column first: element (i, j) of the windows of all of them at once */
static void
row_line(const line_job *job, const char *x, char *out, int64_t p, int64_t first, int64_t n)
{
    double acc[LINE];
    const dt_pool2d_params *params = job->job->params;
    const int64_t *xs = job->job->x->strides, *os = job->job->out->strides;
    const int64_t apart = params->stride[1], width = job->job->x->shape[3];
    const int64_t step = job->max ? params->dilation[1] : 1;
    window rows = find_window(job, 0, p), taps = taps_of_row(params, step, width, first, n);
    set_line(job, acc, n);
    for (int64_t i = rows.begin; i < rows.end; i += job->max ? params->dilation[0] : 1) {
        for (int64_t j = taps.begin; j < taps.end; j++) {
            int64_t column = first * apart - params->padding[1] + j * step;
            window in = columns_inside(column, apart, width, n);
            if (in.begin < in.end) {
                job->step((char *)acc + in.begin * job->size,
                          x + (i * xs[2] + (column + in.begin * apart) * xs[3]) * job->in_size, apart * xs[3],
                          in.end - in.begin);
            }
        }
    }
    for (int64_t q = 0, run = 1; !job->max && q < n; q += run, run = 1) {
        double divisor = divisor_of(job->job, rows, find_window(job, 1, first + q));
        while (q + run < n && divisor_of(job->job, rows, find_window(job, 1, first + q + run)) == divisor) {
            run++;
        }
        divide_line(job, (char *)acc + q * job->size, run, divisor);
    }
    char *to = out + (p * os[2] + first * os[3]) * job->in_size;
    job->store((char *[]){to, (char *)acc}, (const int64_t[]){os[3], 1}, n, NULL);
}

/* items: rows of results, over all planes, or over all images where the channels are the line */
static void
lines_part(void *ctx, int64_t begin, int64_t end)
{
    const line_job *job = ctx;
    const dt_array *x = job->job->x, *out = job->job->out;
    const int64_t height = out->shape[2], length = out->shape[job->channels ? 1 : 3];
    const int64_t together = job->channels ? LINE : windows_together(job->job->params, x->shape[3]);
    for (int64_t item = begin; item < end; item++) {
        int64_t p = item % height, plane = item / height, n;
        int64_t from = job->channels ? plane * x->strides[0] : cpu_offset(2, x->shape, x->strides, plane);
        int64_t to = job->channels ? plane * out->strides[0] : cpu_offset(2, out->shape, out->strides, plane);
        const char *in = (const char *)dt_array_data(x) + from * job->in_size;
        char *results = (char *)dt_array_data(out) + to * job->in_size;
        if (job->pairs != NULL) {
            const char *upper = in + 2 * p * x->strides[2] * job->in_size;
            job->pairs(results + p * out->strides[2] * job->in_size, upper, upper + x->strides[2] * job->in_size,
                       length);
            continue;
        }
        for (int64_t i = 0; i < length; i += n) {
            n = CPU_MIN(together, length - i);
            if (!job->channels) {
                row_line(job, in, results, p, i, n);
                continue;
            }
            for (int64_t q = 0; q < out->shape[3]; q++) {
                channel_line(job, in + i * job->in_size, results + i * job->in_size, n, p, q);
            }
        }
    }
}

/* ---------------------------------------------------------------- one by one */

#define DT_EACH "../cpu/loops/pool/pool2d_dtype.inc"
#include "../../../core/each_dtype.inc"

typedef void (*pool_plane)(const pool_job *job, const char *x, char *out, int64_t *indices);

static pool_plane
plane_of(dt_dtype dtype, bool max)
{
    return dtype == DT_FLOAT16    ? (max ? pool_max_FLOAT16 : pool_average_FLOAT16)
           : dtype == DT_BFLOAT16 ? (max ? pool_max_BFLOAT16 : pool_average_BFLOAT16)
           : dtype == DT_FLOAT32  ? (max ? pool_max_FLOAT32 : pool_average_FLOAT32)
                                  : (max ? pool_max_FLOAT64 : pool_average_FLOAT64);
}

static void
pool_part(void *ctx, int64_t begin, int64_t end)
{
    const pool_job *job = ctx;
    const dt_array *x = job->x, *out = job->out, *indices = job->indices;
    dt_dtype dtype = (dt_dtype)x->dtype;
    int64_t itemsize = (int64_t)dt_itemsize(dtype);
    pool_plane plane = plane_of(dtype, job->params->mode == DT_POOL_MAX);
    for (int64_t i = begin; i < end; i++) {
        const char *from = (const char *)dt_array_data(x) + cpu_offset(2, x->shape, x->strides, i) * itemsize;
        char *to = (char *)dt_array_data(out) + cpu_offset(2, out->shape, out->strides, i) * itemsize;
        int64_t *places = indices == NULL
                              ? NULL
                              : (int64_t *)dt_array_data(indices) + cpu_offset(2, indices->shape, indices->strides, i);
        plane(job, from, to, places);
    }
}

/* The mean of whole images is a reduction. */
static bool
is_mean(const dt_array *x, const dt_pool2d_params *params, const dt_array *out)
{
    return params->mode == DT_POOL_ADAPTIVE_AVG && params->divisor == 0 && out->shape[2] * out->shape[3] == 1 &&
           x->shape[2] * x->shape[3] > 0 && (out->shape[0] == 1 || out->strides[0] == out->shape[1]) &&
           (out->shape[1] == 1 || out->strides[1] == 1);
}

dt_status
cpu_pool2d(const dt_array *x, const dt_pool2d_params *params, dt_array *out, dt_array *indices, dt_error *err)
{
    if (is_mean(x, params, out)) {
        return cpu_reduce(DT_REDUCE_mean, NULL, x, 2, out, err);
    }
    pool_job job = {params, x, out, indices};
    dt_dtype dtype = (dt_dtype)x->dtype, compute = dtype == DT_FLOAT64 ? DT_FLOAT64 : DT_FLOAT32;
    int64_t planes = out->shape[0] * out->shape[1], plane = dt_array_numel(out) / planes;
    int64_t window_size = params->mode == DT_POOL_ADAPTIVE_AVG
                              ? CPU_CEIL_DIV(x->shape[2] * x->shape[3], CPU_MAX(plane, 1))
                              : CPU_MIN(params->kernel[0], x->shape[2]) * CPU_MIN(params->kernel[1], x->shape[3]);
    if (indices != NULL || params->mode == DT_POOL_ADAPTIVE_AVG) {
        cpu_parallel(planes, CPU_CEIL_DIV(CPU_GRAIN, CPU_MAX(plane * window_size, 1)), pool_part, &job);
        return DT_OK;
    }
    bool max = params->mode == DT_POOL_MAX;
    const cpu_loops *loops = cpu_loops_here();
    line_job lines = {
        .job = &job,
        .step = (max ? loops->pool_largest : loops->pool_sum)[dtype - DT_FLOAT16],
        .store = cpu_cast_row(compute, dtype),
        .in_size = (int64_t)dt_itemsize(dtype),
        .size = (int64_t)dt_itemsize(compute),
        .max = max,
        .channels = x->strides[1] == 1 && out->strides[1] == 1 && x->shape[1] >= 8,
    };
    if (max && !lines.channels && is_pairs(x, params, out)) {
        lines.pairs = loops->pool_pairs[dtype - DT_FLOAT16];
    }
    int64_t length = lines.channels ? out->shape[1] * out->shape[3] : out->shape[3];
    int64_t items = (lines.channels ? out->shape[0] : planes) * out->shape[2];
    cpu_parallel(items, CPU_CEIL_DIV(CPU_GRAIN, CPU_MAX(length * window_size, 1)), lines_part, &lines);
    return DT_OK;
}
