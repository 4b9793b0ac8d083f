"""Convolutions as modules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias, cast

from devtensor import _C
from devtensor._C import DeviceArray, _need_bool, _need_int, _need_ints, _need_size, _Parameter
from devtensor._composed.arguments import need_array
from devtensor._composed.shapes.arrange import pad
from devtensor._types import Device, DType
from devtensor.nn import functional as F
from devtensor.nn.layers import _float_options, _reset
from devtensor.nn.module import Module

_Size: TypeAlias = int | Sequence[int]
_Padding: TypeAlias = _Size | Literal["same", "valid"]
_Mode: TypeAlias = Literal["zeros", "reflect", "replicate", "circular"]

_MODES = ("zeros", "reflect", "replicate", "circular")


class _ConvNd(Module):
    weight: _Parameter
    bias: _Parameter | None

    def __init__(
        self,
        dims: int,
        in_channels: int,
        out_channels: int,
        kernel_size: _Size,
        stride: _Size,
        padding: _Padding,
        dilation: _Size,
        groups: int,
        bias: bool | None,
        padding_mode: _Mode,
        device: Device | None,
        dtype: DType | None,
        transposed: bool = False,
        output_padding: _Size = 0,
    ) -> None:
        super().__init__()
        op = type(self).__name__
        in_channels = _need_int(op, "in_channels", in_channels)
        out_channels = _need_int(op, "out_channels", out_channels)
        groups = _need_int(op, "groups", groups)
        bias = bias is not None and _need_bool(op, "bias", bias)  # None: as programs write it for PyTorch
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        if in_channels % groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups != 0:
            raise ValueError("out_channels must be divisible by groups")
        if transposed and isinstance(padding, str):
            raise TypeError(f"{op}(): argument 'padding' must be ints, not str")
        if isinstance(padding, str) and padding not in ("same", "valid"):
            raise ValueError(f"Invalid padding string {padding!r}, should be one of ('same', 'valid')")
        if not isinstance(padding_mode, str) or padding_mode not in _MODES:
            raise ValueError(
                f"{op}(): padding_mode must be one of {_MODES}, but got padding_mode={_C._shown(padding_mode)}"
            )
        if transposed and padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {op}')
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size: tuple[int, ...] = _sizes(op, "kernel_size", kernel_size, dims)
        self.stride: tuple[int, ...] = _sizes(op, "stride", stride, dims)
        self.padding: Any = padding if isinstance(padding, str) else _sizes(op, "padding", padding, dims)
        self.dilation: tuple[int, ...] = _sizes(op, "dilation", dilation, dims)
        self.transposed = transposed
        self.output_padding: tuple[int, ...] = _sizes(op, "output_padding", output_padding, dims)
        self.groups = groups
        self.padding_mode = padding_mode
        if self.padding == "same" and any(step != 1 for step in self.stride):
            raise ValueError("padding='same' is not supported for strided convolutions")
        self._reversed_padding_repeated_twice = self._reversed_padding()
        options = _float_options(op, device, dtype)
        ends = (in_channels, out_channels // groups) if transposed else (out_channels, in_channels // groups)
        self.weight = _Parameter(_C.empty((*ends, *self.kernel_size), **options))
        self.register_parameter("bias", _Parameter(_C.empty(out_channels, **options)) if bias else None)
        self.reset_parameters()

    def _reversed_padding(self) -> list[int]:
        """The padding as pad() takes it."""
        found = []
        for i in reversed(range(len(self.kernel_size))):
            if self.padding == "same":
                total = self.dilation[i] * (self.kernel_size[i] - 1)
                found += [total // 2, total - total // 2]
            else:
                found += [0, 0] if self.padding == "valid" else [self.padding[i]] * 2
        return found

    def reset_parameters(self) -> None:
        """New random numbers in weight and bias."""
        _reset(self.weight, self.bias)

    def extra_repr(self) -> str:
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        if self.padding not in ((0,) * len(self.kernel_size), "valid"):
            text += f", padding={self.padding}"
        if any(d != 1 for d in self.dilation):
            text += f", dilation={self.dilation}"
        if any(self.output_padding):
            text += f", output_padding={self.output_padding}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        if self.bias is None:
            text += ", bias=False"
        return text + (f", padding_mode={self.padding_mode}" if self.padding_mode != "zeros" else "")


def _sizes(op: str, name: str, value: _Size, dims: int) -> tuple[int, ...]:
    size = _need_size(op, name, value)
    if isinstance(size, int):
        return (size,) * dims
    if len(size) not in (1, dims):
        raise ValueError(f"{op}(): {name} must be an int or {dims} of them, not {len(size)}")
    return size * dims if len(size) == 1 else size


class _Conv(_ConvNd):
    """What convolutions of any dimension have in common."""

    _dims: int
    _conv: Callable[..., DeviceArray]

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: _Size,
        stride: _Size = 1,
        padding: _Padding = 0,
        dilation: _Size = 1,
        groups: int = 1,
        bias: bool | None = True,
        padding_mode: _Mode = "zeros",
        device: Device | None = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__(
            self._dims,
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def forward(self, input: DeviceArray) -> DeviceArray:
        return self._conv_forward(input, self.weight, self.bias)

    def _conv_forward(self, input: DeviceArray, weight: DeviceArray, bias: DeviceArray | None) -> DeviceArray:
        if self.padding_mode == "zeros":
            return self._conv(input, weight, bias, self.stride, self.padding, self.dilation, self.groups)
        wide = pad(input, self._reversed_padding_repeated_twice, self.padding_mode)
        return self._conv(wide, weight, bias, self.stride, 0, self.dilation, self.groups)


class Conv1d(_Conv):
    """Cross-correlation of rows: (N, C, L) or (C, L) with weight (out_channels, in_channels / groups, R) and bias.

    Both are initialised uniformly in ±1 / sqrt(in_channels / groups * R).

    >>> nn.Conv1d(2, 4, 3)(dt.zeros(1, 2, 10)).shape
    (1, 4, 8)
    """

    _dims = 1
    _conv = staticmethod(F.conv1d)


class Conv2d(_Conv):
    """Cross-correlation of images: (N, C, H, W) or (C, H, W) with weight (out_channels, in_channels / groups, R, S)
    and bias (out_channels).

    Both are initialised uniformly in ±1 / sqrt(in_channels / groups * R * S).

    >>> nn.Conv2d(3, 16, 3, stride=2, padding=1)(dt.zeros(8, 3, 32, 32)).shape
    (8, 16, 16, 16)
    """

    _dims = 2
    _conv = staticmethod(_C.conv2d)


class Conv3d(_Conv):
    """Cross-correlation of volumes: (N, C, D, H, W) or (C, D, H, W) with weight (out_channels, in_channels / groups,
    R, S, T) and bias (out_channels).

    Both are initialised uniformly in ±1 / sqrt(in_channels / groups * R * S * T).

    >>> nn.Conv3d(3, 4, 3, stride=2, padding=1)(dt.zeros(2, 3, 8, 8, 8)).shape
    (2, 4, 4, 4, 4)
    """

    _dims = 3
    _conv = staticmethod(F.conv3d)


class _ConvTranspose(_ConvNd):
    """What transposed convolutions of any dimension have in common."""

    _dims: int
    _conv: Callable[..., DeviceArray]

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: _Size,
        stride: _Size = 1,
        padding: _Size = 0,
        output_padding: _Size = 0,
        groups: int = 1,
        bias: bool | None = True,
        dilation: _Size = 1,
        padding_mode: str = "zeros",
        device: Device | None = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__(
            self._dims,
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            groups,
            bias,
            cast(_Mode, padding_mode),
            device,
            dtype,
            True,
            output_padding,
        )

    def _padding_for(self, input: DeviceArray, output_size: Sequence[int] | None) -> tuple[int, ...]:
        """output_padding with which the result has output_size, which may have batch and channels in front."""
        if output_size is None:
            return self.output_padding
        op, dims = type(self).__name__, len(self.kernel_size)
        need_array(op, "input", input)
        wanted = _need_ints(op, "output_size", output_size)
        if len(wanted) == input.ndim:
            wanted = wanted[-dims:]
        if len(wanted) != dims:
            raise ValueError(f"{op}(): output_size must have {dims} or {input.ndim} elements (got {len(wanted)})")
        least = [
            (n - 1) * s - 2 * p + d * (k - 1) + 1
            for n, s, p, d, k in zip(
                input.shape[-dims:], self.stride, self.padding, self.dilation, self.kernel_size, strict=True
            )
        ]
        most = [n + s - 1 for n, s in zip(least, self.stride, strict=True)]
        if any(not a <= w <= b for w, a, b in zip(wanted, least, most, strict=True)):
            raise ValueError(
                f"requested an output size of {wanted}, but valid sizes range from {least} to {most} "
                f"(for an input of {tuple(input.shape[-dims:])})"
            )
        return tuple(w - n for w, n in zip(wanted, least, strict=True))

    def forward(self, input: DeviceArray, output_size: Sequence[int] | None = None) -> DeviceArray:
        more = self._padding_for(input, output_size)
        return self._conv(input, self.weight, self.bias, self.stride, self.padding, more, self.groups, self.dilation)


class ConvTranspose1d(_ConvTranspose):
    """What Conv1d gives its input as gradient, as a layer: (N, C, L) or (C, L) with weight
    (in_channels, out_channels / groups, R) and bias (out_channels).

    forward takes an output_size, of those that a stride leaves open; ValueError for another. Both are initialised
    uniformly in ±1 / sqrt(out_channels / groups * R).

    >>> nn.ConvTranspose1d(4, 2, 4, stride=2, padding=1)(dt.zeros(1, 4, 10)).shape
    (1, 2, 20)
    """

    _dims = 1
    _conv = staticmethod(F.conv_transpose1d)


class ConvTranspose2d(_ConvTranspose):
    """What Conv2d gives its input as gradient, as a layer: (N, C, H, W) or (C, H, W) with weight
    (in_channels, out_channels / groups, R, S) and bias (out_channels).

    forward takes an output_size, of those that a stride leaves open; ValueError for another. Both are initialised
    uniformly in ±1 / sqrt(out_channels / groups * R * S).

    >>> nn.ConvTranspose2d(8, 3, 4, stride=2, padding=1)(dt.zeros(2, 8, 16, 16)).shape
    (2, 3, 32, 32)
    """

    _dims = 2
    _conv = staticmethod(F.conv_transpose2d)


class ConvTranspose3d(_ConvTranspose):
    """What Conv3d gives its input as gradient, as a layer: (N, C, D, H, W) or (C, D, H, W) with weight
    (in_channels, out_channels / groups, R, S, T) and bias (out_channels).

    forward takes an output_size, of those that a stride leaves open; ValueError for another. Both are initialised
    uniformly in ±1 / sqrt(out_channels / groups * R * S * T).

    >>> nn.ConvTranspose3d(4, 2, 2, stride=2)(dt.zeros(1, 4, 3, 4, 4)).shape
    (1, 2, 6, 8, 8)
    """

    _dims = 3
    _conv = staticmethod(F.conv_transpose3d)
