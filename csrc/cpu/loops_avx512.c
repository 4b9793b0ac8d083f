/* loops_avx512.c: the loops with the parts of AVX-512 that all such processors for servers and desktops have. */
#include "loops.h"

#if defined(__x86_64__)
#include <immintrin.h>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,f16c"))),                  \
                             apply_to = function)
#else
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx2,f16c")
#endif

#define SET avx512
#define HAS_F16C 1
#include "loops_set.h"

#if defined(__clang__)
#pragma clang attribute pop
#endif
#endif
