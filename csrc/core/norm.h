/* norm.h: normalisation by numbers that are known. */
#ifndef DT_NORM_H
#define DT_NORM_H

#include "devtensor.h"

/* elementwise.c: input * scale + shift, rounded after each of them, for a float input; scale and shift are cast to what
 * it is computed in. in_place: as for dt_lerp. */
dt_status dt_affine(const char *name, const dt_array *input, const dt_array *scale, const dt_array *shift,
                    bool in_place, dt_array *out, dt_error *err) DT_MUST_CHECK;

/* norm.c: (input - mean) / sqrt(var + eps) * weight + bias for each channel of input (N, C, ...); weight and bias may
 * be NULL. */
dt_status dt_batch_norm(const dt_array *input, const dt_array *mean, const dt_array *var, const dt_array *weight,
                        const dt_array *bias, double eps, dt_array *out, dt_error *err) DT_MUST_CHECK;

/* What floats of dtype are computed in: float32 for the half types. */
static inline dt_dtype
dt_wide(dt_dtype dtype)
{
    return dt_promote(dtype, DT_FLOAT32);
}

#endif
