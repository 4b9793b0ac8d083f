/* packed_cache.h: bytes made from an array of the host (packed weights), which are kept as long as its own do not
 * change.
 *
 * What is asked for once is only noted. Asked for again with nothing written in between, it is made and kept. After
 * each write (dt_written) whatever was kept of the storage is forgotten; memory that others may write is never kept. */
#ifndef DT_PACKED_CACHE_H
#define DT_PACKED_CACHE_H

#include "../devtensor.h"

#define DT_KEPT_NUMBERS 12

/* All that the bytes depend on but the storage; numbers that are not needed are 0. */
typedef struct {
    int64_t numbers[DT_KEPT_NUMBERS];
} dt_kept_key;

typedef struct dt_kept dt_kept;

/* Holds the bytes under key, which make(ctx, to) writes if need be, until dt_kept_release. NULL: not kept. */
dt_kept *dt_kept_get(dt_storage *from, const dt_kept_key *key, size_t nbytes, void (*make)(const void *ctx, void *to),
                     const void *ctx);
const void *dt_kept_data(const dt_kept *kept);
void dt_kept_release(dt_kept *kept);

/* At most nbytes are kept from now on; at first DEVTENSOR_PACKED_LIMIT, or 64 MiB. */
void dt_kept_set_limit(size_t nbytes);
/* Forgets what was made from storage. */
void dt_kept_forget(dt_storage *storage);
/* Forgets everything. */
void dt_kept_clear(void);

typedef struct {
    size_t kept, limit; /* bytes */
} dt_kept_info;
dt_kept_info dt_kept_read(void);

#endif
