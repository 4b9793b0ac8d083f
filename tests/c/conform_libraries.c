/* conform_libraries.c: NVRTC and cuBLASLt. */
#include "conform.h"

/* ---------------------------------------------------------------- NVRTC */

enum { INVALID_INPUT = 3, INVALID_PROGRAM = 4, INVALID_OPTION = 5 };

void
conform_nvrtc(void)
{
    int major = 0, minor = -1;
    nvrtcProgram good = NULL, bad = NULL, none = NULL;
    size_t size = 0;
    static const char *const header = "#define VALUE 3.0f\n", *const header_name = "value.h";
    static const char *const options[] = {"--gpu-architecture=sm_90"}, *const nonsense[] = {"--nonsense"};
    OK("nvrtcVersion", api.nvrtcVersion(&major, &minor));
    HOLDS("NVRTC is 13", major == 13 && minor >= 0);
    IS("nvrtcVersion to NULL", api.nvrtcVersion(NULL, &minor), INVALID_INPUT);
    HOLDS("the text of a failed compilation", strcmp(api.nvrtcGetErrorString(6), "NVRTC_ERROR_COMPILATION") == 0);
    HOLDS("the text of success", strcmp(api.nvrtcGetErrorString(0), "NVRTC_SUCCESS") == 0);
    IS("nvrtcCreateProgram to NULL", api.nvrtcCreateProgram(NULL, "", "a.cu", 0, NULL, NULL), INVALID_PROGRAM);
    IS("nvrtcCreateProgram of NULL", api.nvrtcCreateProgram(&none, NULL, "a.cu", 0, NULL, NULL), INVALID_INPUT);
    IS("nvrtcCreateProgram with less than no headers", api.nvrtcCreateProgram(&none, "", "a.cu", -1, NULL, NULL),
       INVALID_INPUT);
    OK("nvrtcCreateProgram",
       api.nvrtcCreateProgram(&good, "#include \"value.h\"\nextern \"C\" __global__ void k(float *x) { *x = VALUE; }",
                              "a.cu", 1, &header, &header_name));
    OK("nvrtcCreateProgram does not compile",
       api.nvrtcCreateProgram(&bad, "this is no program", "b.cu", 0, NULL, NULL));
    size = 99;
    OK("nvrtcGetCUBINSize of nothing compiled", api.nvrtcGetCUBINSize(good, &size));
    IS("what is not compiled has no size", size, 0);
    IS("an option that is none", api.nvrtcCompileProgram(good, 1, nonsense), INVALID_OPTION);
    IS("a name asked of no program", api.nvrtcAddNameExpression(NULL, "k"), INVALID_PROGRAM);
    IS("a name that is NULL", api.nvrtcAddNameExpression(good, NULL), INVALID_INPUT);
    OK("nvrtcCompileProgram", api.nvrtcCompileProgram(good, 1, options));
    IS("a name asked too late", api.nvrtcAddNameExpression(good, "k"),
       NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION);
    OK("nvrtcGetCUBINSize", api.nvrtcGetCUBINSize(good, &size));
    HOLDS("a cubin has a size", size > 1);
    char *cubin = calloc(1, size + 1);
    OK("nvrtcGetCUBIN", api.nvrtcGetCUBIN(good, cubin));
    IS("nvrtcGetCUBIN writes no more than its size", cubin[size], 0);
    free(cubin);
    IS("nvrtcGetCUBINSize to NULL", api.nvrtcGetCUBINSize(good, NULL), INVALID_INPUT);
    IS("nvrtcGetCUBIN to NULL", api.nvrtcGetCUBIN(good, NULL), INVALID_INPUT);
    OK("nvrtcGetProgramLogSize", api.nvrtcGetProgramLogSize(good, &size));
    IS("a log of nothing is its end", size, 1);
    IS("nvrtcGetProgramLogSize to NULL", api.nvrtcGetProgramLogSize(good, NULL), INVALID_INPUT);
    IS("a program with an error", api.nvrtcCompileProgram(bad, 1, options), NVRTC_ERROR_COMPILATION);
    OK("the log of an error", api.nvrtcGetProgramLogSize(bad, &size));
    HOLDS("an error is explained", size > 1);
    char *log = calloc(1, size + 1);
    OK("nvrtcGetProgramLog", api.nvrtcGetProgramLog(bad, log));
    IS("the log has its size", strlen(log) + 1, size);
    free(log);
    OK("a cubin of an error", api.nvrtcGetCUBINSize(bad, &size));
    IS("an error has no cubin", size, 0);
    IS("nvrtcCompileProgram of NULL", api.nvrtcCompileProgram(NULL, 1, options), INVALID_PROGRAM);
    OK("nvrtcDestroyProgram", api.nvrtcDestroyProgram(&good));
    HOLDS("a destroyed program is NULL", good == NULL);
    IS("nvrtcDestroyProgram of NULL", api.nvrtcDestroyProgram(&none), INVALID_PROGRAM);
    OK("nvrtcDestroyProgram of the other", api.nvrtcDestroyProgram(&bad));
}

