/* gemm_lines.h: packing lines (gemm_pack.h) with whole vectors V. */

/* Lines of `vectors` vectors, the last of which ends with the line and may lie over the one before. */
__attribute__((always_inline)) static inline void
DT_CAT(PACK, lines)(int vectors, S *to, const S *in, int64_t along, int64_t count, int64_t depth, int64_t width,
                    const int32_t *places)
{
    typedef V U __attribute__((aligned(sizeof(S)), may_alias));
    const int64_t last = count - LENGTH;
    for (int64_t p = 0; p < depth; p++, in += along) {
        S *line = to + (places ? places[p] : p) * width;
        __builtin_prefetch(in + 2 * width); /* the panel after the next: its lines are far apart */
        UNROLL for (int i = 0; i < vectors; i++)
        {
            const int64_t at = i < vectors - 1 ? i * LENGTH : last;
            *(U *)(line + at) = *(const U *)(in + at);
        }
    }
}

static void
DT_CAT(PACK, neighbours)(S *to, const S *in, int64_t along, int64_t count, int64_t depth, int64_t width,
                         const int32_t *places)
{
    const int64_t vectors = count < LENGTH ? 0 : CPU_CEIL_DIV(count, LENGTH);
    switch (vectors) {
    case 1:
        DT_CAT(PACK, lines)(1, to, in, along, count, depth, width, places);
        break;
    case 2:
        DT_CAT(PACK, lines)(2, to, in, along, count, depth, width, places);
        break;
    case 4:
        DT_CAT(PACK, lines)(4, to, in, along, count, depth, width, places);
        break;
    case 0:
        for (int64_t p = 0; p < depth; p++) {
            DT_CAT(PACK, few)(to + (places ? places[p] : p) * width, in + p * along, count);
        }
        break;
    default:
        for (int64_t i = 0; i < vectors; i++) {
            int64_t at = CPU_MIN(i * LENGTH, count - LENGTH);
            DT_CAT(PACK, lines)(1, to + at, in + at, along, LENGTH, depth, width, places);
        }
    }
}

#ifdef EVENS
/* Every other number of each line. */
static void
DT_CAT(PACK, evens)(S *to, const S *in, int64_t along, int64_t count, int64_t depth, int64_t width,
                    const int32_t *places)
{
    typedef V U __attribute__((aligned(sizeof(S)), may_alias));
    for (int64_t p = 0; p < depth; p++, in += along) {
        S *line = to + (places ? places[p] : p) * width;
        for (int64_t i = 0; i < count && count >= LENGTH; i += LENGTH) {
            const int64_t at = CPU_MIN(i, count - LENGTH);
            *(U *)(line + at) = EVENS(*(const U *)(in + 2 * at), *(const U *)(in + 2 * at + LENGTH - 1));
        }
        const S *from = in;
        for (int64_t n = LENGTH / 2; n > 0 && count < LENGTH; n /= 2) {
            for (int64_t i = 0; i < n && (count & n) != 0; i++) {
                *line++ = from[2 * i];
            }
            from += 2 * (count & n);
        }
    }
}
#endif
