"""Matrix products on CUDA: what is launched, planned, copied and rounded."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import formats
import numpy as np
import pytest
from formats import FLOATS
from support import REAL, from_bits, lay_out, wide_of

import devtensor as dt

HEURISTIC, PRODUCT = "cublasLtMatmulAlgoGetHeuristic", "cublasLtMatmul"
NOT_SUPPORTED = 15
simulated = pytest.mark.skipif(REAL, reason="the simulated GPU fails calls and lowers limits on demand")


class Change:
    """What happened inside `watch`."""

    calls: dict[str, int]
    launches: int


@contextmanager
def watch() -> Iterator[Change]:
    change = Change()
    calls, launches = dt._C._test.api_calls(), dt._C.counters()["launches"]
    yield change
    change.launches = dt._C.counters()["launches"] - launches
    change.calls = {name: n - calls[name] for name, n in dt._C._test.api_calls().items() if n != calls[name]}


def whole(
    shape: tuple[int, ...], dtype: str, device: str, seed: int = 0, top: int = 3, layout: str = "contiguous"
) -> Any:
    """Small integers, so that every sum of their products is exact; the array and its values."""
    values = np.random.default_rng(seed).integers(-top, top + 1, shape).astype(np.float64)
    return lay_out(formats.wide_to_bits(values, dtype), dtype, device, layout), values


widths = itertools.count(1)


def middle(device: str) -> Any:
    """A weight for `by_cudnn`."""
    return dt.tensor([[[[0.0, 1.0, 0.0]]]], device=device)


def by_cudnn(x: Any, weight: Any) -> Any:
    """x, by a convolution whose windows overlap: the others are products of matrices."""
    return dt.conv2d(x, weight, padding=(0, 1))


def forget_plans(device: str) -> None:
    """Pushes the plans of convolutions out of their cache, by that of one that nothing else has."""
    dt._C._test.set_plan_limit(1)
    by_cudnn(dt.ones((1, 1, 3, next(widths)), device=device), middle(device))
    dt._C._test.set_plan_limit(0)


@pytest.fixture
def tf32() -> Iterator[None]:
    dt.set_float32_precision("tf32")
    yield
    dt.set_float32_precision("highest")


@pytest.fixture
def fault() -> Iterator[Any]:
    yield dt._C._test.api_fail
    dt._C._test.api_fail(None, -1, 0)


@pytest.fixture
def small_limit() -> Iterator[Any]:
    yield dt._C._test.set_size_limit
    dt._C._test.set_size_limit(0)


# ---------------------------------------------------------------- exactness


@pytest.mark.parametrize("layout", ["contiguous", "transposed", "sliced"])
@pytest.mark.parametrize("dtype", FLOATS)
def test_whole_numbers_are_exact(dtype: str, layout: str, cuda: str) -> None:
    a, wide_a = whole((31, 70), dtype, cuda, 1, layout=layout)
    b, wide_b = whole((70, 17), dtype, cuda, 2, layout=layout)
    want = formats.round_to(wide_a @ wide_b, dtype)
    assert np.array_equal(wide_of(a @ b).astype(np.float64), want.astype(np.float64))


def test_strict_float32_keeps_24_bits(cuda: str) -> None:
    a = np.array([[2.0**23 + 1, 1.0]])
    b = np.array([[1.0], [-(2.0**23)]])
    x, y = (from_bits(formats.wide_to_bits(v, "float32"), "float32", cuda) for v in (a, b))
    assert dt.get_float32_precision() == "highest"
    assert wide_of(x @ y).tolist() == [[1.0]]


@simulated
def test_tf32_rounds_to_ten_bits(cuda: str, tf32: None) -> None:
    """The stand-in rounds as tensor cores may; the policy reaches matmul, linear and addmm, and no other dtype."""
    assert dt.get_float32_precision() == "tf32"
    one = dt.ones((1, 1), device=cuda)
    x = dt.full((1, 1), 1 + 2.0**-12, device=cuda)
    for got in (x @ one, dt.linear(x, one), dt.addmm(dt.zeros((1, 1), device=cuda), x, one)):
        assert got.item() == 1.0
    wide = dt.full((1, 1), 1 + 2.0**-12, dtype=dt.float64, device=cuda)
    assert (wide @ dt.ones((1, 1), dtype=dt.float64, device=cuda)).item() == 1 + 2.0**-12
    host = dt.full((1, 1), 1 + 2.0**-12)
    assert (host @ dt.ones((1, 1))).item() == 1 + 2.0**-12
    dt.set_float32_precision("highest")
    assert (x @ one).item() == 1 + 2.0**-12


def test_precision_is_a_word() -> None:
    for bad in ("high", "TF32", 1, None):
        with pytest.raises(ValueError, match="set_float32_precision"):
            dt.set_float32_precision(bad)  # type: ignore[arg-type]
    assert dt.get_float32_precision() == "highest"


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_types_add_up_in_float32(dtype: str, cuda: str) -> None:
    """4096 ones more than 4096 are lost where sums are kept in the half type."""
    x = dt.ones((1, 8192), dtype=getattr(dt, dtype), device=cuda)
    assert (x @ x.transpose(0, 1)).item() == 8192.0


@pytest.mark.parametrize("dtype", FLOATS)
def test_error_is_bounded(dtype: str, cuda: str) -> None:
    """|error| <= gamma_k sum |a| |b|, plus the rounding of the result."""
    rng = np.random.default_rng(7)
    k = 700
    a, b = (formats.round_float(rng.normal(size=s), dtype) for s in ((13, k), (k, 11)))
    x, y = (from_bits(formats.wide_to_bits(v, dtype), dtype, cuda) for v in (a, b))
    got = wide_of(x @ y).astype(np.float64)
    u = formats.FORMATS["float64" if dtype == "float64" else "float32"].eps / 2
    gamma = k * u / (1 - k * u)
    exact = np.array([[float(sum(p * q for p, q in zip(row, column, strict=True))) for column in b.T] for row in a])
    slack = formats.FORMATS[dtype].eps * np.abs(exact) + formats.FORMATS[dtype].smallest
    bound = (2 if dtype == "float64" else 1) * gamma * (np.abs(a) @ np.abs(b)) + slack
    assert np.all(np.abs(got - exact) <= bound)


# ---------------------------------------------------------------- launches, copies and plans


def test_launches_of_linear_with_bias_and_activation(cuda: str) -> None:
    """cuBLASLt's ReLU is max(x, 0), which may lose a NaN; its GELU is the tanh form."""
    x, weight, bias = (dt.randn(s, device=cuda) for s in ((8, 16), (24, 16), (24,)))
    for activation, launches in ((None, 1), ("relu", 2), ("gelu_tanh", 1), ("gelu", 2)):
        dt.linear(x, weight, bias, activation=activation)
        with watch() as change:
            dt.linear(x, weight, bias, activation=activation)
        assert change.launches == launches, activation
        assert change.calls.get(PRODUCT) == 1


