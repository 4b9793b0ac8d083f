/* layout.h: how arrays lie in memory, beside each other and as images (array.c). */
#ifndef DT_LAYOUT_H
#define DT_LAYOUT_H

#include "devtensor.h"

static inline bool
dt_array_has_shape(const dt_array *a, int ndim, const int64_t *shape)
{
    bool same = a->ndim == ndim;
    for (int d = 0; d < ndim && same; d++) {
        same = a->shape[d] == shape[d];
    }
    return same;
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
