"""dropout: one pass over its input, which draws the numbers of rand(); its gradient draws them again."""

from __future__ import annotations

from typing import Any

import formats
import numpy as np
import pytest
from formats import FLOATS
from support import bits_of, from_bits, lay_out

import devtensor as dt
from devtensor import _C

F = dt.nn.functional
SHAPES = [(), (0,), (1,), (3,), (4,), (7,), (8,), (9,), (255,), (257,), (1000,), (5, 7), (2, 3, 4, 5), (70_001,)]
LAYOUTS = ["contiguous", "transposed", "sliced", "channels_last", "expanded"]


def apart(x: dt.DeviceArray, p: float) -> dt.DeviceArray:
    """The same by the ops that it stands for."""
    keep = dt.rand(x.shape, dtype=dt.float32, device=x.device) >= p
    return dt.where(keep, x * (1 / (1 - p) if p < 1 else 0.0), 0.0)


def both(x: dt.DeviceArray, p: float) -> tuple[Any, Any]:
    results = []
    for way in (F.dropout, apart):
        dt.manual_seed(11)
        results.append(way(x, p))
    return results[0], results[1]


@pytest.mark.parametrize("p", [0.1, 0.5, 1.0])
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_numbers_are_those_of_rand(shape: tuple[int, ...], dtype: str, p: float, device: str) -> None:
    values = np.random.default_rng(3).normal(size=shape)
    got, want = both(from_bits(formats.wide_to_bits(values, dtype), dtype, device), p)
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    np.testing.assert_array_equal(bits_of(got), bits_of(want))
    assert float(dt.rand(1).item()) == float(draw_after(shape))


def draw_after(shape: tuple[int, ...]) -> Any:
    """What comes next from the generator after as many numbers."""
    dt.manual_seed(11)
    dt.rand(shape)
    return dt.rand(1).item()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_in_every_layout(dtype: str, layout: str, device: str) -> None:
    values = np.random.default_rng(4).normal(size=(3, 5, 6, 7))
    x = lay_out(formats.wide_to_bits(values, dtype), dtype, device, layout)
    got, want = both(x, 0.4)
    np.testing.assert_array_equal(bits_of(got), bits_of(want))
    assert got.is_contiguous(memory_format=dt.channels_last) == x.is_contiguous(memory_format=dt.channels_last)


def test_what_is_left_out_is_zero_whatever_it_was(device: str) -> None:
    x = dt.full((64,), dt.nan, device=device)
    y = F.dropout(x, 0.5)
    assert 0 < int((y == 0).sum()) < 64
    assert int(y.isnan().sum()) + int((y == 0).sum()) == 64


def test_the_bits_depend_on_no_number_of_threads() -> None:
    x = dt.randn(300_007)
    before, results = dt.get_num_threads(), []
    for count in (1, 2, 3, 7):
        dt.set_num_threads(count)
        dt.manual_seed(5)
        results.append(bits_of(F.dropout(x, 0.3)))
    dt.set_num_threads(before)
    assert all((result == results[0]).all() for result in results)


@pytest.mark.parametrize("dtype", FLOATS)
def test_the_gradient_leaves_out_the_same(dtype: str, device: str) -> None:
    x = dt.ones(6, 50, dtype=getattr(dt, dtype), device=device, requires_grad=True)
    y = F.dropout(x.T, 0.25)
    dt.rand(1000)  # what others draw does not matter
    y.backward(dt.full((50, 6), 2.0, dtype=y.dtype, device=device))
    assert dt.equal(x.grad.T, y.detach() * 2)


def test_a_gradient_has_a_gradient(device: str) -> None:
    x = dt.ones(40, dtype=dt.float64, device=device, requires_grad=True)
    y = F.dropout(x, 0.5)
    (first,) = dt.autograd.grad((y * y).sum(), x, create_graph=True)
    (second,) = dt.autograd.grad(first.sum(), x)
    assert dt.equal(second, 2 * y.detach() * 2)


def test_nothing_is_kept_for_the_gradient(device: str) -> None:
    x = dt.ones(1000, device=device, requires_grad=True)
    y = F.dropout(x * 1, 0.5)
    assert _C._kept_memory(y.grad_fn) == []
    assert "Dropout" in y.grad_fn.name()


def test_a_generator_moves_on(device: str) -> None:
    dt.manual_seed(2)
    x = dt.ones(100, device=device)
    assert not dt.equal(F.dropout(x), F.dropout(x))
