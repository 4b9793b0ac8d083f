/* create.c: arange and the triangles of a matrix. */
#include "../../cpu.h"

#define BLOCK 256

typedef struct {
    dt_dtype dtype;
    bool is_float;
    const dt_scalar *start, *step;
} arange_job;

static void
arange_row(char *data, int64_t stride, int64_t index, int64_t n, const void *ctx)
{
    const arange_job *job = ctx;
    int64_t itemsize = (int64_t)dt_itemsize(job->dtype);
    cpu_row cast = cpu_cast_row(job->is_float ? DT_FLOAT64 : DT_INT64, job->dtype);
    union {
        double f[BLOCK];
        int64_t i[BLOCK];
    } block;
    for (int64_t done = 0; done < n; done += BLOCK) {
        int64_t count = CPU_MIN(BLOCK, n - done);
        for (int64_t j = 0; j < count; j++) {
            if (job->is_float) {
                block.f[j] = job->start->f + (double)(index + done + j) * job->step->f;
            } else {
                block.i[j] = (int64_t)((uint64_t)job->start->i + (uint64_t)(index + done + j) * (uint64_t)job->step->i);
            }
        }
        cast((char *[]){data + done * stride, (char *)&block}, (const int64_t[]){stride / itemsize, 1}, count, NULL);
    }
}

dt_status
cpu_arange(dt_array *out, const dt_scalar *start, const dt_scalar *step, dt_error *err)
{
    (void)err;
    arange_job job = {(dt_dtype)out->dtype, dt_is_float((dt_dtype)out->dtype), start, step};
    cpu_indexed_walk(out, arange_row, &job);
    return DT_OK;
}

typedef struct {
    const dt_array *x;
    const dt_array *out;
    int64_t diagonal;
    bool upper;
} tri_job;

/* Copies the columns [first, first + n) of one row, or zeros where from is NULL. */
static void
put(const tri_job *job, char *to, const char *from, int64_t first, int64_t n)
{
    static const uint64_t zero = 0;
    dt_dtype dtype = (dt_dtype)job->out->dtype;
    int64_t itemsize = (int64_t)dt_itemsize(dtype);
    int64_t strides[2] = {job->out->strides[job->out->ndim - 1], from ? job->x->strides[job->x->ndim - 1] : 0};
    if (n > 0) {
        const char *source = from ? from + first * strides[1] * itemsize : (const char *)&zero;
        cpu_cast_row(dtype, dtype)((char *[]){to + first * strides[0] * itemsize, (char *)(uintptr_t)source}, strides,
                                   n, NULL);
    }
}

static void
tri_rows(void *ctx, int64_t begin, int64_t end)
{
    const tri_job *job = ctx;
    const dt_array *x = job->x, *out = job->out;
    int64_t itemsize = (int64_t)dt_itemsize((dt_dtype)out->dtype);
    int64_t rows = out->shape[out->ndim - 2], columns = out->shape[out->ndim - 1];
    for (int64_t i = begin; i < end; i++) {
        const char *from = (const char *)dt_array_data(x) + cpu_offset(x->ndim - 1, x->shape, x->strides, i) * itemsize;
        char *to = (char *)dt_array_data(out) + cpu_offset(out->ndim - 1, out->shape, out->strides, i) * itemsize;
        /* the first column to the right of the diagonal for tril, on it for triu, kept within the row */
        int64_t row = i % rows, edge = job->diagonal;
        edge = edge > columns ? columns : edge < -rows ? -rows : edge;
        edge += row + !job->upper;
        edge = edge < 0 ? 0 : edge > columns ? columns : edge;
        put(job, to, job->upper ? NULL : from, 0, edge);
        put(job, to, job->upper ? from : NULL, edge, columns - edge);
    }
}

dt_status
cpu_tri(const dt_array *x, dt_array *out, int64_t diagonal, bool upper, dt_error *err)
{
    (void)err;
    tri_job job = {x, out, diagonal, upper};
    int64_t columns = out->shape[out->ndim - 1];
    cpu_parallel(dt_array_numel(out) / columns, CPU_CEIL_DIV(CPU_GRAIN, columns), tri_rows, &job);
    return DT_OK;
}
