/* check.h: the sentences a user can see about a mismatch. Each function writes one of them and returns its status. */
#ifndef DT_CHECK_H
#define DT_CHECK_H

#include "../devtensor.h"
#include "../ops/kernel.h"

/* sizes and dimensions */
dt_status dt_fail_too_many_dims(const char *op, int ndim, dt_error *err);
dt_status dt_fail_negative_dim(const char *op, int ndim, const int64_t *shape, int64_t size, dt_error *err);
dt_status dt_fail_too_large(const char *op, int ndim, const int64_t *shape, dt_error *err);
/* dim counted from the end becomes an index below ndim; a scalar has one dimension here, as in PyTorch */
dt_status dt_check_dim(const char *op, int64_t dim, int ndim, int *index, dt_error *err) DT_MUST_CHECK;
dt_status dt_check_dims(const char *op, int n, const int64_t *dims, int ndim, int *indices,
                        dt_error *err) DT_MUST_CHECK;
dt_status dt_fail_index(const char *op, int64_t index, int dim, int64_t size, dt_error *err);
/* a dimension was asked of an array that has none */
dt_status dt_fail_no_dims(const char *op, dt_error *err);
dt_status dt_fail_length(const char *op, int64_t start, int64_t length, int64_t size, dt_error *err);

/* views */
dt_status dt_fail_dim_order(const char *op, dt_error *err);
dt_status dt_fail_reshape(const char *op, const dt_array *x, int ndim, const int64_t *shape, dt_error *err);
dt_status dt_fail_reshape_unknown(const char *op, const char *reason, int ndim, const int64_t *shape, dt_error *err);
dt_status dt_fail_view(const char *op, const dt_array *x, int ndim, const int64_t *shape, dt_error *err);
dt_status dt_check_view_dtype(const char *op, const dt_array *x, dt_dtype dtype, dt_error *err) DT_MUST_CHECK;
dt_status dt_fail_permute(const char *op, const dt_array *x, int ndims, dt_error *err);
dt_status dt_fail_expand(const char *op, const dt_array *x, int ndim, const int64_t *shape, int dim, dt_error *err);

/* operands */
#define DT_FLOATS "float16, bfloat16, float32 and float64"
dt_status dt_check_float(const char *op, const dt_operand *in, int n, dt_error *err) DT_MUST_CHECK;
dt_status dt_check_not_bool(const char *op, const dt_operand *in, int n, const char *advice,
                            dt_error *err) DT_MUST_CHECK;
/* an array of that dtype shall be made, by an op that makes others */
dt_status dt_fail_dtype(const char *op, dt_dtype dtype, const char *kinds, dt_error *err);
/* in[which] has a dtype that there is no op for */
dt_status dt_fail_kind(const char *op, const dt_operand *in, int n, int which, const char *kinds, dt_error *err);
/* no operand has it, but a Python number among them made it dtype */
dt_status dt_fail_kind_of_number(const char *op, const dt_operand *in, int n, dt_dtype dtype, const char *kinds,
                                 dt_error *err);
/* What a sentence about unlike dtypes calls the operands: the frameworks have words of their own for two kinds of op.
 */
typedef enum {
    DT_BY_NAME = 0,   /* as the op's parameters are called */
    DT_MAT2_AT_1 = 1, /* of a product: in[1] is mat2, and what it differs from is mat1 */
    DT_MAT2_AT_2 = 2,
    DT_CONVOLUTION = DT_MAX_OPERANDS, /* "Input type and weight type" */
} dt_wording;
#define DT_ALL (~0u)
/* those operands whose bits are set in which; all are listed */
dt_status dt_check_dtypes(const char *op, const dt_operand *in, int n, unsigned which, dt_wording wording,
                          dt_error *err) DT_MUST_CHECK;
dt_status dt_fail_item(const char *op, const dt_array *x, dt_error *err);
dt_status dt_fail_pin(const dt_array *x, dt_error *err);
dt_status dt_check_rank(const char *op, const dt_operand *in, int n, int which, int rank, dt_error *err) DT_MUST_CHECK;
dt_status dt_check_min_rank(const char *op, const dt_operand *in, int n, int which, int rank,
                            dt_error *err) DT_MUST_CHECK;
dt_status dt_fail_broadcast(const char *op, const dt_operand *in, int n, int a, int b, int dim, dt_error *err);
dt_status dt_fail_stack(const dt_operand *in, int n, dt_error *err);
/* model and other are two of them */
dt_status dt_fail_cat(const dt_operand *in, int n, const dt_array *model, const dt_array *other, int dim,
                      dt_error *err);
