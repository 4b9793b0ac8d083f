/* phases.h: the phases of a gradient's convolutions: what a stride cuts the input into. */
#ifndef DT_CPU_PHASES_H
#define DT_CPU_PHASES_H

#include "conv.h"

/* Entries of one phase along a dimension, `stride` apart from `first` on, and the taps that reach them, `step` apart
 * from `tap` on: a convolution with that dilation and padding. */
typedef struct {
    int64_t first, count, stride, tap, step, taps, dilation, pad;
} cpu_phase;

/* The phase along dimension i (0: rows) that begins with entry `first`, of `size` entries and `kernel` taps. */
cpu_phase cpu_find_phase(const dt_conv2d_params *params, int i, int64_t stride, int64_t first, int64_t size,
                         int64_t kernel);

/* Some phases along a dimension, of as many taps each. */
typedef struct {
    const cpu_phase *f;
    int64_t count;
} cpu_phases;

/* Begins a convolution of grad `pad` places before it along dimension i, or as many after where that is negative. */
void cpu_begin_phase(int64_t pad, int i, dt_conv2d_params *inner, dt_array *grad);

/* The weight's taps, turned over, as (groups * channels of one, outputs of one, rows, columns): of a phase and one
 * group as a view whose steps between taps are negative, whose storage borrows the weight's memory; or of some phases,
 * one after the other in the first dimension, as a copy to that of `storage`. */
dt_array cpu_turned_view(const dt_array *weight, const cpu_phase f[2], dt_storage *storage);
dt_array cpu_turned_copy(const dt_array *weight, const cpu_phases sides[2], int64_t groups, dt_storage *storage);

/* All phases as one convolution, where they have the same number of taps and that is less work; *made says whether. */
dt_status cpu_conv2d_joint_phases(const dt_array *grad, const dt_array *weight, const dt_conv2d_params *params,
                                  const int64_t stride[2], bool lines, bool joined, dt_array *out, bool *made,
                                  dt_error *err);

#endif
