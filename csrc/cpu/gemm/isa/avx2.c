/* avx2.c: the inner loops with AVX2 and FMA. */
#include "../../conv/depthwise.h"

#if defined(__x86_64__)
#include "../transpose.h"

CPU_ISA_AVX2

#define SET cpu_gemm_avx2
#define VECTOR_BYTES 32
#define EACH UP_TO_6
#define VECTORS 2
#define MANY_ROWS 4
#define STEPS 4
#define DEPTH 256
#define FETCH_STEPS 0
#define V_F32 __m256
#define V_F64 __m256d
#define SPLAT_F32 _mm256_set1_ps
#define SPLAT_F64 _mm256_set1_pd
#define FMA_F32 _mm256_fmadd_ps
#define FMA_F64 _mm256_fmadd_pd
#define TWOS_F32(i) (i), (i) + 2, (i) + 8, (i) + 10, (i) + 4, (i) + 6, (i) + 12, (i) + 14
#define JOINED_F32 0, 1, 4, 5, 2, 3, 6, 7
#define PARTED_F32 0, 1, 4, 5, 2, 3, 6, 7
#define ZIP_F32(i) (i), (i) + 8, (i) + 1, (i) + 9, (i) + 2, (i) + 10, (i) + 3, (i) + 11
#define TWOS_F64(i) (i), (i) + 4, (i) + 2, (i) + 6
#define JOINED_F64 0, 2, 1, 3
#define PARTED_F64 0, 2, 1, 3
#define ZIP_F64(i) (i), (i) + 4, (i) + 1, (i) + 5
#define TRANSPOSE_F32 transpose_f32
#define TRANSPOSE_F64 transpose_f64
#define EVENS_F32 evens_f32
#define EVENS_F64 evens_f64
#define V_PACK_F32 __m256
#define V_PACK_F64 __m256d
#include "../gemm.inc"

CPU_ISA_END
#endif
