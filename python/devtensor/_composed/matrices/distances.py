"""Distances and likenesses of vectors, and the losses that are made of them."""

from __future__ import annotations

from devtensor import _C
from devtensor._C import DeviceArray, _need_bool, _need_int, _need_number
from devtensor._composed.arguments import dims_of, need_array, widened
from devtensor._composed.losses.basic import Reduction, check_classes, chosen, reduced
from devtensor._composed.reductions.moments import norm
from devtensor._dtypes.autocast import autocasts
from devtensor._dtypes.rules import promotes


def _check_pair(op: str, x1: DeviceArray, x2: DeviceArray) -> None:
    need_array(op, "x2", x2)
    _C._check(op, ("x1", "x2"), (x1, x2))
    _C._check_broadcast(op, ("x1", "x2"), (x1, x2))


@promotes("x1", "x2")
@autocasts
def cosine_similarity(x1: DeviceArray, x2: DeviceArray, dim: int = 1, eps: float = 1e-8) -> DeviceArray:
    """The cosine of the angle between vectors along dim: sum(x1 * x2) / (norm(x1) * norm(x2)), each norm at least eps.

    Floats of one dtype on one device, whose shapes broadcast; dim counts in the broadcast shape. Raises
    DeviceMismatchError, DTypeMismatchError, ShapeMismatchError, IndexError for a dim out of range.

    >>> F.cosine_similarity(dt.tensor([[1.0, 0.0]]), dt.tensor([[3.0, 4.0]]))
    DeviceArray([0.6000], device='cpu', dtype=float32)
    """
    _check_pair("cosine_similarity", x1, x2)
    dim = _need_int("cosine_similarity", "dim", dim)
    eps = _need_number("cosine_similarity", "eps", eps)
    (d,) = dims_of("cosine_similarity", dim, max(x1.ndim, x2.ndim), x1 if x1.ndim >= x2.ndim else x2)
    d -= max(x1.ndim, x2.ndim)
    if not x1.ndim and not x2.ndim:
        x1, x2, d = x1.reshape(1), x2.reshape(1), -1
    x, y = widened(x1), widened(x2)
    return (_unit(x, y, d, eps) * _unit(y, x, d, eps)).sum(d).to(x1.dtype)


def _unit(x: DeviceArray, other: DeviceArray, d: int, eps: float) -> DeviceArray:
    """The vectors of x along d, spread as far as those of other, with norm 1."""
    if x.ndim < -d:
        x = x.reshape([1] * (-d - x.ndim) + list(x.shape))
    if x.shape[d] == 1 and other.ndim >= -d:
        sizes = list(x.shape)
        sizes[d] = other.shape[d]
        x = x.expand(sizes)
    return x / x.square().sum(d, keepdim=True).clamp(min=eps * eps).sqrt()


