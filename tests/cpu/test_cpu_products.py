"""Matrix products and convolutions of the host: their error, their bits, what they read, and the memory they take."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import devtensor as dt

ROUNDOFF = {"float32": 2.0**-24, "float64": 2.0**-53}
WIDE = {"float32": np.float64, "float64": np.longdouble}
SETS = ("generic", "avx2", "avx512")  # one that the processor lacks gives its best


@pytest.fixture(autouse=True)
def threads() -> Iterator[None]:
    before = dt.get_num_threads()
    yield
    dt.set_num_threads(before)


def gamma(k: int, dtype: str) -> float:
    u = ROUNDOFF[dtype]
    return k * u / (1 - k * u)


def conv2d(x: Any, w: Any, stride: int, padding: int, dilation: int, groups: int) -> Any:
    """By the definition, in the arrays' own dtype."""
    n, _, height, width = x.shape
    k, c, r, s = w.shape
    x = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    p = (height + 2 * padding - dilation * (r - 1) - 1) // stride + 1
    q = (width + 2 * padding - dilation * (s - 1) - 1) // stride + 1
    out = np.zeros((n, groups, k // groups, p, q), x.dtype)
    for i in range(r):
        for j in range(s):
            rows = slice(i * dilation, i * dilation + (p - 1) * stride + 1, stride)
            columns = slice(j * dilation, j * dilation + (q - 1) * stride + 1, stride)
            patch = x[:, :, rows, columns].reshape(n, groups, c, 1, p, q)
            weight = w[:, :, i, j].reshape(1, groups, k // groups, c).transpose(0, 1, 3, 2)
            out += (patch * weight[..., None, None]).sum(2)
    return out.reshape(n, k, p, q)


def channels_last(x: dt.DeviceArray) -> dt.DeviceArray:
    return x.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2)


def convolutions(
    rng: np.random.Generator, count: int
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...], tuple[int, int, int, int]]]:
    """Shapes of input and weight, and (stride, padding, dilation, groups)."""
    for _ in range(count):
        groups = int(rng.choice((1, 1, 1, 2, 3)))
        channels, filters = (int(rng.choice((1, 2, 3, 8, 17, 40))) for _ in range(2))
        if rng.random() < 0.25:  # depthwise
            groups, channels, filters = channels, 1, int(rng.choice((1, 2)))
        stride, padding, dilation = int(rng.integers(1, 4)), int(rng.integers(0, 3)), int(rng.integers(1, 3))
        kernel = tuple(int(v) for v in rng.integers(1, 5, 2))
        size = tuple(int(v + dilation * kernel[i]) for i, v in enumerate(rng.integers(0, 20, 2)))
        x = (int(rng.integers(1, 3)), groups * channels, *size)
        yield x, (groups * filters, channels, *kernel), (stride, padding, dilation, groups)


@pytest.mark.parametrize("dtype", ROUNDOFF)
def test_the_error_of_a_product_is_within_the_proven_bound(dtype: str) -> None:
    rng = np.random.default_rng(1)
    for _ in range(250):
        m, k, n = (int(v) for v in np.exp(rng.uniform(0, np.log(600), 3)))
        a, b = rng.standard_normal((m, k)).astype(dtype), rng.standard_normal((k, n)).astype(dtype)
        x = dt.tensor(a) if rng.random() < 0.5 else dt.tensor(a.T.copy()).T
        y = dt.tensor(b) if rng.random() < 0.5 else dt.tensor(b.T.copy()).T
        wide = WIDE[dtype] if m * k * n < 1 << 18 else np.float64
        exact = a.astype(wide) @ b.astype(wide)
        slack = gamma(k, "float64") if wide is np.float64 and dtype == "float64" else 0.0  # the reference's own
        bound = (gamma(k, dtype) + slack) * (np.abs(a).astype(wide) @ np.abs(b).astype(wide))
        assert np.all(np.abs((x @ y).numpy() - exact) <= bound), (m, k, n)


