"""3. Your own CUDA kernel, called with an array of the host, of a wrong dtype, or too few arguments.

Run it with `python FILE`; without a GPU, `python -m devtensor run --simulate 1 FILE` gives it a simulated one.
"""

import sys
import traceback

import devtensor as dt

SOURCE = """
extern "C" __global__ void scale(float *out, const float *x, float factor, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        out[i] = factor * x[i];
    }
}
"""

if not dt.cuda.is_available():
    print("a CUDA kernel needs a CUDA device: try it with `python -m devtensor run --simulate 1`")
    sys.exit()

# NVRTC compiles the source. The C parameters are read from it, and every argument is checked against them before the
# launch: the bare CUDA call would take any pointer, and write to a random place or crash.
scale = dt.cuda.RawKernel(SOURCE, "scale")
n = 1000
x = dt.arange(n, dtype=dt.float32, device="cuda")
out = dt.empty_like(x)

# The mistake: an array of the host.
try:
    scale[4, 256](out, x.cpu(), 2.0, n)
except RuntimeError:
    traceback.print_exc(limit=0)

# The mistake: float64 where the kernel reads floats. It would see nonsense.
try:
    scale[4, 256](out, x.double(), 2.0, n)
except RuntimeError as error:
    print(error)

# The mistake: n forgotten.
try:
    scale[4, 256](out, x, 2.0)
except RuntimeError as error:
    print(error)

# The correction: what the declaration says.
scale[4, 256](out, x, 2.0, n)
print(f"out[-1] == {out[-1].item()}")
