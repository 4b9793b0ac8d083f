/* gemm_kernel.h: one register block of a matrix product, for one instruction set and type. Included by gemm.c with
 *
 *   KERNEL   its name              TARGET   attributes of the function
 *   S, V     scalar, vector        ROWS     rows of the block
 *   VECTORS  vectors in a row      SPLAT(s), FMA(a, b, c)
 *
 * a holds ROWS numbers for each of depth steps, b as many vectors; tile is contiguous and is added to if add is set. */
TARGET static void
KERNEL(int64_t depth, const void *a, const void *b, void *tile, int add)
{
    enum { LENGTH = sizeof(V) / sizeof(S) };
    const S *pa = a, *pb = b;
    S *out = tile;
    V acc[ROWS][VECTORS];
    UNROLL for (int i = 0; i < ROWS; i++)
    {
        UNROLL for (int j = 0; j < VECTORS; j++)
        {
            acc[i][j] = add ? *(const V *)(out + (i * VECTORS + j) * LENGTH) : (V){0};
        }
    }
    for (int64_t p = 0; p < depth; p++) {
        V row[VECTORS];
        UNROLL for (int j = 0; j < VECTORS; j++)
        {
            row[j] = *(const V *)(pb + j * LENGTH);
        }
        UNROLL for (int i = 0; i < ROWS; i++)
        {
            const V x = SPLAT(pa[i]);
            UNROLL for (int j = 0; j < VECTORS; j++)
            {
                acc[i][j] = FMA(x, row[j], acc[i][j]);
            }
        }
        pa += ROWS;
        pb += VECTORS * LENGTH;
    }
    UNROLL for (int i = 0; i < ROWS; i++)
    {
        UNROLL for (int j = 0; j < VECTORS; j++)
        {
            *(V *)(out + (i * VECTORS + j) * LENGTH) = acc[i][j];
        }
    }
}
#undef KERNEL
#undef TARGET
#undef S
#undef V
#undef ROWS
#undef VECTORS
#undef SPLAT
#undef FMA
