/* copy.c: copies between any two host arrays of one shape, cast by the rule of scalar.h, and fill. */
#include "../../../core/layout/layout.h"
#include "../../around_caches.h"
#include "../loops.h"

cpu_row
cpu_cast_row(dt_dtype from, dt_dtype to)
{
    const cpu_loops *loops = cpu_loops_here();
    return from == to ? loops->move[cpu_size_index(dt_itemsize(to))] : loops->casts[from][to];
}

/* ---------------------------------------------------------------- copies of whole memory */

#define MOVE_GRAIN ((int64_t)1 << 20) /* bytes worth a thread: to wake one costs as much as to move some 100 KiB */

typedef struct {
    char *to;
    const char *from;
} move_job;

static void
move_part(void *ctx, int64_t begin, int64_t end)
{
    const move_job *job = ctx;
    memmove(job->to + begin, job->from + begin, (size_t)(end - begin));
}

/* Whether both arrays of the walk lie dense and in one order. */
static bool
is_one_row(const dt_walk *walk)
{
    return walk->ndim == 1 && walk->strides[0][0] == 1 && walk->strides[1][0] == 1;
}

/* ---------------------------------------------------------------- transposed copies, in tiles */

#define TILE 32
#define CACHE_WAY 1024 /* lines so far apart fall on 4 of its sets or fewer */
/* Bytes of a target from which on lines that share sets of the cache, out of which they fall while they are written,
 * are stored around it. */
#define AROUND_FROM ((int64_t)2 << 20)

typedef struct {
    const dt_walk *walk;
    char *to, *from;
    int across; /* the dimension in which the source is contiguous; the target is in the last */
    int64_t tiles[2], to_size, from_size;
    cpu_row cast;
    void (*turn)(const char *from, int64_t from_line, char *to, int64_t to_line, int64_t rows, int64_t columns);
    bool direct;   /* of one dtype, and the lines of a square do not share sets of the cache */
    bool streamed; /* every line of a tile is made of whole lines of the caches, and the target is large */
} transpose_job;

/* Transposes a square of 16 / itemsize lines of 16 bytes. Each step interleaves lines i and i + count / 2. The last
 * squares of a tile may overlap those before. Strides of lines are in bytes. */
#define TURN(bits, count, steps, low, high)                                                                            \
    typedef uint##bits##_t turn_##bits##_v __attribute__((vector_size(16), may_alias));                                \
    static inline void turn_square_##bits(const char *from, int64_t from_line, char *to, int64_t to_line)              \
    {                                                                                                                  \
        turn_##bits##_v a[count], b[count];                                                                            \
        for (int i = 0; i < count; i++) {                                                                              \
            memcpy(&a[i], from + i * from_line, 16);                                                                   \
        }                                                                                                              \
        for (int step = 0; step < steps; step++) {                                                                     \
            for (int i = 0; i < count / 2; i++) {                                                                      \
                b[2 * i] = __builtin_shufflevector(a[i], a[i + count / 2], low);                                       \
                b[2 * i + 1] = __builtin_shufflevector(a[i], a[i + count / 2], high);                                  \
            }                                                                                                          \
            memcpy(a, b, sizeof(a));                                                                                   \
        }                                                                                                              \
        for (int i = 0; i < count; i++) {                                                                              \
            memcpy(to + i * to_line, &a[i], 16);                                                                       \
        }                                                                                                              \
    }                                                                                                                  \
    static void turn_##bits(const char *from, int64_t from_line, char *to, int64_t to_line, int64_t rows,              \
                            int64_t columns)                                                                           \
    {                                                                                                                  \
        for (int64_t i = 0; i < rows; i += count) {                                                                    \
            const int64_t row = CPU_MIN(i, rows - count);                                                              \
            for (int64_t j = 0; j < columns; j += count) {                                                             \
                const int64_t column = CPU_MIN(j, columns - count);                                                    \
                turn_square_##bits(from + column * from_line + row * (bits / 8), from_line,                            \
                                   to + row * to_line + column * (bits / 8), to_line);                                 \
            }                                                                                                          \
        }                                                                                                              \
    }
#define LIST(...) __VA_ARGS__
TURN(8, 16, 4, LIST(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23),
     LIST(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31))
TURN(16, 8, 3, LIST(0, 8, 1, 9, 2, 10, 3, 11), LIST(4, 12, 5, 13, 6, 14, 7, 15))
TURN(32, 4, 2, LIST(0, 4, 1, 5), LIST(2, 6, 3, 7))
TURN(64, 2, 1, LIST(0, 2), LIST(1, 3))

/* Reads along the rows of the source into a tile of the target's dtype, transposes the tile, and writes along the rows
 * of the target: both run through memory in order, and whole cache lines are written. With `direct` squares are read
 * where they are. */
