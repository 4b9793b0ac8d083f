"""Images of another size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from devtensor._C import DeviceArray, _need_bool, _need_number, _need_size, _need_str
from devtensor.nn import functional as F
from devtensor.nn.module import Module

_Size: TypeAlias = int | Sequence[int]
_Factor: TypeAlias = float | Sequence[float]


class Upsample(Module):
    """Images (N, C, ...) of another size, which size or scale_factor gives, by interpolate.

    >>> nn.Upsample(scale_factor=2, mode="bilinear")(dt.ones(1, 3, 8, 8)).shape
    (1, 3, 16, 16)
    """

    def __init__(
        self,
        size: _Size | None = None,
        scale_factor: _Factor | None = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        super().__init__()
        op = type(self).__name__
        self.name: str = op
        self.size: _Size | None = None if size is None else _need_size(op, "size", size)
        self.scale_factor: _Factor | None = None
        if isinstance(scale_factor, (tuple, list)):
            self.scale_factor = tuple(float(_need_number(op, "scale_factor", factor)) for factor in scale_factor)
        elif scale_factor is not None:
            self.scale_factor = float(_need_number(op, "scale_factor", scale_factor))
        self.mode: str = _need_str(op, "mode", mode)
        self.align_corners: bool | None = (
            None if align_corners is None else _need_bool(op, "align_corners", align_corners)
        )
        self.recompute_scale_factor: bool | None = (
            None if recompute_scale_factor is None else _need_bool(op, "recompute_scale_factor", recompute_scale_factor)
        )

    def forward(self, input: DeviceArray) -> DeviceArray:
        return F.interpolate(
            input, self.size, self.scale_factor, self.mode, self.align_corners, self.recompute_scale_factor
        )

    def extra_repr(self) -> str:
        what = f"size={self.size!r}" if self.scale_factor is None else f"scale_factor={self.scale_factor!r}"
        return f"{what}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """Images (N, C, H, W) of another size, each pixel that of the nearest.

    >>> nn.UpsamplingNearest2d(scale_factor=2)(dt.ones(1, 3, 8, 8)).shape
    (1, 3, 16, 16)
    """

    def __init__(self, size: _Size | None = None, scale_factor: _Factor | None = None) -> None:
        super().__init__(size, scale_factor, mode="nearest")


class UpsamplingBilinear2d(Upsample):
    """Images (N, C, H, W) of another size by bilinear interpolation, corners at corners.

    >>> nn.UpsamplingBilinear2d(scale_factor=2)(dt.ones(1, 3, 8, 8)).shape
    (1, 3, 16, 16)
    """

    def __init__(self, size: _Size | None = None, scale_factor: _Factor | None = None) -> None:
        super().__init__(size, scale_factor, mode="bilinear", align_corners=True)
