"""Arrays repeated, turned, cut into windows, and what neighbours differ by."""

from __future__ import annotations

from collections.abc import Sequence

from devtensor import _C
from devtensor._C import DeviceArray, _need_int, _need_ints, _need_number
from devtensor._composed.arguments import dims_of, misshapen, need_array
from devtensor._composed.shapes.arrange import flip, repeat
from devtensor._composed.written import takes_out


def tile(input: DeviceArray, dims: int | Sequence[int], *more: int) -> DeviceArray:
    """input side by side as often as dims say, for the last dimensions where they are fewer: a copy.

    Raises RuntimeError for a negative number.

    >>> dt.tile(dt.tensor([1, 2]), (2,))
    DeviceArray([1, 2, 1, 2], device='cpu', dtype=int64)
    """
    need_array("tile", "input", input)
    times = _need_ints("tile", "dims", (dims, *more) if more else dims)
    if any(count < 0 for count in times):
        raise RuntimeError(f"tile(): dims must be ints from 0, not {times}")
    return repeat(input, [1] * (input.ndim - len(times)) + list(times))


def rot90(input: DeviceArray, k: int = 1, dims: Sequence[int] = (0, 1)) -> DeviceArray:
    """input turned k times by a quarter circle in the plane of two dimensions, from the first to the second: a copy.

    Raises ShapeMismatchError for fewer than 2 dimensions, IndexError for dims out of range, RuntimeError unless they
    are two.

    >>> dt.rot90(dt.tensor([[1, 2], [3, 4]]))
    DeviceArray([[2, 4],
                 [1, 3]], device='cpu', dtype=int64)
    """
    op = "rot90"
    need_array(op, "input", input)
    turns, wanted = _need_int(op, "k", k) % 4, _need_ints(op, "dims", dims)
    if len(wanted) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(wanted)}")
    _C._check_rank(op, ("input",), (input,), 0, 2, 8)
    (a,), (b,) = (dims_of(op, d, input.ndim, input, "dims") for d in wanted)
    if a == b:
        raise RuntimeError(f"expected rotation dims to be different, but got dim0 = {wanted[0]} and dim1 = {wanted[1]}")
    if turns == 0:
        return input.clone()
    if turns == 2:
        return flip(input, (a, b))
    return flip(input, b).transpose(a, b) if turns == 1 else flip(input, a).transpose(a, b)


def fliplr(input: DeviceArray) -> DeviceArray:
    """The elements in reverse along dimension 1: a copy. Raises ShapeMismatchError for fewer than 2 dimensions.

    >>> dt.fliplr(dt.tensor([[1, 2], [3, 4]]))
    DeviceArray([[2, 1],
                 [4, 3]], device='cpu', dtype=int64)
    """
    need_array("fliplr", "input", input)
    _C._check_rank("fliplr", ("input",), (input,), 0, 2, 8)
    return flip(input, 1)


def flipud(input: DeviceArray) -> DeviceArray:
    """The elements in reverse along dimension 0: a copy. Raises ShapeMismatchError for an array without dimensions.

    >>> dt.flipud(dt.tensor([[1, 2], [3, 4]]))
    DeviceArray([[3, 4],
                 [1, 2]], device='cpu', dtype=int64)
    """
    need_array("flipud", "input", input)
    _C._check_rank("flipud", ("input",), (input,), 0, 1, 8)
    return flip(input, 0)


def adjoint(input: DeviceArray) -> DeviceArray:
    """The last two dimensions exchanged: a view, and of real numbers the same as input.mT.

    Raises ShapeMismatchError for fewer than 2 dimensions.

    >>> dt.adjoint(dt.ones(2, 3)).shape
    (3, 2)
    """
    need_array("adjoint", "input", input)
    if not input.ndim:
        return input
    _C._check_rank("adjoint", ("input",), (input,), 0, 2, 8)
    return input.transpose(-2, -1)


def reshape_as(input: DeviceArray, other: DeviceArray) -> DeviceArray:
    """input.reshape(other.shape); device and dtype of other do not count.

    Raises ShapeMismatchError where the number of elements differs.

    >>> dt.ones(6).reshape_as(dt.zeros(2, 3)).shape
    (2, 3)
    """
    need_array("reshape_as", "input", input)
    need_array("reshape_as", "other", other)
    if input.numel() != other.numel():
        text = f"shape {tuple(other.shape)} is invalid for input of size {input.numel()}"
        raise misshapen("reshape_as", ("input", "other"), (input, other), text, 1)
    return input.reshape(other.shape)


