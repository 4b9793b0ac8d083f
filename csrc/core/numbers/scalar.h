/* scalar.h: one number of each dtype, and the one cast rule of every device. Read by the host compiler, by nvcc and by
 * NVRTC, so that cpu, simulated and real CUDA give the same bits.
 *
 * The rule: one rounding, to nearest even; overflow to infinity; subnormals kept; NaN becomes the positive quiet NaN
 * without payload. Float to integer truncates and saturates, NaN gives 0. Integer to narrower integer wraps. To bool
 * is != 0. */
#ifndef DT_SCALAR_H
#define DT_SCALAR_H

#ifdef __CUDACC_RTC__
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;
#define INT64_C(c) c##LL
#define INT64_MAX INT64_C(9223372036854775807)
#define INT64_MIN (-INT64_MAX - 1)
#else
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#endif

#ifdef __CUDACC__
#define DT_INLINE static __device__ __forceinline__
#else
#define DT_INLINE static inline
#endif

typedef struct {
    uint16_t bits;
} dt_float16;

typedef struct {
    uint16_t bits;
} dt_bfloat16;

/* ---------------------------------------------------------------- bits */

DT_INLINE uint32_t
dt_f32_bits(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof(u));
    return u;
}

DT_INLINE float
dt_bits_f32(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof(f));
    return f;
}

DT_INLINE uint64_t
dt_f64_bits(double d)
{
    uint64_t u;
    memcpy(&u, &d, sizeof(u));
    return u;
}

DT_INLINE double
dt_bits_f64(uint64_t u)
{
    double d;
    memcpy(&d, &u, sizeof(d));
    return d;
}

/* ---------------------------------------------------------------- half types */

/* On a GPU one instruction converts; its NaN is made ours. */
DT_INLINE float
dt_f16_to_f32(dt_float16 h)
{
#ifdef __CUDA_ARCH__
    float f;
    asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h.bits));
    return f != f ? dt_bits_f32(0x7fc00000u) : f;
#else
    uint32_t sign = (uint32_t)(h.bits & 0x8000u) << 16;
    uint32_t magnitude = (uint32_t)(h.bits & 0x7fffu) << 13;
    if (magnitude > 0x0f800000u) { /* NaN */
        return dt_bits_f32(0x7fc00000u);
    }
    if (magnitude == 0x0f800000u) {
        return dt_bits_f32(sign | 0x7f800000u);
    }
    /* the exponent is rebiased by a multiplication, which is exact and normalises subnormals */
    return dt_bits_f32(sign | dt_f32_bits(dt_bits_f32(magnitude) * 5.192296858534828e+33f)); /* 2**112 */
#endif
}

DT_INLINE dt_float16
dt_f32_to_f16(float f)
{
    dt_float16 h;
#ifdef __CUDA_ARCH__
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h.bits) : "f"(f));
    h.bits = f != f ? (uint16_t)0x7e00u : h.bits;
#else
    uint32_t u = dt_f32_bits(f);
    uint32_t sign = (u >> 16) & 0x8000u;
    uint32_t a = u & 0x7fffffffu;
    if (a > 0x7f800000u) {
        h.bits = 0x7e00u;
    } else if (a >= 0x477ff000u) { /* rounds to 2**16 or more */
        h.bits = (uint16_t)(sign | 0x7c00u);
    } else if (a >= 0x38800000u) { /* normal: round at bit 13 */
        h.bits = (uint16_t)(sign | ((a - 0x38000000u + 0xfffu + ((a >> 13) & 1u)) >> 13));
    } else { /* subnormal or zero: adding 0.5 lets the float adder round at the right bit */
        h.bits = (uint16_t)(sign | (dt_f32_bits(dt_bits_f32(a) + 0.5f) - 0x3f000000u));
    }
#endif
    return h;
}

DT_INLINE float
dt_bf16_to_f32(dt_bfloat16 b)
{
    float f = dt_bits_f32((uint32_t)b.bits << 16);
    return f != f ? dt_bits_f32(0x7fc00000u) : f;
}

DT_INLINE dt_bfloat16
dt_f32_to_bf16(float f)
{
    dt_bfloat16 b;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(b.bits) : "f"(f));
    b.bits = f != f ? (uint16_t)0x7fc0u : b.bits;
