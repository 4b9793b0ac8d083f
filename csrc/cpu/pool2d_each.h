/* pool2d_each.h: the pools of one dtype, plane by plane. Included by each_dtype.h. */
#if IS_FLOAT

static void
DT_CAT(pool_max, ENUM)(const pool_job *job, const char *x, char *out, int64_t *indices)
{
    const dt_pool2d_params *params = job->params;
    const T *in = (const T *)x;
    T *to = (T *)out;
    const int64_t *xs = job->x->strides, *os = job->out->strides;
    for (int64_t p = 0; p < job->out->shape[2]; p++) {
        window rows = dilated_window(params, 0, p, job->x->shape[2]);
        for (int64_t q = 0; q < job->out->shape[3]; q++) {
            window columns = dilated_window(params, 1, q, job->x->shape[3]);
            C largest = -(C)INFINITY;
            bool any = rows.begin < rows.end && columns.begin < columns.end;
            int64_t best = any ? rows.begin * job->x->shape[3] + columns.begin : 0;
            for (int64_t i = rows.begin; i < rows.end; i += params->dilation[0]) {
                for (int64_t j = columns.begin; j < columns.end; j += params->dilation[1]) {
                    const C v = LOAD(in[i * xs[2] + j * xs[3]]);
                    if (v > largest || v != v) {
                        largest = v;
                        best = i * job->x->shape[3] + j;
                    }
                }
            }
            to[p * os[2] + q * os[3]] = STORE(largest);
            if (indices != NULL) {
                indices[p * job->indices->strides[2] + q * job->indices->strides[3]] = best;
            }
        }
    }
}

static void
DT_CAT(pool_average, ENUM)(const pool_job *job, const char *x, char *out, int64_t *indices)
{
    const T *in = (const T *)x;
    T *to = (T *)out;
    const int64_t *xs = job->x->strides, *os = job->out->strides;
    (void)indices;
    for (int64_t p = 0; p < job->out->shape[2]; p++) {
        window rows = average_window(job, 0, p);
        for (int64_t q = 0; q < job->out->shape[3]; q++) {
            window columns = average_window(job, 1, q);
            C sum = 0;
            for (int64_t i = rows.begin; i < rows.end; i++) {
                for (int64_t j = columns.begin; j < columns.end; j++) {
                    sum += LOAD(in[i * xs[2] + j * xs[3]]);
                }
            }
            to[p * os[2] + q * os[3]] = STORE(sum / (C)divisor_of(job, rows, columns));
        }
    }
}
#endif
