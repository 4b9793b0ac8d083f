"""Kernels of users for the tests: CUDA C++ as in the tutorials, each with its launch and its reference in NumPy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Raw:
    """One kernel. inputs and result are NumPy arrays; None among args stands for the next of them, in order."""

    name: str
    source: str
    grid: Any
    block: Any
    inputs: list[np.ndarray]
    result: np.ndarray  # what the output holds before
    args: list[Any]
    expected: Callable[..., np.ndarray]
    dtypes: tuple[str, ...] = ()  # where NumPy has no such dtype
    shared: int = 0
    options: tuple[str, ...] = ()
    params: str | None = None
    close: float = 0.0
    more: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.name


rng = np.random.default_rng(0)
X = rng.standard_normal(1000).astype(np.float32)
Y = rng.standard_normal(1000).astype(np.float32)
A = rng.integers(-3, 4, (37, 29)).astype(np.float32)
B = rng.integers(-3, 4, (29, 41)).astype(np.float32)
IMAGE = rng.integers(0, 256, (20, 33)).astype(np.uint8)
BYTES = rng.integers(0, 256, 5000).astype(np.uint8)


def box(image: np.ndarray) -> np.ndarray:
    padded = np.pad(image.astype(np.int64), 1, mode="edge")
    total = sum(padded[i : i + image.shape[0], j : j + image.shape[1]] for i in range(3) for j in range(3))
    return (total // 9).astype(np.uint8)


KERNELS = [
    Raw(
        "vector_add",
        """
extern "C" __global__ void vector_add(const float *x, const float *y, float *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = x[i] + y[i];
}""",
        4, 256, [X, Y], np.zeros(1000, np.float32), [None, None, None, 1000], lambda x, y: x + y,
    ),
    Raw(
        "block_sum",
        """
// Each block adds up its part in shared memory, then adds that to the whole.
extern "C" __global__ void block_sum(const float *__restrict__ x, double *total, int n) {
    __shared__ double part[256];
    int t = threadIdx.x;
    double sum = 0;
    for (int i = blockIdx.x * blockDim.x + t; i < n; i += gridDim.x * blockDim.x) sum += x[i];
    part[t] = sum;
    __syncthreads();
    for (int k = blockDim.x / 2; k > 0; k /= 2) {
        if (t < k) part[t] += part[t + k];
        __syncthreads();
    }
    if (t == 0) atomicAdd(total, part[0]);
}""",
        3, 256, [X], np.zeros(1), [None, None, 1000], lambda x: np.array([x.astype(np.float64).sum()]), close=1e-10,
    ),
    Raw(
        "tiled_matmul",
        """
#define TILE 8
extern "C" __global__ void tiled_matmul(const float *a, const float *b, float *c, int m, int k, int n) {
    __shared__ float left[TILE][TILE], right[TILE][TILE + 1];
    int row = blockIdx.y * TILE + threadIdx.y, column = blockIdx.x * TILE + threadIdx.x;
    float sum = 0.0f;
    for (int first = 0; first < k; first += TILE) {
        int i = first + threadIdx.x, j = first + threadIdx.y;
        left[threadIdx.y][threadIdx.x] = row < m && i < k ? a[row * k + i] : 0.0f;
        right[threadIdx.y][threadIdx.x] = j < k && column < n ? b[j * n + column] : 0.0f;
        __syncthreads();
        for (int t = 0; t < TILE; t++) sum += left[threadIdx.y][t] * right[t][threadIdx.x];
        __syncthreads();
    }
    if (row < m && column < n) c[row * n + column] = sum;
}""",
        (6, 5), (8, 8), [A, B], np.zeros((37, 41), np.float32), [None, None, None, 37, 29, 41], lambda a, b: a @ b,
    ),
    Raw(
        "box_filter",
        """
__device__ int clamp_to(int i, int n) { return min(max(i, 0), n - 1); }

extern "C" __global__ void box_filter(const unsigned char *in, unsigned char *out, int h, int w) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    int sum = 0;
    for (int dy = -1; dy <= 1; dy++)
        for (int dx = -1; dx <= 1; dx++) sum += in[clamp_to(y + dy, h) * w + clamp_to(x + dx, w)];
    out[y * w + x] = (unsigned char)(sum / 9);
}""",
        (3, 2), (16, 16), [IMAGE], np.zeros_like(IMAGE), [None, None, 20, 33], box,
    ),
    Raw(
        "histogram",
        """
extern "C" __global__ void histogram(const unsigned char *data, unsigned int *bins, size_t n) {
    extern __shared__ unsigned int local[];
    for (int i = threadIdx.x; i < 256; i += blockDim.x) local[i] = 0;
    __syncthreads();
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n; i += (size_t)gridDim.x * blockDim.x)
        atomicAdd(&local[data[i]], 1u);
    __syncthreads();
    for (int i = threadIdx.x; i < 256; i += blockDim.x) atomicAdd(&bins[i], local[i]);
}""",
        5, 128, [BYTES], np.zeros(256, np.int32), [None, None, 5000],
        lambda d: np.bincount(d, minlength=256).astype(np.int32), shared=1024,
    ),
    Raw(
        "half_axpy",
        """
