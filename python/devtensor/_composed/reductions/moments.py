"""Variances and norms."""

from __future__ import annotations

import math
from typing import Any

from devtensor import _C
from devtensor._C import DeviceArray, _need_bool, _need_ints, _need_number
from devtensor._composed.arguments import dims_of, dims_over, kept, widened
from devtensor._composed.written import takes_out
from devtensor._dtypes.autocast import autocasts
from devtensor._types import Dims


def variance(
    op: str,
    input: DeviceArray,
    dim: Any,
    unbiased: bool | None,
    keepdim: bool,
    correction: float | None,
    axis: Any,
    keepdims: bool | None,
    root: bool = False,
) -> DeviceArray:
    """With root its square root, of squares that the dtype need not hold."""
    if isinstance(dim, bool):  # var(x, unbiased)
        dim, unbiased = None, dim
    _C._check(op, ("input",), (input,))
    if unbiased is not None and correction is not None:
        raise TypeError(f"{op}() takes unbiased or correction, not both")
    if correction is None:
        lost: float = unbiased is None or _need_bool(op, "unbiased", unbiased)
    else:
        lost = float(_need_number(op, "correction", correction))
    dims = dims_over(op, input, dim, axis)
    keep = kept(op, keepdim, keepdims)
    if input.is_cuda and input.ndim and dims and input.numel() and not (input.requires_grad and _C.is_grad_enabled()):
        count = math.prod(input.shape[d] for d in dims)
        return _C._variance(input, dims, keep, max(count - lost, 0), root)
    x = widened(input)
    if x.ndim == 0:
        x, dims, keep = x.reshape(1), (0,), False
    count = math.prod(x.shape[d] for d in dims)
    distance = x - (x.mean(dims, keepdim=True) if count else 0)
    rest = max(count - lost, 0)
    if root and rest:
        return _C._root_squares(distance, dims, keep) / math.sqrt(rest)
    total = _C._sum_squares(distance, dims, keep)
    spread = total / rest if rest else total / _C.zeros_like(total)
    return power(spread, 0.5) if root else spread  # of no number, as its gradient: that of a root of 0 is 0


@takes_out
def var(
    input: DeviceArray,
    dim: Dims | bool | None = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
    axis: Dims | None = None,
    keepdims: bool | None = None,
    out: DeviceArray | None = None,
) -> DeviceArray:
    """Variance over the given dimensions, all by default: the sum of squared distances to the mean over n - correction.

    Floats only, computed in float32 for the half types; correction is 1 by default (unbiased=True), NaN comes of too
    few elements. Raises DTypeMismatchError for integers, IndexError for a dim out of range.

    >>> dt.var(dt.tensor([1.0, 2.0, 3.0]))
    DeviceArray(1., device='cpu', dtype=float32)
    """
    return variance("var", input, dim, unbiased, keepdim, correction, axis, keepdims).to(input.dtype)


@takes_out
def std(
    input: DeviceArray,
    dim: Dims | bool | None = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
    axis: Dims | None = None,
    keepdims: bool | None = None,
    out: DeviceArray | None = None,
) -> DeviceArray:
    """Standard deviation over the given dimensions: the square root of var, with its parameters and errors.

    >>> dt.std(dt.tensor([1.0, 2.0, 3.0]), correction=0)
    DeviceArray(0.8165, device='cpu', dtype=float32)
    """
    return variance("std", input, dim, unbiased, keepdim, correction, axis, keepdims, root=True).to(input.dtype)


def power(x: DeviceArray, exponent: float) -> DeviceArray:
    """x ** exponent of what is not negative; its gradient is 0 where x is 0, as that of PyTorch's norms is."""
    if not x.requires_grad:
        return _plain_power(x, exponent)
    zero = x == 0
    return _C.where(zero, 0.0 if exponent > 0 else math.inf, _plain_power(_C.where(zero, 1.0, x), exponent))


