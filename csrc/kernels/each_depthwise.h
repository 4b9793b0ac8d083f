/* each_depthwise.h: the kernel of depthwise.cu for one dtype (see each_dtype.h). */
#if IS_FLOAT
#define K_WIDTH K_DEPTHWISE_WIDTH((int)sizeof(T))

/* acc[u * size + j] for results (p + u, q) of size channels from x (the image at its first channel). Filters of rows
 * x columns taps: tap t of channel j at taps[t * pitch + j]. rows 0: those of the arguments. unit: stride and dilation
 * are 1, so that each element of the image is read once for the whole strip. What is in flight is a column of the
 * strip; more would not fit the registers, nor would a column of any height (LOOP). Constants: rows, columns, unit. */
#define K_DEPTHWISE(kind, size, LOOP)                                                                                  \
    DT_DEVICE void DT_CAT(k_depthwise_##kind, NAME)(const k_depthwise_args *a, const T *x, const C *taps, int pitch,   \
                                                    int64_t p, int64_t q, const int rows, const int columns,           \
                                                    const int unit, C *acc)                                            \
    {                                                                                                                  \
        typedef K_PACK(T, K_WIDTH) pack;                                                                               \
        typedef K_PACK(C, K_WIDTH) filter_pack;                                                                        \
        const int first_h = (int)(p * a->stride[0] - a->padding[0]);                                                   \
        const int first_w = (int)(q * a->stride[1] - a->padding[1]);                                                   \
        const int r_end = unit ? rows + K_STRIP - 1 : rows ? rows : (int)a->kernel[0];                                 \
        const int s_end = columns ? columns : (int)a->kernel[1];                                                       \
        DT_ROLLED for (int s = 0; s < s_end; s++)                                                                      \
        {                                                                                                              \
            const int w = first_w + s * (unit ? 1 : (int)a->dilation[1]);                                              \
            LOOP for (int r = 0; r < r_end; r++)                                                                       \
            {                                                                                                          \
                DT_UNROLLED for (int u = 0; u < (unit ? 1 : K_STRIP); u++)                                             \
                {                                                                                                      \
                    const int h = first_h + (unit ? r : u * (int)a->stride[0] + r * (int)a->dilation[0]);              \
                    C got[K_WIDTH];                                                                                    \
                    if (h < 0 || h >= (int)a->height || w < 0 || w >= (int)a->width) {                                 \
                        continue;                                                                                      \
                    }                                                                                                  \
                    const T *from = x + h * a->x_strides[2] + w * a->x_strides[3];                                     \
                    if (size == 1) {                                                                                   \
                        got[0] = LOAD(*from);                                                                          \
                    } else {                                                                                           \
                        const pack vector = *(const pack *)(const void *)from;                                         \
                        DT_UNROLLED for (int j = 0; j < size; j++)                                                     \
                        {                                                                                              \
                            got[j] = LOAD(vector.v[j]);                                                                \
                        }                                                                                              \
                    }                                                                                                  \
                    DT_UNROLLED for (int o = unit ? 0 : u; o < (unit ? K_STRIP : u + 1); o++)                          \
                    {                                                                                                  \
                        const int tap = unit ? r - o : r;                                                              \
                        if (tap < 0 || (unit && tap >= rows)) {                                                        \
                            continue;                                                                                  \
                        }                                                                                              \
                        const C *filter = taps + (tap * s_end + s) * pitch;                                            \
                        if (size == 1) {                                                                               \
                            acc[o] = M(fma)(got[0], *filter, acc[o]);                                                  \
                            continue;                                                                                  \
                        }                                                                                              \
                        const filter_pack by = *(const filter_pack *)(const void *)filter;                             \
                        DT_UNROLLED for (int j = 0; j < size; j++)                                                     \
                        {                                                                                              \
                            acc[o * size + j] = M(fma)(got[j], by.v[j], acc[o * size + j]);                            \
                        }                                                                                              \
                    }                                                                                                  \
                }                                                                                                      \
            }                                                                                                          \
        }                                                                                                              \
    }
