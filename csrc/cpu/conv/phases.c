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

/* Entry h gets from result p by tap r where h + before = p * stride + r * dilation. */
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

void
cpu_begin_phase(int64_t pad, int i, dt_conv2d_params *inner, dt_array *grad)
{
    const int64_t skipped = CPU_MIN(CPU_MAX(-pad, 0), grad->shape[2 + i]);
    inner->pad_before[i] = CPU_MAX(pad, 0);
    grad->offset += skipped * grad->strides[2 + i] * (int64_t)dt_itemsize((dt_dtype)grad->dtype);
    grad->shape[2 + i] -= skipped;
}

typedef struct {
    const dt_array *weight;
    const cpu_phases *sides;
    char *to;
    int64_t groups;
} turn_job;

/* What stands together of an input and an output is read once, for all phases. */
#define TURN(type)                                                                                                     \
    for (int64_t k = 0; k < outputs; k++) {                                                                            \
        const type *from =                                                                                             \
            (const type *)dt_array_data(w) + (group * outputs + k) * w->strides[0] + input % channels * w->strides[1]; \
        type *to = (type *)(void *)job->to + (input * outputs + k) * taps;                                             \
        for (int64_t p = 0; p < phases; p++, to += inputs * outputs * taps) {                                          \
            const cpu_phase *y = &down->f[p / across->count], *x = &across->f[p % across->count];                      \
            for (int64_t i = 0; i < taps; i++) {                                                                       \
                const int64_t r = y->tap + (y->taps - 1 - i / x->taps) * y->step;                                      \
                const int64_t s = x->tap + (x->taps - 1 - i % x->taps) * x->step;                                      \
                to[i] = from[r * w->strides[2] + s * w->strides[3]];                                                   \
            }                                                                                                          \
        }                                                                                                              \
    }

static void
turn_inputs(void *ctx, int64_t begin, int64_t end)
{
    const turn_job *job = ctx;
    const dt_array *w = job->weight;
    const cpu_phases *down = &job->sides[0], *across = &job->sides[1];
    const int64_t channels = w->shape[1], outputs = w->shape[0] / job->groups, inputs = job->groups * channels;
    const int64_t phases = down->count * across->count, taps = down->f->taps * across->f->taps;
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
cpu_turned_copy(const dt_array *weight, const cpu_phases sides[2], int64_t groups, dt_storage *storage)
{
    turn_job turn = {weight, sides, storage->data, groups};
    const int64_t outputs = weight->shape[0] / groups, inputs = groups * weight->shape[1];
    const int64_t rows = sides[0].f->taps, columns = sides[1].f->taps, taps = rows * columns;
    const int64_t phases = sides[0].count * sides[1].count;
    const dt_array turned = {
        .storage = storage,
        .dtype = weight->dtype,
        .ndim = 4,
        .shape = {phases * inputs, outputs, rows, columns},
        .strides = {outputs * taps, taps, columns, 1},
    };
    cpu_parallel(inputs, CPU_CEIL_DIV(CPU_GRAIN, outputs * taps * phases), turn_inputs, &turn);
    return turned;
}