@takes_out
def narrow_copy(
    input: DeviceArray, dim: int, start: int, length: int, *, out: DeviceArray | None = None
) -> DeviceArray:
    """length entries of dim, from start, as input.narrow gives them: a copy.

    Raises ShapeMismatchError where dim has fewer of them, IndexError for a dim out of range.

    >>> dt.narrow_copy(dt.tensor([1, 2, 3]), 0, 1, 2)
    DeviceArray([2, 3], device='cpu', dtype=int64)
    """
    op = "narrow_copy"
    need_array(op, "input", input)
    first, count = _need_int(op, "start", start), _need_int(op, "length", length)
    _C._check_rank(op, ("input",), (input,), 0, 1, 8)
    (d,) = dims_of(op, _need_int(op, "dim", dim), input.ndim, input)
    size = input.shape[d]
    begin = first + size if first < 0 else first
    if not 0 <= begin <= size or not 0 <= count <= size - begin:
        text = f"{op}: start ({first}) + length ({count}) exceeds dimension size ({size})"
        raise misshapen(op, ("input",), (input,), text, 0)
    return input.narrow(d, begin, count).clone()


def unfold(input: DeviceArray, dimension: int, size: int, step: int) -> DeviceArray:
    """The windows of so many entries of a dimension, each step entries after the one before, as the last dimension.

    A view, whose windows share elements where step < size. Raises IndexError for a dimension out of range,
    ShapeMismatchError where it is smaller than a window, RuntimeError for a negative size or a step below 1.

    >>> dt.arange(5).unfold(0, 2, 2)
    DeviceArray([[0, 1],
                 [2, 3]], device='cpu', dtype=int64)
    """
    op = "unfold"
    need_array(op, "input", input)
    (d,) = dims_of(op, _need_int(op, "dimension", dimension), input.ndim, input, "dimension")
    width, stride = _need_int(op, "size", size), _need_int(op, "step", step)
    if width < 0:
        raise RuntimeError(f"size is {width} but must be >= 0")
    if stride <= 0:
        raise RuntimeError(f"step is {stride} but must be > 0")
    _C._check_rank(op, ("input",), (input,), 0, 0, 7)
    x = input if input.ndim else input.reshape(1)
    if width > x.shape[d]:
        text = f"maximum size for tensor at dimension {d} is {x.shape[d]} but size is {width}"
        raise misshapen(op, ("input",), (input,), text, 0)
    count = (x.shape[d] - width) // stride + 1
    if width == stride:  # no two share an element: such views may be written to wherever others may
        windows = x.narrow(d, 0, count * width).unflatten(d, (count, width)).movedim(d + 1, -1)
        return windows if input.ndim else windows.reshape(width)
    shape, strides = list(x.shape), list(x.stride())
    shape[d], strides[d] = count, strides[d] * stride
    windows = x.as_strided((*shape, width), (*strides, x.stride(d)))
    return windows if input.ndim else windows.reshape(width)


def _padded(
    op: str, input: DeviceArray, n: int, dim: int, prepend: DeviceArray | None, append: DeviceArray | None
) -> tuple[DeviceArray, int, int]:
    """The checks of diff, and input with what stands before and behind it."""
    names, arrays = ("input", "prepend", "append"), (input, prepend, append)
    for name, array in zip(names, arrays, strict=True):
        if name == "input" or array is not None:
            need_array(op, name, array)  # type: ignore[arg-type]
    _C._check_devices(op, names, arrays)
    _C._check_rank(op, names, arrays, 0, 1, 8)
    times, (d,) = _need_int(op, "n", n), dims_of(op, _need_int(op, "dim", dim), input.ndim, input)
    wanted = list(input.shape)
    wanted[d] = -1
    for which, array in enumerate(arrays):
        if which and array is not None:
            _C._check_shape(op, names, arrays, which, wanted)
    if times < 0:
        raise RuntimeError(f"order must be non-negative but got {times}")
    if times == 0:
        return input, 0, d
    parts = [x for x in (prepend, input, append) if x is not None]
    return _C.cat(parts, d) if len(parts) > 1 else input, times, d


@takes_out
def diff(
    input: DeviceArray,
    n: int = 1,
    dim: int = -1,
    prepend: DeviceArray | None = None,
    append: DeviceArray | None = None,
    *,
    out: DeviceArray | None = None,
) -> DeviceArray:
    """What each entry of dim is more than the one before it, n times over; of bools whether they differ.

    prepend and append are joined to input first, unless n is 0. dtypes promote. Raises DeviceMismatchError,
    ShapeMismatchError, IndexError for a dim out of range, RuntimeError for a negative n.

    >>> dt.diff(dt.tensor([1, 4, 9]))
    DeviceArray([3, 5], device='cpu', dtype=int64)
    """
    result, times, d = _padded("diff", input, n, dim, prepend, append)
    if times == 0:
        return result.clone()
    size = result.shape[d]
    if times >= size:
        return result.narrow(d, 0, 0).clone()
    for _ in range(times):
        size = result.shape[d]
        later, before = result.narrow(d, 1, size - 1), result.narrow(d, 0, size - 1)
        result = later.logical_xor(before) if result.dtype == _C.bool else later - before
    return result


