/* plans.h: what the front and tests ask of the plans of products and convolutions, and set for them. */
#ifndef DT_CUDA_PLANS_H
#define DT_CUDA_PLANS_H

#include "cuda.h"

/* conv_tune.c: whether new plans of convolutions are timed; what was found, as rows of 64-bit words of which the first
 * ones are the key, and the next is -1 where what was found before no longer holds. */
bool cuda_tuning(void);
void cuda_set_tuning(bool tune);
size_t cuda_tuned_key(void);
size_t cuda_tuned_width(void);
/* Rows to be freed by dt_free. */
dt_status cuda_tuned_export(int device, int64_t **rows, size_t *nrows, dt_error *err) DT_MUST_CHECK;
/* False: the row cannot be one of ours. */
dt_status cuda_tuned_import(int device, const int64_t *row, dt_error *err) DT_MUST_CHECK;

/* conv_memory.c: the most bytes of scratch memory that a convolution may want, where there is a choice; INT64_MAX: as
 * much as is free. */
int64_t cuda_workspace_limit(void);
void cuda_set_workspace_limit(int64_t nbytes);

/* conv_describe.c: what would be planned on a device that need not be there, described in cuDNN's JSON. */
typedef struct {
    int64_t engine, workspace, out[4];
    uint32_t notes, behaviors;
    int candidate;
    bool bias, activation; /* in the same graph */
    bool unloadable;       /* an engine before it could not be loaded without the device */
} cuda_conv_description;
dt_status cuda_conv_describe(const char *json, size_t length, dt_dtype dtype, const int64_t x[4],
                             const int64_t weight[4], bool has_bias, const dt_conv2d_params *params, bool channels_last,
                             cuda_conv_description *out, dt_error *err) DT_MUST_CHECK;

/* cache.c: how many plans a device keeps of products, and of convolutions; a test lowers it (0: back to 4096). */
void cuda_set_plan_limit(size_t limit);

/* matmul.c: the most rows, columns or elements of an operand that one call of a library is given; a test lowers it
 * (0: back to 2**31 - 1). */
int64_t cuda_size_limit(void);
void cuda_set_size_limit(int64_t limit);

#endif
