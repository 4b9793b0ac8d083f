/* functions.h: exp, log, tanh and the like of float32, without branches, so that loops over them become vectors.
 *
 * Most compute in float: the error is below 1.02 units in the last place, of atan 1.17, and gelu is less exact far
 * below 0. expm1, log2, log10, pow, tan, atan2, and sin and cos of large numbers compute in double and round once: the
 * error is at most 0.51. A product and a sum are rounded once where FMA says so, and else each on its own, so that all
 * instruction sets give the same bits. The polynomials are minimax fits, most of them made by Sollya's fpminimax for
 * the remainder after the leading terms. They are split into parts that a processor can compute at the same time.
 * tools/checks/measure_ulp.c measures every float. */
#ifndef DT_CPU_FUNCTIONS_H
#define DT_CPU_FUNCTIONS_H

#include <math.h>

#include "../../../core/numbers/scalar.h"
#include "functions_f64.h"

/* a call in a loop keeps it from becoming vectors */
#define CPU_FUNCTION __attribute__((always_inline)) static inline

#define CPU_LN2 0x1.62e42fefa39efp-1

/* exp(x) = scale * (1 + rest) for |x| < 700. scale is a power of 2; the relative error of rest is small near 0 too. */
CPU_FUNCTION double
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

/* a * b + c, rounded once. Without the instruction: the sum in double, cut off towards 0, with its last bit set if that
 * lost anything, so that it rounds to float as the exact sum does. All by arithmetic of bits, of which SSE2 has
 * vectors.
 */
#if HAS_FMA
#define FMA(a, b, c) __builtin_fmaf(a, b, c)
#else
#define FMA(a, b, c) cpu_fmaf(a, b, c)
CPU_FUNCTION float
cpu_fmaf(float a, float b, float c)
{
    const double product = (double)a * (double)b, wide = (double)c, sum = product + wide, part = sum - product;
    const uint64_t bits = dt_f64_bits(sum), rest = dt_f64_bits((product - (sum - part)) + (wide - part));
    const uint64_t finite = ~((((bits << 1) >> 53) + 1) >> 11), magnitude = rest << 1;
    const uint64_t lost = finite & ((magnitude | (0 - magnitude)) >> 63);
    const uint64_t beyond = lost & ((bits ^ rest) >> 63); /* the sum was rounded away from 0 */
    return (float)dt_bits_f64((bits - beyond) | lost);
}
#endif

/* yes or no, both of which are computed: a loop with a branch around FMA becomes no vectors. */
CPU_FUNCTION float
cpu_chosen(bool which, float yes, float no)
{
    const uint32_t mask = 0u - (uint32_t)which;
    return dt_bits_f32((dt_f32_bits(yes) & mask) | (dt_f32_bits(no) & ~mask));
}

/* exp(x) / 2 ** n, for n an integer next to x / log 2 */
CPU_FUNCTION float
cpu_exp_rest(float x, float n)
{
    float r = FMA(n, 0x1.bd0106p-13f, FMA(n, -0x1.63p-1f, x)), z = r * r;
    float q = FMA(z, 0x1.694cc6p-10f, FMA(r, 0x1.123986p-7f, 0x1.555a26p-5f));
    q = FMA(z, q, FMA(r, 0x1.555492p-3f, 0x1.fffffap-2f));
    return 1 + FMA(z, q, r);
}

/* exp(x) = 2 ** n * exp(r), with an error of 1.02 units in the last place. The product with 2 ** n takes two steps, so
 * that a subnormal result is rounded once. The lowest bits of shifted are n + 254: the sum of the two exponents, each
 * with its offset of 127. n is limited from above; then r grows, and the result is infinite in time. Below -104 the
 * result is 0. */
