/* reduce_each.h: the kernels of reductions.def for one dtype, those that reduce.c asks for. Included by each_dtype.h. A
 * is the accumulator's type, R the result's; a comparison starts from an element, the others from their identity. */
#if !DT_CAT(IS_HALF, ENUM)

/* x or acc, without a jump that nobody can foresee */
#define EITHER(A, chosen) ((const A[]){acc, x}[chosen])

/* The upper of 2 * half lanes are joined to the lower; by name, as each loop then is one vector or a few. */
#define HALVE(A, half, VALUE)                                                                                          \
    for (int l = 0; l < half; l++) {                                                                                   \
        const A acc = lanes[l], x = lanes[l + half];                                                                   \
        lanes[l] = (A)(VALUE);                                                                                         \
    }
#define HALVES(A, VALUE, PICK)                                                                                         \
    HALVE(A, 16, VALUE) HALVE(A, 8, VALUE) HALVE(A, 4, VALUE) HALVE(A, 2, PICK) HALVE(A, 1, PICK)

#define REDUCE_PARTS(name, A, START, VALUE, PICK, FINISH)                                                              \
    static void DT_CAT(init_##name, ENUM)(void *accs, int64_t *at, int64_t width, const char *data, int64_t apart,     \
                                          int64_t position)                                                            \
    {                                                                                                                  \
        const T *px = (const T *)data;                                                                                 \
        (void)at;                                                                                                      \
        (void)position;                                                                                                \
        for (int64_t j = 0; j < width; j++) {                                                                          \
            const A first = (A)px[j * apart];                                                                          \
            (void)first;                                                                                               \
            ((A *)accs)[j] = (A)(START);                                                                               \
        }                                                                                                              \
    }                                                                                                                  \
    static void DT_CAT(step_lines_##name, ENUM)(A * all, int64_t width, int64_t apart, const T *px, int64_t count,     \
                                                int64_t along)                                                         \
    {                                                                                                                  \
        int64_t i = 0;                                                                                                 \
        for (; apart == 1 && i + 4 <= count; i += 4) { /* four at once: less to load and store */                      \
            const T *r0 = px + i * along, *r1 = r0 + along, *r2 = r1 + along, *r3 = r2 + along;                        \
            CPU_INDEPENDENT                                                                                            \
            for (int64_t j = 0; j < width; j++) {                                                                      \
                A acc = all[j], x = (A)r0[j];                                                                          \
                acc = (A)(VALUE);                                                                                      \
                x = (A)r1[j];                                                                                          \
                acc = (A)(VALUE);                                                                                      \
                x = (A)r2[j];                                                                                          \
                acc = (A)(VALUE);                                                                                      \
                x = (A)r3[j];                                                                                          \
                all[j] = (A)(VALUE);                                                                                   \
            }                                                                                                          \
        }                                                                                                              \
        for (; i < count; i++) {                                                                                       \
            const T *row = px + i * along;                                                                             \
            for (int64_t j = 0; j < width; j++) {                                                                      \
                const A acc = all[j], x = (A)row[j * apart];                                                           \
                all[j] = (A)(VALUE);                                                                                   \
            }                                                                                                          \
        }                                                                                                              \
    }                                                                                                                  \
    static void DT_CAT(step_##name, ENUM)(void *accs, int64_t *at, int64_t width, int64_t apart, const char *data,     \
                                          int64_t count, int64_t along, int64_t position, bool lines)                  \
    {                                                                                                                  \
        A *all = accs;                                                                                                 \
        (void)at;                                                                                                      \
        (void)position;                                                                                                \
        if (lines) {                                                                                                   \
            DT_CAT(step_lines_##name, ENUM)(all, width, apart, (const T *)data, count, along);                         \
            return;                                                                                                    \
        }                                                                                                              \
        for (int64_t j = 0; j < width; j++) {                                                                          \
            const T *px = (const T *)data + j * apart;                                                                 \
            int64_t i = 0;                                                                                             \
            for (; count < LANES && i < count; i++) {                                                                  \
                const A acc = all[j], x = (A)px[i * along];                                                            \
                all[j] = (A)(PICK);                                                                                    \
            }                                                                                                          \
            if (i == count) {                                                                                          \
                continue;                                                                                              \
            }                                                                                                          \
            A lanes[LANES];                                                                                            \
            for (; along != 1 && i < LANES; i++) {                                                                     \
                lanes[i] = (A)px[i * along];                                                                           \
            }                                                                                                          \
            for (; i < LANES; i++) {                                                                                   \
                lanes[i] = (A)px[i];                                                                                   \
            }                                                                                                          \
            for (; along == 1 && i + LANES <= count; i += LANES) {                                                     \
                CPU_LANES                                                                                              \
                for (int l = 0; l < LANES; l++) {                                                                      \
                    const A acc = lanes[l], x = (A)px[i + l];                                                          \
                    lanes[l] = (A)(VALUE);                                                                             \
                }                                                                                                      \
            }                                                                                                          \
            for (; i < count; i++) {                                                                                   \
                const A acc = lanes[(uint64_t)i % LANES], x = (A)px[i * along];                                        \
                lanes[(uint64_t)i % LANES] = (A)(VALUE);                                                               \
            }                                                                                                          \
            HALVES(A, VALUE, PICK)                                                                                     \
            const A acc = all[j], x = lanes[0];                                                                        \
            all[j] = (A)(PICK);                                                                                        \
        }                                                                                                              \
    }                                                                                                                  \
    FINISH_PART(name, A, FINISH)

#define COMBINE_PART(name, A, VALUE)                                                                                   \
    static void DT_CAT(combine_##name, ENUM)(void *accs, int64_t *at, const void *others, const int64_t *others_at,    \
                                             int64_t width)                                                            \
    {                                                                                                                  \
        (void)at;                                                                                                      \
        (void)others_at;                                                                                               \
        for (int64_t j = 0; j < width; j++) {                                                                          \
            const A acc = ((A *)accs)[j], x = ((const A *)others)[j];                                                  \
            ((A *)accs)[j] = (A)(VALUE);                                                                               \
        }                                                                                                              \
    }

#define FINISH_PART(name, A, FINISH)                                                                                   \
    static void DT_CAT(finish_##name, ENUM)(const void *accs, const int64_t *at, int64_t width, int64_t size,          \
                                            void *results)                                                             \
    {                                                                                                                  \
        const A n = (A)size;                                                                                           \
        (void)n;                                                                                                       \
        (void)at;                                                                                                      \
        for (int64_t j = 0; j < width; j++) {                                                                          \
            const A acc = ((const A *)accs)[j];                                                                        \
            ((A *)results)[j] = FINISH;                                                                                \
        }                                                                                                              \
    }

/* Comparisons that remember the position: at[j] of accs[j]. */
#define ARG_PARTS(name, STEP)                                                                                          \
    static inline int DT_CAT(better_##name, ENUM)(C x, C acc)                                                          \
    {                                                                                                                  \
        return E(STEP, (STEP) | ((x != x) & (acc == acc)));                                                            \
    }                                                                                                                  \
    static void DT_CAT(init_##name, ENUM)(void *accs, int64_t *at, int64_t width, const char *data, int64_t apart,     \
                                          int64_t position)                                                            \
    {                                                                                                                  \
        for (int64_t j = 0; j < width; j++) {                                                                          \
            ((C *)accs)[j] = ((const T *)data)[j * apart];                                                             \
            at[j] = position;                                                                                          \
        }                                                                                                              \
    }                                                                                                                  \
    /* the best of n neighbours, n a multiple of LANES: a NaN if there is one */                                       \
    static inline C DT_CAT(best_##name, ENUM)(const T *px, int64_t n)                                                  \
    {                                                                                                                  \
        C lanes[LANES];                                                                                                \
        for (int l = 0; l < LANES; l++) {                                                                              \
            lanes[l] = px[l];                                                                                          \
        }                                                                                                              \
        for (int64_t i = LANES; i < n; i += LANES) {                                                                   \
            CPU_LANES                                                                                                  \
            for (int l = 0; l < LANES; l++) {                                                                          \
                const C acc = lanes[l], x = px[i + l];                                                                 \
                lanes[l] = E(STEP, (STEP) | (x != x)) ? x : acc;                                                       \
            }                                                                                                          \
        }                                                                                                              \
        HALVES(C, E(STEP, (STEP) | (x != x)) ? x : acc, EITHER(C, E(STEP, (STEP) | (x != x))))                         \
        return lanes[0];                                                                                               \
    }                                                                                                                  \
    static void DT_CAT(step_##name, ENUM)(void *accs, int64_t *at, int64_t width, int64_t apart, const char *data,     \
                                          int64_t count, int64_t along, int64_t position, bool lines)                  \
    {                                                                                                                  \
        C *all = accs;                                                                                                 \
        for (int64_t i = 0; lines && i < count; i++) {                                                                 \
            const T *row = (const T *)data + i * along;                                                                \
            CPU_INDEPENDENT                                                                                            \
            for (int64_t j = 0; j < width; j++) {                                                                      \
                const C acc = all[j], x = row[j * apart];                                                              \
                const int better = DT_CAT(better_##name, ENUM)(x, acc);                                                \
                all[j] = better ? x : acc;                                                                             \
                at[j] = better ? position + i : at[j];                                                                 \
            }                                                                                                          \
        }                                                                                                              \
        for (int64_t j = 0; !lines && j < width; j++) {                                                                \
            const T *px = (const T *)data + j * apart;                                                                 \
            C acc = all[j];                                                                                            \
            int64_t i = 0;                                                                                             \
            while (along == 1 && i + LANES <= count) { /* the best of a block, then where it is */                     \
                const int64_t m = CPU_MIN(count - i, ARG_BLOCK) / LANES * LANES;                                       \
                const C best = DT_CAT(best_##name, ENUM)(px + i, m);                                                   \
                if (DT_CAT(better_##name, ENUM)(best, acc)) {                                                          \
                    int64_t k = i;                                                                                     \
                    for (int hit = 0;; k += LANES) {                                                                   \
                        for (int l = 0; l < LANES; l++) {                                                              \
                            hit |= (px[k + l] == best) | (px[k + l] != px[k + l]);                                     \
                        }                                                                                              \
                        if (hit) {                                                                                     \
                            break;                                                                                     \
                        }                                                                                              \
                    }                                                                                                  \
                    while (px[k] != best && px[k] == px[k]) {                                                          \
                        k++;                                                                                           \
                    }                                                                                                  \
                    acc = best;                                                                                        \
                    at[j] = position + k;                                                                              \
                }                                                                                                      \
                i += m;                                                                                                \
            }                                                                                                          \
            for (; i < count; i++) {                                                                                   \
                const C x = px[i * along];                                                                             \
                if (DT_CAT(better_##name, ENUM)(x, acc)) {                                                             \
                    acc = x;                                                                                           \
                    at[j] = position + i;                                                                              \
                }                                                                                                      \
            }                                                                                                          \
            all[j] = acc;                                                                                              \
        }                                                                                                              \
    }                                                                                                                  \
    static void DT_CAT(combine_##name, ENUM)(void *accs, int64_t *at, const void *others, const int64_t *others_at,    \
                                             int64_t width)                                                            \
    {                                                                                                                  \
        for (int64_t j = 0; j < width; j++) {                                                                          \
            const C acc = ((C *)accs)[j], x = ((const C *)others)[j];                                                  \
            if (DT_CAT(better_##name, ENUM)(x, acc)) {                                                                 \
                ((C *)accs)[j] = x;                                                                                    \
                at[j] = others_at[j];                                                                                  \
            }                                                                                                          \
        }                                                                                                              \
    }                                                                                                                  \
    static void DT_CAT(finish_##name, ENUM)(const void *accs, const int64_t *at, int64_t width, int64_t size,          \
                                            void *results)                                                             \
    {                                                                                                                  \
        (void)accs;                                                                                                    \
        (void)size;                                                                                                    \
        memcpy(results, at, (size_t)width * sizeof(*at));                                                              \
    }

#if IS_FLOAT || DT_CAT(IS_INT64, ENUM) || DT_CAT(IS_INT32, ENUM)
#define HAS_sum(...) __VA_ARGS__
#else
#define HAS_sum(...)
#endif
#if IS_FLOAT || DT_CAT(IS_INT64, ENUM)
#define HAS_prod(...) __VA_ARGS__
#else
#define HAS_prod(...)
#endif
#if IS_BOOL
#define HAS_TEST(...) __VA_ARGS__
#else
#define HAS_TEST(...)
#endif

#define REDUCE_TEST(name, identity, step, finish)                                                                      \
    HAS_TEST(COMBINE_PART(name, C, step) REDUCE_PARTS(name, C, identity, step, step, finish))
#define REDUCE_SAME(name, identity, step, finish)                                                                      \
    COMBINE_PART(name, C, E(step, ((step) | (x != x))) ? x : acc)                                                      \
    REDUCE_PARTS(name, C, first, E(step, ((step) | (x != x))) ? x : acc, EITHER(C, E(step, ((step) | (x != x)))),      \
                 finish)
#define REDUCE_ARG(name, identity, step, finish) ARG_PARTS(name, step)
#define REDUCE_SUM(...)
#define REDUCE_FLOAT(...)
#define DT_REDUCE(name, kind, identity, step, finish, doc) REDUCE_##kind(name, identity, step, finish)
#include "../core/reductions.def"
#undef REDUCE_TEST
#undef REDUCE_SAME
#undef REDUCE_ARG
#undef REDUCE_SUM
#undef REDUCE_FLOAT

/* Sums and products are accumulated in double or int64: there C and U mean those. */
#pragma push_macro("C")
#pragma push_macro("U")
#undef C
#undef U
#define U uint64_t
#if IS_FLOAT
#define C double
#define REDUCE_FLOAT(name, identity, step, finish) FINISH_PART(name, C, finish) /* else a sum */
#else
#define C int64_t
#define REDUCE_FLOAT(...)
#endif
#define REDUCE_SUM(name, identity, step, finish)                                                                       \
    DT_CAT(HAS, name)(COMBINE_PART(name, C, step) REDUCE_PARTS(name, C, identity, step, step, finish))
#define REDUCE_TEST(...)
#define REDUCE_SAME(...)
#define REDUCE_ARG(...)
#include "../core/reductions.def"
#undef DT_REDUCE
#undef REDUCE_TEST
#undef REDUCE_SAME
#undef REDUCE_ARG
#undef REDUCE_SUM
#undef REDUCE_FLOAT
#pragma pop_macro("C")
#pragma pop_macro("U")

static const cpu_reduction DT_CAT(reductions, ENUM)[DT_NREDUCE] = {
#define ENTRY(name, result)                                                                                            \
    [DT_REDUCE_##name] = {DT_CAT(init_##name, ENUM), DT_CAT(step_##name, ENUM), DT_CAT(combine_##name, ENUM),          \
                          DT_CAT(finish_##name, ENUM), result},
#if IS_FLOAT
#define ENTRY_SUM(name) DT_CAT(HAS, name)(ENTRY(name, DT_FLOAT64))
#define ENTRY_FLOAT(name)                                                                                              \
    [DT_REDUCE_##name] = {DT_CAT(init_sum, ENUM), DT_CAT(step_sum, ENUM), DT_CAT(combine_sum, ENUM),                   \
                          DT_CAT(finish_##name, ENUM), DT_FLOAT64},
#else
#define ENTRY_SUM(name) DT_CAT(HAS, name)(ENTRY(name, DT_INT64))
#define ENTRY_FLOAT(name)
#endif
#define ENTRY_SAME(name) ENTRY(name, DT_CAT(DT, ENUM))
#define ENTRY_ARG(name) ENTRY(name, DT_INT64)
#define ENTRY_TEST(name) HAS_TEST(ENTRY(name, DT_BOOL))
#define DT_REDUCE(name, kind, ...) ENTRY_##kind(name)
#include "../core/reductions.def"
#undef DT_REDUCE
};
#undef ENTRY
#undef ENTRY_SUM
#undef ENTRY_FLOAT
#undef ENTRY_SAME
#undef ENTRY_ARG
#undef ENTRY_TEST
#undef EITHER
#undef HALVE
#undef HALVES
#undef REDUCE_PARTS
#undef COMBINE_PART
#undef FINISH_PART
#undef ARG_PARTS
#undef HAS_sum
#undef HAS_prod
#undef HAS_TEST
#endif
