/* each_pool2d.h: the kernels of pool2d.cu for one dtype (see each_dtype.h). */
#if IS_FLOAT
/* I holds every offset of one image; LOOP: before the inner loop. */
#define K_MAX_WINDOW(I, LOOP)                                                                                          \
    {                                                                                                                  \
        const I first_h = (I)(place[2] * a.stride[0] - a.padding[0]);                                                  \
        const I first_w = (I)(place[3] * a.stride[1] - a.padding[1]);                                                  \
        const I height = (I)a.height, width = (I)a.width, kernel_w = (I)a.kernel[1];                                   \
        const I stride_h = (I)a.x_strides[2], stride_w = (I)a.x_strides[3];                                            \
        const I dilation_h = (I)a.dilation[0], dilation_w = (I)a.dilation[1];                                          \
        DT_ROLLED for (I r = 0; r < (I)a.kernel[0]; r++)                                                               \
        {                                                                                                              \
            const I h = first_h + r * dilation_h;                                                                      \
            if (h < 0 || h >= height) {                                                                                \
                continue;                                                                                              \
            }                                                                                                          \
            LOOP for (I s = 0; s < kernel_w; s++)                                                                      \
            {                                                                                                          \
                const I w = first_w + s * dilation_w;                                                                  \
                if (w < 0 || w >= width) {                                                                             \
                    continue;                                                                                          \
                }                                                                                                      \
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
        int64_t place[4], best = -1;
        k_pool_place(&a, i, place);
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
        int64_t divisor = a.divide_by;
        if (divisor == 0) {
            divisor = a.count_include_pad ? rows * columns : (bottom - top) * (right - left);
        }
        out[k_pool_offset(a.out_strides, place)] =
            top < bottom && left < right ? DT_CAT(dt_cast_float64, NAME)(sum / (double)divisor) : STORE(0);
    }
}
#undef K_SUM_WINDOW
#endif