def test_transposes_are_flags(cuda: str) -> None:
    a, b = dt.randn(16, 24, device=cuda), dt.randn(24, 8, device=cuda)
    at, bt = a.t().contiguous().t(), b.t().contiguous().t()
    want = wide_of(a.cpu() @ b.cpu())
    for x, y in ((a, b), (at, b), (a, bt), (at, bt)):
        with watch() as change:
            got = x @ y
        assert change.launches == 1
        assert np.allclose(wide_of(got), want, atol=1e-5)


def test_only_what_has_no_unit_stride_is_copied(cuda: str) -> None:
    wide = dt.randn(16, 48, device=cuda)
    b = dt.randn(24, 8, device=cuda)
    a = wide[:, ::2]
    a @ b
    with watch() as change:
        a @ b
    assert change.launches == 2
    with watch() as change:
        wide[:, 3:27] @ b
    assert change.launches == 1


def test_batches_collapse(cuda: str) -> None:
    a, b = dt.randn(2, 3, 4, 5, device=cuda), dt.randn(5, 6, device=cuda)
    c = dt.randn(2, 3, 5, 6, device=cuda)
    d = dt.randn(3, 5, 6, device=cuda)
    for x, y, launches in ((a, b, 1), (a, c, 1), (a, d, 2), (a, d.expand(2, 3, 5, 6), 2)):
        want = wide_of(x.cpu() @ y.cpu())
        with watch() as change:
            got = x @ y
        assert change.launches == launches
        assert np.allclose(wide_of(got), want, atol=1e-5)


