/* copy_set.h: casts by the rule of scalar.h, and moves of bits. */
#undef bool /* stdbool's macro would get into the pasted names */
#define DT_EACH "../cpu/copy_each.h"
#include "../core/each_dtype.h"
#undef DT_EACH
static const cpu_row *const casts[DT_NDTYPES] = {
#define DT_DTYPE(NAME, name, ...) [DT_##NAME] = casts_##name,
#include "../core/dtypes.def"
#undef DT_DTYPE
};
#define bool _Bool

#if HAS_F16C
static void
load_f16(char *const *data, const int64_t *strides, int64_t n, const void *ctx)
{
    float *out = (float *)data[0];
    const dt_float16 *in = (const dt_float16 *)data[1];
    int64_t i = 0;
    (void)ctx;
    for (; strides[0] == 1 && strides[1] == 1 && i + 8 <= n; i += 8) {
        __m256 v = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(in + i)));
        __m256 is_nan = _mm256_cmp_ps(v, v, _CMP_UNORD_Q);
        _mm256_storeu_ps(out + i, _mm256_blendv_ps(v, _mm256_set1_ps(NAN), is_nan));
    }
    for (; i < n; i++) {
        out[i * strides[0]] = dt_f16_to_f32(in[i * strides[1]]);
    }
}

static void
store_f16(char *const *data, const int64_t *strides, int64_t n, const void *ctx)
{
    dt_float16 *out = (dt_float16 *)data[0];
    const float *in = (const float *)data[1];
    int64_t i = 0;
    (void)ctx;
    for (; strides[0] == 1 && strides[1] == 1 && i + 8 <= n; i += 8) {
        __m256 v = _mm256_loadu_ps(in + i), is_nan = _mm256_cmp_ps(v, v, _CMP_UNORD_Q);
        __m128i h = _mm256_cvtps_ph(_mm256_blendv_ps(v, _mm256_set1_ps(NAN), is_nan), _MM_FROUND_TO_NEAREST_INT);
        _mm_storeu_si128((__m128i *)(void *)(out + i), h);
    }
    for (; i < n; i++) {
        out[i * strides[0]] = dt_f32_to_f16(in[i * strides[1]]);
    }
}
#endif

/* Bits of one size, whatever they mean. */
#define MOVE_ROW(bits)                                                                                                 \
    static void move_##bits(char *const *data, const int64_t *strides, int64_t n, const void *ctx)                     \
    {                                                                                                                  \
        word##bits *out = (word##bits *)data[0];                                                                       \
        const word##bits *in = (const word##bits *)data[1];                                                            \
        const int64_t so = strides[0], si = strides[1];                                                                \
        (void)ctx;                                                                                                     \
        if (so == 1 && si == 1) {                                                                                      \
            memmove(out, in, (size_t)n * sizeof(*out));                                                                \
        } else if (so == 1 && si == 0) {                                                                               \
            const word##bits value = *in;                                                                              \
            for (int64_t i = 0; i < n; i++) {                                                                          \
                out[i] = value;                                                                                        \
            }                                                                                                          \
        } else {                                                                                                       \
            for (int64_t i = 0; i < n; i++) {                                                                          \
                out[i * so] = in[i * si];                                                                              \
            }                                                                                                          \
        }                                                                                                              \
    }
MOVE_ROW(8)
MOVE_ROW(16)
MOVE_ROW(32)
MOVE_ROW(64)
