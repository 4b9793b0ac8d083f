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

/* Where an element stands in ARRAYS arrays of one shape, in elements; steps onward take no divisions. */
typedef struct {
    int ndim;
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
    for (int k = 0; k < ARRAYS; k++) {
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
    for (int k = 0; k < ARRAYS; k++) {
        c->offset[k] += n * c->strides[k][d];
    }
    for (; d > 0 && c->at[d] == c->shape[d]; d--) {
        c->at[d] = 0;
        c->at[d - 1]++;
        for (int k = 0; k < ARRAYS; k++) {
            c->offset[k] += c->strides[k][d - 1] - c->strides[k][d] * c->shape[d];
        }
    }
}

/* Whole lines of the last dimension, up to the end of the dimension before it, or a part of one line. */
typedef struct {
    int64_t lines, n;
} block;

static block
block_from(const counter *c, int64_t left)
{
    const int last = c->ndim - 1;
    const int64_t n = CPU_MIN(left, c->shape[last] - c->at[last]);
    const bool whole = last > 0 && n == c->shape[last];
    return (block){whole ? CPU_MIN(left / n, c->shape[last - 1] - c->at[last - 1]) : 1, n};
}

/* Past that block, to this position. */
static void
counter_pass(counter *c, block passed, int64_t position)
{
    if (passed.lines > 1) {
        counter_set(c, position);
    } else {
        counter_add(c, passed.n);
    }
}

/* ---------------------------------------------------------------- gather */

/* Of a row of offsets, some that keep one step: a part of a row of x as it is, turned round, or one element again and
 * again; or some that do not. */
typedef struct {
    int64_t first, count, step;
    bool keeps;
} stretch;

typedef struct {
    cpu_places places;
    rows rows; /* from x to out */
    const dt_array *x, *out;
    int64_t *offsets;   /* along the last indexed dimension, where they are the same for all others */
    int outer;          /* an index that adds to all of a line; -1: none does */
    stretch *stretches; /* of the offsets; the last begins where they end */
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

#define SHORT 8 /* hardly worth a call */

static int64_t
length_of(const int64_t *offsets, int64_t n)
{
    int64_t count = CPU_MIN(n, 2);
    while (count < n && offsets[count] - offsets[count - 1] == offsets[1] - offsets[0]) {
        count++;
    }
    return count;
}

/* More than SHORT that keep one step are a stretch; what lies between two of those is one that keeps none. */
static void
find_stretches(const int64_t *offsets, int64_t n, stretch *found)
{
    for (int64_t i = 0; i < n; found++) {
        *found = (stretch){.first = i, .count = length_of(offsets + i, n - i)};
        found->keeps = found->count > SHORT;
        found->step = found->keeps ? offsets[i + 1] - offsets[i] : 0;
        i += found->keeps ? found->count : 1;
        while (!found->keeps && i < n && length_of(offsets + i, CPU_MIN(n - i, SHORT + 1)) <= SHORT) {
            i++;
        }
        found->count = i - found->first;
    }
    found->first = n;
}

/* Where in x the line at c and those after it begin; the outer index adds to each. Returns how many of them are in
 * range before one that is not. */
static int64_t
find_lines(const gather_job *job, const counter *c, int64_t lines, int64_t *from)
{
    const int last = c->ndim - 1;
    const int64_t *x_steps = c->strides[0], first = c->offset[0] - c->at[last] * x_steps[last];
    for (int64_t i = 0; i < lines; i++) {
        from[i] = first + i * x_steps[last - 1];
    }
    if (job->outer < 0) {
        return lines;
    }
    const dt_index *by = job->places.by;
    const dt_array *index = &by->array[job->outer];
    const char *data = (const char *)dt_array_data(index) + c->offset[2] * (int64_t)dt_itemsize((dt_dtype)index->dtype);
    return cpu_add_index(by, job->outer, data, c->strides[2][last - 1], lines, from);
}

/* The same n single elements of some lines, from entry `first` on, neighbours in out. */
#define READ_LINES(bits)                                                                                               \
    static void lines_##bits(const gather_job *job, int64_t to, const int64_t *from, int64_t first, block b)           \
    {                                                                                                                  \
        const cpu_row move = job->rows.move;                                                                           \
        const int64_t row = job->out->strides[job->places.ndim - 2], *offsets = job->offsets, end = first + b.n;       \
        word##bits *out = (word##bits *)(void *)dt_array_data(job->out) + to - first;                                  \
        for (int64_t line = 0; line < b.lines; line++, out += row) {                                                   \
            const word##bits *in = (const word##bits *)(const void *)dt_array_data(job->x) + from[line];               \
            for (const stretch *s = job->stretches; s->first < end; s++) {                                             \
                const int64_t begin = CPU_MAX(s->first, first), stop = CPU_MIN(s->first + s->count, end);              \
                if (begin >= stop) {                                                                                   \
                    continue;                                                                                          \
                }                                                                                                      \
                if (s->keeps && s->step == 1) {                                                                        \
                    memcpy(out + begin, in + offsets[begin], (size_t)(stop - begin) * sizeof(*out));                   \
                } else if (s->keeps) {                                                                                 \
                    move((char *[]){(char *)(out + begin), (char *)(uintptr_t)(in + offsets[begin])},                  \
                         (const int64_t[]){1, s->step}, stop - begin, NULL);                                           \
                } else {                                                                                               \
                    for (int64_t i = begin; i < stop; i++) {                                                           \
                        out[i] = in[offsets[i]];                                                                       \
                    }                                                                                                  \
                }                                                                                                      \
            }                                                                                                          \
        }                                                                                                              \
    }
READ_LINES(8)
READ_LINES(16)
READ_LINES(32)
READ_LINES(64)

typedef void (*read_lines)(const gather_job *job, int64_t to, const int64_t *from, int64_t first, block b);
static const read_lines line_readers[] = {[1] = lines_8, [2] = lines_16, [4] = lines_32, [8] = lines_64};

/* n neighbours of a line, from entry `first` on, which stands at `to` of out; `from`: where the line begins in x. */
static void
read_line(const gather_job *job, int64_t to, int64_t from, int64_t first, int64_t n)
{
    const rows *r = &job->rows;
    const int64_t *offsets = job->offsets + first, step = job->out->strides[job->places.ndim - 1];
    if (r->walk.numel == 1) {
        readers[r->itemsize]((char *)dt_array_data(job->out) + to * r->itemsize,
                             (const char *)dt_array_data(job->x) + from * r->itemsize, offsets, step, n);
    } else {
        for (int64_t i = 0; i < n; i++) {
            copy_row(r, to + i * step, from + offsets[i]);
        }
    }
}

/* Where the offsets are known. */
static void
gather_known_part(void *ctx, int64_t begin, int64_t end)
{
    gather_job *job = ctx;
    cpu_places *p = &job->places;
    const int last = p->ndim - 1;
    const int64_t *steps[ARRAYS] = {job->x->strides, job->out->strides, p->by->array[CPU_MAX(job->outer, 0)].strides};
    const bool single = job->rows.walk.numel == 1 && job->out->strides[last] == 1;
    counter c = {.ndim = p->ndim, .shape = p->shape, .strides = {steps[0], steps[1], steps[2]}};
    counter_set(&c, begin);
    while (begin < end) {
        int64_t from[BLOCK];
        block b = block_from(&c, end - begin);
        b.lines = CPU_MIN(b.lines, BLOCK);
        const int64_t first = c.at[last], good = find_lines(job, &c, b.lines, from);
        if (DT_UNLIKELY(good < b.lines)) {
            cpu_note_bad(p, begin + good * b.n);
            return;
        }
        if (single) {
            line_readers[job->rows.itemsize](job, c.offset[1], from, first, b);
        } else {
            for (int64_t line = 0; line < b.lines; line++) {
                read_line(job, c.offset[1] + line * steps[1][last - 1], from[line], first, b.n);
            }
        }
        begin += b.lines * b.n;
        counter_pass(&c, b, begin);
    }
}

/* Whether the same entries of the last indexed dimension are chosen for all others, and of them there are many: then
 * the offsets are found once. One index may choose in the others, if it does not change along the last. */
static bool
is_the_same_everywhere(gather_job *job, int64_t positions)
{
    const cpu_places *p = &job->places;
    const int last = p->ndim - 1;
    bool same = p->ndim > 1 && positions / p->shape[last] >= 4;
    job->outer = -1;
    for (int k = 0; same && k < p->by->n; k++) {
        const int64_t *strides = p->by->array[k].strides;
        bool outer = false;
        for (int d = 0; d < last; d++) {
            outer |= strides[d] != 0 && p->shape[d] > 1;
        }
        same = !outer || (job->outer < 0 && (strides[last] == 0 || p->shape[last] == 1));
        job->outer = outer ? k : job->outer;
    }
    return same;
}

/* *good: all offsets are in range. */
static dt_status
find_known(gather_job *job, bool *good, dt_error *err)
{
    cpu_places *p = &job->places;
    const int last = p->ndim - 1;
    const int64_t n = p->shape[last];
    const size_t nbytes = (size_t)n * sizeof(*job->offsets) + (size_t)(n + 1) * sizeof(*job->stretches);
    job->stretches = dt_malloc(nbytes);
    if (job->stretches == NULL) {
        return dt_fail_nomem(err, nbytes);
    }
    job->offsets = (int64_t *)(job->stretches + n + 1);
    *good = cpu_find_offsets(p, 0, n, job->x->strides[last], job->offsets);
    if (*good && job->outer >= 0) { /* they have what it adds to the first line */
        int64_t added = 0;
        *good = cpu_add_index(p->by, job->outer, dt_array_data(&p->by->array[job->outer]), 0, 1, &added) == 1;
        for (int64_t i = 0; i < n; i++) {
            job->offsets[i] -= added;
        }
    }
    if (*good && job->rows.walk.numel == 1) {
        find_stretches(job->offsets, n, job->stretches);
    }
    return DT_OK;
}

/* to[i] = from[index[i]] for n single elements of each of some lines: steps of from, to and index along a line, then
 * from line to line; those of most calls are known. Returns how many of them are in range before one that is not. */
#define READ_BY(type, bits)                                                                                            \
    static inline int64_t line_##type##_##bits(word##bits *out, int64_t out_step, const word##bits *in,                \
                                               int64_t in_step, const type *at, int64_t at_step, const dt_index *by,   \
                                               int64_t n)                                                              \
    {                                                                                                                  \
        const int64_t size = by->size[0], wrap = by->wraps ? size : 0, stride = by->stride[0];                         \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            int64_t place = at[i * at_step];                                                                           \
            place += place < 0 ? wrap : 0;                                                                             \
            if (DT_UNLIKELY((uint64_t)place >= (uint64_t)size)) {                                                      \
                return i;                                                                                              \
            }                                                                                                          \
            out[i * out_step] = in[i * in_step + place * stride];                                                      \
        }                                                                                                              \
        return n;                                                                                                      \
    }                                                                                                                  \
    static int64_t by_##type##_##bits(char *to, const char *from, const char *index, const int64_t(*steps)[ARRAYS],    \
                                      const dt_index *by, int64_t lines, int64_t n)                                    \
    {                                                                                                                  \
        const bool along = steps[0][0] == 0 && steps[0][1] == 1 && steps[0][2] == 1;                                   \
        for (int64_t row = 0; row < lines; row++) {                                                                    \
            const word##bits *in = (const word##bits *)(const void *)from + row * steps[1][0];                         \
            word##bits *out = (word##bits *)(void *)to + row * steps[1][1];                                            \
            const type *at = (const type *)(const void *)index + row * steps[1][2];                                    \
            const int64_t good =                                                                                       \
                along ? line_##type##_##bits(out, 1, in, 0, at, 1, by, n)                                              \
                      : line_##type##_##bits(out, steps[0][1], in, steps[0][0], at, steps[0][2], by, n);               \
            if (DT_UNLIKELY(good < n)) {                                                                               \
                return row * n + good;                                                                                 \
            }                                                                                                          \
        }                                                                                                              \
        return lines * n;                                                                                              \
    }
