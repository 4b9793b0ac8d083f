/* each_reduce.h: the kernels of reduce.cu for one dtype (see each_dtype.h). */
#define K_NAMED(op) DT_CAT(k_##op, NAME)

#if IS_FLOAT
#define A double
#define K_HAS_FLOAT(...) __VA_ARGS__
#define K_SUM_RESULT T
#define K_VALUE C
#define K_STORE(acc) DT_CAT(dt_cast_float64, NAME)((double)(acc))
#define K_STORE_SUM(acc) K_STORE(acc)
#else
#define A int64_t
#define K_HAS_FLOAT(...)
#define K_SUM_RESULT int64_t
#define K_VALUE int64_t
#define K_STORE(acc) ((T)(acc))
#define K_STORE_SUM(acc) (acc)
#endif

/* What a thread has of a row: a fold adds to an accumulator; an extreme and a pick have an element of the row, from the
 * first on, and a pick also its position. */
typedef struct {
    A acc;
} K_NAMED(fold);
typedef struct {
    K_VALUE acc;
} K_NAMED(extreme);
typedef struct {
    K_VALUE acc;
    int64_t at;
} K_NAMED(pick);

#define K_WIDTH (K_VECTOR_BYTES / (int)sizeof(T))
#define K_AHEAD (sizeof(T) == 1 ? 2 : 4) /* packs in flight, of 16 bytes each, */
#define K_APART (sizeof(T) >= 4 ? 2 : 1) /* or of single elements */

/* Elements of a row go to its lanes by packs of K_WIDTH, whether or not one access takes a pack, and the lanes meet in
 * a tree of fixed shape: the order, and with it every bit, is the same for any grid, block and alignment. */
