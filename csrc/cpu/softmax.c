/* softmax.c: softmax and its logarithm over the last dimension: the largest element is subtracted first, the sum is
 * accumulated in double. A row goes through three passes of blocks; short rows keep their exponentials. */
#include "cpu.h"

#define BLOCK 1024

typedef struct {
    const dt_array *x, *out;
    bool log;
    cpu_row load, store;
} softmax_job;

#define SOFTMAX_ROW(C, suffix)                                                                                         \
    static void softmax_row_##suffix(const softmax_job *job, char *from, char *to)                                     \
    {                                                                                                                  \
        int last = job->x->ndim - 1;                                                                                   \
        int64_t n = job->x->shape[last], sx = job->x->strides[last], so = job->out->strides[last];                     \
        int64_t bx = sx * (int64_t)dt_itemsize((dt_dtype)job->x->dtype);                                               \
        int64_t bo = so * (int64_t)dt_itemsize((dt_dtype)job->out->dtype);                                             \
        const int64_t in_strides[2] = {1, sx}, out_strides[2] = {so, 1};                                               \
        C block[BLOCK], exps[BLOCK], largest = -(C)INFINITY;                                                           \
        double sum = 0;                                                                                                \
        for (int64_t i = 0; i < n; i += BLOCK) {                                                                       \
            int64_t m = CPU_MIN(BLOCK, n - i);                                                                         \
            job->load((char *[]){(char *)block, from + i * bx}, in_strides, m, NULL);                                  \
            for (int64_t j = 0; j < m; j++) {                                                                          \
                largest = block[j] > largest ? block[j] : largest;                                                     \
            }                                                                                                          \
        }                                                                                                              \
        for (int64_t i = 0; i < n; i += BLOCK) {                                                                       \
            int64_t m = CPU_MIN(BLOCK, n - i);                                                                         \
            if (n > BLOCK) {                                                                                           \
                job->load((char *[]){(char *)block, from + i * bx}, in_strides, m, NULL);                              \
            }                                                                                                          \
            for (int64_t j = 0; j < m; j++) {                                                                          \
                exps[j] = EXP_##suffix(block[j] - largest);                                                            \
                sum += (double)exps[j];                                                                                \
            }                                                                                                          \
        }                                                                                                              \
        const C log_sum = (C)log(sum);                                                                                 \
        for (int64_t i = 0; i < n; i += BLOCK) {                                                                       \
            int64_t m = CPU_MIN(BLOCK, n - i);                                                                         \
            if (n > BLOCK) {                                                                                           \
                job->load((char *[]){(char *)block, from + i * bx}, in_strides, m, NULL);                              \
            }                                                                                                          \
            for (int64_t j = 0; j < m; j++) {                                                                          \
                if (job->log) {                                                                                        \
                    block[j] = block[j] - largest - log_sum;                                                           \
                } else {                                                                                               \
                    block[j] = (n > BLOCK ? EXP_##suffix(block[j] - largest) : exps[j]) / (C)sum;                      \
                }                                                                                                      \
            }                                                                                                          \
            job->store((char *[]){to + i * bo, (char *)block}, out_strides, m, NULL);                                  \
        }                                                                                                              \
    }
#define EXP_float expf
#define EXP_double exp
SOFTMAX_ROW(float, float)
SOFTMAX_ROW(double, double)

static void
softmax_part(void *ctx, int64_t begin, int64_t end)
{
    const softmax_job *job = ctx;
    const dt_array *x = job->x, *out = job->out;
    int64_t itemsize = (int64_t)dt_itemsize((dt_dtype)x->dtype);
    for (int64_t i = begin; i < end; i++) {
        char *from = (char *)dt_array_data(x) + cpu_offset(x->ndim - 1, x->shape, x->strides, i) * itemsize;
        char *to = (char *)dt_array_data(out) + cpu_offset(out->ndim - 1, out->shape, out->strides, i) * itemsize;
        if (x->dtype == DT_FLOAT64) {
            softmax_row_double(job, from, to);
        } else {
            softmax_row_float(job, from, to);
        }
    }
}

dt_status
cpu_softmax(const dt_array *x, bool log, dt_array *out, dt_error *err)
{
    (void)err;
    dt_dtype dtype = (dt_dtype)x->dtype, compute = dtype == DT_FLOAT64 ? DT_FLOAT64 : DT_FLOAT32;
    softmax_job job = {x, out, log, cpu_cast_row(dtype, compute), cpu_cast_row(compute, dtype)};
    int64_t n = x->shape[x->ndim - 1];
    cpu_parallel(dt_array_numel(x) / n, CPU_CEIL_DIV(CPU_GRAIN / 8, n), softmax_part, &job);
    return DT_OK;
}
