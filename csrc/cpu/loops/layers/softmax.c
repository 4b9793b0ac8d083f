/* softmax.c: softmax and its logarithm over the last dimension. The largest element is subtracted first, and the sum is
 * accumulated in double. A row is computed block by block. Its exponentials are kept where out has room for them, else
 * computed twice. Where the elements of a row lie apart but rows are neighbours in memory, many rows are computed
 * together: one element of each at a time, which is called a line. */
#include "../loops.h"

#define BLOCK 1024
#define WIDTH 64 /* rows together */

typedef struct {
    const dt_array *x, *out;
    bool log, direct_in, direct_out; /* direct: in place in memory, without a cast or a stride */
    dt_dtype compute;
    const cpu_softmax_parts *parts;
    cpu_row load, store;
    int64_t itemsize, size, n, sx, so; /* size: of a computed number */
    int across;                        /* the dimension of neighbouring rows */
} softmax_job;

/* ---------------------------------------------------------------- row by row */

/* n numbers of x: where they are if they can be read there, else in the buffer */
static const char *
loaded(const softmax_job *job, char *from, int64_t n, char *buffer)
{
    if (job->direct_in) {
        return from;
    }
    job->load((char *[]){buffer, from}, (const int64_t[]){1, job->sx}, n, NULL);
    return buffer;
}

static void
softmax_row(const softmax_job *job, char *from, char *to)
{
    double buffer[BLOCK], results[BLOCK]; /* room for either type */
    const cpu_softmax_parts *parts = job->parts;
    const int64_t n = job->n, bx = job->sx * job->itemsize, bo = job->so * job->itemsize;
    const bool keeps = n <= BLOCK || job->direct_out;
    double largest = -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; i += BLOCK) {
        int64_t m = CPU_MIN(BLOCK, n - i);
        largest = parts->largest(loaded(job, from + i * bx, m, (char *)buffer), m, largest);
    }
    for (int64_t i = 0; i < n; i += BLOCK) {
        int64_t m = CPU_MIN(BLOCK, n - i);
        const char *x = n > BLOCK        ? loaded(job, from + i * bx, m, (char *)buffer)
                        : job->direct_in ? from
                                         : (char *)buffer;
        sum += parts->exp(x, job->direct_out && !job->log ? to + i * bo : (char *)results, m, largest);
    }
    const double log_sum = job->log ? log(sum) : 0;
    for (int64_t i = 0; i < n; i += BLOCK) {
        int64_t m = CPU_MIN(BLOCK, n - i);
        char *result = job->direct_out ? to + i * bo : (char *)results;
        if (job->log) {
            const char *x = n > BLOCK        ? loaded(job, from + i * bx, m, (char *)buffer)
                            : job->direct_in ? from
                                             : (char *)buffer;
            parts->log(x, result, m, largest, log_sum);
        } else {
            if (!keeps) {
                (void)parts->exp(loaded(job, from + i * bx, m, (char *)buffer), results, m, largest);
            }
            parts->scale(result, result, m, sum);
        }
        if (!job->direct_out) {
            job->store((char *[]){to + i * bo, result}, (const int64_t[]){job->so, 1}, m, NULL);
        }
    }
}

/* Neighbouring rows: where the first begins, how many elements apart they are, and (`step`) the elements of a row. */
typedef struct {
    char *first;
    int64_t size, apart, step; /* size: of an element */
} row_block;

static void
cast_rows(cpu_row cast, row_block to, row_block from, int64_t rows, int64_t n)
{
    const int64_t steps[2] = {to.step, from.step};
    if (to.step == 1 && from.step == 1 && to.apart == n && from.apart == n) {
        n *= rows;
        rows = 1;
    }
    for (int64_t j = 0; j < rows; j++) {
        cast((char *[]){to.first + j * to.apart * to.size, from.first + j * from.apart * from.size}, steps, n, NULL);
    }
}

/* Rows, no longer than a block, that need a cast or a copy: as many at a time as fit in the block. */
static void
buffered_rows(const softmax_job *job, row_block from, row_block to, int64_t rows)
{
    float buffer[BLOCK], results[BLOCK];
    const int64_t n = job->n, together = BLOCK / n;
    for (int64_t i = 0; i < rows; i += together) {
        const int64_t some = CPU_MIN(together, rows - i);
        row_block x = from, result = to;
        if (!job->direct_in) {
            x = (row_block){(char *)buffer, job->size, n, 1};
            cast_rows(job->load, x, from, some, n);
        }
        if (!job->direct_out) {
            result = (row_block){(char *)results, job->size, n, 1};
        }
        job->parts->rows(x.first, result.first, some, n, x.apart, result.apart, job->log);
        if (!job->direct_out) {
            cast_rows(job->store, to, result, some, n);
        }
        from.first += some * from.apart * from.size;
        to.first += some * to.apart * to.size;
    }
}

static void
rows_part(void *ctx, int64_t begin, int64_t end)
{
    const softmax_job *job = ctx;
    const dt_array *x = job->x, *out = job->out;
    const int inner = x->ndim - 2;
    const int64_t run = inner < 0 ? 1 : x->shape[inner], x_apart = inner < 0 ? 0 : x->strides[inner];
    const int64_t out_apart = inner < 0 ? 0 : out->strides[inner];
    for (int64_t i = begin, rows; i < end; i += rows) {
        char *from = (char *)dt_array_data(x) + cpu_offset(inner + 1, x->shape, x->strides, i) * job->itemsize;
        char *to = (char *)dt_array_data(out) + cpu_offset(inner + 1, out->shape, out->strides, i) * job->itemsize;
        rows = CPU_MIN(end - i, run - i % run);
        if (job->parts->rows != NULL && job->direct_in && job->direct_out) {
            job->parts->rows(from, to, rows, job->n, x_apart, out_apart, job->log);
            continue;
        }
        if (job->parts->rows != NULL && job->n <= BLOCK) {
            buffered_rows(job, (row_block){from, job->itemsize, x_apart, job->sx},
                          (row_block){to, job->itemsize, out_apart, job->so}, rows);
            continue;
        }
        for (int64_t j = 0; j < rows; j++) {
            softmax_row(job, from + j * x_apart * job->itemsize, to + j * out_apart * job->itemsize);
        }
    }
}

