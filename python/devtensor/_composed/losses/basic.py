"""Losses: numbers that tell how far predictions are from targets."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Literal, TypeAlias, overload

from devtensor import _C
from devtensor._C import DeviceArray, _need_bool, _need_int, _need_number
from devtensor._composed.arguments import need_array, widened
from devtensor._composed.elementwise.domains import cross_entropies
from devtensor._diagnosis import training
from devtensor._dtypes.autocast import autocasts
from devtensor._dtypes.rules import promotes

Reduction: TypeAlias = Literal["none", "mean", "sum"]
BatchReduction: TypeAlias = Literal["none", "batchmean", "mean", "sum"]


def reduced(losses: DeviceArray, reduction: str, dtype: _C.dtype) -> DeviceArray:
    if reduction == "mean":
        losses = losses.mean()
    elif reduction == "sum":
        losses = losses.sum()
    return losses.to(dtype)


@overload
def chosen(op: str, size_average: bool | None, reduce: bool | None, reduction: Reduction) -> Reduction: ...
@overload
def chosen(
    op: str, size_average: bool | None, reduce: bool | None, reduction: BatchReduction, more: tuple[str, ...]
) -> BatchReduction: ...
def chosen(
    op: str,
    size_average: bool | None,
    reduce: bool | None,
    reduction: BatchReduction,
    more: tuple[str, ...] = (),
) -> BatchReduction:
    """The reduction, which two parameters of PyTorch's first years decide where they are given; more: others."""
    size_average = None if size_average is None else _need_bool(op, "size_average", size_average)
    reduce = None if reduce is None else _need_bool(op, "reduce", reduce)
    if size_average is not None or reduce is not None:
        reduction = "none" if reduce is False else "sum" if size_average is False else "mean"
        warnings.warn(
            f"size_average and reduce args will be deprecated, please use reduction='{reduction}' instead.",
            stacklevel=3,
        )
    if not isinstance(reduction, str) or reduction not in ("none", "mean", "sum", *more):
        raise ValueError(f"{op}(): {_C._shown(reduction)} is not a valid value for reduction")
    return reduction


def matched(
    op: str, input: DeviceArray, target: DeviceArray, weight: DeviceArray | None = None
) -> tuple[DeviceArray, DeviceArray]:
    """input and target widened, after all checks of a loss whose caller is the user's."""
    names, arrays = ("input", "target", "weight"), (input, target, weight)
    need_array(op, "target", target)
    _C._check(op, names, arrays)
    _C._check_broadcast(op, names, arrays)
    if weight is not None:
        _C._check_shape(op, names, arrays, 2, input.shape)
    if input.shape != target.shape:
        training.warn_broadcast(op, input, target)
    return widened(input), widened(target)


def _distance(
    op: str,
    input: DeviceArray,
    target: DeviceArray,
    weight: DeviceArray | None,
    reduction: str,
    measure: Callable[[DeviceArray, DeviceArray], DeviceArray],
    mean_by_weight: bool = True,
) -> DeviceArray:
    wide, other = matched(op, input, target, weight)
    losses = measure(wide, other)
    if weight is not None:
        losses = losses * widened(weight)
        if reduction == "mean" and mean_by_weight:
            return (losses.sum() / widened(weight).sum()).to(input.dtype)
    return reduced(losses, reduction, input.dtype)


@promotes("input", "target", "weight")
@autocasts
def mse_loss(
    input: DeviceArray,
    target: DeviceArray,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: Reduction = "mean",
    weight: DeviceArray | None = None,
) -> DeviceArray:
    """The squares of input - target, times weight: their mean (by weight), their sum, or all of them.

    Floats of one dtype on one device; the shapes of input and target broadcast, with a warning where they differ, and
    weight has that of input. Raises DeviceMismatchError, DTypeMismatchError, ShapeMismatchError, ValueError for another
    reduction.

    >>> F.mse_loss(dt.tensor([1.0, 2.0]), dt.tensor([1.0, 4.0]))
    DeviceArray(2., device='cpu', dtype=float32)
    """
    reduction = chosen("mse_loss", size_average, reduce, reduction)
    if weight is None and reduction != "none":  # no array of squares
        wide, other = matched("mse_loss", input, target)
        distance = wide - other
        total = _C._sum_squares(distance)
        return (total / distance.numel() if reduction == "mean" else total).to(input.dtype)
    return _distance("mse_loss", input, target, weight, reduction, _square)


