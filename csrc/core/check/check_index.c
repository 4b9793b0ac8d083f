/* check_index.c: the sentences of check.c that are about selection by arrays. */
#include "check.h"
#include "../ops/index.h"
#include "sentence.h"

#include <stdio.h>

dt_status
dt_check_indices(const char *op, const dt_operand *in, int n, int which, bool masks, dt_error *err)
{
    dt_dtype dtype = (dt_dtype)in[which].array->dtype;
    if (dtype == DT_INT64 || dtype == DT_INT32 || (masks && dtype == DT_BOOL)) {
        return DT_OK;
    }
    dt_sentence_begin(err, DT_EDTYPE, "dtype-of-index", op, in, n);
    dt_sentence_add(err, "tensors used as indices must be %s tensors",
                    masks ? "int32, int64 or bool" : "int32 or int64");
    dt_sentence_culprit(err, &in[which]);
    dt_sentence_operands(err, DT_SHOW_DTYPE);
    return DT_EDTYPE;
}

dt_status
dt_check_indexed_size(const char *op, int dim, int64_t size, bool any_index, dt_error *err)
{
    if (size > 0 || !any_index) {
        return DT_OK;
    }
    if (dim == DT_CLASSES) {
        return dt_fail(err, DT_EINDEX, "index-out-of-range", op, "Target is out of bounds: there are no classes");
    }
    return dt_fail(err, DT_EINDEX, "index-out-of-range", op, "index is out of bounds for dimension %d with size 0",
                   dim);
}

dt_status
dt_check_mask(const char *op, const dt_operand *in, int n, int which, dt_error *err)
{
    if (in[which].array->dtype == DT_BOOL) {
        return DT_OK;
    }
    dt_sentence_begin(err, DT_EDTYPE, "dtype-of-index", op, in, n);
    dt_sentence_add(err, "%s: expected a bool tensor for mask", op);
    dt_sentence_culprit(err, &in[which]);
    dt_sentence_operands(err, DT_SHOW_DTYPE);
    return DT_EDTYPE;
}

dt_status
dt_fail_mask(const char *op, const dt_operand *in, int n, int which, const dt_array *x, int dim, int dimension,
             dt_error *err)
{
    const dt_array *mask = in[which].array;
    int d = 0;
    while (mask->shape[d] == x->shape[dim + d]) {
        d++;
    }
    return dt_sentence_shapes("shape-mismatch", op, in, n, &in[which], err,
                              "The size of the mask (%lld) at dimension %d does not match the size of the indexed "
                              "tensor (%lld) at dimension %d",
                              (long long)mask->shape[d], d, (long long)x->shape[dim + d], dimension + d);
}

dt_status
dt_fail_value(const char *op, const dt_operand *in, int n, int ndim, const int64_t *shape, dt_error *err)
{
    char got[DT_SHAPE_TEXT], wanted[DT_SHAPE_TEXT];
    return dt_sentence_shapes("shape-mismatch", op, in, n, &in[n - 1], err,
                              "shape mismatch: value tensor of shape %s cannot be broadcast to indexing result of "
                              "shape %s",
                              dt_array_shape_text(in[n - 1].array, got), dt_shape_text(ndim, shape, wanted));
}

dt_status
dt_fail_index_late(const char *op, int64_t index, int dim, int64_t size, dt_device device, uint64_t place,
                   dt_error *err)
{
    char where[DT_DEVICE_TEXT];
    dt_device_text(device, where);
    dt_status status;
    if (size < 0) {
        status = dt_fail(err, DT_EINDEX, "index-out-of-range", NULL,
                         "index %lld was out of bounds in an earlier operation on %s", (long long)index, where);
    } else {
        status = dt_fail_index(op, index, dim, size, err);
        dt_sentence_add(err, " (%s on %s, which tells it now that somebody waits for it)", op, where);
    }
    err->device = device;
    err->place = place;
    return status;
}
