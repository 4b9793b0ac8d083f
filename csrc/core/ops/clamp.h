/* clamp.h: limits of elements. */
#ifndef DT_CLAMP_H
#define DT_CLAMP_H

#include "../devtensor.h"

typedef struct {
    const dt_array *array; /* NULL: scalar, if given */
    dt_scalar scalar;
    bool given;
} dt_bound;

/* in_place: out is input */
dt_status dt_clamp(const dt_array *input, const dt_bound *low, const dt_bound *high, bool in_place, dt_array *out,
                   dt_error *err) DT_MUST_CHECK;

#endif
