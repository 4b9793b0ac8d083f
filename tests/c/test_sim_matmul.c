/* test_sim_matmul.c: cuBLASLt. */
#include "test_sim.h"

typedef struct {
    cudaDataType type, result;
    cublasComputeType_t compute;
    int transa, transb, batch;
    unsigned epilogue;
    int64_t m, n, k;
    int64_t pad; /* of every leading dimension */
    double alpha, beta;
} product;

static void
store(cudaDataType type, void *at, double x)
{
    dt_scalar value = dt_scalar_float(x);
    dt_scalar_store(&value,
                    type == CUDA_R_64F   ? DT_FLOAT64
                    : type == CUDA_R_32F ? DT_FLOAT32
                    : type == CUDA_R_16F ? DT_FLOAT16
                                         : DT_BFLOAT16,
                    at);
}

static double
load(cudaDataType type, const void *at)
{
    return dt_scalar_load(type == CUDA_R_64F   ? DT_FLOAT64
                          : type == CUDA_R_32F ? DT_FLOAT32
                          : type == CUDA_R_16F ? DT_FLOAT16
                                               : DT_BFLOAT16,
                          at)
        .f;
}

static double
rounded(cudaDataType type, double x)
{
    unsigned char bytes[8];
    store(type, bytes, x);
    return load(type, bytes);
}

static size_t
width(cudaDataType type)
{
    return type == CUDA_R_64F ? 8 : type == CUDA_R_32F ? 4 : 2;
}

static cublasLtMatrixLayout_t
layout_new(const product *q, cudaDataType type, int64_t rows, int64_t columns)
{
    cublasLtMatrixLayout_t layout = NULL;
    int64_t ld = rows + q->pad, stride = ld * columns + q->pad;
    OK(api.cublasLtMatrixLayoutCreate(&layout, type, (uint64_t)rows, (uint64_t)columns, ld));
    OK(api.cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &q->batch, sizeof(q->batch)));
    OK(api.cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride,
                                            sizeof(stride)));
    return layout;
}