@pytest.mark.parametrize("dtype", ROUNDOFF)
def test_the_error_of_a_convolution_is_within_the_proven_bound(dtype: str) -> None:
    rng = np.random.default_rng(2)
    for x_shape, w_shape, parameters in convolutions(rng, 250):
        x, w = rng.standard_normal(x_shape).astype(dtype), rng.standard_normal(w_shape).astype(dtype)
        image, weight = dt.tensor(x), dt.tensor(w)
        if rng.random() < 0.5:
            image, weight = channels_last(image), channels_last(weight)
        stride, padding, dilation, groups = parameters
        got = dt.conv2d(image, weight, None, stride, padding, dilation, groups).numpy()
        exact = conv2d(x.astype(WIDE[dtype]), w.astype(WIDE[dtype]), *parameters)
        terms = int(np.prod(w_shape[1:]))
        bound = gamma(terms, dtype) * conv2d(np.abs(x).astype(WIDE[dtype]), np.abs(w).astype(WIDE[dtype]), *parameters)
        assert np.all(np.abs(got - exact) <= bound), (x_shape, w_shape, parameters)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_products_of_vectors_of_any_stride_are_exact(dtype: str) -> None:
    rng = np.random.default_rng(0)
    for k in (0, 1, 2, 15, 17, 63, 65, 200, 1023, 1024, 1025, 2100):
        a, b = rng.integers(-2, 3, (2, 3 * k))
        a[rng.random(3 * k) > 30 / (k + 1)] = 0  # no sum is too much for bfloat16
        if k:
            a[[k - 1, 2 * k - 2, 3 * k - 3]] = b[[k - 1, 2 * k - 2]] = 1  # the last of each
        x, y = (dt.array(v.astype("float32")).to(dtype) for v in (a, b))
        for step, other in ((1, 1), (2, 2), (3, 1), (1, 2)):
            p, q = x[: k * step : step], y[: k * other : other]
            expected = int(a[: k * step : step] @ b[: k * other : other])
            result = p @ q
            assert (result.shape, str(result.dtype), result.item()) == ((), f"devtensor.{dtype}", expected), (k, step)
            assert dt.dot(p, q).item() == (p[None] @ q[:, None]).item() == expected
            assert (p[None, None] @ q[None, :, None]).item() == expected
        assert (x[:k] @ dt.ones(1, dtype=getattr(dt, dtype)).expand(k)).item() == int(a[:k].sum())


@pytest.mark.parametrize("dtype", ("float16", "bfloat16", "float32", "float64"))
def test_products_of_small_integers_are_exact_and_the_same_for_any_threads(dtype: str) -> None:
    rng = np.random.default_rng(3)
    T = getattr(dt, dtype)
    for x_shape, w_shape, (stride, padding, dilation, groups) in convolutions(rng, 60):
        x, w = rng.integers(-2, 3, x_shape).astype("float64"), rng.integers(-2, 3, w_shape).astype("float64")
        expected = dt.tensor(conv2d(x, w, stride, padding, dilation, groups)).to(T)
        image, weight = dt.tensor(x).to(T), dt.tensor(w).to(T)
        for n, turn in ((1, False), (2, True), (3, False)):
            dt.set_num_threads(n)
            i, k = (channels_last(image), channels_last(weight)) if turn else (image, weight)
            assert dt.equal(dt.conv2d(i, k, None, stride, padding, dilation, groups), expected), (x_shape, w_shape)
    vectors = ((1, 1031, 1), (14, 1031, 1), (1000, 10, 1), (6, 3, 1))
    small = ((7, 7, 7), (8, 8, 8), (15, 15, 15), (9, 20, 31))
    for m, k, n in (*vectors, *small, (1, 700, 33), (7, 5, 3), (33, 64, 48), (130, 520, 150), (700, 300, 70)):
        a, b = rng.integers(-2, 3, (m, k)).astype("float64"), rng.integers(-2, 3, (k, n)).astype("float64")
        expected = dt.tensor(a @ b).to(T)
        for count in (1, 2, 3):
            dt.set_num_threads(count)
            assert dt.equal(dt.tensor(a).to(T) @ dt.tensor(b).to(T), expected), (m, k, n)


@pytest.mark.parametrize("dtype", ("float16", "float32", "float64"))
def test_the_bits_of_a_result_depend_on_no_thread(dtype: str) -> None:
    rng = np.random.default_rng(4)
    T = getattr(dt, dtype)

    def array(*shape: int) -> dt.DeviceArray:
        return dt.tensor(rng.standard_normal(shape)).to(T)

    a, b, bias, row = array(300, 700), array(700, 333), array(333), array(1, 700)
    image, weight, wise = array(2, 40, 30, 29), array(70, 40, 3, 3), array(40, 1, 3, 3)
    last = channels_last(image)
    calls = (
        lambda: a @ b,
        lambda: row @ b,
        lambda: dt.nn.functional.linear(a, b.T, bias, activation="relu"),
        lambda: dt.conv2d(image, weight, None, 1, 1),
        lambda: dt.conv2d(last, channels_last(weight), None, 2, 1),
        lambda: dt.conv2d(image, wise, None, 1, 1, 1, 40),
        lambda: dt.conv2d(last, wise, None, 2, 1, 1, 40),
    )
    for i, call in enumerate(calls):
        results = []
        for n in (1, 2, 3, 1, 2, 3):
            dt.set_num_threads(n)
            results.append(call().contiguous().numpy().tobytes())
        assert len(set(results)) == 1, i


