/* remap.c: padding with what stands in an array. A row of the result is runs of elements that are neighbours in a row
 * of the input, which are copied whole, and single ones. Images of another size are made of other ops. */
#include "../../../core/ops/remap.h"
#include "../loops.h"

#define LONG_RUN 8                     /* elements that are copied as memory */
#define ROW_GRAIN ((int64_t)256 << 10) /* bytes worth a thread */

/* Elements `to` onwards of a row, of the input's from `from` on. */
typedef struct {
    int64_t to, from, count;
} run;

typedef struct {
    const char *from;
    char *to;
    const int64_t *rows; /* of the input */
    const run *runs;
    int64_t nruns, height, from_height, from_row, to_row, unit; /* bytes */
    int64_t size;                                               /* of a number that stands alone, or 0 */
} remap_job;

/* The place of the input, of n, that place i of the result shows. */
static int64_t
shown(const dt_remap_dim *d, int64_t n, int64_t i)
{
    const int64_t last = n - 1, after = d->size - n - d->before;
    int64_t k = i - d->before;
    switch (d->kind) {
    case DT_REMAP_FLIP:
        return last - i;
    case DT_REMAP_REFLECT:
        k = k < 0 ? -k : k;
        return k > last ? 2 * last - k : k;
    case DT_REMAP_REPLICATE:
        return k < 0 ? 0 : k > last ? last : k;
    case DT_REMAP_CIRCULAR: {
        const int64_t first = CPU_MAX(-d->before, 0), period = n - first + CPU_MIN(after, 0);
        k = (k - first) % period;
        return (k < 0 ? k + period : k) + first;
    }
    default:
        return i;
    }
}

/* How many there are; runs NULL: they are only counted. */
static int64_t
find_runs(const dt_remap_dim *d, int64_t n, run *runs)
{
    int64_t count = 0;
    run now = {0, 0, 0};
    for (int64_t i = 0; i < d->size; i++, now.count++) {
        const int64_t from = shown(d, n, i);
        if (now.count == 0 || from != now.from + now.count) {
            now = (run){i, from, 0};
            count++;
        }
        if (runs != NULL) {
            runs[count - 1] = (run){now.to, now.from, now.count + 1};
        }
    }
    return count;
}

#define COPY_ROW(type)                                                                                                 \
    {                                                                                                                  \
        const type *x = (const type *)(const void *)from;                                                              \
        type *y = (type *)(void *)to;                                                                                  \
        for (const run *r = job->runs; r < job->runs + job->nruns; r++) {                                              \
            if (r->count >= LONG_RUN) {                                                                                \
                memcpy(y + r->to, x + r->from, (size_t)r->count * sizeof(type));                                       \
                continue;                                                                                              \
            }                                                                                                          \
            for (int64_t j = 0; j < r->count; j++) {                                                                   \
                y[r->to + j] = x[r->from + j];                                                                         \
            }                                                                                                          \
        }                                                                                                              \
    }

/* Rows [begin, end) of the result. */
static void
remap_rows(void *ctx, int64_t begin, int64_t end)
{
    const remap_job *job = ctx;
    for (int64_t item = begin; item < end; item++) {
        const int64_t row = item / job->height * job->from_height + job->rows[item % job->height];
        const char *from = job->from + row * job->from_row;
        char *to = job->to + item * job->to_row;
        switch (job->size) {
        case 1:
            COPY_ROW(uint8_t)
            break;
        case 2:
            COPY_ROW(uint16_t)
            break;
        case 4:
            COPY_ROW(uint32_t)
            break;
        case 8:
            COPY_ROW(uint64_t)
            break;
        default:
            for (const run *r = job->runs; r < job->runs + job->nruns; r++) {
                memcpy(to + r->to * job->unit, from + r->from * job->unit, (size_t)(r->count * job->unit));
            }
        }
    }
}

static bool
is_place(const dt_remap_dim *d)
{
    return d->kind != DT_REMAP_NEAREST && d->kind != DT_REMAP_LINEAR;
}

dt_status
cpu_remap(const dt_array *x, const dt_remap_params *params, dt_array *out, bool *made, dt_error *err)
{
    const dt_remap_dim *down = &params->along[0], *across = &params->along[1];
    const int dim = params->dim < 0 ? params->dim + x->ndim : params->dim;
    *made = is_place(down) && is_place(across);
    if (!*made) {
        return DT_OK;
    }
    const int64_t nruns = find_runs(across, x->shape[dim + 1], NULL);
    const size_t nbytes = (size_t)down->size * sizeof(int64_t) + (size_t)nruns * sizeof(run);
    run *runs = dt_malloc(nbytes);
    if (runs == NULL) {
        return dt_fail_nomem(err, nbytes);
    }
    int64_t *rows = (int64_t *)(void *)(runs + nruns), unit = (int64_t)dt_itemsize((dt_dtype)x->dtype);
    for (int64_t i = 0; i < down->size; i++) {
        rows[i] = shown(down, x->shape[dim], i);
    }
    for (int d = dim + 2; d < x->ndim; d++) {
        unit *= x->shape[d];
    }
    remap_job job = {
        .from = dt_array_data(x),
        .to = dt_array_data(out),
        .rows = rows,
        .runs = runs,
        .nruns = find_runs(across, x->shape[dim + 1], runs),
        .height = down->size,
        .from_height = x->shape[dim],
        .from_row = x->shape[dim + 1] * unit,
        .to_row = across->size * unit,
        .unit = unit,
        .size = unit == (int64_t)dt_itemsize((dt_dtype)x->dtype) ? unit : 0,
    };
    cpu_parallel((int64_t)dt_array_nbytes(out) / job.to_row, CPU_CEIL_DIV(ROW_GRAIN, job.to_row), remap_rows, &job);
    dt_free(runs);
    return DT_OK;
}
