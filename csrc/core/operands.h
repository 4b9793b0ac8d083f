/* operands.h: what an op reads and writes, by the types of its arguments in slots.def, so that no slot and no caller
 * has to think of it. */
#ifndef DT_OPERANDS_H
#define DT_OPERANDS_H

#include "devtensor.h"

/* An argument as what it is, else NULL. */
#define DT_ARG_ARRAY(x) _Generic((x), const dt_array * : (x), dt_array * : (x), default : (const dt_array *)NULL)
#define DT_ARG_READ(x) _Generic((x), const dt_array * : (x), default : (const dt_array *)NULL)
#define DT_ARG_WRITTEN(x) _Generic((x), dt_array * : (x), default : (dt_array *)NULL)
#define DT_ARG_IS_WRITTEN(x) _Generic((x), dt_array * : true, default : false)
#define DT_ARG_INDEX(x) _Generic((x), const dt_index * : (x), default : (const dt_index *)NULL)
#define DT_ARG_UPDATE(x) _Generic((x), const dt_update * : (x), default : (const dt_update *)NULL)

/* The macros below and those that are made of them look at so many arguments; call.h sees to it that no op has more. */
#define DT_MAX_ARGS 9
#define DT_COUNT_ARGS(...) DT_COUNT_ARGS_OF(__VA_ARGS__, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define DT_COUNT_ARGS_OF(a, b, c, d, e, f, g, h, i, j, k, l, n, ...) n

/* Whether an update writes that one of an entry's arrays. */
static inline bool
dt_update_writes(int array)
{
    return array != DT_UPDATE_GRAD;
}

static inline void
dt_all_updated(const dt_update *update)
{
    for (int i = 0; update != NULL && i < update->n; i++) {
        for (int k = 0; k < DT_UPDATE_STATE + update->nstates; k++) {
            dt_written(dt_update_writes(k) ? update->entry[i].array[k] : NULL);
        }
    }
}

/* After a slot: each array that it writes has changed. An op that has an update has it first. */
#define DT_ALL_WRITTEN(...) DT_ALL_WRITTEN_OF(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0, 0)
#define DT_ALL_WRITTEN_OF(a, b, c, d, e, f, g, h, i, ...)                                                              \
    (dt_all_updated(DT_ARG_UPDATE(a)), dt_written(DT_ARG_WRITTEN(a)), dt_written(DT_ARG_WRITTEN(b)),                   \
     dt_written(DT_ARG_WRITTEN(c)), dt_written(DT_ARG_WRITTEN(d)), dt_written(DT_ARG_WRITTEN(e)),                      \
     dt_written(DT_ARG_WRITTEN(f)), dt_written(DT_ARG_WRITTEN(g)), dt_written(DT_ARG_WRITTEN(h)),                      \
     dt_written(DT_ARG_WRITTEN(i)))

#endif
