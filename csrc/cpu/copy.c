/* copy.c: copies between any two host arrays of one shape, cast by the rule of scalar.h, and fill. */
#include "cpu.h"

#undef bool /* stdbool's macro would get into the pasted names */
#define DT_EACH "../cpu/copy_each.h"
#include "../core/each_dtype.h"
static const cpu_row *const casts[DT_NDTYPES] = {
#define DT_DTYPE(NAME, name, ...) [DT_##NAME] = casts_##name,
#include "../core/dtypes.def"
#undef DT_DTYPE
};
#define bool _Bool

/* Bits of one size, whatever they mean. */
#define MOVE_ROW(bits)                                                                                                 \
    typedef uint##bits##_t __attribute__((may_alias)) word##bits;                                                      \
    static void move_##bits(char *const *data, const int64_t *strides, int64_t n, const void *ctx)                     \
    {                                                                                                                  \
        word##bits *out = (word##bits *)data[0];                                                                       \
        const word##bits *in = (const word##bits *)data[1];                                                            \
        const int64_t so = strides[0], si = strides[1];                                                                \
        (void)ctx;                                                                                                     \
        if (so == 1 && si == 1) {                                                                                      \
            memmove(out, in, (size_t)n * sizeof(*out));                                                                \
        } else if (so == 1 && si == 0) {                                                                               \
            const word##bits value = *in;                                                                              \
            for (int64_t i = 0; i < n; i++) {                                                                          \
                out[i] = value;                                                                                        \
            }                                                                                                          \
        } else {                                                                                                       \
            for (int64_t i = 0; i < n; i++) {                                                                          \
                out[i * so] = in[i * si];                                                                              \
            }                                                                                                          \
        }                                                                                                              \
    }
MOVE_ROW(8)
MOVE_ROW(16)
MOVE_ROW(32)
MOVE_ROW(64)

static cpu_row
move_row(size_t itemsize)
{
    return itemsize == 1 ? move_8 : itemsize == 2 ? move_16 : itemsize == 4 ? move_32 : move_64;
}

cpu_row
cpu_cast_row(dt_dtype from, dt_dtype to)
{
    return from == to ? move_row(dt_itemsize(to)) : casts[from][to];
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

typedef struct {
    const dt_walk *walk;
    char *to, *from;
    int across; /* the dimension in which the source is contiguous; the target is in the last */
    int64_t tiles[2], to_size, from_size;
    cpu_row cast, move;
} transpose_job;

/* Reads along the source into a tile of the target's dtype, then writes along the target: neither jumps in memory. */
static void
transpose_tile(const transpose_job *job, char *to, char *from, int64_t rows, int64_t columns)
{
    const dt_walk *walk = job->walk;
    int last = walk->ndim - 1;
    uint64_t tile[TILE * TILE];
    for (int64_t i = 0; i < columns; i++) {
        char *data[2] = {(char *)tile + i * TILE * job->to_size, from + i * walk->strides[1][last] * job->from_size};
        job->cast(data, (const int64_t[]){1, 1}, rows, NULL);
    }
    for (int64_t i = 0; i < rows; i++) {
        char *data[2] = {to + i * walk->strides[0][job->across] * job->to_size, (char *)tile + i * job->to_size};
        job->move(data, (const int64_t[]){1, TILE}, columns, NULL);
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

dt_status
cpu_copy(const dt_array *src, dt_array *dst, bool non_blocking, dt_error *err)
{
    (void)non_blocking;
    (void)err;
    const dt_array *arrays[2] = {dst, src};
    dt_dtype from = (dt_dtype)src->dtype, to = (dt_dtype)dst->dtype;
    dt_walk walk;
    dt_walk_init(&walk, 2, arrays);
    if (from == to && is_one_row(&walk)) {
        move_job move = {dt_array_data(dst), dt_array_data(src)};
        cpu_parallel(walk.numel * (int64_t)dt_itemsize(to), MOVE_GRAIN, move_part, &move);
        return DT_OK;
    }
    int across = find_across(&walk);
    if (across < 0) {
        cpu_walk(&walk, arrays, cpu_cast_row(from, to), NULL);
        return DT_OK;
    }
    transpose_job job = {
        .walk = &walk,
        .to = dt_array_data(dst),
        .from = dt_array_data(src),
        .across = across,
        .tiles = {CPU_CEIL_DIV(walk.shape[across], TILE), CPU_CEIL_DIV(walk.shape[walk.ndim - 1], TILE)},
        .to_size = (int64_t)dt_itemsize(to),
        .from_size = (int64_t)dt_itemsize(from),
        .cast = cpu_cast_row(from, to),
        .move = move_row(dt_itemsize(to)),
    };
    int64_t outer = walk.numel / (walk.shape[across] * walk.shape[walk.ndim - 1]);
    cpu_parallel(outer * job.tiles[0] * job.tiles[1], CPU_GRAIN / (TILE * TILE), transpose_part, &job);
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
