"""Gradients where a function has an edge, a tie or no number: those of PyTorch."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from torch_version import needs_torch

import devtensor as dt

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

NAN, INF = math.nan, math.inf
HOLES = [[1.0, NAN, 3.0], [NAN, NAN, 1.0], [2.0, 2.0, 1.0]]
EDGES = [0.0, -0.0, -1.0, -2.0, -0.5, INF, -INF, NAN, 2.0, 0.5, 1.0, 1e-300]
PAIRS = [[a for a in (-INF, -1.0, 2.0, INF, NAN) for _ in range(5)], [-INF, -1.0, 2.0, INF, NAN] * 5]
TIES = [[1.0, 2.0], [2.0, 3.0]]
CORNERS = [[0.0, 0.0, 0.0], [1.0, 2.0, 1.0]]
ANSWERS = [0.0, 1.0, 0.0, 1.0, 0.3]
PLACES = [[[[NAN, 0.1], [0.2, NAN], [NAN, NAN], [0.1, 0.2], [-3.0, 2.0]]]]
PIXELS = np.arange(12.0).reshape(1, 1, 3, 4).tolist()
SCORES = (np.arange(18.0) % 5).reshape(3, 2, 3).tolist()


def sampled(mode: str) -> Callable[..., Any]:
    return lambda T, x, grid: T.nn.functional.grid_sample(x, grid, mode=mode, align_corners=False)


def aligned(zero_infinity: bool, reduction: str) -> Callable[..., Any]:
    def loss(T: Any, x: Any) -> Any:
        labels, lengths = (T.tensor(numbers, device=x.device) for numbers in ([[1, 1, 1], [1, 2, 1]], [3, 3]))
        options = {"reduction": reduction, "zero_infinity": zero_infinity}
        return T.nn.functional.ctc_loss(x.log_softmax(2), labels, lengths, lengths, **options)

    return loss


CALLS: dict[str, tuple[Any, ...]] = {
    **{f"{op} of all": (lambda T, x, op=op: getattr(T, op)(x), HOLES) for op in ("max", "min", "amax", "amin")},
    **{f"{op} of rows": (lambda T, x, op=op: getattr(T, op)(x, 1), HOLES) for op in ("amax", "amin")},
    "max of rows": (lambda T, x: T.max(x, 1).values, HOLES),
    "aminmax": (lambda T, x: sum(T.aminmax(x)), HOLES),
    "aminmax of rows": (lambda T, x: sum(T.aminmax(x, dim=1)), HOLES),
    "atan2": (
        lambda T, y, x: T.atan2(y, x),
        [0.0, 0.0, -0.0, 1e-200, 1e200, INF, 3.0],
        [0.0, -0.0, 0.0, 1e-200, 1e200, INF, 4.0],
    ),
    **{
        f"{op} {name}": (lambda T, x, op=op: getattr(T, op)(x), x)
        for op in ("median", "nanmedian")
        for name, x in (("ties", TIES), ("nan", [NAN, 1.0, 1.0, NAN, 0.0]), ("only nan", [NAN, NAN]))
    },
    **{op: (lambda T, x, op=op: getattr(T, op)(x), EDGES) for op in ("lgamma", "digamma", "logit")},
    "logit eps": (lambda T, x: T.logit(x, 0.1), [-0.1, 0.0, 0.1, 0.5, 0.9, 1.0, 1.1]),
    "entr": (lambda T, x: T.special.entr(x), EDGES),
    "erfinv": (lambda T, x: T.erfinv(x), [0.0, 1.0, -1.0, 0.5, -0.99, NAN]),
    "copysign": (lambda T, x, y: T.copysign(x, y), [1.0, -2.0, 0.0, 3.0], [-0.0, 3.0, NAN, -INF]),
    "cdist of nothing": (lambda T, a, b: T.cdist(a, b), [[], []], [[], [], []]),
    "logaddexp": (lambda T, a, b: T.logaddexp(a, b), *PAIRS),
    "pow": (lambda T, x: T.pow(x, T.full_like(x, 0.5)) + T.pow(x, T.full_like(x, -0.5)), EDGES),
    "cdist": (lambda T, a, b: T.cdist(a, b, p=INF), CORNERS, [[1.0, 1.0, -1.0], [3.0, 0.0, 2.0], [0.0, 0.0, 0.0]]),
    "binary_cross_entropy": (
        lambda T, x, y: T.nn.functional.binary_cross_entropy(x, y, reduction="none"),
        ANSWERS,
        [0.0, 1.0, 1.0, 0.0, 0.5],
    ),
    **{f"ctc {zero} {kind}": (aligned(zero, kind), SCORES) for zero in (False, True) for kind in ("none", "mean")},
    **{f"grid_sample {mode}": (sampled(mode), PIXELS, PLACES) for mode in ("bilinear", "nearest", "bicubic")},
}


@pytest.mark.parametrize("name", CALLS)
def test_edges(name: str, device: str) -> None:
    if name.startswith("aminmax"):
        needs_torch("2.13")
    call, *operands = CALLS[name]
    theirs = [torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in operands]
    ours = [dt.tensor(x, dtype=dt.float64, device=device, requires_grad=True) for x in operands]
    want, got = call(torch, *theirs), call(dt, *ours)
    np.testing.assert_allclose(got.detach().cpu().numpy(), want.detach().numpy(), 1e-9, 1e-12)
    want.sum().backward()
    got.sum().backward()
    for mine, other in zip(ours, theirs, strict=True):
        assert (mine.grad is None) == (other.grad is None)
        if other.grad is not None:
            np.testing.assert_allclose(mine.grad.cpu().numpy(), other.grad.numpy(), 1e-8, 1e-12)


@pytest.mark.parametrize("op", ["slogdet", "logdet"])
def test_determinants_of_a_batch_with_a_singular_matrix(op: str) -> None:
    """Infinite where PyTorch is, whatever the sign of 0 is there; the others have their own gradients."""
    found = []
    for T in (torch, dt):
        x = T.tensor([[[1.0, 2.0], [2.0, 4.0]], [[1.0, 2.0], [4.0, 3.0]], [[3.0, 2.0], [4.0, 3.0]]], requires_grad=True)
        (T.linalg.slogdet(x)[1] if op == "slogdet" else T.logdet(x)).sum().backward()
        found.append(x.grad.abs().numpy())
    np.testing.assert_allclose(found[1], found[0], 1e-5, 1e-6)


@pytest.mark.parametrize("border", ["border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
def test_a_place_that_is_no_number_is_the_first(border: str, mode: str, device: str) -> None:
    options = {"padding_mode": border, "mode": mode, "align_corners": True}
    want = torch.nn.functional.grid_sample(torch.tensor(PIXELS), torch.tensor(PLACES), **options)
    got = dt.nn.functional.grid_sample(dt.tensor(PIXELS, device=device), dt.tensor(PLACES, device=device), **options)
    np.testing.assert_allclose(got.cpu().numpy(), want.numpy(), 1e-6)


def test_half_a_power_is_that_of_ieee_754(device: str) -> None:
    """Of minus infinity and -0.0 too; whether the exponent is a number, or an array of it as in test_edges."""
    for dtype in (dt.float16, dt.float32, dt.float64):
        x = dt.tensor([-INF, -0.0] * 20, dtype=dtype, device=device)
        for power, wanted in ((0.5, [INF, 0.0]), (-0.5, [0.0, INF])):
            for got in (x**power, dt.pow(x, dt.full_like(x, power)), x.clone().pow_(power), x[1:] ** power):
                assert got[-2:].tolist() == wanted and not bool(dt.signbit(got).any()), (dtype, power)


@pytest.mark.parametrize("left", (False, True))
@pytest.mark.parametrize("op", [*"add sub mul div pow remainder fmod atan2 hypot logaddexp maximum minimum".split()])
def test_a_number_is_an_array_of_it(op: str, left: bool, device: str) -> None:
    """On both sides, for the gradient and that of it."""
    call = {"add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv}.get(op)
    call = call or {"pow": operator.pow, "remainder": operator.mod}.get(op) or getattr(dt, op)
    values = np.array([0.3, 1.4, 2.0, 5.0])
    for number in (0.3, 2, -1.7):
        if op == "pow" and left and number < 0:
            continue
        found = []
        for other in (number, dt.full((4,), number, dtype=dt.float64, device=device)):
            x = dt.tensor(values, device=device, requires_grad=True)
            out = call(other, x) if left else call(x, other)
            (first,) = dt.autograd.grad(out.square().sum(), x, create_graph=True)
            (second,) = dt.autograd.grad(first.sum(), x)
            found.append([first.tolist(), second.tolist()])
        np.testing.assert_allclose(found[0], found[1], 1e-12)


def test_a_window_of_padding_alone_has_no_largest_element(device: str) -> None:
    """PyTorch gives no gradient in this case, or writes out of bounds."""
    images = ([[[[1.0, 2.0], [3.0, 4.0]]]], [[[1.0, 5.0, 2.0, 7.0], [3.0, 4.0, 0.0, 1.0], [2.0, 9.0, 1.0, 3.0]]])
    for image, dilation in ((images[0], 3), (images[1], (2, 5)), (images[1], (4, 3))):
        found = []
        for create_graph in (False, True):
            x = dt.tensor(image, device=device, requires_grad=True)
            y = dt.nn.functional.max_pool2d(x, 2, 1, 1, dilation)
            (grad,) = dt.autograd.grad((y * 3).sum(), x, create_graph=create_graph)
            found.append(grad.tolist())
        assert found[0] == found[1]
        assert grad.sum().item() == 3 * int(y.isfinite().sum()) < 3 * y.numel()


def test_slopes_of_slopes(device: str) -> None:
    rng = np.random.default_rng(3)
    x = dt.tensor(rng.uniform(0.1, 0.9, 5), device=device, requires_grad=True)
    y = dt.tensor(rng.uniform(0.1, 0.9, 5), device=device, requires_grad=True)
    for call in (dt.lgamma, dt.digamma, dt.logit, dt.special.entr):
        assert dt.autograd.gradgradcheck(call, (x,))
    assert dt.autograd.gradgradcheck(lambda x, y: dt.nn.functional.binary_cross_entropy(x, y), (x, y))
