"""Channels that become pixels, and back; windows that become columns, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from devtensor import _C
from devtensor._C import DeviceArray, _need_int
from devtensor._composed.arguments import need_array, widened
from devtensor._composed.images.convolutions import _need_positive, _need_room, sizes_of
from devtensor._composed.shapes.arrange import pad

_Size: TypeAlias = int | Sequence[int]


def _need_multiple(op: str, input: DeviceArray, dim: int, factor: int) -> None:
    size = input.shape[dim]
    if size % factor:
        wanted = [-1] * input.ndim
        wanted[dim] = (size // factor + 1) * factor
        _C._check_shape(op, ("input",), (input,), 0, wanted)


def pixel_shuffle(input: DeviceArray, upscale_factor: int) -> DeviceArray:
    """(*, C * r * r, H, W) as (*, C, H * r, W * r): each r * r channels become the pixels of a square.

    r is upscale_factor. Raises ShapeMismatchError, RuntimeError for a factor that is not positive.

    >>> F.pixel_shuffle(dt.arange(4).reshape(4, 1, 1), 2)
    DeviceArray([[[0, 1],
                  [2, 3]]], device='cpu', dtype=int64)
    """
    need_array("pixel_shuffle", "input", input)
    factor = _need_int("pixel_shuffle", "upscale_factor", upscale_factor)
    _C._check_rank("pixel_shuffle", ("input",), (input,), 0, 3, 6)
    if factor <= 0:
        raise RuntimeError(f"pixel_shuffle expects a positive upscale_factor, but got {factor}")
    if factor >= 2**31:
        raise RuntimeError(f"pixel_shuffle: upscale_factor={factor} is too large")
    _need_multiple("pixel_shuffle", input, -3, factor * factor)
    height, width = input.shape[-2:]
    lead, channels = input.shape[:-3], input.shape[-3] // factor**2
    squares = input.reshape(-1 if input.numel() else _product(lead), channels, factor, factor, height, width)
    result = squares.permute(0, 1, 4, 2, 5, 3).reshape(*lead, channels, height * factor, width * factor)
    return result.clone() if factor == 1 or height == width == 1 else result  # never a view


def pixel_unshuffle(input: DeviceArray, downscale_factor: int) -> DeviceArray:
    """(*, C, H * r, W * r) as (*, C * r * r, H, W): what pixel_shuffle undoes.

    r is downscale_factor. Raises ShapeMismatchError, RuntimeError for a factor that is not positive.

    >>> F.pixel_unshuffle(dt.tensor([[[0, 1], [2, 3]]]), 2).flatten()
    DeviceArray([0, 1, 2, 3], device='cpu', dtype=int64)
    """
    need_array("pixel_unshuffle", "input", input)
    factor = _need_int("pixel_unshuffle", "downscale_factor", downscale_factor)
    _C._check_rank("pixel_unshuffle", ("input",), (input,), 0, 3, 6)
    if factor <= 0:
        raise RuntimeError(f"pixel_unshuffle expects a positive downscale_factor, but got {factor}")
    _need_multiple("pixel_unshuffle", input, -2, factor)
    _need_multiple("pixel_unshuffle", input, -1, factor)
    lead, channels = input.shape[:-3], input.shape[-3]
    height, width = input.shape[-2] // factor, input.shape[-1] // factor
    squares = input.reshape(-1 if input.numel() else _product(lead), channels, height, factor, width, factor)
    result = squares.permute(0, 1, 3, 5, 2, 4).reshape(*lead, channels * factor**2, height, width)
    return result.clone() if factor == 1 or height == width == 1 else result  # never a view


def channel_shuffle(input: DeviceArray, groups: int) -> DeviceArray:
    """Channel i * C / groups + j of (N, C, *) goes to j * groups + i: one from each group in turn.

    Raises ShapeMismatchError, RuntimeError for groups that are not positive.

    >>> F.channel_shuffle(dt.arange(4).reshape(1, 4, 1), 2).flatten()
    DeviceArray([0, 2, 1, 3], device='cpu', dtype=int64)
    """
    need_array("channel_shuffle", "input", input)
    groups = _need_int("channel_shuffle", "groups", groups)
    _C._check_rank("channel_shuffle", ("input",), (input,), 0, 3, 7)
    if groups <= 0:
        raise RuntimeError(f"Number of groups to divide channels in must be positive. Value of groups: {groups}")
    _need_multiple("channel_shuffle", input, 1, groups)
    n, channels = input.shape[:2]
    grouped = input.reshape(n, groups, channels // groups, *input.shape[2:])
    return grouped.transpose(1, 2).reshape(input.shape)


def _product(sizes: Sequence[int]) -> int:
    result = 1
    for size in sizes:
        result *= size
    return result


# ---------------------------------------------------------------- windows


class _Windows:
    """The checked parameters of unfold and fold, and where windows lie in an image of this size."""

    def __init__(
        self, op: str, size: Sequence[int], kernel_size: Any, dilation: Any, padding: Any, stride: Any
    ) -> None:
        self.kernel = sizes_of(op, "kernel_size", kernel_size, 2)
        self.dilation = sizes_of(op, "dilation", dilation, 2)
        self.padding = sizes_of(op, "padding", padding, 2)
        self.stride = sizes_of(op, "stride", stride, 2)
        for name, sizes in (("kernel_size", self.kernel), ("dilation", self.dilation), ("stride", self.stride)):
            _need_positive(op, name, sizes)
        if any(p < 0 for p in self.padding):
            raise RuntimeError(f"{op}: padding should be non-negative, but got padding={self.padding}")
        self.reach = [d * (k - 1) + 1 for d, k in zip(self.dilation, self.kernel, strict=True)]
        self.padded = [n + 2 * p for n, p in zip(size, self.padding, strict=True)]
        _need_room(op, "dilation", dilation, self.reach)
        _need_room(op, "padding", padding, self.padded)
        rooms = zip(self.padded, self.reach, self.stride, strict=True)
        self.counts = tuple((p - r) // s + 1 if p >= r else 0 for p, r, s in rooms)

    def places(self, i: int, device: _C.device) -> DeviceArray:
        """Rows (i = 0) or columns of the padded image: one for each tap and window."""
        taps = _C.arange(self.kernel[i], device=device) * (self.dilation[i] if self.kernel[i] > 1 else 0)
        steps = _C.arange(self.counts[i], device=device) * (self.stride[i] if self.counts[i] > 1 else 0)
        return (taps.unsqueeze(1) + steps).flatten()

    @property
    def ends(self) -> tuple[int, int, int, int]:
        return (self.padding[1], self.padding[1], self.padding[0], self.padding[0])


def unfold(
    input: DeviceArray, kernel_size: _Size, dilation: _Size = 1, padding: _Size = 0, stride: _Size = 1
) -> DeviceArray:
    """The windows of (N, C, H, W) or (C, H, W) as columns: (N, C * R * S, windows) or (C * R * S, windows).

    Raises DTypeMismatchError for ints and bool, ShapeMismatchError for another rank or a window larger than the padded
    input, RuntimeError for numbers out of range.

    >>> F.unfold(dt.tensor([[[1.0, 2.0, 3.0]]]), (1, 2))
    DeviceArray([[1., 2.],
                 [2., 3.]], device='cpu', dtype=float32)
    """
    _C._check("unfold", ("input",), (input,))
    _C._check_rank("unfold", ("input",), (input,), 0, 3, 4)
    windows = _Windows("unfold", input.shape[-2:], kernel_size, dilation, padding, stride)
    if 0 in windows.counts or 0 in input.shape[-3:]:
        least = [max(r - 2 * p, 1) for r, p in zip(windows.reach, windows.padding, strict=True)]
        wanted = [m if n < m else -1 for n, m in zip(input.shape[-2:], least, strict=True)]
        channels = -1 if input.shape[-3] else 1
        _C._check_shape("unfold", ("input",), (input,), 0, [-1] * (input.ndim - 3) + [channels, *wanted])
    x = input if input.ndim == 4 else input.unsqueeze(0)
    x = pad(x, windows.ends) if any(windows.padding) else x
    (r, s), (p, q) = windows.kernel, windows.counts
    found = x.index_select(2, windows.places(0, x.device)).index_select(3, windows.places(1, x.device))
    n, channels = x.shape[:2]
    columns = found.reshape(n, channels, r, p, s, q).permute(0, 1, 2, 4, 3, 5)
    result = columns.reshape(n, channels * r * s, p * q)
    return result if input.ndim == 4 else result.squeeze(0)


def fold(
    input: DeviceArray,
    output_size: _Size,
    kernel_size: _Size,
    dilation: _Size = 1,
    padding: _Size = 0,
    stride: _Size = 1,
) -> DeviceArray:
    """Windows, the columns of (N, C * R * S, windows), added up where they lie in images (N, C, *output_size).

    Without N too. Sums are formed in float32 for the half types. Raises DTypeMismatchError for ints and bool,
    ShapeMismatchError for sizes that do not fit, RuntimeError for numbers out of range.

    >>> F.fold(dt.ones(2, 2), (1, 3), (1, 2))
    DeviceArray([[[1., 2., 1.]]], device='cpu', dtype=float32)
    """
    _C._check("fold", ("input",), (input,))
    _C._check_rank("fold", ("input",), (input,), 0, 2, 3)
    size = sizes_of("fold", "output_size", output_size, 2)
    _need_positive("fold", "output_size", size)
    windows = _Windows("fold", size, kernel_size, dilation, padding, stride)
    (r, s), (p, q) = windows.kernel, windows.counts
    if p * q == 0:
        raise RuntimeError(f"fold: output_size={size} has no window of kernel_size={windows.kernel}")
    lead = [-1] * (input.ndim - 2)
    rows = input.shape[-2]
    if rows == 0 or rows % (r * s) or input.shape[-1] != p * q:
        _C._check_shape("fold", ("input",), (input,), 0, [*lead, max(-(-rows // (r * s)), 1) * r * s, p * q])
    x = widened(input if input.ndim == 3 else input.unsqueeze(0))
    n, channels = x.shape[0], rows // (r * s)
    columns = x.reshape(n, channels, r, s, p, q).permute(2, 4, 0, 1, 3, 5).reshape(r * p, n * channels, s * q)
    height, width = windows.padded
    tall = _zeros(x, height, n * channels, s * q).index_add(0, windows.places(0, x.device), columns)
    whole = _zeros(x, width, height, n * channels).index_add(0, windows.places(1, x.device), tall.permute(2, 0, 1))
    result = whole.permute(2, 1, 0).narrow(1, windows.padding[0], size[0]).narrow(2, windows.padding[1], size[1])
    result = result.reshape(n, channels, *size).to(input.dtype).contiguous()
    return result if input.ndim == 3 else result.squeeze(0)


def _zeros(like: DeviceArray, *shape: int) -> DeviceArray:
    return _C.zeros(shape, dtype=like.dtype, device=like.device)


__all__ = ["channel_shuffle", "pixel_shuffle", "pixel_unshuffle"]
