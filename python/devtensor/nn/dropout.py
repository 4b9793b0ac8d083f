"""Dropout of elements and of whole channels, as modules."""

from __future__ import annotations

from devtensor._C import DeviceArray, _need_bool
from devtensor._composed.layers.basic import need_probability
from devtensor.nn import functional as F
from devtensor.nn.module import Module


class _Dropout(Module):
    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        self.p: float = need_probability(type(self).__name__, p)
        self.inplace: bool = _need_bool(type(self).__name__, "inplace", inplace)

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_Dropout):
    """In training each element is 0 with probability p, else divided by 1 - p; in evaluation nothing changes.

    >>> nn.Dropout(0.5).eval()(dt.ones(3))
    DeviceArray([1., 1., 1.], device='cpu', dtype=float32)
    """

    def forward(self, input: DeviceArray) -> DeviceArray:
        return F.dropout(input, self.p, True, self.inplace) if self.training else input


class Dropout1d(_Dropout):
    """In training each channel of (N, C, L) or (C, L) is 0 with probability p, else divided by 1 - p.

    >>> nn.Dropout1d().eval()(dt.ones(2, 3)).shape
    (2, 3)
    """

    def forward(self, input: DeviceArray) -> DeviceArray:
        return F.dropout1d(input, self.p, self.training, self.inplace)


class Dropout2d(_Dropout):
    """In training each channel of (N, C, H, W) is 0 with probability p, else divided by 1 - p.

    >>> nn.Dropout2d().eval()(dt.ones(1, 2, 3, 3)).shape
    (1, 2, 3, 3)
    """

    def forward(self, input: DeviceArray) -> DeviceArray:
        return F.dropout2d(input, self.p, self.training, self.inplace)


class Dropout3d(_Dropout):
    """In training each channel of (N, C, D, H, W) or (C, D, H, W) is 0 with probability p, else divided by 1 - p.

    >>> nn.Dropout3d().eval()(dt.ones(1, 2, 3, 3, 3)).shape
    (1, 2, 3, 3, 3)
    """

    def forward(self, input: DeviceArray) -> DeviceArray:
        return F.dropout3d(input, self.p, self.training, self.inplace)


class AlphaDropout(_Dropout):
    """In training each element becomes the least value of SELU with probability p; mean 0 and variance 1 are kept.

    >>> nn.AlphaDropout().eval()(dt.ones(2, 3)).shape
    (2, 3)
    """

    def forward(self, input: DeviceArray) -> DeviceArray:
        return F.alpha_dropout(input, self.p, self.training, self.inplace)


class FeatureAlphaDropout(_Dropout):
    """AlphaDropout of whole channels of (N, C, ...).

    >>> nn.FeatureAlphaDropout().eval()(dt.ones(1, 2, 3)).shape
    (1, 2, 3)
    """

    def forward(self, input: DeviceArray) -> DeviceArray:
        return F.feature_alpha_dropout(input, self.p, self.training, self.inplace)