CPU_FUNCTION float
cpu_expf(float x)
{
    const float shift = 0x1.8p23f + 254;
    const uint32_t shifted = dt_f32_bits(FMA(x, 0x1.715476p+0f, shift)), end = dt_f32_bits(shift + 129);
    uint32_t exponents = shifted < end ? shifted : end, half = exponents >> 1;
    float y = cpu_exp_rest(x, dt_bits_f32(exponents) - shift);
    return x < -104 ? 0 : y * dt_bits_f32(half << 23) * dt_bits_f32((exponents - half) << 23);
}

/* 2 ** (start + more) = scale + rest, for a sum from -126 to 0. With n the integer nearest to the sum, start - n is
 * exact, so that only the error of more counts. */
CPU_FUNCTION float
cpu_exp2f_parts(float start, float more, float *scale)
{
    const float shift = 0x1.8p23f + 127;
    float shifted = start + more + shift, f = start - (shifted - shift) + more, z = f * f;
    *scale = dt_bits_f32(dt_f32_bits(shifted) << 23);
    float q = FMA(z, FMA(f, 0x1.416b5ep-13f, 0x1.5f082ep-10f), FMA(f, 0x1.3b2de0p-7f, 0x1.c6af7cp-5f));
    q = FMA(z, q, FMA(f, 0x1.ebfbdcp-3f, 0x1.62e430p-1f));
    return *scale * f * q;
}

CPU_FUNCTION float
cpu_expm1f(float x)
{
    double scale, rest = cpu_exp_parts((double)CPU_CLAMP(x, -200.0f, 200.0f), &scale);
    return copysignf((float)(scale * rest + (scale - 1)), x);
}

/* Below 0.625: x + x ** 3 * p(x * x). From there on: 1 - 1 / d with d = (exp(2 * |x|) + 1) / 2, where the rounding
 * error of d corrects the quotient. The error is 0.95 units in the last place. */
CPU_FUNCTION float
cpu_tanhf(float x)
{
    float z = x * x, w = z * z;
    float p = FMA(w, -0x1.6d4b38p-8f, FMA(z, 0x1.4ff84ap-6f, -0x1.b7d864p-5f));
    p = FMA(w, p, FMA(z, 0x1.11037ep-3f, -0x1.55551cp-2f));
    float near = FMA(x, z * p, x);

    const float shift = 0x1.8p23f + 126, magnitude = fabsf(x);
    const uint32_t bits = dt_f32_bits(magnitude), most = dt_f32_bits(10);
    float y = dt_bits_f32(bits < most ? bits : most);
    float shifted = FMA(y, 0x1.715476p+1f, shift), n = shifted - shift;
    float r = FMA(n, 0x1.bd0106p-14f, FMA(n, -0x1.63p-2f, y)), v = r * r;
    float q = FMA(v, 0x1.6d51c8p-4f, FMA(r, 0x1.122a12p-2f, 0x1.5554e4p-1f));
    q = FMA(v, q, FMA(r, 0x1.5554acp+0f, 2));
    float half = dt_bits_f32(dt_f32_bits(shifted) << 23), start = half + 0.5f, more = half * FMA(v, q, r + r);
    float d = start + more;
    float t = 1 / d, far = 0.5f + FMA(t, t * (more - (d - start)), 0.5f - t);
    return copysignf(cpu_chosen(magnitude >= 0.625f, far, near), x);
}

/* The logarithm to base 2 of a normal positive number: x = 2 ** n * m with m between sqrt(1/2) and sqrt(2), log m by
 * its series of (m - 1) / (m + 1). */
CPU_FUNCTION double
cpu_log2_normal(double x)
{
    const uint64_t one = UINT64_C(0x3ff0000000000000), root = UINT64_C(0x3fe6a09e667f3bcd); /* 1, sqrt(1/2) */
    uint64_t bits = dt_f64_bits(x), exponent = (bits - root + one) >> 52;                   /* n + 1023 */
    double m = dt_bits_f64(bits + one - (exponent << 52));
    double n = dt_bits_f64(exponent | UINT64_C(0x4330000000000000)) - (0x1p52 + 1023);
    double s = (m - 1) / (m + 1), z = s * s;
    double t = 0x1.2777800ff88c9p-1 + z * (0x1.a58d753bdd19dp-2 + z * 0x1.5ce9d0100042cp-2);
    return n + s * (0x1.71547652bee18p1 + z * (0x1.ec709d129df75p-1 + z * t));
}

