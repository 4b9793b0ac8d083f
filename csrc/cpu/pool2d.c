/* pool2d.c: largest or mean of windows over an image. */
#include "cpu.h"

typedef struct {
    const dt_pool2d_params *params;
    const dt_array *x, *out, *indices; /* indices or NULL */
} pool_job;

/* [begin, end) lie in the image; size is what a mean divides by. */
typedef struct {
    int64_t begin, end, size;
} window;

static window
dilated_window(const dt_pool2d_params *params, int dim, int64_t i, int64_t length)
{
    int64_t begin = i * params->stride[dim] - params->padding[dim], step = params->dilation[dim];
    int64_t end = CPU_MIN(begin + (params->kernel[dim] - 1) * step + 1, length);
    return (window){begin < 0 ? begin + CPU_CEIL_DIV(-begin, step) * step : begin, end, 0};
}

static window
average_window(const pool_job *job, int dim, int64_t i)
{
    const dt_pool2d_params *params = job->params;
    int64_t length = job->x->shape[2 + dim], results = job->out->shape[2 + dim];
    if (params->mode == DT_POOL_ADAPTIVE_AVG) {
        /* floor(i * length / results), ceil((i + 1) * length / results), without the large product */
        int64_t whole = length / results, rest = length % results;
        int64_t begin = i * whole + i * rest / results, end = (i + 1) * whole + CPU_CEIL_DIV((i + 1) * rest, results);
        return (window){begin, end, end - begin};
    }
    int64_t begin = i * params->stride[dim] - params->padding[dim];
    int64_t end = CPU_MIN(begin + params->kernel[dim], length + params->padding[dim]), size = end - begin;
    begin = CPU_MAX(begin, 0);
    end = CPU_MIN(end, length);
    return (window){begin, end, params->count_include_pad ? size : end - begin};
}

#define DT_EACH "../cpu/pool2d_each.h"
#include "../core/each_dtype.h"

typedef void (*pool_plane)(const pool_job *job, const char *x, char *out, int64_t *indices);

static pool_plane
plane_of(dt_dtype dtype, bool max)
{
    return dtype == DT_FLOAT16    ? (max ? pool_max_FLOAT16 : pool_average_FLOAT16)
           : dtype == DT_BFLOAT16 ? (max ? pool_max_BFLOAT16 : pool_average_BFLOAT16)
           : dtype == DT_FLOAT32  ? (max ? pool_max_FLOAT32 : pool_average_FLOAT32)
                                  : (max ? pool_max_FLOAT64 : pool_average_FLOAT64);
}

static void
pool_part(void *ctx, int64_t begin, int64_t end)
{
    const pool_job *job = ctx;
    const dt_array *x = job->x, *out = job->out, *indices = job->indices;
    dt_dtype dtype = (dt_dtype)x->dtype;
    int64_t itemsize = (int64_t)dt_itemsize(dtype);
    pool_plane plane = plane_of(dtype, job->params->mode == DT_POOL_MAX);
    for (int64_t i = begin; i < end; i++) {
        const char *from = (const char *)dt_array_data(x) + cpu_offset(2, x->shape, x->strides, i) * itemsize;
        char *to = (char *)dt_array_data(out) + cpu_offset(2, out->shape, out->strides, i) * itemsize;
        int64_t *places = indices == NULL
                              ? NULL
                              : (int64_t *)dt_array_data(indices) + cpu_offset(2, indices->shape, indices->strides, i);
        plane(job, from, to, places);
    }
}

dt_status
cpu_pool2d(const dt_array *x, const dt_pool2d_params *params, dt_array *out, dt_array *indices, dt_error *err)
{
    (void)err;
    pool_job job = {params, x, out, indices};
    int64_t planes = out->shape[0] * out->shape[1], plane = dt_array_numel(out) / planes;
    int64_t window_size = params->mode == DT_POOL_ADAPTIVE_AVG
                              ? CPU_CEIL_DIV(x->shape[2] * x->shape[3], CPU_MAX(plane, 1))
                              : params->kernel[0] * params->kernel[1];
    cpu_parallel(planes, CPU_CEIL_DIV(CPU_GRAIN, CPU_MAX(plane * window_size, 1)), pool_part, &job);
    return DT_OK;
}