def test_no_plan_is_made_twice(cuda: str) -> None:
    x, weight, bias = (dt.randn(s, device=cuda) for s in ((8, 17), (24, 17), (24,)))
    with watch() as first:
        y = dt.linear(x, weight, bias, activation="relu")
    assert first.calls[HEURISTIC] == 1
    with watch() as change:
        for _ in range(20):
            y = dt.linear(x, weight, bias, activation="relu")
    assert HEURISTIC not in change.calls and change.calls[PRODUCT] == 20
    assert "cublasLtMatmulDescCreate" not in change.calls
    assert y.shape == (8, 24)


def test_alignment_of_an_operand_is_part_of_its_plan(cuda: str) -> None:
    flat = dt.arange(300, dtype=dt.float32, device=cuda)
    for offset in (0, 1, 2, 4, 16):
        x = flat[offset : offset + 64].reshape(8, 8)
        want = wide_of(x).astype(np.float64) @ wide_of(x).astype(np.float64)
        assert np.array_equal(wide_of(x @ x), want)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_alignment_of_a_bias_is_part_of_its_plan(dtype: str, cuda: str) -> None:
    """It is loaded as widely as the result."""
    x = dt.eye(8, dtype=getattr(dt, dtype), device=cuda)
    biases = dt.arange(40, dtype=getattr(dt, dtype), device=cuda)
    for offset in (0, 1, 2, 4, 8):
        bias = biases[offset : offset + 8]
        assert np.array_equal(wide_of(dt.linear(x, x, bias)), np.eye(8) + wide_of(bias))


# ---------------------------------------------------------------- edges


@pytest.mark.parametrize("activation", [None, "relu", "gelu", "gelu_tanh"])
def test_nothing_to_sum_is_the_bias(activation: str | None, device: str) -> None:
    x, weight = dt.zeros((3, 0), device=device), dt.zeros((4, 0), device=device)
    bias = dt.tensor([-2.0, -0.5, 0.5, 2.0], device=device)
    want = {None: bias, "relu": dt.relu(bias), "gelu": dt.gelu(bias), "gelu_tanh": dt.gelu(bias, approximate="tanh")}
    got = dt.linear(x, weight, bias, activation=activation)  # type: ignore[arg-type]
    assert got.tolist() == [want[activation].tolist()] * 3


@simulated
@pytest.mark.parametrize("limit", [7, 64])
@pytest.mark.parametrize("layout", ["contiguous", "transposed"])
def test_sizes_beyond_one_call_are_split(limit: int, layout: str, cuda: str, small_limit: Any) -> None:
    a, wide_a = whole((20, 30), "float32", cuda, 3, layout=layout)
    b, wide_b = whole((30, 25), "float32", cuda, 4, layout=layout)
    bias, wide_bias = whole((25,), "float32", cuda, 5)
    c, wide_c = whole((20, 25), "float32", cuda, 6)
    small_limit(limit)
    want = wide_a @ wide_b
    with watch() as change:
        assert np.array_equal(wide_of(a @ b), want)
    assert change.calls[PRODUCT] == (60 if limit == 7 else 1)
    got = dt.linear(a, b.t(), bias, activation="relu")
    assert np.array_equal(wide_of(got), np.maximum(want + wide_bias, 0))
    assert np.array_equal(wide_of(dt.addmm(c, a, b, beta=2, alpha=3)), 3 * want + 2 * wide_c)
    batch, wide_batch = whole((9, 4, 30), "float32", cuda, 8)
    assert np.array_equal(wide_of(batch @ b), wide_batch @ wide_b)
    other, wide_other = whole((9, 30, 5), "float32", cuda, 9)
    assert np.array_equal(wide_of(batch @ other), wide_batch @ wide_other)


# ---------------------------------------------------------------- refusals of the library


@simulated
def test_the_next_algorithm_is_tried(cuda: str, fault: Any) -> None:
    x, y = dt.ones((5, 19), device=cuda), dt.ones((19, 3), device=cuda)
    fault(PRODUCT, 0, NOT_SUPPORTED)
    with watch() as change:
        assert (x @ y).tolist() == [[19.0] * 3] * 5
    assert change.calls[PRODUCT] == 2
    with watch() as change:  # remembered
        x @ y
    assert change.calls[PRODUCT] == 1 and HEURISTIC not in change.calls


@simulated
def test_no_algorithm_with_the_epilogue(cuda: str, fault: Any) -> None:
    x, weight, bias = dt.ones((5, 21), device=cuda), dt.ones((3, 21), device=cuda), dt.full((3,), -20.5, device=cuda)
    fault(HEURISTIC, 0, NOT_SUPPORTED)
    with watch() as change:
        got = dt.linear(x, weight, bias, activation="relu")
    assert got.tolist() == [[0.5] * 3] * 5
    assert change.calls[HEURISTIC] == 2 and change.launches == 3
    assert dt.linear(x, weight, bias).tolist() == [[0.5] * 3] * 5


