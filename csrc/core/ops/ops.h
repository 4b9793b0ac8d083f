/* ops.h: the ops, one file a family. */
#ifndef DT_OPS_H
#define DT_OPS_H

#include "../devtensor.h"

/* copy.c */
/* dst device and dtype; same value (a new handle) when nothing changes and force_copy is false. */
dt_status dt_to(const dt_array *x, dt_device device, dt_dtype dtype, bool non_blocking, bool force_copy, dt_array *out,
                dt_error *err) DT_MUST_CHECK;
/* The same values in a new array on the same device. */
dt_status dt_cast(const dt_array *x, dt_dtype dtype, dt_array *out, dt_error *err) DT_MUST_CHECK;
dt_status dt_clone(const dt_array *x, dt_array *out, dt_error *err) DT_MUST_CHECK;
dt_status dt_contiguous(const dt_array *x, dt_array *out, dt_error *err) DT_MUST_CHECK;
/* dst[...] = cast(src broadcast to dst); devices may differ only when across is true (copy_). op is the
 * caller, name what it calls src. */
dt_status dt_copy_into(const char *op, dt_array *dst, const char *name, const dt_array *src, bool across,
                       bool non_blocking, dt_error *err) DT_MUST_CHECK;
dt_status dt_fill(const char *op, dt_array *x, const dt_scalar *value, dt_error *err) DT_MUST_CHECK;
/* Whether out can hold result. */
dt_status dt_check_written(const char *op, const dt_array *out, const dt_array *result, dt_error *err) DT_MUST_CHECK;
/* Writes result, which an op made without a gradient, into the out of its caller. */
dt_status dt_write_out(const char *op, dt_array *out, const dt_array *result, dt_error *err) DT_MUST_CHECK;
/* out, which is new, holds the element of a 0-dimensional array everywhere. A failure ends it. */
dt_status dt_fill_new(const char *op, dt_array *out, const dt_array *value, dt_error *err) DT_MUST_CHECK;
dt_status dt_pin(const dt_array *x, dt_array *out, dt_error *err) DT_MUST_CHECK;
/* One element to a Python number; a transfer when on a device. */
dt_status dt_item(const char *op, const dt_array *x, dt_scalar *out, dt_error *err) DT_MUST_CHECK;
dt_status dt_cat(const dt_array *const *arrays, int n, int64_t dim, dt_array *out, dt_error *err) DT_MUST_CHECK;
dt_status dt_stack(const dt_array *const *arrays, int n, int64_t dim, dt_array *out, dt_error *err) DT_MUST_CHECK;

/* create.c */
dt_status dt_full(const char *op, dt_device device, dt_dtype dtype, int ndim, const int64_t *shape,
                  const dt_scalar *value, dt_array *out, dt_error *err) DT_MUST_CHECK;
dt_status dt_arange(dt_device device, dt_dtype dtype, const dt_scalar *start, const dt_scalar *end,
                    const dt_scalar *step, dt_array *out, dt_error *err) DT_MUST_CHECK;
dt_status dt_linspace(dt_device device, dt_dtype dtype, const dt_scalar *start, const dt_scalar *end, int64_t steps,
                      dt_array *out, dt_error *err) DT_MUST_CHECK;
dt_status dt_eye(dt_device device, dt_dtype dtype, int64_t rows, int64_t columns, dt_array *out,
                 dt_error *err) DT_MUST_CHECK;
dt_status dt_tri(const char *op, const dt_array *x, int64_t diagonal, bool upper, dt_array *out,
                 dt_error *err) DT_MUST_CHECK; /* tril, triu */

/* attention.c: softmax(query @ key^T * scale + mask) @ value, the shapes as the slot has them; mask, or NULL,
 * broadcasts to (.., L, S). *made is false, and out stays empty, where the device has no way of its own. No gradient.
 */
dt_status dt_attention(const char *op, const dt_array *query, const dt_array *key, const dt_array *value,
                       const dt_array *mask, const dt_attention_params *params, dt_array *out, bool *made,
                       dt_error *err) DT_MUST_CHECK;
/* What grad, of that result without a mask, gives query, key and value, one after another in a flat out; *made as
 * above. */
