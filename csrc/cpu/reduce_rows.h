/* reduce_rows.h: reductions of rows whose elements lie side by side, in vectors to the last element, since short rows
 * would spend their time at their ends (reduce_each.h). Sums are added in LANES lanes of double, joined like a tree, by
 * whatever set; of float16 only where instructions convert it. */

#if HAS_F16C

/* -1 for the first n of 8 lanes */
static inline __m256i
first_lanes(int64_t n)
{
    static const int32_t ones[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
    return _mm256_loadu_si256((const __m256i *)(const void *)(ones + 8 - CPU_MIN(n, 8)));
}

static inline __m256
load_some(const float *x, int64_t n)
{
    return _mm256_maskload_ps(x, first_lanes(n));
}

static inline __m128i
load_halves(const void *x, int64_t n)
{
    uint16_t rest[8] = {0};
    if (n < 8) {
        memcpy(rest, x, (size_t)n * sizeof(*rest));
        x = rest;
    }
    return _mm_loadu_si128(x);
}

static inline void
split(__m256 eight, __m256d *low, __m256d *high)
{
    *low = _mm256_cvtps_pd(_mm256_castps256_ps128(eight));
    *high = _mm256_cvtps_pd(_mm256_extractf128_ps(eight, 1));
}

/* Up to 8 elements, the other lanes are 0. */
static inline void
load_float32(const float *x, int64_t n, __m256d *low, __m256d *high)
{
    if (n < 8) {
        split(load_some(x, n), low, high);
    } else { /* converted on the way */
        *low = _mm256_cvtps_pd(_mm_loadu_ps(x));
        *high = _mm256_cvtps_pd(_mm_loadu_ps(x + 4));
    }
}

static inline void
load_float16(const dt_float16 *x, int64_t n, __m256d *low, __m256d *high)
{
    split(_mm256_cvtph_ps(load_halves(x, n)), low, high);
}

static inline void
load_bfloat16(const dt_bfloat16 *x, int64_t n, __m256d *low, __m256d *high)
{
    split(_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(load_halves(x, n)), 16)), low, high);
}

/* As x * 1 + lane, the same bits as by an addition, floats leave the units of the processor alone that convert. */
#define ADD_float32(lane, x) _mm256_fmadd_pd(x, _mm256_set1_pd(1), lane)
#define ADD_float16(lane, x) _mm256_add_pd(lane, x)
#define ADD_bfloat16 ADD_float16

#define ADD_EIGHT(name, k, n)                                                                                          \
    do {                                                                                                               \
        __m256d low, high;                                                                                             \
        load_##name(x + 8 * (k), n, &low, &high);                                                                      \
        lanes[2 * (k)] = ADD_##name(lanes[2 * (k)], low);                                                              \
        lanes[2 * (k) + 1] = ADD_##name(lanes[2 * (k) + 1], high);                                                     \
    } while (0)

#define ROW_SUM(T, name)                                                                                               \
    static inline double row_sum_##name(const T *x, int64_t n)                                                         \
    {                                                                                                                  \
        __m256d lanes[LANES / 4] = {0};                                                                                \
        for (; n >= LANES; x += LANES, n -= LANES) {                                                                   \
            ADD_EIGHT(name, 0, 8);                                                                                     \
            ADD_EIGHT(name, 1, 8);                                                                                     \
            ADD_EIGHT(name, 2, 8);                                                                                     \
            ADD_EIGHT(name, 3, 8);                                                                                     \
        }                                                                                                              \
        if (n > 0) {                                                                                                   \
            ADD_EIGHT(name, 0, n);                                                                                     \
        }                                                                                                              \
        if (n > 8) {                                                                                                   \
            ADD_EIGHT(name, 1, n - 8);                                                                                 \
        }                                                                                                              \
        if (n > 16) {                                                                                                  \
            ADD_EIGHT(name, 2, n - 16);                                                                                \
        }                                                                                                              \
        if (n > 24) {                                                                                                  \
            ADD_EIGHT(name, 3, n - 24);                                                                                \
        }                                                                                                              \
        const __m256d a = _mm256_add_pd(_mm256_add_pd(lanes[0], lanes[4]), _mm256_add_pd(lanes[2], lanes[6]));         \
        const __m256d b = _mm256_add_pd(_mm256_add_pd(lanes[1], lanes[5]), _mm256_add_pd(lanes[3], lanes[7]));         \
        const __m256d four = _mm256_add_pd(a, b);                                                                      \
        const __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));                  \
        return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));                                              \
    }

