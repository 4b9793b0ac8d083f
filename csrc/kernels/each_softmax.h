/* each_softmax.h: the kernels of softmax.cu for one dtype (see each_dtype.h). */
#if IS_FLOAT
#define K_NAMED(name) DT_CAT(k_softmax_##name, NAME)
#define K_WIDTH (K_VECTOR_BYTES / (int)sizeof(T))
#define K_CHUNK (K_VECTOR_BYTES / (int)sizeof(C))
#define K_PACKS (K_SOFTMAX_KEEP / (int)sizeof(C) / K_WIDTH) /* that a thread keeps, or has in flight */
#define K_LOWEST (-(C)dt_bits_f32(0x7f800000u))

typedef K_PACK(T, K_WIDTH) K_NAMED(pack);
/* What the threads of a block keep, 16 bytes an access. */
typedef struct {
    K_PACK(C, K_CHUNK) chunk[K_SOFTMAX_KEEP / K_VECTOR_BYTES][DT_MAX_THREADS];
} K_NAMED(kept);

DT_DEVICE void
K_NAMED(put)(K_NAMED(kept) * kept, int p, int v, const C *got)
{
    DT_UNROLLED for (int j = 0; j < K_WIDTH; j++)
    {
        kept->chunk[p * (K_WIDTH / K_CHUNK) + j / K_CHUNK][v].v[j % K_CHUNK] = got[j];
    }
}

DT_DEVICE void
K_NAMED(get)(const K_NAMED(kept) * kept, int p, int v, C *got)
{
    DT_UNROLLED for (int j = 0; j < K_WIDTH; j++)
    {
        got[j] = kept->chunk[p * (K_WIDTH / K_CHUNK) + j / K_CHUNK][v].v[j % K_CHUNK];
    }
}

/* Whether one access takes the pack at i. */
DT_DEVICE int
K_NAMED(whole)(const k_softmax_args *a, int64_t i)
{
    return a->rows.vector && i + K_WIDTH <= a->n;
}

DT_DEVICE void
K_NAMED(load)(const T *x, int64_t i, K_NAMED(pack) * p)
{
    *p = *(const K_NAMED(pack) *)(const void *)(x + i);
}

DT_DEVICE void
K_NAMED(widen)(const K_NAMED(pack) * p, C *got)
{
    DT_UNROLLED for (int j = 0; j < K_WIDTH; j++)
    {
        got[j] = LOAD(p->v[j]);
    }
}

/* The pack at i, -inf beyond the row. */
DT_DEVICE void
K_NAMED(gather)(const k_softmax_args *a, const T *x, int64_t i, C *got)
{
    DT_UNROLLED for (int j = 0; j < K_WIDTH; j++)
    {
        got[j] = K_LOWEST;
        if (i + j < a->n) {
            got[j] = LOAD(x[(i + j) * a->x_stride]);
        }
    }
}

DT_DEVICE void
K_NAMED(read)(const k_softmax_args *a, const T *x, int64_t i, C *got)
{
    if (K_NAMED(whole)(a, i)) {
        K_NAMED(pack) p;
        K_NAMED(load)(x, i, &p);
        K_NAMED(widen)(&p, got);
    } else {
        K_NAMED(gather)(a, x, i, got);
    }
}

DT_DEVICE void
K_NAMED(write)(const k_softmax_args *a, T *out, int64_t i, const C *values)
{
    K_NAMED(pack) p;
    DT_UNROLLED for (int j = 0; j < K_WIDTH; j++)
    {
        p.v[j] = STORE(values[j]);
    }
    if (K_NAMED(whole)(a, i)) {
        *(K_NAMED(pack) *)(void *)(out + i) = p;
        return;
    }
    DT_UNROLLED for (int j = 0; j < K_WIDTH; j++)
    {
        if (i + j < a->n) {
            out[(i + j) * a->out_stride] = p.v[j];
        }
    }
}

DT_DEVICE C
K_NAMED(most)(const C *got)
{
    C most = got[0];
    DT_UNROLLED for (int j = 1; j < K_WIDTH; j++)
    {
        most = M(fmax)(most, got[j]);
    }
    return most;
}

