/* lt_plan.c: cuBLASLt's descriptors and algorithms, cached by shape, layout and alignment. The library is column-major:
 * a row-major c = a @ b is to it the product of b and a, so that b comes first and the bias runs along its rows. */
#include "lt_plan.h"
#include "../launch/launch_log.h"
#include "../memory/memory.h"
#include "../plans.h"
#include "../streams/stream.h"

#define WORKSPACE_BYTES ((size_t)32 << 20)
#define MAX_ALGORITHMS 8
#define MAX_ALIGNMENT 16 /* the widest load; more would only make more plans */

typedef struct {
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t a, b, c;
    cublasLtMatmulHeuristicResult_t algorithms[MAX_ALGORITHMS];
    int nalgorithms, chosen;
    bool apart; /* the library has no algorithm that adds the bias and applies the activation too */
} lt_plan;

size_t
cuda_matmul_key_size(void)
{
    return sizeof(lt_key);
}

void
cuda_matmul_destroy(void *plan)
{
    lt_plan *p = plan;
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

/* ---------------------------------------------------------------- describing */

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

static bool
has_epilogue(const lt_key *key)
{
    return key->has_bias || key->activation != DT_ACTIVATION_NONE;
}

static dt_status
set_bias(cuda_device *d, lt_plan *p, CUdeviceptr bias, dt_error *err)
{
    CUDA_TRY(d, cublasLtMatmulDescSetAttribute, (p->desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof(bias)));
    return DT_OK;
}

static dt_status
set_epilogue(cuda_device *d, lt_plan *p, bool bias, int64_t activation, dt_error *err)
{
    static const int32_t epilogues[][2] = {
        [DT_ACTIVATION_NONE] = {CUBLASLT_EPILOGUE_DEFAULT, CUBLASLT_EPILOGUE_BIAS},
        [DT_ACTIVATION_GELU_TANH] = {CUBLASLT_EPILOGUE_GELU, CUBLASLT_EPILOGUE_GELU_BIAS},
    };
    CUDA_TRY(d, cublasLtMatmulDescSetAttribute,
             (p->desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogues[activation][bias], sizeof(epilogues[0][0])));
    return DT_OK;
}

static dt_status
describe_product(cuda_device *d, const lt_key *key, lt_plan *p, dt_error *err)
{
    static const cudaDataType types[DT_NDTYPES] = {
        [DT_FLOAT16] = CUDA_R_16F, [DT_BFLOAT16] = CUDA_R_16BF, [DT_FLOAT32] = CUDA_R_32F, [DT_FLOAT64] = CUDA_R_64F};
    const cudaDataType type = types[key->dtype], result = types[key->result];
    bool wide = key->dtype == DT_FLOAT64;
    cublasComputeType_t compute = wide        ? CUBLAS_COMPUTE_64F
                                  : key->tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32
                                              : CUBLAS_COMPUTE_32F;
    int32_t op_a = key->a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N, op_b = key->b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    CUDA_TRY(d, cublasLtMatmulDescCreate, (&p->desc, compute, wide ? CUDA_R_64F : CUDA_R_32F));
    CUDA_TRY(d, cublasLtMatmulDescSetAttribute, (p->desc, CUBLASLT_MATMUL_DESC_TRANSA, &op_b, sizeof(op_b)));
    CUDA_TRY(d, cublasLtMatmulDescSetAttribute, (p->desc, CUBLASLT_MATMUL_DESC_TRANSB, &op_a, sizeof(op_a)));
    DT_TRY(make_layout(d, type, key->a_transposed ? key->m : key->k, key->a_transposed ? key->k : key->m, key->a_ld,
                       key->batch, key->a_stride, &p->a, err));
    DT_TRY(make_layout(d, type, key->b_transposed ? key->k : key->n, key->b_transposed ? key->n : key->k, key->b_ld,
                       key->batch, key->b_stride, &p->b, err));
    return make_layout(d, result, key->n, key->m, key->c_ld, key->batch, key->c_stride, &p->c, err);
}

/* Pointers have the key's alignment; sums of parts are made in the compute type, in a fixed order, never in c. */
static dt_status
set_preference(cuda_device *d, const lt_key *key, cublasLtMatmulPreference_t preference, dt_error *err)
{
    static const int names[] = {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                                CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES,
                                CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK};
    const uint32_t values[] = {(uint32_t)key->b_alignment, (uint32_t)key->a_alignment, (uint32_t)key->c_alignment,
                               (uint32_t)key->d_alignment, CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE};
    uint64_t workspace = WORKSPACE_BYTES;
    CUDA_TRY(d, cublasLtMatmulPreferenceSetAttribute,
             (preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof(workspace)));
    for (int i = 0; i < 5; i++) {
        CUDA_TRY(d, cublasLtMatmulPreferenceSetAttribute, (preference, names[i], &values[i], sizeof(values[i])));
    }
    return DT_OK;
}

/* Whether the library may answer otherwise when it is asked for less. */
static bool
is_refusal(int status, bool with_epilogue)
{
    return status == CUBLAS_STATUS_NOT_SUPPORTED ||
           (with_epilogue && (status == CUBLAS_STATUS_INVALID_VALUE || status == CUBLAS_STATUS_INTERNAL_ERROR));
}

/* Asks for algorithms; leaves nalgorithms 0 where there are none. */
static dt_status
search(cuda_device *d, lt_plan *p, cublasLtMatmulPreference_t preference, bool with_epilogue, dt_error *err)
{
    int found = 0;
    int status = cu.cublasLtMatmulAlgoGetHeuristic(d->lt, p->desc, p->b, p->a, p->c, p->c, preference, MAX_ALGORITHMS,
                                                   p->algorithms, &found);
    p->nalgorithms = 0;
    if (is_refusal(status, with_epilogue)) {
        return DT_OK;
    }
    DT_TRY(cuda_check(d, DT_API_cublasLtMatmulAlgoGetHeuristic, status, err));
    for (int i = 0; i < found; i++) {
        if (p->algorithms[i].state == CUBLAS_STATUS_SUCCESS) {
            p->algorithms[p->nalgorithms++] = p->algorithms[i];
        }
    }
    return DT_OK;
}

/* Drops the epilogue, with the address of the bias, and asks again. */
static dt_status
search_apart(cuda_device *d, lt_plan *p, cublasLtMatmulPreference_t preference, dt_error *err)
{
    p->apart = true;
    p->chosen = 0;
    DT_TRY(set_epilogue(d, p, false, DT_ACTIVATION_NONE, err));
    DT_TRY(set_bias(d, p, 0, err));
    return search(d, p, preference, false, err);
}

/* Fills nalgorithms, first with the epilogue if with_epilogue. */
static dt_status
find_algorithms(cuda_device *d, const lt_key *key, bool with_epilogue, lt_plan *p, dt_error *err)
{
    cublasLtMatmulPreference_t preference = NULL;
    CUDA_TRY(d, cublasLtMatmulPreferenceCreate, (&preference));
    p->nalgorithms = 0;
    dt_status rc = set_preference(d, key, preference, err);
    if (rc == DT_OK && with_epilogue) {
        rc = search(d, p, preference, has_epilogue(key), err);
    }
    if (rc == DT_OK && p->nalgorithms == 0 && has_epilogue(key)) {
        rc = search_apart(d, p, preference, err);
    }
    (void)cu.cublasLtMatmulPreferenceDestroy(preference);
    if (rc == DT_OK && p->nalgorithms == 0) {
        rc = cuda_fail(d, DT_API_cublasLtMatmulAlgoGetHeuristic, CUBLAS_STATUS_NOT_SUPPORTED, err);
    }
    return rc;
}

static dt_status
fill_plan(cuda_device *d, const lt_key *key, CUdeviceptr bias, lt_plan *p, dt_error *err)
{
    DT_TRY(describe_product(d, key, p, err));
    DT_TRY(set_epilogue(d, p, key->has_bias, key->activation, err));
    if (key->has_bias) {
        DT_TRY(set_bias(d, p, bias, err));
    }
    return find_algorithms(d, key, true, p, err);
}

/* The plan for key, ready for this bias; the library lock is held. */
static dt_status
find_plan(cuda_device *d, const lt_key *key, CUdeviceptr bias, lt_plan **out, dt_error *err)
{
    *out = cuda_cache_find(&d->matmuls, key);
    if (*out != NULL) {
        return key->has_bias && !(*out)->apart ? set_bias(d, *out, bias, err) : DT_OK;
    }
    lt_plan *p = dt_calloc(1, sizeof(*p));
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

/* ---------------------------------------------------------------- running */

static dt_status
open_library(cuda_device *d, dt_error *err)
{
    if (d->lt != NULL) {
        return DT_OK;
    }
    DT_TRY(cuda_api_need(DT_LIBRARY_CUBLASLT, err));
    int status; /* where memory lacks some say NOT_INITIALIZED */
    CUDA_TRY_WITH_ROOM(d, status, status != 0, cu.cublasLtCreate(&d->lt));
    return cuda_check(d, DT_API_cublasLtCreate, status, err);
}

/* Runs the plan's algorithm; where it is refused, the next one, which is remembered. */
static int
run_algorithms(cuda_device *d, const lt_key *key, const lt_operands *x, lt_plan *p, CUdeviceptr workspace)
{
    const float narrow[] = {(float)x->alpha, (float)x->beta};
    const double wide[] = {x->alpha, x->beta};
    bool is_wide = key->dtype == DT_FLOAT64;
    const void *alpha = is_wide ? (const void *)&wide[0] : &narrow[0];
    const void *beta = is_wide ? (const void *)&wide[1] : &narrow[1];
    int status = CUBLAS_STATUS_NOT_SUPPORTED;
    for (; p->chosen < p->nalgorithms && status == CUBLAS_STATUS_NOT_SUPPORTED; p->chosen++) {
        DT_COUNT(launches, 1);
        cuda_note_sent(d, CUDA_SENT_CALL | DT_API_cublasLtMatmul);
        status = cu.cublasLtMatmul(d->lt, p->desc, alpha, (const void *)(uintptr_t)x->b, p->b,
                                   (const void *)(uintptr_t)x->a, p->a, beta, (const void *)(uintptr_t)x->c, p->c,
                                   (void *)(uintptr_t)x->c, p->c, &p->algorithms[p->chosen].algo,
                                   (void *)(uintptr_t)workspace, WORKSPACE_BYTES, cuda_stream(d));
        if (status != CUBLAS_STATUS_NOT_SUPPORTED) {
            break;
        }
    }
    return status;
}

static dt_status
run_locked(cuda_device *d, const lt_key *key, const lt_operands *x, bool *refused, dt_error *err)
{
    lt_plan *p;
    CUdeviceptr workspace;
    DT_TRY(open_library(d, err));
    DT_TRY(cuda_workspace(d, WORKSPACE_BYTES, &workspace, err)); /* not counted as the user's memory */
    DT_TRY(find_plan(d, key, x->bias, &p, err));
    if (x->apart && !p->apart) { /* made anew since it refused: another thread's plans took its place */
        DT_TRY(find_algorithms(d, key, false, p, err));
    }
    *refused = p->apart && !x->apart;
    if (*refused) {
        return DT_OK;
    }
    int status = run_algorithms(d, key, x, p, workspace);
    if (status == CUBLAS_STATUS_ALLOC_FAILED) {
        DT_TRY(cuda_give_back(d, err));
        status = run_algorithms(d, key, x, p, workspace);
    }
    if (status == CUBLAS_STATUS_NOT_SUPPORTED && has_epilogue(key) && !p->apart) { /* all of them refused to run */
        dt_status rc = find_algorithms(d, key, false, p, err);
        if (rc != DT_OK) {
            cuda_cache_remove(&d->matmuls, key);
        }
        *refused = rc == DT_OK;
        return rc;
    }
    if (p->chosen == p->nalgorithms) { /* asked anew the next time */
        cuda_cache_remove(&d->matmuls, key);
    }
    return cuda_check(d, DT_API_cublasLtMatmul, status, err);
}

static int64_t
alignment(CUdeviceptr address, int64_t stride, int64_t dtype)
{
    uint64_t bits = address | (uint64_t)stride * dt_itemsize((dt_dtype)dtype) | MAX_ALIGNMENT;
    return (int64_t)(bits & (0 - bits));
}

dt_status
cuda_lt_run(cuda_device *device, const lt_key *key, const lt_operands *x, bool *refused, dt_error *err)
{
    lt_key full = *key;
    full.a_alignment = alignment(x->a, key->a_stride, key->dtype);
    full.b_alignment = alignment(x->b, key->b_stride, key->dtype);
    full.c_alignment = full.d_alignment = alignment(x->c, key->c_stride, key->result);
    if (key->has_bias) { /* it is loaded like D */
        int64_t bias = alignment(x->bias, 0, key->result);
        full.d_alignment = bias < full.d_alignment ? bias : full.d_alignment;
    }
    pthread_mutex_lock(&device->library_lock);
    dt_status rc = run_locked(device, &full, x, refused, err);
    pthread_mutex_unlock(&device->library_lock);
    return rc;
}
