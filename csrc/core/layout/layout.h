/* layout.h: how arrays lie in memory, beside each other and as images (array.c). */
#ifndef DT_LAYOUT_H
#define DT_LAYOUT_H

#include "../devtensor.h"

static inline bool
dt_array_has_shape(const dt_array *a, int ndim, const int64_t *shape)
{
    bool same = a->ndim == ndim;
    for (int d = 0; d < ndim && same; d++) {
        same = a->shape[d] == shape[d];
    }
    return same;
}

/* Adds a dimension inside the n that there are; stride has its step in each array. One of size 1 adds nothing, and one
 * over which every array goes on evenly becomes part of the one around it. Returns how many there are then. */
static inline int
dt_add_dim(int n, int64_t *shape, int narrays, int64_t (*strides)[DT_MAX_NDIM], int64_t size, const int64_t *stride)
{
    if (size == 1) {
        return n;
    }
    bool merges = n > 0;
    for (int k = 0; k < narrays && merges; k++) {
        merges = strides[k][n - 1] == stride[k] * size;
    }
    n += !merges;
    shape[n - 1] = merges ? shape[n - 1] * size : size;
    for (int k = 0; k < narrays; k++) {
        strides[k][n - 1] = stride[k];
    }
    return n;
}

/* x with dimension dim last, borrowed; of a number one row of one element. */
static inline dt_array
dt_with_last(const dt_array *x, int dim)
{
    dt_array rows = *x;
    if (x->ndim == 0) {
        rows.ndim = 1;
        rows.shape[0] = rows.strides[0] = 1;
        return rows;
    }
    for (int d = dim; d + 1 < x->ndim; d++) {
        rows.shape[d] = x->shape[d + 1];
        rows.strides[d] = x->strides[d + 1];
    }
    rows.shape[x->ndim - 1] = x->shape[dim];
    rows.strides[x->ndim - 1] = x->strides[dim];
    return rows;
}

/* Whether both are the same elements in the same order. */
bool dt_array_is_same_view(const dt_array *a, const dt_array *b);
/* Whether both, of which b may be an immediate, may touch a common byte. */
bool dt_array_overlaps(const dt_array *a, const dt_array *b);

/* Whether a is a batch of images, (N, C, H, W), whose channels lie innermost in memory. */
bool dt_is_channels_last(const dt_array *a);
/* Lays out a new one so, or one image, (C, H, W). */
void dt_set_channels_last(dt_array *a);

#endif
