/* copy_set.h: casts by the rule of scalar.h, and moves of bits. */
/* dt_f64_to_range for float32, in a vector of half the size; low is negative or -0, high a float. The bits of positive
 * floats are in order as signed numbers, those of negative ones, the further from 0 the larger, as unsigned numbers: to
 * limit integers takes one instruction each. Of NaN no bit is left; a choice would become several, one for each limit.
 */
static inline int32_t
cpu_f32_to_range(float x, float low, float high)
{
    int32_t bits = (int32_t)(dt_f32_bits(x) & (0u - (uint32_t)(x == x))), most = (int32_t)dt_f32_bits(high);
    uint32_t limited = (uint32_t)(bits < most ? bits : most), least = dt_f32_bits(low);
    return (int32_t)dt_bits_f32(limited < least ? limited : least);
}

static inline int32_t
cpu_f32_to_i32(float x)
{
    int32_t i = cpu_f32_to_range(x, -0x1p31f, 0x1.fffffep30f);
    return x >= 0x1p31f ? INT32_MAX : i;
}

/* as cpu_f32_to_range */
static inline int32_t
cpu_f64_to_i32(double x)
{
    int64_t bits = (int64_t)(dt_f64_bits(x) & (0u - (uint64_t)(x == x))), most = (int64_t)dt_f64_bits(0x1.fffffffcp30);
    uint64_t limited = (uint64_t)(bits < most ? bits : most), least = dt_f64_bits(-0x1p31);
    return (int32_t)dt_bits_f64(limited < least ? limited : least);
}

/* NaN of any kind, for what knows them all */
static inline float
cpu_bf16_wide(dt_bfloat16 b)
{
    return dt_bits_f32((uint32_t)b.bits << 16);
}

/* Few sets have an instruction for it: the bits of the significand, shifted. NaN has no bit that is in range. */
static inline int64_t
cpu_f64_to_i64(double x)
{
#if HAS_INT64_CASTS
    return fabs(x) < 0x1p63 ? (int64_t)x : x > 0 ? INT64_MAX : x < 0 ? INT64_MIN : 0;
#else
    const uint64_t one = (uint64_t)1 << 52, in_range = 0u - (uint64_t)(fabs(x) < 0x1p63);
    uint64_t bits = dt_f64_bits(x), sign = 0u - (bits >> 63);
    int64_t shift = (int64_t)((1085 - (bits >> 52 & 0x7ff)) & in_range);
    uint64_t whole = ((bits & (one - 1)) | one) << 10 >> (shift < 63 ? shift : 63);
    uint64_t limit = ((uint64_t)INT64_MAX - sign) & (0u - (uint64_t)(x == x));
    whole = limit ^ ((limit ^ whole) & in_range);
    return (int64_t)((whole ^ sign) - sign);
#endif
}

static inline int64_t
cpu_f32_to_i64(float x)
{
#if HAS_INT64_CASTS
    return fabsf(x) < 0x1p63f ? (int64_t)x : x > 0 ? INT64_MAX : x < 0 ? INT64_MIN : 0;
#else
    return cpu_f64_to_i64((double)x);
#endif
}

/* Rounded once: the high half with 2 ** 84 and the low half with 2 ** 52, which are bits put together, are exact, and
 * so is the first difference. */
static inline double
cpu_i64_to_f64(int64_t i)
{
#if HAS_INT64_CASTS
    return (double)i;
#else
    uint64_t u = (uint64_t)i;
    double high = dt_bits_f64(u >> 32 ^ UINT64_C(0x4530000080000000));
    double low = dt_bits_f64((u & 0xffffffffu) | UINT64_C(0x4330000000000000));
    return high - (0x1p84 + 0x1p63 + 0x1p52) + low;
#endif
}

/* For a later rounding: exact as a double, by a bit that stands for the last 11 where a float has no use for them. */
static inline double
cpu_i64_to_f64_odd(int64_t i)
{
    int64_t odd = (((i & 0x7ff) + 0x7ff) | i) & ~INT64_C(0x7ff);
    return cpu_i64_to_f64(((uint64_t)i + (UINT64_C(1) << 53)) >> 54 == 0 ? i : odd);
}

static inline float
cpu_i64_to_f32(int64_t i)
{
#if HAS_INT64_CASTS
    return (float)i;
#else
    return (float)cpu_i64_to_f64_odd(i);
#endif
}

/* X with a bit that stands for all that a float has no room for: what rounds or truncates it later, to fewer bits than
 * a float has, does as with x. Not for the subnormal floats. */
static inline float
cpu_odd_float64(double x)
{
    const uint64_t later = ((uint64_t)1 << 29) - 1;
    uint64_t bits = dt_f64_bits(x);
    return (float)dt_bits_f64((((bits & later) + later) | bits) & ~later);
}

