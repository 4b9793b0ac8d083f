/* depthwise_tile.h: the sums over one tile of a depthwise convolution, for one instruction set and accumulator.
 * Included with TILE the function's name, S and V scalar and vector, and FMA. */
#define LENGTH ((int64_t)(sizeof(V) / sizeof(S)))
#define MOST_ACROSS 4

/* Where the j-th vector from column q on begins: the last of several ends with the row, over the others maybe. */
#define VECTOR_AT(q, j) (across == 1 ? 0 : CPU_MIN((q) + (j)*LENGTH, columns - LENGTH))

/* Offsets: of the taps' numbers in the tile. */
__attribute__((always_inline)) static inline void
DT_CAT(TILE, taps)(int across, const S *tile, int64_t pitch, int taps, const int64_t *offsets, const S *weights, S bias,
                   int64_t rows, int64_t columns, S *out, int64_t out_row)
{
    typedef V U __attribute__((aligned(sizeof(S)), may_alias));
    for (int64_t p = 0; p < rows; p++, tile += pitch, out += out_row) {
        for (int64_t q = 0; q < columns; q += across * LENGTH) {
            V sums[MOST_ACROSS];
            UNROLL for (int j = 0; j < across; j++)
            {
                sums[j] = (V){0} + bias;
            }
            for (int t = 0; t < taps; t++) {
                const V w = (V){0} + weights[t];
                UNROLL for (int j = 0; j < across; j++)
                {
                    sums[j] = FMA(*(const U *)(tile + offsets[t] + VECTOR_AT(q, j)), w, sums[j]);
                }
            }
            UNROLL for (int j = 0; j < across; j++)
            {
                *(U *)(out + VECTOR_AT(q, j)) = sums[j];
            }
        }
    }
}

/* Rows of sums, out_row apart; with fewer columns than a vector has numbers, what is behind the last is overwritten. */
static void
TILE(const conv_rows *job, const S *tile, const int64_t *offsets, const S *weights, S bias, int64_t rows,
     int64_t columns, S *out, int64_t out_row)
{
    const struct cpu_conv *conv = &job->conv;
    const int taps = (int)(conv->kernel[0] * conv->kernel[1]);
    const int64_t step = conv->stride[0] * conv->stride[1] * job->tiles.pitch;
    if (columns > LENGTH) {
        DT_CAT(TILE, taps)(4, tile, step, taps, offsets, weights, bias, rows, columns, out, out_row);
    } else {
        DT_CAT(TILE, taps)(1, tile, step, taps, offsets, weights, bias, rows, columns, out, out_row);
    }
}
#undef LENGTH
#undef MOST_ACROSS
#undef VECTOR_AT
#undef TILE
#undef S
#undef V
#undef FMA
