/* matmul.c: matrix products by cuBLASLt (lt_plan.c). Transposed views are passed as such; only matrices without a unit
 * stride are copied. */
#include <string.h>

#include "lt_plan.h"
#include "plans.h"

#define MOST_PRODUCTS 65535 /* of a batch: the depth of a grid */

/* A matrix in memory: rows (or columns, when transposed) of unit stride, ld apart. */
typedef struct {
    const dt_array *array;
    bool transposed;
    int64_t ld;
    cuda_temporary copy;
    dt_array expanded; /* the copy, with a's batch dimensions */
} matrix;

/* ---------------------------------------------------------------- matrices */

static bool
has_unit_stride(const dt_array *x, matrix *out)
{
    int64_t rows = x->shape[x->ndim - 2], columns = x->shape[x->ndim - 1];
    int64_t down = x->strides[x->ndim - 2], across = x->strides[x->ndim - 1];
    out->array = x;
    if ((columns == 1 || across == 1) && (rows == 1 || down >= columns)) {
        out->transposed = false;
        out->ld = rows == 1 ? columns : down;
        return true;
    }
    out->transposed = true;
    out->ld = columns == 1 ? rows : across;
    return (rows == 1 || down == 1) && (columns == 1 || across >= rows);
}

/* Copies x to contiguous memory, once along expanded batch dimensions. */
static dt_status
copy_matrix(cuda_device *device, const dt_array *x, matrix *out, dt_error *err)
{
    dt_array once = *x;
    for (int d = 0; d < x->ndim - 2; d++) {
        once.shape[d] = x->strides[d] == 0 ? 1 : x->shape[d];
    }
    DT_TRY(cuda_temporary_init(&out->copy, device, &once, (dt_dtype)x->dtype, err));
    out->expanded = out->copy.array;
    for (int d = 0; d < x->ndim - 2; d++) {
        out->expanded.shape[d] = x->shape[d];
        out->expanded.strides[d] = once.shape[d] == x->shape[d] ? out->copy.array.strides[d] : 0;
    }
    DT_TRY(cuda_copy_within(device, &once, &out->copy.array, err));
    (void)has_unit_stride(&out->expanded, out);
    return DT_OK;
}

static dt_status
matrix_open(cuda_device *device, const dt_array *x, matrix *out, dt_error *err)
{
    return has_unit_stride(x, out) ? DT_OK : copy_matrix(device, x, out, err);
}

/* ---------------------------------------------------------------- running */

typedef struct {
    cuda_device *device;
    lt_key key;
    const dt_matmul_params *params;
    CUdeviceptr bias;
    bool apart; /* bias and activation are left for the end */
} product;

/* Elements that one call of a library may have to count: a test lowers it. */
static atomic_int_fast64_t size_limit = INT32_MAX;

int64_t
cuda_size_limit(void)
{
    return atomic_load_explicit(&size_limit, memory_order_relaxed);
}

void
cuda_set_size_limit(int64_t limit)
{
    atomic_store(&size_limit, limit > 0 && limit < INT32_MAX ? limit : INT32_MAX);
}

/* The part of a product that begins at these places of m, n, k and the batch, and its sizes. */
typedef struct {
    int64_t at[4], size[4];
} piece;

