/* gemm_dot.h: rows of numbers S times one column, with vectors V. Included with DOT its name, FMA(a, b, c). */
#define LENGTH ((int64_t)(sizeof(V) / sizeof(S)))

/* `chains` vectors of sums for each row. A row's sum does not depend on `rows`. */
__attribute__((always_inline)) static inline void
DT_CAT(DOT, rows)(int rows, int chains, const S *a, int64_t a_row, const S *b, int64_t k, double *totals)
{
    typedef V U __attribute__((aligned(sizeof(S)), may_alias));
    V sums[DOT_ROWS][DOT_CHAINS];
    int64_t p = 0;
    UNROLL for (int j = 0; j < rows * chains; j++)
    {
        sums[j / chains][j % chains] = (V){0};
    }
    for (; p + chains * LENGTH <= k; p += chains * LENGTH) {
        UNROLL for (int c = 0; c < chains; c++)
        {
            const V x = *(const U *)(b + p + c * LENGTH);
            UNROLL for (int j = 0; j < rows; j++)
            {
                sums[j][c] = FMA(*(const U *)(a + j * a_row + p + c * LENGTH), x, sums[j][c]);
            }
        }
    }
    for (; p + LENGTH <= k; p += LENGTH) {
        const V x = *(const U *)(b + p);
        UNROLL for (int j = 0; j < rows; j++)
        {
            sums[j][0] = FMA(*(const U *)(a + j * a_row + p), x, sums[j][0]);
        }
    }
    UNROLL for (int j = 0; j < rows; j++)
    {
        UNROLL for (int c = 1; c < chains; c++)
        {
            sums[j][0] += sums[j][c];
        }
        S lanes[LENGTH], rest = 0;
        memcpy(lanes, &sums[j][0], sizeof(lanes));
        UNROLL for (int half = LENGTH / 2; half > 0; half /= 2)
        {
            UNROLL for (int l = 0; l < half; l++)
            {
                lanes[l] += lanes[l + half];
            }
        }
        for (int64_t l = p; l < k; l++) {
            rest += a[j * a_row + l] * b[l];
        }
        totals[j] += (double)(lanes[0] + rest);
    }
}

/* Adds to each of 1 or DOT_ROWS totals; `alone`: there is but one row in all. */
static void
DOT(int rows, bool alone, const S *a, int64_t a_row, const S *b, int64_t k, double *totals)
{
    if (rows > 1) {
        DT_CAT(DOT, rows)(DOT_ROWS, 2, a, a_row, b, k, totals);
    } else if (alone) {
        DT_CAT(DOT, rows)(1, DOT_CHAINS, a, a_row, b, k, totals);
    } else {
        DT_CAT(DOT, rows)(1, 2, a, a_row, b, k, totals);
    }
}
#undef LENGTH
#undef DOT
#undef S
#undef V
#undef FMA
