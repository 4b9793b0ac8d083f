"""The sum of squares below var, and its root below norm and std: no public function has their names."""

from __future__ import annotations

from typing import Any

import formats
import numpy as np
import pytest
from case_values import fill
from formats import FLOATS
from support import assert_close, lay_out, wide_of

import devtensor as dt
from devtensor import _C
from devtensor.autograd import gradcheck, gradgradcheck

DIMS: list[tuple[int, ...] | None] = [None, (0,), (1,), (2,), (0, 2), (1, 2)]
SHAPES = [(3, 5, 7), (2, 33, 70), (40, 3, 2), (1, 2, 3000)]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("layout", ["contiguous", "transposed", "sliced"])
def test_values(dtype: str, layout: str, device: str) -> None:
    form = formats.FORMATS[dtype]
    roundings = 128 if dtype == "float64" else 2  # the others are added in float64
    for shape in SHAPES:
        x = fill("unit", shape, dtype, np.random.default_rng(1))
        a = lay_out(formats.wide_to_bits(x, dtype), dtype, device, layout)
        for dims in DIMS:
            for keep in (False, True):
                exact = (x * x).sum(dims, keepdims=keep)
                got = _C._sum_squares(a, dims, keep)
                assert tuple(got.shape) == exact.shape
                assert str(got.dtype) == f"devtensor.{dtype}"
                assert_close(
                    wide_of(got), formats.round_float(exact, dtype), roundings * form.eps * exact + form.smallest
                )


def test_no_elements_no_dimensions_and_no_number(device: str) -> None:
    assert _C._sum_squares(dt.zeros((2, 0), device=device), (1,)).tolist() == [0, 0]
    assert _C._sum_squares(dt.tensor(-3.0, device=device)).item() == 9
    found = _C._sum_squares(dt.tensor([[1.0, float("nan")], [float("inf"), 2], [2, 3]], device=device), (1,))
    assert str(found.tolist()) == "[nan, inf, 13.0]"


def test_a_square_that_float32_does_not_hold(device: str) -> None:
    """They are added in float64: one that is too small for float32 counts."""
    x = dt.full((1 << 16,), 2.0**-70, device=device)
    assert _C._sum_squares(x).item() == 2.0**-124


@pytest.mark.parametrize("dims", DIMS)
def test_gradients(dims: tuple[int, ...] | None, device: str) -> None:
    x = dt.tensor(np.random.default_rng(2).standard_normal((2, 3, 4)), device=device, requires_grad=True)
    for keep in (False, True):
        for op in (_C._sum_squares, _C._root_squares):
            assert gradcheck(lambda a, keep=keep, op=op: op(a, dims, keep), (x,))
            assert gradgradcheck(lambda a, keep=keep, op=op: op(a, dims, keep), (x,))


@pytest.mark.parametrize("dtype", FLOATS)
def test_roots(dtype: str, device: str) -> None:
    """Rounded once: they are those of sums that the dtype need not hold."""
    form = formats.FORMATS[dtype]
    for scale in (1.0, 2.0**60, 2.0**-80):
        if dtype == "float16" and scale != 1:
            continue
        x = fill("unit", (3, 40, 70), dtype, np.random.default_rng(4)) * scale
        a = lay_out(formats.wide_to_bits(x, dtype), dtype, device, "contiguous")
        for dims in DIMS:
            exact = np.sqrt((x * x).sum(dims))
            got = _C._root_squares(a, dims)
            assert_close(wide_of(got), formats.round_float(exact, dtype), 64 * form.eps * exact)


def test_norms_and_deviations_of_far_numbers(device: str) -> None:
    """Numbers whose squares float32 does not hold, and their gradients, which do not depend on the size."""
    rng = np.random.default_rng(5)
    near = rng.standard_normal((40, 33))
    for scale in (1e20, 1e-25):
        x = (near * scale).astype("float32")
        exact = x.astype("float64")
        for dims in (None, 0, 1):
            a = dt.from_numpy(x.copy()).to(device).requires_grad_(True)
            norm, std = dt.linalg.vector_norm(a, dim=dims), a.std(dim=dims)
            np.testing.assert_allclose(norm.detach().cpu().numpy(), np.sqrt((exact**2).sum(dims)), 1e-6)
            np.testing.assert_allclose(std.detach().cpu().numpy(), exact.std(dims, ddof=1), 1e-6)
            unit = exact / np.sqrt((exact**2).sum(dims, keepdims=True))
            np.testing.assert_allclose(dt.autograd.grad(norm.sum(), a)[0].cpu().numpy(), unit, 1e-5)
            apart, n = exact - exact.mean(dims, keepdims=True), exact.size if dims is None else exact.shape[dims]
            slope = apart / (exact.std(dims, ddof=1, keepdims=True) * (n - 1))
            np.testing.assert_allclose(dt.autograd.grad(std.sum(), a)[0].cpu().numpy(), slope, 1e-4, 1e-6)
        total = dt.nn.utils.get_total_norm([a.detach(), a.detach()])
        assert total.item() == pytest.approx(float(np.sqrt(2 * (exact**2).sum())))
    zero = dt.zeros(3, device=device, requires_grad=True)
    assert dt.autograd.grad(dt.norm(zero) + zero.std(), zero)[0].tolist() == [0, 0, 0]


@pytest.mark.parametrize(("values", "correction"), [([3.0], 1), ([2.0, 2.0], 2), ([1.0, 2.0], 2), (3.0, 1)])
def test_a_deviation_that_is_none_has_a_gradient_that_is_none(values: Any, correction: int, device: str) -> None:
    x = dt.tensor(values, device=device, requires_grad=True)
    for spread in (x.std(correction=correction), dt.std_mean(x, correction=correction)[0]):
        assert not spread.isfinite()
        assert dt.autograd.grad(spread, x)[0].isnan().all()


def test_the_variance_of_large_equal_numbers(device: str) -> None:
    """Their sum is beyond float32, their mean is not."""
    assert dt.full((10,), 1e38, device=device).var().item() == 0
