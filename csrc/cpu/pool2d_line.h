/* pool2d_line.h: the lines of a pool for one dtype. Included by each_dtype.h. */
#if IS_FLOAT
#define POOL_LINE(name, VALUE)                                                                                         \
    static void DT_CAT(pool_##name, ENUM)(void *acc, const void *x, int64_t stride, int64_t n)                         \
    {                                                                                                                  \
        C *all = acc;                                                                                                  \
        const T *in = x;                                                                                               \
        if (stride == 1) {                                                                                             \
            CPU_INDEPENDENT                                                                                            \
            for (int64_t i = 0; i < n; i++) {                                                                          \
                const C a = all[i], v = LOAD(in[i]);                                                                   \
                all[i] = VALUE;                                                                                        \
            }                                                                                                          \
        } else if (stride == 2) {                                                                                      \
            CPU_INDEPENDENT                                                                                            \
            for (int64_t i = 0; i < n; i++) {                                                                          \
                const C a = all[i], v = LOAD(in[2 * i]);                                                               \
                all[i] = VALUE;                                                                                        \
            }                                                                                                          \
        } else {                                                                                                       \
            for (int64_t i = 0; i < n; i++) {                                                                          \
                const C a = all[i], v = LOAD(in[i * stride]);                                                          \
                all[i] = VALUE;                                                                                        \
            }                                                                                                          \
        }                                                                                                              \
    }
POOL_LINE(largest, ((v > a) | (v != v)) ? v : a)
POOL_LINE(sum, a + v)
#undef POOL_LINE

#if !DT_CAT(IS_HALF, ENUM)
#define LARGER(v, a) ((((v) > (a)) | ((v) != (v))) ? (v) : (a))
static void
DT_CAT(pool_pairs, ENUM)(void *out, const void *upper, const void *lower, int64_t n)
{
    T *to = out;
    const T *x = upper, *y = lower;
    CPU_INDEPENDENT
    for (int64_t i = 0; i < n; i++) {
        const C first = LARGER(x[2 * i + 1], x[2 * i]), second = LARGER(y[2 * i], first);
        to[i] = LARGER(y[2 * i + 1], second);
    }
}
#undef LARGER
#endif
#endif