/* ---------------------------------------------------------------- neighbouring rows, line by line */

static void
softmax_lines(const softmax_job *job, char *from, char *to, int64_t width)
{
    double buffer[WIDTH], results[WIDTH], largest[WIDTH], sums[WIDTH] = {0};
    const cpu_softmax_parts *parts = job->parts;
    const int64_t bx = job->sx * job->itemsize, bo = job->so * job->itemsize;
    const int64_t lines[2] = {1, 1};
    for (int64_t j = 0; j < width; j++) {
        const double lowest = -INFINITY;
        const float lowest_float = -INFINITY;
        memcpy((char *)largest + j * job->size, job->size == 8 ? (const void *)&lowest : (const void *)&lowest_float,
               (size_t)job->size);
    }
    for (int pass = 0; pass < 3; pass++) {
        for (int64_t i = 0; i < job->n; i++) {
            char *x = from + i * bx, *out = to + i * bo, *result = job->direct_out ? out : (char *)results;
            if (!job->direct_in) {
                job->load((char *[]){(char *)buffer, x}, lines, width, NULL);
                x = (char *)buffer;
            }
            if (pass == 0) {
                parts->line_largest(x, largest, width);
            } else if (pass == 1) {
                parts->line_exp(x, largest, job->log ? (char *)results : result, sums, width);
            } else if (job->log) {
                parts->line_log(x, largest, result, sums, width);
            } else {
                double ignored[WIDTH] = {0};
                if (!job->direct_out) {
                    parts->line_exp(x, largest, result, ignored, width);
                }
                parts->line_scale(result, result, sums, width);
            }
            if (pass == 2 && !job->direct_out) {
                job->store((char *[]){out, result}, lines, width, NULL);
            }
        }
        for (int64_t j = 0; pass == 1 && job->log && j < width; j++) {
            sums[j] = log(sums[j]);
        }
    }
}

/* items: blocks of WIDTH rows along `across`, for each place in the other dimensions */
static void
lines_part(void *ctx, int64_t begin, int64_t end)
{
    const softmax_job *job = ctx;
    const dt_array *x = job->x, *out = job->out;
    int64_t blocks = CPU_CEIL_DIV(x->shape[job->across], WIDTH);
    for (int64_t item = begin; item < end; item++) {
        int64_t first = item % blocks * WIDTH, rest = item / blocks;
        int64_t in_offset = first, out_offset = first;
        for (int d = x->ndim - 2; d >= 0; d--) {
            if (d != job->across) {
                in_offset += rest % x->shape[d] * x->strides[d];
                out_offset += rest % x->shape[d] * out->strides[d];
                rest /= x->shape[d];
            }
        }
        softmax_lines(job, (char *)dt_array_data(x) + in_offset * job->itemsize,
                      (char *)dt_array_data(out) + out_offset * job->itemsize,
                      CPU_MIN(WIDTH, x->shape[job->across] - first));
    }
}

/* The dimension in which rows are neighbours in both arrays, or -1. */
static int
find_across(const dt_array *x, const dt_array *out)
{
    for (int d = x->ndim - 2; d >= 0; d--) {
        if (x->strides[d] == 1 && out->strides[d] == 1 && x->shape[d] >= 8) {
            return d;
        }
    }
    return -1;
}

dt_status
cpu_softmax(const dt_array *x, bool log, dt_array *out, dt_error *err)
{
    (void)err;
    int last = x->ndim - 1;
    dt_dtype dtype = (dt_dtype)x->dtype, compute = dtype == DT_FLOAT64 ? DT_FLOAT64 : DT_FLOAT32;
    softmax_job job = {
        .x = x,
        .out = out,
        .log = log,
        .parts = cpu_loops_here()->softmax[compute == DT_FLOAT64],
        .load = cpu_cast_row(dtype, compute),
        .store = cpu_cast_row(compute, dtype),
        .itemsize = (int64_t)dt_itemsize(dtype),
        .size = (int64_t)dt_itemsize(compute),
        .n = x->shape[last],
        .sx = x->strides[last],
        .so = out->strides[last],
    };
    int64_t rows = dt_array_numel(x) / job.n, grain = CPU_CEIL_DIV(CPU_GRAIN / 8, job.n);
    job.across = job.n > 1 && job.sx != 1 ? find_across(x, out) : -1;
    if (job.across >= 0) {
        int64_t neighbours = x->shape[job.across];
        job.direct_in = job.direct_out = dtype == compute;
        cpu_parallel(rows / neighbours * CPU_CEIL_DIV(neighbours, WIDTH), CPU_CEIL_DIV(grain, WIDTH), lines_part, &job);
        return DT_OK;
    }
    job.direct_in = dtype == compute && (job.sx == 1 || job.n == 1);
    job.direct_out = dtype == compute && (job.so == 1 || job.n == 1);
    cpu_parallel(rows, grain, rows_part, &job);
    return DT_OK;
}
