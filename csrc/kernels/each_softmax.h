/* each_softmax.h: the kernels of softmax.cu for one dtype (see each_dtype.h). */
#if IS_FLOAT
#define K_SOFTMAX(op, value)                                                                                           \
    K_KERNEL(DT_CAT(k_##op, NAME), k_softmax_args, a)                                                                  \
    {                                                                                                                  \
        const T *in = DT_GLOBAL(const T, a.x.address, a.x.nbytes);                                                     \
        K_OUT(T, out, a.out);                                                                                          \
        DT_SHARED C largest[DT_MAX_THREADS];                                                                           \
        DT_SHARED double sums[DT_MAX_THREADS];                                                                         \
        DT_FOR_BLOCKS(r, a.outer.numel) {                                                                              \
            int64_t at[2];                                                                                             \
            k_locate(&a.outer, 2, r, at);                                                                              \
            C top = LOAD(in[at[0]]);                                                                                   \
            DT_FOR_THREADS(i, a.n) {                                                                                   \
                const C x = LOAD(in[at[0] + i * a.x_stride]);                                                          \
                top = x > top ? x : top;                                                                               \
            }                                                                                                          \
            largest[DT_THREAD] = top;                                                                                  \
            for (int half = DT_THREADS / 2; half > 0; half /= 2) {                                                     \
                DT_SYNC();                                                                                             \
                if (DT_THREAD < half && largest[DT_THREAD + half] > largest[DT_THREAD]) {                              \
                    largest[DT_THREAD] = largest[DT_THREAD + half];                                                    \
                }                                                                                                      \
            }                                                                                                          \
            DT_SYNC();                                                                                                 \
            top = largest[0];                                                                                          \
            double sum = 0;                                                                                            \
            DT_FOR_THREADS(i, a.n) {                                                                                   \
                sum += (double)M(exp)(LOAD(in[at[0] + i * a.x_stride]) - top);                                         \
            }                                                                                                          \
            sums[DT_THREAD] = sum;                                                                                     \
            for (int half = DT_THREADS / 2; half > 0; half /= 2) {                                                     \
                DT_SYNC();                                                                                             \
                if (DT_THREAD < half) {                                                                                \
                    sums[DT_THREAD] += sums[DT_THREAD + half];                                                         \
                }                                                                                                      \
            }                                                                                                          \
            DT_SYNC();                                                                                                 \
            const C total = (C)sums[0];                                                                                \
            DT_FOR_THREADS(i, a.n) {                                                                                   \
                const C x = LOAD(in[at[0] + i * a.x_stride]) - top;                                                    \
                out[at[1] + i * a.out_stride] = STORE(value);                                                          \
            }                                                                                                          \
            DT_SYNC();                                                                                                 \
        }                                                                                                              \
    }
K_SOFTMAX(softmax, M(exp)(x) / total)
K_SOFTMAX(log_softmax, x - M(log)(total))
#undef K_SOFTMAX
#endif
