/* loops.c: which of the instruction sets this processor can run. */
#include <stdlib.h>

#include "loops.h"

_Atomic(const cpu_loops *) cpu_chosen_loops;

/* Best first. */
static const cpu_loops *const sets[] = {
#if defined(__x86_64__)
    &cpu_loops_avx512,
    &cpu_loops_avx2,
#endif
    &cpu_loops_generic,
};
enum { NSETS = sizeof(sets) / sizeof(*sets) };

static int
best_set(void)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2")) { /* all that have it convert float16, too */
        return NSETS - 1;
    }
    if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
        !__builtin_cpu_supports("avx512dq") || !__builtin_cpu_supports("avx512vl")) {
        return 1;
    }
#endif
    return 0;
}

const cpu_loops *
cpu_choose_loops(void)
{
    int set = best_set();
    const char *name = getenv("DEVTENSOR_CPU"); /* a lesser set, for comparison */
    for (int i = set; name != NULL && i < NSETS; i++) {
        if (strcmp(name, sets[i]->name) == 0) {
            set = i;
        }
    }
    atomic_store_explicit(&cpu_chosen_loops, sets[set], memory_order_release);
    return sets[set];
}
