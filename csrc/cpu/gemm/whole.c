/* whole.c: products of matrices of integers. Sums wrap, as those of integers do. */
#include "gemm.h"

/* One row of a product: k numbers of a by k rows of n numbers of b. */
typedef void (*whole_row)(const void *a, int64_t a_step, const void *b, int64_t b_row, int64_t b_column, int64_t k,
                          int64_t n, void *c);

#define DT_ONLY
#define DT_ONLY_uint8
#define DT_ONLY_int8
#define DT_ONLY_int16
#define DT_ONLY_int32
#define DT_ONLY_int64
#define DT_EACH "../cpu/gemm/whole_dtype.inc"
#include "../../core/each_dtype.inc"
#undef DT_EACH

static const whole_row rows[] = {
    [DT_UINT8] = whole_UINT8, [DT_INT8] = whole_INT8,   [DT_INT16] = whole_INT16,
    [DT_INT32] = whole_INT32, [DT_INT64] = whole_INT64,
};

typedef struct {
    const dt_array *a, *b, *out;
} whole_job;

static void
whole_part(void *ctx, int64_t begin, int64_t end)
{
    const whole_job *job = ctx;
    const dt_array *a = job->a, *b = job->b, *out = job->out;
    const int nbatch = out->ndim - 2;
    const int64_t itemsize = (int64_t)dt_itemsize((dt_dtype)out->dtype), m = out->shape[nbatch];
    const whole_row run = rows[out->dtype];
    for (int64_t i = begin; i < end; i++) {
        const int64_t batch = i / m, row = i % m;
        const int64_t at_a = cpu_offset(nbatch, out->shape, a->strides, batch) + row * a->strides[nbatch];
        const int64_t at_b = cpu_offset(nbatch, out->shape, b->strides, batch);
        const int64_t at_c = cpu_offset(nbatch, out->shape, out->strides, batch) + row * out->strides[nbatch];
        run((const char *)dt_array_data(a) + at_a * itemsize, a->strides[nbatch + 1],
            (const char *)dt_array_data(b) + at_b * itemsize, b->strides[nbatch], b->strides[nbatch + 1],
            a->shape[nbatch + 1], out->shape[nbatch + 1], (char *)dt_array_data(out) + at_c * itemsize);
    }
}

void
cpu_whole_matmul(const dt_array *a, const dt_array *b, const dt_array *out)
{
    whole_job job = {a, b, out};
    int64_t count = 1, work = CPU_MAX(out->shape[out->ndim - 1], 1) * CPU_MAX(a->shape[out->ndim - 1], 1);
    for (int d = 0; d < out->ndim - 1; d++) {
        count *= out->shape[d];
    }
    cpu_parallel(count, CPU_CEIL_DIV(CPU_GRAIN, work), whole_part, &job);
}
