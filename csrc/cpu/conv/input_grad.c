/* input_grad.c: what the gradient of a convolution's result gives its input: convolutions of that gradient with the
 * weight turned over. A stride cuts the input into phases: entries with the same place between two steps get the same
 * taps, and those of a phase are the result of one convolution of stride 1. Where planes are small beside the weight,
 * all images are one product with channels side by side, and copied to their planes: a product of each image would pack
 * the weight again. Planes of the commonest depthwise convolutions with a stride of 2 are made in one go. */
#include "conv.h"

#define COPIED_NUMBERS 2 /* of the weight, take as long to pack as one of the input to copy */

/* Entries of one phase along a dimension, `stride` apart from `first` on, and the taps that reach them, `step` apart
 * from `tap` on: a convolution with that dilation and padding. */
typedef struct {
    int64_t first, count, stride, tap, step, taps, dilation, pad;
} phase;

static int64_t
common_divisor(int64_t a, int64_t b)
{
    while (b != 0) {
        const int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* The phase along dimension i (0: rows) that begins with entry `first`. Entry h gets from result p by tap r where
 * h + before = p * stride + r * dilation. */
static phase
find_phase(const dt_conv2d_params *params, int i, int64_t stride, int64_t first, int64_t size, int64_t kernel)
{
    const int64_t before = params->pad_before[i], dilation = params->dilation[i];
    const int64_t common = common_divisor(stride, dilation);
    const int64_t index = (first + before % stride) % stride; /* between two steps */
    phase f = {.first = first, .stride = stride, .step = stride / common, .dilation = dilation / common};
    f.count = first < size ? (size - 1 - first) / stride + 1 : 0;
    while (f.tap < kernel && f.tap < f.step && f.tap * dilation % stride != index) {
        f.tap++;
    }
    if (f.tap < kernel && f.tap < f.step) {
        f.taps = (kernel - 1 - f.tap) / f.step + 1;
        f.pad = (f.taps - 1) * f.dilation - ((f.first + before - index) - (f.tap * dilation - index)) / stride;
    }
    return f;
}

/* The weight's taps of a phase, turned over, as (groups * channels of one, outputs of one, rows, columns). */
typedef struct {
    const dt_array *weight;
    const phase *f;
    char *to;
    int64_t groups;
} turn_job;

#define TURN(type)                                                                                                     \
    for (int64_t k = 0; k < outputs; k++) {                                                                            \
        const type *from = (const type *)dt_array_data(w) + (group * outputs + k) * w->strides[0] +                    \
                           input % channels * w->strides[1] + start;                                                   \
        for (int64_t r = 0; r < f[0].taps; r++) {                                                                      \
            for (int64_t s = 0; s < f[1].taps; s++) {                                                                  \
                ((type *)(void *)job->to)[((input * outputs + k) * f[0].taps + r) * f[1].taps + s] =                   \
                    from[-r * along[0] - s * along[1]];                                                                \
            }                                                                                                          \
        }                                                                                                              \
    }

static void
turn_weight(void *ctx, int64_t begin, int64_t end)
{
    const turn_job *job = ctx;
    const dt_array *w = job->weight;
    const phase *f = job->f;
    const int64_t channels = w->shape[1], outputs = w->shape[0] / job->groups;
    const int64_t along[2] = {f[0].step * w->strides[2], f[1].step * w->strides[3]};
    const int64_t start = (f[0].tap + (f[0].taps - 1) * f[0].step) * w->strides[2] +
                          (f[1].tap + (f[1].taps - 1) * f[1].step) * w->strides[3];
    for (int64_t input = begin; input < end; input++) {
        const int64_t group = input / channels;
        switch (dt_itemsize((dt_dtype)w->dtype)) {
        case 2:
            TURN(uint16_t)
            break;
        case 4:
            TURN(uint32_t)
            break;
        default:
            TURN(uint64_t)
        }
    }
}

/* The same without a copy, for one group: steps between taps are negative. */
static dt_array
turned_view(const dt_array *weight, const phase f[2], dt_storage *storage)
{
    dt_array view = *weight;
    view.storage = storage;
    view.shape[0] = weight->shape[1];
    view.shape[1] = weight->shape[0];
    view.strides[0] = weight->strides[1];
    view.strides[1] = weight->strides[0];
    int64_t last = 0;
    for (int i = 0; i < 2; i++) {
        view.shape[2 + i] = f[i].taps;
        view.strides[2 + i] = -f[i].step * weight->strides[2 + i];
        last += (f[i].tap + (f[i].taps - 1) * f[i].step) * weight->strides[2 + i];
    }
    view.offset += last * (int64_t)dt_itemsize((dt_dtype)weight->dtype);
    return view;
}

static dt_status
clear(dt_array *out, dt_error *err)
{
    const dt_scalar zero = dt_scalar_float(0);
    return cpu_fill(out, &zero, err);
}

/* The same in memory of its own. */
static dt_array
turned_copy(const dt_array *weight, const phase f[2], int64_t groups, dt_storage *storage)
{
    turn_job turn = {weight, f, storage->data, groups};
    const int64_t outputs = weight->shape[0] / groups, taps = f[0].taps * f[1].taps;
    const dt_array turned = {
        .storage = storage,
        .dtype = weight->dtype,
        .ndim = 4,
        .shape = {groups * weight->shape[1], outputs, f[0].taps, f[1].taps},
        .strides = {outputs * taps, taps, f[1].taps, 1},
    };
    cpu_parallel(turned.shape[0], CPU_CEIL_DIV(CPU_GRAIN, outputs * taps), turn_weight, &turn);
    return turned;
}

/* Memory for the taps of a phase, with more than one group, and for its entries, or NULL where they are made in place;
 * lines: with their channels side by side. */
typedef struct {
    char *weights, *entries;
    bool lines;
} phase_room;

static dt_status
run_phase(const dt_array *grad, const dt_array *weight, const dt_conv2d_params *params, const phase f[2],
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
        inner.pad_before[i] = CPU_MAX(f[i].pad, 0);
        const int64_t skipped = CPU_MIN(CPU_MAX(-f[i].pad, 0), g.shape[2 + i]);
        g.offset += skipped * g.strides[2 + i] * itemsize;
        g.shape[2 + i] -= skipped;
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
    const dt_array turned =
        copied ? turned_copy(weight, f, params->groups, &storage) : turned_view(weight, f, &storage);
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

static void
spread_part(void *ctx, int64_t begin, int64_t end)
{
    const conv_input_grad *job = ctx;
    cpu_gemm_parts(job->rows.dtype)->spread_planes(job, begin, end);
}

/* Whether the convolution is depthwise, of 3 x 3, with a stride of 2, and what of its planes is needed at a time can be
 * held. */
static bool
is_spread(const dt_array *grad, const dt_array *weight, const dt_conv2d_params *params, const dt_array *out)
{
    bool found = weight->shape[1] == 1 && weight->shape[0] == params->groups && out->strides[1] != 1;
    for (int i = 0; i < 2; i++) {
        found = found && weight->shape[2 + i] == 3 && params->dilation[i] == 1 && params->stride[i] == 2 &&
                params->pad_before[i] >= 0;
    }
    const int64_t most = SPREAD_LINE - SPREAD_BEFORE - 3 * DEPTHWISE_LANES; /* a vector may begin in the row */
    return found && grad->shape[3] <= most && out->shape[3] / 2 <= most - params->pad_before[1] / 2;
}

static void
spread_planes(const dt_array *grad, const dt_array *weight, const dt_conv2d_params *params, const dt_array *out)
{
    conv_input_grad job = {
        .rows =
            {
                .conv = conv_geometry(out, weight, grad, params),
                .dtype = (dt_dtype)grad->dtype,
                .weight = dt_array_data(weight),
                .channels = out->shape[1],
                .out_image = grad->strides[0],
                .out_channel = grad->strides[1],
                .out_row = grad->strides[2],
                .out_column = grad->strides[3],
            },
        .grad = dt_array_data(grad),
        .x = dt_array_data(out),
    };
    const int64_t work = CPU_MAX(out->shape[2] * out->shape[3] * 3, 1);
    cpu_parallel(out->shape[0] * out->shape[1], CPU_CEIL_DIV(CPU_GRAIN, work), spread_part, &job);
}

dt_status
cpu_conv2d_input_grad(const dt_array *grad, const dt_array *weight, const dt_conv2d_params *params, dt_array *out,
                      bool *made, dt_error *err)
{
    (void)made;
    if (dt_array_numel(grad) == 0) {
        return clear(out, err);
    }
    if (is_spread(grad, weight, params, out)) {
        spread_planes(grad, weight, params, out);
        return DT_OK;
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
        const phase f[2] = {
            find_phase(params, 0, stride[0], i / phases[1], out->shape[2], weight->shape[2]),
            find_phase(params, 1, stride[1], i % phases[1], out->shape[3], weight->shape[3]),
        };
        rc = run_phase(grad, weight, params, f, &room, out, err);
    }
    dt_large_free(buffer);
    return rc;
}
