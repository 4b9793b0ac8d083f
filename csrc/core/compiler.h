/* compiler.h: what compilers are told besides C. Part of devtensor.h. */
#ifndef DT_COMPILER_H
#define DT_COMPILER_H

#if defined(__GNUC__)
#define DT_MUST_CHECK __attribute__((warn_unused_result))
#define DT_PRINTF(fmt, first) __attribute__((format(printf, fmt, first)))
#define DT_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define DT_NOINLINE __attribute__((noinline)) /* what is rare, so that what is not saves no registers for it */
#if defined(__clang__)
#define DT_SHORT_LOOP _Pragma("clang loop unroll(disable)")
#else
#define DT_SHORT_LOOP _Pragma("GCC unroll 1") /* before a loop of few turns, such as over dimensions */
#endif
#else
#define DT_MUST_CHECK
#define DT_PRINTF(fmt, first)
#define DT_UNLIKELY(x) (x)
#define DT_NOINLINE
#define DT_SHORT_LOOP
#endif

#endif
