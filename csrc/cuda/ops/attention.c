/* attention.c: attention in one pass, by a kernel of our own, where neither cuDNN has one (attention_graph.c) nor
 * products are better (attention_products.c). */
#include <string.h>

#include "attention.h"

static int64_t
block_queries(const k_attention_args *args)
{
    const int64_t most = args->depth > args->columns ? args->depth : args->columns;
    return most <= 32 ? 64 : most <= 64 ? 32 : 16;
}

static void
set_strides(const dt_array *x, int64_t *strides)
{
    strides[0] = x->strides[x->ndim - 2];
    strides[1] = x->strides[x->ndim - 1];
}

/* Few queries are products that wait for memory (skinny.c), and their scores are few. */
static bool
applies(const dt_array *query, const dt_array *value)
{
    const int64_t *shape = query->shape + query->ndim - 2;
    return query->dtype != DT_FLOAT64 && shape[0] >= K_ATTENTION_LEAST && shape[1] <= K_ATTENTION_MOST &&
           value->shape[value->ndim - 1] <= K_ATTENTION_MOST;
}

static dt_status
one_pass(const dt_array *query, const dt_array *key, const dt_array *value, const dt_array *mask,
         const dt_attention_params *params, dt_array *out, dt_error *err)
{
    cuda_device *d;
    CUfunction function;
    dt_walk walk;
    k_attention_args args;
    const int ndim = query->ndim, lead = ndim - 2;
    DT_TRY(cuda_enter(out->storage->device.index, &d, err));
    DT_TRY(cuda_function(d, CUDA_FAMILY_OTHER, CUDA_KERNEL_attention, (dt_dtype)query->dtype, &function, err));
    memset(&args, 0, sizeof(args));
    const dt_array *heads[] = {out, query, mask ? mask : query}, *groups[] = {key, value};
    cuda_walk_logical(&walk, 0, lead, 3, heads);
    cuda_index(&args.heads, &walk);
    cuda_walk_logical(&walk, 0, lead, 2, groups);
    cuda_index(&args.groups, &walk);
    args.query = cuda_operand(query);
    args.key = cuda_operand(key);
    args.value = cuda_operand(value);
    args.out = cuda_operand(out);
    set_strides(query, args.query_strides);
    set_strides(key, args.key_strides);
    set_strides(value, args.value_strides);
    set_strides(out, args.out_strides);
    if (mask != NULL) {
        args.mask = cuda_operand(mask);
        args.mask_kind = mask->dtype == DT_BOOL ? K_MASK_BOOL : K_MASK_NUMBERS;
        set_strides(mask, args.mask_strides);
    }
    args.queries = query->shape[ndim - 2];
    args.depth = query->shape[ndim - 1];
    args.keys = key->shape[ndim - 2];
    args.columns = value->shape[ndim - 1];
    args.group = lead > 0 && args.groups.numel > 0 ? args.heads.numel / args.groups.numel : 1;
    args.scale = (float)params->scale;
    args.causal = params->causal;
    const int64_t block = block_queries(&args);
    return cuda_launch_blocks(d, function, (args.queries - 1) / block * args.heads.numel + args.heads.numel, &args,
                              err);
}

dt_status
cuda_attention(const dt_array *query, const dt_array *key, const dt_array *value, const dt_array *mask,
               const dt_attention_params *params, dt_array *out, bool *made, dt_error *err)
{
    *made = false;
    if (mask == NULL) {
        DT_TRY(cuda_attention_graph(query, key, value, params, out, made, err));
    }
    if (!*made && cuda_attention_products_apply(query, key, value, out)) {
        DT_TRY(cuda_attention_products(query, key, value, mask, params, out, made, err));
    }
    if (*made || !applies(query, value)) {
        return DT_OK;
    }
    *made = true;
    return one_pass(query, key, value, mask, params, out, err);
}
