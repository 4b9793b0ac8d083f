/* nonzero.c: the True elements of a mask, chunk by chunk: first how many there are, then where. */
#include "../../cpu.h"

typedef struct {
    const dt_array *mask, *out; /* out or NULL */
    const unsigned char *bytes;
    int64_t *before;
    const int64_t *weights;
} true_job;

static int64_t
chunk_end(const true_job *job, int64_t chunk)
{
    return CPU_MIN((chunk + 1) * DT_TRUE_CHUNK, dt_array_numel(job->mask));
}

static void
count_part(void *ctx, int64_t begin, int64_t end)
{
    const true_job *job = ctx;
    for (int64_t chunk = begin; chunk < end; chunk++) {
        int64_t stop = chunk_end(job, chunk);
        int32_t count = 0;
        for (int64_t i = chunk * DT_TRUE_CHUNK; i < stop; i++) {
            count += job->bytes[i] != 0;
        }
        job->before[chunk] = count;
    }
}

dt_status
cpu_count_true(const dt_array *mask, dt_array *before, dt_error *err)
{
    (void)err;
    true_job job = {.mask = mask, .bytes = dt_array_data(mask), .before = dt_array_data(before)};
    int64_t chunks = before->shape[0] - 1, total = 0;
    cpu_parallel(chunks, CPU_GRAIN / DT_TRUE_CHUNK, count_part, &job);
    for (int64_t chunk = 0; chunk <= chunks; chunk++) {
        int64_t count = chunk < chunks ? job.before[chunk] : 0;
        job.before[chunk] = total;
        total += count;
    }
    return DT_OK;
}

/* From row on, the places among n elements of one run along the last dimension, the first of which is element i;
 * returns the next row. Writes no row from `last` on. */
static int64_t
find_run(const true_job *job, int64_t i, int64_t n, int64_t row, int64_t last)
{
    const dt_array *mask = job->mask;
    const int64_t *weights = job->weights;
    const unsigned char *bytes = job->bytes + i;
    int columns = mask->ndim, d = columns - 1;
    int64_t at[DT_MAX_NDIM], *out = dt_array_data(job->out), sum = 0, step = 0;
    for (; d >= 0; d--) {
        at[d] = i % mask->shape[d];
        i /= mask->shape[d];
        sum += weights != NULL ? at[d] * weights[d] : 0;
    }
    if (weights != NULL) {
        step = columns > 0 ? weights[columns - 1] : 0;
        for (int64_t j = 0; j < n && row < last; j++) { /* no branch on the element */
            out[row] = sum + j * step;
            row += bytes[j] != 0;
        }
        return row;
    }
    for (int64_t j = 0, first = at[columns - 1]; j < n && row < last; j++) {
        if (bytes[j] != 0) {
            at[columns - 1] = first + j;
            memcpy(out + row++ * columns, at, (size_t)columns * sizeof(*at));
        }
    }
    return row;
}

static void
find_true_part(void *ctx, int64_t begin, int64_t end)
{
    const true_job *job = ctx;
    int ndim = job->mask->ndim;
    int64_t length = ndim > 0 ? job->mask->shape[ndim - 1] : 1;
    for (int64_t chunk = begin; chunk < end; chunk++) {
        int64_t stop = chunk_end(job, chunk), row = job->before[chunk], last = job->before[chunk + 1];
        for (int64_t i = chunk * DT_TRUE_CHUNK, n; i < stop && row < last; i += n) {
            n = CPU_MIN(stop - i, length - i % length);
            row = find_run(job, i, n, row, last);
        }
    }
}

dt_status
cpu_find_true(const dt_array *mask, const dt_array *before, const int64_t *weights, dt_array *out, dt_error *err)
{
    (void)err;
    true_job job = {mask, out, dt_array_data(mask), dt_array_data(before), weights};
    cpu_parallel(before->shape[0] - 1, CPU_GRAIN / DT_TRUE_CHUNK, find_true_part, &job);
    return DT_OK;
}
