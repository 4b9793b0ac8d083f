"""What functions of the standard do with their arguments: promotion by its table, axes, names in errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias

from devtensor import _C
from devtensor._C import DeviceArray
from devtensor._composed.arguments import need_array
from devtensor._dtypes.rules import promote_types

Axes: TypeAlias = "int | tuple[int, ...] | None"
Number: TypeAlias = "DeviceArray | float"

_FLOATS = (_C.float16, _C.bfloat16, _C.float32, _C.float64)


class Unary(Protocol):
    """A function of one array."""

    __name__: str

    def __call__(self, x: DeviceArray, /) -> DeviceArray: ...


class Binary(Protocol):
    """A function of two arrays, or of an array and a number, in either order."""

    __name__: str

    def __call__(self, x1: Number, x2: Number, /) -> DeviceArray: ...


def kind_of(dtype: _C.dtype) -> int:
    """The kinds within which the standard promotes: 0 bool, 1 integer, 2 real floating-point."""
    return 0 if dtype is _C.bool else 2 if dtype in _FLOATS else 1


def one_dtype(op: str, names: tuple[str, ...], arrays: Sequence[DeviceArray]) -> list[DeviceArray]:
    """The arrays in the dtype that the standard's table gives them together, of whatever rank they are.

    Dtypes of several kinds, for which the table has no entry, stay: the op says what it does with them. Raises
    DeviceMismatchError for several devices.
    """
    for name, x in zip(names, arrays, strict=True):
        need_array(op, name, x)
    dtypes = {x.dtype for x in arrays}
    if len(arrays) > 1:
        _C._check_devices(op, names[:8], tuple(arrays[:8]))
    if len(dtypes) < 2 or len({kind_of(dtype) for dtype in dtypes}) > 1:
        return list(arrays)
    dtype = arrays[0].dtype
    for x in arrays[1:]:
        dtype = promote_types(dtype, x.dtype)
    return [x.astype(dtype) for x in arrays]


def pair(op: str, x1: Number, x2: Number, names: tuple[str, str] = ("x1", "x2")) -> tuple[DeviceArray, DeviceArray]:
    """Two arrays of one dtype. A number becomes an array of no dimensions, of the dtype and on the device of the other.

    A number of a higher kind than the dtype keeps its own, as it does in operators.
    """
    arrays = [x1, x2]
    for i, (mine, other) in enumerate(((x1, x2), (x2, x1))):
        if isinstance(mine, DeviceArray) or not isinstance(other, DeviceArray):
            continue
        number = _C._need_number(op, names[i], mine)
        kind = 0 if isinstance(number, bool) else 1 if isinstance(number, int) else 2
        dtype = other.dtype if kind <= kind_of(other.dtype) else None
        arrays[i] = _C.full((), number, dtype=dtype, device=other.device)
    first, second = one_dtype(op, names, arrays)  # type: ignore[arg-type]
    _C._check_broadcast(op, names, (first, second))
    return first, second


def unary(name: str, op: Callable[[DeviceArray], DeviceArray], text: str, example: str) -> Unary:
    """A function of the standard that is an op of devtensor."""

    def function(x: DeviceArray, /) -> DeviceArray:
        need_array(name, "x", x)
        return op(x)

    made: Unary = _named(function, name, text, example)
    return made


def binary(name: str, op: Callable[[DeviceArray, DeviceArray], DeviceArray], text: str, example: str) -> Binary:
    """The same of two arrays."""

    def function(x1: Number, x2: Number, /) -> DeviceArray:
        return op(*pair(name, x1, x2))

    made: Binary = _named(function, name, text, example)
    return made


def _named(function: Any, name: str, text: str, example: str) -> Any:
    function.__name__ = function.__qualname__ = name
    function.__module__ = "devtensor.array_api"
    function.__doc__ = f"{text}\n\n    >>> {example}\n    "
    return function


def axes_of(op: str, axis: Axes, ndim: int) -> tuple[int, ...]:
    """axis as a tuple counted from the front; None is all. Raises IndexError for one that is not there."""
    if axis is None:
        return tuple(range(ndim))
    found = tuple(axis) if isinstance(axis, (tuple, list)) else (axis,)
    return tuple(one_axis(op, one, ndim) for one in found)


def one_axis(op: str, axis: int, ndim: int) -> int:
    """An axis counted from the front. Raises IndexError for one that is not there."""
    number = _C._need_int(op, "axis", axis)
    if not -ndim <= number < ndim:
        raise IndexError(f"{op}(): axis {number} is out of bounds for an array of {ndim} dimensions")
    return number % ndim
