/* gemm_each.h: the parts of the matrix product that read and write arrays of one dtype. Included by each_dtype.h. */
#if IS_FLOAT

static void
DT_CAT(pack, ENUM)(void *panel, const void *from, int64_t across, int64_t along, int64_t count, int64_t depth,
                   int64_t width)
{
    C *to = panel;
    const T *in = from;
    if (count < width) {
        memset(panel, 0, (size_t)(width * depth) * sizeof(C));
    }
    if (across == 1) {
        for (int64_t p = 0; p < depth; p++) {
            for (int64_t i = 0; i < count; i++) {
                to[p * width + i] = LOAD(in[p * along + i]);
            }
        }
        return;
    }
    for (int64_t p0 = 0; p0 < depth; p0 += PACK_BLOCK) { /* short enough for the panel's lines to stay in cache */
        int64_t p1 = CPU_MIN(p0 + PACK_BLOCK, depth);
        for (int64_t i = 0; i < count; i++) {
            const T *row = in + i * across;
            for (int64_t p = p0; p < p1; p++) {
                to[p * width + i] = LOAD(row[p * along]);
            }
        }
    }
}

/* activation(alpha * value + beta * c + bias) to one element of c. */
static inline void
DT_CAT(put, ENUM)(const cpu_gemm_args *g, C value, T *c, int64_t row, int64_t column)
{
    C v = (C)g->alpha * value;
    if (g->beta != 0) {
        v += (C)g->beta * LOAD(*c);
    }
    if (g->bias != NULL) {
        v += LOAD(((const T *)g->bias)[row * g->bias_row + column * g->bias_column]);
    }
    if (g->activation != NULL) {
        CPU_ACTIVATE(g->activation, &v, 1);
    }
    *c = STORE(v);
}

static void
DT_CAT(store, ENUM)(const cpu_gemm_args *g, const void *tile, int64_t tile_columns, int64_t row, int64_t rows,
                    int64_t column, int64_t columns, const int64_t *offsets, bool in_line)
{
    const C *in = tile;
    T *c = (T *)g->c + row * g->c_row;
    const T *bias = g->bias;
    if (in_line && g->beta == 0 && g->alpha == 1) {
        for (int64_t i = 0; i < rows; i++) {
            const C *from = in + i * tile_columns;
            T *to = c + i * g->c_row + offsets[0];
            if (g->activation != NULL) {
                const T *add = bias ? bias + (row + i) * g->bias_row + column * g->bias_column : NULL;
                C line[GEMM_MAX_COLUMNS];
                for (int64_t j = 0; j < columns; j++) {
                    line[j] = from[j] + (add ? LOAD(add[j * g->bias_column]) : 0);
                }
                CPU_ACTIVATE(g->activation, line, columns);
                for (int64_t j = 0; j < columns; j++) {
                    to[j] = STORE(line[j]);
                }
            } else if (bias == NULL) {
                for (int64_t j = 0; j < columns; j++) {
                    to[j] = STORE(from[j]);
                }
            } else {
                const T *add = bias + (row + i) * g->bias_row + column * g->bias_column;
                for (int64_t j = 0; j < columns; j++) {
                    to[j] = STORE(from[j] + LOAD(add[j * g->bias_column]));
                }
            }
        }
        return;
    }
    for (int64_t j = 0; j < columns; j++) {
        for (int64_t i = 0; i < rows; i++) {
            DT_CAT(put, ENUM)(g, in[i * tile_columns + j], c + i * g->c_row + offsets[j], row + i, column + j);
        }
    }
}

static void
DT_CAT(fetch, ENUM)(const cpu_gemm_args *g, void *tile, int64_t tile_columns, int64_t row, int64_t rows,
                    int64_t columns, const int64_t *offsets)
{
    C *to = tile;
    for (int64_t i = 0; i < rows; i++) {
        const T *c = (const T *)g->c + (row + i) * g->c_row;
        for (int64_t j = 0; j < columns; j++) {
            to[i * tile_columns + j] = LOAD(c[offsets[j]]);
        }
    }
}

static void
DT_CAT(put_back, ENUM)(const cpu_gemm_args *g, const void *tile, int64_t tile_columns, int64_t row, int64_t rows,
                       int64_t columns, const int64_t *offsets)
{
    const C *from = tile;
    for (int64_t i = 0; i < rows; i++) {
        T *c = (T *)g->c + (row + i) * g->c_row;
        for (int64_t j = 0; j < columns; j++) {
            c[offsets[j]] = STORE(from[i * tile_columns + j]);
        }
    }
}

/* A row of a times the one column of b: lanes within blocks, blocks in double. */
static C
DT_CAT(dot, ENUM)(const T *a, int64_t a_stride, const T *b, int64_t b_stride, int64_t k)
{
    double total = 0;
    for (int64_t p = 0; p < k; p += DOT_BLOCK) {
        int64_t m = CPU_MIN(DOT_BLOCK, k - p), i = 0;
        const T *pa = a + p * a_stride, *pb = b + p * b_stride;
        C lanes[DOT_LANES] = {0}, sum = 0;
        for (; a_stride == 1 && b_stride == 1 && i + DOT_LANES <= m; i += DOT_LANES) {
            for (int l = 0; l < DOT_LANES; l++) {
                lanes[l] += LOAD(pa[i + l]) * LOAD(pb[i + l]);
            }
        }
        for (; i < m; i++) {
            lanes[i % DOT_LANES] += LOAD(pa[i * a_stride]) * LOAD(pb[i * b_stride]);
        }
        for (int l = 0; l < DOT_LANES; l++) {
            sum += lanes[l];
        }
        total += (double)sum;
    }
    return (C)total;
}

static void
DT_CAT(vector, ENUM)(const cpu_gemm_args *g, int64_t begin, int64_t end)
{
    const T *a = g->a, *b = g->b;
    T *c = g->c;
    if (g->a_row != 1 || g->a_column == 1) {
        for (int64_t i = begin; i < end; i++) {
            C value = DT_CAT(dot, ENUM)(a + i * g->a_row, g->a_column, b, g->b_row, g->k);
            DT_CAT(put, ENUM)(g, value, c + i * g->c_row, i, 0);
        }
        return;
    }
    for (int64_t i = begin; i < end; i += VECTOR_BLOCK) { /* neighbouring rows side by side */
        C sums[VECTOR_BLOCK] = {0};
        int64_t m = CPU_MIN(VECTOR_BLOCK, end - i);
        for (int64_t p = 0; p < g->k; p++) {
            const T *column = a + p * g->a_column + i;
            const C x = LOAD(b[p * g->b_row]);
            for (int64_t j = 0; j < m; j++) {
                sums[j] += LOAD(column[j]) * x;
            }
        }
        for (int64_t j = 0; j < m; j++) {
            DT_CAT(put, ENUM)(g, sums[j], c + (i + j) * g->c_row, i + j, 0);
        }
    }
}

static const gemm_dtype DT_CAT(gemm_dtype, ENUM) = {DT_CAT(pack, ENUM), DT_CAT(store, ENUM), DT_CAT(fetch, ENUM),
                                                    DT_CAT(put_back, ENUM), DT_CAT(vector, ENUM)};
#endif
