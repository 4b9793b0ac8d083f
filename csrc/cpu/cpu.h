/* cpu.h: the host backend. The core has checked every argument; slots trust them. Results never depend on the number
 * of threads: work is cut at places that follow from the shapes alone, and partial results meet in a fixed order. */
#ifndef DT_CPU_H
#define DT_CPU_H

#include "front.h"

#define DT_SLOT(ret, name, args) ret cpu_##name args;
#include "../core/slots.def"
#undef DT_SLOT

extern const dt_backend cpu_backend;

#define CPU_MIN(a, b) ((a) < (b) ? (a) : (b))
#define CPU_MAX(a, b) ((a) > (b) ? (a) : (b))
#define CPU_CEIL_DIV(a, b) (((a) + (b)-1) / (b))

/* Iterations do not depend on each other: an output is either apart from the inputs or exactly one of them. */
#if defined(__GNUC__) && !defined(__clang__)
#define CPU_INDEPENDENT _Pragma("GCC ivdep")
#else
#define CPU_INDEPENDENT
#endif

/* Before the loop over accumulators in lanes, which are to stay in registers: gcc unrolls what is left of the turns
 * once vectors are made, but would begin with that if it might unroll all of them. */
#if defined(__GNUC__) && !defined(__clang__)
#define CPU_LANES _Pragma("GCC unroll 8")
#else
#define CPU_LANES
#endif

/* ---------------------------------------------------------------- threads.c */

typedef void (*cpu_body)(void *ctx, int64_t begin, int64_t end);
/* Calls body over [0, nitems), cut in one piece a thread, no piece below grain. Inline when another region runs. */
void cpu_parallel(int64_t nitems, int64_t grain, cpu_body body, void *ctx);

/* The same for what may fail: a piece ends at its first failure, and one of those is returned. */
typedef dt_status (*cpu_attempt)(void *ctx, int64_t begin, int64_t end, dt_error *err);
dt_status cpu_try_parallel(int64_t nitems, int64_t grain, cpu_attempt attempt, void *ctx, dt_error *err) DT_MUST_CHECK;

/* ---------------------------------------------------------------- rows.c */

#define CPU_GRAIN 32768 /* elements worth a thread */

#define CPU_MAX_ARRAYS 4

/* n elements of up to four arrays, the output first: addresses, and strides in elements. */
typedef void (*cpu_row)(char *const *data, const int64_t *strides, int64_t n, const void *ctx);
/* Calls row over the whole walk on all threads. */
void cpu_walk(const dt_walk *walk, const dt_array *const *arrays, cpu_row row, const void *ctx);
/* The everyday case at once: row over few elements that lie one after the other in all arrays (of one element in an
 * immediate). False: nothing was done. */
static inline bool
cpu_one_row(int narrays, const dt_array *const *arrays, cpu_row row, const void *ctx)
{
    const dt_array *first = arrays[0];
    int64_t numel = 1;
    DT_SHORT_LOOP for (size_t d = first->ndim; d > 0; d--)
    {
        int64_t size = first->shape[d - 1];
        for (int j = 0; j < narrays && size != 1; j++) {
            if (arrays[j]->storage != NULL && arrays[j]->strides[d - 1] != numel) {
                return false;
            }
        }
        numel *= size;
    }
    if (numel >= CPU_GRAIN) {
        return false;
    }
    char *data[CPU_MAX_ARRAYS];
    int64_t inner[CPU_MAX_ARRAYS];
    for (int j = 0; j < narrays; j++) {
        data[j] = dt_array_data(arrays[j]);
        inner[j] = arrays[j]->storage != NULL;
    }
    row(data, inner, numel, ctx);
    return true;
}

/* n elements of one array, the first of them at `index` in row-major order; stride in bytes. */
typedef void (*cpu_indexed_row)(char *data, int64_t stride, int64_t index, int64_t n, const void *ctx);
void cpu_indexed_walk(const dt_array *out, cpu_indexed_row row, const void *ctx);

/* Offset, in elements, of row-major element index over the first ndim dimensions. */
static inline int64_t
cpu_offset(int ndim, const int64_t *shape, const int64_t *strides, int64_t index)
{
    int64_t offset = 0;
    for (int d = ndim - 1; d >= 0; d--) {
        offset += index % shape[d] * strides[d];
        index /= shape[d];
    }
    return offset;
}

/* ---------------------------------------------------------------- copy.c */

/* The row that copies data[1] to data[0] by the cast rule; bits are kept where the dtypes are equal. */
cpu_row cpu_cast_row(dt_dtype from, dt_dtype to);

/* ---------------------------------------------------------------- elementwise.c */

/* The row of an activation over the accumulators of dtype; NULL for none. */
cpu_row cpu_activation_row(dt_activation activation, dt_dtype dtype);

/* n accumulators at `values`, in place */
#define CPU_ACTIVATE(row, values, n)                                                                                   \
    (row)((char *[]){(char *)(values), (char *)(values)}, (const int64_t[]){1, 1}, n, NULL)

/* ---------------------------------------------------------------- gemm.c */

/* c = activation(alpha * a @ b + beta * c + bias), all of one float dtype, accumulated in float32 (float64 in itself).
 * Strides are in elements. c is not read when beta is 0. bias, or NULL, is read at row * bias_row + column *
 * bias_column. activation is NULL, or the row of an elementwise op for the accumulators (cpu_activation_row).
 * conv is NULL, or says which of a's rows and b's columns are patches and which are weights; k is then the number of
 * channels, and the strides of a and b are not used (gemm/patches.h). b_storage is b's, if panels of it may be kept for
 * the next product, or NULL. */
struct cpu_conv;
typedef struct {
    dt_dtype dtype;
    int64_t m, n, k;
    double alpha, beta;
    const void *a, *b, *bias;
    void *c;
    int64_t a_row, a_column, b_row, b_column, c_row, c_column, bias_row, bias_column;
    cpu_row activation;
    const struct cpu_conv *conv;
    dt_storage *b_storage;
} cpu_gemm_args;

dt_status cpu_gemm(const cpu_gemm_args *g, dt_error *err) DT_MUST_CHECK;
/* Bytes of a processor's second cache, as the system says. */
int64_t cpu_second_cache(void);

#endif
