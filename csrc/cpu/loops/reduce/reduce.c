/* reduce.c: the reductions of reductions.def.
 *
 * A block is some neighbouring results, which one thread computes: one result after the other where the reduced
 * elements are close together in memory, all of them line by line where the kept elements are. The reduced elements of
 * a block are halved again and again, down to leaves, and the leaves are combined like a tree: so sums of float64 lose
 * little. If there are few blocks, each is cut into chunks that threads share. */
#include "../../../core/layout/layout.h"
#include "../loops.h"

#define BLOCK 512
#define WIDE_BLOCK 1024 /* of a chunk that is one leaf, which needs no accumulators on the stack to join */
#define LEAF_LINES 128  /* reduced elements of a leaf */
#define LEAF_FLOAT64 2048
#define CHUNK 65536 /* elements */
#define FEW 8       /* so many neighbours, or fewer, are reduced one result after the other */

/* ---------------------------------------------------------------- the order of going over x */

/* Some dimensions of x, at least one, merged where the strides allow. */
typedef struct {
    int n;
    int64_t shape[DT_MAX_NDIM], strides[DT_MAX_NDIM], numel;
} dims;

static dims
take_dims(const dt_array *x, int first, int end, bool any_order)
{
    dims d = {.numel = 1};
    int order[DT_MAX_NDIM], n = 0;
    for (int i = first; i < end; i++) {
        d.numel *= x->shape[i];
        if (x->shape[i] == 1) {
            continue;
        }
        int at = n++;
        for (; any_order && at > 0 && x->strides[order[at - 1]] < x->strides[i]; at--) {
            order[at] = order[at - 1];
        }
        order[at] = i;
    }
    for (int i = 0; i < n; i++) {
        d.n = dt_add_dim(d.n, d.shape, 1, &d.strides, x->shape[order[i]], &x->strides[order[i]]);
    }
    if (d.n == 0) {
        d.shape[0] = 1;
        d.strides[0] = 0;
        d.n = 1;
    }
    return d;
}

typedef struct {
    const cpu_reduction *kernel;
    cpu_reduced_rows rows, rows_uncast; /* for the dtype of the kernel; for that of x, without a cast; or NULL */
    cpu_add_lines add_lines;            /* or NULL */
    const char *x;
    char *out;
    int64_t itemsize, taken_itemsize, out_itemsize;
    dims kept, reduced;
    int64_t width, blocks_per_row, leaf;
    bool lines;
    int64_t chunk, nchunks; /* of the reduced elements */
    uint64_t *partial;      /* accumulators of each block and chunk: width of them, then width positions */
    cpu_row load, store;    /* load: to what the kernel takes, or NULL */
} reduce_job;

static int64_t
block_width(const reduce_job *job, int64_t block)
{
    int64_t first = block % job->blocks_per_row * job->width;
    return CPU_MIN(job->width, job->kept.shape[job->kept.n - 1] - first);
}

static int64_t
block_first(const reduce_job *job, int64_t block)
{
    int64_t row = block / job->blocks_per_row;
    return row * job->kept.shape[job->kept.n - 1] + block % job->blocks_per_row * job->width;
}

/* Casts what the next step takes of x: whole lines, or the elements of each result. */
static void
load_stage(const reduce_job *job, const char *x, int64_t apart, int64_t along, int64_t width, int64_t count,
           char *stage)
{
    const int64_t times = job->lines ? count : width, n = job->lines ? width : count;
    const int64_t next = job->lines ? along : apart, inner = job->lines ? apart : along;
    const bool whole = inner == 1 && next == n;
    for (int64_t i = 0; i < (whole ? 1 : times); i++) {
        char *data[2] = {stage + i * n * job->taken_itemsize, (char *)x + i * next * job->itemsize};
        job->load(data, (const int64_t[]){1, inner}, whole ? times * n : n, NULL);
    }
}

