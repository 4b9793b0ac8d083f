/* loops.h: the inner loops of the host backend, built once for each instruction set (loops.inc). All of them give the
 * same bits: no fused multiply-add, and sums in lanes whose number does not depend on the set. */
#ifndef DT_CPU_LOOPS_H
#define DT_CPU_LOOPS_H

#include "../../core/numbers/philox.h"
#include "../cpu.h"
#include "../isa.h"

/* Of elementwise.def, for one dtype. */
typedef struct {
    cpu_row unary[DT_NUNARY], binary[DT_NBINARY], ternary[DT_NTERNARY];
} cpu_ops;

/* A reduction of reductions.def for one dtype: it keeps `width` accumulators, one for each result. argmax and argmin
 * also keep at[j], the position of what accs[j] holds. Some ops have none for some dtypes (reduce.c). */
typedef struct {
    void (*init)(void *accs, int64_t *at, int64_t width, const char *data, int64_t apart, int64_t position);
    /* Takes `count` more elements into each accumulator. Element i of accumulator j is data[j * apart + i * along], and
     * its position is position + i. With `lines` the outer loop goes over i; else it goes over j, and the elements of
     * one accumulator are reduced in lanes. */
    void (*step)(void *accs, int64_t *at, int64_t width, int64_t apart, const char *data, int64_t count, int64_t along,
                 int64_t position, bool lines);
    void (*combine)(void *accs, int64_t *at, const void *others, const int64_t *others_at, int64_t width);
    void (*finish)(const void *accs, const int64_t *at, int64_t width, int64_t size, void *results);
    dt_dtype result;
} cpu_reduction;

/* A faster step for `width` rows of n elements that are neighbours; row j begins at data[j * apart]. With `first` it
 * starts the accumulators, else it adds to them. Only some ops and dtypes have one. A sum must not depend on the
 * instruction set: either all sets have the function, or it gives the bits of casting CPU_CAST_AHEAD elements at a time
 * to float32 and summing those. */
#define CPU_CAST_AHEAD 2048 /* elements that a reduction casts at a time */
typedef void (*cpu_reduced_rows)(void *accs, int64_t *at, int64_t width, int64_t apart, const char *data, int64_t n,
                                 int64_t position, bool first);

/* sums[j] += x[i * along + j], or its square, for each j < width and i < count */
typedef void (*cpu_add_lines)(double *sums, const float *x, int64_t width, int64_t along, int64_t count);

/* Running sums of float32: of four rows of neighbours that begin so many elements after each other, from what sums hold
 * on; and the sums of every eighth element, of a multiple of 8. */
typedef struct {
    void (*four)(const float *x, float *out, int64_t n, int64_t x_apart, int64_t out_apart, double *sums);
    void (*total)(const float *x, int64_t n, double *lanes);
} cpu_scan_parts;

/* The parts of softmax in float32 or float64, for n neighbours of one row. Those called line_ take one element of each
 * of `width` rows. */
typedef struct {
    double (*largest)(const void *x, int64_t n, double start);
    double (*exp)(const void *x, void *exps, int64_t n, double largest); /* the sum of exp(x - largest) */
    void (*scale)(const void *exps, void *out, int64_t n, double sum);
    void (*log)(const void *x, void *out, int64_t n, double largest, double log_sum);
    /* Whole rows of n neighbours, which begin x_apart and out_apart elements after each other; NULL for float64. */
    void (*rows)(const void *x, void *out, int64_t rows, int64_t n, int64_t x_apart, int64_t out_apart, bool take_log);
    void (*line_largest)(const void *x, void *largest, int64_t width);
    void (*line_exp)(const void *x, const void *largest, void *exps, double *sums, int64_t width);
    void (*line_scale)(const void *exps, void *out, const double *sums, int64_t width);
    void (*line_log)(const void *x, const void *largest, void *out, const double *log_sums, int64_t width);
} cpu_softmax_parts;

/* The parts of softmax's gradient in float32 or float64, from the gradient and the result of n neighbours of one row,
 * and of a line across `width` rows. What is summed up is their product, or with log the gradient alone. */
typedef struct {
    double (*sum)(const void *grad, const void *result, int64_t n, bool log);
    void (*finish)(const void *grad, const void *result, void *out, int64_t n, double sum, bool log);
    void (*line_sum)(const void *grad, const void *result, double *sums, int64_t width, bool log);
    void (*line_finish)(const void *grad, const void *result, void *out, const double *sums, int64_t width, bool log);
} cpu_softmax_grad_parts;

/* The parts of norms in float32 or float64, over n neighbours of one row: what it is measured by, the result, the
 * gradient of x, and what is added to those of weight and bias. */