/* The first of less than 8 numbers fills the lanes that have none. */
static inline __m256
load_filled(const float *x, int64_t n)
{
    return n >= 8 ? _mm256_loadu_ps(x)
                  : _mm256_blendv_ps(_mm256_broadcast_ss(x), load_some(x, n), _mm256_castsi256_ps(first_lanes(n)));
}

/* Where the first number is that equals one of n; the last vector of them may be looked at twice. */
static inline int64_t
find_first(const float *x, int64_t n, float value)
{
    const __m256 wanted = _mm256_set1_ps(value);
    int64_t begin = 0;
    for (; n - begin > 64; begin += 64) {
        __m256 hit = _mm256_setzero_ps();
        for (int k = 0; k < 64; k += 8) {
            hit = _mm256_or_ps(hit, _mm256_cmp_ps(_mm256_loadu_ps(x + begin + k), wanted, _CMP_EQ_OQ));
        }
        if (_mm256_movemask_ps(hit)) {
            break;
        }
    }
    const int64_t end = CPU_MIN(begin + 64, n), last = CPU_MAX(n - 8, 0);
    uint64_t hits = 0;
    begin = CPU_MIN(begin, last);
    for (int64_t i = begin; i < end; i += 8) {
        const int64_t at = CPU_MIN(i, last);
        const __m256 equal = _mm256_cmp_ps(load_filled(x + at, n - at), wanted, _CMP_EQ_OQ);
        hits |= (uint64_t)_mm256_movemask_ps(equal) << (at - begin);
    }
    return begin + __builtin_ctzll(hits);
}

static int64_t
find_nan(const float *x)
{
    int64_t i = 0;
    while (!isnan(x[i])) {
        i++;
    }
    return i;
}

/* a and b joined by an instruction that answers b where one is NaN; OP says that a replaces b. */
#define ROW_BEST(name, BEST, BEST_128, BEST_1, OP)                                                                     \
    static inline float row_##name(const float *x, int64_t n)                                                          \
    {                                                                                                                  \
        __m256 best[4], nan[2] = {0};                                                                                  \
        int64_t i = 0, last = CPU_MAX(n - 8, 0);                                                                       \
        best[0] = load_filled(x, n);                                                                                   \
        best[1] = best[2] = best[3] = best[0];                                                                         \
        for (; i + 32 <= n; i += 32) {                                                                                 \
            const __m256 x0 = _mm256_loadu_ps(x + i), x1 = _mm256_loadu_ps(x + i + 8);                                 \
            const __m256 x2 = _mm256_loadu_ps(x + i + 16), x3 = _mm256_loadu_ps(x + i + 24);                           \
            nan[0] = _mm256_or_ps(nan[0], _mm256_cmp_ps(x0, x1, _CMP_UNORD_Q));                                        \
            nan[1] = _mm256_or_ps(nan[1], _mm256_cmp_ps(x2, x3, _CMP_UNORD_Q));                                        \
            best[0] = BEST(x0, best[0]);                                                                               \
            best[1] = BEST(x1, best[1]);                                                                               \
            best[2] = BEST(x2, best[2]);                                                                               \
            best[3] = BEST(x3, best[3]);                                                                               \
        }                                                                                                              \
        for (; i < n; i += 8) {                                                                                        \
            const int64_t at = CPU_MIN(i, last);                                                                       \
            const __m256 x0 = load_filled(x + at, n - at);                                                             \
            nan[0] = _mm256_or_ps(nan[0], _mm256_cmp_ps(x0, x0, _CMP_UNORD_Q));                                        \
            best[0] = BEST(x0, best[0]);                                                                               \
        }                                                                                                              \
        if (_mm256_movemask_ps(_mm256_or_ps(nan[0], nan[1]))) {                                                        \
            return NAN;                                                                                                \
        }                                                                                                              \
        const __m256 eight = BEST(BEST(best[0], best[1]), BEST(best[2], best[3]));                                     \
        const __m128 four = BEST_128(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));                  \
        const __m128 two = BEST_128(four, _mm_movehl_ps(four, four));                                                  \
        return _mm_cvtss_f32(BEST_1(two, _mm_movehdup_ps(two)));                                                       \
    }                                                                                                                  \
    static void rows_a##name(void *accs, int64_t *at, int64_t width, int64_t apart, const char *data, int64_t n,       \
                             int64_t position, bool first)                                                             \
    {                                                                                                                  \
        float *all = accs;                                                                                             \
        (void)at;                                                                                                      \
        (void)position;                                                                                                \
        for (int64_t j = 0; j < width; j++) {                                                                          \
            const float best = row_##name((const float *)data + j * apart, n);                                         \
            if (first || best OP all[j] || isnan(best)) {                                                              \
                all[j] = best;                                                                                         \
            }                                                                                                          \
        }                                                                                                              \
    }                                                                                                                  \
    static void rows_arg##name(void *accs, int64_t *at, int64_t width, int64_t apart, const char *data, int64_t n,     \
                               int64_t position, bool first)                                                           \
    {                                                                                                                  \
        float *all = accs;                                                                                             \
        for (int64_t j = 0; j < width; j++) {                                                                          \
            const float *x = (const float *)data + j * apart, best = row_##name(x, n);                                 \
            if (first || best OP all[j] || (isnan(best) && !isnan(all[j]))) {                                          \
                all[j] = best;                                                                                         \
                at[j] = position + (isnan(best) ? find_nan(x) : find_first(x, n, best));                               \
            }                                                                                                          \
        }                                                                                                              \
    }

