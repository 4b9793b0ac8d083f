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

/* Four numbers to their lanes: as x * 1 + lane, the same bits as by an addition, since the units of the processor that
 * convert are those that add. */
static inline __m256d
add_four(__m256d lanes, __m128 x)
{
    return _mm256_fmadd_pd(_mm256_cvtps_pd(x), _mm256_set1_pd(1), lanes);
}

/* Up to 8 elements; the other lanes stay as they are. */
static inline void
add_eight(__m256d *lanes, const float *x, int64_t n)
{
    if (n < 8) {
        const __m256 some = load_some(x, n);
        lanes[0] = add_four(lanes[0], _mm256_castps256_ps128(some));
        lanes[1] = add_four(lanes[1], _mm256_extractf128_ps(some, 1));
    } else { /* converted on the way */
        lanes[0] = add_four(lanes[0], _mm_loadu_ps(x));
        lanes[1] = add_four(lanes[1], _mm_loadu_ps(x + 4));
    }
}

static inline void
add_some_lines(double *sums, const float *x, int64_t width, int64_t along, int lines)
{
    int64_t j = 0;
    for (; j + 4 <= width; j += 4) {
        __m256d sum = _mm256_loadu_pd(sums + j);
        CPU_LANES
        for (int l = 0; l < lines; l++) {
            sum = add_four(sum, _mm_loadu_ps(x + l * along + j));
        }
        _mm256_storeu_pd(sums + j, sum);
    }
    for (; j < width; j++) {
        for (int l = 0; l < lines; l++) {
            sums[j] += (double)x[l * along + j];
        }
    }
}

static void
add_lines(double *sums, const float *x, int64_t width, int64_t along, int64_t count)
{
    int64_t i = 0;
    for (; i + 4 <= count; i += 4) { /* four at once: less to load and store */
        add_some_lines(sums, x + i * along, width, along, 4);
    }
    for (; i < count; i++) {
        add_some_lines(sums, x + i * along, width, along, 1);
    }
}

static inline double
row_sum_float32(const float *x, int64_t n)
{
    __m256d lanes[LANES / 4] = {0};
    for (; n >= LANES; x += LANES, n -= LANES) {
        add_eight(lanes, x, 8);
        add_eight(lanes + 2, x + 8, 8);
        add_eight(lanes + 4, x + 16, 8);
        add_eight(lanes + 6, x + 24, 8);
    }
    if (n > 0) {
        add_eight(lanes, x, n);
    }
    if (n > 8) {
        add_eight(lanes + 2, x + 8, n - 8);
    }
    if (n > 16) {
        add_eight(lanes + 4, x + 16, n - 16);
    }
    if (n > 24) {
        add_eight(lanes + 6, x + 24, n - 24);
    }
    const __m256d a = _mm256_add_pd(_mm256_add_pd(lanes[0], lanes[4]), _mm256_add_pd(lanes[2], lanes[6]));
    const __m256d b = _mm256_add_pd(_mm256_add_pd(lanes[1], lanes[5]), _mm256_add_pd(lanes[3], lanes[7]));
    const __m256d four = _mm256_add_pd(a, b);
    const __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
    return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
}

/* The first of less than 8 numbers fills the lanes that have none. */
static inline __m256
load_filled(const float *x, int64_t n)
{
    return n >= 8 ? _mm256_loadu_ps(x)
                  : _mm256_blendv_ps(_mm256_broadcast_ss(x), load_some(x, n), _mm256_castsi256_ps(first_lanes(n)));
}

#define LONG_ROW 64 /* bits for find_first */

/* Where the first number is that equals one of n, at most LONG_ROW; the last vector of them may be looked at twice. */
static inline int64_t
find_first(const float *x, int64_t n, float value)
{
    const __m256 wanted = _mm256_set1_ps(value);
    const int64_t last = CPU_MAX(n - 8, 0);
    uint64_t hits = 0;
    for (int64_t i = 0; i < n; i += 8) {
        const int64_t at = CPU_MIN(i, last);
        const __m256 equal = _mm256_cmp_ps(load_filled(x + at, n - at), wanted, _CMP_EQ_OQ);
        hits |= (uint64_t)_mm256_movemask_ps(equal) << at;
    }
    return __builtin_ctzll(hits);
}

