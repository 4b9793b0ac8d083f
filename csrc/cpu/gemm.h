/* gemm.h: what the files of the matrix product share. */
#ifndef DT_CPU_GEMM_H
#define DT_CPU_GEMM_H

#include "cpu.h"

/* to = from + a @ b for a block of rows in registers (gemm_kernel.h): from one row to the next of a, from and to, and
 * from one of depth steps to the next of a and b; the columns of b, from and to are neighbours. from NULL: zeros. */
typedef void (*gemm_run)(int64_t depth, const void *a, int64_t a_row, int64_t a_step, const void *b, int64_t b_step,
                         const void *from, int64_t from_row, void *to, int64_t to_row);

/* count rows of depth numbers to a panel: all rows' first numbers, zeros up to width, all second numbers, ... */
typedef void (*gemm_pack)(void *panel, const void *from, int64_t across, int64_t along, int64_t count, int64_t depth,
                          int64_t width);

/* The blocks of one instruction set and type: columns wide, run[i] for i + 1 rows. */
typedef struct {
    int64_t rows, columns;
    const gemm_run *run;
    gemm_pack pack; /* from arrays of the accumulator's own type; NULL: the plain one */
} gemm_kernel;

const gemm_kernel *cpu_gemm_kernel(dt_dtype dtype);

#define GEMM_MAX_ROWS 16
#define GEMM_MAX_COLUMNS 32

/* Numbers read from arrays of one dtype into the accumulator's type and back. */
typedef struct {
    gemm_pack pack;
    /* rows x columns of a tile to c at (row, column); offsets from the row's start for each column, in_line if each is
     * one more than the one before */
    void (*store)(const cpu_gemm_args *g, const void *tile, int64_t tile_columns, int64_t row, int64_t rows,
                  int64_t column, int64_t columns, const int64_t *offsets, bool in_line);
    /* the same elements as they are, between c and the tile */
    void (*fetch)(const cpu_gemm_args *g, void *tile, int64_t tile_columns, int64_t row, int64_t rows, int64_t columns,
                  const int64_t *offsets);
    void (*put_back)(const cpu_gemm_args *g, const void *tile, int64_t tile_columns, int64_t row, int64_t rows,
                     int64_t columns, const int64_t *offsets);
    /* rows [begin, end) of a product with one column */
    void (*vector)(const cpu_gemm_args *g, int64_t begin, int64_t end);
} gemm_dtype;

#endif