dt_status dt_attention_grad(const char *op, const dt_array *query, const dt_array *key, const dt_array *value,
                            const dt_array *grad, const dt_attention_params *params, dt_array *out, bool *made,
                            dt_error *err) DT_MUST_CHECK;

/* random.c: the generator that ops draw from when none is given is dt_default_generator. */
typedef struct {
    atomic_uint_fast64_t seed, offset;
} dt_generator;
extern dt_generator dt_default_generator;
void dt_seed(dt_generator *generator, uint64_t seed);
/* params: kind and its numbers; seed and offset are taken from the generator, which moves on. */
dt_status dt_random(const char *op, dt_generator *generator, dt_device device, dt_dtype dtype, int ndim,
                    const int64_t *shape, dt_random_params params, dt_array *out, dt_error *err) DT_MUST_CHECK;
/* Elements of x over 1 - p, or 0 with probability p. The gradient draws the same numbers again: nothing is kept. */
dt_status dt_dropout(const char *op, dt_generator *generator, const dt_array *x, double p, dt_array *out,
                     dt_error *err) DT_MUST_CHECK;
/* The same with numbers that have been drawn: seed, offset, a: p, b: the factor of what stays. */
dt_status dt_dropout_again(const char *op, const dt_array *x, const dt_random_params *params, dt_array *out,
                           dt_error *err) DT_MUST_CHECK;

/* elementwise.c: in_place: out is the first operand (x += y): its device, dtype and shape stay. An operand of dtype_of
 * a Python scalar is given as an immediate by dt_immediate_operand; see there. */
dt_status dt_unary(dt_unary_op op, const char *name, const dt_array *x, const dt_params *params, bool in_place,
                   dt_array *out, dt_error *err) DT_MUST_CHECK;
/* One operand may be a Python number: a or b NULL and scalar given. */
dt_status dt_binary(dt_binary_op op, const char *name, const dt_array *a, const dt_array *b, const dt_scalar *scalar,
                    const dt_params *params, bool in_place, dt_array *out, dt_error *err) DT_MUST_CHECK;
/* condition, a, b; a or b may be a number */
dt_status dt_where(const dt_array *condition, const dt_array *a, const dt_array *b, const dt_scalar *sa,
                   const dt_scalar *sb, dt_array *out, dt_error *err) DT_MUST_CHECK;
/* value, a 0-dimensional array, or NULL and scalar; the dtype of input */
dt_status dt_masked_fill(const dt_array *input, const dt_array *mask, const dt_array *value, const dt_scalar *scalar,
                         bool in_place, dt_array *out, dt_error *err) DT_MUST_CHECK;
/* weight: an array, or NULL and scalar */
dt_status dt_lerp(const dt_array *input, const dt_array *end, const dt_array *weight, const dt_scalar *scalar,
                  bool in_place, dt_array *out, dt_error *err) DT_MUST_CHECK;
/* input * scale + shift, rounded after each of them, for a float input; scale and shift are cast to what it is computed
 * in */
dt_status dt_affine(const char *name, const dt_array *input, const dt_array *scale, const dt_array *shift,
                    bool in_place, dt_array *out, dt_error *err) DT_MUST_CHECK;

/* reduce.c: ndims < 0: all dimensions. dtype < 0: the op's own. */
dt_status dt_reduce(dt_reduce_op op, const char *name, const dt_array *x, int ndims, const int64_t *dims, bool keepdim,
                    int dtype, dt_array *out, dt_error *err) DT_MUST_CHECK;
/* Of floats, over some dimensions that are not empty, on a device that has a way of its own; no gradient is recorded.
 */
dt_status dt_variance(const char *name, const dt_array *x, int ndims, const int64_t *dims, bool keepdim, double count,
                      bool root, dt_array *out, dt_error *err) DT_MUST_CHECK;
dt_status dt_softmax(const char *name, const dt_array *x, int64_t dim, bool log, int dtype, dt_array *out,
                     dt_error *err) DT_MUST_CHECK;
/* grad and result, what softmax or log_softmax gave along dim, have one float dtype and one shape. */
dt_status dt_softmax_grad(const char *name, const dt_array *grad, const dt_array *result, int64_t dim, bool log,
                          dt_array *out, dt_error *err) DT_MUST_CHECK;

