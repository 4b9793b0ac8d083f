/* gemm_set.h: the matrix product's and convolution's inner loops for one instruction set, with SET the name of its
 * gemm_set, VECTOR_BYTES, EACH, VECTORS, MANY_ROWS, STEPS, DEPTH and FETCH_STEPS (gemm_kernel.h), and for float32 and
 * float64 V_F32, SPLAT_F32, FMA_F32, TWOS_F32(i) and JOINED_F32 (depthwise_plane.h), and for packing V_PACK_F32,
 * TRANSPOSE_F32 and EVENS_F32 (or neither) or W_F32, MASK_F32, READ_F32, WRITE_F32 and PAIRS_F32
 * (gemm_masked.h), and so on. */
#define DT_CAT_(a, b) a##_##b
#define DT_CAT(a, b) DT_CAT_(a, b)

#define PRAGMA_(text) _Pragma(#text)
#define PRAGMA(text) PRAGMA_(text)
#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#define UNROLL_STEPS PRAGMA(clang loop unroll_count(STEPS))
#else
#define UNROLL _Pragma("GCC unroll 32")
#define UNROLL_STEPS PRAGMA(GCC unroll STEPS)
#endif

#define UP_TO_4(X) X(1) X(2) X(3) X(4)
#define UP_TO_6(X) UP_TO_4(X) X(5) X(6)
#define UP_TO_14(X) UP_TO_6(X) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14)

#define KERNEL kernel_f32
#define S float
#define V V_F32
#define SPLAT SPLAT_F32
#define FMA FMA_F32
#include "gemm_kernel.h"
#undef SPLAT
#undef FMA

#define KERNEL kernel_f64
#define S double
#define V V_F64
#define SPLAT SPLAT_F64
#define FMA FMA_F64
#include "gemm_kernel.h"
#undef SPLAT
#undef FMA

#define PACK pack_f32
#define S float
#define V V_PACK_F32
#ifdef TRANSPOSE_F32
#define TRANSPOSE TRANSPOSE_F32
#endif
#ifdef EVENS_F32
#define EVENS EVENS_F32
#endif
#ifdef W_F32
#define W W_F32
#define MASK MASK_F32
#define READ READ_F32
#define WRITE WRITE_F32
#define PAIRS PAIRS_F32
#endif
#include "gemm_pack.h"

#define PACK pack_f64
#define S double
#define V V_PACK_F64
#ifdef TRANSPOSE_F64
#define TRANSPOSE TRANSPOSE_F64
#endif
#ifdef EVENS_F64
#define EVENS EVENS_F64
#endif
#ifdef W_F64
#define W W_F64
#define MASK MASK_F64
#define READ READ_F64
#define WRITE WRITE_F64
#define PAIRS PAIRS_F64
#endif
#include "gemm_pack.h"

#define DOT_ROWS 6 /* with two chains all but a few of 16 registers, and streams enough for the memory */
#define DOT_CHAINS 4

#define DOT dot_f32
#define S float
#define V V_F32
#define FMA FMA_F32
#include "gemm_dot.h"

#define DOT dot_f64
#define S double
#define V V_F64
#define FMA FMA_F64
#include "gemm_dot.h"

#define TILE tile_f32
#define S float
#define V V_F32
#define FMA FMA_F32
#include "depthwise_tile.h"

#define TILE tile_f64
#define S double
#define V V_F64
#define FMA FMA_F64
#include "depthwise_tile.h"

#define PLANE plane_f32
#define S float
#define V V_F32
#define BITS int32_t
#define TWOS TWOS_F32
#define JOINED JOINED_F32
#define FMA FMA_F32
#include "depthwise_plane.h"

#define PLANE plane_f64
#define S double
#define V V_F64
#define BITS int64_t
#define TWOS TWOS_F64
#define JOINED JOINED_F64
#define FMA FMA_F64
#include "depthwise_plane.h"

#define plane_FLOAT16 plane_f32
#define plane_BFLOAT16 plane_f32
#define plane_FLOAT32 plane_f32
#define plane_FLOAT64 plane_f64
#define tile_FLOAT16 tile_f32
#define tile_BFLOAT16 tile_f32
#define tile_FLOAT32 tile_f32
#define tile_FLOAT64 tile_f64
#define IS_HALF_FLOAT16 1
#define IS_HALF_BFLOAT16 1
#define fma_FLOAT16 FMA_F32
#define fma_BFLOAT16 FMA_F32
#define fma_FLOAT32 FMA_F32
#define fma_FLOAT64 FMA_F64
#define dot_FLOAT32 dot_f32
#define dot_FLOAT64 dot_f64
#define DT_EACH "../cpu/gemm_each.h"
#include "../core/each_dtype.h"
#undef DT_EACH
#define DT_EACH "../cpu/depthwise_each.h"
#include "../core/each_dtype.h"

#define PARTS(ENUM, kernel, pack)                                                                                      \
    {                                                                                                                  \
        &kernel, pack, store_##ENUM, dot_one_##ENUM, vectors_##ENUM,                                                   \
        {                                                                                                              \
            depthwise_rows_##ENUM, depthwise_planes_##ENUM, depthwise_tiles_##ENUM, depthwise_each_##ENUM              \
        }                                                                                                              \
    }
const gemm_set SET = {{
    PARTS(FLOAT16, kernel_f32, pack_FLOAT16),
    PARTS(BFLOAT16, kernel_f32, pack_BFLOAT16),
    PARTS(FLOAT32, kernel_f32, pack_f32),
    PARTS(FLOAT64, kernel_f64, pack_f64),
}};
