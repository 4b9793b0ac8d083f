"""Kernels of gradients: no public function reaches them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import formats
import numpy as np
import pytest
from case_values import fill
from formats import FLOATS, Array
from support import ROOT, assert_close, bits_of, lay_out, wide_of

import devtensor as dt
from devtensor import _C

erf = np.vectorize(math.erf, otypes=[np.float64])


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def normal(x: Array) -> Array:
    return np.exp(-x * x / 2) / math.sqrt(2 * math.pi)


def gelu_tanh_grad(g: Array, x: Array) -> Array:
    c = math.sqrt(2 / math.pi)
    t = np.tanh(c * (x + 0.044715 * x**3))
    return g * (0.5 * (1 + t) + 0.5 * x * (1 - t * t) * c * (1 + 3 * 0.044715 * x * x))


@dataclass(frozen=True)
class Gradient:
    """What a kernel computes of the gradient g and of what was kept. An error of `ulps` units in the last place of
    |result| + slack * |g| is allowed. torch: a function of the gradient, what was kept and PyTorch's operators."""

    function: Callable[..., Array]
    torch: Callable[[Any, Any, Any], Any]
    parameters: tuple[float, ...] = ()
    kept: str = "signed"
    ulps: float = 4
    slack: float = 0


GRADIENTS = {
    "abs_grad": Gradient(lambda g, x: g * ((x > 0) * 1.0 - (x < 0)), lambda g, x, t: g * x.sgn(), ulps=0),
    "rsqrt_grad": Gradient(lambda g, y: -0.5 * g * y**3, lambda g, y, t: -0.5 * g * y.pow(3), kept="positive"),
    "erf_grad": Gradient(
        lambda g, x: g * 2 / math.sqrt(math.pi) * np.exp(-x * x),
        lambda g, x, t: 2 / math.sqrt(math.pi) * (-x * x).exp() * g, ulps=20),
    "tanh_grad": Gradient(lambda g, y: g * (1 - y * y), lambda g, y, t: t.tanh_backward(g, y), kept="unit", slack=1),
    "sigmoid_grad": Gradient(
        lambda g, y: g * (1 - y) * y, lambda g, y, t: t.sigmoid_backward(g, y), kept="unit"),
    "relu_grad": Gradient(
        lambda g, y: np.where(y <= 0, 0, g), lambda g, y, t: t.threshold_backward(g, y, 0), ulps=0),
    "hardtanh_grad": Gradient(
        lambda g, x, low, high: np.where((x <= low) | (x >= high), 0, g),
        lambda g, x, t: t.hardtanh_backward(g, x, -2.5, 1.5), (-2.5, 1.5), ulps=0),
    "leaky_relu_grad": Gradient(
        lambda g, x, slope: np.where(x > 0, g, g * slope),
        lambda g, x, t: t.leaky_relu_backward(g, x, 0.25, False), (0.25,)),
    "elu_grad": Gradient(
        lambda g, x, alpha: np.where(x > 0, g, g * alpha * np.exp(x)),
        lambda g, x, t: t.elu_backward(g, 0.5, 1, 1, False, x), (0.5,)),
    "silu_grad": Gradient(
        lambda g, x: g * sigmoid(x) * (1 + x * (1 - sigmoid(x))), lambda g, x, t: t.silu_backward(g, x), slack=1),
    "hardswish_grad": Gradient(
        lambda g, x: np.where(x <= -3, 0, np.where(x >= 3, g, g * (x / 3 + 0.5))),
        lambda g, x, t: t.hardswish_backward(g, x), slack=1),
    "huber_grad": Gradient(
        lambda g, x, delta: g * np.clip(x, -delta, delta),
        lambda g, x, t: t.huber_loss_backward(g, x, x * 0, 0, 1.5), (1.5,)),
    "softplus_grad": Gradient(
        lambda g, x, beta, threshold: np.where(x * beta > threshold, g, g * sigmoid(x * beta)),
        lambda g, x, t: t.softplus_backward(g, x, 2.0, 3.0), (2.0, 3.0)),
    "gelu_erf_grad": Gradient(
        lambda g, x: g * (0.5 * (1 + erf(x * math.sqrt(0.5))) + x * normal(x)),
        lambda g, x, t: t.gelu_backward(g, x, approximate="none"), slack=1),
    "gelu_tanh_grad": Gradient(
        gelu_tanh_grad, lambda g, x, t: t.gelu_backward(g, x, approximate="tanh"), slack=2),
}  # fmt: skip

LAYOUTS = ("contiguous", "transposed", "sliced", "expanded")


