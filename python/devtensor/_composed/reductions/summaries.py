"""Reductions that are made of others: several at once, without NaN, distances, limits of norms."""

from __future__ import annotations

from typing import NamedTuple

from devtensor import _C
from devtensor._C import DeviceArray, _need_bool, _need_dtype, _need_int, _need_number
from devtensor._composed.arguments import dims_of, in_place, need_array, widened
from devtensor._composed.elementwise.pointwise import together
from devtensor._composed.reductions.moments import norm, variance
from devtensor._composed.written import takes_out
from devtensor._dtypes.autocast import autocasts
from devtensor._dtypes.rules import common_dtype
from devtensor._types import Dims


def _with_mean(
    op: str,
    input: DeviceArray,
    dim: Dims | bool | None,
    unbiased: bool | None,
    keepdim: bool,
    correction: float | None,
    root: bool,
) -> tuple[DeviceArray, DeviceArray]:
    """The variance, or with root its square root, and the mean."""
    spread = variance(op, input, dim, unbiased, keepdim, correction, None, None, root).to(input.dtype)
    dims = None if isinstance(dim, bool) else dim
    return spread, _C.mean(input, dims, keepdim)


@takes_out
def var_mean(
    input: DeviceArray,
    dim: Dims | bool | None = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
    out: tuple[DeviceArray, DeviceArray] | None = None,
) -> tuple[DeviceArray, DeviceArray]:
    """(var, mean) over the given dimensions, all by default, with the parameters and errors of var.

    >>> dt.var_mean(dt.tensor([1.0, 3.0]))
    (DeviceArray(2., device='cpu', dtype=float32), DeviceArray(2., device='cpu', dtype=float32))
    """
    return _with_mean("var_mean", input, dim, unbiased, keepdim, correction, False)


@takes_out
def std_mean(
    input: DeviceArray,
    dim: Dims | bool | None = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
    out: tuple[DeviceArray, DeviceArray] | None = None,
) -> tuple[DeviceArray, DeviceArray]:
    """(std, mean) over the given dimensions, all by default, with the parameters and errors of std.

    >>> dt.std_mean(dt.tensor([1.0, 3.0]), correction=0)
    (DeviceArray(1., device='cpu', dtype=float32), DeviceArray(2., device='cpu', dtype=float32))
    """
    return _with_mean("std_mean", input, dim, unbiased, keepdim, correction, True)


class aminmax_result(NamedTuple):
    """What aminmax gives."""

    min: DeviceArray
    max: DeviceArray


@takes_out
def aminmax(
    input: DeviceArray,
    *,
    dim: int | None = None,
    keepdim: bool = False,
    out: tuple[DeviceArray, DeviceArray] | None = None,
) -> aminmax_result:
    """(min, max): the smallest and the largest element, of all or along dim; NaN if there is one.

    Any dtype. Raises IndexError for a dim out of range, RuntimeError for nothing to choose from.

    >>> dt.aminmax(dt.tensor([3, 1, 2])).max
    DeviceArray(3, device='cpu', dtype=int64)
    """
    need_array("aminmax", "input", input)
    keepdim = _need_bool("aminmax", "keepdim", keepdim)
    dims = None if dim is None else dims_of("aminmax", _need_int("aminmax", "dim", dim), input.ndim, input)
    if not (input.numel() if dims is None or not input.ndim else input.shape[dims[0]]):
        text = "aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity."
        raise _C._explained("aminmax", ("input",), (input,), "empty", RuntimeError(text))
    return aminmax_result(_C.amin(input, dims, keepdim), _C.amax(input, dims, keepdim))


def count_nonzero(input: DeviceArray, dim: Dims | None = None) -> DeviceArray:
    """How many elements are not zero, over the given dimensions, all by default: int64. NaN is not zero.

    Raises IndexError for a dim out of range.

    >>> dt.count_nonzero(dt.tensor([[0, 2], [3, 4]]), dim=0)
    DeviceArray([1, 2], device='cpu', dtype=int64)
    """
    need_array("count_nonzero", "input", input)
    dims = dims_of("count_nonzero", dim, input.ndim, input)
    return (input.detach() != 0).sum(dims)


def _nan_sum(op: str, input: DeviceArray, dim: Dims | None, keepdim: bool, dtype: _C.dtype | None) -> DeviceArray:
    need_array(op, "input", input)
    keepdim = _need_bool(op, "keepdim", keepdim)
    dims = dims_of(op, dim, input.ndim, input)
    x = input.masked_fill(input.detach().isnan(), 0) if input.dtype.is_floating_point else input
    return x.sum(dims, keepdim, dtype=None if dtype is None else _need_dtype(op, "dtype", dtype))