/* The first that equals value of the best of 32 lanes, given where the first lane stood when each was found. */
static inline int64_t
find_lane(const __m256 *best, const __m256i *from, float value)
{
    const __m256i lanes = _mm256_set_epi32(7, 6, 5, 4, 3, 2, 1, 0);
    __m256i first = _mm256_set1_epi32(INT32_MAX);
    CPU_LANES
    for (int k = 0; k < 4; k++) {
        const __m256i equal = _mm256_castps_si256(_mm256_cmp_ps(best[k], _mm256_set1_ps(value), _CMP_EQ_OQ));
        const __m256i at = _mm256_add_epi32(from[k], _mm256_add_epi32(lanes, _mm256_set1_epi32(8 * k)));
        first = _mm256_min_epi32(first, _mm256_blendv_epi8(_mm256_set1_epi32(INT32_MAX), at, equal));
    }
    __m128i four = _mm_min_epi32(_mm256_castsi256_si128(first), _mm256_extracti128_si256(first, 1));
    four = _mm_min_epi32(four, _mm_unpackhi_epi64(four, four));
    return _mm_cvtsi128_si32(_mm_min_epi32(four, _mm_shuffle_epi32(four, 1)));
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

/* a and b joined by an instruction that answers b where one is NaN; OP, or the comparison BEFORE, says that a replaces
 * b. Where the best of a long row stands comes along, as a second look would cost as much as the first; the 32 elements
 * looked at last may overlap those before. n is below 2^31. */
#define ROW_BEST(name, BEST, BEST_128, BEST_1, OP, BEFORE)                                                             \
    static inline float join_##name(const __m256 *best)                                                                \
    {                                                                                                                  \
        const __m256 eight = BEST(BEST(best[0], best[1]), BEST(best[2], best[3]));                                     \
        const __m128 four = BEST_128(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));                  \
        const __m128 two = BEST_128(four, _mm_movehl_ps(four, four));                                                  \
        return _mm_cvtss_f32(BEST_1(two, _mm_movehdup_ps(two)));                                                       \
    }                                                                                                                  \
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
        return _mm256_movemask_ps(_mm256_or_ps(nan[0], nan[1])) ? NAN : join_##name(best);                             \
    }                                                                                                                  \
    static float long_row_arg##name(const float *x, int64_t n, int64_t *place)                                         \
    {                                                                                                                  \
        __m256 best[4], nan = _mm256_setzero_ps();                                                                     \
        __m256i from[4];                                                                                               \
        CPU_LANES                                                                                                      \
        for (int k = 0; k < 4; k++) {                                                                                  \
            best[k] = _mm256_loadu_ps(x + 8 * k);                                                                      \
            from[k] = _mm256_setzero_si256();                                                                          \
        }                                                                                                              \
        for (int64_t i = 0; i < n; i += 32) {                                                                          \
            const int64_t at = CPU_MIN(i, n - 32);                                                                     \
            const __m256i here = _mm256_set1_epi32((int32_t)at);                                                       \
            CPU_LANES                                                                                                  \
            for (int k = 0; k < 4; k++) {                                                                              \
                const __m256 next = _mm256_loadu_ps(x + at + 8 * k);                                                   \
                const __m256 before = _mm256_cmp_ps(next, best[k], BEFORE);                                            \
                nan = _mm256_or_ps(nan, _mm256_cmp_ps(next, next, _CMP_UNORD_Q));                                      \
                from[k] = _mm256_blendv_epi8(from[k], here, _mm256_castps_si256(before));                              \
                best[k] = BEST(next, best[k]);                                                                         \
            }                                                                                                          \
        }                                                                                                              \
        const float value = _mm256_movemask_ps(nan) ? NAN : join_##name(best);                                         \
        *place = isnan(value) ? find_nan(x) : find_lane(best, from, value);                                            \
        return value;                                                                                                  \
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
            const float *x = (const float *)data + j * apart;                                                          \
            int64_t place = 0;                                                                                         \
            const float best = n > LONG_ROW ? long_row_arg##name(x, n, &place) : row_##name(x, n);                     \
            if (first || best OP all[j] || (isnan(best) && !isnan(all[j]))) {                                          \
                all[j] = best;                                                                                         \
                at[j] = position + (n > LONG_ROW ? place : isnan(best) ? find_nan(x) : find_first(x, n, best));        \
            }                                                                                                          \
        }                                                                                                              \
    }

ROW_BEST(max, _mm256_max_ps, _mm_max_ps, _mm_max_ss, >, _CMP_GT_OQ)
ROW_BEST(min, _mm256_min_ps, _mm_min_ps, _mm_min_ss, <, _CMP_LT_OQ)
#undef ROW_BEST
#undef LONG_ROW

#else

static double
row_sum_float32(const float *x, int64_t n)
{
    double lanes[LANES] = {0};
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        CPU_LANES
        for (int l = 0; l < LANES; l++) {
            lanes[l] += (double)x[i + l];
        }
    }
    for (int64_t l = 0; i < n; i++, l++) {
        lanes[l] += (double)x[i];
    }
    for (int half = LANES / 2; half > 0; half /= 2) {
        for (int l = 0; l < half; l++) {
            lanes[l] += lanes[l + half];
        }
    }
    return lanes[0];
}
#endif