/* A positive number is 2 ** n * (1 + f) with 1 + f from 0.75 to 1.5. The result, -n * 2 ** 23, added to the bits of the
 * number gives those of 1 + f. */
CPU_FUNCTION uint32_t
cpu_exponent_down(uint32_t bits)
{
    return (dt_f32_bits(0.75f) + 0x7fffff - bits) & 0xff800000;
}

/* log(2 ** n * (1 + f)), with down = -n * 2 ** 23. n times the first part of log 2 is exact; the rounding error of its
 * sum with f is added to the rest of the series. */
CPU_FUNCTION float
cpu_log_sum(float down, float f)
{
    float z = f * f, q = FMA(z, -0x1.66c7fep-5f, FMA(f, 0x1.a9d296p-4f, -0x1.0e9962p-3f));
    q = FMA(z, q, FMA(f, 0x1.2928f4p-3f, -0x1.54e24ap-3f));
    q = FMA(z, q, FMA(f, 0x1.995b3ep-3f, -0x1.00004p-2f));
    float rest = FMA(z, FMA(z, q, f * 0x1.5555dp-2f), -0.5f * z);
    float whole = down * -0x1.62e4p-24f, sum = whole + f;
    return sum + FMA(down, -0x1.7f7d1cp-43f, rest + (f - (sum - whole)));
}

/* A logarithm at and below start, where it is -infinity, and at infinity and NaN; else log. */
CPU_FUNCTION float
cpu_log_ends(float x, float start, float log)
{
    log = x == start ? -INFINITY : log;
    log = x < start ? NAN : log;
    return x < INFINITY ? log : x;
}

CPU_FUNCTION float
cpu_logf(float x)
{
    const bool tiny = x < 0x1p-126f;
    const uint32_t bits = dt_f32_bits(x * cpu_chosen(tiny, 0x1p23f, 1)), down = cpu_exponent_down(bits);
    const uint32_t scaled = (0u - (uint32_t)tiny) & (23u << 23);
    return cpu_log_ends(x, 0, cpu_log_sum((float)(int32_t)(down + scaled), dt_bits_f32(bits + down) - 1));
}

CPU_FUNCTION float
cpu_log2f(float x)
{
    return cpu_log_ends(x, 0, (float)cpu_log2_normal((double)x));
}

CPU_FUNCTION float
cpu_log10f(float x)
{
    return cpu_log_ends(x, 0, (float)(cpu_log2_normal((double)x) * 0x1.34413509f79ffp-2));
}

/* f = (1 + x) / 2 ** n - 1 is exact; for large n, where 2 ** -n is less than a rounding error, it is as good as exact.
 */
CPU_FUNCTION float
cpu_log1pf(float x)
{
    const uint32_t down = cpu_exponent_down(dt_f32_bits(1 + x)), scale = down + dt_f32_bits(1);
    float f = dt_bits_f32(dt_f32_bits(x) + down) - (1 - dt_bits_f32((int32_t)scale > 0 ? scale : 0));
    return cpu_log_ends(x, -1, cpu_log_sum((float)(int32_t)down, f));
}

/* Below 0.93: x + x * p, with p a polynomial of x * x - 1/2. From there on: 1 - 2 ** q, with q = log2(1 - erf(|x|)) a
 * polynomial of |x| - 1. Both are centred where exactness matters. The error is 0.94 units in the last place. */
