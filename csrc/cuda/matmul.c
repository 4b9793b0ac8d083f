/* matmul.c: matrix products by cuBLASLt, with descriptors and algorithm cached by shape. The library is column-major:
 * a row-major out = a @ b is to it the product of b and a, so that b comes first and the bias runs along its rows.
 * Transposed views are passed as such; only matrices without a unit stride are copied. */
#include <string.h>

#include "cuda.h"

#define WORKSPACE_BYTES ((size_t)32 << 20)
#define MAX_ALGORITHMS 4
#define MAX_ALIGNMENT 256

/* Everything that the plan depends on, in 64-bit words. */
typedef struct {
    int64_t dtype, m, n, k, batch, has_bias;
    int64_t a_transposed, a_ld, a_stride, a_alignment;
    int64_t b_transposed, b_ld, b_stride, b_alignment;
    int64_t c_ld, c_stride, c_alignment, d_alignment;
} matmul_key;

typedef struct {
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t a, b, c;
    cublasLtMatmulHeuristicResult_t algorithms[MAX_ALGORITHMS];
    int nalgorithms, chosen;
    bool bias_apart; /* the library has no algorithm that adds the bias too */
} matmul_plan;

/* A matrix in memory: rows (or columns, when transposed) of unit stride, ld apart. */
typedef struct {
    const dt_array *array;
    bool transposed;
    int64_t ld;
    cuda_temporary copy;
    dt_array expanded; /* the copy, with a's batch dimensions */
} matrix;

size_t
cuda_matmul_key_size(void)
{
    return sizeof(matmul_key);
}

void
cuda_matmul_destroy(void *plan)
{
    matmul_plan *p = plan;
    cublasLtMatrixLayout_t layouts[] = {p->a, p->b, p->c};
    for (int i = 0; i < 3; i++) {
        if (layouts[i] != NULL) {
            (void)cu.cublasLtMatrixLayoutDestroy(layouts[i]);
        }
    }
    if (p->desc != NULL) {
        (void)cu.cublasLtMatmulDescDestroy(p->desc);
    }
    dt_free(p);
}

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

static int64_t
alignment(CUdeviceptr address, int64_t stride, dt_dtype dtype)
{
    uint64_t bits = address | (uint64_t)stride * dt_itemsize(dtype) | MAX_ALIGNMENT;
    return (int64_t)(bits & (0 - bits));
}

/* ---------------------------------------------------------------- plans */

static dt_status
make_layout(cuda_device *d, cudaDataType type, int64_t rows, int64_t columns, int64_t ld, int64_t batch, int64_t stride,
            cublasLtMatrixLayout_t *out, dt_error *err)
{
    int32_t count = (int32_t)batch;
    CUDA_TRY(d, cublasLtMatrixLayoutCreate, (out, type, (uint64_t)rows, (uint64_t)columns, ld));
    CUDA_TRY(d, cublasLtMatrixLayoutSetAttribute, (*out, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof(count)));
    CUDA_TRY(d, cublasLtMatrixLayoutSetAttribute,
             (*out, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof(stride)));
    return DT_OK;
}

static dt_status
set_epilogue(cuda_device *d, matmul_plan *p, bool bias, CUdeviceptr address, dt_error *err)
{
    int32_t epilogue = bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
    CUDA_TRY(d, cublasLtMatmulDescSetAttribute, (p->desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof(epilogue)));
    if (bias) {
        CUDA_TRY(d, cublasLtMatmulDescSetAttribute,
                 (p->desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &address, sizeof(address)));
    }
    return DT_OK;
}

static dt_status
describe(cuda_device *d, const matmul_key *key, matmul_plan *p, dt_error *err)
{
    static const cudaDataType types[DT_NDTYPES] = {
        [DT_FLOAT16] = CUDA_R_16F, [DT_BFLOAT16] = CUDA_R_16BF, [DT_FLOAT32] = CUDA_R_32F, [DT_FLOAT64] = CUDA_R_64F};
    cudaDataType type = types[key->dtype];
    bool wide = key->dtype == DT_FLOAT64;
    int32_t op_a = key->a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N, op_b = key->b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    CUDA_TRY(d, cublasLtMatmulDescCreate,
             (&p->desc, wide ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F, wide ? CUDA_R_64F : CUDA_R_32F));
    CUDA_TRY(d, cublasLtMatmulDescSetAttribute, (p->desc, CUBLASLT_MATMUL_DESC_TRANSA, &op_b, sizeof(op_b)));
    CUDA_TRY(d, cublasLtMatmulDescSetAttribute, (p->desc, CUBLASLT_MATMUL_DESC_TRANSB, &op_a, sizeof(op_a)));
    DT_TRY(make_layout(d, type, key->a_transposed ? key->m : key->k, key->a_transposed ? key->k : key->m, key->a_ld,
                       key->batch, key->a_stride, &p->a, err));
    DT_TRY(make_layout(d, type, key->b_transposed ? key->k : key->n, key->b_transposed ? key->n : key->k, key->b_ld,
                       key->batch, key->b_stride, &p->b, err));
    return make_layout(d, type, key->n, key->m, key->c_ld, key->batch, key->c_stride, &p->c, err);
}

