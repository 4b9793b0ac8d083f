/* memory.c: the one door to the host's allocator, and the process-wide counters. */
#include "devtensor.h"

#include <stdlib.h>

dt_counter_set dt_counters;

static atomic_int_fast64_t live_blocks, calls;
static atomic_int_fast64_t fail_at = -1; /* index of the call that fails; < 0: none */
static atomic_bool fail_sticky;

void
dt_fail_allocations(int64_t n, bool sticky)
{
    fail_sticky = sticky;
    fail_at = n < 0 ? -1 : calls + n;
}

int64_t
dt_allocation_count(void)
{
    return calls;
}

int64_t
dt_live_blocks(void)
{
    return live_blocks;
}

static bool
should_fail(void)
{
    int64_t call = atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed);
    int64_t at = atomic_load_explicit(&fail_at, memory_order_relaxed);
    return DT_UNLIKELY(at >= 0) && (call == at || (fail_sticky && call > at));
}

static void *
counted(void *p)
{
    if (p != NULL) {
        atomic_fetch_add_explicit(&live_blocks, 1, memory_order_relaxed);
    }
    return p;
}

void *
dt_malloc(size_t nbytes)
{
    return should_fail() ? NULL : counted(malloc(nbytes ? nbytes : 1));
}

void *
dt_calloc(size_t count, size_t size)
{
    return should_fail() ? NULL : counted(calloc(count ? count : 1, size ? size : 1));
}

void *
dt_malloc_aligned(size_t nbytes)
{
    if (nbytes > SIZE_MAX - 64 || should_fail()) {
        return NULL;
    }
    return counted(aligned_alloc(64, (nbytes + 64) & ~(size_t)63));
}

void
dt_free(void *p)
{
    if (p != NULL) {
        atomic_fetch_sub_explicit(&live_blocks, 1, memory_order_relaxed);
        free(p);
    }
}
