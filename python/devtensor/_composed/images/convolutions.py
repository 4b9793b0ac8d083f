"""Convolutions in three dimensions, and transposed ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

from devtensor import _C
from devtensor._C import DeviceArray, _need_int, _need_ints, conv2d
from devtensor._composed.arguments import need_array, widened
from devtensor._composed.shapes.arrange import pad
from devtensor._dtypes.autocast import autocasts

_Size: TypeAlias = int | Sequence[int]

_NAMES = ("input", "weight", "bias")
_MOST = 2**63


def sizes_of(op: str, name: str, value: Any, dims: int) -> tuple[int, ...]:
    """value, an int or one for each dimension. Raises ValueError for another number of them."""
    ints = _need_ints(op, name, value)
    if len(ints) not in (1, dims):
        raise ValueError(f"{op}(): argument '{name}' must be an int or {dims} of them, not {len(ints)}")
    return ints * dims if len(ints) == 1 else ints


def _need_positive(op: str, name: str, sizes: tuple[int, ...]) -> None:
    if any(size <= 0 for size in sizes):
        raise RuntimeError(f"{op}: {name} must be greater than zero, but got {name}={sizes}")


def _need_room(op: str, name: str, value: Any, sizes: Sequence[int]) -> None:
    if any(size >= _MOST for size in sizes):
        raise RuntimeError(f"{op}: {name}={value} is too large: sizes of the padded input must fit in 64 bits")


# ---------------------------------------------------------------- three dimensions


@autocasts
def conv3d(
    input: DeviceArray,
    weight: DeviceArray,
    bias: DeviceArray | None = None,
    stride: _Size = 1,
    padding: _Size | Literal["same", "valid"] = 0,
    dilation: _Size = 1,
    groups: int = 1,
) -> DeviceArray:
    """Cross-correlation of volumes: input (N, C, D, H, W) or (C, D, H, W), weight (K, C / groups, R, S, T), bias (K).

    The slices that a window covers become channels of a conv2d, so the input is copied R times over the stride.
    Floats of one dtype on one device. Raises DeviceMismatchError, DTypeMismatchError, ShapeMismatchError, RuntimeError
    for other parameters that do not fit.

    >>> F.conv3d(dt.ones(1, 2, 4, 8, 8), dt.ones(3, 2, 3, 3, 3), padding=1).shape
    (1, 3, 4, 8, 8)
    """
    arrays = (input, weight, bias)
    need_array("conv3d", "weight", weight)
    _C._check("conv3d", _NAMES, arrays, convolution=True)
    _C._check_rank("conv3d", _NAMES, arrays, 0, 4, 5)
    _C._check_rank("conv3d", _NAMES, arrays, 1, 5, 5)
    groups = _need_int("conv3d", "groups", groups)
    _C._check_conv1d("conv3d", _NAMES, arrays, groups, weight.shape[2], weight.shape[2])
    step, spread = sizes_of("conv3d", "stride", stride, 3), sizes_of("conv3d", "dilation", dilation, 3)
    _need_positive("conv3d", "stride", step)
    _need_positive("conv3d", "dilation", spread)
    kernel, size = weight.shape[2:], input.shape[-3:]
    reach = [d * (k - 1) for d, k in zip(spread, kernel, strict=True)]
    before, after = _around(padding, step, reach)
    padded = [n + b + a for n, b, a in zip(size, before, after, strict=True)]
    _need_room("conv3d", "dilation", dilation, [r + 1 for r in reach])
    _need_room("conv3d", "padding", padding, padded)
    if 0 in kernel or any(p < r + 1 for p, r in zip(padded, reach, strict=True)):
        wanted = [max(r + 1 - b - a, 0) for r, b, a in zip(reach, before, after, strict=True)]
        wanted = [max(w, n) if k else -1 for w, n, k in zip(wanted, size, kernel, strict=True)]
        _C._check_shape("conv3d", _NAMES, arrays, 0, [-1] * (input.ndim - 3) + wanted)
        _C._check_shape("conv3d", _NAMES, arrays, 1, [-1, -1, *(max(k, 1) for k in kernel)])
    x = input if input.ndim == 5 else input.unsqueeze(0)
    if isinstance(padding, str):
        ends = [end for i in (2, 1, 0) for end in (before[i], after[i])]
        x, flat = (pad(x, ends) if any(ends) else x), (0, 0)
    else:
        x, flat = (pad(x, (0, 0, 0, 0, before[0], before[0])) if before[0] else x), (before[1], before[2])
    slices = _windows(x, kernel[0], step[0], spread[0], padded[0] - reach[0])
    n, depth = x.shape[0], slices.shape[1]
    maps = conv2d(slices.flatten(0, 1), weight.flatten(1, 2), bias, step[1:], flat, spread[1:], groups)
    result = maps.reshape(n, depth, *maps.shape[1:]).transpose(1, 2)
    return (result if input.ndim == 5 else result.squeeze(0)).contiguous()


def _around(padding: Any, step: tuple[int, ...], reach: list[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Zeros in front of and behind each dimension."""
    if not isinstance(padding, str):
        before = sizes_of("conv3d", "padding", padding, 3)
        if any(size < 0 for size in before):
            raise RuntimeError(f"conv3d: negative padding is not supported, but got padding={before}")
        return before, before
    if padding not in ("same", "valid"):
        raise RuntimeError("conv3d: padding must be numbers, 'same' or 'valid'")
    if padding == "valid":
        return (0, 0, 0), (0, 0, 0)
    if any(s != 1 for s in step):
        raise RuntimeError("conv3d: padding='same' is not supported for strided convolutions")
    return tuple(r // 2 for r in reach), tuple(r - r // 2 for r in reach)


def _windows(x: DeviceArray, taps: int, step: int, spread: int, room: int) -> DeviceArray:
    """(N, C, D, H, W) as (N, windows, C * taps, H, W): the slices that each window over D covers, side by side."""
    count = (room - 1) // step + 1
    if taps == 1 and step == 1:
        return x.transpose(1, 2)
    first = _C.arange(count, device=x.device).unsqueeze(1) * step
    places = (first + _C.arange(taps, device=x.device) * spread).flatten()
    found = x.index_select(2, places).unflatten(2, (count, taps))
    return found.permute(0, 2, 1, 3, 4, 5).flatten(2, 3)


# ---------------------------------------------------------------- transposed


@autocasts
def conv_transpose1d(
    input: DeviceArray,
    weight: DeviceArray,
    bias: DeviceArray | None = None,
    stride: _Size = 1,
    padding: _Size = 0,
    output_padding: _Size = 0,
    groups: int = 1,
    dilation: _Size = 1,
) -> DeviceArray:
    """What conv1d gives its input as gradient: input (N, C, L) or (C, L), weight (C, K / groups, R), bias (K).

    The result has (L - 1) * stride - 2 * padding + dilation * (R - 1) + output_padding + 1 columns. Floats of one dtype
    on one device. Raises DeviceMismatchError, DTypeMismatchError, ShapeMismatchError, RuntimeError for other
    parameters that do not fit.

    >>> F.conv_transpose1d(dt.tensor([[1.0, 2.0]]), dt.ones(1, 1, 2), stride=2)
    DeviceArray([[1., 1., 2., 2.]], device='cpu', dtype=float32)
    """
    op = "conv_transpose1d"
    step, around, more, spread, groups = _transposed(
        op, 1, (input, weight, bias), stride, padding, output_padding, groups, dilation
    )
    rows = _C._conv_transpose2d(
        input.unsqueeze(-2),
        weight.unsqueeze(-2),
        bias,
        (1, *step),
        (0, *around),
        (0, *more),
        groups,
        (1, *spread),
    )
    return rows.squeeze(-2)


@autocasts
def conv_transpose2d(
    input: DeviceArray,
    weight: DeviceArray,
    bias: DeviceArray | None = None,
    stride: _Size = 1,
    padding: _Size = 0,
    output_padding: _Size = 0,
    groups: int = 1,
    dilation: _Size = 1,
) -> DeviceArray:
    """What conv2d gives its input as gradient: input (N, C, H, W) or (C, H, W), weight (C, K / groups, R, S), bias (K).

    Each dimension has (size - 1) * stride - 2 * padding + dilation * (kernel - 1) + output_padding + 1 elements then.
    Floats of one dtype on one device. Raises DeviceMismatchError, DTypeMismatchError, ShapeMismatchError, RuntimeError
    for other parameters that do not fit.

    >>> F.conv_transpose2d(dt.ones(1, 8, 16, 16), dt.ones(8, 4, 4, 4), stride=2, padding=1).shape
    (1, 4, 32, 32)
    """
    op = "conv_transpose2d"
    step, around, more, spread, groups = _transposed(
        op, 2, (input, weight, bias), stride, padding, output_padding, groups, dilation
    )
    return _C._conv_transpose2d(input, weight, bias, step, around, more, groups, spread)


@autocasts
def conv_transpose3d(
    input: DeviceArray,
    weight: DeviceArray,
    bias: DeviceArray | None = None,
    stride: _Size = 1,
    padding: _Size = 0,
    output_padding: _Size = 0,
    groups: int = 1,
    dilation: _Size = 1,
) -> DeviceArray:
    """What conv3d gives its input as gradient: input (N, C, D, H, W) or (C, D, H, W), weight (C, K / groups, R, S, T),
    bias (K).

    One conv_transpose2d makes what each slice gives to R others, and these are added, in float32 for the half types.
    Sizes, dtypes and errors are those of conv_transpose2d.

    >>> F.conv_transpose3d(dt.ones(1, 4, 2, 4, 4), dt.ones(4, 2, 2, 2, 2), stride=2).shape
    (1, 2, 4, 8, 8)
    """
    op = "conv_transpose3d"
    step, around, more, spread, groups = _transposed(
        op, 3, (input, weight, bias), stride, padding, output_padding, groups, dilation
    )
    x = widened(input if input.ndim == 5 else input.unsqueeze(0)).transpose(1, 2)
    n, depth, taps = x.shape[0], x.shape[1], weight.shape[2]
    maps = _C._conv_transpose2d(
        x.flatten(0, 1), widened(weight).flatten(1, 2), None, step[1:], around[1:], more[1:], groups, spread[1:]
    )
    height, width = maps.shape[-2:]
    parts = maps.reshape(n, depth, maps.shape[1] // taps, taps, height, width).permute(1, 3, 0, 2, 4, 5)
    size = _transposed_size(depth, step[0], around[0], more[0], spread[0], taps)
    whole = max((depth - 1) * step[0] + spread[0] * (taps - 1) + 1, around[0] + size)
    first = _C.arange(depth, device=x.device).unsqueeze(1) * step[0]
    places = (first + _C.arange(taps, device=x.device) * spread[0]).flatten()
    zeros = _C.zeros((whole, *parts.shape[2:]), dtype=parts.dtype, device=x.device)
    result = zeros.index_add(0, places, parts.flatten(0, 1)).narrow(0, around[0], size).permute(1, 2, 0, 3, 4)
    result = result if bias is None else result + bias.reshape(-1, 1, 1, 1)
    return (result if input.ndim == 5 else result.squeeze(0)).to(input.dtype).contiguous()


def _transposed_size(size: int, step: int, around: int, more: int, spread: int, taps: int) -> int:
    return (size - 1) * step - 2 * around + spread * (taps - 1) + more + 1


_Parameters: TypeAlias = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...], int]


