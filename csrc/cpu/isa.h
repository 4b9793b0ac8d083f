/* isa.h: the instruction sets that loops (loops.inc) and products (gemm.inc) are built for, and which one runs. */
#ifndef DT_CPU_ISA_H
#define DT_CPU_ISA_H

#include "../core/devtensor.h"

typedef enum {
    CPU_GENERIC, /* what the compiler takes for granted */
#if defined(__x86_64__)
    CPU_AVX2,   /* with its conversions of float16, and FMA */
    CPU_AVX512, /* F, BW, DQ and VL, which all such processors for servers and desktops have */
#endif
    CPU_NISAS
} cpu_isa;

extern atomic_int cpu_isa_chosen; /* plus one; 0: not yet */
cpu_isa cpu_isa_choose(void);

/* The best that this processor runs, or a lesser one that DEVTENSOR_CPU names. */
static inline cpu_isa
cpu_isa_here(void)
{
    int chosen = atomic_load_explicit(&cpu_isa_chosen, memory_order_relaxed);
    return DT_UNLIKELY(chosen == 0) ? cpu_isa_choose() : (cpu_isa)(chosen - 1);
}

/* Functions between CPU_ISA_AVX2, or CPU_ISA_AVX512, and CPU_ISA_END are compiled for that set. */
#define CPU_PRAGMA(...) _Pragma(#__VA_ARGS__)
#if defined(__clang__)
#define CPU_ISA(target_) CPU_PRAGMA(clang attribute push(__attribute__((target(target_))), apply_to = function))
#define CPU_ISA_END CPU_PRAGMA(clang attribute pop)
#else
#define CPU_ISA(target_) CPU_PRAGMA(GCC target(target_))
#define CPU_ISA_END CPU_PRAGMA(GCC reset_options)
#endif
#define CPU_ISA_AVX2 CPU_ISA("avx2,fma,f16c")
#define CPU_ISA_AVX512 CPU_ISA("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")

#endif