@promotes("input", "target", "weight")
@autocasts
def l1_loss(
    input: DeviceArray,
    target: DeviceArray,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: Reduction = "mean",
    weight: DeviceArray | None = None,
) -> DeviceArray:
    """The absolute values of input - target, times weight: their mean (by weight), their sum, or all of them.

    Floats of one dtype on one device; the shapes of input and target broadcast, with a warning where they differ, and
    weight has that of input. Raises DeviceMismatchError, DTypeMismatchError, ShapeMismatchError, ValueError for another
    reduction.

    >>> F.l1_loss(dt.tensor([1.0, 2.0]), dt.tensor([1.0, 4.0]))
    DeviceArray(1., device='cpu', dtype=float32)
    """
    reduction = chosen("l1_loss", size_average, reduce, reduction)
    return _distance("l1_loss", input, target, weight, reduction, _magnitude)


def _square(input: DeviceArray, target: DeviceArray) -> DeviceArray:
    """In place where no gradient needs the distance, as below: it is new."""
    distance = input - target
    return distance.square() if distance.requires_grad else distance.square_()


def _magnitude(input: DeviceArray, target: DeviceArray) -> DeviceArray:
    distance = input - target
    return distance.abs() if distance.requires_grad else distance.abs_()


@promotes("input", "target", first=True)
@autocasts
def huber_loss(
    input: DeviceArray,
    target: DeviceArray,
    reduction: Reduction = "mean",
    delta: float = 1.0,
    weight: DeviceArray | None = None,
) -> DeviceArray:
    """Half the square of input - target up to delta, a line of slope delta beyond, times weight.

    The mean over all elements, the sum, or all of them. Floats of one dtype on one device; the shapes of input and
    target broadcast, with a warning where they differ, and weight has that of input. Raises DeviceMismatchError,
    DTypeMismatchError, ShapeMismatchError, ValueError for another reduction, RuntimeError for a delta that is not
    above 0.

    >>> F.huber_loss(dt.tensor([1.0, 2.0]), dt.tensor([1.5, 4.0]), reduction="none")
    DeviceArray([0.1250, 1.5000], device='cpu', dtype=float32)
    """
    reduction = chosen("huber_loss", None, None, reduction)
    delta = _need_number("huber_loss", "delta", delta)
    if not delta > 0:
        raise RuntimeError(f"huber_loss does not support non-positive values for delta. Got: {delta}")
    return _distance("huber_loss", input, target, weight, reduction, lambda x, y: _C._huber(x, y, delta), False)


@promotes("input", "target")
@autocasts
def smooth_l1_loss(
    input: DeviceArray,
    target: DeviceArray,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: Reduction = "mean",
    beta: float = 1.0,
) -> DeviceArray:
    """huber_loss with delta = beta, divided by beta: the slope beyond is 1. beta 0 gives l1_loss.

    The mean, the sum, or all of them. Floats of one dtype on one device; the shapes of input and target broadcast,
    with a warning where they differ. Raises DeviceMismatchError, DTypeMismatchError, ShapeMismatchError, ValueError
    for another reduction, RuntimeError for a beta below 0.

    >>> F.smooth_l1_loss(dt.tensor([1.0, 2.0]), dt.tensor([1.5, 4.0]), reduction="none")
    DeviceArray([0.1250, 1.5000], device='cpu', dtype=float32)
    """
    reduction = chosen("smooth_l1_loss", size_average, reduce, reduction)
    beta = _need_number("smooth_l1_loss", "beta", beta)
    if not beta >= 0:
        raise RuntimeError(f"smooth_l1_loss does not support negative values for beta. Got: {beta}")

    def measure(input: DeviceArray, target: DeviceArray) -> DeviceArray:
        if not beta:
            return _magnitude(input, target)
        return _C._huber(input, target, beta) if beta == 1 else _C._huber(input, target, beta) / beta

    return _distance("smooth_l1_loss", input, target, None, reduction, measure)


