/* elementwise.c: the ops of elementwise.def. Where no row takes a dtype as it is, another's does, a block at a time:
 * the half types are computed as float32, and what is true or false as bool. */
#include "functions.h"
#include "../loops.h"

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

void
cpu_row_packed(cpu_row row, dt_dtype dtype, int ninputs, char *const *data, const int64_t *strides, int64_t n,
               const void *ctx)
{
    const int64_t itemsize = (int64_t)dt_itemsize(dtype);
    const cpu_row move = cpu_cast_row(dtype, dtype);
    _Alignas(64) uint64_t block[3][BLOCK];
    for (int64_t i = 0; i < n; i += BLOCK) {
        const int64_t m = CPU_MIN(BLOCK, n - i);
        char *operands[3];
        for (int j = 0; j <= ninputs; j++) {
            char *const place = data[j] + i * strides[j] * itemsize;
            operands[j] = strides[j] == 1 ? place : (char *)block[j];
            if (j > 0 && strides[j] != 1) {
                move((char *[]){operands[j], place}, (const int64_t[]){1, strides[j]}, m, NULL);
            }
        }
        row(operands, (const int64_t[]){1, 1, 1}, m, ctx);
        if (strides[0] != 1) {
            char *const place = data[0] + i * strides[0] * itemsize;
            move((char *[]){place, operands[0]}, (const int64_t[]){strides[0], 1}, m, NULL);
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

/* The rows subtract multiples of pi/2 known to some bits, the loops for large numbers to more bits. For still larger
 * numbers there are the functions of the C library, which know all bits. The number alone decides which way it goes. */
static void
turns_row(char *const *data, const int64_t *strides, int64_t n, const void *ctx)
{
    const turns_job *job = ctx;
    if (strides[0] != 1 || strides[1] != 1) {
        cpu_row_packed(turns_row, DT_FLOAT32, 1, data, strides, n, ctx);
        return;
    }
    for (int64_t i = 0; i < n; i += BLOCK) {
        const int64_t m = CPU_MIN(BLOCK, n - i);
        float *out = (float *)data[0] + i, values[BLOCK];
        const float *x = (const float *)data[1] + i, largest = cpu_loops_here()->magnitude(x, m);
        if (largest < job->near) {
            job->row((char *[]){(char *)out, (char *)x}, strides, m, NULL);
            continue;
        }
        int some_near = 0;
        for (int64_t j = 0; j < m; j++) {
            some_near |= fabsf(x[j]) < job->near;
        }
        if (some_near) {
            job->row((char *[]){(char *)values, (char *)x}, strides, m, NULL);
        } else {
            memset(values, 0, sizeof(values));
        }
        if (job->near < CPU_TURNS_WIDE) {
            cpu_loops_here()->sin_wide(x, values, m, job->quarters);
        }
        for (int64_t j = 0; j < m; j++) {
            out[j] = largest < CPU_TURNS_WIDE || fabsf(x[j]) < CPU_TURNS_WIDE ? values[j] : job->far(x[j]);
        }
    }
}

/* Of float64 */
typedef struct {
    cpu_row row;
    double (*far)(double x);
} turns_f64_job;

static void
turns_f64_row(char *const *data, const int64_t *strides, int64_t n, const void *ctx)
{
    const turns_f64_job *job = ctx;
    if (strides[0] != 1 || strides[1] != 1) {
        cpu_row_packed(turns_f64_row, DT_FLOAT64, 1, data, strides, n, ctx);
        return;
    }
    for (int64_t i = 0; i < n; i += BLOCK) {
        const int64_t m = CPU_MIN(BLOCK, n - i);
        double *out = (double *)data[0] + i, values[BLOCK];
        const double *x = (const double *)data[1] + i;
        int all_near = 1;
        for (int64_t j = 0; j < m; j++) {
            all_near &= fabs(x[j]) < CPU_TURNS_F64;
        }
        job->row((char *[]){(char *)(all_near ? out : values), (char *)x}, strides, m, NULL);
        for (int64_t j = 0; !all_near && j < m; j++) {
            out[j] = fabs(x[j]) < CPU_TURNS_F64 ? values[j] : job->far(x[j]);
        }
    }
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

/* Of the first input that is an array: a number beside half floats has the dtype that the row takes. */
static dt_dtype
dtype_of_inputs(int ninputs, const dt_array *const *arrays)
{
    return (dt_dtype)(ninputs > 1 && arrays[1]->storage == NULL ? arrays[2] : arrays[1])->dtype;
}

/* What is not one row. */
static DT_NOINLINE dt_status
walk_over(cpu_row row, dt_dtype taken, const void *ctx, int ninputs, const dt_array *const *arrays)
{
    const dt_dtype dtype = dtype_of_inputs(ninputs, arrays), out = (dt_dtype)arrays[0]->dtype;
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

/* arrays: the output, then ninputs inputs, of the dtype `taken` that the row takes, or of one that is cast to it. */
static inline dt_status
run_row(cpu_row row, dt_dtype taken, const void *ctx, int ninputs, const dt_array *const *arrays)
{
    return dtype_of_inputs(ninputs, arrays) == taken && cpu_one_row(ninputs + 1, arrays, row, ctx)
               ? DT_OK
               : walk_over(row, taken, ctx, ninputs, arrays);
}

cpu_row
cpu_activation_row(dt_activation activation, dt_dtype dtype)
{
    return activation == DT_ACTIVATION_NONE ? NULL : cpu_loops_here()->ops[dtype]->unary[dt_activation_op(activation)];
}

/* Whether op changes signs, or drops numbers by them: how, for a half type. */
static bool
half_signs(dt_unary_op op, dt_dtype dtype, cpu_half_signs *signs)
{
    *signs = dtype == DT_FLOAT16 ? (cpu_half_signs){.infinity = 0x7c00, .nan = 0x7e00}
                                 : (cpu_half_signs){.infinity = 0x7f80, .nan = 0x7fc0};
    signs->kept = op == DT_UNARY_abs ? 0x7fff : 0xffff;
    signs->flipped = op == DT_UNARY_neg ? 0x8000 : 0;
    signs->dropped = op == DT_UNARY_relu ? 0xffff : 0;
    return op == DT_UNARY_neg || op == DT_UNARY_abs || op == DT_UNARY_relu;
}

static DT_NOINLINE dt_status
turn(dt_unary_op op, cpu_row row, dt_dtype taken, const dt_array *const *arrays)
{
    if (taken == DT_FLOAT32) {
        const turns_job job = op == DT_UNARY_sin   ? (turns_job){row, CPU_TURNS_NEAR, 0, sinf}
                              : op == DT_UNARY_cos ? (turns_job){row, CPU_TURNS_NEAR, 1, cosf}
                                                   : (turns_job){row, CPU_TURNS_WIDE, 0, tanf};
        return run_row(turns_row, taken, &job, 1, arrays);
    }
    if (op == DT_UNARY_tan) {
        return run_row(row, taken, NULL, 1, arrays);
    }
    const turns_f64_job job = {row, op == DT_UNARY_sin ? sin : cos};
    return run_row(turns_f64_row, taken, &job, 1, arrays);
}

dt_status
cpu_unary(dt_unary_op op, const dt_params *params, const dt_array *x, dt_array *out, dt_error *err)
{
    (void)err;
    const dt_array *arrays[2] = {out, x};
    const bool half = x->dtype == DT_FLOAT16 || x->dtype == DT_BFLOAT16;
    cpu_half_signs signs;
    if (DT_UNLIKELY(half) && half_signs(op, (dt_dtype)x->dtype, &signs)) {
        return run_row(cpu_loops_here()->half_signs, (dt_dtype)x->dtype, &signs, 1, arrays);
    }
    dt_dtype taken = op == DT_UNARY_logical_not ? DT_BOOL : cpu_computed((dt_dtype)x->dtype);
    cpu_row row = cpu_loops_here()->ops[taken]->unary[op];
    if (DT_UNLIKELY(op == DT_UNARY_sin || op == DT_UNARY_cos || op == DT_UNARY_tan)) {
        return turn(op, row, taken, arrays);
    }
    return run_row(row, taken, params, 1, arrays);
}

static bool
is_number(const dt_array *x, double value)
{
    return x->storage == NULL && dt_scalar_load((dt_dtype)x->dtype, x->immediate).f == value;
}

static const cpu_power *
known_power(const dt_array *exponent)
{
    const cpu_power *known = cpu_loops_here()->powers;
    for (int i = 0; i < CPU_POWERS; i++) {
        if (is_number(exponent, known[i].exponent)) {
            return &known[i];
        }
    }
    return NULL;
}

static dt_status
power_of_number(dt_dtype taken, const dt_params *params, const dt_array *const *arrays, dt_error *err)
{
    const bool floats = dt_is_float(taken), square = is_number(arrays[2], 2);
    if (square || (floats && is_number(arrays[2], -1))) {
        const dt_unary_op op = square ? DT_UNARY_square : DT_UNARY_reciprocal;
        return cpu_unary(op, params, arrays[1], (dt_array *)(uintptr_t)arrays[0], err);
    }
    const cpu_power *known = floats ? known_power(arrays[2]) : NULL;
    if (known != NULL) {
        return run_row(taken == DT_FLOAT32 ? known->f32 : known->f64, taken, NULL, 1, arrays);
    }
    return run_row(cpu_loops_here()->ops[taken]->binary[DT_BINARY_pow], taken, params, 2, arrays);
}

/* The quotients and remainders of floats: the three ops that follow each other in elementwise.def. */
static dt_status
divide(dt_binary_op op, cpu_row row, dt_dtype taken, const dt_array *const *arrays)
{
    division_job division = {row, dt_floordivf, dt_floordiv};
    if (op == DT_BINARY_fmod) {
        division = (division_job){row, fmodf, fmod};
    } else if (op == DT_BINARY_remainder) {
        division = (division_job){row, dt_floormodf, dt_floormod};
    }
    if (op == DT_BINARY_fmod && taken == DT_FLOAT64) {
        return run_row(row, taken, NULL, 2, arrays);
    }
    return run_row(taken == DT_FLOAT32 ? division_f32 : division_f64, taken, &division, 2, arrays);
}
_Static_assert(DT_BINARY_remainder == DT_BINARY_floor_divide + 1 && DT_BINARY_fmod == DT_BINARY_remainder + 1,
               "divide() is told by the order of its ops");

/* What an op asks for beside its loop. */
typedef enum { PLAIN, TURNED, LOGICAL, DIVISION, POWER } binary_kind;

static const uint8_t kinds[DT_NBINARY] = {
    [DT_BINARY_gt] = TURNED,          [DT_BINARY_ge] = TURNED,           [DT_BINARY_logical_and] = LOGICAL,
    [DT_BINARY_logical_or] = LOGICAL, [DT_BINARY_logical_xor] = LOGICAL, [DT_BINARY_floor_divide] = DIVISION,
    [DT_BINARY_remainder] = DIVISION, [DT_BINARY_fmod] = DIVISION,       [DT_BINARY_pow] = POWER,
};

static DT_NOINLINE dt_status
run_kind(binary_kind kind, dt_binary_op op, dt_dtype taken, const dt_params *params, const dt_array *arrays[3],
         dt_error *err)
{
    if (kind == POWER && arrays[2]->storage == NULL) {
        return power_of_number(taken, params, arrays, err);
    }
    if (kind == TURNED) { /* a > b is b < a */
        const dt_array *a = arrays[1];
        op = op == DT_BINARY_gt ? DT_BINARY_lt : DT_BINARY_le;
        arrays[1] = arrays[2];
        arrays[2] = a;
    }
    taken = kind == LOGICAL ? DT_BOOL : taken;
    cpu_row row = cpu_loops_here()->ops[taken]->binary[op];
    return kind == DIVISION && dt_is_float(taken) ? divide(op, row, taken, arrays)
                                                  : run_row(row, taken, params, 2, arrays);
}

dt_status
cpu_binary(dt_binary_op op, const dt_params *params, const dt_array *a, const dt_array *b, dt_array *out, dt_error *err)
{
    const dt_array *arrays[3] = {out, a, b};
    const dt_dtype taken = cpu_computed((dt_dtype)a->dtype);
    if (DT_UNLIKELY(kinds[op] != PLAIN)) {
        return run_kind((binary_kind)kinds[op], op, taken, params, arrays, err);
    }
    return run_row(cpu_loops_here()->ops[taken]->binary[op], taken, params, 2, arrays);
}

dt_status
cpu_ternary(dt_ternary_op op, const dt_array *a, const dt_array *b, const dt_array *c, dt_array *out, dt_error *err)
{
    (void)err;
    const dt_array *arrays[4] = {out, a, b, c};
    if (op != DT_TERNARY_where) {
        dt_dtype taken = cpu_computed((dt_dtype)a->dtype);
        return run_row(cpu_loops_here()->ops[taken]->ternary[op], taken, NULL, 3, arrays);
    }
    dt_walk walk;
    dt_walk_init(&walk, 4, arrays);
    cpu_walk(&walk, arrays, cpu_loops_here()->where[cpu_size_index(dt_itemsize((dt_dtype)out->dtype))], NULL);
    return DT_OK;
}
