/* attention_products.c: attention as two products by the library, with a kernel between them that makes weights of
 * scores. Scores are in memory for some heads and queries at a time: few enough to stay in a large GPU's second-level
 * cache from one to the next. */
#include <string.h>

#include "../memory/memory.h"
#include "../memory/transfer.h"
#include "attention.h"

#define LEAST_QUERIES 64 /* of a head, and LEAST_KEYS: below, the kernel takes no longer than three launches */
#define LEAST_KEYS 128
#define MOST_KEYS (1 << 30)
#define LIBRARY_WIDTH 8    /* numbers of the half types that its tensor cores load at once */
#define PITCH 8            /* scores of a query begin at a multiple of it */
#define CAUSAL_QUERIES 256 /* at a time, so that later keys can be left out */
#define FLOAT16_UNIT 32768 /* a weight of 1: the smallest lie further from where numbers lose digits */

typedef struct {
    cuda_device *device;
    CUfunction weigh;
    const dt_array *mask;
    const dt_attention_params *params;
    dt_array query, key, value, out; /* (heads.., rows, columns): dimensions of heads merged; key is transposed */
    cuda_temporary scratch;
    k_weigh_args args;
    int64_t heads, queries, keys;
    int64_t inner, step; /* a part takes up to `step` times `inner` heads: entries of dimension `cut`, and all below */
    int64_t queries_a_part;
    int cut;
} job;

static int64_t
most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t
ceil_div(int64_t n, int64_t by)
{
    return (n + by - 1) / by;
}

static int64_t
pitch_of(int64_t keys)
{
    return ceil_div(keys, PITCH) * PITCH;
}

bool
cuda_attention_products_apply(const dt_array *query, const dt_array *key, const dt_array *value, const dt_array *out)
{
    const int row = query->ndim - 2, column = row + 1;
    const int64_t depth = query->shape[column], columns = value->shape[column], keys = key->shape[row];
    const bool grouped = row > 0 && query->shape[row - 1] != key->shape[row - 1];
    const bool half = dt_itemsize((dt_dtype)query->dtype) == 2;
    return cuda_settings.attention_scores > 0 && query->dtype != DT_FLOAT64 && query->shape[row] >= LEAST_QUERIES &&
           keys >= LEAST_KEYS && keys <= MOST_KEYS && depth > 0 && dt_array_numel(out) > 0 &&
           !(grouped && query->ndim == DT_MAX_NDIM) &&
           !(half && (depth % LIBRARY_WIDTH != 0 || columns % LIBRARY_WIDTH != 0)) && out->strides[column] == 1 &&
           out->strides[row] >= columns;
}

/* ---------------------------------------------------------------- heads */

/* x, whose heads become groups of `group`; shared: each stands for one group. */
static void
split_heads(dt_array *x, int64_t group, bool shared)
{
    const int heads = x->ndim - 3, each = heads + 1;
    for (int d = x->ndim; d > each; d--) {
        x->shape[d] = x->shape[d - 1];
        x->strides[d] = x->strides[d - 1];
    }
    x->ndim++;
    x->shape[each] = group;
    x->strides[each] = shared ? 0 : x->strides[heads];
    if (!shared) {
        x->shape[heads] /= group;
        x->strides[heads] *= group;
    }
}

/* Fewer dimensions of heads, at least one, where one stride goes through several. */
static void
merge_heads(job *j)
{
    dt_array *const arrays[] = {&j->out, &j->query, &j->key, &j->value};
    const int row = j->out.ndim - 2;
    dt_walk walk;
    cuda_walk_logical(&walk, 0, row, 4, (const dt_array *const *)arrays);
    if (walk.ndim == 0) {
        walk.shape[walk.ndim++] = 1;
    }
    for (int k = 0; k < 4; k++) {
        dt_array *x = arrays[k], from = *x;
        x->ndim = (uint8_t)(walk.ndim + 2);
        memcpy(x->shape, walk.shape, sizeof(walk.shape));
        memcpy(x->strides, walk.strides[k], sizeof(walk.strides[k]));
        for (int d = 0; d < 2; d++) {
            x->shape[walk.ndim + d] = from.shape[row + d];
            x->strides[walk.ndim + d] = from.strides[row + d];
        }
    }
    j->heads = walk.numel;
}

