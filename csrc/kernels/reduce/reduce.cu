/* reduce.cu: every reduction of reductions.def, for every dtype. Integers accumulate in int64, floats in double. */
#include "../index.h"
#include "../moments.h"

/* k_step_sum_int64_t(acc, x), k_finish_sum_int64_t(acc, n), k_identity_sum_int64_t() and the same in double and float.
 * For the kinds that compare, the step says whether x replaces acc. */
#define K_STEPS(name, identity, step, finish)                                                                          \
    DT_DEVICE C DT_CAT(k_step_##name, C)(C acc, C x)                                                                   \
    {                                                                                                                  \
        return step;                                                                                                   \
    }                                                                                                                  \
    DT_DEVICE C DT_CAT(k_identity_##name, C)(void)                                                                     \
    {                                                                                                                  \
        return identity;                                                                                               \
    }                                                                                                                  \
    DT_DEVICE C DT_CAT(k_finish_##name, C)(C acc, C n)                                                                 \
    {                                                                                                                  \
        (void)n;                                                                                                       \
        return finish;                                                                                                 \
    }
#define DT_REDUCE(name, kind, identity, step, finish, doc) K_STEPS(name, identity, step, finish)
#define DT_CAT_(a, b) a##_##b
#define DT_CAT(a, b) DT_CAT_(a, b)

#define C int64_t
#define U uint64_t
#define E(i, f) (i)
#include "../../core/reductions.def"
#undef C
#undef U
#undef E

#define C double
#define U uint64_t
#define E(i, f) (f)
#include "../../core/reductions.def"
#undef C
#undef U
#undef E

#define C float
#define U uint64_t
#define E(i, f) (f)
#include "../../core/reductions.def"
#undef C
#undef U
#undef E
#undef DT_REDUCE
#undef K_STEPS
#undef DT_CAT_
#undef DT_CAT

#undef DT_ROOM
#define DT_ROOM , 4 /* 1024 threads of a multiprocessor, each with 64 bytes in flight */
#define DT_EACH "../kernels/reduce/reduce.inc"
#include "../../core/each_dtype.inc"
#undef DT_EACH
#undef DT_ROOM
#define DT_ROOM
