/* pool2d_grad.c: the gradient of the largest of windows: the largest entry of each is found anew, and is given what
 * came for it. A part owns what it adds to: a plane, or channels of an image that are neighbours in memory, which are
 * one line. A plane whose lines have room is made in strips by vectors of windows, others entry by entry. The sums of
 * an entry go from the first window over it to the last. */
#include "pool2d.h"

#define CHANNELS 64   /* of a part */
#define POOL_LANES 16 /* no vector has more */

typedef struct {
    const dt_array *x, *grad, *out;
    const dt_pool2d_params *params;
    int64_t itemsize, size; /* of an element of x and grad, of out */
    int64_t channels;       /* of a part */
    cpu_pool_pick pick;
    cpu_pool_give give;
    cpu_pool_scatter scatter;
    cpu_pool_plane plane; /* all of it; of pitch 0: its lines have no room */
    int64_t strip;        /* rows of out that are made together */
    cpu_pool_prepare prepare;
    cpu_pool_spread spread;
    cpu_pool_pairs_grad pairs; /* or NULL */
    bool tiled;                /* each entry is in one window */
} grad_job;

static void
set_nowhere(int32_t *where, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        where[i] = POOL_NOWHERE;
    }
}

/* The window at (p, q), for n channels side by side. */
static void
grad_line(const grad_job *job, const char *x, const char *grad, char *out, int64_t p, int64_t q, int64_t n)
{
    const dt_pool2d_params *params = job->params;
    const int64_t *xs = job->x->strides, *os = job->out->strides, *gs = job->grad->strides;
    const window rows = dilated_window(params, 0, p, job->x->shape[2]);
    const window columns = dilated_window(params, 1, q, job->x->shape[3]);
    const cpu_pool_window here = {
        .rows = {rows.begin, rows.end, params->dilation[0]},
        .columns = {columns.begin, columns.end, params->dilation[1]},
        .x_row = xs[2],
        .x_column = xs[3],
        .out_row = os[2],
        .out_column = os[3],
        .alone = job->tiled,
    };
    job->give(&here, x, grad + (p * gs[2] + q * gs[3]) * job->itemsize, out, n);
}

/* n windows side by side in row p of a plane, from column first; where each finds its largest entry, as seen from its
 * own corner, is what is kept. */
static void
grad_row(const grad_job *job, const char *x, const char *grad, char *out, int64_t p, int64_t first, int64_t n)
{
    double largest[LINE]; /* room for either type */
    int32_t where[LINE];
    const dt_pool2d_params *params = job->params;
    const int64_t *xs = job->x->strides, *os = job->out->strides, *gs = job->grad->strides;
    const int64_t apart = params->stride[1], width = job->x->shape[3], corner = first * apart - params->padding[1];
    const window rows = dilated_window(params, 0, p, job->x->shape[2]);
    const window taps = taps_of_row(params, params->dilation[1], width, first, n);
    set_nowhere(where, n);
    for (int64_t i = rows.begin; i < rows.end; i += params->dilation[0]) {
        for (int64_t j = taps.begin; j < taps.end; j++) {
            const int64_t column = corner + j * params->dilation[1];
            const window in = columns_inside(column, apart, width, n);
            if (in.begin < in.end) {
                job->pick((char *)largest + in.begin * job->size, where + in.begin,
                          x + (i * xs[2] + (column + in.begin * apart) * xs[3]) * job->itemsize, apart * xs[3],
                          (int32_t)(i * os[2] + column * os[3]), in.end - in.begin);
            }
        }
    }
    job->scatter(out, where, grad + (p * gs[2] + first * gs[3]) * job->itemsize, apart * os[3], gs[3], n);
}

/* Zeros for n channels of an image. */
static void
clear_part(const grad_job *job, char *out, int64_t n)
{
    const int64_t *shape = job->out->shape, *os = job->out->strides;
    const bool rows = n == 1 && os[3] == 1;
    const size_t nbytes = (size_t)((rows ? shape[3] : n) * job->size);
    for (int64_t h = 0; h < shape[2]; h++) {
        for (int64_t w = 0; w < (rows ? 1 : shape[3]); w++) {
            memset(out + (h * os[2] + w * os[3]) * job->size, 0, nbytes);
        }
    }
}

/* A plane of windows of 2 x 2 beside each other; a last row or column may be in none. */
static void
grad_pairs(const grad_job *job, const char *x, const char *grad, char *out)
{
    const int64_t *xs = job->x->strides, *gs = job->grad->strides, *os = job->out->strides, *shape = job->out->shape;
    const int64_t *results = job->grad->shape, row = os[2] * job->size, x_row = xs[2] * job->itemsize;
    const size_t rest = (size_t)((shape[3] - 2 * results[3]) * job->size);
    for (int64_t p = 0; p < results[2]; p++) {
        char *upper = out + 2 * p * row;
        job->pairs(x + 2 * p * x_row, x + (2 * p + 1) * x_row, grad + p * gs[2] * job->itemsize, upper, upper + row,
                   results[3]);
        memset(upper + 2 * results[3] * job->size, 0, rest);
        memset(upper + row + 2 * results[3] * job->size, 0, rest);
    }
    for (int64_t h = 2 * results[2]; h < shape[2]; h++) {
        memset(out + h * row, 0, (size_t)(shape[3] * job->size));
    }
}