/* The sum is rounded where bfloat16 ends. */
static inline dt_bfloat16
cpu_f64_to_bf16(double x)
{
    uint32_t odd = dt_f32_bits(cpu_odd_float64(x));
    uint32_t small = dt_f32_bits((float)copysign(fabs(x) + 0x1.8p-81 - 0x1.8p-81, x));
    uint32_t is_small = 0u - (uint32_t)((odd & 0x7fffffffu) < 0x00800000u);
    return dt_f32_to_bf16(dt_bits_f32(odd ^ ((odd ^ small) & is_small)));
}

static inline float
cpu_odd_int32(int32_t i)
{
    int32_t odd = (((i & 0x7f) + 0x7f) | i) & ~0x7f;
    return (float)(i < 1 << 24 && i > -(1 << 24) ? i : odd);
}

#define cpu_odd_int64(x) cpu_odd_float64(cpu_i64_to_f64_odd(x))

#define dt_cast_float32_uint8(x) ((uint8_t)cpu_f32_to_range(x, -0.0f, 255))
#define dt_cast_float32_int8(x) ((int8_t)cpu_f32_to_range(x, -128, 127))
#define dt_cast_float32_int16(x) ((int16_t)cpu_f32_to_range(x, -32768, 32767))
#define dt_cast_float32_int32 cpu_f32_to_i32
#define dt_cast_float32_int64 cpu_f32_to_i64
#define dt_cast_bfloat16_uint8(x) dt_cast_float32_uint8(cpu_bf16_wide(x))
#define dt_cast_bfloat16_int8(x) dt_cast_float32_int8(cpu_bf16_wide(x))
#define dt_cast_bfloat16_int16(x) dt_cast_float32_int16(cpu_bf16_wide(x))
#define dt_cast_bfloat16_int32(x) cpu_f32_to_i32(cpu_bf16_wide(x))
#define dt_cast_bfloat16_int64(x) cpu_f32_to_i64(cpu_bf16_wide(x))
#define dt_cast_bfloat16_float64(x) ((double)dt_bf16_to_f32(x)) /* whose NaN is the one already */
#define dt_cast_float64_uint8(x) dt_cast_float32_uint8(cpu_odd_float64(x))
#define dt_cast_float64_int8(x) dt_cast_float32_int8(cpu_odd_float64(x))
#define dt_cast_float64_int16(x) dt_cast_float32_int16(cpu_odd_float64(x))
#define dt_cast_float64_int32 cpu_f64_to_i32
#define dt_cast_float64_int64 cpu_f64_to_i64
#define dt_cast_float64_bfloat16 cpu_f64_to_bf16
#define dt_cast_int32_bfloat16(x) dt_f32_to_bf16(cpu_odd_int32(x))
#define dt_cast_int64_bfloat16(x) dt_f32_to_bf16(cpu_odd_int64(x))
#define dt_cast_int64_float32 cpu_i64_to_f32
#define dt_cast_int64_float64 cpu_i64_to_f64

/* ---------------------------------------------------------------- bits of one size, whatever they mean */

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

static const cpu_row moves[] = {move_8, move_16, move_32, move_64};

/* ---------------------------------------------------------------- rows of elements that lie apart, and of float16 */

#define CAST_BLOCK 256

static void
cast_apart(char *const *data, const int64_t *strides, int64_t n, cpu_row cast, size_t out_size, size_t in_size)
{
    _Alignas(64) char in[CAST_BLOCK * sizeof(int64_t)], out[CAST_BLOCK * sizeof(int64_t)];
    const int64_t so = strides[0] * (int64_t)out_size, si = strides[1] * (int64_t)in_size;
    for (int64_t i = 0; i < n; i += CAST_BLOCK) {
        int64_t m = CPU_MIN(CAST_BLOCK, n - i);
        char *near[2] = {strides[0] == 1 ? data[0] + i * so : out, strides[1] == 1 ? data[1] + i * si : in};
        if (near[1] == in) {
            moves[cpu_size_index(in_size)]((char *[]){in, data[1] + i * si}, (const int64_t[]){1, strides[1]}, m, NULL);
        }
        cast(near, (const int64_t[]){1, 1}, m, NULL);
        if (near[0] == out) {
            moves[cpu_size_index(out_size)]((char *[]){data[0] + i * so, out}, (const int64_t[]){strides[0], 1}, m,
                                            NULL);
        }
    }
}

#if HAS_F16C
/* How much of n the vectors did; the rest goes one by one. */
static int64_t
vectors_float16_float32(const dt_float16 *in, float *out, int64_t n)
{
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) {
        __m256 v = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(in + i)));
        __m256 is_nan = _mm256_cmp_ps(v, v, _CMP_UNORD_Q);
        _mm256_storeu_ps(out + i, _mm256_blendv_ps(v, _mm256_set1_ps(NAN), is_nan));
    }
    return i;
}

