"""inf and NaN go where PyTorch lets them go: through the windows they are in, and no further."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import devtensor as dt

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

Call = Callable[[Any, Any], Any]


def check(text: str, call: Call, x: np.ndarray, rng: np.random.Generator, device: str, far: bool) -> None:
    """The result for x, and the gradient with one inf or NaN in what comes; far: x has such numbers too."""
    if far:
        x.reshape(-1)[rng.integers(x.size)] = rng.choice([np.inf, -np.inf, np.nan])
    theirs, ours = torch.tensor(x, requires_grad=True), dt.tensor(x, device=device, requires_grad=True)
    want, got = call(torch.nn.functional, theirs), call(dt.nn.functional, ours)
    np.testing.assert_allclose(got.detach().cpu().numpy(), want.detach().numpy(), 1e-6, 1e-6, err_msg=text)
    grad = rng.standard_normal(want.shape)
    grad.reshape(-1)[rng.integers(grad.size)] = rng.choice([np.inf, -np.inf, np.nan])
    want.backward(torch.tensor(grad))
    got.backward(dt.tensor(grad, device=device))
    np.testing.assert_allclose(ours.grad.cpu().numpy(), theirs.grad.numpy(), 1e-6, 1e-6, err_msg=text)


WINDOWS: tuple[tuple[Any, ...], ...] = (
    *((2,), (3, 2, 1), (3, 1, 1), (2, 3), (7,), (1, 2), (5, 1, 2)),
    *((3, 2, 1, True), (3, 2, 1, True, False), (3, 2, 1, False, False), (5, 2, 2, True, False), (2, 5, 1, True)),
    *(((3, 1), (2, 1), (1, 0)), (3, 2, 1, True, True, 5), (2, 2, 0, False, True, 3)),
)


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_means_of_windows(device: str) -> None:
    rng = np.random.default_rng(1)
    for shape in ((2, 3, 7, 9), (1, 8, 7)):
        for window in WINDOWS:
            check(f"{shape} {window}", lambda F, x: F.avg_pool2d(x, *window), rng.random(shape), rng, device, True)  # noqa: B023
        for size in (1, (1, 3), (5, 4), 7, 9, (14, 20), (2, 13)):
            for call in (
                lambda F, x: F.adaptive_avg_pool2d(x, size),  # noqa: B023
                lambda F, x: F.interpolate(x if x.ndim == 4 else x[None], size, mode="area"),  # noqa: B023
            ):
                check(f"{shape} to {size}", call, rng.random(shape), rng, device, True)
    for kernel in (2, (3, 2, 1)):
        check(f"3d {kernel}", lambda F, x: F.avg_pool3d(x, kernel, 2), rng.random((1, 5, 6, 4)), rng, device, True)  # noqa: B023


def test_means_of_hostile_windows(device: str) -> None:
    """Windows much larger than the image take no time or memory that they do not need."""
    half = 5 * 10**8
    x = dt.ones(1, 4, 4, device=device, requires_grad=True)
    dt.nn.functional.max_pool2d(x, 2 * half, half, half, ceil_mode=True).sum().backward()
    assert x.grad is not None and x.grad.sum() == 4
    for window in ((2 * half, 1, half), (2 * half, half, half, True), (2, 10**12), (10**15, 10**14, 10**15 // 2)):
        x = dt.ones(1, 4, 4, device=device, dtype=dt.float64, requires_grad=True)
        y = dt.nn.functional.avg_pool2d(x, *window)
        y.sum().backward()
        assert x.grad is not None
        total = float((x.grad * x.detach()).sum())
        assert abs(total - float(y.detach().sum())) < 1e-9 * total


@pytest.mark.parametrize("mode", ["linear", "bilinear", "trilinear", "antialias"])
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_interpolate(mode: str, device: str) -> None:
    rng = np.random.default_rng(2)
    shape = {"linear": (1, 2, 6), "trilinear": (1, 1, 4, 5, 3)}.get(mode, (1, 2, 5, 6))
    for options in ({"scale_factor": 2}, {"scale_factor": 4}, {"scale_factor": 3}, {"size": 7}, {"scale_factor": 0.5}):
        for aligned in (False, True):
            named: dict[str, Any] = {"mode": mode, **options, "align_corners": aligned}
            if mode == "antialias":
                named.update(mode="bilinear", antialias=True)
            for _ in range(3):
                check(str(named), lambda F, x: F.interpolate(x, **named), rng.random(shape), rng, device, True)  # noqa: B023


def test_the_variance_of_a_batch_fits_where_its_sum_does_not(device: str) -> None:
    x = np.random.default_rng(0).standard_normal((1000, 3)) * 3e18
    mean, var = dt.zeros(3, device=device), dt.zeros(3, device=device)
    dt.nn.functional.batch_norm(dt.tensor(x, dtype=dt.float32, device=device), mean, var, training=True, momentum=1.0)
    np.testing.assert_allclose(var.cpu().numpy(), x.var(0, ddof=1), 1e-5)
