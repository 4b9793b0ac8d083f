/* backend.c: the backend's table. Every op in it is put in order with what other streams do to its operands, so that no
 * slot has to think of it. While there is one stream this is two predictable branches. */
#include "../core/operands.h"
#include "ops/ops.h"
#include "streams/stream.h"

#define OPERANDS(...) OPERANDS_OF(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0, 0)
#define OPERANDS_OF(a, b, c, d, e, f, g, h, ...)                                                                       \
    {                                                                                                                  \
        {DT_ARG_ARRAY(a), DT_ARG_ARRAY(b), DT_ARG_ARRAY(c), DT_ARG_ARRAY(d),                                           \
         DT_ARG_ARRAY(e), DT_ARG_ARRAY(f), DT_ARG_ARRAY(g), DT_ARG_ARRAY(h)},                                          \
            {DT_ARG_IS_WRITTEN(a), DT_ARG_IS_WRITTEN(b), DT_ARG_IS_WRITTEN(c), DT_ARG_IS_WRITTEN(d),                   \
             DT_ARG_IS_WRITTEN(e), DT_ARG_IS_WRITTEN(f), DT_ARG_IS_WRITTEN(g), DT_ARG_IS_WRITTEN(h)},                  \
    }

/* An op that has indices has them second. */
#define INDICES(...) INDICES_OF(__VA_ARGS__, 0)
#define INDICES_OF(a, b, ...) DT_ARG_INDEX(b)

static void
add_indices(cuda_operands *operands, const dt_index *index)
{
    for (int k = 0; index != NULL && k < index->n; k++) {
        operands->array[DT_MAX_ARGS + k] = &index->array[k];
    }
}

/* An op that has an update has it first. */
#define UPDATE(...) UPDATE_OF(__VA_ARGS__, 0)
#define UPDATE_OF(a, ...) DT_ARG_UPDATE(a)

static cuda_operands
entry_operands(const dt_update *update, int i)
{
    cuda_operands operands = {0};
    for (int k = 0; k < DT_UPDATE_STATE + update->nstates; k++) {
        operands.array[k] = update->entry[i].array[k];
        operands.written[k] = dt_update_writes(k);
    }
    return operands;
}

static dt_status
order_update(const dt_update *update, dt_error *err)
{
    for (int i = 0; update != NULL && i < update->n; i++) {
        cuda_operands operands = entry_operands(update, i);
        DT_TRY(cuda_order_use("an optimizer's step", &operands, err));
    }
    return DT_OK;
}

static void
note_update(const dt_update *update)
{
    for (int i = 0; update != NULL && i < update->n; i++) {
        cuda_operands operands = entry_operands(update, i);
        cuda_note(&operands);
    }
}

/* A stream may be made while the op is on its way: each side asks for itself. */
static inline bool
many_streams(void)
{
    return DT_UNLIKELY(atomic_load_explicit(&cuda_many_streams, memory_order_acquire));
}

static cuda_operands
joined_operands(const dt_array *part, const dt_array *out)
{
    return (cuda_operands){.array = {part, out}, .written = {false, true}};
}

/* Its operands are a list. */
dt_status
cuda_join(const dt_array *const *parts, int n, int dim, dt_array *out, bool *made, dt_error *err)
{
    for (int i = 0; i < n && many_streams(); i++) {
        const cuda_operands uses = joined_operands(parts[i], out);
        DT_TRY(cuda_order_use("join", &uses, err));
    }
    dt_status rc = cuda_join_parts(parts, n, dim, out, made, err);
    for (int i = 0; i < n && many_streams(); i++) {
        const cuda_operands uses = joined_operands(parts[i], out);
        cuda_note(&uses);
    }
    dt_written(out);
    return rc;
}

#define DT_SLOT(ret, name, args)
#define DT_OP(name, args, names)                                                                                       \
    static dt_status ordered_##name args                                                                               \
    {                                                                                                                  \
        if (many_streams()) {                                                                                          \
            cuda_operands uses_ = OPERANDS names;                                                                      \
            add_indices(&uses_, INDICES names);                                                                        \
            DT_TRY(cuda_order_use(#name, &uses_, err));                                                                \
            DT_TRY(order_update(UPDATE names, err));                                                                   \
        }                                                                                                              \
        dt_status rc = cuda_##name names;                                                                              \
        if (many_streams()) {                                                                                          \
            cuda_operands uses_ = OPERANDS names;                                                                      \
            add_indices(&uses_, INDICES names);                                                                        \
            cuda_note(&uses_);                                                                                         \
            note_update(UPDATE names);                                                                                 \
        }                                                                                                              \
        DT_ALL_WRITTEN names;                                                                                          \
        return rc;                                                                                                     \
    }
#include "../core/slots.def"
#undef DT_SLOT

const dt_backend cuda_backend = {
    .name = "cuda",
#define DT_SLOT(ret, name, args) .name = cuda_##name,
#define DT_OP(name, args, names) .name = ordered_##name,
#include "../core/slots.def"
#undef DT_SLOT
};
