/* heap.h: what each thread keeps of the host's memory, and the blocks that every op needs, inline (memory.c). */
#ifndef DT_HEAP_H
#define DT_HEAP_H

#include "../devtensor.h"

/* Blocks between the two sizes that the library gives away in steps of a quarter of the power of two below. */
#define DT_MIN_SIZED_BITS 6
#define DT_MAX_SIZED_BITS 17 /* DT_LARGE_BLOCK */
#define DT_NSIZES (4 * (DT_MAX_SIZED_BITS - DT_MIN_SIZED_BITS) + 1)

typedef struct dt_spare {
    struct dt_spare *next;
} dt_spare;

typedef struct dt_heap {
    atomic_int_fast64_t calls, live; /* written by the owner alone, so never by a locked instruction */
    dt_spare *spares;                /* of DT_SMALL_BLOCK bytes */
    int nspares;
    dt_spare *sized[DT_NSIZES];
    uint8_t nsized[DT_NSIZES];
    bool known;
    struct dt_heap *next;
} dt_heap;

extern _Thread_local dt_heap dt_heap_here __attribute__((tls_model("initial-exec")));
extern atomic_bool dt_failures_planned;

#define DT_SMALL_BLOCK 160 /* bytes */
#define DT_MAX_SPARE 64

/* A fresh block, if none is planned to fail. */
void *dt_block_new_slowly(void);

/* Adds n to a counter of this thread. */
static inline void
dt_heap_count(atomic_int_fast64_t *counter, int64_t n)
{
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + n, memory_order_relaxed);
}

/* A block of DT_SMALL_BLOCK bytes, of the kind that every op needs; each thread keeps a few of them. */
static inline void *
dt_block_new(void)
{
    dt_spare *first = dt_heap_here.spares;
    if (DT_UNLIKELY(first == NULL || atomic_load_explicit(&dt_failures_planned, memory_order_relaxed))) {
        return dt_block_new_slowly();
    }
    dt_heap_here.spares = first->next;
    dt_heap_here.nspares--;
    dt_heap_count(&dt_heap_here.calls, 1);
    dt_heap_count(&dt_heap_here.live, 1);
    return first;
}

static inline void
dt_block_free(void *p)
{
#if !defined(__SANITIZE_ADDRESS__) /* which shall see a use after free */
    if (dt_heap_here.known && dt_heap_here.nspares < DT_MAX_SPARE) {
        dt_spare *block = p;
        block->next = dt_heap_here.spares;
        dt_heap_here.spares = block;
        dt_heap_here.nspares++;
        dt_heap_count(&dt_heap_here.live, -1);
        return;
    }
#endif
    dt_free(p);
}

#endif