static void
one_product(product q)
{
    cublasLtHandle_t lt = NULL;
    cublasLtMatmulDesc_t desc = NULL;
    cublasLtMatmulPreference_t preference = NULL;
    cublasLtMatmulHeuristicResult_t found;
    const cudaDataType dtypes[3] = {q.type, q.type, q.result};
    size_t wanted = 8 * MIB, w = width(q.type), to = width(q.result);
    int n = 0;
    unsigned char numbers[2][8];
    bool wide = q.type == CUDA_R_64F;
    int64_t rows[3] = {q.transa ? q.k : q.m, q.transb ? q.n : q.k, q.m};
    int64_t columns[3] = {q.transa ? q.m : q.k, q.transb ? q.k : q.n, q.n}, sizes[3];
    cublasLtMatrixLayout_t layouts[3];
    CUdeviceptr device[5];
    unsigned char *bytes[3];
    OK(api.cublasLtCreate(&lt));
    OK(api.cublasLtMatmulDescCreate(&desc, q.compute, wide ? CUDA_R_64F : CUDA_R_32F));
    OK(api.cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_TRANSA, &q.transa, sizeof(q.transa)));
    OK(api.cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_TRANSB, &q.transb, sizeof(q.transb)));
    OK(api.cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &q.epilogue, sizeof(q.epilogue)));
    for (int i = 0; i < 3; i++) {
        layouts[i] = layout_new(&q, dtypes[i], rows[i], columns[i]);
        const size_t size = width(dtypes[i]);
        sizes[i] = ((rows[i] + q.pad) * columns[i] + q.pad) * q.batch;
        bytes[i] = malloc((size_t)sizes[i] * size);
        for (int64_t j = 0; j < sizes[i]; j++) {
            store(dtypes[i], bytes[i] + (size_t)j * size, entry(j + i));
        }
        device[i] = alloc((size_t)sizes[i] * size);
        OK(api.cuMemcpyHtoDAsync_v2(device[i], bytes[i], (size_t)sizes[i] * size, NULL));
    }
    device[3] = alloc(wanted);
    device[4] = alloc((size_t)q.m * to);
    unsigned char bias[8];
    for (int64_t i = 0; i < q.m; i++) {
        store(q.result, bias, entry(i + 40));
        OK(api.cuMemcpyHtoDAsync_v2(device[4] + (size_t)i * to, bias, to, NULL));
    }
    if (q.epilogue & CUBLASLT_EPILOGUE_BIAS) {
        OK(api.cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &device[4], sizeof(device[4])));
    }
    OK(api.cublasLtMatmulPreferenceCreate(&preference));
    OK(api.cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &wanted,
                                                sizeof(wanted)));
    OK(api.cublasLtMatmulAlgoGetHeuristic(lt, desc, layouts[0], layouts[1], layouts[2], layouts[2], preference, 1,
                                          &found, &n));
    SAME(n, 1);
    for (int i = 0; i < 2; i++) {
        double number = i ? q.beta : q.alpha;
        float narrow = (float)number;
        memcpy(numbers[i], wide ? (void *)&number : (void *)&narrow, wide ? 8 : 4);
    }
    void *a = (void *)(uintptr_t)device[0], *b = (void *)(uintptr_t)device[1], *d = (void *)(uintptr_t)device[2];
    void *space = (void *)(uintptr_t)device[3];
    OK(api.cublasLtMatmul(lt, desc, numbers[0], a, layouts[0], b, layouts[1], numbers[1], d, layouts[2], d, layouts[2],
                          &found.algo, space, wanted, NULL));
    memset(numbers, 0x55, sizeof(numbers));
    for (int i = 0; i < 3; i++) {
        OK(api.cublasLtMatrixLayoutDestroy(layouts[i]));
    }
    OK(api.cublasLtMatmulDescDestroy(desc));
    OK(api.cublasLtMatmulPreferenceDestroy(preference));
    unsigned char *got = malloc((size_t)sizes[2] * to);
    OK(api.cuMemcpyDtoHAsync_v2(got, device[2], (size_t)sizes[2] * to, NULL));
    int64_t wrong = 0, distances = 0;
    for (int i = 0; i < 3; i++) {
        distances |= (rows[i] + q.pad) | ((rows[i] + q.pad) * columns[i] + q.pad);
    }
    const bool rounds = w == 2 && to == 2 && distances % 8 != 0; /* before the bias, where rows begin on no 16 bytes */
    for (int64_t t = 0; t < q.batch; t++) {
        const unsigned char *base[3];
        for (int i = 0; i < 3; i++) {
            base[i] = bytes[i] + (size_t)(t * (sizes[i] / q.batch)) * width(dtypes[i]);
        }
        for (int64_t i = 0; i < q.m; i++) {
            for (int64_t j = 0; j < q.n; j++) {
                double sum = 0;
                for (int64_t l = 0; l < q.k; l++) {
                    int64_t ai = q.transa ? l + i * (rows[0] + q.pad) : i + l * (rows[0] + q.pad);
                    int64_t bi = q.transb ? j + l * (rows[1] + q.pad) : l + j * (rows[1] + q.pad);
                    sum += load(q.type, base[0] + (size_t)ai * w) * load(q.type, base[1] + (size_t)bi * w);
                }
                size_t at = (size_t)(i + j * (rows[2] + q.pad)) * to;
                sum = q.alpha * sum + q.beta * load(q.result, base[2] + at);
                if (q.epilogue & CUBLASLT_EPILOGUE_BIAS) {
                    sum = (rounds ? rounded(q.result, sum) : sum) + entry(i + 40);
                }
                sum = (q.epilogue & CUBLASLT_EPILOGUE_RELU) && sum < 0 ? 0 : sum;
                wrong += load(q.result, got + (size_t)(t * (sizes[2] / q.batch)) * to + at) != sum;
            }
        }
    }
    SAME(wrong, 0);
    free(got);
    for (int i = 0; i < 5; i++) {
        OK(api.cuMemFree_v2(device[i]));
        if (i < 3) {
            free(bytes[i]);
        }
    }
    OK(api.cublasLtDestroy(lt));
    int64_t ledger[6];
    sim_ledger(&ledger[0], &ledger[1], &ledger[2], &ledger[3], &ledger[4], &ledger[5]);
    SAME(ledger[0] + ledger[5], 0);
}