/* ---------------------------------------------------------------- cuBLASLt */

void
conform_lt_descriptors(void)
{
    cublasLtMatmulDesc_t desc = NULL;
    cublasLtMatrixLayout_t layout = NULL;
    cublasLtMatmulPreference_t preference = NULL;
    int transposed = CUBLAS_OP_T, batch = 3;
    int64_t offset = 64;
    size_t workspace = MIB;
    uint32_t epilogue = CUBLASLT_EPILOGUE_RELU_BIAS;
    HOLDS("cuBLASLt is 13", api.cublasLtGetVersion() >= 130000);
    OK("cublasLtMatmulDescCreate", api.cublasLtMatmulDescCreate(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    HOLDS("there is a description", desc != NULL);
    OK("a transpose", api.cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof(int)));
    OK("an epilogue", api.cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, 4));
    IS("a transpose of the wrong size",
       api.cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, 2),
       CUBLAS_STATUS_INVALID_VALUE);
    IS("a transpose of NULL", api.cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_TRANSA, NULL, sizeof(int)),
       CUBLAS_STATUS_INVALID_VALUE);
    IS("an attribute that is none", api.cublasLtMatmulDescSetAttribute(desc, 9999, &transposed, sizeof(int)),
       CUBLAS_STATUS_INVALID_VALUE);
    OK("cublasLtMatrixLayoutCreate", api.cublasLtMatrixLayoutCreate(&layout, CUDA_R_32F, 8, 8, 8));
    HOLDS("there is a layout", layout != NULL);
    OK("a batch",
       api.cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch, sizeof(batch)));
    OK("an offset of a batch", api.cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                                                    &offset, sizeof(offset)));
    IS("a batch of the wrong size",
       api.cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch, 1),
       CUBLAS_STATUS_INVALID_VALUE);
    OK("cublasLtMatmulPreferenceCreate", api.cublasLtMatmulPreferenceCreate(&preference));
    OK("a workspace", api.cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                               &workspace, sizeof(workspace)));
    IS("a workspace of the wrong size",
       api.cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, 1),
       CUBLAS_STATUS_INVALID_VALUE);
    OK("cublasLtMatmulPreferenceDestroy", api.cublasLtMatmulPreferenceDestroy(preference));
    OK("cublasLtMatrixLayoutDestroy", api.cublasLtMatrixLayoutDestroy(layout));
    OK("cublasLtMatmulDescDestroy", api.cublasLtMatmulDescDestroy(desc));
}

#define SIZE 16

typedef struct {
    const char *name;
    int transa, transb;
    uint32_t epilogue;
    int batch;
    float alpha, beta;
    bool spare_bias; /* it is given one that its epilogue does not name */
} product;

static float
number(int64_t i)
{
    return (float)((i * 7 + i / 3) % 5 - 2);
}

static bool
is_biased(const product *q)
{
    return q->epilogue == CUBLASLT_EPILOGUE_BIAS || q->epilogue == CUBLASLT_EPILOGUE_RELU_BIAS;
}

/* C = relu?(alpha op(A) op(B) + beta C + bias), all SIZE x SIZE, by columns */
static float
wanted(const product *q, int b, int row, int column)
{
    float sum = 0;
    int64_t base = (int64_t)b * SIZE * SIZE;
    for (int k = 0; k < SIZE; k++) {
        int64_t i = q->transa ? row * SIZE + k : k * SIZE + row, j = q->transb ? k * SIZE + column : column * SIZE + k;
        sum += number(base + i) * number(base + j + 1);
    }
    sum = q->alpha * sum + q->beta * number(base + column * SIZE + row + 2);
    if (is_biased(q)) {
        sum += number(row + 40);
    }
    bool relu = q->epilogue == CUBLASLT_EPILOGUE_RELU || q->epilogue == CUBLASLT_EPILOGUE_RELU_BIAS;
    return relu && sum < 0 ? 0 : sum;
}

