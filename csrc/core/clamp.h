/* clamp.h: limits of elements, and what clamp.c needs of elementwise.c. */
#ifndef DT_CLAMP_H
#define DT_CLAMP_H

#include "devtensor.h"

typedef struct {
    const dt_array *array; /* NULL: scalar, if given */
    dt_scalar scalar;
    bool given;
} dt_bound;

/* in_place: out is input */
dt_status dt_clamp(const dt_array *input, const dt_bound *low, const dt_bound *high, bool in_place, dt_array *out,
                   dt_error *err) DT_MUST_CHECK;

/* limits within the range of an integer dtype, where they limit the same */
dt_params dt_limits(dt_dtype dtype, const dt_params *limits);

/* The work of dt_unary and dt_binary on operands that have been checked: the dtype to compute in, of binary that of the
 * result and its shape. */
dt_status dt_unary_checked(dt_unary_op op, const char *name, const dt_array *x, const dt_params *params,
                           dt_dtype compute, dt_array *out, dt_error *err) DT_MUST_CHECK;
dt_status dt_binary_checked(dt_binary_op op, const char *name, const dt_array *a, const dt_array *b,
                            const dt_scalar *scalar, const dt_params *params, dt_dtype compute, dt_dtype result,
                            int ndim, const int64_t *shape, dt_array *out, dt_error *err) DT_MUST_CHECK;

/* The dtype that two operands are computed in; one of them may be NULL and scalar given. */
dt_dtype dt_promoted(const dt_array *a, const dt_array *b, const dt_scalar *scalar);

#endif
