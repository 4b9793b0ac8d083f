/* matmul.c: products of matrices and vectors. Every public name comes down to one slot call on (batch.., m, k) and
 * (batch.., k, n); vectors become matrices by views. */
#include "../check/check.h"
#include "../grad/params.h"
#include "ops.h"
#include "../result.h"
#include "../memory/storage.h"

#include <string.h>

#define DT_RECORD_PRODUCT(a, b, call)                                                                                  \
    const dt_pair_record ranks_ = {(a)->ndim, (b)->ndim};                                                              \
    DT_RECORD(DT_GRAD_matmul, &ranks_, out, call, a, b)

static const dt_matmul_params plain = {1.0, 0.0, DT_ACTIVATION_NONE};

static const struct {
    const char *name;
    dt_unary_op op;
} activations[] = {
    [DT_ACTIVATION_RELU] = {"relu", DT_UNARY_relu},
    [DT_ACTIVATION_GELU] = {"gelu", DT_UNARY_gelu_erf},
    [DT_ACTIVATION_GELU_TANH] = {"gelu_tanh", DT_UNARY_gelu_tanh},
};

dt_status
dt_activation_find(const char *op, const char *name, dt_activation *out, dt_error *err)
{
    if (name == NULL) {
        *out = DT_ACTIVATION_NONE;
        return DT_OK;
    }
    for (int i = DT_ACTIVATION_RELU; i <= DT_ACTIVATION_GELU_TANH; i++) {
        if (strcmp(name, activations[i].name) == 0) {
            *out = (dt_activation)i;
            return DT_OK;
        }
    }
    return dt_fail_activation(op, name, err);
}

dt_unary_op
dt_activation_op(dt_activation activation)
{
    return activations[activation].op;
}

static dt_status
check_alike(const char *op, const dt_operand *in, int n, dt_wording wording, dt_error *err)
{
    DT_TRY(dt_check_same_device(op, in, n, err));
    return dt_check_dtypes(op, in, n, DT_ALL, wording, err);
}

/* Device, then dtype of all, then that there is such a product. */
static dt_status
check_operands(const char *op, const dt_operand *in, int n, dt_wording wording, dt_error *err)
{
    DT_TRY(check_alike(op, in, n, wording, err));
    return dt_check_float(op, in, n, err);
}

/* The same where nothing but a product is asked for, which the host computes of integers too. */
static dt_status
check_factors(const char *op, const dt_operand *in, int n, dt_wording wording, dt_error *err)
{
    DT_TRY(check_alike(op, in, n, wording, err));
    return dt_array_device(in[0].array).type == DT_CPU ? dt_check_not_bool(op, in, n, "all dtypes but bool", err)
                                                       : dt_check_float(op, in, n, err);
}

/* x, a matrix or batch, with the batch dimensions of out: borrowed. */
static dt_array
over_batch(const dt_array *x, const dt_array *out)
{
    dt_array wide = *x;
    int ndim = out->ndim, lead = ndim - x->ndim;
    wide.ndim = out->ndim;
    for (int d = 0; d < ndim; d++) {
        bool is_matrix = d >= ndim - 2, has = d >= lead && (is_matrix || x->shape[d - lead] == out->shape[d]);
        wide.shape[d] = is_matrix ? x->shape[d - lead] : out->shape[d];
        wide.strides[d] = has ? x->strides[d - lead] : 0;
    }
    return wide;
}

/* out = activation(alpha * a @ b + beta * out + bias), where a and b are matrices or batches, which broadcast. */
static dt_status
product(const dt_array *a, const dt_array *b, const dt_array *bias, const dt_matmul_params *params, dt_array *out,
        dt_error *err)
{
    if (out->ndim == 2) {
        return dt_call_matmul(a, b, bias, params, out, err);
    }
    const dt_array wide_a = over_batch(a, out), wide_b = over_batch(b, out);
    return dt_call_matmul(&wide_a, &wide_b, bias, params, out, err);
}

/* Computes into out (checked) or a new array of this shape; a, b already matrices or batches. work_shape is the shape
 * of the product with its matrix dimensions, shape the user's (vectors dropped): same elements in the same order. */
static dt_status
run_product(const char *op, const dt_array *a, const dt_array *b, const dt_array *bias, const dt_matmul_params *params,
            int work_ndim, const int64_t *work_shape, int ndim, const int64_t *shape, dt_array *out, dt_error *err)
{
    const dt_form form = {op, dt_array_device(a), (dt_dtype)a->dtype, ndim, shape, .fills = DT_BLOCK};
    dt_result r;
    DT_TRY(dt_result_open(&r, &form, (const dt_array *[]){a, b, bias}, 3, out, err));
    dt_array work = *r.target;
    work.ndim = (uint8_t)work_ndim;
    for (int d = 0; d < work_ndim; d++) {
        work.shape[d] = work_shape[d];
    }
    dt_array_set_contiguous(&work);
    return dt_result_close(&r, product(a, b, bias, params, &work, err), err);
}