void
test_products(void)
{
    static const struct {
        cudaDataType type, result;
        cublasComputeType_t compute;
    } types[] = {
        {CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F},           {CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F},
        {CUDA_R_16F, CUDA_R_16F, CUBLAS_COMPUTE_32F},           {CUDA_R_16BF, CUDA_R_16BF, CUBLAS_COMPUTE_32F},
        {CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_32F},           {CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F},
        {CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32}, {CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_PEDANTIC},
        {CUDA_R_16F, CUDA_R_16F, CUBLAS_COMPUTE_32F_FAST_TF32}};
    static const unsigned epilogues[] = {CUBLASLT_EPILOGUE_DEFAULT, CUBLASLT_EPILOGUE_BIAS, CUBLASLT_EPILOGUE_RELU,
                                         CUBLASLT_EPILOGUE_RELU_BIAS};
    start();
    for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); t++) {
        for (int trans = 0; trans < 4; trans++) {
            for (int e = 0; e < 4; e++) {
                product q = {types[t].type,
                             types[t].result,
                             types[t].compute,
                             trans & 1,
                             trans >> 1,
                             1 + e % 3,
                             epilogues[e],
                             5,
                             3,
                             7,
                             e % 2 * 2,
                             1 + e,
                             trans};
                one_product(q);
            }
        }
    }
}

