/* softmax_grad.c: the gradient of softmax and of its logarithm over the last dimension, from their result. Rows whose
 * elements lie far apart but whose neighbours do not are done together, line by line. */
#include "../loops.h"

#define BLOCK 1024
#define WIDTH 64 /* rows together */

enum { GRAD, RESULT, OUT, ARRAYS };

typedef struct {
    const dt_array *arrays[ARRAYS];
    bool log;
    const cpu_softmax_grad_parts *parts;
    cpu_row load, store;
    int64_t itemsize, n;
    bool direct[ARRAYS]; /* in place in memory, without a cast or a stride */
    int across;          /* the dimension of neighbouring rows, or -1 */
} job;

/* n numbers of an array from an element on, so many apart: in the buffer unless they can stay where they are. */
static char *
loaded(const job *j, bool direct, char *from, int64_t apart, int64_t n, double *buffer)
{
    if (direct) {
        return from;
    }
    j->load((char *[]){(char *)buffer, from}, (const int64_t[]){1, apart}, n, NULL);
    return (char *)buffer;
}

static char *
address(const job *j, int k, int64_t offset)
{
    return (char *)dt_array_data(j->arrays[k]) + offset * j->itemsize;
}

/* begin: where the row begins in each array, in elements. */
static void
one_row(const job *j, const int64_t *begin)
{
    double grads[BLOCK], results[BLOCK], values[BLOCK]; /* room for either type */
    const int last = j->arrays[OUT]->ndim - 1;
    double sum = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (int64_t i = 0; i < j->n; i += BLOCK) {
            const int64_t m = CPU_MIN(BLOCK, j->n - i);
            char *at[ARRAYS];
            int64_t apart[ARRAYS];
            for (int k = 0; k < ARRAYS; k++) {
                apart[k] = j->arrays[k]->strides[last];
                at[k] = address(j, k, begin[k] + i * apart[k]);
            }
            const char *grad = loaded(j, j->direct[GRAD], at[GRAD], apart[GRAD], m, grads);
            const char *result = loaded(j, j->direct[RESULT], at[RESULT], apart[RESULT], m, results);
            if (pass == 0) {
                sum += j->parts->sum(grad, result, m, j->log);
                continue;
            }
            char *out = j->direct[OUT] ? at[OUT] : (char *)values;
            j->parts->finish(grad, result, out, m, sum, j->log);
            if (!j->direct[OUT]) {
                j->store((char *[]){at[OUT], out}, (const int64_t[]){apart[OUT], 1}, m, NULL);
            }
        }
    }
}

static void
rows_part(void *ctx, int64_t begin, int64_t end)
{
    const job *j = ctx;
    const dt_array *const *arrays = j->arrays;
    const int inner = arrays[OUT]->ndim - 2;
    const int64_t run = inner < 0 ? 1 : arrays[OUT]->shape[inner];
    const bool direct = j->direct[GRAD] && j->direct[RESULT] && j->direct[OUT];
    for (int64_t i = begin, rows; i < end; i += rows) {
        int64_t at[ARRAYS];
        for (int k = 0; k < ARRAYS; k++) {
            at[k] = cpu_offset(inner + 1, arrays[k]->shape, arrays[k]->strides, i);
        }
        rows = CPU_MIN(end - i, run - i % run);
        for (int64_t r = 0; r < rows; r++) {
            if (direct) {
                const char *grad = address(j, GRAD, at[GRAD]), *result = address(j, RESULT, at[RESULT]);
                const double sum = j->parts->sum(grad, result, j->n, j->log);
                j->parts->finish(grad, result, address(j, OUT, at[OUT]), j->n, sum, j->log);
            } else {
                one_row(j, at);
            }
            for (int k = 0; k < ARRAYS && inner >= 0; k++) {
                at[k] += arrays[k]->strides[inner];
            }
        }
    }
}

