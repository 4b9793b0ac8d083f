/* softmax_set.h: the parts of softmax for float32 and float64, and rows of float32 from end to end (softmax.c). */
#define SUM_LANES 16

/* exps, scale and log are not inlined: as large as they are, once is enough for both rows and parts. */

#define SOFTMAX_PARTS(C, suffix, EXP)                                                                                  \
    static double softmax_largest_##suffix(const void *from, int64_t n, double start)                                  \
    {                                                                                                                  \
        const C *x = from;                                                                                             \
        C lanes[SUM_LANES], largest = (C)start;                                                                        \
        int64_t i = 0;                                                                                                 \
        for (int l = 0; l < SUM_LANES; l++) {                                                                          \
            lanes[l] = largest;                                                                                        \
        }                                                                                                              \
        for (; i + SUM_LANES <= n; i += SUM_LANES) {                                                                   \
            CPU_LANES                                                                                                  \
            for (int l = 0; l < SUM_LANES; l++) {                                                                      \
                lanes[l] = x[i + l] > lanes[l] ? x[i + l] : lanes[l];                                                  \
            }                                                                                                          \
        }                                                                                                              \
        for (; i < n; i++) {                                                                                           \
            largest = x[i] > largest ? x[i] : largest;                                                                 \
        }                                                                                                              \
        for (int l = 0; l < SUM_LANES; l++) {                                                                          \
            largest = lanes[l] > largest ? lanes[l] : largest;                                                         \
        }                                                                                                              \
        return (double)largest;                                                                                        \
    }                                                                                                                  \
    DT_NOINLINE static void softmax_exps_##suffix(const void *from, void *to, int64_t n, double largest)               \
    {                                                                                                                  \
        const C *x = from, shift = (C)largest;                                                                         \
        C *exps = to;                                                                                                  \
        CPU_INDEPENDENT                                                                                                \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            exps[i] = EXP(x[i] - shift);                                                                               \
        }                                                                                                              \
    }                                                                                                                  \
    static double softmax_exp_##suffix(const void *from, void *to, int64_t n, double largest)                          \
    {                                                                                                                  \
        const C *exps = to;                                                                                            \
        double lanes[SUM_LANES] = {0}, sum = 0;                                                                        \
        softmax_exps_##suffix(from, to, n, largest);                                                                   \
        int64_t i = 0;                                                                                                 \
        for (; i + SUM_LANES <= n; i += SUM_LANES) {                                                                   \
            CPU_LANES                                                                                                  \
            for (int l = 0; l < SUM_LANES; l++) {                                                                      \
                lanes[l] += (double)exps[i + l];                                                                       \
            }                                                                                                          \
        }                                                                                                              \
        for (; i < n; i++) {                                                                                           \
            sum += (double)exps[i];                                                                                    \
        }                                                                                                              \
        for (int l = 0; l < SUM_LANES; l++) {                                                                          \
            sum += lanes[l];                                                                                           \
        }                                                                                                              \
        return sum;                                                                                                    \
    }                                                                                                                  \
    DT_NOINLINE static void softmax_scale_##suffix(const void *from, void *to, int64_t n, double sum)                  \
    {                                                                                                                  \
        const C *exps = from, divisor = (C)sum;                                                                        \
        C *out = to;                                                                                                   \
        CPU_INDEPENDENT                                                                                                \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            out[i] = exps[i] / divisor;                                                                                \
        }                                                                                                              \
    }                                                                                                                  \
    DT_NOINLINE static void softmax_log_##suffix(const void *from, void *to, int64_t n, double largest,                \
                                                 double log_sum)                                                       \
    {                                                                                                                  \
        const C *x = from, a = (C)largest, b = (C)log_sum;                                                             \
        C *out = to;                                                                                                   \
        CPU_INDEPENDENT                                                                                                \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            out[i] = x[i] - a - b;                                                                                     \
        }                                                                                                              \
    }                                                                                                                  \
    static void softmax_line_largest_##suffix(const void *line, void *all, int64_t width)                              \
    {                                                                                                                  \
        const C *x = line;                                                                                             \
        C *largest = all;                                                                                              \
        CPU_INDEPENDENT                                                                                                \
        for (int64_t j = 0; j < width; j++) {                                                                          \
            largest[j] = x[j] > largest[j] ? x[j] : largest[j];                                                        \
        }                                                                                                              \
    }                                                                                                                  \
    static void softmax_line_exp_##suffix(const void *line, const void *all, void *to, double *sums, int64_t width)    \
    {                                                                                                                  \
        const C *x = line, *largest = all;                                                                             \
        C *exps = to;                                                                                                  \
        CPU_INDEPENDENT                                                                                                \
        for (int64_t j = 0; j < width; j++) {                                                                          \
            exps[j] = EXP(x[j] - largest[j]);                                                                          \
        }                                                                                                              \
        CPU_INDEPENDENT                                                                                                \
        for (int64_t j = 0; j < width; j++) {                                                                          \
            sums[j] += (double)exps[j];                                                                                \
        }                                                                                                              \
    }                                                                                                                  \
    static void softmax_line_scale_##suffix(const void *line, void *to, const double *sums, int64_t width)             \
    {                                                                                                                  \
        const C *exps = line;                                                                                          \
        C *out = to;                                                                                                   \
        CPU_INDEPENDENT                                                                                                \
        for (int64_t j = 0; j < width; j++) {                                                                          \
            out[j] = exps[j] / (C)sums[j];                                                                             \
        }                                                                                                              \
    }                                                                                                                  \
    static void softmax_line_log_##suffix(const void *line, const void *all, void *to, const double *logs,             \
                                          int64_t width)                                                               \
    {                                                                                                                  \
        const C *x = line, *largest = all;                                                                             \
        C *out = to;                                                                                                   \
        CPU_INDEPENDENT                                                                                                \
        for (int64_t j = 0; j < width; j++) {                                                                          \
            out[j] = x[j] - largest[j] - (C)logs[j];                                                                   \
        }                                                                                                              \
    }
