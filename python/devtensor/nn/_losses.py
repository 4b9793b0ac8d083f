"""Losses: numbers that tell how far predictions are from targets. Values only; there are no gradients."""

from __future__ import annotations

import math
import warnings
from typing import Literal, TypeAlias

from devtensor import _C
from devtensor._C import DeviceArray
from devtensor._composed import _wide

Reduction: TypeAlias = Literal["none", "mean", "sum"]


def _reduced(losses: DeviceArray, reduction: str, dtype: _C.dtype) -> DeviceArray:
    if reduction == "mean":
        losses = losses.mean()
    elif reduction == "sum":
        losses = losses.sum()
    return losses.to(dtype)


def _check_reduction(reduction: str) -> None:
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not a valid value for reduction")


def _distance(op: str, input: DeviceArray, target: DeviceArray, reduction: str) -> DeviceArray:
    _check_reduction(reduction)
    _C._check(op, ("input", "target"), (input, target), floating=False)
    _C._check(op, ("input",), (input,))
    if input.shape != target.shape:
        warnings.warn(
            f"Using a target size ({target.shape}) that is different to the input size ({input.shape}). This will "
            "likely lead to incorrect results due to broadcasting. Please ensure they have the same size.",
            stacklevel=3,
        )
    return _wide(input) - _wide(target)


def mse_loss(input: DeviceArray, target: DeviceArray, reduction: Reduction = "mean") -> DeviceArray:
    """The squares of input - target: their mean, their sum, or all of them.

    Floats of one dtype on one device; shapes broadcast, with a warning where they differ. Raises DeviceMismatchError,
    DTypeMismatchError, ShapeMismatchError, ValueError for another reduction.
    """
    return _reduced(_distance("mse_loss", input, target, reduction).square(), reduction, input.dtype)


def l1_loss(input: DeviceArray, target: DeviceArray, reduction: Reduction = "mean") -> DeviceArray:
    """The absolute values of input - target: their mean, their sum, or all of them.

    Floats of one dtype on one device; shapes broadcast, with a warning where they differ. Raises DeviceMismatchError,
    DTypeMismatchError, ShapeMismatchError, ValueError for another reduction.
    """
    return _reduced(_distance("l1_loss", input, target, reduction).abs(), reduction, input.dtype)


_NAMES = ("input", "target", "weight")


def _check_classes(op: str, input: DeviceArray, target: DeviceArray, weight: DeviceArray | None) -> int:
    """The dimension of the classes. Devices and dtypes of all, shapes where target holds class indices."""
    arrays = (input, target, weight)
    _C._check(op, _NAMES, arrays, same_dtype=False, floating=True)
    _C._check(op, ("input", "weight"), (input, weight))
    _C._check_rank(op, _NAMES, arrays, 0, 1, 64)
    dim = 0 if input.ndim == 1 else 1
    if weight is not None:
        _C._check_shape(op, _NAMES, arrays, 2, [input.shape[dim]])
    return dim


def _nll(
    op: str,
    logs: DeviceArray,
    target: DeviceArray,
    weight: DeviceArray | None,
    ignore_index: int,
    reduction: str,
    smoothing: float = 0.0,
) -> DeviceArray:
    """logs (N, C, ...) and target (N, ...), or (C) and (); everything has been checked but target."""
    dim = 0 if logs.ndim == 1 else 1
    classes = logs.shape[dim]
    if not target.is_cuda and target.numel():
        counted = _C.where(target == ignore_index, 0, target)
        low, high = int(counted.amin()), int(counted.amax())
        if low < 0 or high >= max(classes, 1):
            error = IndexError(f"Target {low if low < 0 else high} is out of bounds ({op}: {classes} classes).")
            raise _C._explained(op, ("input", "target"), (logs, target), "index-out-of-range", error)
    shape = [1] * logs.ndim
    shape[dim] = classes
    chosen = target.unsqueeze(dim) == _C.arange(classes, device=logs.device).reshape(shape)
    counts = target != ignore_index
    picked = -_C.where(chosen, logs, 0.0).sum(dim)
    # out of range: a device cannot raise without waiting
    picked = _C.where((target >= 0) & (target < classes), picked, math.nan)
    if weight is None:
        share = counts.to(logs.dtype)
        losses = _C.where(counts, picked, 0.0)
    else:
        share = _C.where(counts, _C.where(chosen, weight.reshape(shape), 0.0).sum(dim), 0.0)
        losses = _C.where(counts, picked * share, 0.0)
    total = None
    if reduction != "none":
        total = share.sum()
    if smoothing:
        weighted = logs if weight is None else logs * weight.reshape(shape)
        smooth = _C.where(counts, -weighted.sum(dim), 0.0)
        losses = losses * (1 - smoothing) + smooth * (smoothing / classes)
    if reduction == "none":
        return losses
    summed = losses.sum()
    return summed if reduction == "sum" or total is None else summed / total


