/* large.c: blocks of the host that cost more to touch for the first time than to fill. Those given back are kept warm,
 * up to a limit, and serve the next request of about their size. Where another thread is inside, or was at a fork, the
 * system's allocator is asked instead. */
#define _GNU_SOURCE
#include "../devtensor.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define HEADER ((size_t)64)
#define HUGE_PAGE ((size_t)2 << 20)
#define PAGE ((size_t)4096)
#define MAX_KEPT 64
#define MOST ((size_t)1 << 30)

#if defined(__SANITIZE_ADDRESS__)
#define KEEPS false /* the sanitizer shall see a use after free */
#elif defined(__has_feature)
#define KEEPS !__has_feature(address_sanitizer)
#else
#define KEEPS true
#endif

typedef struct {
    size_t size; /* header included */
} header;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static header *kept[MAX_KEPT]; /* oldest first */
static int nkept;
static dt_large_info info;
static atomic_size_t limit = SIZE_MAX; /* not known yet */

static size_t
large_limit(void)
{
    size_t most = atomic_load(&limit);
    if (most == SIZE_MAX) {
        long page = sysconf(_SC_PAGESIZE), pages = sysconf(_SC_PHYS_PAGES);
        most = KEEPS && page > 0 && pages > 0 ? (size_t)page * (size_t)pages / 8 : 0;
        most = most < MOST ? most : MOST;
        atomic_store(&limit, most);
    }
    return most;
}

/* The i-th kept block, which is no longer kept. */
static header *
take(int i)
{
    header *h = kept[i];
    nkept--;
    for (; i < nkept; i++) {
        kept[i] = kept[i + 1];
    }
    info.kept -= h->size;
    return h;
}

/* The smallest block that holds size bytes and wastes no more than an eighth, of equals the last that was given back,
 * which may still be in the caches; NULL: there is none. */
static header *
find_block(size_t size)
{
    int best = -1;
    for (int i = 0; i < nkept; i++) {
        if (kept[i]->size >= size && kept[i]->size - size <= size / 8 &&
            (best < 0 || kept[i]->size <= kept[best]->size)) {
            best = i;
        }
    }
    return best < 0 ? NULL : take(best);
}

static header *
ask_system(size_t size)
{
    void *p = NULL;
    if (posix_memalign(&p, size >= HUGE_PAGE ? HUGE_PAGE : HEADER, size) != 0) {
        return NULL;
    }
#ifdef MADV_HUGEPAGE
    if (size >= HUGE_PAGE) {
        (void)madvise(p, size, MADV_HUGEPAGE);
    }
#endif
    return p;
}

static size_t
rounded(size_t nbytes)
{
    size_t step = nbytes >= 4 * HUGE_PAGE ? HUGE_PAGE : PAGE;
    return (nbytes + HEADER + step - 1) / step * step;
}

void *
dt_large_new(size_t nbytes)
{
    if (nbytes > SIZE_MAX - 2 * HUGE_PAGE) {
        return NULL;
    }
    size_t size = rounded(nbytes);
    header *h = NULL;
    if (KEEPS && pthread_mutex_trylock(&lock) == 0) {
        h = find_block(size);
        info.requests++;
        info.reused += h != NULL;
        pthread_mutex_unlock(&lock);
    }
    bool fresh = h == NULL;
    if (fresh && (h = ask_system(size)) == NULL) {
        dt_large_trim(0);
        h = ask_system(size);
    }
    if (h == NULL) {
        return dt_adopt(NULL);
    }
    if (fresh) {
        h->size = size;
    }
    if (dt_adopt(h) == NULL) {
        free(h);
        return NULL;
    }
    return (char *)h + HEADER;
}

void
dt_large_free(void *p)
{
    if (p == NULL) {
        return;
    }
    header *h = (header *)(void *)((char *)p - HEADER);
    dt_disown(h);
    size_t most = large_limit();
    if (!KEEPS || h->size > most || pthread_mutex_trylock(&lock) != 0) {
        free(h);
        return;
    }
    while (nkept == MAX_KEPT || (nkept > 0 && info.kept > most - h->size)) {
        free(take(0));
    }
    kept[nkept++] = h;
    info.kept += h->size;
    pthread_mutex_unlock(&lock);
}

void
dt_large_trim(size_t keep)
{
    if (pthread_mutex_trylock(&lock) != 0) {
        return;
    }
    while (nkept > 0 && info.kept > keep) {
        free(take(0));
    }
    pthread_mutex_unlock(&lock);
}

void
dt_large_set_limit(size_t nbytes)
{
    atomic_store(&limit, nbytes < SIZE_MAX ? nbytes : SIZE_MAX - 1);
    dt_large_trim(nbytes);
}

dt_large_info
dt_large_read(void)
{
    pthread_mutex_lock(&lock);
    dt_large_info now = info;
    pthread_mutex_unlock(&lock);
    now.limit = large_limit();
    return now;
}
