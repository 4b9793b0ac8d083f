"""Functions of the standard that look for elements: indexing, order, sets."""

from __future__ import annotations

from typing import NamedTuple

import devtensor as dt
from devtensor import _C
from devtensor._C import DeviceArray
from devtensor._composed.arguments import misshapen, need_array
from devtensor.array_api._operands import Axes, axes_of, one_axis, pair


class unique_all_result(NamedTuple):
    """What unique_all gives."""

    values: DeviceArray
    indices: DeviceArray
    inverse_indices: DeviceArray
    counts: DeviceArray


class unique_counts_result(NamedTuple):
    """What unique_counts gives."""

    values: DeviceArray
    counts: DeviceArray


class unique_inverse_result(NamedTuple):
    """What unique_inverse gives."""

    values: DeviceArray
    inverse_indices: DeviceArray


# ---------------------------------------------------------------- indexing


def take(x: DeviceArray, indices: DeviceArray, /, *, axis: int | None = None) -> DeviceArray:
    """The parts of x at some places along an axis, which an array of one dimension may leave out.

    indices: integers of any dtype and shape, from -size.

    >>> xp.take(xp.asarray([5, 6, 7]), xp.asarray([2, 0])).tolist()
    [7, 5]
    """
    need_array("take", "x", x)
    need_array("take", "indices", indices)
    _C._check_devices("take", ("x", "indices"), (x, indices))
    if axis is None and x.ndim != 1:
        raise misshapen("take", ("x",), (x,), "axis is needed for an array that has not one dimension")
    place = one_axis("take", 0 if axis is None else axis, x.ndim)
    return x[(slice(None),) * place + (_places("take", indices),)]


def take_along_axis(x: DeviceArray, indices: DeviceArray, /, *, axis: int = -1) -> DeviceArray:
    """The elements of x at indices along an axis; in the other axes the two broadcast.

    >>> xp.take_along_axis(xp.asarray([[5, 6], [7, 8]]), xp.asarray([[1], [0]]), axis=1).tolist()
    [[6], [7]]
    """
    need_array("take_along_axis", "x", x)
    need_array("take_along_axis", "indices", indices)
    place = one_axis("take_along_axis", axis, x.ndim)
    found = _places("take_along_axis", indices)
    size = x.shape[place]
    return dt.take_along_dim(x, _C.where(found < 0, found + size, found), place)


def _places(op: str, indices: DeviceArray) -> DeviceArray:
    """Indices in a dtype that indexes: the standard takes every integer."""
    if indices.dtype is _C.bool or indices.dtype.is_floating_point:
        _C._fail_dtype(op, ("indices",), (indices,), 0, "integers")
    return indices if indices.dtype in (_C.int32, _C.int64) else indices.long()


# ---------------------------------------------------------------- searching


def argmax(x: DeviceArray, /, *, axis: int | None = None, keepdims: bool = False) -> DeviceArray:
    """Where the first largest element is, along an axis or in a row.

    >>> xp.argmax(xp.asarray([1, 3, 2])).item()
    1
    """
    return _extreme("argmax", x, axis, keepdims)


def argmin(x: DeviceArray, /, *, axis: int | None = None, keepdims: bool = False) -> DeviceArray:
    """Where the first smallest element is, along an axis or in a row.

    >>> xp.argmin(xp.asarray([2, 1, 3])).item()
    1
    """
    return _extreme("argmin", x, axis, keepdims)


def _extreme(op: str, x: DeviceArray, axis: int | None, keepdims: bool) -> DeviceArray:
    need_array(op, "x", x)
    keepdims = _C._need_bool(op, "keepdims", keepdims)
    function = _C.argmax if op == "argmax" else _C.argmin
    if axis is None:
        found = function(x.flatten(), 0)
        return found.reshape((1,) * x.ndim) if keepdims else found
    return function(x, one_axis(op, axis, x.ndim), keepdims)


def count_nonzero(x: DeviceArray, /, *, axis: Axes = None, keepdims: bool = False) -> DeviceArray:
    """How many elements are not 0, along some axes or in all.

    >>> xp.count_nonzero(xp.asarray([0, 2, 3])).item()
    2
    """
    need_array("count_nonzero", "x", x)
    keepdims = _C._need_bool("count_nonzero", "keepdims", keepdims)
    axes = axes_of("count_nonzero", axis, x.ndim)
    flags = (x != 0).long() if x.dtype is not _C.bool else x.long()
    return _C.sum(flags, axes, keepdims) if axes else flags


