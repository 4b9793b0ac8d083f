/* isa.c: which instruction set runs; see isa.h. */
#include "isa.h"
#include "../core/environment.h"

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

cpu_isa
cpu_isa_choose(void)
{
    cpu_isa isa = best(), lesser = (cpu_isa)dt_environment_word(DT_ENV_CPU, (int)isa); /* for comparison */
    isa = lesser < isa ? lesser : isa;
    atomic_store_explicit(&cpu_isa_chosen, (int)isa + 1, memory_order_relaxed);
    return isa;
}
