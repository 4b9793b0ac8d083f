/* narrow.h: depthwise convolutions of planes with few columns. */
#ifndef DT_CPU_NARROW_H
#define DT_CPU_NARROW_H

#include "conv.h"

/* Whether a depthwise convolution of x with this weight, or its gradient, is quicker with channels side by side, as x
 * and out do not both have them. */
bool cpu_is_narrow(const dt_array *x, const dt_array *weight, const dt_conv2d_params *params, const dt_array *out);

/* What makes out of x: cpu_conv2d, or what has its parameters. */
typedef dt_status (*cpu_conv_call)(const dt_array *x, const dt_array *weight, const dt_array *bias,
                                   const dt_conv2d_params *params, dt_array *out, dt_error *err);

/* Calls it for copies of each image, and copies what it makes to its place. */
dt_status cpu_by_lines(cpu_conv_call call, const dt_array *x, const dt_array *weight, const dt_array *bias,
                       const dt_conv2d_params *params, dt_array *out, dt_error *err);

/* The gradient of the weight, by copies of all of x and grad. */
dt_status cpu_narrow_weight_grad(const dt_array *x, const dt_array *grad, const dt_conv2d_params *params, dt_array *out,
                                 bool *made, dt_error *err);

#endif
