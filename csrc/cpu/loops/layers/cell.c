/* cell.c: a step of an LSTM or GRU after its products, row by row, and all steps of some rows, which meet no others. */
#include "../loops.h"

#define FEW_ROWS 8                    /* read the weight too often */
#define STEPS_WORK ((int64_t)1 << 18) /* multiplications worth a thread */

enum { OWN, X, STATE, GRAD, READS };

typedef struct {
    const dt_array *reads[READS];
    char *out;
    cpu_cell_row row;
    dt_cell cell;
    int64_t n, size, itemsize, gates;
} cell_job;

static const char *
row_of(const cell_job *job, int k, int64_t r)
{
    const dt_array *x = job->reads[k];
    return (const char *)dt_array_data(x) + r * x->strides[x->ndim - 2] * job->itemsize;
}

static cell_job
job_of(dt_cell cell, const dt_array *const reads[READS], dt_array *out)
{
    const dt_array *state = reads[STATE];
    cell_job job = {.out = dt_array_data(out), .cell = cell, .n = state->shape[0], .size = state->shape[1]};
    memcpy(job.reads, reads, sizeof(job.reads));
    job.itemsize = (int64_t)dt_itemsize((dt_dtype)state->dtype);
    job.gates = cell == DT_CELL_LSTM ? 4 : 3;
    job.row = cpu_loops_here()->cells[state->dtype == DT_FLOAT64][cell + (reads[GRAD] != NULL ? DT_NCELLS : 0)];
    return job;
}

/* out: h, and of an LSTM after it c */
static void
cell_part(void *ctx, int64_t begin, int64_t end)
{
    const cell_job *job = ctx;
    const int64_t row = job->size * job->itemsize;
    for (int64_t r = begin; r < end; r++) {
        job->row((const void *[]){row_of(job, OWN, r), row_of(job, X, r), row_of(job, STATE, r)},
                 (void *[]){job->out + r * row, job->out + (job->n + r) * row}, job->size);
    }
}

/* out: what the product with h gets, of a GRU then what the product with x gets, last the state. */
static void
cell_grad_part(void *ctx, int64_t begin, int64_t end)
{
    const cell_job *job = ctx;
    const int64_t row = job->size * job->itemsize, whole = job->n * job->gates * row;
    const int64_t state = job->cell == DT_CELL_LSTM ? whole : 2 * whole;
    const dt_array *grad = job->reads[GRAD];
    const int64_t next = job->cell == DT_CELL_LSTM ? grad->strides[0] * job->itemsize : 0;
    for (int64_t r = begin; r < end; r++) {
        const char *dh = row_of(job, GRAD, r);
        job->row((const void *[]){row_of(job, OWN, r), row_of(job, X, r), row_of(job, STATE, r), dh, dh + next},
                 (void *[]){job->out + r * job->gates * row, job->out + whole + r * job->gates * row,
                            job->out + state + r * row},
                 job->size);
    }
}

/* Whether there are loops for its dtype. */
static bool
has_rows(const dt_array *state)
{
    return state->dtype == DT_FLOAT32 || state->dtype == DT_FLOAT64;
}

dt_status
cpu_cell(dt_cell cell, const dt_array *own, const dt_array *x, const dt_array *state, dt_array *out, bool *made,
         dt_error *err)
{
    (void)err;
    *made = has_rows(state);
    if (!*made) {
        return DT_OK;
    }
    cell_job job = job_of(cell, (const dt_array *[READS]){own, x, state, NULL}, out);
    cpu_parallel(job.n, CPU_CEIL_DIV(CPU_GRAIN / 16, job.size), cell_part, &job);
    return DT_OK;
}

dt_status
cpu_cell_grad(dt_cell cell, const dt_array *own, const dt_array *x, const dt_array *state, const dt_array *grad,
              dt_array *out, bool *made, dt_error *err)
{
    (void)made, (void)err;
    cell_job job = job_of(cell, (const dt_array *[READS]){own, x, state, grad}, out);
    cpu_parallel(job.n, CPU_CEIL_DIV(CPU_GRAIN / 16, job.size), cell_grad_part, &job);
    return DT_OK;
}

