/* matmul.c: batches of matrix products. */
#include "gemm.h"

#define LARGE_WORK ((int64_t)1 << 21) /* multiplications */

typedef struct {
    const dt_array *a, *b, *out;
    cpu_gemm_args g;
    int nbatch;
} matmul_job;

/* A batch of a over one b is one product of more rows, where a and out continue from matrix to matrix. */
static void
fold_rows(matmul_job *job)
{
    while (job->nbatch > 0) {
        int d = job->nbatch - 1;
        int64_t size = job->out->shape[d];
        bool continues = job->b->strides[d] == 0 && job->a->strides[d] == job->g.m * job->g.a_row &&
                         job->out->strides[d] == job->g.m * job->g.c_row;
        if (size != 1 && !continues) {
            return;
        }
        job->g.m *= size;
        job->nbatch--;
    }
}

static dt_status
matmul_part(void *ctx, int64_t begin, int64_t end, dt_error *err)
{
    const matmul_job *job = ctx;
    int64_t itemsize = (int64_t)dt_itemsize(job->g.dtype);
    const int64_t *shape = job->out->shape;
    for (int64_t i = begin; i < end; i++) {
        cpu_gemm_args g = job->g;
        g.a = (const char *)g.a + cpu_offset(job->nbatch, shape, job->a->strides, i) * itemsize;
        g.b = (const char *)g.b + cpu_offset(job->nbatch, shape, job->b->strides, i) * itemsize;
        g.c = (char *)g.c + cpu_offset(job->nbatch, shape, job->out->strides, i) * itemsize;
        DT_TRY(cpu_gemm(&g, err));
    }
    return DT_OK;
}

static DT_NOINLINE dt_status
products(const dt_array *a, const dt_array *b, const dt_array *bias, const dt_matmul_params *params, dt_array *out,
         dt_error *err)
{
    int row = out->ndim - 2, column = out->ndim - 1;
    matmul_job job = {
        .a = a,
        .b = b,
        .out = out,
        .nbatch = row,
        .g =
            {
                .dtype = (dt_dtype)out->dtype,
                .m = out->shape[row],
                .n = out->shape[column],
                .k = a->shape[column],
                .alpha = params->alpha,
                .beta = params->beta,
                .a = dt_array_data(a),
                .b = dt_array_data(b),
                .bias = bias ? dt_array_data(bias) : NULL,
                .c = dt_array_data(out),
                .a_row = a->strides[row],
                .a_column = a->strides[column],
                .b_row = b->strides[row],
                .b_column = b->strides[column],
                .c_row = out->strides[row],
                .c_column = out->strides[column],
                .bias_column = bias ? bias->strides[0] : 0,
                .activation = cpu_activation_row(params->activation, (dt_dtype)out->dtype),
            },
    };
    fold_rows(&job);
    int64_t batch = 1, work = job.g.m * job.g.n * CPU_MAX(job.g.k, 1);
    for (int d = 0; d < job.nbatch; d++) {
        batch *= out->shape[d];
    }
    if (batch == 1) {
        job.g.b_storage = b->storage;
        return cpu_gemm(&job.g, err);
    }
    /* large products share their own work among the threads */
    return cpu_try_parallel(batch, work >= LARGE_WORK ? batch : CPU_CEIL_DIV(CPU_GRAIN, work), matmul_part, &job, err);
}

/* One number of one product, and nothing after it. */
static inline bool
is_dot(const dt_array *bias, const dt_matmul_params *params, const dt_array *out)
{
    return out->ndim == 2 && out->shape[0] == 1 && out->shape[1] == 1 && bias == NULL && params->alpha == 1 &&
           params->beta == 0 && params->activation == DT_ACTIVATION_NONE;
}

dt_status
cpu_matmul(const dt_array *a, const dt_array *b, const dt_array *bias, const dt_matmul_params *params, dt_array *out,
           dt_error *err)
{
    if (DT_UNLIKELY(!dt_is_float((dt_dtype)out->dtype))) {
        cpu_whole_matmul(a, b, out);
        return DT_OK;
    }
    if (!is_dot(bias, params, out)) {
        return products(a, b, bias, params, out, err);
    }
    cpu_gemm_parts((dt_dtype)out->dtype)
        ->dot(dt_array_data(a), a->strides[1], dt_array_data(b), b->strides[0], a->shape[1], dt_array_data(out));
    return DT_OK;
}