static int64_t
vectors_float32_float16(const float *in, dt_float16 *out, int64_t n)
{
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) {
        __m256 v = _mm256_loadu_ps(in + i), is_nan = _mm256_cmp_ps(v, v, _CMP_UNORD_Q);
        __m128i h = _mm256_cvtps_ph(_mm256_blendv_ps(v, _mm256_set1_ps(NAN), is_nan), _MM_FROUND_TO_NEAREST_INT);
        _mm_storeu_si128((__m128i *)(void *)(out + i), h);
    }
    return i;
}

/* 16 numbers: 4, 4, then the other 4, 4 of both vectors. What is too low becomes INT32_MIN, as NaN would, and the low
 * end when packed. */
static inline __m256i
packed_float32(const float *in, __m256 most)
{
    __m256i whole[2];
    for (int i = 0; i < 2; i++) {
        __m256 v = _mm256_loadu_ps(in + 8 * i), number = _mm256_and_ps(v, _mm256_cmp_ps(v, v, _CMP_ORD_Q));
        whole[i] = _mm256_cvttps_epi32(_mm256_min_ps(number, most));
    }
    return _mm256_packs_epi32(whole[0], whole[1]);
}

static int64_t
vectors_float32_int16(const float *in, int16_t *out, int64_t n)
{
    const __m256 most = _mm256_set1_ps(INT16_MAX);
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) {
        _mm256_storeu_si256((__m256i *)(void *)(out + i), _mm256_permute4x64_epi64(packed_float32(in + i, most), 0xd8));
    }
    return i;
}

#define VECTORS_TO_8_BITS(to, R, MOST, packs)                                                                          \
    static int64_t vectors_float32_##to(const float *in, R *out, int64_t n)                                            \
    {                                                                                                                  \
        const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);                                               \
        const __m256 most = _mm256_set1_ps(MOST);                                                                      \
        int64_t i = 0;                                                                                                 \
        for (; i + 32 <= n; i += 32) {                                                                                 \
            __m256i v = packs(packed_float32(in + i, most), packed_float32(in + i + 16, most));                        \
            _mm256_storeu_si256((__m256i *)(void *)(out + i), _mm256_permutevar8x32_epi32(v, order));                  \
        }                                                                                                              \
        return i;                                                                                                      \
    }
VECTORS_TO_8_BITS(int8, int8_t, INT8_MAX, _mm256_packs_epi16)
VECTORS_TO_8_BITS(uint8, uint8_t, UINT8_MAX, _mm256_packus_epi16)

#define ODD_ROW(name, S)                                                                                               \
    static void odd_##name(char *const *data, const int64_t *strides, int64_t n, const void *ctx)                      \
    {                                                                                                                  \
        float *out = (float *)data[0];                                                                                 \
        const S *in = (const S *)data[1];                                                                              \
        (void)strides;                                                                                                 \
        (void)ctx;                                                                                                     \
        CPU_INDEPENDENT                                                                                                \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            out[i] = cpu_odd_##name(in[i]);                                                                            \
        }                                                                                                              \
    }
ODD_ROW(int32, int32_t)
ODD_ROW(int64, int64_t)
ODD_ROW(float64, double)

static const cpu_row casts_float32[DT_NDTYPES];

static void
cast_by_f32(const char *in, char *out, int64_t n, cpu_row to_f32, dt_dtype to, size_t in_size, size_t out_size)
{
    const int64_t near[2] = {1, 1};
    _Alignas(64) float block[CAST_BLOCK];
    for (int64_t i = 0; i < n; i += CAST_BLOCK) {
        int64_t m = CPU_MIN(CAST_BLOCK, n - i);
        char *from = (char *)in + i * (int64_t)in_size;
        to_f32((char *[]){(char *)block, from}, near, m, NULL);
        casts_float32[to]((char *[]){out + i * (int64_t)out_size, (char *)block}, near, m, NULL);
    }
}

#define ODD_int32 , odd_int32
#define ODD_int64 , odd_int64
#define ODD_float64 , odd_float64
#define HOW_float16_float32 , VECTORS
#define HOW_float32_float16 , VECTORS
#define HOW_float32_uint8 , VECTORS
#define HOW_float32_int8 , VECTORS
#define HOW_float32_int16 , VECTORS
#define HOW_float64_uint8 , BLOCKS
#define HOW_float64_int8 , BLOCKS
#define HOW_float64_int16 , BLOCKS
#define HOW_float64_float16 , BLOCKS
#define HOW_bfloat16_float16 , BLOCKS
#define HOW_uint8_float16 , BLOCKS
#define HOW_int8_float16 , BLOCKS
#define HOW_int16_float16 , BLOCKS
#define HOW_int32_float16 , BLOCKS
#define HOW_int64_float16 , BLOCKS
#define HOW_float16_uint8 , BLOCKS
#define HOW_float16_int8 , BLOCKS
#define HOW_float16_int16 , BLOCKS
#define HOW_float16_int32 , BLOCKS
#define HOW_float16_int64 , BLOCKS
#define HOW_float16_bfloat16 , BLOCKS
#define HOW_float16_float64 , BLOCKS
#endif

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
