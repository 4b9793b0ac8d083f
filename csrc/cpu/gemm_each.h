/* gemm_each.h: the parts of the matrix product that read and write arrays of one dtype. Included by each_dtype.h. */
#if IS_FLOAT

#define PACK_LINE 64 /* converted at a time */
#define DOT_BLOCK 1024
#define COLUMNS_AT_ONCE 8
#define VECTOR_BLOCK 4096
#define LANES ((int64_t)(VECTOR_BYTES / sizeof(C)))

typedef C DT_CAT(vec, ENUM) __attribute__((vector_size(VECTOR_BYTES)));

static inline DT_CAT(vec, ENUM) DT_CAT(load, ENUM)(const T *from)
{
    DT_CAT(vec, ENUM) v;
    C lanes[LANES];
    for (int l = 0; l < LANES; l++) {
        lanes[l] = LOAD(from[l]);
    }
    memcpy(&v, lanes, sizeof(v));
    return v;
}

#if DT_CAT(IS_HALF, ENUM)
static inline void
DT_CAT(widen, ENUM)(const T *from, int64_t step, int64_t count, float *to)
{
    char *const data[2] = {(char *)to, (char *)(uintptr_t)from};
    cpu_cast_row(DT_CAT(DT, ENUM), DT_FLOAT32)(data, (const int64_t[]){1, step}, count, NULL);
}

/* A stretch of each row, or row of each step, is made float32 first. */
static void
DT_CAT(pack, ENUM)(void *panel, const void *from, int64_t across, int64_t along, int64_t count, int64_t depth,
                   int64_t width, const int32_t *places)
{
    const T *in = from;
    float lines[GEMM_MAX_COLUMNS][PACK_LINE];
    for (int64_t p = 0; p < depth; p += PACK_LINE) {
        int64_t part = CPU_MIN(PACK_LINE, depth - p);
        for (int64_t i = 0; i < count; i++) {
            DT_CAT(widen, ENUM)(in + i * across + p * along, along, part, lines[i]);
        }
        pack_f32((float *)panel + (places ? 0 : p * width), lines, PACK_LINE, 1, count, part, width,
                 places ? places + p : NULL);
    }
}
#endif

/* One line of c, from `length` numbers of a tile that stand `apart`: activation(alpha * value + beta * c + bias). */
static inline void
DT_CAT(store_line, ENUM)(const cpu_gemm_args *g, const C *from, int64_t apart, T *c, int64_t c_step, const T *bias,
                         int64_t bias_step, int64_t length)
{
    C line[GEMM_MAX_COLUMNS];
    const C alpha = (C)g->alpha, beta = (C)g->beta;
    for (int64_t i = 0; i < length; i++) {
        line[i] = alpha * from[i * apart];
    }
    if (beta != 0) {
        for (int64_t i = 0; i < length; i++) {
            line[i] += beta * LOAD(c[i * c_step]);
        }
    }
    if (bias != NULL) {
        for (int64_t i = 0; i < length; i++) {
            line[i] += LOAD(bias[i * bias_step]);
        }
    }
    if (g->activation != NULL) {
        CPU_ACTIVATE(g->activation, line, length);
    }
#if DT_CAT(IS_HALF, ENUM)
    char *const data[2] = {(char *)c, (char *)line};
    cpu_cast_row(DT_FLOAT32, DT_CAT(DT, ENUM))(data, (const int64_t[]){c_step, 1}, length, NULL);
#else
    if (c_step == 1) {
        for (int64_t i = 0; i < length; i++) {
            c[i] = line[i];
        }
    } else {
        for (int64_t i = 0; i < length; i++) {
            c[i * c_step] = line[i];
        }
    }
#endif
}

#if !DT_CAT(IS_HALF, ENUM)
/* The last vector may lie over the one before. */
static inline void
DT_CAT(move_line, ENUM)(const T *from, T *to, int64_t length)
{
    for (int64_t i = 0; i + LANES <= length; i += LANES) {
        memcpy(to + i, from + i, VECTOR_BYTES);
    }
    if (length >= LANES) {
        memcpy(to + length - LANES, from + length - LANES, VECTOR_BYTES);
        return;
    }
    for (int64_t part = LANES / 2; part > 0; part /= 2) {
        if (length & part) {
            memcpy(to, from, (size_t)part * sizeof(T));
            to += part;
            from += part;
        }
    }
}
#endif

