/* elementwise.c: the ops of elementwise.def. Each op has a row for each dtype it exists for; the half types go through
 * the rows of float32, a block at a time. */
#include "cpu.h"

typedef struct {
    cpu_row unary[DT_NUNARY], binary[DT_NBINARY], lerp;
} op_rows;

#define IF_0(...)
#define IF_1(...) __VA_ARGS__
#define IS_HALF_FLOAT16 1
#define IS_HALF_BFLOAT16 1
/* what an integer expression becomes; bool keeps its lowest bit (elementwise_each.h) */
#define RESULT_ARITH(v) (v)
#define RESULT_FLOAT(v) (v)
#define RESULT_ROUND(v) (v)
#define RESULT_TEST(v) (v)
#define RESULT_FTEST(v) (v)
#define RESULT_COMPARE(v) (v)

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wtype-limits" /* x < 0 for the unsigned */
#define DT_EACH "../cpu/elementwise_each.h"
#include "../core/each_dtype.h"
#pragma GCC diagnostic pop

#define op_rows_FLOAT16 op_rows_FLOAT32
#define op_rows_BFLOAT16 op_rows_FLOAT32
static const op_rows *const rows_of[DT_NDTYPES] = {
#define DT_DTYPE(NAME, name, ...) [DT_##NAME] = &op_rows_##NAME,
#include "../core/dtypes.def"
#undef DT_DTYPE
};

/* ---------------------------------------------------------------- half types */

#define HALF_BLOCK 512
#define HALF_SIZE 2

typedef struct {
    cpu_row row, load, store; /* store NULL: the result is bool */
    int ninputs;
    const void *ctx;
} half_job;

static void
half_row(char *const *data, const int64_t *strides, int64_t n, const void *ctx)
{
    const half_job *job = ctx;
    float block[4][HALF_BLOCK];
    for (int64_t i = 0; i < n; i += HALF_BLOCK) {
        int64_t m = CPU_MIN(HALF_BLOCK, n - i), steps[4];
        char *operands[4];
        for (int j = 1; j <= job->ninputs; j++) {
            char *source = data[j] + i * strides[j] * HALF_SIZE;
            operands[j] = (char *)block[j];
            steps[j] = strides[j] != 0;
            job->load((char *[]){operands[j], source}, (const int64_t[]){1, strides[j]}, strides[j] ? m : 1, NULL);
        }
        char *result = data[0] + i * strides[0] * (job->store ? HALF_SIZE : 1);
        operands[0] = job->store ? (char *)block[0] : result;
        steps[0] = job->store ? 1 : strides[0];
        job->row(operands, steps, m, job->ctx);
        if (job->store) {
            job->store((char *[]){result, operands[0]}, (const int64_t[]){strides[0], 1}, m, NULL);
        }
    }
}

/* arrays: the output, then ninputs inputs of one dtype. */
static dt_status
run(cpu_row row, const void *ctx, int ninputs, const dt_array *const *arrays)
{
    dt_dtype dtype = (dt_dtype)arrays[1]->dtype, out = (dt_dtype)arrays[0]->dtype;
    dt_walk walk;
    dt_walk_init(&walk, ninputs + 1, arrays);
    if (dtype != DT_FLOAT16 && dtype != DT_BFLOAT16) {
        cpu_walk(&walk, arrays, row, ctx);
        return DT_OK;
    }
    half_job job = {row, cpu_cast_row(dtype, DT_FLOAT32), out == dtype ? cpu_cast_row(DT_FLOAT32, dtype) : NULL,
                    ninputs, ctx};
    cpu_walk(&walk, arrays, half_row, &job);
    return DT_OK;
}

/* ---------------------------------------------------------------- where: bits of one size, whatever they mean */

#define WHERE_ROW(bits)                                                                                                \
    typedef uint##bits##_t __attribute__((may_alias)) word##bits;                                                      \
    static void where_##bits(char *const *data, const int64_t *strides, int64_t n, const void *ctx)                    \
    {                                                                                                                  \
        word##bits *out = (word##bits *)data[0];                                                                       \
        const uint8_t *condition = (const uint8_t *)data[1];                                                           \
        const word##bits *a = (const word##bits *)data[2], *b = (const word##bits *)data[3];                           \
        const int64_t so = strides[0], sc = strides[1], sa = strides[2], sb = strides[3];                              \
        (void)ctx;                                                                                                     \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            out[i * so] = condition[i * sc] ? a[i * sa] : b[i * sb];                                                   \
        }                                                                                                              \
    }
WHERE_ROW(8)
WHERE_ROW(16)
WHERE_ROW(32)
WHERE_ROW(64)

cpu_row
cpu_activation_row(dt_activation activation, dt_dtype dtype)
{
    return activation == DT_ACTIVATION_NONE ? NULL : rows_of[dtype]->unary[dt_activation_op(activation)];
}

/* ---------------------------------------------------------------- slots */

dt_status
cpu_unary(dt_unary_op op, const dt_params *params, const dt_array *x, dt_array *out, dt_error *err)
{
    (void)err;
    const dt_array *arrays[2] = {out, x};
    return run(rows_of[x->dtype]->unary[op], params, 1, arrays);
}

dt_status
cpu_binary(dt_binary_op op, const dt_params *params, const dt_array *a, const dt_array *b, dt_array *out, dt_error *err)
{
    (void)err;
    const dt_array *arrays[3] = {out, a, b};
    return run(rows_of[a->dtype]->binary[op], params, 2, arrays);
}

dt_status
cpu_ternary(dt_ternary_op op, const dt_array *a, const dt_array *b, const dt_array *c, dt_array *out, dt_error *err)
{
    (void)err;
    const dt_array *arrays[4] = {out, a, b, c};
    if (op == DT_TERNARY_lerp) {
        return run(rows_of[a->dtype]->lerp, NULL, 3, arrays);
    }
    size_t itemsize = dt_itemsize((dt_dtype)out->dtype);
    dt_walk walk;
    dt_walk_init(&walk, 4, arrays);
    cpu_walk(&walk, arrays,
             itemsize == 1   ? where_8
             : itemsize == 2 ? where_16
             : itemsize == 4 ? where_32
                             : where_64,
             NULL);
    return DT_OK;
}
