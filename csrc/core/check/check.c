/* check.c: every sentence a user can see about a mismatch, and nowhere else.
 *
 * The first part of a sentence is the frameworks' own, so that a search finds it; the list in parentheses names the op
 * and all operands as the user gave them. */
#include "check.h"
#include "../ops/index.h"
#include "../layout/layout.h"
#include "sentence.h"

#include <stdio.h>
#include <string.h>

/* ---------------------------------------------------------------- device and dtype */

/* Whether operand i is looked at: devices of all, dtypes of those in which. */
static inline bool
is_asked(const dt_operand *in, int i, unsigned which, dt_show what)
{
    return what == DT_SHOW_DEVICE ? dt_operand_present(&in[i]) : dt_operand_takes_part(&in[i]) && (which >> i & 1) != 0;
}

/* Of the operands whose bits are set in which, the first one whose device or dtype is not that of the first, or NULL.
 */
static inline const dt_operand *
first_unlike(const dt_operand *in, int n, unsigned which, dt_show what, const dt_operand **first)
{
    *first = NULL;
    for (int i = 0; i < n; i++) {
        if (!is_asked(in, i, which, what)) {
            continue;
        }
        if (*first == NULL) {
            *first = &in[i];
            continue;
        }
        const dt_array *a = (*first)->array, *b = in[i].array;
        if (DT_UNLIKELY(what == DT_SHOW_DEVICE ? !dt_device_equal(dt_array_device(a), dt_array_device(b))
                                               : a->dtype != b->dtype)) {
            return &in[i];
        }
    }
    return NULL;
}

static dt_status
fail_device(const char *op, const dt_operand *in, int n, const dt_operand *first, const dt_operand *second,
            dt_error *err)
{
    char a[DT_DEVICE_TEXT], b[DT_DEVICE_TEXT];
    dt_sentence_begin(err, DT_EDEVICE, "device-mismatch", op, in, n);
    dt_sentence_culprit(err, &in[dt_odd_one_out(in, n, DT_SHOW_DEVICE)]);
    dt_sentence_add(err, "Expected all tensors to be on the same device, but found at least two devices, %s and %s!",
                    dt_device_text(dt_array_device(first->array), a),
                    dt_device_text(dt_array_device(second->array), b));
    dt_sentence_operands(err, DT_SHOW_DEVICE);
    return DT_EDEVICE;
}

dt_status
dt_check_same_device(const char *op, const dt_operand *in, int n, dt_error *err)
{
    const dt_operand *first, *second = first_unlike(in, n, DT_ALL, DT_SHOW_DEVICE, &first);
    return DT_UNLIKELY(second != NULL) ? fail_device(op, in, n, first, second, err) : DT_OK;
}

static dt_status
fail_dtype(const char *op, const dt_operand *in, int n, unsigned which, dt_wording wording, const dt_operand *first,
           const dt_operand *second, dt_error *err)
{
    char name_a[DT_NAME_TEXT], name_b[DT_NAME_TEXT];
    const char *a = dt_dtypes[first->array->dtype].name, *b = dt_dtypes[second->array->dtype].name;
    dt_operand voters[DT_MAX_OPERANDS];
    int count = 0;
    for (int i = 0; i < n; i++) {
        if (is_asked(in, i, which, DT_SHOW_DTYPE)) {
            voters[count++] = in[i];
        }
    }
    dt_sentence_begin(err, DT_EDTYPE, "dtype-mismatch", op, in, n);
    dt_sentence_culprit(err, &voters[dt_odd_one_out(voters, count, DT_SHOW_DTYPE)]);
    if (wording == DT_CONVOLUTION) {
        dt_sentence_add(err, "Input type (%s) and %s type (%s) should be the same", a, dt_operand_name(second, name_b),
                        b);
    } else {
        const bool factors = wording != DT_BY_NAME && second == &in[wording];
        dt_sentence_add(err, "%s and %s must have the same dtype, but got %s and %s",
                        factors ? "mat1" : dt_operand_name(first, name_a),
                        factors ? "mat2" : dt_operand_name(second, name_b), a, b);
    }
    dt_sentence_operands(err, DT_SHOW_DTYPE);
    return DT_EDTYPE;
}

dt_status
dt_check_same_dtype(const char *op, const dt_operand *in, int n, dt_error *err)
{
    return dt_check_dtypes(op, in, n, DT_ALL, DT_BY_NAME, err);
}

