/* phases.c: where the phases of a gradient's convolutions begin, and their taps. */
#include "phases.h"

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

/* Entry h gets from result p by tap r where
 * h + before = p * stride + r * dilation. */
cpu_phase
cpu_find_phase(const dt_conv2d_params *params, int i, int64_t stride, int64_t first, int64_t size, int64_t kernel)
{
    const int64_t before = params->pad_before[i], dilation = params->dilation[i];
    const int64_t common = common_divisor(stride, dilation);
    const int64_t index = (first + before % stride) % stride; /* between two steps */
    cpu_phase f = {.first = first, .stride = stride, .step = stride / common, .dilation = dilation / common};
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

typedef struct {
    const dt_array *weight;
    const cpu_phase *f;
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
    const cpu_phase *f = job->f;
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

dt_array
cpu_turned_view(const dt_array *weight, const cpu_phase f[2], dt_storage *storage)
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

dt_array
cpu_turned_copy(const dt_array *weight, const cpu_phase f[2], int64_t groups, dt_storage *storage)
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
