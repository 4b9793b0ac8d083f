"""Functions of the standard that make arrays."""

from __future__ import annotations

import math
from typing import Any

import devtensor as dt
from devtensor import _C
from devtensor._C import DeviceArray
from devtensor._composed.arguments import need_array
from devtensor._types import Device
from devtensor.array_api._operands import one_dtype

_FAR = 2**62  # beyond every diagonal


def arange(
    start: float,
    /,
    stop: float | None = None,
    step: float = 1,
    *,
    dtype: _C.dtype | None = None,
    device: Device | None = None,
) -> DeviceArray:
    """start, start + step, ... below stop; with start alone 0, 1, ... below it. Empty where step leads away from stop.

    >>> xp.arange(2, 8, 3).tolist()
    [2, 5]
    """
    first, last = (0, start) if stop is None else (start, stop)
    first, last = _C._need_number("arange", "start", first), _C._need_number("arange", "stop", last)
    step = _C._need_number("arange", "step", step)
    if (last - first) * step < 0:
        floats = any(isinstance(one, float) for one in (first, last, step))
        default = _C.get_default_dtype() if floats else _C.int64
        return _C.empty(0, dtype=default if dtype is None else dtype, device=device)
    return _C.arange(first, last, step, dtype=dtype, device=device)


def asarray(
    obj: Any, /, *, dtype: _C.dtype | None = None, device: Device | None = None, copy: bool | None = None
) -> DeviceArray:
    """An array of a number, of nested sequences of numbers, or of what an array of another library holds.

    copy: True always copies, False raises ValueError where a copy would be needed, None copies where it must be.

    >>> xp.asarray([[1, 2], [3, 4]]).shape
    (2, 2)
    """
    if copy is not None and _C._need_bool("asarray", "copy", copy):
        if not isinstance(obj, DeviceArray):
            return _C.array(obj, dtype=dtype, device=device)
        made = _C.asarray(obj, dtype=dtype, device=device)
        return made.clone() if made is obj else made
    result = _C.asarray(obj, dtype=dtype, device=device)
    if copy is not None and result is not obj:
        shares = hasattr(obj, "__dlpack__") or hasattr(obj, "__array_interface__") or _is_buffer(obj)
        same = _C.asarray(obj)
        if not shares or (same.dtype, same.device) != (result.dtype, result.device):
            raise ValueError("asarray(): with copy=False nothing is copied, and this needs a copy")
    return result


def _is_buffer(obj: object) -> bool:
    try:
        memoryview(obj).release()  # type: ignore[arg-type]
    except TypeError:
        return False
    return True


def empty(shape: int | tuple[int, ...], *, dtype: _C.dtype | None = None, device: Device | None = None) -> DeviceArray:
    """An array of undefined contents.

    >>> xp.empty((2, 3)).shape
    (2, 3)
    """
    return _C.empty(_sizes("empty", shape), dtype=dtype, device=device)


def empty_like(x: DeviceArray, /, *, dtype: _C.dtype | None = None, device: Device | None = None) -> DeviceArray:
    """An array of undefined contents, of the shape, dtype and device of x where others are not given.

    >>> xp.empty_like(xp.ones(2)).shape
    (2,)
    """
    need_array("empty_like", "x", x)
    return _C.empty_like(x, dtype=dtype, device=device)


