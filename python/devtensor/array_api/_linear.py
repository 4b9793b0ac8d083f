"""Products of the standard, which also stand in its linalg."""

from __future__ import annotations

import math
from collections.abc import Sequence

import devtensor as dt
from devtensor import _C
from devtensor._C import DeviceArray
from devtensor._composed.arguments import misshapen, need_array
from devtensor.array_api._operands import one_axis, one_dtype, pair

_MOST = 1 << 22  # elements of products that are in memory at a time


def matmul(x1: DeviceArray, x2: DeviceArray, /) -> DeviceArray:
    """The products of matrices, or with vectors; leading axes broadcast.

    Products of integers are summed in their dtype, on a CUDA device by an elementwise walk that is slow.

    >>> xp.matmul(xp.eye(2), xp.asarray([[1.0, 2.0], [3.0, 4.0]])).tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """
    first, second = one_dtype("matmul", ("x1", "x2"), (x1, x2))
    if first.dtype.is_floating_point or second.dtype.is_floating_point or _C.bool in (first.dtype, second.dtype):
        return _C.matmul(first, second)
    return _integers(first, second)


def _integers(x1: DeviceArray, x2: DeviceArray) -> DeviceArray:
    """matmul of integers of one dtype, which the op has on the cpu alone."""
    if not x1.is_cuda and x1.dtype is not _C.bool:
        return _C.matmul(x1, x2)
    if x1.ndim == 0 or x2.ndim == 0 or x1.shape[-1] != x2.shape[-min(2, x2.ndim)]:
        text = "the last axis of x1 must be as long as the last but one of x2, or its only one"
        raise misshapen("matmul", ("x1", "x2"), (x1, x2), text)
    rows = x1 if x1.ndim > 1 else x1[None, :]
    columns = (x2 if x2.ndim > 1 else x2[:, None]).mT
    inner = rows.shape[-1]
    _C._check_broadcast("matmul", ("x1", "x2"), (rows[..., :1, :1], columns[..., :1, :1]))
    total: DeviceArray | None = None
    batch = dt.broadcast_shapes(rows.shape[:-2], columns.shape[:-2])
    step = max(1, _MOST // max(1, math.prod((*batch, rows.shape[-2], columns.shape[-2]))))
    for begin in range(0, max(inner, 1), step):
        left, right = rows[..., :, None, begin : begin + step], columns[..., None, :, begin : begin + step]
        part = _C.sum(left * right, -1, dtype=x1.dtype)
        total = part if total is None else total + part
    assert total is not None
    if x1.ndim == 1:
        total = total.select(-2, 0)
    return total.select(-1, 0) if x2.ndim == 1 else total


def matrix_transpose(x: DeviceArray, /) -> DeviceArray:
    """x with its last two axes exchanged: a view. Raises ValueError for fewer than two.

    >>> xp.matrix_transpose(xp.ones((2, 3))).shape
    (3, 2)
    """
    need_array("matrix_transpose", "x", x)
    if x.ndim < 2:
        raise misshapen("matrix_transpose", ("x",), (x,), "two axes are needed")
    return x.mT


def tensordot(
    x1: DeviceArray, x2: DeviceArray, /, *, axes: int | tuple[Sequence[int], Sequence[int]] = 2
) -> DeviceArray:
    """Products summed over axes: the last of x1 and the first of x2, so many, or those that are named.

    >>> xp.tensordot(xp.ones((2, 3)), xp.ones((2, 3)), axes=((0, 1), (0, 1))).item()
    6.0
    """
    first, second = one_dtype("tensordot", ("x1", "x2"), (x1, x2))
    mine, theirs = _summed_over(first, second, axes)
    if first.dtype.is_floating_point or second.dtype.is_floating_point:
        return dt.tensordot(first, second, (mine, theirs))
    if [first.shape[axis] for axis in mine] != [second.shape[axis] for axis in theirs]:
        raise misshapen("tensordot", ("x1", "x2"), (first, second), f"sizes differ along the axes {axes}")
    keep = [axis for axis in range(first.ndim) if axis not in mine]
    others = [axis for axis in range(second.ndim) if axis not in theirs]
    inner = math.prod(first.shape[axis] for axis in mine)
    left = first.permute([*keep, *mine]).reshape(math.prod(first.shape[axis] for axis in keep), inner)
    right = second.permute([*theirs, *others]).reshape(inner, math.prod(second.shape[axis] for axis in others))
    shape = [*(first.shape[axis] for axis in keep), *(second.shape[axis] for axis in others)]
    return _integers(left, right).reshape(shape)


def _summed_over(x1: DeviceArray, x2: DeviceArray, axes: object) -> tuple[list[int], list[int]]:
    """The axes of both that tensordot sums over, counted from the front."""
    if isinstance(axes, (tuple, list)):
        if len(axes) != 2:
            raise ValueError(f"tensordot(): axes must be an int or two sequences of ints, not {len(axes)} of them")
        chosen = [_C._need_ints("tensordot", "axes", one) for one in axes]
        mine = [one_axis("tensordot", axis, x1.ndim) for axis in chosen[0]]
        return mine, [one_axis("tensordot", axis, x2.ndim) for axis in chosen[1]]
    number = _C._need_int("tensordot", "axes", axes)
    if not 0 <= number <= min(x1.ndim, x2.ndim):
        raise ValueError(f"tensordot(): axes must be from 0 to {min(x1.ndim, x2.ndim)}, and is {number}")
    return list(range(x1.ndim - number, x1.ndim)), list(range(number))


def vecdot(x1: DeviceArray, x2: DeviceArray, /, *, axis: int = -1) -> DeviceArray:
    """The sums of products along an axis, counted from the end; the other axes broadcast.

    >>> xp.vecdot(xp.asarray([1.0, 2.0]), xp.asarray([3.0, 4.0])).item()
    11.0
    """
    first, second = pair("vecdot", x1, x2)
    place = _C._need_int("vecdot", "axis", axis)
    if not -min(first.ndim, second.ndim) <= place < 0:
        raise IndexError(f"vecdot(): axis {place} must be from {-min(first.ndim, second.ndim)} to -1")
    if first.shape[place] != second.shape[place]:
        text = f"sizes differ along axis {place}"
        raise misshapen("vecdot", ("x1", "x2"), (first, second), text)
    products = first * second
    return _C.sum(products, place, dtype=products.dtype)
