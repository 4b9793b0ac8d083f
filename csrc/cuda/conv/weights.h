/* weights.h: copies of weights in the layout that a convolution wants, kept on the device as long as the weights do not
 * change.
 *
 * What is asked for once is only noted. Asked for again with nothing written in between, it is copied and kept. After
 * each write (dt_written) whatever was kept of the storage is forgotten; memory that others may write is never kept. */
#ifndef DT_CUDA_WEIGHTS_H
#define DT_CUDA_WEIGHTS_H

#include "../device.h"

void cuda_weights_open(cuda_weights *table, size_t memory);
/* A copy of x (four dimensions) with these strides, for this thread's stream, until cuda_weight_release. Without
 * storage: x is not kept. */
dt_status cuda_weight_get(cuda_device *device, const dt_array *x, const int64_t *strides, dt_array *copy,
                          dt_error *err) DT_MUST_CHECK;
/* After the last work that reads it was sent; one without storage may be given, too. */
void cuda_weight_release(dt_array *copy);

/* Forgets everything. */
void cuda_weights_clear(cuda_device *device);
/* The same for lack of memory: less is kept from now on. */
void cuda_weights_yield(cuda_device *device);

#endif
