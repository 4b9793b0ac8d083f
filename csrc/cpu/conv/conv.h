/* conv.h: a convolution's arrays as the files of this folder see them. */
#ifndef DT_CPU_CONV_H
#define DT_CPU_CONV_H

#include "depthwise.h"

static inline struct cpu_conv
conv_geometry(const dt_array *x, const dt_array *weight, const dt_array *out, const dt_conv2d_params *params)
{
    const int64_t rows = out->shape[2], columns = out->shape[3];
    return (struct cpu_conv){
        .height = x->shape[2],
        .width = x->shape[3],
        .kernel = {weight->shape[2], weight->shape[3]},
        .result = {rows, columns},
        /* a step that is never taken may be too large to count with */
        .stride = {rows == 1 ? 1 : params->stride[0], columns == 1 ? 1 : params->stride[1]},
        .pad = {params->pad_before[0], params->pad_before[1]},
        .dilation = {params->dilation[0], params->dilation[1]},
        .x_image = x->strides[0],
        .x_row = x->strides[2],
        .x_column = x->strides[3],
        .x_channel = x->strides[1],
        .weight_output = weight->strides[0],
        .weight_row = weight->strides[2],
        .weight_column = weight->strides[3],
        .weight_channel = weight->strides[1],
        .weight = params->groups == 1 ? weight->storage : NULL,
    };
}

#endif
