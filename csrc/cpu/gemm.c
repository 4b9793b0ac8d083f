/* gemm.c: the matrix product, for any strides. c is made in super-blocks. For each, a stretch of DEPTH of a and b is
 * packed into panels as wide as the register block (where packing pays; else they are read in place), then the register
 * blocks are run over the panels. Where k is longer than DEPTH, unfinished sums stay in c if it can hold them, else in
 * a scratch of their own. A sum runs over k in order, whatever the threads. */
#include "gemm.h"

#define PACK_BLOCK 16
#define DOT_BLOCK 1024
#define DOT_LANES 16
#define VECTOR_BLOCK 128
#define SMALL_SCRATCH 16384        /* bytes */
#define IN_PLACE_BYTES (256 << 10) /* of a: what stays in the cache of a core */
#define IN_PLACE_COLUMNS 128       /* of c: a is read too seldom to be packed */
#define IN_PLACE_ROWS 48           /* of c: b is */
#define DEPTH 256
#define SUPER_ROWS 1024
#define SUPER_COLUMNS 2048
#define ITEM_ROWS 24 /* register blocks */
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
    gemm_pack pack;
    int64_t itemsize, size; /* of an array's number, of an accumulator */
    int64_t row, rows, column, columns, tap, depth;
    int64_t panels_a, panels_b;
    int64_t packed_b; /* the first panel of b that is packed: a part of a panel always is */
    bool first, last;
    bool a_in_place, b_in_place;
    bool c_holds_sums;
    bool finished; /* a sum is the result as it is */
    char *a, *b, *sums;
} stretch;

