/* joint_phases.c: all phases of a gradient's convolutions as one convolution. Where the stride divides the weight's
 * sizes, every phase has the same number of taps and reads nearly the same patches: one product of all taps packs each
 * patch once, and its results are woven into their rows. Some images go through at a time, so that their results stay
 * in the cache, or all where the weight is packed for each product and is large beside them. */
#include <string.h>

#include "phases.h"

#define MAX_STRIDE 64
#define PIECE_BYTES ((int64_t)512 << 10) /* of results for each thread */
#define PACKING_COST 4 /* multiplications that take as long as to pack a number of the patches again */
#define MOST_INPUTS 96 /* with more of them the product of one phase is wide enough */
#define FEW_INPUTS 16  /* the same where lines must be turned into planes */

/* Along one dimension: where the grid of patches begins, its size, and the place of each phase's first entry in it. */
typedef struct {
    cpu_phase f[MAX_STRIDE];
    int64_t places[MAX_STRIDE], stride, size, pad, dilation; /* dilation: of every phase */
} grid_side;

static bool
find_side(const dt_conv2d_params *params, int i, int64_t stride, int64_t entries, int64_t kernel, grid_side *side)
{
    int64_t first = INT64_MAX, end = INT64_MIN;
    const cpu_phase model = cpu_find_phase(params, i, stride, 0, entries, kernel);
    side->stride = stride;
    side->dilation = model.dilation;
    for (int64_t j = 0; j < stride; j++) {
        const cpu_phase f = side->f[j] = cpu_find_phase(params, i, stride, j, entries, kernel);
        if (f.taps == 0 || f.taps != model.taps || f.count == 0) {
            return false;
        }
        side->places[j] = (f.taps - 1) * f.dilation - f.pad;
        first = CPU_MIN(first, side->places[j]);
        end = CPU_MAX(end, side->places[j] + f.count);
    }
    for (int64_t j = 0; j < stride; j++) {
        side->places[j] -= first;
    }
    side->size = end - first;
    side->pad = (model.taps - 1) * model.dilation - first;
    return true;
}

/* Results of some images as (images, phases, channels, rows, columns), and where they go. */
typedef struct {
    const grid_side *sides;
    dt_array grid, out;
} weave_job;

#define WEAVE_ROW(type)                                                                                                \
    {                                                                                                                  \
        const type *row = (const type *)(const void *)from;                                                            \
        type *line = (type *)(void *)to;                                                                               \
        for (int64_t j = 0; j < across->stride; j++) {                                                                 \
            const type *part = row + j * phase + across->places[j] * columns;                                          \
            for (int64_t q = 0; q < across->f[j].count; q++) {                                                         \
                line[(q * across->stride + j) * step] = part[q * columns];                                             \
            }                                                                                                          \
        }                                                                                                              \
    }

/* Two phases of neighbours: their vectors interleave. */
#define ZIP_ROW(type)                                                                                                  \
    {                                                                                                                  \
        const type *even = (const type *)(const void *)from + across->places[0];                                       \
        const type *odd = (const type *)(const void *)from + phase + across->places[1];                                \
        type *line = (type *)(void *)to;                                                                               \
        for (int64_t q = 0; q < across->f[1].count; q++) {                                                             \
            line[2 * q] = even[q];                                                                                     \
            line[2 * q + 1] = odd[q];                                                                                  \
        }                                                                                                              \
        if (across->f[0].count > across->f[1].count) {                                                                 \
            line[2 * across->f[1].count] = even[across->f[1].count];                                                   \
        }                                                                                                              \
    }

#define WEAVE(ROW)                                                                                                     \
    switch (dt_itemsize((dt_dtype)job->out.dtype)) {                                                                   \
    case 2:                                                                                                            \
        ROW(uint16_t)                                                                                                  \
        break;                                                                                                         \
    case 4:                                                                                                            \
        ROW(uint32_t)                                                                                                  \
        break;                                                                                                         \
    default:                                                                                                           \
        ROW(uint64_t)                                                                                                  \
    }

/* Rows [begin, end) of one channel each. */
static void
weave_rows(void *ctx, int64_t begin, int64_t end)
{
    const weave_job *job = ctx;
    const grid_side *down = &job->sides[0], *across = &job->sides[1];
    const int64_t channels = job->out.shape[1], rows = job->out.shape[2];
    const int64_t itemsize = (int64_t)dt_itemsize((dt_dtype)job->out.dtype);
    const int64_t *gs = job->grid.strides, *os = job->out.strides;
    const int64_t columns = gs[3], phase = channels * gs[1], step = os[3];
    for (int64_t item = begin; item < end; item++) {
        const int64_t h = item % rows, channel = item / rows % channels, image = item / rows / channels;
        const int64_t i = h % down->stride, u = h / down->stride + down->places[i];
        const char *from = (const char *)job->grid.storage->data +
                           (image * gs[0] + (i * across->stride * channels + channel) * gs[1] + u * gs[2]) * itemsize;
        char *to = (char *)dt_array_data(&job->out) + (image * os[0] + channel * os[1] + h * os[2]) * itemsize;
        if (across->stride == 2 && columns == 1 && step == 1) {
            WEAVE(ZIP_ROW)
        } else {
            WEAVE(WEAVE_ROW)
        }
    }
}

