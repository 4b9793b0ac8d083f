// builtins.hpp: what CUDA C++ adds to C++, for the user's compiler. One thread of one block runs at a time.
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define __global__ __attribute__((used))
// Kernels that are not asked for: source.c. Nothing calls them, so that their shared memory is not there either.
#define __dtothers inline
#define __device__
#define __host__
#define __constant__
#define __managed__ __managed_variables_are_not_simulated__
#define __shared__ static __attribute__((section("dt_shared")))
#define __dtextern
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__
#define __launch_bounds__(...)
#define __grid_constant__
#define __align__(n) __attribute__((aligned(n)))
#define __CUDA_ARCH__ DT_CUDA_ARCH

// ---------------------------------------------------------------- vectors

#define DT_VECTOR(type, name, bytes1, bytes2, bytes3, bytes4)                                                          \
    struct __align__(bytes1) name##1 {                                                                                 \
        type x;                                                                                                        \
    };                                                                                                                 \
    struct __align__(bytes2) name##2 {                                                                                 \
        type x, y;                                                                                                     \
    };                                                                                                                 \
    struct __align__(bytes3) name##3 {                                                                                 \
        type x, y, z;                                                                                                  \
    };                                                                                                                 \
    struct __align__(bytes4) name##4 {                                                                                 \
        type x, y, z, w;                                                                                               \
    };                                                                                                                 \
    static inline name##1 make_##name##1(type x) { return {x}; }                                                       \
    static inline name##2 make_##name##2(type x, type y) { return {x, y}; }                                            \
    static inline name##3 make_##name##3(type x, type y, type z) { return {x, y, z}; }                                 \
    static inline name##4 make_##name##4(type x, type y, type z, type w) { return {x, y, z, w}; }

DT_VECTOR(signed char, char, 1, 2, 1, 4)
DT_VECTOR(unsigned char, uchar, 1, 2, 1, 4)
DT_VECTOR(short, short, 2, 4, 2, 8)
DT_VECTOR(unsigned short, ushort, 2, 4, 2, 8)
DT_VECTOR(int, int, 4, 8, 4, 16)
DT_VECTOR(unsigned, uint, 4, 8, 4, 16)
DT_VECTOR(long, long, 8, 16, 8, 16)
DT_VECTOR(unsigned long, ulong, 8, 16, 8, 16)
DT_VECTOR(long long, longlong, 8, 16, 8, 16)
DT_VECTOR(unsigned long long, ulonglong, 8, 16, 8, 16)
DT_VECTOR(float, float, 4, 8, 4, 16)
DT_VECTOR(double, double, 8, 16, 8, 16)
#undef DT_VECTOR

struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {}
};

extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;
static const int warpSize = 32;

// ---------------------------------------------------------------- threads of a block: run.hpp

void dt_barrier();
// Waits until the lanes of mask that have not ended are there too.
void dt_warp_barrier(unsigned mask);
unsigned dt_lane();
// Eight bytes for each lane of this thread's warp.
uint64_t *dt_warp_slots();
unsigned dt_live_lanes();
[[noreturn]] void dt_trap();
[[noreturn]] void dt_failed_assertion(const char *file, int line, const char *text);
// A number for each thread of the block to add to, between two barriers.
int dt_barrier_sum(int value, int *all);
// Lets the other threads of the block run now and then, so that one that waits for them by atomics goes on.
void dt_atomic_step();

static inline void __syncthreads() { dt_barrier(); }
static inline void __syncwarp(unsigned mask = 0xffffffffu) { dt_warp_barrier(mask); }
static inline void __threadfence() {}
static inline void __threadfence_block() {}
static inline void __threadfence_system() {}
static inline int __syncthreads_count(int predicate) {
    int all;
    return dt_barrier_sum(predicate != 0, &all);
}
static inline int __syncthreads_or(int predicate) { return __syncthreads_count(predicate) != 0; }
static inline int __syncthreads_and(int predicate) {
    int all, n = dt_barrier_sum(predicate != 0, &all);
    return n == all;
}
static inline void __trap() { dt_trap(); }
static inline void __nanosleep(unsigned) { dt_atomic_step(); }
long long clock64();
#undef assert
#define assert(condition) ((condition) ? (void)0 : dt_failed_assertion(__FILE__, __LINE__, #condition))

// ---------------------------------------------------------------- lanes of a warp

static inline unsigned __activemask() { return dt_live_lanes(); }

static inline unsigned __ballot_sync(unsigned mask, int predicate) {
    uint64_t *slots = dt_warp_slots();
    slots[dt_lane()] = predicate != 0;
    dt_warp_barrier(mask);
    unsigned found = 0;
    for (unsigned lane = 0; lane < 32; lane++) {
        found |= (mask & dt_live_lanes()) >> lane & 1 && slots[lane] ? 1u << lane : 0;
    }
    dt_warp_barrier(mask);
    return found;
}
static inline int __any_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }
static inline int __all_sync(unsigned mask, int predicate) { return __ballot_sync(mask, !predicate) == 0; }

// What lane `from` gave; a thread's own where that is outside of its segment.
template <class T> static inline T dt_shuffle(unsigned mask, T value, int from, bool inside) {
    static_assert(sizeof(T) <= 8, "a shuffle moves at most 8 bytes");
    uint64_t *slots = dt_warp_slots();
    memcpy(&slots[dt_lane()], &value, sizeof(T));
    dt_warp_barrier(mask);
    if (inside) {
        memcpy(&value, &slots[from & 31], sizeof(T));
    }
    dt_warp_barrier(mask);
    return value;
}
template <class T> static inline T __shfl_sync(unsigned mask, T value, int lane, int width = 32) {
    int first = (int)dt_lane() & ~(width - 1);
    return dt_shuffle(mask, value, first + (lane & (width - 1)), true);
}
template <class T> static inline T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32) {
    int from = (int)dt_lane() - (int)delta;
    return dt_shuffle(mask, value, from, from >= ((int)dt_lane() & ~(width - 1)));
}
template <class T> static inline T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32) {
    int from = (int)dt_lane() + (int)delta;
    return dt_shuffle(mask, value, from, from <= ((int)dt_lane() | (width - 1)));
}
template <class T> static inline T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32) {
    int from = (int)dt_lane() ^ bits;
    return dt_shuffle(mask, value, from, from <= ((int)dt_lane() | (width - 1)));
}
