/* pool2d.c: the formulas of pools, made of pools and selections. */
#include "../call.h"
#include "conv.h"
#include "shape.h"
#include "tape.h"
#include "../ops/index.h"
#include "../layout/layout.h"
#include "../ops/ops.h"

/* Where the largest elements are: found again, so that the call itself keeps no indices. */
static dt_value
positions(dt_tape *t, dt_value x)
{
    dt_array *values = dt_tape_slot(t), *indices = dt_tape_slot(t);
    if (indices == NULL ||
        dt_tape_made(t, dt_empty(dt_array_device(x), (dt_dtype)x->dtype, t->node->ndim, t->node->shape, values, t->err),
                     values) == NULL ||
        dt_tape_made(t, dt_empty_beside(values, DT_INT64, indices, t->err), indices) == NULL) {
        return NULL;
    }
    const dt_array from = dt_as_batch(x);
    dt_array to = dt_as_batch(values), at = dt_as_batch(indices);
    return dt_tape_made(t, dt_call_pool2d(&from, t->params, &to, &at, t->err), indices);
}

static int64_t
plane_size(dt_value x)
{
    return x->shape[x->ndim - 2] * x->shape[x->ndim - 1];
}

/* x (.., H, W) as (.., H * W) */
static dt_value
flat_planes(dt_tape *t, dt_value x)
{
    int64_t shape[DT_MAX_NDIM];
    if (x == NULL) {
        return NULL;
    }
    for (int d = 0; d < x->ndim - 2; d++) {
        shape[d] = x->shape[d];
    }
    shape[x->ndim - 2] = plane_size(x);
    return dt_tape_reshape(t, x, x->ndim - 1, shape);
}

/* What came, as a batch whose channels lie innermost where those of x do. */
static dt_value
laid_as_input(dt_tape *t)
{
    static const int64_t channels_last[4] = {0, 2, 3, 1}, channels_first[4] = {0, 3, 1, 2};
    const dt_array x = dt_as_batch(A);
    dt_value g = dt_tape_batched(t, G);
    if (g == NULL || !dt_is_channels_last(&x) || dt_is_channels_last(g)) {
        return g;
    }
    g = dt_tape_permute(t, g, 4, channels_last);
    dt_array *slot = g == NULL ? NULL : dt_tape_slot(t);
    g = slot == NULL ? NULL : dt_tape_made(t, dt_contiguous(g, slot, t->err), slot);
    return g == NULL ? NULL : dt_tape_permute(t, g, 4, channels_first);
}

/* In one pass over x, without the places. */
static dt_value
spread_to_largest(dt_tape *t)
{
    dt_value grad = laid_as_input(t);
    dt_array *slot = grad == NULL ? NULL : dt_tape_slot(t);
    if (slot == NULL || dt_tape_made(t, dt_empty_beside(A, dt_wide((dt_dtype)A->dtype), slot, t->err), slot) == NULL) {
        return NULL;
    }
    const dt_array x = dt_as_batch(A);
    dt_array to = dt_as_batch(slot);
    return dt_tape_made(t, dt_call_max_pool2d_grad(&x, grad, t->params, &to, t->err), slot);
}

/* What came, with 0 for windows that miss the image, as dilated ones may: none of its elements is their maximum. */
static dt_value
of_windows_inside(dt_tape *t)
{
    const dt_pool2d_params *p = t->params;
    const dt_node *input = dt_tape_input(t, 0);
    const int64_t image[4] = {1, 1, input->shape[input->ndim - 2], input->shape[input->ndim - 1]};
    const int64_t windows[4] = {1, 1, G->shape[G->ndim - 2], G->shape[G->ndim - 1]};
    const dt_scalar zero = dt_scalar_float(0);
    const dt_device device = dt_array_device(A);
    const dt_dtype dtype = (dt_dtype)A->dtype;
    if (p->dilation[0] == 1 && p->dilation[1] == 1) {
        return G;
    }
    dt_array *zeros = dt_tape_slot(t), *largest = dt_tape_slot(t);
    if (largest == NULL ||
        dt_tape_made(t, dt_full("backward", device, dtype, 4, image, &zero, zeros, t->err), zeros) == NULL ||
        dt_tape_made(t, dt_empty(device, dtype, 4, windows, largest, t->err), largest) == NULL) {
        return NULL;
    }
    dt_value found = dt_tape_made(t, dt_call_pool2d(zeros, p, largest, NULL, t->err), largest);
    return WHERE(LT(dt_tape_reshape(t, found, 2, windows + 2), N(0)), N(0), G);
}

