/* each_copy.h: the kernels of copy.cu from one dtype (see each_dtype.h). */
#define K_INPUT(X) X(1, T)
#define K_WIDEST(D) (sizeof(T) > sizeof(D) ? (int)sizeof(T) : (int)sizeof(D))
#define K_CAST(D, target)                                                                                              \
    DT_DEVICE D DT_CAT3(k_one_cast, NAME, target)(const k_elementwise_args *a, T x)                                    \
    {                                                                                                                  \
        (void)a;                                                                                                       \
        return DT_CAT3(dt_cast, NAME, target)(x);                                                                      \
    }                                                                                                                  \
    K_STREAM(DT_CAT3(k_cast, NAME, target), D, K_VECTOR_BYTES / K_WIDEST(D), K_DEPTH(0, K_WIDEST(D), 1), K_INPUT,      \
             DT_CAT3(k_one_cast, NAME, target))
#define DT_CAT3_(a, b, c) a##_##b##_##c
#define DT_CAT3(a, b, c) DT_CAT3_(a, b, c)

#define DT_DTYPE(ENUM_, name, ctype, bits, dlpack, category) K_CAST(ctype, name)
#include "../core/dtypes.def"
#undef DT_DTYPE
#undef K_CAST
#undef K_INPUT
#undef K_WIDEST
#undef DT_CAT3
#undef DT_CAT3_

/* Tiles of 32 x 32 through shared memory, so that both sides go along their fast dimension; 33 keeps banks apart. */
K_KERNEL(DT_CAT(k_transpose, NAME), k_transpose_args, a)
{
    DT_SHARED T tile[32][33];
    K_OUT(T, out, a.out);
    const T *in = DT_GLOBAL(const T, a.x.address, a.x.nbytes);
    const int64_t across = (a.columns + 31) / 32, tiles = across * ((a.rows + 31) / 32);
    DT_FOR_BLOCKS(b, tiles * a.outer.numel) {
        int64_t at[2];
        const int64_t o = b / tiles, t = b - o * tiles, first_row = t / across * 32, first_column = t % across * 32;
        const int nrows = a.rows - first_row < 32 ? (int)(a.rows - first_row) : 32;
        const int ncolumns = a.columns - first_column < 32 ? (int)(a.columns - first_column) : 32;
        k_locate(&a.outer, 2, o, at);
        const T *from = in + at[1] + first_row + first_column * a.x_stride;
        T *to = out + at[0] + first_row * a.out_stride + first_column;
        DT_UNROLLED for (int v = DT_THREAD; v < 1024; v += DT_THREADS)
        {
            const int fast = v & 31, slow = v >> 5;
            if (fast < nrows && slow < ncolumns) {
                tile[slow][fast] = from[fast + slow * a.x_stride];
            }
        }
        DT_SYNC();
        DT_UNROLLED for (int v = DT_THREAD; v < 1024; v += DT_THREADS)
        {
            const int fast = v & 31, slow = v >> 5;
            if (slow < nrows && fast < ncolumns) {
                to[slow * a.out_stride + fast] = tile[fast][slow];
            }
        }
        DT_SYNC();
    }
}
