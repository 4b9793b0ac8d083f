/* transfer.c: what is known of copies between devices, and who wants to know. */
#include "transfer.h"

atomic_int dt_transfer_watchers;
static dt_transfer_hooks hooks; /* set once, before there are arrays */

void
dt_set_transfer_hooks(dt_transfer_hooks given)
{
    hooks = given;
}

dt_status
dt_transfer_begin(const dt_transfer *t, dt_error *err)
{
    if (!dt_transfers_watched() || hooks.allows == NULL || hooks.allows(t)) {
        return DT_OK;
    }
    char source[DT_DEVICE_TEXT], target[DT_DEVICE_TEXT];
    dt_fail(err, DT_EFORBIDDEN, "transfer-forbidden", NULL,
            "a transfer of %zu bytes from %s to %s is forbidden here, and nothing was moved", t->nbytes,
            dt_device_text(t->source, source), dt_device_text(t->target, target));
    return DT_EFORBIDDEN;
}

void
dt_transfer_done(const dt_transfer *t)
{
    int64_t nbytes = (int64_t)t->nbytes;
    DT_COUNT(transfers, 1);
    if (t->source.type == DT_CPU) {
        DT_COUNT(bytes_to_device, nbytes);
    } else if (t->target.type == DT_CPU) {
        DT_COUNT(bytes_to_host, nbytes);
    } else {
        DT_COUNT(bytes_between_devices, nbytes);
    }
    if (dt_transfers_watched() && hooks.done != NULL) {
        hooks.done(t);
    }
}
