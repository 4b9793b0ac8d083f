"""Padding as modules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from devtensor._C import DeviceArray, _check_rank, _need_number, _need_size
from devtensor._composed.arguments import need_array
from devtensor.nn import functional as F
from devtensor.nn.module import Module

_Padding: TypeAlias = int | Sequence[int]


class _Pad(Module):
    _dims: int
    _mode: str

    def __init__(self, padding: _Padding) -> None:
        super().__init__()
        op, sides = type(self).__name__, 2 * self._dims
        size = _need_size(op, "padding", padding)
        if isinstance(size, tuple) and len(size) != sides:
            raise ValueError(f"{op}(): padding must be an int or {sides} of them, not {len(size)}")
        self.padding: tuple[int, ...] = (size,) * sides if isinstance(size, int) else size

    def forward(self, input: DeviceArray) -> DeviceArray:
        op = type(self).__name__
        need_array(op, "input", input)
        _check_rank(op, ("input",), (input,), 0, self._dims + 1, self._dims + 2)
        return F.pad(input, self.padding, self._mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ConstantPad(_Pad):
    _mode = "constant"

    def __init__(self, padding: _Padding, value: float) -> None:
        super().__init__(padding)
        self.value: float = _need_number(type(self).__name__, "value", value)

    def forward(self, input: DeviceArray) -> DeviceArray:
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPad):
    """value at the edges of the last 1 dimension: (left, right), or one number for all sides.

    >>> nn.ConstantPad1d(1, 3.5)(dt.ones(1, 2, 4)).shape
    (1, 2, 6)
    """

    _dims = 1


class ConstantPad2d(_ConstantPad):
    """value at the edges of the last 2 dimensions: (left, right, top, bottom), or one number for all sides.

    >>> nn.ConstantPad2d(1, 3.5)(dt.ones(1, 2, 4, 4)).shape
    (1, 2, 6, 6)
    """

    _dims = 2


class ConstantPad3d(_ConstantPad):
    """value at the edges of the last 3 dimensions: (left, right, top, bottom, front, back), or one number for
    all sides.

    >>> nn.ConstantPad3d(1, 3.5)(dt.ones(1, 2, 4, 4, 4)).shape
    (1, 2, 6, 6, 6)
    """

    _dims = 3


class ZeroPad1d(ConstantPad1d):
    """Zeros at the edges of the last 1 dimension: (left, right), or one number for all sides.

    >>> nn.ZeroPad1d(1)(dt.ones(1, 2, 4)).shape
    (1, 2, 6)
    """

    def __init__(self, padding: _Padding) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad2d(ConstantPad2d):
    """Zeros at the edges of the last 2 dimensions: (left, right, top, bottom), or one number for all sides.

    >>> nn.ZeroPad2d(1)(dt.ones(1, 2, 4, 4)).shape
    (1, 2, 6, 6)
    """

    def __init__(self, padding: _Padding) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad3d(ConstantPad3d):
    """Zeros at the edges of the last 3 dimensions: (left, right, top, bottom, front, back), or one number for
    all sides.

    >>> nn.ZeroPad3d(1)(dt.ones(1, 2, 4, 4, 4)).shape
    (1, 2, 6, 6, 6)
    """

    def __init__(self, padding: _Padding) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ReflectionPad1d(_Pad):
    """Mirror images at the edges, of (C, L) or (N, C, L): padding is (left, right), or one
    number for all sides.

    >>> nn.ReflectionPad1d(1)(dt.ones(1, 2, 4)).shape
    (1, 2, 6)
    """

    _dims = 1
    _mode = "reflect"


class ReflectionPad2d(_Pad):
    """Mirror images at the edges, of (C, H, W) or (N, C, H, W): padding is (left, right, top, bottom), or one
    number for all sides.

    >>> nn.ReflectionPad2d(1)(dt.ones(1, 2, 4, 4)).shape
    (1, 2, 6, 6)
    """

    _dims = 2
    _mode = "reflect"


class ReflectionPad3d(_Pad):
    """Mirror images at the edges, of (C, D, H, W) or (N, C, D, H, W): padding is (left, right, top, bottom, front,
    back), or one number for all sides.

    >>> nn.ReflectionPad3d(1)(dt.ones(1, 2, 4, 4, 4)).shape
    (1, 2, 6, 6, 6)
    """

    _dims = 3
    _mode = "reflect"


class ReplicationPad1d(_Pad):
    """The edges again beside them, of (C, L) or (N, C, L): padding is (left, right), or one
    number for all sides.

    >>> nn.ReplicationPad1d(1)(dt.ones(1, 2, 4)).shape
    (1, 2, 6)
    """

    _dims = 1
    _mode = "replicate"


class ReplicationPad2d(_Pad):
    """The edges again beside them, of (C, H, W) or (N, C, H, W): padding is (left, right, top, bottom), or one
    number for all sides.

    >>> nn.ReplicationPad2d(1)(dt.ones(1, 2, 4, 4)).shape
    (1, 2, 6, 6)
    """

    _dims = 2
    _mode = "replicate"


class ReplicationPad3d(_Pad):
    """The edges again beside them, of (C, D, H, W) or (N, C, D, H, W): padding is (left, right, top, bottom,
    front, back), or one number for all sides.

    >>> nn.ReplicationPad3d(1)(dt.ones(1, 2, 4, 4, 4)).shape
    (1, 2, 6, 6, 6)
    """

    _dims = 3
    _mode = "replicate"


class CircularPad1d(_Pad):
    """The other side at the edges, of (C, L) or (N, C, L): padding is (left, right), or one
    number for all sides.

    >>> nn.CircularPad1d(1)(dt.ones(1, 2, 4)).shape
    (1, 2, 6)
    """

    _dims = 1
    _mode = "circular"


class CircularPad2d(_Pad):
    """The other side at the edges, of (C, H, W) or (N, C, H, W): padding is (left, right, top, bottom), or one
    number for all sides.

    >>> nn.CircularPad2d(1)(dt.ones(1, 2, 4, 4)).shape
    (1, 2, 6, 6)
    """

    _dims = 2
    _mode = "circular"


class CircularPad3d(_Pad):
    """The other side at the edges, of (C, D, H, W) or (N, C, D, H, W): padding is (left, right, top, bottom, front,
    back), or one number for all sides.

    >>> nn.CircularPad3d(1)(dt.ones(1, 2, 4, 4, 4)).shape
    (1, 2, 6, 6, 6)
    """

    _dims = 3
    _mode = "circular"