def _plain_power(x: DeviceArray, exponent: float) -> DeviceArray:
    return x.sqrt() if exponent == 0.5 else x**exponent


@takes_out
@autocasts
def logsumexp(
    input: DeviceArray,
    dim: Dims,
    keepdim: bool = False,
    *,
    keepdims: bool | None = None,
    out: DeviceArray | None = None,
) -> DeviceArray:
    """log(sum(exp(x))) over the given dimensions, without overflow.

    Floats only. Raises DTypeMismatchError for integers, IndexError for a dim out of range.

    >>> dt.logsumexp(dt.tensor([0.0, 0.0]), dim=0)
    DeviceArray(0.6931, device='cpu', dtype=float32)
    """
    _C._check("logsumexp", ("input",), (input,))
    keep = kept("logsumexp", keepdim, keepdims)
    dims = dims_of("logsumexp", _need_ints("logsumexp", "dim", dim), input.ndim, input)
    if input.ndim == 0:
        return input.clone()
    x = widened(input)
    if any(x.shape[d] == 0 for d in dims):
        return x.exp().sum(dims, keepdim=keep).log().to(input.dtype)
    most = x.detach().amax(dims, keepdim=True)
    most = _C.where(most.isfinite(), most, 0.0)
    result = (x - most).exp().sum(dims, keepdim=True).log() + most
    return (result if keep else result.squeeze(dims)).to(input.dtype)


def _order(p: float | str | None) -> float:
    if not isinstance(p, str):
        return 2.0 if p is None else float(_need_number("norm", "p", p))
    if p != "fro":
        raise ValueError(f"norm(): argument 'p' must be a number, 'fro', 'nuc' or None, not {p!r}")
    return 2.0


@autocasts
def norm(
    input: DeviceArray,
    p: float | str | None = "fro",
    dim: Dims | None = None,
    keepdim: bool = False,
    *,
    axis: Dims | None = None,
    keepdims: bool | None = None,
) -> DeviceArray:
    """The vector norm over the given dimensions: sum(abs(x) ** p) ** (1 / p); "fro" is 2, inf the largest element.

    "nuc" is the sum of the singular values of a matrix, or of those over two dimensions: linalg.matrix_norm. Floats
    only. Raises DTypeMismatchError for integers, IndexError for a dim out of range.

    >>> dt.norm(dt.tensor([3.0, 4.0]))
    DeviceArray(5., device='cpu', dtype=float32)
    """
    _C._check("norm", ("input",), (input,))
    nuclear = isinstance(p, str) and p == "nuc"
    order = 2.0 if nuclear else _order(p)
    keep = kept("norm", keepdim, keepdims)
    dims = dims_over("norm", input, dim, axis)
    if nuclear:
        from devtensor.linalg._norms import nuclear_norm

        return nuclear_norm("norm", input, dims, keep)
    return norm_over(widened(input), order, dims, keep).to(input.dtype)


def norm_over(x: DeviceArray, order: float, dims: tuple[int, ...], keep: bool) -> DeviceArray:
    """sum(abs(x) ** order) ** (1 / order) over dims, and what stands for it where order is infinite or 0."""
    if order != 2:  # a square needs no abs, which has no second derivative at 0
        x = x.abs()
    if x.ndim == 0:
        x, dims, keep = x.reshape(1), (0,), False
    if order == math.inf:
        return x.amax(dims, keepdim=keep)
    if order == -math.inf:
        return x.amin(dims, keepdim=keep)
    if order == 0:
        return (x != 0).sum(dims, keepdim=keep).to(x.dtype)
    if order == 1:
        return x.sum(dims, keepdim=keep)
    if order == 2:
        return _C._root_squares(x, dims, keep)
    return power(power(x, order).sum(dims, keepdim=keep), 1.0 / order)


__all__ = [
    "logsumexp",
    "norm",
    "std",
    "var",
]
METHODS = (
    logsumexp,
    norm,
    std,
    var,
)
