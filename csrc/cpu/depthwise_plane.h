/* depthwise_plane.h: the sums over some rows of one plane of a depthwise convolution with a weight of 3 x 3, read where
 * they lie, for one instruction set and accumulator. Vectors reach over the ends of rows, and what they find there is
 * masked. Included with PLANE the function's name, S and V scalar and vector, BITS an integer of S's size, FMA, and
 * lists of places: TWOS(i), every other number of two vectors from the i-th on, in the order that is cheapest to make,
 * and JOINED, where in that order each one is. */
#define LENGTH ((int64_t)(sizeof(V) / sizeof(S)))
#define EVENS(a, b) __builtin_shufflevector(a, b, TWOS(0))
#define ODDS(a, b) __builtin_shufflevector(a, b, TWOS(1))
#define DOWN 4 /* rows of sums at once */

__attribute__((always_inline)) static inline void
DT_CAT(PLANE, any)(int stride, const conv_plane *plane, const S *weights, S bias)
{
    typedef V U __attribute__((aligned(sizeof(S)), may_alias));
    typedef BITS I __attribute__((vector_size(sizeof(V))));
    I place = {0}; /* of a number in the row of sums */
    V w[9];
    UNROLL for (BITS l = 0; l < LENGTH; l++)
    {
        place[l] = l;
    }
    if (stride == 2) {
        place = EVENS(place, place + (BITS)LENGTH) / 2;
    }
    UNROLL for (int t = 0; t < 9; t++)
    {
        w[t] = (V){0} + weights[t];
    }
    const int64_t columns = plane->columns, width = plane->width, pad = plane->pad;
    for (int64_t p = 0; p < plane->rows; p += DOWN) {
        const S *in[(DOWN - 1) * 2 + 3];
        S *out[DOWN];
        UNROLL for (int i = 0; i < DOWN; i++)
        {
            out[i] = p + i < plane->rows ? (S *)plane->out + (p + i) * plane->out_row : (S *)plane->spare;
        }
        UNROLL for (int y = 0; y < (DOWN - 1) * stride + 3; y++)
        {
            const int64_t row = plane->first + p * stride + y;
            const bool there = (uint64_t)row < (uint64_t)plane->height;
            in[y] = (const S *)(there ? plane->x : plane->zeros) + (there ? row * width : 0) - pad;
        }
        for (int64_t q = 0; q < columns; q += LENGTH) {
            const int64_t at = CPU_MAX(CPU_MIN(q, columns - LENGTH), 0), from = at * stride;
            const int64_t inside = CPU_CEIL_DIV(width + pad - 2 - from, stride); /* of the last taps */
            const I left = place >= (BITS)(at == 0 ? pad : 0), right = place < (BITS)CPU_MIN(inside, LENGTH);
            V sums[DOWN];
            UNROLL for (int i = 0; i < DOWN; i++)
            {
                sums[i] = (V){0} + bias;
            }
            UNROLL for (int y = 0; y < (DOWN - 1) * stride + 3; y++)
            {
                const S *x = in[y] + from;
                V taps[3];
                if (stride == 1) {
                    taps[0] = *(const U *)x;
                    taps[1] = *(const U *)(x + 1);
                    taps[2] = *(const U *)(x + 2);
                } else {
                    const V a = *(const U *)(x + 1), b = *(const U *)(x + 1 + LENGTH);
                    taps[0] = EVENS(*(const U *)x, *(const U *)(x + LENGTH));
                    taps[1] = EVENS(a, b);
                    taps[2] = ODDS(a, b);
                }
                taps[0] = (V)((I)taps[0] & left);
                taps[2] = (V)((I)taps[2] & right);
                UNROLL for (int s = 0; s < 3; s++)
                {
                    UNROLL for (int i = 0; i < DOWN; i++)
                    {
                        if (y >= i * stride && y < i * stride + 3) {
                            sums[i] = FMA(taps[s], w[(y - i * stride) * 3 + s], sums[i]);
                        }
                    }
                }
            }
            UNROLL for (int i = 0; i < DOWN; i++)
            {
                if (stride == 2) {
                    sums[i] = __builtin_shufflevector(sums[i], sums[i], JOINED);
                }
                *(U *)(out[i] + at) = sums[i];
            }
        }
    }
}

/* With fewer columns than LENGTH what follows each row of sums is overwritten. */
__attribute__((noinline)) static void
PLANE(int64_t stride, const conv_plane *plane, const S *weights, S bias)
{
    if (stride == 1) {
        DT_CAT(PLANE, any)(1, plane, weights, bias);
    } else {
        DT_CAT(PLANE, any)(2, plane, weights, bias);
    }
}
#undef LENGTH
#undef DOWN
#undef PLANE
#undef S
#undef V
#undef BITS
#undef EVENS
#undef ODDS
#undef TWOS
#undef JOINED
#undef FMA
