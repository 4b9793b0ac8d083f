/* touches.c: which memory a launch of one of our kernels uses, read out of its arguments. sim_global holds each launch
 * to it. */
#include "sim.h"

#include <string.h>

#include "../kernels/args.h"

typedef struct {
    sim_touch *at;
    int n;
} list;

static void
add(list *l, uint64_t address, uint64_t nbytes, bool writes)
{
    if (address != 0 && nbytes > 0 && l->n < SIM_MOST_TOUCHES) {
        l->at[l->n++] = (sim_touch){address, (size_t)nbytes, writes};
    }
}

static void
reads(list *l, const k_operand *operand)
{
    add(l, operand->address, operand->nbytes, false);
}

static void
writes(list *l, const k_operand *operand)
{
    add(l, operand->address, operand->nbytes, true);
}

static void
selection(list *l, const k_selection *by)
{
    for (int k = 0; k < by->n; k++) {
        reads(l, &by->selector[k].array);
    }
}

static void
of_elementwise(list *l, const void *args)
{
    const k_elementwise_args *a = args;
    writes(l, &a->array[0]);
    for (int k = 1; k < 4; k++) {
        reads(l, &a->array[k]);
    }
}

static void
of_transpose(list *l, const void *args)
{
    const k_transpose_args *a = args;
    reads(l, &a->x);
    writes(l, &a->out);
}

static void
of_reduce(list *l, const void *args)
{
    const k_reduce_args *a = args;
    reads(l, &a->x);
    writes(l, &a->out);
    writes(l, &a->scratch);
}

static void
of_softmax(list *l, const void *args)
{
    const k_softmax_args *a = args;
    reads(l, &a->x);
    writes(l, &a->out);
}

static void
of_cell(list *l, const void *args)
{
    const k_cell_args *a = args;
    reads(l, &a->own);
    reads(l, &a->x);
    reads(l, &a->state);
    reads(l, &a->grad);
    writes(l, &a->out);
}

static void
of_cell_steps(list *l, const void *args)
{
    const k_cell_steps_args *a = args;
    const k_operand *const read[] = {&a->product, &a->weight, &a->bias, &a->h, &a->state};
    for (size_t i = 0; i < sizeof(read) / sizeof(*read); i++) {
        reads(l, read[i]);
    }
    writes(l, &a->own);
    writes(l, &a->cells);
    writes(l, &a->out);
}

static void
of_cell_steps_grad(list *l, const void *args)
{
    const k_cell_steps_grad_args *a = args;
    const k_operand *const read[] = {&a->own, &a->product, &a->weight, &a->state, &a->grad, &a->begin};
    for (size_t i = 0; i < sizeof(read) / sizeof(*read); i++) {
        reads(l, read[i]);
    }
    writes(l, &a->gates);
    writes(l, &a->begin);
}

static void
of_normalize(list *l, const void *args)
{
    const k_normalize_args *a = args;
    reads(l, &a->x);
    reads(l, &a->weight);
    reads(l, &a->bias);
    writes(l, &a->out);
}

static void
of_normalize_grad(list *l, const void *args)
{
    const k_normalize_grad_args *a = args;
    of_normalize(l, &a->normalize);
    reads(l, &a->grad);
    writes(l, &a->stats);
}

static void
of_normalize_sums(list *l, const void *args)
{
    const k_normalize_sums_args *a = args;
    reads(l, &a->x);
    reads(l, &a->grad);
    reads(l, &a->stats);
    writes(l, &a->out);
}

static void
of_channels(list *l, const void *args)
{
    const k_channels_args *a = args;
    reads(l, &a->x);
    reads(l, &a->weight);
    reads(l, &a->bias);
    writes(l, &a->out);
    writes(l, &a->stats);
    writes(l, &a->parts);
}

static void
of_channels_grad(list *l, const void *args)
{
    const k_channels_grad_args *a = args;
    of_channels(l, &a->channels);
    reads(l, &a->grad);
    writes(l, &a->products);
}

static void
of_batch_norm(list *l, const void *args)
{
    const k_batch_norm_args *a = args;
    reads(l, &a->x);
    reads(l, &a->mean);
    reads(l, &a->var);
    reads(l, &a->weight);
    reads(l, &a->bias);
    writes(l, &a->out);
}

static void
of_softmax_grad(list *l, const void *args)
{
    const k_softmax_grad_args *a = args;
    of_softmax(l, &a->softmax);
    reads(l, &a->grad);
}

static void
of_attention(list *l, const void *args)
{
    const k_attention_args *a = args;
    reads(l, &a->query);
    reads(l, &a->key);
    reads(l, &a->value);
    reads(l, &a->mask);
    writes(l, &a->out);
}