#include <cuda_fp16.h>
extern "C" __global__ void half_axpy(const half *x, half *y, half a, int n) {
    int i = threadIdx.x + blockIdx.x * blockDim.x;
    if (i < n) y[i] = __hadd(__hmul(a, x[i]), y[i]);
}""",
        4, 256, [X.astype(np.float16)], np.ones(1000, np.float16), [None, None, 0.5, 1000],
        lambda x: (np.float16(0.5) * x).astype(np.float16) + np.float16(1),
    ),
    Raw(
        "warp_sum",
        """
extern "C" __global__ void warp_sum(const int *x, int *out) {
    int v = x[threadIdx.x];
    for (int k = 16; k > 0; k >>= 1) v += __shfl_down_sync(0xffffffffu, v, k);
    unsigned odd = __ballot_sync(0xffffffffu, x[threadIdx.x] & 1);
    if (threadIdx.x % 32 == 0) {
        out[2 * (threadIdx.x / 32)] = v;
        out[2 * (threadIdx.x / 32) + 1] = __popc(odd);
    }
}""",
        1, 64, [np.arange(64, dtype=np.int32) % 5], np.zeros(4, np.int32), [None, None],
        lambda x: np.array([x[:32].sum(), (x[:32] % 2).sum(), x[32:].sum(), (x[32:] % 2).sum()], np.int32),
    ),
    Raw(
        "scan",
        """
extern "C" __global__ void scan(const long long *x, long long *y) {
    extern __shared__ long long s[];
    int t = threadIdx.x;
    s[t] = x[t];
    for (int k = 1; k < blockDim.x; k *= 2) {
        __syncthreads();
        long long v = t >= k ? s[t - k] : 0;
        __syncthreads();
        s[t] += v;
    }
    y[t] = s[t];
}""",
        1, 100, [np.arange(100, dtype=np.int64) ** 3], np.zeros(100, np.int64), [None, None], np.cumsum, shared=800,
    ),
    Raw(
        "vectors",
        """
extern "C" __global__ void vectors(const float4 *x, float4 *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        float4 v = x[i];
        y[i] = make_float4(v.w, v.z, v.y, v.x);
    }
}""",
        2, 128, [X], np.zeros(1000, np.float32), [None, None, 250], lambda x: x.reshape(-1, 4)[:, ::-1].reshape(-1),
    ),
    Raw(
        "every_number",
        """
extern "C" __global__ void every_number(double *out, bool flag, signed char a, unsigned char b, short c,
                                        unsigned short d, int e, unsigned f, long long g, uint64_t h, float i,
                                        double j, int8_t k) {
    out[0] = flag; out[1] = a; out[2] = b; out[3] = c; out[4] = d; out[5] = e; out[6] = f;
    out[7] = (double)g; out[8] = (double)h; out[9] = i; out[10] = j; out[11] = k;
}""",
        1, 1, [], np.zeros(12),
        [None, True, -128, 255, -32768, 65535, -(2**31), 2**32 - 1, -(2**63), 2**64 - 1, 0.1, 0.1, -1],
        lambda: np.array(
            [1, -128, 255, -32768, 65535, -(2**31), 2**32 - 1, -(2.0**63), 2.0**64, np.float32(0.1), 0.1, -1]
        ),
    ),
    Raw(
        "typed",
        """
typedef float real;
template <typename T, int N> struct Pair { T v[N]; };
template <typename T> __device__ T twice(T x) { Pair<T, 2> p; p.v[0] = p.v[1] = x; return p.v[0] + p.v[1]; }
__constant__ float weights[3] = {1.0f, 2.0f, 3.0f};
extern "C" __global__ void __launch_bounds__(64) typed(const real *x, real *y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = twice(x[i]) * weights[i % 3] + SHIFT;
}
extern "C" __global__ void another(real *y) { y[0] = 1; }""",
        5, 8, [X[:40]], np.zeros(40, np.float32), [None, None],
        lambda x: x * 2 * np.array([1, 2, 3] * 14, np.float32)[:40] + np.float32(1.5), options=("-DSHIFT=1.5f",),
        close=2**-22,  # a GPU rounds a product and a sum once, where they are one operation
    ),
    Raw(
        "given",
        """
#define ARGUMENTS const float *x, float *y, struct size s_
struct size { int n; };
extern "C" __global__ void given(const float *x, float *y, MANY n) { y[threadIdx.x] = x[threadIdx.x] * n; }""",
        1, 10, [X[:10]], np.zeros(10, np.float32), [None, None, 3], lambda x: x * 3, options=("-DMANY=int",),
        params="const float *x, float *y, int n",
    ),
    Raw(
        "spin",
        """
extern "C" __global__ void spin(int *lock, int *count) {
    for (int done = 0; !done;) {
        if (atomicCAS(lock, 0, 1) == 0) {
            *count += 1;
            __threadfence();
            atomicExch(lock, 0);
            done = 1;
        }
    }
}""",
        3, 64, [np.zeros(1, np.int32)], np.zeros(1, np.int32), [None, None], lambda _: np.array([192], np.int32),
        more={"writes_inputs": True},
    ),
    Raw(
        "life_in_three",
        """
extern "C" __global__ void life_in_three(int *out, int nx, int ny) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    int z = blockIdx.z * blockDim.z + threadIdx.z;
    out[(z * ny + y) * nx + x] = 100 * z + 10 * y + x;
}""",
        (2, 3, 2), (2, 1, 3), [], np.zeros((6, 3, 4), np.int32), [None, 4, 3],
        lambda: np.fromfunction(lambda z, y, x: 100 * z + 10 * y + x, (6, 3, 4), dtype=np.int32).astype(np.int32),
    ),
]  # fmt: skip
