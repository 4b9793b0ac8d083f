/* generic.c: the loops with what the compiler takes for granted. */
#include "../../../core/numbers/philox.h"
#include "../loops.h"

#define SET generic
#define VECTOR_BYTES 16
#define HAS_F16C 0
#define HAS_FMA 0
#define HAS_INT64_CASTS 0
#include "../loops.inc"
