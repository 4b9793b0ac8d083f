"""The floats beside a float."""

from __future__ import annotations

from devtensor import _C
from devtensor._C import DeviceArray
from devtensor._composed.arguments import in_place, need_array
from devtensor._composed.elementwise.pointwise import together
from devtensor._composed.written import takes_out
from devtensor._dtypes.rules import common_dtype

_BITS = {_C.float16: _C.int16, _C.bfloat16: _C.int16, _C.float32: _C.int32, _C.float64: _C.int64}


def seen_as(x: DeviceArray, dtype: _C.dtype) -> DeviceArray:
    """The memory of x, which is contiguous, as numbers of another dtype of that size."""
    return _C._strided(x, dtype, x.shape, x.stride(), x.storage_offset() * x.dtype.itemsize)


@takes_out
def nextafter(input: DeviceArray, other: DeviceArray, *, out: DeviceArray | None = None) -> DeviceArray:
    """The next number that the dtype holds after each of input, towards that of other.

    Of equal ones other; NaN where one is NaN. Floats, which promote; the shapes broadcast. Where the two differ, the
    gradient goes to input as it is. Raises DeviceMismatchError, DTypeMismatchError for integers and bools,
    ShapeMismatchError.

    >>> dt.nextafter(dt.tensor([1.0], dtype=dt.float16), dt.tensor([2.0], dtype=dt.float16))
    DeviceArray([1.0010], device='cpu', dtype=float16)
    """
    op, names, arrays = "nextafter", ("input", "other"), (input, other)
    need_array(op, "input", input)
    need_array(op, "other", other)
    _C._check_devices(op, names, arrays)
    dtype = common_dtype(input, other)
    if not dtype.is_floating_point:
        _C._fail_dtype(op, names, arrays, 0, "floats")
    shape = together(op, names, arrays)
    given = input.to(dtype).expand(shape)
    x, y = given.detach().contiguous(), other.detach().to(dtype).expand(shape)
    bits = seen_as(x, _BITS[dtype])  # a sign and a size: one more is the next number away from 0
    away = (y > x) == (x > 0)
    stepped = seen_as(_C.where(away, bits + 1, bits - 1), dtype)
    least = seen_as(_C.ones_like(bits), dtype)
    result = _C.where(x == 0, _C.where(y > 0, least, -least), stepped)
    result = _C.where(x == y, y, _C.where(x.isnan() | y.isnan(), float("nan"), result))
    towards = other.to(dtype).expand(shape)
    if not (given.requires_grad or towards.requires_grad):
        return result
    recorded = _C.where(x == y, y, given)
    recorded = _C.where(_C.zeros_like(recorded, dtype=_C.bool), towards, recorded)  # whose gradient is zeros
    recorded.detach().copy_(result)
    return recorded


nextafter_ = in_place(nextafter)

__all__ = [
    "nextafter",
]
METHODS = (
    nextafter,
    nextafter_,
)
