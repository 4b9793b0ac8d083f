/* describe.c: what cuDNN plans for a device that need not be there (cuDNN 9.8 and later): the graphs and the
 * choice of engines are those that run. What is a product of matrices is not planned. */
#include <string.h>

#include "plan.h"

dt_status
cuda_describe_device(const char *json, size_t length, cudnnBackendDescriptor_t *out, dt_error *err)
{
    CUDA_TRY(NULL, cudnnBackendCreateDescriptor, (CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, out));
    CONV_SET(NULL, *out, DEVICEPROP_JSON_REPRESENTATION, CHAR, (int64_t)length, json);
    CUDA_TRY(NULL, cudnnBackendFinalize, (*out));
    return DT_OK;
}

/* Of a dense array with the layout. */
static dt_array
dense(dt_dtype dtype, const int64_t shape[4], bool channels_last)
{
    dt_array a = {.dtype = (uint8_t)dtype, .ndim = 4};
    memcpy(a.shape, shape, 4 * sizeof(int64_t));
    cuda_conv_strides(a.shape, channels_last, a.strides);
    return a;
}

dt_status
cuda_conv_describe(const char *json, size_t length, dt_dtype dtype, const int64_t x[4], const int64_t weight[4],
                   bool has_bias, const dt_conv2d_params *params, bool channels_last, int kind,
                   cuda_conv_description *out, dt_error *err)
{
    out->out[0] = x[0];
    out->out[1] = weight[0];
    for (int i = 0; i < 2; i++) {
        int64_t reach = params->dilation[i] * (weight[2 + i] - 1) + 1;
        out->out[2 + i] = (x[2 + i] + params->pad_before[i] + params->pad_after[i] - reach) / params->stride[i] + 1;
    }
    const dt_array arrays[] = {dense(dtype, x, channels_last), dense(dtype, weight, channels_last),
                               dense(dtype, out->out, channels_last)};
    conv_planner planner = {NULL, NULL, NULL};
    conv_plan *p = NULL;
    conv_key key;
    out->product = kind == CONV_FORWARD ? cuda_conv_is_product(&arrays[0], &arrays[1], params, &arrays[2])
                                        : cuda_conv_grad_is_product(kind, &arrays[0], &arrays[1], params, &arrays[2]);
    if (out->product) {
        return DT_OK;
    }
    cuda_conv_key(&arrays[0], &arrays[1], has_bias, params, &arrays[2], channels_last, &key);
    key.kind = kind;
    DT_TRY(cuda_api_need(DT_LIBRARY_CUDNN, err));
    dt_status rc = cuda_describe_device(json, length, &planner.properties, err);
    if (rc == DT_OK) {
        const conv_wish wish = {cuda_conv_wanted(&key), 0, cuda_conv_room(NULL, &key), false};
        rc = cuda_conv_plan_new(&planner, &key, &wish, &p, err);
    }
    if (rc == DT_OK) {
        out->engine = p->engine;
        out->workspace = p->workspace;
        out->notes = p->notes;
        out->behaviors = p->behaviors;
        out->candidate = p->candidate;
        out->unloadable = p->unloadable;
        out->bias = (p->fused & CONV_BIAS) != 0;
        out->activation = (p->fused & CONV_RELU) != 0;
        cuda_conv_destroy(p);
    }
    if (planner.properties != NULL) {
        (void)cu.cudnnBackendDestroyDescriptor(planner.properties);
    }
    return rc;
}
