/* random.c: draws from a counter-based generator; how many blocks were drawn is all its state. */
#include "../check/check.h"
#include "../grad/grad.h"
#include "ops.h"
#include "../numbers/philox.h"
#include "../result.h"

dt_generator dt_default_generator;

void
dt_seed(dt_generator *generator, uint64_t seed)
{
    generator->seed = seed;
    generator->offset = 0;
}

static dt_status
check_params(const char *op, dt_dtype dtype, const dt_random_params *p, dt_error *err)
{
    switch (p->kind) {
    case DT_RANDOM_UNIFORM:
    case DT_RANDOM_NORMAL:
        if (!dt_is_float(dtype)) {
            return dt_fail_dtype(op, dtype, DT_FLOATS, err);
        }
        if (p->kind == DT_RANDOM_NORMAL && !(p->b >= 0)) {
            return dt_fail(err, DT_EVALUE, "invalid-parameter", op, "%s expects std >= 0.0, but found std %g", op,
                           p->b);
        }
        return DT_OK;
    case DT_RANDOM_INTEGERS:
        if (p->low >= p->high) {
            return dt_fail(err, DT_EVALUE, "invalid-parameter", op,
                           "%s expects 'from' to be less than 'to', but got from=%lld >= to=%lld", op,
                           (long long)p->low, (long long)p->high);
        }
        DT_TRY(dt_check_bound(op, p->low, dtype, err));
        return dt_check_bound(op, p->high - 1, dtype, err);
    default:
        return DT_OK;
    }
}

/* Blocks that n elements take; the rest of the last one is never used. */
static uint64_t
blocks_of(dt_random_kind kind, dt_dtype dtype, int64_t n)
{
    if (kind == DT_RANDOM_PERMUTATION) {
        return DT_PERMUTATION_BLOCKS;
    }
    uint64_t lanes = DT_RANDOM_LANES(kind != DT_RANDOM_INTEGERS, dt_itemsize(dtype));
    return ((uint64_t)n + lanes - 1) / lanes;
}

dt_status
dt_random(const char *op, dt_generator *generator, dt_device device, dt_dtype dtype, int ndim, const int64_t *shape,
          dt_random_params params, dt_array *out, dt_error *err)
{
    DT_TRY(check_params(op, dtype, &params, err));
    DT_TRY(dt_shape_check(op, ndim, shape, dtype, err));
    if (params.kind == DT_RANDOM_PERMUTATION) {
        DT_TRY(dt_check_permutation(op, shape[0], dtype, err));
    }
    const bool cast = params.kind == DT_RANDOM_PERMUTATION && dtype != DT_INT64;
    dt_array numbers = DT_ARRAY_EMPTY, *drawn = cast ? &numbers : out;
    DT_TRY(dt_empty(device, cast ? DT_INT64 : dtype, ndim, shape, drawn, err));
    params.seed = generator->seed;
    params.offset = atomic_fetch_add(&generator->offset, blocks_of(params.kind, dtype, dt_array_numel(drawn)));
    DT_TRY(dt_result_made(dt_call_new_random(drawn, &params, err), drawn));
    if (!cast) {
        return DT_OK;
    }
    dt_status rc = dt_cast(&numbers, dtype, out, err);
    dt_array_clear(&numbers);
    return rc;
}

dt_status
dt_dropout_again(const char *op, const dt_array *x, const dt_random_params *params, dt_array *out, dt_error *err)
{
    DT_RECORD(DT_GRAD_dropout, params, out, dt_dropout_again(op, x, params, out, err), x);
    DT_TRY(dt_empty_like(x, dt_array_device(x), (dt_dtype)x->dtype, out, err));
    return dt_result_made(dt_call_new_dropout(x, out, params, err), out);
}

dt_status
dt_dropout(const char *op, dt_generator *generator, const dt_array *x, double p, dt_array *out, dt_error *err)
{
    const dt_operand in[] = {{"input", x, -1}};
    DT_TRY(dt_check_float(op, in, 1, err));
    dt_random_params params = {.kind = DT_RANDOM_UNIFORM, .a = p, .b = p < 1 ? 1 / (1 - p) : 0};
    params.seed = generator->seed;
    params.offset = atomic_fetch_add(&generator->offset, blocks_of(DT_RANDOM_UNIFORM, DT_FLOAT32, dt_array_numel(x)));
    return dt_dropout_again(op, x, &params, out, err);
}
