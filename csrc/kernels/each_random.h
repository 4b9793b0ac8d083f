/* each_random.h: the kernels of random.cu for one dtype (see each_dtype.h). */
#define K_NAMED(op) DT_CAT(k_##op, NAME)
#define K_FROM_INT(v) DT_CAT(dt_cast_int64, NAME)(v)
#define K_FROM_DOUBLE(v) DT_CAT(dt_cast_float64, NAME)(v)

#define K_GENERATE(op, args_type, value)                                                                               \
    K_KERNEL(K_NAMED(op), args_type, a)                                                                                \
    {                                                                                                                  \
        K_OUT(T, out, a.out);                                                                                          \
        K_ROLLED DT_FOR(i, a.walk.numel)                                                                               \
        {                                                                                                              \
            int64_t at;                                                                                                \
            k_locate(&a.walk, 1, i, &at);                                                                              \
            out[at] = value;                                                                                           \
        }                                                                                                              \
    }

#if IS_FLOAT
#define K_UNIT(i) dt_random_unit(a.seed, a.offset + (uint64_t)(i), DT_CAT(DT_DIGITS, NAME))
K_GENERATE(arange, k_arange_args, K_FROM_DOUBLE(DT_ADD(a.start, DT_MUL((double)i, a.step))))
K_GENERATE(uniform, k_random_args, K_FROM_DOUBLE(DT_ADD(a.a, DT_MUL(a.b - a.a, K_UNIT(i)))))
K_GENERATE(normal, k_random_args,
           K_FROM_DOUBLE(DT_ADD(a.a, DT_MUL(a.b, dt_random_normal(a.seed, a.offset + (uint64_t)i)))))
#undef K_UNIT
#else
K_GENERATE(arange, k_arange_args, K_FROM_INT((int64_t)((uint64_t)a.first + (uint64_t)i * (uint64_t)a.increment)))
#endif
K_GENERATE(integers, k_random_args, K_FROM_INT(dt_random_integer(a.seed, a.offset + (uint64_t)i, a.low, a.high)))
K_GENERATE(permutation, k_random_args, K_FROM_INT(dt_random_permutation(a.seed, a.offset, i, a.walk.numel)))

K_KERNEL(K_NAMED(tri), k_tri_args, a)
{
    K_OUT(T, out, a.out);
    const T *in = DT_GLOBAL(const T, a.x.address, a.x.nbytes);
    const T zero = K_FROM_INT(0);
    const int64_t rows = a.walk.shape[a.walk.ndim - 2], columns = a.walk.shape[a.walk.ndim - 1];
    K_ROLLED DT_FOR(i, a.walk.numel)
    {
        int64_t at[2];
        k_locate(&a.walk, 2, i, at);
        const int64_t row = i / columns % rows, above = i % columns - row - a.diagonal;
        const int keep = a.upper ? above >= 0 : above <= 0;
        out[at[0]] = keep ? in[at[1]] : zero;
    }
}

#undef K_GENERATE
#undef K_FROM_DOUBLE
#undef K_FROM_INT
#undef K_NAMED
