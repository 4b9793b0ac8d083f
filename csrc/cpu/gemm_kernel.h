/* gemm_kernel.h: the register blocks of a matrix product, for one instruction set and type. Included by gemm_kernels.c
 * with
 *
 *   KERNEL   its name              TARGET   attributes of the functions
 *   S, V     scalar, vector        EACH     each number of rows that a block may have
 *   VECTORS  vectors in a row      SPLAT(s), FMA(a, b, c)
 *
 * EACH(X) makes KERNEL_1, KERNEL_2, ... of type gemm_run, and KERNEL is the table of them. */
#define LOAD_V(p) (*(const U *)(p))
#define STORE_V(p, v) (*(U *)(p) = (v))

__attribute__((always_inline)) TARGET static inline void
DT_CAT(KERNEL, rows)(int rows, int64_t depth, const void *a, int64_t a_row, int64_t a_step, const void *b,
                     int64_t b_step, const void *from, int64_t from_row, void *to, int64_t to_row)
{
    enum { LENGTH = sizeof(V) / sizeof(S) };
    typedef V U __attribute__((aligned(sizeof(S)), may_alias));
    const S *pa = a, *pb = b, *in = from;
    S *out = to;
    V acc[GEMM_MAX_ROWS][VECTORS];
    UNROLL for (int i = 0; i < rows; i++)
    {
        UNROLL for (int j = 0; j < VECTORS; j++)
        {
            acc[i][j] = (V){0};
        }
        __builtin_prefetch(out + i * to_row, 1);
        __builtin_prefetch(out + i * to_row + VECTORS * LENGTH - 1, 1);
    }
    for (int64_t p = 0; p < depth; p++) {
        V row[VECTORS];
        UNROLL for (int j = 0; j < VECTORS; j++)
        {
            row[j] = LOAD_V(pb + j * LENGTH);
        }
        UNROLL for (int i = 0; i < rows; i++)
        {
            const V x = SPLAT(pa[i * a_row]);
            UNROLL for (int j = 0; j < VECTORS; j++)
            {
                acc[i][j] = FMA(x, row[j], acc[i][j]);
            }
        }
        pa += a_step;
        pb += b_step;
    }
    UNROLL for (int i = 0; i < rows; i++)
    {
        UNROLL for (int j = 0; j < VECTORS; j++)
        {
            if (in != NULL) {
                acc[i][j] += LOAD_V(in + i * from_row + j * LENGTH);
            }
            STORE_V(out + i * to_row + j * LENGTH, acc[i][j]);
        }
    }
}

/* Packed panels have the numbers of a step side by side. */
#define ROWS_FUNCTION(n)                                                                                               \
    TARGET static void DT_CAT(KERNEL, n)(int64_t depth, const void *a, int64_t a_row, int64_t a_step, const void *b,   \
                                         int64_t b_step, const void *from, int64_t from_row, void *to, int64_t to_row) \
    {                                                                                                                  \
        if (a_row == 1) {                                                                                              \
            DT_CAT(KERNEL, rows)(n, depth, a, 1, a_step, b, b_step, from, from_row, to, to_row);                       \
        } else {                                                                                                       \
            DT_CAT(KERNEL, rows)(n, depth, a, a_row, a_step, b, b_step, from, from_row, to, to_row);                   \
        }                                                                                                              \
    }
EACH(ROWS_FUNCTION)

#define ROWS_ENTRY(n) DT_CAT(KERNEL, n),
static const gemm_run KERNEL[] = {EACH(ROWS_ENTRY)};

#undef LOAD_V
#undef STORE_V
#undef ROWS_FUNCTION
#undef ROWS_ENTRY
#undef KERNEL
#undef TARGET
#undef S
#undef V
#undef EACH
#undef VECTORS
#undef SPLAT
#undef FMA