@promotes("input", "target", integers=False)
@autocasts
def kl_div(
    input: DeviceArray,
    target: DeviceArray,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: BatchReduction = "mean",
    log_target: bool = False,
) -> DeviceArray:
    """target * (log(target) - input), the divergence of probabilities: input holds logarithms, target none.

    log_target: target holds logarithms too. "batchmean" divides the sum by the first size, which is the divergence of
    a batch; "mean" divides by the number of elements, and warns of it. Floats of one dtype on one device; the
    shapes broadcast, with a warning where they differ. Raises DeviceMismatchError, DTypeMismatchError,
    ShapeMismatchError, ValueError for another reduction.

    >>> F.kl_div(dt.tensor([[0.25, 0.75]]).log(), dt.tensor([[0.5, 0.5]]), reduction="batchmean")
    DeviceArray(0.1438, device='cpu', dtype=float32)
    """
    reduction = chosen("kl_div", size_average, reduce, reduction, ("batchmean",))
    log_target = _need_bool("kl_div", "log_target", log_target)
    if reduction == "mean":
        warnings.warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size. 'batchmean' divides "
            "only by the batch size, and aligns with the KL div math definition. 'mean' will be changed to behave the "
            "same as 'batchmean' in the next major release.",
            stacklevel=2,
        )
    logs, shares = matched("kl_div", input, target)
    if log_target:
        losses = shares.exp() * (shares - logs)
    else:
        losses = shares * (_C.where(shares == 0, 1.0, shares).log() - logs)  # 0 log 0 is 0
    if reduction == "batchmean":
        return (losses.sum() / (input.shape[0] if input.ndim else 1)).to(input.dtype)
    return reduced(losses, reduction, input.dtype)


# ---------------------------------------------------------------- yes or no


def _check_answers(op: str, input: DeviceArray, target: DeviceArray, **weights: DeviceArray | None) -> None:
    """All checks of input, target of its shape, and weights that broadcast to it."""
    need_array(op, "target", target)
    names, arrays = ("input", "target", *weights), (input, target, *weights.values())
    _C._check(op, names, arrays)
    shape = input.shape
    _C._check_shape(op, names, arrays, 1, shape)
    for which, weight in enumerate(arrays[2:], 2):
        if weight is not None:
            pairs = zip(shape[-weight.ndim :] if weight.ndim else (), weight.shape, strict=False)
            spread = [1 if own == 1 else size for size, own in pairs]
            _C._check_shape(op, names, arrays, which, spread if weight.ndim <= input.ndim else shape)


@autocasts
def binary_cross_entropy(
    input: DeviceArray,
    target: DeviceArray,
    weight: DeviceArray | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: Reduction = "mean",
) -> DeviceArray:
    """-(target * log(input) + (1 - target) * log(1 - input)), times weight: their mean, their sum, or all of them.

    input and target hold probabilities. Logarithms are at least -100. Floats of one dtype on one device; target has
    the shape of input, and weight broadcasts to it. Raises DeviceMismatchError, DTypeMismatchError, ShapeMismatchError,
    ValueError for another reduction, RuntimeError for what is not between 0 and 1: on a GPU at the next wait.

    >>> F.binary_cross_entropy(dt.tensor([0.9, 0.2]), dt.tensor([1.0, 0.0]))
    DeviceArray(0.1643, device='cpu', dtype=float32)
    """
    reduction = chosen("binary_cross_entropy", size_average, reduce, reduction)
    _check_answers("binary_cross_entropy", input, target, weight=weight)
    if input.numel():
        wrong = _C.where(_exceeds(input), 1, _C.where(_exceeds(target), 2, 0))
        _C._check_binary_cross_entropy(input, target, wrong.reshape(1))
    losses = cross_entropies(widened(input), widened(target))
    if weight is not None:
        losses = losses * widened(weight)
    return reduced(losses, reduction, input.dtype)


