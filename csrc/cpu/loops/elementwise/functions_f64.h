/* functions_f64.h: exp, log, tanh and the like of float64, as functions.h has those of float32: no branches, the same
 * bits with every instruction set, minimax fits (fpminimax of Sollya), errors in docs/performance-notes.md. The
 * functions at the end are the C library's, which take one number at a time. */
#ifndef DT_CPU_FUNCTIONS_F64_H
#define DT_CPU_FUNCTIONS_F64_H

#include <math.h>

#include "../../../core/numbers/scalar.h"

#define CPU_CLAMP(x, low, high) ((x) < (low) ? (low) : (x) > (high) ? (high) : (x))
#define CPU_LN2_HIGH 0x1.62e42fefa4p-1 /* 41 bits, so that its product with an exponent is exact */
#define CPU_LN2_LOW -0x1.8432a1b0e2634p-43

/* exp(x) = high * low * (1 + r + rest) for x from -746, where it is 0, to 710, where it is infinite; high and low are
 * powers of 2, so that subnormals are rounded once. */
static inline double
cpu_exp_exact(double x, double *high, double *low, double *rest)
{
    const double shift = 0x1.8p52 + 2046;
    double shifted = x * 0x1.71547652b82fep+0 + shift, n = shifted - shift;
    double before = x - n * CPU_LN2_HIGH, part = n * CPU_LN2_LOW, r = before - part, z = r * r, w = z * z;
    uint64_t exponents = dt_f64_bits(shifted), half = exponents >> 1;
    *high = dt_bits_f64(half << 52);
    *low = dt_bits_f64((exponents - half) << 52);
    double q =
        0x1.a019b896f759fp-16 + r * 0x1.71ddf774fd279p-19 + z * (0x1.2891fac33feefp-22 + r * 0x1.af61e6a5b4eafp-26);
    q = 0x1.5555555553cc8p-5 + r * 0x1.111111110f8d3p-7 + z * (0x1.6c16c178b34ap-10 + r * 0x1.a01a01afbca7bp-13) +
        w * q;
    *rest = before - r - part + z * (0x1.0000000000001p-1 + (r * 0x1.5555555555558p-3 + z * q));
    return r;
}

static inline double
cpu_exp(double x)
{
    double high, low, rest, r = cpu_exp_exact(CPU_CLAMP(x, -746.0, 710.0), &high, &low, &rest);
    return (1 + (r + rest)) * high * low;
}

/* (high - less) + high * (r + rest); the rounding error of the first difference is added to the rest. */
static inline double
cpu_exp_less(double high, double less, double r, double rest)
{
    double whole = high - less, part = high * r, sum = whole + part;
    return sum + (part - (sum - whole) + high * rest);
}

static inline double
cpu_expm1(double x)
{
    double high, low, rest, r = cpu_exp_exact(CPU_CLAMP(x, -40.0, 710.0), &high, &low, &rest);
    double inverse = dt_bits_f64((UINT64_C(2046) << 52) - dt_f64_bits(low));
    return copysign(cpu_exp_less(high, inverse, r, rest) * low, x);
}

/* From exp(2 * |x|) - 1. |x| is limited to 22, where the result is 1. */
static inline double
cpu_tanh(double x)
{
    double twice = 2 * fabs(x), high, low, rest, r = cpu_exp_exact(twice > 44 ? 44 : twice, &high, &low, &rest);
    double e = cpu_exp_less(high * low, 1, r, rest);
    return copysign(e / (e + 2), x);
}

/* A positive number is 2 ** n * (1 + f) with 1 + f from sqrt(1/2) to sqrt(2). The result, -n * 2 ** 52, added to the
 * bits of the number gives those of 1 + f. */
static inline uint64_t
cpu_exponent_down_f64(uint64_t bits)
{
    return (UINT64_C(0x3fe6a09e667f3bcd) + UINT64_C(0xfffffffffffff) - bits) & UINT64_C(0xfff0000000000000);
}

/* log(2 ** (n - less) * (1 + f)) + more, by its series of f / (2 + f). */
static inline double
cpu_log_sum_f64(uint64_t down, double less, double f, double more)
{
    const uint64_t exponent = (dt_f64_bits(1) - down) >> 52; /* n + 1023 */
    double minus_n = 0x1p52 + 1023 + less - dt_bits_f64(exponent | UINT64_C(0x4330000000000000));
    double s = f / (2 + f), z = s * s, w = z * z, half = 0.5 * f * f;
    double q = 0x1.7462b8e160c0bp-3 + z * 0x1.39fdd4d725afap-3 + w * 0x1.2b5ee909914abp-3;
    q = 0x1.2492492dfaf14p-2 + z * 0x1.c71c62d7326b3p-3 + w * q;
    q = z * (0x1.5555555555558p-1 + z * 0x1.99999999952bep-2 + w * q);
    return minus_n * -CPU_LN2_HIGH + (f - (half - (s * (half + q) + (more - minus_n * CPU_LN2_LOW))));
}

