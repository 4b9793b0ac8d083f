/* weight_grad.c: what the gradient of a convolution's result gives its weight: products of that gradient (outputs,
 * patches) with patches (patches, channels and taps). Some patches at a time are laid out, where they cannot be read in
 * place, and added to what is there: never those of a whole batch. Of few outputs the product is made the other way
 * round, which reads patches where they were laid. What is added up apart follows from the shapes alone, and is joined
 * in one order. With one channel a group there is another way (depthwise_weight_grad.c). */
#include "../loops/loops.h"
#include "narrow.h"

#define DEPTH 256     /* patches laid out at a time */
#define BLOCK 1024    /* columns, channels times taps, of one product, at most, */
#define SOME 256      /* and at least, to make ITEMS of them */
#define ITEMS 8       /* products, if sums are long enough to be cut */
#define IN_ROWS 128   /* outputs of a group: patches are the rows of a product */
#define SLICE 1024    /* patches that are worth sums of their own */
#define IN_PLACE 128  /* patches evenly apart that are worth a product */
#define FEW_OUTPUTS 4 /* of a group with one channel: there is little to gain from products */

/* Sums of one (slice, group, block of channels) each, (outputs, columns), or turned; columns are (channel, tap), or
 * (tap, channel) where channels lie side by side. */
typedef struct {
    struct cpu_conv conv;
    const dt_array *x, *grad, *out;
    dt_dtype compute;
    int64_t itemsize, size; /* of an element, of a sum */
    int64_t outputs, channels, taps, groups;
    int64_t block, blocks, slices; /* channels of one, and how many */
    int64_t patches;               /* in all */
    int64_t grad_run, x_run;       /* patches whose places lie evenly apart; 0: laid out */
    int64_t grad_step, x_step;     /* from one to the next */
    bool lines, grad_lines;        /* channels side by side */
    bool turned;                   /* sums */
    char *sums;                    /* or NULL: made in the result */
} weight_job;

static int64_t
columns_of(const weight_job *job, int64_t block)
{
    return CPU_MIN(job->block, job->channels - block * job->block) * job->taps;
}

/* Where the sums of an item begin, among all or in the result. */
static char *
sums_of(const weight_job *job, int64_t slice, int64_t group, int64_t block)
{
    const int64_t row = job->channels * job->taps, first = block * job->block;
    if (job->sums == NULL) {
        const int64_t *strides = job->out->strides;
        return (char *)dt_array_data(job->out) + (group * job->outputs * strides[0] + first * strides[1]) * job->size;
    }
    return job->sums + ((slice * job->groups + group) * row + first * job->taps) * job->outputs * job->size;
}

#define DT_EACH "../cpu/conv/weight_grad_dtype.inc"
#include "../../core/each_dtype.inc"
#undef DT_EACH

