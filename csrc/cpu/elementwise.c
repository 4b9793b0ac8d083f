/* elementwise.c: the ops of elementwise.def. The half types go through the rows of float32, a block at a time. */
#include "loops.h"

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

cpu_row
cpu_activation_row(dt_activation activation, dt_dtype dtype)
{
    return activation == DT_ACTIVATION_NONE ? NULL : cpu_loops_here()->ops[dtype]->unary[dt_activation_op(activation)];
}

/* ---------------------------------------------------------------- slots */

dt_status
cpu_unary(dt_unary_op op, const dt_params *params, const dt_array *x, dt_array *out, dt_error *err)
{
    (void)err;
    const dt_array *arrays[2] = {out, x};
    return run(cpu_loops_here()->ops[x->dtype]->unary[op], params, 1, arrays);
}

dt_status
cpu_binary(dt_binary_op op, const dt_params *params, const dt_array *a, const dt_array *b, dt_array *out, dt_error *err)
{
    (void)err;
    const dt_array *arrays[3] = {out, a, b};
    return run(cpu_loops_here()->ops[a->dtype]->binary[op], params, 2, arrays);
}

dt_status
cpu_ternary(dt_ternary_op op, const dt_array *a, const dt_array *b, const dt_array *c, dt_array *out, dt_error *err)
{
    (void)err;
    const dt_array *arrays[4] = {out, a, b, c};
    if (op == DT_TERNARY_lerp) {
        return run(cpu_loops_here()->ops[a->dtype]->lerp, NULL, 3, arrays);
    }
    dt_walk walk;
    dt_walk_init(&walk, 4, arrays);
    cpu_walk(&walk, arrays, cpu_loops_here()->where[cpu_size_index(dt_itemsize((dt_dtype)out->dtype))], NULL);
    return DT_OK;
}
