/* small.c: small products, without a plan: a, b and c are read and written where they lie, by one thread. A sum
 * runs over k in the same order as elsewhere. */
#include "gemm.h"

#define MOST_WORK ((int64_t)1 << 17) /* multiplications */
#define MOST_DEPTH 256               /* the least that register blocks of a set add up at once */
#define PANEL_BYTES 16384
/* of a block, since each has an address of its own here: more do not fit the registers */
#define MOST_ROWS 7
#define MOST_NARROW_ROWS 8

/* The register blocks below each other in the columns from `column` on, whose numbers of b stand at run.b; to c, or by
 * way of tile, rows of run.to_row numbers, to the first `columns` of them. */
static void
run_column(const cpu_gemm_args *g, const gemm_dtype *parts, const gemm_run *runs, gemm_block run, int64_t column,
           int64_t columns, char *tile)
{
    const gemm_kernel *kernel = parts->kernel;
    const int64_t size = (int64_t)dt_itemsize(g->dtype);
    const int64_t most = runs == kernel->narrow_anywhere ? MOST_NARROW_ROWS : MOST_ROWS;
    const int64_t panels = CPU_CEIL_DIV(g->m, CPU_MIN(most, kernel->rows));
    const char *a = g->a;
    char *c = (char *)g->c + column * size;
    const void *rows_of_a[GEMM_MAX_ROWS];
    run.rows = rows_of_a;
    for (int64_t i = 0, row = 0, rows; i < panels; i++, row += rows) {
        rows = g->m / panels + (i < g->m % panels);
        for (int64_t j = 0; j < rows; j++) {
            rows_of_a[j] = a + j * g->a_row * size;
        }
        run.a = a;
        run.to = tile != NULL ? tile : c;
        runs[rows - 1](&run);
        if (tile != NULL) {
            parts->store(g, tile, run.to_row, row, rows, column, columns);
        }
        a += rows * g->a_row * size;
        c += rows * g->c_row * size;
    }
}

bool
cpu_gemm_small(const cpu_gemm_args *g)
{
    const bool plain = g->dtype == DT_FLOAT32 || g->dtype == DT_FLOAT64;
    const bool in_place = (g->a_column == 1 || g->a_row == 1) && g->c_column == 1;
    if (!plain || !in_place || g->k > MOST_DEPTH || g->m > MOST_WORK || g->n > MOST_WORK ||
        g->m * g->n * g->k > MOST_WORK) {
        return false;
    }
    const gemm_dtype *parts = cpu_gemm_parts(g->dtype);
    const gemm_kernel *kernel = parts->kernel;
    const gemm_run *whole = g->a_column == 1 ? kernel->anywhere : kernel->packed;
    const gemm_run *narrow = g->a_column == 1 ? kernel->narrow_anywhere : kernel->narrow;
    const int64_t half = kernel->columns / 2, size = (int64_t)dt_itemsize(g->dtype);
    /* the last columns are made by a block of its own width, some of them for a second time */
    const bool twice = g->n > half && g->beta == 0;
    const bool copies = g->b_column != 1 || (g->n % half != 0 && !twice);
    const bool finished = cpu_gemm_finished(g);
    if (copies && g->k * kernel->columns * size > PANEL_BYTES) {
        return false;
    }
    _Alignas(64) char panel[PANEL_BYTES], tile[GEMM_MAX_ROWS * GEMM_MAX_COLUMNS * sizeof(float)];
    gemm_block run = {.depth = g->k, .segments = 1, .a_step = g->a_column};
    for (int64_t column = 0, width; column < g->n; column += width) {
        const int64_t left = g->n - column;
        width = left <= half || g->n < kernel->columns ? half : kernel->columns;
        int64_t columns = CPU_MIN(width, left);
        if (columns < width && twice) {
            column = g->n - width;
            columns = width;
        }
        bool by_tile = !finished || columns < width;
        const char *b = (const char *)g->b + column * g->b_column * size;
        run.b = b;
        run.b_step = g->b_row;
        if (copies) {
            if (columns < width) {
                memset(panel, 0, (size_t)(g->k * width * size));
            }
            parts->pack(panel, b, g->b_column, g->b_row, columns, g->k, width, NULL);
            run.b = panel;
            run.b_step = width;
        }
        run.to_row = by_tile ? width : g->c_row;
        run_column(g, parts, width == half ? narrow : whole, run, column, columns, by_tile ? tile : NULL);
    }
    return true;
}
