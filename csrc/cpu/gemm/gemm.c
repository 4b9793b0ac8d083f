/* gemm.c: the matrix product, for any strides, and the convolution as one.
 *
 * c is cut among the threads, each of which makes its part alone, packing what it needs of a and b into panels as wide
 * as the register block. The sums run over k in stretches: a block of a's panels fits the second cache, one panel of b
 * the first. Where a is read seldom it is read in place. Unfinished sums stay in c if it can hold them, else in a
 * scratch of their own. A sum runs over k in an order of its own, whatever the threads. */
#include <unistd.h>

#include "plan.h"

#define CONV_TAPS 64               /* in a stretch */
#define SMALL_SCRATCH 16384        /* bytes */
#define IN_PLACE_COLUMNS 128       /* of c: a is read too seldom to be packed */
#define IN_PLACE_ROWS 64           /* of c: b is, if its rows are short; also columns of a, which then is not packed */
#define IN_PLACE_BYTES 2048        /* of a short row: longer ones are packed sooner than read */
#define FEW_ROWS 6                 /* of c: b is not packed, however long its rows are */
#define IN_PLACE_CHANNELS 8        /* fewer are not worth an address each */
#define SET_BYTES 4096             /* rows so far apart have their lines in one set of the first cache */
#define SET_LINES 8                /* that one set has, on the machine with the fewest */
#define B_BYTES ((int64_t)4 << 20) /* of b's panels, a thread */
#define ALL_BYTES ((int64_t)24 << 20)
#define SUMS_ROWS 512
#define SUMS_COLUMNS 512
#define RAGGED_ROWS 8192
#define THREAD_WORK ((int64_t)1 << 18) /* multiplications worth a thread */
#define FEW_COLUMNS 2                  /* of c */
#define MEMORY_NUMBERS ((int64_t)1 << 16)
#define PACK_WORK 16 /* of them to one number packed */
#define CACHE_LINE 64

/* ---------------------------------------------------------------- the blocks */

/* One panel of b, and which columns of c it makes. */
typedef struct {
    const char *b;
    int64_t b_step, column, columns, index;
} panel;

static panel
find_panel(const gemm_share *s, int64_t index, bool fresh, bool kept)
{
    const gemm_plan *p = s->plan;
    const cpu_gemm_args *g = p->g;
    int64_t width = p->kernel->columns;
    panel found = {.index = index, .column = index * width, .columns = CPU_MIN(width, g->n - index * width)};
    if (p->b_in_place && found.columns == width) {
        found.b = (const char *)g->b + (found.column + s->channel * g->b_row) * p->itemsize;
        found.b_step = g->b_row;
        return found;
    }
    if (p->kept_b != NULL) {
        found.b = p->kept_b + gemm_stretch_start(s, p->panels_b * width) + index * width * s->depth * p->size;
        found.b_step = width;
        return found;
    }
    char *b = s->b + (kept ? index - s->begin_b : 0) * width * s->depth * p->size;
    if (fresh) {
        gemm_pack_b(s, b, found.column, found.columns);
    }
    found.b = b;
    found.b_step = width;
    return found;
}

/* The register blocks of a's panels [begin, end) with a panel of b. One that is kept comes from far away: the next is
 * fetched meanwhile. */
