/* each_skinny.h: the kernels of skinny.cu for one dtype (see each_dtype.h). */
#if IS_FLOAT
#define K_WIDTH (K_VECTOR_BYTES / (int)sizeof(T))
#define K_SUMS (K_SKINNY_SUMS / (int)sizeof(C)) /* of a thread */

/* One result from its sum. */
DT_DEVICE void
DT_CAT(k_skinny_store, NAME)(const k_skinny_args *a, T *out, const T *bias, int64_t i, int64_t j, C sum)
{
    T *at = out + i * a->out_strides[0] + j * a->out_strides[1];
    C value = (C)a->alpha * sum;
    if (a->beta != 0) {
        value = M(fma)((C)a->beta, LOAD(*at), value);
    }
    if (bias) {
        value += LOAD(bias[i * a->bias_strides[0] + j * a->bias_strides[1]]);
    }
    *at = STORE(M(k_activate)(value, a->activation));
}

/* sums[row * columns + column] over the lane's part of k, where b is contiguous along k. Constants: rows, columns. */
DT_DEVICE void
DT_CAT(k_skinny_along, NAME)(const k_skinny_args *a, const T *left, const T *b, int64_t first, int64_t ncolumns,
                             const int rows, const int columns, C *sums)
{
    typedef K_PACK(T, K_WIDTH) pack;
    const int64_t step = (int64_t)K_WIDTH << a->lanes;
    const T zero = DT_CAT(dt_cast_int64, NAME)(0);
    DT_ROLLED for (int64_t k = first; k < a->k; k += step)
    {
        const int whole = k + K_WIDTH <= a->k;
        pack right[K_SUMS / 8];
        DT_UNROLLED for (int c = 0; c < columns; c++)
        {
            const T *from = b + (c < ncolumns ? c : 0) * a->b_strides[1] + k;
            if (whole) {
                right[c] = *(const pack *)(const void *)from;
            } else {
                DT_UNROLLED for (int j = 0; j < K_WIDTH; j++)
                {
                    right[c].v[j] = k + j < a->k ? from[j] : zero;
                }
            }
        }
        const T *from = left + k * a->a_strides[1];
        DT_UNROLLED for (int r = 0; r < rows; r++, from += a->a_strides[0])
        {
            pack row;
            if (r >= a->m) {
                continue;
            }
            if (a->a_vector && whole) {
                row = *(const pack *)(const void *)from;
            } else {
                DT_UNROLLED for (int j = 0; j < K_WIDTH; j++)
                {
                    row.v[j] = k + j < a->k ? from[j * a->a_strides[1]] : zero;
                }
            }
            DT_UNROLLED for (int j = 0; j < K_WIDTH; j++)
            {
                DT_UNROLLED for (int c = 0; c < columns; c++)
                {
                    C *sum = &sums[r * columns + c];
                    *sum = M(fma)(LOAD(row.v[j]), LOAD(right[c].v[j]), *sum);
                }
            }
        }
    }
}

/* sums[row * K_WIDTH + column] over the lane's part of k, where b is contiguous along its columns, K_WIDTH of them. */
DT_DEVICE void
DT_CAT(k_skinny_across, NAME)(const k_skinny_args *a, const T *left, const T *b, int lane, const int rows, C *sums)
{
    typedef K_PACK(T, K_WIDTH) pack;
    const int lanes = 1 << a->lanes;
    DT_ROLLED for (int64_t k = lane; k < a->k; k += K_SKINNY_AHEAD * lanes)
    {
        pack right[K_SKINNY_AHEAD];
        DT_UNROLLED for (int u = 0; u < K_SKINNY_AHEAD; u++)
        {
            const int64_t at = k + u * lanes < a->k ? k + u * lanes : k;
            right[u] = *(const pack *)(const void *)(b + at * a->b_strides[0]);
        }
        DT_UNROLLED for (int u = 0; u < K_SKINNY_AHEAD; u++)
        {
            if (k + u * lanes >= a->k) {
                continue;
            }
            const T *from = left + (k + u * lanes) * a->a_strides[1];
            C by[K_WIDTH];
            DT_UNROLLED for (int c = 0; c < K_WIDTH; c++)
            {
                by[c] = LOAD(right[u].v[c]);
            }
            DT_UNROLLED for (int r = 0; r < rows; r++, from += a->a_strides[0])
            {
                if (r < a->m) {
                    const C x = LOAD(*from);
                    DT_UNROLLED for (int c = 0; c < K_WIDTH; c++)
                    {
                        sums[r * K_WIDTH + c] = M(fma)(x, by[c], sums[r * K_WIDTH + c]);
                    }
                }
            }
        }
    }
}

/* One form of the kernel. A group of 2**lanes threads shares a few columns and divides k; a tree of fixed shape adds
 * what they have, so that bits do not depend on grid and block. */