static void
reduce_leaf(const reduce_job *job, uint64_t *accs, int64_t *at, int64_t width, const char *x, int64_t begin,
            int64_t end)
{
    const dims *r = &job->reduced;
    const cpu_reduction *kernel = job->kernel;
    _Alignas(64) char stage[CPU_CAST_AHEAD * sizeof(uint64_t)];
    for (int64_t i = begin, count; i < end; i += count) {
        const char *data = x + cpu_offset(r->n, r->shape, r->strides, i) * job->itemsize;
        int64_t apart = job->kept.strides[job->kept.n - 1], along = r->strides[r->n - 1];
        int64_t inner = r->shape[r->n - 1];
        count = CPU_MIN(end - i, inner - i % inner);
        cpu_reduced_rows rows = job->rows;
        if (job->load != NULL && job->rows_uncast != NULL && !job->lines && along == 1) {
            rows = job->rows_uncast;
        } else if (job->load != NULL) {
            count = CPU_MIN(count, CPU_CAST_AHEAD / width);
            load_stage(job, data, apart, along, width, count, stage);
            data = stage;
            apart = job->lines ? 1 : count;
            along = job->lines ? width : 1;
        }
        if (rows != NULL && !job->lines && along == 1) {
            rows(accs, at, width, apart, data, count, i, i == begin);
            continue;
        }
        if (i == begin) {
            kernel->init(accs, at, width, data, apart, i);
        }
        if (job->add_lines != NULL && job->lines && apart == 1) {
            job->add_lines((double *)accs, (const float *)data, width, along, count);
        } else {
            kernel->step(accs, at, width, apart, data, count, along, i, job->lines);
        }
    }
}

static void
reduce_range(const reduce_job *job, uint64_t *accs, int64_t *at, int64_t width, const char *x, int64_t begin,
             int64_t end)
{
    int64_t leaves = CPU_CEIL_DIV(end - begin, job->leaf);
    if (leaves <= 1) {
        reduce_leaf(job, accs, at, width, x, begin, end);
        return;
    }
    uint64_t others[BLOCK];
    int64_t others_at[BLOCK], middle = begin + (leaves + 1) / 2 * job->leaf;
    reduce_range(job, accs, at, width, x, begin, middle);
    reduce_range(job, others, others_at, width, x, middle, end);
    job->kernel->combine(accs, at, others, others_at, width);
}

static void
finish_block(const reduce_job *job, int64_t block, const uint64_t *accs, const int64_t *at)
{
    uint64_t results[WIDE_BLOCK];
    int64_t width = block_width(job, block);
    job->kernel->finish(accs, at, width, job->reduced.numel, results);
    char *out = job->out + block_first(job, block) * job->out_itemsize;
    job->store((char *[]){out, (char *)results}, (const int64_t[]){1, 1}, width, NULL);
}

static void
reduce_part(void *ctx, int64_t begin, int64_t end)
{
    const reduce_job *job = ctx;
    for (int64_t item = begin; item < end; item++) {
        int64_t block = item / job->nchunks, first = item % job->nchunks * job->chunk;
        int64_t last = CPU_MIN(first + job->chunk, job->reduced.numel), width = block_width(job, block);
        int64_t offset = cpu_offset(job->kept.n, job->kept.shape, job->kept.strides, block_first(job, block));
        const char *x = job->x + offset * job->itemsize;
        if (job->partial != NULL) {
            uint64_t *accs = job->partial + item * 2 * job->width;
            reduce_range(job, accs, (int64_t *)accs + job->width, width, x, first, last);
            continue;
        }
        uint64_t accs[BLOCK];
        int64_t at[BLOCK];
        reduce_range(job, accs, at, width, x, first, last);
        finish_block(job, block, accs, at);
    }
}

static void
combine_chunks(const reduce_job *job, int64_t block)
{
    uint64_t *accs = job->partial + block * job->nchunks * 2 * job->width;
    int64_t width = block_width(job, block);
    for (int64_t chunk = 1; chunk < job->nchunks; chunk++) {
        const uint64_t *others = accs + chunk * 2 * job->width;
        job->kernel->combine(accs, (int64_t *)accs + job->width, others, (const int64_t *)others + job->width, width);
    }
    finish_block(job, block, accs, (int64_t *)accs + job->width);
}

/* The dtype that the kernel of op takes. x is cast to it. */
static dt_dtype
taken_dtype(dt_reduce_op op, dt_dtype dtype)
{
    if (dt_reduce_kinds[op] == DT_REDUCE_KIND_TEST) {
        return DT_BOOL;
    }
    const bool narrow = dt_itemsize(dtype) < 4 && !dt_is_float(dtype);
    return narrow && dt_reduce_kinds[op] == DT_REDUCE_KIND_SUM ? DT_INT32 : cpu_computed(dtype);
}

