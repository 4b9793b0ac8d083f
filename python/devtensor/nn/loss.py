"""Losses as modules."""

from __future__ import annotations

from devtensor._C import DeviceArray, _need_int, _need_number
from devtensor._composed.losses import Reduction, chosen
from devtensor.nn import functional as F
from devtensor.nn.module import Module


class _Loss(Module):
    def __init__(
        self, size_average: bool | None = None, reduce: bool | None = None, reduction: Reduction = "mean"
    ) -> None:
        super().__init__()
        self.reduction: Reduction = chosen(type(self).__name__, size_average, reduce, reduction)


class MSELoss(_Loss):
    """The mean, the sum or all of the squares of input - target.

    >>> nn.MSELoss()(dt.tensor([1.0, 2.0]), dt.tensor([1.0, 4.0]))
    DeviceArray(2., device='cpu', dtype=float32)
    """

    def forward(self, input: DeviceArray, target: DeviceArray) -> DeviceArray:
        return F.mse_loss(input, target, reduction=self.reduction)


class L1Loss(_Loss):
    """The mean, the sum or all of the absolute values of input - target.

    >>> nn.L1Loss()(dt.tensor([1.0, 2.0]), dt.tensor([1.0, 4.0]))
    DeviceArray(1., device='cpu', dtype=float32)
    """

    def forward(self, input: DeviceArray, target: DeviceArray) -> DeviceArray:
        return F.l1_loss(input, target, reduction=self.reduction)


class _Weighted(_Loss):
    weight: DeviceArray | None

    def __init__(
        self,
        weight: DeviceArray | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)
        self.ignore_index: int = _need_int(type(self).__name__, "ignore_index", ignore_index)


class NLLLoss(_Weighted):
    """-input[target] * weight[target]: see functional.nll_loss.

    >>> nn.NLLLoss()(dt.tensor([[-0.5, -1.0], [-2.0, -0.1]]), dt.tensor([0, 1]))
    DeviceArray(0.3000, device='cpu', dtype=float32)
    """

    def forward(self, input: DeviceArray, target: DeviceArray) -> DeviceArray:
        return F.nll_loss(input, target, self.weight, ignore_index=self.ignore_index, reduction=self.reduction)


class CrossEntropyLoss(_Weighted):
    """NLLLoss of the log_softmax of input: see functional.cross_entropy.

    >>> nn.CrossEntropyLoss()(dt.zeros(2, 4), dt.tensor([0, 3]))
    DeviceArray(1.3863, device='cpu', dtype=float32)
    """

    def __init__(
        self,
        weight: DeviceArray | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: Reduction = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(weight, size_average, ignore_index, reduce, reduction)
        self.label_smoothing: float = _need_number("CrossEntropyLoss", "label_smoothing", label_smoothing)

    def forward(self, input: DeviceArray, target: DeviceArray) -> DeviceArray:
        return F.cross_entropy(
            input,
            target,
            self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )
