"""dt.cuda.RawKernel: kernels of users run right, and each mistake has its own error."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest
import source_files
from support import CUDA_DEVICES, REAL, counted, needs_kernels, python_path
from users_kernels import KERNELS, Raw

import devtensor as dt

pytestmark = needs_kernels
SCALE = """
extern "C" __global__ void scale(const float *x, float *y, float a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i];
}
"""


def made(raw: Raw) -> dt.cuda.RawKernel:
    return dt.cuda.RawKernel(raw.source, raw.name, raw.options, params=raw.params)


def arrays(raw: Raw, device: str) -> list[dt.DeviceArray]:
    return [dt.array(x, device=device) for x in (*raw.inputs, raw.result)]


def filled(raw: Raw, given: list[dt.DeviceArray]) -> tuple[Any, ...]:
    left = iter(given)
    return tuple(next(left) if arg is None else arg for arg in raw.args)


# ---------------------------------------------------------------- right


@pytest.mark.parametrize("raw", KERNELS, ids=str)
def test_kernels(raw: Raw, cuda: str) -> None:
    given = arrays(raw, cuda)
    made(raw)[raw.grid, raw.block, raw.shared](*filled(raw, given))
    got, want = given[-1].cpu().numpy(), raw.expected(*raw.inputs)
    assert got.dtype == want.dtype
    np.testing.assert_allclose(got, want, rtol=raw.close, atol=0)
    if not raw.more.get("writes_inputs"):
        for x, before in zip(given, raw.inputs, strict=False):
            assert np.array_equal(x.cpu().numpy(), before)


def test_the_other_way_to_call(cuda: str) -> None:
    kernel = dt.cuda.RawKernel(SCALE, "scale")
    x, y = dt.arange(10, dtype=dt.float32, device=cuda), dt.zeros(10, device=cuda)
    kernel(1, 32, (x, y, 2, 10))
    kernel((1, 1, 1), (32, 1), [x, y, 3.0, 5], shared_mem=16)
    assert y.tolist() == [3.0 * i for i in range(5)] + [2.0 * i for i in range(5, 10)]
    kernel[1, 32](x, y, np.float32(0.5), np.int64(10))
    kernel[np.int32(1), (np.int64(32),)](x[:0], y[:0], 1, False)
    assert y.tolist() == [0.5 * i for i in range(10)]


def test_a_kernel_uses_views_that_are_contiguous(cuda: str) -> None:
    x = dt.arange(30, dtype=dt.float32, device=cuda).reshape(3, 10)
    y = dt.zeros(3, 10, device=cuda)
    dt.cuda.RawKernel(SCALE, "scale")[1, 32](x[1], y[2], 2, 10)
    assert y[2].tolist() == [2.0 * i for i in range(10, 20)]
    assert y[:2].sum().item() == 0


def test_what_is_known_about_a_kernel() -> None:
    kernel = dt.cuda.RawKernel(SCALE, "scale", ["-DX=1"])
    assert (kernel.name, kernel.source, kernel.options) == ("scale", SCALE, ("-DX=1",))
    assert kernel.params == (("x", "const float *x"), ("y", "float *y"), ("a", "float a"), ("n", "int n"))
    assert repr(kernel) == "<RawKernel scale(const float *x, float *y, float a, int n)>"
    assert repr(kernel[1, 2]) == f"{kernel!r}[1, 2]"
    attributes = kernel.attributes
    assert attributes["max_threads_per_block"] >= 64
    assert attributes["shared_size_bytes"] == 0
    assert set(attributes) == {
        "max_threads_per_block", "shared_size_bytes", "const_size_bytes", "local_size_bytes", "num_regs",
        "ptx_version", "binary_version", "max_dynamic_shared_size_bytes",
    }  # fmt: skip
    copy = pickle.loads(pickle.dumps(kernel))
    assert (repr(copy), copy.source, copy.options) == (repr(kernel), SCALE, ("-DX=1",))
    block_sum = made(next(raw for raw in KERNELS if raw.name == "block_sum"))
    assert block_sum.attributes["shared_size_bytes"] == 2048


def test_one_source_is_compiled_once(cuda: str) -> None:
    x, y = dt.ones(4, device=cuda), dt.zeros(4, device=cuda)
    source = SCALE.replace("scale", f"scale_once_{CUDA_DEVICES.index(cuda)}")
    name = f"scale_once_{CUDA_DEVICES.index(cuda)}"
    dt.cuda.RawKernel(source, name)[1, 4](x, y, 2, 4)
    before = counted("nvrtcCompileProgram")
    dt.cuda.RawKernel(source, name)[1, 4](x, y, 3, 4)
    kernel = dt.cuda.RawKernel(source, name)
    kernel.compile(cuda)
    kernel[1, 4](x, y, 4, 4)
    assert counted("nvrtcCompileProgram") == before
    assert y.tolist() == [4.0] * 4


def test_much_shared_memory_is_announced(cuda: str) -> None:
    source = """
