/* remap.h: results that show places of the input, along two neighbouring dimensions. */
#ifndef DT_REMAP_H
#define DT_REMAP_H

#include "../devtensor.h"

/* Of dimension p->dim and the next, of n elements in the input, place i of the result shows element
 *   SAME i, FLIP n - 1 - i, with k = i - before REFLECT, REPLICATE and CIRCULAR what stands within the input for k,
 *   NEAREST floor((i + shift) * step) in float32, at most n - 1,
 *   LINEAR the two around (i + shift) * step - shift, in what x is computed in, floats only.
 * On a device that has a way of its own; no gradient is recorded. */
dt_status dt_remap(const char *op, const dt_array *x, const dt_remap_params *p, dt_array *out,
                   dt_error *err) DT_MUST_CHECK;

#endif
