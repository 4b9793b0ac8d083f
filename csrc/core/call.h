/* call.h: the one way into a backend, for each op of slots.def dt_call_NAME, and dt_call_new_NAME for a result that was
 * just made. What an op reads and writes stands in the types of its operands: copies that still run over them are
 * waited for, and what has no elements to write is not called. */
#ifndef DT_CALL_H
#define DT_CALL_H

#include "operands.h"

static inline dt_status
dt_settle_indices(const dt_index *index, dt_error *err)
{
    for (int k = 0; index != NULL && k < index->n; k++) {
        DT_TRY(dt_settle(&index->array[k], DT_READ, err));
    }
    return DT_OK;
}

static inline dt_status
dt_settle_update(const dt_update *update, dt_error *err)
{
    for (int i = 0; update != NULL && i < update->n; i++) {
        for (int k = 0; k < DT_UPDATE_STATE + update->nstates; k++) {
            DT_TRY(dt_settle(update->entry[i].array[k], dt_update_writes(k) ? DT_WRITE : DT_READ, err));
        }
    }
    return DT_OK;
}

#define DT_CALL_SETTLE(x, write)                                                                                       \
    DT_TRY(dt_settle(DT_ARG_READ(x), DT_READ, err));                                                                   \
    DT_TRY(dt_settle((write) ? DT_ARG_WRITTEN(x) : NULL, DT_WRITE, err));                                              \
    DT_TRY(dt_settle_indices(DT_ARG_INDEX(x), err));                                                                   \
    DT_TRY(dt_settle_update(DT_ARG_UPDATE(x), err))
#define DT_CALL_SETTLE_ALL(write, ...) DT_CALL_SETTLE_EACH(write, __VA_ARGS__, 0, 0, 0, 0, 0, 0, 0, 0)
#define DT_CALL_SETTLE_EACH(write, a, b, c, d, e, f, g, h, i, ...)                                                     \
    DT_CALL_SETTLE(a, write);                                                                                          \
    DT_CALL_SETTLE(b, write);                                                                                          \
    DT_CALL_SETTLE(c, write);                                                                                          \
    DT_CALL_SETTLE(d, write);                                                                                          \
    DT_CALL_SETTLE(e, write);                                                                                          \
    DT_CALL_SETTLE(f, write);                                                                                          \
    DT_CALL_SETTLE(g, write);                                                                                          \
    DT_CALL_SETTLE(h, write);                                                                                          \
    DT_CALL_SETTLE(i, write)
#define DT_CALL_NAMES(...) __VA_ARGS__

/* The first operand that is written: its backend does the work. */
#define DT_CALL_TARGET(...) DT_CALL_TARGET_OF(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0, 0)
#define DT_CALL_TARGET_OF(a, b, c, d, e, f, g, h, i, ...)                                                              \
    (DT_ARG_IS_WRITTEN(a)   ? DT_ARG_WRITTEN(a)                                                                        \
     : DT_ARG_IS_WRITTEN(b) ? DT_ARG_WRITTEN(b)                                                                        \
     : DT_ARG_IS_WRITTEN(c) ? DT_ARG_WRITTEN(c)                                                                        \
     : DT_ARG_IS_WRITTEN(d) ? DT_ARG_WRITTEN(d)                                                                        \
     : DT_ARG_IS_WRITTEN(e) ? DT_ARG_WRITTEN(e)                                                                        \
     : DT_ARG_IS_WRITTEN(f) ? DT_ARG_WRITTEN(f)                                                                        \
     : DT_ARG_IS_WRITTEN(g) ? DT_ARG_WRITTEN(g)                                                                        \
     : DT_ARG_IS_WRITTEN(h) ? DT_ARG_WRITTEN(h)                                                                        \
                            : DT_ARG_WRITTEN(i))

#define DT_SLOT(ret, name, args)
#define DT_OP(name, args, names)                                                                                       \
    _Static_assert(DT_COUNT_ARGS names <= DT_MAX_ARGS, #name " has more arguments than are looked at");                \
    static inline dt_status dt_call_##name args                                                                        \
    {                                                                                                                  \
        const dt_array *target_ = DT_CALL_TARGET names;                                                                \
        if (dt_array_numel(target_) == 0) {                                                                            \
            return DT_OK;                                                                                              \
        }                                                                                                              \
        DT_CALL_SETTLE_ALL(true, DT_CALL_NAMES names);                                                                 \
        return target_->storage->backend->name names;                                                                  \
    }                                                                                                                  \
    static inline dt_status dt_call_new_##name args                                                                    \
    {                                                                                                                  \
        const dt_array *target_ = DT_CALL_TARGET names;                                                                \
        if (target_->storage->nbytes == 0) {                                                                           \
            return DT_OK;                                                                                              \
        }                                                                                                              \
        DT_CALL_SETTLE_ALL(false, DT_CALL_NAMES names);                                                                \
        return target_->storage->backend->name names;                                                                  \
    }
#include "slots.def"
#undef DT_SLOT

#endif
