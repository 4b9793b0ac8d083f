/* elementwise.c: unary, binary and ternary ops: which dtype to compute in, which shape comes out, where it goes. */
#include "../check/check.h"
#include "elementwise.h"
#include "../grad/params.h"
#include "ops.h"
#include "../result.h"
#include "../check/sentence.h"

#include <string.h>

const char *const dt_unary_names[DT_NUNARY] = {
#define DT_UNARY(name, ...) #name,
#include "../elementwise.def"
#undef DT_UNARY
};

const char *const dt_binary_names[DT_NBINARY] = {
#define DT_BINARY(name, ...) #name,
#include "../elementwise.def"
#undef DT_BINARY
};

static const uint8_t unary_kinds[DT_NUNARY] = {
#define DT_UNARY(name, kind, ...) DT_KIND_##kind,
#include "../elementwise.def"
#undef DT_UNARY
};

static const uint8_t binary_kinds[DT_NBINARY] = {
#define DT_BINARY(name, kind, ...) DT_KIND_##kind,
#include "../elementwise.def"
#undef DT_BINARY
};

/* ---------------------------------------------------------------- operands made ready */

/* An operand of the wanted dtype and shape: the caller's own where nothing has to change, else a view or cast in made.
 */
typedef struct {
    const dt_array *array;
    dt_array made;
} operand;

static dt_status
operand_open(operand *o, const char *op, const dt_array *x, dt_dtype dtype, int ndim, const int64_t *shape,
             dt_error *err)
{
    o->array = x;
    o->made.storage = NULL;
    if (x->storage == NULL ||
        (x->dtype == dtype && dt_array_has_shape(x, ndim, shape))) { /* an immediate fits any shape */
        return DT_OK;
    }
    dt_array cast;
    DT_TRY(dt_to(x, dt_array_device(x), dtype, false, false, &cast, err));
    dt_status rc = dt_expand(op, &cast, ndim, shape, &o->made, err);
    dt_array_clear(&cast);
    o->array = &o->made;
    return rc;
}

static void
operand_close(operand *o)
{
    dt_array_clear(&o->made);
}

/* ---------------------------------------------------------------- dtypes */

/* PyTorch's rule: arrays with dimensions decide; a 0-dim array, then a Python number, only by a higher category. */
static dt_dtype
promote_pair(const dt_array *a, const dt_array *b)
{
    dt_category ca = dt_dtypes[a->dtype].category, cb = dt_dtypes[b->dtype].category;
    if ((a->ndim == 0) == (b->ndim == 0) || (a->ndim == 0 ? ca : cb) > (a->ndim == 0 ? cb : ca)) {
        return dt_promote((dt_dtype)a->dtype, (dt_dtype)b->dtype);
    }
    return (dt_dtype)(a->ndim == 0 ? b->dtype : a->dtype);
}

static dt_dtype
promote_scalar(dt_dtype dtype, const dt_scalar *scalar)
{
    if (scalar->kind <= dt_dtypes[dtype].category) {
        return dtype;
    }
    return scalar->kind == DT_CATEGORY_FLOAT ? dt_default_dtype() : DT_INT64;
}

dt_dtype
dt_promoted(const dt_array *a, const dt_array *b, const dt_scalar *scalar)
{
    return scalar != NULL ? promote_scalar((dt_dtype)(a ? a : b)->dtype, scalar) : promote_pair(a, b);
}

static dt_dtype
float_dtype(dt_dtype dtype)
{
    return dt_is_float(dtype) ? dtype : dt_default_dtype();
}

static bool
gives_bool(dt_elementwise_kind kind)
{
    return kind == DT_KIND_TEST || kind == DT_KIND_FTEST || kind == DT_KIND_COMPARE;
}

/* ---------------------------------------------------------------- unary */

static dt_status
unary_dtype(dt_elementwise_kind kind, const char *name, const dt_operand *in, int n, dt_dtype *compute, dt_error *err)
{
    *compute = (dt_dtype)in->array->dtype;
    switch (kind) {
    case DT_KIND_FLOAT:
        *compute = float_dtype(*compute);
        return DT_OK;
    case DT_KIND_ARITH:
        return dt_check_not_bool(name, in, n, "numbers; for bool use logical_not, logical_and or a cast", err);
    case DT_KIND_BITS:
        return dt_is_float(*compute) ? dt_fail_kind(name, in, n, 0, "integers and bool", err) : DT_OK;
    default:
        return DT_OK;
    }
}