ROW_BEST(max, _mm256_max_ps, _mm_max_ps, _mm_max_ss, >)
ROW_BEST(min, _mm256_min_ps, _mm_min_ps, _mm_min_ss, <)
#undef ROW_BEST

#else

#define ROW_SUM(T, name)                                                                                               \
    static double row_sum_##name(const T *x, int64_t n)                                                                \
    {                                                                                                                  \
        double lanes[LANES] = {0};                                                                                     \
        int64_t i = 0;                                                                                                 \
        for (; i + LANES <= n; i += LANES) {                                                                           \
            CPU_LANES                                                                                                  \
            for (int l = 0; l < LANES; l++) {                                                                          \
                lanes[l] += (double)x[i + l];                                                                          \
            }                                                                                                          \
        }                                                                                                              \
        for (int64_t l = 0; i < n; i++, l++) {                                                                         \
            lanes[l] += (double)x[i];                                                                                  \
        }                                                                                                              \
        for (int half = LANES / 2; half > 0; half /= 2) {                                                              \
            for (int l = 0; l < half; l++) {                                                                           \
                lanes[l] += lanes[l + half];                                                                           \
            }                                                                                                          \
        }                                                                                                              \
        return lanes[0];                                                                                               \
    }
#endif

#define ROWS_SUM(T, name)                                                                                              \
    ROW_SUM(T, name)                                                                                                   \
    static void rows_sum_##name(void *accs, int64_t *at, int64_t width, int64_t apart, const char *data, int64_t n,    \
                                int64_t position, bool first)                                                          \
    {                                                                                                                  \
        double *all = accs;                                                                                            \
        (void)at;                                                                                                      \
        (void)position;                                                                                                \
        for (int64_t j = 0; j < width; j++) {                                                                          \
            const double sum = row_sum_##name((const T *)data + j * apart, n);                                         \
            all[j] = first ? sum : all[j] + sum;                                                                       \
        }                                                                                                              \
    }
#define SUMS(name) [DT_REDUCE_sum] = rows_sum_##name, [DT_REDUCE_mean] = rows_sum_##name

ROWS_SUM(float, float32)
static const cpu_reduced_rows rows_float32[DT_NREDUCE] = {
    SUMS(float32),
#if HAS_F16C
    [DT_REDUCE_amax] = rows_amax,
    [DT_REDUCE_amin] = rows_amin,
    [DT_REDUCE_argmax] = rows_argmax,
    [DT_REDUCE_argmin] = rows_argmin,
#endif
};

#if HAS_F16C
ROWS_SUM(dt_float16, float16)
ROWS_SUM(dt_bfloat16, bfloat16)
static const cpu_reduced_rows rows_float16[DT_NREDUCE] = {SUMS(float16)};
static const cpu_reduced_rows rows_bfloat16[DT_NREDUCE] = {SUMS(bfloat16)};
#undef ADD_EIGHT
#undef ADD_float32
#undef ADD_float16
#undef ADD_bfloat16
#endif

static const cpu_reduced_rows *const reduced_rows[DT_NDTYPES] = {
    [DT_FLOAT32] = rows_float32,
#if HAS_F16C
    [DT_FLOAT16] = rows_float16,
    [DT_BFLOAT16] = rows_bfloat16,
#endif
};
#undef SUMS
#undef ROWS_SUM
#undef ROW_SUM
