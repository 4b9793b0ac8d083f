/* sort.c: rows in order. Each element becomes a number with its position in the row, which are sorted: few by merges,
 * many by digits of 8 bits. Where only some of the order are asked for, those that cannot be among them are left out.
 */
#include "../../cpu.h"

#include "../../../core/memory/memory.h"

#define INSERTED 16 /* items that are sorted by insertion */
#define MERGED 64   /* by merges */
#define PARTED 1024 /* of which some are found by parting them in two */
#define DIGITS 256
#define PIECE 65536     /* of a long row: a thread takes some */
#define SKIPPED 32      /* elements that are left out together, or whose keys are made */
#define BATCH (1 << 20) /* items that are sorted at a time, in rows */
#define SELECTED 16     /* the first of so many are selected */

/* Where 64 bits have no room for a key and a position. */
typedef struct {
    uint64_t key, position;
} wide_item;

typedef void (*make_keys)(const void *x, int64_t step, int64_t first, int64_t n, int descending, void *items);
typedef int (*precedes)(const void *x, int64_t step, int64_t n, int descending, const void *limit);
typedef void (*take_elements)(const void *x, int64_t x_step, const int64_t *indices, int64_t indices_step, void *out,
                              int64_t out_step, int64_t n);

typedef struct sort_job {
    const char *x;
    char *out;
    int64_t *indices;
    int ndim;
    const int64_t *shape, *x_strides, *out_strides, *indices_strides;
    int64_t size, n, first, k, x_step, out_step, indices_step;
    int64_t room, ncounts; /* items of a row, twice; numbers that count its digits */
    make_keys keys;
    precedes may_precede;
    take_elements take;
    bool wide, selects;
    int descending, first_bit;
    int64_t first_row;
    char *memory;
    int64_t *counts;
} sort_job;

#undef bool /* as a macro it would spoil the pasting of NAME */
#define DT_EACH "../cpu/loops/reduce/sort.inc"
#include "../../../core/each_dtype.inc"
#undef DT_EACH
#define bool _Bool

static const make_keys narrow_keys[DT_NDTYPES] = {
    [DT_BOOL] = narrow_keys_bool,       [DT_UINT8] = narrow_keys_uint8,       [DT_INT8] = narrow_keys_int8,
    [DT_INT16] = narrow_keys_int16,     [DT_INT32] = narrow_keys_int32,       [DT_INT64] = narrow_keys_int64,
    [DT_FLOAT16] = narrow_keys_float16, [DT_BFLOAT16] = narrow_keys_bfloat16, [DT_FLOAT32] = narrow_keys_float32,
    [DT_FLOAT64] = narrow_keys_float64,
};
static const make_keys wide_keys[DT_NDTYPES] = {
    [DT_BOOL] = wide_keys_bool,       [DT_UINT8] = wide_keys_uint8,       [DT_INT8] = wide_keys_int8,
    [DT_INT16] = wide_keys_int16,     [DT_INT32] = wide_keys_int32,       [DT_INT64] = wide_keys_int64,
    [DT_FLOAT16] = wide_keys_float16, [DT_BFLOAT16] = wide_keys_bfloat16, [DT_FLOAT32] = wide_keys_float32,
    [DT_FLOAT64] = wide_keys_float64,
};
static const precedes may_precede[DT_NDTYPES] = {
    [DT_BOOL] = may_precede_bool,       [DT_UINT8] = may_precede_uint8,       [DT_INT8] = may_precede_int8,
    [DT_INT16] = may_precede_int16,     [DT_INT32] = may_precede_int32,       [DT_INT64] = may_precede_int64,
    [DT_FLOAT16] = may_precede_float16, [DT_BFLOAT16] = may_precede_bfloat16, [DT_FLOAT32] = may_precede_float32,
    [DT_FLOAT64] = may_precede_float64,
};

/* by the size of an element */
#define TAKE(T)                                                                                                        \
    static void take_##T(const void *from, int64_t x_step, const int64_t *indices, int64_t indices_step, void *to,     \
                         int64_t out_step, int64_t n)                                                                  \
    {                                                                                                                  \
        const T *x = from;                                                                                             \
        T *out = to;                                                                                                   \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            out[i * out_step] = x[indices[i * indices_step] * x_step];                                                 \
        }                                                                                                              \
    }