/* out: a matrix over the memory of x, borrowed. */
static inline void
view_as_matrix(const dt_array *x, int64_t rows, int64_t columns, int64_t row_stride, int64_t column_stride,
               dt_array *out)
{
    out->storage = x->storage;
    out->node = NULL;
    out->offset = x->offset;
    out->dtype = x->dtype;
    out->ndim = 2;
    out->shape[0] = rows;
    out->shape[1] = columns;
    out->strides[0] = row_stride;
    out->strides[1] = column_stride;
}

/* A vector as a matrix of one row or one column; borrowed. */
static inline void
as_matrix(const dt_array *v, bool row, dt_array *out)
{
    int64_t n = v->shape[0], stride = v->strides[0];
    if (row) {
        view_as_matrix(v, 1, n, stride * n, stride, out);
    } else {
        view_as_matrix(v, n, 1, stride, 1, out);
    }
}

/* The everyday case: two matrices, or two vectors, of one device and dtype that fit, a new result. */
static inline bool
is_plain(const dt_array *a, const dt_array *b, const dt_array *out)
{
    return a->ndim == b->ndim && (a->ndim == 2 || a->ndim == 1) && a->shape[a->ndim - 1] == b->shape[0] &&
           out->storage == NULL && a->dtype == b->dtype && dt_is_float((dt_dtype)a->dtype) &&
           dt_device_equal(dt_array_device(a), dt_array_device(b));
}

/* out: a new matrix beside x. */
static inline dt_status
new_matrix(const dt_array *x, int64_t rows, int64_t columns, dt_array *out, dt_error *err)
{
    view_as_matrix(x, rows, columns, columns > 1 ? columns : 1, 1, out);
    out->storage = NULL;
    out->offset = 0;
    size_t nbytes = (size_t)rows * (size_t)columns * dt_itemsize((dt_dtype)x->dtype);
    return dt_storage_new_beside(x->storage, nbytes, &out->storage, err);
}

static dt_status
matrices_plain(const dt_array *a, const dt_array *b, dt_array *out, dt_error *err)
{
    const int64_t shape[2] = {a->shape[0], b->shape[1]};
    if (DT_UNLIKELY((shape[0] | shape[1]) >> 30)) { /* else it is not too large */
        DT_TRY(dt_shape_check("matmul", 2, shape, (dt_dtype)a->dtype, err));
    }
    DT_TRY(new_matrix(a, shape[0], shape[1], out, err));
    return dt_result_made(dt_call_new_matmul(a, b, NULL, &plain, out, err), out);
}

static dt_status
vectors_plain(const dt_array *a, const dt_array *b, dt_array *out, dt_error *err)
{
    DT_TRY(new_matrix(a, 1, 1, out, err));
    out->ndim = 0;
    dt_array row, column, sum;
    as_matrix(a, true, &row);
    as_matrix(b, false, &column);
    view_as_matrix(out, 1, 1, 1, 1, &sum);
    return dt_result_made(dt_call_new_matmul(&row, &column, NULL, &plain, &sum, err), out);
}

