/* rows.c: goes over strided arrays row by row, on all threads. Large new results go around the caches: a row leaves a
 * block of its output in a buffer, which is stored with hints that nobody will read it soon. The caches then need not
 * read the lines first that are about to be overwritten. */
#include "around_caches.h"

#define WALK_GRAIN 65536 /* elements worth a thread: a sum takes 10 us for so many, to wake one up to 100 */
#define STREAM_ROW 2048  /* bytes */
#define LINE 64
#define TILE 1024          /* elements: of half of it a row is long enough */
#define STREAM_BUFFER 1024 /* bytes of output at a time: reading and writing take turns often */
#define FETCH_AHEAD 2      /* so many of them */
#define FETCH_MOST 256     /* bytes of an operand for a line of output: more are too far apart */

typedef struct {
    const dt_walk *walk;
    char *data[CPU_MAX_ARRAYS];
    int64_t strides[CPU_MAX_ARRAYS][DT_MAX_NDIM]; /* bytes */
    int64_t inner[CPU_MAX_ARRAYS];                /* elements */
    cpu_row row;
    const void *ctx;
    int64_t out_size;              /* of an element; 0: the output is not streamed */
    int64_t fetch[CPU_MAX_ARRAYS]; /* bytes for a line of output to fetch ahead */
} walk_job;

static void
move(char **data, const walk_job *job, int dim, int64_t steps)
{
    for (int j = 0; j < job->walk->narrays; j++) {
        data[j] += steps * job->strides[j][dim];
    }
}

#if defined(__SSE2__)
/* Fetches meanwhile what will be read soon. */
static void
store_and_fetch(const walk_job *job, char *const *data, char *to, const char *buffer, int64_t nbytes)
{
    uintptr_t ahead[CPU_MAX_ARRAYS]; /* maybe beyond the operand */
    int64_t steps[CPU_MAX_ARRAYS];
    int n = 0;
    for (int j = 1; j < job->walk->narrays; j++) {
        if (job->fetch[j] > 0) {
            ahead[n] = (uintptr_t)data[j] + (uintptr_t)(FETCH_AHEAD * STREAM_BUFFER / LINE * job->fetch[j]);
            steps[n++] = job->fetch[j];
        }
    }
    for (int64_t i = 0; i < nbytes; i += LINE) {
        cpu_store_around_caches(to + i, buffer + i, LINE);
        for (int j = 0; j < n; j++) {
            for (int64_t b = 0; b < steps[j]; b += LINE) {
                __builtin_prefetch((const void *)(ahead[j] + (uintptr_t)b));
            }
            ahead[j] += (uintptr_t)steps[j];
        }
    }
}

static void
stream_row(const walk_job *job, char *const *data, int64_t n)
{
    _Alignas(LINE) char buffer[STREAM_BUFFER];
    char *now[CPU_MAX_ARRAYS];
    const int64_t size = job->out_size;
    memcpy(now, data, sizeof(now));
    while (n > 0) {
        int64_t apart = -(intptr_t)now[0] & (LINE - 1), m = apart ? apart / size : CPU_MIN(n, STREAM_BUFFER / size);
        if (apart || m * size < LINE) {
            m = CPU_MIN(n, CPU_MAX(m, 1));
            job->row(now, job->inner, m, job->ctx);
        } else {
            m -= m % (LINE / size);
            char *to = now[0];
            now[0] = buffer;
            job->row(now, job->inner, m, job->ctx);
            now[0] = to;
            store_and_fetch(job, now, to, buffer, m * size);
        }
        for (int j = 0; j < job->walk->narrays; j++) {
            now[j] += m * job->strides[j][job->walk->ndim - 1];
        }
        n -= m;
    }
}
#endif

static inline void
run_row(const walk_job *job, char *const *data, int64_t n)
{
#if defined(__SSE2__)
    if (job->out_size > 0 && n * job->out_size >= STREAM_ROW) {
        stream_row(job, data, n);
        return;
    }
#endif
    job->row(data, job->inner, n, job->ctx);
}

static void
walk_part(void *ctx, int64_t begin, int64_t end)
{
    const walk_job *job = ctx;
    const int64_t *shape = job->walk->shape;
    int last = job->walk->ndim - 1;
    int64_t index[DT_MAX_NDIM], rest = begin;
    char *data[CPU_MAX_ARRAYS];
    memcpy(data, job->data, sizeof(data));
    for (int d = last; d >= 0; d--) {
        index[d] = rest % shape[d];
        rest /= shape[d];
        move(data, job, d, index[d]);
    }
    for (;;) {
        int64_t n = CPU_MIN(shape[last] - index[last], end - begin);
        run_row(job, data, n);
        begin += n;
        if (begin < end && index[last] != 0) { /* the first row may begin inside */
            move(data, job, last, -index[last]);
            index[last] = 0;
        }
        int d = last - 1;
        for (; end - begin >= shape[last] && index[d] + 1 < shape[d]; index[d]++, begin += shape[last]) {
            move(data, job, d, 1);
            run_row(job, data, shape[last]);
        }
        if (begin == end) {
            if (job->out_size > 0) {
                cpu_end_stores();
            }
            return;
        }
        for (; index[d] == shape[d] - 1; d--) {
            move(data, job, d, -index[d]);
            index[d] = 0;
        }
        index[d]++;
        move(data, job, d, 1);
    }
}

/* Whether the first array is large, written element after element, and none that is read; and whether all that is
 * touched is more than caches hold. What repeats along a dimension counts as nothing. */
