/* each_softmax.h: the kernels of softmax.cu for one dtype (see each_dtype.h). */
#if IS_FLOAT
#define K_WIDTH (K_VECTOR_BYTES / (int)sizeof(T))
#define K_KEPT (K_SOFTMAX_KEEP / (int)sizeof(C))

/* Elements of the pack at i that the row still has. */
DT_DEVICE int
DT_CAT(k_softmax_left, NAME)(const k_softmax_args *a, int64_t i)
{
    return a->n - i < K_WIDTH ? (int)(a->n - i) : K_WIDTH;
}

/* The pack at i, -inf beyond the row. */
DT_DEVICE void
DT_CAT(k_softmax_read, NAME)(const k_softmax_args *a, const T *x, int64_t i, C *got)
{
    typedef K_PACK(T, K_WIDTH) pack;
    if (a->rows.vector && i + K_WIDTH <= a->n) {
        const pack p = *(const pack *)(const void *)(x + i);
        DT_UNROLLED for (int j = 0; j < K_WIDTH; j++)
        {
            got[j] = LOAD(p.v[j]);
        }
        return;
    }
    const int left = DT_CAT(k_softmax_left, NAME)(a, i);
    x += i * a->x_stride;
    DT_UNROLLED for (int j = 0; j < K_WIDTH; j++, x += a->x_stride)
    {
        got[j] = -(C)dt_bits_f32(0x7f800000u);
        if (j < left) {
            got[j] = LOAD(*x);
        }
    }
}

DT_DEVICE void
DT_CAT(k_softmax_write, NAME)(const k_softmax_args *a, T *out, int64_t i, const C *values)
{
    typedef K_PACK(T, K_WIDTH) pack;
    if (a->rows.vector && i + K_WIDTH <= a->n) {
        pack p;
        DT_UNROLLED for (int j = 0; j < K_WIDTH; j++)
        {
            p.v[j] = STORE(values[j]);
        }
        *(pack *)(void *)(out + i) = p;
        return;
    }
    const int left = DT_CAT(k_softmax_left, NAME)(a, i);
    out += i * a->out_stride;
    DT_UNROLLED for (int j = 0; j < K_WIDTH; j++, out += a->out_stride)
    {
        if (j < left) {
            *out = STORE(values[j]);
        }
    }
}

/* One pass over a kept row: each thread puts its part into kept[], where no other thread reads. Over a longer row it
 * corrects the sum whenever its largest element changes, and reads the row once more to answer. */
