/* norm.c: layer norm and its gradient over rows that lie one after the other. */
#include "../loops.h"

#define CHUNKS 16 /* of rows, whose sums for weight and bias are added in order */

typedef struct {
    const char *x, *grad, *weight, *bias;
    char *out;
    const dt_normalize_params *params;
    const cpu_norm_parts *parts;
    int64_t n, rows, chunk, nbytes; /* nbytes: of a row */
    double *sums;                   /* of each chunk: for weight, then for bias; NULL: not wanted */
} norm_job;

static const char *
data_of(const dt_array *x)
{
    return x == NULL ? NULL : dt_array_data(x);
}

static norm_job
job_of(const dt_array *x, const dt_array *weight, const dt_normalize_params *params, dt_array *out)
{
    norm_job job = {.x = data_of(x), .weight = data_of(weight), .out = dt_array_data(out), .params = params};
    job.parts = cpu_loops_here()->norm[x->dtype == DT_FLOAT64];
    job.n = 1;
    for (int d = params->lead; d < x->ndim; d++) {
        job.n *= x->shape[d];
    }
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

dt_status
cpu_normalize(const dt_array *x, const dt_array *weight, const dt_array *bias, const dt_normalize_params *params,
              dt_array *out, bool *made, dt_error *err)
{
    (void)made;
    (void)err;
    norm_job job = job_of(x, weight, params, out);
    job.bias = data_of(bias);
    cpu_parallel(job.rows, CPU_CEIL_DIV(CPU_GRAIN / 4, job.n), normalize_part, &job);
    return DT_OK;
}

static void
grad_part(void *ctx, int64_t begin, int64_t end)
{
    const norm_job *job = ctx;
    for (int64_t c = begin; c < end; c++) {
        double *sums = job->sums == NULL ? NULL : job->sums + 2 * c * job->n;
        for (int64_t r = c * job->chunk; r < CPU_MIN((c + 1) * job->chunk, job->rows); r++) {
            const char *x = job->x + r * job->nbytes, *grad = job->grad + r * job->nbytes;
            const cpu_norm_row row = job->parts->measure(x, job->n, job->params);
            if (sums != NULL) {
                job->parts->sums(grad, x, sums, sums + job->n, job->n, row);
            }
            job->parts->grad(grad, x, job->weight, job->out + r * job->nbytes, job->n, row, job->params->centred);
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
