/* narrow.c: a vector of a plane with few columns is mostly empty. So planes are copied to lines, whose channels lie
 * side by side, and back: an image at a time, which stays in the cache; for the weight's gradient all of them. */
#include "narrow.h"

#define COLUMNS 8
#define LEAST_TAPS 4
#define LEAST_PLANE 16 /* of x and the result: the weight is packed for each image */
#define IMAGE_BYTES ((int64_t)1 << 20)

bool
cpu_is_narrow(const dt_array *x, const dt_array *weight, const dt_conv2d_params *params, const dt_array *out)
{
    const int64_t itemsize = (int64_t)dt_itemsize((dt_dtype)x->dtype), channels = x->shape[1];
    const int64_t plane = x->shape[2] * x->shape[3], result = out->shape[2] * out->shape[3];
    return weight->shape[1] == 1 && weight->shape[0] == params->groups && channels >= DEPTHWISE_LANES &&
           weight->shape[2] * weight->shape[3] >= LEAST_TAPS && CPU_MIN(x->shape[3], out->shape[3]) <= COLUMNS &&
           CPU_MIN(plane, result) >= LEAST_PLANE && (plane + result) * channels * itemsize <= IMAGE_BYTES &&
           (x->strides[1] != 1 || out->strides[1] != 1) && itemsize >= (int64_t)sizeof(float);
}

/* So many images like those of x in memory of `storage`, with channels side by side. */
static dt_array
lines_like(const dt_array *x, int64_t images, dt_storage *storage)
{
    dt_array lines = *x;
    lines.storage = storage;
    lines.offset = 0;
    lines.shape[0] = images;
    lines.strides[1] = 1;
    lines.strides[3] = x->shape[1];
    lines.strides[2] = x->shape[3] * x->shape[1];
    lines.strides[0] = x->shape[2] * lines.strides[2];
    return lines;
}

/* Lines for so many images of x and y in one block, which the caller frees; NULL with an error. */
static char *
lines_for(const dt_array *x, const dt_array *y, int64_t images, dt_storage storage[2], dt_array lines[2], dt_error *err)
{
    lines[0] = lines_like(x, images, &storage[0]);
    lines[1] = lines_like(y, images, &storage[1]);
    const int64_t itemsize = (int64_t)dt_itemsize((dt_dtype)x->dtype);
    const size_t first = ((size_t)(images * lines[0].strides[0] * itemsize) + 63) & ~(size_t)63;
    const size_t nbytes = first + (size_t)(images * lines[1].strides[0] * itemsize);
    char *buffer = dt_large_new(nbytes);
    if (buffer == NULL) {
        (void)dt_fail_nomem(err, nbytes);
        return NULL;
    }
    storage[0] = (dt_storage){.data = buffer};
    storage[1] = (dt_storage){.data = buffer + first};
    return buffer;
}

typedef struct {
    cpu_conv_call call;
    const dt_array *x, *weight, *bias, *out;
    const dt_conv2d_params *params;
} lines_job;

static dt_array
image_of(const dt_array *x, int64_t i)
{
    dt_array one = *x;
    one.offset += i * x->strides[0] * (int64_t)dt_itemsize((dt_dtype)x->dtype);
    one.shape[0] = 1;
    return one;
}

static dt_status
run_images(void *ctx, int64_t begin, int64_t end, dt_error *err)
{
    const lines_job *job = ctx;
    dt_storage storage[2];
    dt_array lines[2];
    char *buffer = lines_for(job->x, job->out, 1, storage, lines, err);
    if (buffer == NULL) {
        return DT_ENOMEM;
    }
    dt_status rc = DT_OK;
    for (int64_t i = begin; i < end && rc == DT_OK; i++) {
        const dt_array image = image_of(job->x, i);
        dt_array to = image_of(job->out, i);
        rc = cpu_copy(&image, &lines[0], false, err);
        rc = rc == DT_OK ? job->call(&lines[0], job->weight, job->bias, job->params, &lines[1], err) : rc;
        rc = rc == DT_OK ? cpu_copy(&lines[1], &to, false, err) : rc;
    }
    dt_large_free(buffer);
    return rc;
}

dt_status
cpu_by_lines(cpu_conv_call call, const dt_array *x, const dt_array *weight, const dt_array *bias,
             const dt_conv2d_params *params, dt_array *out, dt_error *err)
{
    lines_job job = {call, x, weight, bias, out, params};
    const int64_t images = out->shape[0];
    /* images that are too few for all threads share them one by one */
    return cpu_try_parallel(images, images < cpu_num_threads() ? images : 1, run_images, &job, err);
}

dt_status
cpu_narrow_weight_grad(const dt_array *x, const dt_array *grad, const dt_conv2d_params *params, dt_array *out,
                       bool *made, dt_error *err)
{
    dt_storage storage[2];
    dt_array lines[2];
    char *buffer = lines_for(x, grad, x->shape[0], storage, lines, err);
    if (buffer == NULL) {
        return DT_ENOMEM;
    }
    dt_status rc = cpu_copy(x, &lines[0], false, err);
    rc = rc == DT_OK ? cpu_copy(grad, &lines[1], false, err) : rc;
    rc = rc == DT_OK ? cpu_conv2d_weight_grad(&lines[0], &lines[1], params, out, made, err) : rc;
    dt_large_free(buffer);
    return rc;
}