DT_NOINLINE static void
DT_CAT(store, ENUM)(const cpu_gemm_args *g, const void *tile, int64_t tile_columns, int64_t row, int64_t rows,
                    int64_t column, int64_t columns)
{
    const C *in = tile;
    T *c = (T *)g->c + row * g->c_row + column * g->c_column;
    const T *bias = g->bias ? (const T *)g->bias + row * g->bias_row + column * g->bias_column : NULL;
    const bool finished = cpu_gemm_finished(g);
    if (finished && g->c_column != 1) {
        for (int64_t j = 0; j < columns; j++) {
            for (int64_t i = 0; i < rows; i++) {
                c[i * g->c_row + j * g->c_column] = STORE(in[i * tile_columns + j]);
            }
        }
#if !DT_CAT(IS_HALF, ENUM)
    } else if (finished) {
        for (int64_t i = 0; i < rows; i++) {
            DT_CAT(move_line, ENUM)(in + i * tile_columns, c + i * g->c_row, columns);
        }
#endif
    } else if (g->c_column != 1 && g->c_row == 1) {
        for (int64_t j = 0; j < columns; j++) {
            DT_CAT(store_line, ENUM)
            (g, in + j, tile_columns, c + j * g->c_column, 1, bias ? bias + j * g->bias_column : NULL, g->bias_row,
             rows);
        }
    } else {
        for (int64_t i = 0; i < rows; i++) {
            DT_CAT(store_line, ENUM)
            (g, in + i * tile_columns, 1, c + i * g->c_row, g->c_column, bias ? bias + i * g->bias_row : NULL,
             g->bias_column, columns);
        }
    }
}

/* Rows of a times one column of b: blocks of k are added in double. */
DT_NOINLINE static void
DT_CAT(dot_rows, ENUM)(int rows, bool alone, const T *a, int64_t a_row, const T *b, int64_t k, C *out)
{
    double totals[DOT_ROWS] = {0};
    for (int64_t p = 0; p < k; p += DOT_BLOCK) {
        const int64_t m = CPU_MIN(DOT_BLOCK, k - p);
#if DT_CAT(IS_HALF, ENUM)
        float lines[DOT_ROWS + 1][DOT_BLOCK + PACK_LINE]; /* they do not share sets of the cache */
        DT_CAT(widen, ENUM)(b + p, 1, m, lines[DOT_ROWS]);
        for (int j = 0; j < rows; j++) {
            DT_CAT(widen, ENUM)(a + j * a_row + p, 1, m, lines[j]);
        }
        dot_f32(rows, alone, lines[0], DOT_BLOCK + PACK_LINE, lines[DOT_ROWS], m, totals);
#else
        DT_CAT(dot, ENUM)(rows, alone, a + p, a_row, b + p, m, totals);
#endif
    }
    for (int j = 0; j < rows; j++) {
        out[j] = (C)totals[j];
    }
}

static C
DT_CAT(strided_dot, ENUM)(const T *a, int64_t a_stride, const T *b, int64_t b_stride, int64_t k)
{
    double total = 0;
    for (int64_t p = 0; p < k; p += DOT_BLOCK) {
        C sum = 0;
        for (int64_t i = p; i < CPU_MIN(p + DOT_BLOCK, k); i++) {
            sum += LOAD(a[i * a_stride]) * LOAD(b[i * b_stride]);
        }
        total += (double)sum;
    }
    return (C)total;
}

static void
DT_CAT(dot_one, ENUM)(const void *a, int64_t a_step, const void *b, int64_t b_step, int64_t k, void *out)
{
    C sum;
    if ((a_step == 1 && b_step == 1) || k == 1) {
        DT_CAT(dot_rows, ENUM)(1, true, a, 0, b, k, &sum);
    } else {
        sum = DT_CAT(strided_dot, ENUM)(a, a_step, b, b_step, k);
    }
    *(T *)out = STORE(sum);
}