def _check_target(op: str, input: DeviceArray, target: DeviceArray, weight: DeviceArray | None, dim: int) -> None:
    arrays = (input, target, weight)
    if target.dtype not in (_C.int64, _C.uint8):
        _C._fail_dtype(op, ("target", "input", "weight"), (target, input, weight), "int64 and uint8")
    _C._check_shape(op, _NAMES, arrays, 1, [n for d, n in enumerate(input.shape) if d != dim])


def nll_loss(
    input: DeviceArray,
    target: DeviceArray,
    weight: DeviceArray | None = None,
    ignore_index: int = -100,
    reduction: Reduction = "mean",
) -> DeviceArray:
    """-input[target], times weight[target]: input (N, C), (N, C, ...) or (C) holds logarithms of probabilities.

    target (N), (N, ...) or () holds classes, int64 or uint8; those equal to ignore_index do not count. The mean is
    that by weight. Raises DeviceMismatchError, DTypeMismatchError, ShapeMismatchError, ValueError for another
    reduction, IndexError for a class out of range (NaN on a CUDA device).
    """
    _check_reduction(reduction)
    dim = _check_classes("nll_loss", input, target, weight)
    _check_target("nll_loss", input, target, weight, dim)
    wide = None if weight is None else _wide(weight)
    target = target.to(_C.int64)
    return _nll("nll_loss", _wide(input), target, wide, ignore_index, reduction).to(input.dtype)


def cross_entropy(
    input: DeviceArray,
    target: DeviceArray,
    weight: DeviceArray | None = None,
    ignore_index: int = -100,
    reduction: Reduction = "mean",
    label_smoothing: float = 0.0,
) -> DeviceArray:
    """nll_loss of log_softmax(input) over the classes: input (N, C), (N, C, ...) or (C).

    target holds classes as in nll_loss, or probabilities in the shape and dtype of input. Raises DeviceMismatchError,
    DTypeMismatchError, ShapeMismatchError, ValueError for another reduction or smoothing, IndexError for a class out
    of range (NaN on a CUDA device).
    """
    _check_reduction(reduction)
    if not 0.0 <= label_smoothing <= 1.0:
        raise ValueError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}")
    dim = _check_classes("cross_entropy", input, target, weight)
    wide = None if weight is None else _wide(weight)
    if not target.dtype.is_floating_point:
        _check_target("cross_entropy", input, target, weight, dim)
        logs, target = _C.log_softmax(_wide(input), dim), target.to(_C.int64)
        return _nll("cross_entropy", logs, target, wide, ignore_index, reduction, label_smoothing).to(input.dtype)
    _C._check("cross_entropy", ("input", "target"), (input, target))
    _C._check_shape("cross_entropy", _NAMES, (input, target, weight), 1, input.shape)
    logs, shares = _C.log_softmax(_wide(input), dim), _wide(target)
    if label_smoothing:
        shares = shares * (1 - label_smoothing) + label_smoothing / max(input.shape[dim], 1)
    shape = [1] * input.ndim
    shape[dim] = input.shape[dim]
    losses = logs * shares
    losses = -(losses if wide is None else losses * wide.reshape(shape)).sum(dim)
    if reduction == "none":
        return losses.to(input.dtype)
    rows = input.numel() // max(input.shape[dim], 1)
    total = losses.sum()
    return (total / rows if reduction == "mean" else total).to(input.dtype)