/* devtensor has kernels for ReLU. */
static void
told(const product *q, const char *what, int64_t actual, int64_t expected)
{
    char name[80];
    snprintf(name, sizeof(name), "%s: %s", q->name, what);
    if (q->epilogue & CUBLASLT_EPILOGUE_RELU) {
        TELLS(name, actual, expected);
    } else {
        IS(name, actual, expected);
    }
}

static void
one_product(cublasLtHandle_t lt, const product *q)
{
    cublasLtMatmulDesc_t desc = NULL;
    cublasLtMatrixLayout_t layout = NULL;
    cublasLtMatmulPreference_t preference = NULL;
    cublasLtMatmulHeuristicResult_t found;
    int n = 0;
    size_t workspace = MIB;
    int64_t offset = SIZE * SIZE;
    enum { MOST = 3 * SIZE * SIZE };
    float host[MOST], got[MOST], bias[SIZE];
    size_t nbytes = (size_t)q->batch * SIZE * SIZE * sizeof(float);
    CUdeviceptr memory[3], biases = allocate(sizeof(bias)), space = allocate(workspace);
    for (int m = 0; m < 3; m++) {
        memory[m] = allocate(sizeof(host));
        for (int i = 0; i < MOST; i++) {
            host[i] = number(i + m);
        }
        conform_need("operands are copied", api.cuMemcpyHtoDAsync_v2(memory[m], host, sizeof(host), NULL) == 0);
    }
    for (int i = 0; i < SIZE; i++) {
        bias[i] = number(i + 40);
    }
    conform_need("a bias is copied", api.cuMemcpyHtoDAsync_v2(biases, bias, sizeof(bias), NULL) == 0);
    conform_need(
        "a product is described",
        api.cublasLtMatmulDescCreate(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F) == 0 &&
            api.cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_TRANSA, &q->transa, 4) == 0 &&
            api.cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_TRANSB, &q->transb, 4) == 0 &&
            api.cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &q->epilogue, 4) == 0 &&
            ((!is_biased(q) && !q->spare_bias) ||
             api.cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &biases, 8) == 0) &&
            api.cublasLtMatrixLayoutCreate(&layout, CUDA_R_32F, SIZE, SIZE, SIZE) == 0 &&
            api.cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &q->batch, 4) == 0 &&
            api.cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &offset, 8) ==
                0 &&
            api.cublasLtMatmulPreferenceCreate(&preference) == 0 &&
            api.cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace,
                                                     sizeof(workspace)) == 0);
    bool known =
        api.cublasLtMatmulAlgoGetHeuristic(lt, desc, layout, layout, layout, layout, preference, 1, &found, &n) == 0 &&
        n == 1;
    bool computed =
        known &&
        api.cublasLtMatmul(lt, desc, &q->alpha, (void *)(uintptr_t)memory[0], layout, (void *)(uintptr_t)memory[1],
                           layout, &q->beta, (void *)(uintptr_t)memory[2], layout, (void *)(uintptr_t)memory[2], layout,
                           &found.algo, (void *)(uintptr_t)space, workspace, NULL) == 0 &&
        api.cuMemcpyDtoHAsync_v2(got, memory[2], nbytes, NULL) == 0 && api.cuStreamSynchronize(NULL) == 0;
    int wrong = 0;
    for (int b = 0; b < q->batch && computed; b++) {
        for (int i = 0; i < SIZE * SIZE; i++) {
            wrong += got[b * SIZE * SIZE + i] != wanted(q, b, i % SIZE, i / SIZE);
        }
    }
    told(q, "has an algorithm", known, true);
    told(q, "runs", computed, !q->spare_bias); /* the address of a bias alone is refused */
    told(q, "wrong elements", wrong, 0);
}

