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

/* Tiles through shared memory, so that both sides go along their fast dimension; one more row keeps banks apart. A
 * thread has its eight elements in flight. */
K_KERNEL(DT_CAT(k_transpose, NAME), k_transpose_args, a)
{
    DT_SHARED T tile[K_TILE_COLUMNS][K_TILE_ROWS + 1];
    K_OUT(T, out, a.out);
    const T *in = DT_GLOBAL(const T, a.x.address, a.x.nbytes);
    enum { lines = DT_MAX_THREADS / K_TILE_ROWS, out_lines = DT_MAX_THREADS / K_TILE_COLUMNS };
    DT_ROLLED DT_FOR_BLOCKS(b, a.tiles * a.outer.numel)
    {
        int64_t at[2];
        const uint32_t o = k_divide((uint32_t)b, a.by_tiles), t = (uint32_t)b - o * (uint32_t)a.tiles;
        const uint32_t down = k_divide(t, a.by_across);
        const int64_t first_row = (int64_t)down * K_TILE_ROWS;
        const int64_t first_column = (int64_t)(t - down * (uint32_t)a.across) * K_TILE_COLUMNS;
        const int nrows = a.rows - first_row < K_TILE_ROWS ? (int)(a.rows - first_row) : K_TILE_ROWS;
        const int ncolumns =
            a.columns - first_column < K_TILE_COLUMNS ? (int)(a.columns - first_column) : K_TILE_COLUMNS;
        k_locate(&a.outer, 2, o, at);
        DT_ROLLED DT_FOR_THREADS(v, DT_MAX_THREADS)
        {
            const int fast = v % K_TILE_ROWS, slow = v / K_TILE_ROWS;
            const T *from = in + at[1] + first_row + fast + (first_column + slow) * a.x_stride;
            DT_UNROLLED for (int u = 0; u < K_TILE_COLUMNS; u += lines, from += lines * a.x_stride)
            {
                if (fast < nrows && slow + u < ncolumns) {
                    tile[slow + u][fast] = *from;
                }
            }
        }
        DT_SYNC();
        DT_ROLLED DT_FOR_THREADS(v, DT_MAX_THREADS)
        {
            const int fast = v % K_TILE_COLUMNS, slow = v / K_TILE_COLUMNS;
            T *to = out + at[0] + first_column + fast + (first_row + slow) * a.out_stride;
            DT_UNROLLED for (int u = 0; u < K_TILE_ROWS; u += out_lines, to += out_lines * a.out_stride)
            {
                if (fast < ncolumns && slow + u < nrows) {
                    *to = tile[fast][slow + u];
                }
            }
        }
        DT_SYNC();
    }
}
