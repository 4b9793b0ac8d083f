/* isa.c: which instruction set runs; see isa.h. */
#include "isa.h"

#include <stdlib.h>

atomic_int cpu_isa_chosen;

static cpu_isa
best(void)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) { /* all with both convert float16, too */
        return CPU_GENERIC;
    }
    bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    return wide ? CPU_AVX512 : CPU_AVX2;
#else
    return CPU_GENERIC;
#endif
}

static const char *const names[CPU_NISAS] = {
    [CPU_GENERIC] = "generic",
#if defined(__x86_64__)
    [CPU_AVX2] = "avx2",
    [CPU_AVX512] = "avx512",
#endif
};

const char *
cpu_isa_misread(const char **known)
{
    const char *text = getenv("DEVTENSOR_CPU");
    *known = CPU_NISAS > 1 ? "generic, avx2 or avx512" : "generic";
    for (int i = 0; text != NULL && i < CPU_NISAS; i++) {
        if (text[0] == '\0' || strcmp(text, names[i]) == 0) {
            text = NULL;
        }
    }
    return text;
}

cpu_isa
cpu_isa_choose(void)
{
    cpu_isa isa = best();
    const char *lesser = getenv("DEVTENSOR_CPU"); /* for comparison */
    for (int i = CPU_GENERIC; lesser != NULL && i < (int)isa; i++) {
        if (strcmp(lesser, names[i]) == 0) {
            isa = (cpu_isa)i;
        }
    }
    atomic_store_explicit(&cpu_isa_chosen, (int)isa + 1, memory_order_relaxed);
    return isa;
}