#define READ_BY_ALL(type) READ_BY(type, 8) READ_BY(type, 16) READ_BY(type, 32) READ_BY(type, 64)
READ_BY_ALL(int32_t)
READ_BY_ALL(int64_t)

typedef int64_t (*read_by)(char *to, const char *from, const char *index, const int64_t (*steps)[ARRAYS],
                           const dt_index *by, int64_t lines, int64_t n);
static const read_by read_by_int32[] = {by_int32_t_8, by_int32_t_16, by_int32_t_32, by_int32_t_64};
static const read_by read_by_int64[] = {by_int64_t_8, by_int64_t_16, by_int64_t_32, by_int64_t_64};

static void
gather_each_part(void *ctx, int64_t begin, int64_t end)
{
    gather_job *job = ctx;
    cpu_places *p = &job->places;
    const dt_array *of[ARRAYS] = {job->x, job->out, &p->by->array[0]};
    const bool narrow = of[2]->dtype == DT_INT32;
    const int64_t itemsize = job->rows.itemsize, width = narrow ? 4 : 8;
    const int last = p->ndim - 1, before = CPU_MAX(last - 1, 0);
    const read_by read = (narrow ? read_by_int32 : read_by_int64)[cpu_size_index((size_t)itemsize)];
    int64_t steps[2][ARRAYS];
    counter c = {.ndim = p->ndim, .shape = p->shape, .strides = {of[0]->strides, of[1]->strides, of[2]->strides}};
    for (int k = 0; k < ARRAYS; k++) {
        steps[0][k] = of[k]->strides[last];
        steps[1][k] = of[k]->strides[before];
    }
    counter_set(&c, begin);
    while (begin < end) {
        const block b = block_from(&c, end - begin);
        const int64_t good = read((char *)dt_array_data(of[1]) + c.offset[1] * itemsize,
                                  (const char *)dt_array_data(of[0]) + c.offset[0] * itemsize,
                                  (const char *)dt_array_data(of[2]) + c.offset[2] * width,
                                  (const int64_t(*)[ARRAYS])steps, p->by, b.lines, b.n);
        if (DT_UNLIKELY(good < b.lines * b.n)) {
            cpu_note_bad(p, begin + good);
            return;
        }
        begin += b.lines * b.n;
        counter_pass(&c, b, begin);
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
        bool good;
        DT_TRY(find_known(&job, &good, err));
        part = good ? gather_known_part : NULL;
    }
    if (part != NULL) { /* the threads share the positions, or each of few large rows */
        cpu_parallel(positions, row >= CPU_GRAIN ? positions : CPU_CEIL_DIV(CPU_GRAIN, row), part, &job);
    }
    dt_free(job.stretches);
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
