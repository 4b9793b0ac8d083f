/* index.c: gather and scatter. Indices become offsets, a block of them at a time, checked; then rows are copied: what
 * is left of x where indices do not change any more, down to single elements. */
#include "../loops.h"
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

/* ---------------------------------------------------------------- places in order */

#define ARRAYS 3

/* Where an element stands in up to ARRAYS arrays of one shape, in elements; steps onward take no divisions. */
typedef struct {
    int ndim, narrays;
    const int64_t *shape, *strides[ARRAYS];
    int64_t at[DT_MAX_NDIM], offset[ARRAYS];
} counter;

static void
counter_set(counter *c, int64_t position)
{
    for (int d = c->ndim - 1; d >= 0; d--) {
        c->at[d] = position % c->shape[d];
        position /= c->shape[d];
    }
    for (int k = 0; k < c->narrays; k++) {
        c->offset[k] = 0;
        for (int d = 0; d < c->ndim; d++) {
            c->offset[k] += c->at[d] * c->strides[k][d];
        }
    }
}

/* n further along the last dimension, at most to its end. */
static void
counter_add(counter *c, int64_t n)
{
    int d = c->ndim - 1;
    c->at[d] += n;
    for (int k = 0; k < c->narrays; k++) {
        c->offset[k] += n * c->strides[k][d];
    }
    for (; d > 0 && c->at[d] == c->shape[d]; d--) {
        c->at[d] = 0;
        c->at[d - 1]++;
        for (int k = 0; k < c->narrays; k++) {
            c->offset[k] += c->strides[k][d - 1] - c->strides[k][d] * c->shape[d];
        }
    }
}

/* ---------------------------------------------------------------- gather */

typedef struct {
    cpu_places places;
    rows rows; /* from x to out */
    const dt_array *x, *out;
    const int64_t *offsets; /* along the last indexed dimension, where they are the same for all others */
    const int64_t *stretch; /* of each, how many keep the same step */
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

/* Of each of n offsets: how many that follow it keep the same step. */
static void
find_stretches(const int64_t *offsets, int64_t n, int64_t *stretch)
{
    for (int64_t i = n - 1; i >= 0; i--) {
        const bool last = i == n - 1,
                   same = i < n - 2 && offsets[i + 2] - offsets[i + 1] == offsets[i + 1] - offsets[i];
        stretch[i] = last ? 1 : same ? stretch[i + 1] + 1 : 2;
    }
}

/* n single elements of neighbours in out, in stretches: a part of a row as it is, turned round, or one element again
 * and again. */
static void
read_stretches(const gather_job *job, int64_t to, int64_t from, int64_t first, int64_t n)
{
    const rows *r = &job->rows;
    const int64_t *offsets = job->offsets + first, *stretch = job->stretch + first;
    char *data = (char *)dt_array_data(job->out) + to * r->itemsize;
    const char *in = (const char *)dt_array_data(job->x) + from * r->itemsize;
    for (int64_t i = 0, count; i < n; i += count) {
        count = CPU_MIN(n - i, stretch[i]);
        if (count > 8) {
            r->move((char *[]){data + i * r->itemsize, (char *)(uintptr_t)in + offsets[i] * r->itemsize},
                    (const int64_t[]){1, offsets[i + 1] - offsets[i]}, count, NULL);
            continue;
        }
        while (i + count < n && stretch[i + count] <= 8) { /* hardly worth a call each */
            count++;
        }
        readers[r->itemsize](data + i * r->itemsize, in, offsets + i, 1, count);
    }
}

/* Where the offsets are known. */
static void
gather_known_part(void *ctx, int64_t begin, int64_t end)
{
    const gather_job *job = ctx;
    const cpu_places *p = &job->places;
    const rows *r = &job->rows;
    const int last = p->ndim - 1;
    const int64_t out_step = job->out->strides[last], x_step = job->x->strides[last];
    counter c = {.ndim = p->ndim, .narrays = 2, .shape = p->shape, .strides = {job->x->strides, job->out->strides}};
    counter_set(&c, begin);
    while (begin < end) {
        const int64_t first = c.at[last], n = CPU_MIN(end - begin, p->shape[last] - first), to = c.offset[1];
        const int64_t *offsets = job->offsets + first, from = c.offset[0] - first * x_step;
        if (r->walk.numel == 1 && out_step == 1) {
            read_stretches(job, to, from, first, n);
        } else if (r->walk.numel == 1) {
            readers[r->itemsize]((char *)dt_array_data(job->out) + to * r->itemsize,
                                 (const char *)dt_array_data(job->x) + from * r->itemsize, offsets, out_step, n);
        } else {
            for (int64_t i = 0; i < n; i++) {
                copy_row(r, to + i * out_step, from + offsets[i]);
            }
        }
        begin += n;
        counter_add(&c, n);
    }
}

/* Whether one index chooses, the same entries of the last indexed dimension for all others, and of them there are many:
 * then the offsets are found once. */
static bool
is_the_same_everywhere(const gather_job *job, int64_t positions)
{
    const cpu_places *p = &job->places;
    bool same = p->by->n == 1 && p->ndim > 1 && positions / p->shape[p->ndim - 1] >= 4;
    for (int d = 0; same && d < p->ndim - 1; d++) {
        same = p->by->array[0].strides[d] == 0 || p->shape[d] == 1;
    }
    return same;
}

/* to[i] = from[index[i]] for n single elements, each array with its step; returns how many of them are in range before
 * one that is not. */
#define READ_BY(type, bits)                                                                                            \
    static int64_t by_##type##_##bits(char *to, const char *from, const char *index, const int64_t *steps,             \
                                      const dt_index *by, int64_t n)                                                   \
    {                                                                                                                  \
        word##bits *out = (word##bits *)(void *)to;                                                                    \
        const word##bits *in = (const word##bits *)(const void *)from;                                                 \
        const type *at = (const type *)(const void *)index;                                                            \
        const int64_t size = by->size[0], wrap = by->wraps ? size : 0, stride = by->stride[0];                         \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            int64_t place = *at;                                                                                       \
            place += place < 0 ? wrap : 0;                                                                             \
            if (DT_UNLIKELY((uint64_t)place >= (uint64_t)size)) {                                                      \
                return i;                                                                                              \
            }                                                                                                          \
            *out = in[place * stride];                                                                                 \
            in += steps[0];                                                                                            \
            out += steps[1];                                                                                           \
            at += steps[2];                                                                                            \
        }                                                                                                              \
        return n;                                                                                                      \
    }
