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
SOFTMAX_PARTS(double, f64, exp)
#undef SOFTMAX_PARTS

#if !HAS_F16C
#define row_max(x, n) ((float)softmax_largest_f32(x, n, -INFINITY))
#endif
#define EXP_BLOCK 1024
#define ROWS_TOGETHER 16

/* The last eight elements of a row; before those of a shorter one stands -inf. */
static inline void
softmax_load_last(const float *x, int64_t n, float *last)
{
    if (n >= 8) {
        memcpy(last, x + n - 8, 8 * sizeof(*last));
        return;
    }
    for (int64_t l = 0; l < 8; l++) {
        last[l] = l < 8 - n ? -INFINITY : x[n - 8 + l];
    }
}

static inline void
softmax_store_last(float *out, int64_t n, const float *last)
{
    if (n >= 8) {
        memcpy(out + n - 8, last, 8 * sizeof(*last));
        return;
    }
    for (int64_t l = 0; l < n; l++) {
        out[l] = last[8 - n + l];
    }
}

/* The sum of exp(x - largest); out is left with the exponentials, or as it was if they are not kept. What is left after
 * whole vectors is in the last eight elements, which are read before anything is written, as out may be x. */
static inline double
softmax_row_exp(const float *x, float *out, int64_t n, float largest, bool keep)
{
    const int64_t left = n % 8, whole = n - left;
    float last[8], left_exps[8], exps[EXP_BLOCK];
    double sum = 0;
    if (left > 0) {
        softmax_load_last(x, n, last);
        softmax_exps_f32(last, last, 8, (double)largest);
        for (int l = 0; l < 8; l++) {
            left_exps[l] = l < 8 - (int)left ? 0 : last[l];
        }
        sum = row_sum_float32(left_exps, 8);
    }
    for (int64_t i = 0; i < whole; i += EXP_BLOCK) {
        const int64_t m = CPU_MIN(EXP_BLOCK, whole - i);
        float *to = keep ? out + i : exps;
        softmax_exps_f32(x + i, to, m, (double)largest);
        sum += row_sum_float32(to, m);
    }
    if (left > 0 && keep) {
        softmax_store_last(out, n, last);
    }
    return sum;
}

/* Several rows a step, as the next row need not wait until the one before has its largest element and its sum. */
static void
softmax_rows_f32(const void *from, void *to, int64_t rows, int64_t n, int64_t from_apart, int64_t to_apart,
                 bool take_log)
{
    const int64_t together = CPU_MAX(CPU_MIN(ROWS_TOGETHER, EXP_BLOCK / n), 1), left = n % 8, whole = n - left;
    float largest[ROWS_TOGETHER], last[8] = {0};
    double sums[ROWS_TOGETHER];
    for (int64_t i = 0; i < rows; i += together) {
        const int64_t some = CPU_MIN(together, rows - i);
        const float *x = (const float *)from + i * from_apart;
        float *out = (float *)to + i * to_apart;
        for (int64_t j = 0; j < some; j++) {
            largest[j] = row_max(x + j * from_apart, n);
        }
        for (int64_t j = 0; j < some; j++) {
            sums[j] = softmax_row_exp(x + j * from_apart, out + j * to_apart, n, largest[j], !take_log);
        }
        for (int64_t j = 0; j < some; j++) {
            float *result = out + j * to_apart;
            const float *source = take_log ? x + j * from_apart : result;
            const double log_sum = take_log ? log(sums[j]) : 0;
            if (left > 0) {
                softmax_load_last(source, n, last);
            }
            if (take_log) {
                softmax_log_f32(source, result, whole, (double)largest[j], log_sum);
                softmax_log_f32(last, last, left > 0 ? 8 : 0, (double)largest[j], log_sum);
            } else {
                softmax_scale_f32(source, result, whole, sums[j]);
                softmax_scale_f32(last, last, left > 0 ? 8 : 0, sums[j]);
            }
            if (left > 0) {
                softmax_store_last(result, n, last);
            }
        }
    }
}
#undef ROWS_TOGETHER
#undef EXP_BLOCK
#undef row_max

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
