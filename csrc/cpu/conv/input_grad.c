/* input_grad.c: what the gradient of a convolution's result gives its input: convolutions of that gradient with the
 * weight turned over. A stride cuts the input into phases: entries with the same place between two steps get the same
 * taps, and those of a phase are the result of one convolution of stride 1. Where planes are small beside the weight,
 * all images are one product with channels side by side, and copied to their planes: a product of each image would pack
 * the weight again. Depthwise convolutions with a stride mostly write a row in one go: phases would come back to it. */
#include "narrow.h"
#include "phases.h"

#define COPIED_NUMBERS 2 /* of the weight, take as long to pack as one of the input to copy */

static dt_status
clear(dt_array *out, dt_error *err)
{
    const dt_scalar zero = dt_scalar_float(0);
    return cpu_fill(out, &zero, err);
}

/* Memory for the taps of a phase, with more than one group, and for its entries, or NULL where they are made in place;
 * lines: with their channels side by side. */
typedef struct {
    char *weights, *entries;
    bool lines;
} phase_room;

static dt_status
run_phase(const dt_array *grad, const dt_array *weight, const dt_conv2d_params *params, const cpu_phase f[2],
          const phase_room *room, dt_array *out, dt_error *err)
{
    const int64_t itemsize = (int64_t)dt_itemsize((dt_dtype)grad->dtype), inputs = out->shape[1];
    dt_array part = *out, g = *grad;
    dt_conv2d_params inner = {.stride = {1, 1}, .groups = params->groups};
    for (int i = 0; i < 2; i++) {
        part.offset += f[i].first * out->strides[2 + i] * itemsize;
        part.shape[2 + i] = f[i].count;
        part.strides[2 + i] *= f[i].stride;
        inner.dilation[i] = f[i].dilation;
        cpu_begin_phase(f[i].pad, i, &inner, &g);
    }
    if (f[0].count == 0 || f[1].count == 0) {
        return DT_OK;
    }
    if (f[0].taps == 0 || f[1].taps == 0 || g.shape[2] == 0 || g.shape[3] == 0) {
        return clear(&part, err);
    }
    const bool copied = params->groups > 1;
    /* not the weight's own storage: what is packed of it here is not kept */
    dt_storage storage = {.data = copied ? room->weights : weight->storage->data}, entries = {.data = room->entries};
    const cpu_phases one[2] = {{&f[0], 1}, {&f[1], 1}};
    const dt_array turned =
        copied ? cpu_turned_copy(weight, one, params->groups, &storage) : cpu_turned_view(weight, f, &storage);
    if (room->entries == NULL) {
        return cpu_conv2d(&g, &turned, NULL, &inner, &part, err);
    }
    dt_array result = part;
    result.storage = &entries;
    result.offset = 0;
    result.strides[3] = room->lines ? inputs : 1;
    result.strides[2] = f[1].count * result.strides[3];
    result.strides[1] = room->lines ? 1 : f[0].count * f[1].count;
    result.strides[0] = inputs * f[0].count * f[1].count;
    DT_TRY(cpu_conv2d(&g, &turned, NULL, &inner, &result, err));
    return cpu_copy(&result, &part, false, err);
}

enum { SPREAD_PLANES, SPREAD_ROWS, SPREAD_WAYS };

typedef struct {
    const conv_input_grad *job;
    int way;
} spread_work;

static void
spread_part(void *ctx, int64_t begin, int64_t end)
{
    const spread_work *work = ctx;
    cpu_gemm_parts(work->job->rows.dtype)->spread[work->way](work->job, begin, end);
}

/* How a depthwise convolution with a stride is done in one go: with channels side by side, or if it is of 3 x 3 with a
 * stride of 2 and what of its planes is needed at a time can be held. */
static int
spread_way(const dt_array *grad, const dt_array *weight, const dt_conv2d_params *params, const dt_array *out)
{
    bool found = weight->shape[1] == 1 && weight->shape[0] == params->groups, planes = out->strides[1] != 1;
    int64_t taps = 1;
    for (int i = 0; i < 2; i++) {
        const int64_t kernel = weight->shape[2 + i], stride = params->stride[i];
        found = found && params->dilation[i] == 1 && params->pad_before[i] >= 0;
        planes = planes && kernel == 3 && stride == 2;
        taps *= CPU_MIN((kernel - 1) / stride + 1, SPREAD_TAPS + 1); /* the sum of both may be too large */
    }
    const bool strided = params->stride[0] > 1 || params->stride[1] > 1;
    if (found && strided && out->strides[1] == 1 && grad->strides[1] == 1 && out->shape[1] >= DEPTHWISE_LANES) {
        return taps <= SPREAD_TAPS ? SPREAD_ROWS : SPREAD_WAYS;
    }
    const int64_t most = SPREAD_LINE - SPREAD_BEFORE - 3 * DEPTHWISE_LANES; /* a vector may begin in the row */
    const bool held = grad->shape[3] <= most && out->shape[3] / 2 <= most - params->pad_before[1] / 2;
    return found && planes && held ? SPREAD_PLANES : SPREAD_WAYS;
}

