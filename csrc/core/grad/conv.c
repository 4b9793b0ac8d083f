/* conv.c: the formulas of convolutions and pools, made of convolutions, products and selections, so that every
 * device has them and they can be differentiated once more. */
#include "../call.h"
#include "conv.h"
#include "shape.h"
#include "tape.h"
#include "../layout.h"
#include "../ops.h"

#include <string.h>

/* ---------------------------------------------------------------- values of four dimensions */

static dt_value
batched(dt_tape *t, dt_value x)
{
    return x != NULL && x->ndim == 3 ? dt_tape_unsqueeze(t, x, 0) : x;
}

/* x in the shape of operand i, which may be one image. */
static void
give_image(dt_tape *t, int i, dt_value x)
{
    const dt_node *input = dt_tape_input(t, i);
    dt_tape_give(t, i, x != NULL && input->ndim == 3 ? dt_tape_reshape(t, x, 3, input->shape) : x);
}

/* Entries n - 1 to 0 of dim. */
static dt_value
flipped(dt_tape *t, dt_value x, int dim)
{
    if (x == NULL || x->shape[dim] == 1) {
        return x;
    }
    const int64_t n = x->shape[dim];
    const dt_scalar start = dt_scalar_int(n - 1), end = dt_scalar_int(-1), step = dt_scalar_int(-1);
    dt_array *index = dt_tape_slot(t), *out = dt_tape_slot(t);
    if (out == NULL ||
        dt_tape_made(t, dt_arange(dt_array_device(x), DT_INT64, &start, &end, &step, index, t->err), index) == NULL) {
        return NULL;
    }
    return dt_tape_made(t, dt_index_select(x, dim, index, out, t->err), out);
}

static dt_value
embedded(dt_tape *t, dt_value x, const dt_region *region, const int64_t shape[4])
{
    dt_array *slot = x == NULL ? NULL : dt_tape_slot(t);
    return slot == NULL ? NULL : dt_tape_made(t, dt_embed(x, region, 4, shape, slot, t->err), slot);
}

static dt_value
convolved(dt_tape *t, dt_value x, dt_value weight, const int64_t stride[2], const int64_t dilation[2], int64_t groups)
{
    static const int64_t none[2] = {0, 0};
    dt_array *slot = x == NULL || weight == NULL ? NULL : dt_tape_slot(t);
    return slot == NULL ? NULL
                        : dt_tape_made(t,
                                       dt_conv2d(x, weight, NULL, stride, DT_PADDING_NUMBERS, none, dilation, groups,
                                                 DT_ACTIVATION_NONE, slot, t->err),
                                       slot);
}

/* x (N, C, H, W) inside of zeros: element i of a spatial dimension at first + i * step, as far as that is inside. */
static dt_value
placed(dt_tape *t, dt_value x, const int64_t first[2], const int64_t step[2], const int64_t size[2])
{
    const int64_t shape[4] = {x->shape[0], x->shape[1], size[0], size[1]};
    const int64_t dense[4] = {shape[1] * size[0] * size[1], size[0] * size[1], size[1], 1};
    dt_region region = {.ndim = 4};
    for (int d = 0; d < 4; d++) {
        region.shape[d] = shape[d];
        region.strides[d] = dense[d];
    }
    for (int i = 0; i < 2; i++) {
        const int64_t skipped = first[i] < 0 ? (-first[i] + step[i] - 1) / step[i] : 0;
        const int64_t start = first[i] + skipped * step[i];
        const int64_t room = start < size[i] ? (size[i] - 1 - start) / step[i] + 1 : 0;
        const int64_t left = x->shape[2 + i] - skipped, n = left < room ? left : room;
        x = skipped == 0 && n == x->shape[2 + i] ? x : dt_tape_narrow(t, x, 2 + i, skipped, n > 0 ? n : 0);
        if (x == NULL) {
            return NULL;
        }
        region.shape[2 + i] = n > 0 ? n : 0;
        region.strides[2 + i] = dense[2 + i] * step[i];
        region.offset += start * dense[2 + i];
    }
    return embedded(t, x, &region, shape);
}