/* Rows [begin, end) of pixels, whose channels lie side by side. */
static void
weave_pixels(void *ctx, int64_t begin, int64_t end)
{
    const weave_job *job = ctx;
    const grid_side *down = &job->sides[0], *across = &job->sides[1];
    const int64_t channels = job->out.shape[1], rows = job->out.shape[2];
    const int64_t itemsize = (int64_t)dt_itemsize((dt_dtype)job->out.dtype);
    const int64_t *gs = job->grid.strides, *os = job->out.strides;
    for (int64_t item = begin; item < end; item++) {
        const int64_t h = item % rows, image = item / rows, i = h % down->stride;
        const int64_t u = h / down->stride + down->places[i];
        const char *row = (const char *)job->grid.storage->data +
                          (image * gs[0] + i * across->stride * channels + u * gs[2]) * itemsize;
        char *line = (char *)dt_array_data(&job->out) + (image * os[0] + h * os[2]) * itemsize;
        for (int64_t w = 0; w < job->out.shape[3]; w++) {
            const int64_t j = w % across->stride, v = w / across->stride + across->places[j];
            memcpy(line + w * os[3] * itemsize, row + (j * channels + v * gs[3]) * itemsize,
                   (size_t)(channels * itemsize));
        }
    }
}

static dt_status
run_piece(const dt_array *grad, const dt_array *turned, const dt_conv2d_params *inner, weave_job *job, dt_error *err)
{
    DT_TRY(cpu_conv2d(grad, turned, NULL, inner, &job->grid, err));
    const int64_t rows = job->out.shape[0] * job->out.shape[2], channels = job->out.shape[1];
    if (job->grid.strides[1] == 1 && job->out.strides[1] == 1) {
        cpu_parallel(rows, CPU_CEIL_DIV(CPU_GRAIN, job->out.shape[3] * channels), weave_pixels, job);
    } else {
        cpu_parallel(rows * channels, CPU_CEIL_DIV(CPU_GRAIN, job->out.shape[3]), weave_rows, job);
    }
    return DT_OK;
}

dt_status
cpu_conv2d_joint_phases(const dt_array *grad, const dt_array *weight, const dt_conv2d_params *params,
                        const int64_t stride[2], bool lines, bool joined, dt_array *out, bool *made, dt_error *err)
{
    grid_side sides[2];
    const int64_t inputs = out->shape[1], phases = stride[0] * stride[1],
                  itemsize = (int64_t)dt_itemsize((dt_dtype)out->dtype);
    *made = false;
    if (params->groups != 1 || phases == 1 || inputs > (joined && !lines ? FEW_INPUTS : MOST_INPUTS) ||
        stride[0] > MAX_STRIDE || stride[1] > MAX_STRIDE) {
        return DT_OK;
    }
    dt_array g = *grad;
    dt_conv2d_params inner = {.stride = {1, 1}, .groups = 1};
    for (int i = 0; i < 2; i++) {
        if (!find_side(params, i, stride[i], out->shape[2 + i], weight->shape[2 + i], &sides[i])) {
            return DT_OK;
        }
        inner.dilation[i] = sides[i].dilation;
        cpu_begin_phase(sides[i].pad, i, &inner, &g);
    }
    const int64_t plane = out->shape[2] * out->shape[3], patches = sides[0].size * sides[1].size;
    if (g.shape[2] == 0 || g.shape[3] == 0 || (phases * patches - plane) * inputs > PACKING_COST * plane) {
        return DT_OK;
    }

    const int64_t image = phases * inputs * patches, threads = cpu_num_threads();
    int64_t some = CPU_MAX(PIECE_BYTES * threads / (image * itemsize), 1);
    some = joined ? out->shape[0] : CPU_MIN(some >= threads ? some / threads * threads : some, out->shape[0]);
    const size_t weights = ((size_t)(dt_array_numel(weight) * itemsize) + 63) & ~(size_t)63;
    const size_t nbytes = weights + (size_t)(some * image * itemsize);
    char *buffer = dt_large_new(nbytes);
    if (buffer == NULL) {
        return dt_fail_nomem(err, nbytes);
    }
    dt_storage taps = {.data = buffer}, entries = {.data = buffer + weights};
    const cpu_phases all[2] = {{sides[0].f, stride[0]}, {sides[1].f, stride[1]}};
    const dt_array turned = cpu_turned_copy(weight, all, 1, &taps);
    weave_job job = {.sides = sides, .grid = {.storage = &entries, .dtype = out->dtype, .ndim = 4}, .out = *out};
    const int64_t channels = phases * inputs;
    const int64_t shape[4] = {some, channels, sides[0].size, sides[1].size};
    const int64_t planes[4] = {image, patches, sides[1].size, 1},
                  pixels[4] = {image, 1, sides[1].size * channels, channels};
    memcpy(job.grid.shape, shape, sizeof shape);
    memcpy(job.grid.strides, lines || joined ? pixels : planes, sizeof planes);
    dt_status rc = DT_OK;
    for (int64_t i = 0; i < out->shape[0] && rc == DT_OK; i += some) {
        dt_array part = g;
        part.offset += i * g.strides[0] * itemsize;
        job.out.offset = out->offset + i * out->strides[0] * itemsize;
        part.shape[0] = job.grid.shape[0] = job.out.shape[0] = CPU_MIN(some, out->shape[0] - i);
        rc = run_piece(&part, &turned, &inner, &job, err);
    }
    dt_large_free(buffer);
    *made = rc == DT_OK;
    return rc;
}
