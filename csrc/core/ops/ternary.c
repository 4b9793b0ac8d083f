/* ternary.c: ops of three operands, element by element: where, masked_fill, lerp, and scale with shift. */
#include "../check/check.h"
#include "elementwise.h"
#include "../grad/params.h"
#include "ops.h"

dt_status
dt_where(const dt_array *condition, const dt_array *a, const dt_array *b, const dt_scalar *sa, const dt_scalar *sb,
         dt_array *out, dt_error *err)
{
    DT_RECORD(DT_GRAD_where, DT_NO_PARAMS, out, dt_where(condition, a, b, sa, sb, out, err), condition, a, b);
    const dt_operand in[] = {{"condition", condition, -1}, {"input", a, -1}, {"other", b, -1}, DT_OUT(out)};
    DT_TRY(dt_check_same_device("where", in, 4, err));
    if (condition->dtype != DT_BOOL) {
        return dt_fail_kind("where", in, 4, 0, "a bool condition", err);
    }
    dt_dtype compute;
    if (a && b) {
        compute = dt_promoted(a, b, NULL);
    } else if (a || b) {
        compute = dt_promoted(a, b, a ? sb : sa);
    } else {
        const dt_array none = {.dtype = DT_BOOL};
        const dt_array first = {.dtype = (uint8_t)dt_promoted(&none, NULL, sa)};
        compute = dt_promoted(&first, NULL, sb);
    }
    dt_array immediate[2];
    if (a == NULL) {
        DT_TRY(dt_check_value("where", sa, compute, err));
        dt_immediate(sa, compute, &immediate[0]);
    }
    if (b == NULL) {
        DT_TRY(dt_check_value("where", sb, compute, err));
        dt_immediate(sb, compute, &immediate[1]);
    }
    const dt_array *x[3] = {condition, a ? a : &immediate[0], b ? b : &immediate[1]};
    const dt_dtype dtypes[3] = {DT_BOOL, compute, compute};
    int ndim;
    int64_t shape[DT_MAX_NDIM];
    DT_TRY(dt_check_ternary("where", in, NULL, compute, false, &ndim, shape, err));
    return dt_ternary_checked(DT_TERNARY_where, "where", dt_array_device(condition), x, dtypes, 1, compute, ndim, shape,
                              out, err);
}

dt_status
dt_masked_fill(const dt_array *input, const dt_array *mask, const dt_array *value, const dt_scalar *scalar,
               bool in_place, dt_array *out, dt_error *err)
{
    DT_RECORD(DT_GRAD_masked_fill, DT_NO_PARAMS, out, dt_masked_fill(input, mask, value, scalar, in_place, out, err),
              input, mask, value);
    static const int by_mask[] = {1, 0, 2, 3}; /* the order in which PyTorch compares the shapes */
    const dt_operand in[] = {{"input", input, -1}, {"mask", mask, -1}, {"value", value, -1}, {"out", NULL, DT_WRITTEN}};
    dt_dtype dtype = (dt_dtype)input->dtype;
    dt_array immediate;
    int ndim;
    int64_t shape[DT_MAX_NDIM];
    DT_TRY(dt_check_same_device("masked_fill", in, 3, err));
    DT_TRY(dt_check_mask("masked_fill", in, 3, 1, err));
    if (value != NULL) {
        DT_TRY(dt_check_rank_between("masked_fill", in, 3, 2, 0, 0, err));
    } else {
        DT_TRY(dt_check_value("masked_fill", scalar, dtype, err));
        dt_immediate(scalar, dtype, &immediate);
    }
    DT_TRY(dt_check_ternary("masked_fill", in, in_place ? NULL : by_mask, dtype, in_place, &ndim, shape, err));
    const dt_array *x[3] = {mask, value ? value : &immediate, input};
    const dt_dtype dtypes[3] = {DT_BOOL, dtype, dtype};
    return dt_ternary_checked(DT_TERNARY_where, "masked_fill", dt_array_device(input), x, dtypes, 1, dtype, ndim, shape,
                              out, err);
}

dt_status
dt_lerp(const dt_array *input, const dt_array *end, const dt_array *weight, const dt_scalar *scalar, bool in_place,
        dt_array *out, dt_error *err)
{
    const dt_binary_record weight_is_a_number = {
        .params = {{scalar != NULL ? scalar->f : 0, 0}, {scalar != NULL ? scalar->i : 0, 0}}};
    DT_RECORD(weight == NULL ? DT_GRAD_lerp_scalar : DT_GRAD_lerp, &weight_is_a_number, out,
              dt_lerp(input, end, weight, scalar, in_place, out, err), input, end, weight);
    const dt_operand in[] = {{"input", input, -1},
                             {"end", end, -1},
                             {"weight", weight, -1},
                             {"out", out->storage && !in_place ? out : NULL, DT_WRITTEN}};
    DT_TRY(dt_check_same_device("lerp", in, 4, err));
    DT_TRY(dt_check_same_dtype("lerp", in, 4, err));
    DT_TRY(dt_check_float("lerp", in, 4, err));
    int ndim;
    int64_t shape[DT_MAX_NDIM];
    dt_dtype compute = (dt_dtype)input->dtype;
    DT_TRY(dt_check_ternary("lerp", in, NULL, compute, in_place, &ndim, shape, err));
    if (weight == NULL) {
        const dt_params params = {{scalar->f, 0}, {scalar->i, 0}};
        return dt_binary_checked(DT_BINARY_lerp_scalar, "lerp", input, end, NULL, &params, compute, compute, ndim,
                                 shape, out, err);
    }
    const dt_array *x[3] = {input, end, weight};
    const dt_dtype dtypes[3] = {compute, compute, compute};
    return dt_ternary_checked(DT_TERNARY_lerp, "lerp", dt_array_device(input), x, dtypes, 1, compute, ndim, shape, out,
                              err);
}

dt_status
dt_affine(const char *name, const dt_array *input, const dt_array *scale, const dt_array *shift, bool in_place,
          dt_array *out, dt_error *err)
{
    DT_RECORD(DT_GRAD_affine, DT_NO_PARAMS, out, dt_affine(name, input, scale, shift, in_place, out, err), input, scale,
              shift);
    const dt_operand in[] = {
        {"input", input, -1}, {"scale", scale, -1}, {"shift", shift, -1}, {"out", NULL, DT_WRITTEN}};
    DT_TRY(dt_check_same_device(name, in, 4, err));
    DT_TRY(dt_check_float(name, in, 4, err));
    const dt_dtype dtype = (dt_dtype)input->dtype, wide = dt_wide(dtype);
    const dt_array *x[3] = {input, scale, shift};
    const dt_dtype dtypes[3] = {dtype, wide, wide};
    int ndim;
    int64_t shape[DT_MAX_NDIM];
    DT_TRY(dt_check_ternary(name, in, NULL, dtype, in_place, &ndim, shape, err));
    return dt_ternary_checked(DT_TERNARY_affine, name, dt_array_device(input), x, dtypes, 0, dtype, ndim, shape, out,
                              err);
}