/* Panels of a, then panels of b. */
static void
pack_part(void *ctx, int64_t begin, int64_t end)
{
    const stretch *s = ctx;
    const cpu_gemm_args *g = s->g;
    int64_t panels_a = s->a_in_place ? 0 : s->panels_a;
    for (int64_t item = begin; item < end; item++) {
        bool is_a = item < panels_a;
        int64_t width = is_a ? s->kernel->rows : s->kernel->columns, slot = is_a ? item : item - panels_a;
        int64_t panel = is_a ? slot : slot + s->packed_b;
        int64_t count = CPU_MIN(width, (is_a ? s->rows : s->columns) - panel * width);
        int64_t first = (is_a ? s->row : s->column) + panel * width;
        char *to = (is_a ? s->a : s->b) + slot * width * s->depth * s->size;
        if (g->conv != NULL) {
            (is_a ? cpu_conv_pack_a : cpu_conv_pack_b)(g, to, first, count, s->tap, s->depth, is_a ? count : width);
        } else if (is_a) {
            const char *from = (const char *)g->a + (first * g->a_row + s->tap * g->a_column) * s->itemsize;
            s->pack(to, from, g->a_row, g->a_column, count, s->depth, count);
        } else {
            const char *from = (const char *)g->b + (first * g->b_column + s->tap * g->b_row) * s->itemsize;
            s->pack(to, from, g->b_column, g->b_row, count, s->depth, width);
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

/* One panel of b, and what it makes. */
typedef struct {
    const char *b;
    int64_t b_step, column, columns, index;
    int64_t offsets[GEMM_MAX_COLUMNS];
    bool in_line;
} panel;

static panel
find_panel(const stretch *s, int64_t index)
{
    const cpu_gemm_args *g = s->g;
    panel p = {.index = index, .column = s->column + index * s->kernel->columns};
    p.columns = CPU_MIN(s->kernel->columns, s->columns - index * s->kernel->columns);
    p.in_line = (s->last || s->c_holds_sums) && column_offsets(g, p.column, p.columns, p.offsets);
    if (index < s->packed_b) {
        p.b = (const char *)g->b + (p.column + s->tap * g->b_row) * s->itemsize;
        p.b_step = g->b_row;
    } else {
        p.b = s->b + (index - s->packed_b) * s->kernel->columns * s->depth * s->size;
        p.b_step = s->kernel->columns;
    }
    return p;
}

/* The register block of `rows` rows from the i-th panel of a. */
static void
run_block(const stretch *s, const panel *p, int64_t i)
{
    const gemm_kernel *kernel = s->kernel;
    const cpu_gemm_args *g = s->g;
    _Alignas(64) char own[GEMM_MAX_ROWS * GEMM_MAX_COLUMNS * sizeof(float)];
    int64_t width = kernel->columns, row = s->row + i * kernel->rows,
            rows = CPU_MIN(kernel->rows, s->rows - i * kernel->rows);
    const char *a = s->a + i * kernel->rows * s->depth * s->size;
    int64_t a_row = 1, a_step = rows;
    if (s->a_in_place) {
        a = (const char *)g->a + (row * g->a_row + s->tap * g->a_column) * s->itemsize;
        a_row = g->a_row;
        a_step = g->a_column;
    }
    bool in_c = s->c_holds_sums && p->in_line && p->columns == width;
    char *tile = s->sums ? s->sums + (p->index * s->panels_a + i) * kernel->rows * width * s->size : own;
    char *place = in_c ? (char *)g->c + (row * g->c_row + p->offsets[0]) * s->itemsize : tile;
    char *to = s->last && !s->finished ? tile : place;
    int64_t place_row = in_c ? g->c_row : width;
    if (s->c_holds_sums && !in_c && !s->first) {
        s->parts->fetch(g, tile, width, row, rows, p->columns, p->offsets);
    }
    kernel->run[rows - 1](s->depth, a, a_row, a_step, p->b, p->b_step, s->first ? NULL : place, place_row, to,
                          to == place ? place_row : width);
    if (s->last && (to == tile)) {
        s->parts->store(g, tile, width, row, rows, p->column, p->columns, p->offsets, p->in_line);
    } else if (s->c_holds_sums && !in_c) {
        s->parts->put_back(g, tile, width, row, rows, p->columns, p->offsets);
    }
}

static int64_t
row_items(const stretch *s)
{
    return CPU_CEIL_DIV(s->panels_a, ITEM_ROWS);
}

static int64_t
column_items(const stretch *s)
{
    return CPU_CEIL_DIV(s->panels_b, ITEM_COLUMNS);
}

static void
run_part(void *ctx, int64_t begin, int64_t end)
{
    const stretch *s = ctx;
    for (int64_t item = begin; item < end; item++) {
        int64_t i = item / column_items(s) * ITEM_ROWS, j = item % column_items(s) * ITEM_COLUMNS;
        int64_t end_i = CPU_MIN(i + ITEM_ROWS, s->panels_a), end_j = CPU_MIN(j + ITEM_COLUMNS, s->panels_b);
        for (; j < end_j; j++) {
            panel p = find_panel(s, j);
            for (int64_t at = i; at < end_i; at++) {
                run_block(s, &p, at);
            }
        }
    }
}

static void
run_super_block(stretch *s)
{
    const gemm_kernel *kernel = s->kernel;
    s->panels_a = CPU_CEIL_DIV(s->rows, kernel->rows);
    s->panels_b = CPU_CEIL_DIV(s->columns, kernel->columns);
    s->packed_b = s->b_in_place ? s->columns / kernel->columns : 0;
    int64_t panels = (s->a_in_place ? 0 : s->panels_a) + s->panels_b - s->packed_b;
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

static bool
columns_are_neighbours(const cpu_gemm_args *g)
{
    int64_t offsets[2];
    return column_offsets(g, 0, CPU_MIN(g->n, 2), offsets);
}

static dt_status
run_blocks(const cpu_gemm_args *g, dt_error *err)
{
    const gemm_kernel *kernel = cpu_gemm_kernel(g->dtype);
    const gemm_dtype *parts = parts_of(g->dtype);
    bool plain = g->dtype == DT_FLOAT32 || g->dtype == DT_FLOAT64, in_place = plain && g->conv == NULL;
    int64_t itemsize = (int64_t)dt_itemsize(g->dtype), size = g->dtype == DT_FLOAT64 ? 8 : 4;
    stretch s = {
        .g = g,
        .parts = parts,
        .kernel = kernel,
        .pack = plain && kernel->pack ? kernel->pack : parts->pack,
        .itemsize = itemsize,
        .size = size,
        .a_in_place = in_place && g->n <= IN_PLACE_COLUMNS,
        .b_in_place = in_place && g->b_column == 1 && g->m <= IN_PLACE_ROWS,
        .c_holds_sums = plain && g->beta == 0 && columns_are_neighbours(g),
        .finished = g->alpha == 1 && g->bias == NULL && g->activation == NULL,
    };
    int64_t depth = CPU_MIN(g->k, DEPTH), most_rows = SUPER_ROWS / kernel->rows * kernel->rows;
    int64_t rows = CPU_MIN(g->m, most_rows), columns = CPU_MIN(g->n, SUPER_COLUMNS);
    int64_t rows_b = s.b_in_place ? kernel->columns : columns;
    rows = CPU_CEIL_DIV(rows, kernel->rows) * kernel->rows;
    columns = CPU_CEIL_DIV(columns, kernel->columns) * kernel->columns;
    rows_b = CPU_CEIL_DIV(rows_b, kernel->columns) * kernel->columns;
    size_t size_a = s.a_in_place ? 0 : (size_t)(rows * depth * size + 63) & ~(size_t)63;
    size_t size_b = (size_t)(rows_b * depth * size + 63) & ~(size_t)63;
    size_t size_sums = g->k > DEPTH && !s.c_holds_sums ? (size_t)(rows * columns * size) : 0;
    size_t nbytes = size_a + size_b + size_sums;
    _Alignas(64) char small[SMALL_SCRATCH];
    char *scratch = nbytes <= sizeof(small) ? small : dt_large_new(nbytes);
    if (scratch == NULL) {
        return dt_fail_nomem(err, nbytes);
    }
    s.a = scratch;
    s.b = scratch + size_a;
    s.sums = size_sums > 0 ? scratch + size_a + size_b : NULL;
    for (s.column = 0; s.column < g->n; s.column += s.columns) {
        s.columns = CPU_MIN(SUPER_COLUMNS, g->n - s.column);
        for (s.row = 0; s.row < g->m; s.row += s.rows) {
            s.rows = CPU_MIN(most_rows, g->m - s.row);
            run_super_block(&s);
        }
    }
    if (scratch != small) {
        dt_large_free(scratch);
    }
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
        return run_blocks(g, err);
    }
    if (g->m == 1 || g->n == 1) {
        cpu_gemm_args v = g->n == 1 ? *g : transposed(g);
        cpu_parallel(v.m, CPU_CEIL_DIV(CPU_GRAIN, CPU_MAX(v.k, 1)), vector_part, &v);
        return DT_OK;
    }
    if (g->c_column != 1 && g->c_row == 1) { /* rows of c are best where they lie in memory */
        cpu_gemm_args t = transposed(g);
        return run_blocks(&t, err);
    }
    return run_blocks(g, err);
}
