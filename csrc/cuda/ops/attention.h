/* attention.h: ways to compute attention other than the kernel of attention.c. */
#ifndef DT_CUDA_ATTENTION_H
#define DT_CUDA_ATTENTION_H

#include "ops.h"

/* attention_plan.c: as the slot, without a mask; *made is false where the library has no kernel for it, or there is too
 * little to do. */
dt_status cuda_attention_graph(const dt_array *query, const dt_array *key, const dt_array *value,
                               const dt_attention_params *params, dt_array *out, bool *made,
                               dt_error *err) DT_MUST_CHECK;

/* attention_products.c */
bool cuda_attention_products_apply(const dt_array *query, const dt_array *key, const dt_array *value,
                                   const dt_array *out);
/* As the slot; *made is false where memory lacks, and out then holds nothing. */
dt_status cuda_attention_products(const dt_array *query, const dt_array *key, const dt_array *value,
                                  const dt_array *mask, const dt_attention_params *params, dt_array *out, bool *made,
                                  dt_error *err) DT_MUST_CHECK;

#endif
