/* kernel.h: one body per kernel, for nvcc, for NVRTC and for the host compiler.
 *
 *   DT_KERNEL(k_name, args_type, a) { ... }
 *
 * A kernel takes one struct by value. On a GPU its threads share the work; on the host the simulated GPU runs it as a
 * single thread of a single block, so a kernel must be right for any grid and block: it strides over its work by
 * DT_FOR (threads of the whole grid) or DT_FOR_BLOCKS and DT_FOR_THREADS (blocks, then threads of a block), and between
 * threads of a block it shares only through DT_SHARED and DT_SYNC. tests/c/test_kernels.c (DT_EMULATED) runs the same
 * source with all threads of a block in turn, so that a missing DT_SYNC shows.
 *
 * Pointers in the struct are device addresses: read them with DT_GLOBAL. On the host that checks the address against
 * the simulated device and gives the memory behind it; a kernel that forgets dies at once. */
#ifndef DT_KERNEL_H
#define DT_KERNEL_H

#include "../core/numbers/scalar.h"

#ifdef __CUDACC__
#define DT_ENTRY(name, args_type, a)                                                                                   \
    extern "C" __global__ void __launch_bounds__(DT_MAX_THREADS DT_ROOM) name(const __grid_constant__ args_type a)
#ifdef DT_ALONE
/* Only the kernels for which DT_ALONE_name is defined, as a comma: it makes DT_ENTRY the second argument. The others
 * become functions that nobody calls, which cost next to no time. */
