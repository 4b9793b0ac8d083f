/* cell_steps.c: all steps of an LSTM or GRU, and their gradient. A thread takes its rows through all steps, as they
 * meet no others. */
#include "../loops.h"

#define FEW_ROWS 8                    /* read the weight too often */
#define STEPS_WORK ((int64_t)1 << 18) /* multiplications worth a thread */

/* Row r of step t stands at from + t * step + r * row, in bytes; without steps, that of each. */
typedef struct {
    char *from;
    int64_t step, row;
} cell_rows;

static cell_rows
rows_of(const dt_array *x)
{
    const int64_t itemsize = (int64_t)dt_itemsize((dt_dtype)x->dtype), last = x->ndim - 1;
    return (cell_rows){.from = dt_array_data(x),
                       .step = x->ndim > 2 ? x->strides[0] * itemsize : 0,
                       .row = x->strides[last - 1] * itemsize};
}

static inline char *
at(const cell_rows *rows, int64_t t, int64_t r)
{
    return rows->from + t * rows->step + r * rows->row;
}

typedef struct {
    cell_rows own, x, h, state, next_h, next_state, last; /* last: of the state after all steps, if not next_state */
    cell_rows grad, dh, dstate, of_own, of_product;
    cpu_gemm_args g; /* of one step of all rows */
    cpu_cell_row row;
    cpu_pool_line add;
    int64_t steps, n, size, h_column;
    bool lstm;
} steps_job;

/* Whether all steps of some rows are worth to be taken at a time: the weight is read at each of them. */
static bool
is_small(const dt_array *weight, int64_t n)
{
    return cpu_has_cell((dt_dtype)weight->dtype) && n >= 2 * FEW_ROWS &&
           dt_array_numel(weight) * (int64_t)dt_itemsize((dt_dtype)weight->dtype) <= cpu_second_cache() / 2;
}

static dt_status
run_job(const steps_job *job, dt_status (*run)(void *ctx, int64_t begin, int64_t end, dt_error *err), dt_error *err)
{
    const int64_t work = CPU_MAX(job->steps * job->g.n * job->g.k, 1);
    return cpu_try_parallel(job->n, CPU_MAX(CPU_CEIL_DIV(STEPS_WORK, work), FEW_ROWS), run, (void *)job, err);
}

static steps_job
new_job(const dt_array *product, const dt_array *weight, bool lstm, bool grad)
{
    steps_job job = {.x = rows_of(product),
                     .lstm = lstm,
                     .steps = product->shape[0],
                     .n = product->shape[1],
                     .size = weight->shape[1]};
    const int is_double = weight->dtype == DT_FLOAT64;
    job.row = cpu_loops_here()->cells[is_double][(lstm ? DT_CELL_LSTM : DT_CELL_GRU) + (grad ? DT_NCELLS : 0)];
    job.add = cpu_loops_here()->pool_sum[weight->dtype - DT_FLOAT16];
    job.g = (cpu_gemm_args){
        .dtype = (dt_dtype)weight->dtype,
        .n = weight->shape[grad ? 1 : 0],
        .k = weight->shape[grad ? 0 : 1],
        .alpha = 1,
        .a_column = 1,
        .b = dt_array_data(weight),
        .b_row = weight->strides[grad ? 0 : 1],
        .b_column = weight->strides[grad ? 1 : 0],
        .c_column = 1,
        .b_storage = weight->storage,
    };
    return job;
}

/* ---------------------------------------------------------------- the steps */

static dt_status
take_steps(void *ctx, int64_t begin, int64_t end, dt_error *err)
{
    const steps_job *job = ctx;
    const int64_t itemsize = (int64_t)dt_itemsize(job->g.dtype);
    cpu_gemm_args g = job->g;
    g.m = end - begin;
    g.c_row = job->own.row / itemsize;
    for (int64_t t = 0; t < job->steps; t++) {
        const cell_rows *h = t == 0 ? &job->h : &job->next_h, *state = t == 0 ? &job->state : &job->next_state;
        const cell_rows *to = t == job->steps - 1 && job->last.from != NULL ? &job->last : &job->next_state;
        const int64_t before = t == 0 ? 0 : t - 1;
        g.a = at(h, before, begin);
        g.a_row = h->row / itemsize;
        g.a_column = t == 0 ? job->h_column : 1;
        g.c = at(&job->own, t, begin);
        DT_TRY(cpu_gemm(&g, err));
        for (int64_t r = begin; r < end; r++) {
            job->row((const void *[]){at(&job->own, t, r), at(&job->x, t, r), at(state, before, r)},
                     (void *[]){at(&job->next_h, t, r), at(to, t, r)}, job->size);
        }
    }
    return DT_OK;
}

