/* memory.h: memory of the host (memory.c, large.c), and the counters of the process. Part of devtensor.h. */
#ifndef DT_MEMORY_H
#define DT_MEMORY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All host allocation goes through these, so that a test can make the n-th one fail. NULL on failure. */
void *dt_malloc(size_t nbytes);
void *dt_calloc(size_t count, size_t size);
void *dt_malloc_aligned(size_t nbytes); /* 64-byte aligned */
void dt_free(void *p);
/* Counts p, got elsewhere, as an allocation, which may be planned to fail: NULL, and p is still the caller's. */
void *dt_adopt(void *p);
void dt_disown(void *p);
/* Like dt_malloc_aligned, from warm blocks given back before where one fits: large.c. */
#define DT_LARGE_BLOCK ((size_t)128 << 10)
void *dt_large_new(size_t nbytes);
void dt_large_free(void *p);
/* Gives blocks back to the system until no more than keep bytes are kept. */
void dt_large_trim(size_t keep);
void dt_large_set_limit(size_t nbytes);
typedef struct {
    size_t kept, limit; /* bytes */
    int64_t requests, reused;
} dt_large_info;
dt_large_info dt_large_read(void);
/* The n-th call from now fails (0: the next one), and all after it when sticky; n < 0 disarms. */
void dt_fail_allocations(int64_t n, bool sticky);
/* Number of allocations asked for so far, and of blocks alive. */
int64_t dt_allocation_count(void);
int64_t dt_live_blocks(void);

/* Lets other threads run. */
void dt_sleep_briefly(void);

#define DT_COUNTERS(X)                                                                                                 \
    X(allocations) /* device and large host blocks asked of a backend */                                               \
    X(transfers)   /* copies between devices that carry bytes */                                                       \
    X(bytes_to_device)                                                                                                 \
    X(bytes_to_host)                                                                                                   \
    X(bytes_between_devices)                                                                                           \
    X(launches) /* kernels and library calls sent to a device */                                                       \
    X(synchronizations)

typedef struct {
#define DT_COUNTER(name) atomic_int_fast64_t name;
    DT_COUNTERS(DT_COUNTER)
#undef DT_COUNTER
} dt_counter_set;

extern dt_counter_set dt_counters;
#define DT_COUNT(name, n) atomic_fetch_add_explicit(&dt_counters.name, (n), memory_order_relaxed)

#endif
