"""What must work on a GPU before anything else does, each in a process of its own: python tools/gpu/gpu_probe.py NAME.

driver copy kernel reduction rawkernel matmul conv2d streams memory exit: one thing each. ops: every op of the case
table and products of every kind once, against their references; for a sanitizer. own: those ops alone that no library
writes to, as initcheck does not see what cuBLASLt's kernels for Hopper write.
"""

import re
import sys
from pathlib import Path

import numpy as np

import devtensor as dt

ROOT = Path(__file__).resolve().parents[2]
TWICE = """
extern "C" __global__ void twice(float *x, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= 2;
}
"""


def agree(result, expected, rtol=0.0):
    """The result is what it should be; NaN never passes."""
    found = result.to("cpu", dt.float64).numpy()
    error = np.max(np.abs(found - expected) / np.maximum(np.abs(expected), 1), initial=0)
    print(f"{result.dtype} {tuple(result.shape)}: largest error {error:.3g}")
    if not error <= rtol:
        raise AssertionError(f"largest error {error:.3g}, more than {rtol:.3g}")


def driver():
    print(dt.cuda.get_device_properties(0))
    print(dt._C._cuda_report())
    problems = [text for text in dt._C._cuda_probe() if text]
    if problems:
        raise AssertionError("; ".join(problems))


def copy():
    for dtype in (np.float32, np.float64, np.int8, np.bool_):
        values = np.arange(1 << 20).astype(dtype)
        assert (dt.from_numpy(values).to("cuda").cpu().numpy() == values).all(), dtype
        assert (dt.from_numpy(values).pin_memory().to("cuda", non_blocking=True).cpu().numpy() == values).all(), dtype
    agree(dt.from_numpy(np.arange(1e6) / 7).to("cuda", dt.float32), (np.arange(1e6) / 7).astype("f4").astype("f8"))


def kernel():
    x = dt.arange(1 << 20, dtype=dt.float32, device="cuda")
    agree(x * 2 + 1, np.arange(1 << 20) * 2.0 + 1)
    agree(x.reshape(1024, 1024).T.contiguous(), np.arange(1 << 20).reshape(1024, 1024).T.astype("f8"))
    agree(dt.exp(x / (1 << 20)), np.exp(np.arange(1 << 20) / (1 << 20)), 1e-6)


def reduction():
    x = dt.arange(1 << 20, dtype=dt.int64, device="cuda").reshape(1024, 1024)
    values = np.arange(1 << 20).reshape(1024, 1024)
    agree(x.sum(), values.sum())
    agree(x.sum(0), values.sum(0))
    agree(x.amax(1), values.max(1))
    agree(x.float().softmax(1).sum(1), np.ones(1024), 1e-5)


def rawkernel():
    x = dt.ones(1000, device="cuda")
    dt.cuda.RawKernel(TWICE, "twice")[8, 128](x, 1000)
    agree(x, np.full(1000, 2.0))


def matmul():
    a, b = np.random.default_rng(0).integers(-8, 9, (2, 512, 512))
    for dtype in (dt.float32, dt.float64, dt.float16, dt.bfloat16):
        x, y = (dt.from_numpy(v).to("cuda", dtype) for v in (a, b))
        rtol = {dt.float16: 2**-10, dt.bfloat16: 2**-7}.get(dtype, 0.0)
        agree(x @ y, (a @ b).astype("f8"), rtol)
        agree(x[:3] @ y, (a[:3] @ b).astype("f8"), rtol)
        agree(dt.linear(x, y, x[0], activation="relu"), np.maximum(a @ b.T + a[0], 0).astype("f8"), rtol)


def conv2d():
    rng = np.random.default_rng(0)
    x, w, b = (rng.integers(-3, 4, shape) for shape in ((2, 16, 14, 14), (32, 16, 3, 3), (32,)))
    rows = np.lib.stride_tricks.sliding_window_view(np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1))), (3, 3), (2, 3))
    expected = np.einsum("ncpqrs,kcrs->nkpq", rows, w) + b[:, None, None]
    for dtype in (dt.float32, dt.float64, dt.float16, dt.bfloat16):
        image, weight, bias = (dt.from_numpy(v).to("cuda", dtype) for v in (x, w, b))
        rtol = {dt.bfloat16: 2**-7}.get(dtype, 0.0)
        agree(dt.conv2d(image, weight, bias, padding=1), expected.astype("f8"), rtol)
        agree(dt.conv2d(image, weight, bias, padding=1, activation="relu"), np.maximum(expected, 0.0), rtol)
        last = image.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2)
        agree(dt.conv2d(last, weight, bias, padding=1), expected.astype("f8"), rtol)


def streams():
    first, second = dt.cuda.Stream(), dt.cuda.Stream()
    event = dt.cuda.Event(enable_timing=True)
    with dt.cuda.stream(first):
        x = dt.ones(1 << 22, device="cuda")
        for _ in range(50):
            x += 1
        event.record()
    with dt.cuda.stream(second):
        y = x * 2
    assert event.query() in (True, False)
    agree(y[:10], np.full(10, 102.0))


def memory():
    before = dt.cuda.memory_allocated()
    x = dt.zeros(64 << 20, device="cuda")
    assert dt.cuda.memory_allocated() - before >= 256 << 20
    del x
    dt.cuda.empty_cache()
    assert dt.cuda.memory_allocated() == before
    try:
        dt.empty(1 << 45, dtype=dt.uint8, device="cuda")
    except dt.OutOfMemoryError as error:
        print(error)
    else:
        raise AssertionError("32 TiB were given")
    agree(dt.ones(3, device="cuda"), np.ones(3))


def exit():
    """Ends with arrays alive and work under way; only the status counts."""
    globals()["kept"] = [dt.ones(1 << 24, device="cuda") @ dt.ones(1 << 24, device="cuda") for _ in range(5)]


def products():
    rng = np.random.default_rng(0)
    sizes = [(1, 64, 33), (3, 100, 17), (8, 256, 64), (16, 33, 129), (17, 64, 64), (130, 70, 257), (256, 256, 256)]
    for m, k, n in sizes:
        a, b = rng.integers(-4, 5, (m, k)), rng.integers(-4, 5, (k, n))
        for dtype in (dt.float32, dt.float16):
            x, y = dt.from_numpy(a).to("cuda", dtype), dt.from_numpy(b).to("cuda", dtype)
            agree(x @ y, (a @ b).astype("f8"))
            agree(x @ dt.from_numpy(b.T.copy()).to("cuda", dtype).T, (a @ b).astype("f8"))


def ops(own=False):
    sys.path[:0] = [str(ROOT / "tests" / "helpers"), str(ROOT / "tests" / "helpers" / "sweeps")]
    import failing_allocations
    from support import Built

    if not own:
        products()
    done = 0
    for case in failing_allocations.chosen():
        if own and re.search(r"mm|mv|matmul|linear|conv|dot|attention|einsum", case.op):
            continue
        for dtype in [d for d in ("float32", "float16", "int64") if d in case.dtypes] or case.dtypes[-1:]:
            built = Built(case, dtype, "cuda:0", case.layouts[-1])
            built.check(built.call())
            done += 1
    print(f"{done} calls agree with their references")


def own():
    ops(own=True)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
    if sys.argv[1] != "exit":
        dt.cuda.synchronize()
    print("works")
