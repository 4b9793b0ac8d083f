"""Losses as modules."""

from __future__ import annotations

from devtensor._C import DeviceArray, _need_bool, _need_int, _need_number
from devtensor._composed.losses.basic import BatchReduction, Reduction, chosen
from devtensor._composed.matrices.distances import need_margin, need_power
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


class SmoothL1Loss(_Loss):
    """Half the square of input - target over beta up to beta, a line of slope 1 beyond: see functional.smooth_l1_loss.

    >>> nn.SmoothL1Loss()(dt.tensor([1.0, 2.0]), dt.tensor([1.5, 4.0]))
    DeviceArray(0.8125, device='cpu', dtype=float32)
    """

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: Reduction = "mean",
        beta: float = 1.0,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.beta: float = _need_number("SmoothL1Loss", "beta", beta)

    def forward(self, input: DeviceArray, target: DeviceArray) -> DeviceArray:
        return F.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta)


class HuberLoss(_Loss):
    """Half the square of input - target up to delta, a line of slope delta beyond: see functional.huber_loss.

    >>> nn.HuberLoss()(dt.tensor([1.0, 2.0]), dt.tensor([1.5, 4.0]))
    DeviceArray(0.8125, device='cpu', dtype=float32)
    """

    def __init__(self, reduction: Reduction = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction=reduction)
        self.delta: float = _need_number("HuberLoss", "delta", delta)

    def forward(self, input: DeviceArray, target: DeviceArray) -> DeviceArray:
        return F.huber_loss(input, target, reduction=self.reduction, delta=self.delta)


class KLDivLoss(Module):
    """The divergence of the probabilities target from those whose logarithms are input: see functional.kl_div.

    >>> nn.KLDivLoss(reduction="batchmean")(dt.tensor([[0.25, 0.75]]).log(), dt.tensor([[0.5, 0.5]]))
    DeviceArray(0.1438, device='cpu', dtype=float32)
    """

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: BatchReduction = "mean",
        log_target: bool = False,
    ) -> None:
        super().__init__()
        self.reduction: BatchReduction = chosen("KLDivLoss", size_average, reduce, reduction, ("batchmean",))
        self.log_target: bool = _need_bool("KLDivLoss", "log_target", log_target)

    def forward(self, input: DeviceArray, target: DeviceArray) -> DeviceArray:
        return F.kl_div(input, target, reduction=self.reduction, log_target=self.log_target)