void
test_lt_refusals(void)
{
    cublasLtHandle_t lt = NULL;
    cublasLtMatmulDesc_t desc = NULL;
    cublasLtMatrixLayout_t a = NULL, b = NULL, d = NULL, wrong = NULL, tight = NULL, half = NULL, big = NULL;
    cublasLtMatmulPreference_t preference = NULL;
    cublasLtMatmulHeuristicResult_t found, other;
    float one = 1, zero = 0;
    int n = -1, transposed = 1;
    unsigned alignment = 4;
    start();
    CUdeviceptr p = alloc(4096);
    void *x = (void *)(uintptr_t)p, *odd = (void *)(uintptr_t)(p + 2), *shifted = (void *)(uintptr_t)(p + 4);
    SAME(api.cublasLtCreate(NULL), CUBLAS_STATUS_INVALID_VALUE);
    OK(api.cublasLtCreate(&lt));
    CHECK(api.cublasLtGetVersion() >= 130000);
    SAME(api.cublasLtMatmulDescCreate(NULL, 68, 0), CUBLAS_STATUS_INVALID_VALUE);
    OK(api.cublasLtMatmulDescCreate(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    SAME(api.cublasLtMatmulDescSetAttribute(desc, 3, &n, 8), CUBLAS_STATUS_INVALID_VALUE);
    SAME(api.cublasLtMatmulDescSetAttribute(desc, 99, &n, 4), CUBLAS_STATUS_INVALID_VALUE);
    SAME(api.cublasLtMatmulDescSetAttribute(desc, 3, NULL, 4), CUBLAS_STATUS_INVALID_VALUE);
    SAME(api.cublasLtMatmulDescSetAttribute(NULL, 3, &n, 4), CUBLAS_STATUS_INVALID_VALUE);
    OK(api.cublasLtMatmulDescDestroy(NULL));
    OK(api.cublasLtMatrixLayoutCreate(&a, CUDA_R_32F, 4, 6, 4));
    OK(api.cublasLtMatrixLayoutCreate(&b, CUDA_R_32F, 6, 5, 6));
    OK(api.cublasLtMatrixLayoutCreate(&d, CUDA_R_32F, 4, 5, 4));
    OK(api.cublasLtMatrixLayoutCreate(&wrong, CUDA_R_32F, 4, 4, 4));
    OK(api.cublasLtMatrixLayoutCreate(&tight, CUDA_R_32F, 4, 5, 3));
    OK(api.cublasLtMatrixLayoutCreate(&half, CUDA_R_16F, 4, 6, 4));
    OK(api.cublasLtMatrixLayoutCreate(&big, CUDA_R_32F, 1ull << 31, 6, 1ll << 31));
    OK(api.cublasLtMatmulPreferenceCreate(&preference));
    SAME(api.cublasLtMatmulPreferenceSetAttribute(preference, 77, &n, 4), CUBLAS_STATUS_INVALID_VALUE);
#define HEURISTIC(a, b, d) api.cublasLtMatmulAlgoGetHeuristic(lt, desc, a, b, d, d, preference, 1, &found, &n)
    SAME(HEURISTIC(a, wrong, d), CUBLAS_STATUS_INVALID_VALUE);
    SAME(HEURISTIC(a, b, wrong), CUBLAS_STATUS_INVALID_VALUE);
    SAME(HEURISTIC(a, b, tight), CUBLAS_STATUS_INVALID_VALUE);
    SAME(HEURISTIC(half, b, d), CUBLAS_STATUS_NOT_SUPPORTED);
    SAME(n, 0);
    SAME(api.cublasLtMatmulAlgoGetHeuristic(NULL, desc, a, b, d, d, preference, 1, &found, &n),
         CUBLAS_STATUS_NOT_INITIALIZED);
    SAME(api.cublasLtMatmulAlgoGetHeuristic(lt, desc, a, b, d, d, preference, 0, &found, &n),
         CUBLAS_STATUS_INVALID_VALUE);
    OK(HEURISTIC(a, b, d));
    SAME(n, 1);
    SAME(found.workspaceSize, 0);
    /* several algorithms, the later ones with less workspace, each as good as the others */
    cublasLtMatmulHeuristicResult_t all[8];
    size_t room = 4 * MIB;
    unsigned reductions = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    CUdeviceptr space = alloc(room);
    OK(api.cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &reductions,
                                                4));
    SAME(api.cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &room, 8),
         CUBLAS_STATUS_INVALID_VALUE);
    OK(api.cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &room, 8));
    OK(api.cublasLtMatmulAlgoGetHeuristic(lt, desc, a, b, d, d, preference, 8, all, &n));
    CHECK(n > 1);
    for (int i = 0; i < n; i++) {
        CHECK(i == 0 || all[i].workspaceSize < all[i - 1].workspaceSize);
        OK(api.cublasLtMatmul(lt, desc, &one, x, a, x, b, &zero, (char *)x + 1024, d, (char *)x + 1024, d, &all[i].algo,
                              (void *)(uintptr_t)space, all[i].workspaceSize, NULL));
    }
    SAME(api.cublasLtMatmul(lt, desc, &one, x, a, x, b, &zero, (char *)x + 1024, d, (char *)x + 1024, d, &all[0].algo,
                            (void *)(uintptr_t)space, all[0].workspaceSize - 1, NULL),
         CUBLAS_STATUS_INVALID_VALUE);
    room = 0;
    OK(api.cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &room, 8));
    /* a batch of nothing writes nothing */
    OK(api.cuMemsetD8Async(p + 2048, 0, 80, NULL));
    cublasLtMatrixLayout_t batches[] = {a, b, d};
    for (int32_t batch = 0, *size = &batch; batch < 2; batch++) {
        for (int i = 0; i < 3; i++) {
            OK(api.cublasLtMatrixLayoutSetAttribute(batches[i], CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, size, 4));
        }
        OK(HEURISTIC(a, b, d));
        OK(api.cublasLtMatmul(lt, desc, &one, x, a, x, b, &zero, (char *)x + 2048, d, (char *)x + 2048, d, &found.algo,
                              NULL, 0, NULL));
        CHECK(batch == 0 ? peek(p + 2048, NULL) == 0 : isnan(peek(p + 2048, NULL)));
    }
    /* sizes that are counted in 32 bits */
    sim_set_size_limit(5);
    SAME(HEURISTIC(a, b, d), CUBLAS_STATUS_NOT_SUPPORTED);
    sim_set_size_limit(0);
    OK(HEURISTIC(a, b, d));
