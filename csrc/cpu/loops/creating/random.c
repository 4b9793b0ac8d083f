/* random.c: each block of a counter-based generator (philox.h) makes neighbouring elements, in row-major order. */
#include "../../../core/numbers/philox.h"
#include "../loops.h"

typedef union {
    float f[CPU_DRAWN];
    double d[CPU_DRAWN];
    int64_t i[CPU_DRAWN];
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

#define DRAW(function, ...)                                                                                            \
    for (int64_t i = 0; i < nblocks; i++) {                                                                            \
        function(p->seed, counter + (uint64_t)i, __VA_ARGS__, out->d + 2 * i);                                         \
    }

static void
draw_blocks(const random_job *job, uint64_t counter, int64_t nblocks, numbers *out)
{
    const dt_random_params *p = job->params;
    const cpu_random_parts *parts = cpu_loops_here()->random;
    const double range = DT_ADD(p->b, -p->a);
    const bool normal = p->kind == DT_RANDOM_NORMAL;
    uint32_t words[2 * CPU_DRAWN];
    if (p->kind == DT_RANDOM_INTEGERS) {
        parts->words(p->seed, counter, nblocks, words);
        parts->integers(words, 2 * nblocks, (uint64_t)p->low, (uint64_t)p->high - (uint64_t)p->low, out->i);
    } else if (job->drawn == DT_FLOAT32) {
        parts->words(p->seed, counter, nblocks, words);
        (normal ? parts->normals : parts->uniforms)(words, 4 * nblocks, digits[job->dtype], p->a, normal ? p->b : range,
                                                    out->f);
    } else if (normal) {
        DRAW(dt_random_normals_double, p->a, p->b)
    } else {
        DRAW(dt_random_uniforms_double, digits[job->dtype], p->a, range)
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
        count = CPU_MIN(CPU_DRAWN - skipped, n - done);
        draw_blocks(job, job->params->offset + (uint64_t)(first / job->lanes), (skipped + count - 1) / job->lanes + 1,
                    &block);
        cast((char *[]){data + done * stride, (char *)&block + skipped * drawn},
             (const int64_t[]){stride / itemsize, 1}, count, NULL);
    }
}

/* Numbers that fall outside are shuffled again, together with those of the same block. */
static void
permutation_row(char *data, int64_t stride, int64_t index, int64_t n, const void *ctx)
{
    const random_job *job = ctx;
    const dt_random_params *p = job->params;
    const dt_permutation order = dt_random_permutation(p->seed, p->offset, job->numel);
    for (int64_t done = 0, count; done < n; done += count) {
        uint64_t x[CPU_DRAWN];
        int64_t place[CPU_DRAWN], left = count = CPU_MIN(CPU_DRAWN, n - done);
        for (int64_t i = 0; i < count; i++) {
            x[i] = (uint64_t)(index + done + i);
            place[i] = done + i;
        }
        while (left > 0) {
            cpu_loops_here()->random->shuffled(&order, left, x);
            const int64_t shuffled = left;
            left = 0;
            for (int64_t i = 0; i < shuffled; i++) {
                if (x[i] < (uint64_t)job->numel) {
                    *(int64_t *)(void *)(data + place[i] * stride) = (int64_t)x[i];
                } else {
                    place[left] = place[i];
                    x[left++] = x[i];
                }
            }
        }
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

/* ---------------------------------------------------------------- dropout */

typedef struct {
    random_job numbers;
    const dt_random_params *params;
    dt_array x, out;
    dt_dtype compute;
} dropout_job;

#define KEEP(T)                                                                                                        \
    static void keep_##T(const float *drawn, const dt_random_params *p, int64_t n, T *x)                               \
    {                                                                                                                  \
        const float least = (float)p->a;                                                                               \
        const T factor = (T)p->b;                                                                                      \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            x[i] = drawn[i] >= least ? x[i] * factor : 0;                                                              \
        }                                                                                                              \
    }
KEEP(float)
KEEP(double)
#undef KEEP

/* n neighbours of a row, from element index on. */
static void
dropout_row(const dropout_job *job, int64_t index, int64_t n, char *out, int64_t to, char *x, int64_t from)
{
    const dt_dtype dtype = (dt_dtype)job->out.dtype;
    const int64_t itemsize = (int64_t)dt_itemsize(dtype);
    const cpu_row widen = cpu_cast_row(dtype, job->compute), narrow = cpu_cast_row(job->compute, dtype);
    numbers drawn, values;
    for (int64_t done = 0, count; done < n; done += count) {
        const int64_t first = index + done, skipped = first % job->numbers.lanes;
        count = CPU_MIN(CPU_DRAWN - skipped, n - done);
        draw_blocks(&job->numbers, job->params->offset + (uint64_t)(first / job->numbers.lanes),
                    (skipped + count - 1) / job->numbers.lanes + 1, &drawn);
        widen((char *[]){(char *)&values, x + done * from * itemsize}, (const int64_t[]){1, from}, count, NULL);
        if (job->compute == DT_FLOAT64) {
            keep_double(drawn.f + skipped, job->params, count, values.d);
        } else {
            keep_float(drawn.f + skipped, job->params, count, values.f);
        }
        narrow((char *[]){out + done * to * itemsize, (char *)&values}, (const int64_t[]){to, 1}, count, NULL);
    }
}

static void
dropout_part(void *ctx, int64_t begin, int64_t end)
{
    const dropout_job *job = ctx;
    const dt_array *x = &job->x, *out = &job->out;
    const int last = out->ndim - 1;
    const int64_t itemsize = (int64_t)dt_itemsize((dt_dtype)out->dtype), length = last < 0 ? 1 : out->shape[last];
    while (begin < end) {
        const int64_t n = CPU_MIN(end - begin, length - begin % length);
        dropout_row(job, begin, n,
                    (char *)dt_array_data(out) + cpu_offset(out->ndim, out->shape, out->strides, begin) * itemsize,
                    last < 0 ? 0 : out->strides[last],
                    (char *)dt_array_data(x) + cpu_offset(x->ndim, x->shape, x->strides, begin) * itemsize,
                    last < 0 ? 0 : x->strides[last]);
        begin += n;
    }
}

static void
flatten(dt_array *x)
{
    x->shape[0] = dt_array_numel(x);
    x->strides[0] = 1;
    x->ndim = 1;
}

dt_status
cpu_dropout(const dt_array *x, dt_array *out, const dt_random_params *params, dt_error *err)
{
    (void)err;
    const int64_t numel = dt_array_numel(out);
    const dt_dtype compute = out->dtype == DT_FLOAT64 ? DT_FLOAT64 : DT_FLOAT32;
    dt_random_params uniform = *params;
    uniform.a = 0;
    uniform.b = 1;
    dropout_job job = {
        {&uniform, DT_FLOAT32, DT_FLOAT32, DT_RANDOM_LANES(true, sizeof(float)), numel}, params, *x, *out, compute};
    if (dt_array_is_contiguous(x) && dt_array_is_contiguous(out)) {
        flatten(&job.x);
        flatten(&job.out);
    }
    cpu_parallel(numel, CPU_GRAIN, dropout_part, &job);
    return DT_OK;
}
