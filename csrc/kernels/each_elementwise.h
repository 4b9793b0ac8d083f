/* each_elementwise.h: the kernels of elementwise.cu for one dtype (see each_dtype.h). */
#define K_NAMED(op) DT_CAT(k_##op, NAME)

/* which kinds this dtype has, and what they store */
#if IS_FLOAT
#define K_HAS_ARITH(...) __VA_ARGS__
#define K_HAS_FLOAT(...) __VA_ARGS__
#define K_HAS_ROUND(...) __VA_ARGS__
#define K_HAS_BITS(...)
#define K_HAS_FTEST(...) __VA_ARGS__
#elif IS_BOOL
#define K_HAS_ARITH(...)
#define K_HAS_FLOAT(...)
#define K_HAS_ROUND(...)
#define K_HAS_BITS(...) __VA_ARGS__
#define K_HAS_FTEST(...)
#else
#define K_HAS_ARITH(...) __VA_ARGS__
#define K_HAS_FLOAT(...)
#define K_HAS_ROUND(...)
#define K_HAS_BITS(...) __VA_ARGS__
#define K_HAS_FTEST(...)
#endif
#define K_HAS_TEST(...) __VA_ARGS__
#define K_HAS_COMPARE(...) __VA_ARGS__

#define K_STORE_ARITH(v) STORE(v)
#define K_STORE_FLOAT(v) STORE(v)
#define K_STORE_ROUND(v) STORE(v)
#if IS_BOOL
#define K_STORE_BITS(v) ((uint8_t)((v)&1))
#else
#define K_STORE_BITS(v) STORE(v)
#endif
#define K_STORE_TEST(v) ((uint8_t)(v))
#define K_STORE_FTEST(v) ((uint8_t)(v))
#define K_STORE_COMPARE(v) ((uint8_t)(v))

#define K_RESULT_ARITH T
#define K_RESULT_FLOAT T
#define K_RESULT_ROUND T
#define K_RESULT_BITS T
#define K_RESULT_TEST uint8_t
#define K_RESULT_FTEST uint8_t
#define K_RESULT_COMPARE uint8_t

#if IS_FLOAT
#define K_PARAM(k) ((C)a_.f[k])
#else
#define K_PARAM(k) ((C)a_.i[k])
#endif

/* p0 and p1 are not used by most ops */
#define K_PARAMS()                                                                                                     \
    const C p0 = K_PARAM(0), p1 = K_PARAM(1);                                                                          \
    (void)p0;                                                                                                          \
    (void)p1

#define DT_UNARY(op, kind, integer, real, parameters, doc)                                                             \
    K_HAS_##kind(K_KERNEL(K_NAMED(op), k_elementwise_args, a_) {                                                       \
        K_OUT(K_RESULT_##kind, out_, a_.array[0]);                                                                     \
        K_IN(T, in_, value_, a_.array[1]);                                                                             \
        K_PARAMS();                                                                                                    \
        K_ROLLED DT_FOR(i_, a_.walk.numel)                                                                             \
        {                                                                                                              \
            int64_t at_[2];                                                                                            \
            k_locate(&a_.walk, 2, i_, at_);                                                                            \
            const C x = LOAD(in_ ? in_[at_[1]] : value_);                                                              \
            out_[at_[0]] = K_STORE_##kind(E(integer, real));                                                           \
        }                                                                                                              \
    })

#define DT_BINARY(op, kind, integer, real, doc)                                                                        \
    K_HAS_##kind(K_KERNEL(K_NAMED(op), k_elementwise_args, a_) {                                                       \
        K_OUT(K_RESULT_##kind, out_, a_.array[0]);                                                                     \
        K_IN(T, left_, left_value_, a_.array[1]);                                                                      \
        K_IN(T, right_, right_value_, a_.array[2]);                                                                    \
        K_PARAMS();                                                                                                    \
        K_ROLLED DT_FOR(i_, a_.walk.numel)                                                                             \
        {                                                                                                              \
            int64_t at_[3];                                                                                            \
            k_locate(&a_.walk, 3, i_, at_);                                                                            \
            const C a = LOAD(left_ ? left_[at_[1]] : left_value_);                                                     \
            const C b = LOAD(right_ ? right_[at_[2]] : right_value_);                                                  \
            out_[at_[0]] = K_STORE_##kind(E(integer, real));                                                           \
        }                                                                                                              \
    })

#include "../core/elementwise.def"

K_KERNEL(K_NAMED(where), k_elementwise_args, a)
{
    K_OUT(T, out, a.array[0]);
    K_IN(uint8_t, condition, condition_value, a.array[1]);
    K_IN(T, yes, yes_value, a.array[2]);
    K_IN(T, no, no_value, a.array[3]);
    K_ROLLED DT_FOR(i, a.walk.numel)
    {
        int64_t at[4];
        k_locate(&a.walk, 4, i, at);
        if (condition ? condition[at[1]] : condition_value) {
            out[at[0]] = yes ? yes[at[2]] : yes_value;
        } else {
            out[at[0]] = no ? no[at[3]] : no_value;
        }
    }
}

#if IS_FLOAT
K_KERNEL(K_NAMED(lerp), k_elementwise_args, a)
{
    K_OUT(T, out, a.array[0]);
    K_IN(T, start, start_value, a.array[1]);
    K_IN(T, end, end_value, a.array[2]);
    K_IN(T, weight, weight_value, a.array[3]);
    K_ROLLED DT_FOR(i, a.walk.numel)
    {
        int64_t at[4];
        k_locate(&a.walk, 4, i, at);
        const C x = LOAD(start ? start[at[1]] : start_value);
        const C y = LOAD(end ? end[at[2]] : end_value);
        const C w = LOAD(weight ? weight[at[3]] : weight_value);
        out[at[0]] = STORE(w < (C)0.5 ? x + w * (y - x) : y - (y - x) * (1 - w));
    }
}
#endif

#undef DT_UNARY
#undef DT_BINARY
#undef K_NAMED
#undef K_PARAMS
#undef K_PARAM
#undef K_HAS_ARITH
#undef K_HAS_FLOAT
#undef K_HAS_ROUND
#undef K_HAS_BITS
#undef K_HAS_TEST
#undef K_HAS_FTEST
#undef K_HAS_COMPARE
#undef K_STORE_ARITH
#undef K_STORE_FLOAT
#undef K_STORE_ROUND
#undef K_STORE_BITS
#undef K_STORE_TEST
#undef K_STORE_FTEST
#undef K_STORE_COMPARE
#undef K_RESULT_ARITH
#undef K_RESULT_FLOAT
#undef K_RESULT_ROUND
#undef K_RESULT_BITS
#undef K_RESULT_TEST
#undef K_RESULT_FTEST
#undef K_RESULT_COMPARE