extern "C" __global__ void far_apart(int *out) {
    extern __shared__ int s[];
    s[threadIdx.x * 4000] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = s[(blockDim.x - 1 - threadIdx.x) * 4000];
}"""
    out = dt.zeros(5, dtype=dt.int32, device=cuda)
    dt.cuda.RawKernel(source, "far_apart")[1, 5, 16 * 4000 + 4](out)
    assert out.tolist() == [4, 3, 2, 1, 0]


def test_shared_memory_of_both_kinds_is_announced(cuda: str) -> None:
    """48 KiB is the limit of what a kernel has and what a launch adds, together."""
    source = """
extern "C" __global__ void both(int *out) {
    __shared__ int own[10000];
    extern __shared__ int more[];
    own[threadIdx.x * 1000] = threadIdx.x;
    more[threadIdx.x * 200] = 10 * threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = own[(9 - threadIdx.x) * 1000] + more[(9 - threadIdx.x) * 200];
}"""
    kernel, out = dt.cuda.RawKernel(source, "both"), dt.zeros(10, dtype=dt.int32, device=cuda)
    announced = counted("cuFuncSetAttribute")
    kernel[1, 10, 9152](out)  # 48 KiB
    assert counted("cuFuncSetAttribute") == announced
    for _ in range(2):
        kernel[1, 10, 20000](out)
    assert counted("cuFuncSetAttribute") == announced + 1
    assert out.tolist() == [11 * (9 - i) for i in range(10)]


@pytest.mark.parametrize("way", ["current", "given"])
def test_launches_are_in_order_between_streams(way: str, cuda: str, streams: list[dt.cuda.Stream]) -> None:
    """One stream makes x, another scales it, a third reads it: no word from the user."""
    kernel = dt.cuda.RawKernel(SCALE, "scale")
    for _ in range(5):
        with dt.cuda.stream(streams[0]):
            x = dt.full((300,), 2.0, device=cuda)
            y = dt.zeros(300, device=cuda)
        if way == "given":
            kernel(3, 128, (x, y, 10, 300), stream=streams[1])
        else:
            with dt.cuda.stream(streams[1]):
                kernel[3, 128](x, y, 10, 300)
        with dt.cuda.stream(streams[0]):
            x += 1  # waits for the kernel, which reads it
        assert y.sum().item() == 300 * 20
        assert dt.cuda.current_stream(cuda) == dt.cuda.default_stream(cuda)


def test_threads(cuda: str) -> None:
    kernel = dt.cuda.RawKernel(SCALE.replace("scale", "scale_threads"), "scale_threads")
    wrong: list[Any] = []

    def work(k: int) -> None:
        x = dt.full((64,), float(k), device=cuda)
        for i in range(10):
            y = dt.zeros(64, device=cuda)
            kernel[1, 64](x, y, i, 64)
            if y.tolist() != [float(k * i)] * 64:
                wrong.append((k, i))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_many_kernels_leave_nothing(cuda: str) -> None:
    if REAL:
        pytest.skip("counts what the simulated driver holds")
    x, y = dt.ones(4, device=cuda), dt.zeros(4, device=cuda)
    kernels = [dt.cuda.RawKernel(SCALE, "scale", params="const float *x, float *y, float a, int n") for _ in range(50)]
    for kernel in kernels:
        kernel[1, 4](x, y, 2, 4)
    dt.cuda.synchronize(cuda)
    before = dt._C._test.live_blocks(), dt._C._test.ledger()["modules"]
    for _ in range(50):
        dt.cuda.RawKernel(SCALE, "scale")[1, 4](x, y, 2, 4)
    dt.cuda.synchronize(cuda)
    assert (dt._C._test.live_blocks(), dt._C._test.ledger()["modules"]) == before
    del kernels


# ---------------------------------------------------------------- wrong arguments

SETUP = f'''
kernel = dt.cuda.RawKernel("""{SCALE}""", "scale")
x, y, host = dt.ones(8, device=GPU), dt.zeros(8, device=GPU), dt.ones(8)
'''
AND = " (scale: x {}, y {})"
MISTAKES: list[tuple[str, str, str, str, str | None]] = [
    (
        "host array", "kernel[1, 8](host, y, 2, 8)", "DeviceMismatchError",
        "Expected all tensors to be on the same device, but found at least two devices, cpu and cuda:0!"
        + AND.format("on cpu", "on cuda:0"), 'host = host.to("cuda:0")',
    ),
    (
        "only host arrays", "kernel(1, 8, (host, host, 2, 8))", "DeviceMismatchError",
        "Expected all tensors to be on a CUDA device, but found at least one on cpu!" + AND.format("on cpu", "on cpu"),
        'host = host.to("cuda")',
    ),
    (
        "dtype", "x = x.double()\nkernel[1, 8](x, y, 2, 8)", "DTypeMismatchError",
        "Expected x tensor to have dtype float32 for const float *x, but got float64 instead"
        + AND.format("float64", "float32"), "x = x.float()",
    ),
    (
        "strides", "x = dt.ones(4, 2, device=GPU).T\nkernel[1, 8](x, y, 2, 8)", "KernelArgumentError",
        "Expected x tensor to be contiguous, since a kernel sees only its address, but got strides (1, 2) for shape "
        "(2, 4)" + AND.format("(2, 4)", "(8,)"), "x = x.contiguous()",
    ),
    (
        "an expanded array", "y = dt.ones(1, device=GPU).expand(8)\nkernel(1, 8, [x, y, 2, 8])", "KernelArgumentError",
        "Expected y tensor to be contiguous, since a kernel sees only its address, but got strides (0,) for shape (8,)"
        + AND.format("(8,)", "(8,)"), "y = y.contiguous()",
    ),
    (
        "too few", "kernel[1, 8](x, y, 2)", "KernelArgumentError",
        "scale takes 4 arguments (const float *x, float *y, float a, int n), but got 3", None,
    ),
    ("too many", "kernel[1, 8](x, y, 2, 8, 8)", "KernelArgumentError", None, None),
    (
        "a number for an array", "kernel[1, 8](x, 3, 2, 8)", "KernelArgumentError",
        "argument 2 of scale, float *y, must be a DeviceArray, but got an int", None,
    ),
    (
        "None for an array", "kernel[1, 8](None, y, 2, 8)", "KernelArgumentError",
        "argument 1 of scale, const float *x, must be a DeviceArray, but got NoneType", None,
    ),
    (
        "NumPy", "kernel[1, 8](np.ones(8, np.float32), y, 2, 8)", "KernelArgumentError",
        "argument 1 of scale, const float *x, must be a DeviceArray, but got numpy.ndarray; "
        'from_numpy(...).to("cuda") makes an array that a kernel can reach', None,
    ),
    (
        "an array for a number", "kernel[1, 8](x, y, x.sum(), 8)", "KernelArgumentError",
        "argument 3 of scale, float a, must be a number, but got a DeviceArray of shape (); .item() gives its value",
        None,
    ),
    (
        "a float for an int", "kernel[1, 8](x, y, 2, 8.0)", "KernelArgumentError",
        "argument 4 of scale, int n, must be an int, but got a float", None,
    ),
    (
        "a text", "kernel[1, 8](x, y, '2', 8)", "KernelArgumentError",
        "argument 3 of scale, float a, must be a number, but got str", None,
    ),
    (
        "an int that does not fit", "kernel[1, 8](x, y, 2, 2**31)", "KernelArgumentError",
        "2147483648 does not fit int n, which holds -2147483648 to 2147483647 (scale)", None,
    ),
    (
        "a huge int", "kernel[1, 8](x, y, 2, -10**30)", "KernelArgumentError",
        "the number does not fit int n, which holds -2147483648 to 2147483647 (scale)", None,
    ),
    (
        "a float that does not fit", "kernel[1, 8](x, y, 1e39, 8)", "KernelArgumentError",
        "1e+39 does not fit float a, a float32 (scale)", None,
    ),
    (
        "read-only", "a = np.zeros(8, np.float32)\na.flags.writeable = False\n"
        "kernel[1, 8](x, dt.from_numpy(a), 2, 8)", "DeviceMismatchError", None, None,
    ),
    (
        "too many threads", "kernel[1, (64, 64)](x, y, 2, 8)", "KernelArgumentError",
        "block (64, 64, 1) of scale has 4096 threads, and on cuda:0 a block of it has at most 1024", None,
    ),
    (
        "a long block", "kernel[1, 2000](x, y, 2, 8)", "KernelArgumentError",
        "block (2000, 1, 1) of scale has 2000 threads along x, and cuda:0 takes 1 to 1024", None,
    ),
    (
        "no blocks", "kernel[0, 8](x, y, 2, 8)", "KernelArgumentError",
        "grid (0, 1, 1) of scale has 0 blocks along x, and cuda:0 takes 1 to 2147483647", None,
    ),
    (
        "a high grid", "kernel[(1, 70000), 8](x, y, 2, 8)", "KernelArgumentError",
        "grid (1, 70000, 1) of scale has 70000 blocks along y, and cuda:0 takes 1 to 65535", None,
    ),
    ("a negative size", "kernel[-1, 8](x, y, 2, 8)", "KernelArgumentError", None, None),
    ("four sizes", "kernel[(1, 1, 1, 1), 8](x, y, 2, 8)", "KernelArgumentError", None, None),
    ("shared memory", "kernel[1, 8, 10**6](x, y, 2, 8)", "KernelArgumentError", None, None),
    ("negative shared memory", "kernel[1, 8, -1](x, y, 2, 8)", "KernelArgumentError", None, None),
    ("no block", "kernel[1](x, y, 2, 8)", "KernelArgumentError", None, None),
    ("a float for a grid", "kernel[1.5, 8](x, y, 2, 8)", "TypeError", None, None),
    ("a text for a stream", "kernel(1, 8, (x, y, 2, 8), stream='s')", "TypeError", None, None),
]  # fmt: skip


@pytest.mark.parametrize(("text", "kind", "message", "fix"), [m[1:] for m in MISTAKES], ids=[m[0] for m in MISTAKES])
def test_mistakes(text: str, kind: str, message: str | None, fix: str | None) -> None:
    variables = source_files.names()
    error = source_files.run(SETUP + text + "  # here", variables)
    assert type(error).__name__ == kind, error
    if REAL and message is not None and "cuda:0 takes" in message:
        message = None
    if message is not None:
        assert str(error) == message
    if kind != "TypeError":
        assert isinstance(error, RuntimeError)
        assert error.fix == fix
    if fix is not None:
        assert error.op == "RawKernel"
        assert source_files.run(source_files.repaired(SETUP + text + "  # here", error)) is None
        dt.cuda.synchronize()
    else:
        assert variables["y"].tolist() == [0.0] * 8  # nothing was sent


@pytest.mark.skipif(len(CUDA_DEVICES) < 2, reason="needs two devices")
def test_another_device() -> None:
    kernel = dt.cuda.RawKernel(SCALE, "scale")
    x, y = dt.ones(8, device="cuda:0"), dt.zeros(8, device="cuda:1")
    with pytest.raises(dt.DeviceMismatchError, match=r"cuda:0 and cuda:1! \(scale: x on cuda:0, y on cuda:1\)"):
        kernel[1, 8](x, y, 2, 8)
    with pytest.raises(dt.DeviceMismatchError, match=r"the stream .* \(scale: arrays on cuda:1, stream of cuda:0\)"):
        kernel(1, 8, (y, y, 2, 8), stream=dt.cuda.Stream("cuda:0"))
    kernel[1, 8](x.to("cuda:1"), y, 2, 8)
    assert y.tolist() == [2.0] * 8


def test_a_read_only_array_is_not_written(cuda: str) -> None:
    source = 'extern "C" __global__ void two(const float *x, float *y) { y[0] = x[0]; }'
    kernel = dt.cuda.RawKernel(source, "two")
    x = dt.ones(3, device=cuda)
    kernel[1, 1](x, x)  # one array for two parameters
    assert x.tolist() == [1.0] * 3


def test_vectors_have_to_lie_right(cuda: str) -> None:
    raw = next(raw for raw in KERNELS if raw.name == "vectors")
    kernel = made(raw)
    x, y = dt.ones(12, device=cuda), dt.zeros(12, device=cuda)
    with pytest.raises(dt.KernelArgumentError, match="a multiple of 4 elements for const float4 .x, but got 10"):
        kernel[1, 4](x[:10], y, 1)
    with pytest.raises(dt.KernelArgumentError, match="begin at a multiple of 16 bytes for const float4 .x"):
        kernel[1, 4](x[1:9], y, 1)


def test_many_arrays_in_an_error(cuda: str) -> None:
    """An error lists eight of them, the odd one among them."""
    names = [f"a{i}" for i in range(12)]
    source = f'extern "C" __global__ void many({", ".join("float *" + n for n in names)}) {{ }}'
    given = [dt.ones(2, device=cuda) for _ in names]
    for odd in (0, 5, 11):
        wrong = list(given)
        wrong[odd] = wrong[odd].cpu()
        with pytest.raises(dt.DeviceMismatchError) as caught:
            dt.cuda.RawKernel(source, "many")[1, 1](*wrong)
        assert len(caught.value.operands) == 8
        assert caught.value.culprit.name == names[odd]
        wrong[odd] = given[odd].double()
        with pytest.raises(dt.DTypeMismatchError) as caught:
            dt.cuda.RawKernel(source, "many")[1, 1](*wrong)
        assert caught.value.culprit.name == names[odd]


# ---------------------------------------------------------------- wrong sources and options


def test_a_source_that_does_not_compile() -> None:
    source = 'extern "C" __global__ void bad(float *x, int n) {\n    if (n)\n        x[0] = undefined_name;\n}\n'
    kernel = dt.cuda.RawKernel(source, "bad")
    for _ in range(2):
        with pytest.raises(dt.KernelCompileError, match="bad does not compile: line 3: .*undefined_name") as caught:
            kernel[1, 1](dt.ones(1, device="cuda:0"), 1)
        error = caught.value
        assert isinstance(error, dt.CudaError)
        assert (error.lineno, error.symbol, str(error.device)) == (3, "nvrtcCompileProgram", "cuda:0")
        assert "undefined_name" in error.log
        assert "  >    3 |         x[0] = undefined_name;" in error.__notes__[0]
        assert pickle.loads(pickle.dumps(error)).lineno == 3
    x = dt.ones(1, device="cuda:0")
    assert (x + 1).item() == 2  # nothing else is touched


@pytest.mark.parametrize(("source", "name"), [(b"x", "scale"), (SCALE, 3), (None, "scale")])
def test_wrong_types(source: Any, name: Any) -> None:
    with pytest.raises(TypeError, match="must be str, not"):
        dt.cuda.RawKernel(source, name)


REFUSED = {
    "inline PTX": 'asm("mov.u32 %0, 1;" : "=r"(x[0]));',
    "cooperative groups": "cooperative_groups::thread_block b;",
    "__match_any_sync": "x[0] = __match_any_sync(-1u, 1);",
}


@pytest.mark.skipif(REAL, reason="a real GPU can do these")
@pytest.mark.parametrize("what", REFUSED)
def test_what_a_simulated_gpu_cannot_do(what: str) -> None:
    source = f'extern "C" __global__ void hard(unsigned *x) {{\n{REFUSED[what]}\n}}'
    with pytest.raises(dt.KernelCompileError, match=f"line 2: (a simulated GPU cannot run {what}|.*)"):
        dt.cuda.RawKernel(source, "hard").compile()


@pytest.mark.skipif(REAL, reason="a real GPU keeps it")
def test_a_variable_that_outlives_a_launch_is_refused() -> None:
    source = '__device__ const float pi = 3.14f;\n__device__ int counter;\nextern "C" __global__ void k(int *x) { }'
    with pytest.raises(dt.KernelCompileError, match='line 2: .* does not keep the variable "counter"'):
        dt.cuda.RawKernel(source, "k").compile()


# ---------------------------------------------------------------- what goes wrong on the device

FAULTS = {
    "write past the end": (
        "if (i <= n) y[i] = 1;", "ILLEGAL_ADDRESS (700)",
        "kernel faulty, block (1, 0, 0), thread (4, 0, 0) wrote y[12], 4 bytes past its end: it has 12 elements",
    ),
    "read past the end": (
        "if (i < n) y[i] = x[i + 1];", "ILLEGAL_ADDRESS (700)",
        "kernel faulty, block (1, 0, 0), thread (3, 0, 0) read x[12], 4 bytes past its end: it has 12 elements",
    ),
    "far away": (
        "if (i == 2) y[i * 100000] = 1;", "ILLEGAL_ADDRESS (700)",
        "thread (2, 0, 0) wrote y[200000], 799956 bytes past its end: it has 12 elements",
    ),
    "before the start": (
        "y[i - 1] = 1;", "ILLEGAL_ADDRESS (700)",
        "kernel faulty, block (0, 0, 0), thread (0, 0, 0) wrote y[-1], 4 bytes before its start: it has 12 elements",
    ),
    "a copy of a length that the compiler does not know": (
        "if (i == 0) { memcpy((char *)y + 1, (char *)x + 2, n - 9); memcpy(y + 10, x, n); }", "ILLEGAL_ADDRESS (700)",
        "kernel faulty, block (0, 0, 0), thread (0, 0, 0) wrote y[10], 4 bytes past its end: it has 12 elements",
    ),
    "a null pointer": (
        "*(volatile int *)8 = 1;", "ILLEGAL_ADDRESS (700)", "address 0x8, which is not memory of the device",
    ),
    "const": (
        "((float *)x)[0] = 1;", "ILLEGAL_ADDRESS (700)", "wrote to x, which the kernel declares const",
    ),
    "misaligned": (
        "*(float *)((char *)y + 1) = 1;", "MISALIGNED_ADDRESS (716)", "at an address that is not a multiple of 4",
    ),
    "shared memory": (
        "extern __shared__ float s[]; s[i] = 1; y[0] = s[0];", "ILLEGAL_ADDRESS (700)",
        "thread (4, 0, 0) wrote past the 16 bytes of dynamic shared memory",
    ),
    "assert": (
        "assert(i < 3);", "ASSERT (710)",
        "block (0, 0, 0), thread (3, 0, 0): assertion failed at faulty.cu:4: i < 3",
    ),
    "trap": ("if (i == 1) __trap();", "LAUNCH_FAILED (719)", "thread (1, 0, 0) trapped"),
    "division": ("y[i] = n / (int)threadIdx.y;", "LAUNCH_FAILED (719)", "divided an integer by zero"),
    "recursion": (
        "y[0] = deep(i, n);", "HARDWARE_STACK_ERROR (714)", "thread (0, 0, 0) has no more stack",
    ),
    "deadlock": (
        "if (i % 2) __syncthreads(); else __syncwarp();", "LAUNCH_TIMEOUT (702)",
        "waits for lanes of its warp that wait at __syncthreads()",
    ),
}  # fmt: skip

FAULTY = """
import devtensor as dt
source = '''
__device__ float deep(int i, int n) {{ volatile float a[256]; a[i] = n; return n < 0 ? 0 : deep(i, n + 1) + a[i]; }}
extern "C" __global__ void faulty(const float *x, float *y, int n) {{ int i = blockIdx.x * blockDim.x + threadIdx.x;
{body}
}}'''
kernel = dt.cuda.RawKernel(source, "faulty")
x, y = dt.ones(12, device="cuda"), dt.zeros(12, device="cuda")
kernel[2, 8, 16](x, y, 12)
for attempt in range(2):
    try:
        dt.cuda.synchronize()
        print("fine")
    except dt.CudaError as error:
        print(error.status, error, *" ".join(error.__notes__).splitlines())
