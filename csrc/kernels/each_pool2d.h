/* each_pool2d.h: the kernels of pool2d.cu for one dtype (see each_dtype.h). */
#if IS_FLOAT
K_KERNEL(DT_CAT(k_max_pool2d, NAME), k_pool2d_args, a)
{
    const T *in = DT_GLOBAL(const T, a.x.address, a.x.nbytes);
    K_OUT(T, out, a.out);
    int64_t *indices = a.indices.address ? DT_GLOBAL(int64_t, a.indices.address, a.indices.nbytes) : 0;
    K_ROLLED DT_FOR(i, a.shape[0] * a.shape[1] * a.shape[2] * a.shape[3])
    {
        int64_t place[4], best = -1;
        k_pool_place(&a, i, place);
        const int64_t base = place[0] * a.x_strides[0] + place[1] * a.x_strides[1];
        C top = 0;
        for (int64_t r = 0; r < a.kernel[0]; r++) {
            const int64_t h = place[2] * a.stride[0] - a.padding[0] + r * a.dilation[0];
            if (h < 0 || h >= a.height) {
                continue;
            }
            for (int64_t s = 0; s < a.kernel[1]; s++) {
                const int64_t w = place[3] * a.stride[1] - a.padding[1] + s * a.dilation[1];
                if (w < 0 || w >= a.width) {
                    continue;
                }
                const C x = LOAD(in[base + h * a.x_strides[2] + w * a.x_strides[3]]);
                if (best < 0 || x > top || (x != x && top == top)) {
                    top = x;
                    best = h * a.width + w;
                }
            }
        }
        out[k_pool_offset(a.out_strides, place)] = STORE(best < 0 ? (C)dt_bits_f32(0xff800000u) : top);
        if (indices) {
            indices[k_pool_offset(a.indices_strides, place)] = best < 0 ? 0 : best;
        }
    }
}

K_KERNEL(DT_CAT(k_avg_pool2d, NAME), k_pool2d_args, a)
{
    const T *in = DT_GLOBAL(const T, a.x.address, a.x.nbytes);
    K_OUT(T, out, a.out);
    K_ROLLED DT_FOR(i, a.shape[0] * a.shape[1] * a.shape[2] * a.shape[3])
    {
        int64_t place[4], top, bottom, left, right, rows, columns;
        k_pool_place(&a, i, place);
        k_pool_window(&a, 0, place[2], &top, &bottom, &rows);
        k_pool_window(&a, 1, place[3], &left, &right, &columns);
        const int64_t base = place[0] * a.x_strides[0] + place[1] * a.x_strides[1];
        double sum = 0;
        for (int64_t h = top; h < bottom; h++) {
            for (int64_t w = left; w < right; w++) {
                sum += (double)LOAD(in[base + h * a.x_strides[2] + w * a.x_strides[3]]);
            }
        }
        int64_t divisor = a.divisor;
        if (divisor == 0) {
            divisor = a.count_include_pad ? rows * columns : (bottom - top) * (right - left);
        }
        out[k_pool_offset(a.out_strides, place)] =
            top < bottom && left < right ? DT_CAT(dt_cast_float64, NAME)(sum / (double)divisor) : STORE(0);
    }
}
#endif
