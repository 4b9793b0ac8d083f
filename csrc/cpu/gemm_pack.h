/* gemm_pack.h: packing a panel (gemm_pack) of numbers S with vectors V. Included with PACK its name, and if the
 * instruction set has them TRANSPOSE of as many vectors as one has numbers, and either EVENS(a, b) of two vectors, the
 * second of which begins with the last number of the first, or what gemm_masked.h wants. */
#define LENGTH ((int64_t)(sizeof(V) / sizeof(S)))

/* The first count numbers, fewer than a vector's, without touching more. */
static inline void
DT_CAT(PACK, few)(S *to, const S *from, int64_t count)
{
    for (int64_t n = LENGTH / 2; n > 0; n /= 2) {
        if (count & n) {
            memcpy(to, from, (size_t)n * sizeof(S));
            to += n;
            from += n;
        }
    }
}

#ifdef W
#define EVENS
#include "gemm_masked.h"
#else
#include "gemm_lines.h"
#endif

static void
DT_CAT(PACK, any)(S *to, const S *in, int64_t across, int64_t along, int64_t count, int64_t depth, int64_t width,
                  const int32_t *places)
{
    for (int64_t p = 0; p < depth; p++, in += along) {
        S *line = to + (places ? places[p] : p) * width;
        if (across == 2) {
            for (int64_t i = 0; i < count; i++) {
                line[i] = in[2 * i];
            }
        } else {
            for (int64_t i = 0; i < count; i++) {
                line[i] = in[i * across];
            }
        }
    }
}

#ifdef TRANSPOSE
/* Up to LENGTH rows whose steps, LENGTH or more, are neighbours. spill: what is written behind a line is the beginning
 * of the next one, which is yet to be written. */
__attribute__((always_inline)) static inline void
DT_CAT(PACK, squares)(S *to, const S *in, int64_t across, int64_t count, int64_t depth, int64_t width,
                      const int32_t *places, bool spill)
{
    typedef V U __attribute__((aligned(sizeof(S)), may_alias));
    for (int64_t next = 0; next < depth; next += LENGTH) {
        const int64_t p = CPU_MIN(next, depth - LENGTH); /* the last may lie over the one before */
        V square[LENGTH];
        for (int i = 0; i < LENGTH; i++) {
            square[i] = i < count ? *(const U *)(in + i * across + p) : (V){0};
            __builtin_prefetch(in + (i + width) * across + p); /* of the next panel */
        }
        TRANSPOSE(square);
        bool whole = count == LENGTH || (spill && next + 2 * LENGTH <= depth);
        for (int i = 0; i < LENGTH; i++) {
            S *line = to + (places ? places[p + i] : p + i) * width;
            if (whole) {
                *(U *)line = square[i];
            } else {
                S numbers[LENGTH];
                *(U *)numbers = square[i];
                DT_CAT(PACK, few)(line, numbers, count);
            }
        }
    }
}
#endif

static void
PACK(void *panel, const void *from, int64_t across, int64_t along, int64_t count, int64_t depth, int64_t width,
     const int32_t *places)
{
    S *to = panel;
    const S *in = from;
    if (across == 1) {
        DT_CAT(PACK, neighbours)(to, in, along, count, depth, width, places);
        return;
    }
#ifdef EVENS
    if (across == 2) {
        DT_CAT(PACK, evens)(to, in, along, count, depth, width, places);
        return;
    }
#endif
#ifdef TRANSPOSE
    if (along == 1 && depth >= LENGTH) {
        const int64_t rest = count % LENGTH;
        if (rest != 0) { /* first, so that what it spills is overwritten */
            const int64_t i = count - rest;
            const bool spill = places == NULL && count == width;
            DT_CAT(PACK, squares)(to + i, in + i * across, across, rest, depth, width, places, spill);
        }
        for (int64_t i = 0; i + LENGTH <= count; i += LENGTH) {
            DT_CAT(PACK, squares)(to + i, in + i * across, across, LENGTH, depth, width, places, false);
        }
        return;
    }
#endif
    DT_CAT(PACK, any)(to, in, across, along, count, depth, width, places);
}
#undef LENGTH
#undef PACK
#undef S
#undef V
#undef TRANSPOSE
#undef EVENS
