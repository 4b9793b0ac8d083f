"""A race of two CUDA streams, found without a GPU: a pipeline that lacks one wait, and what says so.

    python examples/races.py

Frames are brightened on one stream and added up on another, by kernels of our own. devtensor orders what two streams
do to one array by itself, CuPy and PyTorch do not: with races="strict" the simulated GPU counts only what the program
says.
"""

from __future__ import annotations

import devtensor as dt

dt.testing.simulate_cuda(1, races="strict")

SOURCE = """
extern "C" __global__ void brighten(float *frame, float by, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) frame[i] += by;
}
extern "C" __global__ void add_up(const float *frame, float *total, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) total[i] += frame[i];
}
"""
N = 1000
brighten, add_up = dt.cuda.RawKernel(SOURCE, "brighten"), dt.cuda.RawKernel(SOURCE, "add_up")


def pipeline(frames: list[dt.DeviceArray], total: dt.DeviceArray, waits: bool) -> None:
    first, second = dt.cuda.Stream(), dt.cuda.Stream()
    done = dt.cuda.Event()
    for frame in frames:
        brighten[4, 256, 0, first](frame, 0.5, N)
        done.record(first)
        if waits:
            second.wait_event(done)
        add_up[4, 256, 0, second](frame, total, N)
    second.synchronize()


def main() -> None:
    frames, total = [dt.ones(N, device="cuda") for _ in range(3)], dt.zeros(N, device="cuda")
    dt.cuda.synchronize()
    try:
        pipeline(frames, total, waits=False)
    except dt.CudaError as error:
        print(f"{type(error).__name__}, {error.code}:\n{error}\n")
    dt.cuda.synchronize()
    for array in (*frames, total):
        array.zero_()
    dt.cuda.synchronize()
    pipeline(frames, total, waits=True)
    print(f"with the wait: {total[0].item()}")  # 1.5


if __name__ == "__main__":
    main()
