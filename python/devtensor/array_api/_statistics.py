"""Functions of the standard that make fewer numbers of many: sums, extremes, moments, whether all or any."""

from __future__ import annotations

import devtensor as dt
from devtensor import _C
from devtensor._C import DeviceArray
from devtensor._composed.arguments import misshapen, need_array
from devtensor.array_api._operands import Axes, axes_of, one_axis, one_dtype


def all(x: DeviceArray, /, *, axis: Axes = None, keepdims: bool = False) -> DeviceArray:
    """Whether no element is 0, along some axes or in all; True of none.

    >>> xp.all(xp.asarray([1, 0])).item()
    False
    """
    return _truth("all", x, axis, keepdims)


def any(x: DeviceArray, /, *, axis: Axes = None, keepdims: bool = False) -> DeviceArray:
    """Whether an element is not 0, along some axes or in all; False of none.

    >>> xp.any(xp.asarray([1, 0])).item()
    True
    """
    return _truth("any", x, axis, keepdims)


def _truth(op: str, x: DeviceArray, axis: Axes, keepdims: bool) -> DeviceArray:
    need_array(op, "x", x)
    keepdims = _C._need_bool(op, "keepdims", keepdims)
    axes = axes_of(op, axis, x.ndim)
    flags = x.bool()
    if not axes:
        return flags
    return _C.all(flags, axes, keepdims) if op == "all" else _C.any(flags, axes, keepdims)


def max(x: DeviceArray, /, *, axis: Axes = None, keepdims: bool = False) -> DeviceArray:
    """The largest element, along some axes or of all; NaN if there is one.

    >>> xp.max(xp.asarray([1, 3, 2])).item()
    3
    """
    need_array("max", "x", x)
    axes = axes_of("max", axis, x.ndim)
    keepdims = _C._need_bool("max", "keepdims", keepdims)
    return _C.amax(x, axes, keepdims) if axes else _C.clone(x)


def min(x: DeviceArray, /, *, axis: Axes = None, keepdims: bool = False) -> DeviceArray:
    """The smallest element, along some axes or of all; NaN if there is one.

    >>> xp.min(xp.asarray([2, 1, 3])).item()
    1
    """
    need_array("min", "x", x)
    axes = axes_of("min", axis, x.ndim)
    keepdims = _C._need_bool("min", "keepdims", keepdims)
    return _C.amin(x, axes, keepdims) if axes else _C.clone(x)


def mean(x: DeviceArray, /, *, axis: Axes = None, keepdims: bool = False) -> DeviceArray:
    """The mean of floats, along some axes or of all.

    >>> xp.mean(xp.asarray([1.0, 2.0])).item()
    1.5
    """
    need_array("mean", "x", x)
    axes = axes_of("mean", axis, x.ndim)
    keepdims = _C._need_bool("mean", "keepdims", keepdims)
    if not x.dtype.is_floating_point:
        _C._fail_dtype("mean", ("x",), (x,), 0, "floats")
    return _C.mean(x, axes, keepdims) if axes else _C.clone(x)


def prod(x: DeviceArray, /, *, axis: Axes = None, dtype: _C.dtype | None = None, keepdims: bool = False) -> DeviceArray:
    """The product, along some axes or of all, in dtype; without one integers give int64.

    >>> xp.prod(xp.asarray([2, 3])).item()
    6
    """
    need_array("prod", "x", x)
    axes = axes_of("prod", axis, x.ndim)
    keepdims = _C._need_bool("prod", "keepdims", keepdims)
    wanted = _summed("prod", x, dtype)
    return _C.prod(x, axes, keepdims, dtype=wanted) if axes else x.to(wanted, copy=True)


def std(x: DeviceArray, /, *, axis: Axes = None, correction: float = 0.0, keepdims: bool = False) -> DeviceArray:
    """The square root of var(x).

    >>> xp.std(xp.asarray([1.0, 3.0])).item()
    1.0
    """
    return _spread("std", x, axis, correction, keepdims)


def sum(x: DeviceArray, /, *, axis: Axes = None, dtype: _C.dtype | None = None, keepdims: bool = False) -> DeviceArray:
    """The sum, along some axes or of all, in dtype; without one integers give int64.

    >>> xp.sum(xp.asarray([2, 3])).item()
    5
    """
    need_array("sum", "x", x)
    axes = axes_of("sum", axis, x.ndim)
    keepdims = _C._need_bool("sum", "keepdims", keepdims)
    wanted = _summed("sum", x, dtype)
    return _C.sum(x, axes, keepdims, dtype=wanted) if axes else x.to(wanted, copy=True)


