/* conv_plan.h: cuDNN graphs for a convolution, planned once and cached (conv_plan.c). */
#ifndef DT_CUDA_CONV_PLAN_H
#define DT_CUDA_CONV_PLAN_H

#include "cuda.h"

/* Everything that a plan depends on, in 64-bit words; shapes are N C H W, strides in elements. */
typedef struct {
    int64_t dtype, channels_last, has_bias, alignment;
    int64_t x[4], weight[4], out[4];
    int64_t x_strides[4], weight_strides[4], out_strides[4];
    int64_t padding[2], stride[2], dilation[2];
} conv_key;

typedef struct {
    CUdeviceptr x, weight, bias, out;
} conv_pointers;

/* Sends the convolution to the device. bias_apart: no engine adds the bias too, so the caller must. */
dt_status cuda_conv_run(cuda_device *device, const conv_key *key, const conv_pointers *pointers, bool *bias_apart,
                        dt_error *err) DT_MUST_CHECK;

#endif
