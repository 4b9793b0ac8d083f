/* elementwise_each.h: the rows of elementwise.def for one dtype. Included by each_dtype.h. The functions of <math.h>
 * are those of functions.h. */
#if !DT_CAT(IS_HALF, ENUM)

#if DT_CAT(IS_F32, ENUM)
#undef M
#define M(fn) cpu_##fn##f
#elif DT_CAT(IS_F64, ENUM)
#undef M
#define M(fn) cpu_##fn
#endif

#if IS_FLOAT
#define HAS_ARITH 1
#define HAS_FLOAT 1
#define HAS_ROUND 1
#define HAS_FTEST 1
#define HAS_BITS 0
#define GET(v) (v)
#define PARAM(k) ((C)(params ? params->f[k] : 0))
#else
#define HAS_FLOAT 0
#define HAS_ROUND 0
#define HAS_FTEST 0
#define HAS_BITS 1
#define PARAM(k) ((C)(params ? params->i[k] : 0))
#if IS_BOOL
#define HAS_ARITH 0
#define GET(v) ((C)((v) != 0))
#define RESULT_BITS(v) ((v)&1)
#else
#define HAS_ARITH 1
#define GET(v) (v)
#define RESULT_BITS(v) (v)
#endif
#endif
#define HAS_POWER HAS_ARITH
#define HAS_TEST 1
#define HAS_COMPARE 1
#define HAS_LOGIC IS_BOOL
#define HAS_MIRRORED 0
#define OUT_ARITH T
#define OUT_FLOAT T
#define OUT_POWER T
#define OUT_ROUND T
#define OUT_BITS T
#define OUT_TEST uint8_t
#define OUT_FTEST uint8_t
#define OUT_COMPARE uint8_t
#define OUT_LOGIC uint8_t

#if HAS_BITS && !IS_BOOL
/* a / b without its fraction. Floats divide by vectors; no quotient of 32-bit integers is so near to the next integer
 * that it would be rounded to it. */
static inline C
DT_CAT(truncdiv, ENUM)(C a, C b)
{
    if (sizeof(C) == sizeof(int64_t)) {
        return (C)dt_int_truncdiv(a, b);
    }
    const bool turns = (C)-1 < 0 && b == (C)-1; /* -1: the least number has no opposite */
    const C plain = b == 0 || turns ? 1 : b;
    const C quotient = (C)(int32_t)((double)a / (double)plain);
    return b == 0 ? 0 : turns ? NEG(a) : quotient;
}

static inline C
DT_CAT(floordiv, ENUM)(C a, C b)
{
    const C q = DT_CAT(truncdiv, ENUM)(a, b), rest = SUB(a, MUL(q, b));
    return b != 0 && rest != 0 && (a < 0) != (b < 0) ? (C)(q - 1) : q;
}

static inline C
DT_CAT(floormod, ENUM)(C a, C b)
{
    const C q = DT_CAT(truncdiv, ENUM)(a, b), rest = SUB(a, MUL(q, b));
    return b == 0 ? 0 : rest != 0 && (rest < 0) != (b < 0) ? (C)(rest + b) : rest;
}
#endif