/* The strip of a plane that has rows [from, to) of out: the windows over them, and their rows of x. row and result are
 * the first of these. */
static cpu_pool_plane
strip_of(const cpu_pool_plane *plane, int64_t from, int64_t to, int64_t *row, int64_t *result)
{
    cpu_pool_plane strip = *plane;
    const int64_t step = plane->stride_down, above = plane->pad_above;
    const int64_t reach = (plane->kernel[0] - 1) * plane->dilation[0];
    const int64_t first = from + above > reach ? CPU_CEIL_DIV(from + above - reach, step) : 0;
    const int64_t last = CPU_MIN((to - 1 + above) / step + 1, plane->results[0]);
    const int64_t begin = CPU_MAX(first * step - above, 0);
    const int64_t end = CPU_MIN((last - 1) * step - above + reach + 1, plane->height);
    strip.results[0] = CPU_MAX(last - first, 0);
    strip.height = CPU_MAX(end - begin, 0);
    strip.pad_above = above - first * step + begin;
    strip.rows[0] = from - begin;
    strip.rows[1] = to - begin;
    *row = begin;
    *result = first;
    return strip;
}

/* At most what any strip of n rows of out has. */
static cpu_pool_plane
largest_strip(const cpu_pool_plane *plane, int64_t n)
{
    cpu_pool_plane strip = *plane;
    const int64_t step = plane->stride_down, reach = (plane->kernel[0] - 1) * plane->dilation[0];
    strip.results[0] = CPU_MIN((n - 1 + reach) / step + 1, plane->results[0]);
    strip.height = CPU_MIN((strip.results[0] - 1) * step + reach + 1, plane->height);
    return strip;
}

static bool
has_room(const cpu_pool_plane *plane, int64_t n)
{
    const cpu_pool_plane strip = largest_strip(plane, n);
    return CPU_MAX(strip.height, 1) * strip.stride <= CPU_POOL_NUMBERS / strip.pitch &&
           strip.results[0] <= CPU_POOL_NUMBERS / strip.windows;
}

static void
grad_strips(const grad_job *job, const cpu_pool_plane *plane, const char *x, const char *grad, char *out)
{
    for (int64_t from = 0; from < plane->height; from += job->strip) {
        int64_t row, result;
        const int64_t to = CPU_MIN(from + job->strip, plane->height);
        const cpu_pool_plane strip = strip_of(plane, from, to, &row, &result);
        job->spread(&strip, x + row * plane->x_row * job->itemsize, grad + result * plane->grad_row * job->itemsize,
                    out + from * plane->out_row * job->size);
    }
}

/* Sets the plane, if its lines have room, and the strips. */
static void
lay_out(grad_job *job)
{
    const dt_pool2d_params *params = job->params;
    const int64_t *xs = job->x->strides, *gs = job->grad->strides, *os = job->out->strides;
    cpu_pool_plane plane = {
        .height = job->x->shape[2],
        .width = job->x->shape[3],
        .results = {job->grad->shape[2], job->grad->shape[3]},
        .kernel = {params->kernel[0], params->kernel[1]},
        .dilation = {params->dilation[0], params->dilation[1]},
        .stride = job->grad->shape[3] == 1 ? 1 : params->stride[1], /* a step that is never taken */
        .stride_down = job->grad->shape[2] == 1 ? 1 : params->stride[0],
        .pad = params->padding[1],
        .pad_above = params->padding[0],
        .x_row = xs[2],
        .x_column = xs[3],
        .grad_row = gs[2],
        .grad_column = gs[3],
        .out_row = os[2],
        .out_column = os[3],
    };
    const int64_t most = CPU_POOL_NUMBERS;
    if (plane.kernel[1] > CPU_POOL_TAPS || plane.kernel[0] > CPU_POOL_TAPS || plane.dilation[1] > most ||
        plane.stride > most || plane.pad > most || plane.results[1] > most - POOL_LANES || plane.width > most) {
        return;
    }
    const int64_t whole = CPU_CEIL_DIV(plane.results[1], POOL_LANES) * POOL_LANES;
    plane.held = (plane.width - 1 + plane.pad) / plane.stride + 1;
    plane.margin = (plane.kernel[1] - 1) * plane.dilation[1] / plane.stride;
    const int64_t held = CPU_MAX(plane.held, POOL_LANES);
    plane.pitch = CPU_MAX(whole + plane.margin, held);
    plane.windows = plane.margin + CPU_MAX(whole, held);
    job->strip = plane.height;
    for (int64_t n = 2; !has_room(&plane, job->strip); n++) {
        if (job->strip == 1) {
            return;
        }
        job->strip = CPU_CEIL_DIV(plane.height, n);
    }
    for (int64_t s = 0; s < plane.kernel[1]; s++) {
        const int64_t column = s * plane.dilation[1];
        plane.phase[s] = column % plane.stride;
        plane.places[s] = plane.phase[s] * plane.pitch + column / plane.stride;
    }
    job->plane = plane;
}