def _trapezoids(
    op: str, y: DeviceArray, x: DeviceArray | None, dx: float | None, dim: int
) -> tuple[DeviceArray, float, int]:
    """Twice the areas between neighbours along dim, but for the factor that comes second; dim from the front."""
    names, arrays = ("y", "x"), (y, x)
    need_array(op, "y", y)
    if x is not None:
        need_array(op, "x", x)
        if dx is not None:
            raise TypeError(f"{op}() takes x or dx, not both")
    _C._check_devices(op, names, arrays)
    width = 1 if dx is None else _need_number(op, "dx", dx)
    for which, array in enumerate(arrays):
        if array is not None and array.dtype == _C.bool:
            _C._fail_dtype(op, names, arrays, which, "a number")
    if not y.ndim:
        raise _C._explained(op, names, arrays, "dimension-out-of-range", IndexError("y has no dimensions"), 0)
    (d,) = dims_of(op, _need_int(op, "dim", dim), y.ndim, y, of="y")
    size = y.shape[d]
    heights = _of_floats(y)
    if x is not None:
        x = _steps(op, y, _of_floats(x), d)
    if size < 2:
        return heights.narrow(d, 0, 0), 1, d
    both = heights.narrow(d, 0, size - 1) + heights.narrow(d, 1, size - 1)
    return (both, width, d) if x is None else (both * x, 1, d)


def _of_floats(x: DeviceArray) -> DeviceArray:
    return x if x.dtype.is_floating_point else x.to(_C.get_default_dtype())


def _steps(op: str, y: DeviceArray, x: DeviceArray, d: int) -> DeviceArray:
    """The distances of the places in x, in the dimension d of y or a vector of its own."""
    size = y.shape[d]
    if x.ndim == 1:
        if x.shape[0] != size:
            _C._check_shape(op, ("y", "x"), (y, x), 1, [size])
        x = x.reshape([size if k == d else 1 for k in range(y.ndim)])
    else:
        _C._check_rank(op, ("y", "x"), (y, x), 1, y.ndim, y.ndim)
        if x.shape[d] != size:
            _C._check_shape(op, ("y", "x"), (y, x), 1, [size if k == d else -1 for k in range(y.ndim)])
        _C._check_broadcast(op, ("y", "x"), (y, x))
    return x.narrow(d, 1, size - 1) - x.narrow(d, 0, size - 1) if size > 1 else x


def trapezoid(y: DeviceArray, x: DeviceArray | None = None, *, dx: float | None = None, dim: int = -1) -> DeviceArray:
    """The area below y along dim by the trapezoidal rule: sum((y[i] + y[i + 1]) * (x[i + 1] - x[i])) / 2.

    x: the places, of the size of dim or broadcast with y; without it they are dx apart, 1 by default. Integers give the
    default float dtype. Raises DeviceMismatchError, ShapeMismatchError, DTypeMismatchError for bools, IndexError for a
    dim out of range.

    >>> dt.trapezoid(dt.tensor([1.0, 2.0, 3.0]))
    DeviceArray(4., device='cpu', dtype=float32)
    """
    areas, width, d = _trapezoids("trapezoid", y, x, dx, dim)
    return areas.sum(d) * (width / 2)


trapz = trapezoid  # its second name


def cumulative_trapezoid(
    y: DeviceArray, x: DeviceArray | None = None, *, dx: float | None = None, dim: int = -1
) -> DeviceArray:
    """The areas of trapezoid up to each place but the first: one element less along dim.

    Parameters and errors are those of trapezoid.

    >>> dt.cumulative_trapezoid(dt.tensor([1.0, 2.0, 3.0]))
    DeviceArray([1.5000, 4.0000], device='cpu', dtype=float32)
    """
    areas, width, d = _trapezoids("cumulative_trapezoid", y, x, dx, dim)
    return areas.cumsum(d) * (width / 2)


__all__ = [
    "adjoint",
    "cumulative_trapezoid",
    "diff",
    "fliplr",
    "flipud",
    "narrow_copy",
    "rot90",
    "tile",
    "trapezoid",
    "trapz",
]
METHODS = (
    tile,
    rot90,
    fliplr,
    flipud,
    adjoint,
    reshape_as,
    narrow_copy,
    unfold,
    diff,
)
