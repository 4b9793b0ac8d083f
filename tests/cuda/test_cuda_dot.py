"""Products of two long vectors on CUDA, which are reductions, and of many small matrices."""

from __future__ import annotations

from typing import Any

import formats
import numpy as np
import pytest
from formats import FLOATS
from support import from_bits, wide_of
from test_cuda_matmul import PRODUCT, watch

import devtensor as dt

LENGTHS = (65536, 65537, 100_003, (1 << 20) + 5)


def vector(n: int, dtype: str, device: str, seed: int, step: int = 1, first: int = 0) -> tuple[Any, Any]:
    """Small integers whose sums stay small, every step-th of an array from first on; and their values."""
    values = np.random.default_rng(seed).integers(-1, 2, first + n * step).astype(np.float64)
    return from_bits(formats.wide_to_bits(values, dtype), dtype, device)[first::step], values[first::step]


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize(("step", "first"), [(1, 0), (1, 3), (2, 0)])
@pytest.mark.parametrize("dtype", FLOATS)
def test_a_long_dot_is_a_reduction(dtype: str, step: int, first: int, n: int, cuda: str) -> None:
    x, wide_x = vector(n, dtype, cuda, 1, step, first)
    y, wide_y = vector(n, dtype, cuda, 2)
    want = formats.round_to(np.array(wide_x @ wide_y), dtype).astype(np.float64)
    with watch() as change:
        got = [dt.dot(x, y), dt.dot(y, x), (x.view(1, n) if step == 1 else y.view(1, n)) @ (y if step == 1 else x)]
    assert [wide_of(g).item() for g in got] == 3 * [want.item()]
    assert PRODUCT not in change.calls


@pytest.mark.parametrize("dtype", FLOATS)
def test_parts_are_as_wide_as_their_sum(dtype: str, cuda: str) -> None:
    """A half type would lose what its parts lose; and what is too large for the result is infinite, as on the host."""
    tiny = dt.full((LENGTHS[2],), 2.0**-9, dtype=getattr(dt, dtype), device=cuda)
    ones = dt.ones_like(tiny)
    assert wide_of(dt.dot(tiny, ones)).item() == formats.round_to(np.array(LENGTHS[2] * 2.0**-9), dtype).item()
    assert wide_of(dt.dot(ones, ones)).item() == wide_of(dt.dot(ones.cpu(), ones.cpu())).item()


def test_special_values_pass(cuda: str) -> None:
    x, y = dt.zeros(70_000, device=cuda), dt.ones(70_000, device=cuda)
    for place in (0, 69_999):
        x.zero_()
        x[place] = float("inf")
        assert dt.dot(x, y).item() == float("inf")
        y[place] = 0.0
        assert np.isnan(dt.dot(x, y).item())
        y[place] = 1.0


def test_other_forms_stay_products(cuda: str) -> None:
    """What is scaled or added to is still right."""
    x, y = dt.ones(1, 70_000, device=cuda), dt.ones(70_000, 1, device=cuda)
    c = dt.full((1, 1), 3.0, device=cuda)
    assert dt.addmm(c, x, y).item() == 70_003.0
    assert dt.linear(x, y.view(1, 70_000), c[0], activation="relu").item() == 70_003.0
    out = dt.zeros(1, 1, device=cuda)
    dt.matmul(x, y, out=out)
    assert out.item() == 70_000.0


@pytest.mark.parametrize("dtype", FLOATS)
def test_small_products_of_every_size(dtype: str, cuda: str) -> None:
    rng = np.random.default_rng(0)
    for m in range(1, 33):
        n, k = 7 * m % 32 + 1, 11 * m % 32 + 1
        a, b = (rng.integers(-2, 3, shape).astype(np.float64) for shape in ((64, m, k), (64, k, n)))
        on = [from_bits(formats.wide_to_bits(v, dtype), dtype, cuda) for v in (a, b)]
        with watch() as change:
            got = on[0] @ on[1]
        assert np.array_equal(wide_of(got).astype(np.float64), a @ b), (m, n, k)
        assert change.launches == 1 and PRODUCT not in change.calls