static bool
is_streamed(const dt_walk *walk, const dt_array *const *arrays, int64_t itemsize)
{
    const char *out = dt_array_data(arrays[0]);
    int64_t touched = walk->numel * itemsize;
    bool streamed = touched >= CPU_STREAM_FROM && walk->ndim > 0 && walk->strides[0][walk->ndim - 1] == 1;
    for (int j = 1; j < walk->narrays && streamed; j++) {
        bool repeats = false;
        for (int d = 0; d < walk->ndim; d++) {
            repeats |= walk->strides[j][d] == 0;
        }
        touched += repeats ? 0 : walk->numel * (int64_t)dt_itemsize((dt_dtype)arrays[j]->dtype);
        streamed = dt_array_data(arrays[j]) != out;
    }
    return streamed && touched >= 2 * CPU_STREAM_FROM && (uintptr_t)out % (uintptr_t)itemsize == 0;
}

/* ---------------------------------------------------------------- short rows that repeat an operand */

/* Whether each row, short as it is, goes on where the last one ended, or begins again: x + bias of few channels. */
static bool
is_tiled(const dt_walk *walk)
{
    if (walk->ndim != 2 || walk->shape[1] > TILE / 2 || walk->numel < 2 * TILE) {
        return false;
    }
    bool tiled = walk->strides[0][0] != 0;
    for (int j = 0; j < walk->narrays && tiled; j++) {
        const int64_t *strides = walk->strides[j];
        tiled = strides[0] == strides[1] * walk->shape[1] || (strides[0] == 0 && strides[1] == 1);
    }
    return tiled;
}

/* Many rows become one, over copies of what they repeat. */
static DT_NOINLINE void
walk_tiles(walk_job *job)
{
    _Alignas(LINE) char tiles[CPU_MAX_ARRAYS][TILE * 8];
    dt_walk walk = *job->walk;
    const int64_t rows = TILE / walk.shape[1];
    walk.shape[0] = CPU_CEIL_DIV(walk.shape[0], rows);
    walk.shape[1] *= rows;
    for (int j = 0; j < walk.narrays; j++) {
        int64_t done = job->strides[j][1] * job->walk->shape[1], all = done * rows;
        if (job->strides[j][0] == done) {
            job->strides[j][0] = all;
            continue;
        }
        memcpy(tiles[j], job->data[j], (size_t)done);
        for (int64_t more; done < all; done += more) {
            more = CPU_MIN(done, all - done);
            memcpy(tiles[j] + done, tiles[j], (size_t)more);
        }
        job->data[j] = tiles[j];
        job->fetch[j] = 0;
    }
    job->walk = &walk;
    cpu_parallel(walk.numel, WALK_GRAIN, walk_part, job);
}

/* ---------------------------------------------------------------- any rows */

void
cpu_walk(const dt_walk *walk, const dt_array *const *arrays, cpu_row row, const void *ctx)
{
    walk_job job; /* not zeroed: most of it is room for dimensions */
    if (walk->ndim <= 1 && walk->numel < CPU_GRAIN) {
        for (int j = 0; j < walk->narrays; j++) {
            job.data[j] = dt_array_data(arrays[j]);
            job.inner[j] = walk->ndim > 0 ? walk->strides[j][0] : 0;
        }
        row(job.data, job.inner, walk->numel, ctx);
        return;
    }
    job.walk = walk;
    job.row = row;
    job.ctx = ctx;
    for (int j = 0; j < walk->narrays; j++) {
        int64_t itemsize = (int64_t)dt_itemsize((dt_dtype)arrays[j]->dtype);
        job.data[j] = dt_array_data(arrays[j]);
        job.inner[j] = 0;
        for (int d = 0; d < walk->ndim; d++) {
            job.inner[j] = walk->strides[j][d];
            job.strides[j][d] = walk->strides[j][d] * itemsize;
        }
    }
    int64_t out_size = (int64_t)dt_itemsize((dt_dtype)arrays[0]->dtype);
    job.out_size = is_streamed(walk, arrays, out_size) ? out_size : 0;
    for (int j = 1; j < walk->narrays && job.out_size > 0; j++) {
        const int64_t step = job.strides[j][walk->ndim - 1] * (LINE / out_size);
        job.fetch[j] = step <= FETCH_MOST ? step : 0;
    }
    if (is_tiled(walk)) {
        walk_tiles(&job);
    } else if (walk->numel > 0) {
        cpu_parallel(walk->numel, WALK_GRAIN, walk_part, &job);
    }
}

typedef struct {
    const dt_array *out;
    cpu_indexed_row row;
    const void *ctx;
} indexed_job;

static void
indexed_part(void *ctx, int64_t begin, int64_t end)
{
    const indexed_job *job = ctx;
    const dt_array *out = job->out;
    int last = out->ndim - 1;
    int64_t itemsize = (int64_t)dt_itemsize((dt_dtype)out->dtype);
    while (begin < end) {
        int64_t n = last < 0 ? 1 : CPU_MIN(end - begin, out->shape[last] - begin % out->shape[last]);
        int64_t offset = cpu_offset(out->ndim, out->shape, out->strides, begin);
        job->row((char *)dt_array_data(out) + offset * itemsize, last < 0 ? 0 : out->strides[last] * itemsize, begin, n,
                 job->ctx);
        begin += n;
    }
}

void
cpu_indexed_walk(const dt_array *out, cpu_indexed_row row, const void *ctx)
{
    dt_array whole = *out;
    if (whole.ndim > 1 && dt_array_is_contiguous(out)) {
        whole.shape[0] = dt_array_numel(out);
        whole.strides[0] = 1;
        whole.ndim = 1;
    }
    indexed_job job = {&whole, row, ctx};
    cpu_parallel(dt_array_numel(out), CPU_GRAIN, indexed_part, &job);
}