static void
set_bias(cpu_gemm_args *g, const dt_array *bias)
{
    if (bias != NULL) {
        g->bias = dt_array_data(bias);
        g->bias_column = bias->strides[0];
    }
}

/* h of step t in its place, where an LSTM has read c, whose next one goes to the place behind, the last one to a place
 * of its own. */
dt_status
cpu_cell_steps(const dt_array *product, const dt_array *weight, const dt_array *bias, const dt_array *h,
               const dt_array *state, dt_array *out, dt_array *last, bool *made, dt_error *err)
{
    *made = is_small(weight, h->shape[0]);
    if (!*made) {
        return DT_OK;
    }
    steps_job job = new_job(product, weight, last != NULL, false);
    const size_t nbytes = (size_t)(job.n * job.g.n) * dt_itemsize(job.g.dtype);
    char *own = dt_large_new(nbytes);
    if (own == NULL) {
        return dt_fail_nomem(err, nbytes);
    }
    set_bias(&job.g, bias);
    job.own = (cell_rows){own, 0, job.g.n * (int64_t)dt_itemsize(job.g.dtype)};
    job.h = rows_of(h);
    job.h_column = h->strides[1];
    job.state = rows_of(state);
    job.next_h = job.next_state = rows_of(out);
    if (last != NULL) {
        job.next_state.from += job.next_state.step;
        job.last = rows_of(last);
    }
    const dt_status rc = run_job(&job, take_steps, err);
    dt_large_free(own);
    return rc;
}

/* Both h and the state, which is h of a GRU, of the entries of states from the first on. */
static void
set_states(const dt_array *states, cell_rows *h, cell_rows *state)
{
    *h = *state = rows_of(states);
    state->from += states->ndim == 4 ? states->strides[1] * (int64_t)dt_itemsize((dt_dtype)states->dtype) : 0;
}

dt_status
cpu_cell_steps_kept(const dt_array *product, const dt_array *weight, const dt_array *bias, dt_array *own,
                    dt_array *states, bool *made, dt_error *err)
{
    *made = is_small(weight, product->shape[1]);
    if (!*made) {
        return DT_OK;
    }
    steps_job job = new_job(product, weight, states->ndim == 4, false);
    set_bias(&job.g, bias);
    job.own = rows_of(own);
    job.h_column = 1;
    set_states(states, &job.h, &job.state);
    job.next_h = job.h;
    job.next_state = job.state;
    job.next_h.from += job.h.step;
    job.next_state.from += job.h.step;
    return run_job(&job, take_steps, err);
}

/* ---------------------------------------------------------------- their gradient */

/* dh and dstate, the same rows of a GRU, go on from step to step. */
static dt_status
take_gradients(void *ctx, int64_t begin, int64_t end, dt_error *err)
{
    const steps_job *job = ctx;
    const int64_t itemsize = (int64_t)dt_itemsize(job->g.dtype);
    cpu_gemm_args g = job->g;
    g.m = end - begin;
    g.a_row = job->of_own.row / itemsize;
    g.c_row = job->dh.row / itemsize;
    g.c = at(&job->dh, 0, begin);
    g.beta = job->lstm ? 0 : 1;
    for (int64_t t = job->steps - 1; t >= 0; t--) {
        for (int64_t r = begin; r < end; r++) {
            char *dh = at(&job->dh, 0, r), *dstate = at(&job->dstate, 0, r);
            job->add(dh, at(&job->grad, t, r), 1, job->size);
            job->row((const void *[]){at(&job->own, t, r), at(&job->x, t, r), at(&job->state, t, r), dh, dstate},
                     (void *[]){at(&job->of_own, t, r), at(&job->of_product, t, r), dstate}, job->size);
        }
        g.a = at(&job->of_own, t, begin);
        DT_TRY(cpu_gemm(&g, err));
    }
    return DT_OK;
}

dt_status
cpu_cell_steps_grad(const dt_array *own, const dt_array *product, const dt_array *weight, const dt_array *states,
                    const dt_array *grad, dt_array *gates, dt_array *begin, bool *made, dt_error *err)
{
    *made = is_small(weight, product->shape[1]);
    if (!*made) {
        return DT_OK;
    }
    steps_job job = new_job(product, weight, states->ndim == 4, true);
    cell_rows h;
    job.own = rows_of(own);
    set_states(states, &h, &job.state);
    job.grad = rows_of(grad);
    job.of_own = job.of_product = rows_of(gates);
    job.dh = job.dstate = rows_of(begin);
    const int64_t itemsize = (int64_t)dt_itemsize(job.g.dtype);
    if (job.lstm) {
        job.dstate.from += begin->strides[0] * itemsize;
    } else {
        job.of_own.step = job.of_product.step = gates->strides[1] * itemsize;
        job.of_product.from += gates->strides[0] * itemsize;
    }
    return run_job(&job, take_gradients, err);
}