#define K_DEPTHWISE_FORMS(kind, size)                                                                                  \
    K_DEPTHWISE(kind, size, DT_UNROLLED)                                                                               \
    K_DEPTHWISE(kind##_rolled, size, DT_ROLLED)                                                                        \
    DT_DEVICE void DT_CAT(k_depthwise_any_##kind, NAME)(const k_depthwise_args *a, const T *x, const C *taps,          \
                                                        int pitch, int64_t p, int64_t q, C *acc)                       \
    {                                                                                                                  \
        if (a->form == K_DEPTHWISE_3X3) {                                                                              \
            DT_CAT(k_depthwise_##kind, NAME)(a, x, taps, pitch, p, q, 3, 3, 1, acc);                                   \
        } else if (a->form == K_DEPTHWISE_5X5) {                                                                       \
            DT_CAT(k_depthwise_##kind, NAME)(a, x, taps, pitch, p, q, 5, 5, 1, acc);                                   \
        } else {                                                                                                       \
            DT_CAT(k_depthwise_##kind##_rolled, NAME)(a, x, taps, pitch, p, q, 0, 0, 0, acc);                          \
        }                                                                                                              \
    }
K_DEPTHWISE_FORMS(vector, K_WIDTH)
K_DEPTHWISE_FORMS(single, 1)
#undef K_DEPTHWISE_FORMS
#undef K_DEPTHWISE

/* A block takes a group of neighbouring channels, brings their filters to shared memory and goes over its share of the
 * strips. Channels that lie beside each other in memory go to neighbouring threads, as vectors where they can. */
K_KERNEL(DT_CAT(k_depthwise, NAME), k_depthwise_args, a)
{
    DT_SHARED DT_ALIGNAS(K_WIDTH * sizeof(C)) C taps[K_DEPTHWISE_SHARED / sizeof(C)];
    typedef K_PACK(T, K_WIDTH) pack;
    const T *x = DT_GLOBAL(const T, a.x.address, a.x.nbytes),
            *weight = DT_GLOBAL(const T, a.weight.address, a.weight.nbytes);
    const T *bias = a.bias.address ? DT_GLOBAL(const T, a.bias.address, a.bias.nbytes) : 0;
    K_OUT(T, out, a.out);
    const int width = a.vector ? K_WIDTH : 1, lanes = 1 << a.lanes, across = DT_MAX_THREADS >> a.lanes;
    const int group = lanes * width, ntaps = (int)(a.kernel[0] * a.kernel[1]);
    const int64_t groups = (a.channels + group - 1) / group, shares = (a.strips + a.share - 1) / a.share;
    DT_ROLLED DT_FOR_BLOCKS(b, groups * shares)
    {
        const int64_t first = b % groups * group, begin = b / groups * a.share;
        const int64_t end = begin + a.share < a.strips ? begin + a.share : a.strips;
        DT_ROLLED DT_FOR_THREADS(v, ntaps * group)
        {
            const int c = v / ntaps, t = v - c * ntaps, r = t / (int)a.kernel[1], s = t - r * (int)a.kernel[1];
            if (first + c < a.channels) {
                taps[t * group + c] =
                    LOAD(weight[(first + c) * a.weight_strides[0] + r * a.weight_strides[1] + s * a.weight_strides[2]]);
            }
        }
        DT_SYNC();
        DT_ROLLED DT_FOR_THREADS(v, DT_MAX_THREADS)
        {
            const int c = (v & (lanes - 1)) * width;
            if (first + c < a.channels) {
                DT_ROLLED for (int64_t i = begin + (v >> a.lanes); i < end; i += across)
                {
                    /* strip i: n, then rows of strips, then q */
                    int64_t rest = a.wide ? i / a.shape[2] : (int64_t)k_divide((uint32_t)i, a.divisor[1]);
                    const int64_t q = i - rest * a.shape[2];
                    const int64_t n = a.wide ? rest / a.rows : (int64_t)k_divide((uint32_t)rest, a.divisor[0]);
                    const int64_t p = (rest - n * a.rows) * K_STRIP;
                    const T *from = x + n * a.x_strides[0] + (first + c) * a.x_strides[1];
                    T *to = out + n * a.out_strides[0] + (first + c) * a.out_strides[1] + q * a.out_strides[3];
                    C acc[K_STRIP * K_WIDTH];
                    for (int j = 0; j < K_STRIP * K_WIDTH; j++) {
                        acc[j] = 0;
                    }
                    if (a.vector) {
                        DT_CAT(k_depthwise_any_vector, NAME)(&a, from, taps + c, group, p, q, acc);
                    } else {
                        DT_CAT(k_depthwise_any_single, NAME)(&a, from, taps + c, group, p, q, acc);
                    }
                    DT_UNROLLED for (int u = 0; u < K_STRIP; u++)
                    {
                        if (p + u >= a.shape[1]) {
                            continue;
                        }
                        T *at = to + (p + u) * a.out_strides[2];
                        if (a.vector) {
                            pack result;
                            DT_UNROLLED for (int j = 0; j < K_WIDTH; j++)
                            {
                                const C sum =
                                    acc[u * K_WIDTH + j] + (bias ? LOAD(bias[(first + c + j) * a.bias_stride]) : 0);
                                result.v[j] = STORE(M(k_activate)(sum, a.activation));
                            }
                            *(pack *)(void *)at = result;
                        } else {
                            const C sum = acc[u] + (bias ? LOAD(bias[(first + c) * a.bias_stride]) : 0);
                            *at = STORE(M(k_activate)(sum, a.activation));
                        }
                    }
                }
            }
        }
        DT_SYNC();
    }
}
#undef K_WIDTH
#endif
