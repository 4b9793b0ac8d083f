/* gemm.c: the matrix product, for any strides. c is made in super-blocks. For each, a stretch of DEPTH of a and b is
 * packed into panels as wide as the register block, then the register blocks are run over the panels; where k is longer
 * than DEPTH they keep their sums in a scratch of their own, so that c is written once. A sum runs over k in order,
 * whatever the threads. */
#include "gemm.h"

#define PACK_BLOCK 16
#define DOT_BLOCK 1024
#define DOT_LANES 16
#define VECTOR_BLOCK 128
#define SMALL_BLOCK 32
#define SMALL_WORK 16384 /* multiplications not worth packing */
#define DEPTH 256
#define SUPER_ROWS 1024
#define SUPER_COLUMNS 2048
#define ITEM_ROWS 12 /* register blocks */
#define ITEM_COLUMNS 4
#define THREAD_WORK ((int64_t)1 << 18) /* multiplications worth a thread */

#define DT_EACH "../cpu/gemm_each.h"
#include "../core/each_dtype.h"

static const gemm_dtype *
parts_of(dt_dtype dtype)
{
    return dtype == DT_FLOAT16    ? &gemm_dtype_FLOAT16
           : dtype == DT_BFLOAT16 ? &gemm_dtype_BFLOAT16
           : dtype == DT_FLOAT32  ? &gemm_dtype_FLOAT32
                                  : &gemm_dtype_FLOAT64;
}

/* One stretch of one super-block. */
typedef struct {
    const cpu_gemm_args *g;
    const gemm_dtype *parts;
    const gemm_kernel *kernel;
    int64_t itemsize, size; /* of an array's number, of an accumulator */
    int64_t row, rows, column, columns, tap, depth;
    bool first, last;
    char *a, *b, *sums; /* sums NULL: k fits one stretch */
} stretch;

/* Panels of a, then panels of b. */
static void
pack_part(void *ctx, int64_t begin, int64_t end)
{
    const stretch *s = ctx;
    const cpu_gemm_args *g = s->g;
    int64_t panels_a = CPU_CEIL_DIV(s->rows, s->kernel->rows);
    for (int64_t item = begin; item < end; item++) {
        bool is_a = item < panels_a;
        int64_t width = is_a ? s->kernel->rows : s->kernel->columns, panel = is_a ? item : item - panels_a;
        int64_t count = CPU_MIN(width, (is_a ? s->rows : s->columns) - panel * width);
        int64_t first = (is_a ? s->row : s->column) + panel * width;
        char *to = (is_a ? s->a : s->b) + panel * width * s->depth * s->size;
        if (g->conv != NULL) {
            (is_a ? cpu_conv_pack_a : cpu_conv_pack_b)(g, to, first, count, s->tap, s->depth, width);
        } else if (is_a) {
            const char *from = (const char *)g->a + (first * g->a_row + s->tap * g->a_column) * s->itemsize;
            s->parts->pack(to, from, g->a_row, g->a_column, count, s->depth, width);
        } else {
            const char *from = (const char *)g->b + (first * g->b_column + s->tap * g->b_row) * s->itemsize;
            s->parts->pack(to, from, g->b_column, g->b_row, count, s->depth, width);
        }
    }
}

/* Fills offsets of a panel's columns from the start of a row of c; whether they are neighbours in order. */
static bool
column_offsets(const cpu_gemm_args *g, int64_t column, int64_t count, int64_t *offsets)
{
    if (g->conv != NULL) {
        cpu_conv_columns(g->conv, column, count, offsets);
    } else {
        for (int64_t j = 0; j < count; j++) {
            offsets[j] = (column + j) * g->c_column;
        }
    }
    bool in_line = true;
    for (int64_t j = 1; j < count; j++) {
        in_line = in_line && offsets[j] == offsets[j - 1] + 1;
    }
    return in_line;
}

/* The register blocks of rows [first_row, end_row) and one panel of b. */
static void
run_panel(const stretch *s, int64_t first_row, int64_t end_row, int64_t panel)
{
    const gemm_kernel *kernel = s->kernel;
    int64_t panels_a = CPU_CEIL_DIV(s->rows, kernel->rows), tile_size = kernel->rows * kernel->columns * s->size;
    int64_t columns = CPU_MIN(kernel->columns, s->columns - panel * kernel->columns);
    int64_t offsets[GEMM_MAX_COLUMNS], column = s->column + panel * kernel->columns;
    bool in_line = s->last && column_offsets(s->g, column, columns, offsets);
    _Alignas(64) char own[GEMM_MAX_ROWS * GEMM_MAX_COLUMNS * sizeof(float)];
    const char *b = s->b + panel * kernel->columns * s->depth * s->size;
    for (int64_t i = first_row; i < end_row; i++) {
        char *tile = s->sums ? s->sums + (panel * panels_a + i) * tile_size : own;
        kernel->run(s->depth, s->a + i * kernel->rows * s->depth * s->size, b, tile, !s->first);
        if (s->last) {
            int64_t rows = CPU_MIN(kernel->rows, s->rows - i * kernel->rows);
            s->parts->store(s->g, tile, kernel->columns, s->row + i * kernel->rows, rows, column, columns, offsets,
                            in_line);
        }
    }
}

static int64_t
row_items(const stretch *s)
{
    return CPU_CEIL_DIV(s->rows, s->kernel->rows * ITEM_ROWS);
}