static dt_value
permuted(dt_tape *t, dt_value x, int ndim, const int64_t *shape, const int64_t *order, int nout, const int64_t *out)
{
    x = x == NULL ? NULL : dt_tape_reshape(t, x, ndim, shape);
    x = x == NULL ? NULL : dt_tape_permute(t, x, ndim, order);
    return x == NULL ? NULL : dt_tape_reshape(t, x, nout, out);
}

/* ---------------------------------------------------------------- conv2d */

static const int64_t ones[2] = {1, 1};

/* The gradient, spread by the stride, convolved with the weight turned over and its channels exchanged. */
static dt_value
input_gradient(dt_tape *t, const dt_conv_record *r, dt_value g, dt_value weight, const int64_t size[2])
{
    const int64_t k = weight->shape[0] / r->groups, c = weight->shape[1], rows = weight->shape[2],
                  columns = weight->shape[3];
    const int64_t grouped[5] = {r->groups, k, c, rows, columns}, order[5] = {0, 2, 1, 3, 4};
    const int64_t turned[4] = {r->groups * c, k, rows, columns};
    int64_t first[2], padded[2];
    for (int i = 0; i < 2; i++) {
        const int64_t reach = r->dilation[i] * (weight->shape[2 + i] - 1);
        first[i] = reach - r->before[i];
        padded[i] = size[i] + reach;
    }
    dt_value w = permuted(t, flipped(t, flipped(t, weight, 2), 3), 5, grouped, order, 4, turned);
    return convolved(t, placed(t, g, first, r->stride, padded), w, ones, r->dilation, r->groups);
}

/* The input convolved with the gradient: images are channels, and channels are images. */
static dt_value
weight_gradient(dt_tape *t, const dt_conv_record *r, dt_value g, dt_value x, const dt_node *weight)
{
    const int64_t n = g->shape[0], k = weight->shape[0] / r->groups, c = weight->shape[1];
    int64_t padded[2];
    for (int i = 0; i < 2; i++) {
        padded[i] = (g->shape[2 + i] - 1) * r->stride[i] + (weight->shape[2 + i] - 1) * r->dilation[i] + 1;
    }
    const bool whole = r->before[0] == 0 && r->before[1] == 0 && padded[0] == x->shape[2] && padded[1] == x->shape[3];
    x = whole ? x : placed(t, x, r->before, ones, padded);
    const int64_t x_grouped[5] = {n, r->groups, c, padded[0], padded[1]}, x_order[5] = {2, 1, 0, 3, 4};
    const int64_t x_shape[4] = {c, r->groups * n, padded[0], padded[1]};
    const int64_t g_grouped[5] = {n, r->groups, k, g->shape[2], g->shape[3]}, g_order[5] = {1, 2, 0, 3, 4};
    const int64_t g_shape[4] = {r->groups * k, n, g->shape[2], g->shape[3]};
    dt_value images = permuted(t, x, 5, x_grouped, x_order, 4, x_shape);
    dt_value filters = permuted(t, g, 5, g_grouped, g_order, 4, g_shape);
    const int64_t order[4] = {1, 0, 2, 3};
    dt_value result = convolved(t, images, filters, r->dilation, r->stride, r->groups);
    return result == NULL ? NULL : dt_tape_permute(t, result, 4, order);
}

/* The same by the device's own way, where it has one: NULL else. Formulas are for those, and for gradients that are
 * recorded. */