#define READ_BY_ALL(type) READ_BY(type, 8) READ_BY(type, 16) READ_BY(type, 32) READ_BY(type, 64)
READ_BY_ALL(int32_t)
READ_BY_ALL(int64_t)

typedef int64_t (*read_by)(char *to, const char *from, const char *index, const int64_t *steps, const dt_index *by,
                           int64_t n);
static const read_by read_by_int32[] = {by_int32_t_8, by_int32_t_16, by_int32_t_32, by_int32_t_64};
static const read_by read_by_int64[] = {by_int64_t_8, by_int64_t_16, by_int64_t_32, by_int64_t_64};

static void
gather_each_part(void *ctx, int64_t begin, int64_t end)
{
    gather_job *job = ctx;
    cpu_places *p = &job->places;
    const dt_array *of[] = {job->x, job->out, &p->by->array[0]};
    const bool narrow = of[2]->dtype == DT_INT32;
    const int64_t itemsize = job->rows.itemsize, width = narrow ? 4 : 8;
    const int last = p->ndim - 1;
    const read_by read = (narrow ? read_by_int32 : read_by_int64)[cpu_size_index((size_t)itemsize)];
    const int64_t steps[] = {of[0]->strides[last], of[1]->strides[last], of[2]->strides[last]};
    counter c = {
        .ndim = p->ndim, .narrays = 3, .shape = p->shape, .strides = {of[0]->strides, of[1]->strides, of[2]->strides}};
    counter_set(&c, begin);
    while (begin < end) {
        const int64_t n = CPU_MIN(end - begin, p->shape[last] - c.at[last]);
        const int64_t good = read((char *)dt_array_data(of[1]) + c.offset[1] * itemsize,
                                  (const char *)dt_array_data(of[0]) + c.offset[0] * itemsize,
                                  (const char *)dt_array_data(of[2]) + c.offset[2] * width, steps, p->by, n);
        if (DT_UNLIKELY(good < n)) {
            cpu_note_bad(p, begin + good);
            return;
        }
        begin += n;
        counter_add(&c, n);
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
    cpu_body part = row == 1 && index->n == 1 && job.places.ndim > 0 ? gather_each_part : gather_part;
    if (is_the_same_everywhere(&job, positions)) {
        const int last = job.places.ndim - 1;
        const size_t nbytes = 2 * (size_t)out->shape[last] * sizeof(int64_t);
        int64_t *offsets = dt_malloc(nbytes);
        if (offsets == NULL) {
            return dt_fail_nomem(err, nbytes);
        }
        part = cpu_find_offsets(&job.places, 0, out->shape[last], x->strides[last], offsets) ? gather_known_part : NULL;
        find_stretches(offsets, part == NULL ? 0 : out->shape[last], offsets + out->shape[last]);
        job.offsets = offsets;
        job.stretch = offsets + out->shape[last];
    }
    if (part != NULL) { /* the threads share the positions, or each of few large rows */
        cpu_parallel(positions, row >= CPU_GRAIN ? positions : CPU_CEIL_DIV(CPU_GRAIN, row), part, &job);
    }
    dt_free((void *)(uintptr_t)job.offsets);
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
