/* matmul.c: matrix products by cuBLASLt (lt_plan.c). Transposed views are passed as such. Copied is only what has no
 * unit stride, and batches that are not one stride apart, where that saves calls. */
#include <string.h>

#include "lt_plan.h"
#include "../launch/launch.h"
#include "../memory/memory.h"
#include "../ops/ops.h"
#include "../plans.h"
#include "../memory/transfer.h"

#define MOST_PRODUCTS 65535 /* of a batch: the depth of a grid */
#define WORTH_A_CALL                                                                                                   \
    (INT64_C(1) << 32) /* multiplications that keep a large device busy for longer than a call takes                   \
                        */

/* Matrices in memory: rows (or columns, when transposed) of unit stride, ld apart. */
typedef struct {
    const dt_array *array;
    bool transposed;
    int64_t ld;
    int ncopies;
    cuda_temporary copies[3]; /* each of the one before */
    dt_array expanded;        /* the last copy, with the batch dimensions of array */
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

dt_array
cuda_transposed(const dt_array *x)
{
    const int row = x->ndim - 2, column = row + 1;
    dt_array t = *x;
    t.shape[row] = x->shape[column];
    t.shape[column] = x->shape[row];
    t.strides[row] = x->strides[column];
    t.strides[column] = x->strides[row];
    return t;
}

/* What a copy has to read: x as it lies, once along expanded batch dimensions, or all of it. */
static dt_array
source_of(const matrix *x, bool all)
{
    dt_array from = *x->array;
    if (x->transposed) {
        from = cuda_transposed(&from);
    }
    for (int d = 0; d < from.ndim - 2 && !all; d++) {
        from.shape[d] = from.strides[d] == 0 ? 1 : from.shape[d];
    }
    return from;
}

/* Puts a copy of from, its source, in x's place, whose matrices stand one behind the other. */
static dt_status
copy_matrices(cuda_device *device, matrix *x, const dt_array *source, bool needed, dt_error *err)
{
    const dt_array from = *source;
    cuda_temporary *copy = &x->copies[x->ncopies];
    DT_TRY((needed ? cuda_temporary_init : cuda_temporary_try)(copy, device, &from, (dt_dtype)from.dtype, err));
    x->ncopies++;
    DT_TRY(cuda_copy_within(device, &from, &copy->array, err));
    dt_array expanded = copy->array;
    for (int d = 0; d < from.ndim - 2; d++) {
        expanded.shape[d] = x->array->shape[d];
        expanded.strides[d] = from.shape[d] == expanded.shape[d] ? expanded.strides[d] : 0;
    }
    if (x->transposed) {
        expanded = cuda_transposed(&expanded);
    }
    x->expanded = expanded;
    (void)has_unit_stride(&x->expanded, x);
    return DT_OK;
}

static dt_status
matrix_open(cuda_device *device, const dt_array *x, matrix *out, dt_error *err)
{
    if (has_unit_stride(x, out)) {
        return DT_OK;
    }
    out->transposed = false;
    const dt_array from = source_of(out, false);
    return copy_matrices(device, out, &from, true, err);
}

static void
matrix_close(matrix *x)
{
    for (int i = 0; i < x->ncopies; i++) {
        cuda_temporary_clear(&x->copies[i]);
    }
}

/* ---------------------------------------------------------------- running */

typedef struct {
    cuda_device *device;
    lt_key key;
    const dt_array *bias, *out;
    double alpha, beta;
    bool refused; /* a library does not add the bias and apply the activation in the call */
    bool apart;   /* the activation is left for the end */
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

static dt_status
run_piece(product *x, const lt_operands *all, const piece *p, dt_error *err)
{
    lt_key key = x->key;
    lt_operands o = *all;
    const int64_t m = p->at[0], n = p->at[1], k = p->at[2], t = p->at[3];
    const int64_t itemsize = (int64_t)dt_itemsize((dt_dtype)key.dtype);
    const int64_t result = (int64_t)dt_itemsize((dt_dtype)key.result);
    key.m = p->size[0];
    key.n = p->size[1];
    key.k = p->size[2];
    key.batch = p->size[3];
    o.a += (CUdeviceptr)((t * key.a_stride + (key.a_transposed ? k * key.a_ld + m : m * key.a_ld + k)) * itemsize);
    o.b += (CUdeviceptr)((t * key.b_stride + (key.b_transposed ? n * key.b_ld + k : k * key.b_ld + n)) * itemsize);
    o.c += (CUdeviceptr)((t * key.c_stride + m * key.c_ld + n) * result);
    o.bias += key.has_bias ? (CUdeviceptr)(n * result) : 0;
    o.alpha = x->alpha;
    o.beta = k > 0 ? 1 : x->beta;
    o.apart = x->refused;
    /* a matrix of one row has any distance between rows */
    key.a_ld = (key.a_transposed ? key.k : key.m) == 1 ? (key.a_transposed ? key.m : key.k) : key.a_ld;
    key.b_ld = (key.b_transposed ? key.n : key.k) == 1 ? (key.b_transposed ? key.k : key.n) : key.b_ld;
    key.c_ld = key.m == 1 ? key.n : key.c_ld;
    return cuda_lt_run(x->device, &key, &o, &x->refused, err);
}

/* out = beta * out + bias; of a beta of 0 nothing of out remains. */
static dt_status
begin(cuda_device *device, const dt_array *bias, double beta, dt_array *out, dt_error *err)
{
    const dt_scalar factor = dt_scalar_float(beta);
    if (beta == 0 && bias != NULL) {
        dt_array wide;
        cuda_along(bias, out->ndim - 1, out, &wide);
        return cuda_copy_within(device, &wide, out, err);
    }
    if (beta == 0) {
        return cuda_fill(out, &factor, err);
    }
    if (beta != 1) {
        dt_array number;
        dt_immediate(&factor, dt_wide((dt_dtype)out->dtype), &number);
        DT_TRY(cuda_binary(DT_BINARY_mul, NULL, out, &number, out, err));
    }
    return cuda_epilogue(bias, out->ndim - 1, DT_ACTIVATION_NONE, out, err);
}

/* Does without the library's bias and activation. The sums begin with the bias: added to rounded sums it would be
 * rounded once more. */
static dt_status
do_apart(product *x, dt_error *err)
{
    dt_array out = *x->out;
    x->apart = true;
    if (x->key.has_bias) {
        DT_TRY(begin(x->device, x->bias, x->beta, &out, err));
        x->beta = 1;
    }
    if (!x->refused) { /* else the plan of this key is the one that does without */
        x->key.has_bias = 0;
        x->key.activation = DT_ACTIVATION_NONE;
    }
    return DT_OK;
}

/* One call where the sizes fit in 32 bits and the batch in a grid; else as many as it takes. Sums over a longer k meet
 * in c. */
static dt_status
run_pieces(product *x, const lt_operands *o, dt_error *err)
{
    const int64_t sizes[4] = {x->key.m, x->key.n, x->key.k, x->key.batch}, limit = cuda_size_limit();
    const int64_t limits[4] = {limit, limit, limit, cuda_fewer(limit, MOST_PRODUCTS)};
    piece p = {{0}, {0}};
    if (sizes[0] <= limits[0] && sizes[1] <= limits[1] && sizes[2] <= limits[2] && sizes[3] <= limits[3]) {
        memcpy(p.size, sizes, sizeof(sizes));
        DT_TRY(run_piece(x, o, &p, err));
        if (!x->refused) {
            return DT_OK;
        }
        DT_TRY(do_apart(x, err));
        return run_piece(x, o, &p, err);
    }
    DT_TRY(do_apart(x, err));
    for (;;) {
        for (int i = 0; i < 4; i++) {
            p.size[i] = cuda_fewer(limits[i], sizes[i] - p.at[i]);
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

/* ---------------------------------------------------------------- batches */

/* Makes rows of one product of the last batch dimension, if it shares b and the rows of a and c go on at one distance.
 */
static bool
fold_last(lt_key *key, dt_walk *walk)
{
    int last = walk->ndim - 1;
    int64_t c = walk->strides[0][last], a = walk->strides[1][last];
    if (walk->strides[2][last] != 0 || key->a_transposed) {
        return false;
    }
    if (key->m == 1 && a >= key->k && c >= key->n) {
        key->a_ld = a;
        key->c_ld = c;
    } else if (a != key->m * key->a_ld || c != key->m * key->c_ld) {
        return false;
    }
    key->m *= walk->shape[last];
    walk->numel /= walk->shape[last];
    walk->ndim--;
    return true;
}

/* Fills the sizes and layouts of x's key. The last batch dimension is the library's; the others remain in the walk. */
static void
lay_out_product(product *x, const matrix *a, const matrix *b, const matrix *c, dt_walk *walk)
{
    const dt_array *arrays[] = {c->array, a->array, b->array};
    lt_key *key = &x->key;
    int rows = c->array->ndim - 2, columns = rows + 1;
    key->m = c->array->shape[rows];
    key->n = c->array->shape[columns];
    key->k = a->array->shape[columns];
    key->a_transposed = a->transposed;
    key->b_transposed = b->transposed;
    key->a_ld = a->ld;
    key->b_ld = b->ld;
    key->c_ld = c->ld;
    cuda_walk_logical(walk, 0, rows, 3, arrays);
    while (walk->ndim > 0 && fold_last(key, walk)) {
    }
    int last = walk->ndim - 1;
    key->batch = last >= 0 ? walk->shape[last] : 1;
    key->c_stride = last >= 0 ? walk->strides[0][last] : 0;
    key->a_stride = last >= 0 ? walk->strides[1][last] : 0;
    key->b_stride = last >= 0 ? walk->strides[2][last] : 0;
}

/* Whether one stride goes through all matrices of an operand. */
static bool
has_one_stride(const dt_walk *walk, int operand)
{
    const int64_t *strides = walk->strides[operand];
    for (int d = 1; d < walk->ndim; d++) {
        if (strides[d - 1] != strides[d] * walk->shape[d]) {
            return false;
        }
    }
    return true;
}

/* Whether calls are saved by copying what is not one stride apart. Calls that keep the device busy need not be saved.
 */
static bool
pays_to_copy(const lt_key *key, const dt_walk *walk)
{
    int64_t calls = walk->ndim > 1 ? walk->numel / key->batch : 1;
    int64_t copies = !has_one_stride(walk, 1) + !has_one_stride(walk, 2);
    double work = (double)key->m * (double)key->n * (double)key->k * (double)key->batch;
    return has_one_stride(walk, 0) && calls > copies + 1 && work < (double)WORTH_A_CALL;
}

/* Elements of x that differ in memory. */
static int64_t
count_stored(const dt_array *x)
{
    int64_t n = 1;
    for (int d = 0; d < x->ndim; d++) {
        n *= x->strides[d] == 0 ? 1 : x->shape[d];
    }
    return n;
}

/* Brings the matrices of a and b to one stride, where that pays and there is memory: without, there are more calls. */
static dt_status
join_batches(product *x, matrix *a, matrix *b, const matrix *c, dt_walk *walk, dt_error *err)
{
    matrix *operands[] = {a, b};
    const int64_t most = 2 * (count_stored(a->array) + count_stored(b->array) + dt_array_numel(c->array));
    for (int all = 0; all < 2 && pays_to_copy(&x->key, walk); all++) {
        dt_status rc = DT_OK;
        for (int i = 0; i < 2 && rc == DT_OK; i++) {
            dt_array from = source_of(operands[i], all);
            if (has_one_stride(walk, 1 + i) || dt_array_is_contiguous(&from)) {
                continue;
            }
            if (dt_array_numel(&from) > most) { /* an expanded operand would be written out many times */
                return DT_OK;
            }
            rc = copy_matrices(x->device, operands[i], &from, false, err);
        }
        lay_out_product(x, a, b, c, walk);
        if (rc != DT_OK) {
            return rc == DT_EOUTOFMEMORY ? DT_OK : rc;
        }
    }
    return DT_OK;
}

/* One call for each place of the batch dimensions that are not the library's. */
static dt_status
run_batches(product *x, const matrix *a, const matrix *b, const matrix *c, const dt_walk *walk, dt_error *err)
{
    const int64_t itemsize = (int64_t)dt_itemsize((dt_dtype)x->key.dtype), times = walk->numel / x->key.batch;
    const int64_t itemsizes[3] = {(int64_t)dt_itemsize((dt_dtype)x->key.result), itemsize, itemsize};
    if (times > 1) { /* all of them with bias and activation, or none */
        DT_TRY(do_apart(x, err));
    }
    for (int64_t i = 0; i < times; i++) {
        int64_t at[3] = {0, 0, 0}, rest = i;
        for (int d = walk->ndim - 2; d >= 0; d--) {
            for (int k = 0; k < 3; k++) {
                at[k] += rest % walk->shape[d] * walk->strides[k][d] * itemsizes[k];
            }
            rest /= walk->shape[d];
        }
        const lt_operands operands = {.a = cuda_address(a->array) + (CUdeviceptr)at[1],
                                      .b = cuda_address(b->array) + (CUdeviceptr)at[2],
                                      .c = cuda_address(c->array) + (CUdeviceptr)at[0],
                                      .bias = x->bias != NULL ? cuda_address(x->bias) : 0};
        DT_TRY(run_pieces(x, &operands, err));
    }
    return DT_OK;
}

/* cuBLASLt's GELU is the tanh form, with some 32 bits in float64; its ReLU is max(x, 0), which may lose a NaN. */
static bool
has_activation(dt_activation activation, dt_dtype dtype)
{
    return activation == DT_ACTIVATION_NONE || (activation == DT_ACTIVATION_GELU_TANH && dtype != DT_FLOAT64);
}

/* Whether the library adds the bias to sums that are not yet rounded: not where rows of half types begin on no 16 bytes
 * (seen on an H100, cuBLASLt 13.1). */
static bool
adds_in_full(const product *x, const matrix *a, const matrix *b, const matrix *c)
{
    const lt_key *key = &x->key;
    const uint64_t addresses =
        cuda_address(a->array) | cuda_address(b->array) | cuda_address(c->array) | cuda_address(x->bias);
    const int64_t distances = key->a_ld | key->b_ld | key->c_ld | key->a_stride | key->b_stride | key->c_stride;
    const uint64_t itemsize = dt_itemsize((dt_dtype)key->dtype);
    return itemsize > 2 || (addresses | (uint64_t)distances * itemsize) % 16 == 0;
}

static dt_status
multiply(cuda_device *d, const dt_array *bias, const dt_matmul_params *params, matrix *a, matrix *b, const matrix *c,
         dt_error *err)
{
    dt_walk walk;
    product x = {.device = d, .bias = bias, .out = c->array, .alpha = params->alpha, .beta = params->beta};
    dt_array out = *c->array;
    x.apart = !has_activation(params->activation, (dt_dtype)out.dtype);
    x.key.dtype = a->array->dtype;
    x.key.result = out.dtype;
    x.key.tf32 = x.key.dtype == DT_FLOAT32 && dt_allow_tf32();
    x.key.has_bias = bias != NULL;
    x.key.activation = x.apart ? DT_ACTIVATION_NONE : params->activation;
    lay_out_product(&x, a, b, c, &walk);
    DT_TRY(join_batches(&x, a, b, c, &walk, err));
    if (bias != NULL && !adds_in_full(&x, a, b, c)) {
        DT_TRY(do_apart(&x, err));
    }
    DT_TRY(run_batches(&x, a, b, c, &walk, err));
    return cuda_epilogue(NULL, 0, x.apart ? params->activation : DT_ACTIVATION_NONE, &out, err);
}

dt_status
cuda_matmul(const dt_array *a, const dt_array *b, const dt_array *bias, const dt_matmul_params *params, dt_array *out,
            dt_error *err)
{
    cuda_device *d;
    matrix left = {0}, right = {0}, result = {0};
    cuda_temporary bias_copy = CUDA_TEMPORARY_EMPTY;
    if (a->shape[a->ndim - 1] == 0) { /* a product over nothing */
        DT_TRY(cuda_enter(out->storage->device.index, &d, err));
        DT_TRY(begin(d, bias, params->beta, out, err));
        return cuda_epilogue(NULL, 0, params->activation, out, err);
    }
    if (cuda_dot_applies(a, bias, params, out)) {
        return cuda_dot(a, b, out, err);
    }
    cuda_skinny_plan plan;
    if (cuda_skinny_applies(a, b, out, &plan)) {
        return cuda_skinny(a, b, bias, params, &plan, out, err);
    }
    DT_TRY(cuda_enter(out->storage->device.index, &d, err));
    (void)has_unit_stride(out, &result); /* its rows are contiguous */
    dt_status rc = matrix_open(d, a, &left, err);
    if (rc == DT_OK) {
        rc = matrix_open(d, b, &right, err);
    }
    if (rc == DT_OK && bias != NULL) {
        rc = cuda_contiguous(d, bias, &bias_copy, &bias, err);
    }
    if (rc == DT_OK) {
        rc = multiply(d, bias, params, &left, &right, &result, err);
    }
    matrix_close(&left);
    matrix_close(&right);
    cuda_temporary_clear(&bias_copy);
    return rc;
}