void
conform_lt_products(void)
{
    cublasLtHandle_t lt = NULL, second = NULL;
    cublasLtMatmulDesc_t desc = NULL;
    cublasLtMatrixLayout_t a = NULL, b = NULL;
    cublasLtMatmulPreference_t preference = NULL;
    cublasLtMatmulHeuristicResult_t found;
    int n = 7;
    static const product products[] = {
        {"a product", CUBLAS_OP_N, CUBLAS_OP_N, CUBLASLT_EPILOGUE_DEFAULT, 1, 1, 0},
        {"the first operand transposed", CUBLAS_OP_T, CUBLAS_OP_N, CUBLASLT_EPILOGUE_DEFAULT, 1, 1, 0},
        {"the second operand transposed", CUBLAS_OP_N, CUBLAS_OP_T, CUBLASLT_EPILOGUE_DEFAULT, 1, 1, 0},
        {"both operands transposed", CUBLAS_OP_T, CUBLAS_OP_T, CUBLASLT_EPILOGUE_DEFAULT, 1, 1, 0},
        {"alpha and beta", CUBLAS_OP_N, CUBLAS_OP_N, CUBLASLT_EPILOGUE_DEFAULT, 1, 2, -1},
        {"products in a batch", CUBLAS_OP_T, CUBLAS_OP_N, CUBLASLT_EPILOGUE_DEFAULT, 3, 1, 0},
        {"a bias for each row", CUBLAS_OP_N, CUBLAS_OP_N, CUBLASLT_EPILOGUE_BIAS, 1, 1, 0},
        {"a bias that is not asked for", CUBLAS_OP_N, CUBLAS_OP_N, CUBLASLT_EPILOGUE_DEFAULT, 1, 1, 0, true},
        {"relu after a product", CUBLAS_OP_N, CUBLAS_OP_N, CUBLASLT_EPILOGUE_RELU, 1, 1, 0},
        {"relu, and a bias that is not asked for", CUBLAS_OP_N, CUBLAS_OP_N, CUBLASLT_EPILOGUE_RELU, 1, 1, 0, true},
        {"bias, then relu", CUBLAS_OP_T, CUBLAS_OP_N, CUBLASLT_EPILOGUE_RELU_BIAS, 1, 1, 0},
    };
    start();
    IS("cublasLtCreate to NULL", api.cublasLtCreate(NULL), CUBLAS_STATUS_INVALID_VALUE);
    OK("cublasLtCreate", api.cublasLtCreate(&lt));
    OK("a second handle", api.cublasLtCreate(&second));
    for (size_t i = 0; i < sizeof(products) / sizeof(products[0]); i++) {
        one_product(lt, &products[i]);
    }
    OK("a description to refuse", api.cublasLtMatmulDescCreate(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    OK("an 8 x 8 layout", api.cublasLtMatrixLayoutCreate(&a, CUDA_R_32F, 8, 8, 8));
    OK("a 9 x 9 layout", api.cublasLtMatrixLayoutCreate(&b, CUDA_R_32F, 9, 9, 9));
    OK("a preference", api.cublasLtMatmulPreferenceCreate(&preference));
    HOLDS("sizes that do not fit have no algorithm",
          api.cublasLtMatmulAlgoGetHeuristic(lt, desc, a, b, a, a, preference, 1, &found, &n) != 0);
    IS("no algorithm is asked for", api.cublasLtMatmulAlgoGetHeuristic(lt, desc, a, a, a, a, preference, 0, &found, &n),
       CUBLAS_STATUS_INVALID_VALUE);
    OK("cublasLtDestroy of the second", api.cublasLtDestroy(second));
    OK("cublasLtDestroy", api.cublasLtDestroy(lt));
}

/* ---------------------------------------------------------------- which types go together */

typedef struct {
    const char *name;
    cublasComputeType_t compute;
    cudaDataType scale, operands, result, bias; /* bias < 0: that of the result */
    uint32_t epilogue;
    int batch;
    bool known;
} combination;

/* Whether cuBLASLt has an algorithm for 16 x 16 matrices of these types. */
static bool
is_known(cublasLtHandle_t lt, const combination *c)
{
    cublasLtMatmulDesc_t desc = NULL;
    cublasLtMatrixLayout_t in = NULL, out = NULL;
    cublasLtMatmulPreference_t preference = NULL;
    cublasLtMatmulHeuristicResult_t found;
    CUdeviceptr bias = allocate(256);
    int64_t offset = SIZE * SIZE;
    int n = 0;
    conform_need("a combination is described",
                 api.cublasLtMatmulDescCreate(&desc, c->compute, c->scale) == 0 &&
                     api.cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &c->epilogue, 4) == 0 &&
                     api.cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, 8) == 0 &&
                     (c->bias < 0 || api.cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE,
                                                                        &c->bias, 4) == 0) &&
                     api.cublasLtMatrixLayoutCreate(&in, c->operands, SIZE, SIZE, SIZE) == 0 &&
                     api.cublasLtMatrixLayoutCreate(&out, c->result, SIZE, SIZE, SIZE) == 0 &&
                     api.cublasLtMatmulPreferenceCreate(&preference) == 0);
    const cublasLtMatrixLayout_t layouts[] = {in, out};
    for (int i = 0; i < 2; i++) {
        conform_need(
            "its batch too",
            api.cublasLtMatrixLayoutSetAttribute(layouts[i], CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &c->batch, 4) == 0 &&
                api.cublasLtMatrixLayoutSetAttribute(layouts[i], CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &offset,
                                                     8) == 0);
    }
    int status = api.cublasLtMatmulAlgoGetHeuristic(lt, desc, in, in, out, out, preference, 1, &found, &n);
    (void)api.cublasLtMatmulPreferenceDestroy(preference);
    (void)api.cublasLtMatrixLayoutDestroy(out);
    (void)api.cublasLtMatrixLayoutDestroy(in);
    (void)api.cublasLtMatmulDescDestroy(desc);
    (void)api.cuMemFree_v2(bias);
    return status == 0 && n == 1;
}

