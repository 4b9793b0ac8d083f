/* each_gather.h: the kernel of gather.cu that moves a T at a time. */
#define K_NAMED_(name) k_gather_##name
#define K_NAMED(name) K_NAMED_(name)

/* A thread has several elements in flight, which all wait for their index first. */
K_KERNEL(K_NAMED(NAME), k_gather_args, a)
{
    enum { depth = K_GATHER_DEPTH, tile = depth * DT_MAX_THREADS };
    T *out = DT_GLOBAL(T, a.out.address, a.out.nbytes);
    const void *indices = K_OPEN_INDEX(&a.by, 0);
    const T *x = a.x.address ? DT_GLOBAL(const T, a.x.address, a.x.nbytes) : 0;
    T value;
    memcpy(&value, &a.x.bits, sizeof(T) < sizeof(a.x.bits) ? sizeof(T) : sizeof(a.x.bits)); /* vectors have none */
    const int64_t tiles = (a.by.index.numel - 1) / tile + 1;
    DT_ROLLED DT_FOR_BLOCKS(b, tiles)
    {
        DT_ROLLED DT_FOR_THREADS(thread, DT_MAX_THREADS)
        {
            int64_t to[depth], from[depth], index[depth];
            T got[depth];
            const int64_t first = b * tile + thread;
            DT_UNROLLED for (int u = 0; u < depth; u++)
            {
                const int64_t i = first + u * DT_MAX_THREADS;
                if (i < a.by.index.numel) {
                    int64_t at[3];
                    k_locate(&a.by.index, 3, i, at);
                    to[u] = at[0];
                    from[u] = at[1];
                    index[u] = k_load_index(&a.by, 0, indices, at[2]);
                }
            }
            DT_UNROLLED for (int u = 0; u < depth; u++)
            {
                const int64_t i = first + u * DT_MAX_THREADS;
                if (i < a.by.index.numel) {
                    const int64_t place = k_place_all(&a.by, i, index[u]);
                    memset(&got[u], 0, sizeof(T)); /* what is out of range gives zeros, or is not written */
                    if (place >= 0 || a.put) {
                        got[u] = x == 0 ? value : x[from[u] + (a.put ? 0 : place)];
                    }
                    to[u] = a.put ? (place < 0 ? -1 : to[u] + place) : to[u];
                }
            }
            DT_UNROLLED for (int u = 0; u < depth; u++)
            {
                if (first + u * DT_MAX_THREADS < a.by.index.numel && to[u] >= 0) {
                    out[to[u]] = got[u];
                }
            }
        }
    }
}
#undef K_NAMED
#undef K_NAMED_