static DT_NOINLINE dt_status
matmul(const dt_array *input, const dt_array *other, dt_array *out, dt_error *err)
{
    const dt_operand in[] = {{"input", input, -1}, {"other", other, -1}, DT_OUT(out)};
    DT_TRY(check_factors("matmul", in, 3, DT_MAT2_AT_1, err));
    DT_TRY(dt_check_min_rank("matmul", in, 3, 0, 1, err));
    DT_TRY(dt_check_min_rank("matmul", in, 3, 1, 1, err));
    bool row = input->ndim == 1, column = other->ndim == 1;
    if (input->shape[input->ndim - 1] != other->shape[column ? 0 : other->ndim - 2]) {
        return dt_fail_matmul("matmul", in, 3, 0, -1, 1, column ? -1 : -2, err);
    }
    /* borrowed: a vector is a matrix of one row or column */
    dt_array row_a, column_b;
    const dt_array *a = input, *b = other;
    if (row) {
        as_matrix(input, true, &row_a);
        a = &row_a;
    }
    if (column) {
        as_matrix(other, false, &column_b);
        b = &column_b;
    }
    int nbatch = 0;
    int64_t work[DT_MAX_NDIM], shape[DT_MAX_NDIM];
    if (a->ndim > 2 || b->ndim > 2) { /* the batch dimensions, seen as arrays of their own, broadcast */
        dt_array batch_a = *a, batch_b = *b;
        batch_a.ndim = (uint8_t)(a->ndim - 2);
        batch_b.ndim = (uint8_t)(b->ndim - 2);
        const dt_operand batches[] = {{"input", &batch_a, -1}, {"other", &batch_b, -1}};
        if (dt_broadcast_shapes("matmul", batches, 2, &nbatch, work, err) != DT_OK) {
            return dt_fail_batch("matmul", in, 3, 0, 1, err); /* the operands are the user's, not the views */
        }
    }
    work[nbatch] = a->shape[a->ndim - 2];
    work[nbatch + 1] = b->shape[b->ndim - 1];
    memcpy(shape, work, (size_t)nbatch * sizeof(*shape));
    int ndim = nbatch;
    if (!row) {
        shape[ndim++] = work[nbatch];
    }
    if (!column) {
        shape[ndim++] = work[nbatch + 1];
    }
    DT_TRY(dt_shape_check("matmul", ndim, shape, (dt_dtype)input->dtype, err));
    DT_TRY(dt_check_out("matmul", in, 3, (dt_dtype)input->dtype, ndim, shape, err));
    return run_product("matmul", a, b, NULL, &plain, nbatch + 2, work, ndim, shape, out, err);
}

dt_status
dt_matmul(const dt_array *input, const dt_array *other, dt_array *out, dt_error *err)
{
    DT_RECORD_PRODUCT(input, other, dt_matmul(input, other, out, err));
    return !is_plain(input, other, out) ? matmul(input, other, out, err)
           : input->ndim == 1           ? vectors_plain(input, other, out, err)
                                        : matrices_plain(input, other, out, err);
}

/* mm (rank 2) and bmm (rank 3) */
static dt_status
ranked(const char *op, int rank, const dt_array *input, const dt_array *mat2, dt_array *out, dt_error *err)
{
    const dt_operand in[] = {{"input", input, -1}, {"mat2", mat2, -1}, DT_OUT(out)};
    DT_TRY(check_factors(op, in, 3, DT_MAT2_AT_1, err));
    DT_TRY(dt_check_rank(op, in, 3, 0, rank, err));
    DT_TRY(dt_check_rank(op, in, 3, 1, rank, err));
    if (rank == 3 && input->shape[0] != mat2->shape[0]) {
        return dt_fail_batch(op, in, 3, 0, 1, err);
    }
    if (input->shape[rank - 1] != mat2->shape[rank - 2]) {
        return dt_fail_matmul(op, in, 3, 0, -1, 1, -2, err);
    }
    int64_t shape[3] = {input->shape[0], input->shape[rank - 2], mat2->shape[rank - 1]};
    const int64_t *result = rank == 3 ? shape : shape + 1;
    DT_TRY(dt_shape_check(op, rank, result, (dt_dtype)input->dtype, err));
    DT_TRY(dt_check_out(op, in, 3, (dt_dtype)input->dtype, rank, result, err));
    return run_product(op, input, mat2, NULL, &plain, rank, result, rank, result, out, err);
}

dt_status
dt_mm(const dt_array *input, const dt_array *mat2, dt_array *out, dt_error *err)
{
    DT_RECORD_PRODUCT(input, mat2, dt_mm(input, mat2, out, err));
    return ranked("mm", 2, input, mat2, out, err);
}

dt_status
dt_bmm(const dt_array *input, const dt_array *mat2, dt_array *out, dt_error *err)
{
    DT_RECORD_PRODUCT(input, mat2, dt_bmm(input, mat2, out, err));
    return ranked("bmm", 3, input, mat2, out, err);
}

dt_status
dt_mv(const dt_array *input, const dt_array *vec, dt_array *out, dt_error *err)
{
    DT_RECORD_PRODUCT(input, vec, dt_mv(input, vec, out, err));
    const dt_operand in[] = {{"input", input, -1}, {"vec", vec, -1}, DT_OUT(out)};
    DT_TRY(check_factors("mv", in, 3, DT_BY_NAME, err));
    DT_TRY(dt_check_rank("mv", in, 3, 0, 2, err));
    DT_TRY(dt_check_rank("mv", in, 3, 1, 1, err));
    if (input->shape[1] != vec->shape[0]) {
        return dt_fail_matmul("mv", in, 3, 0, -1, 1, -1, err);
    }
    const int64_t work[2] = {input->shape[0], 1};
    DT_TRY(dt_check_out("mv", in, 3, (dt_dtype)input->dtype, 1, work, err));
    dt_array column;
    as_matrix(vec, false, &column);
    return run_product("mv", input, &column, NULL, &plain, 2, work, 1, work, out, err);
}