@takes_out
def nansum(
    input: DeviceArray,
    dim: Dims | None = None,
    keepdim: bool = False,
    *,
    dtype: _C.dtype | None = None,
    out: DeviceArray | None = None,
) -> DeviceArray:
    """The sum without NaN over the given dimensions, all by default. Any dtype; dtype and errors as in sum.

    >>> dt.nansum(dt.tensor([1.0, dt.nan, 2.0]))
    DeviceArray(3., device='cpu', dtype=float32)
    """
    return _nan_sum("nansum", input, dim, keepdim, dtype)


@takes_out
def nanmean(
    input: DeviceArray,
    dim: Dims | None = None,
    keepdim: bool = False,
    *,
    dtype: _C.dtype | None = None,
    out: DeviceArray | None = None,
) -> DeviceArray:
    """The mean without NaN over the given dimensions, all by default; NaN of NaN alone.

    Floats. Raises DTypeMismatchError for integers, IndexError for a dim out of range.

    >>> dt.nanmean(dt.tensor([1.0, dt.nan, 2.0]))
    DeviceArray(1.5000, device='cpu', dtype=float32)
    """
    _C._check("nanmean", ("input",), (input,))
    result = input.dtype if dtype is None else _need_dtype("nanmean", "dtype", dtype)
    x = widened(input.to(result))
    total = _nan_sum("nanmean", x, dim, keepdim, None)
    count = x.detach().isnan().logical_not().sum(dims_of("nanmean", dim, x.ndim, input), keepdim)
    return (total / count).to(result)


@autocasts
def dist(input: DeviceArray, other: DeviceArray, p: float = 2) -> DeviceArray:
    """The p-norm of input - other as one number. Floats on one device; the shapes broadcast, the dtypes promote.

    Raises DeviceMismatchError, DTypeMismatchError, ShapeMismatchError.

    >>> dt.dist(dt.tensor([1.0, 1.0]), dt.tensor([4.0, 5.0]))
    DeviceArray(5., device='cpu', dtype=float32)
    """
    names, arrays = ("input", "other"), (input, other)
    p = _need_number("dist", "p", p)
    together("dist", names, arrays)
    for array in arrays:
        if not array.dtype.is_floating_point:
            _C._check("dist", names, arrays)
    return norm(widened(input) - widened(other), p).to(common_dtype(*arrays))


def _limited(op: str, input: DeviceArray, p: float, dim: int, maxnorm: float) -> DeviceArray:
    _C._check(op, ("input",), (input,))
    _C._check_rank(op, ("input",), (input,), 0, 2, 8)
    p, maxnorm = _need_number(op, "p", p), _need_number(op, "maxnorm", maxnorm)
    (d,) = dims_of(op, _need_int(op, "dim", dim), input.ndim, input)
    if not p > 0:
        raise RuntimeError("renorm: non-positive-norm not supported")
    if maxnorm < 0:
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm}")
    x = widened(input)
    norms = norm(x, p, [k for k in range(x.ndim) if k != d], True)
    return (x * _C.where(norms > maxnorm, maxnorm / (norms + 1e-7), 1.0)).to(input.dtype)


@takes_out
@autocasts
def renorm(input: DeviceArray, p: float, dim: int, maxnorm: float, *, out: DeviceArray | None = None) -> DeviceArray:
    """Each entry of dimension dim, but with its p-norm brought down to maxnorm where it is larger.

    Floats of 2 dimensions or more. Raises DTypeMismatchError, ShapeMismatchError, IndexError for a dim out of range,
    RuntimeError for a p that is not above 0 and a maxnorm below 0.

    >>> dt.renorm(dt.tensor([[3.0, 4.0], [0.3, 0.4]]), 2, 0, 1.0)
    DeviceArray([[0.6000, 0.8000],
                 [0.3000, 0.4000]], device='cpu', dtype=float32)
    """
    return _limited("renorm", input, p, dim, maxnorm)


renorm_ = in_place(renorm)


__all__ = [
    "aminmax",
    "count_nonzero",
    "dist",
    "nanmean",
    "nansum",
    "renorm",
    "std_mean",
    "var_mean",
]
METHODS = (
    aminmax,
    count_nonzero,
    dist,
    nanmean,
    nansum,
    renorm,
    renorm_,
)
