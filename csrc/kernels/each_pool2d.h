/* each_pool2d.h: the kernels of pool2d.cu for one dtype (see each_dtype.h). */
#if IS_FLOAT
/* I holds every offset of one image; LOOP: before the inner loop. */
#define K_MAX_WINDOW(I, LOOP)                                                                                          \
    {                                                                                                                  \
        const I width = (I)a.width, stride_h = (I)a.x_strides[2], stride_w = (I)a.x_strides[3];                        \
        const I dilation_h = (I)a.dilation[0], dilation_w = (I)a.dilation[1];                                          \
        DT_ROLLED for (I h = (I)first_h; h < (I)last_h; h += dilation_h)                                               \
        {                                                                                                              \
            LOOP for (I w = (I)first_w; w < (I)last_w; w += dilation_w)                                                \
            {                                                                                                          \
                const C x = LOAD(in[base + h * stride_h + w * stride_w]);                                              \
                if (best < 0 || x > top || (x != x && top == top)) {                                                   \
                    top = x;                                                                                           \
                    best = (int64_t)h * width + w;                                                                     \
                }                                                                                                      \
            }                                                                                                          \
        }                                                                                                              \
    }

K_KERNEL(DT_CAT(k_max_pool2d, NAME), k_pool2d_args, a)
{
    const T *in = DT_GLOBAL(const T, a.x.address, a.x.nbytes);
    K_OUT(T, out, a.out);
    int64_t *indices = a.indices.address ? DT_GLOBAL(int64_t, a.indices.address, a.indices.nbytes) : 0;
    DT_ROLLED DT_FOR(i, a.numel)
    {
        int64_t place[4], best = -1, first_h, last_h, first_w, last_w;
        k_pool_place(&a, i, place);
        k_pool_taps(&a, 0, place[2], &first_h, &last_h);
        k_pool_taps(&a, 1, place[3], &first_w, &last_w);
        const int64_t base = place[0] * a.x_strides[0] + place[1] * a.x_strides[1];
        C top = 0;
        if (a.wide) {
            K_MAX_WINDOW(int64_t, DT_ROLLED)
        } else {
            K_MAX_WINDOW(int32_t, )
        }
        out[k_pool_offset(a.out_strides, place)] = STORE(best < 0 ? (C)dt_bits_f32(0xff800000u) : top);
        if (indices) {
            indices[k_pool_offset(a.indices_strides, place)] = best < 0 ? 0 : best;
        }
    }
}
#undef K_MAX_WINDOW

#define K_SUM_WINDOW(I)                                                                                                \
    {                                                                                                                  \
        const I stride_h = (I)a.x_strides[2], stride_w = (I)a.x_strides[3];                                            \
        DT_ROLLED for (I h = (I)top; h < (I)bottom; h++)                                                               \
        {                                                                                                              \
            for (I w = (I)left; w < (I)right; w++) {                                                                   \
                sum += (double)LOAD(in[base + h * stride_h + w * stride_w]);                                           \
            }                                                                                                          \
        }                                                                                                              \
    }

K_KERNEL(DT_CAT(k_avg_pool2d, NAME), k_pool2d_args, a)
{
    const T *in = DT_GLOBAL(const T, a.x.address, a.x.nbytes);
    K_OUT(T, out, a.out);
    DT_ROLLED DT_FOR(i, a.numel)
    {
        int64_t place[4], top, bottom, left, right, rows, columns;
        k_pool_place(&a, i, place);
        k_pool_window(&a, 0, place[2], &top, &bottom, &rows);
        k_pool_window(&a, 1, place[3], &left, &right, &columns);
        const int64_t base = place[0] * a.x_strides[0] + place[1] * a.x_strides[1];
        double sum = 0;
        if (a.wide) {
            K_SUM_WINDOW(int64_t)
        } else {
            K_SUM_WINDOW(int32_t)
        }
        double divisor = (double)a.divide_by; /* with padding a window may have more entries than 64 bits count */
        if (a.divide_by == 0) {
            divisor =
                a.count_include_pad ? (double)rows * (double)columns : (double)(bottom - top) * (double)(right - left);
        }
        out[k_pool_offset(a.out_strides, place)] =
            top < bottom && left < right ? DT_CAT(dt_cast_float64, NAME)(sum / divisor) : STORE(0);
    }
}
#undef K_SUM_WINDOW
#endif
