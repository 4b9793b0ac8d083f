/* scan.c: running sums, products, logarithms of sums, and extrema along rows. Neighbouring rows go together, one
 * element of each at a time. Most ops cut a few long rows into chunks: what each chunk comes to is found first, so that
 * all chunks can begin at once. */
#include "../loops.h"

#include "../../../core/memory/memory.h"

#include <math.h>

#define WIDTH 64      /* rows together */
#define TOGETHER 4    /* rows that lie apart */
#define CHUNK 32768   /* of a long row */
#define FEW_ROWS 16   /* that are cut */
#define TOTAL_LANES 8 /* of what a chunk comes to */

/* What a row goes on from. */
typedef struct {
    union {
        uint64_t acc; /* bits of a sum or product: int64, or */
        double total;
        double largest;
        int64_t at;
    };
    union {
        double sum;
        uint64_t value; /* bits of an element */
    };
} scan_carry;

/* `width` rows of n elements; first: how many stand before them. */
typedef struct {
    const void *x;
    void *out;
    int64_t *indices;
    int64_t width, n, first, x_step, out_step, indices_step, x_apart, out_apart, indices_apart;
} scan_rows;

typedef void (*scan_loop)(const scan_rows *rows, scan_carry *carry);
typedef struct {
    scan_loop lines[DT_NSCANS], total[DT_NSCANS];
} scan_loops;

#undef bool /* as a macro it would spoil the pasting of NAME */
#define DT_EACH "../cpu/loops/reduce/scan.inc"
#include "../../../core/each_dtype.inc"
#undef DT_EACH
#define bool _Bool

static const scan_loops *const loops[DT_NDTYPES] = {
    [DT_BOOL] = &loops_bool,       [DT_UINT8] = &loops_uint8,       [DT_INT8] = &loops_int8,
    [DT_INT16] = &loops_int16,     [DT_INT32] = &loops_int32,       [DT_INT64] = &loops_int64,
    [DT_FLOAT16] = &loops_float16, [DT_BFLOAT16] = &loops_bfloat16, [DT_FLOAT32] = &loops_float32,
    [DT_FLOAT64] = &loops_float64,
};

typedef struct {
    dt_scan_op op;
    const dt_array *x, *out, *indices;
    const scan_loops *loops;
    const cpu_scan_parts *sums; /* or NULL */
    int64_t n, steps[3];        /* in elements: x, out, indices */
    int64_t x_size, out_size, chunks;
    int across;
    bool reverse;
    scan_carry none, *carries; /* of each row and chunk */
} scan_job;

static scan_carry
nothing(dt_scan_op op, bool is_float)
{
    scan_carry carry = {{0}, {0}};
    if (op == DT_SCAN_PROD && is_float) {
        carry.total = 1;
    } else if (op == DT_SCAN_PROD) {
        carry.acc = 1;
    } else if (op == DT_SCAN_LOGSUMEXP) {
        carry.largest = -INFINITY;
    } else if (op != DT_SCAN_SUM) {
        carry.at = -1;
    }
    return carry;
}

/* n elements from the first-th on of `width` rows from that with these offsets on. */
static scan_rows
rows_at(const scan_job *job, int64_t x_offset, int64_t out_offset, int64_t indices_offset, int64_t first, int64_t n)
{
    const int64_t at = job->reverse ? job->n - 1 - first : first, sign = job->reverse ? -1 : 1;
    scan_rows r = {.width = 1, .n = n, .first = first};
    r.x = (const char *)dt_array_data(job->x) + (x_offset + at * job->steps[0]) * job->x_size;
    r.out = (char *)dt_array_data(job->out) + (out_offset + at * job->steps[1]) * job->out_size;
    r.x_step = sign * job->steps[0];
    r.out_step = sign * job->steps[1];
    if (job->indices != NULL) {
        r.indices = (int64_t *)dt_array_data(job->indices) + indices_offset + at * job->steps[2];
        r.indices_step = sign * job->steps[2];
    }
    return r;
}

static int64_t
row_offset(const dt_array *a, int64_t row)
{
    return a == NULL ? 0 : cpu_offset(a->ndim - 1, a->shape, a->strides, row);
}

static scan_rows
row_at(const scan_job *job, int64_t row, int64_t first, int64_t n)
{
    return rows_at(job, row_offset(job->x, row), row_offset(job->out, row), row_offset(job->indices, row), first, n);
}

/* Whether several rows, or chunks of one, may be gone over at a time. */
static bool
goes_together(const scan_job *job)
{
    return job->op == DT_SCAN_SUM || job->op == DT_SCAN_PROD;
}