try:
    dt.zeros(3, device="cuda")
except dt.CudaError as error:
    print(error)
print((dt.ones(2) + 1).tolist())
"""


def child(script: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=120,
        env=os.environ | {"PYTHONPATH": python_path(), "DEVTENSOR_CUDA": "sim:1", **environment},
    )  # fmt: skip


@pytest.mark.skipif(REAL, reason="a real GPU is lost to the whole process, and says less")
@pytest.mark.parametrize("what", FAULTS)
def test_faults(what: str) -> None:
    """The error names the kernel, the thread and the array; the device is lost, the process is not."""
    body, code, words = FAULTS[what]
    done = child(FAULTY.format(body=body))
    assert done.returncode == 0, done.stderr
    first, second, third, host = done.stdout.splitlines()
    assert code in first and words in first, done.stdout
    assert "sent to the default stream of cuda:0 last, the latest first:   faulty  <string>:" in first
    assert "cannot be used any more" in second
    assert words in third
    assert host == "[2.0, 2.0]"
    assert done.stderr == ""


@pytest.mark.skipif(REAL, reason="guard bytes are the simulated GPU's")
def test_guard_bytes_tell() -> None:
    """Of what libc's functions write for a kernel, which the compiler's checks do not see."""
    script = """
import devtensor as dt
source = 'extern "C" __global__ void k(float *y, int n) { sprintf((char *)(y + n), "%d", n); }'
y = dt.zeros(128, device="cuda")
dt.cuda.RawKernel(source, "k")[1, 1](y, 128)
try:
    dt.cuda.synchronize()
