/* gemm_sets.c: which of the instruction sets this processor can run. */
#include <stdlib.h>

#include "gemm.h"

/* Best first. */
static const struct {
    const char *name;
    const gemm_set *set;
} sets[] = {
#if defined(__x86_64__)
    {"avx512", &cpu_gemm_avx512},
    {"avx2", &cpu_gemm_avx2},
#endif
    {"generic", &cpu_gemm_generic},
};
enum { NSETS = sizeof(sets) / sizeof(*sets) };

static int
best_set(void)
{
    int set = NSETS - 1;
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        set = __builtin_cpu_supports("avx512f") ? 0 : 1;
    }
#endif
    const char *name = getenv("DEVTENSOR_CPU"); /* a lesser set, for comparison */
    for (int i = set; name != NULL && i < NSETS; i++) {
        if (strcmp(name, sets[i].name) == 0) {
            return i;
        }
    }
    return set;
}

const gemm_dtype *
cpu_gemm_parts(dt_dtype dtype)
{
    static atomic_int chosen; /* plus one; 0: not yet */
    int set = atomic_load_explicit(&chosen, memory_order_relaxed) - 1;
    if (set < 0) {
        set = best_set();
        atomic_store_explicit(&chosen, set + 1, memory_order_relaxed);
    }
    return &sets[set].set->dtypes[dtype - DT_FLOAT16];
}
