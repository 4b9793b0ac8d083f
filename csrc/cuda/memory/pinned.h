/* pinned.h: a block of page-locked memory, between pinned.c and pinned_uses.c. */
#ifndef DT_CUDA_PINNED_H
#define DT_CUDA_PINNED_H

#include "memory.h"

#define CUDA_NUSES 8

struct cuda_use {
    cuda_device *device; /* of the event */
    CUevent event;
    CUstream stream;
    bool active, writes;
};

/* What arrives in `from` belongs, cast, into `to`; done by the first that waits. */
typedef struct cuda_deferred {
    struct cuda_deferred *next;
    dt_array from, to; /* to is in the storage of the block: no reference */
} cuda_deferred;

typedef struct cuda_pinned_block {
    struct cuda_pinned_block *next;
    void *data;
    size_t nbytes;        /* of its class */
    pthread_mutex_t lock; /* the rest */
    cuda_use uses[CUDA_NUSES];
    cuda_deferred *deferred;
    bool lost; /* something runs on it that has no event */
} cuda_pinned_block;

/* Whether a copy may still run on b. */
bool cuda_block_is_busy(cuda_pinned_block *b);
/* Forgets what nobody will look at any more; whether a copy may still run on b, without asking. */
bool cuda_block_abandon(cuda_pinned_block *b);

#endif
