/* gemm_pack.h: packing a panel (gemm_pack) with vectors of LENGTH numbers S. Included by gemm_kernels.c with PACK its
 * name, V the vector, LOAD_V, STORE_V, and TRANSPOSE of LENGTH vectors. */

/* Up to LENGTH rows, from the one at `in`, of which `count` are there. */
AVX2 static inline void
DT_CAT(PACK, rows)(S *to, const S *in, int64_t across, int64_t count, int64_t depth, int64_t width)
{
    int64_t p = 0;
    for (; p + LENGTH <= depth; p += LENGTH) {
        V square[LENGTH];
        for (int i = 0; i < LENGTH; i++) {
            square[i] = i < count ? LOAD_V(in + i * across + p) : (V){0};
        }
        TRANSPOSE(square);
        for (int i = 0; i < LENGTH; i++) {
            S line[LENGTH];
            if (count == LENGTH) {
                STORE_V(to + (p + i) * width, square[i]);
                continue;
            }
            STORE_V(line, square[i]);
            memcpy(to + (p + i) * width, line, (size_t)count * sizeof(S));
        }
    }
    for (; p < depth; p++) {
        for (int64_t i = 0; i < count; i++) {
            to[p * width + i] = in[i * across + p];
        }
    }
}

AVX2 static void
PACK(void *panel, const void *from, int64_t across, int64_t along, int64_t count, int64_t depth, int64_t width)
{
    S *to = panel;
    const S *in = from;
    if (count < width) {
        memset(panel, 0, (size_t)(width * depth) * sizeof(S));
    }
    if (across == 1) {
        for (int64_t p = 0; p < depth; p++) {
            int64_t i = 0;
            for (; i + LENGTH <= count; i += LENGTH) {
                STORE_V(to + p * width + i, LOAD_V(in + p * along + i));
            }
            for (; i < count; i++) {
                to[p * width + i] = in[p * along + i];
            }
        }
    } else if (along == 1) {
        int64_t i = 0;
        for (; i + LENGTH <= count; i += LENGTH) {
            DT_CAT(PACK, rows)(to + i, in + i * across, across, LENGTH, depth, width);
        }
        if (count - i == 6 % LENGTH) { /* what a panel of six rows leaves */
            DT_CAT(PACK, rows)(to + i, in + i * across, across, 6 % LENGTH, depth, width);
        } else if (i < count) {
            DT_CAT(PACK, rows)(to + i, in + i * across, across, count - i, depth, width);
        }
    } else {
        for (int64_t i = 0; i < count; i++) {
            for (int64_t p = 0; p < depth; p++) {
                to[p * width + i] = in[i * across + p * along];
            }
        }
    }
}
#undef PACK
#undef S
#undef V
#undef LENGTH
#undef LOAD_V
#undef STORE_V
#undef TRANSPOSE
