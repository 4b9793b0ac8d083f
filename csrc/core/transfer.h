/* transfer.h: copies between devices, and who wants to know of them. */
#ifndef DT_TRANSFER_H
#define DT_TRANSFER_H

#include "devtensor.h"

/* A copy between devices that carries bytes. */
typedef struct {
    size_t nbytes; /* on the bus */
    dt_device source, target;
    bool pinned;      /* the host's side is page-locked */
    bool synchronous; /* the call returns when the bytes are copied */
} dt_transfer;

/* A backend calls this before anything of a transfer is done. */
dt_status dt_transfer_begin(const dt_transfer *t, dt_error *err) DT_MUST_CHECK;
/* And this once for each that went well. */
void dt_transfer_done(const dt_transfer *t);
/* Who wants to know of transfers, while dt_transfer_watchers is not 0: allows answers false for one that must not be.
 */
typedef struct {
    bool (*allows)(const dt_transfer *t);
    void (*done)(const dt_transfer *t);
} dt_transfer_hooks;
void dt_set_transfer_hooks(dt_transfer_hooks hooks);
extern atomic_int dt_transfer_watchers;
static inline bool
dt_transfers_watched(void)
{
    return DT_UNLIKELY(atomic_load_explicit(&dt_transfer_watchers, memory_order_relaxed) != 0);
}

#endif