CPU_FUNCTION float
cpu_erff(float x)
{
    float magnitude = fabsf(x), s = FMA(x, x, -0.5f), z = s * s;
    float p = FMA(s, FMA(s, 0x1.5fe06ap-14f, -0x1.26d99ep-11f), 0x1.c80aaep-9f);
    p = FMA(z, p, FMA(s, -0x1.2b9074p-6f, 0x1.454372p-4f));
    float near = FMA(x, FMA(z, p, FMA(s, -0x1.1fd162p-2f, -0x1.1ae14ep-5f)), x);

    float t = (3.93f < magnitude ? 3.93f : magnitude) - 1, w = t * t, scale;
    float q = FMA(w, 0x1.3db6c4p-16f, FMA(t, 0x1.08e90ep-12f, -0x1.685a8cp-9f));
    q = FMA(w, q, FMA(t, 0x1.da9adap-7f, -0x1.eb8794p-5f));
    q = t * FMA(w, q, FMA(t, -0x1.3761cap+0f, -0x1.e7532ap+1f));
    float rest = cpu_exp2f_parts(-0x1.558eaep+1f, q, &scale);
    return cpu_chosen(magnitude < 0.93f, near, copysignf(1 - scale - rest, x));
}

/* relu(x) - |x| * Phi(-|x|), with Phi(-|x|) = 2 ** q and q a polynomial of |x| - 1/2. Nothing cancels for negative
 * numbers, so that only the error of q counts: 3 units in the last place above -1, 10 above -2, 50 above -5. The result
 * is 0 where the formula with erf gives 0 in double. */
CPU_FUNCTION float
cpu_geluf(float x)
{
    float magnitude = fabsf(x), t = magnitude - 0.5f, z = t * t, w = z * z, scale;
    float q = FMA(z, FMA(t, -0x1.04f908p-24f, 0x1.f40d6ep-21f), FMA(t, -0x1.0b9f0ep-17f, 0x1.4b0dcep-15f));
    q = FMA(w, 0x1.d630e6p-30f, q);
    q = FMA(w, q, FMA(z, FMA(t, -0x1.3c1c76p-14f, -0x1.0e803ap-11f), FMA(t, 0x1.95b5acp-8f, -0x1.404300p-5f)));
    q = t * FMA(z, q, FMA(t, -0x1.0e2c16p-1f, -0x1.a56f2cp+0f));
    float rest = cpu_exp2f_parts(-0x1.b24ca6p+0f, q, &scale);
    float beyond = magnitude * (scale + rest);
    return (x < 0 ? x * 0 : x) - (magnitude < 8.3f ? beyond : 0); /* NaN for -inf, as the formula gives */
}

/* x = n * pi/2 + r + rest, with n the nearest integer, which the lowest bits of number hold. pi/2 is a sum of three
 * floats. For |x| < CPU_TURNS_NEAR the difference with n times the first is exact. */
#define CPU_TURNS_NEAR 0x1p13f
CPU_FUNCTION float
cpu_near_turns(float x, float *rest, uint32_t *number)
{
    const float shift = 0x1.8p23f;
    float shifted = FMA(x, 0x1.45f306p-1f, shift), n = shifted - shift;
    float before = FMA(n, -0x1.921fb6p+0f, x), part = n * 0x1.777a5cp-25f, r = before + part;
    *rest = FMA(n, 0x1.ee59dap-50f, part - (r - before) + FMA(n, 0x1.777a5cp-25f, -part));
    *number = dt_f32_bits(shifted);
    return r;
}

/* sin(r + rest + quarters * pi/2), for |r| up to pi/4 */
CPU_FUNCTION float
cpu_sin_turned(float r, float rest, uint32_t quarters)
{
    float z = r * r, half = 0.5f * z, most = 1 - half;
    float s = FMA(z, FMA(z, -0x1.98dc0cp-13f, 0x1.1105bcp-7f), -0x1.55554p-3f);
    float c = FMA(z, FMA(z, 0x1.99eab8p-16f, -0x1.6c0c2ep-10f), 0x1.55554ap-5f);
    s = r + FMA(r, z * s, rest);
    c = most + (1 - most - half + FMA(z * z, c, -r * rest));
    return dt_bits_f32(dt_f32_bits(quarters & 1 ? c : s) ^ (quarters & 2) << 30);
}

