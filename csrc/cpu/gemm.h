/* gemm.h: what the files of the matrix product share. */
#ifndef DT_CPU_GEMM_H
#define DT_CPU_GEMM_H

#include "cpu.h"

/* A block of rows x columns in registers (gemm_kernel.h). */
typedef struct {
    int64_t rows, columns;
    void (*run)(int64_t depth, const void *a, const void *b, void *tile, int add);
} gemm_kernel;

const gemm_kernel *cpu_gemm_kernel(dt_dtype dtype);

#define GEMM_MAX_ROWS 16
#define GEMM_MAX_COLUMNS 32

/* Numbers read from arrays of one dtype into the accumulator's type and back. */
typedef struct {
    /* count rows of depth numbers to a panel: all rows' first numbers, zeros up to width, all second numbers, ... */
    void (*pack)(void *panel, const void *from, int64_t across, int64_t along, int64_t count, int64_t depth,
                 int64_t width);
    /* rows x columns of a tile to c at (row, column); offsets from the row's start for each column, in_line if each is
     * one more than the one before */
    void (*store)(const cpu_gemm_args *g, const void *tile, int64_t tile_columns, int64_t row, int64_t rows,
                  int64_t column, int64_t columns, const int64_t *offsets, bool in_line);
    /* rows [begin, end) of a product with one column */
    void (*vector)(const cpu_gemm_args *g, int64_t begin, int64_t end);
    /* a product too small to pack */
    void (*small)(const cpu_gemm_args *g);
} gemm_dtype;

#endif
