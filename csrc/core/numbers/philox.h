/* philox.h: counter-based random numbers, the same on every device (Salmon, Moraes, Dror and Shaw, "Parallel random
 * numbers: as easy as 1, 2, 3", SC 2011). Each block of four words makes neighbouring elements of a result, four of
 * float32 and the half types, else two (dt_random_lanes), and nothing else does, so that the order of computing does
 * not matter. Uses +, *, / and sqrt one rounding at a time (DT_MUL, DT_ADD; nothing is fused in floats either), never a
 * library's exp or cos, whose last bits differ from one device to the next. */
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

/* Straight code, so that the loops of the cpu over blocks become vectors. */
#if defined(__GNUC__) && !defined(__clang__) && !defined(__CUDACC__)
#define DT_TEN_ROUNDS _Pragma("GCC unroll 10")
#else
#define DT_TEN_ROUNDS
#endif

typedef struct {
    uint32_t word[4];
} dt_philox_block;

DT_INLINE uint64_t
dt_mul_wide(uint32_t a, uint32_t b)
{
#ifdef __CUDA_ARCH__
    uint64_t product; /* of a product of 64-bit numbers the compiler keeps an addition of zero */
    asm("mul.wide.u32 %0, %1, %2;" : "=l"(product) : "r"(a), "r"(b));
    return product;
#else
    return (uint64_t)a * b;
#endif
}

