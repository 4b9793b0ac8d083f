"""Losses of rows of labels, of several labels, and of triplets by a distance of the user's, as modules."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from devtensor._C import DeviceArray, _need_bool, _need_int
from devtensor._composed.losses.basic import Reduction
from devtensor._composed.matrices.distances import need_margin
from devtensor.nn import functional as F
from devtensor.nn.loss import NLLLoss, _Loss


class CTCLoss(_Loss):
    """-log of the probability that scores (T, N, C) read as rows of labels: see functional.ctc_loss.

    >>> scores = dt.zeros(2, 1, 2).log_softmax(2)
    >>> nn.CTCLoss()(scores, dt.tensor([[1]]), [2], [1])
    DeviceArray(0.2877, device='cpu', dtype=float32)
    """

    def __init__(self, blank: int = 0, reduction: Reduction = "mean", zero_infinity: bool = False) -> None:
        super().__init__(reduction=reduction)
        self.blank: int = _need_int("CTCLoss", "blank", blank)
        self.zero_infinity: bool = _need_bool("CTCLoss", "zero_infinity", zero_infinity)

    def forward(
        self,
        log_probs: DeviceArray,
        targets: DeviceArray,
        input_lengths: DeviceArray | Sequence[int],
        target_lengths: DeviceArray | Sequence[int],
    ) -> DeviceArray:
        return F.ctc_loss(
            log_probs, targets, input_lengths, target_lengths, self.blank, self.reduction, self.zero_infinity
        )


class MultiLabelMarginLoss(_Loss):
    """sum(max(0, 1 - input[label] + input[other])) / C: see functional.multilabel_margin_loss.

    >>> nn.MultiLabelMarginLoss()(dt.tensor([[0.1, 0.2, 0.4, 0.8]]), dt.tensor([[3, 0, -1, 1]]))
    DeviceArray(0.8500, device='cpu', dtype=float32)
    """

    def forward(self, input: DeviceArray, target: DeviceArray) -> DeviceArray:
        return F.multilabel_margin_loss(input, target, reduction=self.reduction)


class MultiLabelSoftMarginLoss(_Loss):
    """Cross entropy of each class by itself, from scores: see functional.multilabel_soft_margin_loss.

    >>> nn.MultiLabelSoftMarginLoss()(dt.zeros(1, 2), dt.tensor([[1.0, 0.0]]))
    DeviceArray(0.6931, device='cpu', dtype=float32)
    """

    weight: DeviceArray | None

    def __init__(
        self,
        weight: DeviceArray | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)

    def forward(self, input: DeviceArray, target: DeviceArray) -> DeviceArray:
        return F.multilabel_soft_margin_loss(input, target, self.weight, reduction=self.reduction)


class NLLLoss2d(NLLLoss):
    """NLLLoss, by its name of PyTorch's first years.

    >>> nn.NLLLoss2d()(dt.zeros(1, 2, 1, 1), dt.tensor([[[1]]])).item()
    0.0
    """


class TripletMarginWithDistanceLoss(_Loss):
    """max(0, margin + d(anchor, positive) - d(anchor, negative)), by a distance of the user's.

    >>> x = dt.zeros(1, 2)
    >>> nn.TripletMarginWithDistanceLoss(distance_function=lambda a, b: (a - b).abs().sum(1))(x, x + 3, x + 1)
    DeviceArray(5., device='cpu', dtype=float32)
    """

    def __init__(
        self,
        *,
        distance_function: Callable[[DeviceArray, DeviceArray], DeviceArray] | None = None,
        margin: float = 1.0,
        swap: bool = False,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__(reduction=reduction)
        self.distance_function: Callable[[DeviceArray, DeviceArray], DeviceArray] = (
            F.pairwise_distance if distance_function is None else distance_function
        )
        self.margin: float = need_margin("TripletMarginWithDistanceLoss", margin)
        self.swap: bool = _need_bool("TripletMarginWithDistanceLoss", "swap", swap)

    def forward(self, anchor: DeviceArray, positive: DeviceArray, negative: DeviceArray) -> DeviceArray:
        return F.triplet_margin_with_distance_loss(
            anchor,
            positive,
            negative,
            distance_function=self.distance_function,
            margin=self.margin,
            swap=self.swap,
            reduction=self.reduction,
        )