void
max_pool2d_gradient(dt_tape *t)
{
    const dt_node *input = dt_tape_input(t, 0);
    if (!t->create_graph && A->shape[A->ndim - 3] * plane_size(A) <= INT32_MAX) {
        dt_tape_give(t, 0, spread_to_largest(t));
        return;
    }
    dt_value at = flat_planes(t, positions(t, A)), g = flat_planes(t, of_windows_inside(t));
    int64_t planes[DT_MAX_NDIM];
    for (int d = 0; d < input->ndim - 2; d++) {
        planes[d] = input->shape[d];
    }
    planes[input->ndim - 2] = input->shape[input->ndim - 2] * input->shape[input->ndim - 1];
    dt_array *slot = at == NULL || g == NULL ? NULL : dt_tape_slot(t);
    if (slot != NULL) {
        const int dim = input->ndim - 2;
        dt_value sums = dt_tape_made(t, dt_embed_along(g, dim, at, dim + 1, planes, slot, t->err), slot);
        dt_tape_give(t, 0, sums == NULL ? NULL : dt_tape_reshape(t, sums, input->ndim, input->shape));
    }
}

/* x (1, 1, n, 1) pooled into so many windows: not recorded. */
static dt_value
pooled(dt_tape *t, const dt_pool2d_params *params, dt_value x, int64_t windows)
{
    const int64_t shape[4] = {1, 1, windows, 1};
    dt_array *out = x == NULL ? NULL : dt_tape_slot(t);
    if (out == NULL ||
        dt_tape_made(t, dt_empty(dt_array_device(x), (dt_dtype)x->dtype, 4, shape, out, t->err), out) == NULL) {
        return NULL;
    }
    return dt_tape_made(t, dt_call_pool2d(x, params, out, NULL, t->err), out);
}

/* How many elements each of the windows has of so many, or with divisor 0 the means of ones; a number for each place of
 * the axis. */
static dt_value
counted(dt_tape *t, int axis, const dt_pool2d_params *params, int64_t size, int64_t windows, dt_dtype dtype)
{
    const int64_t column[4] = {1, 1, size, 1}, along[2] = {axis == 0 ? windows : 1, axis == 0 ? 1 : windows};
    const dt_scalar one = dt_scalar_float(1);
    dt_array *slot = dt_tape_slot(t);
    if (slot == NULL ||
        dt_tape_made(t, dt_full("backward", dt_array_device(G), dtype, 4, column, &one, slot, t->err), slot) == NULL) {
        return NULL;
    }
    dt_value found = pooled(t, params, slot, windows);
    return found == NULL ? NULL : dt_tape_reshape(t, found, 2, along);
}

/* A pool along one spatial dimension. As the axis of an image of one column it is `column`. */
typedef struct {
    int axis;
    int64_t size, windows, kernel, stride, padding;
    bool adaptive; /* windows of two lengths, or that overlap */
    dt_pool2d_params column;
} pool_axis;

static pool_axis
axis_of(const dt_tape *t, int axis)
{
    const dt_pool2d_params *p = t->params;
    const dt_node *input = dt_tape_input(t, 0);
    pool_axis a = {.axis = axis,
                   .size = input->shape[input->ndim - 2 + axis],
                   .windows = t->node->shape[t->node->ndim - 2 + axis],
                   .kernel = p->kernel[axis],
                   .padding = p->padding[axis],
                   .column = *p};
    a.adaptive = p->mode == DT_POOL_ADAPTIVE_AVG && a.size % a.windows != 0;
    a.kernel = p->mode == DT_POOL_ADAPTIVE_AVG && !a.adaptive ? a.size / a.windows : a.kernel;
    a.stride = p->mode == DT_POOL_ADAPTIVE_AVG || a.windows == 1 ? a.kernel : p->stride[axis];
    a.column.kernel[0] = a.kernel;
    a.column.stride[0] = a.stride;
    a.column.padding[0] = a.padding;
    a.column.kernel[1] = a.column.stride[1] = a.column.dilation[0] = a.column.dilation[1] = 1;
    a.column.padding[1] = 0;
    return a;
}

/* By how much each window divides, or 0 where they differ. */
static int64_t
common_divisor(const pool_axis *a)
{
    const int64_t reach = (a->windows - 1) * a->stride + a->kernel, padding = a->padding;
    if (a->adaptive || (padding > 0 && !a->column.count_include_pad)) {
        return 0;
    }
    return reach <= a->size + 2 * padding ? a->kernel : 0;
}