#define CPU_NORM_TOGETHER 4
typedef struct {
    double mean, scale;
} cpu_norm_row;
typedef struct {
    cpu_norm_row (*measure)(const void *x, int64_t n, const dt_normalize_params *params);
    void (*finish)(const void *x, const void *weight, const void *bias, void *out, int64_t n, cpu_norm_row row);
    void (*grad)(const void *grad, const void *x, const void *weight, void *out, int64_t n, cpu_norm_row row,
                 bool centred);
    /* of up to CPU_NORM_TOGETHER rows, one after the other */
    void (*sums)(const void *grad, const void *x, double *weights, double *biases, int64_t n, const cpu_norm_row *row,
                 int64_t rows);
    /* Of batch and group norm, over n neighbours of one channel: the sums of x and of squared distances to the mean; of
     * the gradient and of its products with what is normal; the result; the gradient, scale * (grad * weight - means[0]
     * - normal * means[1]), whose means are weighed too. */
    double (*total)(const void *x, int64_t n);
    double (*squares)(const void *x, int64_t n, double mean);
    void (*products)(const void *grad, const void *x, int64_t n, cpu_norm_row row, double totals[2]);
    void (*channel)(const void *x, void *out, int64_t n, cpu_norm_row row, double weight, double bias);
    void (*channel_grad)(const void *grad, const void *x, void *out, int64_t n, cpu_norm_row row, double weight,
                         const double means[2]);
} cpu_norm_parts;

/* Sums of neighbours along a dimension: line j of out, `size` of them, is the sum of lines from[k] of x, n of them,
 * times share[k], for k from start[j] to start[j + 1]. A line has `inner` elements. Of rows of single elements with
 * `taps` terms each: lane l of tap t of a block of `lanes` is at places[(block * taps + t) * lanes + l] in the vectors
 * of x that begin at windows[2 * block] and windows[2 * block + 1], and has its share at the same place of shares. */
typedef struct {
    int64_t n, size, inner, taps;
    int64_t *start, *from, *windows;
    void *share;
    int32_t *places;
    float *shares;
} cpu_resampling;
typedef struct {
    void (*lines)(const cpu_resampling *r, const void *from, void *to, int64_t begin, int64_t end);
    void (*rows)(const cpu_resampling *r, const void *from, void *to, int64_t rows);
    void (*near)(const cpu_resampling *r, const void *from, void *to, int64_t rows); /* or NULL: no such vectors */
    int64_t lanes;
} cpu_resample_parts;

/* One row of n numbers of a step of a recurrent layer, or of its gradient (layers/cell.c), and the dtypes for which
 * there is one. */
typedef void (*cpu_cell_row)(const void *const *from, void *const *to, int64_t n);
static inline bool
cpu_has_cell(dt_dtype dtype)
{
    return dtype == DT_FLOAT32 || dtype == DT_FLOAT64;
}

/* acc[i] becomes the larger of acc[i] and x[i * stride], or NaN if one is; or their sum. acc is of float, or of double
 * where x is. */
typedef void (*cpu_pool_line)(void *acc, const void *x, int64_t stride, int64_t n);

/* x[i * stride] is entry `tap` of window i: where it is the first, or larger than largest[i], or NaN, it is the
 * largest, and where[i] is tap. where[i] is POOL_NOWHERE before the first. */
#define POOL_NOWHERE INT32_MIN
typedef void (*cpu_pool_pick)(void *largest, int32_t *where, const void *x, int64_t stride, int32_t tap, int64_t n);
/* out[where[i] + i * apart] += grad[i * stride], but for POOL_NOWHERE: a dilated window may miss the image. */
typedef void (*cpu_pool_scatter)(void *out, const int32_t *where, const void *grad, int64_t apart, int64_t stride,
                                 int64_t n);

/* What came for them, at least 16, at the largest entry of each, and 0 at the others. */
typedef void (*cpu_pool_pairs_grad)(const void *upper, const void *lower, const void *grad, void *out_upper,
                                    void *out_lower, int64_t n);

/* A window: begin, end and step of its rows and columns, and how far those of x and out are apart. */
typedef struct {
    int64_t rows[3], columns[3], x_row, x_column, out_row, out_column;
    bool alone; /* no other window has an entry of it */
} cpu_pool_window;
/* For n channels side by side: what came is added to out where the largest is, or written with zeros beside it if the
 * window is alone; x and out stand at the image. */
typedef void (*cpu_pool_give)(const cpu_pool_window *window, const void *x, const void *grad, void *out, int64_t n);

/* A strip of a plane of x in lines, its columns that a stride keeps apart side by side: `stride` lines of `pitch` for
 * each row, -inf where there is no entry; and as many sums, of one row. Of out rows[0] to rows[1] are made, as seen
 * from the first row of the strip, which has all windows over them. The windows of a row are read by vectors: the
 * entries of tap s of a row begin at places[s], and first[i] is the first of window i that lies in the image, or
 * negative. Where windows find their largest entry, and what came for them, stands in rows of `windows`, with a margin
 * before them. */
