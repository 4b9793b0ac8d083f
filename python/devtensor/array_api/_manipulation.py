"""Functions of the standard that move elements to other places."""

from __future__ import annotations

import devtensor as dt
from devtensor import _C
from devtensor._C import DeviceArray
from devtensor._composed.arguments import misshapen, need_array, need_entries
from devtensor.array_api._operands import Axes, axes_of, one_axis, one_dtype


def broadcast_arrays(*arrays: DeviceArray) -> list[DeviceArray]:
    """The arrays in the shape that they broadcast to: views. Raises ShapeMismatchError where there is none.

    >>> [one.shape for one in xp.broadcast_arrays(xp.ones((2, 1)), xp.ones(3))]
    [(2, 3), (2, 3)]
    """
    for k, x in enumerate(arrays):
        need_array("broadcast_arrays", f"arrays[{k}]", x)
    return list(dt.broadcast_tensors(*arrays)) if arrays else []


def broadcast_to(x: DeviceArray, /, shape: tuple[int, ...]) -> DeviceArray:
    """x in a shape that it broadcasts to: a view.

    >>> xp.broadcast_to(xp.asarray([1, 2]), (2, 2)).tolist()
    [[1, 2], [1, 2]]
    """
    need_array("broadcast_to", "x", x)
    return _C.broadcast_to(x, _C._need_ints("broadcast_to", "shape", shape))


def concat(arrays: tuple[DeviceArray, ...] | list[DeviceArray], /, *, axis: int | None = 0) -> DeviceArray:
    """Arrays one after the other along an axis; with axis=None the elements of all, in a row.

    >>> xp.concat([xp.asarray([1]), xp.asarray([2, 3])]).tolist()
    [1, 2, 3]
    """
    names, entries = need_entries("concat", "arrays", arrays)
    given = one_dtype("concat", names, entries)
    if axis is None:
        return _C.cat([x.flatten() for x in given], 0)
    return _C.cat(given, _C._need_int("concat", "axis", axis))


def expand_dims(x: DeviceArray, /, axis: int) -> DeviceArray:
    """x with an axis of size 1 put in: a view. Raises IndexError for an axis that the result does not have.

    >>> xp.expand_dims(xp.ones(2), -1).shape
    (2, 1)
    """
    need_array("expand_dims", "x", x)
    return _C.unsqueeze(x, one_axis("expand_dims", axis, x.ndim + 1))


def flip(x: DeviceArray, /, *, axis: Axes = None) -> DeviceArray:
    """The elements in reverse order along some axes, or along all.

    >>> xp.flip(xp.asarray([1, 2, 3])).tolist()
    [3, 2, 1]
    """
    need_array("flip", "x", x)
    axes = axes_of("flip", axis, x.ndim)
    return dt.flip(x, axes) if axes else _C.clone(x)


