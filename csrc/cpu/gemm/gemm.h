/* gemm.h: what the files of the matrix product and the convolution share. */
#ifndef DT_CPU_GEMM_H
#define DT_CPU_GEMM_H

#include "../cpu.h"
#include "../isa.h"

/* ---------------------------------------------------------------- what one instruction set has: gemm.inc */

/* to = from + a @ b for one register block. a's numbers are those of its rows side by side, a_step from one of depth
 * steps to the next; or `rows` has the address of each row, whose steps are neighbours, for each of `segments` times
 * depth steps. The columns of b, from and to are neighbours. from NULL: zeros. */
typedef struct {
    int64_t depth, segments;
    const void *a;
    const void *const *rows;
    const void *b, *from;
    void *to;
    int64_t a_step, b_step, from_row, to_row;
} gemm_block;

typedef void (*gemm_run)(const gemm_block *block);

/* The register blocks of one type: columns wide, best when they add up `depth` products at once; [i] for i + 1 rows,
 * side by side or anywhere. */
typedef struct {
    int64_t rows, columns, depth;
    const gemm_run *packed, *anywhere;
    const gemm_run *narrow, *narrow_anywhere; /* for the first half of the columns */
} gemm_kernel;

/* out = a @ b of integers, where out is contiguous from column to column (whole.c). */
void cpu_whole_matmul(const dt_array *a, const dt_array *b, const dt_array *out);

/* Of a product of integers k, n and steps in elements: those of c's columns are neighbours. */
typedef struct {
    const void *a, *b;
    void *c;
    int64_t a_row, a_column, b_row, b_column, c_row, k, n;
} gemm_whole;

/* The first rows of c. */
typedef void (*gemm_whole_rows)(const gemm_whole *g, int64_t rows);

enum { WHOLE_ROWS = 4, WHOLE_TILE = 16, WHOLE_DEPTH = 256 };

#define GEMM_MAX_ROWS 16
#define GEMM_MAX_COLUMNS 32
#define GEMM_MAX_DEPTH 512

/* count rows of depth numbers to a panel of accumulators: all rows' first numbers, up to width, all second numbers, ...
 * The p-th numbers go to the places[p]-th line, or to the p-th if places is NULL. */
typedef void (*gemm_pack)(void *panel, const void *from, int64_t across, int64_t along, int64_t count, int64_t depth,
                          int64_t width, const int32_t *places);

struct conv_rows;
struct conv_weight_grad;
struct conv_input_grad;

/* Numbers of one dtype, read into accumulators and written back. */
typedef struct {
    const gemm_kernel *kernel;
    gemm_pack pack;
    /* rows x columns of a tile to c at (row, column) */
    void (*store)(const cpu_gemm_args *g, const void *tile, int64_t tile_columns, int64_t row, int64_t rows,
                  int64_t column, int64_t columns);
    /* one number: the sum of k products */
    void (*dot)(const void *a, int64_t a_step, const void *b, int64_t b_step, int64_t k, void *out);
    /* rows [begin, end) of a product with few columns, for which a is read once */
    void (*vector)(const cpu_gemm_args *g, int64_t begin, int64_t end);
    /* a depthwise convolution where channels lie side by side, rows of the result; of 3 x 3, rows of its planes; in
     * tiles; number by number */
    void (*depthwise[4])(const struct conv_rows *job, int64_t begin, int64_t end);
    /* the gradient of a depthwise weight: vectors of `lanes` channels, NULL for the half types, which
     * would be converted once for each tap; planes, by output */
    void (*weight_channels)(const struct conv_weight_grad *job, int64_t begin, int64_t end);
    void (*weight_planes)(const struct conv_weight_grad *job, int64_t begin, int64_t end);
    int64_t lanes;
    /* the same of its input with a stride: planes; rows where channels lie side by side */
    void (*spread[2])(const struct conv_input_grad *job, int64_t begin, int64_t end);
    /* scores of attention become weights: attention/weigh.inc */
    double (*weigh)(void *row, const void *added, int64_t n, double *top, double *sum);
} gemm_dtype;

/* Whether the sums are what is written. */
static inline bool
cpu_gemm_finished(const cpu_gemm_args *g)
{
    return g->alpha == 1 && g->beta == 0 && g->bias == NULL && g->activation == NULL;
}

/* small.c: a product of so little work that any plan would cost more; false: it is none, and nothing was done. */
bool cpu_gemm_small(const cpu_gemm_args *g);

/* In the order of dt_dtype, from DT_FLOAT16; of integers of 1, 2, 4 and 8 bytes. */
typedef struct {
    gemm_dtype dtypes[4];
    gemm_whole_rows whole[4];
} gemm_set;

extern const gemm_set cpu_gemm_generic;
#if defined(__x86_64__)
extern const gemm_set cpu_gemm_avx2, cpu_gemm_avx512;
#endif

/* The set that runs here. */
static inline const gemm_set *
cpu_gemm_set(void)
{
    static const gemm_set *const sets[CPU_NISAS] = {
        &cpu_gemm_generic,
#if defined(__x86_64__)
        &cpu_gemm_avx2,
        &cpu_gemm_avx512,
#endif
    };
    return sets[cpu_isa_here()];
}

static inline const gemm_dtype *
cpu_gemm_parts(dt_dtype dtype)
{
    return &cpu_gemm_set()->dtypes[dtype - DT_FLOAT16];
}

#endif