DT_INLINE dt_philox_block
dt_philox(uint64_t seed, uint64_t counter)
{
    uint32_t c0 = (uint32_t)counter, c1 = (uint32_t)(counter >> 32), c2 = 0, c3 = 0;
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
    DT_TEN_ROUNDS for (int round = 0; round < 10; round++)
    {
        uint64_t p0 = dt_mul_wide(0xD2511F53u, c0), p1 = dt_mul_wide(0xCD9E8D57u, c2);
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

/* Elements that a block makes. */
#define DT_RANDOM_LANES(is_float, itemsize) ((is_float) && (itemsize) <= 4 ? 4 : 2)

DT_INLINE uint64_t
dt_random_half(const dt_philox_block *b, int i)
{
    return (uint64_t)b->word[2 * i + 1] << 32 | b->word[2 * i];
}

/* From low on, as far as range: numbers in [0, 1) with the digits of the dtype's significand are exact there, and never
 * round up to 1. */
DT_INLINE float
dt_random_uniform_f32(uint32_t word, int digits, float low, float range)
{
    const float unit = 1.0f / (float)(1 << digits);
    return low + range * ((float)(int32_t)(word >> (32 - digits)) * unit);
}

DT_INLINE void
dt_random_uniforms_float(uint64_t seed, uint64_t counter, int digits, float low, float range, float *out)
{
    const dt_philox_block b = dt_philox(seed, counter);
    for (int i = 0; i < 4; i++) {
        out[i] = dt_random_uniform_f32(b.word[i], digits, low, range);
    }
}

DT_INLINE void
dt_random_uniforms_double(uint64_t seed, uint64_t counter, int digits, double low, double range, double *out)
{
    const dt_philox_block b = dt_philox(seed, counter);
    const double unit = 1.0 / (double)((uint64_t)1 << digits);
    for (int i = 0; i < 2; i++) {
        out[i] = DT_ADD(low, DT_MUL(range, (double)(int64_t)(dt_random_half(&b, i) >> (64 - digits)) * unit));
    }
}

#define DT_DIGITS_float16 11
#define DT_DIGITS_bfloat16 8
#define DT_DIGITS_float32 24
#define DT_DIGITS_float64 53

/* [low, low + range), bias below 2**-32 for ranges below 2**32 (the high word of a product; Lemire 2019), of words b
 * and a, the high one */
DT_INLINE int64_t
dt_random_integer(uint32_t b, uint32_t a, uint64_t low, uint64_t range)
{
    const uint64_t c = range >> 32, d = range & 0xffffffffu;
    const uint64_t middle = a * d + (b * d >> 32);
    return (int64_t)(low + a * c + (middle >> 32) + ((b * c + (middle & 0xffffffffu)) >> 32));
}

DT_INLINE void
dt_random_integers(uint64_t seed, uint64_t counter, int64_t low, int64_t high, int64_t *out)
{
    const dt_philox_block block = dt_philox(seed, counter);
    for (int i = 0; i < 2; i++) {
        out[i] =
            dt_random_integer(block.word[2 * i], block.word[2 * i + 1], (uint64_t)low, (uint64_t)high - (uint64_t)low);
    }
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

/* Normal numbers by Box and Muller (1958): of two uniform numbers, one in (0, 1], the other of a turn, come two. */
DT_INLINE void
dt_random_normals_double(uint64_t seed, uint64_t counter, double mean, double std, double *out)
{
    const dt_philox_block b = dt_philox(seed, counter);
    double u = (double)((dt_random_half(&b, 0) >> 11) + 1) * 1.1102230246251565e-16;
    double turn = (double)(dt_random_half(&b, 1) >> 11) * 1.1102230246251565e-16;
    double radius = DT_MUL(std, sqrt(DT_MUL(-2.0, dt_random_log(u))));
    out[0] = DT_ADD(mean, DT_MUL(radius, dt_random_cos2pi(turn)));
    out[1] = DT_ADD(mean, DT_MUL(radius, dt_random_cos2pi(turn < 0.25 ? DT_ADD(turn, 0.75) : DT_ADD(turn, -0.25))));
}

/* log(x) for 2**-31 <= x <= 1: x = 2**n * (1 + f) with 1 + f from 0.75 to 1.5, and the series that the cpu's logf has
 * (functions.h), without what it adds for the last bit. */
DT_INLINE float
dt_random_log_f32(float x)
{
    const uint32_t down = (dt_f32_bits(0.75f) + 0x7fffffu - dt_f32_bits(x)) & 0xff800000u; /* -n * 2**23 */
    const float f = dt_bits_f32(dt_f32_bits(x) + down) - 1.0f, z = f * f;
    float q = -0x1.0e9962p-3f + f * 0x1.a9d296p-4f + z * -0x1.66c7fep-5f;
    q = -0x1.54e24ap-3f + f * 0x1.2928f4p-3f + z * q;
    q = -0x1.00004p-2f + f * 0x1.995b3ep-3f + z * q;
    return (float)(int32_t)down * -0x1.62e43p-24f + (f + (z * (f * 0x1.5555dp-2f + z * q) - 0.5f * z));
}

/* The pair of normal numbers, of mean 0, of two words: the first in steps of 2**-31, the second in eighths of a turn to
 * both sides of the nearest quarter. */
DT_INLINE void
dt_random_pair_f32(uint32_t first, uint32_t second, float std, float *out)
{
    const float u = ((float)(int32_t)(first >> 1) + 1.0f) * 0x1p-31f;
    const float radius = std * sqrtf(-2.0f * dt_random_log_f32(u));
    const uint32_t quarter = (second + 0x20000000u) >> 30;
    const float r = (float)(int32_t)(second - (quarter << 30)) * 0x1.921fb6p-30f, z = r * r;
    const float s = r + r * z * (-0x1.55554p-3f + z * (0x1.1105bcp-7f + z * -0x1.98dc0cp-13f));
    const float c = 1.0f - 0.5f * z + z * z * (0x1.55554ap-5f + z * (-0x1.6c0c2ep-10f + z * 0x1.99eab8p-16f));
    const float x = quarter & 1u ? s : c, y = quarter & 1u ? c : s;
    out[0] = radius * dt_bits_f32(dt_f32_bits(x) ^ ((quarter + 1u) & 2u) << 30);
    out[1] = radius * dt_bits_f32(dt_f32_bits(y) ^ (quarter & 2u) << 30);
}

DT_INLINE void
dt_random_normals_float(uint64_t seed, uint64_t counter, float mean, float std, float *out)
{
    const dt_philox_block b = dt_philox(seed, counter);
    dt_random_pair_f32(b.word[0], b.word[1], std, out);
    dt_random_pair_f32(b.word[2], b.word[3], std, out + 2);
    for (int i = 0; i < 4; i++) {
        out[i] = mean + out[i];
    }
}

/* Half of the bits of the next even power of two from n on, at least 3: networks of fewer bits do not reach every
 * permutation. */
DT_INLINE int
dt_random_half_bits(int64_t n)
{
    int half = 3;
    while (half < 31 && ((int64_t)1 << (2 * half)) < n) {
        half++;
    }
    return half;
}

#define DT_PERMUTATION_ROUNDS 8
#define DT_PERMUTATION_BLOCKS 2 /* of the generator */

/* A permutation of [0, 2**(2 * half)): a Feistel network, with a key for each round. */
typedef struct {
    int half;
    uint32_t keys[DT_PERMUTATION_ROUNDS];
} dt_permutation;

DT_INLINE dt_permutation
dt_random_permutation(uint64_t seed, uint64_t offset, int64_t n)
{
    dt_permutation p = {dt_random_half_bits(n), {0}};
    for (int i = 0; i < DT_PERMUTATION_BLOCKS; i++) {
        const dt_philox_block b = dt_philox(seed, offset + (uint64_t)i);
        for (int j = 0; j < 4; j++) {
            p.keys[4 * i + j] = b.word[j];
        }
    }
    return p;
}

/* What a round adds to one half, by the other: every bit of x and of the key reaches every bit that comes out (the last
 * steps of MurmurHash3, with better constants: Wellons, "Prospecting for hash functions", 2018). */
DT_INLINE uint32_t
dt_random_mixed(uint32_t x, uint32_t key)
{
    x ^= key;
    x = (x ^ x >> 16) * 0x7feb352du;
    x = (x ^ x >> 15) * 0x846ca68bu;
    return x ^ x >> 16;
}

/* Entry i of a permutation of [0, n): a permutation of more, walked until it falls below n (Black and Rogaway 2002).
 * Needs no memory and no sorting. */
DT_INLINE int64_t
dt_random_entry(const dt_permutation *p, int64_t i, int64_t n)
{
    const uint32_t mask = ((uint32_t)1 << p->half) - 1;
    uint64_t x = (uint64_t)i;
    do {
        uint32_t left = (uint32_t)(x >> p->half), right = (uint32_t)x & mask;
        for (int round = 0; round < DT_PERMUTATION_ROUNDS; round++) {
            const uint32_t next = left ^ (dt_random_mixed(right, p->keys[round]) & mask);
            left = right;
            right = next;
        }
        x = (uint64_t)left << p->half | right;
    } while (x >= (uint64_t)n);
    return (int64_t)x;
}

#endif