def _transposed(
    op: str,
    dims: int,
    arrays: tuple[DeviceArray, DeviceArray, DeviceArray | None],
    stride: Any,
    padding: Any,
    output_padding: Any,
    groups: Any,
    dilation: Any,
) -> _Parameters:
    """Checks all: stride, padding, output_padding, dilation for each dimension, groups."""
    input, weight, bias = arrays
    need_array(op, "weight", weight)
    _C._check(op, _NAMES, arrays, convolution=True)
    _C._check_rank(op, _NAMES, arrays, 0, dims + 1, dims + 2)
    _C._check_rank(op, _NAMES, arrays, 1, dims + 2, dims + 2)
    groups = _need_int(op, "groups", groups)
    if groups <= 0:
        raise RuntimeError(f"{op}: groups must be greater than zero, but got groups={groups}")
    channels, any_size = weight.shape[0], [-1] * dims
    if channels == 0 or channels % groups:
        _C._check_shape(op, _NAMES, arrays, 1, [(channels // groups + 1) * groups, -1, *any_size])
    if input.shape[-1 - dims] != channels:
        _C._check_shape(op, _NAMES, arrays, 0, [-1] * (input.ndim - 1 - dims) + [channels, *any_size])
    if bias is not None:
        _C._check_shape(op, _NAMES, arrays, 2, [weight.shape[1] * groups])
    kernel, size = weight.shape[2:], input.shape[-dims:]
    if 0 in kernel or 0 in weight.shape:
        _C._check_shape(op, _NAMES, arrays, 1, [-1, max(weight.shape[1], 1), *(max(k, 1) for k in kernel)])
    if 0 in size:
        _C._check_shape(op, _NAMES, arrays, 0, [-1] * (input.ndim - dims) + [max(n, 1) for n in size])
    step, around = sizes_of(op, "stride", stride, dims), sizes_of(op, "padding", padding, dims)
    more, spread = sizes_of(op, "output_padding", output_padding, dims), sizes_of(op, "dilation", dilation, dims)
    _need_positive(op, "stride", step)
    _need_positive(op, "dilation", spread)
    for name, sizes in (("padding", around), ("output_padding", more)):
        if any(n < 0 for n in sizes):
            raise RuntimeError(f"{op}: negative {name} is not supported, but got {name}={sizes}")
    if any(m >= max(s, d) for m, s, d in zip(more, step, spread, strict=True)):
        raise RuntimeError(
            f"{op}: output padding must be smaller than either stride or dilation, but got output_padding={more}, "
            f"stride={step}, dilation={spread}"
        )
    whole = [_transposed_size(*row) for row in zip(size, step, around, more, spread, kernel, strict=True)]
    if any(n < 0 for n in whole):
        text = f"{op}: padding={around} is too large: the size of the result would be {tuple(whole)}"
        raise _C._explained(op, _NAMES, arrays, "invalid-parameter", RuntimeError(text))
    padded = [n + 2 * a for n, a in zip(whole, around, strict=True)]
    _need_room(op, "stride", stride, [(n - 1) * s for n, s in zip(size, step, strict=True)])
    _need_room(op, "dilation", dilation, [d * (k - 1) for d, k in zip(spread, kernel, strict=True)])
    _need_room(op, "padding", padding, padded)
    return step, around, more, spread, groups


__all__ = ["conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d"]
