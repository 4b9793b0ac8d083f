/* elementwise.c: the ops of elementwise.def. Where no row takes a dtype as it is, another's does, a block at a time:
 * the half types are computed as float32, and what is true or false as bool. */
#include "functions.h"
#include "loops.h"

/* ---------------------------------------------------------------- by way of another dtype */

#define BLOCK 512

typedef struct {
    cpu_row row, store, load[CPU_MAX_ARRAYS]; /* NULL: what the row gives or takes is that of the op */
    int narrays;
    int64_t itemsize[CPU_MAX_ARRAYS];
    const void *ctx;
} block_job;

static void
block_row(char *const *data, const int64_t *strides, int64_t n, const void *ctx)
{
    const block_job *job = ctx;
    _Alignas(64) float block[4][BLOCK];
    for (int64_t i = 0; i < n; i += BLOCK) {
        int64_t m = CPU_MIN(BLOCK, n - i), steps[4];
        char *operands[4];
        for (int j = 0; j < job->narrays; j++) {
            operands[j] = data[j] + i * strides[j] * job->itemsize[j];
            steps[j] = strides[j];
            if (job->load[j]) {
                char *source = operands[j];
                operands[j] = (char *)block[j];
                steps[j] = strides[j] != 0;
                job->load[j]((char *[]){operands[j], source}, (const int64_t[]){1, strides[j]}, strides[j] ? m : 1,
                             NULL);
            }
        }
        char *result = operands[0];
        if (job->store) {
            operands[0] = (char *)block[0];
            steps[0] = 1;
        }
        job->row(operands, steps, m, job->ctx);
        if (job->store) {
            job->store((char *[]){result, operands[0]}, (const int64_t[]){strides[0], 1}, m, NULL);
        }
    }
}

/* ---------------------------------------------------------------- sin, cos, tan of large numbers */

typedef struct {
    cpu_row row; /* of float32, for numbers below near */
    float near;
    uint64_t quarters; /* for the wide loop, where near is less than CPU_TURNS_WIDE */
    float (*far)(float x);
} turns_job;

/* The rows reduce by the first bits of pi, the wide loop by more; the library's functions, which know all of them, take
 * what is too large. Which one a number goes by depends on nothing but itself. */
static void
turns_row(char *const *data, const int64_t *strides, int64_t n, const void *ctx)
{
    const turns_job *job = ctx;
    for (int64_t i = 0; i < n; i += BLOCK) {
        const int64_t m = CPU_MIN(BLOCK, n - i), so = strides[0], sx = strides[1];
        float *out = (float *)data[0] + i * so, block[BLOCK], values[BLOCK];
        const float *x = (const float *)data[1] + i * sx, *from = sx == 1 ? x : block;
        for (int64_t j = 0; sx != 1 && j < m; j++) {
            block[j] = x[j * sx];
        }
        const float largest = cpu_loops_here()->magnitude(from, m);
        if (largest < job->near) {
            job->row((char *[]){(char *)out, (char *)x}, strides, m, NULL);
            continue;
        }
        job->row((char *[]){(char *)values, (char *)from}, (const int64_t[]){1, 1}, m, NULL);
        if (job->near < CPU_TURNS_WIDE) {
            cpu_loops_here()->sin_wide(from, values, m, job->quarters);
        }
        for (int64_t j = 0; j < m; j++) {
            out[j * so] = largest < CPU_TURNS_WIDE || fabsf(from[j]) < CPU_TURNS_WIDE ? values[j] : job->far(from[j]);
        }
    }
}

static bool
turns(dt_unary_op op, cpu_row row, turns_job *job)
{
    *job = op == DT_UNARY_sin   ? (turns_job){row, CPU_TURNS_NEAR, 0, sinf}
           : op == DT_UNARY_cos ? (turns_job){row, CPU_TURNS_NEAR, 1, cosf}
                                : (turns_job){row, CPU_TURNS_WIDE, 0, tanf};
    return op == DT_UNARY_sin || op == DT_UNARY_cos || op == DT_UNARY_tan;
}

/* ---------------------------------------------------------------- // and % */

typedef struct {
    cpu_row row; /* where NEAR(a, b) */
    float (*far_f32)(float a, float b);
    double (*far_f64)(double a, double b);
} division_job;

#define DIVISION_ROW(S, suffix, NEAR)                                                                                  \
    static void division_##suffix(char *const *data, const int64_t *strides, int64_t n, const void *ctx)               \
    {                                                                                                                  \
        const division_job *job = ctx;                                                                                 \
        const int64_t so = strides[0], sa = strides[1], sb = strides[2];                                               \
        for (int64_t i = 0; i < n; i += BLOCK) {                                                                       \
            S *out = (S *)data[0] + i * so;                                                                            \
            const S *a = (const S *)data[1] + i * sa, *b = (const S *)data[2] + i * sb;                                \
            const int64_t m = CPU_MIN(BLOCK, n - i);                                                                   \
            int all_near = 1;                                                                                          \
            for (int64_t j = 0; j < m; j++) {                                                                          \
                all_near &= NEAR(a[j * sa], b[j * sb]);                                                                \
            }                                                                                                          \
            if (all_near) {                                                                                            \
                job->row((char *[]){(char *)out, (char *)a, (char *)b}, strides, m, NULL);                             \
                continue;                                                                                              \
            }                                                                                                          \
            for (int64_t j = 0; j < m; j++) {                                                                          \
                out[j * so] = job->far_##suffix(a[j * sa], b[j * sb]);                                                 \
            }                                                                                                          \
        }                                                                                                              \
    }