TAKE(uint8_t)
TAKE(uint16_t)
TAKE(uint32_t)
TAKE(uint64_t)
static const take_elements takes[] = {take_uint8_t, take_uint16_t, take_uint32_t, take_uint64_t};

#define ITEM uint64_t
#define ITEMS(name) narrow_##name
#define BEFORE(a, b) ((a) < (b))
#define DIGIT(a, bit) ((a) >> (bit)&0xff)
#define POSITION(a, bit) ((a) & (((uint64_t)1 << (bit)) - 1))
#include "sort_items.inc"
#undef ITEM
#undef ITEMS
#undef BEFORE
#undef DIGIT
#undef POSITION

#define ITEM wide_item
#define ITEMS(name) wide_##name
#define BEFORE(a, b) ((a).key < (b).key || ((a).key == (b).key && (a).position < (b).position))
#define DIGIT(a, bit) ((a).key >> (bit)&0xff)
#define POSITION(a, bit) ((void)(bit), (a).position)
#include "sort_items.inc"
#undef ITEM
#undef ITEMS
#undef BEFORE
#undef DIGIT
#undef POSITION

static void
rows_part(void *ctx, int64_t begin, int64_t end)
{
    const sort_job *job = ctx;
    const int64_t item = job->wide ? (int64_t)sizeof(wide_item) : (int64_t)sizeof(uint64_t);
    for (int64_t i = begin; i < end; i++) {
        char *memory = job->memory + 2 * job->room * item * i;
        (job->wide ? wide_row : narrow_row)(job, job->first_row + i, memory, job->counts + i * job->ncounts);
    }
}

dt_status
cpu_sort(const dt_array *x, bool descending, int64_t first, dt_array *out, dt_array *indices, dt_error *err)
{
    const int last = x->ndim - 1;
    const dt_dtype dtype = (dt_dtype)x->dtype;
    const int64_t n = x->shape[last], k = out->shape[last], rows = dt_array_numel(x) / n;
    const int bits = 8 * (int)dt_itemsize(dtype);
    sort_job job = {
        .x = dt_array_data(x),
        .out = dt_array_data(out),
        .indices = dt_array_data(indices),
        .ndim = x->ndim,
        .shape = x->shape,
        .x_strides = x->strides,
        .out_strides = out->strides,
        .indices_strides = indices->strides,
        .size = (int64_t)dt_itemsize(dtype),
        .n = n,
        .first = first,
        .k = k,
        .x_step = x->strides[last],
        .out_step = out->strides[last],
        .indices_step = indices->strides[last],
        .wide = bits == 64 || n >> (64 - bits) != 0,
        .selects = first == 0 && k <= n / SELECTED,
        .take = takes[bits == 8    ? 0
                      : bits == 16 ? 1
                      : bits == 32 ? 2
                                   : 3],
        .descending = descending,
    };
    job.keys = (job.wide ? wide_keys : narrow_keys)[dtype];
    job.may_precede = may_precede[dtype];
    job.first_bit = job.wide ? 0 : 64 - bits;
    job.room = !job.selects ? n : CPU_MIN(CPU_MAX(2 * k, 2 * INSERTED), n);
    job.ncounts = job.room > MERGED ? CPU_CEIL_DIV(job.room, PIECE) * DIGITS : 0;
    const int64_t batch = CPU_MIN(rows, CPU_MAX(BATCH / (job.room + job.ncounts), 1));
    const size_t item = job.wide ? sizeof(wide_item) : sizeof(uint64_t);
    const size_t nbytes = (size_t)batch * (2 * (size_t)job.room * item + (size_t)job.ncounts * sizeof(*job.counts));
    job.memory = dt_malloc(nbytes);
    if (job.memory == NULL) {
        return dt_fail_nomem(err, nbytes);
    }
    job.counts = (int64_t *)(void *)(job.memory + (size_t)batch * 2 * (size_t)job.room * item);
    for (job.first_row = 0; job.first_row < rows; job.first_row += batch) {
        const int64_t some = CPU_MIN(batch, rows - job.first_row);
        if (job.room > PIECE) { /* the threads share each row */
            for (int64_t i = 0; i < some; i++) {
                rows_part(&job, i, i + 1);
            }
        } else {
            cpu_parallel(some, CPU_CEIL_DIV(CPU_GRAIN / 16, n), rows_part, &job);
        }
    }
    dt_free(job.memory);
    return DT_OK;
}