static void
of_weigh(list *l, const void *args)
{
    const k_weigh_args *a = args;
    reads(l, &a->mask);
    writes(l, &a->scores);
}

static void
of_scan(list *l, const void *args)
{
    const k_scan_args *a = args;
    reads(l, &a->x);
    writes(l, &a->out);
    writes(l, &a->indices);
    writes(l, &a->scratch);
}

static void
of_sort_rows(list *l, const void *args)
{
    const k_sort_rows_args *a = args;
    reads(l, &a->x);
    reads(l, &a->from);
    writes(l, &a->out);
    writes(l, &a->indices);
    writes(l, &a->to);
}

static void
of_radix_rows(list *l, const void *args)
{
    const k_sort_rows_args *a = args;
    of_sort_rows(l, args);
    writes(l, &a->from);
    writes(l, &a->counts);
    writes(l, &a->varies);
}

static void
of_pool2d(list *l, const void *args)
{
    const k_pool2d_args *a = args;
    reads(l, &a->x);
    writes(l, &a->out);
    writes(l, &a->indices);
}

static void
of_max_pool2d_grad(list *l, const void *args)
{
    const k_max_pool2d_grad_args *a = args;
    reads(l, &a->pool.x);
    reads(l, &a->grad);
    writes(l, &a->pool.out);
}

static void
of_depthwise(list *l, const void *args)
{
    const k_depthwise_args *a = args;
    reads(l, &a->x);
    reads(l, &a->weight);
    reads(l, &a->bias);
    writes(l, &a->out);
}

static void
of_skinny(list *l, const void *args)
{
    const k_skinny_args *a = args;
    reads(l, &a->a);
    reads(l, &a->b);
    reads(l, &a->bias);
    writes(l, &a->out);
}

static void
of_dot(list *l, const void *args)
{
    const k_dot_args *a = args;
    reads(l, &a->x);
    reads(l, &a->y);
    writes(l, &a->sums);
}

static void
of_arange(list *l, const void *args)
{
    const k_arange_args *a = args;
    k_operand out = a->out;
    for (int d = 0; d < a->index.ndim; d++) { /* the second half of linspace is counted from its end */
        if (a->index.strides[0][d] < 0 && a->index.numel > 0) {
            const uint64_t below = (uint64_t)(a->index.strides[0][d] * (1 - a->index.shape[d])) * out.nbytes;
            out.address -= below;
            out.nbytes += below;
        }
    }
    writes(l, &out);
}

static void
of_tri(list *l, const void *args)
{
    const k_tri_args *a = args;
    reads(l, &a->x);
    writes(l, &a->out);
}

static void
of_random(list *l, const void *args)
{
    writes(l, &((const k_random_args *)args)->out);
}

static void
of_dropout(list *l, const void *args)
{
    const k_dropout_args *a = args;
    reads(l, &a->x);
    writes(l, &a->out);
}

static void
of_remap(list *l, const void *args)
{
    const k_remap_args *a = args;
    reads(l, &a->x);
    writes(l, &a->out);
}

static void
of_gather(list *l, const void *args)
{
    const k_gather_args *a = args;
    selection(l, &a->by);
    reads(l, &a->x);
    writes(l, &a->out);
}

static void
of_places(list *l, const void *args)
{
    const k_places_args *a = args;
    selection(l, &a->by);
    writes(l, &a->places);
    writes(l, &a->kept);
    writes(l, &a->table);
}

static void
of_sort(list *l, const void *args)
{
    const k_sort_args *a = args;
    reads(l, &a->keys);
    writes(l, &a->sorted);
    writes(l, &a->counts);
}

static void
of_scatter_add(list *l, const void *args)
{
    const k_scatter_add_args *a = args;
    selection(l, &a->by);
    reads(l, &a->value);
    reads(l, &a->keys);
    writes(l, &a->x);
    writes(l, &a->sums);
}

static void
of_nonzero(list *l, const void *args)
{
    const k_true_args *a = args;
    reads(l, &a->mask);
    writes(l, &a->before);
    writes(l, &a->out);
}

static void
of_join(list *l, const void *args, size_t unit)
{
    const k_join_args *a = args;
    writes(l, &a->out);
    for (int i = 0; i < a->n; i++) {
        add(l, a->part[i].address, (uint64_t)a->part[i].numel * unit, false);
    }
}

