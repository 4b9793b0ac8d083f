/* norm.c: batch norm by statistics that are known: one pass over the input, input * scale + shift. By those of the
 * batch, and layer norm, where the device has a way of its own. */
#include "../check/check.h"
#include "../grad/grad.h"
#include "norm.h"
#include "ops.h"
#include "../result.h"

#define OP "batch_norm"

/* x, a number for each channel, becomes a view over the shape of input. */
static void
spread(dt_array *x, const dt_array *input)
{
    const int64_t stride = x->strides[0];
    x->ndim = input->ndim;
    DT_SHORT_LOOP for (int d = 0; d < input->ndim; d++)
    {
        x->shape[d] = input->shape[d];
        x->strides[d] = d == 1 ? stride : 0;
    }
}

/* The same by views that are recorded. */
static dt_status
affine_recorded(const dt_array *input, const dt_array *scale, const dt_array *shift, dt_array *out, dt_error *err)
{
    int64_t shape[DT_MAX_NDIM];
    for (int d = 0; d < input->ndim; d++) {
        shape[d] = d == 1 ? input->shape[1] : 1;
    }
    dt_array wide[2] = {DT_ARRAY_EMPTY, DT_ARRAY_EMPTY};
    dt_status rc = dt_view_reshape(OP, scale, input->ndim, shape, &wide[0], err);
    rc = rc == DT_OK ? dt_view_reshape(OP, shift, input->ndim, shape, &wide[1], err) : rc;
    rc = rc == DT_OK ? dt_affine(OP, input, &wide[0], &wide[1], false, out, err) : rc;
    dt_array_clear(&wide[0]);
    dt_array_clear(&wide[1]);
    return rc;
}

/* scale = weight / sqrt(var + eps), shift = bias - mean * scale, of what input is computed in. made is all that was
 * made, empty or not, the last two of them scale and shift. */
enum { WIDE_VAR, SUM, ROOT, PRODUCT, SCALE, SHIFT, NMADE };

static dt_status
fold(const dt_array *mean, const dt_array *var, const dt_array *weight, const dt_array *bias, double eps,
     dt_array *made, dt_error *err)
{
    const dt_scalar added = dt_scalar_float(eps);
    dt_array *scale = &made[SCALE], *shift = &made[SHIFT], *root = weight ? &made[ROOT] : scale;
    DT_TRY(dt_to(var, dt_array_device(var), dt_wide((dt_dtype)var->dtype), false, false, &made[WIDE_VAR], err));
    DT_TRY(dt_binary(DT_BINARY_add, OP, &made[WIDE_VAR], NULL, &added, NULL, false, &made[SUM], err));
    DT_TRY(dt_unary(DT_UNARY_rsqrt, OP, &made[SUM], NULL, false, root, err));
    if (weight != NULL) {
        DT_TRY(dt_binary(DT_BINARY_mul, OP, root, weight, NULL, NULL, false, scale, err));
    }
    DT_TRY(dt_binary(DT_BINARY_mul, OP, mean, scale, NULL, NULL, false, &made[PRODUCT], err));
    return bias != NULL ? dt_binary(DT_BINARY_sub, OP, bias, &made[PRODUCT], NULL, NULL, false, shift, err)
                        : dt_unary(DT_UNARY_neg, OP, &made[PRODUCT], NULL, false, shift, err);
}

/* Whether mean, var, weight and bias are as a kernel takes them, and there is nothing to record. */
static bool
fits_at_once(const dt_operand in[5])
{
    for (int i = 0; i < 5; i++) {
        const dt_array *x = in[i].array;
        if (x != NULL && ((!dt_grad_off && dt_is_tracked(x)) || (i > 0 && !dt_array_is_contiguous(x)))) {
            return false;
        }
    }
    const dt_array *x = in[0].array;
    return dt_array_device(x).type != DT_CPU && (dt_array_is_contiguous(x) || dt_is_channels_last(x));
}

/* Where the device has a way of its own. */
static dt_status
known_at_once(const dt_operand in[5], double eps, bool *made, dt_array *out, dt_error *err)
{
    const dt_array *x = in[0].array;
    DT_TRY(dt_empty_like(x, dt_array_device(x), (dt_dtype)x->dtype, out, err));
    const dt_status rc =
        dt_call_new_batch_norm(x, in[1].array, in[2].array, in[3].array, in[4].array, eps, out, made, err);
    if (rc != DT_OK || !*made) {
        dt_array_clear(out);
    }
    return rc;
}