/* got becomes exp(got - top), and their sum is returned: of a pack it is added up as it is computed, all terms being
 * positive. */
DT_DEVICE C
K_NAMED(exp)(C *got, C top)
{
    C sum = 0;
    DT_UNROLLED for (int j = 0; j < K_WIDTH; j++)
    {
        got[j] = M(exp)(got[j] - top);
        sum += got[j];
    }
    return sum;
}

/* Where a row's packs of a lane begin, and how far they are apart. */
#define K_SOFTMAX_PACKS(a, lane)                                                                                       \
    const int64_t first = (int64_t)(lane)*K_WIDTH, step = (int64_t)K_WIDTH << (a)->rows.lanes

/* All packs of a lane are read before one is used, and kept. */
DT_DEVICE C
K_NAMED(keep)(const k_softmax_args *a, const T *x, int lane, int v, K_NAMED(kept) * kept)
{
    K_SOFTMAX_PACKS(a, lane);
    K_NAMED(pack) ahead[K_PACKS];
    C top = K_LOWEST;
    DT_UNROLLED for (int p = 0; p < K_PACKS; p++)
    {
        if (K_NAMED(whole)(a, first + p * step)) {
            K_NAMED(load)(x, first + p * step, &ahead[p]);
        }
    }
    DT_UNROLLED for (int p = 0; p < K_PACKS; p++)
    {
        if (first + p * step < a->n) {
            C got[K_WIDTH];
            if (K_NAMED(whole)(a, first + p * step)) {
                K_NAMED(widen)(&ahead[p], got);
            } else {
                K_NAMED(gather)(a, x, first + p * step, got);
            }
            top = M(fmax)(top, K_NAMED(most)(got));
            K_NAMED(put)(kept, p, v, got);
        }
    }
    return top;
}

/* Corrects the sum whenever its largest element changes. */
DT_DEVICE void
K_NAMED(take)(C *got, C *top, double *sum)
{
    const C most = K_NAMED(most)(got);
    if (most > *top) {
        *sum *= (double)M(exp)(*top - most);
        *top = most;
    }
    *sum += (double)K_NAMED(exp)(got, *top == K_LOWEST ? 0 : *top);
}

/* A row that is too long to be kept. */
DT_DEVICE C
K_NAMED(pass)(const k_softmax_args *a, const T *x, int lane, double *sum)
{
    K_SOFTMAX_PACKS(a, lane);
    int64_t i = first;
    C top = K_LOWEST, got[K_WIDTH];
    DT_ROLLED for (; K_NAMED(whole)(a, i + (K_PACKS - 1) * step); i += K_PACKS * step)
    {
        K_NAMED(pack) ahead[K_PACKS];
        DT_UNROLLED for (int p = 0; p < K_PACKS; p++)
        {
            K_NAMED(load)(x, i + p * step, &ahead[p]);
        }
        DT_UNROLLED for (int p = 0; p < K_PACKS; p++)
        {
            K_NAMED(widen)(&ahead[p], got);
            K_NAMED(take)(got, &top, sum);
        }
    }
    DT_ROLLED for (; i < a->n; i += step)
    {
        K_NAMED(read)(a, x, i, got);
        K_NAMED(take)(got, &top, sum);
    }
    return top;
}

/* A row that is kept is read once. Each thread puts its part into kept, where no other thread reads.
 * keeps: for softmax, where a kept element becomes its exponential, which is not computed twice.
 * row: from the sum, once a row; value and kept_value: of an element and that. */