static void
transpose_tile(const transpose_job *job, char *to, char *from, int64_t rows, int64_t columns)
{
    const dt_walk *walk = job->walk;
    int last = walk->ndim - 1;
    const int64_t size = job->to_size, square = 16 / size, line = TILE * size;
    const int64_t to_line = walk->strides[0][job->across] * size;
    const int64_t from_line = walk->strides[1][last] * job->from_size;
    const bool direct = job->direct && rows >= square && columns >= square;
    _Alignas(64) char tile[TILE * TILE * sizeof(uint64_t)], turned[TILE * TILE * sizeof(uint64_t)];
    for (int64_t i = 0; i < columns; i++) {
        char *data[2] = {tile + i * line, from + i * from_line};
        for (int64_t j = 0; j < TILE * job->from_size; j += 64) { /* of the next tile */
            __builtin_prefetch(data[1] + TILE * from_line + j);
        }
        if (!direct) {
            job->cast(data, (const int64_t[]){1, 1}, rows, NULL);
        }
    }
    if (direct) {
        job->turn(from, from_line, to, to_line, rows, columns);
        return;
    }
    job->turn(tile, line, turned, line, CPU_MAX(rows, square), CPU_MAX(columns, square));
    for (int64_t i = 0; i < rows; i++) {
        if (job->streamed && columns == TILE) {
            cpu_store_around_caches(to + i * to_line, turned + i * line, line);
        } else {
            memcpy(to + i * to_line, turned + i * line, (size_t)(columns * size));
        }
    }
}

static void
transpose_part(void *ctx, int64_t begin, int64_t end)
{
    const transpose_job *job = ctx;
    const dt_walk *walk = job->walk;
    int last = walk->ndim - 1;
    for (int64_t item = begin; item < end; item++) {
        int64_t column = item % job->tiles[1] * TILE, row = item / job->tiles[1] % job->tiles[0] * TILE;
        int64_t rest = item / job->tiles[1] / job->tiles[0], to = 0, from = 0;
        for (int d = last - 1; d >= 0; d--) {
            int64_t i = row;
            if (d != job->across) {
                i = rest % walk->shape[d];
                rest /= walk->shape[d];
            }
            to += i * walk->strides[0][d];
            from += i * walk->strides[1][d];
        }
        to += column * walk->strides[0][last];
        from += column * walk->strides[1][last];
        transpose_tile(job, job->to + to * job->to_size, job->from + from * job->from_size,
                       CPU_MIN(TILE, walk->shape[job->across] - row), CPU_MIN(TILE, walk->shape[last] - column));
    }
    if (job->streamed) {
        cpu_end_stores();
    }
}

/* The dimension to pair with the last one in tiles, or -1. */
static int
find_across(const dt_walk *walk)
{
    int last = walk->ndim - 1;
    if (last < 1 || walk->strides[0][last] != 1 || walk->strides[1][last] < 8 || walk->shape[last] < 8) {
        return -1;
    }
    for (int d = last - 1; d >= 0; d--) {
        if (walk->strides[1][d] == 1 && walk->shape[d] >= 8) {
            return d;
        }
    }
    return -1;
}

/* What is not one row. */
static DT_NOINLINE void
copy_walk(const dt_array *const *arrays, cpu_row cast)
{
    const dt_array *dst = arrays[0], *src = arrays[1];
    dt_dtype from = (dt_dtype)src->dtype, to = (dt_dtype)dst->dtype;
    dt_walk walk;
    dt_walk_init(&walk, 2, arrays);
    if (from == to && is_one_row(&walk)) {
        move_job move = {dt_array_data(dst), dt_array_data(src)};
        cpu_parallel(walk.numel * (int64_t)dt_itemsize(to), MOVE_GRAIN, move_part, &move);
        return;
    }
    int across = find_across(&walk);
    if (across < 0) {
        cpu_walk(&walk, arrays, cast, NULL);
        return;
    }
    static void (*const turns[])(const char *, int64_t, char *, int64_t, int64_t, int64_t) = {turn_8, turn_16, turn_32,
                                                                                              turn_64};
    transpose_job job = {
        .walk = &walk,
        .to = dt_array_data(dst),
        .from = dt_array_data(src),
        .across = across,
        .tiles = {CPU_CEIL_DIV(walk.shape[across], TILE), CPU_CEIL_DIV(walk.shape[walk.ndim - 1], TILE)},
        .to_size = (int64_t)dt_itemsize(to),
        .from_size = (int64_t)dt_itemsize(from),
        .cast = cast,
        .turn = turns[cpu_size_index(dt_itemsize(to))],
    };
    const int64_t to_line = walk.strides[0][across] * job.to_size;
    const int64_t from_line = walk.strides[1][walk.ndim - 1] * job.from_size;
    const bool shares_sets = from_line % CACHE_WAY == 0 || to_line % CACHE_WAY == 0;
    job.streamed = walk.numel * job.to_size >= (shares_sets ? AROUND_FROM : CPU_STREAM_FROM) &&
                   ((intptr_t)job.to | to_line | TILE * job.to_size) % 64 == 0;
    for (int d = 0; d < walk.ndim - 1; d++) {
        job.streamed = job.streamed && walk.strides[0][d] * job.to_size % 64 == 0;
    }
    job.direct = from == to && !job.streamed && !shares_sets;
    int64_t outer = walk.numel / (walk.shape[across] * walk.shape[walk.ndim - 1]);
    cpu_parallel(outer * job.tiles[0] * job.tiles[1], CPU_GRAIN / (TILE * TILE), transpose_part, &job);
}

