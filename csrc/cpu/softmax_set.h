/* softmax_set.h: the parts of softmax for float32 and float64 (softmax.c). */
#define SUM_LANES 16

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
    static double softmax_exp_##suffix(const void *from, void *to, int64_t n, double largest)                          \
    {                                                                                                                  \
        const C *x = from, shift = (C)largest;                                                                         \
        C *exps = to;                                                                                                  \
        double lanes[SUM_LANES] = {0}, sum = 0;                                                                        \
        CPU_INDEPENDENT                                                                                                \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            exps[i] = EXP(x[i] - shift);                                                                               \
        }                                                                                                              \
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
    static void softmax_scale_##suffix(const void *from, void *to, int64_t n, double sum)                              \
    {                                                                                                                  \
        const C *exps = from, divisor = (C)sum;                                                                        \
        C *out = to;                                                                                                   \
        CPU_INDEPENDENT                                                                                                \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            out[i] = exps[i] / divisor;                                                                                \
        }                                                                                                              \
    }                                                                                                                  \
    static void softmax_log_##suffix(const void *from, void *to, int64_t n, double largest, double log_sum)            \
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
    }                                                                                                                  \
    static const cpu_softmax_parts softmax_##suffix = {softmax_largest_##suffix,      softmax_exp_##suffix,            \
                                                       softmax_scale_##suffix,        softmax_log_##suffix,            \
                                                       softmax_line_largest_##suffix, softmax_line_exp_##suffix,       \
                                                       softmax_line_scale_##suffix,   softmax_line_log_##suffix};
SOFTMAX_PARTS(float, f32, cpu_expf)
SOFTMAX_PARTS(double, f64, exp)
#undef SOFTMAX_PARTS
