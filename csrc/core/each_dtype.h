/* Includes the file DT_EACH once for every dtype in the list of its choice, with
 *
 *   T        storage type          C     type to compute in (float for the half types)
 *   U        unsigned type in which integer arithmetic wraps
 *   NAME     float32, int64 ...    ENUM  FLOAT32, INT64 ...
 *   IS_FLOAT, IS_BOOL              LOAD(v) T to C, STORE(v) C to T
 *   M(fn)    the function of <math.h> for C
 *   E(i, f)  the integer or the float expression of elementwise.def
 *
 * With DT_ONLY, only for the dtypes for which DT_ONLY_float32 and the like are defined.
 *
 * C has no way to make #include part of a macro; this is the one place where the dtypes are listed again. */
#define DT_CAT_(a, b) a##_##b
#define DT_CAT(a, b) DT_CAT_(a, b)
#define DT_IDENTITY(v) (v)

#define IS_FLOAT 0
#define E(i, f) (i)
#define M(fn) fn
#define LOAD(v) DT_IDENTITY(v)
#define STORE(v) ((T)(v))

#define IS_BOOL 1
#define T uint8_t
#define C uint8_t
#define U uint32_t
#define NAME bool
#define ENUM BOOL
#if !defined(DT_ONLY) || defined(DT_ONLY_bool)
#include DT_EACH
#endif
#undef T
#undef C
#undef NAME
#undef ENUM
#undef IS_BOOL

#define IS_BOOL 0
#define T uint8_t
#define C uint8_t
#define NAME uint8
#define ENUM UINT8
#if !defined(DT_ONLY) || defined(DT_ONLY_uint8)
#include DT_EACH
#endif
#undef T
#undef C
#undef NAME
#undef ENUM

#define T int8_t
#define C int8_t
#define NAME int8
#define ENUM INT8
#if !defined(DT_ONLY) || defined(DT_ONLY_int8)
#include DT_EACH
#endif
#undef T
#undef C
#undef NAME
#undef ENUM

#define T int16_t
#define C int16_t
#define NAME int16
#define ENUM INT16
#if !defined(DT_ONLY) || defined(DT_ONLY_int16)
#include DT_EACH
#endif
#undef T
#undef C
#undef NAME
#undef ENUM

#define T int32_t
#define C int32_t
#define NAME int32
#define ENUM INT32
#if !defined(DT_ONLY) || defined(DT_ONLY_int32)
#include DT_EACH
#endif
#undef T
#undef C
#undef U
#undef NAME
#undef ENUM

#define T int64_t
#define C int64_t
#define U uint64_t
#define NAME int64
#define ENUM INT64
#if !defined(DT_ONLY) || defined(DT_ONLY_int64)
#include DT_EACH
#endif
#undef T
#undef C
#undef U
#undef NAME
#undef ENUM

#undef IS_FLOAT
#undef E
#undef M
#undef LOAD
#undef STORE
#define IS_FLOAT 1
#define E(i, f) (f)
#define U uint64_t

#define M(fn) fn##f
#define C float
#define T dt_float16
#define LOAD(v) dt_f16_to_f32(v)
#define STORE(v) dt_f32_to_f16(v)
#define NAME float16
#define ENUM FLOAT16
#if !defined(DT_ONLY) || defined(DT_ONLY_float16)
#include DT_EACH
#endif
#undef T
#undef LOAD
#undef STORE
#undef NAME
#undef ENUM

#define T dt_bfloat16
#define LOAD(v) dt_bf16_to_f32(v)
#define STORE(v) dt_f32_to_bf16(v)
#define NAME bfloat16
#define ENUM BFLOAT16
#if !defined(DT_ONLY) || defined(DT_ONLY_bfloat16)
#include DT_EACH
#endif
#undef T
#undef LOAD
#undef STORE
#undef NAME
#undef ENUM

#define LOAD(v) DT_IDENTITY(v)
#define STORE(v) ((T)(v))
#define T float
#define NAME float32
#define ENUM FLOAT32
#if !defined(DT_ONLY) || defined(DT_ONLY_float32)
#include DT_EACH
#endif
#undef T
#undef C
#undef M
#undef NAME
#undef ENUM

#define M(fn) fn
#define T double
#define C double
#define NAME float64
#define ENUM FLOAT64
#if !defined(DT_ONLY) || defined(DT_ONLY_float64)
#include DT_EACH
#endif
#undef T
#undef C
#undef M
#undef NAME
#undef ENUM
#undef LOAD
#undef STORE
#undef E
#undef U
#undef IS_FLOAT
#undef IS_BOOL
