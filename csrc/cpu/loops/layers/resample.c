/* resample.c: sums of few neighbours along a dimension, each with a share of its own, as interpolate takes them, and
 * the way of their gradient. Both are a list of terms for each line of the result. Lines of few elements are rows of
 * single ones, in which a vector of results needs two vectors of the row if its neighbours are near. */
#include "../loops.h"

#include "../../../core/check/check.h"
#include "../../../core/memory/memory.h"

#define FEW 16 /* elements of a line */

typedef struct {
    cpu_resampling r;
    const cpu_resample_parts *parts;
    const int64_t *index; /* taps rows of `lines` */
    const char *x, *share;
    char *out;
    int64_t itemsize, lines, width; /* width: neighbours that are lines of their own */
    bool back, near;
} resample_job;

/* ---------------------------------------------------------------- the terms of each line */

/* r.start[j]: how many terms stand before those of line j. */
static dt_status
count_terms(resample_job *job, int dim, dt_error *err)
{
    const int64_t size = job->r.size, limit = (job->back ? size : job->r.n) / job->width;
    int64_t *start = job->r.start;
    memset(start, 0, (size_t)(size + 1) * sizeof(*start));
    for (int64_t i = 0; i < job->r.taps * job->lines; i++) {
        const int64_t place = job->index[i], line = job->back ? place : i % job->lines;
        if (place >= limit) {
            return dt_fail_index("interpolate", place, dim, limit, err);
        }
        for (int64_t c = 0; c < job->width && place >= 0; c++) {
            start[line * job->width + c + 1]++;
        }
    }
    for (int64_t j = 0; j < size; j++) {
        start[j + 1] += start[j];
    }
    return DT_OK;
}

static void
list_terms(resample_job *job)
{
    int64_t *start = job->r.start;
    for (int64_t i = 0; i < job->lines; i++) {
        for (int64_t t = 0; t < job->r.taps; t++) {
            const int64_t place = job->index[t * job->lines + i], line = job->back ? place : i;
            const char *share = job->share + (t * job->lines + i) * job->itemsize;
            for (int64_t c = 0; c < job->width && place >= 0; c++) {
                const int64_t at = start[line * job->width + c]++;
                job->r.from[at] = (job->back ? i : place) * job->width + c;
                memcpy((char *)job->r.share + at * job->itemsize, share, (size_t)job->itemsize);
            }
        }
    }
    memmove(start + 1, start, (size_t)job->r.size * sizeof(*start)); /* they had become their ends */
    start[0] = 0;
}

/* Where both vectors of a block of results begin, and the places in them; false if its neighbours are farther apart. */
static bool
find_window(const resample_job *job, int64_t block)
{
    const cpu_resampling *r = &job->r;
    const int64_t lanes = job->parts->lanes, first = block * lanes, last = CPU_MIN(first + lanes, r->size);
    const int64_t end = CPU_MAX(0, r->n - lanes);
    int64_t low = end;
    for (int64_t k = r->start[first]; k < r->start[last]; k++) {
        low = CPU_MIN(low, r->from[k]);
    }
    const int64_t high = CPU_MIN(low + lanes, end);
    r->windows[2 * block] = low;
    r->windows[2 * block + 1] = high;
    for (int64_t i = 0; i < lanes * job->r.taps; i++) {
        const int64_t j = first + i % lanes, k = j < last ? r->start[j] + i / lanes : -1;
        const int64_t place = k < 0 ? 0 : r->from[k] - low < lanes ? r->from[k] - low : lanes + r->from[k] - high;
        if (place >= 2 * lanes) {
            return false;
        }
        r->places[block * lanes * job->r.taps + i] = (int32_t)place;
        r->shares[block * lanes * job->r.taps + i] = k < 0 ? 0 : ((const float *)r->share)[k];
    }
    return true;
}

