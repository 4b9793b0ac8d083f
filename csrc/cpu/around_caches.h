/* around_caches.h: stores with hints that nobody will read them soon. The caches then need not read the lines first
 * that are about to be overwritten. */
#ifndef DT_CPU_AROUND_CACHES_H
#define DT_CPU_AROUND_CACHES_H

#include "cpu.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#define CPU_STREAM_FROM ((int64_t)16 << 20) /* bytes of output: below, it may stay in the cache for its reader */

/* nbytes, a multiple of 64; both addresses are, too */
static inline void
cpu_store_around_caches(char *to, const char *from, int64_t nbytes)
{
#if defined(__SSE2__)
    for (int64_t i = 0; i < nbytes; i += 16) {
        _mm_stream_si128((__m128i *)(void *)(to + i), _mm_load_si128((const __m128i *)(const void *)(from + i)));
    }
#else
    memcpy(to, from, (size_t)nbytes);
#endif
}

/* They come before what this thread says next. */
static inline void
cpu_end_stores(void)
{
#if defined(__SSE2__)
    _mm_sfence();
#endif
}

#endif
