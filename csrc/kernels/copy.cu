/* copy.cu: casts and strided copies, one kernel for every pair of dtypes. A fill is a copy of an immediate. */
#include "index.h"

#define K_CAST(S, source, D, target)                                                                                   \
    K_KERNEL(k_cast_##source##_##target, k_elementwise_args, a)                                                        \
    {                                                                                                                  \
        K_OUT(D, out, a.array[0]);                                                                                     \
        K_IN(S, x, value, a.array[1]);                                                                                 \
        K_ROLLED DT_FOR(i, a.walk.numel)                                                                               \
        {                                                                                                              \
            int64_t at[2];                                                                                             \
            k_locate(&a.walk, 2, i, at);                                                                               \
            out[at[0]] = dt_cast_##source##_##target(x ? x[at[1]] : value);                                            \
        }                                                                                                              \
    }

#define K_CASTS(S, source)                                                                                             \
    K_CAST(S, source, uint8_t, bool)                                                                                   \
    K_CAST(S, source, uint8_t, uint8)                                                                                  \
    K_CAST(S, source, int8_t, int8)                                                                                    \
    K_CAST(S, source, int16_t, int16)                                                                                  \
    K_CAST(S, source, int32_t, int32)                                                                                  \
    K_CAST(S, source, int64_t, int64)                                                                                  \
    K_CAST(S, source, dt_float16, float16)                                                                             \
    K_CAST(S, source, dt_bfloat16, bfloat16)                                                                           \
    K_CAST(S, source, float, float32)                                                                                  \
    K_CAST(S, source, double, float64)

#define DT_DTYPE(ENUM, name, ctype, bits, dlpack, category) K_CASTS(ctype, name)
#include "../core/dtypes.def"
#undef DT_DTYPE
#undef K_CASTS
#undef K_CAST