static dt_value
own_gradient(dt_tape *t, dt_value x, dt_value weight, dt_value g, const dt_node *of)
{
    const dt_conv_record *r = t->params;
    const dt_dtype dtype = (dt_dtype)g->dtype;
    const int mark = t->n;
    dt_array *slot = t->create_graph ? NULL : dt_tape_slot(t);
    if (slot == NULL ||
        dt_tape_made(t, dt_empty(dt_array_device(g), dtype, of->ndim, of->shape, slot, t->err), slot) == NULL) {
        return NULL;
    }
    if (weight != NULL && dt_is_channels_last(g)) {
        dt_set_channels_last(slot);
    }
    dt_array out = dt_as_batch(slot);
    const dt_array *image = x != NULL ? x : &out, *filter = weight != NULL ? weight : &out;
    dt_conv2d_params p = {.groups = r->groups};
    for (int i = 0; i < 2; i++) {
        p.dilation[i] = r->dilation[i];
        p.pad_before[i] = r->before[i];
        p.pad_after[i] = r->after[i];
        const int64_t padded = image->shape[2 + i] + p.pad_before[i] + p.pad_after[i];
        const int64_t reach = (filter->shape[2 + i] - 1) * p.dilation[i] + 1;
        p.stride[i] = g->shape[2 + i] == 1 ? padded - reach + 1 : r->stride[i]; /* never taken: see conv2d.c */
    }
    bool made = true;
    t->rc = weight != NULL ? dt_call_conv2d_input_grad(g, weight, &p, &out, &made, t->err)
                           : dt_call_conv2d_weight_grad(x, g, &p, &out, &made, t->err);
    if (t->rc == DT_OK && !made) {
        dt_tape_drop(t, mark);
    }
    return t->rc == DT_OK && made ? slot : NULL;
}

/* input, weight, bias */
void
conv2d_gradient(dt_tape *t)
{
    const dt_conv_record *r = t->params;
    dt_value g = G;
    if (r->relu) {
        g = t->create_graph ? WHERE(LE(Y, N(0)), N(0), G) : dt_tape_fused(t, DT_BINARY_relu_grad, Y, NULL);
    }
    g = HOLD(batched(t, g));
    if (g == NULL) {
        return;
    }
    if (dt_tape_wants(t, 0)) {
        const dt_node *input = dt_tape_input(t, 0);
        dt_value own = own_gradient(t, NULL, B, g, input);
        if (own != NULL) {
            dt_tape_give(t, 0, own);
        } else if (t->rc == DT_OK) {
            give_image(t, 0, input_gradient(t, r, g, B, input->shape + input->ndim - 2));
        }
    }
    if (dt_tape_wants(t, 1)) {
        const dt_node *weight = dt_tape_input(t, 1);
        dt_value x = HOLD(batched(t, A)), own = x == NULL ? NULL : own_gradient(t, x, NULL, g, weight);
        dt_tape_give(t, 1, own != NULL || t->rc != DT_OK ? own : weight_gradient(t, r, g, x, weight));
    }
    if (dt_tape_wants(t, 2)) {
        static const int64_t dims[3] = {0, 2, 3};
        dt_tape_give(t, 2, dt_tape_sum(t, g, 3, dims, false));
    }
}

dt_status
dt_conv2d_spread(const dt_array *grad, const dt_array *weight, const dt_conv_record *r, dt_array *out, dt_error *err)
{
    dt_tape t = {.err = err};
    dt_value x = input_gradient(&t, r, grad, weight, out->shape + 2);
    dt_status rc = x == NULL ? t.rc : dt_copy_into("conv_transpose2d", out, "input", x, false, false, err);
    dt_tape_drop(&t, 0);
    return rc;
}

/* The convolution that the op is the transpose of, of the gradient. */
static dt_value
transposed_input_gradient(dt_tape *t, const dt_conv_record *r, dt_value g, dt_value weight, const dt_node *input)
{
    dt_array *slot = dt_tape_slot(t);
    dt_value x = slot == NULL ? NULL
                              : dt_tape_made(t,
                                             dt_conv2d(g, weight, NULL, r->stride, DT_PADDING_NUMBERS, r->before,
                                                       r->dilation, r->groups, DT_ACTIVATION_NONE, slot, t->err),
                                             slot);
    for (int i = 0; i < 2 && x != NULL; i++) { /* output_padding of a whole step or more adds results */
        const int64_t size = input->shape[input->ndim - 2 + i];
        x = x->shape[2 + i] == size ? x : dt_tape_narrow(t, x, 2 + i, 0, size);
    }
    return x;
}