/* As job->loops->lines does. */
static void
go_along(const scan_job *job, const scan_rows *r, scan_carry *carry)
{
    double sums[TOGETHER];
    if (job->sums == NULL || r->width != TOGETHER || r->n < 8 || r->x_step != 1 || r->out_step != 1) {
        job->loops->lines[job->op](r, carry);
        return;
    }
    for (int j = 0; j < TOGETHER; j++) {
        sums[j] = carry[j].total;
    }
    job->sums->four(r->x, r->out, r->n, r->x_apart, r->out_apart, sums);
    for (int j = 0; j < TOGETHER; j++) {
        carry[j].total = sums[j];
    }
}

static void
rows_part(void *ctx, int64_t begin, int64_t end)
{
    const scan_job *job = ctx;
    const int inner = job->x->ndim - 2;
    for (int64_t row = begin; row < end;) {
        scan_carry carry[TOGETHER] = {job->none, job->none, job->none, job->none};
        scan_rows r = row_at(job, row, 0, job->n);
        if (goes_together(job) && inner >= 0 && end - row >= TOGETHER &&
            row % job->x->shape[inner] + TOGETHER <= job->x->shape[inner]) {
            r.width = TOGETHER;
            r.x_apart = job->x->strides[inner];
            r.out_apart = job->out->strides[inner];
        }
        go_along(job, &r, carry);
        row += r.width;
    }
}

/* ---------------------------------------------------------------- neighbouring rows */

/* Offset in a of the first of the rows of an item: WIDTH along `across`, for each place in the other dimensions. */
static int64_t
item_offset(const dt_array *a, int across, int64_t first, int64_t rest)
{
    int64_t offset = first * a->strides[across];
    for (int d = a->ndim - 2; d >= 0; d--) {
        if (d != across) {
            offset += rest % a->shape[d] * a->strides[d];
            rest /= a->shape[d];
        }
    }
    return offset;
}

static void
lines_part(void *ctx, int64_t begin, int64_t end)
{
    const scan_job *job = ctx;
    const int across = job->across;
    const int64_t size = job->x->shape[across], blocks = CPU_CEIL_DIV(size, WIDTH);
    for (int64_t item = begin; item < end; item++) {
        const int64_t first = item % blocks * WIDTH, rest = item / blocks;
        scan_carry carry[WIDTH];
        scan_rows r = rows_at(job, item_offset(job->x, across, first, rest), item_offset(job->out, across, first, rest),
                              job->indices == NULL ? 0 : item_offset(job->indices, across, first, rest), 0, job->n);
        r.width = CPU_MIN(WIDTH, size - first);
        r.x_apart = job->x->strides[across];
        r.out_apart = job->out->strides[across];
        r.indices_apart = job->indices == NULL ? 0 : job->indices->strides[across];
        for (int64_t j = 0; j < r.width; j++) {
            carry[j] = job->none;
        }
        job->loops->lines[job->op](&r, carry);
    }
}

/* The dimension in which rows are neighbours, or -1. */
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

/* ---------------------------------------------------------------- long rows */

/* As job->loops->total does, from nothing on. */
static void
find_total(const scan_job *job, const scan_rows *r, scan_carry *carry)
{
    double lanes[TOTAL_LANES] = {0};
    if (job->sums == NULL || r->n % TOTAL_LANES != 0 || r->x_step != 1) {
        job->loops->total[job->op](r, carry);
        return;
    }
    job->sums->total(r->x, r->n, lanes);
    for (int l = 1; l < TOTAL_LANES; l++) {
        lanes[0] += lanes[l];
    }
    carry->total = lanes[0];
}

static void
totals_part(void *ctx, int64_t begin, int64_t end)
{
    const scan_job *job = ctx;
    for (int64_t item = begin; item < end; item++) {
        const int64_t chunk = item % job->chunks;
        const scan_rows r = row_at(job, item / job->chunks, chunk * CHUNK, CPU_MIN(CHUNK, job->n - chunk * CHUNK));
        job->carries[item] = job->none;
        if (chunk + 1 < job->chunks) { /* nobody goes on from the last */
            find_total(job, &r, &job->carries[item]);
        }
    }
}