#define K_REDUCTION(op, kind)                                                                                          \
    DT_DEVICE void DT_CAT(k_row_##op, NAME)(const k_reduce_args *a, const T *x, int64_t begin, int64_t end,            \
                                            K_NAMED(kind) * part)                                                      \
    {                                                                                                                  \
        typedef K_PACK(T, K_WIDTH) pack;                                                                               \
        const int64_t step = (int64_t)K_WIDTH << a->rows.lanes;                                                        \
        const int64_t ahead = (K_AHEAD - 1) * step + K_WIDTH, apart = (K_APART - 1) * step + K_WIDTH;                  \
        const int64_t stride = a->inner.strides[0][0];                                                                 \
        const int line = a->inner.ndim == 1;                                                                           \
        int64_t at;                                                                                                    \
        DT_ROLLED for (; line && a->rows.vector && begin + ahead <= end; begin += K_AHEAD * step)                      \
        {                                                                                                              \
            pack got[K_AHEAD];                                                                                         \
            DT_UNROLLED for (int u = 0; u < (int)K_AHEAD; u++)                                                         \
            {                                                                                                          \
                got[u] = *(const pack *)(const void *)(x + begin + u * step);                                          \
            }                                                                                                          \
            DT_UNROLLED for (int u = 0; u < (int)K_AHEAD; u++)                                                         \
            {                                                                                                          \
                DT_UNROLLED for (int j = 0; j < K_WIDTH; j++)                                                          \
                {                                                                                                      \
                    DT_CAT(k_take_##op, NAME)(part, LOAD(got[u].v[j]), begin + u * step + j);                          \
                }                                                                                                      \
            }                                                                                                          \
        }                                                                                                              \
        DT_ROLLED for (; line && !a->rows.vector && begin + apart <= end; begin += K_APART * step)                     \
        {                                                                                                              \
            T got[K_APART * K_WIDTH];                                                                                  \
            DT_UNROLLED for (int j = 0; j < (int)K_APART * K_WIDTH; j++)                                               \
            {                                                                                                          \
                got[j] = x[(begin + j / K_WIDTH * step + j % K_WIDTH) * stride];                                       \
            }                                                                                                          \
            DT_UNROLLED for (int j = 0; j < (int)K_APART * K_WIDTH; j++)                                               \
            {                                                                                                          \
                DT_CAT(k_take_##op, NAME)(part, LOAD(got[j]), begin + j / K_WIDTH * step + j % K_WIDTH);               \
            }                                                                                                          \
        }                                                                                                              \
        DT_ROLLED for (; a->rows.vector && begin + K_WIDTH <= end; begin += step)                                      \
        {                                                                                                              \
            k_locate_narrow(&a->inner, 1, begin, &at);                                                                 \
            const pack got = *(const pack *)(const void *)(x + at);                                                    \
            DT_UNROLLED for (int j = 0; j < K_WIDTH; j++)                                                              \
            {                                                                                                          \
                DT_CAT(k_take_##op, NAME)(part, LOAD(got.v[j]), begin + j);                                            \
            }                                                                                                          \
        }                                                                                                              \
        DT_ROLLED for (; begin < end; begin += step)                                                                   \
        {                                                                                                              \
            DT_ROLLED for (int64_t i = begin; i < begin + K_WIDTH && i < end; i++)                                     \
            {                                                                                                          \
                k_locate(&a->inner, 1, i, &at);                                                                        \
                DT_CAT(k_take_##op, NAME)(part, LOAD(x[at]), i);                                                       \
            }                                                                                                          \
        }                                                                                                              \
    }                                                                                                                  \
    K_KERNEL(K_NAMED(op), k_reduce_args, a)                                                                            \
    {                                                                                                                  \
        DT_SHARED K_NAMED(kind) shared[DT_MAX_THREADS];                                                                \
        uint64_t *scratch = a.scratch.address ? DT_GLOBAL(uint64_t, a.scratch.address, a.scratch.nbytes) : 0;          \
        K_OUT(void, out, a.out);                                                                                       \
        const T *x = DT_GLOBAL(const T, a.x.address, a.x.nbytes);                                                      \
        const int lanes = 1 << a.rows.lanes, slots = DT_MAX_THREADS >> a.rows.lanes;                                   \
        const int64_t splits = a.stage == K_STAGE_PARTIAL ? a.splits : 1;                                              \
        DT_ROLLED DT_FOR_BLOCKS(b, (a.outer.numel + slots - 1) / slots * splits)                                       \
        {                                                                                                              \
            const int64_t tile = splits == 1 ? b : b / splits, split = b - tile * splits;                              \
            const int64_t begin = split * a.chunk;                                                                     \
            const int64_t end = split == splits - 1 ? a.inner.numel : begin + a.chunk;                                 \
            DT_ROLLED DT_FOR_THREADS(v, DT_MAX_THREADS)                                                                \
            {                                                                                                          \
                const int slot = a.rows.across ? v & (slots - 1) : v >> a.rows.lanes;                                  \
                const int lane = a.rows.across ? v / slots : v & (lanes - 1);                                          \
                const int64_t o = tile * slots + slot;                                                                 \
                K_NAMED(kind) part = DT_CAT(k_none_##op, NAME)();                                                      \
                if (o < a.outer.numel && a.stage == K_STAGE_COMBINE) {                                                 \
                    K_STARTS_##kind(memcpy(&part, &scratch[2 * o * a.splits],                                          \
                                           sizeof(part));) for (int64_t i = lane; i < a.splits; i += lanes)            \
                    {                                                                                                  \
                        K_NAMED(kind) other;                                                                           \
                        memcpy(&other, &scratch[2 * (o * a.splits + i)], sizeof(other));                               \
                        DT_CAT(k_join_##op, NAME)(&part, &other);                                                      \
                    }                                                                                                  \
                } else if (o < a.outer.numel) {                                                                        \
                    int64_t base;                                                                                      \
                    k_locate(&a.outer, 1, o, &base);                                                                   \
                    K_STARTS_##kind(part.acc = LOAD(x[base]);)                                                         \
                        DT_CAT(k_row_##op, NAME)(&a, x + base, begin + (int64_t)lane * K_WIDTH, end, &part);           \
                }                                                                                                      \
                shared[lane * slots + slot] = part;                                                                    \
            }                                                                                                          \
            DT_SYNC();                                                                                                 \
            DT_ROLLED for (int half = DT_MAX_THREADS / 2; half >= slots; half /= 2)                                    \
            {                                                                                                          \
                DT_ROLLED DT_FOR_THREADS(v, half) DT_CAT(k_join_##op, NAME)(&shared[v], &shared[v + half]);            \
                DT_SYNC();                                                                                             \
            }                                                                                                          \
            DT_ROLLED DT_FOR_THREADS(v, slots)                                                                         \
            {                                                                                                          \
                const int64_t o = tile * slots + v;                                                                    \
                if (o < a.outer.numel && a.stage == K_STAGE_PARTIAL) {                                                 \
                    memcpy(&scratch[2 * (o * a.splits + split)], &shared[v], sizeof(shared[v]));                       \
                } else if (o < a.outer.numel) {                                                                        \
                    DT_CAT(k_answer_##op, NAME)(&a, out, o, &shared[v]);                                               \
                }                                                                                                      \
            }                                                                                                          \
            DT_SYNC();                                                                                                 \
        }                                                                                                              \
    }

/* Ops that take every element in; the same step joins two accumulators. */
#define K_STARTS_fold(...)
#define K_FOLD(op, result, store)                                                                                      \
    DT_DEVICE K_NAMED(fold) DT_CAT(k_none_##op, NAME)(void)                                                            \
    {                                                                                                                  \
        const K_NAMED(fold) none = {DT_CAT(k_identity_##op, A)()};                                                     \
        return none;                                                                                                   \
    }                                                                                                                  \
    DT_DEVICE void DT_CAT(k_take_##op, NAME)(K_NAMED(fold) * a, C x, int64_t at)                                       \
    {                                                                                                                  \
        (void)at;                                                                                                      \
        a->acc = DT_CAT(k_step_##op, A)(a->acc, (A)x);                                                                 \
    }                                                                                                                  \
    DT_DEVICE void DT_CAT(k_join_##op, NAME)(K_NAMED(fold) * a, const K_NAMED(fold) * b)                               \
    {                                                                                                                  \
        a->acc = DT_CAT(k_step_##op, A)(a->acc, b->acc);                                                               \
    }                                                                                                                  \
    DT_DEVICE void DT_CAT(k_answer_##op, NAME)(const k_reduce_args *a, void *out, int64_t o,                           \
                                               const K_NAMED(fold) * part)                                             \
    {                                                                                                                  \
        const A total = DT_CAT(k_finish_##op, A)(part->acc, (A)a->inner.numel);                                        \
        if (a->wide) {                                                                                                 \
            ((A *)out)[o] = total;                                                                                     \
        } else {                                                                                                       \
            ((result *)out)[o] = store(total);                                                                         \
        }                                                                                                              \
    }                                                                                                                  \
    K_REDUCTION(op, fold)

/* Whether x is before acc by the op, or a NaN and acc is none. */
#define K_BEFORE(op)                                                                                                   \
    DT_DEVICE int DT_CAT(k_before_##op, NAME)(K_VALUE acc, K_VALUE x)                                                  \
    {                                                                                                                  \
        return (DT_CAT(k_step_##op, K_VALUE)(acc, x) != 0 || x != x) && acc == acc;                                    \
    }

/* Ops that pick an element and tell its value. */
#define K_STARTS_extreme(...) __VA_ARGS__
#define K_EXTREME(op)                                                                                                  \
    K_BEFORE(op)                                                                                                       \
    DT_DEVICE K_NAMED(extreme) DT_CAT(k_none_##op, NAME)(void)                                                         \
    {                                                                                                                  \
        const K_NAMED(extreme) none = {0};                                                                             \
        return none;                                                                                                   \
    }                                                                                                                  \
    DT_DEVICE void DT_CAT(k_take_##op, NAME)(K_NAMED(extreme) * a, K_VALUE x, int64_t at)                              \
    {                                                                                                                  \
        (void)at;                                                                                                      \
        a->acc = DT_CAT(k_before_##op, NAME)(a->acc, x) ? x : a->acc;                                                  \
    }                                                                                                                  \
    DT_DEVICE void DT_CAT(k_join_##op, NAME)(K_NAMED(extreme) * a, const K_NAMED(extreme) * b)                         \
    {                                                                                                                  \
        DT_CAT(k_take_##op, NAME)(a, b->acc, 0);                                                                       \
    }                                                                                                                  \
    DT_DEVICE void DT_CAT(k_answer_##op, NAME)(const k_reduce_args *a, void *out, int64_t o,                           \
                                               const K_NAMED(extreme) * part)                                          \
    {                                                                                                                  \
        (void)a;                                                                                                       \
        ((T *)out)[o] = K_STORE(part->acc);                                                                            \
    }                                                                                                                  \
    K_REDUCTION(op, extreme)

/* Ops that tell its position, the first of equals: a lane meets its elements in order. */
#define K_STARTS_pick(...) __VA_ARGS__
#define K_PICK(op)                                                                                                     \
    K_BEFORE(op)                                                                                                       \
    DT_DEVICE K_NAMED(pick) DT_CAT(k_none_##op, NAME)(void)                                                            \
    {                                                                                                                  \
        const K_NAMED(pick) none = {0, 0};                                                                             \
        return none;                                                                                                   \
    }                                                                                                                  \
    DT_DEVICE void DT_CAT(k_take_##op, NAME)(K_NAMED(pick) * a, K_VALUE x, int64_t at)                                 \
    {                                                                                                                  \
        const int before = DT_CAT(k_before_##op, NAME)(a->acc, x);                                                     \
        a->acc = before ? x : a->acc;                                                                                  \
        a->at = before ? at : a->at;                                                                                   \
    }                                                                                                                  \
    DT_DEVICE void DT_CAT(k_join_##op, NAME)(K_NAMED(pick) * a, const K_NAMED(pick) * b)                               \
    {                                                                                                                  \
        const int before = DT_CAT(k_before_##op, NAME)(a->acc, b->acc);                                                \
        const int after = DT_CAT(k_before_##op, NAME)(b->acc, a->acc);                                                 \
        if (before || (!after && b->at < a->at)) {                                                                     \
            *a = *b;                                                                                                   \
        }                                                                                                              \
    }                                                                                                                  \
    DT_DEVICE void DT_CAT(k_answer_##op, NAME)(const k_reduce_args *a, void *out, int64_t o,                           \
                                               const K_NAMED(pick) * part)                                             \
    {                                                                                                                  \
        (void)a;                                                                                                       \
        ((int64_t *)out)[o] = part->at;                                                                                \
    }                                                                                                                  \
    K_REDUCTION(op, pick)

#define K_KIND_SUM(op) K_FOLD(op, K_SUM_RESULT, K_STORE_SUM)
#define K_KIND_FLOAT(op) K_HAS_FLOAT(K_FOLD(op, T, K_STORE))
#define K_KIND_TEST(op) K_FOLD(op, uint8_t, (uint8_t))
#define K_KIND_SAME(op) K_EXTREME(op)
#define K_KIND_ARG(op) K_PICK(op)
#define DT_REDUCE(op, kind, identity, step, finish, doc) K_KIND_##kind(op)
#include "../core/reductions.def"
#undef DT_REDUCE
#undef K_KIND_SUM
#undef K_KIND_FLOAT
#undef K_KIND_TEST
#undef K_KIND_SAME
#undef K_KIND_ARG
#undef K_PICK
#undef K_STARTS_pick
#undef K_EXTREME
#undef K_STARTS_extreme
#undef K_BEFORE
#undef K_FOLD
#undef K_STARTS_fold
#undef K_REDUCTION
#undef K_APART
#undef K_AHEAD
#undef K_WIDTH
#undef K_STORE_SUM
#undef K_STORE
#undef K_VALUE
#undef K_SUM_RESULT
#undef K_HAS_FLOAT
#undef A
#undef K_NAMED