/* As an H100 has them with cuBLASLt 13.1; the documentation's table of types lacks float16 in TF32. */
void
conform_lt_combinations(void)
{
    enum { F16 = CUDA_R_16F, BF16 = CUDA_R_16BF, F32 = CUDA_R_32F, F64 = CUDA_R_64F, SAME = -1, MOST_BATCH = 65535 };
    enum { IN_32 = CUBLAS_COMPUTE_32F, IN_TF32 = CUBLAS_COMPUTE_32F_FAST_TF32, IN_64 = CUBLAS_COMPUTE_64F };
    enum { PLAIN = CUBLASLT_EPILOGUE_DEFAULT, BIAS = CUBLASLT_EPILOGUE_BIAS, GELU_BIAS = CUBLASLT_EPILOGUE_GELU_BIAS };
    static const combination rows[] = {
        {"float32 in float32", IN_32, F32, F32, F32, SAME, PLAIN, 1, true},
        {"with a bias", IN_32, F32, F32, F32, SAME, BIAS, 1, true},
        {"with bias and gelu", IN_32, F32, F32, F32, SAME, GELU_BIAS, 1, true},
        {"float32 in TF32", IN_TF32, F32, F32, F32, SAME, PLAIN, 1, true},
        {"in TF32 with bias and gelu", IN_TF32, F32, F32, F32, SAME, GELU_BIAS, 1, true},
        {"float16 in float32", IN_32, F32, F16, F16, SAME, PLAIN, 1, true},
        {"float16 with bias and gelu", IN_32, F32, F16, F16, SAME, GELU_BIAS, 1, true},
        {"bfloat16 in float32", IN_32, F32, BF16, BF16, SAME, PLAIN, 1, true},
        {"bfloat16 with bias and gelu", IN_32, F32, BF16, BF16, SAME, GELU_BIAS, 1, true},
        {"float64 in float64", IN_64, F64, F64, F64, SAME, PLAIN, 1, true},
        {"float64 with a bias", IN_64, F64, F64, F64, SAME, BIAS, 1, true},
        {"float16 to float32", IN_32, F32, F16, F32, SAME, PLAIN, 1, true},
        {"bfloat16 to float32", IN_32, F32, BF16, F32, SAME, PLAIN, 1, true},
        {"float32 to float16", IN_32, F32, F32, F16, SAME, PLAIN, 1, false},
        {"the most products in a batch", IN_32, F32, F16, F16, SAME, PLAIN, MOST_BATCH, true},
        {"float16 in TF32", IN_TF32, F32, F16, F16, SAME, PLAIN, 1, true},
        {"float64 in TF32", IN_TF32, F32, F64, F64, SAME, PLAIN, 1, false},
        {"float64 in float32", IN_32, F32, F64, F64, SAME, PLAIN, 1, false},
        {"float32 in float64", IN_64, F64, F32, F32, SAME, PLAIN, 1, false},
        {"float16 scaled in float64", IN_32, F64, F16, F16, SAME, PLAIN, 1, false},
        {"float64 to float32", IN_64, F64, F64, F32, SAME, PLAIN, 1, false},
        {"float16 with a bias of float64", IN_32, F32, F16, F16, F64, BIAS, 1, false},
        {"float64 with a bias of float32", IN_64, F64, F64, F64, F32, BIAS, 1, false},
        {"an epilogue that is none", IN_32, F32, F32, F32, SAME, 1 << 20, 1, false},
        {"no product in a batch", IN_32, F32, F32, F32, SAME, PLAIN, 0, true},
    };
    cublasLtHandle_t lt = NULL;
    start();
    OK("cublasLtCreate for combinations", api.cublasLtCreate(&lt));
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        IS(rows[i].name, is_known(lt, &rows[i]), rows[i].known);
    }
}
