/* error.c: how a failure is written down. */
#include "devtensor.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#undef dt_fail
#undef dt_fail_nomem

dt_status
dt_fail(dt_error *err, dt_status status, const char *code, const char *op, const char *format, ...)
{
    memset(err, 0, offsetof(dt_error, message));
    err->status = status;
    err->code = code;
    err->op = op;
    err->culprit = -1;
    va_list args;
    va_start(args, format);
    vsnprintf(err->message, sizeof(err->message), format, args);
    va_end(args);
    return status;
}

dt_error_operand
dt_describe_operand(const dt_operand *operand)
{
    const dt_array *x = operand->array;
    dt_error_operand described = {
        .name = operand->name,
        .index = operand->index,
        .identity = (uintptr_t)x,
        .dtype = x->dtype,
        .ndim = x->ndim,
    };
    if (x->storage != NULL) {
        described.device = dt_array_device(x);
    }
    memcpy(described.shape, x->shape, x->ndim * sizeof(*x->shape));
    return described;
}

dt_status
dt_fail_nomem(dt_error *err, size_t nbytes)
{
    dt_fail(err, DT_ENOMEM, "out-of-memory", NULL, "not enough memory: you tried to allocate %zu bytes.", nbytes);
    err->requested = nbytes;
    return DT_ENOMEM;
}
