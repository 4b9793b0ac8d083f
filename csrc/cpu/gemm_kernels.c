/* gemm_kernels.c: the register blocks of the matrix product, and which of them this processor can run. */
#include <stdlib.h>

#include "gemm.h"

#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 32")
#endif

typedef float float_4 __attribute__((vector_size(16), may_alias));
typedef double double_2 __attribute__((vector_size(16), may_alias));

#define KERNEL generic_f32
#define TARGET
#define S float
#define V float_4
#define ROWS 4
#define VECTORS 2
#define SPLAT(s) ((V){0} + (s))
#define FMA(a, b, c) ((a) * (b) + (c))
#include "gemm_kernel.h"

#define KERNEL generic_f64
#define TARGET
#define S double
#define V double_2
#define ROWS 4
#define VECTORS 2
#define SPLAT(s) ((V){0} + (s))
#define FMA(a, b, c) ((a) * (b) + (c))
#include "gemm_kernel.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define KERNEL avx2_f32
#define TARGET __attribute__((target("avx2,fma")))
#define S float
#define V __m256
#define ROWS 6
#define VECTORS 2
#define SPLAT(s) _mm256_set1_ps(s)
#define FMA(a, b, c) _mm256_fmadd_ps(a, b, c)
#include "gemm_kernel.h"

#define KERNEL avx2_f64
#define TARGET __attribute__((target("avx2,fma")))
#define S double
#define V __m256d
#define ROWS 6
#define VECTORS 2
#define SPLAT(s) _mm256_set1_pd(s)
#define FMA(a, b, c) _mm256_fmadd_pd(a, b, c)
#include "gemm_kernel.h"

#define KERNEL avx512_f32
#define TARGET __attribute__((target("avx512f")))
#define S float
#define V __m512
#define ROWS 14
#define VECTORS 2
#define SPLAT(s) _mm512_set1_ps(s)
#define FMA(a, b, c) _mm512_fmadd_ps(a, b, c)
#include "gemm_kernel.h"

#define KERNEL avx512_f64
#define TARGET __attribute__((target("avx512f")))
#define S double
#define V __m512d
#define ROWS 14
#define VECTORS 2
#define SPLAT(s) _mm512_set1_pd(s)
#define FMA(a, b, c) _mm512_fmadd_pd(a, b, c)
#include "gemm_kernel.h"
#endif

/* Best first; [0] float32, [1] float64. */
static const struct {
    const char *name;
    gemm_kernel kernels[2];
} sets[] = {
#if defined(__x86_64__)
    {"avx512", {{14, 32, avx512_f32}, {14, 16, avx512_f64}}},
    {"avx2", {{6, 16, avx2_f32}, {6, 8, avx2_f64}}},
#endif
    {"generic", {{4, 8, generic_f32}, {4, 4, generic_f64}}},
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