except dt.CudaError as error:
    print(error)
"""
    assert "bytes next to a block of 512 were overwritten" in child(script).stdout


@pytest.mark.skipif(REAL, reason="asks what the simulated GPU needs")
def test_without_a_compiler(tmp_path: Any) -> None:
    """Checks work; a launch says what is missing and how to get it."""
    script = f"""
import devtensor as dt
kernel = dt.cuda.RawKernel('''{SCALE}''', "scale")
x = dt.ones(3, device="cuda")
for args in ((x, 3, 1, 2), (x, x.cpu(), 1, 2), (x, x, 1, 2)):
    try:
        kernel[1, 3](*args)
    except RuntimeError as error:
        print(type(error).__name__, error)
print((x + 1).sum().item())
"""
    done = child(script, PATH=str(tmp_path), CXX="")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("KernelArgumentError argument 2 of scale")
    assert lines[1].startswith("DeviceMismatchError Expected")
    assert lines[2].startswith(
        "KernelCompileError scale cannot be compiled: a simulated GPU runs kernels with the host's"
    )
    assert "apt install g++" in lines[2]
    assert lines[3] == "6.0"


@pytest.mark.skipif(REAL, reason="its printf goes elsewhere")
def test_printf_and_blocking_launches() -> None:
    script = """
