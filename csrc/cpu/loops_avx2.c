/* loops_avx2.c: the loops with AVX2, and its conversions of float16. */
#include "loops.h"

#if defined(__x86_64__)
#include <immintrin.h>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,f16c"))), apply_to = function)
#else
#pragma GCC target("avx2,f16c")
#endif

#define SET avx2
#define HAS_F16C 1
#include "loops_set.h"

#if defined(__clang__)
#pragma clang attribute pop
#endif
#endif
