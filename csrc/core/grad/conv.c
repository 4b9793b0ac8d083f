/* conv.c: the formulas of convolutions, made of convolutions, products and selections, so that every device has them
 * and they can be differentiated once more. */
#include "../call.h"
#include "conv.h"
#include "shape.h"
#include "tape.h"
#include "../layout/layout.h"
#include "../ops/ops.h"

#include <string.h>

/* ---------------------------------------------------------------- values of four dimensions */

dt_value
dt_tape_batched(dt_tape *t, dt_value x)
{
    return x != NULL && x->ndim == 3 ? dt_tape_unsqueeze(t, x, 0) : x;
}

void
dt_tape_give_image(dt_tape *t, int i, dt_value x)
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

dt_value
dt_tape_placed(dt_tape *t, dt_value x, const int64_t first[2], const int64_t step[2], const int64_t size[2])
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
    return convolved(t, dt_tape_placed(t, g, first, r->stride, padded), w, ones, r->dilation, r->groups);
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
    x = whole ? x : dt_tape_placed(t, x, r->before, ones, padded);
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
    g = HOLD(dt_tape_batched(t, g));
    if (g == NULL) {
        return;
    }
    if (dt_tape_wants(t, 0)) {
        const dt_node *input = dt_tape_input(t, 0);
        dt_value own = own_gradient(t, NULL, B, g, input);
        if (own != NULL) {
            dt_tape_give(t, 0, own);
        } else if (t->rc == DT_OK) {
            dt_tape_give_image(t, 0, input_gradient(t, r, g, B, input->shape + input->ndim - 2));
        }
    }
    if (dt_tape_wants(t, 1)) {
        const dt_node *weight = dt_tape_input(t, 1);
        dt_value x = HOLD(dt_tape_batched(t, A)), own = x == NULL ? NULL : own_gradient(t, x, NULL, g, weight);
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
    dt_value g = HOLD(dt_tape_batched(t, G));
    if (g == NULL) {
        return;
    }
    if (dt_tape_wants(t, 0)) {
        dt_tape_give_image(t, 0, transposed_input_gradient(t, r, g, B, dt_tape_input(t, 0)));
    }
    if (dt_tape_wants(t, 1)) {
        const dt_node *weight = dt_tape_input(t, 1);
        dt_value x = HOLD(dt_tape_batched(t, A)), own = NULL;
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