dt_status
dt_check_dtypes(const char *op, const dt_operand *in, int n, unsigned which, dt_wording wording, dt_error *err)
{
    const dt_operand *first, *second = first_unlike(in, n, which, DT_SHOW_DTYPE, &first);
    return DT_UNLIKELY(second != NULL) ? fail_dtype(op, in, n, which, wording, first, second, err) : DT_OK;
}

/* Whether there are operands or not, a sentence about a dtype that an op does not take begins so. */
#define NOT_IMPLEMENTED "\"%s\" not implemented for '%s': it takes %s"

dt_status
dt_fail_dtype(const char *op, dt_dtype dtype, const char *kinds, dt_error *err)
{
    return dt_fail(err, DT_EDTYPE, "dtype-not-supported", op, NOT_IMPLEMENTED, op, dt_dtypes[dtype].name, kinds);
}

/* odd: NULL where a Python number brought dtype in */
static dt_status
fail_kind(const char *op, const dt_operand *in, int n, const dt_operand *odd, dt_dtype dtype, const char *kinds,
          dt_error *err)
{
    dt_sentence_begin(err, DT_EDTYPE, "dtype-not-supported", op, in, n);
    dt_sentence_add(err, NOT_IMPLEMENTED, op, dt_dtypes[dtype].name, kinds);
    if (odd != NULL) {
        dt_sentence_culprit(err, odd);
    }
    dt_sentence_operands(err, DT_SHOW_DTYPE);
    return DT_EDTYPE;
}

dt_status
dt_fail_kind(const char *op, const dt_operand *in, int n, int which, const char *kinds, dt_error *err)
{
    return fail_kind(op, in, n, &in[which], (dt_dtype)in[which].array->dtype, kinds, err);
}

dt_status
dt_fail_kind_of_number(const char *op, const dt_operand *in, int n, dt_dtype dtype, const char *kinds, dt_error *err)
{
    return fail_kind(op, in, n, NULL, dtype, kinds, err);
}

dt_status
dt_check_float(const char *op, const dt_operand *in, int n, dt_error *err)
{
    return dt_is_float((dt_dtype)in[0].array->dtype) ? DT_OK : dt_fail_kind(op, in, n, 0, DT_FLOATS, err);
}

dt_status
dt_check_not_bool(const char *op, const dt_operand *in, int n, const char *advice, dt_error *err)
{
    for (int i = 0; i < n; i++) {
        if (dt_operand_takes_part(&in[i]) && in[i].array->dtype != DT_BOOL) {
            return DT_OK;
        }
    }
    return dt_fail_kind(op, in, n, 0, advice, err);
}

dt_status
dt_fail_item(const char *op, const dt_array *x, dt_error *err)
{
    return dt_fail(err, DT_EVALUE, "not-a-scalar", op, "a Tensor with %lld elements cannot be converted to Scalar",
                   (long long)dt_array_numel(x));
}

dt_status
dt_fail_pin(const dt_array *x, dt_error *err)
{
    char text[DT_DEVICE_TEXT];
    return dt_fail(err, DT_EVALUE, "cannot-pin", "pin_memory",
                   "cannot pin an array on %s: only dense CPU tensors can be pinned",
                   dt_device_text(dt_array_device(x), text));
}

/* ---------------------------------------------------------------- sizes and dimensions */

dt_status
dt_fail_too_many_dims(const char *op, int ndim, dt_error *err)
{
    return dt_fail(err, DT_ESHAPE, "too-many-dimensions", op, "%s: arrays have at most %d dimensions, but got %d", op,
                   DT_MAX_NDIM, ndim);
}

dt_status
dt_fail_negative_dim(const char *op, int ndim, const int64_t *shape, int64_t size, dt_error *err)
{
    char text[DT_SHAPE_TEXT];
    return dt_fail(err, DT_ESHAPE, "negative-dimension", op, "Trying to create tensor with negative dimension %lld: %s",
                   (long long)size, dt_shape_text(ndim, shape, text));
}

dt_status
dt_fail_too_large(const char *op, int ndim, const int64_t *shape, dt_error *err)
{
    char text[DT_SHAPE_TEXT];
    return dt_fail(err, DT_ESHAPE, "size-overflow", op, "Storage size calculation overflowed with sizes=%s",
                   dt_shape_text(ndim, shape, text));
}

