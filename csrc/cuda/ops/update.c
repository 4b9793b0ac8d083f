/* update.c: what an optimizer does to parameters: as many of them a launch as its arguments have room for. */
#include <string.h>

#include "../launch/launch.h"
#include "ops.h"

_Static_assert(sizeof(k_update_args) <= 4096, "what a launch takes");

static void
fill_entry(k_update_entry *to, const dt_update_entry *entry, int nstates)
{
    to->numel = dt_array_numel(entry->array[DT_UPDATE_PARAM]);
    for (int k = 0; k < DT_UPDATE_STATE + nstates; k++) {
        to->address[k] = cuda_address(entry->array[k]);
    }
}

static bool
has_wide_states(const dt_update *update)
{
    const dt_update_entry *entry = &update->entry[0];
    return update->nstates > 0 && entry->array[DT_UPDATE_STATE]->dtype != entry->array[DT_UPDATE_PARAM]->dtype;
}

dt_status
cuda_update(const dt_update *update, dt_array *param, dt_error *err)
{
    cuda_device *d;
    CUfunction function;
    k_update_args args = {.rule = (int32_t)update->rule, .wide = has_wide_states(update)};
    memcpy(args.number, update->number, sizeof(args.number));
    DT_TRY(cuda_enter(param->storage->device.index, &d, err));
    DT_TRY(cuda_function(d, CUDA_FAMILY_OTHER, CUDA_KERNEL_update, (dt_dtype)param->dtype, &function, err));
    for (int i = 0; i < update->n; i += args.n) {
        int64_t chunks = 0;
        args.n = update->n - i < K_UPDATE_ENTRIES ? update->n - i : K_UPDATE_ENTRIES;
        for (int k = 0; k < args.n; k++) {
            fill_entry(&args.entry[k], &update->entry[i + k], update->nstates);
            args.entry[k].chunks = chunks += (args.entry[k].numel - 1) / K_UPDATE_CHUNK + 1;
        }
        DT_TRY(cuda_launch_blocks(d, function, chunks, &args, err));
    }
    return DT_OK;
}
