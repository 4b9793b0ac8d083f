/* each_reduce.h: the kernels of reduce.cu for one dtype (see each_dtype.h). */
#define K_NAMED(op) DT_CAT(k_##op, NAME)

#if IS_FLOAT
#define A double
#define A_NAME float64
#define K_HAS_FLOAT(...) __VA_ARGS__
#define K_SUM_RESULT T
#define K_LOAD(v) ((double)LOAD(v))
#define K_STORE(acc) DT_CAT(dt_cast_float64, NAME)(acc)
#define K_STORE_SUM(acc) K_STORE(acc)
#else
#define A int64_t
#define A_NAME int64
#define K_HAS_FLOAT(...)
#define K_SUM_RESULT int64_t
#define K_LOAD(v) ((int64_t)(v))
#define K_STORE(acc) ((T)(acc))
#define K_STORE_SUM(acc) (acc)
#endif

/* What a thread has of a row: a fold has the accumulator, a pick also the position of the element that it is. */
typedef struct {
    A acc;
} K_NAMED(fold);
typedef struct {
    A acc;
    int64_t at;
} K_NAMED(pick);

#define K_WIDTH (K_VECTOR_BYTES / (int)sizeof(T))
#define K_AHEAD (sizeof(T) >= 4 ? 2 : 1) /* packs in flight */

/* Elements of a row go to its lanes by packs of K_WIDTH, whether or not one access takes a pack, and the lanes meet in
 * a tree of fixed shape: the order, and with it every bit, is the same for any grid, block and alignment. */