SOFTMAX_PARTS(float, f32, cpu_expf)
SOFTMAX_PARTS(double, f64, cpu_exp)
#undef SOFTMAX_PARTS

#define ROOM 1024
#define ROWS_TOGETHER 32

#if HAS_F16C

/* x less its largest element, where a NaN makes no difference as all else becomes NaN by it; what is left after whole
 * vectors is filled up with -inf, whose exponential is 0. */
static inline void
softmax_shift_row(const float *x, float *to, int64_t n)
{
    const int64_t whole = n / 8 * 8;
    const __m256 there = _mm256_castsi256_ps(first_lanes(n - whole));
    __m256 rest = _mm256_set1_ps(-INFINITY);
    if (n > whole) {
        rest = _mm256_blendv_ps(rest, load_some(x + whole, n - whole), there);
    }
    __m256 best = rest;
    for (int64_t i = 0; i < whole; i += 8) {
        best = _mm256_max_ps(best, _mm256_loadu_ps(x + i));
    }
    __m128 four = _mm_max_ps(_mm256_castps256_ps128(best), _mm256_extractf128_ps(best, 1));
    four = _mm_max_ps(four, _mm_movehl_ps(four, four));
    const __m256 largest = _mm256_broadcastss_ps(_mm_max_ss(four, _mm_movehdup_ps(four)));
    for (int64_t i = 0; i < whole; i += 8) {
        _mm256_storeu_ps(to + i, _mm256_sub_ps(_mm256_loadu_ps(x + i), largest));
    }
    if (n > whole) {
        _mm256_storeu_ps(to + whole, _mm256_sub_ps(rest, largest));
    }
}

/* The last vector of a row may be stored twice; shorter rows are less than one. */
#define SOFTMAX_FINISH_ROW(name, OP)                                                                                   \
    static inline void softmax_##name##_row(const float *x, float *out, int64_t n, float by)                           \
    {                                                                                                                  \
        const __m256 value = _mm256_set1_ps(by);                                                                       \
        if (n < 8) {                                                                                                   \
            _mm256_maskstore_ps(out, first_lanes(n), OP(_mm256_loadu_ps(x), value));                                   \
            return;                                                                                                    \
        }                                                                                                              \
        for (int64_t i = 0; i + 8 <= n; i += 8) {                                                                      \
            _mm256_storeu_ps(out + i, OP(_mm256_loadu_ps(x + i), value));                                              \
        }                                                                                                              \
        if (n % 8 > 0) {                                                                                               \
            _mm256_storeu_ps(out + n - 8, OP(_mm256_loadu_ps(x + n - 8), value));                                      \
        }                                                                                                              \
    }
