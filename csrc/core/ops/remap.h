/* remap.h: results that show places of the input, along two neighbouring dimensions. */
#ifndef DT_REMAP_H
#define DT_REMAP_H

#include "../devtensor.h"

/* Which place of a dimension of the input a place of the result shows. */
typedef enum {
    DT_REMAP_SAME,
    DT_REMAP_FLIP,
    DT_REMAP_REFLECT,
    DT_REMAP_REPLICATE,
    DT_REMAP_CIRCULAR,
    DT_REMAP_NEAREST,
    DT_REMAP_LINEAR,
    DT_NREMAPS
} dt_remap_kind;

/* size: of the result. before: of padding, which may be negative; shift and step: of images of another size */
typedef struct {
    dt_remap_kind kind;
    int64_t size, before;
    double shift, step;
} dt_remap_dim;

/* Of dimensions dim and dim + 1; means of columns are made first where asked for. */
struct dt_remap_params {
    int dim;
    bool columns_first;
    dt_remap_dim along[2];
};

/* Of dimension p->dim and the next, of n elements in the input, place i of the result shows element
 *   SAME i, FLIP n - 1 - i, with k = i - before REFLECT, REPLICATE and CIRCULAR what stands within the input for k,
 *   NEAREST floor((i + shift) * step) in float32, at most n - 1,
 *   LINEAR the two around (i + shift) * step - shift, in what x is computed in, floats only.
 * On a device that has a way of its own; no gradient is recorded. */
dt_status dt_remap(const char *op, const dt_array *x, const dt_remap_params *p, dt_array *out,
                   dt_error *err) DT_MUST_CHECK;

#endif