static void
open_heads(job *j, const dt_array *query, const dt_array *key, const dt_array *value, const dt_array *out)
{
    const int head = query->ndim - 3;
    j->query = *query;
    j->key = *key;
    j->value = *value;
    j->out = *out;
    j->queries = query->shape[head + 1];
    j->keys = key->shape[head + 1];
    if (head >= 0 && query->shape[head] != key->shape[head]) {
        const int64_t group = query->shape[head] / key->shape[head];
        split_heads(&j->query, group, false);
        split_heads(&j->out, group, false);
        split_heads(&j->key, group, true);
        split_heads(&j->value, group, true);
    }
    merge_heads(j);
    j->key = cuda_transposed(&j->key);
}

/* ---------------------------------------------------------------- parts */

/* How many queries of how many heads a part has. */
static void
cut_parts(job *j)
{
    const int64_t pitch = pitch_of(j->keys), scores = cuda_settings.attention_scores / (int64_t)sizeof(float);
    j->queries_a_part = cuda_fewer(j->queries, most(scores / pitch / LEAST_QUERIES * LEAST_QUERIES, LEAST_QUERIES));
    if (j->params->causal && j->heads * j->queries > scores / pitch) {
        j->queries_a_part = cuda_fewer(j->queries_a_part, CAUSAL_QUERIES);
    }
    const int64_t together = most(scores / (j->queries_a_part * pitch), 1);
    j->cut = j->out.ndim - 3;
    j->inner = 1;
    while (j->cut > 0 && j->inner * j->out.shape[j->cut] <= together) {
        j->inner *= j->out.shape[j->cut--];
    }
    const int64_t size = j->out.shape[j->cut], parts = ceil_div(size, together / j->inner);
    j->step = ceil_div(size, parts); /* parts of about one size */
}

/* n entries of dimension cut from a head on, and the dimensions below. */
static dt_array
take_heads(const job *j, const dt_array *x, int64_t head, int64_t n)
{
    dt_array part = *x;
    int64_t rest = head / j->inner, offset = 0;
    for (int d = j->cut; d >= 0; d--) {
        offset += rest % x->shape[d] * x->strides[d];
        rest /= x->shape[d];
    }
    part.offset += offset * (int64_t)dt_itemsize((dt_dtype)x->dtype);
    part.ndim = (uint8_t)(x->ndim - j->cut);
    for (int d = 0; d < part.ndim; d++) {
        part.shape[d] = x->shape[d + j->cut];
        part.strides[d] = x->strides[d + j->cut];
    }
    part.shape[0] = n;
    return part;
}

static void
take(dt_array *x, int dim, int64_t first, int64_t n)
{
    x->offset += first * x->strides[dim] * (int64_t)dt_itemsize((dt_dtype)x->dtype);
    x->shape[dim] = n;
}

/* The scratch as scores, or as the weights that take their places: of the heads and queries of out. */
static dt_array
lay_out_scores(const job *j, const dt_array *out, int64_t keys, dt_dtype dtype)
{
    dt_array scores = *out;
    const int column = out->ndim - 1;
    int64_t stride = pitch_of(keys) * (int64_t)(sizeof(float) / dt_itemsize(dtype));
    scores.storage = j->scratch.array.storage;
    scores.offset = 0;
    scores.dtype = (uint8_t)dtype;
    scores.shape[column] = keys;
    scores.strides[column] = 1;
    for (int d = column - 1; d >= 0; d--) {
        scores.strides[d] = stride;
        stride *= scores.shape[d];
    }
    return scores;
}

static dt_status
weigh(job *j, const dt_array *scores, int64_t head, int64_t first, dt_error *err)
{
    const int row = scores->ndim - 2;
    k_weigh_args *a = &j->args;
    a->scores = cuda_operand(scores);
    a->queries = scores->shape[row];
    a->keys = (int32_t)scores->shape[row + 1];
    a->pitch = scores->strides[row];
    a->rows = dt_array_numel(scores) / a->keys;
    a->scores.nbytes = (uint64_t)(a->rows * a->pitch) * sizeof(float); /* whole packs are read, and what is left over */
    a->by_queries = cuda_divisor(a->queries);
    a->head = head;
    a->first = first;
    a->lanes = K_WEIGH_FEWEST_LANES;
    while (a->lanes < K_WEIGH_MOST_LANES && K_WEIGH_CHUNK << a->lanes < a->keys) {
        a->lanes++;
    }
    a->kept = K_WEIGH_CHUNK << a->lanes >= a->keys;
    return cuda_launch_blocks(j->device, j->weigh, (a->rows - 1) / (CUDA_THREADS >> a->lanes) + 1, a, err);
}

/* Whether one call of the library writes all matrices of out: they are one stride apart, and not among each other. */
static bool
is_one_batch(const dt_array *out)
{
    const int row = out->ndim - 2;
    dt_walk walk;
    cuda_walk_logical(&walk, 0, row, 1, &out);
    return walk.ndim == 0 || (walk.ndim == 1 && walk.strides[0][0] >= out->shape[row] * out->strides[row]);
}

