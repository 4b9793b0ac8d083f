/* transpose.h: squares of numbers in 256-bit vectors, turned; every other number of two vectors. */
#ifndef DT_CPU_GEMM_TRANSPOSE_H
#define DT_CPU_GEMM_TRANSPOSE_H

#include <immintrin.h>

__attribute__((target("avx2"))) static inline void
transpose_f32(__m256 *r)
{
    __m256 t[8], u[8];
    for (int i = 0; i < 4; i++) {
        t[2 * i] = _mm256_unpacklo_ps(r[2 * i], r[2 * i + 1]);
        t[2 * i + 1] = _mm256_unpackhi_ps(r[2 * i], r[2 * i + 1]);
    }
    for (int i = 0; i < 8; i += 4) {
        u[i] = _mm256_shuffle_ps(t[i], t[i + 2], 0x44);
        u[i + 1] = _mm256_shuffle_ps(t[i], t[i + 2], 0xee);
        u[i + 2] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0x44);
        u[i + 3] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0xee);
    }
    for (int i = 0; i < 4; i++) {
        r[i] = _mm256_permute2f128_ps(u[i], u[i + 4], 0x20);
        r[i + 4] = _mm256_permute2f128_ps(u[i], u[i + 4], 0x31);
    }
}

__attribute__((target("avx2"))) static inline void
transpose_f64(__m256d *r)
{
    __m256d a = _mm256_unpacklo_pd(r[0], r[1]), b = _mm256_unpackhi_pd(r[0], r[1]);
    __m256d c = _mm256_unpacklo_pd(r[2], r[3]), d = _mm256_unpackhi_pd(r[2], r[3]);
    r[0] = _mm256_permute2f128_pd(a, c, 0x20);
    r[1] = _mm256_permute2f128_pd(b, d, 0x20);
    r[2] = _mm256_permute2f128_pd(a, c, 0x31);
    r[3] = _mm256_permute2f128_pd(b, d, 0x31);
}

/* a's even numbers, then b's odd ones. */
__attribute__((target("avx2"))) static inline __m256
evens_f32(__m256 a, __m256 b)
{
    const __m256d pairs = _mm256_castps_pd(_mm256_shuffle_ps(a, b, 0xd8));
    return _mm256_castpd_ps(_mm256_permute4x64_pd(pairs, 0xd8));
}

__attribute__((target("avx2"))) static inline __m256d
evens_f64(__m256d a, __m256d b)
{
    return _mm256_permute4x64_pd(_mm256_shuffle_pd(a, b, 0xa), 0xd8);
}

#endif