static void
some_lines(const job *j, const int64_t *begin, int64_t width)
{
    double grads[WIDTH], results[WIDTH], values[WIDTH], sums[WIDTH] = {0};
    const int last = j->arrays[OUT]->ndim - 1;
    for (int pass = 0; pass < 2; pass++) {
        for (int64_t i = 0; i < j->n; i++) {
            char *at[ARRAYS];
            for (int k = 0; k < ARRAYS; k++) {
                at[k] = address(j, k, begin[k] + i * j->arrays[k]->strides[last]);
            }
            const char *grad = loaded(j, j->direct[GRAD], at[GRAD], 1, width, grads);
            const char *result = loaded(j, j->direct[RESULT], at[RESULT], 1, width, results);
            if (pass == 0) {
                j->parts->line_sum(grad, result, sums, width, j->log);
                continue;
            }
            char *out = j->direct[OUT] ? at[OUT] : (char *)values;
            j->parts->line_finish(grad, result, out, sums, width, j->log);
            if (!j->direct[OUT]) {
                j->store((char *[]){at[OUT], out}, (const int64_t[]){1, 1}, width, NULL);
            }
        }
    }
}

/* items: blocks of WIDTH rows along `across`, for each place in the other dimensions */
static void
lines_part(void *ctx, int64_t begin, int64_t end)
{
    const job *j = ctx;
    const dt_array *out = j->arrays[OUT];
    const int64_t neighbours = out->shape[j->across], blocks = CPU_CEIL_DIV(neighbours, WIDTH);
    for (int64_t item = begin; item < end; item++) {
        const int64_t first = item % blocks * WIDTH;
        int64_t rest = item / blocks, at[ARRAYS] = {first, first, first};
        for (int d = out->ndim - 2; d >= 0; d--) {
            if (d != j->across) {
                for (int k = 0; k < ARRAYS; k++) {
                    at[k] += rest % out->shape[d] * j->arrays[k]->strides[d];
                }
                rest /= out->shape[d];
            }
        }
        some_lines(j, at, CPU_MIN(WIDTH, neighbours - first));
    }
}

/* The dimension in which rows are neighbours in all arrays, or -1. */
static int
find_across(const job *j)
{
    const dt_array *out = j->arrays[OUT];
    for (int d = out->ndim - 2; d >= 0; d--) {
        bool near = out->shape[d] >= 8;
        for (int k = 0; k < ARRAYS; k++) {
            near = near && j->arrays[k]->strides[d] == 1;
        }
        if (near) {
            return d;
        }
    }
    return -1;
}

dt_status
cpu_softmax_grad(const dt_array *grad, const dt_array *result, bool log, dt_array *out, dt_error *err)
{
    (void)err;
    const int last = out->ndim - 1;
    const dt_dtype dtype = (dt_dtype)out->dtype, compute = cpu_computed(dtype);
    job j = {
        .arrays = {grad, result, out},
        .log = log,
        .parts = cpu_loops_here()->softmax_grad[compute == DT_FLOAT64],
        .load = cpu_cast_row(dtype, compute),
        .store = cpu_cast_row(compute, dtype),
        .itemsize = (int64_t)dt_itemsize(dtype),
        .n = out->shape[last],
    };
    const int64_t rows = dt_array_numel(out) / j.n, grain = CPU_CEIL_DIV(CPU_GRAIN / 4, j.n);
    j.across = j.n > 1 && out->strides[last] != 1 ? find_across(&j) : -1;
    for (int k = 0; k < ARRAYS; k++) {
        j.direct[k] = dtype == compute && (j.across >= 0 || j.arrays[k]->strides[last] == 1 || j.n == 1);
    }
    if (j.across < 0) {
        cpu_parallel(rows, grain, rows_part, &j);
        return DT_OK;
    }
    const int64_t neighbours = out->shape[j.across];
    cpu_parallel(rows / neighbours * CPU_CEIL_DIV(neighbours, WIDTH), CPU_CEIL_DIV(grain, WIDTH), lines_part, &j);
    return DT_OK;
}
