"""Sizes and places that are other ones: split_with_sizes, sum_to_size, unravel_index, diagflat."""

from __future__ import annotations

import math
from collections.abc import Sequence

from devtensor import _C
from devtensor._C import DeviceArray, _need_int, _need_ints
from devtensor._composed.arguments import dims_of, misshapen, need_array, need_sizes
from devtensor._composed.shapes.diagonals import diag


def split_with_sizes(input: DeviceArray, split_sizes: Sequence[int], dim: int = 0) -> tuple[DeviceArray, ...]:
    """input cut along dim into parts of these sizes: views.

    Raises ShapeMismatchError unless they make up the size of dim, IndexError for a dim out of range.

    >>> [part.tolist() for part in dt.split_with_sizes(dt.arange(4), (1, 3))]
    [[0], [1, 2, 3]]
    """
    op = "split_with_sizes"
    need_array(op, "input", input)
    sizes, place = _need_ints(op, "split_sizes", split_sizes), _need_int(op, "dim", dim)
    _C._check_rank(op, ("input",), (input,), 0, 1, 8)
    (d,) = dims_of(op, place, input.ndim, input)
    size = input.shape[d]
    if any(n < 0 for n in sizes) or sum(sizes) != size:
        text = (
            f"{op} expects split_sizes from 0 that sum exactly to {size}, the size of dim {d}, not {_C._shown(sizes)}"
        )
        raise misshapen(op, ("input",), (input,), text, 0)
    starts = [sum(sizes[:k]) for k in range(len(sizes))]
    return tuple(input.narrow(d, start, n) for start, n in zip(starts, sizes, strict=True))


def sum_to_size(input: DeviceArray, *size: int | Sequence[int]) -> DeviceArray:
    """input summed over the dimensions that size lacks or has as 1: what flows back through a broadcast from size.

    input itself, as a view, where it has this shape. Sums of integers and bools are int64. Raises ShapeMismatchError
    for a size that does not broadcast to the shape of input.

    >>> dt.ones(2, 3).sum_to_size(1, 3)
    DeviceArray([[2., 2., 2.]], device='cpu', dtype=float32)
    """
    op = "sum_to_size"
    need_array(op, "input", input)
    sizes = need_sizes(op, "size", size[0] if len(size) == 1 else size)
    if not sizes:
        return input.sum()
    extra = input.ndim - len(sizes)
    if extra < 0 or any(n not in (1, have) for n, have in zip(sizes, input.shape[extra:], strict=True)):
        text = f"size {sizes} is not expandable to size {tuple(input.shape)}"
        raise misshapen(op, ("input",), (input,), text, 0)
    summed = [d for d in range(input.ndim) if d < extra or (sizes[d - extra] == 1 and input.shape[d] != 1)]
    return input.sum(summed, keepdim=True).reshape(sizes) if summed else input.view(sizes)


def unravel_index(indices: DeviceArray, shape: int | Sequence[int]) -> tuple[DeviceArray, ...]:
    """The coordinates, in an array of this shape, of the elements with these indices in its flattened form.

    An int64 array of the shape of indices for each dimension; places count modulo the number of elements. Raises
    TypeError for indices that are no integers, ValueError for negative sizes, RuntimeError for sizes of 0.

    >>> dt.unravel_index(dt.tensor([1, 5]), (2, 3))
    (DeviceArray([0, 1], device='cpu', dtype=int64), DeviceArray([1, 2], device='cpu', dtype=int64))
    """
    op = "unravel_index"
    need_array(op, "indices", indices)
    sizes = _need_ints(op, "shape", shape)
    if indices.dtype.is_floating_point or indices.dtype == _C.bool:
        text = f"expected 'indices' to be integer dtype, but got {indices.dtype}"
        raise _C._explained(op, ("indices",), (indices,), "dtype-mismatch", TypeError(text), 0)
    if any(n < 0 for n in sizes):
        raise ValueError(f"'shape' cannot have negative values, but got {_C._shown(sizes)}")
    if 0 in sizes:
        raise RuntimeError(f"{op}: shape {sizes} has no elements")
    places = indices.to(_C.int64)  # whose numbers hold the sizes
    return tuple(places.floor_divide(math.prod(sizes[d + 1 :])).remainder(n) for d, n in enumerate(sizes))


def diagflat(input: DeviceArray, offset: int = 0) -> DeviceArray:
    """The matrix with the elements of input, flattened, on a diagonal; offset counts from the main one, upwards.

    >>> dt.diagflat(dt.tensor([[1, 2]]))
    DeviceArray([[1, 0],
                 [0, 2]], device='cpu', dtype=int64)
    """
    need_array("diagflat", "input", input)
    return diag(input.reshape(-1), _need_int("diagflat", "offset", offset))


__all__ = [
    "diagflat",
    "split_with_sizes",
    "unravel_index",
]
METHODS = (
    diagflat,
    split_with_sizes,
    sum_to_size,
)
