/* scatter_add.c: sums at the places that indices choose. Each thread owns a range of places, looks at all indices and
 * adds what goes there, in order: the same bits for any number of threads. */
#include "../loops.h"
#include "places.h"

#define BLOCK 512
#define SPARE 16

/* ---------------------------------------------------------------- single elements */

/* Adds in order the n values, so many elements apart, whose offset is from begin to end. Others go to spare places: no
 * processor could guess which they are. They are several, so that they need not wait for each other. */
typedef void (*add_elements)(void *to, const void *from, const int64_t *offsets, int64_t step, int64_t n, int64_t begin,
                             int64_t end);

#define ADD_ELEMENTS(name, X, V, sum)                                                                                  \
    static void add_##name(void *to, const void *from, const int64_t *offsets, int64_t step, int64_t n, int64_t begin, \
                           int64_t end)                                                                                \
    {                                                                                                                  \
        X *const x = to, spare[SPARE] = {0}, *places[SPARE];                                                           \
        const V *values = from;                                                                                        \
        for (int64_t i = 0; i < n; i += SPARE) {                                                                       \
            const int64_t m = CPU_MIN(SPARE, n - i);                                                                   \
            for (int64_t k = 0; k < m; k++) {                                                                          \
                const bool own = (uint64_t)(offsets[i + k] - begin) < (uint64_t)(end - begin);                         \
                places[k] = own ? x + offsets[i + k] : spare + k;                                                      \
            }                                                                                                          \
            for (int64_t k = 0; k < m; k++) {                                                                          \
                const X a = *places[k];                                                                                \
                const V b = values[(i + k) * step];                                                                    \
                *places[k] = (X)(sum);                                                                                 \
            }                                                                                                          \
        }                                                                                                              \
    }
ADD_ELEMENTS(bool, uint8_t, uint8_t, a | b)
ADD_ELEMENTS(uint8, uint8_t, uint8_t, a + b)
ADD_ELEMENTS(uint16, uint16_t, uint16_t, a + b)
ADD_ELEMENTS(uint32, uint32_t, uint32_t, a + b)
ADD_ELEMENTS(uint64, uint64_t, uint64_t, a + b)
ADD_ELEMENTS(float16, float, dt_float16, a + dt_f16_to_f32(b))
ADD_ELEMENTS(bfloat16, float, dt_bfloat16, a + dt_bf16_to_f32(b))
ADD_ELEMENTS(float32, float, float, a + b)
ADD_ELEMENTS(float64, double, double, a + b)

/* by the dtype of the values; integers wrap */
static const add_elements adders[DT_NDTYPES] = {
    [DT_BOOL] = add_bool,       [DT_UINT8] = add_uint8,     [DT_INT8] = add_uint8,      [DT_INT16] = add_uint16,
    [DT_INT32] = add_uint32,    [DT_INT64] = add_uint64,    [DT_FLOAT16] = add_float16, [DT_BFLOAT16] = add_bfloat16,
    [DT_FLOAT32] = add_float32, [DT_FLOAT64] = add_float64,
};

/* ---------------------------------------------------------------- rows */

/* A row of the value is added to one of x: over x, x and value. */
typedef struct {
    dt_array x, value;
    dt_walk walk;
    cpu_row add, load; /* load: of a half type to float32, else NULL */
} row_sum;

static void
add_loaded(char *const *data, const int64_t *strides, int64_t n, const void *ctx)
{
    const row_sum *r = ctx;
    _Alignas(64) float block[BLOCK];
    for (int64_t i = 0; i < n; i += BLOCK) {
        const int64_t m = CPU_MIN(BLOCK, n - i);
        char *const out = data[0] + i * strides[0] * (int64_t)sizeof(float);
        char *const x = data[1] + i * strides[1] * (int64_t)sizeof(float);
        r->load((char *[]){(char *)block, data[2] + i * strides[2] * 2}, (const int64_t[]){1, strides[2]}, m, NULL);
        r->add((char *[]){out, x, (char *)block}, (const int64_t[]){strides[0], strides[1], 1}, m, NULL);
    }
}

static void
row_sum_init(row_sum *r, const dt_array *x, const dt_array *value, int dim)
{
    r->x = *x;
    r->value = *value;
    dt_array *both[] = {&r->x, &r->value};
    for (int k = 0; k < 2; k++) {
        both[k]->ndim = (uint8_t)(x->ndim - dim);
        memmove(both[k]->shape, x->shape + dim, both[k]->ndim * sizeof(int64_t));
        memmove(both[k]->strides, both[k]->strides + dim, both[k]->ndim * sizeof(int64_t));
    }
    dt_walk_init(&r->walk, 3, (const dt_array *[]){&r->x, &r->x, &r->value});
    r->add = cpu_loops_here()->ops[x->dtype]->binary[x->dtype == DT_BOOL ? DT_BINARY_bitwise_or : DT_BINARY_add];
    r->load = value->dtype == x->dtype ? NULL : cpu_cast_row((dt_dtype)value->dtype, (dt_dtype)x->dtype);
}

/* Offsets in elements. */
static void
add_row(const row_sum *r, int64_t to, int64_t from)
{
    const int64_t x_bytes = to * (int64_t)dt_itemsize((dt_dtype)r->x.dtype);
    const int64_t value_bytes = from * (int64_t)dt_itemsize((dt_dtype)r->value.dtype);
    const cpu_row row = r->load == NULL ? r->add : add_loaded;
    if (r->walk.ndim == 1 && r->walk.numel < CPU_GRAIN) {
        char *const x = (char *)dt_array_data(&r->x) + x_bytes, *value = (char *)dt_array_data(&r->value) + value_bytes;
        const int64_t step = r->walk.strides[0][0];
        row((char *[]){x, x, value}, (const int64_t[]){step, step, r->walk.strides[2][0]}, r->walk.numel, r);
        return;
    }
    dt_array x = r->x, value = r->value;
    x.offset += x_bytes;
    value.offset += value_bytes;
    cpu_walk(&r->walk, (const dt_array *[]){&x, &x, &value}, row, r);
}