def run(code: str, **environment: str) -> str:
    """What a process of its own prints."""
    path = os.pathsep.join([str(Path(dt.__file__).parent.parent), *sys.path])
    env = {**os.environ, "PYTHONPATH": path, **environment}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


# A product whose first term rounds: 2^-24 is there only if product and sum are rounded once.
FORCED = """
import devtensor as dt
e = 2.0**-12
a = dt.tensor([[1 + 2 * e, 1 + e]] * 40)
b = dt.tensor([[-1.0] * 40, [1 + e] * 40])
got = {float(v) for row in (a @ b).tolist() for v in row}
assert len(got) == 1, got
print(got.pop())
"""


def test_devtensor_cpu_forces_an_instruction_set() -> None:
    flags = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    assert float(run(FORCED, DEVTENSOR_CPU="generic")) == 0.0
    if " avx2" in flags and " fma" in flags:
        assert float(run(FORCED, DEVTENSOR_CPU="avx2")) == 2.0**-24


# Operands that end, or begin, where memory ends.
GUARDED = """
import ctypes, mmap
import numpy as np
import devtensor as dt
from test_cpu_products import conv2d, convolutions

PAGE = mmap.PAGESIZE
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
kept = []

def guarded(array, dtype, at_end):
    values = dt.tensor(array).to(dtype)
    size = -(-max(values.nbytes, 1) // PAGE) * PAGE
    base = libc.mmap(None, size + 2 * PAGE, 3, 0x22, -1, 0)
    assert base not in (None, ctypes.c_void_p(-1).value)
    kept.append((base, size + 2 * PAGE))
    for edge in (base, base + PAGE + size):
        assert libc.mprotect(edge, PAGE, 0) == 0
    where = base + PAGE + (size - values.nbytes if at_end else 0)
    stored = {1: "u1", 2: "u2", 4: "u4", 8: "u8"}[values.nbytes // max(values.numel(), 1)]
    raw = (ctypes.c_char * max(values.nbytes, 1)).from_address(where)
    ctypes.memmove(where, values.data_ptr(), values.nbytes)
    np_dtype = {"float16": np.float16, "float32": np.float32, "float64": np.float64}[str(dtype).rpartition(".")[2]]
    return dt.from_numpy(np.frombuffer(raw, np_dtype, values.numel()).reshape(array.shape))

def multiply(m, k, n, dtype, flips):
    a, b = rng.integers(-2, 3, (m, k)).astype("float64"), rng.integers(-2, 3, (k, n)).astype("float64")
    expected = dt.tensor(a @ b).to(dtype)
    for flip_a, flip_b in flips:
        left = guarded(a.T.copy(), dtype, True).T if flip_a else guarded(a, dtype, True)
        right = guarded(b.T.copy(), dtype, True).T if flip_b else guarded(b, dtype, True)
        out = guarded(np.zeros((m, n)), dtype, True)
        dt.matmul(left, right, out=out)
        assert dt.equal(out, expected), (m, k, n)
        assert dt.equal(dt.addmm(out, left, right, beta=2), expected * 3), (m, k, n)

def let_go():
    for base, size in kept:
        libc.munmap(base, size)
    kept.clear()

rng = np.random.default_rng(5)
for n in range(1, 82): # every end of a block of columns, and of rows
    for dtype in (dt.float32, dt.float64):
        multiply(3 + n % 5, 7, n, dtype, [(False, False), (n % 2 == 0, n % 2 == 1)])
        multiply(n, 7, 16, dtype, [(False, False), (True, False)])
    let_go()
threes = [((2, 3, *size), (3, 1, 3, 3), (stride, 1, 1, 3))
          for size in ((1, 1), (7, 7), (14, 14), (5, 15), (9, 33)) for stride in (1, 2) for _ in range(3)]
for turn, (x_shape, w_shape, (stride, padding, dilation, groups)) in enumerate([*threes, *convolutions(rng, 120)]):
    dtype = (dt.float32, dt.float64, dt.float16)[turn % 3]
    x, w = rng.integers(-2, 3, x_shape).astype("float64"), rng.integers(-2, 3, w_shape).astype("float64")
    expected = dt.tensor(conv2d(x, w, stride, padding, dilation, groups)).to(dtype)
    for at_end in (True, False):
        for last in (False, True):
            def operand(v):
                if last:
                    return guarded(v.transpose(0, 2, 3, 1).copy(), dtype, at_end).permute(0, 3, 1, 2)
                return guarded(v, dtype, at_end)
            out = operand(np.zeros(expected.shape))
            dt.conv2d(operand(x), operand(w), None, stride, padding, dilation, groups, out=out)
            assert dt.equal(out, expected), (x_shape, w_shape)
    m, k, n = (int(v) for v in np.exp(rng.uniform(0, np.log(300), 3)))
    multiply(m, k, n, dtype, [(flip_a, flip_b) for flip_a in (False, True) for flip_b in (False, True)])
    del out
    let_go()
print("ok")
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs mmap and mprotect of Linux")
@pytest.mark.parametrize("name", SETS)
def test_nothing_beyond_an_operand_is_touched(name: str) -> None:
    assert run(GUARDED, DEVTENSOR_CPU=name, DEVTENSOR_NUM_THREADS="1") == "ok\n"


# Growth of the process over one call, its result included, in bytes.
PEAK = """
import resource
import devtensor as dt
x, w = dt.ones(SHAPE), dt.ones(WEIGHT)
if LAST:
    x, w = (v.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2) for v in (x, w))