CPU_FUNCTION float
cpu_sinf(float x)
{
    uint32_t number;
    float rest, r = cpu_near_turns(x, &rest, &number), y = cpu_sin_turned(r, rest, number);
    return x == 0 ? x : y;
}

CPU_FUNCTION float
cpu_cosf(float x)
{
    uint32_t number;
    float rest, r = cpu_near_turns(x, &rest, &number);
    return cpu_sin_turned(r, rest, number + 1);
}

/* The same in double, for |x| < CPU_TURNS_WIDE: the result is x - n * pi/2, right to 30 bits. */
#define CPU_TURNS_WIDE 0x1p20f
CPU_FUNCTION double
cpu_wide_turns(double x, uint64_t *number)
{
    const double shift = 0x1.8p52;
    double shifted = x * 0x1.45f306dc9c883p-1 + shift, n = shifted - shift;
    *number = dt_f64_bits(shifted);
    return x - n * 0x1.921fb544p+0 - n * 0x1.0b4611a626331p-34;
}

/* for |r| up to pi/4 */
CPU_FUNCTION double
cpu_sin_near(double r)
{
    double z = r * r, s = -0x1.a00f9d2308995p-13 + z * 0x1.6cd838b644f66p-19;
    s = -0x1.5555554cb90e9p-3 + z * (0x1.11110895aa1c5p-7 + z * s);
    return r * (1 + z * s);
}

CPU_FUNCTION double
cpu_cos_near(double r)
{
    double z = r * r, c = -0x1.6c0c8aaec3decp-10 + z * 0x1.9a020a676a7d7p-16;
    return 1 + z * (-0.5 + z * (0x1.55554ab2628fep-5 + z * c));
}

/* sin(x + quarters * pi/2) */
CPU_FUNCTION float
cpu_sin_wide(float x, uint64_t quarters)
{
    uint64_t number;
    double r = cpu_wide_turns((double)x, &number), s = cpu_sin_near(r), c = cpu_cos_near(r);
    number += quarters;
    return (float)dt_bits_f64(dt_f64_bits(number & 1 ? c : s) ^ (number & 2) << 62);
}

CPU_FUNCTION float
cpu_tanf(float x)
{
    uint64_t number;
    double r = cpu_wide_turns((double)x, &number), s = cpu_sin_near(r), c = cpu_cos_near(r);
    return (float)(number & 1 ? -c / s : s / c);
}

/* 2 ** x for |x| < 1000, right to 34 bits */
CPU_FUNCTION double
cpu_exp2_near(double x)
{
    const double shift = 0x1.8p52 + 1023;
    double shifted = x + shift, f = x - (shifted - shift), z = f * f, scale = dt_bits_f64(dt_f64_bits(shifted) << 52);
    double q = 0x1.5d874c79f776bp-10 + f * 0x1.44400329158d6p-13 + z * 0x1.00dc4e57a1442p-16;
    q = 0x1.c6b08dc5e38c4p-5 + f * 0x1.3b2a1b6d1ac41p-7 + z * q;
    q = 0x1.62e42fef95ec2p-1 + f * 0x1.ebfbe045f90bap-3 + z * q;
    return scale + scale * f * q;
}

/* 2 ** (y * log2(|x|)), negative where x is negative and y is odd. The error is 0.505 units in the last place.
 *
 * cpu_log2_normal gives -1023 for 0 and 1024 for infinity. No other logarithm of a float is as large: these are made so
 * large that the power becomes 0 or infinity.
 *
 * Whether y is odd: |y| / 2 is rounded to an integer and doubled, and rest is how far that is from |y|: 0 for an even
 * integer, 1 for an odd one, between 0 and 1 for a fraction. All floats above 2 ** 24 are even, as 2 ** 24 is. */
