/* panels.c: packs numbers of a matrix, or of the patches and weights of a convolution, into panels as wide as the
 * register block. The panels of a weight that many products share are kept. */
#include "plan.h"

#define KEPT_PATCHES 1024 /* or rows of a, that share a weight: with more, packing it is little beside the product */
#define KEPT_NUMBERS 4096 /* of a weight: with fewer too */

static const char zeros[GEMM_MAX_DEPTH * sizeof(double)];

/* ---------------------------------------------------------------- stretches */

static void
cut(gemm_share *s)
{
    const gemm_plan *p = s->plan;
    int64_t channels = p->g->k;
    s->channels = CPU_MIN(p->some_channels, channels - s->channel);
    s->taps = CPU_MIN(p->some_taps, p->taps - s->tap);
    s->depth = s->taps * s->channels;
    s->first = s->channel == 0 && s->tap == 0;
    s->last = s->channel + s->channels == channels && s->tap + s->taps == p->taps;
    for (int32_t i = 0; p->places && i < s->depth; i++) {
        s->places[i] = i % (int32_t)s->taps * (int32_t)s->channels + i / (int32_t)s->taps;
    }
}

void
gemm_first_stretch(gemm_share *s)
{
    s->channel = s->tap = 0;
    cut(s);
}

bool
gemm_next_stretch(gemm_share *s)
{
    if (s->last) {
        return false;
    }
    s->tap += s->taps;
    if (s->tap == s->plan->taps) {
        s->tap = 0;
        s->channel += s->channels;
    }
    cut(s);
    return true;
}

/* ---------------------------------------------------------------- panels */

static void
pack_patches(const gemm_share *s, const char *x, char *to, int64_t patch, int64_t count, int64_t width)
{
    const gemm_plan *p = s->plan;
    const struct cpu_conv *conv = p->g->conv;
    const int64_t along = conv->stride[1] * conv->x_column, line = s->channels * width * p->size;
    conv_run runs[GEMM_MAX_COLUMNS];
    int64_t nruns = 0, tap_row = s->tap / conv->kernel[1], tap_column = s->tap % conv->kernel[1];
    for (int64_t lane = 0; lane < count; lane += runs[nruns++].count) {
        runs[nruns] = conv_next_run(conv, conv->first + patch + lane, count - lane);
    }
    x += s->channel * conv->x_channel * p->itemsize;
    for (int64_t t = 0; t < s->taps; t++, to += line) {
        conv_span in[GEMM_MAX_COLUMNS];
        bool padded = false;
        for (int64_t i = 0; i < nruns; i++) {
            in[i] = conv_clip(conv, &runs[i], tap_row, tap_column);
            padded |= in[i].end - in[i].begin < runs[i].count;
        }
        if (padded) {
            memset(to, 0, (size_t)line);
        }
        char *lane = to;
        for (int64_t i = 0; i < nruns; lane += runs[i++].count * p->size) {
            if (in[i].begin < in[i].end) {
                p->parts->pack(lane + in[i].begin * p->size, x + in[i].offset * p->itemsize, along, conv->x_channel,
                               in[i].end - in[i].begin, s->channels, width, NULL);
            }
        }
        if (++tap_column == conv->kernel[1]) {
            tap_column = 0;
            tap_row++;
        }
    }
}

static void
pack_weight(const gemm_share *s, const char *weight, char *to, int64_t output, int64_t count, int64_t width)
{
    const gemm_plan *p = s->plan;
    const struct cpu_conv *conv = p->g->conv;
    weight += (output * conv->weight_output + s->channel * conv->weight_channel) * p->itemsize;
    if (p->places) {
        p->parts->pack(to, weight, conv->weight_output, 1, count, s->depth, width, s->places);
        return;
    }
    for (int64_t t = 0; t < s->taps; t++) {
        int64_t tap = s->tap + t, row = tap / conv->kernel[1], column = tap % conv->kernel[1];
        p->parts->pack(to + t * s->channels * width * p->size,
                       weight + (row * conv->weight_row + column * conv->weight_column) * p->itemsize,
                       conv->weight_output, conv->weight_channel, count, s->channels, width, NULL);
    }
}

void
gemm_pack_a(const gemm_share *s, char *to, int64_t row, int64_t rows)
{
    const gemm_plan *p = s->plan;
    const cpu_gemm_args *g = p->g;
    if (g->conv != NULL) {
        (g->conv->patches_are_rows ? pack_patches : pack_weight)(s, g->a, to, row, rows, rows);
    } else {
        const char *from = (const char *)g->a + (row * g->a_row + s->channel * g->a_column) * p->itemsize;
        p->parts->pack(to, from, g->a_row, g->a_column, rows, s->depth, rows, NULL);
    }
}