dt.conv2d(x[:1, :, :8, :8], w, None, 1, 1)
dt.cpu.empty_cache()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
y = dt.conv2d(x, w, None, 1, 1)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 - y.nbytes)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="ru_maxrss is in other units elsewhere")
@pytest.mark.parametrize("last", (False, True))
@pytest.mark.parametrize(
    ("shape", "weight"), (((4, 32, 160, 160), (32, 32, 5, 5)), ((1, 512, 14, 14), (2048, 512, 3, 3)))
)
def test_a_convolution_takes_little_beside_its_result(
    shape: tuple[int, ...], weight: tuple[int, ...], last: bool
) -> None:
    code = PEAK.replace("SHAPE", repr(shape)).replace("WEIGHT", repr(weight)).replace("LAST", repr(last))
    assert int(run(code)) <= 32 << 20


@pytest.mark.parametrize("dtype", ("float16", "bfloat16", "float32", "float64"))
@pytest.mark.parametrize("stride", (1, 2))
def test_depthwise_of_three_by_three_is_exact_in_any_layout_and_for_any_threads(dtype: str, stride: int) -> None:
    rng = np.random.default_rng(6)
    T = getattr(dt, dtype)
    for channels, height, width in ((16, 7, 7), (17, 14, 14), (40, 9, 30), (24, 3, 5), (16, 66, 270)):
        x, w = rng.integers(-2, 3, (2, channels, height, width)), rng.integers(-2, 3, (channels, 1, 3, 3))
        b = rng.integers(-2, 3, channels)
        expected = np.maximum(conv2d(x, w, stride, 1, 1, channels) + b[:, None, None], 0)
        image, weight, bias = (dt.tensor(v.astype("float64")).to(T) for v in (x, w, b))
        for n in (1, 3):
            dt.set_num_threads(n)
            for i, k in ((image, weight), (channels_last(image), channels_last(weight))):
                got = dt.conv2d(i, k, bias, stride, 1, 1, channels)
                assert np.array_equal(np.maximum(got.to(dt.float64).numpy(), 0), expected), (channels, height, width)
                fused = dt.conv2d(i, k, bias, stride, 1, 1, channels, activation="relu")
                assert np.array_equal(fused.to(dt.float64).numpy(), expected), (channels, height, width)


@pytest.mark.parametrize("dtype", ("float32", "float64"))
@pytest.mark.parametrize("stride", (1, 2))
def test_depthwise_of_three_by_three_takes_nothing_from_beside_a_plane(dtype: str, stride: int) -> None:
    rng = np.random.default_rng(8)
    for height, width, padding in ((7, 7, 1), (5, 1, 1), (2, 3, 1), (9, 33, 1), (40, 16, 0), (950, 9, 1), (950, 9, 0)):
        x, w = rng.integers(-2, 3, (1, 5, height, width)), rng.integers(-2, 3, (10, 1, 3, 3))
        expected = conv2d(x, w, stride, padding, 1, 5).reshape(1, 5, 2, -1)
        image = x.astype(dtype)
        image[:, 1::2] = np.nan
        for n in (1, 3):
            dt.set_num_threads(n)
            got = dt.conv2d(dt.tensor(image), dt.tensor(w.astype(dtype)), None, stride, padding, 1, 5).numpy()
            assert np.array_equal(got.reshape(expected.shape)[:, ::2], expected[:, ::2]), (height, width, padding)