CPU_FUNCTION float
cpu_powf(float x, float y)
{
    const float length = fabsf(x), height = fabsf(y), shift = 0x1p23f;
    double log = cpu_log2_normal((double)length);
    log = fabs(log) < 1000 ? log : log * 0x1p200;
    const double power = (double)y * log;
    float value = (float)cpu_exp2_near(fabs(power) > 200 ? copysign(200.0, power) : power);
    value = x == x ? value : x;
    value = y == 0 ? 1 : value;
    value = length == 1 ? 1 : value;

    const float most = height > 0x1p24f ? 0x1p24f : height, half = 0.5f * most + shift - shift;
    const float rest = fabsf(most - (half + half));
    const float odd = rest == 1 ? copysignf(value, x) : value;
    float broken = x < 0 ? NAN : value;
    broken = length < INFINITY ? broken : value;
    return rest * rest == rest ? odd : broken;
}

/* atan(t) for t from 0 to 1, by a polynomial of t * t, right to 34 bits. */
CPU_FUNCTION double
cpu_atan_near(double t)
{
    double z = t * t, w = z * z, v = w * w;
    double low = (-0x1.555555543c558p-2 + z * 0x1.9999971f59379p-3) +
                 w * (-0x1.2491d128ef570p-3 + z * 0x1.c70a6be67ae2cp-4),
           middle = (-0x1.73a719ae3adcap-4 + z * 0x1.36bfd21663df3p-4) +
                    w * (-0x1.ffb2b91f407eap-5 + z * 0x1.83706143f298dp-5);
    double high =
        (-0x1.ea18ae731858ap-6 + z * 0x1.cd243b69cab63p-7) + w * (-0x1.14aba9e5471b0p-8 + z * 0x1.36ecfab2abf10p-11);
    return t + t * z * (low + v * (middle + v * high));
}

/* The angle of the point (x, y): that of the smaller coordinate over the larger one, turned to where it belongs. */
CPU_FUNCTION double
cpu_angle(double y, double x)
{
    const double height = fabs(y), width = fabs(x);
    const double less = height < width ? height : width, more = height < width ? width : height;
    double t = less / (more == 0 ? 1 : more);
    t = less == (double)INFINITY ? 1 : t;
    double angle = cpu_atan_near(t);
    angle = height > width ? 0x1.921fb54442d18p+0 - angle : angle;
    angle = dt_f64_bits(x) >> 63 ? 0x1.921fb54442d18p+1 - angle : angle;
    angle = x == x && y == y ? angle : (double)NAN;
    return copysign(angle, y);
}

CPU_FUNCTION float
cpu_atan2f(float y, float x)
{
    return (float)cpu_angle((double)y, (double)x);
}

#define CPU_HALF_PI 0x1.921fb6p+0f /* and the rest of pi/2 */
#define CPU_HALF_PI_REST -0x1.777a5cp-25f

/* turns * pi/2 + part + rest, for turns 0, or 1 and 2 and a smaller part */
CPU_FUNCTION float
cpu_turned_by(float turns, float part, float rest)
{
    const float start = turns * CPU_HALF_PI, sum = start + part;
    return sum + (part - (sum - start) + FMA(turns, CPU_HALF_PI_REST, rest));
}

/* From the smaller of |x| and its inverse, t, and what is lost of the inverse: pi/2 - atan(1 / x) if |x| is above 1. */
CPU_FUNCTION float
cpu_atanf(float x)
{
    const float magnitude = fabsf(x), m = cpu_chosen(magnitude > 0x1p60f, 0x1p60f, magnitude), inverse = 1 / m;
    const bool far = m > 1;
    const float t = cpu_chosen(far, inverse, m), lost = cpu_chosen(far, inverse * FMA(-inverse, m, 1), 0);
    const float z = t * t, w = z * z;
    float low = FMA(w, FMA(z, 0x1.c0946cp-4f, -0x1.24211ap-3f), FMA(z, 0x1.9991ecp-3f, -0x1.55553ep-2f));
    float high = FMA(z, 0x1.da9c2ep-5f, -0x1.5825f2p-4f);
    high = FMA(w, FMA(w, -0x1.d5a1aap-10f, FMA(z, 0x1.6551e2p-7f, -0x1.fe7d24p-6f)), high);
    const float rest = FMA(t * z, FMA(w * w, high, low), FMA(-0.5f * z, lost, lost));
    const float turns = cpu_chosen(far, 1, 0), sign = cpu_chosen(far, -1, 1);
    return copysignf(cpu_turned_by(turns, sign * t, sign * rest), x);
}