def moveaxis(x: DeviceArray, source: int | tuple[int, ...], destination: int | tuple[int, ...], /) -> DeviceArray:
    """x with some axes moved to other places, and the others behind each other: a view.

    >>> xp.moveaxis(xp.ones((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    need_array("moveaxis", "x", x)
    return _C.movedim(x, axes_of("moveaxis", source, x.ndim), axes_of("moveaxis", destination, x.ndim))


def permute_dims(x: DeviceArray, /, axes: tuple[int, ...]) -> DeviceArray:
    """x with its axes in another order: a view.

    >>> xp.permute_dims(xp.ones((2, 3)), (1, 0)).shape
    (3, 2)
    """
    need_array("permute_dims", "x", x)
    return _C.permute(x, _C._need_ints("permute_dims", "axes", axes))


def repeat(x: DeviceArray, repeats: int | DeviceArray, /, *, axis: int | None = None) -> DeviceArray:
    """Each element several times, one after the other, along an axis; with axis=None of all elements in a row.

    repeats: how often, for all or for each place along the axis. An array of them is read by the host for the shape.

    >>> xp.repeat(xp.asarray([1, 2]), 2).tolist()
    [1, 1, 2, 2]
    """
    need_array("repeat", "x", x)
    if axis is None:
        x, axis = x.flatten(), 0
    axis = one_axis("repeat", axis, x.ndim)
    if isinstance(repeats, DeviceArray):
        _C._check_devices("repeat", ("x", "repeats"), (x, repeats))
        return dt.repeat_interleave(x, repeats.long(), axis)
    return dt.repeat_interleave(x, _C._need_int("repeat", "repeats", repeats), axis)


def reshape(x: DeviceArray, /, shape: tuple[int, ...], *, copy: bool | None = None) -> DeviceArray:
    """The elements in another shape; one size may be -1.

    copy: True always copies, False raises ValueError where a view is not possible, None copies where it must.

    >>> xp.reshape(xp.arange(4), (2, -1)).tolist()
    [[0, 1], [2, 3]]
    """
    need_array("reshape", "x", x)
    sizes = _C._need_ints("reshape", "shape", shape)
    if copy is None:
        return _C.reshape(x, sizes)
    if _C._need_bool("reshape", "copy", copy):
        return _C.reshape(_C.clone(x), sizes)
    return _C.view(x, sizes)


def roll(
    x: DeviceArray,
    /,
    shift: int | tuple[int, ...],
    *,
    axis: Axes = None,
) -> DeviceArray:
    """The elements moved by shift places along axes; what leaves at one end comes in at the other. axis=None: in a row.

    >>> xp.roll(xp.asarray([1, 2, 3]), 1).tolist()
    [3, 1, 2]
    """
    need_array("roll", "x", x)
    shifts = _C._need_ints("roll", "shift", shift)
    if axis is None:
        return dt.roll(x, shifts)
    axes = axes_of("roll", axis, x.ndim)
    if len(shifts) == 1:
        shifts = shifts * len(axes)
    return dt.roll(x, shifts, axes)


def squeeze(x: DeviceArray, /, axis: int | tuple[int, ...]) -> DeviceArray:
    """x without some axes of size 1: a view. Raises ShapeMismatchError, a ValueError, for axes of other sizes.

    >>> xp.squeeze(xp.ones((1, 2)), 0).shape
    (2,)
    """
    need_array("squeeze", "x", x)
    axes = axes_of("squeeze", axis, x.ndim)
    for one in axes:
        if x.shape[one] != 1:
            raise misshapen("squeeze", ("x",), (x,), f"axis {one} has size {x.shape[one]}, and only 1 can be left out")
    return _C.squeeze(x, axes) if axes else x


def stack(arrays: tuple[DeviceArray, ...] | list[DeviceArray], /, *, axis: int = 0) -> DeviceArray:
    """Arrays of one shape along a new axis.

    >>> xp.stack([xp.asarray([1, 2]), xp.asarray([3, 4])]).tolist()
    [[1, 2], [3, 4]]
    """
    names, entries = need_entries("stack", "arrays", arrays)
    return _C.stack(one_dtype("stack", names, entries), _C._need_int("stack", "axis", axis))


def tile(x: DeviceArray, repetitions: tuple[int, ...], /) -> DeviceArray:
    """x several times along each axis; axes that one of the two lacks in front have size 1.

    >>> xp.tile(xp.asarray([1, 2]), (2,)).tolist()
    [1, 2, 1, 2]
    """
    need_array("tile", "x", x)
    return dt.tile(x, _C._need_ints("tile", "repetitions", repetitions))


def unstack(x: DeviceArray, /, *, axis: int = 0) -> tuple[DeviceArray, ...]:
    """The parts of x along an axis, without it: views. Raises ValueError for an array of no dimensions.

    >>> [one.tolist() for one in xp.unstack(xp.asarray([[1, 2], [3, 4]]))]
    [[1, 2], [3, 4]]
    """
    need_array("unstack", "x", x)
    if x.ndim == 0:
        raise misshapen("unstack", ("x",), (x,), "an array of no dimensions has no parts")
    return _C.unbind(x, one_axis("unstack", axis, x.ndim))