#else
    uint32_t u = dt_f32_bits(f != f ? dt_bits_f32(0x7fc00000u) : f); /* which is rounded to itself */
    b.bits = (uint16_t)((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
#endif
    return b;
}

/* ---------------------------------------------------------------- between float and double, one rounding */

DT_INLINE float
dt_f64_to_f32(double d)
{
    float f = (float)d; /* compared as a float, which takes half the room in a vector */
    return f != f ? dt_bits_f32(0x7fc00000u) : f;
}

DT_INLINE double
dt_f32_to_f64(float f)
{
#ifdef __CUDA_ARCH__
    return f != f ? dt_bits_f64(0x7ff8000000000000u) : (double)f;
#else
    /* without a choice, which compilers would make between two doubles, twice as wide */
    uint32_t u = dt_f32_bits(f), is_nan = (u & 0x7fffffffu) > 0x7f800000u;
    return (double)dt_bits_f32(u ^ ((u ^ 0x7fc00000u) & (0u - is_nan)));
#endif
}

/* Rounded to odd: a later rounding to a half type is then the only one that counts (Boldo and Melquiond 2008). */
DT_INLINE float
dt_f64_to_f32_odd(double d)
{
    float f = dt_f64_to_f32(d);
    double back = (double)f;
    if (d != d || back == d) {
        return f;
    }
    uint32_t u = dt_f32_bits(f);
    if ((d < 0 ? -back : back) > (d < 0 ? -d : d)) {
        u--;
    }
    return dt_bits_f32(u | 1u);
}

DT_INLINE float
dt_i64_to_f32_odd(int64_t i)
{
    if (i >= -(INT64_C(1) << 53) && i <= (INT64_C(1) << 53)) {
        return dt_f64_to_f32_odd((double)i);
    }
    uint64_t a = i < 0 ? 0u - (uint64_t)i : (uint64_t)i;
    uint64_t sticky = (a >> 11) | ((a & 0x7ffu) != 0);
    double d = (double)(int64_t)sticky * 2048.0;
    return dt_f64_to_f32_odd(i < 0 ? -d : d);
}

/* ---------------------------------------------------------------- float to integer: truncate, saturate, NaN is 0 */

DT_INLINE int64_t
dt_f64_to_i64(double d)
{
    if (d != d) {
        return 0;
    }
    if (d >= 9223372036854775808.0) {
        return INT64_MAX;
    }
    return d < -9223372036854775808.0 ? INT64_MIN : (int64_t)d;
}

/* low and high: the range of the target, of up to 32 bits */
DT_INLINE int32_t
dt_f64_to_range(double d, double low, double high)
{
    return d != d ? 0 : (int32_t)(d < low ? low : d > high ? high : d);
}

/* ---------------------------------------------------------------- the cast rule: dt_cast_SOURCE_TARGET */

/* up to 16 bits are exact as they are */
#define DT_INT_TO_F32_ODD(x) (sizeof(x) <= 2 ? (float)(x) : dt_i64_to_f32_odd((int64_t)(x)))
#define DT_CASTS_FROM_INT(S, source)                                                                                   \
    DT_INLINE uint8_t dt_cast_##source##_bool(S x)                                                                     \
    {                                                                                                                  \
        return x != 0;                                                                                                 \
    }                                                                                                                  \
    DT_INLINE uint8_t dt_cast_##source##_uint8(S x)                                                                    \
    {                                                                                                                  \
        return (uint8_t)x;                                                                                             \
    }                                                                                                                  \
    DT_INLINE int8_t dt_cast_##source##_int8(S x)                                                                      \
    {                                                                                                                  \
        return (int8_t)x;                                                                                              \
    }                                                                                                                  \
    DT_INLINE int16_t dt_cast_##source##_int16(S x)                                                                    \
    {                                                                                                                  \
        return (int16_t)x;                                                                                             \
    }                                                                                                                  \
    DT_INLINE int32_t dt_cast_##source##_int32(S x)                                                                    \
    {                                                                                                                  \
        return (int32_t)x;                                                                                             \
    }                                                                                                                  \
    DT_INLINE int64_t dt_cast_##source##_int64(S x)                                                                    \
    {                                                                                                                  \
        return (int64_t)x;                                                                                             \
    }                                                                                                                  \
    DT_INLINE dt_float16 dt_cast_##source##_float16(S x)                                                               \
    {                                                                                                                  \
        return dt_f32_to_f16(DT_INT_TO_F32_ODD(x));                                                                    \
    }                                                                                                                  \
    DT_INLINE dt_bfloat16 dt_cast_##source##_bfloat16(S x)                                                             \
    {                                                                                                                  \
        return dt_f32_to_bf16(DT_INT_TO_F32_ODD(x));                                                                   \
    }                                                                                                                  \
    DT_INLINE float dt_cast_##source##_float32(S x)                                                                    \
    {                                                                                                                  \
        return (float)x;                                                                                               \
    }                                                                                                                  \
    DT_INLINE double dt_cast_##source##_float64(S x)                                                                   \
    {                                                                                                                  \
        return (double)x;                                                                                              \
    }

/* as64: the value as a double, exactly; magnitude: what is 0 for 0 alone */
#define DT_CASTS_FROM_FLOAT(S, source, as64, magnitude)                                                                \
    DT_INLINE uint8_t dt_cast_##source##_bool(S x)                                                                     \
    {                                                                                                                  \
        return magnitude(x) != 0;                                                                                      \
    }                                                                                                                  \
    DT_INLINE uint8_t dt_cast_##source##_uint8(S x)                                                                    \
    {                                                                                                                  \
        return (uint8_t)dt_f64_to_range(as64(x), 0, 255);                                                              \
    }                                                                                                                  \
    DT_INLINE int8_t dt_cast_##source##_int8(S x)                                                                      \
    {                                                                                                                  \
        return (int8_t)dt_f64_to_range(as64(x), -128, 127);                                                            \
    }                                                                                                                  \
    DT_INLINE int16_t dt_cast_##source##_int16(S x)                                                                    \
    {                                                                                                                  \
        return (int16_t)dt_f64_to_range(as64(x), -32768, 32767);                                                       \
    }                                                                                                                  \
    DT_INLINE int32_t dt_cast_##source##_int32(S x)                                                                    \
    {                                                                                                                  \
        return (int32_t)dt_f64_to_range(as64(x), -2147483648.0, 2147483647.0);                                         \
    }                                                                                                                  \
    DT_INLINE int64_t dt_cast_##source##_int64(S x)                                                                    \
    {                                                                                                                  \
        return dt_f64_to_i64(as64(x));                                                                                 \
    }

DT_INLINE double
dt_f16_to_f64(dt_float16 h)
{
    return dt_f32_to_f64(dt_f16_to_f32(h));
}
DT_INLINE double
dt_bf16_to_f64(dt_bfloat16 b)
{
    return dt_f32_to_f64(dt_bf16_to_f32(b));
}
DT_INLINE double
dt_f64_to_f64(double d)
{
    return d;
}

DT_INLINE uint8_t
dt_cast_bool_bool(uint8_t x)
{
    return x != 0;
}
DT_INLINE uint8_t
dt_cast_bool_uint8(uint8_t x)
{
    return x != 0;
}
DT_INLINE int8_t
dt_cast_bool_int8(uint8_t x)
{
    return x != 0;
}
DT_INLINE int16_t
dt_cast_bool_int16(uint8_t x)
{
    return x != 0;
}
DT_INLINE int32_t
dt_cast_bool_int32(uint8_t x)
{
    return x != 0;
}
DT_INLINE int64_t
dt_cast_bool_int64(uint8_t x)
{
    return x != 0;
}
DT_INLINE dt_float16
dt_cast_bool_float16(uint8_t x)
{
    return dt_f32_to_f16(x != 0 ? 1.0f : 0.0f);
}
DT_INLINE dt_bfloat16
dt_cast_bool_bfloat16(uint8_t x)
{
    return dt_f32_to_bf16(x != 0 ? 1.0f : 0.0f);
}
DT_INLINE float
dt_cast_bool_float32(uint8_t x)
{
    return x != 0 ? 1.0f : 0.0f;
}
DT_INLINE double
dt_cast_bool_float64(uint8_t x)
{
    return x != 0 ? 1.0 : 0.0;
}

DT_CASTS_FROM_INT(uint8_t, uint8)
DT_CASTS_FROM_INT(int8_t, int8)
DT_CASTS_FROM_INT(int16_t, int16)
DT_CASTS_FROM_INT(int32_t, int32)
DT_CASTS_FROM_INT(int64_t, int64)
#define DT_HALF_MAGNITUDE(x) ((x).bits & 0x7fffu)
DT_CASTS_FROM_FLOAT(dt_float16, float16, dt_f16_to_f64, DT_HALF_MAGNITUDE)
DT_CASTS_FROM_FLOAT(dt_bfloat16, bfloat16, dt_bf16_to_f64, DT_HALF_MAGNITUDE)
DT_CASTS_FROM_FLOAT(float, float32, dt_f32_to_f64, )
DT_CASTS_FROM_FLOAT(double, float64, dt_f64_to_f64, )

/* float to float; the same dtype keeps its bits */
DT_INLINE dt_float16
dt_cast_float16_float16(dt_float16 x)
{
    return x;
}
DT_INLINE dt_bfloat16
dt_cast_float16_bfloat16(dt_float16 x)
{
    return dt_f32_to_bf16(dt_f16_to_f32(x));
}
DT_INLINE float
dt_cast_float16_float32(dt_float16 x)
{
    return dt_f16_to_f32(x);
}
DT_INLINE double
dt_cast_float16_float64(dt_float16 x)
{
    return dt_f16_to_f64(x);
}
DT_INLINE dt_float16
dt_cast_bfloat16_float16(dt_bfloat16 x)
{
    return dt_f32_to_f16(dt_bf16_to_f32(x));
}
DT_INLINE dt_bfloat16
dt_cast_bfloat16_bfloat16(dt_bfloat16 x)
{
    return x;
}
DT_INLINE float
dt_cast_bfloat16_float32(dt_bfloat16 x)
{
    return dt_bf16_to_f32(x);
}
DT_INLINE double
dt_cast_bfloat16_float64(dt_bfloat16 x)
{
    return dt_bf16_to_f64(x);
}
DT_INLINE dt_float16
dt_cast_float32_float16(float x)
{
    return dt_f32_to_f16(x);
}
DT_INLINE dt_bfloat16
dt_cast_float32_bfloat16(float x)
{
    return dt_f32_to_bf16(x);
}
DT_INLINE float
dt_cast_float32_float32(float x)
{
    return x;
}
DT_INLINE double
dt_cast_float32_float64(float x)
{
    return dt_f32_to_f64(x);
}
DT_INLINE dt_float16
dt_cast_float64_float16(double x)
{
    return dt_f32_to_f16(dt_f64_to_f32_odd(x));
}
DT_INLINE dt_bfloat16
dt_cast_float64_bfloat16(double x)
{
    return dt_f32_to_bf16(dt_f64_to_f32_odd(x));
}
DT_INLINE float
dt_cast_float64_float32(double x)
{
    return dt_f64_to_f32(x);
}
DT_INLINE double
dt_cast_float64_float64(double x)
{
    return x;
}

/* ---------------------------------------------------------------- arithmetic of elementwise.def */

/* Wrapping integer arithmetic: C and U are those of each_dtype.inc. */
#define ADD(a, b) E((C)((U)(a) + (U)(b)), (a) + (b))
#define SUB(a, b) E((C)((U)(a) - (U)(b)), (a) - (b))
#define MUL(a, b) E((C)((U)(a) * (U)(b)), (a) * (b))
#define NEG(a) ((C)(0u - (U)(a)))
#define FLOORDIV(a, b) ((C)dt_int_floordiv((int64_t)(a), (int64_t)(b)))
#define FLOORMOD(a, b) ((C)dt_int_floormod((int64_t)(a), (int64_t)(b)))
#define TRUNCDIV(a, b) ((C)dt_int_truncdiv((int64_t)(a), (int64_t)(b)))
#define IPOW(a, b) ((C)dt_int_pow((int64_t)(a), (int64_t)(b)))

/* What gelu with tanh, x * SIGMOID(GELU_TANH(x)), is made of; the slope is the derivative. */
#define SIGMOID(x) (1 / (1 + M(exp)(-(x))))
#define GELU_TANH(x) ((C)1.5957691216057307 * (x + (C)0.044715 * x * x * x))
#define GELU_TANH_SLOPE(x) ((C)1.5957691216057307 * (1 + (C)0.134145 * x * x))

DT_INLINE int64_t
dt_int_truncdiv(int64_t a, int64_t b)
{
    if (b == 0) {
        return 0;
    }
    return b == -1 ? (int64_t)(0u - (uint64_t)a) : a / b; /* INT64_MIN / -1 overflows */
}

DT_INLINE int64_t
dt_int_floordiv(int64_t a, int64_t b)
{
    int64_t q = dt_int_truncdiv(a, b);
    return b != 0 && b != -1 && a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

DT_INLINE int64_t
dt_int_floormod(int64_t a, int64_t b)
{
    if (b == 0 || b == -1) {
        return 0;
    }
    int64_t r = a % b;
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

DT_INLINE int64_t
dt_int_pow(int64_t base, int64_t exponent)
{
    if (exponent < 0) { /* the integer part of 1 / base ** n */
        return base == 1 ? 1 : base == -1 ? (exponent % 2 ? -1 : 1) : 0;
    }
    uint64_t result = 1, b = (uint64_t)base;
    for (; exponent; exponent >>= 1, b *= b) {
        if (exponent & 1) {
            result *= b;
        }
    }
    return (int64_t)result;
}

/* Python's // and % for floats (CPython, Objects/floatobject.c): the remainder has the sign of b. */
#define DT_FLOAT_DIVISION(F, suffix, fmod_, floor_, copysign_)                                                         \
    DT_INLINE F dt_floormod##suffix(F a, F b)                                                                          \
    {                                                                                                                  \
        F r = fmod_(a, b);                                                                                             \
        if (r != 0) {                                                                                                  \
            return (r < 0) != (b < 0) ? r + b : r;                                                                     \
        }                                                                                                              \
        return copysign_(r, b);                                                                                        \
    }                                                                                                                  \
    DT_INLINE F dt_floordiv##suffix(F a, F b)                                                                          \
    {                                                                                                                  \
        if (b == 0) {                                                                                                  \
            return a / b;                                                                                              \
        }                                                                                                              \
        F r = fmod_(a, b), q = (a - r) / b;                                                                            \
        if (r != 0 && (r < 0) != (b < 0)) {                                                                            \
            q -= 1;                                                                                                    \
        }                                                                                                              \
        if (q == 0) {                                                                                                  \
            return copysign_((F)0, a / b);                                                                             \
        }                                                                                                              \
        F down = floor_(q);                                                                                            \
        return q - down > (F)0.5 ? down + 1 : down;                                                                    \
    }
DT_FLOAT_DIVISION(float, f, fmodf, floorf, copysignf)
DT_FLOAT_DIVISION(double, , fmod, floor, copysign)

/* Functions made of others. asin: atan2 spills no registers on sm_90 as asin itself does. */
#define DT_BY_OTHERS(F, suffix, erf_, atan2_, sqrt_)                                                                   \
    DT_INLINE F dt_gelu##suffix(F x)                                                                                   \
    {                                                                                                                  \
        return x * (F)0.5 * (1 + erf_(x * (F)0.70710678118654752440));                                                 \
    }                                                                                                                  \
    DT_INLINE F dt_asin##suffix(F x)                                                                                   \
    {                                                                                                                  \
        return atan2_(x, sqrt_((1 - x) * (1 + x)));                                                                    \
    }
DT_BY_OTHERS(float, f, erff, atan2f, sqrtf)
DT_BY_OTHERS(double, , erf, atan2, sqrt)

/* The inverse of erf to 4e-7 of the result, by Giles' polynomials of w = -log(1 - x * x) (GPU Computing Gems, ch. 10).
 */
#define DT_ERFINV(F, suffix, log1p_, sqrt_)                                                                            \
    DT_INLINE F dt_erfinv_near##suffix(F x)                                                                            \
    {                                                                                                                  \
        F w = -log1p_(-x * x), t = w - (F)2.5;                                                                         \
        if (x == 1 || x == -1) {                                                                                       \
            return x / (1 - x * x);                                                                                    \
        }                                                                                                              \
        if (w < 5) {                                                                                                   \
            F p = (F)3.43273939e-07 + t * (F)2.81022636e-08;                                                           \
            p = (F)-4.39150654e-06 + t * ((F)-3.5233877e-06 + t * p);                                                  \
            p = (F)-0.00125372503 + t * ((F)0.00021858087 + t * p);                                                    \
            p = (F)0.246640727 + t * ((F)-0.00417768164 + t * p);                                                      \
            return x * ((F)1.50140941 + t * p);                                                                        \
        }                                                                                                              \
        t = sqrt_(w) - 3;                                                                                              \
        F p = (F)0.000100950558 + t * (F)-0.000200214257;                                                              \
        p = (F)-0.00367342844 + t * ((F)0.00134934322 + t * p);                                                        \
        p = (F)-0.0076224613 + t * ((F)0.00573950773 + t * p);                                                         \
        p = (F)1.00167406 + t * ((F)0.00943887047 + t * p);                                                            \
        return x * ((F)2.83297682 + t * p);                                                                            \
    }
DT_ERFINV(float, f, log1pf, sqrtf)
DT_ERFINV(double, , log1p, sqrt)

DT_INLINE float
dt_erfinvf(float x)
{
    return dt_erfinv_nearf(x);
}

/* Two steps of Halley's method; erfc, because 1 - |x| is exact where erf(y) is near 1. */
DT_INLINE double
dt_erfinv(double x)
{
    double far = 1 - fabs(x), y = dt_erfinv_near(fabs(x));
    if (far <= 0 || far != far) {
        return dt_erfinv_near(x);
    }
    for (int i = 0; i < 2; i++) {
        double miss = far < 0.5 ? far - erfc(y) : erf(y) - fabs(x), step = miss * 0.88622692545275801 * exp(y * y);
        y -= step / (1 + y * step);
    }
    return copysign(y, x);
}

#endif