/* asin(|x|) up to 1/2 is s + rest; above, pi/2 minus twice that. There s = sqrt((1 - |x|) / 2), and the rest holds what
 * its rounding lost, of which an inverse to 4 bits is enough. */
CPU_FUNCTION float
cpu_asin_parts(float magnitude, bool far, float *rest)
{
    const float half = FMA(-0.5f, magnitude, 0.5f), root = sqrtf(half);
    const float inverse = dt_bits_f32(0x7ef311c7 - dt_f32_bits(root));
    const float lost = cpu_chosen(far, 0.5f * FMA(-root, root, half) * inverse, 0);
    const float s = cpu_chosen(far, root, magnitude), z = s * s, w = z * z;
    float p = FMA(w, 0x1.5959aap-5f, FMA(z, 0x1.8c415ap-6f, 0x1.747b72p-5f));
    p = FMA(w, p, FMA(z, 0x1.330206p-4f, 0x1.5555c8p-3f));
    *rest = FMA(s * z, p, lost);
    return s;
}

CPU_FUNCTION float
cpu_asinf(float x)
{
    const bool far = fabsf(x) > 0.5f;
    float rest, s = cpu_asin_parts(fabsf(x), far, &rest);
    const float turns = cpu_chosen(far, 1, 0), times = cpu_chosen(far, -2, 1);
    return copysignf(cpu_turned_by(turns, times * s, times * rest), x);
}

CPU_FUNCTION float
cpu_acosf(float x)
{
    const bool far = fabsf(x) > 0.5f;
    float rest, s = cpu_asin_parts(fabsf(x), far, &rest);
    const float sign = copysignf(1, x), turns = cpu_chosen(far, 1 - sign, 1), times = sign * cpu_chosen(far, 2, -1);
    return cpu_turned_by(turns, times * s, times * rest);
}

/* From e = exp(|x|) - 1: sinh = (e + e / (e + 1)) / 2, cosh = 1 + e * e / (e + 1) / 2. */
CPU_FUNCTION double
cpu_expm1_of(float magnitude)
{
    double scale, rest = cpu_exp_parts((double)(magnitude > 200 ? 200 : magnitude), &scale);
    return scale * rest + (scale - 1);
}

CPU_FUNCTION float
cpu_sinhf(float x)
{
    const double e = cpu_expm1_of(fabsf(x));
    return copysignf((float)(0.5 * (e + e / (e + 1))), x);
}

CPU_FUNCTION float
cpu_coshf(float x)
{
    const double e = cpu_expm1_of(fabsf(x));
    return (float)(1 + 0.5 * e * (e / (e + 1)));
}

CPU_FUNCTION float
cpu_asinhf(float x)
{
    const double length = fabs((double)x), square = length * length;
    const float value = copysignf((float)cpu_log1p(length + square / (1 + sqrt(square + 1))), x);
    return length < (double)INFINITY ? value : x;
}

CPU_FUNCTION float
cpu_acoshf(float x)
{
    const double beyond = (double)x - 1;
    const float value = (float)cpu_log1p(beyond + sqrt(beyond * (beyond + 2)));
    return x >= 1 ? value : NAN;
}

CPU_FUNCTION float
cpu_atanhf(float x)
{
    const double length = fabs((double)x);
    return copysignf((float)(0.5 * cpu_log1p(2 * length / (1 - length))), x);
}

