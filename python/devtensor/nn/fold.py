"""Windows as columns, channels as pixels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from devtensor._C import DeviceArray, _need_int, _need_size
from devtensor.nn import functional as F
from devtensor.nn.module import Module

_Size: TypeAlias = int | Sequence[int]


class Unfold(Module):
    """The windows of (N, C, H, W) or (C, H, W) as columns: (N, C * R * S, windows) or (C * R * S, windows).

    >>> nn.Unfold(3)(dt.ones(2, 4, 8, 8)).shape
    (2, 36, 36)
    """

    def __init__(self, kernel_size: _Size, dilation: _Size = 1, padding: _Size = 0, stride: _Size = 1) -> None:
        super().__init__()
        self.kernel_size: _Size = _need_size("Unfold", "kernel_size", kernel_size)
        self.dilation: _Size = _need_size("Unfold", "dilation", dilation)
        self.padding: _Size = _need_size("Unfold", "padding", padding)
        self.stride: _Size = _need_size("Unfold", "stride", stride)

    def forward(self, input: DeviceArray) -> DeviceArray:
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, dilation={self.dilation}, padding={self.padding}, stride={self.stride}"


class Fold(Module):
    """Windows, the columns of (N, C * R * S, windows), added up where they lie in images (N, C, *output_size).

    >>> nn.Fold((8, 8), 3)(dt.ones(2, 36, 36)).shape
    (2, 4, 8, 8)
    """

    def __init__(
        self, output_size: _Size, kernel_size: _Size, dilation: _Size = 1, padding: _Size = 0, stride: _Size = 1
    ) -> None:
        super().__init__()
        self.output_size: _Size = _need_size("Fold", "output_size", output_size)
        self.kernel_size: _Size = _need_size("Fold", "kernel_size", kernel_size)
        self.dilation: _Size = _need_size("Fold", "dilation", dilation)
        self.padding: _Size = _need_size("Fold", "padding", padding)
        self.stride: _Size = _need_size("Fold", "stride", stride)

    def forward(self, input: DeviceArray) -> DeviceArray:
        return F.fold(input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return (
            f"output_size={self.output_size}, kernel_size={self.kernel_size}, dilation={self.dilation}, "
            f"padding={self.padding}, stride={self.stride}"
        )


class PixelShuffle(Module):
    """(*, C * r * r, H, W) as (*, C, H * r, W * r), with r = upscale_factor.

    >>> nn.PixelShuffle(2)(dt.ones(2, 12, 4, 4)).shape
    (2, 3, 8, 8)
    """

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor: int = _need_int("PixelShuffle", "upscale_factor", upscale_factor)

    def forward(self, input: DeviceArray) -> DeviceArray:
        return F.pixel_shuffle(input, self.upscale_factor)

    def extra_repr(self) -> str:
        return f"upscale_factor={self.upscale_factor}"


class PixelUnshuffle(Module):
    """(*, C, H * r, W * r) as (*, C * r * r, H, W), with r = downscale_factor.

    >>> nn.PixelUnshuffle(2)(dt.ones(2, 3, 8, 8)).shape
    (2, 12, 4, 4)
    """

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor: int = _need_int("PixelUnshuffle", "downscale_factor", downscale_factor)

    def forward(self, input: DeviceArray) -> DeviceArray:
        return F.pixel_unshuffle(input, self.downscale_factor)

    def extra_repr(self) -> str:
        return f"downscale_factor={self.downscale_factor}"


class ChannelShuffle(Module):
    """The channels of (N, C, *) in another order: one from each of groups in turn.

    >>> nn.ChannelShuffle(2)(dt.ones(2, 4, 8, 8)).shape
    (2, 4, 8, 8)
    """

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups: int = _need_int("ChannelShuffle", "groups", groups)

    def forward(self, input: DeviceArray) -> DeviceArray:
        return F.channel_shuffle(input, self.groups)

    def extra_repr(self) -> str:
        return f"groups={self.groups}"