#define UNARY_ROW(name, kind, R, expr)                                                                                 \
    static void DT_CAT(unary_##name, ENUM)(char *const *data, const int64_t *strides, int64_t n, const void *ctx)      \
    {                                                                                                                  \
        const dt_params *params = ctx;                                                                                 \
        const C p0 = PARAM(0), p1 = PARAM(1);                                                                          \
        const int64_t so = strides[0], sx = strides[1];                                                                \
        R *out = (R *)data[0];                                                                                         \
        const T *px = (const T *)data[1];                                                                              \
        (void)p0;                                                                                                      \
        (void)p1;                                                                                                      \
        if (so == 1 && sx == 1) {                                                                                      \
            CPU_INDEPENDENT                                                                                            \
            for (int64_t i = 0; i < n; i++) {                                                                          \
                const C x = GET(px[i]);                                                                                \
                out[i] = (R)(expr);                                                                                    \
            }                                                                                                          \
            return;                                                                                                    \
        }                                                                                                              \
        STRIDED_##kind(name, R, expr)                                                                                  \
    }
#define STRIDED(name, R, expr)                                                                                         \
    for (int64_t i = 0; i < n; i++) {                                                                                  \
        const C x = GET(px[i * sx]);                                                                                   \
        out[i * so] = (R)(expr);                                                                                       \
    }
#define STRIDED_FLOAT(name, R, expr)                                                                                   \
    cpu_row_packed(DT_CAT(unary_##name, ENUM), DT_CAT(DT, ENUM), 1, data, strides, n, ctx);

#define BINARY_ROW(name, kind, R, expr)                                                                                \
    static void DT_CAT(binary_##name, ENUM)(char *const *data, const int64_t *strides, int64_t n, const void *ctx)     \
    {                                                                                                                  \
        const dt_params *params = ctx;                                                                                 \
        const C p0 = PARAM(0);                                                                                         \
        const int64_t so = strides[0], sa = strides[1], sb = strides[2];                                               \
        R *out = (R *)data[0];                                                                                         \
        const T *pa = (const T *)data[1], *pb = (const T *)data[2];                                                    \
        (void)p0;                                                                                                      \
        if (so == 1 && sa == 1 && sb == 1) {                                                                           \
            CPU_INDEPENDENT                                                                                            \
            for (int64_t i = 0; i < n; i++) {                                                                          \
                const C a = GET(pa[i]), b = GET(pb[i]);                                                                \
                out[i] = (R)(expr);                                                                                    \
            }                                                                                                          \
            return;                                                                                                    \
        }                                                                                                              \
        APART_##kind(name, R, expr)                                                                                    \
    }
#define APART(name, R, expr)                                                                                           \
    if (so == 1 && sa == 1 && sb == 0) {                                                                               \
        const C b = GET(*pb);                                                                                          \
        CPU_INDEPENDENT                                                                                                \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            const C a = GET(pa[i]);                                                                                    \
            out[i] = (R)(expr);                                                                                        \
        }                                                                                                              \
    } else if (so == 1 && sa == 0 && sb == 1) {                                                                        \
        const C a = GET(*pa);                                                                                          \
        CPU_INDEPENDENT                                                                                                \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            const C b = GET(pb[i]);                                                                                    \
            out[i] = (R)(expr);                                                                                        \
        }                                                                                                              \
    } else {                                                                                                           \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            const C a = GET(pa[i * sa]), b = GET(pb[i * sb]);                                                          \
            out[i * so] = (R)(expr);                                                                                   \
        }                                                                                                              \
    }
#define APART_POWER(name, R, expr)                                                                                     \
    cpu_row_packed(DT_CAT(binary_##name, ENUM), DT_CAT(DT, ENUM), 2, data, strides, n, ctx);

#define UNARY_OF_(name, kind, expr)                                                                                    \
    DT_CAT(IF, HAS_##kind)(UNARY_ROW(name, kind, OUT_##kind, DT_CAT(RESULT, kind)(expr)))
#define UNARY_OF(...) UNARY_OF_(__VA_ARGS__)
#define BINARY_OF_(name, kind, expr)                                                                                   \
    DT_CAT(IF, HAS_##kind)(BINARY_ROW(name, kind, OUT_##kind, DT_CAT(RESULT, kind)(expr)))
#define BINARY_OF(...) BINARY_OF_(__VA_ARGS__)
#define DT_UNARY(name, kind, i, f, ...) UNARY_OF(name, ROW_KIND(KIND_##name, kind), E(i, f))
#define DT_BINARY(name, kind, i, f, ...) BINARY_OF(name, ROW_KIND(KIND_##name, kind), E(i, f))
#include "../core/elementwise.def"
#undef DT_UNARY
#undef DT_BINARY

#if IS_FLOAT
#define DT_TERNARY(name, type, expr)                                                                                   \
    static void DT_CAT(ternary_##name, ENUM)(char *const *data, const int64_t *strides, int64_t n, const void *ctx)    \
    {                                                                                                                  \
        const int64_t so = strides[0], sa = strides[1], sb = strides[2], sc = strides[3];                              \
        T *out = (T *)data[0];                                                                                         \
        const T *pa = (const T *)data[1], *pb = (const T *)data[2], *pc = (const T *)data[3];                          \
        (void)ctx;                                                                                                     \
        if (DENSE_##type && so == 1 && sa == 1 && sb == 1 && sc == 1) {                                                \
            CPU_INDEPENDENT                                                                                            \
            for (int64_t i = 0; i < n; i++) {                                                                          \
                const C a = pa[i], b = pb[i], c = pc[i];                                                               \
                out[i] = (expr);                                                                                       \
            }                                                                                                          \
        } else if (DENSE_##type && so == 1 && sa == 1 && sb == 0 && sc == 0) {                                         \
            const C b = *pb, c = *pc;                                                                                  \
            CPU_INDEPENDENT                                                                                            \
            for (int64_t i = 0; i < n; i++) {                                                                          \
                const C a = pa[i];                                                                                     \
                out[i] = (expr);                                                                                       \
            }                                                                                                          \
        } else {                                                                                                       \
            for (int64_t i = 0; i < n; i++) {                                                                          \
                const C a = pa[i * sa], b = pb[i * sb], c = pc[i * sc];                                                \
                out[i * so] = (expr);                                                                                  \
            }                                                                                                          \
        }                                                                                                              \
    }
#include "../core/elementwise.def"
#undef DT_TERNARY
#endif

static const cpu_ops DT_CAT(ops, ENUM) = {
#define ENTRY_(row, op, name, kind) DT_CAT(IF, HAS_##kind)(.row[op##_##name] = DT_CAT(row##_##name, ENUM), )
#define ENTRY(...) ENTRY_(__VA_ARGS__)
#define DT_UNARY(name, kind, ...) ENTRY(unary, DT_UNARY, name, ROW_KIND(KIND_##name, kind))
#define DT_BINARY(name, kind, ...) ENTRY(binary, DT_BINARY, name, ROW_KIND(KIND_##name, kind))
#include "../core/elementwise.def"
#undef DT_UNARY
#undef DT_BINARY
#if IS_FLOAT
#define DT_TERNARY(name, ...) .ternary[DT_TERNARY_##name] = DT_CAT(ternary_##name, ENUM),
#include "../core/elementwise.def"
#undef DT_TERNARY
#endif
};

#undef HAS_ARITH
#undef HAS_POWER
#undef HAS_FLOAT
#undef HAS_ROUND
#undef HAS_FTEST
#undef HAS_BITS
#undef HAS_TEST
#undef HAS_COMPARE
#undef HAS_LOGIC
#undef HAS_MIRRORED
#undef GET
#undef PARAM
#undef RESULT_BITS
#undef OUT_ARITH
#undef OUT_POWER
#undef OUT_FLOAT
#undef OUT_ROUND
#undef OUT_BITS
#undef OUT_TEST
#undef OUT_FTEST
#undef OUT_COMPARE
#undef OUT_LOGIC
#undef UNARY_ROW
#undef STRIDED
#undef STRIDED_FLOAT
#undef BINARY_ROW
#undef APART
#undef APART_POWER
#undef UNARY_OF_
#undef UNARY_OF
#undef BINARY_OF_
#undef BINARY_OF
#undef ENTRY_
#undef ENTRY
#endif