/* The last operand is out=. */
static dt_status
check_target(const char *name, const dt_operand *in, int n, bool in_place, dt_dtype result, int ndim,
             const int64_t *shape, dt_error *err)
{
    return in_place ? dt_check_in_place(name, in, n, result, ndim, shape, err)
                    : dt_check_out(name, in, n, result, ndim, shape, err);
}

/* The everyday case: a float array, a new result. */
static bool
is_plain_unary(dt_elementwise_kind kind, const dt_array *x, const dt_array *out)
{
    return out->storage == NULL && dt_is_float((dt_dtype)x->dtype) && kind != DT_KIND_BITS;
}

/* Fills out, or what becomes it, with what an op that has no loops for integers makes of them. */
static dt_status
unary_call(dt_unary_op op, const dt_params *params, const dt_array *x, dt_array *out, dt_error *err)
{
    const dt_elementwise_kind kind = (dt_elementwise_kind)unary_kinds[op];
    if (kind == DT_KIND_ROUND && !dt_is_float((dt_dtype)x->dtype)) { /* already round */
        return dt_call_copy(x, out, false, err);
    }
    if (kind == DT_KIND_FTEST && !dt_is_float((dt_dtype)x->dtype)) { /* finite, all of them */
        const bool finite = op == DT_UNARY_isfinite;
        return dt_call_fill(out, &(dt_scalar){DT_CATEGORY_BOOL, finite, finite}, err);
    }
    return dt_call_unary(op, params, x, out, err);
}

dt_status
dt_unary_checked(dt_unary_op op, const char *name, const dt_array *x, const dt_params *params, dt_dtype compute,
                 dt_array *out, dt_error *err)
{
    dt_elementwise_kind kind = (dt_elementwise_kind)unary_kinds[op];
    dt_dtype result = gives_bool(kind) ? DT_BOOL : compute;
    if (is_plain_unary(kind, x, out)) {
        DT_TRY(dt_empty_beside(x, result, out, err));
        return dt_result_made(dt_call_new_unary(op, params, x, out, err), out);
    }
    operand a;
    DT_TRY(operand_open(&a, name, x, compute, x->ndim, x->shape, err));
    const dt_form form = {name, dt_array_device(x), result, x->ndim, x->shape, .like = a.array};
    dt_result r;
    dt_status rc = dt_result_open(&r, &form, &a.array, 1, out, err);
    if (rc == DT_OK) {
        rc = dt_result_close(&r, unary_call(op, params, a.array, r.target, err), err);
    }
    operand_close(&a);
    return rc;
}

static dt_params
limits_of(dt_dtype dtype, const dt_params *limits)
{
    return (dt_params){{limits->f[0], limits->f[1]},
                       {dt_saturate(dtype, limits->i[0]), dt_saturate(dtype, limits->i[1])}};
}

dt_status
dt_unary(dt_unary_op op, const char *name, const dt_array *x, const dt_params *params, bool in_place, dt_array *out,
         dt_error *err)
{
    DT_RECORD(dt_unary_derivatives[op], params, out, dt_unary(op, name, x, params, in_place, out, err), x);
    dt_elementwise_kind kind = (dt_elementwise_kind)unary_kinds[op];
    const dt_operand in[] = {{"input", x, -1}, {"out", out->storage && !in_place ? out : NULL, DT_WRITTEN}};
    dt_dtype compute = (dt_dtype)x->dtype;
    dt_params limits;
    if (!is_plain_unary(kind, x, out)) {
        DT_TRY(dt_check_same_device(name, in, 2, err));
        DT_TRY(unary_dtype(kind, name, in, 2, &compute, err));
        DT_TRY(check_target(name, in, 2, in_place, gives_bool(kind) ? DT_BOOL : compute, x->ndim, x->shape, err));
    }
    if (op == DT_UNARY_bitwise_not && compute == DT_BOOL) {
        op = DT_UNARY_logical_not;
    } else if (op == DT_UNARY_hardtanh) {
        DT_TRY(dt_check_limits(name, in, 2, params, err));
        limits = limits_of(compute, params);
        params = &limits;
    }
    return dt_unary_checked(op, name, x, params, compute, out, err);
}

/* ---------------------------------------------------------------- binary */

/* What + and * mean for bool; sub is refused. */
static dt_status
bool_op(dt_binary_op *op, const char *name, const dt_operand *in, int n, dt_error *err)
{
    switch (*op) {
    case DT_BINARY_add:
    case DT_BINARY_maximum:
        *op = DT_BINARY_logical_or;
        return DT_OK;
    case DT_BINARY_mul:
    case DT_BINARY_minimum:
        *op = DT_BINARY_logical_and;
        return DT_OK;
    default:
        return dt_fail_kind(name, in, n, dt_operand_present(&in[0]) ? 0 : 1,
                            "numbers; for bool use ^ (logical_xor), | or &", err);
    }
}

