/* plan.h: how a matrix product is cut, and what packs its panels: gemm.c, panels.c. */
#ifndef DT_CPU_GEMM_PLAN_H
#define DT_CPU_GEMM_PLAN_H

#include "../../core/memory/packed_cache.h"
#include "gemm.h"
#include "patches.h"

typedef enum { GEMM_PACKED, GEMM_NEIGHBOURS, GEMM_ANYWHERE } gemm_a_mode;

/* The same for all threads. */
typedef struct {
    const cpu_gemm_args *g;
    const gemm_dtype *parts;
    const gemm_kernel *kernel;
    int64_t itemsize, size;                                /* of an array's number, of an accumulator */
    int64_t taps, some_taps, some_channels;                /* all, and of a stretch */
    int64_t panels_a, panels_b, panel_rows, larger_panels; /* of a: so many have a row more */
    int64_t grid_rows, grid_columns;
    int64_t block_a, block_b, super_a; /* panels */
    gemm_a_mode a_mode;
    bool b_in_place, c_holds_sums, adds_to_c;
    bool adds_bias; /* kernels add it at their end, as they add what is in c: sums are of one stretch */
    bool finished;  /* a sum is the result as it is */
    bool places;    /* of a weight that has all taps of a channel side by side */
    size_t size_a, size_b, size_sums, size_places;
    const char *kept_a, *kept_b; /* all panels of a weight, packed before, or NULL */
    char *scratch;
} gemm_plan;

/* One thread's: a stretch of k, a block of a's panels, and where the panels of b are. */
typedef struct {
    const gemm_plan *plan;
    char *a, *b, *sums;
    const char *panels; /* of a, of the block */
    int32_t *places;
    int64_t tap, taps, channel, channels, depth;
    bool first, last;
    int64_t begin_a, end_a, begin_b, end_b, sums_a; /* panels */
} gemm_share;

/* Where a panel of a begins. */
static inline int64_t
gemm_row_of(const gemm_plan *p, int64_t panel)
{
    return panel * p->panel_rows + CPU_MIN(panel, p->larger_panels);
}

/* ---------------------------------------------------------------- panels.c */

/* Goes over k, all of its channels and taps; there is one stretch for k = 0 too. */
void gemm_first_stretch(gemm_share *s);
bool gemm_next_stretch(gemm_share *s);

void gemm_pack_a(const gemm_share *s, char *to, int64_t row, int64_t rows);
void gemm_pack_b(const gemm_share *s, char *to, int64_t column, int64_t columns);
/* The addresses of a panel's rows, for each tap. */
void gemm_find_rows(const gemm_share *s, const void **to, int64_t row, int64_t rows);
/* Where the panels of this stretch begin among all, which have `width` numbers for each step of k; bytes. */
static inline int64_t
gemm_stretch_start(const gemm_share *s, int64_t width)
{
    return (s->channel * s->plan->taps + s->tap * s->channels) * width * s->plan->size;
}
/* Has p use kept panels of the weight if there are, or from now on; the caller releases what is returned. */
dt_kept *gemm_keep_weight(gemm_plan *p);

#endif
