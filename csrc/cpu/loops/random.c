/* random.c: each block of a counter-based generator (philox.h) makes neighbouring elements, in row-major order. */
#include "../cpu.h"
#include "../../core/numbers/philox.h"

#define ELEMENTS 256

typedef union {
    float f[ELEMENTS];
    double d[ELEMENTS];
    int64_t i[ELEMENTS];
} numbers;

typedef struct {
    const dt_random_params *params;
    dt_dtype dtype, drawn; /* of the result; of what is drawn and cast to that */
    int64_t lanes;
    int64_t numel;
} random_job;

static const int digits[DT_NDTYPES] = {[DT_FLOAT16] = DT_DIGITS_float16,
                                       [DT_BFLOAT16] = DT_DIGITS_bfloat16,
                                       [DT_FLOAT32] = DT_DIGITS_float32,
                                       [DT_FLOAT64] = DT_DIGITS_float64};

#define DRAW(lanes, function, out, ...)                                                                                \
    for (int64_t i = 0; i < nblocks; i++) {                                                                            \
        function(p->seed, counter + (uint64_t)i, __VA_ARGS__, (out) + (lanes)*i);                                      \
    }

static void
draw_blocks(const random_job *job, uint64_t counter, int64_t nblocks, numbers *out)
{
    const dt_random_params *p = job->params;
    const double range = DT_ADD(p->b, -p->a);
    const bool normal = p->kind == DT_RANDOM_NORMAL;
    if (p->kind == DT_RANDOM_INTEGERS) {
        DRAW(2, dt_random_integers, out->i, p->low, p->high)
    } else if (normal && job->drawn == DT_FLOAT32) {
        DRAW(4, dt_random_normals_float, out->f, (float)p->a, (float)p->b)
    } else if (normal) {
        DRAW(2, dt_random_normals_double, out->d, p->a, p->b)
    } else if (job->drawn == DT_FLOAT32) {
        DRAW(4, dt_random_uniforms_float, out->f, digits[job->dtype], (float)p->a, (float)range)
    } else {
        DRAW(2, dt_random_uniforms_double, out->d, digits[job->dtype], p->a, range)
    }
}

static void
random_row(char *data, int64_t stride, int64_t index, int64_t n, const void *ctx)
{
    const random_job *job = ctx;
    const int64_t itemsize = (int64_t)dt_itemsize(job->dtype), drawn = (int64_t)dt_itemsize(job->drawn);
    cpu_row cast = cpu_cast_row(job->drawn, job->dtype);
    numbers block;
    for (int64_t done = 0, count; done < n; done += count) {
        const int64_t first = index + done, skipped = first % job->lanes;
        count = CPU_MIN(ELEMENTS - skipped, n - done);
        draw_blocks(job, job->params->offset + (uint64_t)(first / job->lanes), (skipped + count - 1) / job->lanes + 1,
                    &block);
        cast((char *[]){data + done * stride, (char *)&block + skipped * drawn},
             (const int64_t[]){stride / itemsize, 1}, count, NULL);
    }
}

static void
permutation_row(char *data, int64_t stride, int64_t index, int64_t n, const void *ctx)
{
    const random_job *job = ctx;
    for (int64_t i = 0; i < n; i++) {
        *(int64_t *)(void *)(data + i * stride) =
            dt_random_permutation(job->params->seed, job->params->offset, index + i, job->numel);
    }
}

dt_status
cpu_random(dt_array *out, const dt_random_params *params, dt_error *err)
{
    (void)err;
    const dt_dtype dtype = (dt_dtype)out->dtype;
    const bool is_float = params->kind != DT_RANDOM_INTEGERS;
    const dt_dtype drawn = !is_float ? DT_INT64 : dtype == DT_FLOAT64 ? DT_FLOAT64 : DT_FLOAT32;
    random_job job = {params, dtype, drawn, DT_RANDOM_LANES(is_float, dt_itemsize(dtype)), dt_array_numel(out)};
    cpu_indexed_walk(out, params->kind == DT_RANDOM_PERMUTATION ? permutation_row : random_row, &job);
    return DT_OK;
}
