/* scatter_add.c: sums at the places that indices choose. Several elements may go to one place: they are added in their
 * order, so that the same call gives the same bits each time. */
#include "../call.h"
#include "../check/check.h"
#include "../grad/index.h"
#include "index.h"
#include "../layout/layout.h"
#include "ops.h"
#include "../result.h"

#include <string.h>

/* ---------------------------------------------------------------- where sums are formed */

static bool
is_half(const dt_array *x)
{
    return x->dtype == DT_FLOAT16 || x->dtype == DT_BFLOAT16;
}

dt_status
dt_adding_open(dt_adding *adding, const dt_array *x, dt_error *err)
{
    adding->x = x;
    adding->sums = *x;
    adding->wide = DT_ARRAY_EMPTY;
    if (is_half(x)) {
        DT_TRY(dt_cast(x, DT_FLOAT32, &adding->wide, err));
        adding->sums = adding->wide;
    }
    return DT_OK;
}

dt_status
dt_adding_close(dt_adding *adding, const char *op, dt_status rc, dt_error *err)
{
    if (rc == DT_OK && adding->wide.storage != NULL) {
        dt_array x = *adding->x;
        rc = dt_copy_into(op, &x, "src", &adding->wide, false, false, err);
    }
    dt_array_clear(&adding->wide);
    return rc;
}

/* a, or a copy where x, which is written, is its memory too; the caller clears held. */
static dt_status
apart_from(const dt_array *x, const dt_array *a, dt_array *held, const dt_array **ready, dt_error *err)
{
    *held = DT_ARRAY_EMPTY;
    *ready = a;
    if (a->storage == x->storage) {
        DT_TRY(dt_clone(a, held, err));
        *ready = held;
    }
    return DT_OK;
}

/* ---------------------------------------------------------------- along one dimension */

static dt_status
add_along(const char *op, const dt_array *x, int dim, const dt_array *index, bool wraps, const dt_array *value,
          dt_error *err)
{
    dt_index by = {.op = op, .place = dt_index_place(), .n = 1, .wraps = wraps, .ndim = index->ndim};
    dt_array view = *x;
    by.array[0] = *index;
    by.size[0] = x->ndim == 0 ? 1 : x->shape[dim];
    by.stride[0] = x->ndim == 0 ? 1 : x->strides[dim];
    by.dimension[0] = (int8_t)dim;
    view.ndim = index->ndim;
    memcpy(view.shape, index->shape, sizeof(view.shape));
    view.strides[dim] = 0;
    return dt_call_scatter_add(value, &by, &view, err);
}

dt_status
dt_add_along(const char *op, const dt_array *x, int dim, const dt_array *index, bool wraps, const dt_array *value,
             dt_error *err)
{
    dt_adding adding;
    dt_array held_index, held_value = DT_ARRAY_EMPTY;
    const dt_array *by, *added;
    int64_t size = x->ndim == 0 ? 1 : x->shape[dim];
    DT_TRY(dt_check_indexed_size(op, dim, size, dt_array_numel(index) > 0, err));
    DT_TRY(dt_adding_open(&adding, x, err));
    dt_status rc = apart_from(&adding.sums, index, &held_index, &by, err);
    rc = rc == DT_OK ? apart_from(&adding.sums, value, &held_value, &added, err) : rc;
    rc = rc == DT_OK ? add_along(op, &adding.sums, dim, by, wraps, added, err) : rc;
    dt_array_clear(&held_index);
    dt_array_clear(&held_value);
    return dt_adding_close(&adding, op, rc, err);
}

/* The operands have been checked; in place, or into a copy of input. */
static dt_status
add_to(const char *op, const dt_array *input, int dim, const dt_array *index, const dt_array *value, bool in_place,
       dt_array *out, dt_error *err)
{
    if (in_place) {
        return dt_add_along(op, input, dim, index, false, value, err);
    }
    DT_TRY(dt_clone(input, out, err));
    return dt_result_made(dt_add_along(op, out, dim, index, false, value, err), out);
}

/* input, index, and what is added. */
static dt_status
check_operands(const char *op, const dt_operand in[3], dt_error *err)
{
    DT_TRY(dt_check_same_device(op, in, 3, err));
    DT_TRY(dt_check_indices(op, in, 3, 1, false, err));
    return dt_check_dtypes(op, in, 3, 1u | 4u, DT_BY_NAME, err);
}

static dt_status
check_target(const char *op, const dt_operand in[3], bool in_place, dt_error *err)
{
    const dt_array *x = in[0].array;
    return in_place ? dt_check_in_place(op, in, 3, (dt_dtype)x->dtype, x->ndim, x->shape, err) : DT_OK;
}

/* ---------------------------------------------------------------- scatter_add */

/* Whether src is nowhere smaller than index; 0 and 1 dimensions fit each other. */
static bool
covers(const dt_array *src, const dt_array *index)
{
    if (src->ndim != index->ndim) {
        return dt_array_numel(src) >= dt_array_numel(index);
    }
    bool fits = true;
    for (int d = 0; d < index->ndim; d++) {
        fits = fits && index->shape[d] <= src->shape[d];
    }
    return fits;
}

