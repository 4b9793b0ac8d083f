"""Losses as modules."""

from __future__ import annotations

from devtensor._C import DeviceArray
from devtensor.nn import functional as F
from devtensor.nn._losses import Reduction
from devtensor.nn.module import Module


class _Loss(Module):
    def __init__(self, reduction: Reduction = "mean") -> None:
        super().__init__()
        self.reduction: Reduction = reduction


class MSELoss(_Loss):
    """The mean, the sum or all of the squares of input - target."""

    def forward(self, input: DeviceArray, target: DeviceArray) -> DeviceArray:
        return F.mse_loss(input, target, self.reduction)


class L1Loss(_Loss):
    """The mean, the sum or all of the absolute values of input - target."""

    def forward(self, input: DeviceArray, target: DeviceArray) -> DeviceArray:
        return F.l1_loss(input, target, self.reduction)


class _Weighted(_Loss):
    weight: DeviceArray | None

    def __init__(
        self, weight: DeviceArray | None = None, ignore_index: int = -100, reduction: Reduction = "mean"
    ) -> None:
        super().__init__(reduction)
        self.register_buffer("weight", weight)
        self.ignore_index = ignore_index


class NLLLoss(_Weighted):
    """-input[target] * weight[target]: see functional.nll_loss."""

    def __init__(
        self, weight: DeviceArray | None = None, *, ignore_index: int = -100, reduction: Reduction = "mean"
    ) -> None:
        super().__init__(weight, ignore_index, reduction)

    def forward(self, input: DeviceArray, target: DeviceArray) -> DeviceArray:
        return F.nll_loss(input, target, self.weight, self.ignore_index, self.reduction)


class CrossEntropyLoss(_Weighted):
    """NLLLoss of the log_softmax of input: see functional.cross_entropy."""

    def __init__(
        self,
        weight: DeviceArray | None = None,
        *,
        ignore_index: int = -100,
        reduction: Reduction = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(weight, ignore_index, reduction)
        self.label_smoothing = label_smoothing

    def forward(self, input: DeviceArray, target: DeviceArray) -> DeviceArray:
        return F.cross_entropy(input, target, self.weight, self.ignore_index, self.reduction, self.label_smoothing)
