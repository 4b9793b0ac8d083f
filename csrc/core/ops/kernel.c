/* kernel.c: the arguments of a user's kernel. */
#include "kernel.h"

#include <math.h>
#include <string.h>

#include "../check/check.h"

/* ---------------------------------------------------------------- parameters */

bool
dt_kernel_lay_out(dt_param *params, int nparams, size_t *nbytes)
{
    size_t offset = 0;
    for (int i = 0; i < nparams; i++) {
        size_t size = params[i].kind == DT_PARAM_ARRAY ? sizeof(uint64_t) : (size_t)params[i].size;
        offset = (offset + size - 1) / size * size;
        params[i].offset = offset;
        offset += size;
    }
    *nbytes = offset;
    return offset <= DT_KERNEL_PARAM_BYTES;
}

/* ---------------------------------------------------------------- arrays */

static dt_status
check_kinds(const dt_kernel *kernel, const dt_kernel_arg *args, dt_error *err)
{
    for (int i = 0; i < kernel->nparams; i++) {
        const dt_param *p = &kernel->params[i];
        const dt_kernel_arg *a = &args[i];
        bool fits = p->kind == DT_PARAM_ARRAY   ? a->array != NULL
                    : a->array || a->given      ? false
                    : p->kind == DT_PARAM_FLOAT ? true
                                                : a->kind != DT_CATEGORY_FLOAT;
        if (!fits) {
            return dt_fail_kernel_kind(kernel, i, a, err);
        }
    }
    return DT_OK;
}

static dt_status
check_arrays(const dt_kernel *kernel, const dt_operand *in, int n, const int *which, dt_error *err)
{
    DT_TRY(dt_check_kernel_device(kernel, in, n, err));
    for (int i = 0; i < n; i++) {
        const dt_param *p = &kernel->params[which[i]];
        if (p->dtype >= 0 && in[i].array->dtype != p->dtype) {
            return dt_fail_kernel_dtype(kernel, in, n, i, p, err);
        }
    }
    for (int i = 0; i < n; i++) {
        if (!dt_array_is_contiguous(in[i].array)) {
            return dt_fail_kernel_strides(kernel, in, n, i, err);
        }
    }
    for (int i = 0; i < n; i++) {
        const dt_param *p = &kernel->params[which[i]];
        int64_t numel = dt_array_numel(in[i].array);
        uintptr_t address = (uintptr_t)dt_array_data(in[i].array);
        size_t element = dt_itemsize((dt_dtype)in[i].array->dtype) * (size_t)p->lanes;
        if (p->lanes > 1 && (numel % p->lanes != 0 || (numel > 0 && address % element != 0))) {
            return dt_fail_kernel_lanes(kernel, in, n, i, p, err);
        }
        if (!p->constant) {
            DT_TRY(dt_check_writable(kernel->name, p->name, in[i].array, err));
        }
    }
    return DT_OK;
}

/* ---------------------------------------------------------------- numbers */

static bool
store_int(const dt_param *p, const dt_kernel_arg *a, unsigned char *at)
{
    int bits = 8 * p->size;
    uint64_t most = UINT64_MAX >> (64 - bits + p->is_signed);
    uint64_t limit = !a->negative ? most : p->is_signed ? most + 1 : 0;
    uint64_t value = a->negative ? 0 - a->u : a->u;
    if (a->huge || a->u > limit) {
        return false;
    }
    memcpy(at, &value, (size_t)p->size); /* little-endian, as every machine with a GPU */
    return true;
}

/* What is beyond the largest number does not fit; infinities and NaN do. */
static bool
store_float(const dt_param *p, const dt_kernel_arg *a, unsigned char *at)
{
    dt_dtype dtype = (dt_dtype)p->dtype;
    dt_scalar value = dt_scalar_float(a->f);
    dt_scalar_store(&value, dtype, at);
    return !a->huge && (!isinf(dt_scalar_load(dtype, at).f) || isinf(a->f));
}

static dt_status
store_numbers(const dt_kernel *kernel, const dt_kernel_arg *args, unsigned char *block, dt_error *err)
{
    for (int i = 0; i < kernel->nparams; i++) {
        const dt_param *p = &kernel->params[i];
        const dt_kernel_arg *a = &args[i];
        unsigned char *at = block + p->offset;
        bool fits = true;
        switch (p->kind) {
        case DT_PARAM_ARRAY:
            break;
        case DT_PARAM_BOOL:
            *at = (unsigned char)a->u;
            fits = !a->huge && !a->negative && a->u <= 1;
            break;
        case DT_PARAM_INT:
            fits = store_int(p, a, at);
            break;
        case DT_PARAM_FLOAT:
            fits = store_float(p, a, at);
            break;
        }
        if (!fits) {
            return dt_fail_kernel_range(kernel, p, a, err);
        }
    }
    return DT_OK;
}

dt_status
dt_kernel_check(const dt_kernel *kernel, const dt_kernel_arg *args, int nargs, dt_device *device,
                unsigned char block[DT_KERNEL_PARAM_BYTES], dt_error *err)
{
    dt_operand in[DT_KERNEL_PARAMS];
    int which[DT_KERNEL_PARAMS], n = 0;
    if (nargs != kernel->nparams) {
        return dt_fail_kernel_count(kernel, nargs, err);
    }
    DT_TRY(check_kinds(kernel, args, err));
    for (int i = 0; i < nargs; i++) {
        if (args[i].array != NULL) {
            which[n] = i;
            in[n++] = (dt_operand){kernel->params[i].name, args[i].array, -1};
        }
    }
    if (n > 0) {
        DT_TRY(check_arrays(kernel, in, n, which, err));
    }
    memset(block, 0, kernel->nbytes);
    DT_TRY(store_numbers(kernel, args, block, err));
    for (int i = 0; i < n; i++) {
        uint64_t address = (uint64_t)(uintptr_t)dt_array_data(in[i].array);
        memcpy(block + kernel->params[which[i]].offset, &address, sizeof(address));
    }
    if (n > 0) {
        *device = dt_array_device(in[0].array);
    }
    return DT_OK;
}