/* ---------------------------------------------------------------- all steps */

typedef struct {
    const dt_array *product, *state, *out, *last;
    cpu_gemm_args g; /* of one step of all rows */
    cpu_cell_row row;
    int64_t size, itemsize;
    char *own;
} steps_job;

/* Of the rows [begin, end): h of step t in its place, where an LSTM has read c, whose next one goes to the place
 * behind, the last one to a place of its own. */
static dt_status
run_rows(void *ctx, int64_t begin, int64_t end, dt_error *err)
{
    const steps_job *job = ctx;
    const int64_t itemsize = job->itemsize, line = job->size * itemsize, steps = job->product->shape[0];
    const dt_array *x = job->product;
    cpu_gemm_args g = job->g;
    const bool lstm = job->last != NULL;
    const int64_t step = job->out->strides[0] * itemsize;
    char *const out = (char *)dt_array_data(job->out) + begin * line;
    char *const last = (char *)dt_array_data(lstm ? job->last : job->out) + begin * line;
    g.m = end - begin;
    g.c = job->own + begin * g.n * itemsize;
    g.a = (const char *)g.a + begin * g.a_row * itemsize;
    const char *state = (const char *)dt_array_data(job->state) + begin * job->state->strides[0] * itemsize;
    int64_t state_row = job->state->strides[0] * itemsize;
    for (int64_t t = 0; t < steps; t++) {
        DT_TRY(cpu_gemm(&g, err));
        char *const to = out + t * step;
        char *const next = !lstm ? to : t < steps - 1 ? to + step : last; /* a GRU has but one state */
        const char *from = (const char *)dt_array_data(x) + (t * x->strides[0] + begin * x->strides[1]) * itemsize;
        for (int64_t r = 0; r < g.m; r++) {
            job->row((const void *[]){(const char *)g.c + r * g.n * itemsize, from + r * x->strides[1] * itemsize,
                                      state + r * state_row},
                     (void *[]){to + r * line, next + r * line}, job->size);
        }
        g.a = to;
        g.a_row = job->size;
        g.a_column = 1;
        state = next;
        state_row = line;
    }
    return DT_OK;
}

dt_status
cpu_cell_steps(const dt_array *product, const dt_array *weight, const dt_array *bias, const dt_array *h,
               const dt_array *state, dt_array *out, dt_array *last, bool *made, dt_error *err)
{
    const int64_t n = h->shape[0], size = h->shape[1], wide = weight->shape[0];
    const int64_t itemsize = (int64_t)dt_itemsize((dt_dtype)h->dtype);
    *made = has_rows(h) && wide * size * itemsize <= cpu_second_cache() / 2 && n >= 2 * FEW_ROWS;
    if (!*made) {
        return DT_OK;
    }
    steps_job job = {
        .product = product,
        .state = state,
        .out = out,
        .last = last,
        .row = cpu_loops_here()->cells[h->dtype == DT_FLOAT64][last != NULL ? DT_CELL_LSTM : DT_CELL_GRU],
        .size = size,
        .itemsize = itemsize,
        .g =
            {
                .dtype = (dt_dtype)h->dtype,
                .n = wide,
                .k = size,
                .alpha = 1,
                .a = dt_array_data(h),
                .b = dt_array_data(weight),
                .bias = bias ? dt_array_data(bias) : NULL,
                .a_row = h->strides[0],
                .a_column = h->strides[1],
                .b_row = weight->strides[1],
                .b_column = weight->strides[0],
                .c_row = wide,
                .c_column = 1,
                .bias_column = bias ? bias->strides[0] : 0,
                .b_storage = weight->storage,
            },
    };
    const int64_t work = CPU_MAX(product->shape[0] * wide * size, 1);
    const size_t nbytes = (size_t)(n * wide * itemsize);
    job.own = dt_large_new(nbytes);
    if (job.own == NULL) {
        return dt_fail_nomem(err, nbytes);
    }
    const int64_t grain = CPU_MAX(CPU_CEIL_DIV(STEPS_WORK, work), FEW_ROWS);
    const dt_status rc = cpu_try_parallel(n, grain, run_rows, &job, err);
    dt_large_free(job.own);
    return rc;
}
