/* attention.h: attention as products (attention_products.c). */
#ifndef DT_CUDA_ATTENTION_H
#define DT_CUDA_ATTENTION_H

#include "ops.h"

bool cuda_attention_products_apply(const dt_array *query, const dt_array *key, const dt_array *value,
                                   const dt_array *out);
/* As the slot; *made is false where memory lacks, and out then holds nothing. */
dt_status cuda_attention_products(const dt_array *query, const dt_array *key, const dt_array *value,
                                  const dt_array *mask, const dt_attention_params *params, dt_array *out, bool *made,
                                  dt_error *err) DT_MUST_CHECK;

#endif