#define K_SOFTMAX(op, keeps, row, value, kept_value)                                                                   \
    K_KERNEL(DT_CAT(k_##op, NAME), k_softmax_args, a)                                                                  \
    {                                                                                                                  \
        DT_SHARED K_NAMED(kept) kept;                                                                                  \
        DT_SHARED C own[DT_MAX_THREADS];                                                                               \
        DT_SHARED C largest[DT_MAX_THREADS];                                                                           \
        DT_SHARED double sums[DT_MAX_THREADS];                                                                         \
        const T *x = DT_GLOBAL(const T, a.x.address, a.x.nbytes);                                                      \
        K_OUT(T, out, a.out);                                                                                          \
        const int lanes = 1 << a.rows.lanes, slots = DT_MAX_THREADS >> a.rows.lanes;                                   \
        DT_ROLLED DT_FOR_BLOCKS(tile, (a.outer.numel + slots - 1) / slots)                                             \
        {                                                                                                              \
            DT_ROLLED DT_FOR_THREADS(v, DT_MAX_THREADS)                                                                \
            {                                                                                                          \
                const int slot = a.rows.across ? v & (slots - 1) : v >> a.rows.lanes;                                  \
                const int lane = a.rows.across ? v / slots : v & (lanes - 1), place = lane * slots + slot;             \
                C top = K_LOWEST;                                                                                      \
                double sum = 0;                                                                                        \
                if (tile * slots + slot < a.outer.numel) {                                                             \
                    int64_t at[2];                                                                                     \
                    k_locate(&a.outer, 1, tile *slots + slot, at);                                                     \
                    top = a.kept ? K_NAMED(keep)(&a, x + at[0], lane, v, &kept)                                        \
                                 : K_NAMED(pass)(&a, x + at[0], lane, &sum);                                           \
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
                K_SOFTMAX_PACKS(&a, lane);                                                                             \
                if (a.kept) {                                                                                          \
                    double sum = 0;                                                                                    \
                    DT_UNROLLED for (int p = 0; p < K_PACKS; p++)                                                      \
                    {                                                                                                  \
                        if (first + p * step < a.n) {                                                                  \
                            C got[K_WIDTH];                                                                            \
                            K_NAMED(get)(&kept, p, v, got);                                                            \
                            sum += (double)K_NAMED(exp)(got, top);                                                     \
                            if (keeps) {                                                                               \
                                K_NAMED(put)(&kept, p, v, got);                                                        \
                            }                                                                                          \
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
                K_SOFTMAX_PACKS(&a, lane);                                                                             \
                if (tile * slots + slot < a.outer.numel) {                                                             \
                    const double sum = sums[slot];                                                                     \
                    const C top = largest[slot], norm = (C)(row);                                                      \
                    int64_t at[2];                                                                                     \
                    k_locate(&a.outer, 2, tile *slots + slot, at);                                                     \
                    int p = 0;                                                                                         \
                    DT_ROLLED for (int64_t i = first; i < a.n; i += step)                                              \
                    {                                                                                                  \
                        C got[K_WIDTH];                                                                                \
                        if (a.kept) {                                                                                  \
                            K_NAMED(get)(&kept, p++, v, got);                                                          \
                            DT_UNROLLED for (int j = 0; j < K_WIDTH; j++)                                              \
                            {                                                                                          \
                                got[j] = kept_value(got[j], norm);                                                     \
                            }                                                                                          \
                        } else {                                                                                       \
                            K_NAMED(read)(&a, x + at[0], i, got);                                                      \
                            DT_UNROLLED for (int j = 0; j < K_WIDTH; j++)                                              \
                            {                                                                                          \
                                got[j] = value(got[j], norm);                                                          \
                            }                                                                                          \
                        }                                                                                              \
                        K_NAMED(write)(&a, out + at[1], i, got);                                                       \
                    }                                                                                                  \
                }                                                                                                      \
            }                                                                                                          \
            DT_SYNC();                                                                                                 \
        }                                                                                                              \
    }
#define K_EXP(x, norm) (M(exp)((x)-top) * (norm))
#define K_SCALED(e, norm) ((e) * (norm))
#define K_LOG(x, norm) ((x)-top - (norm))
K_SOFTMAX(softmax, 1, 1 / sum, K_EXP, K_SCALED)
K_SOFTMAX(log_softmax, 0, M(log)((C)sum), K_LOG, K_LOG)
#undef K_LOG
#undef K_SCALED
#undef K_EXP
#undef K_SOFTMAX
#undef K_SOFTMAX_PACKS
#undef K_LOWEST
#undef K_PACKS
#undef K_CHUNK
#undef K_WIDTH
#undef K_NAMED
#endif