static void
run_blocks(const gemm_share *s, const panel *b, int64_t begin, int64_t end)
{
    const gemm_plan *p = s->plan;
    const gemm_kernel *kernel = p->kernel;
    const cpu_gemm_args *g = p->g;
    _Alignas(64) char own[GEMM_MAX_ROWS * GEMM_MAX_COLUMNS * sizeof(float)];
    const int64_t width = kernel->columns, first = gemm_row_of(p, begin), step = s->depth * p->size;
    const bool in_c = p->c_holds_sums && b->columns == width, biased = in_c && p->adds_bias;
    const bool finish = s->last && !biased && (!p->finished || !in_c);
    const gemm_run *runs = p->a_mode == GEMM_ANYWHERE ? kernel->anywhere
                           : b->columns <= width / 2  ? kernel->narrow
                                                      : kernel->packed;
    gemm_block run = {
        .depth = p->a_mode == GEMM_ANYWHERE ? s->channels : s->depth,
        .segments = p->a_mode == GEMM_ANYWHERE ? s->taps : 1,
        .b = b->b,
        .b_step = b->b_step,
        .a_step = g->a_column,
        .from_row = biased ? g->bias_row
                    : in_c ? g->c_row
                           : width,
        .to_row = in_c && !finish ? g->c_row : width,
    };
    const char *bias = biased ? (const char *)g->bias + b->column * p->itemsize : NULL;
    char *tile = own, *c = (char *)g->c + (first * g->c_row + b->column * g->c_column) * p->itemsize;
    int64_t tile_step = 0, ahead = width * step, ahead_end = p->kept_b && b->index + 1 < s->end_b ? 2 * ahead : ahead;
    const int64_t ahead_step = CPU_CEIL_DIV(ahead, (end - begin) * CACHE_LINE) * CACHE_LINE;
    if (s->sums != NULL && !in_c) {
        int64_t slot = p->c_holds_sums ? 0 : b->index - s->begin_b; /* what c cannot hold of the last panel */
        tile_step = kernel->rows * width * p->size;
        tile = s->sums + (slot * p->super_a + begin - s->sums_a) * tile_step;
    }
    for (int64_t i = begin, row = first, rows; i < end; i++, row += rows, tile += tile_step) {
        rows = p->panel_rows + (i < p->larger_panels);
        if (p->a_mode == GEMM_ANYWHERE) {
            run.rows = (const void *const *)(const void *)s->a + (row - first) * s->taps;
        } else if (p->a_mode == GEMM_NEIGHBOURS) {
            run.a = (const char *)g->a + (row + s->channel * g->a_column) * p->itemsize;
        } else {
            run.a = s->panels + (row - first) * step;
            run.a_step = rows;
        }
        char *place = in_c ? c : tile;
        run.from = biased ? bias + row * g->bias_row * p->itemsize : s->first && !(p->adds_to_c && in_c) ? NULL : place;
        run.to = finish ? tile : place;
        for (int64_t stop = CPU_MIN(ahead + ahead_step, ahead_end); ahead < stop; ahead += CACHE_LINE) {
            __builtin_prefetch(b->b + ahead, 0, 2);
        }
        runs[rows - 1](&run);
        if (finish) {
            p->parts->store(g, tile, width, row, rows, b->column, b->columns);
        }
        c += rows * g->c_row * p->itemsize;
    }
}

static void
run_stretch(gemm_share *s)
{
    const gemm_plan *p = s->plan;
    bool kept = s->end_a - s->begin_a > p->block_a;
    for (int64_t begin = s->begin_a; begin < s->end_a; begin += p->block_a) {
        int64_t end = CPU_MIN(begin + p->block_a, s->end_a), first = gemm_row_of(p, begin);
        bool ready = p->a_mode == GEMM_NEIGHBOURS || p->kept_a != NULL;
        s->panels = p->kept_a ? p->kept_a + gemm_stretch_start(s, p->g->m) + first * s->depth * p->size : s->a;
        for (int64_t i = begin; i < end && !ready; i++) {
            int64_t row = gemm_row_of(p, i), rows = gemm_row_of(p, i + 1) - row;
            if (p->a_mode == GEMM_ANYWHERE) {
                gemm_find_rows(s, (const void **)(void *)s->a + (row - first) * s->taps, row, rows);
            } else {
                gemm_pack_a(s, s->a + (row - first) * s->depth * p->size, row, rows);
            }
        }
        for (int64_t j = s->begin_b; j < s->end_b; j++) {
            panel b = find_panel(s, j, begin == s->begin_a, kept);
            run_blocks(s, &b, begin, end);
        }
    }
}

