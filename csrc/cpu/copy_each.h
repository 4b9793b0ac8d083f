/* copy_each.h: the casts from one dtype to every other. Included by each_dtype.h. */
static const cpu_row DT_CAT(casts, NAME)[DT_NDTYPES];

#define CONVERT_EACH(TO, to)                                                                                           \
    CPU_INDEPENDENT                                                                                                    \
    for (int64_t i = 0; i < n; i++) {                                                                                  \
        out[i] = DT_CAT(DT_CAT(dt_cast, NAME), to)(in[i]);                                                             \
    }
#define CONVERT_VECTORS(TO, to)                                                                                        \
    const int64_t done = DT_CAT(DT_CAT(vectors, NAME), to)(in, out, n);                                                \
    in += done;                                                                                                        \
    out += done;                                                                                                       \
    n -= done;                                                                                                         \
    CONVERT_EACH(TO, to)
#define CONVERT_BLOCKS(TO, to)                                                                                         \
    cast_by_f32((const char *)in, (char *)out, n, ROW_KIND(DT_CAT(ODD, NAME), DT_CAT(casts, NAME)[DT_FLOAT32]),        \
                DT_##TO, sizeof(*in), sizeof(*out));

#define DT_DTYPE(TO, to, R, bits, dlpack, category)                                                                    \
    static void DT_CAT(DT_CAT(cast, NAME), to)(char *const *data, const int64_t *strides, int64_t n, const void *ctx)  \
    {                                                                                                                  \
        R *out = (R *)data[0];                                                                                         \
        const T *in = (const T *)data[1];                                                                              \
        (void)ctx;                                                                                                     \
        if (n > 1 && (strides[0] != 1 || strides[1] != 1)) {                                                           \
            cast_apart(data, strides, n, DT_CAT(DT_CAT(cast, NAME), to), sizeof(R), sizeof(T));                        \
            return;                                                                                                    \
        }                                                                                                              \
        DT_CAT(CONVERT, ROW_KIND(DT_CAT(DT_CAT(HOW, NAME), to), EACH))(TO, to)                                         \
    }
#include "../core/dtypes.def"
#undef DT_DTYPE

#undef CONVERT_EACH
#undef CONVERT_VECTORS
#undef CONVERT_BLOCKS

static const cpu_row DT_CAT(casts, NAME)[DT_NDTYPES] = {
#define DT_DTYPE(TO, to, ...) [DT_##TO] = DT_CAT(DT_CAT(cast, NAME), to),
#include "../core/dtypes.def"
#undef DT_DTYPE
};