/* row: from the sum, once a row; value: from it and d, the distance from the top. */
#define K_SOFTMAX(op, row, value)                                                                                      \
    K_KERNEL(DT_CAT(k_##op, NAME), k_softmax_args, a)                                                                  \
    {                                                                                                                  \
        DT_SHARED C kept[K_KEPT * DT_MAX_THREADS];                                                                     \
        DT_SHARED C own[DT_MAX_THREADS];                                                                               \
        DT_SHARED C largest[DT_MAX_THREADS];                                                                           \
        DT_SHARED double sums[DT_MAX_THREADS];                                                                         \
        const C lowest = -(C)dt_bits_f32(0x7f800000u);                                                                 \
        const T *x = DT_GLOBAL(const T, a.x.address, a.x.nbytes);                                                      \
        K_OUT(T, out, a.out);                                                                                          \
        const int lanes = 1 << a.rows.lanes, slots = DT_MAX_THREADS >> a.rows.lanes;                                   \
        const int64_t step = (int64_t)K_WIDTH * lanes;                                                                 \
        DT_ROLLED DT_FOR_BLOCKS(tile, (a.outer.numel + slots - 1) / slots)                                             \
        {                                                                                                              \
            DT_ROLLED DT_FOR_THREADS(v, DT_MAX_THREADS)                                                                \
            {                                                                                                          \
                const int slot = a.rows.across ? v & (slots - 1) : v >> a.rows.lanes;                                  \
                const int lane = a.rows.across ? v / slots : v & (lanes - 1), place = lane * slots + slot;             \
                C top = lowest;                                                                                        \
                double sum = 0;                                                                                        \
                if (tile * slots + slot < a.outer.numel) {                                                             \
                    int64_t at[2];                                                                                     \
                    int keep = v;                                                                                      \
                    k_locate(&a.outer, 1, tile *slots + slot, at);                                                     \
                    DT_ROLLED for (int64_t i = (int64_t)lane * K_WIDTH; i < a.n; i += step)                            \
                    {                                                                                                  \
                        const int left = DT_CAT(k_softmax_left, NAME)(&a, i);                                          \
                        C got[K_WIDTH], most = lowest;                                                                 \
                        DT_CAT(k_softmax_read, NAME)(&a, x + at[0], i, got);                                           \
                        DT_UNROLLED for (int j = 0; j < K_WIDTH; j++)                                                  \
                        {                                                                                              \
                            most = got[j] > most ? got[j] : most;                                                      \
                        }                                                                                              \
                        if (a.kept) {                                                                                  \
                            DT_UNROLLED for (int j = 0; j < K_WIDTH; j++, keep += DT_MAX_THREADS)                      \
                            {                                                                                          \
                                kept[keep] = got[j];                                                                   \
                            }                                                                                          \
                            top = most > top ? most : top;                                                             \
                            continue;                                                                                  \
                        }                                                                                              \
                        if (most > top) {                                                                              \
                            sum *= (double)M(exp)(top - most);                                                         \
                            top = most;                                                                                \
                        }                                                                                              \
                        DT_UNROLLED for (int j = 0; j < K_WIDTH; j++)                                                  \
                        {                                                                                              \
                            sum += j < left ? (double)M(exp)(top == lowest ? got[j] : got[j] - top) : 0;               \
                        }                                                                                              \
                    }                                                                                                  \
                }                                                                                                      \
                own[place] = largest[place] = top;                                                                     \
                sums[place] = sum;                                                                                     \
            }                                                                                                          \
            DT_SYNC();                                                                                                 \
            DT_ROLLED for (int half = DT_MAX_THREADS / 2; half >= slots; half /= 2)                                    \
            {                                                                                                          \
                DT_FOR_THREADS(v, half) {                                                                              \
                    largest[v] = largest[v + half] > largest[v] ? largest[v + half] : largest[v];                      \
                }                                                                                                      \
                DT_SYNC();                                                                                             \
            }                                                                                                          \
            DT_ROLLED DT_FOR_THREADS(v, DT_MAX_THREADS)                                                                \
            {                                                                                                          \
                const int slot = a.rows.across ? v & (slots - 1) : v >> a.rows.lanes;                                  \
                const int lane = a.rows.across ? v / slots : v & (lanes - 1), place = lane * slots + slot;             \
                const C top = largest[slot];                                                                           \
                if (a.kept) {                                                                                          \
                    double sum = 0;                                                                                    \
                    int keep = v;                                                                                      \
                    DT_ROLLED for (int64_t i = (int64_t)lane * K_WIDTH; i < a.n; i += step)                            \
                    {                                                                                                  \
                        const int left = DT_CAT(k_softmax_left, NAME)(&a, i);                                          \
                        DT_UNROLLED for (int j = 0; j < K_WIDTH; j++, keep += DT_MAX_THREADS)                          \
                        {                                                                                              \
                            sum += j < left ? (double)M(exp)(kept[keep] - top) : 0;                                    \
                        }                                                                                              \
                    }                                                                                                  \
                    sums[place] = sum;                                                                                 \
                } else if (own[place] != top) {                                                                        \
                    sums[place] *= (double)M(exp)(own[place] - top);                                                   \
                }                                                                                                      \
            }                                                                                                          \
            DT_SYNC();                                                                                                 \
            DT_ROLLED for (int half = DT_MAX_THREADS / 2; half >= slots; half /= 2)                                    \
            {                                                                                                          \
                DT_FOR_THREADS(v, half) {                                                                              \
                    sums[v] += sums[v + half];                                                                         \
                }                                                                                                      \
                DT_SYNC();                                                                                             \
            }                                                                                                          \
            DT_ROLLED DT_FOR_THREADS(v, DT_MAX_THREADS)                                                                \
            {                                                                                                          \
                const int slot = a.rows.across ? v & (slots - 1) : v >> a.rows.lanes;                                  \
                const int lane = a.rows.across ? v / slots : v & (lanes - 1);                                          \
                if (tile * slots + slot < a.outer.numel) {                                                             \
                    const double sum = sums[slot];                                                                     \
                    const C top = largest[slot], norm = (C)(row);                                                      \
                    int64_t at[2];                                                                                     \
                    int keep = v;                                                                                      \
                    k_locate(&a.outer, 2, tile *slots + slot, at);                                                     \
                    DT_ROLLED for (int64_t i = (int64_t)lane * K_WIDTH; i < a.n; i += step)                            \
                    {                                                                                                  \
                        C got[K_WIDTH];                                                                                \
                        if (!a.kept) {                                                                                 \
                            DT_CAT(k_softmax_read, NAME)(&a, x + at[0], i, got);                                       \
                        }                                                                                              \
                        DT_UNROLLED for (int j = 0; j < K_WIDTH; j++, keep += DT_MAX_THREADS)                          \
                        {                                                                                              \
                            const C d = (a.kept ? kept[keep] : got[j]) - top;                                          \
                            got[j] = value;                                                                            \
                        }                                                                                              \
                        DT_CAT(k_softmax_write, NAME)(&a, out + at[1], i, got);                                        \
                    }                                                                                                  \
                }                                                                                                      \
            }                                                                                                          \
            DT_SYNC();                                                                                                 \
        }                                                                                                              \
    }
K_SOFTMAX(softmax, 1 / sum, M(exp)(d) * norm)
K_SOFTMAX(log_softmax, M(log)((C)sum), d - norm)
#undef K_SOFTMAX
#undef K_KEPT
#undef K_WIDTH
#endif