/* An op of bits met a float: of an array, or a Python number. */
static dt_status
fail_bits(const char *name, const dt_operand *in, int n, dt_dtype compute, dt_error *err)
{
    for (int i = 0; i < 2; i++) {
        if (in[i].array != NULL && dt_is_float((dt_dtype)in[i].array->dtype)) {
            return dt_fail_kind(name, in, n, i, "integers and bool", err);
        }
    }
    return dt_fail_kind_of_number(name, in, n, compute, "integers and bool", err);
}

/* What the signature of an op calls its second operand. */
static const char *
second_name(dt_binary_op op)
{
    return op == DT_BINARY_pow ? "exponent" : op == DT_BINARY_lerp_scalar ? "end" : "other";
}

static dt_status
binary_dtype(dt_binary_op *op, const char *name, const dt_operand *in, int n, const dt_scalar *scalar,
             dt_dtype *compute, dt_error *err)
{
    dt_elementwise_kind kind = (dt_elementwise_kind)binary_kinds[*op];
    const dt_array *a = in[0].array, *b = in[1].array;
    *compute = dt_promoted(a, b, scalar);
    if (kind == DT_KIND_FLOAT) {
        *compute = float_dtype(*compute);
    } else if (kind == DT_KIND_COMPARE && scalar && scalar->kind == DT_CATEGORY_INT &&
               dt_dtypes[*compute].category == DT_CATEGORY_INT) {
        unsigned char element[8]; /* uint8 == 300 is false, not 300 wrapped */
        dt_scalar_store(scalar, *compute, element);
        *compute = dt_scalar_load(*compute, element).i == scalar->i ? *compute : DT_INT64;
    } else if (kind == DT_KIND_BITS && dt_is_float(*compute)) {
        return fail_bits(name, in, n, *compute, err);
    } else if (*op == DT_BINARY_pow && !dt_is_float(*compute) && b == NULL && scalar->kind == DT_CATEGORY_INT &&
               scalar->i < 0) {
        return dt_fail_negative_power(name, err);
    } else if (kind == DT_KIND_ARITH && *compute == DT_BOOL) {
        return bool_op(op, name, in, n, err);
    }
    return DT_OK;
}

/* The everyday case: two arrays of one device, dtype and shape, a new result, nothing to promote. */
static inline bool
is_plain(dt_elementwise_kind kind, const dt_array *a, const dt_array *b, const dt_array *out)
{
    return a != NULL && b != NULL && out->storage == NULL && a->dtype == b->dtype &&
           dt_device_equal(dt_array_device(a), dt_array_device(b)) && dt_array_has_shape(a, b->ndim, b->shape) &&
           (dt_is_float((dt_dtype)a->dtype) ? kind != DT_KIND_BITS : kind == DT_KIND_COMPARE);
}

/* Whether a may overlap itself. */
static inline bool
has_zero_stride(const dt_array *a)
{
    bool found = false;
    DT_SHORT_LOOP for (size_t d = 0; d < a->ndim; d++)
    {
        found |= a->strides[d] == 0;
    }
    return found;
}

/* A number beside a half type keeps the digits that are computed with, so that half * 65536 is no infinity. What
 * compares takes it as an element would be. */
static dt_dtype
number_dtype(dt_binary_op op, dt_dtype compute)
{
    const bool half = compute == DT_FLOAT16 || compute == DT_BFLOAT16;
    return half && !gives_bool((dt_elementwise_kind)binary_kinds[op]) ? DT_FLOAT32 : compute;
}

static dt_status
binary_plain(dt_binary_op op, const dt_params *params, const dt_array *a, const dt_array *b, dt_dtype result,
             dt_array *out, dt_error *err)
{
    const bool expanded = DT_UNLIKELY(has_zero_stride(a)) && dt_array_overlaps_itself(a);
    DT_TRY(dt_empty_beside(expanded ? b : a, result, out, err));
    return dt_result_made(dt_call_new_binary(op, params, a, b, out, err), out);
}

