/* random.c: element i, in row-major order, uses counter offset + i (philox.h). */
#include "cpu.h"
#include "../core/philox.h"

#define BLOCK 256

typedef struct {
    const dt_random_params *params;
    dt_dtype dtype;
    int64_t numel;
} random_job;

static const int digits[DT_NDTYPES] = {[DT_FLOAT16] = DT_DIGITS_float16,
                                       [DT_BFLOAT16] = DT_DIGITS_bfloat16,
                                       [DT_FLOAT32] = DT_DIGITS_float32,
                                       [DT_FLOAT64] = DT_DIGITS_float64};

static void
draw_floats(const random_job *job, int64_t index, int64_t n, double *out)
{
    const dt_random_params *p = job->params;
    uint64_t counter = p->offset + (uint64_t)index;
    if (p->kind == DT_RANDOM_NORMAL) {
        for (int64_t i = 0; i < n; i++) {
            out[i] = DT_ADD(p->a, DT_MUL(p->b, dt_random_normal(p->seed, counter + (uint64_t)i)));
        }
        return;
    }
    double range = DT_ADD(p->b, -p->a);
    for (int64_t i = 0; i < n; i++) {
        out[i] = DT_ADD(p->a, DT_MUL(range, dt_random_unit(p->seed, counter + (uint64_t)i, digits[job->dtype])));
    }
}

static void
draw_integers(const random_job *job, int64_t index, int64_t n, int64_t *out)
{
    const dt_random_params *p = job->params;
    for (int64_t i = 0; i < n; i++) {
        out[i] = p->kind == DT_RANDOM_PERMUTATION
                     ? dt_random_permutation(p->seed, p->offset, index + i, job->numel)
                     : dt_random_integer(p->seed, p->offset + (uint64_t)(index + i), p->low, p->high);
    }
}

static void
random_row(char *data, int64_t stride, int64_t index, int64_t n, const void *ctx)
{
    const random_job *job = ctx;
    int64_t itemsize = (int64_t)dt_itemsize(job->dtype);
    int is_float = job->params->kind == DT_RANDOM_UNIFORM || job->params->kind == DT_RANDOM_NORMAL;
    cpu_row cast = cpu_cast_row(is_float ? DT_FLOAT64 : DT_INT64, job->dtype);
    union {
        double f[BLOCK];
        int64_t i[BLOCK];
    } block;
    for (int64_t done = 0; done < n; done += BLOCK) {
        int64_t count = CPU_MIN(BLOCK, n - done);
        if (is_float) {
            draw_floats(job, index + done, count, block.f);
        } else {
            draw_integers(job, index + done, count, block.i);
        }
        cast((char *[]){data + done * stride, (char *)&block}, (const int64_t[]){stride / itemsize, 1}, count, NULL);
    }
}

dt_status
cpu_random(dt_array *out, const dt_random_params *params, dt_error *err)
{
    (void)err;
    random_job job = {params, (dt_dtype)out->dtype, dt_array_numel(out)};
    cpu_indexed_walk(out, random_row, &job);
    return DT_OK;
}