/* carry, then more: as if the elements of both stood in a row */
static scan_carry
joined(const scan_job *job, const scan_carry *carry, const scan_carry *more)
{
    scan_carry both = *carry;
    if (job->op == DT_SCAN_SUM || job->op == DT_SCAN_PROD) {
        if (dt_is_float((dt_dtype)job->x->dtype)) { /* a sum: see cpu_scan */
            both.total = carry->total + more->total;
        } else {
            both.acc = job->op == DT_SCAN_SUM ? carry->acc + more->acc : carry->acc * more->acc;
        }
        return both;
    }
    if (job->op == DT_SCAN_LOGSUMEXP) {
        both.largest =
            more->largest > carry->largest || more->largest != more->largest ? more->largest : carry->largest;
        both.sum = (carry->largest == both.largest ? carry->sum : carry->sum * exp(carry->largest - both.largest)) +
                   (more->largest == both.largest ? more->sum : more->sum * exp(more->largest - both.largest));
        return both;
    }
    const scan_rows one = {.x = &more->value, .width = 1, .n = 1, .first = more->at};
    job->loops->total[job->op](&one, &both);
    return both;
}

static void
chunks_part(void *ctx, int64_t begin, int64_t end)
{
    const scan_job *job = ctx;
    for (int64_t item = begin; item < end;) {
        const int64_t chunk = item % job->chunks;
        scan_rows r = row_at(job, item / job->chunks, chunk * CHUNK, CPU_MIN(CHUNK, job->n - chunk * CHUNK));
        if (goes_together(job) && end - item >= TOGETHER && (chunk + TOGETHER) * CHUNK <= job->n) {
            r.width = TOGETHER;
            r.x_apart = CHUNK * r.x_step;
            r.out_apart = CHUNK * r.out_step;
        }
        scan_carry carry[TOGETHER];
        memcpy(carry, &job->carries[item], (size_t)r.width * sizeof(*carry));
        go_along(job, &r, carry);
        item += r.width;
    }
}

static dt_status
scan_chunks(scan_job *job, int64_t rows, dt_error *err)
{
    job->chunks = CPU_CEIL_DIV(job->n, CHUNK);
    const size_t nbytes = (size_t)(rows * job->chunks) * sizeof(*job->carries);
    job->carries = dt_malloc(nbytes);
    if (job->carries == NULL) {
        return dt_fail_nomem(err, nbytes);
    }
    cpu_parallel(rows * job->chunks, 1, totals_part, job);
    for (int64_t row = 0; row < rows; row++) {
        scan_carry sum = job->none;
        for (int64_t i = row * job->chunks; i < (row + 1) * job->chunks; i++) {
            const scan_carry own = job->carries[i];
            job->carries[i] = sum;
            sum = joined(job, &sum, &own);
        }
    }
    cpu_parallel(rows * job->chunks, 1, chunks_part, job);
    dt_free(job->carries);
    return DT_OK;
}

dt_status
cpu_scan(dt_scan_op op, const dt_array *x, bool reverse, dt_array *out, dt_array *indices, dt_error *err)
{
    const int last = x->ndim - 1;
    const dt_dtype dtype = (dt_dtype)x->dtype;
    scan_job job = {
        .op = op,
        .x = x,
        .out = out,
        .indices = indices,
        .loops = loops[dtype],
        .sums = op == DT_SCAN_SUM && dtype == DT_FLOAT32 ? cpu_loops_here()->scan : NULL,
        .n = x->shape[last],
        .steps = {x->strides[last], out->strides[last], indices == NULL ? 0 : indices->strides[last]},
        .x_size = (int64_t)dt_itemsize(dtype),
        .out_size = (int64_t)dt_itemsize((dt_dtype)out->dtype),
        .reverse = reverse,
        .none = nothing(op, dt_is_float(dtype)),
    };
    const int64_t rows = dt_array_numel(x) / job.n, grain = CPU_CEIL_DIV(CPU_GRAIN / 4, job.n);
    /* Of part of a row these may leave the range of double where the row itself does not, and a sum of float64 could
     * fall where parts meet. */
    const bool in_order = (op == DT_SCAN_PROD && dt_is_float(dtype)) || (op == DT_SCAN_SUM && dtype == DT_FLOAT64);
    if (rows < FEW_ROWS && job.n > CHUNK && !in_order) {
        return scan_chunks(&job, rows, err);
    }
    job.across = job.n > 1 && job.steps[0] != 1 ? find_across(x, out) : -1;
    if (job.across >= 0) {
        const int64_t neighbours = x->shape[job.across];
        cpu_parallel(rows / neighbours * CPU_CEIL_DIV(neighbours, WIDTH), CPU_CEIL_DIV(grain, WIDTH), lines_part, &job);
    } else {
        cpu_parallel(rows, grain, rows_part, &job);
    }
    return DT_OK;
}
