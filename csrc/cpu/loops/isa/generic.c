/* generic.c: the loops with what the compiler takes for granted. */
#include "../../../core/numbers/philox.h"
#include "../loops.h"

#define SET generic
#define VECTOR_BYTES 16
#define HAS_F16C 0
#if defined(__FP_FAST_FMAF) || defined(__ARM_FEATURE_FMA)
#define HAS_FMA 1
#else
#define HAS_FMA 0
#endif
#define HAS_INT64_CASTS 0
#include "../loops.inc"
