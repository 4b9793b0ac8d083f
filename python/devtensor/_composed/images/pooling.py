"""Pooling in one and three dimensions, adaptive maxima, norms of windows, and the way back from maxima."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias, overload

from devtensor import _C
from devtensor._C import DeviceArray, _need_bool, _need_int, _need_number
from devtensor._composed.arguments import widened
from devtensor._composed.images.convolutions import _need_positive, _need_room, sizes_of
from devtensor._dtypes.autocast import autocasts

_Size: TypeAlias = int | Sequence[int]


def _check_input(op: str, input: DeviceArray, dims: int) -> None:
    _C._check(op, ("input",), (input,))
    _C._check_rank(op, ("input",), (input,), 0, dims + 1, dims + 2)


class _Window:
    """The checked parameters of a pool of dims dimensions."""

    def __init__(
        self,
        op: str,
        input: DeviceArray,
        dims: int,
        kernel_size: Any,
        stride: Any,
        padding: Any,
        dilation: Any,
        ceil_mode: Any,
    ) -> None:
        _check_input(op, input, dims)
        self.kernel = sizes_of(op, "kernel_size", kernel_size, dims)
        given = stride is not None and not (isinstance(stride, (tuple, list)) and len(stride) == 0)
        self.stride = sizes_of(op, "stride", stride, dims) if given else self.kernel
        self.padding = sizes_of(op, "padding", padding, dims)
        self.dilation = sizes_of(op, "dilation", dilation, dims)
        self.ceil_mode = _need_bool(op, "ceil_mode", ceil_mode)
        _need_positive(op, "kernel_size", self.kernel)
        _need_positive(op, "stride", self.stride)
        _need_positive(op, "dilation", self.dilation)
        if any(not 0 <= p <= k // 2 for p, k in zip(self.padding, self.kernel, strict=True)):
            raise RuntimeError(
                f"{op}: pad should be at least 0 and at most half of effective kernel size: got "
                f"padding={self.padding}, kernel_size={self.kernel}"
            )
        reach = [d * (k - 1) + 1 for d, k in zip(self.dilation, self.kernel, strict=True)]
        size = input.shape[-dims:]
        padded = [n + 2 * p for n, p in zip(size, self.padding, strict=True)]
        _need_room(op, "kernel_size", kernel_size, [a + b for a, b in zip(padded, reach, strict=True)])
        rooms = [r - (s - 1 if self.ceil_mode else 0) for r, s in zip(reach, self.stride, strict=True)]
        if any(n == 0 or p < r for n, p, r in zip(size, padded, rooms, strict=True)):
            least = [max(r - 2 * p, 1) for r, p in zip(rooms, self.padding, strict=True)]
            wanted = [m if n < m else -1 for n, m in zip(size, least, strict=True)]
            _C._check_shape(op, ("input",), (input,), 0, [-1] * (input.ndim - dims) + wanted)

    def along(self, first: int, last: int | None = None) -> tuple[Any, ...]:
        """Of the dimensions from first to last: what max_pool2d takes. One dimension of three is down the columns of an
        image, an only one along its rows."""
        pick = slice(first, last)
        found = [self.kernel[pick], self.stride[pick], self.padding[pick], self.dilation[pick]]
        if len(found[0]) == 1:
            one = (1, 1, 0, 1)
            rows = len(self.kernel) == 1
            found = [(n, *sizes) if rows else (*sizes, n) for sizes, n in zip(found, one, strict=True)]
        return (*found, self.ceil_mode)


def _planes(x: DeviceArray) -> DeviceArray:
    """(N, C, D, H, W) or (C, D, H, W) as (N * C, D, H, W)."""
    return x.flatten(0, 1) if x.ndim == 5 else x


# ---------------------------------------------------------------- maxima


@overload
def max_pool1d(
    input: DeviceArray,
    kernel_size: _Size,
    stride: _Size | None = None,
    padding: _Size = 0,
    dilation: _Size = 1,
    ceil_mode: bool = False,
    return_indices: Literal[False] = False,
) -> DeviceArray: ...
@overload
def max_pool1d(
    input: DeviceArray,
    kernel_size: _Size,
    stride: _Size | None = None,
    padding: _Size = 0,
    dilation: _Size = 1,
    ceil_mode: bool = False,
    *,
    return_indices: Literal[True],
) -> tuple[DeviceArray, DeviceArray]: ...
def max_pool1d(
    input: DeviceArray,
    kernel_size: _Size,
    stride: _Size | None = None,
    padding: _Size = 0,
    dilation: _Size = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> DeviceArray | tuple[DeviceArray, DeviceArray]:
    """Largest element of each window of (N, C, L) or (C, L); with return_indices also where it was (int64, in L).

    Raises DTypeMismatchError for ints and bool, ShapeMismatchError for another rank or a window larger than the padded
    input, RuntimeError for numbers out of range.

    >>> F.max_pool1d(dt.tensor([[1.0, 3.0, 2.0, 4.0]]), 2)
    DeviceArray([[3., 4.]], device='cpu', dtype=float32)
    """
    window = _Window("max_pool1d", input, 1, kernel_size, stride, padding, dilation, ceil_mode)
    x, sizes = input.unsqueeze(-2), window.along(0)
    if not _need_bool("max_pool1d", "return_indices", return_indices):
        return _C.max_pool2d(x, *sizes).squeeze(-2)
    values, indices = _C.max_pool2d(x, *sizes, return_indices=True)
    return values.squeeze(-2), indices.squeeze(-2)


@overload
def max_pool3d(
    input: DeviceArray,
    kernel_size: _Size,
    stride: _Size | None = None,
    padding: _Size = 0,
    dilation: _Size = 1,
    ceil_mode: bool = False,
    return_indices: Literal[False] = False,
) -> DeviceArray: ...
@overload
def max_pool3d(
    input: DeviceArray,
    kernel_size: _Size,
    stride: _Size | None = None,
    padding: _Size = 0,
    dilation: _Size = 1,
    ceil_mode: bool = False,
    *,
    return_indices: Literal[True],
) -> tuple[DeviceArray, DeviceArray]: ...
def max_pool3d(
    input: DeviceArray,
    kernel_size: _Size,
    stride: _Size | None = None,
    padding: _Size = 0,
    dilation: _Size = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> DeviceArray | tuple[DeviceArray, DeviceArray]:
    """Largest element of each window of (N, C, D, H, W) or (C, D, H, W); with return_indices also where it was (int64,
    in D * H * W).

    The maxima of slices, then the maxima of these. Raises what max_pool1d does.

    >>> F.max_pool3d(dt.ones(1, 2, 4, 4, 4), 2).shape
    (1, 2, 2, 2, 2)
    """
    window = _Window("max_pool3d", input, 3, kernel_size, stride, padding, dilation, ceil_mode)
    indexed = _need_bool("max_pool3d", "return_indices", return_indices)
    return _max_of_volume(input, window.along(1), window.along(0, 1), indexed)


def _max_of_volume(
    input: DeviceArray, flat: tuple[Any, ...], deep: tuple[Any, ...], indexed: bool
) -> DeviceArray | tuple[DeviceArray, DeviceArray]:
    """The pool over H and W, then that over D."""
    x = _planes(input)
    plane = x.shape[-1] * x.shape[-2]
    slices, places = _C.max_pool2d(x, *flat, return_indices=True) if indexed else (_C.max_pool2d(x, *flat), x)
    height, width = slices.shape[-2:]
    columns = slices.flatten(2).unsqueeze(1)
    if not indexed:
        values = _C.max_pool2d(columns, *deep)
        return values.reshape(*input.shape[:-3], values.shape[-2], height, width)
    values, found = _C.max_pool2d(columns, *deep, return_indices=True)
    shape = (*input.shape[:-3], values.shape[-2], height, width)
    found = found.flatten(1)
    indices = places.flatten(1).gather(1, found) + found // max(height * width, 1) * plane
    return values.reshape(shape), indices.reshape(shape)


# ---------------------------------------------------------------- means


def avg_pool1d(
    input: DeviceArray,
    kernel_size: _Size,
    stride: _Size | None = None,
    padding: _Size = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> DeviceArray:
    """Mean of each window of (N, C, L) or (C, L).

    Raises DTypeMismatchError for ints and bool, ShapeMismatchError for another rank or a window larger than the padded
    input, RuntimeError for numbers out of range.

    >>> F.avg_pool1d(dt.tensor([[1.0, 3.0, 2.0, 4.0]]), 2)
    DeviceArray([[2., 3.]], device='cpu', dtype=float32)
    """
    window = _Window("avg_pool1d", input, 1, kernel_size, stride, padding, 1, ceil_mode)
    counted = _need_bool("avg_pool1d", "count_include_pad", count_include_pad)
    kernel, step, around, _, ceil = window.along(0)
    return _C.avg_pool2d(input.unsqueeze(-2), kernel, step, around, ceil, counted).squeeze(-2)


@autocasts
def avg_pool3d(
    input: DeviceArray,
    kernel_size: _Size,
    stride: _Size | None = None,
    padding: _Size = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> DeviceArray:
    """Mean of each window of (N, C, D, H, W) or (C, D, H, W), or its sum / divisor_override.

    The means of slices, then the means of these; in float32 for the half types. Raises what avg_pool1d does.

    >>> F.avg_pool3d(dt.ones(1, 2, 4, 4, 4), 2).shape
    (1, 2, 2, 2, 2)
    """
    op = "avg_pool3d"
    window = _Window(op, input, 3, kernel_size, stride, padding, 1, ceil_mode)
    counted = _need_bool(op, "count_include_pad", count_include_pad)
    divisor = None if divisor_override is None else _need_int(op, "divisor_override", divisor_override)
    if divisor == 0:
        raise ValueError("avg_pool3d: divisor_override must not be zero")
    one = None if divisor is None else 1
    kernel, step, around, _, ceil = window.along(1)
    slices = _C.avg_pool2d(_planes(widened(input)), kernel, step, around, ceil, counted, one)
    height, width = slices.shape[-2:]
    kernel, step, around, _, ceil = window.along(0, 1)
    result = _C.avg_pool2d(slices.flatten(2).unsqueeze(1), kernel, step, around, ceil, counted, divisor)
    return result.reshape(*input.shape[:-3], result.shape[-2], height, width).to(input.dtype)


# ---------------------------------------------------------------- windows that follow from the result's size


def _adaptive_sizes(op: str, input: DeviceArray, output_size: Any, dims: int) -> tuple[int, ...]:
    _check_input(op, input, dims)
    given = tuple(output_size) if isinstance(output_size, (tuple, list)) else (output_size,)
    given = given * dims if len(given) == 1 else given
    if len(given) != dims:
        raise ValueError(f"{op}(): argument 'output_size' must be an int or {dims} ints or None, not {len(given)}")
    own = input.shape[-dims:]
    sizes = tuple(n if g is None else _need_int(op, "output_size", g) for n, g in zip(own, given, strict=True))
    if any(size < 0 for size in sizes):
        raise RuntimeError(f"{op}: elements of output_size must be greater than or equal to 0: got {sizes}")
    if any(n == 0 and size > 0 for n, size in zip(own, sizes, strict=True)):
        _C._check_shape(op, ("input",), (input,), 0, [-1] * (input.ndim - dims) + [max(n, 1) for n in own])
    return sizes


def adaptive_avg_pool1d(input: DeviceArray, output_size: int | Sequence[int | None] | None) -> DeviceArray:
    """Means of windows chosen so that the result has output_size columns; (N, C, L) or (C, L).

    Raises DTypeMismatchError, ShapeMismatchError, RuntimeError for a negative size.

    >>> F.adaptive_avg_pool1d(dt.tensor([[1.0, 3.0, 2.0, 4.0]]), 2)
    DeviceArray([[2., 3.]], device='cpu', dtype=float32)
    """
    (size,) = _adaptive_sizes("adaptive_avg_pool1d", input, output_size, 1)
    return _C.adaptive_avg_pool2d(input.unsqueeze(-2), (1, size)).squeeze(-2)


def adaptive_avg_pool3d(input: DeviceArray, output_size: int | Sequence[int | None] | None) -> DeviceArray:
    """Means of windows chosen so that the result has output_size (None keeps a size); (N, C, D, H, W) or (C, D, H, W).

    The means of slices, then the means of these; in float32 for the half types. Raises DTypeMismatchError,
    ShapeMismatchError, RuntimeError for a negative size.

    >>> F.adaptive_avg_pool3d(dt.ones(1, 2, 4, 6, 8), (2, None, 1)).shape
    (1, 2, 2, 6, 1)
    """
    depth, height, width = _adaptive_sizes("adaptive_avg_pool3d", input, output_size, 3)
    slices = _C.adaptive_avg_pool2d(_planes(widened(input)), (height, width))
    result = _C.adaptive_avg_pool2d(slices.flatten(2).unsqueeze(1), (depth, height * width))
    return result.reshape(*input.shape[:-3], depth, height, width).to(input.dtype)


def _spread(x: DeviceArray, dim: int, size: int) -> tuple[DeviceArray, int, DeviceArray | None]:
    """x with windows of one width side by side along dim, that width, and where the elements stood before.

    A window that is shorter holds its last element more than once, which changes no maximum.
    """
    own = x.shape[dim]
    if size == 0 or own % size == 0:
        return x, own // max(size, 1), None
    width = own // size + 2 if own > size else 2
    number = _C.arange(size, device=x.device)
    first, last = number * own // size, ((number + 1) * own - 1) // size
    places = _C.minimum(first.unsqueeze(1) + _C.arange(width, device=x.device), last.unsqueeze(1)).flatten()
    return x.index_select(dim, places), width, places


def _adaptive_max(op: str, input: DeviceArray, output_size: Any, dims: int, return_indices: Any) -> Any:
    sizes = _adaptive_sizes(op, input, output_size, dims)
    indexed = _need_bool(op, "return_indices", return_indices)
    shape = (*input.shape[:-dims], *sizes)
    if 0 in sizes:
        empty = input.new_empty(shape)
        return (empty, _C.empty(shape, dtype=_C.int64, device=input.device)) if indexed else empty
    own, x, kernel, places = input.shape[-dims:], input, [], []
    for d, size in enumerate(sizes):
        x, width, where = _spread(x, input.ndim - dims + d, size)
        kernel.append(width)
        places.append(where)
    if dims == 3:
        flat, deep = (tuple(kernel[1:]),), ((kernel[0], 1),)
        found = _max_of_volume(x, flat, deep, indexed)
    elif dims == 1:
        x = x.unsqueeze(-2)
        found = _C.max_pool2d(x, (1, kernel[0]), return_indices=True) if indexed else _C.max_pool2d(x, (1, kernel[0]))
    else:
        found = _C.max_pool2d(x, tuple(kernel), return_indices=True) if indexed else _C.max_pool2d(x, tuple(kernel))
    if not isinstance(found, tuple):
        return found.reshape(shape)
    values, at = found
    return values.reshape(shape), _moved_back(at.reshape(shape), sizes, kernel, own, places)


def _moved_back(
    at: DeviceArray,
    sizes: Sequence[int],
    kernel: Sequence[int],
    own: Sequence[int],
    places: Sequence[DeviceArray | None],
) -> DeviceArray:
    """Positions among the windows of _spread as positions in the input."""
    if all(where is None for where in places):
        return at
    result, step = None, 1
    for size, width, n, where in reversed(list(zip(sizes, kernel, own, places, strict=True))):
        along, at = at % (size * width), at // (size * width)
        part = (along if where is None else where.take(along)) * step
        result = part if result is None else result + part
        step *= n
    assert result is not None
    return result


@overload
def adaptive_max_pool1d(
    input: DeviceArray, output_size: int | Sequence[int | None] | None, return_indices: Literal[False] = False
) -> DeviceArray: ...
@overload
def adaptive_max_pool1d(
    input: DeviceArray, output_size: int | Sequence[int | None] | None, return_indices: Literal[True]
) -> tuple[DeviceArray, DeviceArray]: ...
def adaptive_max_pool1d(
    input: DeviceArray, output_size: int | Sequence[int | None] | None, return_indices: bool = False
) -> Any:
    """Maxima of windows chosen so that the result has output_size columns; (N, C, L) or (C, L). With return_indices
    also where they were (int64, in L).

    Raises DTypeMismatchError, ShapeMismatchError, RuntimeError for a negative size.

    >>> F.adaptive_max_pool1d(dt.tensor([[1.0, 3.0, 2.0, 4.0]]), 2)
    DeviceArray([[3., 4.]], device='cpu', dtype=float32)
    """
    return _adaptive_max("adaptive_max_pool1d", input, output_size, 1, return_indices)


@overload
def adaptive_max_pool2d(
    input: DeviceArray, output_size: int | Sequence[int | None] | None, return_indices: Literal[False] = False
) -> DeviceArray: ...
@overload
def adaptive_max_pool2d(
    input: DeviceArray, output_size: int | Sequence[int | None] | None, return_indices: Literal[True]
) -> tuple[DeviceArray, DeviceArray]: ...
def adaptive_max_pool2d(
    input: DeviceArray, output_size: int | Sequence[int | None] | None, return_indices: bool = False
) -> Any:
    """Maxima of windows chosen so that the result has output_size (None keeps a size); (N, C, H, W) or (C, H, W). With
    return_indices also where they were (int64, in H * W).

    Raises DTypeMismatchError, ShapeMismatchError, RuntimeError for a negative size.

    >>> F.adaptive_max_pool2d(dt.ones(1, 2, 7, 9), (3, None)).shape
    (1, 2, 3, 9)
    """
    return _adaptive_max("adaptive_max_pool2d", input, output_size, 2, return_indices)


@overload
def adaptive_max_pool3d(
    input: DeviceArray, output_size: int | Sequence[int | None] | None, return_indices: Literal[False] = False
) -> DeviceArray: ...
@overload
def adaptive_max_pool3d(
    input: DeviceArray, output_size: int | Sequence[int | None] | None, return_indices: Literal[True]
) -> tuple[DeviceArray, DeviceArray]: ...
def adaptive_max_pool3d(
    input: DeviceArray, output_size: int | Sequence[int | None] | None, return_indices: bool = False
) -> Any:
    """Maxima of windows chosen so that the result has output_size (None keeps a size); (N, C, D, H, W) or (C, D, H, W).
    With return_indices also where they were (int64, in D * H * W).

    Raises DTypeMismatchError, ShapeMismatchError, RuntimeError for a negative size.

    >>> F.adaptive_max_pool3d(dt.ones(1, 2, 7, 9, 4), 3).shape
    (1, 2, 3, 3, 3)
    """
    return _adaptive_max("adaptive_max_pool3d", input, output_size, 3, return_indices)


# ---------------------------------------------------------------- norms, and the way back


def lp_pool1d(
    input: DeviceArray,
    norm_type: float,
    kernel_size: _Size,
    stride: _Size | None = None,
    ceil_mode: bool = False,
) -> DeviceArray:
    """(sum of x ** norm_type) ** (1 / norm_type) of each window of (N, C, L) or (C, L).

    Raises DTypeMismatchError, ShapeMismatchError, RuntimeError for numbers out of range.

    >>> F.lp_pool1d(dt.tensor([[3.0, 4.0]]), 2, 2)
    DeviceArray([[5.]], device='cpu', dtype=float32)
    """
    op = "lp_pool1d"
    window = _Window(op, input, 1, kernel_size, stride, 0, 1, ceil_mode)
    power = _need_power(op, norm_type)
    kernel, step, around, _, ceil = window.along(0)
    means = _C.avg_pool2d(input.pow(power).unsqueeze(-2), kernel, step, around, ceil).squeeze(-2)
    return _norm_of(means, kernel[1], power)


def lp_pool2d(
    input: DeviceArray,
    norm_type: float,
    kernel_size: _Size,
    stride: _Size | None = None,
    ceil_mode: bool = False,
) -> DeviceArray:
    """(sum of x ** norm_type) ** (1 / norm_type) of each window of (N, C, H, W) or (C, H, W).

    Raises DTypeMismatchError, ShapeMismatchError, RuntimeError for numbers out of range.

    >>> F.lp_pool2d(dt.tensor([[[3.0, 4.0]]]), 2, (1, 2))
    DeviceArray([[[5.]]], device='cpu', dtype=float32)
    """
    op = "lp_pool2d"
    window = _Window(op, input, 2, kernel_size, stride, 0, 1, ceil_mode)
    power = _need_power(op, norm_type)
    kernel, step, around, _, ceil = window.along(0)
    return _norm_of(_C.avg_pool2d(input.pow(power), kernel, step, around, ceil), kernel[0] * kernel[1], power)


def lp_pool3d(
    input: DeviceArray,
    norm_type: float,
    kernel_size: _Size,
    stride: _Size | None = None,
    ceil_mode: bool = False,
) -> DeviceArray:
    """(sum of x ** norm_type) ** (1 / norm_type) of each window of (N, C, D, H, W) or (C, D, H, W).

    Raises DTypeMismatchError, ShapeMismatchError, RuntimeError for numbers out of range.

    >>> F.lp_pool3d(dt.tensor([[[[3.0, 4.0]]]]), 2, (1, 1, 2))
    DeviceArray([[[[5.]]]], device='cpu', dtype=float32)
    """
    op = "lp_pool3d"
    window = _Window(op, input, 3, kernel_size, stride, 0, 1, ceil_mode)
    power = _need_power(op, norm_type)
    means = avg_pool3d(input.pow(power), window.kernel, window.stride, 0, window.ceil_mode)
    return _norm_of(means, math.prod(window.kernel), power)


def _need_power(op: str, norm_type: Any) -> float:
    power = _need_number(op, "norm_type", norm_type)
    if power == 0:
        raise RuntimeError(f"{op}: norm_type must not be 0")
    return power


def _norm_of(means: DeviceArray, count: int, power: float) -> DeviceArray:
    return (means.sign() * means.abs().relu() * count).pow(1.0 / power)


__all__ = ["adaptive_avg_pool1d", "avg_pool1d", "max_pool1d", "max_pool3d"]