SOFTMAX_FINISH_ROW(divide, _mm256_div_ps)
SOFTMAX_FINISH_ROW(subtract, _mm256_sub_ps)
#undef SOFTMAX_FINISH_ROW

#else

static void
softmax_shift_row(const float *x, float *to, int64_t n)
{
    const float largest = (float)softmax_largest_f32(x, n, -INFINITY);
    int64_t i = 0;
    for (; i < n; i++) {
        to[i] = x[i] - largest;
    }
    for (; i % 8 > 0; i++) {
        to[i] = -INFINITY;
    }
}

static void
softmax_divide_row(const float *x, float *out, int64_t n, float by)
{
    softmax_scale_f32(x, out, n, (double)by);
}

static void
softmax_subtract_row(const float *x, float *out, int64_t n, float by)
{
    softmax_log_f32(x, out, n, 0, (double)by);
}
#endif

/* Rows longer than the room, through what they leave in out. */
static void
softmax_long_row(const float *x, float *out, int64_t n, bool take_log)
{
    float room[ROOM];
    const double largest = softmax_largest_f32(x, n, -INFINITY);
    double sum = 0;
    for (int64_t i = 0; i < n; i += ROOM) {
        sum += softmax_exp_f32(x + i, take_log ? room : out + i, CPU_MIN(ROOM, n - i), largest);
    }
    if (take_log) {
        softmax_log_f32(x, out, n, largest, log(sum));
    } else {
        softmax_scale_f32(out, out, n, sum);
    }
}

/* Several rows a step, as the next row need not wait until the one before has its largest element and its sum. */
static void
softmax_rows_f32(const void *from, void *to, int64_t rows, int64_t n, int64_t from_apart, int64_t to_apart,
                 bool take_log)
{
    const int64_t filled = (n + 7) / 8 * 8, together = CPU_MIN(ROWS_TOGETHER, ROOM / filled);
    _Alignas(32) float shifted[ROOM], exps[ROOM];
    double sums[ROWS_TOGETHER];
    if (n > ROOM) {
        for (int64_t j = 0; j < rows; j++) {
            softmax_long_row((const float *)from + j * from_apart, (float *)to + j * to_apart, n, take_log);
        }
        return;
    }
    for (int64_t i = 0; i < rows; i += together) {
        const int64_t some = CPU_MIN(together, rows - i);
        const float *x = (const float *)from + i * from_apart;
        float *out = (float *)to + i * to_apart;
        for (int64_t j = 0; j < some; j++) {
            softmax_shift_row(x + j * from_apart, shifted + j * filled, n);
        }
        softmax_exps_f32(shifted, exps, some * filled, 0);
        for (int64_t j = 0; j < some; j++) {
            sums[j] = row_sum_float32(exps + j * filled, filled);
        }
        if (take_log) {
            CPU_INDEPENDENT
            for (int64_t j = 0; j < some; j++) { /* of 1 and more, or NaN */
                sums[j] = sums[j] >= 1 ? cpu_log2_normal(sums[j]) * CPU_LN2 : (double)NAN;
            }
        }
        for (int64_t j = 0; j < some; j++) {
            if (take_log) {
                softmax_subtract_row(shifted + j * filled, out + j * to_apart, n, (float)sums[j]);
            } else {
                softmax_divide_row(exps + j * filled, out + j * to_apart, n, (float)sums[j]);
            }
        }
    }
}
#undef ROWS_TOGETHER
#undef ROOM

#define SOFTMAX_TABLE(suffix, ROWS)                                                                                    \
    static const cpu_softmax_parts softmax_##suffix = {softmax_largest_##suffix,                                       \
                                                       softmax_exp_##suffix,                                           \
                                                       softmax_scale_##suffix,                                         \
                                                       softmax_log_##suffix,                                           \
                                                       ROWS,                                                           \
                                                       softmax_line_largest_##suffix,                                  \
                                                       softmax_line_exp_##suffix,                                      \
                                                       softmax_line_scale_##suffix,                                    \
                                                       softmax_line_log_##suffix};
SOFTMAX_TABLE(f32, softmax_rows_f32)
SOFTMAX_TABLE(f64, NULL)
#undef SOFTMAX_TABLE
