/* cell.c: a step of an LSTM or GRU after its products, row by row. */
#include "../loops.h"

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

dt_status
cpu_cell(dt_cell cell, const dt_array *own, const dt_array *x, const dt_array *state, dt_array *out, bool *made,
         dt_error *err)
{
    (void)err;
    *made = cpu_has_cell((dt_dtype)state->dtype);
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