dt_status dt_fail_cat_scalar(const dt_operand *in, int n, int which, dt_error *err);
dt_status dt_fail_empty_list(const char *op, dt_error *err);
/* That 'least' <= k <= the size of dim, of which a number has one. */
dt_status dt_check_selected(const char *op, const dt_array *x, int64_t dim, int64_t k, int64_t least,
                            dt_error *err) DT_MUST_CHECK;
dt_status dt_fail_empty_reduction(const char *op, const dt_array *x, int dim, dt_error *err);

/* check_index.c, selection by arrays: operand `which` is the index. An index in range is below size. */
dt_status dt_check_indices(const char *op, const dt_operand *in, int n, int which, bool masks,
                           dt_error *err) DT_MUST_CHECK;
/* any index into a dimension of size 0 is wrong: nobody has to look at it */
dt_status dt_check_indexed_size(const char *op, int dim, int64_t size, bool any_index, dt_error *err) DT_MUST_CHECK;
dt_status dt_check_mask(const char *op, const dt_operand *in, int n, int which, dt_error *err) DT_MUST_CHECK;
/* a mask that does not have the shape of x from dimension dim on, which is `dimension` of the user's array */
dt_status dt_fail_mask(const char *op, const dt_operand *in, int n, int which, const dt_array *x, int dim,
                       int dimension, dt_error *err);
/* the last operand, a value, does not go into what the indices choose */
dt_status dt_fail_value(const char *op, const dt_operand *in, int n, int ndim, const int64_t *shape, dt_error *err);
/* what a device found out; size < 0: of work that is not known any more */
dt_status dt_fail_index_late(const char *op, int64_t index, int dim, int64_t size, dt_device device, uint64_t place,
                             dt_error *err);

/* check_number.c */
/* limits in order */
dt_status dt_check_limits(const char *op, const dt_operand *in, int n, const dt_params *limits,
                          dt_error *err) DT_MUST_CHECK;
/* a number that shall become an integer of dtype: not NaN, and within 64 bits */
dt_status dt_check_whole(const char *op, const dt_scalar *value, dt_dtype dtype, dt_error *err) DT_MUST_CHECK;
/* Whether an integer dtype holds value, cut to its whole part; all others do, if as an infinity. */
bool dt_fits(const dt_scalar *value, dt_dtype dtype);
/* Writes value as a message shows it to text, and returns that. */
#define DT_NUMBER_TEXT 32
const char *dt_number_text(const dt_scalar *value, char text[DT_NUMBER_TEXT]);
/* a number that shall stand among elements of dtype */
dt_status dt_check_value(const char *op, const dt_scalar *value, dt_dtype dtype, dt_error *err) DT_MUST_CHECK;
/* an integer that draws are bounded by */
dt_status dt_check_bound(const char *op, int64_t bound, dt_dtype dtype, dt_error *err) DT_MUST_CHECK;
/* Whether every whole number below n is an element of dtype. */
dt_status dt_check_permutation(const char *op, int64_t n, dt_dtype dtype, dt_error *err) DT_MUST_CHECK;
dt_status dt_fail_negative_power(const char *op, dt_error *err);

/* shape: -1 for any size */
dt_status dt_check_shape(const char *op, const dt_operand *in, int n, int which, int ndim, const int64_t *shape,
                         dt_error *err) DT_MUST_CHECK;
dt_status dt_check_rank_between(const char *op, const dt_operand *in, int n, int which, int low, int high,
                                dt_error *err) DT_MUST_CHECK;

/* the first is (N, C, ...), the others are (C) */
dt_status dt_check_channels(const char *op, const dt_operand *in, int n, dt_error *err) DT_MUST_CHECK;

/* broadcast.c: the shape that operands broadcast to together, looked at in order (NULL: as they stand) */
dt_status dt_broadcast_shapes(const char *op, const dt_operand *in, int n, int *ndim, int64_t *shape,
                              dt_error *err) DT_MUST_CHECK;
dt_status dt_broadcast_in_order(const char *op, const dt_operand *in, int n, const int *order, int *ndim,
                                int64_t *shape, dt_error *err) DT_MUST_CHECK;

/* results: out= and in place */
dt_status dt_check_writable(const char *op, const char *name, const dt_array *out, dt_error *err) DT_MUST_CHECK;
#define DT_OUT(out)                                                                                                    \
    {                                                                                                                  \
        "out", (out)->storage != NULL ? (out) : NULL, DT_WRITTEN                                                       \
    }
/* the last operand, DT_OUT, if it is there; its device has been checked with the others' */
dt_status dt_check_out(const char *op, const dt_operand *in, int n, dt_dtype dtype, int ndim, const int64_t *shape,
                       dt_error *err) DT_MUST_CHECK;
