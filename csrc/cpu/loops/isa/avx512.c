/* avx512.c: the loops with the parts of AVX-512 that all such processors for servers and desktops have. */
#include "../../../core/numbers/philox.h"
#include "../loops.h"

#if defined(__x86_64__)
#include <immintrin.h>

CPU_ISA_AVX512

#define SET avx512
#define VECTOR_BYTES 64
#define HAS_F16C 1
#define HAS_FMA 1
#define HAS_INT64_CASTS 1
#include "../loops.inc"

CPU_ISA_END
#endif