/* g with what each window gives to one element in the place of what came for it. */
static dt_value
divided(dt_tape *t, const pool_axis *a, dt_value g)
{
    dt_pool2d_params sums = a->column, means = a->column;
    sums.divisor = 1;
    means.divisor = 0;
    dt_value count = HOLD(counted(t, a->axis, &sums, a->size, a->windows, (dt_dtype)g->dtype));
    if (a->adaptive) {
        return DIV(g, count);
    }
    dt_value mean = counted(t, a->axis, &means, a->size, a->windows, (dt_dtype)g->dtype);
    return MUL(g, WHERE(EQ(count, N(0)), N(0), DIV(mean, count))); /* a window of padding has no elements */
}

/* Along the axis the sums of the windows number q - most to q, for n numbers q from `from` on. */
static dt_value
neighbours(dt_tape *t, int axis, dt_value g, int64_t from, int64_t n, int64_t most)
{
    static const int64_t ones[2] = {1, 1};
    int64_t first[2] = {0, 0}, size[2] = {g->shape[2], g->shape[3]};
    dt_pool2d_params p = {.mode = DT_POOL_AVG, .kernel = {1, 1}, .stride = {1, 1}, .dilation = {1, 1}, .divisor = 1};
    const int64_t windows = size[axis], last = from + n - 1;
    const int64_t least = from < windows ? 0 : from - windows + 1;
    most = most < last ? most : last;
    const int64_t taps = most < least ? 1 : most - least + 1;
    first[axis] = most < least ? n : most - from; /* at n there is none */
    size[axis] = n + taps - 1;
    p.kernel[axis] = taps;
    const bool same = first[axis] == 0 && size[axis] == windows;
    dt_value x = same ? g : dt_tape_placed(t, g, first, ones, size);
    dt_array *slot = x == NULL || taps == 1 ? NULL : dt_tape_slot(t);
    return slot == NULL ? x : dt_tape_made(t, dt_pool2d("avg_pool2d", x, &p, false, slot, NULL, t->err), slot);
}

static dt_value
counting(dt_tape *t, int64_t from, int64_t n)
{
    const dt_scalar start = dt_scalar_int(from), end = dt_scalar_int(from + n), step = dt_scalar_int(1);
    dt_array *slot = dt_tape_slot(t);
    return slot == NULL ? NULL
                        : HOLD(dt_tape_made(
                              t, dt_arange(dt_array_device(G), DT_INT64, &start, &end, &step, slot, t->err), slot));
}

/* Entry q along dim of sums, or where `other` that of more (NULL: nowhere), which has as many. */
static dt_value
selected(dt_tape *t, int dim, dt_value sums, dt_value more, dt_value q, dt_value other)
{
    if (more != NULL) {
        const dt_array *parts[2] = {sums, more};
        dt_array *both = dt_tape_slot(t);
        q = ADD(q, MUL(HOLD(other), dt_tape_integer(t, sums->shape[dim])));
        sums = both == NULL ? NULL : dt_tape_made(t, dt_cat(parts, 2, dim, both, t->err), both);
    }
    dt_array *out = q == NULL || sums == NULL ? NULL : dt_tape_slot(t);
    return out == NULL ? NULL : dt_tape_made(t, dt_index_select(sums, dim, q, out, t->err), out);
}

/* Window w has the places from w * stride on, and element i is at padding + i: with q and r, those divided by the
 * stride and the rest, it is in the windows number q - j with j * stride + r < kernel. So there are two sums for each
 * q. */
static dt_value
spread(dt_tape *t, const pool_axis *a, dt_value g)
{
    const int64_t from = a->padding / a->stride, n = (a->padding + a->size - 1) / a->stride - from + 1;
    const int64_t whole = a->kernel / a->stride, rest = a->kernel % a->stride;
    dt_value sums = neighbours(t, a->axis, g, from, n, whole - 1);
    if (a->stride == 1 || sums == NULL) {
        return sums;
    }
    dt_value at = counting(t, a->padding, a->size), stride = dt_tape_integer(t, a->stride);
    dt_value q = FLOORDIV(at, stride), other = NULL, more = NULL;
    if (rest > 0) {
        more = neighbours(t, a->axis, g, from, n, whole);
        other = LT(SUB(at, MUL(HOLD(q), stride)), dt_tape_integer(t, rest));
        if (more == NULL) {
            return NULL;
        }
    }
    return selected(t, 2 + a->axis, sums, more, SUB(q, dt_tape_integer(t, from)), other);
}

/* Windows that share out `size` elements as evenly as may be. Element i is in the window number i * windows / size, and
 * of fewer windows than elements at most in the next one too. */
