/* generic.c: the inner loops with what the compiler takes for granted. */
#include "../../conv/depthwise.h"

typedef float float_4 __attribute__((vector_size(16), may_alias));
typedef double double_2 __attribute__((vector_size(16), may_alias));

#define SET cpu_gemm_generic
#define VECTOR_BYTES 16
#define EACH UP_TO_4
#define VECTORS 2
#define MANY_ROWS 3
#define STEPS 4
#define DEPTH 256
#define FETCH_STEPS 0
#define V_F32 float_4
#define V_F64 double_2
#define SPLAT_F32(s) ((float_4){0} + (s))
#define SPLAT_F64(s) ((double_2){0} + (s))
#define FMA_F32(a, b, c) ((a) * (b) + (c))
#define FMA_F64(a, b, c) ((a) * (b) + (c))
#define TWOS_F32(i) (i), (i) + 2, (i) + 4, (i) + 6
#define JOINED_F32 0, 1, 2, 3
#define PARTED_F32 0, 1, 2, 3
#define ZIP_F32(i) (i), (i) + 4, (i) + 1, (i) + 5
#define TWOS_F64(i) (i), (i) + 2
#define JOINED_F64 0, 1
#define PARTED_F64 0, 1
#define ZIP_F64(i) (i), (i) + 2
#define V_PACK_F32 float_4
#define V_PACK_F64 double_2
#include "../gemm.inc"
