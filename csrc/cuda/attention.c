/* attention.c: attention by a kernel of our own. */
#include "ops.h"

dt_status
cuda_attention(const dt_array *query, const dt_array *key, const dt_array *value, const dt_array *mask,
               const dt_attention_params *params, dt_array *out, bool *made, dt_error *err)
{
    (void)query, (void)key, (void)value, (void)mask, (void)params, (void)out, (void)err;
    *made = false;
    return DT_OK;
}
