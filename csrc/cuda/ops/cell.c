/* cell.c: a step of an LSTM or GRU after its products. */
#include "../launch/launch.h"
#include "ops.h"

static k_cell_args
args_of(const dt_array *own, const dt_array *x, const dt_array *state, const dt_array *out)
{
    return (k_cell_args){.own = cuda_operand(own),
                         .x = cuda_operand(x),
                         .state = cuda_operand(state),
                         .out = cuda_operand(out),
                         .n = state->shape[0],
                         .size = state->shape[1],
                         .own_stride = own->strides[0],
                         .x_stride = x->strides[0],
                         .state_stride = state->strides[0]};
}

static dt_status
run(cuda_kernel kernel, const k_cell_args *args, const dt_array *out, dt_error *err)
{
    cuda_device *d;
    CUfunction function;
    if (args->n * args->size == 0) {
        return DT_OK;
    }
    DT_TRY(cuda_enter(out->storage->device.index, &d, err));
    DT_TRY(cuda_function(d, CUDA_FAMILY_OTHER, (int)kernel, (dt_dtype)out->dtype, &function, err));
    return cuda_launch(d, function, args->n * args->size, args, err);
}

dt_status
cuda_cell(dt_cell cell, const dt_array *own, const dt_array *x, const dt_array *state, dt_array *out, bool *made,
          dt_error *err)
{
    const k_cell_args args = args_of(own, x, state, out);
    (void)made;
    return run(cell == DT_CELL_LSTM ? CUDA_KERNEL_lstm : CUDA_KERNEL_gru, &args, out, err);
}

dt_status
cuda_cell_grad(dt_cell cell, const dt_array *own, const dt_array *x, const dt_array *state, const dt_array *grad,
               dt_array *out, bool *made, dt_error *err)
{
    k_cell_args args = args_of(own, x, state, out);
    (void)made;
    args.grad = cuda_operand(grad);
    args.grad_stride = grad->strides[grad->ndim - 2];
    args.grad_next = cell == DT_CELL_LSTM ? grad->strides[0] : 0;
    return run(cell == DT_CELL_LSTM ? CUDA_KERNEL_lstm_grad : CUDA_KERNEL_gru_grad, &args, out, err);
}