dt_status
cpu_copy(const dt_array *src, dt_array *dst, bool non_blocking, dt_error *err)
{
    (void)non_blocking;
    (void)err;
    const dt_array *arrays[2] = {dst, src};
    cpu_row cast = cpu_cast_row((dt_dtype)src->dtype, (dt_dtype)dst->dtype);
    if (!cpu_one_row(2, arrays, cast, NULL)) {
        copy_walk(arrays, cast);
    }
    return DT_OK;
}

/* ---------------------------------------------------------------- arrays beside each other */

#define ROW_BYTES 64 /* of a part: shorter ones are quicker by columns, one part after the other */
#define ROW_MOST ((int64_t)32 << 10)
#define LONG_ROW 1024    /* for which memcpy may be slow (copy.inc) */
#define BLOCK_BYTES 1024 /* of the result, made of one part after the other */

/* Rows of the result, each of which has one of every part. */
typedef struct {
    const dt_array *const *parts;
    char *to;
    int n;
    int64_t rows, nbytes;
} join_job;

static void
join_rows(void *ctx, int64_t begin, int64_t end)
{
    const join_job *job = ctx;
    const cpu_row move = cpu_loops_here()->move[cpu_size_index(1)];
    const int64_t some = CPU_CEIL_DIV(BLOCK_BYTES, job->nbytes);
    for (int64_t first = begin; first < end; first += some) {
        char *place = job->to + first * job->nbytes;
        for (int i = 0; i < job->n; i++) {
            const size_t size = dt_array_nbytes(job->parts[i]) / (size_t)job->rows;
            char *data[2] = {place, (char *)dt_array_data(job->parts[i]) + first * (int64_t)size};
            for (int64_t row = first; row < CPU_MIN(first + some, end); row++) {
                if (size < LONG_ROW) {
                    memcpy(data[0], data[1], size);
                } else {
                    move(data, (const int64_t[]){1, 1}, (int64_t)size, NULL);
                }
                data[0] += job->nbytes;
                data[1] += size;
            }
            place += size;
        }
    }
}

/* Whether a, of the result's dtype, lies in memory as the result does: plain, or channels last; and its rows are
 * neither short nor so long that they are better stored around the caches one part after the other. */
static bool
joins(const dt_array *a, const dt_array *out, const join_job *job, bool last)
{
    const int64_t row = (int64_t)dt_array_nbytes(a) / job->rows;
    return a->dtype == out->dtype && (last ? dt_is_channels_last(a) : dt_array_is_contiguous(a)) && row >= ROW_BYTES &&
           (row <= ROW_MOST || (int64_t)dt_array_nbytes(out) < CPU_STREAM_FROM);
}

/* Some rows at a time, so that the result is written from its beginning to its end. */
dt_status
cpu_join(const dt_array *const *parts, int n, int dim, dt_array *out, bool *made, dt_error *err)
{
    (void)err;
    const bool last = dim == 1 && dt_is_channels_last(out);
    join_job job = {parts, dt_array_data(out), n, last ? dt_array_numel(out) / out->shape[1] : 1, 0};
    for (int d = 0; d < dim && !last; d++) {
        job.rows *= out->shape[d];
    }
    job.nbytes = (int64_t)dt_array_nbytes(out) / job.rows;
    *made = job.rows >= cpu_num_threads() && job.rows > 1 && (last || dt_array_is_contiguous(out));
    for (int i = 0; i < n && *made; i++) {
        *made = joins(parts[i], out, &job, last);
    }
    if (*made) {
        cpu_parallel(job.rows, CPU_CEIL_DIV(MOVE_GRAIN, job.nbytes), join_rows, &job);
    }
    return DT_OK;
}

dt_status
cpu_fill(dt_array *out, const dt_scalar *value, dt_error *err)
{
    dt_array number = *out;
    number.storage = NULL;
    memset(number.strides, 0, sizeof(number.strides));
    dt_scalar_store(value, (dt_dtype)out->dtype, number.immediate);
    return cpu_copy(&number, out, false, err);
}
