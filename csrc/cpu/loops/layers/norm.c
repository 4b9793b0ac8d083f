/* norm.c: layer norm, group norm, and batch norm by the numbers of the batch, and their gradients, over rows that lie
 * one after the other. */
#include "../loops.h"

#define CHUNKS 16 /* of rows, whose sums for weight and bias are added in order */

typedef struct {
    const char *x, *grad, *weight, *bias;
    char *out;
    const dt_normalize_params *params;
    const cpu_norm_parts *parts;
    int64_t n, rows, chunk, nbytes; /* nbytes: of a row */
    double *sums;                   /* of each chunk: for weight, then for bias; NULL: not wanted */
    int64_t channels;               /* a channel is every so many rows */
    int64_t each;                   /* channels of a group */
    dt_dtype dtype;
    void *numbers; /* two of each channel: first the one of all, then the other; NULL: not wanted */
} norm_job;

static char *
data_of(const dt_array *x)
{
    return x == NULL ? NULL : dt_array_data(x);
}

/* The first dimension of a row: of layer norm a row is normalised, else it has one weight. */
static int
first_of_row(const dt_normalize_params *params)
{
    switch (params->kind) {
    case DT_NORM_CHANNELS:
        return 2;
    case DT_NORM_GROUPS:
        return 3;
    case DT_NORM_LAST:
        break;
    }
    return params->lead;
}

static norm_job
job_of(const dt_array *x, const dt_array *weight, const dt_normalize_params *params, dt_array *out)
{
    norm_job job = {.x = data_of(x), .weight = data_of(weight), .out = dt_array_data(out), .params = params};
    job.parts = cpu_loops_here()->norm[x->dtype == DT_FLOAT64];
    job.n = 1;
    for (int d = first_of_row(params); d < x->ndim; d++) {
        job.n *= x->shape[d];
    }
    job.each = params->kind == DT_NORM_GROUPS ? x->shape[2] : 1;
    job.channels = params->kind == DT_NORM_LAST ? 1 : x->shape[1] * job.each;
    job.dtype = (dt_dtype)x->dtype;
    job.rows = dt_array_numel(x) / job.n;
    job.nbytes = job.n * (int64_t)dt_itemsize((dt_dtype)x->dtype);
    return job;
}

static void
normalize_part(void *ctx, int64_t begin, int64_t end)
{
    const norm_job *job = ctx;
    for (int64_t r = begin; r < end; r++) {
        const char *x = job->x + r * job->nbytes;
        job->parts->finish(x, job->weight, job->bias, job->out + r * job->nbytes, job->n,
                           job->parts->measure(x, job->n, job->params));
    }
}

/* ---------------------------------------------------------------- channels */

static double
number_of(const norm_job *job, const char *numbers, int64_t channel, double otherwise)
{
    return numbers == NULL            ? otherwise
           : job->dtype == DT_FLOAT64 ? ((const double *)(const void *)numbers)[channel]
                                      : (double)((const float *)(const void *)numbers)[channel];
}

static void
put_numbers(const norm_job *job, int64_t channel, double first, double second)
{
    if (job->numbers != NULL && job->dtype == DT_FLOAT64) {
        ((double *)job->numbers)[channel] = first;
        ((double *)job->numbers)[job->channels + channel] = second;
    } else if (job->numbers != NULL) {
        ((float *)job->numbers)[channel] = (float)first;
        ((float *)job->numbers)[job->channels + channel] = (float)second;
    }
}

static cpu_norm_row
measure_channel(const norm_job *job, int64_t channel, double *variance)
{
    const double count = (double)(job->rows / job->channels * job->n);
    double sum = 0, squares = 0;
    for (int64_t r = channel; r < job->rows; r += job->channels) {
        sum += job->parts->total(job->x + r * job->nbytes, job->n);
    }
    for (int64_t r = channel; r < job->rows; r += job->channels) {
        squares += job->parts->squares(job->x + r * job->nbytes, job->n, sum / count);
    }
    *variance = squares / count;
    return (cpu_norm_row){sum / count, 1 / sqrt(*variance + job->params->eps)};
}

static void
channels_part(void *ctx, int64_t begin, int64_t end)
{
    const norm_job *job = ctx;
    const double count = (double)(job->rows / job->channels * job->n);
    for (int64_t c = begin; c < end; c++) {
        double variance;
        const cpu_norm_row row = measure_channel(job, c, &variance);
        const double weight = number_of(job, job->weight, c, 1), bias = number_of(job, job->bias, c, 0);
        for (int64_t r = c; r < job->rows; r += job->channels) {
            job->parts->channel(job->x + r * job->nbytes, job->out + r * job->nbytes, job->n, row, weight, bias);
        }
        put_numbers(job, c, row.mean, variance * (count / (count - 1)));
    }
}

