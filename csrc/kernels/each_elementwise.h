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
#define K_PARAM(k) ((C)a_->f[k])
#else
#define K_PARAM(k) ((C)a_->i[k])
#endif

/* p0 and p1 are not used by most ops */
#define K_PARAMS()                                                                                                     \
    const C p0 = K_PARAM(0), p1 = K_PARAM(1);                                                                          \
    (void)p0;                                                                                                          \
    (void)p1;                                                                                                          \
    (void)a_

#define K_WIDTH (K_VECTOR_BYTES / (int)sizeof(T))
#define K_COSTLY_ARITH 0
#define K_COSTLY_FLOAT 1
#define K_COSTLY_ROUND 0
#define K_COSTLY_BITS 0
#define K_COSTLY_TEST 0
#define K_COSTLY_FTEST 0
#define K_COSTLY_COMPARE 0
#define K_DEEP(costly, n) K_DEPTH(costly, sizeof(T), n)

#define K_ONE_INPUT(X) X(1, T)
#define K_TWO_INPUTS(X) X(1, T) X(2, T)
#define K_STORED_INPUTS(X) X(1, T) X(2, T) X(3, T)
#define K_COMPUTED_INPUTS(X) X(1, T) X(2, C) X(3, C)
#define K_STORED_TYPE T
#define K_COMPUTED_TYPE C
#define K_STORED_LOAD(v) LOAD(v)
#define K_COMPUTED_LOAD(v) (v)
#define K_WHERE_INPUTS(X) X(1, uint8_t) X(2, T) X(3, T)

#define DT_UNARY(op, kind, integer, real, parameters, doc)                                                             \
    K_HAS_##kind(DT_DEVICE K_RESULT_##kind DT_CAT(k_one_##op, NAME)(const k_elementwise_args *a_, T x_) {              \
        K_PARAMS();                                                                                                    \
        const C x = LOAD(x_);                                                                                          \
        return K_STORE_##kind(E(integer, real));                                                                       \
    } K_STREAM(K_NAMED(op), K_RESULT_##kind, K_WIDTH, K_DEEP(K_COSTLY_##kind, 1), K_ONE_INPUT,                         \
               DT_CAT(k_one_##op, NAME)))

#define DT_BINARY(op, kind, integer, real, doc)                                                                        \
    K_HAS_##kind(DT_DEVICE K_RESULT_##kind DT_CAT(k_one_##op, NAME)(const k_elementwise_args *a_, T left_, T right_) { \
        K_PARAMS();                                                                                                    \
        const C a = LOAD(left_), b = LOAD(right_);                                                                     \
        return K_STORE_##kind(E(integer, real));                                                                       \
    } K_STREAM(K_NAMED(op), K_RESULT_##kind, K_WIDTH, K_DEEP(K_COSTLY_##kind, 2), K_TWO_INPUTS,                        \
               DT_CAT(k_one_##op, NAME)))

#if IS_FLOAT
#define DT_TERNARY(op, type, real)                                                                                     \
    DT_DEVICE T DT_CAT(k_one_##op, NAME)(const k_elementwise_args *a_, T first_, K_##type##_TYPE second_,              \
                                         K_##type##_TYPE third_)                                                       \
    {                                                                                                                  \
        const C a = LOAD(first_), b = K_##type##_LOAD(second_), c = K_##type##_LOAD(third_);                           \
        (void)a_;                                                                                                      \
        return STORE(real);                                                                                            \
    }                                                                                                                  \
    K_STREAM(K_NAMED(op), T, K_VECTOR_BYTES / (int)sizeof(K_##type##_TYPE), K_DEPTH(0, sizeof(K_##type##_TYPE), 3),    \
             K_##type##_INPUTS, DT_CAT(k_one_##op, NAME))
#endif

#include "../core/elementwise.def"

DT_DEVICE T
DT_CAT(k_one_where, NAME)(const k_elementwise_args *a, uint8_t condition, T yes, T no)
{
    (void)a;
    return condition ? yes : no;
}
K_STREAM(K_NAMED(where), T, K_WIDTH, K_DEEP(0, 3), K_WHERE_INPUTS, DT_CAT(k_one_where, NAME))

#undef K_WIDTH
#undef K_COSTLY_ARITH
#undef K_COSTLY_FLOAT
#undef K_COSTLY_ROUND
#undef K_COSTLY_BITS
#undef K_COSTLY_TEST
#undef K_COSTLY_FTEST
#undef K_COSTLY_COMPARE
#undef K_DEEP
#undef K_ONE_INPUT
#undef K_TWO_INPUTS
#undef K_STORED_INPUTS
#undef K_COMPUTED_INPUTS
#undef K_STORED_TYPE
#undef K_COMPUTED_TYPE
#undef K_STORED_LOAD
#undef K_COMPUTED_LOAD
#undef K_WHERE_INPUTS
#undef DT_UNARY
#undef DT_BINARY
#undef DT_TERNARY
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
