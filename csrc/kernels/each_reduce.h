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

/* Ops that take every element in; the same step joins two accumulators. */
#define K_FOLD(op, result, store)                                                                                      \
    K_KERNEL(K_NAMED(op), k_reduce_args, a)                                                                            \
    {                                                                                                                  \
        uint64_t *scratch = a.scratch.address ? DT_GLOBAL(uint64_t, a.scratch.address, a.scratch.nbytes) : 0;          \
        result *out = a.wide ? 0 : DT_GLOBAL(result, a.out.address, a.out.nbytes);                                     \
        A *wide = a.wide ? DT_GLOBAL(A, a.out.address, a.out.nbytes) : 0;                                              \
        K_IN(T, x, value, a.x);                                                                                        \
        DT_SHARED A shared[DT_MAX_THREADS];                                                                            \
        const int64_t n = a.stage == K_STAGE_COMBINE ? a.splits : a.inner.numel;                                       \
        const int64_t splits = a.stage == K_STAGE_PARTIAL ? a.splits : 1;                                              \
        const int64_t chunk = (n + splits - 1) / splits;                                                               \
        const int64_t results = a.outer.numel * splits;                                                                \
        const int64_t first = a.by_thread ? DT_BLOCK * DT_THREADS + DT_THREAD : DT_BLOCK;                              \
        const int64_t stride = a.by_thread ? DT_BLOCKS * DT_THREADS : DT_BLOCKS;                                       \
        for (int64_t r = first; r < results; r += stride) {                                                            \
            const int64_t o = r / splits, begin = (r - o * splits) * chunk;                                            \
            const int64_t end = begin + chunk < n ? begin + chunk : n;                                                 \
            int64_t base, at;                                                                                          \
            k_locate(&a.outer, 1, o, &base);                                                                           \
            A acc = DT_CAT(k_identity_##op, A_NAME)();                                                                 \
            for (int64_t i = begin + (a.by_thread ? 0 : DT_THREAD); i < end; i += a.by_thread ? 1 : DT_THREADS) {      \
                A v;                                                                                                   \
                if (a.stage == K_STAGE_COMBINE) {                                                                      \
                    memcpy(&v, &scratch[2 * (o * a.splits + i)], sizeof(v));                                           \
                } else {                                                                                               \
                    k_locate(&a.inner, 1, i, &at);                                                                     \
                    v = K_LOAD(x ? x[base + at] : value);                                                              \
                }                                                                                                      \
                acc = DT_CAT(k_step_##op, A_NAME)(acc, v);                                                             \
            }                                                                                                          \
            if (!a.by_thread) {                                                                                        \
                shared[DT_THREAD] = acc;                                                                               \
                for (int half = DT_THREADS / 2; half > 0; half /= 2) {                                                 \
                    DT_SYNC();                                                                                         \
                    if (DT_THREAD < half) {                                                                            \
                        acc = DT_CAT(k_step_##op, A_NAME)(acc, shared[DT_THREAD + half]);                              \
                        shared[DT_THREAD] = acc;                                                                       \
                    }                                                                                                  \
                }                                                                                                      \
                DT_SYNC();                                                                                             \
            }                                                                                                          \
            if (a.by_thread || DT_THREAD == 0) {                                                                       \
                if (a.stage == K_STAGE_PARTIAL) {                                                                      \
                    memcpy(&scratch[2 * r], &acc, sizeof(acc));                                                        \
                } else {                                                                                               \
                    acc = DT_CAT(k_finish_##op, A_NAME)(acc, (A)a.inner.numel);                                        \
                    if (a.wide) {                                                                                      \
                        wide[o] = acc;                                                                                 \
                    } else {                                                                                           \
                        out[o] = store(acc);                                                                           \
                    }                                                                                                  \
                }                                                                                                      \
            }                                                                                                          \
        }                                                                                                              \
    }

/* Whether (x, at) comes before (acc, best): NaN first, then by the op, then by position. best < 0: nothing yet. */
#define K_BEATS(op)                                                                                                    \
    DT_DEVICE int DT_CAT(k_beats_##op, NAME)(A acc, int64_t best, A x, int64_t at)                                     \
    {                                                                                                                  \
        if (best < 0 || at < 0) {                                                                                      \
            return at >= 0;                                                                                            \
        }                                                                                                              \
        if (acc != acc || x != x) {                                                                                    \
            return x != x && (acc == acc || at < best);                                                                \
        }                                                                                                              \
        if (DT_CAT(k_step_##op, A_NAME)(acc, x) != 0) {                                                                \
            return 1;                                                                                                  \
        }                                                                                                              \
        return DT_CAT(k_step_##op, A_NAME)(x, acc) == 0 && at < best;                                                  \
    }

#define K_PICK(op, result, answer)                                                                                     \
    K_BEATS(op)                                                                                                        \
    K_KERNEL(K_NAMED(op), k_reduce_args, a)                                                                            \
    {                                                                                                                  \
        uint64_t *scratch = a.scratch.address ? DT_GLOBAL(uint64_t, a.scratch.address, a.scratch.nbytes) : 0;          \
        K_OUT(result, out, a.out);                                                                                     \
        K_IN(T, x, value, a.x);                                                                                        \
        DT_SHARED A shared[DT_MAX_THREADS];                                                                            \
        DT_SHARED int64_t places[DT_MAX_THREADS];                                                                      \
        const int64_t n = a.stage == K_STAGE_COMBINE ? a.splits : a.inner.numel;                                       \
        const int64_t splits = a.stage == K_STAGE_PARTIAL ? a.splits : 1;                                              \
        const int64_t chunk = (n + splits - 1) / splits;                                                               \
        const int64_t results = a.outer.numel * splits;                                                                \
        const int64_t first = a.by_thread ? DT_BLOCK * DT_THREADS + DT_THREAD : DT_BLOCK;                              \
        const int64_t stride = a.by_thread ? DT_BLOCKS * DT_THREADS : DT_BLOCKS;                                       \
        for (int64_t r = first; r < results; r += stride) {                                                            \
            const int64_t o = r / splits, begin = (r - o * splits) * chunk;                                            \
            const int64_t end = begin + chunk < n ? begin + chunk : n;                                                 \
            int64_t base, at, best = -1;                                                                               \
            k_locate(&a.outer, 1, o, &base);                                                                           \
            A acc = 0;                                                                                                 \
            for (int64_t i = begin + (a.by_thread ? 0 : DT_THREAD); i < end; i += a.by_thread ? 1 : DT_THREADS) {      \
                A v;                                                                                                   \
                int64_t place = i;                                                                                     \
                if (a.stage == K_STAGE_COMBINE) {                                                                      \
                    memcpy(&v, &scratch[2 * (o * a.splits + i)], sizeof(v));                                           \
                    memcpy(&place, &scratch[2 * (o * a.splits + i) + 1], sizeof(place));                               \
                } else {                                                                                               \
                    k_locate(&a.inner, 1, i, &at);                                                                     \
                    v = K_LOAD(x ? x[base + at] : value);                                                              \
                }                                                                                                      \
                if (DT_CAT(k_beats_##op, NAME)(acc, best, v, place)) {                                                 \
                    acc = v;                                                                                           \
                    best = place;                                                                                      \
                }                                                                                                      \
            }                                                                                                          \
            if (!a.by_thread) {                                                                                        \
                shared[DT_THREAD] = acc;                                                                               \
                places[DT_THREAD] = best;                                                                              \
                for (int half = DT_THREADS / 2; half > 0; half /= 2) {                                                 \
                    DT_SYNC();                                                                                         \
                    if (DT_THREAD < half) {                                                                            \
                        A v = shared[DT_THREAD + half];                                                                \
                        int64_t place = places[DT_THREAD + half];                                                      \
                        if (DT_CAT(k_beats_##op, NAME)(acc, best, v, place)) {                                         \
                            shared[DT_THREAD] = acc = v;                                                               \
                            places[DT_THREAD] = best = place;                                                          \
                        }                                                                                              \
                    }                                                                                                  \
                }                                                                                                      \
                DT_SYNC();                                                                                             \
            }                                                                                                          \
            if (a.by_thread || DT_THREAD == 0) {                                                                       \
                if (a.stage == K_STAGE_PARTIAL) {                                                                      \
                    memcpy(&scratch[2 * r], &acc, sizeof(acc));                                                        \
                    memcpy(&scratch[2 * r + 1], &best, sizeof(best));                                                  \
                } else {                                                                                               \
                    out[o] = answer;                                                                                   \
                }                                                                                                      \
            }                                                                                                          \
        }                                                                                                              \
    }

#define K_KIND_SUM(op) K_FOLD(op, K_SUM_RESULT, K_STORE_SUM)
#define K_KIND_FLOAT(op) K_HAS_FLOAT(K_FOLD(op, T, K_STORE))
#define K_KIND_TEST(op) K_FOLD(op, uint8_t, (uint8_t))
#define K_KIND_SAME(op) K_PICK(op, T, K_STORE(acc))
#define K_KIND_ARG(op) K_PICK(op, int64_t, best)
#define DT_REDUCE(op, kind, identity, step, finish, doc) K_KIND_##kind(op)
#include "../core/reductions.def"
#undef DT_REDUCE
#undef K_KIND_SUM
#undef K_KIND_FLOAT
#undef K_KIND_TEST
#undef K_KIND_SAME
#undef K_KIND_ARG
#undef K_PICK
#undef K_BEATS
#undef K_FOLD
#undef K_STORE_SUM
#undef K_STORE
#undef K_LOAD
#undef K_SUM_RESULT
#undef K_HAS_FLOAT
#undef A_NAME
#undef A
#undef K_NAMED
