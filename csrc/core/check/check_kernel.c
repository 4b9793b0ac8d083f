/* check_kernel.c: as check.c, the sentences about the arguments of users' kernels. Operands have the names of the
 * kernel's parameters. */
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "sentence.h"

/* As many of the operands as an error can list, odd ones among them. */
static int
choose_operands(const dt_operand *in, int n, int a, int b, dt_operand out[DT_MAX_OPERANDS])
{
    int count = 0;
    for (int i = 0; i < n; i++) {
        int still = (a >= i) + (b >= i && b != a);
        if (i == a || i == b || count + still < DT_MAX_OPERANDS) {
            out[count++] = in[i];
        }
    }
    return count;
}

static void
begin_kernel_sentence(const dt_kernel *kernel, const dt_operand *in, int n, int odd, dt_status status, const char *code,
                      dt_error *err)
{
    dt_operand some[DT_MAX_OPERANDS];
    dt_sentence_begin(err, status, code, kernel->name, some, choose_operands(in, n, odd, odd, some));
    dt_sentence_culprit(err, &in[odd]);
    for (int i = 0; i < err->noperands; i++) { /* one array may stand for several parameters */
        err->culprit = strcmp(err->operands[i].name, in[odd].name) == 0 ? i : err->culprit;
    }
}

dt_status
dt_fail_kernel_count(const dt_kernel *kernel, int nargs, dt_error *err)
{
    dt_fail(err, DT_EKERNEL, "kernel-argument", kernel->name, "%s takes %d argument%s (", kernel->name, kernel->nparams,
            kernel->nparams == 1 ? "" : "s");
    for (int i = 0; i < kernel->nparams; i++) {
        dt_sentence_add(err, "%s%s", i > 0 ? ", " : "", kernel->params[i].declaration);
    }
    dt_sentence_add(err, "), but got %d", nargs);
    return DT_EKERNEL;
}

dt_status
dt_fail_kernel_kind(const dt_kernel *kernel, int i, const dt_kernel_arg *arg, dt_error *err)
{
    static const char *const wanted[] = {"a DeviceArray", "a bool", "an int", "a number"};
    const dt_param *p = &kernel->params[i];
    char shape[DT_SHAPE_TEXT];
    dt_fail(err, DT_EKERNEL, "kernel-argument", kernel->name, "argument %d of %s, %s, must be %s, but got ", i + 1,
            kernel->name, p->declaration, wanted[p->kind]);
    if (arg->array != NULL) {
        dt_sentence_add(err, "a DeviceArray of shape %s%s", dt_array_shape_text(arg->array, shape),
                        dt_array_numel(arg->array) == 1 ? "; .item() gives its value" : "");
    } else if (arg->given != NULL) {
        dt_sentence_add(err, "%s%s", arg->given,
                        strcmp(arg->given, "numpy.ndarray") == 0
                            ? "; from_numpy(...).to(\"cuda\") makes an array that a kernel can reach"
                            : "");
    } else {
        static const char *const names[] = {
            [DT_CATEGORY_BOOL] = "a bool", [DT_CATEGORY_INT] = "an int", [DT_CATEGORY_FLOAT] = "a float"};
        dt_sentence_add(err, "%s", names[arg->kind]);
    }
    return DT_EKERNEL;
}

dt_status
dt_check_kernel_device(const dt_kernel *kernel, const dt_operand *in, int n, dt_error *err)
{
    for (int i = 1; i < n; i++) {
        if (DT_UNLIKELY(!dt_device_equal(dt_array_device(in[0].array), dt_array_device(in[i].array)))) {
            dt_operand some[DT_MAX_OPERANDS];
            return dt_check_same_device(kernel->name, some, choose_operands(in, n, 0, i, some), err);
        }
    }
    if (n > 0 && dt_array_device(in[0].array).type == DT_CPU) {
        begin_kernel_sentence(kernel, in, n, 0, DT_EDEVICE, "device-mismatch", err);
        dt_sentence_add(err, "Expected all tensors to be on a CUDA device, but found at least one on cpu!");
        dt_sentence_operands(err, DT_SHOW_DEVICE);
        return DT_EDEVICE;
    }
    return DT_OK;
}

