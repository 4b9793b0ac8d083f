"""A float as its fraction and its power of two."""

from __future__ import annotations

from typing import NamedTuple

from devtensor import _C
from devtensor._C import DeviceArray
from devtensor._composed.arguments import widened
from devtensor._composed.elementwise.neighbours import seen_as
from devtensor._composed.written import takes_out


class frexp_result(NamedTuple):
    """What frexp gives."""

    mantissa: DeviceArray
    exponent: DeviceArray


# Of a dtype: that of its bits, how many are the fraction, what the exponent is more than its bits.
_LAYOUT = {_C.float32: (_C.int32, 23, 126), _C.float64: (_C.int64, 52, 1022)}
_SCALE = 64  # subnormal numbers times 2 ** 64 are normal


def _power(exponent: DeviceArray, dtype: _C.dtype) -> DeviceArray:
    """2 ** exponent, exactly, of integers for which it is a normal number."""
    bits, fraction, bias = _LAYOUT[dtype]
    return seen_as(((exponent + (bias + 1)) * 2**fraction).to(bits).contiguous(), dtype)


@takes_out
def frexp(input: DeviceArray, *, out: tuple[DeviceArray, DeviceArray] | None = None) -> frexp_result:
    """(mantissa, exponent) with input == mantissa * 2 ** exponent and 0.5 <= abs(mantissa) < 1; exponent is int32.

    0, infinity and NaN are their own mantissa, with exponent 0. Floats. The gradient is that of the mantissa, for the
    exponent as it is. Raises DTypeMismatchError for integers and bools.

    >>> dt.frexp(dt.tensor([6.0, -0.1])).mantissa
    DeviceArray([ 0.7500, -0.8000], device='cpu', dtype=float32)
    """
    _C._check("frexp", ("input",), (input,))
    wide = widened(input)
    x = wide.detach()
    bits, fraction, bias = _LAYOUT[x.dtype]
    plain = (x == 0) | ~x.isfinite()
    small = ~plain & (x.abs() < 2.0**-bias)
    normal = _C.where(small, x * 2.0**_SCALE, x).contiguous()
    mask = (1 << (bits.itemsize * 8 - 1 - fraction)) - 1
    places = (seen_as(normal, bits).floor_divide(2**fraction) & mask) - bias
    exponent = _C.where(plain, 0, _C.where(small, places - _SCALE, places))
    half = exponent.floor_divide(2)  # 2 ** exponent itself may be too large or too small for the dtype
    mantissa = wide * _power(-half, x.dtype) * _power(half - exponent, x.dtype)
    return frexp_result(mantissa.to(input.dtype), exponent.to(_C.int32))


__all__ = [
    "frexp",
]
METHODS = (frexp,)