#define DT_SECOND_(a, b, ...) b
#define DT_SECOND(...) DT_SECOND_(__VA_ARGS__, )
#define DT_KERNEL(name, args_type, a)                                                                                  \
    DT_SECOND(DT_ALONE_##name DT_ENTRY(name, args_type, a), static __device__ void name(const args_type a))
#else
#define DT_KERNEL(name, args_type, a) DT_ENTRY(name, args_type, a)
#endif
#define DT_GLOBAL(type, address, nbytes) ((type *)(address))
#define DT_SHARED __shared__
#define DT_SYNC() __syncthreads()
#define DT_SYNC_SIDE() __syncwarp()              /* between 32 threads side by side */
#define DT_FENCE_SYSTEM() __threadfence_system() /* the host sees what was written before, then what comes after */
#define DT_THREAD ((int)threadIdx.x)
#define DT_THREADS ((int)blockDim.x)
#define DT_BLOCK ((int64_t)blockIdx.x)
#define DT_BLOCKS ((int64_t)gridDim.x)
/* *(uint64_t *)p = value if it is expected; the larger of the two: both return what was there */
#define DT_ATOMIC_CAS(p, expected, value)                                                                              \
    ((uint64_t)atomicCAS((unsigned long long *)(p), (unsigned long long)(expected), (unsigned long long)(value)))
#define DT_ATOMIC_MAX(p, value) ((uint64_t)atomicMax((unsigned long long *)(p), (unsigned long long)(value)))
/* The same for a uint32_t that threads of a block share: one more, and the larger of the two. */
#define DT_ATOMIC_COUNT(p) ((uint32_t)atomicAdd((unsigned *)(p), 1u))
#define DT_ATOMIC_MAX_32(p, value) ((uint32_t)atomicMax((unsigned *)(p), (unsigned)(value)))
#define DT_DEVICE static __device__ __forceinline__
#define DT_DEVICE_RARE static __device__ __noinline__ /* keeps kernels small */
#define DT_ALIGNAS(n) alignas(n)
#define DT_ROLLED _Pragma("unroll 1")
#define DT_UNROLLED _Pragma("unroll")
#else
/* The simulated GPU finds kernels by name in the section dt_kernels. */
typedef struct {
    const char *name;
    void (*run)(const void *args);
    unsigned args_size;
} dt_host_kernel;

#define DT_KERNEL(name, args_type, a)                                                                                  \
    static void name(const args_type a);                                                                               \
    static void name##_run(const void *args)                                                                           \
    {                                                                                                                  \
        args_type copy;                                                                                                \
        memcpy(&copy, args, sizeof(copy));                                                                             \
        name(copy);                                                                                                    \
    }                                                                                                                  \
    static const dt_host_kernel name##_entry                                                                           \
        __attribute__((section("dt_kernels"), used, aligned(8))) = {#name, name##_run, sizeof(args_type)};             \
    static void name(const args_type a)

/* The memory behind a simulated device's address; a wrong address ends the launch as an illegal access. */
void *sim_global(uint64_t address, uint64_t nbytes, int written, unsigned alignment);
#define DT_IS_CONST(type) __builtin_types_compatible_p(type *, const __typeof__(type) *)
#define DT_GLOBAL(type, address, nbytes)                                                                               \
    ((type *)sim_global((uint64_t)(address), (uint64_t)(nbytes), !DT_IS_CONST(type), (unsigned)__alignof__(type)))
#ifdef DT_EMULATED
int emulated_thread(void);
int emulated_threads(void);
int64_t emulated_block(void);
int64_t emulated_blocks(void);
void emulated_sync(void);
void emulated_sync_side(void);
void emulated_fence(void);
#define DT_SHARED static /* blocks run one after another */
#define DT_SYNC() emulated_sync()
#define DT_SYNC_SIDE() emulated_sync_side()
#define DT_FENCE_SYSTEM() emulated_fence()
#define DT_THREAD emulated_thread()
#define DT_THREADS emulated_threads()
#define DT_BLOCK emulated_block()
#define DT_BLOCKS emulated_blocks()
#else
#define DT_SHARED
#define DT_SYNC() ((void)0)
#define DT_SYNC_SIDE() ((void)0)
#define DT_FENCE_SYSTEM() __atomic_thread_fence(__ATOMIC_RELEASE)
#define DT_THREAD 0
#define DT_THREADS 1
#define DT_BLOCK ((int64_t)0)
#define DT_BLOCKS ((int64_t)1)
#endif
static inline uint64_t
dt_atomic_cas(uint64_t *p, uint64_t expected, uint64_t value)
{
    uint64_t seen = *p;
    *p = seen == expected ? value : seen;
    return seen;
}

static inline uint64_t
dt_atomic_max(uint64_t *p, uint64_t value)
{
    uint64_t seen = *p;
    *p = seen > value ? seen : value;
    return seen;
}
static inline uint32_t
dt_atomic_count(uint32_t *p)
{
    return (*p)++;
}

static inline uint32_t
dt_atomic_max_32(uint32_t *p, uint32_t value)
{
    uint32_t seen = *p;
    *p = seen > value ? seen : value;
    return seen;
}
#define DT_ATOMIC_COUNT(p) dt_atomic_count(p)
#define DT_ATOMIC_MAX_32(p, value) dt_atomic_max_32(p, value)
#define DT_ATOMIC_CAS(p, expected, value) dt_atomic_cas(p, expected, value)
#define DT_ATOMIC_MAX(p, value) dt_atomic_max(p, value)
#define DT_DEVICE static inline
#define DT_DEVICE_RARE static inline
#define DT_ALIGNAS(n) _Alignas(n)
#define DT_ROLLED
#define DT_UNROLLED
#endif

#define DT_MAX_THREADS 256
/* What follows DT_MAX_THREADS in the bounds of a launch; ", 2" blocks a multiprocessor leave large kernels registers
 * that the compiler would else trade for spills. */
#define DT_ROOM
#define DT_FOR(i, n) for (int64_t i = DT_BLOCK * DT_THREADS + DT_THREAD; i < (n); i += DT_BLOCKS * DT_THREADS)
#define DT_FOR_BLOCKS(i, n) for (int64_t i = DT_BLOCK; i < (n); i += DT_BLOCKS)
#define DT_FOR_THREADS(i, n) for (int i = DT_THREAD; i < (n); i += DT_THREADS)

#endif
