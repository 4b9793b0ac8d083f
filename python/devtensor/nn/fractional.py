"""Fractional max pooling as modules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from devtensor._C import DeviceArray, _need_bool
from devtensor._composed.images.convolutions import sizes_of
from devtensor._composed.images.fractional import output_sizes
from devtensor.nn import functional as F
from devtensor.nn.module import Module


class _FractionalMaxPool(Module):
    _dims: int
    _random_samples: DeviceArray | None

    def __init__(
        self,
        kernel_size: int | Sequence[int],
        output_size: int | Sequence[int] | None = None,
        output_ratio: float | Sequence[float] | None = None,
        return_indices: bool = False,
        _random_samples: DeviceArray | None = None,
    ) -> None:
        super().__init__()
        op, dims = type(self).__name__, self._dims
        self.kernel_size: tuple[int, ...] = sizes_of(op, "kernel_size", kernel_size, dims)
        self.return_indices: bool = _need_bool(op, "return_indices", return_indices)
        self.register_buffer("_random_samples", _random_samples)
        output_sizes(op, dims, (1,) * dims, output_size, output_ratio)
        self.output_size: tuple[int, ...] | None = None
        self.output_ratio: tuple[float, ...] | None = None
        if output_size is not None:
            self.output_size = sizes_of(op, "output_size", output_size, dims)
        elif output_ratio is not None:
            each = isinstance(output_ratio, Sequence)
            self.output_ratio = tuple(output_ratio) if each else (output_ratio,) * dims  # type: ignore[arg-type,assignment]


class FractionalMaxPool2d(_FractionalMaxPool):
    """The maxima of windows of (N, C, H, W) or (C, H, W) that begin at drawn places: functional.fractional_max_pool2d.

    >>> nn.FractionalMaxPool2d(2, output_ratio=0.5)(dt.ones(2, 3, 8, 8)).shape
    (2, 3, 4, 4)
    """

    _dims = 2

    def forward(self, input: DeviceArray) -> Any:
        return F.fractional_max_pool2d(
            input, self.kernel_size, self.output_size, self.output_ratio, self.return_indices, self._random_samples
        )


class FractionalMaxPool3d(_FractionalMaxPool):
    """The maxima of windows of (N, C, D, H, W) that begin at drawn places: functional.fractional_max_pool3d.

    >>> nn.FractionalMaxPool3d(2, output_size=3)(dt.ones(2, 3, 8, 8, 8)).shape
    (2, 3, 3, 3, 3)
    """

    _dims = 3

    def forward(self, input: DeviceArray) -> Any:
        return F.fractional_max_pool3d(
            input, self.kernel_size, self.output_size, self.output_ratio, self.return_indices, self._random_samples
        )
