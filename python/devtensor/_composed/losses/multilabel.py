"""Losses of several labels for one sample, and of triplets by a distance of the user's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from devtensor import _C
from devtensor._C import DeviceArray, _need_bool
from devtensor._composed.arguments import misshapen, need_array, widened
from devtensor._composed.losses.basic import Reduction, chosen, reduced
from devtensor._composed.matrices.distances import need_margin, pairwise_distance
from devtensor._dtypes.autocast import autocasts
from devtensor._dtypes.rules import promotes


@autocasts
def multilabel_margin_loss(
    input: DeviceArray,
    target: DeviceArray,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: Reduction = "mean",
) -> DeviceArray:
    """sum(max(0, 1 - input[label] + input[other])) / C over the labels of a sample and the other classes.

    The mean of the samples, their sum, or all of them. input (N, C) or (C) holds scores; target, int64 of its shape,
    holds labels up to the first -1. Raises DeviceMismatchError, DTypeMismatchError, ShapeMismatchError, ValueError for
    another reduction, and on the cpu IndexError for a label that is no class.

    >>> F.multilabel_margin_loss(dt.tensor([[0.1, 0.2, 0.4, 0.8]]), dt.tensor([[3, 0, -1, 1]]))
    DeviceArray(0.8500, device='cpu', dtype=float32)
    """
    op, names, arrays = "multilabel_margin_loss", ("input", "target"), (input, target)
    reduction = chosen(op, size_average, reduce, reduction)
    need_array(op, "target", target)
    _C._check(op, names, arrays, apart=1)
    if target.dtype is not _C.int64:
        _C._fail_dtype(op, names, arrays, 1, "int64")
    _C._check_rank(op, names, arrays, 0, 0, 2)
    _C._check_shape(op, names, arrays, 1, input.shape)
    x = widened(input)
    if not x.ndim:
        x, target = x.reshape(1), target.reshape(1)
    classes = x.shape[-1]
    if not target.is_cuda and target.numel() and not -1 <= int(target.amin()) <= int(target.amax()) < classes:
        text = f"{op}(): labels must be at least -1 and smaller than the number of scores ({classes})"
        raise _C._explained(op, names, arrays, "index-out-of-range", IndexError(text), 1)
    places = _C.arange(classes, device=x.device)
    if not classes:
        return reduced(x.sum(-1), reduction, input.dtype)
    ends = _C.where(target < 0, places, classes).amin(-1, keepdim=True)
    counts = places < ends  # what stands before the first -1
    found = target.clamp(min=0)
    labelled = _C.logical_and(found.unsqueeze(-1) == places, counts.unsqueeze(-1)).any(-2)
    margins = (1 - x.gather(-1, found).unsqueeze(-1) + x.unsqueeze(-2)).clamp(min=0)
    pairs = _C.logical_and(counts.unsqueeze(-1), ~labelled.unsqueeze(-2))
    losses = _C.where(pairs, margins, 0.0).sum((-2, -1)) / classes
    return reduced(losses, reduction, input.dtype)


@promotes("input", "target", "weight")
@autocasts
def multilabel_soft_margin_loss(
    input: DeviceArray,
    target: DeviceArray,
    weight: DeviceArray | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: Reduction = "mean",
) -> DeviceArray:
    """The mean over the classes of -(target * log(sigmoid(input)) + (1 - target) * log(sigmoid(-input))), times weight.

    The mean of the samples, their sum, or all of them. input and target (..., C), weight broadcasts with them: floats
    of one dtype on one device. Raises DeviceMismatchError, DTypeMismatchError, ShapeMismatchError, ValueError for
    another reduction.

    >>> F.multilabel_soft_margin_loss(dt.zeros(1, 2), dt.tensor([[1.0, 0.0]]))
    DeviceArray(0.6931, device='cpu', dtype=float32)
    """
    op, names, arrays = "multilabel_soft_margin_loss", ("input", "target", "weight"), (input, target, weight)
    reduction = chosen(op, size_average, reduce, reduction)
    need_array(op, "target", target)
    _C._check(op, names, arrays)
    _C._check_rank(op, names, arrays, 0, 1, 8)
    _C._check_broadcast(op, names, arrays)
    x, y = widened(input), widened(target)
    # -log(sigmoid(x)) is softplus(-x)
    losses = y * _C.softplus(-x, threshold=40.0) + (1 - y) * _C.softplus(x, threshold=40.0)
    losses = losses if weight is None else losses * widened(weight)
    return reduced(losses.sum(input.ndim - 1) / max(input.shape[-1], 1), reduction, input.dtype)


@promotes("anchor", "positive", "negative")
def triplet_margin_with_distance_loss(
    anchor: DeviceArray,
    positive: DeviceArray,
    negative: DeviceArray,
    *,
    distance_function: Callable[[DeviceArray, DeviceArray], DeviceArray] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: Reduction = "mean",
) -> DeviceArray:
    """max(0, margin + d(anchor, positive) - d(anchor, negative)), with d the distance_function, or pairwise_distance.

    Their mean, their sum, or all of them. swap: the smaller of d(anchor, negative) and d(positive, negative). Floats of
    one dtype on one device, as many dimensions in each. Raises DeviceMismatchError, DTypeMismatchError,
    ShapeMismatchError, ValueError for another reduction and a margin that is not above 0.

    >>> x = dt.zeros(1, 2)
    >>> F.triplet_margin_with_distance_loss(x, x + 3, x + 1, distance_function=lambda a, b: (a - b).abs().sum(1))
    DeviceArray(5., device='cpu', dtype=float32)
    """
    op, names = "triplet_margin_with_distance_loss", ("anchor", "positive", "negative")
    arrays = (anchor, positive, negative)
    reduction = chosen(op, None, None, reduction)
    margin, swap = need_margin(op, margin), _need_bool(op, "swap", swap)
    for name, array in zip(names, arrays, strict=True):
        need_array(op, name, array)
    _C._check(op, names, arrays)
    if len({array.ndim for array in arrays}) > 1:
        counts = ", ".join(f"{name} {array.ndim}D" for name, array in zip(names, arrays, strict=True))
        text = "The anchor, positive, and negative tensors are expected to have the same number of dimensions"
        ranks = [array.ndim for array in arrays]
        odd = next((i for i in range(3) if ranks.count(ranks[i]) == 1), 2)
        raise misshapen(op, names, arrays, f"{text}, but got: {counts}", odd)
    if distance_function is None:
        _C._check_broadcast(op, names, arrays)
        distance_function = pairwise_distance
    if not callable(distance_function):
        raise TypeError(
            f"{op}(): argument 'distance_function' must be callable, not {type(distance_function).__name__}"
        )
    far: Any = distance_function(anchor, negative)
    if swap:
        far = _C.minimum(far, distance_function(positive, negative))
    losses = (margin + distance_function(anchor, positive) - far).clamp(min=0)
    return reduced(losses, reduction, losses.dtype)