#define BY_DTYPE(name, dtype)                                                                                          \
    ((dtype) == DT_FLOAT16    ? name##_FLOAT16                                                                         \
     : (dtype) == DT_BFLOAT16 ? name##_BFLOAT16                                                                        \
     : (dtype) == DT_FLOAT32  ? name##_FLOAT32                                                                         \
                              : name##_FLOAT64)

/* How many of the pixels of images, (N, .., H, W), lie evenly apart, and how far. */
static int64_t
even_run(const dt_array *a, int64_t *step)
{
    const int64_t *shape = a->shape, *strides = a->strides, plane = shape[2] * shape[3];
    *step = strides[shape[3] > 1 ? 3 : shape[2] > 1 ? 2 : 0];
    if (shape[2] > 1 && shape[3] > 1 && strides[2] != shape[3] * *step) {
        return 0;
    }
    return shape[0] == 1 || strides[0] == plane * *step ? shape[0] * plane : plane;
}

/* Whether patches are the image's pixels, one for one. */
static bool
is_plain(const dt_array *x, const struct cpu_conv *conv)
{
    bool plain = conv->kernel[0] * conv->kernel[1] == 1;
    for (int i = 0; i < 2; i++) {
        plain = plain && conv->pad[i] == 0 && conv->result[i] == x->shape[2 + i] &&
                (conv->stride[i] == 1 || conv->result[i] == 1);
    }
    return plain;
}

/* Where patch t stands, in an array of even runs. */
static int64_t
place_of(const dt_array *a, int64_t run, int64_t step, int64_t t)
{
    return run == 0 ? 0 : t / run * a->strides[0] + t % run * step;
}

/* One product: patches [t, t + count), of which `laid` and `grads` have room for as many as are not read in place. */
static dt_status
add_product(const weight_job *job, int64_t group, int64_t block, int64_t t, int64_t count, bool first, char *laid,
            char *grads, char *sums, dt_error *err)
{
    const int64_t columns = columns_of(job, block);
    const int64_t x_from = (group * job->channels + block * job->block) * job->conv.x_channel;
    const int64_t grad_from = group * job->outputs * job->grad->strides[1];
    const char *x = (const char *)dt_array_data(job->x) + x_from * job->itemsize;
    const char *grad = (const char *)dt_array_data(job->grad) + grad_from * job->itemsize;
    cpu_gemm_args g = {
        .dtype = job->compute,
        .m = job->outputs,
        .n = columns,
        .k = count,
        .alpha = 1,
        .beta = first ? 0 : 1,
        .a = grads,
        .b = laid,
        .c = sums,
        .a_row = job->grad_lines ? 1 : count,
        .a_column = job->grad_lines ? job->outputs : 1,
        .b_row = job->lines ? columns : 1,
        .b_column = job->lines ? 1 : count,
        .c_row = job->sums == NULL ? job->out->strides[0]
                 : job->turned     ? 1
                                   : columns,
        .c_column = job->turned ? job->outputs : 1,
    };
    if (job->grad_run > 0) {
        g.a = grad + place_of(job->grad, job->grad_run, job->grad_step, t) * job->itemsize;
        g.a_row = job->grad->strides[1];
        g.a_column = job->grad_step;
    } else {
        BY_DTYPE(lay_grad, job->x->dtype)(job, grad, grads, t, count);
    }
    if (job->x_run > 0) {
        g.b = x + place_of(job->x, job->x_run, job->x_step, t) * job->itemsize;
        g.b_row = job->x_step;
        g.b_column = job->conv.x_channel;
    } else {
        BY_DTYPE(lay_patches, job->x->dtype)(job, x, laid, t, count, columns / job->taps);
    }
    return cpu_gemm(&g, err);
}

static dt_status
run_item(const weight_job *job, int64_t item, dt_error *err)
{
    const int64_t slice = item % job->slices, block = item / job->slices % job->blocks;
    const int64_t group = item / job->slices / job->blocks, columns = columns_of(job, block);
    const int64_t begin = job->patches * slice / job->slices, end = job->patches * (slice + 1) / job->slices;
    const bool in_place = job->x_run > 0 && job->grad_run > 0;
    const int64_t most = in_place ? INT64_MAX : DEPTH, room = CPU_MIN(most, end - begin);
    const size_t laid = job->x_run > 0 ? 0 : (size_t)(room * columns * job->size);
    const size_t grads = job->grad_run > 0 ? 0 : (size_t)(room * job->outputs * job->size);
    char *buffer = in_place ? NULL : dt_large_new(laid + grads);
    dt_status rc = DT_OK;
    if (buffer == NULL && !in_place) {
        return dt_fail_nomem(err, laid + grads);
    }
    for (int64_t t = begin, count; t < end && rc == DT_OK; t += count) {
        count = CPU_MIN(most, end - t);
        count = job->x_run > 0 ? CPU_MIN(count, job->x_run - t % job->x_run) : count;
        count = job->grad_run > 0 ? CPU_MIN(count, job->grad_run - t % job->grad_run) : count;
        rc = add_product(job, group, block, t, count, t == begin, buffer, buffer + laid,
                         sums_of(job, slice, group, block), err);
    }
    dt_large_free(buffer);
    return rc;
}

static dt_status
run_items(void *ctx, int64_t begin, int64_t end, dt_error *err)
{
    const weight_job *job = ctx;
    for (int64_t item = begin; item < end; item++) {
        DT_TRY(run_item(job, item, err));
    }
    return DT_OK;
}

/* Sums [begin, end) of all slices. */
static void
join_slices(void *ctx, int64_t begin, int64_t end)
{
    const weight_job *job = ctx;
    const int64_t slice = job->groups * job->outputs * job->channels * job->taps;
    for (int64_t from = slice; from < job->slices * slice; from += slice) {
        for (int64_t i = begin; i < end; i++) {
            if (job->size == 8) {
                ((double *)(void *)job->sums)[i] += ((const double *)(const void *)job->sums)[from + i];
            } else {
                ((float *)(void *)job->sums)[i] += ((const float *)(const void *)job->sums)[from + i];
            }
        }
    }
}

/* Outputs [begin, end) of all groups, rounded once. */
static void
put_weights(void *ctx, int64_t begin, int64_t end)
{
    const weight_job *job = ctx;
    for (int64_t k = begin; k < end; k++) {
        BY_DTYPE(put_weight, job->x->dtype)(job, k);
    }
}

/* Whether sums, in their order, are an output's weight as it lies in memory. */
static bool
sums_are_weights(const weight_job *job)
{
    const int64_t *strides = job->out->strides, *shape = job->out->shape, tap = job->lines ? job->channels : 1;
    const bool whole = !job->lines || job->taps == 1 || job->blocks == 1;
    return whole && (job->channels == 1 || strides[1] == (job->lines ? 1 : job->taps)) &&
           (shape[2] == 1 || strides[2] == shape[3] * tap) && (shape[3] == 1 || strides[3] == tap);
}

static dt_status
run_products(weight_job *job, dt_error *err)
{
    const bool plain = job->compute == (dt_dtype)job->x->dtype;
    const int64_t run = even_run(job->grad, &job->grad_step), x_run = even_run(job->x, &job->x_step);
    job->grad_run = plain && (run >= IN_PLACE || run == job->patches) ? run : 0;
    job->x_run = plain && is_plain(job->x, &job->conv) && (x_run >= IN_PLACE || x_run == job->patches) ? x_run : 0;
    job->lines = job->conv.x_channel == 1 && job->channels > 1;
    job->grad_lines = job->grad->strides[1] == 1 && job->outputs > 1;
    const int64_t columns = job->channels * job->taps, least = CPU_MIN(columns / SOME, ITEMS);
    job->blocks = CPU_MIN(CPU_MAX(CPU_MAX(CPU_CEIL_DIV(columns, BLOCK), least), 1), job->channels);
    job->block = CPU_CEIL_DIV(job->channels, job->blocks);
    job->blocks = CPU_CEIL_DIV(job->channels, job->block);
    const int64_t products = job->groups * job->blocks;
    job->slices = CPU_MAX(CPU_MIN(ITEMS / products, job->patches / SLICE), 1);
    const bool direct = job->slices == 1 && plain && sums_are_weights(job);
    job->turned = !direct && job->outputs <= IN_ROWS;
    const int64_t sums = job->groups * job->outputs * columns;
    const size_t nbytes = direct ? 0 : (size_t)(job->slices * sums * job->size);
    job->sums = direct ? NULL : dt_large_new(nbytes);
    if (job->sums == NULL && !direct) {
        return dt_fail_nomem(err, nbytes);
    }
    const int64_t items = products * job->slices, work = CPU_MAX(sums / products * job->patches / job->slices, 1);
    const dt_status rc = cpu_try_parallel(items, CPU_CEIL_DIV(CPU_GRAIN, work), run_items, job, err);
    if (rc == DT_OK && !direct) {
        cpu_parallel(sums, CPU_CEIL_DIV(CPU_GRAIN, job->slices), join_slices, job);
        cpu_parallel(job->groups * job->outputs, CPU_CEIL_DIV(CPU_GRAIN, columns), put_weights, job);
    }
    dt_large_free(job->sums);
    return rc;
}

/* ---------------------------------------------------------------- the slot */

dt_status
cpu_conv2d_weight_grad(const dt_array *x, const dt_array *grad, const dt_conv2d_params *params, dt_array *out,
                       bool *made, dt_error *err)
{
    if (dt_array_numel(grad) == 0) {
        const dt_scalar zero = dt_scalar_float(0);
        return cpu_fill(out, &zero, err);
    }
    if (cpu_is_narrow(x, out, params, grad)) {
        return cpu_narrow_weight_grad(x, grad, params, out, made, err);
    }
    weight_job job = {
        .conv = conv_geometry(x, out, grad, params),
        .x = x,
        .grad = grad,
        .out = out,
        .compute = cpu_computed((dt_dtype)x->dtype),
        .itemsize = (int64_t)dt_itemsize((dt_dtype)x->dtype),
        .outputs = out->shape[0] / params->groups,
        .channels = out->shape[1],
        .taps = out->shape[2] * out->shape[3],
        .groups = params->groups,
        .patches = grad->shape[0] * grad->shape[2] * grad->shape[3],
    };
    job.size = (int64_t)dt_itemsize(job.compute);
    if (job.channels == 1 && job.outputs < FEW_OUTPUTS) {
        bool found;
        DT_TRY(cpu_depthwise_weight_grad(x, grad, &job.conv, job.outputs, out, &found, err));
        if (found) {
            return DT_OK;
        }
    }
    return run_products(&job, err);
}
