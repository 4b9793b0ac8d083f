"""Kernels of the CUDA backend where their forms meet: vectors and tails, misaligned views, 32-bit and 64-bit indices,
our products and convolutions against the library's, and blocks of many threads (emulated in C)."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from support import ROOT, bits_of, needs_compiler

import devtensor as dt

FLOATS = ("float16", "bfloat16", "float32", "float64")
DIGITS = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}


@pytest.fixture(autouse=True)
def usual_settings() -> Iterator[None]:
    yield
    dt._C._test.kernel_settings()


def values(
    rng: np.random.Generator, shape: tuple[int, ...], dtype: str = "float32", device: str = "cpu"
) -> dt.DeviceArray:
    """Small integers, so that sums and products are exact in every order and dtype."""
    return dt.array(rng.integers(-3, 4, size=shape).astype(np.float64)).to(device, getattr(dt, dtype))


@needs_compiler
@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("test_kernels", 2000),
        ("test_kernels_index", 500),
        ("test_kernels_update", 150),
        ("test_kernels_order", 1500),
        ("test_kernels_layers", 1500),
        ("test_kernels_cells", 120),
        ("test_kernels_cells -DOF_DOUBLE", 120),
    ],
)
def test_blocks_of_many_threads(name: str, least: int, tmp_path: Path) -> None:
    name, *options = name.split()
    program = tmp_path / name
    command = [
        "cc",
        *options,
        "-std=gnu11",
        "-O1",
        "-ffp-contract=off",
        "-o",
        program,
        ROOT / f"tests/c/{name}.c",
        "-lm",
    ]
    subprocess.run(command, check=True)
    run = subprocess.run([program], capture_output=True, text=True, timeout=300)
    found = re.fullmatch(r"(\d+) passed, (\d+) failed", run.stdout.strip().splitlines()[-1])
    assert run.returncode == 0 and found, run.stdout[-2000:] + run.stderr[-2000:]
    assert int(found[1]) >= least and found[2] == "0"


# ---------------------------------------------------------------- elementwise

LENGTHS = (1, 2, 15, 16, 17, 255, 1023, 4096, 4097, 8191, 16385)


@pytest.mark.parametrize("dtype", ("uint8", "int16", "float16", "float32", "float64"))
@pytest.mark.parametrize("n", LENGTHS)
def test_vectors_tails_and_misaligned_views(dtype: str, n: int, cuda: str) -> None:
    rng = np.random.default_rng(n)
    x, y = values(rng, (n + 3,), dtype), values(rng, (n + 3,), dtype)
    a, b = x.to(cuda), y.to(cuda)
    for i, j in ((0, 0), (1, 1), (0, 1), (3, 2)):
        u, v, p, q = x[i : i + n], y[j : j + n], a[i : i + n], b[j : j + n]
        for left, right in (
            (u + v, p + q),
            (u < v, p < q),
            (u * 2, p * 2),
            (-u, -p),
            (dt.where(u < v, u, v), dt.where(p < q, p, q)),
            (u.to(dt.float64), p.to(dt.float64)),
            (u.to(dt.uint8), p.to(dt.uint8)),
        ):
            assert np.array_equal(bits_of(left), bits_of(right))
        into_host, into_device = dt.zeros((n + 3,), dtype=x.dtype), dt.zeros((n + 3,), dtype=x.dtype, device=cuda)
        into_host[j : j + n] = u + v
        into_device[j : j + n] = p + q
        assert np.array_equal(bits_of(into_host), bits_of(into_device))


@pytest.mark.parametrize("columns", (3, 5, 8, 13))
def test_rows_that_begin_where_vectors_do_and_end_within_one(columns: int, cuda: str) -> None:
    """Every row of the views is aligned; what stands behind its end is not theirs."""
    x, y = values(np.random.default_rng(0), (6, 16)), dt.full((6, 16), 9.0)
    a, b = x.to(cuda), y.to(cuda)
    for source, target in ((x, y), (a, b)):
        dt.neg(source[:, :columns], out=target[:, :columns])
        target[:, :columns] += 1
    assert np.array_equal(bits_of(y), bits_of(b))


@pytest.mark.parametrize("shape", ((64, 64), (7, 12), (5, 13), (3, 4, 8), (2, 3, 5, 16)))
@pytest.mark.parametrize("limit", (2**31 - 1, 100, 5))
def test_broadcasts_and_splits_of_the_index(shape: tuple[int, ...], limit: int, cuda: str) -> None:
    """A small limit makes small arrays take the way of arrays beyond 2**31 elements."""
    dt._C._test.kernel_settings(index_limit=limit)
    rng = np.random.default_rng(0)
    x = values(rng, shape)
    others = [values(rng, shape[-1:]), values(rng, (*shape[:-1], 1)), values(rng, (*shape[:-2], 1, shape[-1])), x]
    a = x.to(cuda)
    for y in others:
        b = y.to(cuda)
        assert np.array_equal(bits_of(x + y), bits_of(a + b))
        assert np.array_equal(bits_of(y * x), bits_of(b * a))
        assert np.array_equal(
            bits_of(x.transpose(-1, -2) - y.expand(shape).transpose(-1, -2)),
            bits_of(a.transpose(-1, -2) - b.expand(shape).transpose(-1, -2)),
        )
    assert np.array_equal(bits_of(x.transpose(-1, -2).contiguous()), bits_of(a.transpose(-1, -2).contiguous()))
    assert np.array_equal(bits_of(x[..., ::2].contiguous()), bits_of(a[..., ::2].contiguous()))
    for dim in range(len(shape)):
        assert np.array_equal(bits_of(x.sum(dim)), bits_of(a.sum(dim)))
        assert np.array_equal(bits_of(x.argmax(dim)), bits_of(a.argmax(dim)))
        assert np.allclose(dt.softmax(x, dim).numpy(), dt.softmax(a, dim).cpu().numpy(), rtol=1e-6, atol=0)
    assert np.array_equal(bits_of(dt.tril(x)), bits_of(dt.tril(a)))
    if len(shape) == 4:
        assert np.array_equal(bits_of(dt.max_pool2d(x, 2)), bits_of(dt.max_pool2d(a, 2)))
        assert np.array_equal(bits_of(dt.avg_pool2d(x, 2)), bits_of(dt.avg_pool2d(a, 2)))


@pytest.mark.parametrize("dtype", ("uint8", "int16", "float32", "int64", "bool"))
@pytest.mark.parametrize("shape", ((33, 100), (64, 64), (3, 40, 17), (2, 24, 5, 20), (131, 259), (3, 70, 16)))
def test_transposed_copies(dtype: str, shape: tuple[int, ...], cuda: str) -> None:
    x = dt.arange(int(np.prod(shape))).reshape(*shape).to(getattr(dt, dtype))
    a = x.to(cuda)
    for dims in (range(len(shape))[::-1], (*range(1, len(shape)), 0)):
        assert np.array_equal(
            bits_of(x.permute(tuple(dims)).contiguous()), bits_of(a.permute(tuple(dims)).contiguous())
        )


# ---------------------------------------------------------------- reductions and softmax

ROWS = ((1, 200_001), (3, 70_000), (70_000, 3), (257, 1000), (2000, 64), (40, 33, 9))


@pytest.mark.parametrize("shape", ROWS)
@pytest.mark.parametrize("dtype", ("float32", "uint8", "float16"))
def test_reductions_of_every_layout(shape: tuple[int, ...], dtype: str, cuda: str) -> None:
    rng = np.random.default_rng(1)
    x = dt.array(rng.integers(0, 3, size=shape).astype(np.float64)).to(getattr(dt, dtype))
    a = x.to(cuda)
    for dim in (None, *range(len(shape))):
        for op in ("sum", "amax", "argmin", "any", "all"):
            mine = getattr(a, op)() if dim is None else getattr(a, op)(dim)
            want = getattr(x, op)() if dim is None else getattr(x, op)(dim)
            assert np.array_equal(bits_of(mine), bits_of(want)), (op, dim)


@pytest.mark.parametrize("dtype", ("float16", "bfloat16", "float32", "float64", "int8", "int64"))
@pytest.mark.parametrize("n", (1, 5, 1000, 100_003))
def test_extremes_wherever_they_stand(n: int, dtype: str, cuda: str) -> None:
    """First, last and between, twice, below and above everything; NaN before any number, the first of several."""
    high, low = (np.inf, -np.inf) if dtype.startswith(("f", "b")) else (127, -128)
    special = (high, low, np.nan) if high == np.inf else (high, low)
    for value in special:
        for places in ([], [0], [n - 1], [n // 2, n - 1], [n // 3, n // 2], range(n)):
            stored = np.arange(n) % 7 - 3.0
            stored[list(places)] = value
            x = dt.array(stored).to(getattr(dt, dtype))
            for op in (dt.amax, dt.amin, dt.argmax, dt.argmin):
                assert bits_of(op(x.to(cuda))).tobytes() == bits_of(op(x)).tobytes(), (op, value, places)


@pytest.mark.parametrize("n", (5, 1000, 1001, 100_003))
def test_bits_do_not_depend_on_where_an_array_lies(n: int, cuda: str) -> None:
    rng = np.random.default_rng(2)
    whole = dt.array(rng.normal(size=n + 1).astype(np.float32)).to(cuda)
    moved = whole[1:].clone()
    for op in (dt.sum, dt.mean, dt.prod, dt.argmax):
        assert np.array_equal(bits_of(op(whole[1:])), bits_of(op(moved)))
        assert np.array_equal(bits_of(op(moved)), bits_of(op(moved)))
    assert np.array_equal(bits_of(dt.softmax(whole[1:], 0)), bits_of(dt.softmax(moved, 0)))


@pytest.mark.parametrize("n", (1001, 4096, 16_400, 50_001))
@pytest.mark.parametrize("dtype", FLOATS)
def test_bits_of_long_rows_do_not_depend_on_where_they_lie(n: int, dtype: str, cuda: str) -> None:
    """Vectors are read across their bounds, and nothing outside a row: around it stand numbers that would change it."""
    rng = np.random.default_rng(n)
    row = dt.array(rng.normal(size=n)).to(getattr(dt, dtype)).to(cuda)
    kinds = (dt.softmax, dt.log_softmax)
    want = [bits_of(op(row, 0)) for op in kinds]
    around = dt.full((9, n + 8), float("inf"), dtype=row.dtype, device=cuda)
    for first in range(8):
        around[:, first : first + n] = row
        for x in (around[:, first : first + n], around[:, first : first + n].contiguous()):
            for op, bits in zip(kinds, want, strict=True):
                for got in bits_of(op(x, 1)):
                    assert np.array_equal(got, bits)
        around.fill_(float("inf"))


@pytest.mark.parametrize("n", (1, 2, 31, 128, 129, 512, 513, 4096, 4097, 30_000))
@pytest.mark.parametrize("dtype", FLOATS)
def test_softmax_of_every_length(n: int, dtype: str, cuda: str) -> None:
    rng = np.random.default_rng(n)
    x = dt.array(rng.normal(size=(3, n)) * 5).to(getattr(dt, dtype))
    wide = x.to(dt.float64).numpy()
    below = wide - wide.max(-1, keepdims=True)  # rounded by the kernel, so that exp amplifies its size
    e = np.exp(below)
    want = e / e.sum(-1, keepdims=True)
    unit = 2.0 ** -DIGITS[dtype]
    for a in (x.to(cuda), x.to(cuda).transpose(0, 1).contiguous().transpose(0, 1)):
        got = dt.softmax(a, 1).to(dt.float64).cpu().numpy()
        assert np.all(np.abs(got - want) <= (8 - below) * unit * want + 2.0**-24 * (dtype == "float16") + 1e-30)
        logs = dt.log_softmax(a, 1).to(dt.float64).cpu().numpy()
        assert np.all(np.abs(logs - np.log(want)) <= 8 * unit * (np.abs(np.log(want)) + np.abs(wide) + 1))


@pytest.mark.parametrize("n", (7, 600, 5000))
def test_softmax_of_special_rows(n: int, cuda: str) -> None:
    rows = np.zeros((5, n), dtype=np.float32)
    rows[0, :] = -np.inf
    rows[1, n // 2] = np.inf
    rows[2, n - 1] = np.nan
    rows[3, : n - 1] = -np.inf
    rows[4, 3] = 1e4
    got = dt.softmax(dt.array(rows).to(cuda), 1).cpu().numpy()
    assert np.isnan(got[:3]).any(1).all() and np.isnan(got[0]).all() and np.isnan(got[2]).all()
    assert got[3, n - 1] == 1 and np.all(got[3, : n - 1] == 0)
    assert got[4, 3] == 1 and got[4].sum() == 1


# ---------------------------------------------------------------- products

PRODUCTS = [(m, n, k) for m in (1, 2, 4, 8) for n, k in ((2100, 64), (4100, 100), (8, 70))]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(("m", "n", "k"), [*PRODUCTS, *((n, m, k) for m, n, k in PRODUCTS if n > 8)])
def test_skinny_products(m: int, n: int, k: int, dtype: str, cuda: str) -> None:
    """Both ways are exact on small integers; both stay within gamma_k on others."""
    rng = np.random.default_rng(m * n)
    x, w = values(rng, (m, k), dtype, cuda), values(rng, (n, k), dtype, cuda)
    y, bias = values(rng, (k, n), dtype, cuda), values(rng, (n,), dtype, cuda)
    start = values(rng, (m, n), dtype, cuda)
    results = []
    for skinny in (True, False):
        dt._C._test.kernel_settings(skinny=skinny)
        results.append(
            [bits_of(r) for r in (x @ y, dt.linear(x, w, bias), dt.addmm(start, x, y, beta=2, alpha=0.5), x @ w.T)]
        )
    for ours, library in zip(*results, strict=True):
        assert np.array_equal(ours, library)
    dt._C._test.kernel_settings()
    u, v = (dt.array(rng.normal(size=s)).to(cuda, getattr(dt, dtype)) for s in ((m, k), (k, n)))
    wide_u, wide_v = (z.to(dt.float64).cpu().numpy() for z in (u, v))
    compute = 2.0 ** -(53 if dtype == "float64" else 24)
    bound = 2 * k * compute * (np.abs(wide_u) @ np.abs(wide_v)) + 2.0 ** -DIGITS[dtype] * np.abs(wide_u @ wide_v)
    assert np.all(np.abs((u @ v).to(dt.float64).cpu().numpy() - wide_u @ wide_v) <= bound + 2.0**-24)
    assert np.array_equal(bits_of(u @ v), bits_of(u @ v))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", ((64, 1, 1, 1), (100, 3, 5, 7), (65, 32, 32, 32), (70, 8, 1, 31)))
def test_many_small_products(shape: tuple[int, int, int, int], dtype: str, cuda: str) -> None:
    batch, m, n, k = shape
    rng = np.random.default_rng(batch)
    x, y = values(rng, (batch, m, k), dtype, cuda), values(rng, (batch, n, k), dtype, cuda).transpose(1, 2)
    start = values(rng, (batch, m, n), dtype, cuda)
    ours = [bits_of(x @ y), bits_of(dt.baddbmm(start, x, y, beta=0.5, alpha=2)), bits_of(x @ y[:1].expand(y.shape))]
    dt._C._test.kernel_settings(skinny=False)
    library = [bits_of(x @ y), bits_of(dt.baddbmm(start, x, y, beta=0.5, alpha=2)), bits_of(x @ y[:1].expand(y.shape))]
    for a, b in zip(ours, library, strict=True):
        assert np.array_equal(a, b)


def test_rows_that_share_a_matrix_are_one_product(cuda: str) -> None:
    rng = np.random.default_rng(3)
    x, y = values(rng, (5, 1, 64), device=cuda), values(rng, (64, 2112), device=cuda)
    before = dt._C._test.api_calls()
    got = dt.matmul(x, y)
    after = dt._C._test.api_calls()
    assert after["cuLaunchKernel"] - before["cuLaunchKernel"] == 1
    assert after["cublasLtMatmul"] == before["cublasLtMatmul"]
    want = x.cpu().numpy() @ y.cpu().numpy()
    assert np.array_equal(got.cpu().numpy(), want)


# ---------------------------------------------------------------- depthwise convolution


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("last", (False, True))
@pytest.mark.parametrize(
    ("kernel", "stride", "padding", "dilation"),
    [
        (3, 1, 1, 1),
        (5, 1, 2, 1),
        (3, 2, 1, 1),
        (3, 1, 2, 2),
        (7, 1, 3, 1),
        ((1, 3), (2, 1), (0, 1), 1),
        (2, 1, "same", 1),
    ],
)
def test_depthwise(
    kernel: int | tuple[int, int],
    stride: int | tuple[int, int],
    padding: int | tuple[int, int] | str,
    dilation: int,
    last: bool,
    dtype: str,
    cuda: str,
) -> None:
    rng = np.random.default_rng(4)
    r, s = kernel if isinstance(kernel, tuple) else (kernel, kernel)
    for channels in (3, 16, 40):
        x, w = values(rng, (2, channels, 13, 10), dtype, cuda), values(rng, (channels, 1, r, s), dtype, cuda)
        bias = values(rng, (channels,), dtype, cuda)
        if last:
            x = x.permute((0, 2, 3, 1)).contiguous().permute((0, 3, 1, 2))
        results = []
        for own in (True, False):
            dt._C._test.kernel_settings(depthwise=own)
            for b in (bias, None):
                results.append(
                    bits_of(dt.conv2d(x, w, b, stride=stride, padding=padding, dilation=dilation, groups=channels))
                )
        assert np.array_equal(results[0], results[2])
        assert np.array_equal(results[1], results[3])


def test_depthwise_is_one_launch(cuda: str) -> None:
    x, w, bias = dt.ones((1, 8, 9, 9), device=cuda), dt.ones((8, 1, 3, 3), device=cuda), dt.ones((8,), device=cuda)
    before = dt._C._test.api_calls()
    y = dt.conv2d(x, w, bias, padding=1, groups=8)
    after = dt._C._test.api_calls()
    assert after["cuLaunchKernel"] - before["cuLaunchKernel"] == 1
    assert after["cudnnBackendExecute"] == before["cudnnBackendExecute"]
    assert y[0, 0, 4, 4].item() == 10 and y[0, 7, 0, 0].item() == 5


# ---------------------------------------------------------------- random


@pytest.mark.parametrize("dtype", ("float16", "float32", "float64"))
@pytest.mark.parametrize("n", (1, 4, 1001))
def test_random_bits_do_not_depend_on_the_form(n: int, dtype: str, cuda: str) -> None:
    kind = getattr(dt, dtype)
    drawn = {}
    for place in ("cpu", cuda):
        dt.manual_seed(5)
        drawn[place] = [
            dt.rand(n, dtype=kind, device=place),
            dt.randn(n, dtype=kind, device=place),
            dt.arange(n, dtype=kind, device=place),
            dt.randperm(n, device=place),
        ]
    for a, b in zip(drawn["cpu"], drawn[cuda], strict=True):
        assert np.array_equal(bits_of(a), bits_of(b))


@pytest.mark.parametrize("last", (False, True))
@pytest.mark.parametrize("dtype", FLOATS)
def test_the_mean_of_an_image_is_a_reduction(dtype: str, last: bool, cuda: str) -> None:
    """A block reads an image, not a thread: the same bits as the mean."""
    x = values(np.random.default_rng(6), (3, 5, 40, 33), dtype, cuda)
    x = x.permute((0, 2, 3, 1)).contiguous().permute((0, 3, 1, 2)) if last else x
    pool = dt.nn.functional
    want = bits_of(x.mean((2, 3), keepdim=True))
    for got in (
        pool.adaptive_avg_pool2d(x, 1),
        pool.avg_pool2d(x, (40, 33)),
        pool.avg_pool2d(x, (41, 50), ceil_mode=True, stride=99),
    ):
        assert np.array_equal(bits_of(got), want)
    for got in (
        pool.avg_pool2d(x, (40, 33), divisor_override=2),
        pool.avg_pool2d(x, (40, 33), padding=(0, 1))[..., :1],
    ):
        assert not np.array_equal(bits_of(got), want)