@pytest.mark.parametrize("dtype", ("bfloat16", "float16", "float32", "float64"))
@pytest.mark.parametrize("rows", ("of whole 16 bytes", "of others", pytest.param("refused", marks=simulated)))
def test_sum_and_bias_are_rounded_once(rows: str, dtype: str, cuda: str, fault: Any) -> None:
    """257 and 2049 are no numbers of bfloat16 and float16; less 256 and 2048 they are 1."""
    n = {"bfloat16": 257, "float16": 2049}.get(dtype, 100)
    kind, columns = getattr(dt, dtype), 33 if rows == "of others" else 40
    k = n if rows == "of others" else n + -n % 8
    x, weight = dt.zeros((64, k), dtype=kind, device=cuda), dt.ones((columns, k), dtype=kind, device=cuda)
    x[:, :n] = 1
    bias = dt.full((columns,), 1 - n, dtype=kind, device=cuda)
    if rows == "refused":
        fault(HEURISTIC, 0, NOT_SUPPORTED)
    for _ in range(2):
        assert (dt.linear(x, weight, bias) == 1).all()


@simulated
@pytest.mark.parametrize("dtype", ("float16", "float32"))
def test_the_epilogue_is_done_apart_where_all_algorithms_refuse_it(dtype: str, cuda: str, fault: Any) -> None:
    kind = getattr(dt, dtype)
    x, weight = dt.ones((8, 24), dtype=kind, device=cuda), dt.ones((8, 24), dtype=kind, device=cuda)
    bias = dt.full((8,), -23.5, dtype=kind, device=cuda)
    dt._C._test.api_fail(PRODUCT, 0, NOT_SUPPORTED, times=3)  # as many as the stand-in has
    with watch() as change:
        assert dt.linear(x, weight, bias).tolist() == [[0.5] * 8] * 8
    assert change.calls[PRODUCT] == 4 and change.calls[HEURISTIC] == 2
    with watch() as change:  # remembered
        assert dt.linear(x, weight, bias).tolist() == [[0.5] * 8] * 8
    assert change.calls[PRODUCT] == 1 and HEURISTIC not in change.calls


@simulated
def test_every_algorithm_with_the_epilogue_refuses(cuda: str) -> None:
    x, weight, bias = dt.ones((5, 23), device=cuda), dt.ones((3, 23), device=cuda), dt.full((3,), -22.5, device=cuda)
    for n in range(2):  # the stand-in has three algorithms: two more refusals than one, then all of one search
        dt._C._test.api_fail(PRODUCT, n, NOT_SUPPORTED)
        assert dt.linear(x, weight, bias, activation="relu").tolist() == [[0.5] * 3] * 5
    dt._C._test.api_fail(PRODUCT, 0, NOT_SUPPORTED, True)
    with pytest.raises(dt.CudaError, match="cublasLtMatmul"):
        dt.linear(x, weight, bias, activation="relu")
    dt._C._test.api_fail(None, -1, 0)
    assert dt.linear(x, weight, bias, activation="relu").tolist() == [[0.5] * 3] * 5


def test_activation_is_a_name(device: str) -> None:
    x = dt.ones((2, 2), device=device)
    with pytest.raises(
        RuntimeError, match="linear: activation must be None, 'relu', 'gelu' or 'gelu_tanh', not 'selu'"
    ):
        dt.linear(x, x, activation="selu")  # type: ignore[arg-type]
    with pytest.raises(RuntimeError, match="conv2d: activation must be"):
        dt.conv2d(x[None, None], x[None, None], activation="")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="activation"):
        dt.linear(x, x, activation=1)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        dt.linear(x, x, None, "relu")  # type: ignore[misc]


def test_threads_share_plans(cuda: str) -> None:
    x, weight, bias = dt.ones((4, 33), device=cuda), dt.ones((5, 33), device=cuda), dt.arange(5.0, device=cuda)
    wrong: list[Any] = []

    def work() -> None:
        for _ in range(50):
            got = dt.linear(x, weight, bias, activation="relu")[0].tolist()
            if got != [33.0, 34.0, 35.0, 36.0, 37.0]:
                wrong.append(got)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
