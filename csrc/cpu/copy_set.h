/* copy_set.h: casts by the rule of scalar.h, and moves of bits. */
/* dt_f64_to_range for float32, in a vector of half the size; low is negative or -0, high a float. The bits of positive
 * floats are in order as signed numbers, those of negative ones, the further from 0 the larger, as unsigned numbers: to
 * limit integers takes one instruction each, floats several comparisons, for the sake of NaN. */
static inline int32_t
cpu_f32_to_range(float x, float low, float high)
{
    int32_t bits = (int32_t)dt_f32_bits(x), most = (int32_t)dt_f32_bits(high);
    uint32_t limited = (uint32_t)(bits < most ? bits : most), least = dt_f32_bits(low);
    int32_t whole = (int32_t)dt_bits_f32(limited < least ? limited : least);
    return x == x ? whole : 0;
}

static inline int32_t
cpu_f32_to_i32(float x)
{
    int32_t i = cpu_f32_to_range(x, -0x1p31f, 0x1.fffffep30f);
    return x >= 0x1p31f ? INT32_MAX : i;
}

/* dt_f64_to_range, with choices that do not wait for each other */
static inline int32_t
cpu_f64_to_range(double d, double low, double high)
{
    double below = d < high ? d : high;
    int32_t whole = (int32_t)(d > low ? below : low);
    return d == d ? whole : 0;
}

static inline int64_t
cpu_f32_to_i64(float x)
{
    return fabsf(x) < 0x1p63f ? (int64_t)x : x > 0 ? INT64_MAX : x < 0 ? INT64_MIN : 0;
}

#define dt_cast_float32_uint8(x) ((uint8_t)cpu_f32_to_range(x, -0.0f, 255))
#define dt_cast_float32_int8(x) ((int8_t)cpu_f32_to_range(x, -128, 127))
#define dt_cast_float32_int16(x) ((int16_t)cpu_f32_to_range(x, -32768, 32767))
#define dt_cast_float32_int32 cpu_f32_to_i32
#define dt_cast_float32_int64 cpu_f32_to_i64
#define dt_cast_float64_uint8(x) ((uint8_t)cpu_f64_to_range(x, 0, 255))
#define dt_cast_float64_int8(x) ((int8_t)cpu_f64_to_range(x, -128, 127))
#define dt_cast_float64_int16(x) ((int16_t)cpu_f64_to_range(x, -32768, 32767))
#define dt_cast_float64_int32(x) cpu_f64_to_range(x, -2147483648.0, 2147483647.0)

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
