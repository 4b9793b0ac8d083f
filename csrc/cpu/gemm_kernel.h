/* gemm_kernel.h: the register blocks of a matrix product, for one instruction set and type. Included with
 *
 *   KERNEL   its name              S, V    scalar, vector
 *   EACH     each number of rows that a block may have
 *   VECTORS  vectors in a row      SPLAT(s), FMA(a, b, c)
 *   STEPS    of depth at once in blocks of MANY_ROWS or more
 *   DEPTH    of a sum before it is added to c, whose place is fetched FETCH_STEPS before that; 0: before the sum
 *
 * EACH(X) makes functions for 1, 2, ... rows of type gemm_run; KERNEL_packed, KERNEL_anywhere, KERNEL_narrow and
 * KERNEL_narrow_anywhere are tables of them. */
#define LOAD_V(p) (*(const U *)(p))
#define STORE_V(p, v) (*(U *)(p) = (v))

#define LENGTH ((int64_t)(sizeof(V) / sizeof(S)))

/* One step of depth; a: its numbers side by side, or `row` the p-th of each. */
__attribute__((always_inline)) static inline void
DT_CAT(KERNEL, step)(int rows, int vectors, bool anywhere, V acc[][VECTORS], const S *a, const S *const *row, int64_t p,
                     const S *b)
{
    typedef V U __attribute__((aligned(sizeof(S)), may_alias));
    V line[VECTORS];
    UNROLL for (int j = 0; j < vectors; j++)
    {
        line[j] = LOAD_V(b + j * LENGTH);
    }
    UNROLL for (int i = 0; i < rows; i++)
    {
        const V x = SPLAT(anywhere ? row[i][p] : a[i]);
        UNROLL for (int j = 0; j < vectors; j++)
        {
            acc[i][j] = FMA(x, line[j], acc[i][j]);
        }
    }
}

/* Where the sums will go. */
__attribute__((always_inline)) static inline void
DT_CAT(KERNEL, fetch)(int rows, const S *out, int64_t to_row)
{
    DT_SHORT_LOOP for (int i = 0; i < rows; i++, out += to_row)
    {
        __builtin_prefetch(out, 1);
        __builtin_prefetch(out + VECTORS * LENGTH - 1, 1);
    }
}

__attribute__((always_inline)) static inline void
DT_CAT(KERNEL, rows)(int rows, int vectors, bool anywhere, const gemm_block *block)
{
    typedef V U __attribute__((aligned(sizeof(S)), may_alias));
    const S *a = block->a, *b = block->b, *in = block->from;
    S *out = block->to;
    const int64_t depth = block->depth, a_step = block->a_step, b_step = block->b_step, to_row = block->to_row;
    const bool small = anywhere && vectors < VECTORS; /* of gemm_small.c alone */
    /* then no pointer has to step: a loop of little more than loads and products suffers least from what else runs on
     * the core */
    const bool dense = !small && rows >= MANY_ROWS && b_step == VECTORS * LENGTH && (anywhere || a_step == rows);
    V acc[GEMM_MAX_ROWS][VECTORS];
    UNROLL for (int i = 0; i < rows; i++)
    {
        UNROLL for (int j = 0; j < vectors; j++)
        {
            acc[i][j] = (V){0};
        }
    }
    if (!small && (!dense || FETCH_STEPS == 0)) {
        DT_CAT(KERNEL, fetch)(rows, out, to_row);
    }
    for (int64_t t = 0; t < block->segments; t++) {
        const S *row[GEMM_MAX_ROWS];
        UNROLL for (int i = 0; anywhere && i < rows; i++)
        {
            row[i] = block->rows[t * rows + i];
        }
        if (dense) {
            int64_t p = 0, stop = t + 1 < block->segments ? depth : depth - FETCH_STEPS;
            for (;; stop = depth) {
                UNROLL_STEPS for (; p < stop; p++)
                {
                    DT_CAT(KERNEL, step)(rows, vectors, anywhere, acc, a, row, p, b);
                    a += anywhere ? 0 : rows;
                    b += VECTORS * LENGTH;
                }
                if (stop == depth) {
                    break;
                }
                DT_CAT(KERNEL, fetch)(rows, out, to_row);
            }
            continue;
        }
        for (int64_t p = 0; p < depth; p++) {
            DT_CAT(KERNEL, step)(rows, vectors, anywhere, acc, a, row, p, b);
            a += anywhere ? 0 : a_step;
            b += b_step;
        }
    }
    UNROLL for (int i = 0; i < rows; i++)
    {
        UNROLL for (int j = 0; j < vectors; j++)
        {
            if (in != NULL) {
                acc[i][j] += LOAD_V(in + i * block->from_row + j * LENGTH);
            }
            STORE_V(out + i * to_row + j * LENGTH, acc[i][j]);
        }
    }
}

#define ROWS_FUNCTIONS(n)                                                                                              \
    static void DT_CAT(KERNEL, packed_##n)(const gemm_block *block)                                                    \
    {                                                                                                                  \
        DT_CAT(KERNEL, rows)(n, VECTORS, false, block);                                                                \
    }                                                                                                                  \
    static void DT_CAT(KERNEL, anywhere_##n)(const gemm_block *block)                                                  \
    {                                                                                                                  \
        DT_CAT(KERNEL, rows)(n, VECTORS, true, block);                                                                 \
    }                                                                                                                  \
    static void DT_CAT(KERNEL, narrow_##n)(const gemm_block *block)                                                    \
    {                                                                                                                  \
        DT_CAT(KERNEL, rows)(n, VECTORS / 2, false, block);                                                            \
    }                                                                                                                  \
    static void DT_CAT(KERNEL, narrow_anywhere_##n)(const gemm_block *block)                                           \
    {                                                                                                                  \
        DT_CAT(KERNEL, rows)(n, VECTORS / 2, true, block);                                                             \
    }
EACH(ROWS_FUNCTIONS)

#define PACKED_ENTRY(n) DT_CAT(KERNEL, packed_##n),
#define ANYWHERE_ENTRY(n) DT_CAT(KERNEL, anywhere_##n),
#define NARROW_ENTRY(n) DT_CAT(KERNEL, narrow_##n),
#define NARROW_ANYWHERE_ENTRY(n) DT_CAT(KERNEL, narrow_anywhere_##n),
static const gemm_run DT_CAT(KERNEL, packed)[] = {EACH(PACKED_ENTRY)};
static const gemm_run DT_CAT(KERNEL, anywhere)[] = {EACH(ANYWHERE_ENTRY)};
static const gemm_run DT_CAT(KERNEL, narrow)[] = {EACH(NARROW_ENTRY)};
static const gemm_run DT_CAT(KERNEL, narrow_anywhere)[] = {EACH(NARROW_ANYWHERE_ENTRY)};
static const gemm_kernel KERNEL = {sizeof(DT_CAT(KERNEL, packed)) / sizeof(gemm_run),
                                   VECTORS * sizeof(V) / sizeof(S),
                                   DEPTH,
                                   DT_CAT(KERNEL, packed),
                                   DT_CAT(KERNEL, anywhere),
                                   DT_CAT(KERNEL, narrow),
                                   DT_CAT(KERNEL, narrow_anywhere)};

#undef LENGTH
#undef LOAD_V
#undef STORE_V
#undef ROWS_FUNCTIONS
#undef PACKED_ENTRY
#undef ANYWHERE_ENTRY
#undef NARROW_ENTRY
#undef NARROW_ANYWHERE_ENTRY
#undef KERNEL
#undef S
#undef V
