/* plans.h: what is kept on a device of products (lt_plan.c), convolutions (conv/plan.c) and users' kernels (raw.c). */
#ifndef DT_CUDA_PLANS_H
#define DT_CUDA_PLANS_H

#include "device.h"

/* What the caches give back. */
void cuda_raw_module_drop(void *module);
void cuda_matmul_destroy(void *plan);
void cuda_conv2d_retire(void *plan);
/* Destroys those that were given back and run no more. */
void cuda_conv2d_reap(cuda_device *device);
size_t cuda_matmul_key_size(void);
size_t cuda_conv2d_key_size(void);
size_t cuda_attention_key_size(void);

/* raw.c: the name of a kernel of users' by its number. */
const char *cuda_raw_name(unsigned number);
/* matmul.c: the most rows, columns or elements of an operand that one call of a library is given. */
int64_t cuda_size_limit(void);

#endif