#define K_SKINNY(rows, columns, CALL)                                                                                  \
    {                                                                                                                  \
        const int lanes = 1 << a.lanes, slots = DT_MAX_THREADS >> a.lanes, used = (rows) * (columns);                  \
        const int64_t tiles = (a.n + slots * (columns)-1) / (slots * (columns));                                       \
        DT_ROLLED DT_FOR_BLOCKS(block, tiles * a.batch.numel)                                                          \
        {                                                                                                              \
            int64_t at[3];                                                                                             \
            const int64_t tile = block % tiles;                                                                        \
            k_locate(&a.batch, 3, block / tiles, at);                                                                  \
            const T *left = left0 + at[1], *b = right0 + at[2];                                                        \
            T *to = out + at[0];                                                                                       \
            DT_ROLLED DT_FOR_THREADS(v, DT_MAX_THREADS)                                                                \
            {                                                                                                          \
                const int slot = a.across ? v & (slots - 1) : v >> a.lanes;                                            \
                const int lane = a.across ? v / slots : v & (lanes - 1);                                               \
                const int64_t column = (tile * slots + slot) * (columns);                                              \
                C sums[K_SUMS];                                                                                        \
                DT_UNROLLED for (int i = 0; i < used; i++)                                                             \
                {                                                                                                      \
                    sums[i] = 0;                                                                                       \
                }                                                                                                      \
                if (column < a.n) {                                                                                    \
                    CALL;                                                                                              \
                }                                                                                                      \
                DT_UNROLLED for (int i = 0; i < used; i++)                                                             \
                {                                                                                                      \
                    shared[i * DT_MAX_THREADS + lane * slots + slot] = sums[i];                                        \
                }                                                                                                      \
            }                                                                                                          \
            DT_SYNC();                                                                                                 \
            DT_ROLLED for (int half = DT_MAX_THREADS / 2; half >= slots; half /= 2)                                    \
            {                                                                                                          \
                DT_ROLLED DT_FOR_THREADS(v, half * used)                                                               \
                {                                                                                                      \
                    const int i = v / half * DT_MAX_THREADS + v % half;                                                \
                    shared[i] += shared[i + half];                                                                     \
                }                                                                                                      \
                DT_SYNC();                                                                                             \
            }                                                                                                          \
            DT_ROLLED DT_FOR_THREADS(v, slots * used)                                                                  \
            {                                                                                                          \
                const int slot = v / (columns) % slots, c = v % (columns), r = v / ((columns)*slots);                  \
                const int64_t column = (tile * slots + slot) * (columns) + c;                                          \
                if (r < a.m && column < a.n) {                                                                         \
                    DT_CAT(k_skinny_store, NAME)                                                                       \
                    (&a, to, bias, r, column, shared[(r * (columns) + c) * DT_MAX_THREADS + slot]);                    \
                }                                                                                                      \
            }                                                                                                          \
            DT_SYNC();                                                                                                 \
        }                                                                                                              \
    }

K_KERNEL(DT_CAT(k_skinny, NAME), k_skinny_args, a)
{
    enum { columns = K_SUMS / 8 };
    DT_SHARED C shared[K_SUMS * DT_MAX_THREADS];
    const T *left0 = DT_GLOBAL(const T, a.a.address, a.a.nbytes), *right0 = DT_GLOBAL(const T, a.b.address, a.b.nbytes);
    const T *bias = a.bias.address ? DT_GLOBAL(const T, a.bias.address, a.bias.nbytes) : 0;
    K_OUT(T, out, a.out);
#define K_ALONG(rows)                                                                                                  \
    K_SKINNY(rows, columns,                                                                                            \
             DT_CAT(k_skinny_along, NAME)(&a, left, b + column * a.b_strides[1], (int64_t)lane * K_WIDTH,              \
                                          a.n - column, rows, columns, sums))
#define K_ACROSS(rows) K_SKINNY(rows, K_WIDTH, DT_CAT(k_skinny_across, NAME)(&a, left, b + column, lane, rows, sums))
    if (a.across) {
        if (a.m == 1) {
            K_ACROSS(1)
        } else {
            K_ACROSS(K_SUMS / K_WIDTH)
        }
    } else if (a.m == 1) {
        K_ALONG(1)
    } else {
        K_ALONG(sizeof(T) == 2 ? 4 : 8)
    }
#undef K_ALONG
#undef K_ACROSS
}

/* Several small products of a batch at once: both matrices come to shared memory, then a thread takes a result. */
K_KERNEL(DT_CAT(k_small_matmul, NAME), k_skinny_args, a)
{
    DT_SHARED C shared[K_SMALL_SHARED / sizeof(C)];
    const T *left = DT_GLOBAL(const T, a.a.address, a.a.nbytes), *right = DT_GLOBAL(const T, a.b.address, a.b.nbytes);
    const T *bias = a.bias.address ? DT_GLOBAL(const T, a.bias.address, a.bias.nbytes) : 0;
    K_OUT(T, out, a.out);
    const int m = (int)a.m, n = (int)a.n, k = (int)a.k, size = m * k + k * n;
    DT_ROLLED DT_FOR_BLOCKS(block, (a.batch.numel + a.together - 1) / a.together)
    {
        const int64_t first = block * a.together;
        const int now = a.batch.numel - first < a.together ? (int)(a.batch.numel - first) : a.together;
        DT_ROLLED DT_FOR_THREADS(v, now * size)
        {
            const int g = v / size, e = v - g * size, f = e - m * k;
            int64_t at[3];
            k_locate(&a.batch, 3, first + g, at);
            shared[v] = f < 0 ? LOAD(left[at[1] + e / k * a.a_strides[0] + e % k * a.a_strides[1]])
                              : LOAD(right[at[2] + f / n * a.b_strides[0] + f % n * a.b_strides[1]]);
        }
        DT_SYNC();
        DT_ROLLED DT_FOR_THREADS(v, now * m * n)
        {
            const int g = v / (m * n), e = v - g * m * n, i = e / n, j = e - i * n;
            const C *x = shared + g * size + i * k, *y = shared + g * size + m * k + j;
            C sum = 0;
            int64_t at[3];
            for (int l = 0; l < k; l++) {
                sum = M(fma)(x[l], y[l * n], sum);
            }
            k_locate(&a.batch, 3, first + g, at);
            DT_CAT(k_skinny_store, NAME)(&a, out + at[0], bias, i, j, sum);
        }
        DT_SYNC();
    }
}
#undef K_SKINNY
#undef K_SUMS
#undef K_WIDTH
#endif
