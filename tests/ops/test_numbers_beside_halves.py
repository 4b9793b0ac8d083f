"""A Python number beside a half type: arithmetic keeps the digits of float32, a comparison takes it as an element."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import devtensor as dt

HALVES = ["float16", "bfloat16"]
# beyond float16, the next below it; the last is a number of both types
NUMBERS = [65536.0, 1e-9, 0.1, 1 / 3, -7.3, 4097, 2.0]
VALUES = np.array([0.5, -3, 0.1, 1e-4, 60000, 0, -0.0, 1, 255, np.inf, -np.inf, np.nan] * 24, np.float32)
Op = Callable[[Any, Any], Any]
ARITHMETIC: dict[str, Op] = {
    "+": lambda x, s: x + s,
    "-": lambda x, s: x - s,
    "- left": lambda x, s: s - x,
    "*": lambda x, s: x * s,
    "/": lambda x, s: x / s,
    "/ left": lambda x, s: s / x,
}
OTHERS: dict[str, Op] = {
    "//": lambda x, s: x // s,
    "// left": lambda x, s: s // x,
    "%": lambda x, s: x % s,
    "% left": lambda x, s: s % x,
    "fmod": lambda x, s: dt.fmod(x, s),
    "**": lambda x, s: x**s,
    "** left": lambda x, s: s**x,
    "trunc": lambda x, s: dt.div(x, s, rounding_mode="trunc"),
    "alpha": lambda x, s: dt.add(x, s, alpha=3),
    "atan2": lambda x, s: dt.atan2(x, s),
    "hypot": lambda x, s: dt.hypot(x, s),
    "maximum": lambda x, s: dt.maximum(x, s),
}
LAYOUTS: dict[str, Callable[[dt.DeviceArray], dt.DeviceArray]] = {
    "dense": lambda x: x,
    "few": lambda x: x[:11],
    "one": lambda x: x[2],
    "strided": lambda x: x[::2],
    "columns": lambda x: x.reshape(12, 24).t(),
    "rows": lambda x: x.reshape(12, 24)[:, :23],
    "expanded": lambda x: x[:12].reshape(12, 1).expand(12, 5),
}


def half(dtype: str, device: str) -> dt.DeviceArray:
    return dt.from_numpy(VALUES).to(getattr(dt, dtype)).to(device)


def bits(x: dt.DeviceArray) -> Any:
    """Every NaN is one."""
    return np.nan_to_num(x.float().cpu().numpy(), nan=7.0).view(np.int32)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("op", ARITHMETIC)
@pytest.mark.parametrize("dtype", HALVES)
def test_arithmetic_keeps_the_number(dtype: str, op: str, number: float, layout: str, device: str) -> None:
    x = LAYOUTS[layout](half(dtype, device))
    got = ARITHMETIC[op](x, number)
    assert got.dtype is x.dtype
    with np.errstate(all="ignore"):
        want = ARITHMETIC[op](x.float().cpu().numpy(), np.float32(number))
    np.testing.assert_array_equal(bits(got), bits(dt.tensor(want).to(x.dtype)))


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("op", OTHERS)
@pytest.mark.parametrize("dtype", HALVES)
def test_other_ops_are_those_of_float32(dtype: str, op: str, number: float, device: str) -> None:
    x = half(dtype, device)
    np.testing.assert_array_equal(bits(OTHERS[op](x, number)), bits(OTHERS[op](x.float(), number).to(x.dtype)))


@pytest.mark.parametrize("dtype", HALVES)
def test_in_place_and_out(dtype: str, device: str) -> None:
    x = half(dtype, device)
    want = x * 65536.0
    out = dt.empty_like(x)
    dt.mul(x, 65536.0, out=out)
    again = x.clone()
    again *= 65536.0
    np.testing.assert_array_equal(bits(out), bits(want))
    np.testing.assert_array_equal(bits(again), bits(want))
    assert (dt.tensor([0.5], dtype=dt.float16, device=device) * 65536.0).item() == 32768.0


@pytest.mark.parametrize("dtype", HALVES)
def test_a_comparison_rounds_the_number(dtype: str, device: str) -> None:
    """As PyTorch does on the cpu: 0.1 is found where it was stored."""
    x = dt.tensor([0.1, 0.25, 3.0], dtype=getattr(dt, dtype), device=device)
    assert (x == 0.1).tolist() == [True, False, False]
    assert (x > 0.1).tolist() == [False, True, True]
    assert (0.1 >= x).tolist() == [True, False, False]
    assert dt.logical_and(x, 1e-20).tolist() == [dtype == "bfloat16"] * 3


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("op", ["*", "/", "/ left", "- left"])
def test_gradients_take_the_number_as_it_is(dtype: str, op: str, device: str) -> None:
    x = dt.tensor([0.5, 3.0], dtype=getattr(dt, dtype), device=device, requires_grad=True)
    wide = x.detach().float().requires_grad_()
    for leaf in (x, wide):
        ARITHMETIC[op](leaf, 0.1).backward(dt.full_like(leaf, 0.5))
    assert x.grad is not None and wide.grad is not None
    np.testing.assert_allclose(
        x.grad.float().cpu().numpy(), wide.grad.cpu().numpy(), rtol=2**-10 if dtype == "float16" else 2**-7
    )
    if op in "*/":  # one op with the number
        np.testing.assert_array_equal(bits(x.grad), bits(wide.grad.to(x.dtype)))
