/* philox.h: counter-based random numbers, the same on every device (Salmon, Moraes, Dror and Shaw, "Parallel random
 * numbers: as easy as 1, 2, 3", SC 2011). Element i of a result uses counter offset + i and nothing else, so that the
 * order of computing does not matter. Uses +, * and sqrt one rounding at a time (DT_MUL, DT_ADD), never a library's exp
 * or cos, whose last bits differ from one device to the next. */
#ifndef DT_PHILOX_H
#define DT_PHILOX_H

#include "scalar.h"

#ifdef __CUDACC__ /* keeps nvcc from fusing a product and a sum */
#define DT_MUL(a, b) __dmul_rn(a, b)
#define DT_ADD(a, b) __dadd_rn(a, b)
#else
#define DT_MUL(a, b) ((a) * (b)) /* built with -ffp-contract=off */
#define DT_ADD(a, b) ((a) + (b))
#endif

typedef struct {
    uint32_t word[4];
} dt_philox_block;

DT_INLINE dt_philox_block
dt_philox(uint64_t seed, uint64_t counter)
{
    uint32_t c0 = (uint32_t)counter, c1 = (uint32_t)(counter >> 32), c2 = 0, c3 = 0;
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)0xD2511F53u * c0, p1 = (uint64_t)0xCD9E8D57u * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)p0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    dt_philox_block block = {{c0, c1, c2, c3}};
    return block;
}

DT_INLINE uint64_t
dt_random_bits(uint64_t seed, uint64_t counter)
{
    dt_philox_block b = dt_philox(seed, counter);
    return (uint64_t)b.word[1] << 32 | b.word[0];
}

/* [0, 1), a multiple of 2**-digits: with the digits of a dtype's significand it is exact there, and never rounds up to
 * 1. */
DT_INLINE double
dt_random_unit(uint64_t seed, uint64_t counter, int digits)
{
    return (double)(dt_random_bits(seed, counter) >> (64 - digits)) / (double)((uint64_t)1 << digits);
}

#define DT_DIGITS_float16 11
#define DT_DIGITS_bfloat16 8
#define DT_DIGITS_float32 24
#define DT_DIGITS_float64 53

/* [low, high), bias below 2**-32 for ranges below 2**32 (the high word of a product; Lemire 2019) */
DT_INLINE int64_t
dt_random_integer(uint64_t seed, uint64_t counter, int64_t low, int64_t high)
{
    uint64_t range = (uint64_t)high - (uint64_t)low, bits = dt_random_bits(seed, counter);
    uint64_t a = bits >> 32, b = bits & 0xffffffffu, c = range >> 32, d = range & 0xffffffffu;
    uint64_t middle = a * d + (b * d >> 32);
    uint64_t top = a * c + (middle >> 32) + ((b * c + (middle & 0xffffffffu)) >> 32);
    return (int64_t)((uint64_t)low + top);
}

/* log(x) for 0 < x <= 1: x = m * 2**e with m in [sqrt(1/2), sqrt(2)), then the series of atanh. Error below 1e-15. */
DT_INLINE double
dt_random_log(double x)
{
    uint64_t bits = dt_f64_bits(x);
    int e = (int)(bits >> 52) - 1023;
    double m = dt_bits_f64((bits & 0xfffffffffffffu) | 0x3ff0000000000000u);
    if (m > 1.4142135623730951) {
        m = DT_MUL(m, 0.5);
        e++;
    }
    double t = DT_ADD(m, -1.0) / DT_ADD(m, 1.0), s = DT_MUL(t, t), sum = 1.0 / 21;
    for (int k = 19; k >= 1; k -= 2) {
        sum = DT_ADD(DT_MUL(sum, s), 1.0 / k);
    }
    return DT_ADD(DT_MUL((double)e, 0.6931471805599453), DT_MUL(DT_MUL(2.0, t), sum));
}

/* cos(2 pi x) for 0 <= x < 1, by symmetry to [0, 1/4] and Taylor's series. Error below 1e-15. */
DT_INLINE double
dt_random_cos2pi(double x)
{
    double y = x > 0.5 ? DT_ADD(1.0, -x) : x; /* cos is even around 1/2 */
    double sign = y > 0.25 ? -1.0 : 1.0;
    y = y > 0.25 ? DT_ADD(0.5, -y) : y;
    double angle = DT_MUL(y, 6.283185307179586), s = DT_MUL(angle, angle), sum = 1.0;
    for (int k = 20; k >= 2; k -= 2) {
        sum = DT_ADD(1.0, -DT_MUL(sum, DT_MUL(s, 1.0 / (k * (k - 1)))));
    }
    return DT_MUL(sign, sum);
}

/* Standard normal by Box and Muller (1958); both uniforms come from one block. */
DT_INLINE double
dt_random_normal(uint64_t seed, uint64_t counter)
{
    dt_philox_block b = dt_philox(seed, counter);
    uint64_t first = ((uint64_t)b.word[1] << 32 | b.word[0]) >> 11,
             second = ((uint64_t)b.word[3] << 32 | b.word[2]) >> 11;
    double u = (double)(first + 1) * 1.1102230246251565e-16; /* (0, 1] */
    double radius = sqrt(DT_MUL(-2.0, dt_random_log(u)));
    return DT_MUL(radius, dt_random_cos2pi((double)second * 1.1102230246251565e-16));
}

/* Entry i of a permutation of [0, n): a Feistel network over the next even power of two, walked until it falls below n
 * (Black and Rogaway 2002). Needs no memory and no sorting. */
DT_INLINE int64_t
dt_random_permutation(uint64_t seed, uint64_t offset, int64_t i, int64_t n)
{
    int half = 1;
    while (half < 31 && ((int64_t)1 << (2 * half)) < n) {
        half++;
    }
    uint64_t mask = ((uint64_t)1 << half) - 1, x = (uint64_t)i;
    do {
        uint64_t left = x >> half, right = x & mask;
        for (uint64_t round = 0; round < 8; round++) {
            uint64_t next = left ^ (dt_random_bits(seed ^ right << 3 ^ round, offset) & mask);
            left = right;
            right = next;
        }
        x = left << half | right;
    } while (x >= (uint64_t)n);
    return (int64_t)x;
}

#endif