/* Squares of floats neither overflow nor vanish in double. */
CPU_FUNCTION float
cpu_hypotf(float a, float b)
{
    const double x = (double)a, y = (double)b;
    const float length = (float)sqrt(x * x + y * y);
    return fabsf(a) == INFINITY || fabsf(b) == INFINITY ? INFINITY : length;
}

/* dt_floordivf and dt_floormodf, where CPU_DIVIDES_NEAR(a, b) holds. Computed in double, the quotient of two such
 * floats is an integer only if the exact one is. The product of that integer with b is exact, and so is the remainder.
 */
#define CPU_DIVIDES_NEAR(a, b) ((fabsf(a) * 0x1p-20f < fabsf(b)) & (fabsf(b) < INFINITY))
CPU_FUNCTION float
cpu_floordivf(float a, float b)
{
    double q = (double)a / (double)b, whole = (double)(int32_t)q;
    double step = dt_bits_f64(dt_f64_bits(1) & (0u - (uint64_t)(whole > q)));
    return (float)copysign(whole - step, q);
}

CPU_FUNCTION float
cpu_floormodf(float a, float b)
{
    double x = (double)a, y = (double)b, rest = x - (double)(int32_t)(x / y) * y;
    double step = dt_bits_f64(dt_f64_bits(y) & (0u - (uint64_t)(rest * y < 0)));
    return copysignf((float)(rest + step), b);
}

/* fmodf, there too */
CPU_FUNCTION float
cpu_fmodf(float a, float b)
{
    double x = (double)a, y = (double)b;
    return copysignf((float)(x - (double)(int32_t)(x / y) * y), a);
}

/* The same for float64, where CPU_DIVIDES_NEAR_F64(a, b) holds and there is a fused multiply-add, which makes the
 * remainder exact. If the quotient was rounded up to an integer, the remainder has the wrong sign. */
#define CPU_DIVIDES_NEAR_F64(a, b) ((fabs(a) * 0x1p-51 < fabs(b)) & (fabs(b) < (double)INFINITY))
#if !HAS_FMA
#define cpu_dt_floordiv dt_floordiv
#define cpu_dt_floormod dt_floormod
#else
CPU_FUNCTION double
cpu_step(double step, bool taken)
{
    return dt_bits_f64(dt_f64_bits(step) & (0u - (uint64_t)taken));
}

/* The integer part of a / b, and the remainder, which has the sign of a. */
CPU_FUNCTION double
cpu_divided(double a, double b, double *rest)
{
    const double q = trunc(a / b), r = __builtin_fma(-q, b, a);
    const bool over = ((dt_f64_bits(r) ^ dt_f64_bits(a)) >> 63) & (r != 0);
    *rest = r + cpu_step(copysign(b, a), over);
    return q - cpu_step(copysign(1.0, q), over);
}

CPU_FUNCTION double
cpu_dt_floordiv(double a, double b)
{
    double r, q = cpu_divided(a, b, &r);
    const bool down = ((dt_f64_bits(r) ^ dt_f64_bits(b)) >> 63) & (r != 0);
    return copysign(q - cpu_step(1, down), a / b);
}

CPU_FUNCTION double
cpu_dt_floormod(double a, double b)
{
    double r;
    (void)cpu_divided(a, b, &r);
    const bool down = ((dt_f64_bits(r) ^ dt_f64_bits(b)) >> 63) & (r != 0);
    return copysign(r + cpu_step(b, down), b);
}
#endif

/* those of the host's C library */
#define cpu_fabsf fabsf
#define cpu_sqrtf sqrtf
#define cpu_floorf floorf
#define cpu_ceilf ceilf
#define cpu_rintf rintf
#define cpu_truncf truncf

/* in place of the formulas of scalar.h */
#define cpu_erfcf erfcf
#define cpu_dt_erfinvf dt_erfinvf
#define cpu_dt_asinf cpu_asinf
#define cpu_dt_geluf cpu_geluf
#define cpu_dt_floordivf cpu_floordivf
#define cpu_dt_floormodf cpu_floormodf

#endif