def var(x: DeviceArray, /, *, axis: Axes = None, correction: float = 0.0, keepdims: bool = False) -> DeviceArray:
    """The mean squared distance of floats from their mean: the sum over (number - correction).

    >>> xp.var(xp.asarray([1.0, 3.0])).item()
    1.0
    """
    return _spread("var", x, axis, correction, keepdims)


def _spread(op: str, x: DeviceArray, axis: Axes, correction: float, keepdims: bool) -> DeviceArray:
    need_array(op, "x", x)
    axes = axes_of(op, axis, x.ndim)
    keepdims = _C._need_bool(op, "keepdims", keepdims)
    correction = _C._need_number(op, "correction", correction)
    if not x.dtype.is_floating_point:
        _C._fail_dtype(op, ("x",), (x,), 0, "floats")
    if not axes:  # of one number each
        x, axes, keepdims = x[..., None], (x.ndim,), False
    function = dt.var if op == "var" else dt.std
    return function(x, axes, keepdim=keepdims, correction=correction)


def _summed(op: str, x: DeviceArray, dtype: _C.dtype | None) -> _C.dtype:
    if dtype is not None:
        return _C._need_dtype(op, "dtype", dtype)
    return x.dtype if x.dtype.is_floating_point else _C.int64


# ---------------------------------------------------------------- running sums, differences


def cumulative_prod(
    x: DeviceArray,
    /,
    *,
    axis: int | None = None,
    dtype: _C.dtype | None = None,
    include_initial: bool = False,
) -> DeviceArray:
    """The products of the elements up to each, along an axis, which an array of one dimension may leave out.

    include_initial: a 1 stands before them.

    >>> xp.cumulative_prod(xp.asarray([2, 3]), include_initial=True).tolist()
    [1, 2, 6]
    """
    return _running("cumulative_prod", x, axis, dtype, include_initial)


def cumulative_sum(
    x: DeviceArray,
    /,
    *,
    axis: int | None = None,
    dtype: _C.dtype | None = None,
    include_initial: bool = False,
) -> DeviceArray:
    """The sums of the elements up to each, along an axis, which an array of one dimension may leave out.

    include_initial: a 0 stands before them.

    >>> xp.cumulative_sum(xp.asarray([2, 3])).tolist()
    [2, 5]
    """
    return _running("cumulative_sum", x, axis, dtype, include_initial)


def _running(op: str, x: DeviceArray, axis: int | None, dtype: _C.dtype | None, include_initial: bool) -> DeviceArray:
    need_array(op, "x", x)
    include_initial = _C._need_bool(op, "include_initial", include_initial)
    if axis is None and x.ndim != 1:
        raise misshapen(op, ("x",), (x,), "axis is needed for an array that has not one dimension")
    place = one_axis(op, 0 if axis is None else axis, x.ndim)
    wanted = _summed(op, x, dtype)
    sums = op == "cumulative_sum"
    result = (_C.cumsum if sums else _C.cumprod)(x, place, dtype=wanted)
    if not include_initial:
        return result
    shape = [1 if i == place else size for i, size in enumerate(x.shape)]
    return _C.cat([_C.full(shape, 0 if sums else 1, dtype=wanted, device=x.device), result], place)


def diff(
    x: DeviceArray,
    /,
    *,
    axis: int = -1,
    n: int = 1,
    prepend: DeviceArray | None = None,
    append: DeviceArray | None = None,
) -> DeviceArray:
    """The differences of neighbours along an axis, n times over; prepend and append stand before and after x.

    >>> xp.diff(xp.asarray([1, 4, 9])).tolist()
    [3, 5]
    """
    need_array("diff", "x", x)
    place = one_axis("diff", axis, x.ndim)
    n = _C._need_int("diff", "n", n)
    named = [(name, one) for name, one in (("prepend", prepend), ("x", x), ("append", append)) if one is not None]
    names, parts = tuple(name for name, _ in named), tuple(one for _, one in named)
    given = one_dtype("diff", names, parts)
    return dt.diff(_C.cat(given, place) if len(given) > 1 else x, n, place)