def eye(
    n_rows: int,
    n_cols: int | None = None,
    /,
    *,
    k: int = 0,
    dtype: _C.dtype | None = None,
    device: Device | None = None,
) -> DeviceArray:
    """Ones on the k-th diagonal, counted upwards, and zeros elsewhere.

    >>> xp.eye(2, 3, k=1).tolist()
    [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    k = _C._need_int("eye", "k", max(-_FAR, min(k, _FAR)) if isinstance(k, int) else k)
    columns = n_rows if n_cols is None else n_cols
    if k == 0:
        return _C.eye(n_rows, columns, dtype=dtype, device=device)
    (rows,), (columns,) = _sizes("eye", n_rows), _sizes("eye", columns)
    row, column = _C.arange(rows, device=device), _C.arange(columns, device=device)
    return (row[:, None] + k == column).to(_C.get_default_dtype() if dtype is None else dtype)


def from_dlpack(x: Any, /, *, device: Device | None = None, copy: bool | None = None) -> DeviceArray:
    """An array that shares the memory of an array of another library; with copy=True or another device a copy.

    >>> xp.from_dlpack(np.arange(3)).tolist()
    [0, 1, 2]
    """
    return _C.from_dlpack(x, device=device, copy=copy)


def full(
    shape: int | tuple[int, ...],
    fill_value: float,
    *,
    dtype: _C.dtype | None = None,
    device: Device | None = None,
) -> DeviceArray:
    """fill_value in every place. The dtype is that of the number: bool, int64 or the default float.

    >>> xp.full((2,), 7).dtype
    devtensor.int64
    """
    return _C.full(_sizes("full", shape), fill_value, dtype=dtype, device=device)


def full_like(
    x: DeviceArray, /, fill_value: float, *, dtype: _C.dtype | None = None, device: Device | None = None
) -> DeviceArray:
    """fill_value in every place, of the shape, dtype and device of x where others are not given.

    >>> xp.full_like(xp.ones(2), 3).tolist()
    [3.0, 3.0]
    """
    need_array("full_like", "x", x)
    return _C.full_like(x, fill_value, dtype=dtype, device=device)


def linspace(
    start: float,
    stop: float,
    /,
    num: int,
    *,
    dtype: _C.dtype | None = None,
    device: Device | None = None,
    endpoint: bool = True,
) -> DeviceArray:
    """num numbers at equal distances from start to stop, which is the last one unless endpoint is False.

    >>> xp.linspace(0, 1, 4, endpoint=False).tolist()
    [0.0, 0.25, 0.5, 0.75]
    """
    endpoint = _C._need_bool("linspace", "endpoint", endpoint)
    number = _C._need_int("linspace", "num", num)
    first = float(_C._need_number("linspace", "start", start))
    last = float(_C._need_number("linspace", "stop", stop))
    if endpoint or number <= 0:
        return dt.linspace(first, last, number, dtype=dtype, device=device)
    return dt.linspace(first, last, number + 1, dtype=dtype, device=device)[:-1]


def meshgrid(*arrays: DeviceArray, indexing: str = "xy") -> list[DeviceArray]:
    """Of arrays of one dimension a grid each, along which its own dimension runs.

    indexing: "xy" exchanges the first two dimensions, "ij" does not.

    >>> [one.tolist() for one in xp.meshgrid(xp.arange(2), xp.arange(2))]
    [[[0, 1], [0, 1]], [[0, 0], [1, 1]]]
    """
    if indexing not in ("xy", "ij"):
        raise ValueError(f'meshgrid(): indexing must be "xy" or "ij", not {_C._shown(indexing)}')
    if not arrays:
        return []
    names = tuple(f"arrays[{i}]" for i in range(len(arrays)))
    given = one_dtype("meshgrid", names, arrays)
    return [_C.clone(one) for one in dt.meshgrid(*given, indexing=indexing)]


def ones(shape: int | tuple[int, ...], *, dtype: _C.dtype | None = None, device: Device | None = None) -> DeviceArray:
    """An array of ones.

    >>> xp.ones(2).tolist()
    [1.0, 1.0]
    """
    return _C.ones(_sizes("ones", shape), dtype=dtype, device=device)


def ones_like(x: DeviceArray, /, *, dtype: _C.dtype | None = None, device: Device | None = None) -> DeviceArray:
    """Ones, of the shape, dtype and device of x where others are not given.

    >>> xp.ones_like(xp.zeros(2)).tolist()
    [1.0, 1.0]
    """
    need_array("ones_like", "x", x)
    return _C.ones_like(x, dtype=dtype, device=device)


def tril(x: DeviceArray, /, *, k: int = 0) -> DeviceArray:
    """The elements of matrices on and below the k-th diagonal, and zeros above.

    >>> xp.tril(xp.ones((2, 2))).tolist()
    [[1.0, 0.0], [1.0, 1.0]]
    """
    need_array("tril", "x", x)
    return _C.tril(x, _C._need_int("tril", "k", k))


def triu(x: DeviceArray, /, *, k: int = 0) -> DeviceArray:
    """The elements of matrices on and above the k-th diagonal, and zeros below.

    >>> xp.triu(xp.ones((2, 2))).tolist()
    [[1.0, 1.0], [0.0, 1.0]]
    """
    need_array("triu", "x", x)
    return _C.triu(x, _C._need_int("triu", "k", k))


def zeros(shape: int | tuple[int, ...], *, dtype: _C.dtype | None = None, device: Device | None = None) -> DeviceArray:
    """An array of zeros.

    >>> xp.zeros(2).tolist()
    [0.0, 0.0]
    """
    return _C.zeros(_sizes("zeros", shape), dtype=dtype, device=device)


def zeros_like(x: DeviceArray, /, *, dtype: _C.dtype | None = None, device: Device | None = None) -> DeviceArray:
    """Zeros, of the shape, dtype and device of x where others are not given.

    >>> xp.zeros_like(xp.ones(2)).tolist()
    [0.0, 0.0]
    """
    need_array("zeros_like", "x", x)
    return _C.zeros_like(x, dtype=dtype, device=device)


def _sizes(op: str, shape: int | tuple[int, ...]) -> tuple[int, ...]:
    sizes = _C._need_ints(op, "shape", shape)
    if any(size < 0 for size in sizes):
        raise ValueError(f"{op}(): sizes must not be negative, but shape is {sizes}")
    return sizes


e: float = math.e
inf: float = math.inf
nan: float = math.nan
pi: float = math.pi
newaxis = None