static void
grad_parts(void *ctx, int64_t begin, int64_t end)
{
    const grad_job *job = ctx;
    const int64_t channels = job->x->shape[1], blocks = CPU_CEIL_DIV(channels, job->channels);
    const int64_t results = job->grad->shape[3];
    const int64_t together = job->channels == 1 ? windows_together(job->params, job->x->shape[3]) : 1;
    _Alignas(64) double lines[5][CPU_POOL_NUMBERS]; /* room for either type */
    cpu_pool_plane plane = job->plane;
    if (plane.pitch > 0) {
        plane.laid = lines[0];
        plane.sums = lines[1];
        plane.first = lines[2];
        plane.where = lines[3];
        plane.grads = lines[4];
        const cpu_pool_plane strip = largest_strip(&plane, job->strip);
        job->prepare(&strip);
    }
    for (int64_t part = begin; part < end; part++) {
        const int64_t image = part / blocks, channel = part % blocks * job->channels;
        const int64_t n = CPU_MIN(job->channels, channels - channel);
        const int64_t *xs = job->x->strides, *gs = job->grad->strides, *os = job->out->strides;
        const char *x = (const char *)dt_array_data(job->x) + (image * xs[0] + channel * xs[1]) * job->itemsize;
        const char *grad = (const char *)dt_array_data(job->grad) + (image * gs[0] + channel * gs[1]) * job->itemsize;
        char *out = (char *)dt_array_data(job->out) + (image * os[0] + channel * os[1]) * job->size;
        if (job->pairs != NULL) {
            grad_pairs(job, x, grad, out);
            continue;
        }
        if (plane.pitch > 0) {
            grad_strips(job, &plane, x, grad, out);
            continue;
        }
        if (!job->tiled) {
            clear_part(job, out, n);
        }
        for (int64_t p = 0; p < job->grad->shape[2]; p++) {
            for (int64_t q = 0; q < results; q += together) {
                if (job->channels == 1) {
                    grad_row(job, x, grad, out, p, q, CPU_MIN(together, results - q));
                } else {
                    grad_line(job, x, grad, out, p, q, n);
                }
            }
        }
    }
}

static bool
is_tiled(const dt_array *x, const dt_pool2d_params *params)
{
    bool found = true;
    for (int d = 0; d < 2; d++) {
        found = found && is_side_by_side(params, d) && x->shape[2 + d] % params->kernel[d] == 0;
    }
    return found;
}

dt_status
cpu_max_pool2d_grad(const dt_array *x, const dt_array *grad, const dt_pool2d_params *params, dt_array *out,
                    dt_error *err)
{
    (void)err;
    const cpu_loops *loops = cpu_loops_here();
    const int dtype = (int)x->dtype - DT_FLOAT16;
    const bool line = x->strides[1] == 1 && out->strides[1] == 1 && grad->strides[1] == 1 && x->shape[1] >= 8;
    grad_job job = {
        .x = x,
        .grad = grad,
        .out = out,
        .params = params,
        .itemsize = (int64_t)dt_itemsize((dt_dtype)x->dtype),
        .size = (int64_t)dt_itemsize((dt_dtype)out->dtype),
        .channels = line ? CHANNELS : 1,
        .tiled = line && is_tiled(x, params),
        .pick = loops->pool_pick[dtype],
        .give = loops->pool_window[dtype],
        .scatter = loops->pool_scatter[dtype],
        .prepare = loops->pool_prepare[dtype],
        .spread = loops->pool_plane[dtype],
    };
    if (!line && is_pairs(x, params, grad) && out->strides[3] == 1 && grad->shape[3] >= POOL_LANES) {
        job.pairs = loops->pool_pairs_grad[dtype];
    } else if (!line) {
        lay_out(&job);
    }
    const int64_t parts = x->shape[0] * CPU_CEIL_DIV(x->shape[1], job.channels);
    const int64_t window_size = CPU_MIN(params->kernel[0], x->shape[2]) * CPU_MIN(params->kernel[1], x->shape[3]);
    const int64_t work = CPU_MAX(dt_array_numel(grad) / parts * window_size, 1);
    cpu_parallel(parts, CPU_CEIL_DIV(CPU_GRAIN, work), grad_parts, &job);
    return DT_OK;
}
