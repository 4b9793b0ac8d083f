/* functions.h: exp, log, tanh and the like of float32, without branches, so that loops over them become vectors.
 *
 * Exp, erf and gelu, for which others wait, compute in float, the others in double, rounded once: their error is 0.51
 * units in the last place at most. All are made of +, -, * and /, rounded one at a time, so that every instruction set
 * gives the same bits, and polynomials are minimax fits, cut into parts that need not wait for each other.
 * tools/measure_ulp.c looks at every float there is. */
#ifndef DT_CPU_FUNCTIONS_H
#define DT_CPU_FUNCTIONS_H

#include <math.h>

#include "../core/scalar.h"

#define CPU_CLAMP(x, low, high) ((x) < (low) ? (low) : (x) > (high) ? (high) : (x))
#define CPU_LN2 0x1.62e42fefa39efp-1

/* exp(x) = scale * (1 + rest) for |x| < 700: scale is a power of 2, rest as exact near 0 as it is elsewhere. */
static inline double
cpu_exp_parts(double x, double *scale)
{
    const double shift = 0x1.8p52;
    double shifted = x * 0x1.71547652b82fep+0 + shift, n = shifted - shift, r = x - n * CPU_LN2;
    *scale = dt_bits_f64((dt_f64_bits(shifted) + 1023) << 52);
    double q = 0x1.6d748659b30aap-10 + r * 0x1.a1a1c429aafc5p-13;
    q = 0x1.5554add48178ep-5 + r * (0x1.11108f4b9e67cp-7 + r * q);
    q = 0x1.00000027dcf71p-1 + r * (0x1.5555558944247p-3 + r * q);
    return r + r * r * q;
}

/* 1.01 units in the last place. 2 ** n is multiplied in two steps, so that subnormals are rounded once; the lowest bits
 * of shifted are n + 254, which makes two exponents with their offset of 127. */
static inline float
cpu_expf(float x)
{
    const float shift = 0x1.8p23f + 254, y = CPU_CLAMP(x, -104.0f, 89.0f);
    float shifted = y * 0x1.715476p+0f + shift, n = shifted - shift;
    float r = y - n * 0x1.63p-1f - n * -0x1.bd0106p-13f, z = r * r;
    float q = 0x1.5554aep-5f + r * 0x1.110890p-7f + z * (0x1.6d7486p-10f + r * 0x1.a1a1c4p-13f);
    q = 0x1.000000p-1f + (r * 0x1.555556p-3f + z * q);
    uint32_t exponents = dt_f32_bits(shifted), half = exponents >> 1;
    return (1 + (r + z * q)) * dt_bits_f32(half << 23) * dt_bits_f32((exponents - half) << 23);
}

/* 2 ** (start + more) = scale + rest, for a sum from -126 to 0. As near as more is: start less the nearest integer to
 * the sum is exact. */
static inline float
cpu_exp2f_parts(float start, float more, float *scale)
{
    const float shift = 0x1.8p23f + 127;
    float shifted = start + more + shift, f = start - (shifted - shift) + more, z = f * f;
    *scale = dt_bits_f32(dt_f32_bits(shifted) << 23);
    float q = 0x1.c6af7cp-5f + f * 0x1.3b2de0p-7f + z * (0x1.5f082ep-10f + f * 0x1.416b5ep-13f);
    q = 0x1.62e430p-1f + f * 0x1.ebfbdcp-3f + z * q;
    return *scale * (f * q);
}

static inline float
cpu_expm1f(float x)
{
    double scale, rest = cpu_exp_parts((double)CPU_CLAMP(x, -200.0f, 200.0f), &scale);
    return copysignf((float)(scale * rest + (scale - 1)), x);
}

static inline float
cpu_tanhf(float x)
{
    double scale, rest = cpu_exp_parts(2 * (double)CPU_CLAMP(x, -20.0f, 20.0f), &scale);
    double minus_one = scale * rest + (scale - 1);
    return copysignf((float)(minus_one / (minus_one + 2)), x);
}

/* Of a normal positive number: x = 2 ** n * m with m between sqrt(1/2) and sqrt(2), log m by its series of (m - 1) /
 * (m + 1). */
static inline double
cpu_log_normal(double x)
{
    const uint64_t one = UINT64_C(0x3ff0000000000000), root = UINT64_C(0x3fe6a09e667f3bcd); /* 1, sqrt(1/2) */
    uint64_t bits = dt_f64_bits(x), exponent = (bits - root + one) >> 52;                   /* n + 1023 */
    double m = dt_bits_f64(bits + one - (exponent << 52));
    double n = dt_bits_f64(exponent | UINT64_C(0x4330000000000000)) - (0x1p52 + 1023);
    double s = (m - 1) / (m + 1), z = s * s;
    double t = 0x1.2438f01110c0cp-2 + z * 0x1.e2f3374d4557fp-3;
    t = 0x1.555554fde6d32p-1 + z * (0x1.999a7a18f0f5fp-2 + z * t);
    return n * CPU_LN2 + (2 * s + s * z * t);
}

