/* copy_each.h: the casts from one dtype to every other. Included by each_dtype.h. */
#define DT_DTYPE(TO, to, R, bits, dlpack, category)                                                                    \
    static void DT_CAT(DT_CAT(cast, NAME), to)(char *const *data, const int64_t *strides, int64_t n, const void *ctx)  \
    {                                                                                                                  \
        R *out = (R *)data[0];                                                                                         \
        const T *in = (const T *)data[1];                                                                              \
        const int64_t so = strides[0], si = strides[1];                                                                \
        (void)ctx;                                                                                                     \
        if (so == 1 && si == 1) {                                                                                      \
            CPU_INDEPENDENT                                                                                            \
            for (int64_t i = 0; i < n; i++) {                                                                          \
                out[i] = DT_CAT(DT_CAT(dt_cast, NAME), to)(in[i]);                                                     \
            }                                                                                                          \
            return;                                                                                                    \
        }                                                                                                              \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            out[i * so] = DT_CAT(DT_CAT(dt_cast, NAME), to)(in[i * si]);                                               \
        }                                                                                                              \
    }
#include "../core/dtypes.def"
#undef DT_DTYPE

static const cpu_row DT_CAT(casts, NAME)[DT_NDTYPES] = {
#define DT_DTYPE(TO, to, ...) [DT_##TO] = DT_CAT(DT_CAT(cast, NAME), to),
#include "../core/dtypes.def"
#undef DT_DTYPE
};