static void
channels_grad_part(void *ctx, int64_t begin, int64_t end)
{
    const norm_job *job = ctx;
    const double count = (double)(job->rows / job->channels * job->n);
    for (int64_t c = begin; c < end; c++) {
        double variance, totals[2] = {0, 0};
        const cpu_norm_row row = measure_channel(job, c, &variance);
        for (int64_t r = c; r < job->rows; r += job->channels) {
            job->parts->products(job->grad + r * job->nbytes, job->x + r * job->nbytes, job->n, row, totals);
        }
        const double weight = number_of(job, job->weight, c, 1);
        const double means[2] = {weight * totals[0] / count, weight * totals[1] / count};
        for (int64_t r = c; r < job->rows; r += job->channels) {
            job->parts->channel_grad(job->grad + r * job->nbytes, job->x + r * job->nbytes, job->out + r * job->nbytes,
                                     job->n, row, weight, means);
        }
        put_numbers(job, c, totals[1], totals[0]);
    }
}

static void
run_channels(norm_job *job, dt_array *numbers, void (*part)(void *ctx, int64_t begin, int64_t end))
{
    job->numbers = data_of(numbers);
    cpu_parallel(job->channels, CPU_CEIL_DIV(CPU_GRAIN / 4, job->rows / job->channels * job->n), part, job);
}

dt_status
cpu_batch_norm(const dt_array *x, const dt_array *mean, const dt_array *var, const dt_array *weight,
               const dt_array *bias, double eps, dt_array *out, bool *made, dt_error *err)
{
    (void)x, (void)mean, (void)var, (void)weight, (void)bias, (void)eps, (void)out, (void)err;
    *made = false; /* it is made of other ops */
    return DT_OK;
}

/* ---------------------------------------------------------------- groups */

static void
groups_part(void *ctx, int64_t begin, int64_t end)
{
    const norm_job *job = ctx;
    for (int64_t g = begin; g < end; g++) {
        const int64_t first = g * job->each;
        const cpu_norm_row row = job->parts->measure(job->x + first * job->nbytes, job->each * job->n, job->params);
        for (int64_t r = first; r < first + job->each; r++) {
            const int64_t c = r % job->channels;
            job->parts->channel(job->x + r * job->nbytes, job->out + r * job->nbytes, job->n, row,
                                number_of(job, job->weight, c, 1), number_of(job, job->bias, c, 0));
        }
    }
}

/* The sums of each row stay for those of its channel. */
static void
groups_grad_part(void *ctx, int64_t begin, int64_t end)
{
    const norm_job *job = ctx;
    const double count = (double)(job->each * job->n);
    for (int64_t g = begin; g < end; g++) {
        const int64_t first = g * job->each;
        const cpu_norm_row row = job->parts->measure(job->x + first * job->nbytes, job->each * job->n, job->params);
        double means[2] = {0, 0};
        for (int64_t r = first; r < first + job->each; r++) {
            const double weight = number_of(job, job->weight, r % job->channels, 1);
            double *totals = job->sums + 2 * r;
            job->parts->products(job->grad + r * job->nbytes, job->x + r * job->nbytes, job->n, row, totals);
            means[0] += weight * totals[0] / count;
            means[1] += weight * totals[1] / count;
        }
        for (int64_t r = first; r < first + job->each; r++) {
            job->parts->channel_grad(job->grad + r * job->nbytes, job->x + r * job->nbytes, job->out + r * job->nbytes,
                                     job->n, row, number_of(job, job->weight, r % job->channels, 1), means);
        }
    }
}

static void
run_groups(norm_job *job, void (*part)(void *ctx, int64_t begin, int64_t end))
{
    cpu_parallel(job->rows / job->each, CPU_CEIL_DIV(CPU_GRAIN / 4, job->each * job->n), part, job);
}

static dt_status
grad_groups(norm_job *job, dt_array *numbers, dt_error *err)
{
    const size_t nbytes = (size_t)(2 * job->rows) * sizeof(double);
    job->sums = dt_malloc(nbytes);
    if (job->sums == NULL) {
        return dt_fail_nomem(err, nbytes);
    }
    memset(job->sums, 0, nbytes);
    run_groups(job, groups_grad_part);
    job->numbers = data_of(numbers);
    for (int64_t c = 0; c < job->channels; c++) {
        double totals[2] = {0, 0};
        for (int64_t r = c; r < job->rows; r += job->channels) {
            totals[0] += job->sums[2 * r];
            totals[1] += job->sums[2 * r + 1];
        }
        put_numbers(job, c, totals[1], totals[0]);
    }
    dt_free(job->sums);
    return DT_OK;
}