dt_status
dt_check_dim(const char *op, int64_t dim, int ndim, int *index, dt_error *err)
{
    int64_t n = ndim > 0 ? ndim : 1;
    if (dim < -n || dim >= n) {
        return dt_fail(err, DT_EINDEX, "dimension-out-of-range", op,
                       "Dimension out of range (expected to be in range of [%lld, %lld], but got %lld)", (long long)-n,
                       (long long)(n - 1), (long long)dim);
    }
    *index = (int)(dim < 0 ? dim + n : dim);
    return DT_OK;
}

dt_status
dt_check_dims(const char *op, int n, const int64_t *dims, int ndim, int *indices, dt_error *err)
{
    for (int i = 0; i < n; i++) {
        DT_TRY(dt_check_dim(op, dims[i], ndim, &indices[i], err));
        for (int j = 0; j < i; j++) {
            if (indices[i] == indices[j]) {
                return dt_fail(err, DT_EVALUE, "repeated-dimension", op,
                               "dim %d appears multiple times in the list of dims of %s", indices[i], op);
            }
        }
    }
    return DT_OK;
}

dt_status
dt_fail_index(const char *op, int64_t index, int dim, int64_t size, dt_error *err)
{
    if (dim == DT_CLASSES) {
        return dt_fail(err, DT_EINDEX, "index-out-of-range", op, "Target %lld is out of bounds: there are %lld classes",
                       (long long)index, (long long)size);
    }
    if (dim == DT_PROBABILITIES) {
        return dt_fail(err, DT_EVALUE, "not-probabilities", op, "all elements of %s should be between 0 and 1",
                       index == 1 ? "input" : "target");
    }
    return dt_fail(err, DT_EINDEX, "index-out-of-range", op,
                   "index %lld is out of bounds for dimension %d with size %lld", (long long)index, dim,
                   (long long)size);
}

dt_status
dt_fail_no_dims(const char *op, dt_error *err)
{
    return dt_fail(err, DT_EINDEX, "index-out-of-range", op, "%s cannot be applied to a 0-dim tensor", op);
}

dt_status
dt_fail_length(const char *op, int64_t start, int64_t length, int64_t size, dt_error *err)
{
    return dt_fail(err, DT_ESHAPE, "length-out-of-range", op,
                   "%s: start (%lld) + length (%lld) exceeds dimension size (%lld)", op, (long long)start,
                   (long long)length, (long long)size);
}

/* ---------------------------------------------------------------- results */

dt_status
dt_check_writable(const char *op, const char *name, const dt_array *out, dt_error *err)
{
    const dt_operand in[] = {{name, out, -1}};
    if (DT_UNLIKELY(dt_transform_here.began > atomic_load_explicit(&out->storage->born, memory_order_relaxed))) {
        return dt_fail_captured(op, name, out, dt_transform_here.maps, err);
    }
    if (dt_array_readonly(out)) {
        dt_sentence_begin(err, DT_EVALUE, "read-only", op, in, 1);
        dt_sentence_add(
            err,
            "%s: %s is read-only, since the memory that it shares is read-only; .clone() makes a copy that can be "
            "written",
            op, name);
        err->culprit = 0;
        return DT_EVALUE;
    }
    if (dt_array_overlaps_itself(out)) {
        dt_sentence_begin(err, DT_EVALUE, "overlapping-write", op, in, 1);
        dt_sentence_add(
            err,
            "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
            "Please clone() the tensor before performing the operation.");
        err->culprit = 0;
        dt_sentence_operands(err, DT_SHOW_SHAPE);
        return DT_EVALUE;
    }
    return DT_OK;
}

dt_status
dt_check_out(const char *op, const dt_operand *in, int n, dt_dtype dtype, int ndim, const int64_t *shape, dt_error *err)
{
    const dt_array *out = in[n - 1].array;
    char expected[DT_SHAPE_TEXT], got[DT_SHAPE_TEXT];
    if (out == NULL) {
        return DT_OK;
    }
    if (out->dtype != dtype) {
        dt_sentence_begin(err, DT_EDTYPE, "dtype-mismatch", op, in, n);
        dt_sentence_add(err, "Expected out tensor to have dtype %s, but got %s instead", dt_dtypes[dtype].name,
                        dt_dtypes[out->dtype].name);
        err->culprit = err->noperands - 1;
        dt_sentence_operands(err, DT_SHOW_DTYPE);
        return DT_EDTYPE;
    }
    if (!dt_array_has_shape(out, ndim, shape)) {
        dt_sentence_begin(err, DT_ESHAPE, "shape-mismatch", op, in, n);
        dt_sentence_add(err, "Expected out tensor to have shape %s, but got %s instead",
                        dt_shape_text(ndim, shape, expected), dt_array_shape_text(out, got));
        err->culprit = err->noperands - 1;
        dt_sentence_operands(err, DT_SHOW_SHAPE);
        return DT_ESHAPE;
    }
    return dt_check_writable(op, "out", out, err);
}

