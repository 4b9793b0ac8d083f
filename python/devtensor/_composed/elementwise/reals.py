"""What PyTorch asks of complex numbers, of real ones: the parts, the conjugate, the angle."""

from __future__ import annotations

import math

from devtensor import _C
from devtensor._C import DeviceArray
from devtensor._composed.arguments import need_array
from devtensor._composed.written import takes_out


def real(input: DeviceArray) -> DeviceArray:
    """input itself, as there are no complex numbers.

    >>> dt.real(dt.tensor([1.0]))
    DeviceArray([1.], device='cpu', dtype=float32)
    """
    need_array("real", "input", input)
    return input


def conj(input: DeviceArray) -> DeviceArray:
    """input itself, as there are no complex numbers.

    >>> dt.conj(dt.tensor([1.0]))
    DeviceArray([1.], device='cpu', dtype=float32)
    """
    need_array("conj", "input", input)
    return input


@takes_out
def conj_physical(input: DeviceArray, *, out: DeviceArray | None = None) -> DeviceArray:
    """input itself, as there are no complex numbers; a copy in out.

    >>> dt.conj_physical(dt.tensor([1.0]))
    DeviceArray([1.], device='cpu', dtype=float32)
    """
    need_array("conj_physical", "input", input)
    return input


def resolve_conj(input: DeviceArray) -> DeviceArray:
    """input itself, as there are no complex numbers.

    >>> dt.resolve_conj(dt.tensor([1.0]))
    DeviceArray([1.], device='cpu', dtype=float32)
    """
    need_array("resolve_conj", "input", input)
    return input


@takes_out
def angle(input: DeviceArray, *, out: DeviceArray | None = None) -> DeviceArray:
    """pi where x < 0, NaN of NaN, else 0. Integers and bools give the default dtype. Its gradient is 0.

    >>> dt.angle(dt.tensor([-2.0, 3.0]))
    DeviceArray([3.1416, 0.0000], device='cpu', dtype=float32)
    """
    need_array("angle", "input", input)
    if not input.dtype.is_floating_point:
        return _C.where(input < 0, math.pi, 0.0)
    side = input.sign()  # which has a gradient, of 0
    return _C.where(input.isnan(), input.detach(), (side.abs() - side) * (math.pi / 2))


__all__ = [
    "angle",
    "conj",
    "conj_physical",
    "real",
    "resolve_conj",
]
METHODS = (
    angle,
    conj,
    conj_physical,
    resolve_conj,
)