/* ---------------------------------------------------------------- all of it */

/* x over the shape of value: dimensions before the indexed ones, those, and a row. */
typedef struct {
    cpu_places places;
    int64_t *offsets; /* of every position */
    int64_t positions, before;
    row_sum rows;
    const dt_array *value, *x;
} job;

/* The dimensions from the first to the last along which an index changes, or several elements meet. */
static void
find_indexed_dims(const dt_index *by, const dt_array *x, cpu_places *p)
{
    p->first = p->ndim = 0;
    for (int d = 0; d < x->ndim; d++) {
        bool indexed = x->strides[d] == 0;
        for (int k = 0; k < by->n; k++) {
            indexed = indexed || by->array[k].strides[d] != 0;
        }
        if (indexed && x->shape[d] > 1) {
            p->first = p->ndim == 0 ? d : p->first;
            p->ndim = d + 1 - p->first;
        }
    }
    p->shape = x->shape + p->first;
}

static void
find_offsets_part(void *ctx, int64_t begin, int64_t end)
{
    job *j = ctx;
    cpu_places *p = &j->places;
    const int64_t *strides = j->x->strides + p->first;
    while (begin < end) {
        const int64_t n = CPU_MIN(end - begin, cpu_run_from(p, begin));
        const int64_t base = cpu_offset(p->ndim, p->shape, strides, begin);
        if (!cpu_find_offsets(p, begin, n, p->ndim > 0 ? strides[p->ndim - 1] : 0, j->offsets + begin)) {
            return;
        }
        for (int64_t i = 0; i < n; i++) {
            j->offsets[begin + i] += base;
        }
        begin += n;
    }
}

/* How many offsets there are: none is negative. */
static int64_t
range_of(const job *j)
{
    const cpu_places *p = &j->places;
    int64_t range = 1;
    for (int d = 0; d < p->ndim; d++) {
        range += (p->shape[d] - 1) * j->x->strides[p->first + d];
    }
    for (int k = 0; k < p->by->n; k++) {
        range += (p->by->size[k] - 1) * p->by->stride[k];
    }
    return range;
}

/* Positions that follow each other along the last indexed dimension. */
static void
add_run(const job *j, int64_t to, int64_t from, int64_t step, const int64_t *offsets, int64_t n, int64_t begin,
        int64_t end)
{
    const dt_array *x = j->x, *value = j->value;
    if (j->rows.walk.numel == 1) {
        adders[value->dtype]((char *)dt_array_data(x) + to * (int64_t)dt_itemsize((dt_dtype)x->dtype),
                             (char *)dt_array_data(value) + from * (int64_t)dt_itemsize((dt_dtype)value->dtype),
                             offsets, step, n, begin, end);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        if (offsets[i] >= begin && offsets[i] < end) {
            add_row(&j->rows, to + offsets[i], from + i * step);
        }
    }
}

/* What goes to the places from begin to end. */
static void
add_part(void *ctx, int64_t begin, int64_t end)
{
    const job *j = ctx;
    const cpu_places *p = &j->places;
    const dt_array *x = j->x, *value = j->value;
    const int64_t step = p->ndim > 0 ? value->strides[p->first + p->ndim - 1] : 0;
    for (int64_t b = 0; b < j->before; b++) {
        const int64_t to = cpu_offset(p->first, x->shape, x->strides, b);
        const int64_t from = cpu_offset(p->first, x->shape, value->strides, b);
        for (int64_t i = 0; i < j->positions;) {
            const int64_t n = cpu_run_from(p, i);
            add_run(j, to, from + cpu_offset(p->ndim, p->shape, value->strides + p->first, i), step, j->offsets + i, n,
                    begin, end);
            i += n;
        }
    }
}

dt_status
cpu_scatter_add(const dt_array *value, const dt_index *index, dt_array *x, dt_error *err)
{
    job j = {.places = {.by = index}, .positions = 1, .before = 1, .value = value, .x = x};
    atomic_init(&j.places.bad, INT64_MAX);
    find_indexed_dims(index, x, &j.places);
    for (int d = 0; d < j.places.first + j.places.ndim; d++) {
        *(d < j.places.first ? &j.before : &j.positions) *= x->shape[d];
    }
    const int64_t range = range_of(&j);
    const size_t nbytes = (size_t)j.positions * sizeof(*j.offsets);
    j.offsets = dt_malloc(nbytes);
    if (j.offsets == NULL) {
        return dt_fail_nomem(err, nbytes);
    }
    cpu_parallel(j.positions, CPU_GRAIN, find_offsets_part, &j);
    dt_status rc = cpu_check_range(&j.places, err);
    if (rc == DT_OK) {
        row_sum_init(&j.rows, x, value, j.places.first + j.places.ndim);
        /* the threads share the places, or each of the large rows */
        const int64_t row = j.rows.walk.numel, parts = row >= CPU_GRAIN ? 1 : dt_array_numel(x) / CPU_GRAIN;
        cpu_parallel(range, parts < 2 ? range : CPU_CEIL_DIV(range, parts), add_part, &j);
    }
    dt_free(j.offsets);
    return rc;
}