def operands(name: str, dtype: str, shape: tuple[int, ...], layout: str = "contiguous") -> tuple[Array, Array]:
    rng = np.random.default_rng(len(name))
    if layout == "expanded":  # as the gradient of a sum is
        shape = (1, *shape[1:])
    return fill("signed", shape, dtype, rng), fill(GRADIENTS[name].kept, shape, dtype, rng)


def run(name: str, g: dt.DeviceArray, kept: dt.DeviceArray, in_place: bool = False) -> dt.DeviceArray:
    p0, p1 = (*GRADIENTS[name].parameters, 0.0, 0.0)[:2]
    return _C._test.binary(name, g, kept, p0, p1, in_place)


def check(name: str, got: dt.DeviceArray, dtype: str, g: Array, kept: Array) -> None:
    tried, form = GRADIENTS[name], formats.FORMATS[dtype]
    with np.errstate(all="ignore"):
        exact = tried.function(g, kept, *tried.parameters)
    want = formats.round_float(exact, dtype)
    size = np.abs(np.where(np.isfinite(exact), exact, 0)) + tried.slack * np.abs(np.where(np.isfinite(g), g, 0))
    assert_close(wide_of(got), want, tried.ulps * (form.eps * size + form.smallest))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", GRADIENTS)
def test_values(name: str, dtype: str, device: str) -> None:
    for layout in LAYOUTS:
        g, kept = operands(name, dtype, (5, 33), layout)
        g, kept = np.broadcast_to(g, (5, 33)), np.broadcast_to(kept, (5, 33))
        a, b = (lay_out(formats.wide_to_bits(v, dtype), dtype, device, layout) for v in (g, kept))
        check(name, run(name, a, b), dtype, g, kept)
        plain = lay_out(formats.wide_to_bits(kept, dtype), dtype, device, "contiguous")
        check(name, run(name, a, plain), dtype, g, kept)
        if layout != "expanded":
            got = run(name, a, b, in_place=True)
            assert got is a
            check(name, got, dtype, g, kept)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", GRADIENTS)
def test_ends_and_nan(name: str, dtype: str, device: str) -> None:
    """Zeros of both signs, infinities, NaN, the ends of each piece, and numbers whose exp is infinite or 0."""
    kept = np.array([0.0, -0.0, 1, -1, 1.5, -2.5, 30, -30, 120, -120, np.nan, 60000, -60000, np.inf, -np.inf])
    kept = formats.round_float(kept, dtype)
    if name in ("erf_grad", "silu_grad", "gelu_erf_grad", "gelu_tanh_grad", "tanh_grad", "rsqrt_grad"):
        kept = kept[:11]  # beyond, products are 0 * inf in one dtype and not in another
    g = np.full(kept.shape, 2.0)
    a, b = (lay_out(formats.wide_to_bits(v, dtype), dtype, device, "contiguous") for v in (g, kept))
    check(name, run(name, a, b), dtype, g, kept)


@pytest.mark.parametrize("name", GRADIENTS)
def test_no_elements_and_no_dimensions(name: str, device: str) -> None:
    empty = dt.zeros((2, 0), device=device)
    assert tuple(run(name, empty, empty).shape) == (2, 0)
    one = dt.ones((), device=device)
    assert tuple(run(name, one, one).shape) == ()


@pytest.mark.parametrize("name", GRADIENTS)
def test_as_pytorch(name: str, device: str) -> None:
    torch = pytest.importorskip("torch")
    for dtype in ("float32", "float64"):
        g, kept = operands(name, dtype, (64, 33))
        ends = (0.0, -0.0, 1.0, *GRADIENTS[name].parameters)
        kept[0, : len(ends)] = ends
        want = GRADIENTS[name].torch(*(torch.tensor(v.astype(dtype)) for v in (g, kept)), torch.ops.aten).numpy()
        a, b = (lay_out(formats.wide_to_bits(v, dtype), dtype, device, "contiguous") for v in (g, kept))
        near = 4e-6 if dtype == "float32" else 1e-13
        np.testing.assert_allclose(bits_of(run(name, a, b)), want, rtol=near, atol=near)


# ---------------------------------------------------------------- softmax


def softmax_grad(g: Array, y: Array, dim: int, log: bool) -> Array:
    return g - np.exp(y) * g.sum(dim, keepdims=True) if log else y * (g - (g * y).sum(dim, keepdims=True))