dt_status
dt_dot(const dt_array *input, const dt_array *tensor, dt_array *out, dt_error *err)
{
    DT_RECORD_PRODUCT(input, tensor, dt_dot(input, tensor, out, err));
    const dt_operand in[] = {{"input", input, -1}, {"tensor", tensor, -1}, DT_OUT(out)};
    DT_TRY(check_factors("dot", in, 3, DT_BY_NAME, err));
    DT_TRY(dt_check_rank("dot", in, 3, 0, 1, err));
    DT_TRY(dt_check_rank("dot", in, 3, 1, 1, err));
    if (input->shape[0] != tensor->shape[0]) {
        return dt_fail_matmul("dot", in, 3, 0, -1, 1, -1, err);
    }
    const int64_t work[2] = {1, 1};
    DT_TRY(dt_check_out("dot", in, 3, (dt_dtype)input->dtype, 0, work, err));
    dt_array row, column;
    as_matrix(input, true, &row);
    as_matrix(tensor, false, &column);
    return run_product("dot", &row, &column, NULL, &plain, 2, work, 0, work, out, err);
}

/* A multiplication of each by each, so dtypes promote; its gradient is a product of matrices where they need not. */
static dt_status
outer_of_one_dtype(const dt_array *input, const dt_array *vec2, dt_array *out, dt_error *err)
{
    DT_RECORD(DT_GRAD_outer, DT_NO_PARAMS, out, outer_of_one_dtype(input, vec2, out, err), input, vec2);
    dt_array column, row;
    as_matrix(input, false, &column);
    as_matrix(vec2, true, &row);
    return dt_binary(DT_BINARY_mul, "outer", &column, &row, NULL, NULL, false, out, err);
}

dt_status
dt_outer(const dt_array *input, const dt_array *vec2, dt_array *out, dt_error *err)
{
    const dt_operand in[] = {{"input", input, -1}, {"vec2", vec2, -1}, DT_OUT(out)};
    DT_TRY(dt_check_same_device("outer", in, 3, err));
    DT_TRY(dt_check_rank("outer", in, 3, 0, 1, err));
    DT_TRY(dt_check_rank("outer", in, 3, 1, 1, err));
    const int64_t shape[2] = {input->shape[0], vec2->shape[0]};
    const dt_dtype dtype = dt_promote((dt_dtype)input->dtype, (dt_dtype)vec2->dtype);
    DT_TRY(dt_check_out("outer", in, 3, dtype, 2, shape, err));
    if (input->dtype == vec2->dtype) {
        return outer_of_one_dtype(input, vec2, out, err);
    }
    dt_array column = {0};
    DT_TRY(dt_unsqueeze("outer", input, 1, &column, err));
    dt_status status = dt_binary(DT_BINARY_mul, "outer", &column, vec2, NULL, NULL, false, out, err);
    dt_array_clear(&column);
    return status;
}

/* out = beta * addend + alpha * a @ b */
static dt_status
add_product(const char *op, const dt_array *addend, const dt_array *a, const dt_array *b, double beta, double alpha,
            dt_array *out, dt_error *err)
{
    const dt_matmul_params params = {alpha, beta, DT_ACTIVATION_NONE};
    if (beta != 0.0) { /* 0 must not let a NaN of the addend through */
        DT_TRY(dt_copy_into(op, out, "input", addend, false, false, err));
    }
    return product(a, b, NULL, &params, out, err);
}