dt_status
cpu_variance(const dt_array *x, int nreduce, double count, bool root, dt_array *out, bool *made, dt_error *err)
{
    (void)x, (void)nreduce, (void)count, (void)root, (void)out, (void)err;
    *made = false; /* it is made of other ops */
    return DT_OK;
}

dt_status
cpu_reduce(dt_reduce_op op, const dt_params *params, const dt_array *x, int nreduce, dt_array *out, dt_error *err)
{
    (void)params;
    dt_dtype dtype = (dt_dtype)x->dtype, taken = taken_dtype(op, dtype);
    const cpu_loops *loops = cpu_loops_here();
    const cpu_reduction *kernel = &loops->reductions[taken][op];
    const cpu_reduced_rows *rows = loops->reduced_rows[taken], *rows_uncast = loops->reduced_rows[dtype];
    reduce_job job = {
        .kernel = kernel,
        .rows = rows == NULL ? NULL : rows[op],
        .rows_uncast = rows_uncast == NULL ? NULL : rows_uncast[op],
        .add_lines = taken == DT_FLOAT32 ? loops->add_lines[op] : NULL,
        .x = dt_array_data(x),
        .out = dt_array_data(out),
        .itemsize = (int64_t)dt_itemsize(dtype),
        .taken_itemsize = (int64_t)dt_itemsize(taken),
        .out_itemsize = (int64_t)dt_itemsize((dt_dtype)out->dtype),
        .kept = take_dims(x, 0, x->ndim - nreduce, false),
        .reduced = take_dims(x, x->ndim - nreduce, x->ndim, op != DT_REDUCE_argmax && op != DT_REDUCE_argmin),
        .load = taken == dtype ? NULL : cpu_cast_row(dtype, taken),
        .store = cpu_cast_row(kernel->result, (dt_dtype)out->dtype),
    };
    int64_t neighbours = job.kept.shape[job.kept.n - 1], size = job.reduced.numel;
    int64_t along = job.reduced.strides[job.reduced.n - 1];
    job.lines = neighbours > 1 &&
                (size < (along == 1 && job.rows != NULL ? FEW : 32) || along > job.kept.strides[job.kept.n - 1]);
    job.width = job.lines ? BLOCK : CPU_MAX(CPU_MIN((job.load == NULL ? CHUNK / 2 : CPU_CAST_AHEAD) / size, BLOCK), 1);
    job.width = CPU_MIN(job.width, neighbours);
    job.leaf = job.lines ? LEAF_LINES : taken == DT_FLOAT64 ? LEAF_FLOAT64 : CHUNK;
    job.blocks_per_row = CPU_CEIL_DIV(neighbours, job.width);
    int64_t blocks = job.kept.numel / neighbours * job.blocks_per_row;
    job.chunk = size;
    job.nchunks = 1;
    if (blocks < 32 && size * job.width >= 4 * CHUNK) {
        if (job.lines && job.load == NULL && job.width == BLOCK) { /* memory is read faster in longer lines */
            job.width = CPU_MIN(WIDE_BLOCK, neighbours);
            job.blocks_per_row = CPU_CEIL_DIV(neighbours, job.width);
            blocks = job.kept.numel / neighbours * job.blocks_per_row;
        }
        job.chunk = CPU_CEIL_DIV(CHUNK / job.width, job.leaf) * job.leaf;
        job.nchunks = CPU_CEIL_DIV(size, job.chunk);
        size_t nbytes = (size_t)(blocks * job.nchunks * job.width) * 2 * sizeof(*job.partial);
        job.partial = dt_malloc_aligned(nbytes);
        if (job.partial == NULL) {
            return dt_fail_nomem(err, nbytes);
        }
    }
    int64_t work = CPU_MIN(job.chunk, CPU_GRAIN) * job.width;
    cpu_parallel(blocks * job.nchunks, CPU_CEIL_DIV(CPU_GRAIN, work), reduce_part, &job);
    for (int64_t block = 0; job.partial != NULL && block < blocks; block++) {
        combine_chunks(&job, block);
    }
    dt_free(job.partial);
    return DT_OK;
}