class BCELoss(_Loss):
    """Binary cross entropy of the probabilities input: see functional.binary_cross_entropy.

    >>> nn.BCELoss()(dt.tensor([0.9, 0.2]), dt.tensor([1.0, 0.0]))
    DeviceArray(0.1643, device='cpu', dtype=float32)
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
        return F.binary_cross_entropy(input, target, self.weight, reduction=self.reduction)


class BCEWithLogitsLoss(BCELoss):
    """BCELoss of the sigmoid of input: see functional.binary_cross_entropy_with_logits.

    >>> nn.BCEWithLogitsLoss()(dt.tensor([2.0, -1.0]), dt.tensor([1.0, 0.0]))
    DeviceArray(0.2201, device='cpu', dtype=float32)
    """

    pos_weight: DeviceArray | None

    def __init__(
        self,
        weight: DeviceArray | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: Reduction = "mean",
        pos_weight: DeviceArray | None = None,
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.register_buffer("pos_weight", pos_weight)

    def forward(self, input: DeviceArray, target: DeviceArray) -> DeviceArray:
        return F.binary_cross_entropy_with_logits(
            input, target, self.weight, reduction=self.reduction, pos_weight=self.pos_weight
        )


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


# ---------------------------------------------------------------- margins


class _Margin(_Loss):
    def __init__(
        self,
        margin: float = 0.0,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin: float = _need_number(type(self).__name__, "margin", margin)


class MarginRankingLoss(_Margin):
    """max(0, margin - target * (input1 - input2)): see functional.margin_ranking_loss.

    >>> nn.MarginRankingLoss()(dt.tensor([1.0, 2.0]), dt.tensor([3.0, 0.0]), dt.tensor([1.0, 1.0]))
    DeviceArray(1., device='cpu', dtype=float32)
    """

    def forward(self, input1: DeviceArray, input2: DeviceArray, target: DeviceArray) -> DeviceArray:
        return F.margin_ranking_loss(input1, input2, target, self.margin, reduction=self.reduction)


class CosineEmbeddingLoss(_Margin):
    """1 - cos where target is 1, max(0, cos - margin) where it is -1: see functional.cosine_embedding_loss.

    >>> nn.CosineEmbeddingLoss()(dt.tensor([[1.0, 0.0]]), dt.tensor([[3.0, 4.0]]), dt.tensor([1.0]))
    DeviceArray(0.4000, device='cpu', dtype=float32)
    """

    def forward(self, input1: DeviceArray, input2: DeviceArray, target: DeviceArray) -> DeviceArray:
        return F.cosine_embedding_loss(input1, input2, target, self.margin, reduction=self.reduction)


class HingeEmbeddingLoss(_Margin):
    """input where target is 1, max(0, margin - input) where it is -1: see functional.hinge_embedding_loss.

    >>> nn.HingeEmbeddingLoss(reduction="none")(dt.tensor([0.5, 0.25]), dt.tensor([1.0, -1.0]))
    DeviceArray([0.5000, 0.7500], device='cpu', dtype=float32)
    """

    def __init__(
        self,
        margin: float = 1.0,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__(margin, size_average, reduce, reduction)

    def forward(self, input: DeviceArray, target: DeviceArray) -> DeviceArray:
        return F.hinge_embedding_loss(input, target, self.margin, reduction=self.reduction)


class SoftMarginLoss(_Loss):
    """log(1 + exp(-target * input)) for target 1 and -1: see functional.soft_margin_loss.

    >>> nn.SoftMarginLoss(reduction="none")(dt.tensor([0.0, 2.0]), dt.tensor([1.0, -1.0]))
    DeviceArray([0.6931, 2.1269], device='cpu', dtype=float32)
    """

    def forward(self, input: DeviceArray, target: DeviceArray) -> DeviceArray:
        return F.soft_margin_loss(input, target, reduction=self.reduction)


class TripletMarginLoss(_Loss):
    """max(0, margin + d(anchor, positive) - d(anchor, negative)): see functional.triplet_margin_loss.

    >>> nn.TripletMarginLoss()(dt.zeros(1, 2), dt.tensor([[3.0, 4.0]]), dt.tensor([[0.0, 2.0]]))
    DeviceArray(4.0000, device='cpu', dtype=float32)
    """

    def __init__(
        self,
        margin: float = 1.0,
        p: float = 2.0,
        eps: float = 1e-6,
        swap: bool = False,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin: float = need_margin("TripletMarginLoss", margin)
        self.p: float = _need_number("TripletMarginLoss", "p", p)
        self.eps: float = _need_number("TripletMarginLoss", "eps", eps)
        self.swap: bool = _need_bool("TripletMarginLoss", "swap", swap)

    def forward(self, anchor: DeviceArray, positive: DeviceArray, negative: DeviceArray) -> DeviceArray:
        options = (self.margin, self.p, self.eps, self.swap)
        return F.triplet_margin_loss(anchor, positive, negative, *options, reduction=self.reduction)


class MultiMarginLoss(_Loss):
    """sum(max(0, margin - input[target] + input[other]) ** p) / C: see functional.multi_margin_loss.

    >>> nn.MultiMarginLoss()(dt.tensor([[0.1, 0.2, 0.4, 0.8]]), dt.tensor([3]))
    DeviceArray(0.3250, device='cpu', dtype=float32)
    """

    weight: DeviceArray | None

    def __init__(
        self,
        p: int = 1,
        margin: float = 1.0,
        weight: DeviceArray | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)
        self.p: int = need_power("MultiMarginLoss", p)
        self.margin: float = _need_number("MultiMarginLoss", "margin", margin)

    def forward(self, input: DeviceArray, target: DeviceArray) -> DeviceArray:
        return F.multi_margin_loss(input, target, self.p, self.margin, self.weight, reduction=self.reduction)


# ---------------------------------------------------------------- densities


class PoissonNLLLoss(_Loss):
    """exp(input) - target * input, for counts that are Poisson: see functional.poisson_nll_loss.

    >>> nn.PoissonNLLLoss(reduction="none")(dt.tensor([0.0, 1.0]), dt.tensor([1.0, 2.0]))
    DeviceArray([1.0000, 0.7183], device='cpu', dtype=float32)
    """

    def __init__(
        self,
        log_input: bool = True,
        full: bool = False,
        size_average: bool | None = None,
        eps: float = 1e-8,
        reduce: bool | None = None,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_input: bool = _need_bool("PoissonNLLLoss", "log_input", log_input)
        self.full: bool = _need_bool("PoissonNLLLoss", "full", full)
        self.eps: float = _need_number("PoissonNLLLoss", "eps", eps)

    def forward(self, input: DeviceArray, target: DeviceArray) -> DeviceArray:
        options = {"log_input": self.log_input, "full": self.full}
        return F.poisson_nll_loss(input, target, **options, eps=self.eps, reduction=self.reduction)


class GaussianNLLLoss(_Loss):
    """(log(var) + (input - target) ** 2 / var) / 2: see functional.gaussian_nll_loss.

    >>> nn.GaussianNLLLoss()(dt.tensor([1.0]), dt.tensor([3.0]), dt.tensor([4.0]))
    DeviceArray(1.1931, device='cpu', dtype=float32)
    """

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: Reduction = "mean") -> None:
        super().__init__(reduction=reduction)
        self.full: bool = _need_bool("GaussianNLLLoss", "full", full)
        self.eps: float = _need_number("GaussianNLLLoss", "eps", eps)

    def forward(self, input: DeviceArray, target: DeviceArray, var: DeviceArray | float) -> DeviceArray:
        return F.gaussian_nll_loss(input, target, var, self.full, self.eps, self.reduction)
