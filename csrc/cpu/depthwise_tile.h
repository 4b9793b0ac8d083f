/* depthwise_tile.h: the sums over one tile of a depthwise convolution, for one instruction set and accumulator.
 * Included with TILE the function's name, S and V scalar and vector, and FMA. */
#define LENGTH ((int64_t)(sizeof(V) / sizeof(S)))
#define MOST_DOWN 4
#define MOST_ACROSS 4

/* Where the j-th vector from column q on begins: the last of several ends with the row, over the others maybe. */
#define VECTOR_AT(q, j) (across == 1 ? 0 : CPU_MIN((q) + (j)*LENGTH, columns - LENGTH))

/* Weights of 3 x 3 and one stride both ways; `down` rows of `across` vectors at once, the last over others maybe. */
__attribute__((always_inline)) static inline void
DT_CAT(TILE, threes)(int stride, int down, int across, const S *tile, int64_t pitch, const S *weights, S bias,
                     int64_t rows, int64_t columns, S *out, int64_t out_row)
{
    typedef V U __attribute__((aligned(sizeof(S)), may_alias));
    V w[9];
    UNROLL for (int t = 0; t < 9; t++)
    {
        w[t] = (V){0} + weights[t];
    }
    for (int64_t p = 0; p < rows; p += down) {
        const int64_t first = CPU_MIN(p, rows - down);
        for (int64_t q = 0; q < columns; q += across * LENGTH) {
            V sums[MOST_DOWN][MOST_ACROSS];
            UNROLL for (int i = 0; i < down * across; i++)
            {
                sums[i / across][i % across] = (V){0} + bias;
            }
            int64_t at[MOST_ACROSS];
            UNROLL for (int j = 0; j < across; j++)
            {
                at[j] = VECTOR_AT(q, j);
            }
            const S *in = tile + first * stride * stride * pitch;
            UNROLL for (int y = 0; y < (down - 1) * stride + 3; y++)
            {
                UNROLL for (int s = 0; s < 3; s++)
                {
                    UNROLL for (int j = 0; j < across; j++)
                    {
                        const V x = *(const U *)(in + (y * stride + s % stride) * pitch + s / stride + at[j]);
                        UNROLL for (int i = 0; i < down; i++)
                        {
                            if (y >= i * stride && y < i * stride + 3) {
                                sums[i][j] = FMA(x, w[(y - i * stride) * 3 + s], sums[i][j]);
                            }
                        }
                    }
                }
            }
            UNROLL for (int i = 0; i < down; i++)
            {
                UNROLL for (int j = 0; j < across; j++)
                {
                    *(U *)(out + (first + i) * out_row + at[j]) = sums[i][j];
                }
            }
        }
    }
}

/* Any weight; offsets: of the taps' numbers in the tile. */
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
    const int64_t pitch = job->tiles.pitch, down = columns > LENGTH ? 2 : 4;
    const int taps = (int)(conv->kernel[0] * conv->kernel[1]), stride = (int)conv->stride[0];
    bool threes = conv->kernel[0] == 3 && conv->kernel[1] == 3 && conv->dilation[0] == 1 && conv->dilation[1] == 1 &&
                  conv->stride[0] == conv->stride[1] && stride <= 2 && rows >= down;
    if (threes && stride == 1 && down == 2) {
        DT_CAT(TILE, threes)(1, 2, 2, tile, pitch, weights, bias, rows, columns, out, out_row);
    } else if (threes && stride == 1) {
        DT_CAT(TILE, threes)(1, 4, 1, tile, pitch, weights, bias, rows, columns, out, out_row);
    } else if (threes && down == 2) {
        DT_CAT(TILE, threes)(2, 2, 2, tile, pitch, weights, bias, rows, columns, out, out_row);
    } else if (threes) {
        DT_CAT(TILE, threes)(2, 4, 1, tile, pitch, weights, bias, rows, columns, out, out_row);
    } else {
        const int64_t step = conv->stride[0] * conv->stride[1] * pitch;
        if (columns > LENGTH) {
            DT_CAT(TILE, taps)(4, tile, step, taps, offsets, weights, bias, rows, columns, out, out_row);
        } else {
            DT_CAT(TILE, taps)(1, tile, step, taps, offsets, weights, bias, rows, columns, out, out_row);
        }
    }
}
#undef LENGTH
#undef MOST_DOWN
#undef MOST_ACROSS
#undef VECTOR_AT
#undef TILE
#undef S
#undef V
#undef FMA