static int64_t
fewer(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static dt_status
run_piece(product *x, const lt_operands *all, const piece *p, dt_error *err)
{
    lt_key key = x->key;
    lt_operands o = *all;
    int64_t m = p->at[0], n = p->at[1], k = p->at[2], t = p->at[3],
            itemsize = (int64_t)dt_itemsize((dt_dtype)key.dtype);
    key.m = p->size[0];
    key.n = p->size[1];
    key.k = p->size[2];
    key.batch = p->size[3];
    o.a += (CUdeviceptr)((t * key.a_stride + (key.a_transposed ? k * key.a_ld + m : m * key.a_ld + k)) * itemsize);
    o.b += (CUdeviceptr)((t * key.b_stride + (key.b_transposed ? n * key.b_ld + k : k * key.b_ld + n)) * itemsize);
    o.c += (CUdeviceptr)((t * key.c_stride + m * key.c_ld + n) * itemsize);
    o.bias += key.has_bias ? (CUdeviceptr)(n * itemsize) : 0;
    o.beta = k > 0 ? 1 : o.beta;
    /* a matrix of one row has any distance between rows */
    key.a_ld = (key.a_transposed ? key.k : key.m) == 1 ? (key.a_transposed ? key.m : key.k) : key.a_ld;
    key.b_ld = (key.b_transposed ? key.n : key.k) == 1 ? (key.b_transposed ? key.k : key.n) : key.b_ld;
    key.c_ld = key.m == 1 ? key.n : key.c_ld;
    return cuda_lt_run(x->device, &key, &o, &x->apart, err);
}

static void
finish_apart(product *x)
{
    x->apart = true;
    x->key.has_bias = 0;
    x->key.activation = DT_ACTIVATION_NONE;
}

/* One call where the sizes fit in 32 bits and the batch in a grid; else as many as it takes. Sums over a longer k meet
 * in c. */
static dt_status
run(product *x, const lt_operands *o, dt_error *err)
{
    const int64_t sizes[4] = {x->key.m, x->key.n, x->key.k, x->key.batch}, limit = cuda_size_limit();
    const int64_t limits[4] = {limit, limit, limit, fewer(limit, MOST_PRODUCTS)};
    piece p = {{0}, {0}};
    if (sizes[0] <= limits[0] && sizes[1] <= limits[1] && sizes[2] <= limits[2] && sizes[3] <= limits[3]) {
        memcpy(p.size, sizes, sizeof(sizes));
        return run_piece(x, o, &p, err);
    }
    if (!x->apart) {
        finish_apart(x);
    }
    for (;;) {
        for (int i = 0; i < 4; i++) {
            p.size[i] = fewer(limits[i], sizes[i] - p.at[i]);
        }
        DT_TRY(run_piece(x, o, &p, err));
        int i = 0;
        while (i < 4 && (p.at[i] += p.size[i]) == sizes[i]) {
            p.at[i++] = 0;
        }
        if (i == 4) {
            return DT_OK;
        }
    }
}

/* Makes one product of a batch that shares b, where the rows of a and c go on at one distance. */
static void
fold_batch(lt_key *key)
{
    if (key->batch == 1 || key->b_stride != 0 || key->a_transposed) {
        return;
    }
    if (key->m == 1 && key->a_stride >= key->k && key->c_stride >= key->n) {
        key->a_ld = key->a_stride;
        key->c_ld = key->c_stride;
    } else if (key->a_stride != key->m * key->a_ld || key->c_stride != key->m * key->c_ld) {
        return;
    }
    key->m *= key->batch;
    key->batch = 1;
    key->a_stride = key->c_stride = 0;
}

/* Goes over the batch dimensions that have no common stride; the last one that has is the library's. */
static dt_status
run_batches(product *x, const matrix *a, const matrix *b, const matrix *c, dt_error *err)
{
    const dt_array *arrays[] = {c->array, a->array, b->array};
    int64_t itemsize = (int64_t)dt_itemsize((dt_dtype)x->key.dtype);
    dt_walk walk;
    cuda_walk_logical(&walk, 0, c->array->ndim - 2, 3, arrays);
    int last = walk.ndim - 1;
    if (last >= 0) {
        x->key.batch = walk.shape[last];
        x->key.c_stride = walk.strides[0][last];
        x->key.a_stride = walk.strides[1][last];
        x->key.b_stride = walk.strides[2][last];
    }
    int64_t times = last >= 0 ? walk.numel / walk.shape[last] : 1;
    fold_batch(&x->key);
    if (times > 1) { /* all of them with bias and activation, or none */
        finish_apart(x);
    }
    for (int64_t i = 0; i < times; i++) {
        int64_t at[3] = {0, 0, 0}, rest = i;
        for (int d = last - 1; d >= 0; d--) {
            for (int k = 0; k < 3; k++) {
                at[k] += rest % walk.shape[d] * walk.strides[k][d] * itemsize;
            }
            rest /= walk.shape[d];
        }
        const lt_operands operands = {cuda_address(a->array) + (CUdeviceptr)at[1],
                                      cuda_address(b->array) + (CUdeviceptr)at[2],
                                      cuda_address(c->array) + (CUdeviceptr)at[0],
                                      x->bias,
                                      x->params->alpha,
                                      x->params->beta};
        DT_TRY(run(x, &operands, err));
    }
    return DT_OK;
}

/* A product over nothing: activation(beta * out + bias). */
static dt_status
scale_only(const dt_array *bias, const dt_matmul_params *params, dt_array *out, dt_error *err)
{
    dt_scalar beta = dt_scalar_float(params->beta);
    if (params->beta == 0) {
        DT_TRY(cuda_fill(out, &beta, err));
    } else if (params->beta != 1) {
        dt_array factor;
        dt_immediate(&beta, (dt_dtype)out->dtype, &factor);
        DT_TRY(cuda_binary(DT_BINARY_mul, NULL, out, &factor, out, err));
    }
    return cuda_epilogue(bias, out->ndim - 1, params->activation, out, err);
}

static dt_status
multiply(cuda_device *d, const dt_array *bias, const dt_matmul_params *params, const matrix *a, const matrix *b,
         const matrix *c, dt_error *err)
{
    product x = {.device = d, .params = params, .bias = bias ? cuda_address(bias) : 0};
    dt_array out = *c->array;
    /* cuBLASLt's GELU is the tanh form; its ReLU is max(x, 0), which may lose a NaN */
    bool is_apart = params->activation == DT_ACTIVATION_GELU || params->activation == DT_ACTIVATION_RELU;
    x.key.dtype = out.dtype;
    x.key.tf32 = out.dtype == DT_FLOAT32 && dt_allow_tf32();
    x.key.m = out.shape[out.ndim - 2];
    x.key.n = out.shape[out.ndim - 1];
    x.key.k = a->array->shape[a->array->ndim - 1];
    x.key.batch = 1;
    x.key.has_bias = bias != NULL;
    x.key.activation = is_apart ? DT_ACTIVATION_NONE : params->activation;
    x.key.a_transposed = a->transposed;
    x.key.b_transposed = b->transposed;
    x.key.a_ld = a->ld;
    x.key.b_ld = b->ld;
    x.key.c_ld = c->ld;
    DT_TRY(run_batches(&x, a, b, c, err));
    return cuda_epilogue(x.apart ? bias : NULL, out.ndim - 1,
                         x.apart || is_apart ? params->activation : DT_ACTIVATION_NONE, &out, err);
}

dt_status
cuda_matmul(const dt_array *a, const dt_array *b, const dt_array *bias, const dt_matmul_params *params, dt_array *out,
            dt_error *err)
{
    cuda_device *d;
    matrix left = {0}, right = {0}, result = {0};
    cuda_temporary bias_copy = CUDA_TEMPORARY_EMPTY;
    if (a->shape[a->ndim - 1] == 0) {
        return scale_only(bias, params, out, err);
    }
    cuda_skinny_plan plan;
    if (cuda_skinny_applies(a, b, out, &plan)) {
        return cuda_skinny(a, b, bias, params, &plan, out, err);
    }
    DT_TRY(cuda_enter(out->storage->device.index, &d, err));
    bool direct = has_unit_stride(out, &result) && !result.transposed;
    dt_status rc = matrix_open(d, a, &left, err);
    if (rc == DT_OK) {
        rc = matrix_open(d, b, &right, err);
    }
    if (rc == DT_OK && bias != NULL) {
        rc = cuda_contiguous(d, bias, &bias_copy, &bias, err);
    }
    if (rc == DT_OK && !direct) {
        rc = cuda_temporary_init(&result.copy, d, out, (dt_dtype)out->dtype, err);
        if (rc == DT_OK && params->beta != 0) {
            rc = cuda_copy_within(d, out, &result.copy.array, err);
        }
        (void)has_unit_stride(&result.copy.array, &result);
    }
    if (rc == DT_OK) {
        rc = multiply(d, bias, params, &left, &right, &result, err);
    }
    if (rc == DT_OK && !direct) {
        rc = cuda_copy_within(d, &result.copy.array, out, err);
    }
    cuda_temporary_clear(&left.copy);
    cuda_temporary_clear(&right.copy);
    cuda_temporary_clear(&result.copy);
    cuda_temporary_clear(&bias_copy);
    return rc;
}