static void
rows_sum_float32(void *accs, int64_t *at, int64_t width, int64_t apart, const char *data, int64_t n, int64_t position,
                 bool first)
{
    double *all = accs;
    (void)at;
    (void)position;
    for (int64_t j = 0; j < width; j++) {
        const double sum = row_sum_float32((const float *)data + j * apart, n);
        all[j] = first ? sum : all[j] + sum;
    }
}

/* Whether any is set: the largest bits; whether all are: the smallest. */
#define ROWS_TEST(name, start, joined)                                                                                 \
    static void rows_##name(void *accs, int64_t *at, int64_t width, int64_t apart, const char *data, int64_t n,        \
                            int64_t position, bool first)                                                              \
    {                                                                                                                  \
        uint8_t *all = accs;                                                                                           \
        (void)at;                                                                                                      \
        (void)position;                                                                                                \
        for (int64_t j = 0; j < width; j++) {                                                                          \
            const uint8_t *row = (const uint8_t *)data + j * apart;                                                    \
            uint8_t acc = first || all[j] == start ? start : !start;                                                   \
            for (int64_t i = 0; i < n; i++) {                                                                          \
                const uint8_t x = row[i];                                                                              \
                acc = joined;                                                                                          \
            }                                                                                                          \
            all[j] = acc != 0;                                                                                         \
        }                                                                                                              \
    }
ROWS_TEST(any, 0, acc | x)
ROWS_TEST(all, 1, x < acc ? x : acc)
#undef ROWS_TEST
static const cpu_reduced_rows rows_bool[DT_NREDUCE] = {[DT_REDUCE_any] = rows_any, [DT_REDUCE_all] = rows_all};

#define SUMS(name) [DT_REDUCE_sum] = rows_sum_##name, [DT_REDUCE_mean] = rows_sum_##name

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

/* Eight of a half type; what is left of fewer is 0. */
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

#define WIDE_float16(x) _mm256_cvtph_ps(x)
#define WIDE_bfloat16(x) _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(x), 16))

/* By way of float32, rows that touch as one: numbers in memory are cast to double faster than those that casts of T
 * have just left in a register. Not by the rows of casts, which look for NaN and take a tenth more of the sum. The last
 * eight may be cast twice. */
#define ROWS_SUM_HALF(T, name)                                                                                         \
    static inline void widen_##name(float *to, const T *x, int64_t n)                                                  \
    {                                                                                                                  \
        const int64_t last = CPU_MAX(n - 8, 0);                                                                        \
        int64_t i = 0;                                                                                                 \
        for (; i + 16 <= n; i += 16) {                                                                                 \
            _mm256_storeu_ps(to + i, WIDE_##name(load_halves(x + i, 8)));                                              \
            _mm256_storeu_ps(to + i + 8, WIDE_##name(load_halves(x + i + 8, 8)));                                      \
        }                                                                                                              \
        for (; i < n; i += 8) {                                                                                        \
            const int64_t at = CPU_MIN(i, last);                                                                       \
            _mm256_storeu_ps(to + at, WIDE_##name(load_halves(x + at, n)));                                            \
        }                                                                                                              \
    }                                                                                                                  \
    static void rows_sum_##name(void *accs, int64_t *at, int64_t width, int64_t apart, const char *data, int64_t n,    \
                                int64_t position, bool first)                                                          \
    {                                                                                                                  \
        float room[CPU_CAST_AHEAD];                                                                                    \
        const int64_t together = apart == n ? CPU_MAX(CPU_CAST_AHEAD / n, 1) : 1;                                      \
        for (int64_t j = 0; j < width; j += together) {                                                                \
            const int64_t some = CPU_MIN(width - j, together);                                                         \
            for (int64_t i = 0; i < n; i += CPU_CAST_AHEAD) {                                                          \
                const int64_t m = CPU_MIN(n - i, CPU_CAST_AHEAD);                                                      \
                widen_##name(room, (const T *)data + j * apart + i, some * m);                                         \
                rows_sum_float32((double *)accs + j, at, some, m, (const char *)room, m, position, first && i == 0);   \
            }                                                                                                          \
        }                                                                                                              \
    }
ROWS_SUM_HALF(dt_float16, float16)
ROWS_SUM_HALF(dt_bfloat16, bfloat16)
#undef ROWS_SUM_HALF
#undef WIDE_float16
#undef WIDE_bfloat16
static const cpu_reduced_rows rows_float16[DT_NREDUCE] = {SUMS(float16)};
static const cpu_reduced_rows rows_bfloat16[DT_NREDUCE] = {SUMS(bfloat16)};
#endif

static const cpu_reduced_rows *const reduced_rows[DT_NDTYPES] = {
    [DT_BOOL] = rows_bool,
    [DT_FLOAT32] = rows_float32,
#if HAS_F16C
    [DT_FLOAT16] = rows_float16,
    [DT_BFLOAT16] = rows_bfloat16,
#endif
};
#undef SUMS