def _exceeds(x: DeviceArray) -> DeviceArray:
    """Whether an element is not between 0 and 1: bool ()."""
    x = x.detach()
    return (x.amin() >= 0).logical_and(x.amax() <= 1).logical_not()


@promotes("input", "target", "weight", "pos_weight", integers=False)
@autocasts
def binary_cross_entropy_with_logits(
    input: DeviceArray,
    target: DeviceArray,
    weight: DeviceArray | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: Reduction = "mean",
    pos_weight: DeviceArray | None = None,
) -> DeviceArray:
    """binary_cross_entropy of sigmoid(input), exact for large logits too.

    weight is for all elements, pos_weight for the part with target; both broadcast to input. Floats of one dtype on one
    device; target has the shape of input. Raises DeviceMismatchError, DTypeMismatchError, ShapeMismatchError,
    ValueError for another reduction.

    >>> F.binary_cross_entropy_with_logits(dt.tensor([2.0, -1.0]), dt.tensor([1.0, 0.0]))
    DeviceArray(0.2201, device='cpu', dtype=float32)
    """
    op = "binary_cross_entropy_with_logits"
    reduction = chosen(op, size_average, reduce, reduction)
    _check_answers(op, input, target, weight=weight, pos_weight=pos_weight)
    training.check_scores(op, input)
    x, y = widened(input), widened(target)
    surprise = _C.softplus(-x, threshold=40.0)  # -log(sigmoid(x)), in every digit of float64
    if pos_weight is not None:
        surprise = surprise * ((widened(pos_weight) - 1) * y + 1)
    losses = (1 - y) * x + surprise
    if weight is not None:
        losses = losses * widened(weight)
    return reduced(losses, reduction, input.dtype)


# ---------------------------------------------------------------- classes

_NAMES = ("input", "target", "weight")


def check_classes(
    op: str, input: DeviceArray, target: DeviceArray, weight: DeviceArray | None, probabilities: bool = False
) -> int:
    """The dimension of the classes, after all checks; with probabilities target may hold a share for each class."""
    need_array(op, "target", target)
    arrays = (input, target, weight)
    shares = probabilities and target.dtype.is_floating_point
    _C._check(op, _NAMES, arrays, apart=-1 if shares else 1)
    if not shares and target.dtype not in (_C.int64, _C.uint8):
        _C._fail_dtype(op, _NAMES, arrays, 1, "int64 and uint8")
    _C._check_rank(op, _NAMES, arrays, 0, 1, 64)
    dim = 0 if input.ndim == 1 else 1
    if weight is not None:
        _C._check_shape(op, _NAMES, arrays, 2, [input.shape[dim]])
    _C._check_shape(op, _NAMES, arrays, 1, [n for d, n in enumerate(input.shape) if shares or d != dim])
    return dim


def _nll(
    op: str,
    input: DeviceArray,
    target: DeviceArray,
    logs: DeviceArray,
    weight: DeviceArray | None,
    ignore_index: int,
    reduction: str,
    smoothing: float = 0.0,
) -> DeviceArray:
    """logs (N, C, ...), made of input, and target (N, ...), or (C) and (); everything has been checked but classes."""
    dim = 0 if logs.ndim == 1 else 1
    classes = target.to(_C.int64)
    counts = classes != ignore_index
    classes = _C.where(counts, classes, 0)
    pick = _C._pick_nll_loss if op == "nll_loss" else _C._pick_cross_entropy
    losses = -pick(input, target, logs, dim, classes.unsqueeze(dim)).squeeze(dim)
    total = counts
    if weight is not None:
        total = _C.where(counts, _C.take(weight, classes), 0.0)
        losses = losses * total
    if smoothing:
        smooth = (logs if weight is None else logs * _along(weight, logs, dim)).sum(dim)
        losses = losses * (1 - smoothing) - smooth * (smoothing / max(logs.shape[dim], 1))
    losses = _C.where(counts, losses, 0.0)
    if reduction == "none":
        return losses
    summed = losses.sum()
    return summed if reduction == "sum" else summed / total.sum().to(logs.dtype)