/* What the logarithm of x is, given the one of a normal number. */
static inline float
cpu_log_ends(float x, float log)
{
    log = x < INFINITY ? log : x;
    return x > 0 ? log : x == 0 ? -INFINITY : NAN;
}

static inline float
cpu_logf(float x)
{
    return cpu_log_ends(x, (float)cpu_log_normal((double)x));
}

static inline float
cpu_log2f(float x)
{
    return cpu_log_ends(x, (float)(cpu_log_normal((double)x) * 0x1.71547652b82fep+0));
}

static inline float
cpu_log10f(float x)
{
    return cpu_log_ends(x, (float)(cpu_log_normal((double)x) * 0x1.bcb7b1526e50ep-2));
}

static inline float
cpu_log1pf(float x)
{
    double d = (double)x, near = d - d * d * (0.5 - d * (1.0 / 3)), far = cpu_log_normal(1 + d);
    float log = (float)(fabs(d) < 0x1p-17 ? near : far);
    log = x < INFINITY ? log : x;
    return x > -1 ? log : x == -1 ? -INFINITY : NAN;
}

/* x + x * p(x * x) up to 0.93, and 1 - 2 ** q from there on, where q = log2(1 - erf(|x|)) is a polynomial of |x| - 1,
 * and p one of x * x - 1/2, so that their terms are small where it matters: 0.94 units in the last place. */
static inline float
cpu_erff(float x)
{
    float magnitude = fabsf(x), s = x * x - 0.5f, z = s * s;
    float p =
        0x1.454372p-4f + s * -0x1.2b9074p-6f + z * (0x1.c80aaep-9f + s * (-0x1.26d99ep-11f + s * 0x1.5fe06ap-14f));
    float near = x + x * (-0x1.1ae14ep-5f + s * -0x1.1fd162p-2f + z * p);

    float t = (3.93f < magnitude ? 3.93f : magnitude) - 1, w = t * t, scale;
    float q = -0x1.eb8794p-5f + t * 0x1.da9adap-7f + w * (-0x1.685a8cp-9f + t * 0x1.08e90ep-12f + w * 0x1.3db6c4p-16f);
    q = t * (-0x1.e7532ap+1f + t * -0x1.3761cap+0f + w * q);
    float rest = cpu_exp2f_parts(-0x1.558eaep+1f, q, &scale);
    return magnitude < 0.93f ? near : copysignf(1 - scale - rest, x);
}

/* x * Phi(x), with Phi(-|x|) = 2 ** q, and q a polynomial of |x| - 1/2. Nothing cancels, so that what is left of
 * negative numbers is right as far as q is: to 3 units in the last place above -1, 10 above -2, 50 above -5. It is 0
 * from where the formula with erf is so in double. */
static inline float
cpu_geluf(float x)
{
    const float end = 8.3f;
    float magnitude = fabsf(x), t = magnitude - 0.5f, z = t * t, scale;
    float q =
        0x1.4b0dcep-15f + t * -0x1.0b9f0ep-17f + z * (0x1.f40d6ep-21f + t * -0x1.04f908p-24f + z * 0x1.d630e6p-30f);
    q = -0x1.404300p-5f + t * 0x1.95b5acp-8f + z * (-0x1.0e803ap-11f + t * -0x1.3c1c76p-14f + z * q);
    q = t * (-0x1.a56f2cp+0f + t * -0x1.0e2c16p-1f + z * q);
    float rest = cpu_exp2f_parts(-0x1.b24ca6p+0f, q, &scale);
    float beyond = (end < x ? end : x) * (magnitude < end ? scale + rest : 0);
    return x > 0 ? x - beyond : beyond;
}

/* x less the nearest multiple of pi/2, and that multiple's number in the lowest bits. For |x| < CPU_TURNS_END, where
 * its product with the first part of pi/2 is exact; what is left of x is right to 30 bits. */
#define CPU_TURNS_END 0x1p20f
static inline double
cpu_quarter_turns(double x, uint64_t *number)
{
    const double shift = 0x1.8p52;
    double shifted = x * 0x1.45f306dc9c883p-1 + shift, n = shifted - shift;
    *number = dt_f64_bits(shifted);
    return x - n * 0x1.921fb544p+0 - n * 0x1.0b4611a626331p-34;
}