dt_status
dt_addmm(bool batched, const dt_array *input, const dt_array *mat1, const dt_array *mat2, double beta, double alpha,
         dt_array *out, dt_error *err)
{
    const dt_addmm_record factors = {beta, alpha};
    DT_RECORD(DT_GRAD_addmm, &factors, out, dt_addmm(batched, input, mat1, mat2, beta, alpha, out, err), input, mat1,
              mat2);
    const char *op = batched ? "baddbmm" : "addmm";
    int rank = batched ? 3 : 2;
    const dt_operand in[] = {{"input", input, -1},
                             {batched ? "batch1" : "mat1", mat1, -1},
                             {batched ? "batch2" : "mat2", mat2, -1},
                             DT_OUT(out)};
    DT_TRY(check_operands(op, in, 4, batched ? DT_BY_NAME : DT_MAT2_AT_2, err));
    DT_TRY(dt_check_rank(op, in, 4, 1, rank, err));
    DT_TRY(dt_check_rank(op, in, 4, 2, rank, err));
    if (batched && mat1->shape[0] != mat2->shape[0]) {
        return dt_fail_batch(op, in, 4, 1, 2, err);
    }
    if (mat1->shape[rank - 1] != mat2->shape[rank - 2]) {
        return dt_fail_matmul(op, in, 4, 1, -1, 2, -2, err);
    }
    int64_t sizes[3] = {mat1->shape[0], mat1->shape[rank - 2], mat2->shape[rank - 1]};
    const int64_t *shape = batched ? sizes : sizes + 1;
    DT_TRY(dt_shape_check(op, rank, shape, (dt_dtype)input->dtype, err));
    dt_array wide;
    if (dt_expand(op, input, rank, shape, &wide, err) != DT_OK) {
        return dt_fail_addend(op, in, 4, rank, shape, err);
    }
    const dt_form form = {op, dt_array_device(mat1), (dt_dtype)mat1->dtype, rank, shape, .fills = DT_NOWHERE};
    dt_result r;
    dt_status rc = dt_check_out(op, in, 4, (dt_dtype)input->dtype, rank, shape, err);
    if (rc == DT_OK) {
        rc = dt_result_open(&r, &form, NULL, 0, out, err);
    }
    if (rc == DT_OK) {
        rc = dt_result_close(&r, add_product(op, &wide, mat1, mat2, beta, alpha, r.target, err), err);
    }
    dt_array_clear(&wide);
    return rc;
}

/* The sums before gelu are what its gradient reads. */
static dt_status
linear_apart(const dt_array *input, const dt_array *weight, const dt_array *bias, dt_activation activation,
             dt_array *out, dt_error *err)
{
    dt_array sums = DT_ARRAY_EMPTY;
    DT_TRY(dt_linear(input, weight, bias, DT_ACTIVATION_NONE, &sums, err));
    dt_status rc = dt_unary(dt_activation_op(activation), "linear", &sums, NULL, false, out, err);
    dt_array_clear(&sums);
    return rc;
}

dt_status
dt_linear(const dt_array *input, const dt_array *weight, const dt_array *bias, dt_activation activation, dt_array *out,
          dt_error *err)
{
    if (activation > DT_ACTIVATION_RELU && !dt_grad_off &&
        DT_UNLIKELY(dt_is_tracked(input) || dt_is_tracked(weight) || dt_is_tracked(bias))) {
        return linear_apart(input, weight, bias, activation, out, err);
    }
    DT_RECORD(activation == DT_ACTIVATION_NONE ? DT_GRAD_linear : DT_GRAD_linear_relu, DT_NO_PARAMS, out,
              dt_linear(input, weight, bias, activation, out, err), input, weight, bias);
    const dt_operand in[] = {{"input", input, -1}, {"weight", weight, -1}, {"bias", bias, -1}, DT_OUT(out)};
    DT_TRY(check_operands("linear", in, 4, DT_MAT2_AT_1, err));
    DT_TRY(dt_check_min_rank("linear", in, 4, 0, 1, err));
    DT_TRY(dt_check_rank("linear", in, 4, 1, 2, err));
    int last = input->ndim - 1;
    if (input->shape[last] != weight->shape[1]) {
        return dt_fail_matmul("linear", in, 4, 0, -1, 1, -1, err);
    }
    if (bias != NULL && (bias->ndim != 1 || bias->shape[0] != weight->shape[0])) {
        return dt_fail_bias("linear", in, 4, 2, weight->shape[0], err);
    }
    int64_t shape[DT_MAX_NDIM], work[2] = {1, weight->shape[0]}, flat_shape[2] = {1, input->shape[last]};
    memcpy(shape, input->shape, sizeof(shape));
    shape[last] = weight->shape[0];
    DT_TRY(dt_shape_check("linear", input->ndim, shape, (dt_dtype)input->dtype, err));
    for (int d = 0; d < last; d++) {
        work[0] *= input->shape[d];
    }
    flat_shape[0] = work[0];
    DT_TRY(dt_check_out("linear", in, 4, (dt_dtype)input->dtype, input->ndim, shape, err));
    dt_array flat, transposed;
    DT_TRY(dt_reshape("linear", input, 2, flat_shape, &flat, err));
    dt_status rc = dt_transpose("linear", weight, 0, 1, &transposed, err);
    if (rc == DT_OK) {
        const dt_matmul_params params = {1.0, 0.0, activation};
        rc = run_product("linear", &flat, &transposed, bias, &params, 2, work, input->ndim, shape, out, err);
        dt_array_clear(&transposed);
    }
    dt_array_clear(&flat);
    return rc;
}