/* input, weight, bias: what conv2d does, with result and input exchanged */
void
conv_transpose2d_gradient(dt_tape *t)
{
    const dt_conv_record *r = t->params;
    dt_value g = HOLD(batched(t, G));
    if (g == NULL) {
        return;
    }
    if (dt_tape_wants(t, 0)) {
        give_image(t, 0, transposed_input_gradient(t, r, g, B, dt_tape_input(t, 0)));
    }
    if (dt_tape_wants(t, 1)) {
        const dt_node *weight = dt_tape_input(t, 1);
        dt_value x = HOLD(batched(t, A)), own = NULL;
        if (x != NULL && r->after[0] >= 0 && r->after[1] >= 0) {
            own = own_gradient(t, g, NULL, x, weight);
        }
        dt_tape_give(t, 1, own != NULL || t->rc != DT_OK ? own : weight_gradient(t, r, x, g, weight));
    }
    if (dt_tape_wants(t, 2)) {
        static const int64_t dims[3] = {0, 2, 3};
        dt_tape_give(t, 2, dt_tape_sum(t, g, 3, dims, false));
    }
}

/* ---------------------------------------------------------------- pools */

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

/* In one pass over x, without the places. */
static dt_value
spread_to_largest(dt_tape *t)
{
    dt_array *slot = dt_tape_slot(t);
    if (slot == NULL || dt_tape_made(t, dt_empty_beside(A, dt_wide((dt_dtype)A->dtype), slot, t->err), slot) == NULL) {
        return NULL;
    }
    const dt_array x = dt_as_batch(A), grad = dt_as_batch(G);
    dt_array to = dt_as_batch(slot);
    return dt_tape_made(t, dt_call_max_pool2d_grad(&x, &grad, t->params, &to, t->err), slot);
}

