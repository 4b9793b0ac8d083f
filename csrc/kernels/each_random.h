/* each_random.h: the kernels of random.cu for one dtype (see each_dtype.h). */
#define K_NAMED(op) DT_CAT(k_##op, NAME)
#define K_FROM_INT(v) DT_CAT(dt_cast_int64, NAME)(v)
#define K_FROM_DOUBLE(v) DT_CAT(dt_cast_float64, NAME)(v)

#define K_WIDTH K_RANDOM_WIDTH(sizeof(T))
#define K_GENERATE(op, args_type, value)                                                                               \
    K_KERNEL(K_NAMED(op), args_type, a)                                                                                \
    {                                                                                                                  \
        typedef K_PACK(T, K_WIDTH) pack;                                                                               \
        K_OUT(T, out, a.out);                                                                                          \
        const int64_t vectors = a.unit > 1 ? a.index.numel / K_WIDTH : 0;                                              \
        DT_ROLLED DT_FOR(v, vectors)                                                                                   \
        {                                                                                                              \
            pack p;                                                                                                    \
            DT_UNROLLED for (int j = 0; j < (int)K_WIDTH; j++)                                                         \
            {                                                                                                          \
                const int64_t i = v * K_WIDTH + j;                                                                     \
                p.v[j] = value;                                                                                        \
            }                                                                                                          \
            *(pack *)(void *)(out + v * K_WIDTH) = p;                                                                  \
        }                                                                                                              \
        DT_ROLLED for (int64_t i = vectors * K_WIDTH + DT_BLOCK * DT_THREADS + DT_THREAD; i < a.index.numel;           \
                       i += DT_BLOCKS * DT_THREADS)                                                                    \
        {                                                                                                              \
            int64_t at;                                                                                                \
            k_locate(&a.index, 1, i, &at);                                                                             \
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

K_KERNEL(K_NAMED(permutation), k_random_args, a)
{
    K_OUT(T, out, a.out);
    DT_ROLLED DT_FOR(i, a.index.numel)
    {
        int64_t at;
        k_locate(&a.index, 1, i, &at);
        out[at] = K_FROM_INT(dt_random_permutation(a.seed, a.offset, i, a.index.numel));
    }
}

K_KERNEL(K_NAMED(tri), k_tri_args, a)
{
    K_OUT(T, out, a.out);
    const T *in = DT_GLOBAL(const T, a.x.address, a.x.nbytes);
    const T zero = K_FROM_INT(0);
    const int last = a.index.ndim - 1;
    DT_ROLLED DT_FOR(i, a.index.numel)
    {
        int64_t at[2], row, column;
        k_locate(&a.index, 2, i, at);
        if (a.index.wide) {
            row = i / a.index.shape[last] % a.index.shape[last - 1];
            column = i % a.index.shape[last];
        } else {
            const uint32_t r = k_divide((uint32_t)i, a.index.divisor[last]);
            column = i - (int64_t)r * a.index.shape[last];
            row = r - (int64_t)k_divide(r, a.index.divisor[last - 1]) * a.index.shape[last - 1];
        }
        const int64_t above = column - row - a.diagonal;
        const int keep = a.upper ? above >= 0 : above <= 0;
        out[at[0]] = keep ? in[at[1]] : zero;
    }
}

#undef K_WIDTH
#undef K_GENERATE
#undef K_FROM_DOUBLE
#undef K_FROM_INT
#undef K_NAMED