/* The part of src that index has elements for. */
static dt_array
part_for(const dt_array *src, const dt_array *index)
{
    dt_array part = *src;
    part.ndim = index->ndim;
    memcpy(part.shape, index->shape, sizeof(part.shape));
    if (src->ndim == 0) {
        part.strides[0] = 1;
    }
    return part;
}

static dt_status
check_shapes(const char *op, const dt_operand in[3], int dim, dt_error *err)
{
    const dt_array *input = in[0].array, *index = in[1].array, *src = in[2].array;
    const int low = input->ndim <= 1 ? 0 : input->ndim, high = input->ndim <= 1 ? 1 : input->ndim;
    int64_t most[DT_MAX_NDIM], least[DT_MAX_NDIM];
    DT_TRY(dt_check_rank_between(op, in, 3, 1, low, high, err));
    DT_TRY(dt_check_rank_between(op, in, 3, 2, low, high, err));
    for (int d = 0; d < index->ndim; d++) {
        most[d] = d == dim || index->shape[d] <= input->shape[d] ? -1 : input->shape[d];
        least[d] = src->ndim == index->ndim && index->shape[d] <= src->shape[d] ? -1 : index->shape[d];
    }
    DT_TRY(dt_check_shape(op, in, 3, 1, index->ndim, most, err));
    return covers(src, index) ? DT_OK : dt_check_shape(op, in, 3, 2, index->ndim, least, err);
}

dt_status
dt_scatter_add(const dt_array *input, int64_t dim, const dt_array *index, const dt_array *src, bool in_place,
               dt_array *out, dt_error *err)
{
    const dt_along_record along = {dim < 0 ? (int)dim + input->ndim : (int)dim, false, 1};
    DT_RECORD(DT_GRAD_scatter_add, &along, out, dt_scatter_add(input, dim, index, src, in_place, out, err), input,
              index, src);
    static const char op[] = "scatter_add";
    const dt_operand in[] = {{"input", input, -1}, {"index", index, -1}, {"src", src, -1}};
    int at;
    DT_TRY(check_operands(op, in, err));
    DT_TRY(dt_check_dim(op, dim, input->ndim, &at, err));
    DT_TRY(check_shapes(op, in, at, err));
    DT_TRY(check_target(op, in, in_place, err));
    const dt_array part = part_for(src, index);
    return add_to(op, input, at, index, &part, in_place, out, err);
}

/* ---------------------------------------------------------------- index_add */

/* alpha * source, with all digits that the sums will have; of bools source or nothing. */
static dt_status
scale(const char *op, const dt_array *source, const dt_scalar *alpha, dt_array *out, dt_error *err)
{
    const bool any = alpha->f != 0;
    const dt_scalar truth = {DT_CATEGORY_BOOL, any, any};
    dt_array wide = DT_ARRAY_EMPTY;
    if (is_half(source)) {
        DT_TRY(dt_cast(source, DT_FLOAT32, &wide, err));
    }
    dt_status rc = dt_binary(DT_BINARY_mul, op, wide.storage != NULL ? &wide : source, NULL,
                             source->dtype == DT_BOOL ? &truth : alpha, NULL, false, out, err);
    dt_array_clear(&wide);
    return rc;
}

/* index, a vector or a number, over the shape of source. */
static dt_array
spread_along(const dt_array *index, const dt_array *source, int dim)
{
    dt_array wide = *index;
    wide.ndim = source->ndim;
    memcpy(wide.shape, source->shape, sizeof(wide.shape));
    memset(wide.strides, 0, sizeof(wide.strides));
    wide.strides[dim] = index->ndim == 0 ? 0 : index->strides[0];
    return wide;
}

dt_status
dt_index_add(const dt_array *input, int64_t dim, const dt_array *index, const dt_array *source, const dt_scalar *alpha,
             bool in_place, dt_array *out, dt_error *err)
{
    const dt_along_record along = {dim < 0 ? (int)dim + input->ndim : (int)dim, false, alpha == NULL ? 1 : alpha->f};
    DT_RECORD(DT_GRAD_index_add, &along, out, dt_index_add(input, dim, index, source, alpha, in_place, out, err), input,
              index, source);
    static const char op[] = "index_add";
    const dt_operand in[] = {{"input", input, -1}, {"index", index, -1}, {"source", source, -1}};
    static const int64_t one = 1;
    int at;
    int64_t shape[DT_MAX_NDIM];
    DT_TRY(check_operands(op, in, err));
    DT_TRY(dt_check_rank_between(op, in, 3, 1, 0, 1, err));
    DT_TRY(dt_check_dim(op, dim, input->ndim, &at, err));
    memcpy(shape, input->shape, sizeof(shape));
    if (input->ndim == 0) {
        DT_TRY(dt_check_shape(op, in, 3, 1, index->ndim, &one, err));
    } else {
        shape[at] = dt_array_numel(index);
    }
    DT_TRY(dt_check_shape(op, in, 3, 2, input->ndim, shape, err));
    DT_TRY(check_target(op, in, in_place, err));
    const dt_array wide = spread_along(index, source, at);
    if (alpha == NULL) {
        return add_to(op, input, at, &wide, source, in_place, out, err);
    }
    dt_array scaled = DT_ARRAY_EMPTY;
    DT_TRY(scale(op, source, alpha, &scaled, err));
    dt_status rc = add_to(op, input, at, &wide, &scaled, in_place, out, err);
    dt_array_clear(&scaled);
    return rc;
}
