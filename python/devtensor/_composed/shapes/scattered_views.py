"""Copies of an array of which one part, seen by a view, is another array."""

from __future__ import annotations

from devtensor import _C
from devtensor._C import DeviceArray, _need_bool, _need_int, _need_number
from devtensor._composed.arguments import dims_of, need_array

_NAMES = ("input", "src")


def _with_part(op: str, input: DeviceArray, src: DeviceArray, result: DeviceArray, part: DeviceArray) -> DeviceArray:
    """result, a copy of input, whose part is src."""
    _C._check_shape(op, _NAMES, (input, src), 1, part.shape)
    part.copy_(src)
    return result


def _begin(op: str, input: DeviceArray, src: DeviceArray) -> DeviceArray:
    need_array(op, "input", input)
    need_array(op, "src", src)
    _C._check_devices(op, _NAMES, (input, src))
    return input.clone()


def select_scatter(input: DeviceArray, src: DeviceArray, dim: int, index: int) -> DeviceArray:
    """A copy of input in which input.select(dim, index) is src, of that shape, cast to the dtype of input.

    Raises DeviceMismatchError, ShapeMismatchError, IndexError for a dim or an index out of range.

    >>> dt.select_scatter(dt.zeros(2, 2), dt.ones(2), 0, 1)
    DeviceArray([[0., 0.],
                 [1., 1.]], device='cpu', dtype=float32)
    """
    op = "select_scatter"
    result = _begin(op, input, src)
    _C._check_rank(op, _NAMES, (input, src), 0, 1, 8)
    (d,) = dims_of(op, _need_int(op, "dim", dim), input.ndim, input)
    at, size = _need_int(op, "index", index), input.shape[d]
    if not -size <= at < size:
        text = f"{op}(): index {at} out of range for tensor of size {tuple(input.shape)} at dimension {d}"
        raise _C._explained(op, _NAMES, (input, src), "index-out-of-range", IndexError(text), 0)
    return _with_part(op, input, src, result, result.select(d, at))


def slice_scatter(
    input: DeviceArray, src: DeviceArray, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> DeviceArray:
    """A copy of input in which the entries start:end:step of dim are src, of their shape, cast to the dtype of input.

    Raises DeviceMismatchError, ShapeMismatchError, IndexError for a dim out of range, RuntimeError for a step below 1.

    >>> dt.slice_scatter(dt.zeros(4), dt.ones(2), 0, 0, 4, 2)
    DeviceArray([1., 0., 1., 0.], device='cpu', dtype=float32)
    """
    op = "slice_scatter"
    result = _begin(op, input, src)
    _C._check_rank(op, _NAMES, (input, src), 0, 1, 8)
    (d,) = dims_of(op, _need_int(op, "dim", dim), input.ndim, input)
    first = None if start is None else _need_int(op, "start", start)
    last = None if end is None else _need_int(op, "end", end)
    stride = _need_int(op, "step", step)
    if stride < 1:
        raise RuntimeError("slice step must be positive")
    part = result[(*[slice(None)] * d, slice(first, last, stride))]
    return _with_part(op, input, src, result, part)


def diagonal_scatter(
    input: DeviceArray, src: DeviceArray, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> DeviceArray:
    """A copy of input in which input.diagonal(offset, dim1, dim2) is src, of that shape, cast to the dtype of input.

    Raises DeviceMismatchError, ShapeMismatchError, IndexError for a dim out of range.

    >>> dt.diagonal_scatter(dt.zeros(2, 2), dt.ones(2))
    DeviceArray([[1., 0.],
                 [0., 1.]], device='cpu', dtype=float32)
    """
    op = "diagonal_scatter"
    result = _begin(op, input, src)
    _C._check_rank(op, _NAMES, (input, src), 0, 2, 8)
    offset = _need_int(op, "offset", offset)
    (a,) = dims_of(op, _need_int(op, "dim1", dim1), input.ndim, input, "dim1")
    (b,) = dims_of(op, _need_int(op, "dim2", dim2), input.ndim, input, "dim2")
    if a == b:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    return _with_part(op, input, src, result, result.diagonal(offset, a, b))


def fill_diagonal_(input: DeviceArray, fill_value: float, wrap: bool = False) -> DeviceArray:
    """Sets the elements (i, i, ...) of input to a number, and returns input: a matrix, or more dimensions of one size.

    wrap goes on after the last row of a high matrix, with one row left out. Raises ShapeMismatchError for less than two
    dimensions, or for more of several sizes.

    >>> dt.zeros(2, 2).fill_diagonal_(3)
    DeviceArray([[3., 0.],
                 [0., 3.]], device='cpu', dtype=float32)
    """
    op = "fill_diagonal_"
    need_array(op, "input", input)
    _C._check_rank(op, ("input",), (input,), 0, 2, 8)
    value, wrap = _need_number(op, "fill_value", fill_value), _need_bool(op, "wrap", wrap)
    if input.ndim > 2:
        _C._check_shape(op, ("input",), (input,), 0, [input.shape[0]] * input.ndim)
    diagonal = input
    while diagonal.ndim > 1:
        diagonal = diagonal.diagonal()
    diagonal.fill_(value)
    rows, columns = input.shape[0], input.shape[1]
    if wrap and input.ndim == 2:
        for first in range(columns + 1, rows, columns + 1):
            input[first:].diagonal().fill_(value)
    return input


__all__ = [
    "diagonal_scatter",
    "select_scatter",
    "slice_scatter",
]
METHODS = (
    diagonal_scatter,
    fill_diagonal_,
    select_scatter,
    slice_scatter,
)