static int64_t
column_items(const stretch *s)
{
    return CPU_CEIL_DIV(s->columns, s->kernel->columns * ITEM_COLUMNS);
}

static void
run_part(void *ctx, int64_t begin, int64_t end)
{
    const stretch *s = ctx;
    int64_t panels_a = CPU_CEIL_DIV(s->rows, s->kernel->rows), panels_b = CPU_CEIL_DIV(s->columns, s->kernel->columns);
    for (int64_t item = begin; item < end; item++) {
        int64_t i = item / column_items(s) * ITEM_ROWS, j = item % column_items(s) * ITEM_COLUMNS;
        int64_t end_i = CPU_MIN(i + ITEM_ROWS, panels_a), end_j = CPU_MIN(j + ITEM_COLUMNS, panels_b);
        for (; j < end_j; j++) {
            run_panel(s, i, end_i, j);
        }
    }
}

static void
run_super_block(stretch *s)
{
    const gemm_kernel *kernel = s->kernel;
    int64_t panels = CPU_CEIL_DIV(s->rows, kernel->rows) + CPU_CEIL_DIV(s->columns, kernel->columns);
    int64_t items = row_items(s) * column_items(s), item_work = s->rows * s->columns / items;
    s->tap = 0;
    do { /* once for k = 0 too, which gives beta * c + bias */
        s->depth = CPU_MIN(DEPTH, s->g->k - s->tap);
        s->first = s->tap == 0;
        s->last = s->tap + s->depth == s->g->k;
        int64_t depth = CPU_MAX(s->depth, 1), work = s->rows * s->columns * depth;
        int64_t threads = CPU_MAX(work / THREAD_WORK, 1);
        cpu_parallel(panels, CPU_MAX(CPU_CEIL_DIV(panels, threads), CPU_GRAIN / 2 / (kernel->columns * depth)),
                     pack_part, s);
        cpu_parallel(items, CPU_CEIL_DIV(THREAD_WORK, CPU_MAX(item_work * depth, 1)), run_part, s);
        s->tap += s->depth;
    } while (s->tap < s->g->k);
}

static dt_status
run_packed(const cpu_gemm_args *g, dt_error *err)
{
    const gemm_kernel *kernel = cpu_gemm_kernel(g->dtype);
    int64_t size = g->dtype == DT_FLOAT64 ? 8 : 4, depth = CPU_MIN(g->k, DEPTH);
    int64_t most_rows = SUPER_ROWS / kernel->rows * kernel->rows, most_columns = SUPER_COLUMNS;
    int64_t rows = CPU_CEIL_DIV(CPU_MIN(g->m, most_rows), kernel->rows) * kernel->rows;
    int64_t columns = CPU_CEIL_DIV(CPU_MIN(g->n, most_columns), kernel->columns) * kernel->columns;
    size_t size_a = (size_t)(rows * depth * size + 63) & ~(size_t)63;
    size_t size_b = (size_t)(columns * depth * size + 63) & ~(size_t)63;
    size_t size_sums = g->k > DEPTH ? (size_t)(rows * columns * size) : 0, nbytes = size_a + size_b + size_sums;
    char *scratch = dt_malloc_aligned(CPU_MAX(nbytes, 64));
    if (scratch == NULL) {
        return dt_fail_nomem(err, nbytes);
    }
    stretch s = {
        .g = g,
        .parts = parts_of(g->dtype),
        .kernel = kernel,
        .itemsize = (int64_t)dt_itemsize(g->dtype),
        .size = size,
        .a = scratch,
        .b = scratch + size_a,
        .sums = size_sums > 0 ? scratch + size_a + size_b : NULL,
    };
    for (s.column = 0; s.column < g->n; s.column += s.columns) {
        s.columns = CPU_MIN(most_columns, g->n - s.column);
        for (s.row = 0; s.row < g->m; s.row += s.rows) {
            s.rows = CPU_MIN(most_rows, g->m - s.row);
            run_super_block(&s);
        }
    }
    dt_free(scratch);
    return DT_OK;
}

static void
vector_part(void *ctx, int64_t begin, int64_t end)
{
    const cpu_gemm_args *g = ctx;
    parts_of(g->dtype)->vector(g, begin, end);
}

static cpu_gemm_args
transposed(const cpu_gemm_args *g)
{
    cpu_gemm_args t = *g;
    t.m = g->n;
    t.n = g->m;
    t.a = g->b;
    t.b = g->a;
    t.a_row = g->b_column;
    t.a_column = g->b_row;
    t.b_row = g->a_column;
    t.b_column = g->a_row;
    t.c_row = g->c_column;
    t.c_column = g->c_row;
    t.bias_row = g->bias_column;
    t.bias_column = g->bias_row;
    return t;
}

dt_status
cpu_gemm(const cpu_gemm_args *g, dt_error *err)
{
    if (g->conv != NULL) {
        return run_packed(g, err);
    }
    if (g->m == 1 || g->n == 1) {
        cpu_gemm_args v = g->n == 1 ? *g : transposed(g);
        cpu_parallel(v.m, CPU_CEIL_DIV(CPU_GRAIN, CPU_MAX(v.k, 1)), vector_part, &v);
        return DT_OK;
    }
    if (g->k == 0 || g->m * g->n <= SMALL_WORK / g->k) {
        parts_of(g->dtype)->small(g);
        return DT_OK;
    }
    return run_packed(g, err);
}
