/* depthwise.c: conv2d with one filter for each channel, for which cuDNN has only generic engines once there is a bias.
 */
#include <string.h>

#include "../launch/launch.h"
#include "../ops/ops.h"

#define SHARES_PER_MULTIPROCESSOR 16

#define MOST 0x3fffffff /* of places in an image, which the kernel counts in 32 bits */

static bool
few_places(const dt_array *x, const dt_conv2d_params *p)
{
    for (int i = 0; i < 2; i++) {
        if (x->shape[2 + i] > MOST || p->stride[i] > MOST / 16 || p->dilation[i] > MOST / 16 ||
            p->pad_before[i] > MOST) {
            return false;
        }
    }
    return true;
}

/* Filters of a group of channels must fit the shared memory of a block. */
bool
cuda_depthwise_applies(const dt_array *x, const dt_array *weight, const dt_conv2d_params *params)
{
    int64_t channels = x->shape[1], rows = weight->shape[2], columns = weight->shape[3];
    return cuda_settings.depthwise && channels > 1 && params->groups == channels && weight->shape[0] == channels &&
           rows <= 11 && columns <= 11 && few_places(x, params);
}

/* Whether the channels at one place are vectors of width, aligned. */
static bool
has_vectors(const dt_array *a, int64_t width)
{
    return a->strides[1] == 1 && a->shape[1] % width == 0 &&
           cuda_address(a) % ((size_t)width * dt_itemsize((dt_dtype)a->dtype)) == 0 &&
           (a->strides[0] | a->strides[2] | a->strides[3]) % width == 0;
}

static int32_t
form_of(const dt_conv2d_params *p, const int64_t *kernel)
{
    int64_t stride = p->stride[0];
    if (kernel[0] != kernel[1] || p->stride[1] != stride || p->dilation[0] != 1 || p->dilation[1] != 1) {
        return K_DEPTHWISE_ANY;
    }
    if (kernel[0] == 3 && stride <= 2) {
        return stride == 1 ? K_DEPTHWISE_3X3 : K_DEPTHWISE_3X3_STEP_2;
    }
    return kernel[0] == 5 && stride == 1 ? K_DEPTHWISE_5X5 : K_DEPTHWISE_ANY;
}

/* Of all threads across channels, an eighth may have none. */
static bool
wastes(int64_t vectors, int32_t lanes)
{
    int64_t rounded = ((vectors - 1) >> lanes) + 1;
    return (rounded << lanes) - vectors > vectors / 8;
}

/* Threads across channels: up to 32 vectors of them, or few where channels are far apart and the image is small. */
static int32_t
lanes_of(const k_depthwise_args *args, bool channels_last, int width, size_t compute)
{
    int32_t lanes = 0;
    int64_t ntaps = args->kernel[0] * args->kernel[1], vectors = (args->channels - 1) / width + 1;
    while (lanes < (channels_last ? 5 : 3) && (INT64_C(1) << lanes) < vectors &&
           (channels_last || args->strips < (CUDA_THREADS >> lanes))) {
        lanes++;
    }
    while (lanes > 0 && (((ntaps * width) << lanes) * (int64_t)compute > K_DEPTHWISE_SHARED ||
                         (channels_last && wastes(vectors, lanes)))) {
        lanes--;
    }
    return lanes;
}

dt_status
cuda_depthwise(const dt_array *x, const dt_array *weight, const dt_array *bias, const dt_conv2d_params *params,
               dt_array *out, dt_error *err)
{
    cuda_device *d;
    CUfunction function;
    int64_t width = K_DEPTHWISE_WIDTH(dt_itemsize((dt_dtype)out->dtype));
    bool vectors = has_vectors(x, width) && has_vectors(out, width);
    k_depthwise_args args = {.activation = (int32_t)params->activation};
    dt_dtype dtype = (dt_dtype)out->dtype;
    DT_TRY(cuda_enter(out->storage->device.index, &d, err));
    DT_TRY(cuda_function(d, CUDA_FAMILY_OTHER, vectors ? CUDA_KERNEL_depthwise : CUDA_KERNEL_depthwise_planes, dtype,
                         &function, err));
    args.x = cuda_operand(x);
    args.weight = cuda_operand(weight);
    args.out = cuda_operand(out);
    if (bias != NULL) {
        args.bias = cuda_operand(bias);
        args.bias_stride = bias->strides[0];
    }
    args.channels = x->shape[1];
    args.shape[0] = out->shape[0];
    args.shape[1] = out->shape[2];
    args.shape[2] = out->shape[3];
    args.height = x->shape[2];
    args.width = x->shape[3];
    args.rows = (out->shape[2] - 1) / K_STRIP + 1;
    args.strips = out->shape[0] * args.rows * out->shape[3];
    memcpy(args.x_strides, x->strides, sizeof(args.x_strides));
    memcpy(args.out_strides, out->strides, sizeof(args.out_strides));
    memcpy(args.kernel, &weight->shape[2], sizeof(args.kernel));
    memcpy(args.stride, params->stride, sizeof(args.stride));
    memcpy(args.padding, params->pad_before, sizeof(args.padding));
    memcpy(args.dilation, params->dilation, sizeof(args.dilation));
    args.weight_strides[0] = weight->strides[0];
    args.weight_strides[1] = weight->strides[2];
    args.weight_strides[2] = weight->strides[3];
    args.divisor[0] = cuda_divisor(args.rows);
    args.divisor[1] = cuda_divisor(args.shape[2]);
    args.form = form_of(params, args.kernel);
    args.wide = !cuda_array_fits_narrow(x) || !cuda_array_fits_narrow(out);
    width = vectors ? width : 1;
    args.lanes = lanes_of(&args, out->strides[1] == 1, (int)width, dtype == DT_FLOAT64 ? 8 : 4);
    int64_t group = width << args.lanes, groups = (args.channels - 1) / group + 1;
    /* a block brings its filters once: as many blocks as fill the device, with whole rounds of strips each */
    int64_t blocks = ((int64_t)d->multiprocessors * SHARES_PER_MULTIPROCESSOR - 1) / groups + 1;
    int64_t least = (CUDA_THREADS >> args.lanes), share = (args.strips - 1) / blocks + 1;
    args.share = ((share - 1) / least + 1) * least;
    return cuda_launch_blocks(d, function, groups * ((args.strips - 1) / args.share + 1), &args, err);
}