/* ---------------------------------------------------------------- the slots */

dt_status
cpu_normalize(const dt_array *x, const dt_array *weight, const dt_array *bias, const dt_normalize_params *params,
              dt_array *out, dt_array *stats, bool *made, dt_error *err)
{
    (void)made;
    (void)err;
    norm_job job = job_of(x, weight, params, out);
    job.bias = data_of(bias);
    if (params->kind == DT_NORM_CHANNELS) {
        run_channels(&job, stats, channels_part);
        return DT_OK;
    }
    if (params->kind == DT_NORM_GROUPS) {
        run_groups(&job, groups_part);
        return DT_OK;
    }
    cpu_parallel(job.rows, CPU_CEIL_DIV(CPU_GRAIN / 4, job.n), normalize_part, &job);
    return DT_OK;
}

/* Of neighbouring rows, as few as CPU_NORM_TOGETHER: what they add to the sums is loaded and stored once. */
static void
grad_rows(const norm_job *job, int64_t first, int64_t rows, double *sums)
{
    cpu_norm_row row[CPU_NORM_TOGETHER];
    const char *x = job->x + first * job->nbytes, *grad = job->grad + first * job->nbytes;
    for (int64_t r = 0; r < rows; r++) {
        row[r] = job->parts->measure(x + r * job->nbytes, job->n, job->params);
    }
    if (sums != NULL) {
        job->parts->sums(grad, x, sums, sums + job->n, job->n, row, rows);
    }
    for (int64_t r = 0; r < rows; r++) {
        job->parts->grad(grad + r * job->nbytes, x + r * job->nbytes, job->weight, job->out + (first + r) * job->nbytes,
                         job->n, row[r], job->params->centred);
    }
}

static void
grad_part(void *ctx, int64_t begin, int64_t end)
{
    const norm_job *job = ctx;
    for (int64_t c = begin; c < end; c++) {
        double *sums = job->sums == NULL ? NULL : job->sums + 2 * c * job->n;
        const int64_t last = CPU_MIN((c + 1) * job->chunk, job->rows);
        for (int64_t r = c * job->chunk; r < last; r += CPU_NORM_TOGETHER) {
            grad_rows(job, r, CPU_MIN(CPU_NORM_TOGETHER, last - r), sums);
        }
    }
}

/* The sums of all chunks, in order. */
static void
add_chunks(const norm_job *job, int64_t chunks, dt_array *sums)
{
    for (int64_t c = 1; c < chunks; c++) {
        for (int64_t i = 0; i < 2 * job->n; i++) {
            job->sums[i] += job->sums[2 * c * job->n + i];
        }
    }
    cpu_cast_row(DT_FLOAT64, (dt_dtype)sums->dtype)((char *[]){dt_array_data(sums), (char *)job->sums},
                                                    (const int64_t[]){1, 1}, 2 * job->n, NULL);
}

dt_status
cpu_normalize_grad(const dt_array *grad, const dt_array *x, const dt_array *weight, const dt_normalize_params *params,
                   dt_array *out, dt_array *sums, bool *made, dt_error *err)
{
    (void)made;
    norm_job job = job_of(x, weight, params, out);
    job.grad = data_of(grad);
    if (params->kind == DT_NORM_CHANNELS) {
        run_channels(&job, sums, channels_grad_part);
        return DT_OK;
    }
    if (params->kind == DT_NORM_GROUPS) {
        return grad_groups(&job, sums, err);
    }
    job.chunk = CPU_CEIL_DIV(job.rows, CHUNKS);
    const int64_t chunks = CPU_CEIL_DIV(job.rows, job.chunk);
    if (sums != NULL) {
        const size_t nbytes = (size_t)(2 * chunks * job.n) * sizeof(double);
        job.sums = dt_malloc(nbytes);
        if (job.sums == NULL) {
            return dt_fail_nomem(err, nbytes);
        }
        memset(job.sums, 0, nbytes);
    }
    cpu_parallel(chunks, CPU_CEIL_DIV(CPU_GRAIN / 4, job.n * job.chunk), grad_part, &job);
    if (sums != NULL) {
        add_chunks(&job, chunks, sums);
        dt_free(job.sums);
    }
    return DT_OK;
}
