/* elementwise.h: what clamp.c and ternary.c need of elementwise.c. */
#ifndef DT_ELEMENTWISE_H
#define DT_ELEMENTWISE_H

#include "../devtensor.h"

/* The work of dt_unary and dt_binary on operands that have been checked: the dtype to compute in, of binary that of the
 * result and its shape. */
dt_status dt_unary_checked(dt_unary_op op, const char *name, const dt_array *x, const dt_params *params,
                           dt_dtype compute, dt_array *out, dt_error *err) DT_MUST_CHECK;
dt_status dt_binary_checked(dt_binary_op op, const char *name, const dt_array *a, const dt_array *b,
                            const dt_scalar *scalar, const dt_params *params, dt_dtype compute, dt_dtype result,
                            int ndim, const int64_t *shape, dt_array *out, dt_error *err) DT_MUST_CHECK;

/* The dtype that two operands are computed in; one of them may be NULL and scalar given. */
dt_dtype dt_promoted(const dt_array *a, const dt_array *b, const dt_scalar *scalar);

/* The shape that in, of four with out=, broadcast to, looked at in order (NULL: as they stand); it and the result go
 * with the target. */
dt_status dt_check_ternary(const char *name, const dt_operand *in, const int *order, dt_dtype result, bool in_place,
                           int *ndim, int64_t *shape, dt_error *err) DT_MUST_CHECK;
/* x[0..2], checked, have dtypes[i] already chosen; a new result takes the layout of x[like]. */
dt_status dt_ternary_checked(dt_ternary_op op, const char *name, dt_device device, const dt_array *const x[3],
                             const dt_dtype dtypes[3], int like, dt_dtype result, int ndim, const int64_t *shape,
                             dt_array *out, dt_error *err) DT_MUST_CHECK;

#endif