dt_status
dt_fail_kernel_stream(const dt_kernel *kernel, dt_device arrays, dt_device stream, dt_error *err)
{
    char a[DT_DEVICE_TEXT], b[DT_DEVICE_TEXT];
    return dt_fail(err, DT_EDEVICE, "device-mismatch", kernel->name,
                   "Expected all tensors and the stream to be on the same device, but found at least two devices, %s "
                   "and %s! (%s: arrays on %s, stream of %s)",
                   dt_device_text(arrays, a), dt_device_text(stream, b), kernel->name, a, b);
}

dt_status
dt_fail_kernel_dtype(const dt_kernel *kernel, const dt_operand *in, int n, int odd, const dt_param *param,
                     dt_error *err)
{
    begin_kernel_sentence(kernel, in, n, odd, DT_EDTYPE, "dtype-mismatch", err);
    dt_sentence_add(err, "Expected %s tensor to have dtype %s for %s, but got %s instead", param->name,
                    dt_dtypes[param->dtype].name, param->declaration, dt_dtypes[in[odd].array->dtype].name);
    dt_sentence_operands(err, DT_SHOW_DTYPE);
    return DT_EDTYPE;
}

dt_status
dt_fail_kernel_strides(const dt_kernel *kernel, const dt_operand *in, int n, int odd, dt_error *err)
{
    char shape[DT_SHAPE_TEXT], strides[DT_SHAPE_TEXT];
    const dt_array *x = in[odd].array;
    begin_kernel_sentence(kernel, in, n, odd, DT_EKERNEL, "not-contiguous", err);
    dt_sentence_add(err,
                    "Expected %s tensor to be contiguous, since a kernel sees only its address, but got strides "
                    "%s for shape %s",
                    in[odd].name, dt_shape_text(x->ndim, x->strides, strides), dt_array_shape_text(x, shape));
    dt_sentence_operands(err, DT_SHOW_SHAPE);
    return DT_EKERNEL;
}

dt_status
dt_fail_kernel_lanes(const dt_kernel *kernel, const dt_operand *in, int n, int odd, const dt_param *param,
                     dt_error *err)
{
    long long numel = (long long)dt_array_numel(in[odd].array);
    begin_kernel_sentence(kernel, in, n, odd, DT_EKERNEL, "kernel-argument", err);
    if (numel % param->lanes != 0) {
        dt_sentence_add(err, "Expected %s tensor to have a multiple of %d elements for %s, but got %lld", param->name,
                        param->lanes, param->declaration, numel);
    } else {
        dt_sentence_add(err, "Expected %s tensor to begin at a multiple of %zu bytes for %s; .clone() does",
                        param->name, dt_itemsize((dt_dtype)in[odd].array->dtype) * (size_t)param->lanes,
                        param->declaration);
    }
    dt_sentence_operands(err, DT_SHOW_SHAPE);
    return DT_EKERNEL;
}

dt_status
dt_fail_kernel_range(const dt_kernel *kernel, const dt_param *param, const dt_kernel_arg *arg, dt_error *err)
{
    char value[64] = "the number";
    if (arg->kind == DT_CATEGORY_FLOAT) {
        snprintf(value, sizeof(value), "%g", arg->f);
    } else if (!arg->huge) {
        snprintf(value, sizeof(value), "%s%llu", arg->negative ? "-" : "", (unsigned long long)arg->u);
    }
    dt_fail(err, DT_EKERNEL, "kernel-argument", kernel->name, "%s does not fit %s", value, param->declaration);
    if (param->kind == DT_PARAM_BOOL) {
        dt_sentence_add(err, ", which is True or False");
    } else if (param->kind == DT_PARAM_INT) {
        uint64_t most = UINT64_MAX >> (64 - 8 * param->size + param->is_signed);
        dt_sentence_add(err, ", which holds %s%llu to %llu", param->is_signed ? "-" : "",
                        param->is_signed ? (unsigned long long)most + 1 : 0ull, (unsigned long long)most);
    } else {
        dt_sentence_add(err, ", a %s", dt_dtypes[param->dtype].name);
    }
    dt_sentence_add(err, " (%s)", kernel->name);
    return DT_EKERNEL;
}

dt_status
dt_fail_kernel_launch(const dt_kernel *kernel, const char *what, const unsigned size[3], const char *limit,
                      dt_error *err)
{
    return dt_fail(err, DT_EKERNEL, "kernel-argument", kernel->name, "%s (%u, %u, %u) of %s %s", what, size[0], size[1],
                   size[2], kernel->name, limit);
}