DIVISION_ROW(float, f32, CPU_DIVIDES_NEAR)
DIVISION_ROW(double, f64, CPU_DIVIDES_NEAR_F64)

/* ---------------------------------------------------------------- slots */

static DT_NOINLINE dt_status
walk_over(cpu_row row, dt_dtype taken, const void *ctx, int ninputs, const dt_array *const *arrays)
{
    dt_dtype dtype = (dt_dtype)arrays[1]->dtype, out = (dt_dtype)arrays[0]->dtype;
    dt_walk walk;
    dt_walk_init(&walk, ninputs + 1, arrays);
    if (dtype == taken) {
        cpu_walk(&walk, arrays, row, ctx);
        return DT_OK;
    }
    block_job job = {
        .row = row,
        .store = out == dtype ? cpu_cast_row(taken, dtype) : NULL,
        .narrays = ninputs + 1,
        .ctx = ctx,
    };
    for (int j = 0; j <= ninputs; j++) {
        job.load[j] = j > 0 && arrays[j]->dtype == dtype ? cpu_cast_row(dtype, taken) : NULL;
        job.itemsize[j] = (int64_t)dt_itemsize((dt_dtype)arrays[j]->dtype);
    }
    cpu_walk(&walk, arrays, block_row, &job);
    return DT_OK;
}

/* arrays: the output, then ninputs inputs, of the dtype of the first or of taken, which is the row's. */
static inline dt_status
run(cpu_row row, dt_dtype taken, const void *ctx, int ninputs, const dt_array *const *arrays)
{
    return arrays[1]->dtype == taken && cpu_one_row(ninputs + 1, arrays, row, ctx)
               ? DT_OK
               : walk_over(row, taken, ctx, ninputs, arrays);
}

cpu_row
cpu_activation_row(dt_activation activation, dt_dtype dtype)
{
    return activation == DT_ACTIVATION_NONE ? NULL : cpu_loops_here()->ops[dtype]->unary[dt_activation_op(activation)];
}

dt_status
cpu_unary(dt_unary_op op, const dt_params *params, const dt_array *x, dt_array *out, dt_error *err)
{
    if ((op == DT_UNARY_isnan || op == DT_UNARY_isinf || op == DT_UNARY_isfinite) && !dt_is_float((dt_dtype)x->dtype)) {
        const bool finite = op == DT_UNARY_isfinite;
        return cpu_fill(out, &(dt_scalar){DT_CATEGORY_BOOL, finite, finite}, err);
    }
    const dt_array *arrays[2] = {out, x};
    dt_dtype taken = op == DT_UNARY_logical_not ? DT_BOOL : cpu_computed((dt_dtype)x->dtype);
    cpu_row row = cpu_loops_here()->ops[taken]->unary[op];
    turns_job job;
    if (taken == DT_FLOAT32 && turns(op, row, &job)) {
        return run(turns_row, taken, &job, 1, arrays);
    }
    return run(row, taken, params, 1, arrays);
}

dt_status
cpu_binary(dt_binary_op op, const dt_params *params, const dt_array *a, const dt_array *b, dt_array *out, dt_error *err)
{
    (void)err;
    const dt_array *arrays[3] = {out, a, b};
    dt_dtype taken = cpu_computed((dt_dtype)a->dtype);
    if (op == DT_BINARY_gt || op == DT_BINARY_ge) { /* a > b is b < a */
        op = op == DT_BINARY_gt ? DT_BINARY_lt : DT_BINARY_le;
        arrays[1] = b;
        arrays[2] = a;
    } else if (op == DT_BINARY_logical_and || op == DT_BINARY_logical_or || op == DT_BINARY_logical_xor) {
        taken = DT_BOOL;
    }
    cpu_row row = cpu_loops_here()->ops[taken]->binary[op];
    if ((op == DT_BINARY_floor_divide || op == DT_BINARY_remainder) && dt_is_float(taken)) {
        division_job division = {row, dt_floordivf, dt_floordiv};
        if (op == DT_BINARY_remainder) {
            division = (division_job){row, dt_floormodf, dt_floormod};
        }
        return run(taken == DT_FLOAT32 ? division_f32 : division_f64, taken, &division, 2, arrays);
    }
    return run(row, taken, params, 2, arrays);
}

dt_status
cpu_ternary(dt_ternary_op op, const dt_array *a, const dt_array *b, const dt_array *c, dt_array *out, dt_error *err)
{
    (void)err;
    const dt_array *arrays[4] = {out, a, b, c};
    if (op != DT_TERNARY_where) {
        dt_dtype taken = cpu_computed((dt_dtype)a->dtype);
        return run(cpu_loops_here()->ops[taken]->ternary[op], taken, NULL, 3, arrays);
    }
    dt_walk walk;
    dt_walk_init(&walk, 4, arrays);
    cpu_walk(&walk, arrays, cpu_loops_here()->where[cpu_size_index(dt_itemsize((dt_dtype)out->dtype))], NULL);
    return DT_OK;
}