/* Finds algorithms for pointers of the key's alignment; leaves nalgorithms 0 where there are none. */
static dt_status
search(cuda_device *d, const matmul_key *key, matmul_plan *p, cublasLtMatmulPreference_t preference, dt_error *err)
{
    static const int names[] = {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                                CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
    const uint32_t bytes[] = {(uint32_t)key->b_alignment, (uint32_t)key->a_alignment, (uint32_t)key->c_alignment,
                              (uint32_t)key->d_alignment};
    uint64_t workspace = WORKSPACE_BYTES;
    CUDA_TRY(d, cublasLtMatmulPreferenceSetAttribute,
             (preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof(workspace)));
    for (int i = 0; i < 4; i++) {
        CUDA_TRY(d, cublasLtMatmulPreferenceSetAttribute, (preference, names[i], &bytes[i], sizeof(bytes[i])));
    }
    int found = 0;
    int status = cu.cublasLtMatmulAlgoGetHeuristic(d->lt, p->desc, p->b, p->a, p->c, p->c, preference, MAX_ALGORITHMS,
                                                   p->algorithms, &found);
    if (status != CUBLAS_STATUS_NOT_SUPPORTED) {
        DT_TRY(cuda_check(d, DT_API_cublasLtMatmulAlgoGetHeuristic, status, err));
    } else {
        found = 0;
    }
    p->nalgorithms = 0;
    for (int i = 0; i < found; i++) {
        if (p->algorithms[i].state == CUBLAS_STATUS_SUCCESS) {
            p->algorithms[p->nalgorithms++] = p->algorithms[i];
        }
    }
    return DT_OK;
}

static dt_status
fill_plan(cuda_device *d, const matmul_key *key, CUdeviceptr bias, matmul_plan *p, dt_error *err)
{
    cublasLtMatmulPreference_t preference = NULL;
    DT_TRY(describe(d, key, p, err));
    DT_TRY(set_epilogue(d, p, key->has_bias, bias, err));
    CUDA_TRY(d, cublasLtMatmulPreferenceCreate, (&preference));
    dt_status rc = search(d, key, p, preference, err);
    if (rc == DT_OK && p->nalgorithms == 0 && key->has_bias) {
        p->bias_apart = true;
        rc = set_epilogue(d, p, false, 0, err);
        if (rc == DT_OK) {
            rc = search(d, key, p, preference, err);
        }
    }
    (void)cu.cublasLtMatmulPreferenceDestroy(preference);
    if (rc == DT_OK && p->nalgorithms == 0) {
        rc = cuda_fail(d, DT_API_cublasLtMatmulAlgoGetHeuristic, CUBLAS_STATUS_NOT_SUPPORTED, err);
    }
    return rc;
}

/* The plan for key, ready for this bias; the library lock is held. */
static dt_status
find_plan(cuda_device *d, const matmul_key *key, CUdeviceptr bias, matmul_plan **out, dt_error *err)
{
    *out = cuda_cache_find(&d->matmuls, key);
    if (*out != NULL) {
        return key->has_bias && !(*out)->bias_apart ? set_epilogue(d, *out, true, bias, err) : DT_OK;
    }
    matmul_plan *p = dt_calloc(1, sizeof(*p));
    if (p == NULL) {
        return dt_fail_nomem(err, sizeof(*p));
    }
    dt_status rc = fill_plan(d, key, bias, p, err);
    if (rc != DT_OK) {
        cuda_matmul_destroy(p);
        return rc;
    }
    *out = p;
    return cuda_cache_put(&d->matmuls, key, p, err);
}

static dt_status
open_library(cuda_device *d, dt_error *err)
{
    if (d->lt == NULL) {
        DT_TRY(cuda_api_need(DT_LIBRARY_CUBLASLT, err));
        CUDA_TRY(d, cublasLtCreate, (&d->lt));
    }
    return DT_OK;
}

/* ---------------------------------------------------------------- running */

typedef struct {
    cuda_device *device;
    matmul_key key;
    CUdeviceptr a, b, c, bias;
    const dt_matmul_params *params;
    bool bias_apart; /* out: still to be added */
} product;

static dt_status
run_locked(product *x, dt_error *err)
{
    cuda_device *d = x->device;
    matmul_plan *p;
    const float narrow[] = {(float)x->params->alpha, (float)x->params->beta};
    const double wide[] = {x->params->alpha, x->params->beta};
    bool is_wide = x->key.dtype == DT_FLOAT64;
    const void *alpha = is_wide ? (const void *)&wide[0] : &narrow[0];
    const void *beta = is_wide ? (const void *)&wide[1] : &narrow[1];
    CUdeviceptr workspace;
    DT_TRY(open_library(d, err));
    DT_TRY(cuda_workspace(d, WORKSPACE_BYTES, &workspace, err)); /* not counted as the user's memory */
    DT_TRY(find_plan(d, &x->key, x->bias, &p, err));
    x->bias_apart = x->bias_apart || p->bias_apart;
    int status = CUBLAS_STATUS_NOT_SUPPORTED;
    for (; p->chosen < p->nalgorithms; p->chosen++) { /* some are refused only now */
        DT_COUNT(launches, 1);
        status = cu.cublasLtMatmul(d->lt, p->desc, alpha, (const void *)(uintptr_t)x->b, p->b,
                                   (const void *)(uintptr_t)x->a, p->a, beta, (const void *)(uintptr_t)x->c, p->c,
                                   (void *)(uintptr_t)x->c, p->c, &p->algorithms[p->chosen].algo,
                                   (void *)(uintptr_t)workspace, WORKSPACE_BYTES, cuda_stream(d));
        if (status != CUBLAS_STATUS_NOT_SUPPORTED || p->chosen + 1 == p->nalgorithms) {
            break;
        }
    }
    return cuda_check(d, DT_API_cublasLtMatmul, status, err);
}

static dt_status
run(product *x, CUdeviceptr a, CUdeviceptr b, CUdeviceptr c, dt_error *err)
{
    dt_dtype dtype = (dt_dtype)x->key.dtype;
    x->a = a;
    x->b = b;
    x->c = c;
    x->key.a_alignment = alignment(a, x->key.a_stride, dtype);
    x->key.b_alignment = alignment(b, x->key.b_stride, dtype);
    x->key.c_alignment = x->key.d_alignment = alignment(c, x->key.c_stride, dtype);
    if (x->bias != 0) { /* it is loaded like D */
        int64_t bias = alignment(x->bias, 0, dtype);
        x->key.d_alignment = bias < x->key.d_alignment ? bias : x->key.d_alignment;
    }
    pthread_mutex_lock(&x->device->library_lock);
    dt_status rc = run_locked(x, err);
    pthread_mutex_unlock(&x->device->library_lock);
    return rc;
}

/* Makes one product of a batch that shares b, where the rows of a and c go on at one distance. */
static void
fold_batch(matmul_key *key)
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
    if (times > 1) { /* all of them with the bias or none */
        x->bias_apart = true;
        x->key.has_bias = 0;
        x->bias = 0;
    }
    for (int64_t i = 0; i < times; i++) {
        int64_t at[3] = {0, 0, 0}, rest = i;
        for (int d = last - 1; d >= 0; d--) {
            for (int k = 0; k < 3; k++) {
                at[k] += rest % walk.shape[d] * walk.strides[k][d] * itemsize;
            }
            rest /= walk.shape[d];
        }
        DT_TRY(run(x, cuda_address(a->array) + (CUdeviceptr)at[1], cuda_address(b->array) + (CUdeviceptr)at[2],
                   cuda_address(c->array) + (CUdeviceptr)at[0], err));
    }
    return DT_OK;
}

