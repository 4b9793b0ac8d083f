/* whole.c: products of matrices of integers. Sums wrap, as those of integers do. */
#include "gemm.h"

typedef struct {
    const dt_array *a, *b, *out;
} whole_job;

/* Rows [begin, end) of all products, those of one product at a time. */
static void
whole_part(void *ctx, int64_t begin, int64_t end)
{
    const whole_job *job = ctx;
    const dt_array *a = job->a, *b = job->b, *out = job->out;
    const int nbatch = out->ndim - 2;
    const int64_t size = (int64_t)dt_itemsize((dt_dtype)out->dtype), m = out->shape[nbatch];
    const gemm_whole_rows run = cpu_gemm_set()->whole[__builtin_ctzll((unsigned long long)size)];
    for (int64_t i = begin, rows; i < end; i += rows) {
        const int64_t batch = i / m, row = i % m;
        rows = CPU_MIN(m - row, end - i);
        const int64_t at_a = cpu_offset(nbatch, out->shape, a->strides, batch) + row * a->strides[nbatch];
        const int64_t at_b = cpu_offset(nbatch, out->shape, b->strides, batch);
        const int64_t at_c = cpu_offset(nbatch, out->shape, out->strides, batch) + row * out->strides[nbatch];
        const gemm_whole g = {
            .a = (const char *)dt_array_data(a) + at_a * size,
            .b = (const char *)dt_array_data(b) + at_b * size,
            .c = (char *)dt_array_data(out) + at_c * size,
            .a_row = a->strides[nbatch],
            .a_column = a->strides[nbatch + 1],
            .b_row = b->strides[nbatch],
            .b_column = b->strides[nbatch + 1],
            .c_row = out->strides[nbatch],
            .k = a->shape[nbatch + 1],
            .n = out->shape[nbatch + 1],
        };
        run(&g, rows);
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
