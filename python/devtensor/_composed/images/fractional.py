"""Fractional max pooling: windows at steps that are drawn between two sizes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

from devtensor import _C
from devtensor._C import DeviceArray, _need_bool, _need_number
from devtensor._composed.arguments import need_array
from devtensor._composed.images.convolutions import _need_positive, sizes_of

_Size: TypeAlias = int | Sequence[int]


def output_sizes(op: str, dims: int, own: Sequence[int], output_size: Any, output_ratio: Any) -> tuple[int, ...]:
    """The sizes of the result, given or as shares of those of input. Raises ValueError for both or none of them."""
    if (output_size is None) == (output_ratio is None):
        raise ValueError(f"{op} requires specifying either an output_size or an output_ratio, and not both")
    if output_size is not None:
        return sizes_of(op, "output_size", output_size, dims)
    given = (output_ratio,) * dims if not isinstance(output_ratio, (tuple, list)) else tuple(output_ratio)
    if len(given) != dims:
        raise ValueError(f"{op} requires output_ratio to either be a single number or tuple of {dims} numbers.")
    ratios = [_need_number(op, "output_ratio", ratio) for ratio in given]
    if not all(0 < ratio < 1 for ratio in ratios):
        raise ValueError(f"output_ratio must be between 0 and 1 (got {_C._shown(tuple(ratios))})")
    return tuple(int(n * ratio) for n, ratio in zip(own, ratios, strict=True))


def _begins(samples: DeviceArray, own: int, size: int, kernel: int) -> DeviceArray:
    """Where the windows (rows, size) of one dimension begin, by one number in [0, 1) for each row."""
    last = _C.full((samples.shape[0], 1), own - kernel, dtype=_C.int64, device=samples.device)
    if size == 1:
        return last
    alpha = _C.full((), own - kernel, dtype=samples.dtype, device=samples.device) / (size - 1)
    places = _C.arange(size - 1, dtype=samples.dtype, device=samples.device)
    share = samples.unsqueeze(1)
    begins = ((places + share) * alpha).to(_C.int64) - (share * alpha).to(_C.int64)
    return _C.cat([begins, last], 1)


def _pooled(
    op: str, dims: int, input: DeviceArray, kernel_size: Any, output_size: Any, output_ratio: Any, samples: Any
) -> tuple[DeviceArray, DeviceArray]:
    names, arrays = ("input", "_random_samples"), (input, samples)
    if samples is not None:
        need_array(op, "_random_samples", samples)
    _C._check(op, names, arrays)
    _C._check_rank(op, names, arrays, 0, dims + 1, dims + 2)
    kernel = sizes_of(op, "kernel_size", kernel_size, dims)
    _need_positive(op, "kernel_size", kernel)
    own = input.shape[-dims:]
    sizes = output_sizes(op, dims, own, output_size, output_ratio)
    _need_positive(op, "output_size", sizes)
    lead = input.shape[:-dims]
    if any(size + k - 1 > n for size, k, n in zip(sizes, kernel, own, strict=True)):
        least = [size + k - 1 if size + k - 1 > n else -1 for size, k, n in zip(sizes, kernel, own, strict=True)]
        _C._check_shape(op, names, arrays, 0, [*[-1] * len(lead), *least])
    batch = (lead if len(lead) == 2 else (1, *lead)) + (dims,)
    if samples is None:
        samples = _C.rand(batch, dtype=input.dtype, device=input.device)
    _C._check_shape(op, names, (input, samples), 1, batch)
    rows = math.prod(lead)
    drawn = samples.detach().reshape(rows, dims)
    order = (1, 0) if dims == 2 else (0, 1, 2)  # the first number of an image is that of its width
    places = _C.zeros((rows,) + (1, 1) * dims, dtype=_C.int64, device=input.device)
    for d in range(dims):
        begins = _begins(drawn.select(1, order[d]), own[d], sizes[d], kernel[d])
        along = begins.unsqueeze(2) + _C.arange(kernel[d], device=input.device)
        shape = [rows, *[1] * (2 * dims)]
        shape[1 + d], shape[1 + dims + d] = sizes[d], kernel[d]
        places = places * own[d] + along.reshape(shape)
    count, width = math.prod(sizes), math.prod(kernel)
    windows = places.reshape(rows, count, width)
    flat = input.reshape(rows, math.prod(own))
    largest = flat.detach().gather(1, windows.reshape(rows, count * width)).reshape(rows, count, width).argmax(2, True)
    indices = windows.gather(2, largest).squeeze(2)
    shape = [*lead, *sizes]
    return flat.gather(1, indices).reshape(shape), indices.reshape(shape)


def fractional_max_pool2d_with_indices(
    input: DeviceArray,
    kernel_size: _Size,
    output_size: _Size | None = None,
    output_ratio: float | Sequence[float] | None = None,
    return_indices: bool = False,
    _random_samples: DeviceArray | None = None,
) -> tuple[DeviceArray, DeviceArray]:
    """fractional_max_pool2d, and the index of each maximum in its image, as int64.

    >>> F.fractional_max_pool2d_with_indices(dt.ones(1, 4, 4), 2, output_size=3)[1].shape
    (1, 3, 3)
    """
    op = "fractional_max_pool2d_with_indices"
    _need_bool(op, "return_indices", return_indices)
    return _pooled(op, 2, input, kernel_size, output_size, output_ratio, _random_samples)


def fractional_max_pool2d(
    input: DeviceArray,
    kernel_size: _Size,
    output_size: _Size | None = None,
    output_ratio: float | Sequence[float] | None = None,
    return_indices: bool = False,
    _random_samples: DeviceArray | None = None,
) -> Any:
    """The maxima of windows of (N, C, H, W) or (C, H, W) that begin at places which are drawn.

    There are output_size of them, or a share output_ratio of the sizes. _random_samples (N, C, 2), in [0, 1), are the
    numbers to use. return_indices: a pair, with the index of each maximum in its image. Floats. Raises
    DTypeMismatchError, ShapeMismatchError, ValueError for both or none of output_size and output_ratio.

    >>> F.fractional_max_pool2d(dt.ones(1, 4, 4), 2, output_size=3).shape
    (1, 3, 3)
    """
    op = "fractional_max_pool2d"
    both = _need_bool(op, "return_indices", return_indices)
    found = _pooled(op, 2, input, kernel_size, output_size, output_ratio, _random_samples)
    return found if both else found[0]


def fractional_max_pool3d_with_indices(
    input: DeviceArray,
    kernel_size: _Size,
    output_size: _Size | None = None,
    output_ratio: float | Sequence[float] | None = None,
    return_indices: bool = False,
    _random_samples: DeviceArray | None = None,
) -> tuple[DeviceArray, DeviceArray]:
    """fractional_max_pool3d, and the index of each maximum in its volume, as int64.

    >>> F.fractional_max_pool3d_with_indices(dt.ones(1, 4, 4, 4), 2, output_size=3)[1].shape
    (1, 3, 3, 3)
    """
    op = "fractional_max_pool3d_with_indices"
    _need_bool(op, "return_indices", return_indices)
    return _pooled(op, 3, input, kernel_size, output_size, output_ratio, _random_samples)


def fractional_max_pool3d(
    input: DeviceArray,
    kernel_size: _Size,
    output_size: _Size | None = None,
    output_ratio: float | Sequence[float] | None = None,
    return_indices: bool = False,
    _random_samples: DeviceArray | None = None,
) -> Any:
    """The maxima of windows of (N, C, D, H, W) or (C, D, H, W) that begin at places which are drawn.

    Parameters and errors are those of fractional_max_pool2d; _random_samples are (N, C, 3).

    >>> F.fractional_max_pool3d(dt.ones(1, 4, 4, 4), 2, output_ratio=0.5).shape
    (1, 2, 2, 2)
    """
    op = "fractional_max_pool3d"
    both = _need_bool(op, "return_indices", return_indices)
    found = _pooled(op, 3, input, kernel_size, output_size, output_ratio, _random_samples)
    return found if both else found[0]
