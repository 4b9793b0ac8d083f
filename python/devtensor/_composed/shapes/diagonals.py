"""Diagonals, triangles and powers: matrices by the places of their elements."""

from __future__ import annotations

from devtensor import _C
from devtensor._C import DeviceArray, _need_dtype, _need_int
from devtensor._composed.arguments import dims_of, need_array
from devtensor._composed.written import made_as_asked, takes_out
from devtensor._memory_formats import layout


@takes_out
def diag(input: DeviceArray, diagonal: int = 0, *, out: DeviceArray | None = None) -> DeviceArray:
    """The matrix with a vector on a diagonal, or a diagonal of a matrix: a copy.

    diagonal counts from the main one, upwards. Any dtype. Raises ShapeMismatchError for another number of dimensions.

    >>> dt.diag(dt.tensor([1, 2]))
    DeviceArray([[1, 0],
                 [0, 2]], device='cpu', dtype=int64)
    """
    need_array("diag", "input", input)
    _C._check_rank("diag", ("input",), (input,), 0, 1, 2)
    offset = _need_int("diag", "diagonal", diagonal)
    return _embedded(input, offset) if input.ndim == 1 else input.diagonal(offset).clone()


def _embedded(x: DeviceArray, offset: int) -> DeviceArray:
    """Matrices over the last two dimensions with those of the last dimension of x on a diagonal."""
    size = x.shape[-1] + abs(offset)
    result = _C.zeros(*x.shape[:-1], size, size, dtype=x.dtype, device=x.device)
    result.diagonal(offset, -2, -1).copy_(x)
    return result


def diag_embed(input: DeviceArray, offset: int = 0, dim1: int = -2, dim2: int = -1) -> DeviceArray:
    """Matrices over the new dimensions dim1 and dim2, with the last dimension of input on a diagonal: a copy.

    offset counts from the main diagonal, upwards. Any dtype. Raises IndexError for dims out of range, RuntimeError
    where they are one.

    >>> dt.diag_embed(dt.ones(2, 3)).shape
    (2, 3, 3)
    """
    op = "diag_embed"
    need_array(op, "input", input)
    _C._check_rank(op, ("input",), (input,), 0, 1, 7)
    first, second = _need_int(op, "dim1", dim1), _need_int(op, "dim2", dim2)
    (a,) = dims_of(op, first, input.ndim + 1, input, "dim1")
    (b,) = dims_of(op, second, input.ndim + 1, input, "dim2")
    if a == b:
        raise RuntimeError(f"diagonal dimensions cannot be identical {first}, {second}")
    count = _need_int(op, "offset", offset)
    return _embedded(input, count if a < b else -count).movedim((-2, -1), (min(a, b), max(a, b)))


def tril_(input: DeviceArray, diagonal: int = 0) -> DeviceArray:
    """Writes zeros above a diagonal of each matrix of input, and returns input.

    >>> dt.ones(2, 2).tril_()
    DeviceArray([[1., 0.],
                 [1., 1.]], device='cpu', dtype=float32)
    """
    return input.copy_(input.tril(diagonal))


def triu_(input: DeviceArray, diagonal: int = 0) -> DeviceArray:
    """Writes zeros below a diagonal of each matrix of input, and returns input.

    >>> dt.ones(2, 2).triu_()
    DeviceArray([[1., 1.],
                 [0., 1.]], device='cpu', dtype=float32)
    """
    return input.copy_(input.triu(diagonal))


def _triangle(op: str, row: int, col: int, offset: int, dtype: object, device: object, upper: bool) -> DeviceArray:
    rows, columns, shift = _need_int(op, "row", row), _need_int(op, "col", col), _need_int(op, "offset", offset)
    kind = _need_dtype(op, "dtype", dtype)
    place = _C.get_default_device() if device is None else _C._need_device(op, "device", device)
    if rows < 0 or columns < 0:
        name, value = ("row", rows) if rows < 0 else ("col", columns)
        raise RuntimeError(f"{op}(): {name} must be non-negative, got {value}")
    if kind not in (_C.int32, _C.int64):
        raise NotImplementedError(f'"{op}" not implemented for {_C._shown(kind)}: use int32 or int64')
    # The upper triangle is the lower one of the matrix turned by half a circle, from its end.
    i, j = _lower(rows, columns, columns - rows - shift if upper else shift, place)
    if upper:
        last = _C.arange(i.shape[0] - 1, -1, -1, device=place)
        i, j = (rows - 1) - i.index_select(0, last), (columns - 1) - j.index_select(0, last)
    return _C.stack([i, j]).to(kind)