import devtensor as dt
source = 'extern "C" __global__ void p(float *x) { printf("%d %g\\\\n", threadIdx.x, x[threadIdx.x]); }'
kernel = dt.cuda.RawKernel(source, "p")
kernel[1, 3](dt.arange(3, dtype=dt.float32, device="cuda"))
"""
    done = child(script, CUDA_LAUNCH_BLOCKING="1")
    assert (done.returncode, done.stdout, done.stderr) == (0, "0 0\n1 1\n2 2\n", "")


@pytest.mark.skipif(REAL, reason="looks at the simulated GPU's files")
def test_compiled_kernels_are_kept(tmp_path: Any) -> None:
    """A second process compiles nothing; what is altered on the disk is compiled anew."""
    script = f"""
import devtensor as dt
x = dt.ones(3, device="cuda")
dt._C._test.api_calls()
dt.cuda.RawKernel('''{SCALE}''', "scale")[1, 3](x, x, 5, 3)
k = dt._C._test.api_calls()["nvrtcAddNameExpression"]
print(k, x.tolist())
"""
    folder = tmp_path / "kept"
    kept = {"DEVTENSOR_CACHE": "1", "DEVTENSOR_CACHE_DIR": str(folder), "TMPDIR": str(tmp_path)}
    assert child(script, **kept).stdout == "1 [5.0, 5.0, 5.0]\n"
    assert child(script, **kept).stdout == "0 [5.0, 5.0, 5.0]\n"
    for path in folder.iterdir():
        data = bytearray(path.read_bytes())
        data[-100] ^= 1
        path.write_bytes(data)
    assert child(script, **kept).stdout == "1 [5.0, 5.0, 5.0]\n"
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]  # nothing temporary stays