@promotes("x1", "x2")
def pairwise_distance(
    x1: DeviceArray, x2: DeviceArray, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> DeviceArray:
    """The p-norm of x1 - x2 + eps over the last dimension.

    Floats of one dtype on one device, whose shapes broadcast. Raises DeviceMismatchError, DTypeMismatchError,
    ShapeMismatchError.

    >>> F.pairwise_distance(dt.tensor([[1.0, 1.0]]), dt.tensor([[4.0, 5.0]]))
    DeviceArray([5.0000], device='cpu', dtype=float32)
    """
    _check_pair("pairwise_distance", x1, x2)
    p = _need_number("pairwise_distance", "p", p)
    eps = _need_number("pairwise_distance", "eps", eps)
    keepdim = _need_bool("pairwise_distance", "keepdim", keepdim)
    return _apart(widened(x1), widened(x2), p, eps, keepdim).to(x1.dtype)


def _apart(x: DeviceArray, y: DeviceArray, p: float, eps: float, keepdim: bool = False) -> DeviceArray:
    distance = x - y + eps
    return norm(distance, p, -1 if distance.ndim else None, keepdim)


# ---------------------------------------------------------------- losses


def _check_signs(op: str, names: tuple[str, ...], arrays: tuple[DeviceArray, ...]) -> None:
    """All checks of floats and of the target, which comes last: 1 and -1, floats or integers."""
    target = arrays[-1]
    for name, array in zip(names[1:], arrays[1:], strict=True):
        need_array(op, name, array)
    signs = target.dtype.is_floating_point or target.dtype in (_C.bool, _C.uint8)  # which have no -1
    _C._check(op, names, arrays, apart=-1 if signs else len(arrays) - 1)


def _check_ranks(op: str, names: tuple[str, ...], arrays: tuple[DeviceArray, DeviceArray, DeviceArray]) -> None:
    """As many dimensions in each as two of the three have."""
    rank = sorted(array.ndim for array in arrays)[1]
    for which in range(3):
        _C._check_rank(op, names, arrays, which, rank, rank)


@promotes("input1", "input2", "target")
@autocasts
def margin_ranking_loss(
    input1: DeviceArray,
    input2: DeviceArray,
    target: DeviceArray,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: Reduction = "mean",
) -> DeviceArray:
    """max(0, margin - target * (input1 - input2)): their mean, their sum, or all of them.

    target is 1 where input1 should be larger, -1 where input2 should. Floats of one dtype on one device, target also
    signed integers; as many dimensions in each, whose sizes broadcast. Raises DeviceMismatchError, DTypeMismatchError,
    ShapeMismatchError, ValueError for another reduction.

    >>> F.margin_ranking_loss(dt.tensor([1.0, 2.0]), dt.tensor([3.0, 0.0]), dt.tensor([1.0, 1.0]))
    DeviceArray(1., device='cpu', dtype=float32)
    """
    op, names = "margin_ranking_loss", ("input1", "input2", "target")
    reduction = chosen(op, size_average, reduce, reduction)
    margin = _need_number(op, "margin", margin)
    arrays = (input1, input2, target)
    _check_signs(op, names, arrays)
    _check_ranks(op, names, arrays)
    _C._check_broadcast(op, names, arrays)
    losses = (margin - target * (widened(input1) - widened(input2))).clamp(min=0)
    return reduced(losses, reduction, input1.dtype)


@promotes("input", "target", first=True)
@autocasts
def hinge_embedding_loss(
    input: DeviceArray,
    target: DeviceArray,
    margin: float = 1.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: Reduction = "mean",
) -> DeviceArray:
    """input where target is 1, max(0, margin - input) where it is -1: their mean, their sum, or all of them.

    Floats of one dtype on one device, target also signed integers; the shapes broadcast. Raises DeviceMismatchError,
    DTypeMismatchError, ShapeMismatchError, ValueError for another reduction.

    >>> F.hinge_embedding_loss(dt.tensor([0.5, 0.25]), dt.tensor([1.0, -1.0]), reduction="none")
    DeviceArray([0.5000, 0.7500], device='cpu', dtype=float32)
    """
    op, names = "hinge_embedding_loss", ("input", "target")
    reduction = chosen(op, size_average, reduce, reduction)
    margin = _need_number(op, "margin", margin)
    _check_signs(op, names, (input, target))
    _C._check_broadcast(op, names, (input, target))
    x = widened(input)
    losses = _C.where(target != 1, (margin - x).clamp(min=0), 0.0) + _C.where(target != -1, x, 0.0)
    return reduced(losses, reduction, input.dtype)


@promotes("input", "target", first=True)
@autocasts
def soft_margin_loss(
    input: DeviceArray,
    target: DeviceArray,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: Reduction = "mean",
) -> DeviceArray:
    """log(1 + exp(-target * input)), for target 1 and -1: their mean, their sum, or all of them.

    Floats of one dtype on one device, target also signed integers; the shapes broadcast. Raises DeviceMismatchError,
    DTypeMismatchError, ShapeMismatchError, ValueError for another reduction.

    >>> F.soft_margin_loss(dt.tensor([0.0, 2.0]), dt.tensor([1.0, -1.0]), reduction="none")
    DeviceArray([0.6931, 2.1269], device='cpu', dtype=float32)
    """
    op, names = "soft_margin_loss", ("input", "target")
    reduction = chosen(op, size_average, reduce, reduction)
    _check_signs(op, names, (input, target))
    _C._check_broadcast(op, names, (input, target))
    losses = _C.softplus(-target * widened(input), threshold=40.0)
    return reduced(losses, reduction, input.dtype)


@promotes("input1", "input2", "target")
@autocasts
def cosine_embedding_loss(
    input1: DeviceArray,
    input2: DeviceArray,
    target: DeviceArray,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: Reduction = "mean",
) -> DeviceArray:
    """1 - cos(input1, input2) where target is 1, max(0, cos(input1, input2) - margin) where it is -1.

    Their mean, their sum, or all of them. input1 and input2 (N, D) with target (N), or (D) with (): floats of one dtype
    on one device, target also signed integers. Raises DeviceMismatchError, DTypeMismatchError, ShapeMismatchError,
    ValueError for another reduction.

    >>> F.cosine_embedding_loss(dt.tensor([[1.0, 0.0]]), dt.tensor([[3.0, 4.0]]), dt.tensor([1.0]))
    DeviceArray(0.4000, device='cpu', dtype=float32)
    """
    op, names = "cosine_embedding_loss", ("input1", "input2", "target")
    reduction = chosen(op, size_average, reduce, reduction)
    margin = _need_number(op, "margin", margin)
    arrays = (input1, input2, target)
    _check_signs(op, names, arrays)
    rank = min(max(sorted((input1.ndim, input2.ndim, target.ndim + 1))[1], 1), 2)  # which two of them have
    for which, wanted in enumerate((rank, rank, rank - 1)):
        _C._check_rank(op, names, arrays, which, wanted, wanted)
    both = zip(input1.shape, input2.shape, strict=True)
    _C._check_shape(op, names, arrays, 1, [-1 if 1 in pair else pair[0] for pair in both])
    x, y = widened(input1), widened(input2)
    dots = (x * y).sum(-1)
    if target.ndim and target.shape[0] != 1 and dots.shape[0] != 1:
        _C._check_shape(op, names, arrays, 2, dots.shape)
    lengths = (x.square().sum(-1) + 1e-12) * (y.square().sum(-1) + 1e-12)
    cosine = dots / lengths.sqrt()
    losses = _C.where(target == 1, 1 - cosine, 0.0) + _C.where(target == -1, (cosine - margin).clamp(min=0), 0.0)
    return reduced(losses, reduction, input1.dtype)


@promotes("anchor", "positive", "negative")
@autocasts
def triplet_margin_loss(
    anchor: DeviceArray,
    positive: DeviceArray,
    negative: DeviceArray,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: Reduction = "mean",
) -> DeviceArray:
    """max(0, margin + d(anchor, positive) - d(anchor, negative)), with d the pairwise_distance.

    Their mean, their sum, or all of them. swap: the smaller of d(anchor, negative) and d(positive, negative). Floats of
    one dtype on one device, as many dimensions in each, whose sizes broadcast. Raises DeviceMismatchError,
    DTypeMismatchError, ShapeMismatchError, ValueError for another reduction and a margin that is not above 0.

    >>> F.triplet_margin_loss(dt.zeros(1, 2), dt.tensor([[3.0, 4.0]]), dt.tensor([[0.0, 2.0]]))
    DeviceArray(4.0000, device='cpu', dtype=float32)
    """
    op, names, arrays = "triplet_margin_loss", ("anchor", "positive", "negative"), (anchor, positive, negative)
    reduction = chosen(op, size_average, reduce, reduction)
    margin = need_margin(op, margin)
    p, eps = _need_number(op, "p", p), _need_number(op, "eps", eps)
    swap = _need_bool(op, "swap", swap)
    need_array(op, "positive", positive)
    need_array(op, "negative", negative)
    _C._check(op, names, arrays)
    _check_ranks(op, names, arrays)
    _C._check_broadcast(op, names, arrays)
    x, y, z = widened(anchor), widened(positive), widened(negative)
    far = _apart(x, z, p, eps)
    if swap:
        far = _C.minimum(far, _apart(y, z, p, eps))
    return reduced((margin + _apart(x, y, p, eps) - far).clamp(min=0), reduction, anchor.dtype)


def need_margin(op: str, margin: float) -> float:
    """margin of triplet_margin_loss. Raises ValueError for one that is not above 0."""
    margin = _need_number(op, "margin", margin)
    if not margin > 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    return margin


@autocasts
def multi_margin_loss(
    input: DeviceArray,
    target: DeviceArray,
    p: int = 1,
    margin: float = 1.0,
    weight: DeviceArray | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: Reduction = "mean",
) -> DeviceArray:
    """sum(max(0, margin - input[target] + input[other]) ** p) / C over the other classes, times weight[target].

    The mean of the rows, their sum, or all of them. input (N, C) or (C) holds scores, target (N) or () classes, int64
    or uint8, weight (C). Raises DeviceMismatchError, DTypeMismatchError, ShapeMismatchError, ValueError for a p that
    is neither 1 nor 2 or another reduction, IndexError for a class out of range: on a CUDA device the next wait
    raises it.

    >>> F.multi_margin_loss(dt.tensor([[0.1, 0.2, 0.4, 0.8]]), dt.tensor([3]))
    DeviceArray(0.3250, device='cpu', dtype=float32)
    """
    op = "multi_margin_loss"
    reduction = chosen(op, size_average, reduce, reduction)
    p, margin = need_power(op, p), _need_number(op, "margin", margin)
    check_classes(op, input, target, weight)
    _C._check_rank(op, ("input", "target", "weight"), (input, target, weight), 0, 1, 2)
    x, classes = widened(input), target.to(_C.int64)
    count = x.shape[-1]
    if not target.is_cuda and target.numel() and not 0 <= int(classes.amin()) <= int(classes.amax()) < count:
        text = f"{op}(): classes must be at least 0 and smaller than the number of scores ({count})"
        raise _C._explained(op, ("input", "target"), (input, target), "index-out-of-range", IndexError(text), 1)
    chosen_class = classes.unsqueeze(-1)
    losses = (margin - x.gather(-1, chosen_class) + x).clamp(min=0)
    losses = losses if p == 1 else losses.square()
    if weight is not None:
        losses = losses * widened(weight).take(chosen_class)
    others = chosen_class != _C.arange(count, device=x.device)
    losses = _C.where(others, losses, 0.0).sum(-1) / max(count, 1)
    return reduced(losses, reduction, input.dtype)


def need_power(op: str, p: int) -> int:
    """p of multi_margin_loss. Raises ValueError for another than 1 and 2."""
    p = _need_int(op, "p", p)
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    return p


__all__ = [
    "cosine_similarity",
    "pairwise_distance",
]