def _lower(rows: int, columns: int, offset: int, device: _C.device) -> tuple[DeviceArray, DeviceArray]:
    """Rows and columns of the elements that lie at most offset above the main diagonal, row by row.

    Rows first grow by one element each: those of a triangle without its tip. Then they are full.
    """
    start = min(max(-offset, 0), rows)  # rows before it have none
    first = max(min(start + offset + 1, columns), 0)
    growing = min(rows - start, max(columns - first, 0)) if columns else 0
    tip = first * (first - 1) // 2
    count = growing * first + growing * (growing - 1) // 2
    k = _C.arange(count, device=device) + tip
    t = (((8 * k.to(_C.float64) + 1).sqrt() - 1) / 2).floor().to(_C.int64)
    t = t - (t * (t + 1) // 2 > k).to(_C.int64)  # the root may round to its neighbour
    t = t + ((t + 1) * (t + 2) // 2 <= k).to(_C.int64)
    full = _C.arange(max(rows - start - growing, 0) * columns, device=device)
    width = max(columns, 1)
    i = _C.cat([t + (start - first + 1), full // width + (start + growing)])
    return i, _C.cat([k - t * (t + 1) // 2, full % width])


@made_as_asked
def tril_indices(
    row: int,
    col: int,
    offset: int = 0,
    *,
    dtype: _C.dtype | str = _C.int64,
    device: _C.device | str | None = None,
    pin_memory: bool | None = False,
    layout: layout | None = None,
) -> DeviceArray:
    """The rows and the columns of the lower triangle of a (row, col) matrix, as an array (2, n), row by row.

    offset counts diagonals from the main one, upwards. dtype: int32 or int64. Raises RuntimeError for a negative size,
    NotImplementedError for another dtype.

    >>> dt.tril_indices(2, 2)
    DeviceArray([[0, 1, 1],
                 [0, 0, 1]], device='cpu', dtype=int64)
    """
    return _triangle("tril_indices", row, col, offset, dtype, device, False)


@made_as_asked
def triu_indices(
    row: int,
    col: int,
    offset: int = 0,
    *,
    dtype: _C.dtype | str = _C.int64,
    device: _C.device | str | None = None,
    pin_memory: bool | None = False,
    layout: layout | None = None,
) -> DeviceArray:
    """The rows and the columns of the upper triangle of a (row, col) matrix, as an array (2, n), row by row.

    offset counts diagonals from the main one, upwards. dtype: int32 or int64. Raises RuntimeError for a negative size,
    NotImplementedError for another dtype.

    >>> dt.triu_indices(2, 2)
    DeviceArray([[0, 0, 1],
                 [0, 1, 1]], device='cpu', dtype=int64)
    """
    return _triangle("triu_indices", row, col, offset, dtype, device, True)


def vander(x: DeviceArray, N: int | None = None, increasing: bool = False) -> DeviceArray:
    """The powers of each element of a vector from N - 1 down to 0, a row each; increasing: from 0 up. N: its length.

    Integers give int64. Raises ShapeMismatchError for another number of dimensions, RuntimeError for a negative N.

    >>> dt.vander(dt.tensor([1, 2, 3]))
    DeviceArray([[1, 1, 1],
                 [4, 2, 1],
                 [9, 3, 1]], device='cpu', dtype=int64)
    """
    op = "vander"
    need_array(op, "x", x)
    _C._check_rank(op, ("x",), (x,), 0, 1, 1)
    count = x.shape[0] if N is None else _need_int(op, "N", N)
    rising = _C._need_bool(op, "increasing", increasing)
    if count < 0:
        raise RuntimeError("N must be non-negative.")
    wide = x if x.dtype.is_floating_point else x.to(_C.int64)
    powers = _C.arange(count, device=x.device)
    return wide.unsqueeze(1) ** (powers if rising else (count - 1) - powers)


__all__ = [
    "diag",
    "diag_embed",
    "tril_indices",
    "triu_indices",
    "vander",
]
METHODS = (
    diag,
    diag_embed,
    tril_,
    triu_,
)
