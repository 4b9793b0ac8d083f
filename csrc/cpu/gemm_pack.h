/* gemm_pack.h: packing a panel (gemm_pack) of numbers S with vectors V. Included with PACK its name, and if the
 * instruction set has them TRANSPOSE of as many vectors as one has numbers, and EVENS(a, b) of two vectors, the second
 * of which begins with the last number of the first. */
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

#ifdef TRANSPOSE
/* Up to LENGTH rows whose steps are neighbours; returns the steps that were packed. spill: what is written behind a
 * line is the next one's. */
__attribute__((always_inline)) static inline int64_t
DT_CAT(PACK, squares)(S *to, const S *in, int64_t across, int64_t count, int64_t depth, int64_t width,
                      const int32_t *places, bool spill)
{
    typedef V U __attribute__((aligned(sizeof(S)), may_alias));
    int64_t p = 0;
    for (; p + LENGTH <= depth; p += LENGTH) {
        V square[LENGTH];
        for (int i = 0; i < LENGTH; i++) {
            square[i] = i < count ? *(const U *)(in + i * across + p) : (V){0};
        }
        TRANSPOSE(square);
        bool whole = count == LENGTH || (spill && p + 2 * LENGTH <= depth);
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
    return p;
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
    if (along == 1) {
        for (int64_t i = 0; i < count; i += LENGTH) {
            int64_t rows = CPU_MIN(LENGTH, count - i), done;
            bool spill = places == NULL && count == width && count < LENGTH;
            done = rows == LENGTH
                       ? DT_CAT(PACK, squares)(to + i, in + i * across, across, LENGTH, depth, width, places, false)
                       : DT_CAT(PACK, squares)(to + i, in + i * across, across, rows, depth, width, places, spill);
            for (; done < depth; done++) {
                DT_CAT(PACK, any)
                (to + i + (places ? 0 : done) * width, in + i * across + done, across, 1, rows, 1, width,
                 places ? places + done : NULL);
            }
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