/* Whether all lines have as many terms, near each other. */
static bool
find_windows(const resample_job *job)
{
    const cpu_resampling *r = &job->r;
    if (r->inner != 1 || job->parts->near == NULL) {
        return false;
    }
    for (int64_t j = 0; j < r->size; j++) {
        if (r->start[j + 1] - r->start[j] != job->r.taps) {
            return false;
        }
    }
    for (int64_t block = 0; block * job->parts->lanes < r->size; block++) {
        if (!find_window(job, block)) {
            return false;
        }
    }
    return true;
}

/* Room for all lists; NULL if there is none. */
static void *
make_room(resample_job *job, size_t *nbytes)
{
    const int64_t terms = job->r.taps * job->lines * job->width, lanes = job->parts->lanes;
    const int64_t blocks = lanes == 0 ? 0 : CPU_CEIL_DIV(job->r.size, lanes), near = blocks * lanes * job->r.taps;
    *nbytes = sizeof(int64_t) * (size_t)(job->r.size + 1 + 2 * terms + 2 * blocks + near);
    int64_t *room = dt_malloc(*nbytes);
    if (room != NULL) {
        job->r.start = room;
        job->r.from = job->r.start + job->r.size + 1;
        job->r.share = job->r.from + terms;
        job->r.windows = job->r.from + 2 * terms;
        job->r.places = (int32_t *)(job->r.windows + 2 * blocks);
        job->r.shares = (float *)(job->r.places + near);
    }
    return room;
}

/* ---------------------------------------------------------------- all lines */

/* Of the lines of all planes. */
static void
lines_part(void *ctx, int64_t begin, int64_t end)
{
    const resample_job *job = ctx;
    const cpu_resampling *r = &job->r;
    while (begin < end) {
        const int64_t plane = begin / r->size, first = begin % r->size, some = CPU_MIN(end - begin, r->size - first);
        job->parts->lines(r, job->x + plane * r->n * r->inner * job->itemsize,
                          job->out + plane * r->size * r->inner * job->itemsize, first, first + some);
        begin += some;
    }
}

static void
rows_part(void *ctx, int64_t begin, int64_t end)
{
    const resample_job *job = ctx;
    const cpu_resampling *r = &job->r;
    (job->near ? job->parts->near : job->parts->rows)(r, job->x + begin * r->n * job->itemsize,
                                                      job->out + begin * r->size * job->itemsize, end - begin);
}

static void
run(resample_job *job, int64_t planes)
{
    const int64_t size = job->r.size, inner = job->r.inner;
    list_terms(job);
    if (inner == 1) {
        job->near = find_windows(job);
        cpu_parallel(planes, CPU_CEIL_DIV(CPU_GRAIN / 4, size), rows_part, job);
    } else {
        cpu_parallel(planes * size, CPU_CEIL_DIV(CPU_GRAIN / 4, inner), lines_part, job);
    }
}

dt_status
cpu_resample(const dt_array *x, const dt_array *index, const dt_array *share, const dt_resample_params *p,
             dt_array *out, bool *made, dt_error *err)
{
    (void)made;
    const int dim = (int)(p->dim < 0 ? p->dim + x->ndim : p->dim);
    int64_t inner = 1;
    for (int d = dim + 1; d < x->ndim; d++) {
        inner *= x->shape[d];
    }
    resample_job job = {
        .parts = cpu_loops_here()->resample[x->dtype == DT_FLOAT64],
        .index = dt_array_data(index),
        .x = dt_array_data(x),
        .share = dt_array_data(share),
        .out = dt_array_data(out),
        .itemsize = (int64_t)dt_itemsize((dt_dtype)x->dtype),
        .lines = index->shape[1],
        .width = inner < FEW ? inner : 1,
        .back = p->back,
    };
    job.r.taps = index->shape[0];
    job.r.n = x->shape[dim] * job.width;
    job.r.size = out->shape[dim] * job.width;
    job.r.inner = inner / job.width;
    size_t nbytes;
    void *room = make_room(&job, &nbytes);
    if (room == NULL) {
        return dt_fail_nomem(err, nbytes);
    }
    const dt_status rc = count_terms(&job, dim, err);
    if (rc == DT_OK) {
        run(&job, dt_array_numel(out) / (job.r.size * job.r.inner));
    }
    dt_free(room);
    return rc;
}