#define CPU_POOL_NUMBERS 4096
#define CPU_POOL_TAPS 32 /* of a row or column */
typedef struct {
    int64_t height, width, rows[2], results[2], kernel[2], dilation[2];
    int64_t stride, stride_down, pad, pad_above, pitch, held, windows, margin;
    int64_t x_row, x_column, grad_row, grad_column, out_row, out_column;
    int64_t places[CPU_POOL_TAPS], phase[CPU_POOL_TAPS];
    void *laid, *sums, *first, *where, *grads;
} cpu_pool_plane;
/* The gradient of a strip, whose lines were prepared once for the largest. */
typedef void (*cpu_pool_prepare)(const cpu_pool_plane *plane);
typedef void (*cpu_pool_spread)(const cpu_pool_plane *plane, const void *x, const void *grad, void *out);

/* The largest of n windows of 2 x 2 side by side in two rows. */
typedef void (*cpu_pool_pairs)(void *out, const void *upper, const void *lower, int64_t n);

/* sines[i] = sin(x[i] + quarters * pi/2) where |x[i]| is CPU_TURNS_NEAR or more; the others stay as they are. */
typedef void (*cpu_sines)(const float *x, float *sines, int64_t n, uint64_t quarters);

/* x ** exponent, for exponents that need no logarithm. */
#define CPU_POWERS 2
typedef struct {
    double exponent;
    cpu_row f32, f64;
} cpu_power;

/* The largest magnitude of neighbours; NaN if one is. */
typedef float (*cpu_magnitude)(const float *x, int64_t n);

/* n elements of one entry of an update, its arrays in float or double. */
typedef void (*cpu_update_row)(char *const *data, int64_t n, const double *number);

/* Of random numbers: the words of some blocks of the generator, and what n numbers of float32, or of int64, are made of
 * them (philox.h). shuffled: x[i] becomes where it goes in a permutation. At most CPU_DRAWN numbers. */
#define CPU_DRAWN 256
typedef void (*cpu_drawn_floats)(const uint32_t *words, int64_t n, int digits, double a, double b, void *out);
typedef struct {
    void (*words)(uint64_t seed, uint64_t counter, int64_t blocks, uint32_t *words);
    cpu_drawn_floats uniforms, normals;
    void (*integers)(const uint32_t *words, int64_t n, uint64_t low, uint64_t range, int64_t *out);
    void (*shuffled)(const dt_permutation *p, int64_t n, uint64_t *x);
} cpu_random_parts;

/* An op that changes only the sign of a half type, as masks of bits: those that are kept, then those that are flipped,
 * then those that are cleared where the number is negative. Bits above those of infinity are NaN, which becomes the NaN
 * that casts make. */
typedef struct {
    uint16_t infinity, nan, kept, flipped, dropped;
} cpu_half_signs;

typedef struct {
    const cpu_ops *const *ops; /* by dtype; NULL for the half types */
    cpu_row half_signs;        /* its context is a cpu_half_signs */
    cpu_sines sin_wide;
    cpu_magnitude magnitude;
    const cpu_power *powers; /* CPU_POWERS of them */
    cpu_row where[4];        /* for elements of 1, 2, 4, 8 bytes */
    const cpu_row *move;     /* the same */
    const cpu_row *const *casts;
    const cpu_reduction *const *reductions;
    const cpu_reduced_rows *const *reduced_rows; /* by dtype; NULL for most */
    cpu_add_lines add_lines[DT_NREDUCE];         /* of float32, or NULL: the step does it */
    const cpu_scan_parts *scan;                  /* or NULL: scan.c has them */
    const cpu_softmax_parts *softmax[2];         /* float32, float64 */
    const cpu_softmax_grad_parts *softmax_grad[2];
    cpu_pool_line pool_largest[4], pool_sum[4]; /* float16, bfloat16, float32, float64 */
    cpu_pool_pick pool_pick[4];
    cpu_pool_give pool_window[4];
    cpu_pool_prepare pool_prepare[4];
    cpu_pool_spread pool_plane[4];
    cpu_pool_pairs_grad pool_pairs_grad[4];
    cpu_pool_scatter pool_scatter[4];
    cpu_pool_pairs pool_pairs[4];     /* the same; NULL for the half types */
    const cpu_update_row *updates[2]; /* float32, float64 */
    const cpu_random_parts *random;
    const cpu_norm_parts *norm[2]; /* float32, float64 */
    const cpu_resample_parts *resample[2];
    cpu_cell_row cells[2][2 * DT_NCELLS]; /* the same: the steps, then their gradients */
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

/* Calls a row of one or two inputs, all of one dtype, on packed copies of elements that are not neighbours. */
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