dt_status
dt_batch_norm(const dt_array *input, const dt_array *mean, const dt_array *var, const dt_array *weight,
              const dt_array *bias, double eps, dt_array *out, dt_error *err)
{
    const dt_operand in[] = {{"input", input, -1},
                             {"running_mean", mean, -1},
                             {"running_var", var, -1},
                             {"weight", weight, -1},
                             {"bias", bias, -1}};
    DT_TRY(dt_check_same_device(OP, in, 5, err));
    DT_TRY(dt_check_same_dtype(OP, in, 5, err));
    DT_TRY(dt_check_float(OP, in, 5, err));
    DT_TRY(dt_check_channels(OP, in, 5, err));
    if (fits_at_once(in)) {
        bool done = true;
        DT_TRY(known_at_once(in, eps, &done, out, err));
        if (done) {
            return DT_OK;
        }
    }
    dt_array made[NMADE];
    for (int i = 0; i < NMADE; i++) {
        made[i].storage = NULL;
    }
    dt_status rc = fold(mean, var, weight, bias, eps, made, err);
    if (rc == DT_OK && !dt_grad_off && (dt_is_tracked(&made[SCALE]) || dt_is_tracked(&made[SHIFT]))) {
        rc = affine_recorded(input, &made[SCALE], &made[SHIFT], out, err);
    } else if (rc == DT_OK) {
        spread(&made[SCALE], input);
        spread(&made[SHIFT], input);
        rc = dt_affine(OP, input, &made[SCALE], &made[SHIFT], false, out, err);
    }
    for (int i = 0; i < NMADE; i++) {
        dt_array_clear(&made[i]);
    }
    return rc;
}

/* Of dense operands. */
static dt_status
normalized(const char *op, const dt_array *input, const dt_array *weight, const dt_array *bias,
           const dt_normalize_params *params, dt_array *stats, dt_array *out, dt_error *err)
{
    const dt_array *given[] = {input, weight, bias};
    dt_array dense[3] = {DT_ARRAY_EMPTY, DT_ARRAY_EMPTY, DT_ARRAY_EMPTY};
    dt_status rc = DT_OK;
    for (int k = 0; k < 3 && rc == DT_OK; k++) {
        rc = given[k] == NULL ? DT_OK : dt_contiguous(given[k], &dense[k], err);
    }
    rc = rc == DT_OK ? dt_empty(dt_array_device(input), (dt_dtype)input->dtype, input->ndim, input->shape, out, err)
                     : rc;
    if (rc == DT_OK) {
        bool made = true;
        rc = dt_call_new_normalize(&dense[0], weight == NULL ? NULL : &dense[1], bias == NULL ? NULL : &dense[2],
                                   params, out, stats, &made, err);
        rc = dt_result_made_here(rc, made, op, out, err);
    }
    for (int k = 0; k < 3; k++) {
        dt_array_clear(&dense[k]);
    }
    return rc;
}

dt_status
dt_normalize(const char *op, const dt_array *input, const dt_array *weight, const dt_array *bias,
             const dt_normalize_params *params, dt_array *out, dt_error *err)
{
    DT_RECORD(DT_GRAD_normalize, params, out, dt_normalize(op, input, weight, bias, params, out, err), input, weight,
              bias);
    const dt_operand in[] = {{"input", input, -1}, {"weight", weight, -1}, {"bias", bias, -1}};
    DT_TRY(dt_check_same_device(op, in, 3, err));
    DT_TRY(dt_check_same_dtype(op, in, 3, err));
    DT_TRY(dt_check_float(op, in, 3, err));
    return normalized(op, input, weight, bias, params, NULL, out, err);
}

dt_status
dt_normalize_channels(const dt_array *input, const dt_array *weight, const dt_array *bias,
                      const dt_normalize_params *params, dt_array *stats, dt_array *out, dt_error *err)
{
    DT_RECORD(DT_GRAD_normalize_channels, params, out,
              dt_normalize_channels(input, weight, bias, params, stats, out, err), input, weight, bias);
    const dt_operand in[] = {{"input", input, -1}, {"weight", weight, -1}, {"bias", bias, -1}};
    DT_TRY(dt_check_same_device(OP, in, 3, err));
    DT_TRY(dt_check_same_dtype(OP, in, 3, err));
    DT_TRY(dt_check_float(OP, in, 3, err));
    DT_TRY(dt_check_channels(OP, in, 3, err));
    return normalized(OP, input, weight, bias, params, stats, out, err);
}