/* One rectangle of the grid. */
static void
run_share(void *ctx, int64_t begin, int64_t end)
{
    const gemm_plan *p = ctx;
    for (int64_t item = begin; item < end; item++) {
        char *scratch = p->scratch + (size_t)item * (p->size_a + p->size_b + p->size_sums + p->size_places);
        gemm_share s = {
            .plan = p,
            .a = scratch,
            .b = scratch + p->size_a,
            .sums = p->size_sums > 0 ? scratch + p->size_a + p->size_b : NULL,
            .places = (int32_t *)(void *)(scratch + p->size_a + p->size_b + p->size_sums),
        };
        int64_t i = item / p->grid_columns, j = item % p->grid_columns;
        int64_t end_a = p->panels_a * (i + 1) / p->grid_rows, end_b = p->panels_b * (j + 1) / p->grid_columns;
        for (s.begin_b = p->panels_b * j / p->grid_columns; s.begin_b < end_b; s.begin_b = s.end_b) {
            s.end_b = CPU_MIN(s.begin_b + p->block_b, end_b);
            for (s.begin_a = p->panels_a * i / p->grid_rows; s.begin_a < end_a; s.begin_a = s.end_a) {
                s.end_a = CPU_MIN(s.begin_a + p->super_a, end_a);
                s.sums_a = s.begin_a;
                gemm_first_stretch(&s);
                do {
                    run_stretch(&s);
                } while (gemm_next_stretch(&s));
            }
        }
    }
}

/* ---------------------------------------------------------------- the plan */

int64_t
cpu_second_cache(void)
{
    static atomic_int_fast64_t known;
    int64_t size = atomic_load_explicit(&known, memory_order_relaxed);
    if (size == 0) {
        size = 512 << 10;
#ifdef _SC_LEVEL2_CACHE_SIZE
        long found = sysconf(_SC_LEVEL2_CACHE_SIZE);
        size = found >= 256 << 10 && found <= 4 << 20 ? found : size;
#endif
        atomic_store_explicit(&known, size, memory_order_relaxed);
    }
    return size;
}

/* The grid whose largest rectangle is least work. */
static void
choose_grid(gemm_plan *p, int64_t threads)
{
    int64_t least = INT64_MAX;
    for (int64_t rows = 1; rows <= threads; rows++) {
        int64_t columns = threads / rows;
        int64_t most_rows = CPU_CEIL_DIV(p->panels_a, rows) * p->kernel->rows;
        int64_t most_columns = CPU_CEIL_DIV(p->panels_b, columns) * p->kernel->columns;
        int64_t work = most_rows * most_columns + PACK_WORK * (most_rows + most_columns);
        if (rows <= p->panels_a && columns <= p->panels_b && work < least) {
            least = work;
            p->grid_rows = rows;
            p->grid_columns = columns;
        }
    }
    if (least == INT64_MAX) {
        p->grid_rows = CPU_MIN(threads, p->panels_a);
        p->grid_columns = CPU_MIN(threads / p->grid_rows, p->panels_b);
    }
}

static bool
reads_b_in_place(const cpu_gemm_args *g)
{
    const int64_t row = g->b_row * (int64_t)dt_itemsize(g->dtype);
    return g->conv == NULL && g->b_column == 1 &&
           (g->m <= FEW_ROWS || (g->m <= IN_PLACE_ROWS && row <= IN_PLACE_BYTES));
}

/* Whether the rows of a block, so far apart, take each other's place in the first cache: then to pack them is worth it,
 * however seldom they are read. */
static bool
rows_crowd(const gemm_plan *p, int64_t apart)
{
    return p->panel_rows + (p->larger_panels > 0) > SET_LINES && apart != 0 && apart * p->itemsize % SET_BYTES == 0;
}

static void
choose_a_mode(gemm_plan *p, bool plain)
{
    const cpu_gemm_args *g = p->g;
    const struct cpu_conv *conv = g->conv;
    p->a_mode = GEMM_PACKED;
    if (!plain) {
        return;
    }
    if (conv != NULL) {
        const bool lines = conv->patches_are_rows && conv->x_channel == 1 && g->k >= IN_PLACE_CHANNELS;
        if (lines && !rows_crowd(p, conv->stride[1] * conv->x_column)) {
            p->a_mode = GEMM_ANYWHERE;
        }
    } else if (g->n / p->grid_columns <= IN_PLACE_COLUMNS) {
        /* so that the second cache has its lines */
        const bool near = g->a_row == 1 && (p->some_channels >= g->k || g->a_column <= IN_PLACE_ROWS);
        if (g->a_column == 1 && !rows_crowd(p, g->a_row)) {
            p->a_mode = GEMM_ANYWHERE;
        } else if (g->a_column != 1 && near) {
            p->a_mode = GEMM_NEIGHBOURS;
        }
    }
}