#define K_REDUCTION(op, kind)                                                                                          \
    DT_DEVICE void DT_CAT(k_row_##op, NAME)(const k_reduce_args *a, const T *x, int64_t begin, int64_t end,            \
                                            K_NAMED(kind) * part)                                                      \
    {                                                                                                                  \
        typedef K_PACK(T, K_WIDTH) pack;                                                                               \
        const int64_t step = (int64_t)K_WIDTH << a->rows.lanes, all = (K_AHEAD - 1) * step + K_WIDTH;                  \
        const int plain = a->rows.vector || a->inner.ndim == 1;                                                        \
        int64_t at;                                                                                                    \
        DT_ROLLED for (; plain && begin + all <= end; begin += K_AHEAD * step)                                         \
        {                                                                                                              \
            pack got[K_AHEAD];                                                                                         \
            DT_UNROLLED for (int u = 0; u < (int)K_AHEAD; u++)                                                         \
            {                                                                                                          \
                k_locate_narrow(&a->inner, 1, begin + u * step, &at);                                                  \
                if (a->rows.vector) {                                                                                  \
                    got[u] = *(const pack *)(const void *)(x + at);                                                    \
                } else {                                                                                               \
                    DT_UNROLLED for (int j = 0; j < K_WIDTH; j++)                                                      \
                    {                                                                                                  \
                        got[u].v[j] = x[at + j * a->inner.strides[0][0]];                                              \
                    }                                                                                                  \
                }                                                                                                      \
            }                                                                                                          \
            DT_UNROLLED for (int u = 0; u < (int)K_AHEAD; u++)                                                         \
            {                                                                                                          \
                DT_UNROLLED for (int j = 0; j < K_WIDTH; j++)                                                          \
                {                                                                                                      \
                    const K_NAMED(kind) one = DT_CAT(k_one_##kind, NAME)(K_LOAD(got[u].v[j]), begin + u * step + j);   \
                    DT_CAT(k_join_##op, NAME)(part, &one);                                                             \
                }                                                                                                      \
            }                                                                                                          \
        }                                                                                                              \
        DT_ROLLED for (; begin < end; begin += step)                                                                   \
        {                                                                                                              \
            DT_ROLLED for (int64_t i = begin; i < begin + K_WIDTH && i < end; i++)                                     \
            {                                                                                                          \
                k_locate(&a->inner, 1, i, &at);                                                                        \
                const K_NAMED(kind) one = DT_CAT(k_one_##kind, NAME)(K_LOAD(x[at]), i);                                \
                DT_CAT(k_join_##op, NAME)(part, &one);                                                                 \
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
                    for (int64_t i = lane; i < a.splits; i += lanes) {                                                 \
                        K_NAMED(kind) other;                                                                           \
                        memcpy(&other, &scratch[2 * (o * a.splits + i)], sizeof(other));                               \
                        DT_CAT(k_join_##op, NAME)(&part, &other);                                                      \
                    }                                                                                                  \
                } else if (o < a.outer.numel) {                                                                        \
                    int64_t base;                                                                                      \
                    k_locate(&a.outer, 1, o, &base);                                                                   \
                    DT_CAT(k_row_##op, NAME)(&a, x + base, begin + (int64_t)lane * K_WIDTH, end, &part);               \
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

DT_DEVICE
K_NAMED(fold) DT_CAT(k_one_fold, NAME)(A acc, int64_t at)
{
    const K_NAMED(fold) one = {acc};
    (void)at;
    return one;
}

DT_DEVICE
K_NAMED(pick) DT_CAT(k_one_pick, NAME)(A acc, int64_t at)
{
    const K_NAMED(pick) one = {acc, at};
    return one;
}

/* Ops that take every element in; the same step joins two accumulators. */
#define K_FOLD(op, result, store)                                                                                      \
    DT_DEVICE K_NAMED(fold) DT_CAT(k_none_##op, NAME)(void)                                                            \
    {                                                                                                                  \
        return DT_CAT(k_one_fold, NAME)(DT_CAT(k_identity_##op, A_NAME)(), 0);                                         \
    }                                                                                                                  \
    DT_DEVICE void DT_CAT(k_join_##op, NAME)(K_NAMED(fold) * a, const K_NAMED(fold) * b)                               \
    {                                                                                                                  \
        a->acc = DT_CAT(k_step_##op, A_NAME)(a->acc, b->acc);                                                          \
    }                                                                                                                  \
    DT_DEVICE void DT_CAT(k_answer_##op, NAME)(const k_reduce_args *a, void *out, int64_t o,                           \
                                               const K_NAMED(fold) * part)                                             \
    {                                                                                                                  \
        const A total = DT_CAT(k_finish_##op, A_NAME)(part->acc, (A)a->inner.numel);                                   \
        if (a->wide) {                                                                                                 \
            ((A *)out)[o] = total;                                                                                     \
        } else {                                                                                                       \
            ((result *)out)[o] = store(total);                                                                         \
        }                                                                                                              \
    }                                                                                                                  \
    K_REDUCTION(op, fold)

/* Ops that pick an element: NaN first, then by the op, then by position. at < 0: nothing yet. */
#define K_PICK(op, result, answer)                                                                                     \
    DT_DEVICE K_NAMED(pick) DT_CAT(k_none_##op, NAME)(void)                                                            \
    {                                                                                                                  \
        return DT_CAT(k_one_pick, NAME)(0, -1);                                                                        \
    }                                                                                                                  \
    DT_DEVICE void DT_CAT(k_join_##op, NAME)(K_NAMED(pick) * a, const K_NAMED(pick) * b)                               \
    {                                                                                                                  \
        int better;                                                                                                    \
        if (a->at < 0 || b->at < 0) {                                                                                  \
            better = b->at >= 0;                                                                                       \
        } else if (a->acc != a->acc || b->acc != b->acc) {                                                             \
            better = b->acc != b->acc && (a->acc == a->acc || b->at < a->at);                                          \
        } else {                                                                                                       \
            better = DT_CAT(k_step_##op, A_NAME)(a->acc, b->acc) != 0 ||                                               \
                     (DT_CAT(k_step_##op, A_NAME)(b->acc, a->acc) == 0 && b->at < a->at);                              \
        }                                                                                                              \
        if (better) {                                                                                                  \
            *a = *b;                                                                                                   \
        }                                                                                                              \
    }                                                                                                                  \
    DT_DEVICE void DT_CAT(k_answer_##op, NAME)(const k_reduce_args *a, void *out, int64_t o,                           \
                                               const K_NAMED(pick) * part)                                             \
    {                                                                                                                  \
        (void)a;                                                                                                       \
        ((result *)out)[o] = answer;                                                                                   \
    }                                                                                                                  \
    K_REDUCTION(op, pick)

#define K_KIND_SUM(op) K_FOLD(op, K_SUM_RESULT, K_STORE_SUM)
#define K_KIND_FLOAT(op) K_HAS_FLOAT(K_FOLD(op, T, K_STORE))
#define K_KIND_TEST(op) K_FOLD(op, uint8_t, (uint8_t))
#define K_KIND_SAME(op) K_PICK(op, T, K_STORE(part->acc))
#define K_KIND_ARG(op) K_PICK(op, int64_t, part->at)
#define DT_REDUCE(op, kind, identity, step, finish, doc) K_KIND_##kind(op)
#include "../core/reductions.def"
#undef DT_REDUCE
#undef K_KIND_SUM
#undef K_KIND_FLOAT
#undef K_KIND_TEST
#undef K_KIND_SAME
#undef K_KIND_ARG
#undef K_PICK
#undef K_FOLD
#undef K_REDUCTION
#undef K_AHEAD
#undef K_WIDTH
#undef K_STORE_SUM
#undef K_STORE
#undef K_LOAD
#undef K_SUM_RESULT
#undef K_HAS_FLOAT
#undef A_NAME
#undef A
#undef K_NAMED
