/* nonzero.c: the True elements of a mask, chunk by chunk: first how many there are, then where. */
#include "cpu.h"

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

/* The coordinates of element i, or the sum of them times the weights. */
static void
write_place(const true_job *job, int64_t i, int64_t *out)
{
    int64_t sum = 0;
    for (int d = job->mask->ndim - 1; d >= 0; d--) {
        int64_t at = i % job->mask->shape[d];
        i /= job->mask->shape[d];
        if (job->weights == NULL) {
            out[d] = at;
        } else {
            sum += at * job->weights[d];
        }
    }
    if (job->weights != NULL) {
        *out = sum;
    }
}

static void
find_part(void *ctx, int64_t begin, int64_t end)
{
    const true_job *job = ctx;
    int64_t columns = job->weights == NULL ? job->mask->ndim : 1;
    int64_t *out = dt_array_data(job->out);
    bool flat = job->mask->ndim == 1;
    int64_t weight = flat && job->weights != NULL ? job->weights[0] : 1;
    for (int64_t chunk = begin; chunk < end; chunk++) {
        int64_t stop = chunk_end(job, chunk), row = job->before[chunk], last = job->before[chunk + 1];
        for (int64_t i = chunk * DT_TRUE_CHUNK; i < stop && row < last; i++) {
            if (flat) { /* no branch on the element */
                out[row] = i * weight;
                row += job->bytes[i] != 0;
            } else if (job->bytes[i] != 0) {
                write_place(job, i, out + row++ * columns);
            }
        }
    }
}

dt_status
cpu_find_true(const dt_array *mask, const dt_array *before, const int64_t *weights, dt_array *out, dt_error *err)
{
    (void)err;
    true_job job = {mask, out, dt_array_data(mask), dt_array_data(before), weights};
    cpu_parallel(before->shape[0] - 1, CPU_GRAIN / DT_TRUE_CHUNK, find_part, &job);
    return DT_OK;
}