#define MATMUL(algo, A, B, D, space, size)                                                                             \
    api.cublasLtMatmul(lt, desc, &one, A, a, B, b, &zero, D, d, D, d, algo, space, size, NULL)
    OK(MATMUL(&found.algo, x, x, (char *)x + 1024, NULL, 0));
    OK(MATMUL(NULL, x, x, (char *)x + 1024, NULL, 0));
    SAME(MATMUL(NULL, odd, x, x, NULL, 0), CUBLAS_STATUS_INVALID_VALUE);
    SAME(MATMUL(NULL, NULL, x, x, NULL, 0), CUBLAS_STATUS_INVALID_VALUE);
    SAME(MATMUL(NULL, x, x, x, NULL, 64), CUBLAS_STATUS_INVALID_VALUE);
    SAME(MATMUL(NULL, x, x, x, shifted, 64), CUBLAS_STATUS_INVALID_VALUE);
    SAME(MATMUL(&found.algo, shifted, x, x, NULL, 0), CUBLAS_STATUS_INVALID_VALUE);
    OK(api.cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &alignment, 4));
    OK(HEURISTIC(a, b, d));
    OK(MATMUL(&found.algo, shifted, x, (char *)x + 1024, NULL, 0));
    /* a bias is loaded as widely as d was promised to be */
    unsigned epilogue = CUBLASLT_EPILOGUE_BIAS;
    const void *biases[] = {(char *)x + 2048, (char *)x + 2048 + 4};
    OK(api.cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, 4));
    for (unsigned promised = 16; promised >= 4; promised /= 4) {
        OK(api.cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &promised,
                                                    4));
        OK(HEURISTIC(a, b, d));
        for (int i = 0; i < 2; i++) {
            OK(api.cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &biases[i], 8));
            SAME(MATMUL(&found.algo, x, x, (char *)x + 1024, NULL, 0),
                 i == 1 && promised == 16 ? CUBLAS_STATUS_INVALID_VALUE : CUBLAS_STATUS_SUCCESS);
        }
    }
    epilogue = CUBLASLT_EPILOGUE_DEFAULT;
    OK(api.cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, 4));
    OK(HEURISTIC(a, b, d));
    other = found;
    other.algo.data[0] ^= 2;
    SAME(MATMUL(&other.algo, x, x, x, NULL, 0), CUBLAS_STATUS_INVALID_VALUE);
    other = found;
    other.algo.data[1] = 512;
    SAME(MATMUL(&other.algo, x, x, x, x, 256), CUBLAS_STATUS_INVALID_VALUE);
    OK(api.cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, 4));
    SAME(MATMUL(&found.algo, x, x, x, NULL, 0), CUBLAS_STATUS_INVALID_VALUE);
    SAME(HEURISTIC(big, b, d), CUBLAS_STATUS_INVALID_VALUE);
    OK(api.cublasLtMatrixLayoutDestroy(a));
    SAME(api.cublasLtMatrixLayoutDestroy(a), CUBLAS_STATUS_INVALID_VALUE);
    SAME(HEURISTIC(a, b, d), CUBLAS_STATUS_INVALID_VALUE);
    OK(api.cuCtxSynchronize());
    OK(api.cuCtxSetCurrent(contexts[1]));
    SAME(MATMUL(NULL, x, x, x, NULL, 0), CUBLAS_STATUS_INVALID_VALUE);
    OK(api.cublasLtDestroy(lt));
    SAME(api.cublasLtDestroy(lt), CUBLAS_STATUS_INVALID_VALUE);
}

/* float32 is strict unless TF32 is asked for: 1 + 2**-12 does not survive ten bits of mantissa */
void
test_tf32(void)
{
    start();
    CUdeviceptr p = alloc(12);
    float x = 1.0f + 0x1p-12f, one = 1, zero = 0;
    cublasLtHandle_t lt = NULL;
    cublasLtMatrixLayout_t layout = NULL;
    OK(api.cuMemcpyHtoDAsync_v2(p, &x, 4, NULL));
    OK(api.cuMemcpyHtoDAsync_v2(p + 4, &one, 4, NULL));
    OK(api.cublasLtCreate(&lt));
    OK(api.cublasLtMatrixLayoutCreate(&layout, CUDA_R_32F, 1, 1, 1));
    for (int tf32 = 0; tf32 < 2; tf32++) {
        cublasLtMatmulDesc_t desc = NULL;
        OK(api.cublasLtMatmulDescCreate(&desc, tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUDA_R_32F));
        OK(api.cublasLtMatmul(lt, desc, &one, (void *)(uintptr_t)p, layout, (void *)(uintptr_t)(p + 4), layout, &zero,
                              NULL, layout, (void *)(uintptr_t)(p + 8), layout, NULL, NULL, 0, NULL));
        if (tf32) { /* work that finds no memory stays in its stream, and is tried again */
            dt_fail_allocations(0, true);
            SAME(api.cuStreamSynchronize(NULL), CUDA_ERROR_OUT_OF_MEMORY);
            SAME(api.cuStreamQuery(NULL), CUDA_ERROR_OUT_OF_MEMORY);
            dt_fail_allocations(-1, false);
        }
        CHECK(peek(p + 8, NULL) == (tf32 ? 1.0f : x));
    }
}
