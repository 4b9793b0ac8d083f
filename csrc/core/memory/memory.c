/* memory.c: the one door to the host's allocator, and the process-wide counters.
 *
 * Each thread counts for itself, since a shared counter would cost more than the arithmetic of a small op, and keeps a
 * few blocks of the size that every op needs. */
#include "heap.h"
#include "sized.h"

#include <pthread.h>
#include <stdlib.h>

dt_counter_set dt_counters;

#define MAX_SPARE_SIZED 4 /* of each size */

_Thread_local dt_heap dt_heap_here __attribute__((tls_model("initial-exec")));

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t at_exit;
static bool has_key;
static dt_heap *heaps;
static int64_t retired_calls, retired_live; /* of threads that are gone */

atomic_bool dt_failures_planned;
static atomic_bool sticky_failure;
static atomic_int_fast64_t left;

static int64_t
get(const atomic_int_fast64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

/* The thread ends: its counts are kept, its blocks go back. */
static void
heap_leave(void *p)
{
    dt_heap *own = p;
    pthread_mutex_lock(&lock);
    for (dt_heap **at = &heaps; *at != NULL; at = &(*at)->next) {
        if (*at == own) {
            *at = own->next;
            break;
        }
    }
    retired_calls += get(&own->calls);
    retired_live += get(&own->live);
    pthread_mutex_unlock(&lock);
    while (own->spares != NULL) {
        dt_spare *first = own->spares;
        own->spares = first->next;
        free(first);
    }
    for (int i = 0; i < DT_NSIZES; i++) {
        while (own->sized[i] != NULL) {
            dt_spare *first = own->sized[i];
            own->sized[i] = first->next;
            free(first);
        }
        own->nsized[i] = 0;
    }
    own->calls = own->live = 0;
    own->nspares = 0;
    own->known = false;
}

static void
take_lock(void)
{
    pthread_mutex_lock(&lock);
}

static void
give_lock(void)
{
    pthread_mutex_unlock(&lock);
}

static void
make_key(void)
{
    has_key = pthread_key_create(&at_exit, heap_leave) == 0;
    (void)pthread_atfork(take_lock, give_lock, give_lock); /* no fork while another thread is inside */
}

static DT_NOINLINE void
heap_join(void)
{
    pthread_once(&once, make_key);
    if (has_key && pthread_setspecific(at_exit, &dt_heap_here) == 0) {
        pthread_mutex_lock(&lock);
        dt_heap_here.next = heaps;
        heaps = &dt_heap_here;
        pthread_mutex_unlock(&lock);
        dt_heap_here.known = true;
    }
}

static int64_t
total(const int64_t *retired, size_t counter)
{
    pthread_mutex_lock(&lock);
    int64_t sum = *retired;
    for (const dt_heap *h = heaps; h != NULL; h = h->next) {
        sum += get((const atomic_int_fast64_t *)(const void *)((const char *)h + counter));
    }
    pthread_mutex_unlock(&lock);
    return sum;
}

int64_t
dt_allocation_count(void)
{
    return total(&retired_calls, offsetof(dt_heap, calls));
}

int64_t
dt_live_blocks(void)
{
    return total(&retired_live, offsetof(dt_heap, live));
}

void
dt_fail_allocations(int64_t n, bool sticky)
{
    atomic_store(&dt_failures_planned, false);
    atomic_store(&sticky_failure, sticky);
    atomic_store(&left, n);
    atomic_store(&dt_failures_planned, n >= 0);
}

static bool
planned_failure(void)
{
    int64_t n = atomic_fetch_sub(&left, 1);
    return n == 0 || (n < 0 && atomic_load(&sticky_failure));
}

/* Every request passes here; false: it fails. */
static inline bool
request(void)
{
    if (DT_UNLIKELY(!dt_heap_here.known)) {
        heap_join();
    }
    dt_heap_count(&dt_heap_here.calls, 1);
    return !(DT_UNLIKELY(atomic_load_explicit(&dt_failures_planned, memory_order_relaxed)) && planned_failure());
}

static inline void *
counted(void *p)
{
    dt_heap_count(&dt_heap_here.live, p != NULL);
    return p;
}

void *
dt_malloc(size_t nbytes)
{
    return request() ? counted(malloc(nbytes ? nbytes : 1)) : NULL;
}

void *
dt_calloc(size_t count, size_t size)
{
    return request() ? counted(calloc(count ? count : 1, size ? size : 1)) : NULL;
}

void *
dt_malloc_aligned(size_t nbytes)
{
    return nbytes <= SIZE_MAX - 64 && request() ? counted(aligned_alloc(64, (nbytes + 64) & ~(size_t)63)) : NULL;
}

void
dt_free(void *p)
{
    if (p != NULL) {
        if (DT_UNLIKELY(!dt_heap_here.known)) {
            heap_join();
        }
        dt_heap_count(&dt_heap_here.live, -1);
        free(p);
    }
}

void *
dt_adopt(void *p)
{
    return request() ? counted(p) : NULL;
}

void
dt_disown(void *p)
{
    if (DT_UNLIKELY(!dt_heap_here.known)) {
        heap_join();
    }
    dt_heap_count(&dt_heap_here.live, -(p != NULL));
}

DT_NOINLINE void *
dt_block_new_slowly(void)
{
    return request() ? counted(malloc(DT_SMALL_BLOCK)) : NULL;
}

/* Which size of blocks serves nbytes, more than 64 and below DT_LARGE_BLOCK, and how large it is. */
static inline int
size_of_block(size_t nbytes, size_t *size)
{
    int power = 63 - __builtin_clzll((unsigned long long)(nbytes - 1)); /* 2 ** power < nbytes <= 2 ** (power + 1) */
    int quarter = (int)((nbytes - 1) >> (power - 2)) & 3;
    *size = (((size_t)(5 + quarter) << (power - 2)) + 63) & ~(size_t)63;
    return 4 * (power - DT_MIN_SIZED_BITS) + quarter;
}

void *
dt_sized_new(size_t nbytes)
{
    if (!request()) {
        return NULL;
    }
    size_t size;
    int i = size_of_block(nbytes, &size);
    dt_spare *first = dt_heap_here.sized[i];
    if (first == NULL) {
        return counted(aligned_alloc(64, size));
    }
    dt_heap_here.sized[i] = first->next;
    dt_heap_here.nsized[i]--;
    return counted(first);
}

void
dt_sized_free(void *p, size_t nbytes)
{
#if !defined(__SANITIZE_ADDRESS__)
    if (DT_UNLIKELY(!dt_heap_here.known)) {
        heap_join();
    }
    size_t size;
    int i = size_of_block(nbytes, &size);
    if (p != NULL && dt_heap_here.known && dt_heap_here.nsized[i] < MAX_SPARE_SIZED) {
        dt_spare *block = p;
        block->next = dt_heap_here.sized[i];
        dt_heap_here.sized[i] = block;
        dt_heap_here.nsized[i]++;
        dt_heap_count(&dt_heap_here.live, -1);
        return;
    }
#else
    (void)nbytes;
#endif
    dt_free(p);
}

void
dt_sleep_briefly(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
}
