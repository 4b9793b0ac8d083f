/* handle.c: handles are names, not pointers: 0x5, kind, tag, generation, index. A stale or foreign one is recognised
 * without being followed, and no processor can follow one. */
#include "sim.h"

#define INDEX_BITS 20
#define GENERATION_BITS 20
#define TAG_BITS 16
#define MARK UINT64_C(0x50)

typedef struct {
    void *object; /* NULL: free */
    uint32_t generation;
    uint32_t next_free; /* index + 1 */
    sim_kind kind;
} entry;

static entry *entries;
static size_t nentries, room;
static uint32_t first_free;
static int64_t counts[SIM_NKINDS];

static uint64_t
handle_name(sim_kind kind, uint32_t generation, size_t index)
{
    return (MARK + kind) << 56 | (uint64_t)generation << INDEX_BITS | index;
}

static entry *
find_handle(sim_kind kind, const void *handle)
{
    uint64_t name = (uint64_t)(uintptr_t)handle;
    size_t index = name & ((1u << INDEX_BITS) - 1);
    if (index >= nentries || entries[index].object == NULL || entries[index].kind != kind ||
        name != handle_name(kind, entries[index].generation, index)) {
        return NULL;
    }
    return &entries[index];
}

static bool
grow_handles(void)
{
    size_t more = room ? room * 2 : 256;
    if (more > (size_t)1 << INDEX_BITS) {
        return false;
    }
    entry *bigger = dt_malloc(more * sizeof(entry));
    if (bigger == NULL) {
        return false;
    }
    if (nentries > 0) {
        memcpy(bigger, entries, nentries * sizeof(entry));
    }
    dt_free(entries);
    entries = bigger;
    room = more;
    return true;
}

void *
sim_handle_new(sim_kind kind, void *object)
{
    size_t index;
    if (first_free != 0) {
        index = first_free - 1;
        first_free = entries[index].next_free;
    } else {
        if (nentries == room && !grow_handles()) {
            return NULL;
        }
        index = nentries++;
        entries[index].generation = 0;
    }
    entries[index].object = object;
    entries[index].kind = kind;
    counts[kind]++;
    return (void *)(uintptr_t)handle_name(kind, entries[index].generation, index);
}

void *
sim_handle_get(sim_kind kind, const void *handle)
{
    entry *e = find_handle(kind, handle);
    return e ? e->object : NULL;
}

void *
sim_handle_delete(sim_kind kind, const void *handle)
{
    entry *e = find_handle(kind, handle);
    if (e == NULL) {
        return NULL;
    }
    void *object = e->object;
    e->object = NULL;
    e->generation = (e->generation + 1) & ((1u << GENERATION_BITS) - 1);
    e->next_free = first_free;
    first_free = (uint32_t)(e - entries) + 1;
    counts[kind]--;
    return object;
}

int64_t
sim_handle_count(sim_kind kind)
{
    return counts[kind];
}

void *
sim_handle_next(sim_kind kind, size_t *position, void **handle)
{
    for (; *position < nentries; ++*position) {
        entry *e = &entries[*position];
        if (e->object != NULL && e->kind == kind) {
            *handle = (void *)(uintptr_t)handle_name(kind, e->generation, *position);
            ++*position;
            return e->object;
        }
    }
    return NULL;
}

void *
sim_handle_tag(void *handle, unsigned tag)
{
    return (void *)((uintptr_t)handle | (uintptr_t)tag << (INDEX_BITS + GENERATION_BITS));
}

void *
sim_handle_untag(const void *handle, unsigned *tag)
{
    uintptr_t name = (uintptr_t)handle;
    uintptr_t mask = (((uintptr_t)1 << TAG_BITS) - 1) << (INDEX_BITS + GENERATION_BITS);
    *tag = (unsigned)((name & mask) >> (INDEX_BITS + GENERATION_BITS));
    return (void *)(name & ~mask);
}