def _along(weight: DeviceArray, input: DeviceArray, dim: int) -> DeviceArray:
    """A weight for each class, which broadcasts with input."""
    return weight.reshape([-1 if d == dim else 1 for d in range(input.ndim)])


@autocasts
def nll_loss(
    input: DeviceArray,
    target: DeviceArray,
    weight: DeviceArray | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: Reduction = "mean",
) -> DeviceArray:
    """-input[target], times weight[target]: input (N, C), (N, C, ...) or (C) holds logarithms of probabilities.

    target (N), (N, ...) or () holds classes, int64 or uint8; those equal to ignore_index do not count. The mean is
    that by weight. Raises DeviceMismatchError, DTypeMismatchError, ShapeMismatchError, ValueError for another
    reduction, IndexError for a class out of range: on a CUDA device the next wait raises it.

    >>> F.nll_loss(dt.tensor([[-0.5, -1.0], [-2.0, -0.1]]), dt.tensor([0, 1]))
    DeviceArray(0.3000, device='cpu', dtype=float32)
    """
    reduction = chosen("nll_loss", size_average, reduce, reduction)
    ignore_index = _need_int("nll_loss", "ignore_index", ignore_index)
    check_classes("nll_loss", input, target, weight)
    training.check_scores("nll_loss", input)
    wide = None if weight is None else widened(weight)
    return _nll("nll_loss", input, target, widened(input), wide, ignore_index, reduction).to(input.dtype)


@promotes("input", "target", "weight", integers=False)
@autocasts
def cross_entropy(
    input: DeviceArray,
    target: DeviceArray,
    weight: DeviceArray | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: Reduction = "mean",
    label_smoothing: float = 0.0,
) -> DeviceArray:
    """nll_loss of log_softmax(input) over the classes: input (N, C), (N, C, ...) or (C).

    target holds classes as in nll_loss, or probabilities in the shape and dtype of input. Raises DeviceMismatchError,
    DTypeMismatchError, ShapeMismatchError, ValueError for another reduction or smoothing, IndexError for a class out
    of range: on a CUDA device the next wait raises it.

    >>> F.cross_entropy(dt.zeros(2, 4), dt.tensor([0, 3]))
    DeviceArray(1.3863, device='cpu', dtype=float32)
    """
    reduction = chosen("cross_entropy", size_average, reduce, reduction)
    ignore_index = _need_int("cross_entropy", "ignore_index", ignore_index)
    label_smoothing = _need_number("cross_entropy", "label_smoothing", label_smoothing)
    if not 0.0 <= label_smoothing <= 1.0:
        raise ValueError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}")
    dim = check_classes("cross_entropy", input, target, weight, probabilities=True)
    training.check_scores("cross_entropy", input)
    wide = None if weight is None else widened(weight)
    if not target.dtype.is_floating_point:
        logs = _C.log_softmax(widened(input), dim)
        losses = _nll("cross_entropy", input, target, logs, wide, ignore_index, reduction, label_smoothing)
        return losses.to(input.dtype)
    logs, shares = _C.log_softmax(widened(input), dim), widened(target)
    if label_smoothing:
        shares = shares * (1 - label_smoothing) + label_smoothing / max(input.shape[dim], 1)
    losses = logs * shares
    losses = -(losses if wide is None else losses * _along(wide, input, dim)).sum(dim)
    if reduction == "none":
        return losses.to(input.dtype)
    rows = input.numel() // max(input.shape[dim], 1)
    total = losses.sum()
    return (total / rows if reduction == "mean" else total).to(input.dtype)


__all__ = [
    "cross_entropy",
    "mse_loss",
    "nll_loss",
]
