/* transfer.c: what is known of copies between devices. */
#include "devtensor.h"

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
}
