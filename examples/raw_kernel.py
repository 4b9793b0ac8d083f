"""A CUDA kernel of your own, from a mistake to a result. Runs anywhere: without a GPU on a simulated one.

    python examples/raw_kernel.py

The kernel adds two images and brightens the sum. It is called as everybody calls a kernel the first time: with an
array that is still on the host, with the wrong dtype, then right; last, with one thread too many.
"""

from __future__ import annotations

import numpy as np

import devtensor as dt

if not dt.cuda.is_available():
    dt.testing.simulate_cuda(1)

SOURCE = """
extern "C" __global__ void blend(const float *a, const float *b, float *out, float gain, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = gain * (a[i] + b[i]);
}
"""


def main() -> None:
    blend = dt.cuda.RawKernel(SOURCE, "blend")
    print(f"{blend!r} on {dt.cuda.get_device_name()}\n")

    photo = np.linspace(0, 1, 64 * 64).reshape(64, 64)  # float64, as NumPy makes it
    a = dt.from_numpy(photo)
    b = dt.rand(64, 64, device="cuda")
    out = dt.empty(64, 64, device="cuda")
    n = out.numel()
    grid, block = (n + 255) // 256, 256

    for attempt in range(3):
        try:
            blend[grid, block](a, b, out, 0.5, n)
            print(f"attempt {attempt + 1} ran\n")
        except RuntimeError as error:
            print(f"attempt {attempt + 1}: {type(error).__name__}: {error}")
            print("\n".join(error.__notes__), end="\n\n")
            a = a.to("cuda") if isinstance(error, dt.DeviceMismatchError) else a.float()

    worst = (out - 0.5 * (a + b)).abs().max().item()
    print(f"largest difference from the same with ops: {worst:g}")
    print(f"what it needs: {blend.attributes}\n")

    if dt.cuda.is_simulated():  # a real GPU would be lost, and not say why
        careless = dt.cuda.RawKernel(SOURCE.replace("i < n", "i <= n"), "blend")
        careless[grid + 1, block](a, b, out, 0.5, n)
        try:
            dt.cuda.synchronize()
        except dt.CudaError as error:
            print(f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    main()