/* out = weights @ value / unit, by way of a copy where out is no batch. */
static dt_status
add_values(job *j, const dt_array *weights, const dt_array *value, dt_array *out, dt_error *err)
{
    const dt_matmul_params params = {.alpha = 1 / (double)j->args.unit};
    cuda_temporary whole = CUDA_TEMPORARY_EMPTY;
    if (is_one_batch(out)) {
        return cuda_matmul(weights, value, NULL, &params, out, err);
    }
    DT_TRY(cuda_temporary_try(&whole, j->device, out, (dt_dtype)out->dtype, err));
    dt_status rc = cuda_matmul(weights, value, NULL, &params, &whole.array, err);
    if (rc == DT_OK) {
        rc = cuda_copy_within(j->device, &whole.array, out, err);
    }
    cuda_temporary_clear(&whole);
    return rc;
}

static dt_status
run_part(job *j, int64_t head, int64_t n, int64_t first, int64_t queries, dt_error *err)
{
    const dt_matmul_params params = {.alpha = j->params->scale};
    const int64_t keys = j->params->causal ? cuda_fewer(j->keys, first + queries) : j->keys;
    dt_array query = take_heads(j, &j->query, head, n), key = take_heads(j, &j->key, head, n);
    dt_array value = take_heads(j, &j->value, head, n), out = take_heads(j, &j->out, head, n);
    const int row = out.ndim - 2;
    take(&query, row, first, queries);
    take(&out, row, first, queries);
    take(&key, row + 1, 0, keys);
    take(&value, row, 0, keys);
    dt_array scores = lay_out_scores(j, &out, keys, DT_FLOAT32);
    const dt_array weights = lay_out_scores(j, &out, keys, (dt_dtype)out.dtype);
    DT_TRY(cuda_matmul(&query, &key, NULL, &params, &scores, err));
    DT_TRY(weigh(j, &scores, head, first, err));
    return add_values(j, &weights, &value, &out, err);
}

static dt_status
run_parts(job *j, dt_error *err)
{
    const int64_t size = j->out.shape[j->cut];
    for (int64_t head = 0, n; head < j->heads; head += n * j->inner) {
        n = cuda_fewer(j->step, size - head / j->inner % size);
        for (int64_t first = 0; first < j->queries; first += j->queries_a_part) {
            DT_TRY(run_part(j, head, n, first, cuda_fewer(j->queries_a_part, j->queries - first), err));
        }
    }
    return DT_OK;
}

/* ---------------------------------------------------------------- attention */

static void
open_mask(job *j, const dt_array *mask)
{
    dt_walk walk;
    if (mask == NULL) {
        return;
    }
    cuda_walk_logical(&walk, 0, mask->ndim - 2, 1, &mask);
    cuda_index(&j->args.heads, &walk);
    j->args.mask = cuda_operand(mask);
    j->args.mask_kind = mask->dtype == DT_BOOL ? K_MASK_BOOL : K_MASK_NUMBERS;
    memcpy(j->args.mask_strides, mask->strides + mask->ndim - 2, sizeof(j->args.mask_strides));
}

dt_status
cuda_attention_products(const dt_array *query, const dt_array *key, const dt_array *value, const dt_array *mask,
                        const dt_attention_params *params, dt_array *out, bool *made, dt_error *err)
{
    job j;
    memset(&j, 0, sizeof(j));
    j.params = params;
    j.args.causal = params->causal;
    j.args.unit = out->dtype == DT_FLOAT16 ? FLOAT16_UNIT : 1;
    open_heads(&j, query, key, value, out);
    open_mask(&j, mask);
    cut_parts(&j);
    DT_TRY(cuda_enter(out->storage->device.index, &j.device, err));
    DT_TRY(cuda_function(j.device, CUDA_FAMILY_OTHER, CUDA_KERNEL_weigh, (dt_dtype)out->dtype, &j.weigh, err));
    const dt_array like = {.ndim = 1, .shape = {j.step * j.inner * j.queries_a_part * pitch_of(j.keys)}};
    dt_status rc = cuda_temporary_try(&j.scratch, j.device, &like, DT_FLOAT32, err);
    if (rc == DT_OK) {
        rc = run_parts(&j, err);
    }
    cuda_temporary_clear(&j.scratch);
    *made = rc == DT_OK;
    return rc == DT_EOUTOFMEMORY ? DT_OK : rc;
}