static void
choose_stretch(gemm_plan *p)
{
    const struct cpu_conv *conv = p->g->conv;
    p->taps = conv != NULL ? conv->kernel[0] * conv->kernel[1] : 1;
    p->some_taps = CPU_MIN(p->taps, CONV_TAPS);
    int64_t channels = CPU_MAX(p->kernel->depth / p->some_taps, IN_PLACE_CHANNELS), all = CPU_MAX(p->g->k, 1);
    p->some_channels = CPU_CEIL_DIV(all, CPU_CEIL_DIV(all, channels)); /* stretches of equal sizes */
    if (conv != NULL) {
        p->places = p->taps > 1 && p->some_taps == p->taps && conv->weight_channel == p->taps &&
                    conv->weight_column == 1 && conv->weight_row == conv->kernel[1];
    }
}

#define ROUND_64(n) (((size_t)(n) + 63) & ~(size_t)63)

static void
choose_sizes(gemm_plan *p)
{
    const gemm_kernel *kernel = p->kernel;
    int64_t depth = p->some_taps * p->some_channels, shares = p->grid_rows * p->grid_columns;
    bool many = p->some_taps < p->taps || p->some_channels < p->g->k;
    bool sums = many && !p->c_holds_sums, ragged = many && !sums && p->g->n % kernel->columns != 0;
    int64_t share_a = CPU_CEIL_DIV(p->panels_a, p->grid_rows), share_b = CPU_CEIL_DIV(p->panels_b, p->grid_columns);
    int64_t panel_a = kernel->rows * depth * p->size, panel_b = kernel->columns * depth * p->size;
    p->block_a = CPU_MAX(cpu_second_cache() * 3 / 8 / panel_a, 1);
    p->block_b = CPU_MAX(CPU_MIN(B_BYTES, ALL_BYTES / shares) / panel_b, 1);
    p->super_a = share_a;
    if (sums) {
        p->super_a = CPU_MIN(p->super_a, SUMS_ROWS / kernel->rows);
        p->block_b = CPU_MIN(p->block_b, SUMS_COLUMNS / kernel->columns);
    } else if (ragged) {
        p->super_a = CPU_MIN(p->super_a, RAGGED_ROWS / kernel->rows);
    }
    p->block_b = CPU_MIN(p->block_b, share_b);
    /* of equal sizes */
    p->block_a = CPU_CEIL_DIV(p->super_a, CPU_CEIL_DIV(p->super_a, p->block_a));
    p->block_b = CPU_CEIL_DIV(share_b, CPU_CEIL_DIV(share_b, p->block_b));
    int64_t rows = p->block_a * kernel->rows;
    p->size_a = ROUND_64(p->a_mode == GEMM_PACKED     ? rows * depth * p->size
                         : p->a_mode == GEMM_ANYWHERE ? rows * p->some_taps * (int64_t)sizeof(void *)
                                                      : 0);
    p->size_b = ROUND_64((p->super_a > p->block_a && !p->b_in_place ? p->block_b : 1) * panel_b);
    p->size_sums = ROUND_64((sums ? p->block_b : ragged) * p->super_a * kernel->rows * kernel->columns * p->size);
    p->size_places = p->places ? ROUND_64(depth * (int64_t)sizeof(int32_t)) : 0;
}

