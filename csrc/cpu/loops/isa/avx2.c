/* avx2.c: the loops with AVX2, and its conversions of float16. */
#include "../../../core/numbers/philox.h"
#include "../loops.h"

#if defined(__x86_64__)
#include <immintrin.h>

CPU_ISA_AVX2

#define SET avx2
#define VECTOR_BYTES 32
#define HAS_F16C 1
#define HAS_FMA 1
#define HAS_INT64_CASTS 0
#include "../loops.inc"

CPU_ISA_END
#endif
