/* loops.h: the inner loops of the host backend, built once for each instruction set (loops.inc). All of them give the
 * same bits: no fused multiply-add, and sums in lanes whose number does not depend on the set. */
#ifndef DT_CPU_LOOPS_H
#define DT_CPU_LOOPS_H

#include "../cpu.h"
#include "../isa.h"

/* Of elementwise.def, for one dtype. */
typedef struct {
    cpu_row unary[DT_NUNARY], binary[DT_NBINARY], ternary[DT_NTERNARY];
} cpu_ops;

/* Of reductions.def, for one op and dtype (of some ops not every one: reduce.c): width accumulators side by side, and
 * for those that answer with a position, where each stands. */
typedef struct {
    void (*init)(void *accs, int64_t *at, int64_t width, const char *data, int64_t apart, int64_t position);
    /* Count more elements for each, `along` apart, the first at `position`; accumulators read `apart` from each other.
     * lines: one element for all of them after the other; else all elements of one, in lanes. */
    void (*step)(void *accs, int64_t *at, int64_t width, int64_t apart, const char *data, int64_t count, int64_t along,
                 int64_t position, bool lines);
    void (*combine)(void *accs, int64_t *at, const void *others, const int64_t *others_at, int64_t width);
    void (*finish)(const void *accs, const int64_t *at, int64_t width, int64_t size, void *results);
    dt_dtype result;
} cpu_reduction;

/* The same for width rows of n neighbours, of some ops and dtypes: accumulators begin with the first of them, or count
 * them besides. Of sums, either every set has it or it gives the bits that the one for float32 gives of
 * CPU_CAST_AHEAD elements after the other, cast. */
#define CPU_CAST_AHEAD 2048 /* elements cast at a time for a reduction: a block, or a leaf that is alone */
typedef void (*cpu_reduced_rows)(void *accs, int64_t *at, int64_t width, int64_t apart, const char *data, int64_t n,
                                 int64_t position, bool first);

/* Adds count lines of float32, so many elements apart, to the sums of width neighbours. */
typedef void (*cpu_add_lines)(double *sums, const float *x, int64_t width, int64_t along, int64_t count);

/* The parts of softmax in float32 or float64: of n neighbours of one row, and of a line across `width` rows. */
typedef struct {
    double (*largest)(const void *x, int64_t n, double start);
    double (*exp)(const void *x, void *exps, int64_t n, double largest); /* the sum of exp(x - largest) */
    void (*scale)(const void *exps, void *out, int64_t n, double sum);
    void (*log)(const void *x, void *out, int64_t n, double largest, double log_sum);
    /* Rows of n neighbours from end to end, so many elements apart; NULL for float64. */
    void (*rows)(const void *x, void *out, int64_t rows, int64_t n, int64_t x_apart, int64_t out_apart, bool take_log);
    void (*line_largest)(const void *x, void *largest, int64_t width);
    void (*line_exp)(const void *x, const void *largest, void *exps, double *sums, int64_t width);
    void (*line_scale)(const void *exps, void *out, const double *sums, int64_t width);
    void (*line_log)(const void *x, const void *largest, void *out, const double *log_sums, int64_t width);
} cpu_softmax_parts;

/* The lines of a pool, in float, or double for float64: acc[i] and x[i * stride] become the larger one (NaN first), or
 * their sum. */
typedef void (*cpu_pool_line)(void *acc, const void *x, int64_t stride, int64_t n);

/* The largest of n windows of 2 x 2 side by side in two rows. */
typedef void (*cpu_pool_pairs)(void *out, const void *upper, const void *lower, int64_t n);

/* The sines of neighbours, quarter turns further on, where |x| is CPU_TURNS_NEAR or more; the others stay. */
typedef void (*cpu_sines)(const float *x, float *sines, int64_t n, uint64_t quarters);

/* The largest magnitude of neighbours; NaN if one is. */
typedef float (*cpu_magnitude)(const float *x, int64_t n);

/* Of ops that change no more of a half type than signs, what becomes of the bits: kept, flipped, and dropped from
 * negative numbers. NaN, above infinity, becomes the one that casts make. */
typedef struct {
    uint16_t infinity, nan, kept, flipped, dropped;
} cpu_half_signs;

typedef struct {
    const cpu_ops *const *ops; /* by dtype; NULL for the half types */
    cpu_row half_signs;        /* its context is a cpu_half_signs */
    cpu_sines sin_wide;
    cpu_magnitude magnitude;
    cpu_row where[4];    /* for elements of 1, 2, 4, 8 bytes */
    const cpu_row *move; /* the same */
    const cpu_row *const *casts;
    const cpu_reduction *const *reductions;
    const cpu_reduced_rows *const *reduced_rows; /* by dtype; NULL for most */
    cpu_add_lines add_lines;                     /* or NULL: the step of a sum does it */
    const cpu_softmax_parts *softmax[2];         /* float32, float64 */
    cpu_pool_line pool_largest[4], pool_sum[4];  /* float16, bfloat16, float32, float64 */
    cpu_pool_pairs pool_pairs[4];                /* the same; NULL for the half types */
} cpu_loops;

extern const cpu_loops cpu_loops_generic;
#if defined(__x86_64__)
extern const cpu_loops cpu_loops_avx2, cpu_loops_avx512;
#endif

static inline const cpu_loops *
cpu_loops_here(void)
{
    static const cpu_loops *const sets[CPU_NISAS] = {
        &cpu_loops_generic,
#if defined(__x86_64__)
        &cpu_loops_avx2,
        &cpu_loops_avx512,
#endif
    };
    return sets[cpu_isa_here()];
}

/* Gives neighbours to a row of one or two inputs, and a result of the same dtype, whose elements are apart. */
void cpu_row_packed(cpu_row row, dt_dtype dtype, int ninputs, char *const *data, const int64_t *strides, int64_t n,
                    const void *ctx);

/* What the loops take in the place of dtype: the half types are computed as float32. */
static inline dt_dtype
cpu_computed(dt_dtype dtype)
{
    return dtype == DT_FLOAT16 || dtype == DT_BFLOAT16 ? DT_FLOAT32 : dtype;
}

/* 0, 1, 2, 3 for 1, 2, 4, 8 bytes */
static inline int
cpu_size_index(size_t itemsize)
{
    return itemsize == 1 ? 0 : itemsize == 2 ? 1 : itemsize == 4 ? 2 : 3;
}

#endif
