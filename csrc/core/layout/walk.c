/* walk.c: the order in which several arrays of one shape are gone over. */
#include "layout.h"

static int64_t
magnitude(int64_t stride)
{
    return stride < 0 ? -stride : stride;
}

/* Whether dimension a must be inside dimension b: by the strides of the first array that tells them apart. */
static bool
is_inner(const dt_walk *walk, int a, int b)
{
    for (int k = 0; k < walk->narrays; k++) {
        int64_t sa = magnitude(walk->strides[k][a]), sb = magnitude(walk->strides[k][b]);
        if (sa != sb && sa != 0 && sb != 0) {
            return sa < sb;
        }
    }
    return false;
}

static void
swap_dims(dt_walk *walk, int a, int b)
{
    int64_t t = walk->shape[a];
    walk->shape[a] = walk->shape[b];
    walk->shape[b] = t;
    for (int k = 0; k < walk->narrays; k++) {
        t = walk->strides[k][a];
        walk->strides[k][a] = walk->strides[k][b];
        walk->strides[k][b] = t;
    }
}

void
dt_walk_init(dt_walk *walk, int narrays, const dt_array *const *arrays)
{
    const dt_array *first = arrays[0];
    walk->narrays = narrays;
    walk->numel = dt_array_numel(first);
    int n = 0;
    for (int d = 0; d < first->ndim; d++) {
        if (first->shape[d] == 1) {
            continue;
        }
        walk->shape[n] = first->shape[d];
        for (int k = 0; k < narrays; k++) {
            walk->strides[k][n] = arrays[k]->storage ? arrays[k]->strides[d] : 0;
        }
        n++;
    }
    for (int i = 1; i < n; i++) { /* insertion sort keeps the given order where strides do not tell */
        for (int j = i; j > 0 && is_inner(walk, j - 1, j); j--) {
            swap_dims(walk, j - 1, j);
        }
    }
    int merged = 0;
    for (int d = 0; d < n; d++) {
        int64_t stride[4];
        for (int k = 0; k < narrays; k++) {
            stride[k] = walk->strides[k][d];
        }
        merged = dt_add_dim(merged, walk->shape, narrays, walk->strides, walk->shape[d], stride);
    }
    walk->ndim = merged;
}