/* for |r| up to pi/4 */
static inline double
cpu_sin_near(double r)
{
    double z = r * r, s = -0x1.a00f9d2308995p-13 + z * 0x1.6cd838b644f66p-19;
    s = -0x1.5555554cb90e9p-3 + z * (0x1.11110895aa1c5p-7 + z * s);
    return r * (1 + z * s);
}

static inline double
cpu_cos_near(double r)
{
    double z = r * r, c = -0x1.6c0c8aaec3decp-10 + z * 0x1.9a020a676a7d7p-16;
    return 1 + z * (-0.5 + z * (0x1.55554ab2628fep-5 + z * c));
}

/* The sine of r quarter turns further on. */
static inline float
cpu_sin_turned(double r, uint64_t quarters)
{
    double y = quarters & 1 ? cpu_cos_near(r) : cpu_sin_near(r);
    return (float)dt_bits_f64(dt_f64_bits(y) ^ (quarters & 2) << 62);
}

static inline float
cpu_sinf(float x)
{
    uint64_t number;
    double r = cpu_quarter_turns((double)x, &number);
    return cpu_sin_turned(r, number);
}

static inline float
cpu_cosf(float x)
{
    uint64_t number;
    double r = cpu_quarter_turns((double)x, &number);
    return cpu_sin_turned(r, number + 1);
}

static inline float
cpu_tanf(float x)
{
    uint64_t number;
    double r = cpu_quarter_turns((double)x, &number), s = cpu_sin_near(r), c = cpu_cos_near(r);
    return (float)(number & 1 ? -c / s : s / c);
}

/* dt_floordivf and dt_floormodf where CPU_DIVIDES_NEAR: a quotient of doubles rounds to an integer only if it is one,
 * and its product with b is exact, as is what it leaves of a. */
#define CPU_DIVIDES_NEAR(a, b) ((fabsf(a) * 0x1p-20f < fabsf(b)) & (fabsf(b) < INFINITY))
static inline float
cpu_floordivf(float a, float b)
{
    double q = (double)a / (double)b, whole = (double)(int32_t)q;
    double step = dt_bits_f64(dt_f64_bits(1) & (0u - (uint64_t)(whole > q)));
    return (float)copysign(whole - step, q);
}

static inline float
cpu_floormodf(float a, float b)
{
    double x = (double)a, y = (double)b, rest = x - (double)(int32_t)(x / y) * y;
    double step = dt_bits_f64(dt_f64_bits(y) & (0u - (uint64_t)(rest * y < 0)));
    return copysignf((float)(rest + step), b);
}

/* Of float64, where CPU_DIVIDES_NEAR_F64 and with instructions that round once: a quotient that was rounded up to an
 * integer shows in the sign of what it leaves of a, which is exact. */
#define CPU_DIVIDES_NEAR_F64(a, b) ((fabs(a) * 0x1p-51 < fabs(b)) & (fabs(b) < (double)INFINITY))
#if HAS_FMA
static inline double
cpu_step(double step, bool taken)
{
    return dt_bits_f64(dt_f64_bits(step) & (0u - (uint64_t)taken));
}

/* The integer part of a / b, and what it leaves, with the sign of a. */
static inline double
cpu_divided(double a, double b, double *rest)
{
    const double q = trunc(a / b), r = __builtin_fma(-q, b, a);
    const bool over = ((dt_f64_bits(r) ^ dt_f64_bits(a)) >> 63) & (r != 0);
    *rest = r + cpu_step(copysign(b, a), over);
    return q - cpu_step(copysign(1.0, q), over);
}

static inline double
cpu_floordiv(double a, double b)
{
    double r, q = cpu_divided(a, b, &r);
    const bool down = ((dt_f64_bits(r) ^ dt_f64_bits(b)) >> 63) & (r != 0);
    return copysign(q - cpu_step(1, down), a / b);
}

static inline double
cpu_floormod(double a, double b)
{
    double r;
    (void)cpu_divided(a, b, &r);
    const bool down = ((dt_f64_bits(r) ^ dt_f64_bits(b)) >> 63) & (r != 0);
    return copysign(r + cpu_step(b, down), b);
}
#endif

/* as the host's library has them */
#define cpu_fabsf fabsf
#define cpu_sqrtf sqrtf
#define cpu_floorf floorf
#define cpu_ceilf ceilf
#define cpu_rintf rintf
#define cpu_truncf truncf
#define cpu_powf powf

/* not the formulas of scalar.h */
#define cpu_dt_geluf cpu_geluf
#define cpu_dt_floordivf cpu_floordivf
#define cpu_dt_floormodf cpu_floormodf

#endif
