/* gemm_masked.h: packing lines (gemm_pack.h) with vectors W of numbers S of which parts can be read and written:
 * READ(mask, p), with zeros for the rest, and WRITE(p, mask, w). PAIRS(a, b) is every other number of two vectors. */
#define PER_LINE ((int64_t)(sizeof(W) / sizeof(S)))
#define FIRST(n) ((MASK)(((uint32_t)1 << (n)) - 1))

/* Lines of 1 or 2 vectors, the last of which may be less than whole. */
__attribute__((always_inline)) static inline void
DT_CAT(PACK, lines)(int vectors, S *to, const S *in, int64_t along, int64_t count, int64_t depth, int64_t width,
                    const int32_t *places)
{
    typedef W U __attribute__((aligned(sizeof(S)), may_alias));
    const MASK last = FIRST(count - (vectors - 1) * PER_LINE);
    for (int64_t p = 0; p < depth; p++, in += along) {
        S *line = to + (places ? places[p] : p) * width;
        __builtin_prefetch(in + 2 * width); /* the panel after the next: its lines are far apart */
        __builtin_prefetch(in + 2 * width + PER_LINE);
        UNROLL for (int i = 0; i < vectors; i++)
        {
            if (i < vectors - 1) {
                *(U *)(line + i * PER_LINE) = *(const U *)(in + i * PER_LINE);
            } else {
                WRITE(line + i * PER_LINE, last, READ(last, in + i * PER_LINE));
            }
        }
    }
}

static void
DT_CAT(PACK, neighbours)(S *to, const S *in, int64_t along, int64_t count, int64_t depth, int64_t width,
                         const int32_t *places)
{
    for (int64_t i = 0; i < count; i += 2 * PER_LINE) {
        const int64_t some = CPU_MIN(count - i, 2 * PER_LINE);
        if (some > PER_LINE) {
            DT_CAT(PACK, lines)(2, to + i, in + i, along, some, depth, width, places);
        } else {
            DT_CAT(PACK, lines)(1, to + i, in + i, along, some, depth, width, places);
        }
    }
}

/* Every other number of each line. */
static void
DT_CAT(PACK, evens)(S *to, const S *in, int64_t along, int64_t count, int64_t depth, int64_t width,
                    const int32_t *places)
{
    for (int64_t i = 0; i < count; i += PER_LINE) {
        const int64_t some = CPU_MIN(count - i, PER_LINE), numbers = 2 * some - 1;
        const MASK mask = FIRST(some), low = FIRST(CPU_MIN(numbers, PER_LINE));
        const MASK high = FIRST(CPU_MAX(numbers - PER_LINE, 0));
        const S *from = in + 2 * i;
        for (int64_t p = 0; p < depth; p++, from += along) {
            WRITE(to + (places ? places[p] : p) * width + i, mask, PAIRS(READ(low, from), READ(high, from + PER_LINE)));
        }
    }
}
#undef PER_LINE
#undef W
#undef MASK
#undef FIRST
#undef READ
#undef WRITE
#undef PAIRS
