/* cell_steps.c: all steps of an LSTM or GRU in one launch, where the weight is small enough to be read at each step. */
#include "../launch/launch.h"
#include "../memory/memory.h"
#include "ops.h"

#define WEIGHT_BYTES ((int64_t)1 << 19) /* at most: a step reads them in the time of two launches */
#define FEW_STEPS 4                     /* are not worth the copy of the weight */
#define ROUNDS 2                        /* of blocks over the device */

/* So small a weight has states of 4 rows that fit a block, 2 of float64. */
_Static_assert((K_STEPS_STATES / 16) * (K_STEPS_STATES / 16) * 3 * 2 >= WEIGHT_BYTES, "states of a block");

/* Rows of a block; 0: all steps of some rows are not worth a launch. */
static int
rows_of_block(const cuda_device *d, const dt_array *weight, int64_t steps, int64_t n)
{
    const int64_t nbytes = dt_array_numel(weight) * (int64_t)dt_itemsize((dt_dtype)weight->dtype);
    const int rows = n >= 4 && weight->dtype != DT_FLOAT64 ? 4 : n >= 2 ? 2 : 1;
    return weight->shape[1] % K_STEPS_WIDTH == 0 && steps >= FEW_STEPS && nbytes <= WEIGHT_BYTES &&
                   n <= (int64_t)ROUNDS * d->multiprocessors * rows
               ? rows
               : 0;
}

static dt_status
launch(cuda_device *d, cuda_kernel kernel, const dt_array *like, int64_t n, int rows, const void *args, dt_error *err)
{
    CUfunction function;
    DT_TRY(cuda_function(d, CUDA_FAMILY_OTHER, (int)kernel, (dt_dtype)like->dtype, &function, err));
    return cuda_launch_blocks(d, function, (n - 1) / rows + 1, args, err);
}

/* x, of which the steps along dimension d may run backwards, and where the first one stands in it. */
static k_operand
steps_operand(const dt_array *x, int d, int64_t *first)
{
    dt_array whole = *x;
    *first = x->strides[d] < 0 ? (x->shape[d] - 1) * -x->strides[d] : 0;
    whole.offset -= *first * (int64_t)dt_itemsize((dt_dtype)x->dtype);
    whole.strides[d] = x->strides[d] < 0 ? -x->strides[d] : x->strides[d];
    return cuda_operand(&whole);
}

/* Whether vectors of K_STEPS_WIDTH numbers begin where they may. */
static bool
is_aligned(const dt_array *weight)
{
    return cuda_address(weight) % (K_STEPS_WIDTH * dt_itemsize((dt_dtype)weight->dtype)) == 0;
}

/* factor: weight in the order in which a kernel reads it. args has all but that and the product. */
static dt_status
run_steps(cuda_device *d, const dt_array *product, const dt_array *weight, const dt_array *bias, bool lstm,
          k_cell_steps_args *args, bool *made, dt_error *err)
{
    const dt_array factor = cuda_transposed(weight);
    const dt_array *rows;
    cuda_temporary copy = CUDA_TEMPORARY_EMPTY;
    args->product = steps_operand(product, 0, &args->product_first);
    args->product_step = product->strides[0];
    args->product_row = product->strides[1];
    args->steps = product->shape[0];
    args->n = product->shape[1];
    args->size = weight->shape[1];
    if (bias != NULL) {
        args->bias = cuda_operand(bias);
        args->bias_stride = bias->strides[0];
    }
    dt_status rc = cuda_contiguous(d, &factor, &copy, &rows, err);
    *made = rc != DT_OK || is_aligned(rows);
    if (rc == DT_OK && *made) {
        args->weight = cuda_operand(rows);
        rc = launch(d, lstm ? CUDA_KERNEL_lstm_steps : CUDA_KERNEL_gru_steps, product, args->n, args->rows, args, err);
    }
    cuda_temporary_clear(&copy);
    return rc;
}