static void
of_update(list *l, const void *args, size_t itemsize)
{
    static const int states[] = {
#define DT_UPDATE0(rule, ...) 0,
#define DT_UPDATE1(rule, a, ...) 1,
#define DT_UPDATE2(rule, a, b, ...) 2,
#define DT_UPDATE3(rule, a, b, c, ...) 3,
#include "../core/updates.def"
    };
    const k_update_args *a = args;
    for (int i = 0; i < a->n; i++) {
        const k_update_entry *entry = &a->entry[i];
        uint64_t n = (uint64_t)entry->numel;
        add(l, entry->address[0], n * itemsize, true);
        add(l, entry->address[1], n * itemsize, false);
        for (int k = 0; k < states[a->rule]; k++) {
            add(l, entry->address[2 + k], n * (a->wide ? sizeof(float) : itemsize), true);
        }
    }
}

#define DT_JOINS(name, bytes)                                                                                          \
    static void of_join_##name(list *l, const void *args)                                                              \
    {                                                                                                                  \
        of_join(l, args, bytes);                                                                                       \
    }
DT_JOINS(uint8, 1)
DT_JOINS(int16, 2)
DT_JOINS(int32, 4)
DT_JOINS(int64, 8)
DT_JOINS(wide, 16)

/* By how a name begins; the longer before the shorter. All others are elementwise. */
static const struct {
    const char *name;
    void (*of)(list *l, const void *args);
} families[] = {
    {"k_normalize_grad_", of_normalize_grad},
    {"k_normalize_sums_", of_normalize_sums},
    {"k_normalize_", of_normalize},
    {"k_channels_grad_", of_channels_grad},
    {"k_channels_", of_channels},
    {"k_batch_norm_", of_batch_norm},
    {"k_lstm_steps_grad_", of_cell_steps_grad},
    {"k_gru_steps_grad_", of_cell_steps_grad},
    {"k_lstm_steps_", of_cell_steps},
    {"k_gru_steps_", of_cell_steps},
    {"k_lstm_", of_cell},
    {"k_gru_", of_cell},
    {"k_variance_", of_reduce},
    {"k_softmax_grad_", of_softmax_grad},
    {"k_softmax_", of_softmax},
    {"k_log_softmax_", of_softmax},
    {"k_attention_", of_attention},
    {"k_weigh_", of_weigh},
    {"k_max_pool2d_grad_", of_max_pool2d_grad},
    {"k_max_pool2d_", of_pool2d},
    {"k_avg_pool2d_", of_pool2d},
    {"k_transpose_", of_transpose},
    {"k_cumsum_", of_scan},
    {"k_cumprod_", of_scan},
    {"k_logcumsumexp_", of_scan},
    {"k_cummax_", of_scan},
    {"k_cummin_", of_scan},
    {"k_sort_rows_", of_sort_rows},
    {"k_select_rows_", of_sort_rows},
    {"k_radix_rows_", of_radix_rows},
    {"k_sort_", of_sort},
    {"k_depthwise_", of_depthwise},
    {"k_skinny_", of_skinny},
    {"k_small_matmul_", of_skinny},
    {"k_dot_", of_dot},
    {"k_arange_", of_arange},
    {"k_tri_", of_tri},
    {"k_uniform_", of_random},
    {"k_normal_", of_random},
    {"k_integers_", of_random},
    {"k_permutation_", of_random},
    {"k_dropout_", of_dropout},
    {"k_remap_", of_remap},
    {"k_gather_", of_gather},
    {"k_join_wide_", of_join_wide},
    {"k_join_uint8", of_join_uint8},
    {"k_join_int16", of_join_int16},
    {"k_join_int32", of_join_int32},
    {"k_join_int64", of_join_int64},
    {"k_places_", of_places},
    {"k_scatter_add_", of_scatter_add},
    {"k_add_together_", of_scatter_add},
    {"k_nonzero_", of_nonzero},
#define DT_REDUCE(name, ...) {"k_" #name "_", of_reduce},
#include "../core/reductions.def"
};

static size_t
itemsize_of(const char *kernel)
{
    const char *dtype = strrchr(kernel, '_') + 1;
    return strcmp(dtype, "float64") == 0 ? 8 : strcmp(dtype, "float32") == 0 ? 4 : 2;
}

int
sim_touches_of(const dt_host_kernel *launched, const void *args, sim_touch touches[SIM_MOST_TOUCHES])
{
    list l = {touches, 0};
    const char *kernel = launched->name;
    if (strncmp(kernel, "k_update_", strlen("k_update_")) == 0) {
        of_update(&l, args, itemsize_of(kernel));
        return l.n;
    }
    for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
        if (strncmp(kernel, families[i].name, strlen(families[i].name)) == 0) {
            families[i].of(&l, args);
            return l.n;
        }
    }
    if (launched->args_size == sizeof(k_elementwise_args)) {
        of_elementwise(&l, args);
    }
    return l.n;
}
