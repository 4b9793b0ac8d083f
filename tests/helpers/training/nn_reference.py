"""What the layers and composed ops compute, in float64 and one element at a time where that is the clearest."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def conv1d(
    x: Array,
    weight: Array,
    bias: Array | None = None,
    stride: int = 1,
    padding: int = 0,
    dilation: int = 1,
    groups: int = 1,
) -> Array:
    if x.ndim == 2:
        return conv1d(x[None], weight, bias, stride, padding, dilation, groups)[0]
    x = np.pad(x, ((0, 0), (0, 0), (padding, padding)))
    out_channels, per_group, taps = weight.shape
    length = (x.shape[2] - dilation * (taps - 1) - 1) // stride + 1
    out = np.zeros((x.shape[0], out_channels, length))
    for n, k, p in np.ndindex(*out.shape):
        first = k // (out_channels // groups) * per_group
        for c, r in np.ndindex(per_group, taps):
            out[n, k, p] += x[n, first + c, p * stride + r * dilation] * weight[k, c, r]
        out[n, k, p] += 0 if bias is None else bias[k]
    return out


def batch_norm(
    x: Array, mean: Array, var: Array, weight: Array | None = None, bias: Array | None = None, eps: float = 1e-5
) -> Array:
    out = np.empty_like(x)
    for c in range(x.shape[1]):
        y = (x[:, c] - mean[c]) / math.sqrt(var[c] + eps)
        out[:, c] = y * (1 if weight is None else weight[c]) + (0 if bias is None else bias[c])
    return out


def batch_statistics(x: Array) -> tuple[Array, Array, Array]:
    """Mean, variance, and variance over n - 1, of each channel."""
    rows = np.moveaxis(x, 1, 0).reshape(x.shape[1], -1)
    return rows.mean(1), rows.var(1), rows.var(1, ddof=1)


def layer_norm(
    x: Array, shape: Sequence[int], weight: Array | None = None, bias: Array | None = None, eps: float = 1e-5
) -> Array:
    axes = tuple(range(x.ndim - len(shape), x.ndim))
    y = (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps)
    return y * (1 if weight is None else weight) + (0 if bias is None else bias)


def log_softmax(x: Array, dim: int) -> Array:
    y = x - x.max(dim, keepdims=True)
    return y - np.log(np.exp(y).sum(dim, keepdims=True))


def nll_loss(
    logs: Array,
    target: Array,
    weight: Array | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    smoothing: float = 0.0,
) -> Array:
    if logs.ndim == 1:
        alone = nll_loss(logs[None], target[None], weight, ignore_index, reduction, smoothing)
        return alone[0] if reduction == "none" else alone
    losses, shares = np.zeros(target.shape), np.zeros(target.shape)
    classes = logs.shape[1]
    for place in np.ndindex(*target.shape):
        wanted = int(target[place])
        if wanted == ignore_index:
            continue
        row = logs[(place[0], slice(None), *place[1:])]
        weights = np.ones(classes) if weight is None else weight
        shares[place] = weights[wanted]
        losses[place] = -row[wanted] * weights[wanted] * (1 - smoothing)
        losses[place] -= sum(row * weights) * smoothing / classes
    if reduction == "none":
        return losses
    total = losses.sum()
    return np.asarray(total if reduction == "sum" else total / shares.sum())


def cross_entropy(x: Array, target: Array, reduction: str = "mean", **options: Any) -> Array:
    dim = 0 if x.ndim == 1 else 1
    logs = log_softmax(x, dim)
    if target.dtype.kind != "f":
        smoothing = options.pop("label_smoothing", 0.0)
        return nll_loss(logs, target, reduction=reduction, smoothing=smoothing, **options)
    smoothing = options.get("label_smoothing", 0.0)
    target = target * (1 - smoothing) + smoothing / x.shape[dim]
    weight = options.get("weight")
    shape = [1] * x.ndim
    shape[dim] = -1
    losses = -(logs * target * (1 if weight is None else weight.reshape(shape))).sum(dim)
    if reduction == "none":
        return losses
    return np.asarray(losses.sum() / (x.size // x.shape[dim] if reduction == "mean" else 1))


def pad(x: Array, amounts: Sequence[int], mode: str = "constant", value: float = 0.0) -> Array:
    if mode == "circular":  # what is taken away does not come round
        for k in range(len(amounts) // 2):
            d = x.ndim - 1 - k
            x = np.take(x, range(max(-amounts[2 * k], 0), x.shape[d] + min(amounts[2 * k + 1], 0)), d)
        amounts = [max(n, 0) for n in amounts]
    shape, before = list(x.shape), [0] * x.ndim
    for k in range(len(amounts) // 2):
        d = x.ndim - 1 - k
        before[d] = amounts[2 * k]
        shape[d] += amounts[2 * k] + amounts[2 * k + 1]
    out = np.full(shape, value, dtype=x.dtype)
    for place in itertools.product(*map(range, shape)):
        source = [i - b for i, b in zip(place, before, strict=True)]
        inside = all(0 <= i < n for i, n in zip(source, x.shape, strict=True))
        if inside or mode != "constant":
            out[place] = x[tuple(outside(i, n, mode) for i, n in zip(source, x.shape, strict=True))]
    return out


def outside(i: int, n: int, mode: str) -> int:
    if mode == "circular":
        return i % n
    if mode == "replicate":
        return min(max(i, 0), n - 1)
    while mode == "reflect" and not 0 <= i < n:
        i = -i if i < 0 else 2 * (n - 1) - i
    return i


def gather(x: Array, dim: int, index: Array) -> Array:
    out = np.empty(index.shape, dtype=x.dtype)
    for place in np.ndindex(*index.shape):
        source = list(place)
        source[dim] = int(index[place])
        out[place] = x[tuple(source)]
    return out


def norm(x: Array, p: float, dim: Any, keepdim: bool) -> Array:
    y = np.abs(x)
    if math.isinf(p):
        return (y.max if p > 0 else y.min)(dim, keepdims=keepdim)
    if p == 0:
        return (y != 0).sum(dim, keepdims=keepdim).astype(np.float64)
    return (y**p).sum(dim, keepdims=keepdim) ** (1 / p)