void
max_pool2d_gradient(dt_tape *t)
{
    const dt_node *input = dt_tape_input(t, 0);
    if (!t->create_graph && A->shape[A->ndim - 3] * plane_size(A) <= INT32_MAX) {
        dt_tape_give(t, 0, spread_to_largest(t));
        return;
    }
    dt_value at = flat_planes(t, positions(t, A)), g = flat_planes(t, G);
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

/* The pool along one spatial dimension of x (.., size, 1); divisor 0: means, 1: sums. */
static dt_value
pooled(dt_tape *t, int axis, dt_value x, int64_t windows, int64_t divisor)
{
    const dt_pool2d_params *p = t->params;
    dt_pool2d_params along = *p;
    along.kernel[0] = p->kernel[axis];
    along.stride[0] = p->stride[axis];
    along.padding[0] = p->padding[axis];
    along.kernel[1] = along.stride[1] = along.dilation[0] = along.dilation[1] = 1;
    along.padding[1] = 0;
    along.divisor = divisor;
    const int64_t shape[4] = {1, x == NULL ? 0 : x->shape[1], windows, 1};
    dt_array *out = x == NULL ? NULL : dt_tape_slot(t);
    if (out == NULL ||
        dt_tape_made(t, dt_empty(dt_array_device(G), (dt_dtype)x->dtype, 4, shape, out, t->err), out) == NULL) {
        return NULL;
    }
    return dt_tape_made(t, dt_call_pool2d(x, &along, out, NULL, t->err), out);
}

static int64_t
size_along(const dt_tape *t, int axis)
{
    const dt_node *input = dt_tape_input(t, 0);
    return input->shape[input->ndim - 2 + axis];
}

static int64_t
windows_along(const dt_tape *t, int axis)
{
    return t->node->shape[t->node->ndim - 2 + axis];
}

/* What the pool does along one spatial dimension: (size, windows), each column the shares of a window. */
static dt_value
shares(dt_tape *t, int axis, dt_dtype dtype)
{
    const int64_t size = size_along(t, axis), windows = windows_along(t, axis);
    const int64_t image[4] = {1, size, size, 1}, matrix[2] = {size, windows};
    dt_array *unit = dt_tape_slot(t);
    if (unit == NULL || dt_tape_made(t, dt_eye(dt_array_device(G), dtype, size, size, unit, t->err), unit) == NULL) {
        return NULL;
    }
    dt_value x = dt_tape_reshape(t, unit, 4, image);
    dt_value found = pooled(t, axis, x, windows, ((const dt_pool2d_params *)t->params)->divisor != 0);
    return found == NULL ? NULL : dt_tape_reshape(t, found, 2, matrix);
}

/* Whether the matrix of shares is large beside its windows: rows of sound, say. */
static bool
is_long(const dt_tape *t, int axis)
{
    const dt_pool2d_params *p = t->params;
    const int64_t windows = windows_along(t, axis);
    return p->mode == DT_POOL_AVG && windows > 128 && windows / 8 > p->kernel[axis];
}

/* Ones of this shape. */
static dt_value
filled_with_ones(dt_tape *t, dt_dtype dtype, const int64_t shape[4])
{
    const dt_scalar one = dt_scalar_float(1);
    dt_array *slot = dt_tape_slot(t);
    return slot == NULL
               ? NULL
               : dt_tape_made(t, dt_full("backward", dt_array_device(G), dtype, 4, shape, &one, slot, t->err), slot);
}

/* The gradient g of the pool along one dimension, by a convolution with ones of what each element of a window gets. */
static dt_value
spread_long(dt_tape *t, int axis, dt_value g)
{
    const dt_pool2d_params *p = t->params;
    const int64_t size = size_along(t, axis), windows = windows_along(t, axis);
    const dt_dtype dtype = (dt_dtype)g->dtype;
    const int64_t column[4] = {1, 1, size, 1}, broadcast[2] = {axis == 0 ? windows : 1, axis == 0 ? 1 : windows};
    if (p->divisor == 0) {
        dt_value whole = HOLD(filled_with_ones(t, dtype, column));
        dt_value means = pooled(t, axis, whole, windows, 0), sums = HOLD(pooled(t, axis, whole, windows, 1));
        dt_value share = WHERE(EQ(sums, N(0)), N(0), DIV(means, sums)); /* a window of padding has no elements */
        g = share == NULL ? NULL : MUL(g, dt_tape_reshape(t, share, 2, broadcast));
    }
    if (g == NULL) {
        return NULL;
    }
    const int ndim = g->ndim;
    int64_t shape[DT_MAX_NDIM], plane[2] = {g->shape[ndim - 2], g->shape[ndim - 1]}, kernel[4] = {1, 1, 1, 1};
    memcpy(shape, g->shape, sizeof(shape));
    const int64_t area = plane[0] * plane[1];
    const int64_t planes[4] = {area == 0 ? 0 : dt_array_numel(g) / area, 1, plane[0], plane[1]};
    kernel[2 + axis] = p->kernel[axis];
    plane[axis] = shape[ndim - 2 + axis] = size;
    dt_conv_record r = {.stride = {1, 1}, .dilation = {1, 1}, .groups = 1};
    r.stride[axis] = p->stride[axis];
    r.before[axis] = p->padding[axis];
    dt_value x = dt_tape_reshape(t, g, 4, planes), weight = filled_with_ones(t, dtype, kernel);
    x = x == NULL || weight == NULL ? NULL : input_gradient(t, &r, x, weight, plane);
    return x == NULL ? NULL : dt_tape_reshape(t, x, ndim, shape);
}

/* Whether the pool leaves one spatial dimension as it is. */
static bool
is_left(const dt_tape *t, int axis)
{
    const dt_pool2d_params *p = t->params;
    return size_along(t, axis) == windows_along(t, axis) &&
           (p->mode == DT_POOL_ADAPTIVE_AVG || (p->kernel[axis] == 1 && p->padding[axis] == 0));
}

/* A mean over windows is one along the rows, then one along the columns: two products with small matrices. */
void
avg_pool2d_gradient(dt_tape *t)
{
    const dt_pool2d_params *p = t->params;
    const dt_dtype wide = dt_wide((dt_dtype)G->dtype);
    dt_value g = G->dtype == wide ? G : dt_tape_to(t, G, dt_array_device(G), wide);
    for (int axis = 0; axis < 2 && g != NULL; axis++) {
        if (is_left(t, axis)) {
            continue;
        }
        if (is_long(t, axis)) {
            g = spread_long(t, axis, g);
            continue;
        }
        dt_value matrix = shares(t, axis, wide);
        if (matrix == NULL) {
            return;
        }
        g = axis == 0 ? dt_tape_matmul(t, matrix, g) : dt_tape_matmul(t, g, dt_tape_transpose(t, matrix, 0, 1));
    }
    dt_tape_give(t, 0, p->divisor == 0 || g == NULL ? g : DIV(g, N((double)p->divisor)));
}
