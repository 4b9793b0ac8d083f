/* gemm_kernels.c: the register blocks of the matrix product, and which of them this processor can run. */
#include <stdlib.h>

#include "gemm.h"

#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 32")
#endif

#define DT_CAT_(a, b) a##_##b
#define DT_CAT(a, b) DT_CAT_(a, b)

#define UP_TO_4(X) X(1) X(2) X(3) X(4)
#define UP_TO_6(X) UP_TO_4(X) X(5) X(6)
#define UP_TO_14(X) UP_TO_6(X) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14)

typedef float float_4 __attribute__((vector_size(16), may_alias));
typedef double double_2 __attribute__((vector_size(16), may_alias));

#define KERNEL generic_f32
#define TARGET
#define S float
#define V float_4
#define EACH UP_TO_4
#define VECTORS 2
#define SPLAT(s) ((V){0} + (s))
#define FMA(a, b, c) ((a) * (b) + (c))
#include "gemm_kernel.h"

#define KERNEL generic_f64
#define TARGET
#define S double
#define V double_2
#define EACH UP_TO_4
#define VECTORS 2
#define SPLAT(s) ((V){0} + (s))
#define FMA(a, b, c) ((a) * (b) + (c))
#include "gemm_kernel.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define AVX2 __attribute__((target("avx2,fma")))

#define KERNEL avx2_f32
#define TARGET AVX2
#define S float
#define V __m256
#define EACH UP_TO_6
#define VECTORS 2
#define SPLAT(s) _mm256_set1_ps(s)
#define FMA(a, b, c) _mm256_fmadd_ps(a, b, c)
#include "gemm_kernel.h"

#define KERNEL avx2_f64
#define TARGET AVX2
#define S double
#define V __m256d
#define EACH UP_TO_6
#define VECTORS 2
#define SPLAT(s) _mm256_set1_pd(s)
#define FMA(a, b, c) _mm256_fmadd_pd(a, b, c)
#include "gemm_kernel.h"

#define KERNEL avx512_f32
#define TARGET __attribute__((target("avx512f")))
#define S float
#define V __m512
#define EACH UP_TO_14
#define VECTORS 2
#define SPLAT(s) _mm512_set1_ps(s)
#define FMA(a, b, c) _mm512_fmadd_ps(a, b, c)
#include "gemm_kernel.h"

#define KERNEL avx512_f64
#define TARGET __attribute__((target("avx512f")))
#define S double
#define V __m512d
#define EACH UP_TO_14
#define VECTORS 2
#define SPLAT(s) _mm512_set1_pd(s)
#define FMA(a, b, c) _mm512_fmadd_pd(a, b, c)
#include "gemm_kernel.h"

/* ---------------------------------------------------------------- packing by transposed squares */

AVX2 static inline void
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

AVX2 static inline void
transpose_f64(__m256d *r)
{
    __m256d a = _mm256_unpacklo_pd(r[0], r[1]), b = _mm256_unpackhi_pd(r[0], r[1]);
    __m256d c = _mm256_unpacklo_pd(r[2], r[3]), d = _mm256_unpackhi_pd(r[2], r[3]);
    r[0] = _mm256_permute2f128_pd(a, c, 0x20);
    r[1] = _mm256_permute2f128_pd(b, d, 0x20);
    r[2] = _mm256_permute2f128_pd(a, c, 0x31);
    r[3] = _mm256_permute2f128_pd(b, d, 0x31);
}

#define PACK avx2_pack_f32
#define S float
#define V __m256
#define LENGTH 8
#define LOAD_V _mm256_loadu_ps
#define STORE_V _mm256_storeu_ps
#define TRANSPOSE transpose_f32
#include "gemm_pack.h"

#define PACK avx2_pack_f64
#define S double
#define V __m256d
#define LENGTH 4
#define LOAD_V _mm256_loadu_pd
#define STORE_V _mm256_storeu_pd
#define TRANSPOSE transpose_f64
#include "gemm_pack.h"
#endif

/* Best first; [0] float32, [1] float64. */
static const struct {
    const char *name;
    gemm_kernel kernels[2];
} sets[] = {
#if defined(__x86_64__)
    {"avx512", {{14, 32, avx512_f32, avx2_pack_f32}, {14, 16, avx512_f64, avx2_pack_f64}}},
    {"avx2", {{6, 16, avx2_f32, avx2_pack_f32}, {6, 8, avx2_f64, avx2_pack_f64}}},
#endif
    {"generic", {{4, 8, generic_f32, NULL}, {4, 4, generic_f64, NULL}}},
};
enum { NSETS = sizeof(sets) / sizeof(*sets) };

static int
best_set(void)
{
    int set = NSETS - 1;
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        set = __builtin_cpu_supports("avx512f") ? 0 : 1;
    }
#endif
    const char *name = getenv("DEVTENSOR_CPU"); /* a lesser set, for comparison */
    for (int i = set; name != NULL && i < NSETS; i++) {
        if (strcmp(name, sets[i].name) == 0) {
            return i;
        }
    }
    return set;
}

const gemm_kernel *
cpu_gemm_kernel(dt_dtype dtype)
{
    static atomic_int chosen; /* plus one; 0: not yet */
    int set = atomic_load_explicit(&chosen, memory_order_relaxed) - 1;
    if (set < 0) {
        set = best_set();
        atomic_store_explicit(&chosen, set + 1, memory_order_relaxed);
    }
    return &sets[set].kernels[dtype == DT_FLOAT64];
}