void
gemm_pack_b(const gemm_share *s, char *to, int64_t column, int64_t columns)
{
    const gemm_plan *p = s->plan;
    const cpu_gemm_args *g = p->g;
    int64_t width = p->kernel->columns;
    if (columns < width) {
        memset(to, 0, (size_t)(width * s->depth * p->size));
    }
    if (g->conv != NULL) {
        (g->conv->patches_are_rows ? pack_weight : pack_patches)(s, g->b, to, column, columns, width);
    } else {
        const char *from = (const char *)g->b + (column * g->b_column + s->channel * g->b_row) * p->itemsize;
        p->parts->pack(to, from, g->b_column, g->b_row, columns, s->depth, width, NULL);
    }
}

void
gemm_find_rows(const gemm_share *s, const void **to, int64_t row, int64_t rows)
{
    const gemm_plan *p = s->plan;
    const cpu_gemm_args *g = p->g;
    const struct cpu_conv *conv = g->conv;
    if (conv == NULL) {
        for (int64_t i = 0; i < rows; i++) {
            to[i] = (const char *)g->a + ((row + i) * g->a_row + s->channel) * p->itemsize;
        }
        return;
    }
    const char *x = (const char *)g->a + s->channel * p->itemsize;
    int64_t apart = conv->stride[1] * conv->x_column;
    for (int64_t lane = 0; lane < rows;) {
        conv_run run = conv_next_run(conv, conv->first + row + lane, rows - lane);
        for (int64_t t = 0; t < s->taps; t++) {
            int64_t tap = s->tap + t;
            conv_span in = conv_clip(conv, &run, tap / conv->kernel[1], tap % conv->kernel[1]);
            for (int64_t j = 0; j < run.count; j++) {
                to[t * rows + lane + j] =
                    j < in.begin || j >= in.end ? zeros : x + (in.offset + (j - in.begin) * apart) * p->itemsize;
            }
        }
        lane += run.count;
    }
}

/* ---------------------------------------------------------------- weights that are kept */

/* All panels of the weight. */
static void
pack_weights(const void *ctx, void *to)
{
    const gemm_plan *p = ctx;
    const cpu_gemm_args *g = p->g;
    int32_t places[GEMM_MAX_DEPTH];
    gemm_share s = {.plan = p, .places = places};
    bool is_b = g->conv == NULL || g->conv->patches_are_rows;
    int64_t width = p->kernel->columns, steps = is_b ? p->panels_b * width : g->m;
    gemm_first_stretch(&s);
    do {
        char *panels = (char *)to + gemm_stretch_start(&s, steps);
        for (int64_t j = 0; is_b && j < p->panels_b; j++) {
            gemm_pack_b(&s, panels + j * width * s.depth * p->size, j * width, CPU_MIN(width, g->n - j * width));
        }
        for (int64_t i = 0; !is_b && i < p->panels_a; i++) {
            int64_t row = gemm_row_of(p, i);
            gemm_pack_a(&s, panels + row * s.depth * p->size, row, gemm_row_of(p, i + 1) - row);
        }
    } while (gemm_next_stretch(&s));
}

dt_kept *
gemm_keep_weight(gemm_plan *p)
{
    const cpu_gemm_args *g = p->g;
    const struct cpu_conv *conv = g->conv;
    dt_storage *storage = conv != NULL ? conv->weight : g->b_storage;
    if (storage == NULL || p->b_in_place) {
        return NULL;
    }
    bool is_b = conv == NULL || conv->patches_are_rows;
    int64_t outputs = is_b ? g->n : g->m, patches = is_b ? g->m : g->n, depth = g->k * p->taps;
    if (patches > KEPT_PATCHES || outputs * depth < KEPT_NUMBERS) {
        return NULL;
    }
    const int64_t place = (const char *)(is_b ? g->b : g->a) - (const char *)storage->data;
    const dt_kept_key key =
        conv == NULL
            ? (dt_kept_key){{place, g->dtype, is_b, outputs, g->k, 0, 0, g->b_column, g->b_row, 0, 0}}
            : (dt_kept_key){{place, g->dtype, is_b, outputs, g->k, conv->kernel[0], conv->kernel[1],
                             conv->weight_output, conv->weight_channel, conv->weight_row, conv->weight_column}};
    int64_t steps = is_b ? p->panels_b * p->kernel->columns : outputs;
    dt_kept *kept = dt_kept_get(storage, &key, (size_t)(steps * depth * p->size), pack_weights, p);
    *(is_b ? &p->kept_b : &p->kept_a) = dt_kept_data(kept);
    return kept;
}
