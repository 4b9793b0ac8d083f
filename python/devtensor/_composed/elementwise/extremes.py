"""Larger and smaller numbers of two arrays that may hold NaN, and the base-2 sum of exponentials."""

from __future__ import annotations

import math

from devtensor import _C
from devtensor._C import DeviceArray
from devtensor._composed.elementwise.pointwise import floating, together
from devtensor._composed.written import takes_out
from devtensor._dtypes.rules import common_dtype

_NAMES = ("input", "other")


def _both(op: str, input: DeviceArray, other: DeviceArray) -> tuple[DeviceArray, DeviceArray]:
    shape = together(op, _NAMES, (input, other))
    dtype = common_dtype(input, other)
    return input.to(dtype).expand(shape), other.to(dtype).expand(shape)


@takes_out
def fmax(input: DeviceArray, other: DeviceArray, *, out: DeviceArray | None = None) -> DeviceArray:
    """The larger of two numbers, of a number and NaN the number. The dtypes promote, the shapes broadcast.

    Raises DeviceMismatchError, ShapeMismatchError.

    >>> dt.fmax(dt.tensor([1.0, dt.nan]), dt.tensor([2.0, 3.0]))
    DeviceArray([2., 3.], device='cpu', dtype=float32)
    """
    x, y = _both("fmax", input, other)
    return _C.where((x >= y) | y.isnan(), x, y)


@takes_out
def fmin(input: DeviceArray, other: DeviceArray, *, out: DeviceArray | None = None) -> DeviceArray:
    """The smaller of two numbers, of a number and NaN the number. The dtypes promote, the shapes broadcast.

    Raises DeviceMismatchError, ShapeMismatchError.

    >>> dt.fmin(dt.tensor([1.0, dt.nan]), dt.tensor([2.0, 3.0]))
    DeviceArray([1., 3.], device='cpu', dtype=float32)
    """
    x, y = _both("fmin", input, other)
    return _C.where((x <= y) | y.isnan(), x, y)


@takes_out
def logaddexp2(input: DeviceArray, other: DeviceArray, *, out: DeviceArray | None = None) -> DeviceArray:
    """log2(2 ** input + 2 ** other), without overflow. Floats, which promote; the shapes broadcast.

    Raises DeviceMismatchError, DTypeMismatchError for integers and bools, ShapeMismatchError.

    >>> dt.logaddexp2(dt.tensor([1.0]), dt.tensor([1.0]))
    DeviceArray([2.], device='cpu', dtype=float32)
    """
    op = "logaddexp2"
    a, b = _both(op, input, other)
    if not a.dtype.is_floating_point:
        _C._fail_dtype(op, _NAMES, (input, other), 0, "floats")
    x, y = floating(a), floating(b)
    same = (x == y) & x.isinf()
    apart = _C.where(same, 0.0, x - _C.where(same, 0.0, y)).abs()
    result = _C.maximum(x, y) + (-apart * math.log(2)).exp().log1p() / math.log(2)
    return _C.where(same, x, result).to(a.dtype)


__all__ = [
    "fmax",
    "fmin",
    "logaddexp2",
]
METHODS = (
    fmax,
    fmin,
    logaddexp2,
)