static dt_status
spread(int way, const dt_array *grad, const dt_array *weight, const dt_conv2d_params *params, const dt_array *out,
       dt_error *err)
{
    conv_input_grad job = {
        .rows =
            {
                .conv = conv_geometry(out, weight, grad, params),
                .dtype = (dt_dtype)grad->dtype,
                .weight = dt_array_data(weight),
                .channels = out->shape[1],
                .outputs = out->shape[1],
                .out_image = grad->strides[0],
                .out_channel = grad->strides[1],
                .out_row = grad->strides[2],
                .out_column = grad->strides[3],
            },
        .grad = dt_array_data(grad),
        .x = dt_array_data(out),
    };
    if (way == SPREAD_ROWS) {
        DT_TRY(cpu_pack_taps(&job.rows, err));
    }
    const int64_t row = out->shape[3] * 3, channels = out->shape[1], height = out->shape[2];
    const int64_t items = out->shape[0] * (way == SPREAD_ROWS ? height : channels);
    const int64_t work = CPU_MAX(row * (way == SPREAD_ROWS ? channels : height), 1);
    cpu_parallel(items, CPU_CEIL_DIV(CPU_GRAIN, work), spread_part, &(spread_work){&job, way});
    dt_free(job.rows.packed);
    return DT_OK;
}

/* What is below, with the parameters of a convolution. */
static dt_status
input_grad(const dt_array *grad, const dt_array *weight, const dt_array *bias, const dt_conv2d_params *params,
           dt_array *out, dt_error *err)
{
    bool made = true;
    (void)bias;
    return cpu_conv2d_input_grad(grad, weight, params, out, &made, err);
}

dt_status
cpu_conv2d_input_grad(const dt_array *grad, const dt_array *weight, const dt_conv2d_params *params, dt_array *out,
                      bool *made, dt_error *err)
{
    (void)made;
    if (dt_array_numel(grad) == 0) {
        return clear(out, err);
    }
    if (cpu_is_narrow(grad, weight, params, out)) {
        return cpu_by_lines(input_grad, grad, weight, NULL, params, out, err);
    }
    const int way = spread_way(grad, weight, params, out);
    if (way < SPREAD_WAYS) {
        return spread(way, grad, weight, params, out, err);
    }
    int64_t stride[2], phases[2], most = out->shape[0] * out->shape[1];
    for (int i = 0; i < 2; i++) {
        stride[i] = grad->shape[2 + i] == 1 ? 1 : params->stride[i]; /* a step that is never taken */
        phases[i] = CPU_MIN(stride[i], out->shape[2 + i]);           /* the others have no entries */
        most *= CPU_CEIL_DIV(out->shape[2 + i], stride[i]);
    }
    const bool lines = out->strides[1] == 1 && out->shape[1] > 1, strided = stride[0] > 1 || stride[1] > 1;
    const bool joined = dt_array_numel(weight) / COPIED_NUMBERS > most / CPU_MAX(out->shape[0] - 1, 1);
    /* channels side by side are long enough to be written apart, if no product makes them */
    const bool depthwise =
        lines && grad->strides[1] == 1 && weight->shape[1] == 1 && weight->shape[0] == params->groups;
    const bool apart = (strided && !depthwise) || (joined && !lines && out->shape[0] > 1);
    bool all;
    DT_TRY(cpu_conv2d_joint_phases(grad, weight, params, stride, lines, joined, out, &all, err));
    if (all) {
        return DT_OK;
    }
    const size_t itemsize = dt_itemsize((dt_dtype)grad->dtype);
    const size_t turned = params->groups > 1 ? (size_t)dt_array_numel(weight) * itemsize : 0;
    const size_t nweights = (turned + 63) & ~(size_t)63, nbytes = nweights + (apart ? (size_t)most * itemsize : 0);
    char *buffer = nbytes > 0 ? dt_large_new(nbytes) : NULL;
    if (buffer == NULL && nbytes > 0) {
        return dt_fail_nomem(err, nbytes);
    }
    const phase_room room = {buffer, apart ? buffer + nweights : NULL, lines || joined};
    dt_status rc = DT_OK;
    for (int64_t i = 0; i < phases[0] * phases[1] && rc == DT_OK; i++) {
        const cpu_phase f[2] = {
            cpu_find_phase(params, 0, stride[0], i / phases[1], out->shape[2], weight->shape[2]),
            cpu_find_phase(params, 1, stride[1], i % phases[1], out->shape[3], weight->shape[3]),
        };
        rc = run_phase(grad, weight, params, f, &room, out, err);
    }
    dt_large_free(buffer);
    return rc;
}