def softmax_operands(dtype: str, shape: tuple[int, ...], dim: int, log: bool, layout: str) -> tuple[Array, Array]:
    rng = np.random.default_rng(len(shape))
    g, x = (rng.normal(size=(1, *shape[1:]) if layout == "expanded" else shape) for _ in range(2))
    x = np.broadcast_to(x, shape)
    y = x - x.max(dim, keepdims=True)
    y = y - np.log(np.exp(y).sum(dim, keepdims=True))
    g, y = (np.broadcast_to(formats.round_float(v, dtype), shape) for v in (g, y if log else np.exp(y)))
    return g, y


def check_softmax(got: dt.DeviceArray, dtype: str, g: Array, y: Array, dim: int, log: bool) -> None:
    """Half an ulp of a half type, and what sums in float32 lose of the terms."""
    want = softmax_grad(g, y, dim, log)
    assert tuple(got.shape) in (want.shape, ())
    terms = np.abs(g) if log else np.abs(g * y)
    size = (
        np.abs(g) + terms.sum(dim, keepdims=True) * np.exp(y)
        if log
        else y * (np.abs(g) + terms.sum(dim, keepdims=True))
    )
    eps = formats.FORMATS["float64" if dtype == "float64" else "float32"].eps
    bound = formats.FORMATS[dtype].eps / 2 * np.abs(want) + 8 * eps * size + formats.FORMATS[dtype].smallest
    assert_close(wide_of(got).reshape(want.shape), want, bound)


SOFTMAX_SHAPES = [((5, 3), 1), ((4, 33), 1), ((3, 2000), -1), ((2, 40_000), 1), ((70, 9), 0), ((3, 9, 65), 1),
                  ((2, 3, 4, 5), 1), ((2, 20, 300), 1), ((17,), 0), ((3, 1), 1), ((1, 5), 0), ((), 0)]  # fmt: skip


@pytest.mark.parametrize("log", [False, True], ids=["softmax", "log_softmax"])
@pytest.mark.parametrize(("shape", "dim"), SOFTMAX_SHAPES, ids=str)
def test_softmax(shape: tuple[int, ...], dim: int, log: bool, device: str) -> None:
    for dtype in FLOATS:
        for layout in LAYOUTS if shape else ("contiguous",):
            g, y = softmax_operands(dtype, shape or (1,), dim, log, layout)
            a, b = (lay_out(formats.wide_to_bits(v, dtype).reshape(shape), dtype, device, layout) for v in (g, y))
            plain = lay_out(formats.wide_to_bits(y, dtype).reshape(shape), dtype, device, "contiguous")
            for result in (b, plain):
                check_softmax(_C._test.softmax_grad(a, result, dim, log), dtype, g, y, dim, log)
            if layout != "expanded":
                assert _C._test.softmax_grad(a, b, dim, log, in_place=True) is a
                check_softmax(a, dtype, g, y, dim, log)


@pytest.mark.parametrize("log", [False, True], ids=["softmax", "log_softmax"])
def test_softmax_as_pytorch(log: bool, device: str) -> None:
    torch = pytest.importorskip("torch")
    backward = torch.ops.aten._log_softmax_backward_data if log else torch.ops.aten._softmax_backward_data
    for shape, dim in SOFTMAX_SHAPES[:-1]:
        for dtype, near in (("float32", 4e-6), ("float64", 1e-13)):
            g, y = (v.astype(dtype) for v in softmax_operands(dtype, shape, dim, log, "contiguous"))
            theirs = torch.tensor(y)
            want = backward(torch.tensor(g), theirs, dim, theirs.dtype).numpy()
            a, b = (lay_out(v, dtype, device, "contiguous") for v in (g, y))
            np.testing.assert_allclose(bits_of(_C._test.softmax_grad(a, b, dim, log)), want, rtol=near, atol=near)


def test_softmax_of_nothing_and_nan(device: str) -> None:
    empty = dt.zeros((0, 3), device=device)
    assert tuple(_C._test.softmax_grad(empty, empty, 1, False).shape) == (0, 3)
    empty = dt.zeros((3, 0), device=device)
    assert tuple(_C._test.softmax_grad(empty, empty, 1, True).shape) == (3, 0)
    y = dt.tensor([[0.5, 0.5], [float("nan"), 0.5]], device=device)
    got = wide_of(_C._test.softmax_grad(dt.ones(2, 2, device=device), y, 1, False))
    assert got[0].tolist() == [0, 0]
    assert np.isnan(got[1]).all()


# ---------------------------------------------------------------- the list


def test_every_gradient_of_the_list_is_tried() -> None:
    text = (ROOT / "csrc" / "core" / "elementwise.def").read_text()
    listed = [line.partition("(")[2].partition(",")[0] for line in text.splitlines() if line.startswith("DT_GRADIENT(")]
    assert sorted(listed) == sorted(GRADIENTS)
