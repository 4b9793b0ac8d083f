/* rows.c: goes over strided arrays row by row, on all threads. */
#include "cpu.h"

#define MAX_ARRAYS 4

typedef struct {
    const dt_walk *walk;
    char *data[MAX_ARRAYS];
    int64_t strides[MAX_ARRAYS][DT_MAX_NDIM]; /* bytes */
    int64_t inner[MAX_ARRAYS];                /* elements */
    cpu_row row;
    const void *ctx;
} walk_job;

static void
move(char **data, const walk_job *job, int dim, int64_t steps)
{
    for (int j = 0; j < job->walk->narrays; j++) {
        data[j] += steps * job->strides[j][dim];
    }
}

static void
walk_part(void *ctx, int64_t begin, int64_t end)
{
    const walk_job *job = ctx;
    const int64_t *shape = job->walk->shape;
    int last = job->walk->ndim - 1;
    int64_t index[DT_MAX_NDIM], rest = begin;
    char *data[MAX_ARRAYS];
    memcpy(data, job->data, sizeof(data));
    for (int d = last; d >= 0; d--) {
        index[d] = rest % shape[d];
        rest /= shape[d];
        move(data, job, d, index[d]);
    }
    for (;;) {
        int64_t n = CPU_MIN(shape[last] - index[last], end - begin);
        job->row(data, job->inner, n, job->ctx);
        begin += n;
        if (begin == end) {
            return;
        }
        move(data, job, last, -index[last]);
        index[last] = 0;
        int d = last - 1;
        for (; index[d] == shape[d] - 1; d--) {
            move(data, job, d, -index[d]);
            index[d] = 0;
        }
        index[d]++;
        move(data, job, d, 1);
    }
}

void
cpu_walk(const dt_walk *walk, const dt_array *const *arrays, cpu_row row, const void *ctx)
{
    walk_job job; /* not zeroed: most of it is room for dimensions */
    job.walk = walk;
    job.row = row;
    job.ctx = ctx;
    for (int j = 0; j < walk->narrays; j++) {
        int64_t itemsize = (int64_t)dt_itemsize((dt_dtype)arrays[j]->dtype);
        job.data[j] = dt_array_data(arrays[j]);
        job.inner[j] = 0;
        for (int d = 0; d < walk->ndim; d++) {
            job.inner[j] = walk->strides[j][d];
            job.strides[j][d] = walk->strides[j][d] * itemsize;
        }
    }
    if (walk->ndim == 0) {
        row(job.data, job.inner, 1, ctx);
    } else if (walk->numel > 0) {
        cpu_parallel(walk->numel, CPU_GRAIN, walk_part, &job);
    }
}

typedef struct {
    const dt_array *out;
    cpu_indexed_row row;
    const void *ctx;
} indexed_job;

static void
indexed_part(void *ctx, int64_t begin, int64_t end)
{
    const indexed_job *job = ctx;
    const dt_array *out = job->out;
    int last = out->ndim - 1;
    int64_t itemsize = (int64_t)dt_itemsize((dt_dtype)out->dtype);
    while (begin < end) {
        int64_t n = last < 0 ? 1 : CPU_MIN(end - begin, out->shape[last] - begin % out->shape[last]);
        int64_t offset = cpu_offset(out->ndim, out->shape, out->strides, begin);
        job->row((char *)dt_array_data(out) + offset * itemsize, last < 0 ? 0 : out->strides[last] * itemsize, begin, n,
                 job->ctx);
        begin += n;
    }
}

void
cpu_indexed_walk(const dt_array *out, cpu_indexed_row row, const void *ctx)
{
    indexed_job job = {out, row, ctx};
    cpu_parallel(dt_array_numel(out), CPU_GRAIN, indexed_part, &job);
}