static dt_value
spread_shares(dt_tape *t, const pool_axis *a, dt_value g)
{
    dt_value more = neighbours(t, a->axis, g, 0, a->windows, 1);
    dt_value at = counting(t, 0, a->size), size = dt_tape_integer(t, a->size);
    dt_value from = MUL(at, dt_tape_integer(t, a->windows)); /* last: the first place of i + 1, less one */
    dt_value last = SUB(ADD(HOLD(from), dt_tape_integer(t, a->windows)), dt_tape_integer(t, 1));
    dt_value q = HOLD(FLOORDIV(last, size));
    return more == NULL ? NULL : selected(t, 2 + a->axis, g, more, q, GT(q, FLOORDIV(from, size)));
}

/* The same of any number of windows: those over an element are found as the windows of a pool the other way are, and
 * the sum over them is the mean times how many they are. */
static dt_value
spread_back(dt_tape *t, const pool_axis *a, dt_value g)
{
    const int64_t size[2] = {a->axis == 0 ? a->size : -1, a->axis == 1 ? a->size : -1};
    dt_pool2d_params back = a->column;
    back.divisor = 1;
    dt_array *slot = dt_tape_slot(t);
    dt_value mean = slot == NULL ? NULL : dt_tape_made(t, dt_adaptive_avg_pool2d(g, size, slot, t->err), slot);
    return MUL(mean, counted(t, a->axis, &back, a->windows, a->size, (dt_dtype)g->dtype));
}

/* Windows side by side that fill the axis. */
static bool
is_tiled(const pool_axis *a)
{
    return !a->adaptive && a->kernel == a->stride && a->padding == 0 && a->size == a->windows * a->kernel;
}

/* g over all of each of its windows, which are tiles, in one copy: of channels that are neighbours. */
static dt_value
spread_tiles(dt_tape *t, const pool_axis axes[2], dt_value g)
{
    static const int64_t channels_last[4] = {0, 2, 3, 1}, channels_first[4] = {0, 3, 1, 2};
    const int64_t n = g->shape[0], c = g->shape[1], p = g->shape[2], q = g->shape[3];
    const int64_t apart[6] = {n, p, 1, q, 1, c}, tiles[6] = {n, p, axes[0].kernel, q, axes[1].kernel, c};
    const int64_t image[4] = {n, axes[0].size, axes[1].size, c};
    g = dt_tape_reshape(t, dt_tape_permute(t, g, 4, channels_last), 6, apart);
    return dt_tape_permute(t, dt_tape_reshape(t, dt_tape_expand(t, g, 6, tiles), 4, image), 4, channels_first);
}

/* Each element gets the sum of what came for the windows over it, along the rows, then along the columns. No number
 * reaches what is in none of its windows: a product with 0 would not leave out inf and NaN. */
void
avg_pool2d_gradient(dt_tape *t)
{
    const dt_pool2d_params *p = t->params;
    const dt_node *input = dt_tape_input(t, 0);
    const dt_dtype wide = dt_wide((dt_dtype)G->dtype);
    if (dt_array_numel(G) == 0) {
        dt_tape_give(t, 0, dt_tape_zeros(t, input->ndim, input->shape));
        return;
    }
    dt_value g = dt_tape_batched(t, G->dtype == wide ? G : dt_tape_to(t, G, dt_array_device(G), wide));
    const pool_axis axes[2] = {axis_of(t, 0), axis_of(t, 1)};
    double divisor = (double)p->divisor;
    if (p->divisor == 0) {
        divisor = 1;
        for (int axis = 0; axis < 2 && g != NULL; axis++) {
            const int64_t common = common_divisor(&axes[axis]);
            divisor *= common == 0 ? 1 : (double)common;
            g = common == 0 ? divided(t, &axes[axis], g) : g;
        }
    }
    g = divisor == 1 ? g : DIV(g, N(divisor));
    if (g != NULL && g->strides[1] == 1 && g->shape[1] >= 8 && is_tiled(&axes[0]) && is_tiled(&axes[1])) {
        dt_tape_give_image(t, 0, spread_tiles(t, axes, HOLD(g)));
        return;
    }
    for (int axis = 1; axis >= 0 && g != NULL; axis--) { /* fewer rows first */
        const pool_axis *a = &axes[axis];
        if (a->kernel != 1 || a->stride != 1 || a->padding != 0 || a->adaptive || a->size != a->windows) {
            g = HOLD(g);
            g = !a->adaptive ? spread(t, a, g) : a->windows < a->size ? spread_shares(t, a, g) : spread_back(t, a, g);
        }
    }
    dt_tape_give_image(t, 0, g);
}