def nonzero(x: DeviceArray, /) -> tuple[DeviceArray, ...]:
    """Where elements are not 0, in row-major order: an array of indices for each axis. The host reads the count.

    Raises ValueError for an array of no dimensions.

    >>> [one.tolist() for one in xp.nonzero(xp.asarray([0, 2, 3]))]
    [[1, 2]]
    """
    need_array("nonzero", "x", x)
    if x.ndim == 0:
        raise misshapen("nonzero", ("x",), (x,), "an array of no dimensions has no indices")
    return tuple(_C.nonzero(x, as_tuple=True))


def searchsorted(
    x1: DeviceArray, x2: DeviceArray, /, *, side: str = "left", sorter: DeviceArray | None = None
) -> DeviceArray:
    """Where the elements of x2 would be put into x1, which is sorted, or which sorter sorts.

    side: "left" before elements that are equal, "right" behind them.

    >>> xp.searchsorted(xp.asarray([1, 3, 5]), xp.asarray([3, 4])).tolist()
    [1, 2]
    """
    need_array("searchsorted", "x1", x1)
    need_array("searchsorted", "x2", x2)
    if side not in ("left", "right"):
        raise ValueError(f'searchsorted(): side must be "left" or "right", not {_C._shown(side)}')
    if sorter is not None:
        x1 = take(x1, sorter)
    flat = x2.flatten()
    first, second = pair("searchsorted", x1[:, None], flat) if x1.dtype is not x2.dtype else (x1[:, None], flat)
    return dt.searchsorted(first[:, 0].contiguous(), second, right=side == "right").reshape(x2.shape)


# ---------------------------------------------------------------- order


def argsort(x: DeviceArray, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> DeviceArray:
    """The indices that sort x along an axis. Equal elements keep their order if stable; NaN is the largest.

    >>> xp.argsort(xp.asarray([3, 1, 2])).tolist()
    [1, 2, 0]
    """
    return _sorted("argsort", x, axis, descending, stable)[1]


def sort(x: DeviceArray, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> DeviceArray:
    """The elements of x in order along an axis; NaN is the largest.

    >>> xp.sort(xp.asarray([3, 1, 2]), descending=True).tolist()
    [3, 2, 1]
    """
    return _sorted("sort", x, axis, descending, stable)[0]


def _sorted(op: str, x: DeviceArray, axis: int, descending: bool, stable: bool) -> tuple[DeviceArray, DeviceArray]:
    need_array(op, "x", x)
    descending, stable = _C._need_bool(op, "descending", descending), _C._need_bool(op, "stable", stable)
    values, indices = _C.sort(x, one_axis(op, axis, x.ndim), descending, stable=stable)
    return values, indices


# ---------------------------------------------------------------- sets


def unique_all(x: DeviceArray, /) -> unique_all_result:
    """The different elements in order, where each stands first, which one each element is, and how often it is there.

    Every NaN is one of its own. The host reads how many there are.

    >>> xp.unique_all(xp.asarray([3, 1, 3])).counts.tolist()
    [1, 2]
    """
    need_array("unique_all", "x", x)
    flat = x.flatten()
    order = _C.argsort(flat, 0, stable=True)
    ordered = flat[order]
    first = _C.cat([_C.ones(min(1, flat.numel()), dtype=_C.bool, device=x.device), ordered[1:] != ordered[:-1]])
    starts = _C.nonzero(first).flatten()
    ends = _C.cat([starts[1:], _C.full((min(1, flat.numel()),), flat.numel(), device=x.device)])
    inverse = _C.empty_like(order)
    inverse[order] = _C.cumsum(first, 0) - 1
    return unique_all_result(ordered[starts], order[starts], inverse.reshape(x.shape), ends - starts)


def unique_counts(x: DeviceArray, /) -> unique_counts_result:
    """The different elements in order, and how often each is there.

    >>> xp.unique_counts(xp.asarray([3, 1, 3])).values.tolist()
    [1, 3]
    """
    need_array("unique_counts", "x", x)
    found = unique_all(x)
    return unique_counts_result(found.values, found.counts)


def unique_inverse(x: DeviceArray, /) -> unique_inverse_result:
    """The different elements in order, and which one each element of x is.

    >>> xp.unique_inverse(xp.asarray([3, 1, 3])).inverse_indices.tolist()
    [1, 0, 1]
    """
    need_array("unique_inverse", "x", x)
    found = unique_all(x)
    return unique_inverse_result(found.values, found.inverse_indices)


def unique_values(x: DeviceArray, /) -> DeviceArray:
    """The different elements in order.

    >>> xp.unique_values(xp.asarray([3, 1, 3])).tolist()
    [1, 3]
    """
    need_array("unique_values", "x", x)
    return unique_all(x).values