static dt_status
run_plan(const cpu_gemm_args *g, dt_error *err)
{
    const gemm_dtype *parts = cpu_gemm_parts(g->dtype);
    bool plain = g->dtype == DT_FLOAT32 || g->dtype == DT_FLOAT64;
    gemm_plan p = {
        .g = g,
        .parts = parts,
        .kernel = parts->kernel,
        .itemsize = (int64_t)dt_itemsize(g->dtype),
        .size = g->dtype == DT_FLOAT64 ? 8 : 4,
        .panels_a = CPU_CEIL_DIV(g->m, parts->kernel->rows),
        .panels_b = CPU_CEIL_DIV(g->n, parts->kernel->columns),
        .b_in_place = plain && reads_b_in_place(g),
        .panel_rows = g->m / CPU_CEIL_DIV(g->m, parts->kernel->rows),
        .larger_panels = g->m % CPU_CEIL_DIV(g->m, parts->kernel->rows),
        .finished = g->alpha == 1 && g->bias == NULL && g->activation == NULL,
    };
    choose_stretch(&p);
    const bool whole = p.taps == p.some_taps && p.some_channels >= g->k; /* sums, of one stretch */
    p.adds_to_c = g->beta == 1 && whole && p.finished;
    p.c_holds_sums = plain && (g->beta == 0 || p.adds_to_c) && (g->c_column == 1 || g->n == 1);
    p.adds_bias = g->bias != NULL && g->bias_column == 1 && g->alpha == 1 && g->beta == 0 && whole && !g->activation;
    int64_t work = g->m * g->n * CPU_MAX(g->k * p.taps, 1);
    choose_grid(&p, CPU_MAX(CPU_MIN(work / THREAD_WORK, cpu_num_threads()), 1));
    choose_a_mode(&p, plain);
    choose_sizes(&p);
    int64_t shares = p.grid_rows * p.grid_columns;
    size_t nbytes = (size_t)shares * (p.size_a + p.size_b + p.size_sums + p.size_places);
    _Alignas(64) char small[SMALL_SCRATCH];
    p.scratch = nbytes <= sizeof(small) ? small : dt_large_new(nbytes);
    if (p.scratch == NULL) {
        return dt_fail_nomem(err, nbytes);
    }
    dt_kept *kept = gemm_keep_weight(&p);
    cpu_parallel(shares, 1, run_share, &p);
    dt_kept_release(kept);
    if (p.scratch != small) {
        dt_large_free(p.scratch);
    }
    return DT_OK;
}

/* ---------------------------------------------------------------- the slot's */

static void
vector_part(void *ctx, int64_t begin, int64_t end)
{
    const cpu_gemm_args *g = ctx;
    cpu_gemm_parts(g->dtype)->vector(g, begin, end);
}

static cpu_gemm_args
transposed(const cpu_gemm_args *g)
{
    cpu_gemm_args t = *g;
    t.m = g->n;
    t.n = g->m;
    t.a = g->b;
    t.b = g->a;
    t.a_row = g->b_column;
    t.a_column = g->b_row;
    t.b_row = g->a_column;
    t.b_column = g->a_row;
    t.c_row = g->c_column;
    t.c_column = g->c_row;
    t.bias_row = g->bias_column;
    t.bias_column = g->bias_row;
    t.b_storage = NULL;
    return t;
}

/* Whether to read a few times is all that a product of few columns costs, and that can be done in vectors. */
static bool
waits_for_memory(const cpu_gemm_args *g)
{
    bool plain = g->dtype == DT_FLOAT32 || g->dtype == DT_FLOAT64;
    return plain && g->m * g->k >= MEMORY_NUMBERS && (g->a_row == 1 || (g->a_column == 1 && g->b_row == 1));
}

dt_status
cpu_gemm(const cpu_gemm_args *g, dt_error *err)
{
    if (g->conv != NULL) {
        return run_plan(g, err);
    }
    if (g->m <= FEW_COLUMNS || g->n <= FEW_COLUMNS) {
        if (g->m == 1 && g->n == 1 && cpu_gemm_finished(g)) {
            cpu_gemm_parts(g->dtype)->dot(g->a, g->a_column, g->b, g->b_row, g->k, g->c);
            return DT_OK;
        }
        cpu_gemm_args v = g->n <= g->m ? *g : transposed(g);
        if (v.n == 1 || waits_for_memory(&v)) {
            cpu_parallel(v.m, CPU_CEIL_DIV(CPU_GRAIN, CPU_MAX(v.k, 1)), vector_part, &v);
            return DT_OK;
        }
    }
    if (g->c_column != 1 && g->c_row == 1) { /* rows of c are best where they lie in memory */
        cpu_gemm_args t = transposed(g);
        return cpu_gemm_small(&t) ? DT_OK : run_plan(&t, err);
    }
    return cpu_gemm_small(g) ? DT_OK : run_plan(g, err);
}
