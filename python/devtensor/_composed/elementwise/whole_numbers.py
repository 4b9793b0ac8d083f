"""Divisors and multiples of integers."""

from __future__ import annotations

from devtensor import _C
from devtensor._C import DeviceArray
from devtensor._composed.arguments import in_place
from devtensor._composed.elementwise.pointwise import together
from devtensor._composed.written import takes_out
from devtensor._dtypes.rules import common_dtype

_NAMES = ("input", "other")
# How many remainders Euclid's algorithm takes at most: for neighbours of the Fibonacci sequence.
_ROUNDS = {_C.uint8: 13, _C.int8: 12, _C.int16: 24, _C.int32: 47, _C.int64: 93}


def _operands(op: str, input: DeviceArray, other: DeviceArray) -> tuple[DeviceArray, DeviceArray]:
    shape = together(op, _NAMES, (input, other))
    dtype = common_dtype(input, other)
    for which, x in enumerate((input, other)):
        if x.dtype.is_floating_point or dtype == _C.bool:
            _C._fail_dtype(op, _NAMES, (input, other), which, "integers")
    return input.to(dtype).expand(shape), other.to(dtype).expand(shape)


def _divisor(a: DeviceArray, b: DeviceArray) -> DeviceArray:
    for _ in range(_ROUNDS[a.dtype]):
        if not (b.is_cuda or bool(b.any())):  # a device does as many rounds as there can be: nothing waits for it
            break
        a, b = _C.where(b == 0, a, b), _C.fmod(a, b)  # modulo 0 is 0
    return a.abs()


@takes_out
def gcd(input: DeviceArray, other: DeviceArray, *, out: DeviceArray | None = None) -> DeviceArray:
    """The greatest common divisor, not below 0; of 0 and x it is abs(x). By Euclid's algorithm.

    Integers, which promote; the shapes broadcast. Raises DeviceMismatchError, DTypeMismatchError for floats and bools,
    ShapeMismatchError.

    >>> dt.gcd(dt.tensor([12, -9, 0]), dt.tensor([18, 6, 5]))
    DeviceArray([6, 3, 5], device='cpu', dtype=int64)
    """
    return _divisor(*_operands("gcd", input, other))


@takes_out
def lcm(input: DeviceArray, other: DeviceArray, *, out: DeviceArray | None = None) -> DeviceArray:
    """The least common multiple, not below 0 unless it wraps; with 0 it is 0.

    Integers, which promote; the shapes broadcast. Raises DeviceMismatchError, DTypeMismatchError for floats and bools,
    ShapeMismatchError.

    >>> dt.lcm(dt.tensor([12, -9, 0]), dt.tensor([18, 6, 5]))
    DeviceArray([36, 18,  0], device='cpu', dtype=int64)
    """
    a, b = _operands("lcm", input, other)
    product = _C.floor_divide(a.abs(), _divisor(a, b)) * b.abs()  # divided by 0 it is 0
    return product if product.dtype.itemsize < 4 else product.abs()  # PyTorch's wraps so


gcd_, lcm_ = in_place(gcd), in_place(lcm)

__all__ = [
    "gcd",
    "lcm",
]
METHODS = (
    gcd,
    gcd_,
    lcm,
    lcm_,
)
