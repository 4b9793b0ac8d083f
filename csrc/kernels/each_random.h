/* each_random.h: the kernels of random.cu for one dtype (see each_dtype.h). */
#define K_NAMED(op) DT_CAT(k_##op, NAME)
#define K_FROM_INT(v) DT_CAT(dt_cast_int64, NAME)(v)
#define K_FROM_DOUBLE(v) DT_CAT(dt_cast_float64, NAME)(v)

#define K_WIDTH K_RANDOM_WIDTH(sizeof(T))
#define K_LANES DT_RANDOM_LANES(IS_FLOAT, sizeof(T))

/* A thread makes K_WIDTH neighbours at a time: make fills values, of type V, from element i on. */
#define K_GENERATE(op, args_type, V, make, store)                                                                      \
    K_KERNEL(K_NAMED(op), args_type, a)                                                                                \
    {                                                                                                                  \
        typedef K_PACK(T, K_WIDTH) pack;                                                                               \
        K_OUT(T, out, a.out);                                                                                          \
        DT_ROLLED DT_FOR(v, (a.index.numel + K_WIDTH - 1) / K_WIDTH)                                                   \
        {                                                                                                              \
            const int64_t i = v * K_WIDTH;                                                                             \
            V values[K_WIDTH];                                                                                         \
            pack p;                                                                                                    \
            make;                                                                                                      \
            DT_UNROLLED for (int j = 0; j < (int)K_WIDTH; j++)                                                         \
            {                                                                                                          \
                p.v[j] = store(values[j]);                                                                             \
            }                                                                                                          \
            if (a.unit > 1 && i + K_WIDTH <= a.index.numel) {                                                          \
                *(pack *)(void *)(out + i) = p;                                                                        \
                continue;                                                                                              \
            }                                                                                                          \
            DT_ROLLED for (int64_t e = i; e < i + K_WIDTH && e < a.index.numel; e++)                                   \
            {                                                                                                          \
                int64_t at;                                                                                            \
                k_locate(&a.index, 1, e, &at);                                                                         \
                out[at] = p.v[0];                                                                                      \
                DT_UNROLLED for (int j = 1; j < (int)K_WIDTH; j++)                                                     \
                {                                                                                                      \
                    p.v[j - 1] = p.v[j]; /* an index that is not known would put p into memory */                      \
                }                                                                                                      \
            }                                                                                                          \
        }                                                                                                              \
    }

#define K_EACH(lanes, one)                                                                                             \
    DT_UNROLLED for (int j = 0; j < (int)K_WIDTH; j += (int)(lanes))                                                   \
    {                                                                                                                  \
        one;                                                                                                           \
    }
#define K_DRAW(lanes, draw, ...)                                                                                       \
    K_EACH(lanes, draw(a.seed, a.offset + (uint64_t)v * (K_WIDTH / (lanes)) + (unsigned)j / (lanes), __VA_ARGS__,      \
                       values + j))

#if IS_FLOAT
K_GENERATE(arange, k_arange_args, double, K_EACH(1, values[j] = DT_ADD(a.start, DT_MUL((double)(i + j), a.step))),
           K_FROM_DOUBLE)
K_GENERATE(uniform, k_random_args, C,
           K_DRAW(K_LANES, DT_CAT(dt_random_uniforms, C), DT_CAT(DT_DIGITS, NAME), (C)a.a, (C)(a.b - a.a)), STORE)
K_GENERATE(normal, k_random_args, C, K_DRAW(K_LANES, DT_CAT(dt_random_normals, C), (C)a.a, (C)a.b), STORE)
#else
K_GENERATE(arange, k_arange_args, int64_t,
           K_EACH(1, values[j] = (int64_t)((uint64_t)a.first + (uint64_t)(i + j) * (uint64_t)a.increment)), K_FROM_INT)
#endif
K_GENERATE(integers, k_random_args, int64_t, K_DRAW(2, dt_random_integers, a.low, a.high), K_FROM_INT)

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

#undef K_DRAW
#undef K_EACH
#undef K_GENERATE
#undef K_LANES
#undef K_WIDTH
#undef K_FROM_DOUBLE
#undef K_FROM_INT
#undef K_NAMED
