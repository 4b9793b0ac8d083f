/* avx512.c: the inner loops with AVX-512; squares are turned in halves of its vectors. */
#include "../../conv/depthwise.h"

#if defined(__x86_64__)
#include "../transpose.h"

CPU_ISA_AVX512

#define SET cpu_gemm_avx512
#define VECTOR_BYTES 64
#define EACH UP_TO_14
#define VECTORS 2
#define MANY_ROWS 8
#define STEPS 2
#define DEPTH 512
#define FETCH_STEPS 64
#define V_F32 __m512
#define V_F64 __m512d
#define SPLAT_F32 _mm512_set1_ps
#define SPLAT_F64 _mm512_set1_pd
#define FMA_F32 _mm512_fmadd_ps
#define FMA_F64 _mm512_fmadd_pd
#define TWOS_F32(i)                                                                                                    \
    (i), (i) + 2, (i) + 16, (i) + 18, (i) + 4, (i) + 6, (i) + 20, (i) + 22, (i) + 8, (i) + 10, (i) + 24, (i) + 26,     \
        (i) + 12, (i) + 14, (i) + 28, (i) + 30
#define JOINED_F32 0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15
#define PARTED_F32 0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15
#define ZIP_F32(i)                                                                                                     \
    (i), (i) + 16, (i) + 1, (i) + 17, (i) + 2, (i) + 18, (i) + 3, (i) + 19, (i) + 4, (i) + 20, (i) + 5, (i) + 21,      \
        (i) + 6, (i) + 22, (i) + 7, (i) + 23
#define TWOS_F64(i) (i), (i) + 8, (i) + 2, (i) + 10, (i) + 4, (i) + 12, (i) + 6, (i) + 14
#define JOINED_F64 0, 2, 4, 6, 1, 3, 5, 7
#define PARTED_F64 0, 4, 1, 5, 2, 6, 3, 7
#define ZIP_F64(i) (i), (i) + 8, (i) + 1, (i) + 9, (i) + 2, (i) + 10, (i) + 3, (i) + 11
#define TRANSPOSE_F32 transpose_f32
#define TRANSPOSE_F64 transpose_f64
#define V_PACK_F32 __m256
#define V_PACK_F64 __m256d
#define W_F32 __m512
#define W_F64 __m512d
#define MASK_F32 __mmask16
#define MASK_F64 __mmask8
#define READ_F32 _mm512_maskz_loadu_ps
#define READ_F64 _mm512_maskz_loadu_pd
#define WRITE_F32 _mm512_mask_storeu_ps
#define WRITE_F64 _mm512_mask_storeu_pd
#define PAIRS_F32(a, b)                                                                                                \
    _mm512_permutex2var_ps(a, _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30), b)
#define PAIRS_F64(a, b) _mm512_permutex2var_pd(a, _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14), b)
#include "../gemm.inc"

CPU_ISA_END
#endif
