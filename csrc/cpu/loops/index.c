/* index.c: gather and scatter. Indices become offsets, a block of them at a time, checked; then rows are copied: what
 * is left of x where indices do not change any more, down to single elements. */
#include "places.h"

#define BLOCK 256

/* ---------------------------------------------------------------- rows */

/* Copies of rows of one shape; array 0 is written. */
typedef struct {
    dt_array to, from;
    dt_walk walk;
    cpu_row move;
    int64_t itemsize;
} rows;

static void
rows_init(rows *r, const dt_array *to, const dt_array *from, int dim)
{
    r->to = *to;
    r->from = *from;
    dt_array *both[] = {&r->to, &r->from};
    for (int k = 0; k < 2; k++) {
        both[k]->ndim = (uint8_t)(to->ndim - dim);
        memmove(both[k]->shape, to->shape + dim, both[k]->ndim * sizeof(int64_t));
        memmove(both[k]->strides, both[k]->strides + dim, both[k]->ndim * sizeof(int64_t));
    }
    dt_walk_init(&r->walk, 2, (const dt_array *[]){&r->to, &r->from});
    r->move = cpu_cast_row((dt_dtype)to->dtype, (dt_dtype)to->dtype);
    r->itemsize = (int64_t)dt_itemsize((dt_dtype)to->dtype);
}

/* Offsets in elements; an immediate has none. */
static void
copy_row(const rows *r, int64_t to, int64_t from)
{
    if (r->walk.ndim <= 1) {
        char *data[] = {(char *)dt_array_data(&r->to) + to * r->itemsize,
                        (char *)dt_array_data(&r->from) + from * r->itemsize};
        int64_t strides[] = {r->walk.ndim ? r->walk.strides[0][0] : 1, r->walk.ndim ? r->walk.strides[1][0] : 1};
        r->move(data, strides, r->walk.numel, NULL);
        return;
    }
    dt_array a = r->to, b = r->from;
    a.offset += to * r->itemsize;
    if (b.storage != NULL) {
        b.offset += from * r->itemsize;
    }
    cpu_walk(&r->walk, (const dt_array *[]){&a, &b}, r->move, NULL);
}

/* Single elements: to[i * step] = from[offsets[i]], or to[offsets[i]] = from[i * step]. */
#define MOVE_ELEMENTS(bits)                                                                                            \
    typedef uint##bits##_t __attribute__((may_alias)) word##bits;                                                      \
    static void read_##bits(char *to, const char *from, const int64_t *offsets, int64_t step, int64_t n)               \
    {                                                                                                                  \
        word##bits *out = (word##bits *)(void *)to;                                                                    \
        const word##bits *in = (const word##bits *)(const void *)from;                                                 \
        CPU_INDEPENDENT                                                                                                \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            out[i * step] = in[offsets[i]];                                                                            \
        }                                                                                                              \
    }                                                                                                                  \
    static void write_##bits(char *to, const char *from, const int64_t *offsets, int64_t step, int64_t n)              \
    {                                                                                                                  \
        word##bits *out = (word##bits *)(void *)to;                                                                    \
        const word##bits *in = (const word##bits *)(const void *)from;                                                 \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            out[offsets[i]] = in[i * step];                                                                            \
        }                                                                                                              \
    }
MOVE_ELEMENTS(8)
MOVE_ELEMENTS(16)
MOVE_ELEMENTS(32)
MOVE_ELEMENTS(64)

typedef void (*move_elements)(char *to, const char *from, const int64_t *offsets, int64_t step, int64_t n);

static const move_elements readers[] = {[1] = read_8, [2] = read_16, [4] = read_32, [8] = read_64};
static const move_elements writers[] = {[1] = write_8, [2] = write_16, [4] = write_32, [8] = write_64};

/* ---------------------------------------------------------------- gather */

typedef struct {
    cpu_places places;
    rows rows; /* from x to out */
    const dt_array *x, *out;
} gather_job;

static void
gather_part(void *ctx, int64_t begin, int64_t end)
{
    gather_job *job = ctx;
    cpu_places *p = &job->places;
    const dt_array *x = job->x, *out = job->out;
    const rows *r = &job->rows;
    int last = p->ndim - 1;
    int64_t offsets[BLOCK], x_step = last < 0 ? 0 : x->strides[last], out_step = last < 0 ? 0 : out->strides[last];
    while (begin < end) {
        int64_t n = CPU_MIN(CPU_MIN(end - begin, BLOCK), cpu_run_from(p, begin));
        int64_t from = cpu_offset(p->ndim, p->shape, x->strides, begin);
        int64_t to = cpu_offset(p->ndim, p->shape, out->strides, begin);
        if (!cpu_find_offsets(p, begin, n, x_step, offsets)) {
            return;
        }
        if (r->walk.numel == 1) {
            readers[r->itemsize]((char *)dt_array_data(out) + to * r->itemsize,
                                 (const char *)dt_array_data(x) + from * r->itemsize, offsets, out_step, n);
        } else {
            for (int64_t i = 0; i < n; i++) {
                copy_row(r, to + i * out_step, from + offsets[i]);
            }
        }
        begin += n;
    }
}