dt_status
dt_fail_shared(const char *op, const dt_operand *in, int n, int a, int b, dt_error *err)
{
    char first[DT_NAME_TEXT], second[DT_NAME_TEXT];
    dt_sentence_begin(err, DT_EVALUE, "overlapping-write", op, in, n);
    dt_sentence_add(err, "%s: %s and %s are both written, and share memory; .clone() gives one of them its own", op,
                    dt_operand_name(&in[a], first), dt_operand_name(&in[b], second));
    dt_sentence_culprit(err, &in[b]);
    return DT_EVALUE;
}

/* The last operand that does not broadcast to the shape of in[0], which is written. */
static const dt_operand *
widest(const dt_operand *in, int n)
{
    const dt_operand *found = &in[0];
    for (int i = 1; i < n; i++) {
        if (!dt_operand_present(&in[i])) {
            continue;
        }
        const dt_array *x = in[i].array;
        const int lead = in[0].array->ndim - x->ndim;
        bool fits = lead >= 0;
        for (int d = 0; fits && d < x->ndim; d++) {
            fits = x->shape[d] == 1 || x->shape[d] == in[0].array->shape[d + lead];
        }
        found = fits ? found : &in[i];
    }
    return found;
}

dt_status
dt_check_in_place(const char *op, const dt_operand *in, int n, dt_dtype result, int ndim, const int64_t *shape,
                  dt_error *err)
{
    const dt_array *target = in[0].array;
    if (dt_dtypes[result].category > dt_dtypes[target->dtype].category) {
        dt_sentence_begin(err, DT_EDTYPE, "dtype-mismatch", op, in, n);
        dt_sentence_add(err, "result type %s can't be cast to the desired output type %s", dt_dtypes[result].name,
                        dt_dtypes[target->dtype].name);
        err->culprit = 0; /* the left side cannot stay what it is */
        dt_sentence_operands(err, DT_SHOW_DTYPE);
        return DT_EDTYPE;
    }
    if (!dt_array_has_shape(target, ndim, shape)) {
        char text[DT_SHAPE_TEXT], wanted[DT_SHAPE_TEXT];
        dt_sentence_begin(err, DT_ESHAPE, "shape-mismatch", op, in, n);
        dt_sentence_add(err, "output with shape %s doesn't match the broadcast shape %s",
                        dt_array_shape_text(target, text), dt_shape_text(ndim, shape, wanted));
        dt_sentence_culprit(err, widest(in, n));
        dt_sentence_operands(err, DT_SHOW_SHAPE);
        return DT_ESHAPE;
    }
    return dt_check_writable(op, in[0].name, target, err);
}

/* ---------------------------------------------------------------- matrices and images */

dt_status
dt_fail_matmul(const char *op, const dt_operand *in, int n, int a, int dim_a, int b, int dim_b, dt_error *err)
{
    const dt_array *x = in[a].array, *y = in[b].array;
    char shape_a[DT_SHAPE_TEXT], shape_b[DT_SHAPE_TEXT], text[DT_SHAPE_TEXT], name[DT_NAME_TEXT];
    dt_sentence_begin(err, DT_ESHAPE, "shape-mismatch", op, in, n);
    dt_sentence_culprit(err, dt_odder(&in[a], &in[b]));
    dt_sentence_add(
        err,
        "mat1 and mat2 shapes cannot be multiplied: %s and %s (%s: size %lld of %s at dim %d must equal size %lld of "
        "%s "
        "at dim %d",
        dt_array_shape_text(x, shape_a), dt_array_shape_text(y, shape_b), op, (long long)x->shape[x->ndim + dim_a],
        in[a].name, dim_a, (long long)y->shape[y->ndim + dim_b], in[b].name, dim_b);
    for (int i = 0; i < n; i++) {
        if (i != a && i != b && dt_operand_present(&in[i])) {
            dt_sentence_add(err, "; %s %s", dt_operand_name(&in[i], name), dt_array_shape_text(in[i].array, text));
        }
    }
    dt_sentence_add(err, ")");
    return DT_ESHAPE;
}