/* What is read of a for one column of b is in a cache for the next. */
static void
DT_CAT(dots, ENUM)(const cpu_gemm_args *g, const T *a, int64_t rows, C *sums, int64_t apart)
{
    bool plain = (g->a_column == 1 && g->b_row == 1) || g->k == 1;
    for (int64_t i = 0, some; i < rows; i += some) {
        const T *from = a + i * g->a_row;
        some = plain && i + DOT_ROWS <= rows ? DOT_ROWS : 1;
        for (int64_t j = 0; j < g->n; j++) {
            const T *b = (const T *)g->b + j * g->b_column;
            C *to = sums + j * apart + i;
            if (plain) {
                DT_CAT(dot_rows, ENUM)((int)some, g->m == 1, from, g->a_row, b, g->k, to);
            } else {
                *to = DT_CAT(strided_dot, ENUM)(from, g->a_column, b, g->b_row, g->k);
            }
        }
    }
}

/* Neighbouring rows side by side, some of a's columns at a time. */
__attribute__((always_inline)) static inline void
DT_CAT(add_columns, ENUM)(int columns, const cpu_gemm_args *g, const T *a, const T *b, int64_t p, int64_t rows, C *sums)
{
    C x[COLUMNS_AT_ONCE];
    DT_CAT(vec, ENUM) splat[COLUMNS_AT_ONCE], v;
    int64_t i = 0;
    for (int j = 0; j < columns; j++) {
        x[j] = LOAD(b[(p + j) * g->b_row]);
        splat[j] = (DT_CAT(vec, ENUM)){0} + x[j];
    }
    a += p * g->a_column;
    for (; i + LANES <= rows; i += LANES) {
        memcpy(&v, sums + i, sizeof(v));
        UNROLL for (int j = 0; j < columns; j++)
        {
            v += DT_CAT(load, ENUM)(a + j * g->a_column + i) * splat[j];
        }
        memcpy(sums + i, &v, sizeof(v));
    }
    for (; i < rows; i++) {
        for (int j = 0; j < columns; j++) {
            sums[i] += LOAD(a[j * g->a_column + i]) * x[j];
        }
    }
}

static void
DT_CAT(columns, ENUM)(const cpu_gemm_args *g, const T *a, int64_t rows, C *sums, int64_t apart)
{
    memset(sums, 0, (size_t)(g->n * apart) * sizeof(C));
    for (int64_t p = 0, some; p < g->k; p += some) {
        some = p + COLUMNS_AT_ONCE <= g->k ? COLUMNS_AT_ONCE : 1;
        for (int64_t j = 0; j < g->n; j++) {
            const T *b = (const T *)g->b + j * g->b_column;
            if (some > 1) {
                DT_CAT(add_columns, ENUM)(COLUMNS_AT_ONCE, g, a, b, p, rows, sums + j * apart);
            } else {
                DT_CAT(add_columns, ENUM)(1, g, a, b, p, rows, sums + j * apart);
            }
        }
    }
}

static void
DT_CAT(vectors, ENUM)(const cpu_gemm_args *g, int64_t begin, int64_t end)
{
    const T *a = g->a;
    bool neighbours = g->a_row == 1 && g->a_column != 1;
    const int64_t apart = VECTOR_BLOCK / g->n;
    for (int64_t i = begin; i < end; i += apart) {
        C sums[VECTOR_BLOCK];
        int64_t rows = CPU_MIN(apart, end - i);
        if (neighbours) {
            DT_CAT(columns, ENUM)(g, a + i, rows, sums, apart);
        } else {
            DT_CAT(dots, ENUM)(g, a + i * g->a_row, rows, sums, apart);
        }
        for (int64_t j = 0; j < g->n; j++) {
#if !DT_CAT(IS_HALF, ENUM)
            if (cpu_gemm_finished(g)) {
                T *c = (T *)g->c + i * g->c_row + j * g->c_column;
                for (int64_t r = 0; r < rows; r++) {
                    c[r * g->c_row] = sums[j * apart + r];
                }
                continue;
            }
#endif
            for (int64_t r = 0; r < rows; r += GEMM_MAX_COLUMNS) {
                const C *from = sums + j * apart + r;
                DT_CAT(store, ENUM)(g, from, 1, i + r, CPU_MIN(GEMM_MAX_COLUMNS, rows - r), j, 1);
            }
        }
    }
}
#undef PACK_LINE
#undef DOT_BLOCK
#undef COLUMNS_AT_ONCE
#undef VECTOR_BLOCK
#undef LANES
#endif