/* A logarithm at and below start, where it is -infinity, and at infinity and NaN; else log. */
static inline double
cpu_log_ends_f64(double x, double start, double log)
{
    log = x == start ? -(double)INFINITY : log;
    log = x < start ? (double)NAN : log;
    return x < (double)INFINITY ? log : x;
}

static inline double
cpu_log(double x)
{
    const bool tiny = x < 0x1p-1022;
    const uint64_t bits = dt_f64_bits(tiny ? x * 0x1p52 : x), down = cpu_exponent_down_f64(bits);
    return cpu_log_ends_f64(x, 0, cpu_log_sum_f64(down, tiny ? 52 : 0, dt_bits_f64(bits + down) - 1, 0));
}

/* f = (1 + x) / 2 ** n - 1, and its rounding error */
static inline double
cpu_log1p(double x)
{
    const uint64_t down = cpu_exponent_down_f64(dt_f64_bits(1 + x)), scale = down + dt_f64_bits(1);
    double whole = 1 - dt_bits_f64((int64_t)scale > 0 ? scale : 0), part = dt_bits_f64(dt_f64_bits(x) + down);
    double f = part - whole;
    return cpu_log_ends_f64(x, -1, cpu_log_sum_f64(down, 0, f, part - (f + whole)));
}

/* x = n * pi/2 + r + rest, with n the nearest integer, for |x| < CPU_TURNS_F64. pi/2 is a sum of parts. The products of
 * n with all parts but the last are exact, and rest has the rounding errors of the differences. */
#define CPU_TURNS_F64 0x1p20
static inline double
cpu_turns_f64(double x, double *rest, uint64_t *number)
{
    const double shift = 0x1.8p52;
    double shifted = x * 0x1.45f306dc9c883p-1 + shift, n = shifted - shift;
    double before = x - n * 0x1.921fb544p+0, part = n * 0x1.0b4611a6p-34, later = n * 0x1.3198a2ep-69;
    double between = before - part, r = between - later;
    *rest = before - between - part + (between - r - later) - n * 0x1.b839a252049c1p-104;
    *number = dt_f64_bits(shifted);
    return r;
}

/* sin(x + quarters * pi/2) */
static inline double
cpu_sin_quarters(double x, uint64_t quarters)
{
    uint64_t number;
    double rest, r = cpu_turns_f64(x, &rest, &number), z = r * r, w = z * z, half = 0.5 * z, most = 1 - half;
    double s = 0x1.71de37b03c015p-19 + z * -0x1.ae601f55662fap-26 + w * 0x1.5e10f0f11bf55p-33;
    double c = -0x1.27e4fa02af779p-22 + z * 0x1.1eeb578692166p-29 + w * -0x1.907340f51a304p-37;
    s = -0x1.5555555555555p-3 + z * (0x1.1111111110c7fp-7 + z * -0x1.a01a019ea010ap-13 + w * s);
    c = 0x1.5555555555555p-5 + z * (-0x1.6c16c16c168cap-10 + z * 0x1.a01a019f3823fp-16 + w * c);
    s = r + (rest + r * z * s);
    c = most + (1 - most - half + (w * c - r * rest));
    number += quarters;
    return dt_bits_f64(dt_f64_bits(number & 1 ? c : s) ^ (number & 2) << 62);
}

static inline double
cpu_sin(double x)
{
    double y = cpu_sin_quarters(x, 0);
    return x == 0 ? x : y;
}

static inline double
cpu_cos(double x)
{
    return cpu_sin_quarters(x, 1);
}

#define cpu_fabs fabs
#define cpu_sqrt sqrt
#define cpu_floor floor
#define cpu_ceil ceil
#define cpu_rint rint
#define cpu_trunc trunc
#define cpu_log2 log2
#define cpu_log10 log10
#define cpu_tan tan
#define cpu_erf erf
#define cpu_pow pow
#define cpu_dt_asin asin
#define cpu_acos acos
#define cpu_atan atan
#define cpu_sinh sinh
#define cpu_cosh cosh
#define cpu_asinh asinh
#define cpu_acosh acosh
#define cpu_atanh atanh
#define cpu_fmod fmod
#define cpu_atan2 atan2
#define cpu_hypot hypot
#define cpu_erfc erfc
#define cpu_dt_erfinv dt_erfinv
#define cpu_dt_gelu dt_gelu

#endif