dt_status
dt_fail_batch(const char *op, const dt_operand *in, int n, int a, int b, dt_error *err)
{
    char shape_a[DT_SHAPE_TEXT], shape_b[DT_SHAPE_TEXT];
    return dt_sentence_shapes("shape-mismatch", op, in, n, dt_odder(&in[a], &in[b]), err,
                              "Expected the batch dimensions of %s and %s to match, but got %s and %s", in[a].name,
                              in[b].name, dt_array_shape_text(in[a].array, shape_a),
                              dt_array_shape_text(in[b].array, shape_b));
}

dt_status
dt_fail_addend(const char *op, const dt_operand *in, int n, int ndim, const int64_t *shape, dt_error *err)
{
    char text[DT_SHAPE_TEXT], wanted[DT_SHAPE_TEXT];
    return dt_sentence_shapes("shape-mismatch", op, in, n, &in[0], err,
                              "%s of shape %s cannot be expanded to the shape %s of the product", in[0].name,
                              dt_array_shape_text(in[0].array, text), dt_shape_text(ndim, shape, wanted));
}

dt_status
dt_fail_bias(const char *op, const dt_operand *in, int n, int bias, int64_t size, dt_error *err)
{
    char weight[DT_SHAPE_TEXT], text[DT_SHAPE_TEXT];
    return dt_sentence_shapes(
        "shape-mismatch", op, in, n, &in[bias], err,
        "Given weight of size %s, expected bias to be 1-dimensional with %lld elements, but got bias of "
        "size %s instead",
        dt_array_shape_text(in[1].array, weight), (long long)size, dt_array_shape_text(in[bias].array, text));
}

dt_status
dt_fail_activation(const char *op, const char *name, dt_error *err)
{
    return dt_fail(err, DT_EVALUE, "invalid-parameter", op,
                   "%s: activation must be None, 'relu', 'gelu' or 'gelu_tanh', not '%.40s'", op, name);
}

dt_status
dt_fail_conv_rank(const char *op, const dt_operand *in, int n, int which, dt_error *err)
{
    char text[DT_SHAPE_TEXT];
    dt_array_shape_text(in[which].array, text);
    if (which == 0) {
        return dt_sentence_shapes("rank-mismatch", op, in, n, &in[which], err,
                                  "Expected 3D (unbatched) or 4D (batched) input to %s, but got input of size: %s", op,
                                  text);
    }
    return dt_sentence_shapes(
        "rank-mismatch", op, in, n, &in[which], err,
        "Expected 4D weight to %s (out channels, in channels / groups, height, width), but got weight of "
        "size: %s",
        op, text);
}

dt_status
dt_fail_conv_channels(const char *op, const dt_operand *in, int n, int64_t groups, int64_t expected, int64_t got,
                      dt_error *err)
{
    char weight[DT_SHAPE_TEXT], input[DT_SHAPE_TEXT];
    return dt_sentence_shapes(
        "shape-mismatch", op, in, n, dt_odder(&in[0], &in[1]), err,
        "Given groups=%lld, weight of size %s, expected input %s to have %lld channels, but got %lld "
        "channels instead",
        (long long)groups, dt_array_shape_text(in[1].array, weight), dt_array_shape_text(in[0].array, input),
        (long long)expected, (long long)got);
}

dt_status
dt_fail_conv_groups(const char *op, const dt_operand *in, int n, int64_t groups, dt_error *err)
{
    char weight[DT_SHAPE_TEXT];
    return dt_sentence_shapes(
        "shape-mismatch", op, in, n, &in[1], err,
        "Given groups=%lld, expected weight to be divisible by %lld at dimension 0, but got weight of "
        "size %s instead",
        (long long)groups, (long long)groups, dt_array_shape_text(in[1].array, weight));
}

dt_status
dt_fail_window(const char *op, const dt_operand *in, int n, const int64_t padded[2], const int64_t kernel[2],
               dt_error *err)
{
    return dt_sentence_shapes(
        "shape-mismatch", op, in, n, &in[0], err,
        "Calculated padded input size per channel: (%lld x %lld). Kernel size: (%lld x %lld). Kernel size "
        "can't be greater than actual input size",
        (long long)padded[0], (long long)padded[1], (long long)kernel[0], (long long)kernel[1]);
}