dt_status
cuda_cell_steps(const dt_array *product, const dt_array *weight, const dt_array *bias, const dt_array *h,
                const dt_array *state, dt_array *out, dt_array *last, bool *made, dt_error *err)
{
    cuda_device *d;
    DT_TRY(cuda_enter(out->storage->device.index, &d, err));
    k_cell_steps_args args = {.rows = rows_of_block(d, weight, product->shape[0], h->shape[0]),
                              .h = cuda_operand(h),
                              .h_row = h->strides[0],
                              .h_column = h->strides[1],
                              .out = cuda_operand(out),
                              .out_step = out->strides[0]};
    *made = args.rows > 0;
    if (!*made) {
        return DT_OK;
    }
    if (last != NULL) { /* each step writes c there */
        args.state = cuda_operand(state);
        args.state_row = state->strides[0];
        args.cells = cuda_operand(last);
    }
    return run_steps(d, product, weight, bias, last != NULL, &args, made, err);
}

/* The steps of states from the first on; entry: h or c of an LSTM. */
static dt_array
states_from(const dt_array *states, int64_t first, int64_t entry)
{
    dt_array some = *states;
    some.shape[0] -= first;
    some.offset += (first * states->strides[0] + (states->ndim == 4 ? entry * states->strides[1] : 0)) *
                   (int64_t)dt_itemsize((dt_dtype)states->dtype);
    if (states->ndim == 4) {
        some.shape[1] = 1;
    }
    return some;
}

dt_status
cuda_cell_steps_kept(const dt_array *product, const dt_array *weight, const dt_array *bias, dt_array *own,
                     dt_array *states, bool *made, dt_error *err)
{
    cuda_device *d;
    DT_TRY(cuda_enter(own->storage->device.index, &d, err));
    const bool lstm = states->ndim == 4;
    const int64_t size = weight->shape[1];
    const dt_array h = states_from(states, 0, 0), state = states_from(states, 0, 1);
    const dt_array next_h = states_from(states, 1, 0), next_state = states_from(states, 1, 1);
    k_cell_steps_args args = {.rows = rows_of_block(d, weight, product->shape[0], product->shape[1]),
                              .h = cuda_operand(&h),
                              .h_row = size,
                              .h_column = 1,
                              .own = cuda_operand(own),
                              .out = cuda_operand(&next_h),
                              .out_step = states->strides[0]};
    *made = args.rows > 0;
    if (!*made) {
        return DT_OK;
    }
    if (lstm) {
        args.state = cuda_operand(&state);
        args.state_row = size;
        args.cells = cuda_operand(&next_state);
        args.cells_step = states->strides[0];
    }
    return run_steps(d, product, weight, bias, lstm, &args, made, err);
}

dt_status
cuda_cell_steps_grad(const dt_array *own, const dt_array *product, const dt_array *weight, const dt_array *states,
                     const dt_array *grad, dt_array *gates, dt_array *begin, bool *made, dt_error *err)
{
    cuda_device *d;
    DT_TRY(cuda_enter(gates->storage->device.index, &d, err));
    const bool lstm = states->ndim == 4;
    const int steps = gates->ndim - 3; /* the dimension of gates */
    const dt_array state = states_from(states, 0, 1);
    k_cell_steps_grad_args args = {.rows = rows_of_block(d, weight, product->shape[0], product->shape[1]),
                                   .own = cuda_operand(own),
                                   .state = cuda_operand(&state),
                                   .grad = cuda_operand(grad),
                                   .begin = cuda_operand(begin),
                                   .steps = product->shape[0],
                                   .n = product->shape[1],
                                   .size = weight->shape[1],
                                   .product_step = product->strides[0],
                                   .product_row = product->strides[1],
                                   .state_step = states->strides[0],
                                   .gates_step = gates->strides[steps],
                                   .gates_next = lstm ? 0 : gates->strides[0],
                                   .begin_next = lstm ? begin->strides[0] : 0};
    const dt_array *rows;
    cuda_temporary copy = CUDA_TEMPORARY_EMPTY;
    *made = args.rows > 0;
    if (!*made) {
        return DT_OK;
    }
    args.product = steps_operand(product, 0, &args.product_first);
    args.gates = steps_operand(gates, steps, &args.gates_first);
    dt_status rc = cuda_contiguous(d, weight, &copy, &rows, err);
    *made = rc != DT_OK || is_aligned(rows);
    if (rc == DT_OK && *made) {
        args.weight = cuda_operand(rows);
        rc = launch(d, lstm ? CUDA_KERNEL_lstm_steps_grad : CUDA_KERNEL_gru_steps_grad, gates, args.n, args.rows, &args,
                    err);
    }
    cuda_temporary_clear(&copy);
    return rc;
}
