"""Bits of integers, shifted."""

from __future__ import annotations

from devtensor import _C
from devtensor._C import DeviceArray, _need_int
from devtensor._composed.arguments import need_array
from devtensor._composed.elementwise.pointwise import together
from devtensor._composed.written import takes_out
from devtensor._dtypes.info import iinfo
from devtensor._dtypes.rules import result_type

_NAMES = ("input", "other")


def _operands(
    op: str, input: DeviceArray | int, other: DeviceArray | int
) -> tuple[DeviceArray, DeviceArray, DeviceArray]:
    """The numbers, by how many places they are shifted, and where those are none of the dtype; checked."""
    if isinstance(input, DeviceArray) and isinstance(other, DeviceArray):
        shape = together(op, _NAMES, (input, other))
    elif isinstance(input, DeviceArray):
        other, shape = _need_int(op, "other", other), tuple(input.shape)
    else:
        need_array(op, "other", other)  # type: ignore[arg-type]
        input, shape = _need_int(op, "input", input), tuple(other.shape)  # type: ignore[union-attr]
    named = {name: x for name, x in zip(_NAMES, (input, other), strict=True) if isinstance(x, DeviceArray)}
    dtype = result_type(input, other)
    for which, x in enumerate(named.values()):
        if x.dtype.is_floating_point or dtype == _C.bool:
            _C._fail_dtype(op, tuple(named), tuple(named.values()), which, "integers")
    device = next(iter(named.values())).device
    a, b = (
        (x if isinstance(x, DeviceArray) else _C.tensor(x, dtype=dtype, device=device)).to(dtype).expand(shape)
        for x in (input, other)
    )
    bits = 8 * dtype.itemsize
    return a, b, (b < 0) | (b >= bits)


@takes_out
def bitwise_left_shift(
    input: DeviceArray | int, other: DeviceArray | int, *, out: DeviceArray | None = None
) -> DeviceArray:
    """The bits of input moved up by other places: input * 2 ** other, which wraps; 0 for places below 0 or too many.

    Integers, of which one may be a number; the shapes broadcast, the dtypes promote. Raises DeviceMismatchError,
    DTypeMismatchError for floats and bools, ShapeMismatchError.

    >>> dt.bitwise_left_shift(dt.tensor([1, 3]), 2)
    DeviceArray([ 4, 12], device='cpu', dtype=int64)
    """
    a, b, outside = _operands("bitwise_left_shift", input, other)
    for k in range((8 * a.dtype.itemsize).bit_length() - 1):  # as often as the number of places has bits
        a = _C.where((b & (1 << k)) != 0, _doubled(a, 1 << k), a)
    return a.masked_fill(outside, 0)


def _doubled(a: DeviceArray, times: int) -> DeviceArray:
    """a * 2 ** times; the factor is a number of the dtype."""
    while times > 4:
        a, times = a * 16, times - 4
    return a * (1 << times)


@takes_out
def bitwise_right_shift(
    input: DeviceArray | int, other: DeviceArray | int, *, out: DeviceArray | None = None
) -> DeviceArray:
    """The bits of input moved down by other places: the floor of input / 2 ** other.

    0 or -1 for places below 0 or too many.

    Integers, of which one may be a number; the shapes broadcast, the dtypes promote. Raises DeviceMismatchError,
    DTypeMismatchError for floats and bools, ShapeMismatchError.

    >>> dt.bitwise_right_shift(dt.tensor([8, -3]), 1)
    DeviceArray([ 4, -2], device='cpu', dtype=int64)
    """
    a, b, outside = _operands("bitwise_right_shift", input, other)
    least = _C.where(a < 0, -1, 0).to(a.dtype) if iinfo(a.dtype).min else _C.zeros_like(a)
    top = 8 * a.dtype.itemsize - 2  # 2 ** top is a number of every dtype
    factor = _C.full_like(a, 2).pow(b.clamp(0, top))
    result = a.floor_divide(factor)
    result = _C.where(b > top, result.floor_divide(2), result)
    return _C.where(outside, least, result)


__all__ = [
    "bitwise_left_shift",
    "bitwise_right_shift",
]
METHODS = (
    bitwise_left_shift,
    bitwise_right_shift,
)
