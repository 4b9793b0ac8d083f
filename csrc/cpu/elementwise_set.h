/* elementwise_set.h: the ops of elementwise.def. The half types go through the rows of float32 (elementwise.c). */
#define IS_HALF_FLOAT16 1
#define IS_HALF_BFLOAT16 1
#define IS_F32_FLOAT32 1
#define IS_F64_FLOAT64 1
/* what an integer expression becomes; bool keeps its lowest bit (elementwise_each.h) */
#define RESULT_ARITH(v) (v)
#define RESULT_FLOAT(v) (v)
#define RESULT_POWER(v) (v)
#define RESULT_ROUND(v) (v)
#define RESULT_TEST(v) (v)
#define RESULT_FTEST(v) (v)
#define RESULT_COMPARE(v) (v)
#define RESULT_LOGIC(v) (v)
/* what has no row of its own for every dtype (elementwise.c): the logical ops are those of bool, a > b is b < a; and
 * what is as large as a function */
#define KIND_logical_not , LOGIC
#define KIND_logical_and , LOGIC
#define KIND_logical_or , LOGIC
#define KIND_logical_xor , LOGIC
#define KIND_pow , POWER
#define KIND_gt , MIRRORED
#define KIND_ge , MIRRORED
/* which ternary ops have loops of their own over neighbours */
#define DENSE_STORED 0
#define DENSE_COMPUTED 1
#define ROW_KIND_(ignored, kind, ...) kind
#define ROW_KIND(...) ROW_KIND_(__VA_ARGS__, )
/* what a row does with elements that are not neighbours: functions are made once, for those that are */
#define STRIDED_ARITH STRIDED
#define STRIDED_ROUND STRIDED
#define STRIDED_BITS STRIDED
#define STRIDED_TEST STRIDED
#define STRIDED_FTEST STRIDED
#define STRIDED_LOGIC STRIDED
#define APART_ARITH APART
#define APART_FLOAT APART
#define APART_BITS APART
#define APART_COMPARE APART
#define APART_LOGIC APART

#undef FLOORDIV
#undef FLOORMOD
#undef TRUNCDIV
#define FLOORDIV(a, b) DT_CAT(floordiv, ENUM)(a, b)
#define FLOORMOD(a, b) DT_CAT(floormod, ENUM)(a, b)
#define TRUNCDIV(a, b) DT_CAT(truncdiv, ENUM)(a, b)

#define DT_EACH "../cpu/elementwise_each.h"
#include "../core/each_dtype.h"
#undef DT_EACH

#define ops_FLOAT16 ops_FLOAT32
#define ops_BFLOAT16 ops_FLOAT32
static const cpu_ops *const ops[DT_NDTYPES] = {
#define DT_DTYPE(NAME, name, ...) [DT_##NAME] = &ops_##NAME,
#include "../core/dtypes.def"
#undef DT_DTYPE
};

typedef uint16_t __attribute__((may_alias)) half_bits;

static void
half_signs(char *const *data, const int64_t *strides, int64_t n, const void *ctx)
{
    const cpu_half_signs job = *(const cpu_half_signs *)ctx;
    half_bits *out = (half_bits *)data[0];
    const half_bits *x = (const half_bits *)data[1];
    if (strides[0] != 1 || strides[1] != 1) {
        cpu_row_packed(half_signs, DT_FLOAT16, 1, data, strides, n, ctx);
        return;
    }
    CPU_INDEPENDENT
    for (int64_t i = 0; i < n; i++) {
        const uint16_t bits = x[i], negative = (uint16_t)(0 - (bits >> 15));
        const uint16_t value = (uint16_t)(((bits & job.kept) ^ job.flipped) & ~(negative & job.dropped));
        out[i] = (bits & 0x7fff) > job.infinity ? job.nan : value;
    }
}

static void
sin_wide(const float *x, float *sines, int64_t n, uint64_t quarters)
{
    CPU_INDEPENDENT
    for (int64_t i = 0; i < n; i++) {
        const float near = sines[i], wide = cpu_sin_wide(x[i], quarters);
        sines[i] = fabsf(x[i]) < CPU_TURNS_NEAR ? near : wide;
    }
}

static float
magnitude(const float *x, int64_t n)
{
    uint32_t largest = 0;
    for (int64_t i = 0; i < n; i++) {
        const uint32_t bits = dt_f32_bits(x[i]) & 0x7fffffff;
        largest = bits > largest ? bits : largest;
    }
    return dt_bits_f32(largest);
}

/* where: bits of one size, whatever they mean */
#define WHERE_ROW(bits)                                                                                                \
    typedef uint##bits##_t __attribute__((may_alias)) word##bits;                                                      \
    static void where_##bits(char *const *data, const int64_t *strides, int64_t n, const void *ctx)                    \
    {                                                                                                                  \
        word##bits *out = (word##bits *)data[0];                                                                       \
        const uint8_t *condition = (const uint8_t *)data[1];                                                           \
        const word##bits *a = (const word##bits *)data[2], *b = (const word##bits *)data[3];                           \
        const int64_t so = strides[0], sc = strides[1], sa = strides[2], sb = strides[3];                              \
        (void)ctx;                                                                                                     \
        if (so == 1 && sc == 1 && (sa == 1 || sa == 0) && (sb == 1 || sb == 0)) {                                      \
            const word##bits a0 = *a, b0 = *b;                                                                         \
            if (sa == 1 && sb == 1) {                                                                                  \
                CPU_INDEPENDENT                                                                                        \
                for (int64_t i = 0; i < n; i++) {                                                                      \
                    const word##bits va = a[i], vb = b[i];                                                             \
                    out[i] = condition[i] ? va : vb;                                                                   \
                }                                                                                                      \
            } else if (sa == 1) {                                                                                      \
                CPU_INDEPENDENT                                                                                        \
                for (int64_t i = 0; i < n; i++) {                                                                      \
                    const word##bits va = a[i];                                                                        \
                    out[i] = condition[i] ? va : b0;                                                                   \
                }                                                                                                      \
            } else if (sb == 1) {                                                                                      \
                CPU_INDEPENDENT                                                                                        \
                for (int64_t i = 0; i < n; i++) {                                                                      \
                    const word##bits vb = b[i];                                                                        \
                    out[i] = condition[i] ? a0 : vb;                                                                   \
                }                                                                                                      \
            } else {                                                                                                   \
                CPU_INDEPENDENT                                                                                        \
                for (int64_t i = 0; i < n; i++) {                                                                      \
                    out[i] = condition[i] ? a0 : b0;                                                                   \
                }                                                                                                      \
            }                                                                                                          \
            return;                                                                                                    \
        }                                                                                                              \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            out[i * so] = condition[i * sc] ? a[i * sa] : b[i * sb];                                                   \
        }                                                                                                              \
    }
WHERE_ROW(8)
WHERE_ROW(16)
WHERE_ROW(32)
WHERE_ROW(64)