/* out += bias along the last dimension */
static dt_status
add_bias(const dt_array *bias, dt_array *out, dt_error *err)
{
    dt_array expanded = *out;
    memset(expanded.strides, 0, sizeof(expanded.strides));
    expanded.storage = bias->storage;
    expanded.offset = bias->offset;
    expanded.strides[out->ndim - 1] = bias->strides[0];
    return cuda_binary(DT_BINARY_add, NULL, out, &expanded, out, err);
}

/* A product over nothing: beta * out + bias. */
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
    return bias != NULL ? add_bias(bias, out, err) : DT_OK;
}

static dt_status
multiply(cuda_device *d, const dt_array *bias, const dt_matmul_params *params, const matrix *a, const matrix *b,
         const matrix *c, dt_error *err)
{
    product x = {.device = d, .params = params};
    const dt_array *out = c->array;
    x.key.dtype = out->dtype;
    x.key.m = out->shape[out->ndim - 2];
    x.key.n = out->shape[out->ndim - 1];
    x.key.k = a->array->shape[a->array->ndim - 1];
    x.key.batch = 1;
    x.key.has_bias = bias != NULL;
    x.key.a_transposed = a->transposed;
    x.key.b_transposed = b->transposed;
    x.key.a_ld = a->ld;
    x.key.b_ld = b->ld;
    x.key.c_ld = c->ld;
    x.bias = bias ? cuda_address(bias) : 0;
    DT_TRY(run_batches(&x, a, b, c, err));
    dt_array result = *out;
    return bias != NULL && x.bias_apart ? add_bias(bias, &result, err) : DT_OK;
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
