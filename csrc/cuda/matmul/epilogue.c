/* epilogue.c: the bias and the activation of a product or a convolution, where no call of a library does them. */
#include <string.h>

#include "../ops/ops.h"

void
cuda_along(const dt_array *bias, int dim, const dt_array *out, dt_array *wide)
{
    *wide = *out;
    memset(wide->strides, 0, sizeof(wide->strides));
    wide->storage = bias->storage;
    wide->offset = bias->offset;
    wide->strides[dim] = bias->strides[0];
}

dt_status
cuda_epilogue(const dt_array *bias, int dim, dt_activation activation, dt_array *out, dt_error *err)
{
    if (bias != NULL) {
        dt_array wide;
        cuda_along(bias, dim, out, &wide);
        DT_TRY(cuda_binary(DT_BINARY_add, NULL, out, &wide, out, err));
    }
    return activation != DT_ACTIVATION_NONE ? cuda_unary(dt_activation_op(activation), NULL, out, out, err) : DT_OK;
}