/* operands a and b, which are both written, share memory */
dt_status dt_fail_shared(const char *op, const dt_operand *in, int n, int a, int b, dt_error *err);
dt_status dt_check_in_place(const char *op, const dt_operand *in, int n, dt_dtype result, int ndim,
                            const int64_t *shape, dt_error *err) DT_MUST_CHECK;

/* matrices and images; dim_a of operand a must equal dim_b of operand b (dims from the end, negative) */
dt_status dt_fail_matmul(const char *op, const dt_operand *in, int n, int a, int dim_a, int b, int dim_b,
                         dt_error *err);
/* batch dimensions that do not go together; an addend that does not broadcast to the product */
dt_status dt_fail_batch(const char *op, const dt_operand *in, int n, int a, int b, dt_error *err);
dt_status dt_fail_addend(const char *op, const dt_operand *in, int n, int ndim, const int64_t *shape, dt_error *err);
dt_status dt_fail_bias(const char *op, const dt_operand *in, int n, int bias, int64_t size, dt_error *err);
dt_status dt_fail_activation(const char *op, const char *name, dt_error *err);
dt_status dt_fail_conv_rank(const char *op, const dt_operand *in, int n, int which, dt_error *err);
dt_status dt_fail_conv_channels(const char *op, const dt_operand *in, int n, int64_t groups, int64_t expected,
                                int64_t got, dt_error *err);
dt_status dt_fail_conv_groups(const char *op, const dt_operand *in, int n, int64_t groups, dt_error *err);
dt_status dt_fail_window(const char *op, const dt_operand *in, int n, const int64_t padded[2], const int64_t kernel[2],
                         dt_error *err);

/* users' kernels: check_kernel.c; odd is an index into in */
dt_status dt_fail_kernel_count(const dt_kernel *kernel, int nargs, dt_error *err);
dt_status dt_fail_kernel_kind(const dt_kernel *kernel, int i, const dt_kernel_arg *arg, dt_error *err);
dt_status dt_check_kernel_device(const dt_kernel *kernel, const dt_operand *in, int n, dt_error *err) DT_MUST_CHECK;
dt_status dt_fail_kernel_stream(const dt_kernel *kernel, dt_device arrays, dt_device stream, dt_error *err);
dt_status dt_fail_kernel_dtype(const dt_kernel *kernel, const dt_operand *in, int n, int odd, const dt_param *param,
                               dt_error *err);
dt_status dt_fail_kernel_strides(const dt_kernel *kernel, const dt_operand *in, int n, int odd, dt_error *err);
dt_status dt_fail_kernel_lanes(const dt_kernel *kernel, const dt_operand *in, int n, int odd, const dt_param *param,
                               dt_error *err);
dt_status dt_fail_kernel_range(const dt_kernel *kernel, const dt_param *param, const dt_kernel_arg *arg, dt_error *err);
/* "block (32, 64, 1) of scale has 2048 threads, ..." */
dt_status dt_fail_kernel_launch(const dt_kernel *kernel, const char *what, const unsigned size[3], const char *limit,
                                dt_error *err);

/* check_grad.c, gradients: writes that would lose one */
dt_status dt_fail_grad_leaf(const char *op, const dt_array *x, dt_error *err);
dt_status dt_fail_grad_leaf_view(const char *op, const dt_array *x, dt_error *err);
dt_status dt_fail_grad_out(const char *op, const dt_array *x, dt_error *err);
dt_status dt_fail_grad_view(const char *op, const dt_array *x, dt_error *err);
dt_status dt_fail_grad_shared(const char *op, const dt_array *x, dt_error *err);
/* x, which op calls `name`, was there before the transform that the thread is in */
dt_status dt_fail_captured(const char *op, const char *name, const dt_array *x, bool maps, dt_error *err);
/* what shall be the gradient of x: its shape, dtype and device */
dt_status dt_check_grad(const char *op, const dt_array *x, const dt_array *grad, dt_error *err) DT_MUST_CHECK;
/* the way back: what op kept is gone, or is not as it was */
dt_status dt_fail_grad_freed(const char *op, dt_error *err);
dt_status dt_fail_grad_rerun(const char *op, unsigned recorded, unsigned again, dt_error *err);
dt_status dt_fail_grad_modified(const char *op, const dt_array *x, uint32_t version, uint32_t expected, dt_error *err);
dt_status dt_fail_grad_moved(const char *op, const dt_array *gradient, dt_device device, dt_error *err);
dt_status dt_fail_grad_cast(const char *op, const dt_array *gradient, dt_dtype dtype, dt_error *err);

#endif