@pytest.mark.parametrize("dtype", ("float32", "float64"))
def test_products_of_two_rows_are_exact_and_the_same_for_any_threads(dtype: str) -> None:
    rng = np.random.default_rng(7)
    a, b = rng.integers(-2, 3, (2, 1031)).astype(dtype), rng.integers(-2, 3, (1031, 517)).astype(dtype)
    for n in (1, 2, 3):
        dt.set_num_threads(n)
        for y in (dt.tensor(b), dt.tensor(b.T.copy()).T):
            assert np.array_equal((dt.tensor(a) @ y).numpy(), a @ b)
            assert np.array_equal((y.T @ dt.tensor(a).T).numpy(), (a @ b).T)


@pytest.mark.parametrize("dtype", ("float32", "float64", "bfloat16"))
def test_what_a_product_is_added_to(dtype: str) -> None:
    """Small integers: every sum is exact. Beside whole panels stand parts, and sums that take several stretches."""
    rng = np.random.default_rng(3)
    for m, k, n in ((20, 70, 64), (50, 70, 90), (3, 600, 33), (40, 600, 64), (64, 30, 7)):
        a, b, c = (rng.integers(-2, 3, shape).astype("float64") for shape in ((m, k), (k, n), (m, n)))
        left, right, added = (dt.tensor(x, dtype=getattr(dt, dtype)) for x in (a, b, c))
        for alpha, beta in ((1, 1), (0.5, 1), (2, 1), (1, 0.5), (1, 2), (1, 0)):
            want = dt.tensor(alpha * (a @ b) + beta * c).to(added.dtype)
            for layout in (added, added.t().contiguous().t(), dt.cat([added, added], 1)[:, :n]):
                assert dt.equal(dt.addmm(layout, left, right, beta=beta, alpha=alpha), want), (m, k, n, alpha, beta)
                out = layout.clone()
                assert dt.equal(out.addmm_(left, right, beta=beta, alpha=alpha), want), (m, k, n, alpha, beta)
            row = dt.tensor(beta * c[:1] + alpha * (a @ b)).to(added.dtype)
            assert dt.equal(dt.addmm(added[0], left, right, beta=beta, alpha=alpha), row), (m, k, n, alpha, beta)


# Shapes of products by vectors, matrices and batches.
FACTORS = [((3, 4), (4, 5)), ((4,), (4,)), ((3, 4), (4,)), ((4,), (4, 2)), ((2, 3, 4), (4, 5)),
           ((2, 1, 3, 4), (5, 4, 2)), ((0, 3), (3, 2)), ((3, 0), (0, 2)), ((40, 50), (50, 60)),
           ((300, 7), (7, 200)), ((5, 600), (600, 37)), ((1, 300), (300, 129)),
           ((2, 23, 257), (2, 257, 131))]  # fmt: skip


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32", "int64"])
@pytest.mark.parametrize("shapes", FACTORS, ids=str)
def test_products_of_integers_wrap(dtype: str, shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    generator = np.random.default_rng(0)
    large = np.iinfo(dtype)
    a, b = (generator.integers(large.min, large.max, shape, dtype, endpoint=True) for shape in shapes)
    wanted = np.matmul(a, b)
    for turned in (False, True):
        x, y = dt.from_numpy(a), dt.from_numpy(b)
        if turned:  # columns side by side
            x, y = (z.mT.contiguous().mT if z.ndim > 1 else z for z in (x, y))
        found = x @ y
        assert found.dtype.name == dtype and (found.numpy() == wanted).all()
        out = dt.zeros(wanted.shape, dtype=dtype)
        assert dt.matmul(x, y, out=out) is out and (out.numpy() == wanted).all()


def test_other_products_of_integers() -> None:
    x = dt.arange(6).reshape(2, 3)
    assert dt.mm(x, x.T).tolist() == [[5, 14], [14, 50]] and dt.mv(x, x[0]).tolist() == [5, 14]
    assert dt.dot(x[0], x[1]).item() == 14 and dt.bmm(x[None], x.T[None]).tolist() == [[[5, 14], [14, 50]]]
    with pytest.raises(dt.DTypeMismatchError, match="not implemented for 'bool': it takes all dtypes but bool"):
        (x > 1) @ (x > 1).T
    with pytest.raises(dt.DTypeMismatchError, match="same dtype, but got int64 and int32"):
        x @ x.T.int()


def test_a_gpu_has_no_products_of_integers(cuda: str) -> None:
    x = dt.arange(6, device=cuda).reshape(2, 3)
    with pytest.raises(dt.DTypeMismatchError, match="not implemented for 'int64': it takes float16"):
        x @ x.T