/* scan.c: SUM, PROD and LOGSUMEXP; dtype < 0: the op's own. in_place: out is x, whose dtype stays. */
dt_status dt_scan(dt_scan_op op, const char *name, const dt_array *x, int64_t dim, bool reverse, int dtype,
                  bool in_place, dt_array *out, dt_error *err) DT_MUST_CHECK;
/* MAX and MIN: the last of equals and every NaN counts as the new extremum. Neither result is recorded. */
dt_status dt_scan_extremum(dt_scan_op op, const char *name, const dt_array *x, int64_t dim, dt_array *values,
                           dt_array *indices, dt_error *err) DT_MUST_CHECK;

/* sort.c: of the sorted elements along dim k from `first` on, and where they stand; k < 0: all. Neither is recorded. */
dt_status dt_sort(const char *name, const dt_array *x, int64_t dim, int64_t first, int64_t k, bool descending,
                  dt_array *values, dt_array *indices, dt_error *err) DT_MUST_CHECK;

/* matmul.c: the public names check their own ranks; out= as everywhere. */
dt_status dt_matmul(const dt_array *input, const dt_array *other, dt_array *out, dt_error *err) DT_MUST_CHECK;
dt_status dt_mm(const dt_array *input, const dt_array *mat2, dt_array *out, dt_error *err) DT_MUST_CHECK;
dt_status dt_bmm(const dt_array *input, const dt_array *mat2, dt_array *out, dt_error *err) DT_MUST_CHECK;
dt_status dt_mv(const dt_array *input, const dt_array *vec, dt_array *out, dt_error *err) DT_MUST_CHECK;
dt_status dt_dot(const dt_array *input, const dt_array *tensor, dt_array *out, dt_error *err) DT_MUST_CHECK;
dt_status dt_outer(const dt_array *input, const dt_array *vec2, dt_array *out, dt_error *err) DT_MUST_CHECK;
/* batched: baddbmm */
dt_status dt_addmm(bool batched, const dt_array *input, const dt_array *mat1, const dt_array *mat2, double beta,
                   double alpha, dt_array *out, dt_error *err) DT_MUST_CHECK; /* addmm, baddbmm */
dt_status dt_linear(const dt_array *input, const dt_array *weight, const dt_array *bias, dt_activation activation,
                    dt_array *out, dt_error *err) DT_MUST_CHECK;
/* name NULL: none */
dt_status dt_activation_find(const char *op, const char *name, dt_activation *out, dt_error *err) DT_MUST_CHECK;

/* update.c: what an optimizer does to n parameters. array of each entry: parameter, gradient, states, of any layout;
 * entries are put in another order. Where one does not fit, none is changed. */
dt_status dt_update_params(const char *op, dt_update_rule rule, const double number[DT_NNUMBERS], int n,
                           dt_update_entry *entries, dt_error *err) DT_MUST_CHECK;

/* conv2d.c, pool2d.c. padding_mode: explicit numbers in padding, or "same", or "valid". */
typedef enum { DT_PADDING_NUMBERS, DT_PADDING_SAME, DT_PADDING_VALID } dt_padding_mode;
dt_status dt_conv2d(const dt_array *input, const dt_array *weight, const dt_array *bias, const int64_t stride[2],
                    dt_padding_mode mode, const int64_t padding[2], const int64_t dilation[2], int64_t groups,
                    dt_activation activation, dt_array *out, dt_error *err) DT_MUST_CHECK;
/* conv_transpose2d.c. Shapes and parameters are checked; weight is (C, K / groups, R, S). */
typedef struct {
    int64_t stride[2], padding[2], output_padding[2], dilation[2], groups;
} dt_conv_transpose2d_params;
dt_status dt_conv_transpose2d(const dt_array *input, const dt_array *weight, const dt_array *bias,
                              const dt_conv_transpose2d_params *params, dt_array *out, dt_error *err) DT_MUST_CHECK;
/* indices NULL: not wanted */
dt_status dt_pool2d(const char *op, const dt_array *input, const dt_pool2d_params *params, bool ceil_mode,
                    dt_array *out, dt_array *indices, dt_error *err) DT_MUST_CHECK;
dt_status dt_adaptive_avg_pool2d(const dt_array *input, const int64_t output_size[2], dt_array *out,
                                 dt_error *err) DT_MUST_CHECK; /* -1 keeps a size */

#endif