dt_status
dt_binary_checked(dt_binary_op op, const char *name, const dt_array *a, const dt_array *b, const dt_scalar *scalar,
                  const dt_params *params, dt_dtype compute, dt_dtype result, int ndim, const int64_t *shape,
                  dt_array *out, dt_error *err)
{
    dt_array immediate;
    if (scalar != NULL) {
        dt_immediate(scalar, number_dtype(op, compute), &immediate);
        a = a ? a : &immediate;
        b = b ? b : &immediate;
    }
    dt_device device = dt_array_device(a->storage ? a : b);
    operand x, y;
    DT_TRY(operand_open(&x, name, a, compute, ndim, shape, err));
    dt_status rc = operand_open(&y, name, b, compute, ndim, shape, err);
    if (rc != DT_OK) {
        operand_close(&x);
        return rc;
    }
    const dt_array *like = x.array->storage && !dt_array_overlaps_itself(x.array) ? x.array : y.array;
    const dt_form form = {name, device, result, ndim, shape, .like = like};
    dt_result r;
    rc = dt_result_open(&r, &form, (const dt_array *[]){x.array, y.array}, 2, out, err);
    if (rc == DT_OK) {
        rc = dt_result_close(&r, dt_call_binary(op, params, x.array, y.array, r.target, err), err);
    }
    operand_close(&x);
    operand_close(&y);
    return rc;
}

dt_status
dt_binary(dt_binary_op op, const char *name, const dt_array *a, const dt_array *b, const dt_scalar *scalar,
          const dt_params *params, bool in_place, dt_array *out, dt_error *err)
{
    if (DT_UNLIKELY(dt_is_tracked(a) || dt_is_tracked(b))) {
        const dt_binary_record numbers = dt_binary_numbers(a, b, scalar, params);
        DT_RECORD(dt_binary_derivatives[op], &numbers, out,
                  dt_binary(op, name, a, b, scalar, params, in_place, out, err), a, b);
    }
    dt_elementwise_kind kind = (dt_elementwise_kind)binary_kinds[op];
    if (is_plain(kind, a, b, out)) {
        return binary_plain(op, params, a, b, gives_bool(kind) ? DT_BOOL : (dt_dtype)a->dtype, out, err);
    }
    const dt_operand in[] = {
        {"input", a, -1}, {second_name(op), b, -1}, {"out", out->storage && !in_place ? out : NULL, DT_WRITTEN}};
    int ndim;
    int64_t shape[DT_MAX_NDIM];
    dt_dtype compute;
    DT_TRY(dt_check_same_device(name, in, 3, err));
    DT_TRY(binary_dtype(&op, name, in, 3, scalar, &compute, err));
    dt_dtype result = gives_bool(kind) ? DT_BOOL : compute;
    const dt_array *x = a == NULL ? b : b == NULL || dt_array_has_shape(a, b->ndim, b->shape) ? a : NULL;
    if (x != NULL) { /* the shape of both: a number takes that of the array */
        DT_TRY(check_target(name, in, 3, in_place, result, x->ndim, x->shape, err));
        return dt_binary_checked(op, name, a, b, scalar, params, compute, result, x->ndim, x->shape, out, err);
    }
    DT_TRY(dt_broadcast_shapes(name, in, 3, &ndim, shape, err));
    DT_TRY(check_target(name, in, 3, in_place, result, ndim, shape, err));
    return dt_binary_checked(op, name, a, b, scalar, params, compute, result, ndim, shape, out, err);
}

/* ---------------------------------------------------------------- ternary */

dt_status
dt_check_ternary(const char *name, const dt_operand *in, const int *order, dt_dtype result, bool in_place, int *ndim,
                 int64_t *shape, dt_error *err)
{
    DT_TRY(dt_broadcast_in_order(name, in, 4, order, ndim, shape, err));
    return check_target(name, in, 4, in_place, result, *ndim, shape, err);
}

dt_status
dt_ternary_checked(dt_ternary_op op, const char *name, dt_device device, const dt_array *const x[3],
                   const dt_dtype dtypes[3], int like, dt_dtype result, int ndim, const int64_t *shape, dt_array *out,
                   dt_error *err)
{
    operand ready[3];
    const dt_array *inputs[3];
    dt_status rc = DT_OK;
    int opened = 0;
    while (opened < 3 && rc == DT_OK) {
        rc = operand_open(&ready[opened], name, x[opened], dtypes[opened], ndim, shape, err);
        inputs[opened] = ready[opened].array;
        opened++;
    }
    const dt_form form = {name, device, result, ndim, shape, .like = inputs[like]};
    dt_result r;
    if (rc == DT_OK) {
        rc = dt_result_open(&r, &form, inputs, 3, out, err);
        if (rc == DT_OK) {
            rc = dt_result_close(&r, dt_call_ternary(op, inputs[0], inputs[1], inputs[2], r.target, err), err);
        }
    }
    while (opened > 0) {
        operand_close(&ready[--opened]);
    }
    return rc;
}
