"""The sum of squares below norm and var: no public function has its name."""

from __future__ import annotations

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
        assert gradcheck(lambda a, keep=keep: _C._sum_squares(a, dims, keep), (x,))
        assert gradgradcheck(lambda a, keep=keep: _C._sum_squares(a, dims, keep), (x,))


def test_the_variance_of_large_equal_numbers(device: str) -> None:
    """Their sum is beyond float32, their mean is not."""
    assert dt.full((10,), 1e38, device=device).var().item() == 0