/* The dimensions after which no index changes any more. */
static int
indexed_dims(const dt_index *by, const dt_array *x)
{
    int n = 0;
    for (int k = 0; k < by->n; k++) {
        for (int d = n; d < x->ndim; d++) {
            n = by->array[k].strides[d] != 0 && x->shape[d] > 1 ? d + 1 : n;
        }
    }
    return n;
}

dt_status
cpu_gather(const dt_array *x, const dt_index *index, dt_array *out, dt_error *err)
{
    gather_job job = {.places = {.by = index, .ndim = indexed_dims(index, x), .shape = out->shape}, .x = x, .out = out};
    atomic_init(&job.places.bad, INT64_MAX);
    rows_init(&job.rows, out, x, job.places.ndim);
    int64_t row = job.rows.walk.numel, positions = dt_array_numel(out) / row;
    /* the threads share the positions, or each of few large rows */
    cpu_parallel(positions, row >= CPU_GRAIN ? positions : CPU_CEIL_DIV(CPU_GRAIN, row), gather_part, &job);
    return cpu_check_range(&job.places, err);
}

/* ---------------------------------------------------------------- scatter */

typedef struct {
    cpu_places places;
    int64_t *offsets; /* of every position */
    int64_t positions;
    rows rows; /* from value to x */
    const dt_array *value, *x;
} scatter_job;

static void
find_offsets_part(void *ctx, int64_t begin, int64_t end)
{
    scatter_job *job = ctx;
    cpu_places *p = &job->places;
    while (begin < end) {
        int64_t n = CPU_MIN(end - begin, cpu_run_from(p, begin));
        if (!cpu_find_offsets(p, begin, n, 0, job->offsets + begin)) {
            return;
        }
        begin += n;
    }
}

/* Items are the entries of the dimensions before the indexed ones, times the positions. */
static void
scatter_part(void *ctx, int64_t begin, int64_t end)
{
    const scatter_job *job = ctx;
    const cpu_places *p = &job->places;
    const dt_array *value = job->value, *x = job->x;
    const rows *r = &job->rows;
    int64_t step = p->ndim > 0 ? value->strides[p->first + p->ndim - 1] : 0;
    while (begin < end) {
        int64_t before = begin / job->positions, position = begin % job->positions;
        int64_t n = CPU_MIN(end - begin, cpu_run_from(p, position));
        int64_t to = cpu_offset(p->first, x->shape, x->strides, before);
        int64_t from = cpu_offset(p->first, x->shape, value->strides, before) +
                       cpu_offset(p->ndim, p->shape, value->strides + p->first, position);
        const int64_t *offsets = job->offsets + position;
        if (r->walk.numel == 1) {
            writers[r->itemsize]((char *)dt_array_data(x) + to * r->itemsize,
                                 (const char *)dt_array_data(value) + from * r->itemsize, offsets, step, n);
        } else {
            for (int64_t i = 0; i < n; i++) {
                copy_row(r, to + offsets[i], from + i * step);
            }
        }
        begin += n;
    }
}

dt_status
cpu_scatter(const dt_array *value, const dt_index *index, dt_array *x, dt_error *err)
{
    int64_t before = 1;
    scatter_job job = {
        .places = {.by = index, .first = index->first, .ndim = index->ndim, .shape = x->shape + index->first},
        .positions = 1,
        .value = value,
        .x = x,
    };
    atomic_init(&job.places.bad, INT64_MAX);
    for (int d = 0; d < index->first + index->ndim; d++) {
        *(d < index->first ? &before : &job.positions) *= x->shape[d];
    }
    size_t nbytes = (size_t)job.positions * sizeof(*job.offsets);
    job.offsets = dt_malloc(nbytes);
    if (job.offsets == NULL) {
        return dt_fail_nomem(err, nbytes);
    }
    cpu_parallel(job.positions, CPU_GRAIN, find_offsets_part, &job);
    dt_status rc = cpu_check_range(&job.places, err);
    if (rc == DT_OK) {
        rows_init(&job.rows, x, value, index->first + index->ndim);
        int64_t row = job.rows.walk.numel, items = before * job.positions;
        int64_t grain = row >= CPU_GRAIN ? items : CPU_CEIL_DIV(CPU_GRAIN, row);
        if (index->any_order) {
            cpu_parallel(items, grain, scatter_part, &job);
        } else { /* the last of equal places must come last */
            scatter_part(&job, 0, items);
        }
    }
    dt_free(job.offsets);
    return rc;
}
